#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --benchmark: every mode on the user's file, and DST is not touched.

load helper
load json


# untouched: nothing in the directory but what was there.
untouched() {
	[ "$(echo *)" = "$1" ] || { echo "there are: $(echo *)"; return 1; }
}

@test "--benchmark: a table with a line for each mode, and a sentence" {
	local mode
	random a 3M
	expect 0 --benchmark a b
	[ -z "$stderr" ]
	untouched a
	for mode in auto $MODES; do
		grep -qE "^[0-9]+ $mode +[0-9.]+ (us|ms|s) +[0-9.]+-[0-9.]+ +[0-9.]+ (us|ms|s) +[0-9.]+(  #*[+]?)?$|^[0-9]+ $mode +(refused|unavailable): " \
			<<<"$output" || { echo "$mode: $output"; return 1; }
	done
	grep -qE '^5 runs of each mode, in turn; load [0-9.]+$' <<<"$output"
	grep -qE '^(Fastest: [0-9]+ [a-z_]+, [0-9.]+ (us|ms|s)|No clear winner: [0-9]+(, [0-9]+)* and [0-9]+ overlap \(load [0-9.]+\))$' <<<"$output" ||
		{ echo "$output"; return 1; }
	grep -qE '^auto used [a-z_]+' <<<"$output"
	grep -qE '^1 readwrite .* 1\.00  #+$' <<<"$output"
	# The rows in the order in which they are complete: auto last.
	[ "$(grep -v '^5 runs' <<<"$output" | grep -oE '^[0-9]+ ' | xargs)" = "${NUMBERS#0 } 0" ] ||
		{ echo "not the rows ${NUMBERS#0 } 0: $output"; return 1; }
}

@test "--benchmark fits 40 columns, and says what auto did" {
	random a 3M
	need script
	expect 0 --benchmark --runs=2 -j2 a b
	FCOPY=$FCOPY script -qec "stty cols 40; \"\$FCOPY\" --benchmark --runs=2 a b" record </dev/null >/dev/null
	tr '\r' '\n' <record | sed 's/\x1b\[J//g' | grep -E '^[0-9]+ |^mode|^auto' >table
	[ "$(grep -vc '^auto' table)" = $((MODE_COUNT + 2)) ] || { cat table; return 1; }
	[ "$(grep -v '^auto' table | wc -L)" -le 40 ] || { cat table; return 1; }
	expect 0 --benchmark --runs=1 --reflink=never --sparse=never a b
	grep -qE '^auto used [a-z]+(, [0-9.]+ [KM]iB pieces)?(, [0-9]+ threads)?( and [a-z]+.*)?(, preallocated)?( \(as mode [1-9][0-9]*\))?$' <<<"$output" ||
		{ echo "$output"; return 1; }
	grep -q '^1 run of each mode' <<<"$output"
	grep -qx 'No winner: a single run proves nothing' <<<"$output"
}

@test "--benchmark says that auto left out holes" {
	on_disk "on tmpfs the modes that read a hole fill it"
	random a 100000
	truncate -s 3M a
	expect 0 --benchmark --runs=1 --reflink=never a b
	grep -qx "auto left out 2.9 MiB of holes, which modes 1 to 7 write as zeros" <<<"$output"
	expect 0 --benchmark --runs=1 --reflink=never --sparse=never a b
	[[ $output != *holes* ]]
}

@test "--benchmark prints a row as soon as its mode is measured" {
	random a 3M
	"$FCOPY" --benchmark --runs=1 --limit-rate=20M a b >out &
	await grep -q '^2 sendfile' out
	never grep -q '^0 auto' out
	wait $!
	grep -q '^0 auto' out
}

@test "--runs: 1 to 1000, with --benchmark" {
	usage_error "--runs: requires --benchmark" --runs=3 a b
	usage_error "--runs: invalid number '0' (1 to 1000)" --benchmark --runs=0 a b
}

@test "--benchmark: an existing DST, a directory, and SRC itself are left alone" {
	local dst
	random a 1M
	cp a a.before
	echo old >b
	mkdir d
	for dst in b d . a; do
		expect 0 --benchmark a $dst
	done
	holds old b
	cmp a a.before
	[ -z "$(ls d)" ]
	untouched "a a.before b d"
}

@test "--benchmark --json: all rounds, valid" {
	need jq python3
	random a 1M
	expect 0 --benchmark --json a b
	[ -z "$stderr" ]
	untouched a
	valid "$output"
	jq -e --arg list "$LIST" '([.modes[] | "\(.number) \(.mode)"] | join("\n")) == $list and .bytes == 1048576 and (.overlap | length) >= 1
		and ([.modes[] | select(.median) | .runs | length] | unique) == [5]
		and ([.modes[] | select(.median) | .min == (.runs | map(.real) | min) and .max == (.runs | map(.real) | max)] | all)
		and (.fastest as $f | .overlap | index($f)) != null
		and ([.modes[] | select(.median) | .median.real] | min) == (.fastest as $f | .modes[] | select(.mode == $f) | .median.real)
		and ([.modes[] | select(.median) | (.runs | map(.real) | sort | .[2]) == .median.real] | all)' \
		<<<"$output"
}

