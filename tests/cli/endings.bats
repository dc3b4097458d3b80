#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Connections: who ends how, and that the other side knows it.

load helper

setup_file() {
	type python3 >/dev/null || skip "no python3"
}

@test "kill -9 of the sender: the receiver fails and keeps the old file" {
	echo old >b
	serve tcp-listen:0 b
	(printf 'half'; exec sleep 10 3>&-) | exec "$FCOPY" - tcp:127.0.0.1:"$port" 3>&- &
	sender=$!
	pid=$server await has_written
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
		'$FCOPY' tcp-listen:0 small/b 2>log 3>&- &
		for i in {1..2000}; do if grep -q on log; then break; fi; sleep 0.01; done
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

@test "--timeout: a peer that reads slowly is none that does nothing" {
	random a 5000000
	local mode
	for mode in auto readwrite; do
		peer sips 1000000
		expect 0 --timeout 2 a tcp:127.0.0.1:"$port" $mode
		wait "$server"
		said 5000000 peer.out
	done
}

@test "bytes in the kernel's buffers that nobody acknowledges: reset at --timeout" {
	random a 300000
	peer stuck
	expect 1 --timeout 0.5 a tcp:127.0.0.1:"$port"
	mentions 'timed out'
}

# To a peer that has ended its own side, after it has.
to_the_deaf() {
	(await said deaf peer.out; cat a) | "$FCOPY" --json - tcp:127.0.0.1:"$port"
}

@test "a peer that has everything and does not close: done after two seconds, not confirmed" {
	random a 100000
	peer keep
	expect 0 --json a tcp:127.0.0.1:"$port"
	[[ $output == *'"confirmed": false'* ]]
	mentions 'not confirmed: the peer has every byte, but may not have stored it'
	said 100000 peer.out
	peer deaf
	run to_the_deaf
	[ "$status" = 0 ]
	[[ $output == *'"confirmed": false'* ]]
	wait "$server"
	said 100000 peer.out
}

@test "a peer that never stops talking: the time limit still applies" {
	need_strace
	random a 100000
	peer receive
	traced 0 inject=recvfrom:retval=4096 --json a tcp:127.0.0.1:"$port"
	injected
	[[ $output == *'"confirmed": false'* ]]
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
	[ ! -s b ]
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

@test "a pipe that is closed kills by SIGPIPE, as it kills cat; a socket does not" {
	random a 5000000
	run env --default-signal=PIPE bash -c "'$FCOPY' a - | head -c 10 >/dev/null; exit \${PIPESTATUS[0]}"
	[ "$status" = 141 ]
}
