#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# compare.sh REV_A REV_B [bench.sh options]: builds two revisions of fcopy and times them in turn.
# Exit 1 if in some case the 95 % interval of B's time over A's lies wholly above 1.02: B is slower. Exit 2 if some
# case could not be measured.
set -euo pipefail
shopt -s inherit_errexit # a build that fails ends it all

root=$(dirname "$(dirname "$(realpath "${BASH_SOURCE[0]}")")")
(($# >= 2)) || { sed -n '4,6s/^# //p' "$0" >&2; exit 2; }

# build REV: prints the program
build() {
	local hash dir
	hash=$(git -C "$root" rev-parse --verify --short=12 "$1^{commit}")
	dir=$root/build/compare/$hash
	if [[ ! -x $dir/fcopy ]]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		git -C "$root" archive "$hash" | tar -x -C "$dir"
		make -s -C "$dir" fcopy >&2
	fi
	echo "$dir/fcopy"
}

FCOPY_A=$(build "$1")
FCOPY_B=$(build "$2")
export FCOPY_A FCOPY_B
out=$root/build/compare/$(basename "$(dirname "$FCOPY_A")")..$(basename "$(dirname "$FCOPY_B")")
shift 2
"$root/bench/bench.sh" compare --output "$out" "$@" || exit 2
python3 "$root/bench/lib/report.py" slower "$out"
