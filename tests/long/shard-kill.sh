#!/bin/bash
# SPDX-License-Identifier: MIT
#
# shard-kill.sh [N]: N copies by four shards, of a file and of a tree in turn, on each file system.
# One shard is killed at a random instant and then run again. DST must be absent or whole after the
# kill, and at the end whole, with nothing beside it but the receipt.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need_mounts "$@"
make_work
seed_random
wanted=${1:-200}
struck=0

# shard INDEX SOURCE DIR [COMMAND…]: under COMMAND.
shard() {
	"${@:4}" "$FCOPY" -a --shard="$1/4" "$3/$2" "$3/d/dst" 2>"$work/err$1"
}

# state_of_copy SOURCE DIR: sets REPLY to absent, new or torn.
state_of_copy() {
	if [ "$1" = tree ]; then
		state_of_tree "$2/d/dst" "$2/tree"
		[ "$REPLY" != whole ] || REPLY=new
	else
		state_of "$2/d/dst" "$work/none" "$2/file"
	fi
}

# The longest of four shards at once, in microseconds: the instants are within it.
time_shards() {
	local start=${EPOCHREALTIME/./} i
	for i in 0 1 2 3; do shard $i "$1" "$2" & done
	wait
	duration=$((${EPOCHREALTIME/./} - start))
	rm -rf "$2"/d
	mkdir "$2/d"
}

# strike SOURCE DIR: kills one of four shards at a random instant.
strike() {
	local victim=$((RANDOM % 4)) i status instant what pid left
	local -a pids=()
	random_below "$duration"
	printf -v instant '%d.%06d' $((REPLY / 1000000)) $((REPLY % 1000000))
	what="$1 on $(fs_of "$2"), shard $victim killed after $instant s"
	for i in 0 1 2 3; do
		if [ $i = $victim ]; then
			shard $i "$1" "$2" timeout --foreground --signal=KILL "$instant" &
			pid=$!
		else
			shard $i "$1" "$2" timed &
			pids+=($!)
		fi
	done
	wait "$pid"
	status=$?
	[ $status = 0 ] || struck=$((struck + 1))
	state_of_copy "$1" "$2"
	[ "$REPLY" != torn ] || fail lost "$what: torn"
	shard $victim "$1" "$2" timed || fail_status $? "$what, run again: $(head -n 1 "$work/err$victim")"
	for pid in "${pids[@]}"; do
		wait "$pid" || fail_status $? "$what, another shard: $(head -qn 1 "$work"/err?)"
	done
	state_of_copy "$1" "$2"
	[ "$REPLY" = new ] || fail wrong "$what: at the end $REPLY"
	left=$(cd "$2/d" && find . -mindepth 1 ! -path './dst/*' | sort | tr '\n' ' ')
	[ "$left" = './dst ./dst.fcopy-part ./dst.fcopy-part/journal ./dst.fcopy-part/lock ' ] ||
		fail other "$what left $left"
	tried=$((tried + 1))
	rm -rf "$2/d"
	mkdir "$2/d"
}

for dir in "${dirs[@]}"; do
	mkdir "$dir/d"
	random_file "$dir/file" 23M
	make_tree "$dir/tree" 300
done
while [ $tried -lt "$wanted" ]; do
	for dir in "${dirs[@]}"; do
		for source in file tree; do
			[ $tried -ge "$wanted" ] && break 2
			time_shards $source "$dir"
			for _ in 1 2 3 4 5; do strike $source "$dir"; done
		done
	done
done
echo "$name: $struck shards died before their end"
finish
