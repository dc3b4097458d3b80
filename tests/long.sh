#!/bin/bash
# SPDX-License-Identifier: MIT
#
# long.sh [--record] [--jobs N] [PROOF…]: the proofs of tests/long, all of them or these, one after
# the other or N at once. Ends with a table of what was tried and what failed, which is left in
# build/long.md too, and the line N passed, N failed, N skipped. --record replaces their rows in
# tests/long/RESULTS.md, which name the revision; the other rows stay. FCOPY names another program.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
export FCOPY=${FCOPY:-$root/fcopy} FCOPY_BUILD=${FCOPY_BUILD:-$root/build}
table=$FCOPY_BUILD/long.md results=$root/tests/long/RESULTS.md
passed=0 failed=0 skipped=0 record='' jobs=1

# Each proof, what it counts, and its argument for a full run. What a power cut leaves depends on
# the load: cp beside us would meet another one.
proofs=(
	"powercut|power cuts|25|alone" # by two file systems, to a new and an old DST: a hundred a mode
	"inject|faults injected|40" # of each mode and kind of DST
	"seccomp|system calls denied|"
	"kill|copies interrupted|2000"
	"fulldisk|disk sizes tried|"
	"storage|storage errors|"
	"minimal|copies to storage that lacks operations|"
	"random|randomised copies|5000"
	"sockets|streams broken|500"
	"http|heads that h11 reads otherwise|100000"
	"whole|files of 5 GiB|"
	"tree-kill|trees interrupted|500"
	"part-kill|copies that can be continued, interrupted|60"
	"part-powercut|power cuts during copies that can be continued|100"
	"tree-fulldisk|disk sizes tried with trees|"
	"tree-inject|faults injected into trees|5000"
	"tree-race|trees copied while directories are exchanged|500"
	"exchange|exchanges of a name between two system calls|"
	"tree-random|random command lines for trees|5000"
	"foretold|dry runs, each with its run|2000"
	"mirror|random trees mirrored|300"
	"walk|random walks of commands on one DST|10000"
	"shard-kill|copies by shards of which one was killed|200"
	"launchers|copies by launchers|"
	"cp-commands|commands of cp in public scripts|"
	"fuzz|inputs tried|600" # seconds
	"mutation|changes of the code|40|alone"
	"benchmark|modes measured|512M|alone" # --benchmark against bench/
)

usage() {
	local proof
	echo "usage: ${0##*/} [--record] [--jobs N] [PROOF…], of ${proofs[*]%%|*}" >&2
	exit 2
}

# Chooses what to run; sets wanted.
read_arguments() {
	wanted=()
	while [ $# != 0 ]; do
		case $1 in
		--record) record=yes ;;
		--jobs)
			[[ ${2-} =~ ^[1-9]$ ]] || usage
			jobs=$2
			shift
			;;
		*)
			[[ " ${proofs[*]%%|*} " == *" $1 "* ]] || usage
			wanted+=("$1")
			;;
		esac
		shift
	done
	[ ${#wanted[@]} != 0 ] || wanted=("${proofs[@]%%|*}")
}

# result NAME: turns the closing line of the proof into the two cells of its row: how many were tried, and what failed.
result() {
	sed -nE "s/^$1: ([0-9]+) tried, ([0-9]+) lost, ([0-9]+) wrong, ([0-9]+) hung, ([0-9]+) crashed, ([0-9]+) other$/\1 \2 \3 \4 \5 \6/p" |
		tail -n 1 | awk -v name="$1" '
			{
				split(name == "exchange" ? "forbidden wrong hung crashed other" : "lost wrong hung crashed other", kind)
				for (i = 2; i <= NF; i++)
					if (name != "mutation" && $i > 0)
						failed = failed (failed ? ", " : "") $i " " kind[i - 1]
				if (name == "mutation")
					failed = $1 - $6 " noticed by a test, " $6 " not"
				print $1 " | " (failed ? failed : "none")
			}'
}

# run NAME WHAT ARGUMENT: one proof; leaves its status, and a row made of its closing line.
run() {
	local log=$FCOPY_BUILD/long.$1.log status row
	"$root/tests/long/$1.sh" ${3:+"$3"} | tee "$log"
	status=${PIPESTATUS[0]}
	row=$(result "$1" <"$log")
	[ "$status" != 77 ] || row='left out |'
	echo "$status | $1: $2 | ${row:-broke off |} | $revision |" >"$FCOPY_BUILD/long.$1.row"
}

# run_all: in the order of proofs, and no more at once than was asked for.
run_all() {
	local proof name what argument alone running=0
	for proof in "${proofs[@]}"; do
		IFS='|' read -r name what argument alone <<<"$proof"
		[[ " ${wanted[*]} " == *" $name "* ]] || continue
		if [ -n "$alone" ]; then
			wait
			running=0
		elif [ "$running" = "$jobs" ]; then
			wait -n
			running=$((running - 1))
		fi
		rm -f "$FCOPY_BUILD/long.$name.row"
		run "$name" "$what" "$argument" &
		running=$((running + 1))
		if [ -n "$alone" ]; then
			wait
			running=0
		fi
	done
	wait
}

# count NAME: how it ended.
count() {
	local status
	read -r status _ <"$FCOPY_BUILD/long.$1.row"
	case $status in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*)
		failed=$((failed + 1))
		echo "long: not ok: $1: status $status"
		;;
	esac
}

# make_table NAME…: prints the new row of each proof that ran now, and the recorded row of each other one.
make_table() {
	local name
	echo "| proof | tried | failures | revision |"
	echo "| --- | ---: | --- | --- |"
	for name in "$@"; do
		if [[ " ${wanted[*]} " == *" $name "* ]]; then
			sed 's/^[0-9]* //' "$FCOPY_BUILD/long.$name.row"
		else
			grep "^| $name: " "$results"
		fi
	done
	printf '\n%s, Linux %s.\n' "$(date -u +%F)" "$(uname -r)"
}

# Everything between the markers goes, and the table comes.
put_into_results() {
	sed -e '/<!-- proofs -->/,/<!-- \/proofs -->/{
		/<!-- proofs -->/r '"$table"'
		/<!-- \/\?proofs -->/!d
	}' "$results" >"$table.new" && cat "$table.new" >"$results" && rm "$table.new"
}

read_arguments "$@"
mkdir -p "$FCOPY_BUILD"
revision=$(git -C "$root" describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)
run_all
for proof in "${proofs[@]%%|*}"; do
	[[ " ${wanted[*]} " != *" $proof "* ]] || count "$proof"
done
if [ -n "$record" ]; then
	make_table "${proofs[@]%%|*}" >"$table"
	put_into_results
else
	make_table "${wanted[@]}" >"$table"
fi
cat "$table"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed != 0 ]
