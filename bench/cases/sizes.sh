# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# How the cost grows: time per file below, time per byte above.

for bytes in 1 4K 16K 64K 256K 1M 4M 16M 64M 256M 1G 4G 8G; do
	begin "size-$bytes" 'each mode by size'
	size $bytes; slow
	case $bytes in 1 | *K | 1M | 4M) rounds 20 ;; *) rounds 3 ;; esac
	# shellcheck disable=SC2086,SC2154  # the list of cases/modes.sh
	with $modes 0:auto cp memcpy
done
