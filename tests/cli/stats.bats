#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --stats against the truth: what strace counts, what the shell's clock says, what the files are.

load helper

DATA_CALLS=trace=read,write,pread64,pwrite64,sendfile,splice,copy_file_range,ioctl

# value LABEL: the value after it in the statistics.
value() {
	grep -E "^ *$1 " <<<"$stderr" | sed -E "s/^ *$1 +//"
}

@test "--stats: on stderr, aligned, with times, bytes, engines and memory" {
	random a 3000000
	expect 0 --stats a b readwrite
	[ -z "$output" ]
	[[ $(value real) =~ ^[0-9.]+\ (us|ms|s)\ +[0-9.]+\ [MG]iB/s$ ]]
	[[ $(value user) =~ ^[0-9.]+\ (us|ms|s)$ ]]
	[[ $(value sys) =~ ^[0-9.]+\ (us|ms|s)$ ]]
	[ "$(value data)" = "2.9 MiB  3000000 bytes" ]
	[ "$(value holes)" = "0 B" ]
	[[ $(value 'context switches') =~ ^[0-9]+\ voluntary,\ [0-9]+\ involuntary$ ]]
	[[ $(value 'page faults') =~ ^[0-9]+\ minor,\ [0-9]+\ major$ ]]
	[[ $(value 'peak memory') =~ ^[0-9.]+\ [MK]iB$ ]]
	[[ $(value readwrite) =~ ^2\.9\ MiB\ +735\ +[0-9.]+\ (us|ms|s)$ ]]
	# 367 reads of 8 KiB, the last one short and one more that sees the end, and a write for each.
}

