#!/bin/bash
# SPDX-License-Identifier: MIT
#
# random.sh [N]: N copies (1000) of random extents, of a random size, by a random mode with random
# options, from and to random file systems. Compares bytes, and for auto also the maps. SEED repeats
# a run; a case that fails is shown as the commands that repeat it.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need_mounts "$@"
make_work
seed_random
wanted=${1:-1000}
{ mkextents=$(tool mkextents) && extents=$(tool extents); } || skip "no compiler"
random_file "$work/old" 300001
mapfile -t modes < <(modes)
declare -A count

# pick WORD…: sets REPLY to one of them.
pick() {
	random_below $#
	shift $REPLY
	REPLY=$1
}

# Sets runs to what mkextents shall make: block-aligned runs with an odd end.
draw_runs() {
	local i kind
	runs=()
	random_below 8
	for ((i = REPLY; i > 0; i--)); do
		pick data data dirty zeros hole hole unwritten
		kind=$REPLY
		pick 2 4 32 512 1536
		random_below "$REPLY"
		runs+=("$kind:$(((REPLY + 1) * 4096))")
	done
	pick 0 0 1 511 4095 5000
	runs+=("dirty:$REPLY")
}

# Sets options to some that go with the mode.
draw_options() {
	local list=() option
	case $1 in
	0) list=(--sparse={auto,always,never} --reflink={auto,never} --threads={1,3}) ;;
	1 | 5) list=(--buffer-size={1,3K,1M}) ;;
	7) list=(--threads={1,2,5}) ;;
	esac
	list+=(--preallocate={always,never} --fsync --inplace --verify)
	options=()
	for option in "${list[@]}"; do
		random_below 5
		# An option that this program does not have yet is no error of the copy.
		if [ "$REPLY" = 0 ] && [[ $help == *"${option%%=*}"* ]]; then
			options+=("$option")
		fi
	done
	# Refused together.
	if [[ ${options[*]} == *--sparse=always*--preallocate=always* || $1 == [48] ]]; then
		options=("${options[@]/%--preallocate=always/--preallocate=never}")
	fi
	if [[ "${options[*]} " == *"size=1 "* ]]; then
		runs=(dirty:5000) # byte by byte takes its time
	fi
}

# What auto keeps: holes stay holes, and unwritten extents are not written; which of them is which,
# XFS, that rounds its allocations up, and tmpfs, which has no FIEMAP, do not show it.
map() {
	"$extents" "$1" | sed 's/unwritten/hole/' | awk -F: '
	$1 == "beyond" { next }
	$1 == kind { bytes += $2; next }
	{ if (kind) print kind ":" bytes; kind = $1; bytes = $2 }
	END { if (kind) print kind ":" bytes }'
}

check_map() {
	local differences
	if "$extents" "$dst" | grep -q beyond && [ "$(fs_of "$(dirname "$dst")")" != xfs ]; then
		fail other "$what: blocks are left beyond the end"
	fi
	case " ${options[*]} " in
	*--sparse=[an][le]* | *--preallocate=always*) return ;;
	esac
	# tmpfs has no map of the blocks that were allocated, but not written: auto reads them, and skips all zeros.
	if [[ ${runs[*]} == *unwritten:* ]] && [ "$(fs_of "$(dirname "$src")")" = tmpfs ]; then
		return
	fi
	# Up to 64 KiB auto reads all, and asks nothing.
	if [ "$(stat -c %s "$src")" -gt 65536 ]; then
		differences=$(diff <(map "$src") <(map "$dst")) || fail other "$what: the maps differ: $differences"
	fi
}

one() {
	local from to mode seed_of_case status was=absent
	pick "${dirs[@]}"
	from=$REPLY
	pick "${dirs[@]}"
	to=$REPLY
	pick "${modes[@]}"
	mode=$REPLY
	draw_runs
	draw_options "$mode"
	random_below 1000000000
	seed_of_case=$REPLY
	src=$from/src
	dst=$to/dst
	rm -f "$src" "$dst"
	"$mkextents" "$src" "$seed_of_case" "${runs[@]}" || exit 1
	pick absent old
	if [ "$REPLY" = old ]; then
		cp "$work/old" "$dst"
		was=old
		[[ " ${options[*]} " != *" --inplace "* ]] || was=torn # or may be
	fi
	what="mkextents $src $seed_of_case ${runs[*]}; (DST $was) fcopy ${options[*]} -m $mode $src $dst"
	timed "$FCOPY" "${options[@]}" -m "$mode" "$src" "$dst" 2>"$work/err"
	status=$?
	tried=$((tried + 1))
	state_of "$dst" "$work/old" "$src"
	case $status:$was:$REPLY in
	0:*:new)
		count[$mode]=$((${count[$mode]-0} + 1))
		[ "$mode" != 0 ] || check_map
		;;
	1:old:old | 1:absent:absent | 1:torn:*)
		# Only a mode asked for by name may be refused, for files that it cannot copy.
		if [ "$mode" = 0 ] ||
			! grep -qE 'Invalid cross-device|not supported|Invalid argument' "$work/err"; then
			fail other "$what: $(head -1 "$work/err")"
		fi
		refused=$((refused + 1))
		;;
	*) fail_copy $status $was "$REPLY" "$what" ;;
	esac
}

help=$("$FCOPY" --help)
refused=0
while [ $tried -lt "$wanted" ]; do
	one
done
for mode in "${modes[@]}"; do
	echo "$name: mode $mode: ${count[$mode]-0} copies"
done
echo "$name: $refused were refused"
finish
