#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The progress line where there is no terminal, SIGUSR1, and --limit-rate.

load helper

LINE='^a  (fsync  |replace  )?([0-9]+%  +[0-9.]+/[0-9.]+ [KMG]?i?B|[0-9.]+ [KMG]?i?B)(  [0-9.]+ [KMG]?i?B/s)?  [0-9:]+( left)?$'

@test "no terminal, no --progress: not a byte, however long it takes" {
	random a 3M
	expect 0 --limit-rate=2M a b readwrite
	[ -z "$output$stderr" ]
	cmp a b
}

@test "--progress without a terminal: a plain line a second, and one at the end" {
	local line
	random a 5M
	SECONDS=0
	expect 0 --progress --limit-rate=2M a b readwrite
	cmp a b
	[ -z "$output" ]
	[[ $stderr != *$'\r'* && $stderr != *$'\e'* ]]
	# shellcheck disable=SC2154
	[ "${#stderr_lines[@]}" -ge 2 ]
	[ "${#stderr_lines[@]}" -le $((SECONDS + 2)) ]
	for line in "${stderr_lines[@]::${#stderr_lines[@]}-1}"; do
		[[ $line =~ $LINE ]] || { echo "odd: $line"; return 1; }
	done
	[[ ${stderr_lines[-1]} =~ ^a\ \ copied\ \ 5\.0\ MiB\ \ [0-9.]+\ MiB/s\ \ 0:0[0-9]$ ]]
}

@test "--progress of a short copy: only the line at the end" {
	random a 1000000
	expect 0 --progress a b
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr =~ ^a\ \ copied\ \ 977\ KiB ]]
}

@test "every engine that moves bytes reports them on the way" {
	local mode n=0
	random a 4M
	for mode in $(moving_modes); do
		n=$((n + 1))
		"$FCOPY" --progress --limit-rate=2M a "$mode" "$mode" 2>"$mode.err" &
	done
	wait
	[ $n -ge 6 ] # with auto
	for mode in *.err; do
		grep -qE '^a  (2[0-9]|[3-9][0-9])%' "$mode" || { echo "$mode:"; cat "$mode"; return 1; }
		grep -q '^a  copied  4.0 MiB' "$mode"
	done
}

@test "a source of unknown length: bytes, speed and time, no percentage" {
	run --separate-stderr bash -c '{ head -c 1M /dev/zero; sleep 3; } | "$0" --progress - b' "$FCOPY"
	demand 0
	[[ ${stderr_lines[0]} =~ ^b\ \ 1\.0\ MiB ]] || [[ ${stderr_lines[1]} =~ ^b\ \ 1\.0\ MiB ]] || { echo "$stderr"; return 1; }
	[[ $stderr != *%* ]]
}

@test "--size: the percentage of a pipe, and the time left" {
	run --separate-stderr bash -c \
		'{ head -c 1M /dev/zero; sleep 3; head -c 1M /dev/zero; } | "$0" --progress --size=2M - b' "$FCOPY"
	demand 0
	[[ $stderr =~ b\ \ 50%\ \ 1\.0/2\.0\ MiB ]] || { echo "$stderr"; return 1; }
	[ "$(stat -c %s b)" = 2097152 ]
}

@test "--size does not go with a size of nothing, nor -q with --progress" {
	usage_error "--size: invalid size '0' (minimum 1; such as 8192 or 64K)" --size=0 a b
	usage_error "--progress: cannot be combined with --quiet" -q --progress a b
}

# signalled SIGNAL ARG…: sends it to fcopy in the middle of the copy; its stderr goes to ./err.
signalled() {
	local signal=$1 pid
	shift
	"$FCOPY" "$@" 2>err &
	pid=$!
	await has_written 300000
	kill -s "$signal" $pid
	wait $pid
}

@test "SIGUSR1: one status line each, and the copy goes on" {
	random a 6M
	signalled USR1 --limit-rate=1500K -m rw a b
	cmp a b
	[ "$(wc -l <err)" = 1 ]
	grep -qE '^fcopy: a  [0-9]+%  .* left$' err
}

@test "SIGUSR1 while the source has nothing to say" {
	local pid
	mkfifo f
	"$FCOPY" f b 2>err &
	pid=$!
	{ printf x; await has_written; sleep 0.1; kill -USR1 $pid; await said . err; printf y; } >f
	wait $pid
	holds xy b
	[ "$(wc -l <err)" = 1 ]
	grep -qE '^fcopy: f  1 B  .*0:0[0-9]$' err
}

