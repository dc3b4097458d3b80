#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# TCP and other sockets: who ends how, and that the other side knows it.

load helper

PEER=$BATS_TEST_DIRNAME/../tools/peer.py

await() {
	local i
	for ((i = 0; i < 500; i++)); do
		"$@" && return
		sleep 0.01
	done
	echo "waited in vain: $*"
	return 1
}

said() { grep -q "$1" "$2" 2>/dev/null; }

# serve ARG…: fcopy in the background; $server is its process, $port where it listens.
serve() {
	rm -f server.log
	"$FCOPY" "$@" >server.out 2>server.log 3>&- &
	server=$!
	await said '^fcopy: listening on ' server.log
	port=$(sed -n 's/^fcopy: listening on .*://p' server.log)
}

# peer MANNER [BYTES]: the same with a peer that listens; its output is in ./peer.out.
peer() {
	rm -f peer.out
	python3 "$PEER" "$1" 0 "${@:2}" >peer.out 2>&1 3>&- &
	server=$!
	await said . peer.out
	port=$(head -n 1 peer.out)
}

# ended STATUS: that is how $server ended.
ended() {
	local seen=0
	wait "$server" || seen=$?
	[ "$seen" = "$1" ] || { echo "status $seen, not $1:"; cat server.log; return 1; }
}

stop() {
	kill "-$1" "$server"
}

# clients N: so many are being served, a thread each.
clients() {
	[ "$(ls "/proc/$server/task" | wc -l)" -gt "$1" ]
}

setup_file() {
	type python3 >/dev/null || skip "no python3"
}

@test "fcopy to fcopy: either side listens, every engine that can, every size; confirmed" {
	local size mode
	for size in 1 65536 1000001; do
		random a $size
		for mode in auto readwrite sendfile splice mmap; do
			serve tcp-listen:0 b
			expect 0 --json a tcp:127.0.0.1:"$port" $mode
			ended 0
			cmp a b
			[[ $output == *'"confirmed": true'* ]] || { echo "$output"; return 1; }
			rm b
			serve a tcp-listen:0 $mode
			expect 0 tcp:127.0.0.1:"$port" b
			ended 0
			cmp a b
			rm b
		done
	done
}

@test "engines that have no business with sockets refuse with a reason, and the peer knows" {
	random a 100000
	local mode
	for mode in copy_file_range direct parallel reflink; do
		"$FCOPY" --list | grep -w $mode | grep -q 'not here' && continue
		serve tcp-listen:0 b
		expect 1 a tcp:127.0.0.1:"$port" $mode
		mentions 'hint: without a MODE'
		ended 1
		absent b
	done
}

@test "auto: splice to a socket and from one, sendfile to many; no byte through user space" {
	need_strace
	random a 1000000
	serve tcp-listen:0 b
	traced 0 trace=read,pread64,write,pwrite64,sendfile,splice,sendto a tcp:127.0.0.1:"$port"
	ended 0
	[ "$(calls splice)" -ge 2 ]
	never grep -E '(write|splice|sendto)\([0-9]+<(TCP|socket)' trace
	serve a tcp-listen:0
	traced 0 trace=read,pread64,write,pwrite64,recvfrom,sendfile,splice tcp:127.0.0.1:"$port" b
	ended 0
	[ "$(calls splice)" -ge 2 ]
	never grep -E '(read|recvfrom)\([0-9]+<(TCP|socket)' trace
	cmp a b
	rm -f server.log
	timeout 20 strace -f -y -qq -o trace -e trace=write,pwrite64,sendfile,splice -e signal=none \
		"$FCOPY" -k a tcp-listen:0 2>server.log 3>&- &
	server=$!
	await said '^fcopy: listening' server.log
	expect 0 tcp:127.0.0.1:"$(sed -n 's/.*on .*://p' server.log)" c
	kill "$(pgrep -P "$(pgrep -P $server)")" # of strace, of timeout
	ended 0
	cmp a c
	[ "$(calls sendfile)" -ge 2 ]
	[ "$(calls splice)" = 0 ]
}

