#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# profile.sh [SIZE] [DIR]: where the CPU time of each mode goes for a warm file of SIZE (1G): the
# functions with the largest shares by `perf record -e cpu-clock`; a Markdown table. Needs root.
set -uo pipefail

BENCH=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
fcopy=$BENCH/../fcopy
size=${1:-1G}
for part in say circumstances files memory; do
	# shellcheck source=/dev/null
	. "$BENCH/lib/$part.sh"
done

bytes=$(bytes "$size") || exit 1
[[ -x $fcopy ]] || die "there is no $fcopy: run make"
need perf linux-perf
mkdir -p "${2:-$BENCH/../build}"
lab=$(mktemp -d "$(realpath "${2:-$BENCH/../build}")/fcopy-profile.XXXXXX") || exit 1
trap 'rm -rf "$lab"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
source_make random "$bytes" "$lab"
cat "$SRC" >/dev/null

# profile MODE: runs it, and keeps the samples
profile() {
	local given
	for _ in 1 2 3 4 5; do
		"$fcopy" "$SRC" "$lab/copy" "$1" 2>/dev/null || return 1 # for the memory (lib/memory.sh)
		memory_settle
		rm -f "$lab/copy"
		given=$(memory_given_back)
		perf record -q -e cpu-clock -F 5000 -o "$lab/samples" "$fcopy" "$SRC" "$lab/copy" "$1" 2>/dev/null || return 1
		rm -f "$lab/copy"
		(($(memory_given_back) != given)) || break
	done
	return 0
}

# shares: the functions that had at least 3 %, six at most
shares() {
	perf report -i "$lab/samples" --stdio --no-children -F overhead,sym 2>/dev/null |
		awk '$1 ~ /%$/ && $1 + 0 >= 3 && n++ < 6 { printf "%s%s %.0f %%", (n > 1 ? ", " : ""), $NF, $1 }'
}

origin
echo "| mode, $size | CPU time goes to |"
echo '| --- | --- |'
"$fcopy" --list | awk '$1 ~ /^[0-9]+$/ { print $1, $2 }' | while read -r mode name; do
	profile "$mode" || { say "$name: refused here"; continue; }
	echo "| $mode $name | $(shares) |"
done
