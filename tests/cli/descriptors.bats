#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# fd:N and other names of open descriptors.

load helper

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

@test "fd:N of a Unix socket: --json and --stats report whether the peer confirmed, as -v does" {
	random a 100000
	cat >unix.py <<-'END'
		import json, socket, subprocess, sys
		data = open("a", "rb").read()
		def send(early, *args):
		    a, b = socket.socketpair()
		    a.settimeout(20)
		    if early:
		        a.shutdown(socket.SHUT_WR) # before the last byte: this confirms nothing
		    run = subprocess.Popen([sys.argv[1], *args, "a", f"fd:{b.fileno()}"], pass_fds=[b.fileno()],
		        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
		    fd = b.fileno()
		    b.close()
		    got = b"".join(iter(lambda: a.recv(65536), b""))
		    a.close()
		    out, err = run.communicate(timeout=20)
		    assert run.returncode == 0 and got == data, (args, run.returncode, len(got), err)
		    return out, err, fd
		for early in False, True:
		    out, err, fd = send(early, "--json", "--stats", "-v")
		    report = json.loads(out)
		    seen = report["confirmed"], report["dst_peer"]
		    assert seen == (not early, None), (early, seen)
		    line = f"sent to          fd:{fd}" + ("  not confirmed" if early else "")
		    assert line in err.splitlines(), (line, err)
		    assert (", not confirmed" if early else ", confirmed") in err.splitlines()[-1], err
	END
	timeout 60 python3 unix.py "$FCOPY"
	expect 0 --json a b
	[[ $output == *'"confirmed": null'* ]] || { echo "$output"; return 1; }
}

@test "fd:N leaves the caller's socket as it was: O_NONBLOCK and SO_RCVLOWAT" {
	random a 300000
	cat >flags.py <<-'END'
		import os, socket, subprocess, sys, threading
		data = open("a", "rb").read()
		def copy(status, s, *args):
		    before = os.get_blocking(s.fileno()), s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
		    args = [arg.replace("FD", f"fd:{s.fileno()}") for arg in args]
		    run = subprocess.run([sys.argv[1], *args], pass_fds=[s.fileno()], timeout=20,
		        stderr=subprocess.DEVNULL)
		    assert run.returncode == status, (args, run.returncode)
		    after = os.get_blocking(s.fileno()), s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
		    assert after == before, (args, before, after)
		server = socket.create_server(("127.0.0.1", 0))
		def tcp():
		    client = socket.create_connection(server.getsockname())
		    return server.accept()[0], client
		for pair in socket.socketpair, tcp:
		    for blocking in True, False:
		        ours, peer = pair()
		        ours.setblocking(blocking)
		        peer.sendall(b"12345678")
		        copy(0, ours, "--count=4", "FD", "b")
		        assert open("b", "rb").read() == b"1234" and ours.recv(100) == b"5678"
		        copy(2, ours, "FD", "nodir/b")
		        ours, peer = pair()
		        ours.setblocking(blocking)
		        got = []
		        def receive():
		            got.append(b"".join(iter(lambda: peer.recv(65536), b"")))
		            peer.close()
		        thread = threading.Thread(target=receive)
		        thread.start()
		        copy(0, ours, "a", "FD")
		        thread.join()
		        assert got == [data]
		client = socket.create_connection(server.getsockname())
		client.sendall(data)
		client.shutdown(socket.SHUT_WR)
		copy(0, server, "FD", "b")
		assert open("b", "rb").read() == data
	END
	timeout 60 python3 flags.py "$FCOPY"
}

# As inetd(8) starts a program: the connection is its standard input and output. What the peer sends
# is never read: a plain close would reset the connection, and the peer would lose bytes.
@test "a TCP connection by any name of a descriptor: a whole file, then its receipt" {
	random a 3000000
	cat >inetd.py <<-'END'
		import socket, subprocess, sys, time
		data = open("a", "rb").read()
		server = socket.create_server(("127.0.0.1", 0))
		def start(*args):
		    peer = socket.create_connection(server.getsockname())
		    peer.settimeout(20)
		    fd, _ = server.accept()
		    run = subprocess.Popen([sys.argv[1], *args], stdin=fd, stdout=fd)
		    fd.close()
		    return peer, run
		for name in "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "fd:1":
		    peer, run = start("a", name)
		    peer.sendall(b"GET it")
		    time.sleep(0.2)
		    got = b"".join(iter(lambda: peer.recv(65536), b""))
		    assert got == data, (name, len(got))
		    peer.close()
		    assert run.wait(20) == 0, name
		    peer, run = start("--strict", "--size=5", "a", name)
		    try:
		        while peer.recv(65536):
		            pass
		        sys.exit(f"{name}: the end of a stream that failed")
		    except ConnectionResetError:
		        pass
		    assert run.wait(20) == 1, name
		for name in "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "fd:0":
		    peer, run = start(name, "b")
		    peer.sendall(data)
		    assert run.poll() is None, name
		    peer.shutdown(socket.SHUT_WR)
		    assert peer.recv(1) == b"", name
		    assert open("b", "rb").read() == data and run.wait(20) == 0, name
		    peer.close()
		    peer, run = start(name, "nodir/b")
		    try:
		        peer.recv(1)
		        sys.exit(f"{name}: a receipt for nothing")
		    except ConnectionResetError:
		        pass
		    assert run.wait(20) == 2, name
	END
	timeout 60 python3 inetd.py "$FCOPY"
}

@test "fd: without a descriptor number is a usage error, and ./fd: is a file" {
	local operand
	echo x >a
	for operand in fd: fd:-1 fd:1x fd:0x1 fd:+1 'fd: 1' fd:01 fd:99999999999; do
		expect 2 a "$operand"
		mentions "./fd:..."
		expect 2 "$operand" b
		absent "$operand"
		absent b
	done
	expect 0 a ./fd:
	expect 0 ./fd: b
	holds x b
}