@test "SIGUSR1 does not kill a benchmark, nor a server" {
	random a 2M
	signalled USR1 --benchmark --limit-rate=4M a b >out
	grep -q '^fcopy: a  [0-9]*%' err
	grep -qE '^(Fastest|No clear winner)' out
	"$FCOPY" -k a tcp-listen:127.0.0.1:0 2>err &
	await said 'serving a ' err
	kill -USR1 $!
	sleep 0.2
	kill -TERM $!
	wait $!
}

@test "SIGUSR1 in a later phase: the speed and the time are those of that phase" {
	local pid
	need_strace
	random a 4M
	strace -D -o trace -e trace=pread64 -e inject=pread64:delay_enter=2000000 \
		"$FCOPY" --verify a b sendfile 2>err &
	pid=$!
	await said 'pread64(.*, 1048576, 1048576)' trace
	kill -USR1 $pid
	wait $pid
	grep -xE 'fcopy: a  verify  [0-9]+%  [0-9.]+/4\.0 MiB  [0-9.]+ [KM]iB/s  0:[0-9]{2} left' err || { cat err; return 1; }
}

@test "SIGUSR1 also in threads and past the page cache" {
	local mode
	random a 6M
	for mode in parallel direct; do
		has_mode $mode || { reports "no $mode here"; continue; }
		signalled USR1 --limit-rate=1500K a b "$mode"
		cmp a b
		grep -q '^fcopy: a  [0-9]*%' err
		rm b
	done
}

@test "progress makes no data call more" {
	local calls
	need_strace
	random a 3M
	traced 0 trace=read,write,pread64,pwrite64,copy_file_range --limit-rate=2M a b readwrite
	calls=$(grep -c "$T/" trace)
	traced 0 trace=read,write,pread64,pwrite64,copy_file_range --progress --limit-rate=2M a b readwrite
	[ "$(grep -c "$T/" trace)" = "$calls" ]
	[ -n "$stderr" ]
}

@test "without progress there is no thread but the copy's" {
	need_strace
	echo data >a
	traced 0 trace=clone,clone3 a b
	[ ! -s trace ]
}

@test "--limit-rate does not hold up a clone, nor a hole" {
	truncate -s 1G a
	expect 0 --limit-rate=1M a b
	random c 2M
	need_mode reflink
	expect 0 --limit-rate=100K c d
}

@test "--limit-rate holds for every mode" {
	local mode start took able
	random a 2M
	mapfile -t able < <(moving_modes)
	for mode in "${able[@]}"; do
		(
			start=$(date +%s%N)
			"$FCOPY" --limit-rate=2M a "$mode" "$mode"
			echo $((($(date +%s%N) - start) / 1000000)) >"$mode.ms"
		) &
	done
	wait
	for mode in "${able[@]}"; do
		cmp a "$mode"
		took=$(cat "$mode.ms")
		[ "$took" -ge 900 ] && [ "$took" -lt 20000 ] || { echo "$mode took $took ms"; return 1; }
	done
}

@test "--limit-rate does not make up for a stall" {
	local start took
	start=$(date +%s%N)
	{ head -c 100000 /dev/zero; sleep 2; head -c 600000 /dev/zero; } | "$FCOPY" --limit-rate=400000 - b
	took=$((($(date +%s%N) - start) / 1000000))
	[ $took -ge 3300 ] || { echo "took $took ms"; return 1; } # with all of it made up for 2000
}

@test "--size that is not what came: a warning, with --strict a failure" {
	local option
	head -c 1000 /dev/zero >a
	for option in 999 2000; do
		run --separate-stderr bash -c '"$0" --size=$1 - b <a' "$FCOPY" $option
		demand 0
		says "fcopy: warning: -: had 1000 bytes, not $option"
		cmp a b
		run --separate-stderr bash -c 'cat a | "$0" --strict --size=$1 - c' "$FCOPY" $option
		demand 1
		if [ $option = 999 ]; then
			says "fcopy: -: has more than 999 bytes"
		else
			says "fcopy: -: had 1000 bytes, not $option"
		fi
		absent c
	done
	run --separate-stderr bash -c 'cat a | "$0" --strict --size=1000 - c' "$FCOPY"
	demand 0
	says ""
	cmp a c
}

@test "--size that was not the size: the last line claims no percentage" {
	run bash -c "printf abc | '$FCOPY' --progress --size=100 - b 2>&1"
	[ "$status" = 0 ]
	[[ $output == *'b  copied  3 B'* && $output != *%* ]] || { echo "$output"; return 1; }
}

