#!/bin/bash
# SPDX-License-Identifier: MIT
#
# whole.sh: a whole file of 5 GiB, beyond what 31 and 32 bits count, by each mode.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
make_work

# Data at both ends and around 2 and 4 GiB, holes between: the length is what is tried, not the disk.
for at in 0 2047 4095 5119; do
	dd if=/dev/urandom of="$work/src" bs=1M count=1 seek=$at conv=notrunc status=none || exit 1
done
printf x >>"$work/src"

for mode in $(modes); do
	works "mode $mode" timeout --kill-after=1 600 "$FCOPY" -m "$mode" "$work/src" "$work/dst" ||
		continue
	tried=$((tried + 1))
	state_of "$work/dst" "" "$work/src"
	[ "$REPLY" = new ] || fail wrong "mode $mode: exit 0, but $REPLY"
	rm "$work/dst"
done
finish