@test "--benchmark names what the kernel refuses, and goes on" {
	need_strace
	random a 1M
	traced 0 inject=copy_file_range,ioctl:error=EXDEV --benchmark a b
	grep -qE '^4 copy_file_range +refused: copy_file_range: (Invalid c|C)ross-device link$' <<<"$output"
	grep -qE '^8 reflink +refused: ' <<<"$output"
	grep -qE '^2 sendfile +[0-9]' <<<"$output"
}

@test "--benchmark: if auto copies otherwise in one run, the engine is that of most runs" {
	need jq
	need_strace
	random a 2M # one piece: each run of splice makes one pipe
	traced 0 trace=pipe2 --reflink=never a b
	[ "$(calls pipe2)" -gt 0 ] || skip "auto does not use splice here"
	traced 0 trace=pipe2 --benchmark --reflink=never --runs=3 a b
	# auto comes last in the last round.
	traced 0 "inject=pipe2:error=EMFILE:when=$(calls pipe2)" --benchmark --reflink=never --runs=3 --json=json a b
	injected
	grep -qE '^auto used splice.* in 2 of 3 runs$' <<<"$output" || { echo "$output"; return 1; }
	jq -e '.modes[0].engine == "splice" and ([.modes[0].runs[].engine] == ["splice", "splice", "readwrite"])' json
	jq -e '[.modes[3].runs[].engine] == ["splice", "splice", "splice"]' json
}

@test "--benchmark: each mode gets the options that belong to it" {
	need_strace
	random a 1M
	traced 0 trace=pread64 --benchmark --buffer-size=64K --reflink=never a b
	grep -qE "pread64.*$T/a>.*, 65536, " trace
	never grep -qE "pread64.*$T/a>.*, 8192, " trace
}

@test "--benchmark --preallocate=always: for the modes that may share blocks, too" {
	random a 100000
	expect 0 --benchmark --runs=1 --preallocate=always a b
	grep -qE '^4 copy_file_range +[0-9]' <<<"$output"
	untouched a
}

@test "--benchmark --fsync: the scratch files are flushed" {
	need_strace
	random a 100000
	traced 0 trace=fdatasync --benchmark --fsync a b
	[ "$(calls fdatasync)" -ge 30 ]
	untouched "a trace"
}

@test "options that --benchmark does not accept: exit 2" {
	local option
	random a 1000
	for option in inplace force strict no-clobber resume verify stats size=1 verbose progress keep-listening; do
		usage_error "--${option%=*}: cannot be combined with --benchmark" --benchmark "--$option" a b
	done
	usage_error "--target-directory: cannot be combined with --benchmark" --benchmark -t . a
	usage_error "2: --benchmark runs every mode: leave out this operand (use ./2 for a file)" --benchmark a b 2
	usage_error "splice: --benchmark runs every mode: leave out this operand (use ./splice for a file)" --benchmark a splice
	usage_error "missing SRC: use fcopy --benchmark SRC" --benchmark
	local src dst
	for src in - fd:0 fd:7 tcp-listen:0 tcp:127.0.0.1:1; do
		usage_error "$src: --benchmark needs a file that it can read again" --benchmark $src b
	done
	mkfifo f
	for dst in - tcp:127.0.0.1:1 /dev/null f; do
		expect 2 --benchmark a $dst
		mentions "$dst: is not a file or directory: --benchmark writes files next to DST"
		[ -z "$output" ] || { echo "stdout, without a row: $output"; return 1; }
	done
	usage_error "f: --benchmark needs a file that it can read again" --benchmark f b
}

@test "--benchmark of what is not there, or beside what is not there, fails" {
	expect 2 --benchmark nope b
	says "fcopy: nope: open: No such file or directory"
	expect 2 --benchmark "$FCOPY" nope/b
	mentions "nope/b: open of its directory: No such file or directory"
	[ -z "$output" ] || { echo "stdout, without a row: $output"; return 1; }
}

@test "--benchmark on a full disk: a failure, and no table without rows" {
	need_root "to mount"
	mkdir m
	random a 2M
	export FCOPY
	private_mounts 'mount -t tmpfs -o size=1m none m; "$FCOPY" --benchmark a m/b'
	demand 1
	mentions "scratch file next to m/b: " "No space left on device (the copy needs 2.0 MiB, 1.0 MiB were free)"
	[ -z "$output" ] || { echo "stdout, without a row: $output"; return 1; }
}

@test "--benchmark interrupted: dies by the signal, leaves nothing" {
	local status=0
	truncate -s 100M a
	env --default-signal=INT "$FCOPY" --benchmark --sparse=never a b >out &
	pid=$!
	await has_written
	kill -INT $pid
	wait $pid || status=$?
	[ $status = 130 ]
	untouched "a out"
}

@test "without DST, the scratch files are in the current directory, and are removed" {
	random a 100000
	expect 0 --benchmark --runs=1 a
	[ "$(ls -A)" = a ]
	mkdir other
	cd other
	expect 0 --benchmark --runs=1 ../a
	[ -z "$(ls -A)" ]
}
