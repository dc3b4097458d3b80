# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# auto against every copier that a user could pick instead.

begin ext4 'a file of random bytes to a new one, every rival'
on ext4
with cp fcopy uutils-cp xcp fcp rsync cat dd-8K dd-1M pv socat python java-streams java-transfer memcpy
bar wall fcopy cp 0.55
bar wall fcopy uutils-cp 0.65
bar wall fcopy xcp 0.55
bar cpu fcopy cp 1.05
bar rss fcopy - 8

begin ext4-replaced 'onto an existing file'
on ext4; to old
with cp fcopy fcopy-inplace uutils-cp xcp rsync
bar wall fcopy cp 1.00
bar wall fcopy-inplace cp 0.25

begin xfs 'a physical copy where a clone would be possible'
on xfs
with cp-no-reflink fcopy-no-reflink uutils-cp-no-reflink
bar wall fcopy-no-reflink cp-no-reflink 0.50
bar wall fcopy-no-reflink uutils-cp-no-reflink 0.85

for fs in xfs btrfs; do
	begin "$fs-clone" 'a clone, the whole process'
	on $fs; clones; rounds 20
	with cp fcopy uutils-cp
	bar wall fcopy cp 0.80
done

begin tmpfs 'in memory'
on tmpfs
with cp fcopy uutils-cp
bar wall fcopy cp 0.95

begin btrfs 'a physical copy where a clone would be possible'
on btrfs
with cp-no-reflink fcopy-no-reflink uutils-cp-no-reflink
bar wall fcopy-no-reflink cp-no-reflink 0.95

for pair in ext4:xfs:0.6 xfs:ext4:0.5 ext4:tmpfs:0.9; do
	IFS=: read -r src_fs dst_fs limit <<<"$pair"
	begin "$src_fs-to-$dst_fs" 'from one file system to another'
	on "$src_fs" "$dst_fs"
	with cp fcopy uutils-cp xcp
	bar wall fcopy cp "$limit"
done

begin fallocated 'just made by fallocate, never read: all of it is unwritten extents'
on ext4; from fresh
with cp fcopy
bar wall fcopy cp 0.05
bar blocks fcopy - 16

begin sparse 'a hundred small extents in a file a hundred times larger than --size'
on ext4; from sparse; rounds 20
with cp fcopy
bar wall fcopy cp 0.70
bar maps fcopy - 0

begin durable 'cold, and on the disk at the end'
on ext4; cache cold
with cp-sync fcopy-direct fcopy-fsync
bar wall fcopy-direct cp-sync 1.05
bar cpu fcopy-direct cp-sync 0.15
bar rss fcopy-direct - 32

begin small '4 KiB: the whole process, atomic commit included'
on ext4; size 4K; rounds 300
with cp fcopy uutils-cp cat
bar wall fcopy cp 0.75

for price in 1G:fcopy-plain:1.05 4K:fcopy-plain-small:1.15; do
	IFS=: read -r bytes plain limit <<<"$price"
	begin "price-$bytes" 'what the atomic commit costs, against the same written plainly into an empty file'
	on ext4; to empty "$plain"
	[[ $bytes == 1G ]] || { size "$bytes"; rounds 300; }
	with "$plain" fcopy
	bar wall fcopy "$plain" "$limit"
done

begin limited 'a file four times larger than the memory that the copier may use'
on ext4; cache cold; memory $((SIZE / 4))
with cp fcopy fcopy-direct 1:readwrite uutils-cp
