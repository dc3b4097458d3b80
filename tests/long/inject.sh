#!/bin/bash
# SPDX-License-Identifier: MIT
#
# inject.sh [N]: finds out with strace which system calls each mode makes from the moment SRC is
# opened, and fails the first, second and last call of each with each plausible errno (or N of these
# faults a cell, drawn at random). No crash, no hang, no exit 0 with wrong bytes, no lost old file.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need strace
need_mounts "$@"
make_work
# shellcheck source=calls.sh
. "$(dirname "$0")/calls.sh"
seed_random
most=${1:-}
random_file "$work/src" $((8 * 1024 * 1024 + 7))
random_file "$work/old" 100K
strace -o /dev/null true 2>/dev/null || skip "strace may not trace"

# run DIR MODE DESTINATION [STRACE-OPTION…]: one copy; the destination may carry an option.
run() {
	local dir=$1 mode=$2 destination=$3
	rm -rf "$dir/d"
	mkdir "$dir/d"
	if [ "${destination%% *}" = old ]; then
		cp "$work/old" "$dir/d/dst"
	fi
	# shellcheck disable=SC2046 # an option, or no word at all
	timeout --kill-after=1 20 strace -f -o "$work/trace" "${@:4}" "$FCOPY" -m "$mode" \
		$(echo "$destination" | grep -oe '--.*') "$dir/src" "$dir/d/dst" 2>"$work/err"
}

# list_faults DIR CELL: those of one cell; the cell's name is part of the draw.
list_faults() {
	local call when err
	list_calls "$1" | while read -r call when; do
		for err in $(errnos_of "$call"); do
			echo "$call:error=$err:when=$when"
		done
	done | shuf ${most:+-n "$most"} --random-source=<(yes "$seed $2")
}

# inject DIR MODE DESTINATION FAULT
inject() {
	local what status was
	what="mode $2 on $(fs_of "$1"), $3 destination, $4"
	# How threads share the work differs from run to run: the call may not come.
	for _ in 1 2 3 4 5; do
		run "$1" "$2" "$3" --seccomp-bpf -e "inject=$4" -e "trace=${4%%:*}"
		status=$?
		! grep -q '(INJECTED)' "$work/trace" || break
	done
	if ! grep -q '(INJECTED)' "$work/trace"; then
		missed=$((missed + 1))
		return
	fi
	tried=$((tried + 1))
	state_of "$1/d/dst" "$work/old" "$work/src"
	case $3 in
	new) was=absent ;;
	*--inplace) was=torn ;; # or may be
	*) was=old ;;
	esac
	case $status:$was:$REPLY in
	0:*:new) ;;
	1:*:new | 1:old:old | 1:absent:absent | 1:torn:*)
		[ -s "$work/err" ] || fail other "$what: exit 1 without a word"
		;;
	*) fail_copy "$status" $was "$REPLY" "$what" ;;
	esac
	if [[ $4 != unlink* ]] && [ -n "$(find "$1/d" -name '.fcopy-*')" ]; then
		fail other "$what: a temporary file was left"
	fi
}

for dir in "${dirs[@]}"; do
	cp "$work/src" "$dir/src"
	for mode in $(modes); do
		before=$tried
		missed=0
		for destination in new old "old --fsync" "old --inplace"; do
			works "mode $mode on $(fs_of "$dir")" run "$dir" "$mode" "$destination" || break
			while read -r fault; do
				inject "$dir" "$mode" "$destination" "$fault"
			done < <(list_faults "$dir" "$mode $destination")
		done
		before=$((tried - before))
		echo "$name: $(fs_of "$dir"), mode $mode: $before faults injected, $missed did not come"
		[ $missed -le $(((before >= 20 ? 3 : 1) + before / 20)) ] || fail other "$(fs_of "$dir"), mode $mode: too few came"
	done
done
finish
