# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Never slower than cp: every size on every file system, warm and cold.

for fs in ext4 xfs btrfs tmpfs; do
	for bytes in 0 1 4K 64K 1M 16M 1G 4G; do
		for state in warm cold; do
			[[ $fs-$state != tmpfs-cold ]] || continue
			begin "grid-$fs-$bytes-$state" 'auto against cp'
			on $fs; size $bytes; cache $state; layout row; slow
			[[ $fs != xfs && $fs != btrfs ]] || clones
			case $bytes-$state in *G-* | 16M-*) ;; *-warm) rounds 40 ;; *) rounds 10 ;; esac
			with cp fcopy
			bar wall-low fcopy cp 1.00
		done
	done
done
