#!/bin/bash
# SPDX-License-Identifier: MIT
#
# inject.sh [N]: finds out with strace which system calls each mode makes from the moment SRC is opened, to a new and an old DST,
# by a symlink, to a block device, with --inplace, --resume, --backup and --update. Fails the first, second and last call of each
# with each plausible errno, and kills the copy there (or N of these faults a cell, drawn at random). No crash, no hang, no exit 0
# with wrong bytes, no lost old file, no lost backup. After a failure or a kill, the same command line must complete the copy.
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

# prepare DIR DESTINATION: what the copy finds.
prepare() {
	rm -rf "$1/d"
	mkdir "$1/d"
	case $2 in
	old*) cp "$work/old" "$1/d/dst" ;;
	link)
		cp "$work/old" "$1/d/target"
		ln -s target "$1/d/dst"
		;;
	device) ln -s "$device" "$1/d/dst" ;;
	part*) (ulimit -f 3000 && copy "$1" readwrite "$2" timed && fail other "$2: there is no part") ;;
	esac
	touch --no-create -d yesterday "$1/d/"* # for --update
}

# copy DIR MODE DESTINATION COMMAND…: under COMMAND; the destination may carry an option.
copy() {
	# shellcheck disable=SC2046 # an option, or no word at all
	"${@:4}" "$FCOPY" -m "$2" $(echo "$3" | grep -oe '--.*') "$1/src" "$1/d/dst" 2>"$work/err"
}

# run DIR MODE DESTINATION [STRACE-OPTION…]: one copy.
run() {
	prepare "$1" "$3"
	copy "$1" "$2" "$3" timeout --kill-after=1 20 strace -f -o "$work/trace" "${@:4}"
}

# find_state DIR DESTINATION: sets REPLY.
find_state() {
	state_of "$1/d/dst" "$work/old" "$work/src"
	if [ "$2" = device ]; then
		REPLY=torn
		! cmp -s -n "$(stat -c %s "$work/src")" "$1/d/dst" "$work/src" || REPLY=new
	fi
}

# check_names DIR DESTINATION WHAT: DST, its backup and what the symlink leads to are there, and nothing else.
check_names() {
	local names
	names=$(cd "$1/d" && echo *)
	case $2:$names in
	link:'dst target') [ -L "$1/d/dst" ] || fail lost "$3: the symlink is gone" ;;
	device:dst) [ -b "$1/d/dst" ] || fail lost "$3: the device is gone" ;;
	*--backup:'dst dst~' | [!ld]*:dst | *:'*') ;;
	*) fail other "$3: there is $names" ;;
	esac
	# The old bytes are under one name or the other.
	[[ $2 != *--backup ]] || cmp -s "$work/old" "$1/d/dst" || cmp -s "$work/old" "$1/d/dst~" ||
		fail lost "$3: no backup"
}

# follow DIR MODE DESTINATION WHAT: the same command line, and then --clean.
follow() {
	local status
	rm -f "$1/d/dst~"
	copy "$1" "$2" "$3" timed
	status=$?
	[ $status = 0 ] || fail_status $status "$4, then the same command line: $(head -n 1 "$work/err")"
	find_state "$1" "$3"
	[ $status != 0 ] || [ "$REPLY" = new ] || fail wrong "$4, then the same command line: $REPLY"
	timed "$FCOPY" --clean="$1/d" -f >"$work/cleaned"
	# A temporary file has no lock: a copy that was killed at its rename(2) leaves it, and --clean names it.
	if [[ $4 == *KILL* ]]; then
		sed -n 's/: temporary file, .*: left alone: a temporary file has no lock.*//p' "$work/cleaned" | xargs -r -d '\n' rm
	fi
	[[ $3 == *--backup ]] || check_names "$1" "$3" "$4, then the same command line"
	[ -z "$(find "$1/d" -name '*.fcopy-*')" ] || fail other "$4, then the same command line left $(ls -A "$1/d")"
}

