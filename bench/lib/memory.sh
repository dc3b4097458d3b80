# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Memory that a virtual machine gave back to its host costs up to ten times as much at the next touch, and what is
# free is given back within seconds. So as much as a copy needs is touched and let go just before the run.

# memory_touch CACHE DIR: by a file in DIR, on the destination's file system, written in large pieces, for the page
# cache to take blocks as large as the copy will. A cold source comes into memory as well.
memory_touch() {
	local want=$((SRC_DATA * 9 / 8)) most pad=$2/pad
	[[ $1 == warm ]] || want=$((want + SRC_DATA))
	most=$(($(free_bytes "$2") / 2))
	((want >= 1 << 20)) || return 0
	dd if=/dev/zero of="$pad" bs=1M count=$(((want < most ? want : most) >> 20)) status=none
	rm -f "$pad"
}

# KiB that the kernel has given back so far; 0 where it does not count.
memory_given_back() { cat /sys/module/page_reporting/parameters/reported_kib 2>/dev/null || echo 0; }
