#!/bin/bash
# SPDX-License-Identifier: MIT
#
# foretold.sh [N]: N random command lines (2000) for random trees, of files, symlinks, FIFOs and hard links, with one SRC and several.
# The dry run changes nothing, has the exit status of the run, and lists what the run lists. SEED repeats a run, SEED:I its Ith
# command line.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3
make_work
SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
echo "$name: SEED=$SEED"
python3 "$root/tests/tools/foretold.py" "$FCOPY" "${1:-2000}" "$SEED" "$work/foretold" >"$work/output" ||
	fail other "$(tail -n 20 "$work/output")"
tail -n 1 "$work/output"
tried=$(sed -n '$s/ command lines,.*//p' "$work/output")
finish
