#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -k: many clients.

load helper

setup_file() {
	type python3 >/dev/null || skip "no python3"
}

# catches NUMBER: $server has a handler for that signal.
catches() {
	local mask
	mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/"$server"/status)
	[ $((0x$mask >> ($1 - 1) & 1)) = 1 ]
}

@test "-k: many clients at once and in turn, one of them slow, one stuck; SIGTERM lets them end" {
	random a 3000001
	serve -v -k a tcp-listen:0
	client slow
	client stuck
	await clients 2
	local i jobs=()
	for i in 1 2 3 4 5 6 7 8; do
		timeout 10 "$FCOPY" tcp:127.0.0.1:"$port" b$i 3>&- &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	for i in 1 2 3 4 5 6 7 8; do
		cmp a b$i
	done
	no_other() { ! clients 3; }
	await no_other
	(timeout 30 nc -d 127.0.0.1 "$port" 3>&- | (await test -e read_now; cat >c)) 3>&- &
	jobs=($!)
	await clients 3
	stop TERM
	: >read_now
	wait "${jobs[@]}"
	cmp a c
	expect 1 tcp:127.0.0.1:"$port" d
	kill "$server"
}

@test "-k: after SIGTERM and the last client the status is 0; the next SIGTERM kills" {
	random a 1000
	serve -k a tcp-listen:0
	expect 0 tcp:127.0.0.1:"$port" b
	stop TERM
	ended 0
	random a 30000000
	serve -k a tcp-listen:0
	client stuck
	await clients 1
	stop TERM
	pid=$server await unguarded # two that wait are one
	stop TERM
	ended 143
}

@test "-k: what cannot be served is refused before anybody comes" {
	echo x >a
	expect 2 -k - tcp-listen:0 </dev/null
	says "fcopy: -: is not a regular file: it cannot be sent to every client"
	expect 2 -k tcp-listen:0 b
	says "fcopy: tcp-listen:0: is not a regular file: it cannot be sent to every client"
	expect 2 -k a tcp:127.0.0.1:1
	says "fcopy: tcp:127.0.0.1:1: does not listen: use tcp-listen:PORT"
	expect 2 -k a b
	says "fcopy: b: does not listen: use tcp-listen:PORT"
	mkdir d
	expect 2 -k d tcp-listen:0
	says "fcopy: d: is a directory"
	expect 2 -k nope tcp-listen:0
	says "fcopy: nope: open: No such file or directory"
}

@test "-k with --count announces the bytes that a client gets" {
	random a 3000000
	serve -k --count=4K a tcp-listen:0
	said '^fcopy: serving a (4.0 KiB) on ' server.log
	expect 0 tcp:127.0.0.1:"$port" b
	cmp -n 4096 a b
	[ "$(stat -c %s b)" = 4096 ]
}

@test "-k: --max-clients holds the next one back" {
	random a 3000000
	serve -v -k --max-clients 1 a tcp-listen:0
	client stuck
	await clients 1
	# It is connected, waits for its turn and is stopped by timeout(1): any other end is a failure.
	run timeout 1 "$FCOPY" tcp:127.0.0.1:"$port" b 3>&-
	[ "$status" = 124 ] || { echo "status $status: $output"; return 1; }
	absent b
	kill "$client"
	expect 0 --timeout 10 tcp:127.0.0.1:"$port" b
	cmp a b
	kill "$server"
	[ "$(grep -c '^fcopy: client 127.0.0.1:[0-9]*: 2.9 MiB in ' server.log)" = 1 ] ||
		{ cat server.log; return 1; }
}

@test "-k: what could serve no client is refused at the start" {
	local option
	echo x >a
	usage_error "--no-clobber: cannot be used if DST is a socket" -k -n a tcp-listen:0
	for option in --resume --verify --preserve -p --reflink --no-cache --preallocate=always --fsync \
		-m4 -m6 -m7 -m8; do
		expect 2 -k $option a tcp-listen:0
		[[ $stderr != *"serving "* ]] || { echo "$option: $stderr"; return 1; }
	done
}

@test "-k: what was ignored at the start kills nobody whom SIGTERM lets end" {
	random a 30000000
	trap '' HUP
	serve -k a tcp-listen:0
	trap - HUP
	client stuck
	await clients 1
	stop TERM
	await never catches 15
	stop HUP
	kill "$client"
	ended 0
}

@test "-k: a failed write of output is reported with its errno" {
	random a 1000
	rm -f server.log
	"$FCOPY" -k --json a tcp-listen:0 2>server.log >/dev/full 3>&- &
	server=$!
	await said '^fcopy: serving a ' server.log
	expect 0 tcp:127.0.0.1:"$(sed -nE 's/.* on [^ ]*:([0-9]+) .*/\1/p' server.log)" b
	stop TERM
	ended 1
	said '^fcopy: standard output: write: No space left on device$' server.log
}

@test "-k: a client that resets at once is reported with its address" {
	random a 30000000
	cat >reset.py <<-'END'
		import socket, struct, sys
		for i in range(5):
		    c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		    c.close()
	END
	many() { [ "$(grep -c '^fcopy: client 127.0.0.1:[0-9]*: ' server.log)" = 5 ]; }
	serve -k --json a tcp-listen:0
	python3 reset.py "$port"
	await many
	stop TERM
	ended 0
	[ "$(grep -c '"dst_peer": "127.0.0.1:[0-9]*"' server.out)" = 5 ]
}

@test "-k: the hint is a command that receives the file under its name" {
	local name hint
	for name in plain 'two words' "it's" $'line\nfeed' '$(touch no)' -dash fd:3 tcp:x; do
		random "./$name" 1000
		serve -k "./$name" tcp-listen:0
		hint=$(sed -n 's/^fcopy: receive it with: fcopy //p' server.log)
		mkdir -p got
		(cd got && eval "\"\$FCOPY\" $hint") || { echo "hint: $hint"; return 1; }
		cmp "./$name" "got/$name"
		stop TERM
		ended 0
	done
	[[ $hint == *" ./tcp:x" ]]
	serve -k --count=10 plain tcp-listen:0
	grep -q 'receive it with: fcopy --size=10 tcp:' server.log
	stop TERM
	ended 0
}

@test "-k on an IPv6 address: the hint is quoted, because zsh would expand the brackets" {
	random a 1000
	serve -k a 'tcp-listen:[::1]:0'
	grep -qF "fcopy: receive it with: fcopy --size=1000 'tcp:[::1]:$port' a" server.log
	stop TERM
	ended 0
}

@test "http-listen as DST: options of trees are refused, for one SRC and for several" {
	local options
	echo a >a
	echo b >b
	ln -s a link
	for options in -b '-S .x' -u --update=none -l -s -i --parents --remove-destination --attributes-only -r; do
		# shellcheck disable=SC2086 # words
		expect 2 $options a http-listen:0
		# shellcheck disable=SC2086
		expect 2 $options a b http-listen:0
	done
	expect 2 -P link http-listen:0
	expect 2 -P link a http-listen:0
}