# list_faults DIR CELL: those of one cell; the cell's name is part of the draw.
list_faults() {
	local call when err
	list_calls "$1" | while read -r call when; do
		for err in $(errnos_of "$call"); do
			echo "$call:error=$err:when=$when"
		done
		[ -z "$(errnos_of "$call")" ] || echo "$call:signal=KILL:when=$when"
	done | shuf ${most:+-n "$most"} --random-source=<(yes "$seed $2")
}

has_come() { grep -qE '\(INJECTED\)|killed by SIGKILL' "$work/trace"; }

# inject DIR MODE DESTINATION FAULT
inject() {
	local what status was file
	what="mode $2 on $(fs_of "$1"), $3 destination, $4"
	# How threads share the work differs from run to run: the call may not come.
	for _ in 1 2 3 4 5; do
		# shellcheck disable=SC2046 # one option
		run "$1" "$2" "$3" $(faster "$4") -e "inject=$4" -e "trace=${4%%:*}" 2>/dev/null # bash reports a kill
		status=$?
		! has_come || break
	done
	if ! has_come; then
		missed=$((missed + 1))
		return
	fi
	tried=$((tried + 1))
	find_state "$1" "$3"
	case $3 in
	new* | part*) was=absent ;;
	*--inplace | device) was=torn ;; # or may be
	*) was=old ;;
	esac
	case $status:$was:$REPLY in
	0:*:new) ;;
	1:*:new | [12]:old:old | [12]:absent:absent | [12]:torn:*)
		# Only a name that leads to nothing is the caller's mistake: fcopy(1), EXIT STATUS.
		[ "$status" = 1 ] || [[ $4 == openat:error=@(ENOENT|ELOOP):* ]] || fail_status "$status" "$what"
		[ -s "$work/err" ] || fail other "$what: exit 1 without a message"
		;;
	137:*:new | 137:old:old | 137:absent:absent | 137:torn:*) [[ $4 == *KILL* ]] || fail hung "$what" ;;
	*) fail_copy "$status" $was "$REPLY" "$what" ;;
	esac
	if [[ $4 != unlink* && $4 != *KILL* ]]; then
		for file in "$1/d"/.fcopy-*; do
			[ ! -e "$file" ] || grep -qF "${file##*/}" "$work/err" || fail other "$what: $file was left, and not named"
		done
	fi
	[[ $3 == *--resume && $status != 0 || $4 == unlink* || $4 == *KILL* ]] || check_names "$1" "$3" "$what"
	[ $status = 0 ] || follow "$1" "$2" "$3" "$what"
}

# A device to copy to, if root can make one.
destinations=(new old link "old --fsync" "old --inplace" "new --resume" "part --resume" "old --backup" "old --update")
device=''
if [ "$(id -u)" = 0 ] && truncate -s 9M "$work/image" && device=$(losetup --find --show "$work/image"); then
	destinations+=(device)
	trap 'losetup -d "$device"; unmount_all; rm -rf --one-file-system "$work" "${dirs[@]}"' EXIT
else
	left_out "block devices" "no loop device"
fi
for dir in "${dirs[@]}"; do
	cp "$work/src" "$dir/src"
	for mode in $(modes); do
		before=$tried
		missed=0
		for destination in "${destinations[@]}"; do
			works "mode $mode on $(fs_of "$dir"), $destination" run "$dir" "$mode" "$destination" ||
				if [ "$destination" = new ]; then break; else continue; fi
			while read -r fault; do
				inject "$dir" "$mode" "$destination" "$fault"
			done < <(list_faults "$dir" "$mode $destination")
		done
		before=$((tried - before))
		echo "$name: $(fs_of "$dir"), mode $mode: $before faults injected, $missed did not come"
		# Mode 0, auto, makes other calls if it measures other speeds.
		[ $missed -le $(((before >= 20 ? 3 : 1) + before / (mode ? 20 : 8))) ] || fail other "$(fs_of "$dir"), mode $mode: too few came"
	done
done
finish