@test "nc, ncat, socat, python and curl send" {
	local how
	head -c 2000001 /dev/urandom | base64 >a # curl doubles the bytes 255, as telnet has it
	for how in 'nc -N 127.0.0.1 $port <a' 'ncat --send-only 127.0.0.1 $port <a' \
		'socat -u FILE:a TCP:127.0.0.1:$port' 'curl -s telnet://127.0.0.1:$port <a' \
		'python3 -c "import socket, sys
s = socket.create_connection((\"127.0.0.1\", $port))
s.sendfile(open(\"a\", \"rb\")); s.shutdown(1); s.recv(1)"'; do
		type "${how%% *}" >/dev/null 2>&1 || continue
		serve tcp-listen:0 b
		eval "timeout 10 $how" || [ "${how%% *}" = curl ]
		ended 0
		cmp a b
		rm b
	done
}

@test "nc, ncat, socat, python and curl receive" {
	local how
	random a 3000001
	for how in 'nc -d 127.0.0.1 $port' 'ncat --recv-only 127.0.0.1 $port' \
		'socat -u TCP:127.0.0.1:$port STDOUT' 'curl -s --http0.9 http://127.0.0.1:$port/'; do
		type "${how%% *}" >/dev/null 2>&1 || continue
		serve a tcp-listen:0
		eval "timeout 10 $how" >b
		ended 0
		cmp a b
	done
}

@test "kill -9 of the sender: the receiver fails and keeps the old file" {
	echo old >b
	serve tcp-listen:0 b
	(printf 'half'; exec sleep 10 3>&-) | exec "$FCOPY" - tcp:127.0.0.1:"$port" 3>&- &
	sender=$!
	await grep -q . "/proc/$sender/io"
	sleep 0.2
	kill -9 $sender
	ended 1
	said 'Connection reset by peer' server.log
	holds old b
}

@test "kill -9 and SIGTERM of the receiver: the sender fails" {
	local signal
	for signal in KILL TERM; do
		serve tcp-listen:0 b
		(printf 'half'; sleep 0.5; cat /dev/zero) 3>&- |
			timeout 10 "$FCOPY" - tcp:127.0.0.1:"$port" >sender.out 2>&1 3>&- &
		sender=$!
		sleep 0.3
		stop $signal
		status=0
		wait $sender || status=$?
		[ $status = 1 ] || { echo "status $status"; return 1; }
		never ended 0
		absent b
	done
}

@test "a full disk at the receiver fails the sender" {
	need_root "to mount"
	random a 3000000
	mkdir small
	private_mounts "mount -t tmpfs -o size=1m none small; echo old >small/b
		'$FCOPY' tcp-listen:0 small/b 2>log 3>&- & until grep -q on log; do sleep 0.01; done
		s=0; '$FCOPY' a tcp:127.0.0.1:\$(sed -n 's/.*://p' log) || s=\$?
		r=0; wait \$! || r=\$?; echo \$s \$r; cat small/b log"
	[[ $output == "1 1
old"*"No space left on device"* ]] || { echo "$output"; return 1; }
}

@test "the receipt comes after the commit: a receiver that cannot commit fails the sender" {
	need_strace
	random a 1000
	echo old >b
	timeout 20 strace -f -qq -o trace -e inject=rename,renameat,renameat2:error=EIO -e signal=none \
		"$FCOPY" tcp-listen:0 b 2>server.log 3>&- &
	server=$!
	await said '^fcopy: listening' server.log
	expect 1 a tcp:127.0.0.1:"$(sed -n 's/.*on .*://p' server.log)"
	mentions 'Connection reset by peer'
	ended 1
	injected
	holds old b
}

@test "a peer that resets or closes in the middle: exit 1, and not by SIGPIPE" {
	random a 20000000
	local manner mode
	for manner in reset refuse; do
		for mode in auto readwrite splice mmap; do
			peer $manner 100000
			expect 1 a tcp:127.0.0.1:"$port" $mode
			wait "$server"
		done
	done
	echo old >b
	peer send-reset 100000
	expect 1 tcp:127.0.0.1:"$port" b
	holds old b
}

@test "--timeout: a peer that does not read, one that does not send" {
	random a 20000000
	local mode
	for mode in auto readwrite splice; do
		peer stuck
		SECONDS=0
		expect 1 --timeout 0.5 a tcp:127.0.0.1:"$port" $mode
		mentions 'Connection timed out'
		[ $SECONDS -lt 4 ]
		peer send-stall 1000
		expect 1 --timeout 0.5 tcp:127.0.0.1:"$port" b $mode
		mentions 'Connection timed out'
		await said reset peer.out
		absent b
	done
}

@test "bytes in the kernel's buffers that nobody acknowledges: reset at --timeout" {
	random a 300000
	peer stuck
	expect 1 --timeout 0.5 a tcp:127.0.0.1:"$port"
	mentions 'timed out'
}

@test "a peer that has everything and does not close: done after two seconds, not confirmed" {
	random a 100000
	peer keep
	expect 0 --json a tcp:127.0.0.1:"$port"
	[[ $output == *'"confirmed": false'* ]]
	said 100000 peer.out
	peer deaf
	run bash -c "(sleep 0.5; cat a) | '$FCOPY' --json - tcp:127.0.0.1:$port"
	[ "$status" = 0 ]
	[[ $output == *'"confirmed": false'* ]]
	wait "$server"
	said 100000 peer.out
}

@test "a stream without bytes does not replace a file that has some, without -f" {
	echo old >b
	: >a
	serve tcp-listen:0 b
	expect 1 a tcp:127.0.0.1:"$port"
	ended 1
	holds old b
	run "$FCOPY" - b </dev/null
	[ "$status" = 0 ]
	echo old >b
	run bash -c ": | '$FCOPY' - b"
	[ "$status" = 1 ]
	holds old b
	run bash -c ": | '$FCOPY' --inplace - b"
	[ "$status" = 1 ]
	holds old b
	run bash -c ": | '$FCOPY' -f - b"
	[ "$status" = 0 ]
	[ ! -s b ]
	rm b
	run bash -c ": | '$FCOPY' - b"
	[ "$status" = 0 ]
	[ -e b ]
}

@test "small streams do not wait for anything: thirty of them within three seconds" {
	local mode i
	random a 4097
	SECONDS=0
	for mode in auto readwrite splice; do
		for i in 1 2 3 4 5 6 7 8 9 10; do
			serve tcp-listen:0 b
			expect 0 a tcp:127.0.0.1:"$port" $mode
			ended 0
		done
	done
	[ $SECONDS -le 3 ]
}

@test "all addresses of a name are tried; the listener is on loopback only" {
	random a 1000
	serve tcp-listen:0 b
	said 'listening on 127.0.0.1:' server.log
	expect 0 a tcp:localhost:"$port"
	ended 0
	serve 'tcp-listen:[::1]:0' c
	said 'listening on \[::1\]:' server.log
	expect 0 a "tcp:[::1]:$port"
	ended 0
	cmp a b
	cmp a c
}

@test "addresses that make no sense are usage errors" {
	local operand
	for operand in tcp:x tcp:x: tcp::1 tcp:x:65536 tcp:x:-1 tcp:::1:80 tcp-listen: tcp-listen:x: \
		tcp-listen:99999; do
		expect 2 $operand b
	done
	expect 2 "tcp:$(printf '%01100d' 0):80" b
	mentions "is too long for an address"
	expect 2 tcp:127.0.0.1:no-such-service b
	mentions "tcp:127.0.0.1:no-such-service: "
	expect 2 tcp-listen:0 .
	mentions 'is a directory, and the source has no name'
	expect 2 --timeout 1 a b
	expect 2 --timeout=-1 a tcp:127.0.0.1:1
	expect 2 --max-clients 3 a tcp-listen:0
	echo x >a
	expect 2 -k a b
	expect 1 tcp:127.0.0.1:1 b
	mentions 'tcp:127.0.0.1:1: connect: Connection refused'
	echo x >tcp:x
	expect 0 ./tcp:x b
}

@test "fd:N: connected, listening, a Unix socket, a file" {
	random a 100000
	exec 7<a
	expect 0 fd:7 b
	cmp a b
	cat >pass.py <<-'END'
		import socket, subprocess, sys
		a, b = socket.socketpair()
		run = subprocess.Popen([sys.argv[1], "a", f"fd:{a.fileno()}"], pass_fds=[a.fileno()])
		a.close()
		got = b"".join(iter(lambda: b.recv(65536), b""))
		b.close()
		assert run.wait() == 0 and got == open("a", "rb").read()
		server = socket.create_server(("127.0.0.1", 0))
		fd = server.fileno()
		run = subprocess.Popen([sys.argv[1], "-k", "a", f"fd:{fd}"], pass_fds=[fd])
		for i in range(3):
		    c = socket.create_connection(server.getsockname())
		    assert b"".join(iter(lambda: c.recv(65536), b"")) == got
		    c.close()
		run.terminate()
		assert run.wait() == 0
	END
	timeout 20 python3 pass.py "$FCOPY"
	expect 1 a fd:9
	exec 7<&-
}

@test "a pipe that is closed kills by SIGPIPE, as it kills cat; a socket does not" {
	random a 5000000
	run env --default-signal=PIPE bash -c "'$FCOPY' a - | head -c 10 >/dev/null; exit \${PIPESTATUS[0]}"
	[ "$status" = 141 ]
}

@test "-k: many clients at once and in turn, one of them slow, one stuck; SIGTERM lets them end" {
	random a 3000001
	serve -v -k a tcp-listen:0
	python3 "$PEER" slow "$port" 3>&- &
	python3 "$PEER" stuck "$port" 3>&- &
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
	(timeout 10 nc -d 127.0.0.1 "$port" 3>&- | (sleep 0.5; cat >c)) 3>&- &
	jobs=($!)
	sleep 0.2
	stop TERM
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
	python3 "$PEER" stuck "$port" 3>&- &
	await clients 1
	stop TERM
	sleep 0.4
	stop TERM
	ended 143
}

@test "-k: what cannot be served is refused before anybody comes" {
	echo x >a
	expect 2 -k - tcp-listen:0 </dev/null
	says "fcopy: -: is no regular file: it cannot be sent to every client"
	expect 2 -k tcp-listen:0 b
	says "fcopy: b: is not /dev/null: many clients cannot share it"
	expect 2 -k a tcp:127.0.0.1:1
	says "fcopy: tcp:127.0.0.1:1: does not listen: there are no clients to wait for"
	expect 1 -k nope tcp-listen:0
	says "fcopy: nope: open: No such file or directory"
}

@test "-k: --max-clients holds the next one back; a sink forgets what every client sends" {
	random a 3000000
	serve -v -k --max-clients 1 a tcp-listen:0
	python3 "$PEER" stuck "$port" 3>&- &
	stuck=$!
	await clients 1
	timeout 1 "$FCOPY" tcp:127.0.0.1:"$port" b 3>&- && return 1
	kill $stuck
	expect 0 --timeout 10 tcp:127.0.0.1:"$port" b
	cmp a b
	kill "$server"
	serve -v -k tcp-listen:0 /dev/null
	expect 0 a tcp:127.0.0.1:"$port"
	expect 0 a tcp:127.0.0.1:"$port" 1
	stop TERM
	ended 0
	[ "$(grep -c '^fcopy: client 127.0.0.1:[0-9]*: 3000000 bytes' server.log)" = 2 ] ||
		{ cat server.log; return 1; }
}
