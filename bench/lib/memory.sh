# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Memory that a virtual machine gave back to its host costs up to ten times as much at the next touch, and what is
# free is given back within seconds. So a run that needs much is rehearsed, and then finds what the rehearsal left.

GIVEN_BACK=/sys/module/page_reporting/parameters/reported_kib

# Scattered free memory holds pages that no rehearsal has touched, and small pages scatter it; a fresh boot has it in one
# piece.
memory_compact() {
	! is_root || [[ ! -w /proc/sys/vm/compact_memory ]] || echo 1 >/proc/sys/vm/compact_memory
}

# KiB that the kernel has given back so far; 0 where it does not count.
memory_given_back() {
	local count=0
	[[ ! -r $GIVEN_BACK ]] || read -r count <"$GIVEN_BACK"
	echo "$count"
}

# The kernel gives back two seconds after memory was freed (mm/page_reporting.c), all at once. What is freed just
# after that stays for as long; nothing within 2.5 s means that nothing was due.
memory_settle() {
	local before now same=0 tick
	[[ -r $GIVEN_BACK ]] || return 0
	before=$(memory_given_back)
	for ((tick = 0; tick < 100 && same < 3; tick++)); do
		sleep 0.025
		now=$(memory_given_back)
		if ((now != before)); then
			same=1
		elif ((same)); then
			same=$((same + 1))
		fi
		before=$now
	done
}
