#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --json: where the object goes, and that every failure writes one.

load helper
load json

@test "another descriptor of standard output is DST: the object needs a FILE" {
	local dst
	echo data >a
	for dst in fd:3 /dev/fd/3; do
		run bash -c '"$0" --json a $1 3>out >&3 2>err' "$FCOPY" $dst
		[ "$status" = 2 ]
		[ ! -s out ]
		said '^fcopy: --json: standard output receives the copy: use --json=FILE$' err
		run bash -c '"$0" --json a $1 2>err 3>&1 | cat >out; exit ${PIPESTATUS[0]}' "$FCOPY" $dst
		[ "$status" = 2 ]
		[ ! -s out ]
	done
	# Another file, or the name of a file that is replaced.
	run bash -c '"$0" --json a fd:3 3>out >report' "$FCOPY"
	[ "$status" = 0 ]
	holds data out
	valid "$(cat report)"
	expect 0 --json=report a fd:1
	[ "$output" = data ]
}

@test "a socket under two descriptors is DST and standard output" {
	need python3
	echo data >a
	python3 - "$FCOPY" >got <<-'END'
		import os, socket, subprocess, sys
		ours, its = socket.socketpair()
		p = subprocess.Popen([sys.argv[1], "--json", "a", f"fd:{its.fileno()}"],
		    stdout=its, stderr=subprocess.DEVNULL, pass_fds=[its.fileno()])
		its.close()
		print(p.wait(), ours.recv(100))
	END
	holds "2 b''" got
}

@test "a FIFO is DST and standard output: no object gets into the copy" {
	echo data >a
	mkfifo f
	timeout "$HANG" cat f >out 3>&- &
	run timeout "$HANG" bash -c '"$0" --json a f 2>err >f' "$FCOPY"
	wait $!
	[ "$status" = 2 ]
	[ ! -s out ]
	mkdir d
	mkfifo d/a
	timeout "$HANG" cat d/a >out 3>&- &
	run timeout "$HANG" bash -c '"$0" --json a d 2>err >d/a' "$FCOPY"
	wait $!
	[ ! -s out ]
	[ "$status" = 2 ]
	said '^fcopy: --json: standard output receives the copy: use --json=FILE$' err
}

@test "a usage error writes no object to standard output if DST may be standard output" {
	local line
	echo data >a
	while read -r line; do
		# shellcheck disable=SC2086
		expect 2 $line
		[ -z "$output" ] || { echo "$line: $output"; return 1; }
	done <<-'END'
		a - --json --nope
		--json a - --nope
		--json --nope a - 2
		--json --nope a /dev/stdout 2
		a - --json --runs=1
	END
	run bash -c '"$0" --json --nope a fd:3 2 2>err 3>&1 | cat >out' "$FCOPY"
	[ ! -s out ]
	# DST is known.
	expect 2 --json --runs=1 - b
	valid "$output"
}

@test "a usage error: --json=/dev/stdout is refused if an operand may be standard output" {
	echo data >a
	run bash -c '"$0" --json=/dev/stdout a - --nope >out 2>err' "$FCOPY"
	[ "$status" = 2 ]
	[ ! -s out ]
	said '^fcopy: --json: /dev/stdout is an operand, too' err
}

@test "a usage error: --js is --json, too" {
	expect 2 a x --nope --js
	valid "$output"
	is '.usage == "--nope: no such option"'
}

@test "--benchmark that is refused or fails writes an object, and none of an earlier run remains" {
	local json=--json
	random a 10000
	expect 2 --benchmark --json - b
	valid "$output"
	is '.done == false' '.error.option == "benchmark"' '.error.path == "-"'
	for json in --json --json=report; do
		echo old >report
		expect 2 --benchmark $json nope b
		[ $json = --json ] || output=$(cat report)
		valid "$output"
		is '.done == false' '.src == "nope"' '.dst == "b"' '.error.errno == "ENOENT"' '.mode == "auto"'
	done
	expect 2 --benchmark --json=report a -
	output=$(cat report)
	valid "$output"
	is '.done == false' '.error.option == "benchmark"' '.error.path == "-"'
	# DST is never written, so that standard output may be DST.
	run bash -c '"$0" --benchmark --json nope b >b 2>err' "$FCOPY"
	[ "$status" = 2 ]
	valid "$(cat b)"
}

@test "--benchmark: the object names the mode that failed, and DST by its path" {
	need_strace
	random a 1M
	traced 1 inject=sendfile:error=ENOSPC --benchmark --json a b
	injected
	mentions "scratch file next to b: "
	valid "$output"
	is '.mode == "sendfile"' '.error.errno == "ENOSPC"' '.error.call == "sendfile"' '.error.path2 == "b"'
}

@test "--benchmark interrupted: the object, then death by the signal" {
	local pid status=0
	random a 3M
	echo old >report
	env --default-signal=INT "$FCOPY" --benchmark --json=report --limit-rate=1M a b >out 2>&1 3>&- &
	pid=$!
	await has_written
	kill -INT $pid
	wait $pid || status=$?
	[ $status = 130 ]
	output=$(cat report)
	valid "$output"
	is '.done == false' '.interrupted == "SIGINT"' '.error.errno == "EINTR"'
}

@test "-k that is interrupted: the object of a client names the signal, too" {
	random a 3000000
	: >report
	env --default-signal=INT "$FCOPY" -k --json=report --limit-rate=500K a tcp-listen:0 2>server.log 3>&- &
	# shellcheck disable=SC2034 # for stop and ended
	server=$!
	await said '^fcopy: serving a ' server.log
	port=$(grep -o ' on 127.0.0.1:[0-9]*' server.log | grep -o '[0-9]*$')
	timeout 20 "$FCOPY" tcp:127.0.0.1:"$port" - >received 2>/dev/null 3>&- &
	local client=$!
	await test -s received
	stop INT
	ended 130
	never wait $client
	output=$(head -n 1 report)
	valid "$output"
	is '.done == false' '.interrupted == "SIGINT"' '.error.errno == "EINTR"' '.dst_peer != null'
}

@test "-k that fails to start or is interrupted writes an object, and none of an earlier run remains" {
	echo data >a
	echo old >report
	expect 2 --json=report -k nope tcp-listen:0
	output=$(cat report)
	valid "$output"
	is '.done == false' '.src == "nope"' '.error.errno == "ENOENT"'
	says "fcopy: nope: open: No such file or directory"
	echo old >report
	env --default-signal=INT "$FCOPY" -k --json=report a tcp-listen:0 2>server.log 3>&- &
	# shellcheck disable=SC2034 # for stop and ended
	server=$!
	await said '^fcopy: serving a ' server.log
	[ ! -s report ]
	stop INT
	ended 130
	output=$(cat report)
	valid "$output"
	is '.done == false' '.interrupted == "SIGINT"'
	echo old >report
	serve -k --json=report a tcp-listen:0
	stop TERM
	ended 0
	[ ! -s report ]
}
