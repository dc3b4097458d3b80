#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# demo.sh [SIZE] [DIR]: the newcomer's first look. A file made by fallocate is copied by each mode,
# three times in turn, timed by bash's own `time`; the best of each is shown. Needs coreutils only.
set -uo pipefail
export LC_ALL=C.UTF-8 # times have a point, wherever we are

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
fcopy=$here/../fcopy
size=${1:-1G}
dir=${2:-$here/../build}
rounds=3
TIMEFORMAT='%R %U %S'
declare -A best=()

die() {
	echo "demo.sh: $*" >&2
	exit 1
}

lab_open() {
	local wanted free
	local tool
	for tool in awk cmp dd fallocate numfmt; do
		type "$tool" >/dev/null 2>&1 || die "missing: $tool"
	done
	[[ -x $fcopy ]] || die "there is no $fcopy: run make"
	bytes=$(numfmt --from=iec -- "$size" 2>/dev/null) || die "not a size: $size"
	((bytes > 0)) || die "not a size: $size"
	wanted=$((bytes * 3))
	mkdir -p "$dir" || die "cannot make $dir"
	free=$(($(stat -f -c '%a * %S' "$dir")))
	((free > wanted)) || die "$(realpath "$dir") has $((free >> 20)) MiB free, and $((wanted >> 20)) MiB are wanted;" \
		"try: bench/demo.sh 256M, or bench/demo.sh $size DIR"
	lab=$(mktemp -d "$(realpath "$dir")/fcopy-demo.XXXXXX") || die "cannot write in $dir"
	trap 'rm -rf "$lab"' EXIT
	trap 'rm -rf "$lab"; trap - EXIT INT; kill -s INT $$' INT
	trap 'exit 143' TERM HUP
}

source_make() {
	fallocate -l "$size" "$lab/source" || die "fallocate does not work in $dir"
	cat "$lab/source" >/dev/null
}

# A virtual machine may have lent its free memory back to the host; the first touch is slow, so do it here.
memory_touch() {
	dd if=/dev/zero of="$lab/pad" bs=1M count=$((bytes * 3 / 2 >> 20)) status=none
	rm -f "$lab/pad"
}

# time_one MODE ROUND: keeps the run with the shortest real time
time_one() {
	local mode=$1 copy=$lab/copy.$1.$2 times
	memory_touch
	times=$({ time "$fcopy" "$lab/source" "$copy" "$mode" 2>"$lab/error"; } 2>&1) ||
		die "mode $mode: $(cat "$lab/error")"
	cmp -s "$lab/source" "$copy" || die "mode $mode: the copy differs"
	rm -f "$copy"
	best[$mode]=$(printf '%s\n' "$times" "${best[$mode]:-$times}" | sort -n | head -n 1)
}

show() {
	local mode
	printf '%-20s %8s %8s %8s %8s %10s\n' MODE real user sys GiB/s '× mode 1'
	for mode; do
		echo "$mode $("$fcopy" --list | awk -v mode="$mode" '$1 == mode { print $2 }') ${best[$mode]} ${best[1]%% *}"
	done | awk -v bytes="$bytes" '{
		printf "%s  %-17s %7.3fs %7.3fs %7.3fs %8.2f %10.2f\n", $1, $2, $3, $4, $5,
			($3 > 0 ? bytes / 2^30 / $3 : 0), ($6 > 0 ? $3 / $6 : 0)
	}'
}

modes=(1 2 3 4 0)
lab_open
source_make
echo "$size made by fallocate, warm, copied by each mode $rounds times in turn; best of each:"
for ((round = 1; round <= rounds; round++)); do
	for mode in "${modes[@]}"; do
		time_one "$mode" "$round"
	done
done
show "${modes[@]}"
