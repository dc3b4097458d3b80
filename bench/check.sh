#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check.sh: checks the limits of the benchmarks: their size, that of the committed runs, the words of the
# verdicts, and that each figure in the READMEs and each picture comes from a committed run.
set -eu

cd "$(dirname "$(realpath "$0")")"
status=0

fail() {
	echo "check.sh: $*" >&2
	status=1
}

# at_most LIMIT COUNT WHAT
at_most() {
	[ "$2" -le "$1" ] || fail "$3: $2, and at most $1 are allowed"
}

lines() { cat "$@" | wc -l; }

harness=$(lines ./*.sh lib/* cases/*)
samples=$(lines results/*/*)
at_most 1765 "$harness" 'lines in bench/*.sh, bench/lib and bench/cases'
at_most 200 "$(lines README.md)" 'lines in bench/README.md'
at_most 6000 "$samples" 'lines of committed results'
at_most 2 "$(find results -mindepth 1 -maxdepth 1 | wc -l)" 'committed runs'

for run in results/*; do
	found=$(cd "$run" && echo *)
	[ "$found" = 'circumstances.json samples.csv' ] || fail "$run holds more or less than circumstances.json and samples.csv: $found"
done

python3 -B lib/figures.py check results README.md METHOD.md MODES.md ../README.md || status=1

# A verdict is one of three words, and an interval that exceeds the target is never "met".
python3 -B lib/verdicts.py || status=1

# Outside of the generated figures no README states a time.
for page in README.md METHOD.md MODES.md ../README.md; do
	stray=$(perl -0pe 's/<!-- figure:.*?<!-- end -->//gs' "$page" | grep -nE '[0-9]\.[0-9]+ (s|ms|GiB\/s)\b|\[[0-9.]+(–|, )[0-9.]+\]' | grep -v '≤') ||
		continue
	fail "$page: a figure that comes from no run: $stray"
done

[ "$status" -ne 0 ] || echo "$harness lines of harness, $samples of results; every figure comes from a committed run"
exit "$status"
