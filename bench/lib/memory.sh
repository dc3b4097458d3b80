# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Memory that a virtual machine gave back to its host costs up to ten times as much at the next touch, and what is
# free is given back within seconds. So as much as a copy needs is held, touched, and let go just before the run.

HELD=0 # bytes
BALLAST_TO=''

# memory_wanted CACHE: prints how much the case's copy will touch; a cold source comes into memory as well.
memory_wanted() {
	local want=$((SRC_DATA * 9 / 8)) most
	[[ $1 == warm ]] || want=$((want + SRC_DATA))
	most=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) * 1024 + HELD - (1 << 30)))
	echo $((want < most ? want : most))
}

memory_hold() {
	local size=$1 ready
	((HELD != size)) || return 0
	memory_release
	((size >= 1 << 20)) || return 0
	coproc BALLAST { exec "${KNOWN[python3]}" "$BENCH/lib/ballast.py" "$size"; }
	BALLAST_TO=${BALLAST[1]}
	read -r ready <&"${BALLAST[0]}" && HELD=$size
}

memory_release() {
	[[ $BALLAST_TO ]] || return 0
	exec {BALLAST_TO}>&-
	wait "$BALLAST_PID" 2>/dev/null
	BALLAST_TO='' HELD=0
}

# KiB that the kernel has given back so far; 0 where it does not count.
memory_given_back() { cat /sys/module/page_reporting/parameters/reported_kib 2>/dev/null || echo 0; }