@test "--stats: each rate is the bytes, or the entries, divided by the time beside it" {
	need python3
	mkdir t
	random t/a 3000000
	echo tiny >b
	mkfifo f
	judge() {
		python3 - "$stderr" "$@" <<-'END'
			import re, sys
			text, moved, *labels = sys.argv[1:]
			unit = {"us": 1e-6, "ms": 1e-3, "s": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
			for label in labels:
			    found = re.search(rf"^ *{label} +([0-9.]+) (us|ms|s)  ([0-9.]+) (B|[KMG]iB)/s$", text, re.M)
			    assert found, (label, text)
			    rate, true = float(found[3]) * unit[found[4]], int(moved) / (float(found[1]) * unit[found[2]])
			    assert 0.9 < rate / true < 1.1, (label, rate, true, text)
			entries = re.search(r"^entries +(\d+)  (\d+)/s", text, re.M)
			if entries:
			    real = re.search(r"^real +([0-9.]+) (us|ms|s)", text, re.M)
			    true = int(entries[1]) / (float(real[1]) * unit[real[2]])
			    assert abs(int(entries[2]) - true) <= 1 + true / 10, text
		END
	}
	expect 0 --stats b c
	judge 5 real copy
	expect 0 --stats --fsync --reflink=never t/a d
	judge 3000000 real copy
	expect 0 --stats -r t t2
	judge 3000000 real copy
	(sleep 2; cat t/a >f) &
	expect 0 --stats f e
	judge 3000000 real copy
	[ -n "$(value wait)" ] # it counts in real
}

@test "--stats: without --verify, a resumed copy was compared and not verified" {
	random a 3000000
	begin_part a b 976
	expect 0 --stats --resume a b
	[[ $(value resumed) == "976 KiB"* ]] || { echo "$stderr"; return 1; }
	[[ $(value compare) =~ ^[0-9.]+\ (us|ms|s)$ ]]
	never grep verify <<<"$stderr"
	expect 0 --stats --verify a c
	[[ $(value verify) =~ ^[0-9.]+\ (us|ms|s)$ ]]
	never grep compare <<<"$stderr"
}

@test "--json of a tree: an engine that moved bytes ran in a thread or more; the average of threads is a number" {
	need jq
	mkdir s
	random s/a 3000000
	random s/b 3000
	expect 0 -r --json -j1 s one
	jq -e '.tree.threads_most == 1 and .tree.threads_average == 1' <<<"$output"
	expect 0 -r --json --reflink=never s d
	jq -e '[.engines[] | select(.bytes > 0)] | length > 0 and all(.threads >= 1)' <<<"$output"
}

@test "--stats: calls and bytes are those that strace counts, engine by engine" {
	local mode
	need jq
	need_strace
	random a 5000000
	for mode in readwrite sendfile splice copy_file_range mmap parallel; do
		traced 0 "$DATA_CALLS" a "b.$mode" "$mode" --json
		[ "$(jq '[.engines[].calls] | add' <<<"$output")" = "$(grep -c "$T/" trace)" ] ||
			{ echo "$mode: $output"; grep -c "$T/" trace; return 1; }
		[ "$(jq '[.engines[].bytes] | add' <<<"$output")" = 5000000 ]
		cmp a "b.$mode"
	done
}

@test "--stats of auto: each refusal with its call and errno, and who went on" {
	need_strace
	random a 5000000
	traced 0 inject=ioctl:error=EXDEV --stats a b
	[[ $(value reflink) =~ ^0\ B\ +1\  ]]
	[[ $(value refused:) =~ ^ioctl\(FICLONE\):\ (Invalid c|C)ross-device\ link$ ]]
	[[ $(value splice) =~ ^4\.8\ MiB ]]
}

@test "--stats -k: a line for each client, and at the end the server's own" {
	random a 3000000
	"$FCOPY" --stats -k a tcp-listen:0 2>server.log 3>&- &
	await said 'serving a ' server.log
	expect 0 --stats tcp:127.0.0.1:"$(sed -nE 's/.* on [^ ]*:([0-9]+) .*/\1/p' server.log)" b
	[[ $(value 'received from') == 127.0.0.1:* ]]
	kill %1
	wait %1
	cmp a b
	local time='[0-9.]+ (us|ms|s)'
	[ "$(grep -cE "^fcopy: client 127\.0\.0\.1:[0-9]+: +2\.9 MiB  real +$time  user +$time  sys +$time  +[0-9.]+ [MG]iB/s$" server.log)" = 1 ] ||
		{ cat server.log; return 1; }
	grep -qE "^real +$time" server.log
	grep -qE '^peak memory +[0-9.]+ [MK]iB$' server.log
}

@test "--stats: what was there of an earlier try, and to whom it was sent" {
	random a 3000000
	begin_part a b 1024
	expect 0 --stats --resume a b
	[ "$(value resumed)" = "1.0 MiB  1048576 bytes" ]
	mentions "fcopy: b: resuming at 1.0 of 2.9 MiB (34 %)"
	never grep -E 'reflink|refused' <<<"$stderr" # a rest cannot be cloned: it is not tried
	expect 0 --stats --count=1M a part
	never grep -E 'reflink|refused' <<<"$stderr"
	cmp -n 1048576 a part
	"$FCOPY" tcp-listen:0 c 2>server.log 3>&- &
	await said listening server.log
	expect 0 --stats a tcp:127.0.0.1:"$(sed -nE 's/.*listening on [^ ]*:([0-9]+).*/\1/p' server.log)"
	[[ $(value 'sent to') == 127.0.0.1:* ]]
	wait %1
	cmp a c
}

@test "--stats: holes are counted apart" {
	truncate -s 8M a
	random tail 1M
	cat tail >>a
	expect 0 --stats --reflink=never a b
	if [ "$(stat -c %b a)" -ge 8192 ]; then
		skip "no holes on this file system"
	fi
	[ "$(value data)" = "1.0 MiB  1048576 bytes" ]
	[ "$(value holes)" = "8.0 MiB  8388608 bytes" ]
}

@test "--stats: the phases, each if there was one" {
	random a 100000
	expect 0 --stats a b
	[ -n "$(value copy)" ]
	[ -z "$(value fsync)" ]
	expect 0 --stats --fsync a b
	[ -n "$(value fsync)" ]
	[ -n "$(value replace)" ]
}

@test "statistics and benchmark fit into 80 columns" {
	need_strace
	random a 3M
	traced 0 inject=ioctl:error=EOPNOTSUPP --stats --fsync a b
	[ "$(wc -L <<<"$stderr")" -lt 80 ]
	expect 0 --benchmark a b
	[ "$(wc -L <<<"$output")" -lt 80 ] || { echo "$output"; return 1; }
}

@test "--stats of a copy that failed: how far it got, and then the error" {
	random a 3000000
	run --separate-stderr bash -c 'ulimit -f 1000; "$0" --stats a b readwrite' "$FCOPY"
	demand 1
	[[ $stderr == *"bytes"*"fcopy: b: "*"File too large"* ]]
	[[ $(value data) =~ ^[0-9.]+\ [MK]iB\ +10 ]]
	absent b
}

@test "--stats of what was no copy at all: only the error" {
	echo data >a
	expect 2 --stats --verify a /dev/null
	[ "$(wc -l <<<"$stderr")" = 1 ] || { echo "$stderr"; return 1; }
}

@test "user, sys and real are what the shell's time says" {
	local json bash
	need jq
	random a 60M
	TIMEFORMAT='[%R,%U,%S]'
	bash=$({ time "$FCOPY" --json a b readwrite --buffer-size=1K >json; } 2>&1)
	json=$(jq -c '[.real, .user, .sys]' json)
	# The shell's holds fork and exit, too, and what a busy machine has in between; but one thread
	# takes as long as it computes. The clock of user and sys may tick in hundredths.
	jq -en --argjson a "$json" --argjson b "$bash" '
		($a[1] + $a[2]) as $cpu | ($b[1] + $b[2]) as $time
		| ($a[0] <= $b[0] + 0.001 and $a[0] >= $cpu - 0.05
			and ($cpu - $time | fabs) < ([0.1, 0.3 * $time] | max))
		or ([$a, $b] | debug | false)'
}

@test "the peak of memory is fcopy's own, not that of who started it" {
	need python3 jq
	echo data >a
	run --separate-stderr python3 -c '
import os, sys
ballast = bytearray(64 << 20)
for i in range(0, len(ballast), 4096): ballast[i] = 1
os.execv(sys.argv[1], sys.argv[1:])' "$FCOPY" --json a b
	demand 0
	[ "$(jq .peak_memory <<<"$output")" -lt 8000000 ]
}

@test "modes 1 to 4 stay within 3 MiB" {
	local mode
	need jq
	random a 30M
	for mode in 1 2 3 4; do
		"$FCOPY" --json a "b$mode" $mode >json
		[ "$(jq .peak_memory json)" -le 3145728 ] || { jq .peak_memory json; return 1; }
	done
}
