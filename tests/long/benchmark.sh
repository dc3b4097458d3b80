#!/bin/bash
# SPDX-License-Identifier: MIT
#
# benchmark.sh: fcopy --benchmark and bench/ measure the modes on the same file. For each mode the
# interval of its time relative to readwrite must be that of the other, as far as both can know it:
# the two intervals overlap. Needs a quiet machine. In smaller files the start of a process, which only
# bench/ measures, is a visible part of the time; a virtual machine may return a larger copy's memory.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3
make_work
size=${1:-512M}
random_file "$work/src" "$size"

SOURCE=$work/src SIZE=$size ROUNDS=10 DIR=$work OUT=$work/run "$root/bench/bench.sh" modes >&2 ||
	{ fail other 'bench/bench.sh failed'; finish; }
"$FCOPY" --benchmark --json "$work/src" "$work" >"$work/own" || { fail other '--benchmark failed'; finish; }

# A line for each mode that both measured: agree or apart, mode, the interval of bench/, that of --benchmark.
python3 -B - "$root/bench/lib" "$work" >"$work/lines" <<'PYTHON' || fail other 'the comparison failed'
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import report, stats

work = Path(sys.argv[2])
run = report.Run(work / "run")
modes = json.loads((work / "own").read_text())["modes"]
times = {f"{mode['number']}:{mode['mode']}": dict(enumerate(each["real"] for each in mode["runs"])) for mode in modes}
times["fcopy"] = times.pop("0:auto")
base = "1:readwrite"
for who, own in times.items():
    theirs = run.ratio("modes", who, base)
    if who != base and own and theirs:
        ours = stats.ratio(own, [times[base]])
        apart = ours[1] > theirs[2] or theirs[1] > ours[2]
        print("apart" if apart else "agree", who, report.interval(theirs), report.interval(ours))
PYTHON

while read -r verdict words; do
	tried=$((tried + 1))
	echo "$name: $verdict: $words"
	[ "$verdict" = agree ] || fail other "$words"
done <"$work/lines"
finish
