#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# demo.sh [SIZE] [DIR]: the newcomer's first look. A file made by fallocate is copied by modes 1 to 4 and auto,
# three times each, timed by bash's own `time`; the fastest run of each is shown. Needs coreutils only.
set -uo pipefail
export LC_ALL=C.UTF-8 # times have a point everywhere

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
fcopy=$here/../fcopy size=${1:-1G} dir=${2:-$here/../build}
TIMEFORMAT='%R %U %S'

die() {
	echo "demo.sh: $*" >&2
	exit 1
}

# Memory that a virtual machine gave back to its host is slow at its first touch, so touch it now.
touch_memory() {
	dd if=/dev/zero of="$lab/pad" bs=1M count=$((bytes >> 20)) status=none
	rm -f "$lab/pad"
}

# fastest MODE: real, user and sys time of the fastest of three runs
fastest() {
	local times
	for _ in 1 2 3; do
		touch_memory
		times+=$({ time "$fcopy" "$lab/source" "$lab/copy" "$1" 2>"$lab/error"; } 2>&1)$'\n'
		cmp "$lab/source" "$lab/copy" >&2 || die "mode $1: $(cat "$lab/error")"
		rm -f "$lab/copy"
	done
	sort -n <<<"${times%$'\n'}" | head -n 1
}

[[ -x $fcopy ]] || die "there is no $fcopy: run make"
bytes=$(numfmt --from=iec -- "$size" 2>/dev/null)
((bytes > 0)) || die "invalid size '$size'; try 256M or 1G"
mkdir -p "$dir" || die "cannot make $dir"
free=$(($(stat -f -c '%a * %S' "$dir")))
((free >= bytes * 2 + (32 << 20))) || die "$dir has $((free >> 20)) MiB free, $(((bytes * 2 >> 20) + 32)) MiB are needed; try: bench/demo.sh 256M"
lab=$(mktemp -d "$(realpath "$dir")/fcopy-demo.XXXXXX") || die "cannot write to $dir"
trap 'rm -rf "$lab"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
fallocate -l "$size" "$lab/source" || die "fallocate does not work in $dir"
cat "$lab/source" >/dev/null

load=$(cut -d' ' -f1 /proc/loadavg)
echo "$size made by fallocate, warm; the fastest of three copies by each mode; load $load on $(nproc) CPUs"
printf '%-20s %8s %8s %8s %8s %10s\n' MODE real user sys GiB/s '× mode 1'
for mode in 1 2 3 4 0; do
	times=$(fastest "$mode") || exit 1
	: "${first:=${times%% *}}"
	echo "$mode $("$fcopy" --list | awk -v mode="$mode" '$1 == mode { print $2 }') $times $first" |
		awk -v bytes="$bytes" '{ printf "%s  %-17s %7.3fs %7.3fs %7.3fs %8.2f %10.2f\n", $1, $2, $3, $4, $5,
			bytes / 2^30 / ($3 + 1e-9), $3 / ($6 + 1e-9) }'
	[[ $mode == 0 ]] || best=$(sort -n <<<"${best:-$times}"$'\n'"$times" | head -n 1)
done
awk -v auto="${times%% *}" -v best="${best%% *}" 'BEGIN { exit auto <= 1.1 * best }' && ((bytes > 16 << 20)) &&
	echo "auto was not the fastest: its threads need idle CPUs and fast memory (load $load). Run it again on an idle machine."
exit 0
