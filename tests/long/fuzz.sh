#!/bin/bash
# SPDX-License-Identifier: MIT
#
# fuzz.sh [SECONDS [PARSER…]]: feeds the parsers of tests/fuzz (options, journal, list, filter, stream, http; all of them) with what
# libFuzzer makes of the corpus, for so long together (600). A crash, a hang, or an answer that is not true ends a parser's run,
# and the input is kept. Needs clang, and its runtime.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need clang make
make_work
seconds=${1:-600}
seed_random
parsers=("${@:2}")
[ ${#parsers[@]} != 0 ] || parsers=(options journal list filter stream http)
fuzzer=$root/build/fuzz/tests/fuzz/command_line
kept=$build/fuzz-found

echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' >"$work/runtime.c"
clang -fsanitize=fuzzer,address,undefined -o "$work/runtime" "$work/runtime.c" 2>/dev/null ||
	skip "clang has no libFuzzer: libclang-rt-dev"
env -u MAKEFLAGS -u MAKELEVEL make -C "$root" fuzzer >"$work/make.log" 2>&1 ||
	{ tail "$work/make.log" && exit 1; }

# fuzz PARSER SECONDS. Not the exit status 77 that a crash would be by itself.
fuzz() {
	local status what units
	mkdir -p "$work/$1"
	FUZZ=$1 TMPDIR=$work "$fuzzer" -seed="$seed" -max_total_time="$2" -max_len=512 -timeout=10 -error_exitcode=66 \
		-timeout_exitcode=124 -dict="$root/tests/fuzz/command_line.dict" -print_final_stats=1 \
		-artifact_prefix="$kept/$1-" "$work/$1" "$root/tests/fuzz/corpus" >"$work/log" 2>&1
	status=$?
	units=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
	tried=$((tried + ${units:-0}))
	what="$1: $(grep -aoE 'not so: .*|SUMMARY: .*|Test unit written to .*' "$work/log")"
	case $status:$what in
	0:*) echo "$name: $1: ${units:-0} inputs, $(grep -ao 'cov: .* corp: [0-9]*' "$work/log" | tail -n 1)" ;;
	124:*) fail hung "$what" ;;
	*"not so:"*) fail other "$what" ;;
	*) fail crashed "$what" ;;
	esac
}

mkdir -p "$kept"
for parser in "${parsers[@]}"; do
	fuzz "$parser" $((seconds / ${#parsers[@]}))
done
finish
