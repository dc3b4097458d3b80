#!/bin/bash
# SPDX-License-Identifier: MIT
#
# kill.sh [N]: strikes N running copies with KILL, INT or TERM at random instants, over each mode,
# file system, and a new or an old destination. The destination must be exactly the old file, the
# new one, or absent; after INT and TERM, death is by that signal and nothing is left.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need_mounts "$@"
make_work
seed_random
wanted=${1:-500}
signals=(KILL INT KILL TERM)
random_file "$work/src" 8M
random_file "$work/old" 3M
finished=0
litter=0

# copy MODE DIR [COMMAND…]: under COMMAND. INT is not ignored, even where this script ignores it.
copy() {
	env --default-signal=INT "${@:3}" "$FCOPY" -m "$1" "$2/src" "$2/d/dst" 2>"$work/err"
}

prepare() {
	rm -f "$2/d/dst"
	if [ "$1" = old ]; then
		cp "$work/old" "$2/d/dst"
	fi
}

# Sets duration, in microseconds, to the time of a whole copy: the shortest of three.
time_copy() {
	local start took
	duration=
	for _ in 1 2 3; do
		prepare "$3" "$2"
		start=${EPOCHREALTIME/./}
		copy "$1" "$2" timeout --kill-after=1 60 || return
		took=$((${EPOCHREALTIME/./} - start))
		if [ -z "$duration" ] || [ "$took" -lt "$duration" ]; then
			duration=$took
		fi
	done
}

check_names() {
	local file
	for file in "$1"/d/* "$1"/d/.[!.]*; do
		if [ "$file" = "$1/d/dst" ] || [ ! -e "$file" ]; then
			continue
		fi
		litter=$((litter + 1))
		[[ $2/$file == KILL/*/.fcopy-* ]] || fail other "$3 left ${file##*/}"
		rm -f "$file"
	done
}

# strike MODE DIR DESTINATION SIGNAL: one attempt, at a random instant; true if it struck.
strike() {
	local what status instant
	prepare "$3" "$2"
	random_below $((duration * 11 / 10))
	printf -v instant '%d.%06d' $((REPLY / 1000000)) $((REPLY % 1000000))
	what="mode $1 on $(fs_of "$2"), $3 destination, SIG$4 after $instant s"
	copy "$1" "$2" timeout --foreground --preserve-status --kill-after=10 --signal="$4" "$instant"
	status=$?
	state_of "$2/d/dst" "$work/old" "$work/src"
	check_names "$2" "$4" "$what"
	case $status:$3:$REPLY in
	0:*:new | [!0]*:*:new | [!0]*:old:old | [!0]*:new:absent) ;;
	0:*) fail wrong "$what: exit 0, but $REPLY" ;;
	*) fail lost "$what: $REPLY" ;;
	esac
	if [ $status = 0 ]; then
		finished=$((finished + 1))
		return 1
	fi
	[ $status = $((128 + $(kill -l "$4"))) ] || fail_status $status "$what: $(cat "$work/err")"
}

cells=()
for dir in "${dirs[@]}"; do
	mkdir "$dir/d"
	cp "$work/src" "$dir/src"
	for mode in $(modes); do
		works "mode $mode on $(fs_of "$dir")" time_copy "$mode" "$dir" new &&
			cells+=("$mode $dir new" "$mode $dir old")
	done
done
[ ${#cells[@]} -gt 0 ] || skip "no mode works"
each=$(((wanted + ${#cells[@]} - 1) / ${#cells[@]}))
for cell in "${cells[@]}"; do
	read -r mode dir destination <<<"$cell"
	time_copy "$mode" "$dir" "$destination"
	struck=0
	# Adapt duration until half the signals interrupt a copy. On a busy machine the measured time is mostly
	# that of starting the process, which precedes timeout(1)'s clock.
	for ((attempt = 0; struck < each; attempt++)); do
		if [ $attempt -gt $((20 * each + 100)) ]; then
			fail other "mode $mode on $(fs_of "$dir"): hardly ever struck"
			break
		fi
		if strike "$mode" "$dir" "$destination" "${signals[tried % 4]}"; then
			struck=$((struck + 1))
			tried=$((tried + 1))
			duration=$((duration * 21 / 20))
		else
			duration=$((duration * 19 / 20 + 100))
		fi
	done
done
echo "$name: $finished more were done before the blow; KILL left $litter temporary names"
finish
