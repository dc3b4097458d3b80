# SPDX-License-Identifier: MIT
# One copy made by several processes.

for end, r in ("", ""), ("_-r", "-r"):
    contender(f"4-shards{end}", f"for i in 0 1 2 3; do {{fcopy}} {r} --fsync --shard=$i/4 {{src}} {{dst}} & done; wait")
    contender(f"1-process{end}", f"{{fcopy}} {r} --fsync {{src}} {{dst}}")
case("shards", "four shards on one machine", "1-process 4-shards", size=4 * SIZE, rounds=6, needs="--shard", bars="4-shards wall 1.10 1-process")
case("shards-tree", "the same of a tree", "1-process_-r 4-shards_-r", source="many", fs="ext4", rounds=6, needs="--shard", bars="4-shards_-r wall 1.10 1-process_-r")
