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

@test "a stream breaks off: the receiver says what has become of DST" {
	local old
	for old in no yes; do
		rm -f b
		[ $old = no ] || echo old >b
		serve tcp-listen:0 b
		(printf 'half'; exec sleep 10 3>&-) | exec "$FCOPY" - tcp:127.0.0.1:"$port" 3>&- &
		sender=$!
		pid=$server await has_written
		kill -9 $sender
		ended 1
		if [ $old = no ]; then
			said 'stopped at 4 B; b not created' server.log
			absent b
		else
			said 'stopped at 4 B; b unchanged' server.log
			holds old b
		fi
	done
}

@test "kill -9 and SIGTERM of the receiver: the sender fails" {
	local signal
	for signal in KILL TERM; do
		serve tcp-listen:0 b
		(printf 'half'; sleep 0.5; head -c 1G /dev/zero) 3>&- |
			timeout 10 "$FCOPY" - tcp:127.0.0.1:"$port" >sender.out 2>&1 3>&- &
		sender=$!
		pid=$server await has_written
		stop $signal
		status=0
		wait $sender || status=$?
		[ $status = 1 ] || { echo "status $status"; return 1; }
		ended $((128 + $(kill -l $signal)))
		absent b
	done
}

@test "a full disk at the receiver fails the sender" {
	need_root "to mount"
	random a 3000000
	mkdir small
	private_mounts "mount -t tmpfs -o size=1m none small; echo old >small/b
		timeout --foreground 30 '$FCOPY' tcp-listen:0 small/b 2>log 3>&- &
		for i in {1..2000}; do if grep -q 'listening on' log; then break; fi; sleep 0.01; done
		s=0; '$FCOPY' a tcp:127.0.0.1:\$(sed -nE 's/.*listening on [^ ]*:([0-9]+).*/\1/p' log) || s=\$?
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
	expect 1 a tcp:127.0.0.1:"$(sed -nE 's/.*listening on [^ ]*:([0-9]+).*/\1/p' server.log)"
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
		[ $SECONDS -lt 30 ] # not the default of 60
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

# Later programs accept on the same listener: a copy must not make them reset their connections.
@test "fd:N: SO_LINGER of the caller's socket is restored; a failed or killed copy still resets" {
	need python3
	random a 3000000
	echo old >old
	cat >linger.py <<-'END'
		import signal, socket, struct, subprocess, sys
		data = open("a", "rb").read()
		server = socket.create_server(("127.0.0.1", 0))
		def start(s, *args):
		    args = [arg.replace("FD", f"fd:{s.fileno()}") for arg in args]
		    return subprocess.Popen([sys.argv[1], *args], pass_fds=[s.fileno()], stderr=subprocess.DEVNULL)
		def linger(s):
		    return struct.unpack("ii", s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
		def set_linger(s, *value):
		    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", *value))
		def peer():
		    c = socket.create_connection(server.getsockname())
		    c.settimeout(20)
		    return c
		def listened(run, want):
		    assert (run.wait(20), linger(server)) == (want, (0, 0)), (run.args, run.returncode, linger(server))
		def reset(c):
		    try:
		        while c.recv(65536):
		            pass
		        sys.exit("the end of a stream that failed")
		    except ConnectionResetError:
		        pass

		c = peer()
		c.sendall(data)
		c.shutdown(socket.SHUT_WR)
		listened(start(server, "FD", "b"), 0)
		assert open("b", "rb").read() == data
		listened(start(server, "FD", "/nonexistent/x"), 2)
		run = start(server, "-q", "-k", "a", "FD")
		c = peer()
		c.recv(1)
		run.terminate()
		assert len(b"".join(iter(lambda: c.recv(65536), b""))) == len(data) - 1
		c.close()
		listened(run, 0)

		c = peer()
		c.sendall(b"123")
		c.shutdown(socket.SHUT_WR)
		listened(start(server, "--strict", "--size=5", "FD", "c"), 1)
		reset(c)
		c = peer()
		run = start(server, "--limit-rate=1M", "a", "FD")
		c.recv(1)
		run.kill()
		listened(run, -signal.SIGKILL)
		reset(c)

		set_linger(server, 1, 0)
		assert start(server, "-n", "FD", "old").wait(20) == 0 and linger(server) == (1, 0)
		set_linger(server, 0, 0)
		for before in (0, 0), (1, 5), (1, 0):
		    c = peer()
		    ours, _ = server.accept()
		    set_linger(ours, *before)
		    assert start(ours, "-n", "FD", "old").wait(20) == 0
		    after = before if before != (1, 0) else (0, 0)
		    assert linger(ours) == after, (before, linger(ours))
		    set_linger(ours, *before)
		    run = start(ours, "a", "FD")
		    ours.close() # so the last close is that of fcopy
		    assert b"".join(iter(lambda: c.recv(65536), b"")) == data, before
		    c.close()
		    assert run.wait(20) == 0
		c = peer()
		ours, _ = server.accept()
		set_linger(ours, 1, 5)
		c.sendall(b"123")
		c.shutdown(socket.SHUT_WR)
		assert start(ours, "FD", "d").wait(20) == 0 and linger(ours) == (1, 5), linger(ours)
	END
	timeout 60 python3 linger.py "$FCOPY"
}

@test "^C before the first byte: a file that is overwritten may be incomplete" {
	echo old >b
	mkfifo pipe
	env --default-signal=INT "$FCOPY" --inplace - b <pipe 2>err 3>&- &
	pid=$!
	exec 7>pipe
	reads() { grep -q '^0 ' /proc/$pid/syscall 2>/dev/null || grep -qE 'pipe|wait' /proc/$pid/wchan; }
	await reads
	kill -INT $pid
	status=0
	wait $pid || status=$?
	exec 7>&-
	[ $status = 130 ]
	grep -q 'stopped before the first byte; b may be incomplete' err
	holds old b
}
