# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Never slower than cp: every size on every file system, warm and cold.

for fs in ext4 xfs btrfs tmpfs; do
	for bytes in 0 1 4K 64K 1M 16M 1G 4G; do
		for state in warm cold; do
			[[ $fs-$state != tmpfs-cold ]] || continue
			begin "grid-$fs-$bytes-$state" 'auto against cp'
			on $fs; size $bytes; cache $state; layout row; slow
			case $bytes in 0 | 1 | *K | 1M) rounds 40 ;; esac
			with cp fcopy
			bar wall-low fcopy cp 1.00
		done
	done
done
