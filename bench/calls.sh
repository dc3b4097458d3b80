#!/bin/bash
# SPDX-License-Identifier: MIT
# calls.sh [DIR]: how many system calls each mode makes for one MiB, warm and cold, as in MODES.md. strace counts
# all calls but futex of copies of 96 and 32 MiB in DIR, on one CPU; the difference leaves out what does not depend on the size.
set -euo pipefail
fcopy=${FCOPY:-$(dirname "$(realpath "$0")")/../fcopy}
work=$(mktemp -d "${1:-.}/calls.XXXXXX")
trap 'rm -rf "$work"' EXIT
head -c 96M /dev/urandom >"$work/96"
head -c 32M "$work/96" >"$work/32"
sync "$work"/*

# count SIZE ARGUMENT...: "CALL NUMBER" of the copy, a line each.
count() {
	dd if="$work/$1" of=/dev/null bs=1M iflag="$cache" status=none # reads it, and leaves it in the cache or out of it
	rm -f "$work/copy"
	strace -f -qq -c -U name,calls -e trace='!futex' -o "$work/calls" taskset 1 "$fcopy" "$work/$1" "$work/copy" "${@:2}" 2>/dev/null || return 1
	awk 'NR > 2 && $1 !~ /^(-|total)/ { print $1, $2 }' "$work/calls"
}

echo '| mode | buffer | calls per MiB, warm | cold | which |'
echo '| --- | ---: | ---: | ---: | --- |'
for row in readwrite:8K readwrite:64K splice:64K mmap:64K readwrite:1M splice:1M mmap:1M parallel:1M sendfile: copy_file_range: direct: reflink:; do
	mode=${row%:*} buffer=${row#*:} line="| $mode | ${buffer:-–}"
	for cache in fullblock nocache; do
		{ count 32 ${buffer:+--buffer-size=$buffer} "$mode" | sed 's/ / -/' && echo more && count 96 ${buffer:+--buffer-size=$buffer} "$mode"; } |
			awk '/^more/ { more = 1 } NF == 2 { n[$1] += $2 } END { if (!more) exit 1; for (call in n) if (n[call] > 1) print n[call] / 64, call }' |
			sort -rn >"$work/found.$cache" || echo "- refused" >"$work/found.$cache"
		line+=" | $(awk '{ sum += $1 } END { printf $1 == "-" ? "–" : sum < 0.2 ? "%.2f" : "%.1f", sum }' "$work/found.$cache")"
	done
	echo "$line | $(awk '{ printf "%s%s", (NR > 1 ? ", " : ""), $2 }' "$work/found.fullblock") |"
done
