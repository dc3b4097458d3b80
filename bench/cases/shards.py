# SPDX-License-Identifier: MIT
# One copy made by several processes.

contender("4-shards", "for i in 0 1 2 3; do {fcopy} --fsync --shard=$i/4 {src} {dst} & done; wait")
contender("1-process", "{fcopy} --fsync {src} {dst}")
case("shards", "four shards on one machine", "1-process 4-shards", size=4 * SIZE, rounds=6, needs="--shard",
     bars="4-shards wall 1.10 1-process")
contender("4-shards_-r", "for i in 0 1 2 3; do {fcopy} -r --shard=$i/4 {src} {dst} & done; wait")
contender("1-process_-r", "{fcopy} -r --fsync {src} {dst}")
case("shards-tree", "four shards make one tree on one machine", "1-process_-r 4-shards_-r", source="many", fs="ext4",
     rounds=6, needs="--shard", bars="4-shards_-r wall 1.10 1-process_-r")