# speed_of TEXT: the speed in it in KiB/s.
speed_of() {
	sed -nE 's/.* ([0-9.]+) ([KMG])iB\/s.*/\1 \2/p' <<<"$1" |
		awk '{ print int($1 * 1024 ^ (index("KMG", $2) - 1)) }'
}

@test "speeds count bytes moved: neither resumed bytes nor holes nor a clone" {
	random a 9000000
	begin_part a b 7812
	expect 0 --resume --stats --progress --limit-rate=1M a b
	local real last
	real=$(grep '^real' <<<"$stderr")
	last=$(grep '^a  copied' <<<"$stderr")
	[ "$(speed_of "$real")" -le 1200 ] && [ "$(speed_of "$last")" -le 1200 ] || { echo "$stderr"; return 1; }
	truncate -s 4G h
	expect 0 --stats --reflink=never h i
	never grep -q '^real.*/s' <<<"$stderr"
}

@test "bytes that stop coming: stalled, and for how long" {
	mkfifo f
	"$FCOPY" --progress --size=4M f b 2>err &
	{ head -c 1M /dev/zero; await said 'stalled 0:0[5-9]$' err; } >f
	wait $!
	grep -qE '^f  25%  1.0/4.0 MiB  stalled 0:0[5-9]$' err || { cat err; return 1; }
}

@test "nobody has opened a FIFO to write: the copy waits, also one of several operands" {
	local operands
	mkfifo f
	mkdir d
	for operands in '-T f b' '-t d f'; do
		rm -f err
		# shellcheck disable=SC2086
		timeout -s KILL "$HANG" "$FCOPY" --progress $operands 2>err &
		await said '^waiting for a peer ' err
		echo x >f
		wait $!
	done
	holds x b
	holds x d/f
}

@test "a receiver waits: one line says for whom, and the wait does not count" {
	random a 3000000
	"$FCOPY" --progress --stats tcp-listen:0 b 2>err &
	await said 'waiting for a sender on 127.0.0.1:[0-9]* ' err
	sleep 2
	expect 0 a tcp:127.0.0.1:"$(sed -nE 's/^fcopy: listening on [^ ]*:([0-9]+).*/\1/p' err)"
	wait
	[ "$(grep -c 'waiting for' err)" = 1 ]
	grep -qE '^  wait +[2-9][0-9.]* s$' err || { cat err; return 1; }
	[ "$(speed_of "$(grep '^  copy' err)")" -gt 2000 ] || { cat err; return 1; }
}

@test "the last line claims only what is true" {
	random a 100000
	expect 0 --progress a b
	[[ $stderr == 'a  copied  '* ]]
	expect 0 --progress --fsync a b
	[[ $stderr == 'a  copied, flushed  '* ]]
	expect 0 --progress --verify a b
	[[ $stderr == 'a  copied, verified, flushed  '* ]]
	expect 0 --progress -n a b
	[[ $stderr == 'a  exists, skipped  '* ]]
}

@test "a tree: the number of entries, the bytes, a percentage and the time left" {
	mkdir -p tree/sub
	random tree/a 3M
	random tree/sub/b 3M
	ln tree/a tree/sub/same
	# One after the other: the first ends long before the second.
	expect 0 -a -j1 --progress --limit-rate=2M tree copy
	diff -r tree copy
	# The two links count once.
	grep -Eq '^[^ ]+  [0-9]+%  ([0-9] of 5 entries  )?[0-9. ]+/6\.0 MiB  .*/s  0:0[0-9] left$' <<<"$stderr" ||
		{ echo "$stderr"; return 1; }
	grep -Eq '  [0-9] of 5 entries  ' <<<"$stderr" ||
		{ echo "$stderr"; return 1; }
	expect 0 -r --progress --limit-rate=2M --exclude=same tree other
	never grep -q ' of ' <<<"$stderr"
}

@test "a tree with links to an earlier copy: no total of bytes, which would count what is linked" {
	mkdir tree
	random tree/a 3M
	expect 0 -aT tree mon
	random tree/b 3M
	expect 0 -aT --progress --limit-rate=2M --link-dest="$T/mon" tree tue
	grep -Eq '^tree  .*  [0-9.]+ [KM]iB  ' <<<"$stderr" || { echo "$stderr"; return 1; }
	never grep '[0-9]/[0-9.]* MiB' <<<"$stderr"
	[ tue/a -ef mon/a ]
}
