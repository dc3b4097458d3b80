#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# TCP and other sockets: what is moved, by which engine, between which addresses.

load helper

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

@test "modes that have no business with sockets refuse before anybody listens or connects" {
	random a 100000
	local mode
	for mode in copy_file_range direct parallel reflink; do
		expect 2 a tcp:127.0.0.1:1 $mode
		mentions 'a stream has no offsets' 'hint: use auto'
		expect 2 a tcp-listen:0 $mode
		mentions 'a stream has no offsets' 'hint: use auto'
	done
	for mode in sendfile mmap copy_file_range direct parallel reflink; do
		expect 2 tcp-listen:0 b $mode
		mentions 'a stream has no offsets' 'hint: use auto'
		absent b
	done
}

@test "options that no stream can fulfil refuse before anybody listens, and leave nothing" {
	local option
	echo x >a
	mkfifo p
	for option in --resume --preserve=mode --no-cache --reflink=always; do
		expect 2 $option tcp-listen:0 b
		never said listening <(echo "$stderr")
		expect 2 $option a tcp:127.0.0.1:1
		never mentions refused
		expect 2 $option p b
		expect 2 $option a p
	done
	# What is sent cannot be read back; what is received can.
	expect 2 --verify a tcp:127.0.0.1:1
	never mentions refused
	expect 2 --verify a p
	expect 2 --verify tcp-listen:0 b splice
	never said listening <(echo "$stderr")
	echo part >b.fcopy-part
	chmod 640 b.fcopy-part
	run bash -c "echo x | '$FCOPY' --resume - b"
	[ "$status" = 2 ]
	expect 2 --resume /dev/zero b
	holds part b.fcopy-part
	[ "$(stat -c %a b.fcopy-part)" = 640 ]
	rm b.fcopy-part
	expect 2 --resume tcp-listen:0 b
	expect 2 --resume - b <a
	[ "$(echo *)" = "a p" ] || { ls; return 1; }
}

@test "auto: sendfile to a socket, splice from one; no byte through user space" {
	need_strace
	random a 1000000
	serve tcp-listen:0 b
	traced 0 trace=read,pread64,write,pwrite64,sendfile,splice,sendto a tcp:127.0.0.1:"$port"
	ended 0
	[ "$(calls sendfile)" -ge 2 ]
	never grep -E '(write|splice|sendto)\([0-9]+<(TCP|socket)' trace
	serve a tcp-listen:0
	traced 0 trace=read,pread64,write,pwrite64,recvfrom,sendfile,splice tcp:127.0.0.1:"$port" b
	ended 0
	[ "$(calls splice)" -ge 2 ]
	sed -i '/MSG_PEEK/d' trace # the end was checked
	never grep -E '(read|recvfrom)\([0-9]+<(TCP|socket)' trace
	cmp a b
	rm -f server.log
	timeout 20 strace -f -y -qq -o trace -e trace=write,pwrite64,sendfile,splice -e signal=none \
		"$FCOPY" -k a tcp-listen:0 2>server.log 3>&- &
	server=$!
	await said '^fcopy: receive it' server.log
	expect 0 tcp:127.0.0.1:"$(sed -nE 's/^fcopy: serving .* on [^ ]*:([0-9]+) .*/\1/p' server.log)" c
	kill "$(pgrep -P "$(pgrep -P $server)")" # of strace, of timeout
	ended 0
	cmp a c
	[ "$(calls sendfile)" -ge 2 ]
	[ "$(calls splice)" = 0 ]
}

@test "nc, ncat, socat and python send" {
	local how
	random a 2000001
	for how in 'nc -N 127.0.0.1 $port <a' 'ncat --send-only 127.0.0.1 $port <a' \
		'socat -u FILE:a TCP:127.0.0.1:$port' \
		'python3 -c "import socket, sys
s = socket.create_connection((\"127.0.0.1\", $port))
s.sendfile(open(\"a\", \"rb\")); s.shutdown(1); s.recv(1)"'; do
		type "${how%% *}" >/dev/null 2>&1 || continue
		serve tcp-listen:0 b
		eval "timeout 10 $how"
		ended 0
		cmp a b
		rm b
	done
}

@test "nc, ncat, socat, python and curl receive" {
	local how
	random a 3000001
	for how in 'nc -d 127.0.0.1 $port' 'ncat --recv-only 127.0.0.1 $port' \
		'socat -u TCP:127.0.0.1:$port STDOUT' \
		"curl -s --noproxy '*' --http0.9 http://127.0.0.1:\$port/"; do
		type "${how%% *}" >/dev/null 2>&1 || continue
		serve a tcp-listen:0
		eval "timeout 10 $how" >b
		ended 0
		cmp a b
	done
}

@test "small streams do not wait for anything, such as the 40 ms of a delayed acknowledgement" {
	local mode try
	need jq
	random a 4097
	for mode in auto readwrite splice; do
		# One that had the machine to itself is enough: a wait would be in all of them.
		for try in {1..20}; do
			serve tcp-listen:0 b
			expect 0 --json a tcp:127.0.0.1:"$port" $mode
			ended 0
			jq .real <<<"$output" >>times.$mode
			! jq -e '.real < 0.03' <<<"$output" >out || break
		done
		[ "$try" -lt 20 ] || { cat times.$mode; return 1; }
	done
}

@test "the sender's command has the size: the receiver shows a percentage, and warns about another size" {
	local size
	random a 4M
	serve --limit-rate=3M a tcp-listen:0
	size=$(sed -n 's/^fcopy: receive it with: fcopy \(--size=[0-9]*\) .* FILE$/\1/p' server.log)
	[ "$size" = --size=4194304 ]
	expect 0 --progress "$size" tcp:127.0.0.1:"$port" b
	grep -qE '^b  [1-9][0-9]%  ' <<<"$stderr"
	ended 0
	cmp a b
	serve --strict a tcp-listen:0
	grep -q 'receive it with: fcopy --size=4194304 --strict tcp:' server.log
	expect 1 --strict --size=4194305 tcp:127.0.0.1:"$port" c
	mentions "had 4194304 bytes, not 4194305"
	ended 1
	absent c
}

@test "without a size, a receiver that shows progress names the option, once; a sender that does not know it, too" {
	random a 6M
	mkfifo f
	cat a >f 3>&- &
	serve --limit-rate=2M --count=7M f tcp-listen:0
	grep -q 'receive it with: fcopy tcp:' server.log # a stream may end before --count
	expect 0 --progress tcp:127.0.0.1:"$port" b
	[ "$(grep -c '^fcopy: hint: give the length with --size=SIZE' <<<"$stderr")" = 1 ]
	never grep -q % <<<"$stderr"
	ended 0
	cmp a b
}

@test "all addresses of a name are tried; the listener is on loopback only" {
	getent ahosts localhost >/dev/null || skip "this system has no address for localhost"
	random a 1000
	serve tcp-listen:0 b
	said "listening on 127.0.0.1:$port (this machine only; use 0.0.0.0:$port for the network)" server.log
	said "send it with: fcopy FILE tcp:127.0.0.1:$port" server.log
	expect 0 a tcp:localhost:"$port"
	ended 0
	cmp a b
	grep -q '^0\{31\}1 ' /proc/net/if_inet6 || skip "no ::1 here"
	serve 'tcp-listen:[::1]:0' c
	said 'listening on \[::1\]:' server.log
	expect 0 a "tcp:[::1]:$port"
	ended 0
	cmp a c
}

@test "port 0: the port is printed, with any number of digits" {
	random a 1000
	serve tcp-listen:00 b
	expect 0 a tcp:127.0.0.1:"$port"
	ended 0
	cmp a b
}

@test "invalid addresses are usage errors" {
	local operand
	for operand in tcp:x tcp:x: tcp::1 tcp:x:65536 tcp:x:-1 tcp:::1:80 tcp-listen: tcp-listen:x: \
		tcp-listen:99999 'tcp:x: 80' tcp:x:+80 tcp:x:0; do
		expect 2 "$operand" b
	done
	expect 2 "tcp:$(printf '%01100d' 0):80" b
	mentions "is too long for an address"
	expect 2 'tcp:[::1]' b
	says 'fcopy: tcp:[::1]: has no port after the brackets'
	expect 2 a tcp://localhost:1
	says 'fcopy: tcp://localhost:1: is no address: write tcp:HOST:PORT, without //'
	expect 2 'tcp-listen:*:0' b
	mentions '0.0.0.0:PORT or [::]:PORT'
	expect 2 tcp:127.0.0.1:nosuch b
	says 'fcopy: tcp:127.0.0.1:nosuch: its port is neither a number nor the name of a service'
	expect 2 tcp-listen:0 .
	mentions 'is a directory, and the source has no name to use there'
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

@test "options about a file are refused where there is a socket" {
	local option
	echo x >a
	for option in inplace no-clobber no-target-directory force threads=2 preallocate=always \
		sparse=never reflink=never; do
		usage_error "--${option%=*}: cannot be used if DST is a socket" \
			"--$option" a tcp:127.0.0.1:1
	done
	usage_error '--threads: cannot be used if SRC is a socket' -j2 tcp:127.0.0.1:1 b
	expect 2 --timeout 1000001 a tcp:127.0.0.1:1
	mentions "invalid number of seconds '1000001' (0 to 1000000"
}

@test "http-listen on all addresses: the message has one command for each address that others can reach" {
	is_root || skip "a network namespace of our own needs root"
	need unshare ip curl
	random a 1000
	export FCOPY
	# shellcheck disable=SC2016
	run --separate-stderr timeout 30 unshare --net bash -euc 'ip link set lo up
		ip link add away0 type veth peer name away1 || exit 77
		ip addr add 10.9.8.7/24 dev away0
		for ((i = 1; i < 10; i++)); do ip addr add 10.9.9.$i/24 dev away1; done # it is down
		ip link set away0 up
		"$FCOPY" a http-listen:0.0.0.0:8080 2>log &
		until grep -q "receive it with" log; do sleep 0.01; done
		curl -fsS -o b http://10.9.8.7:8080/a
		wait $!
		ip -6 addr add fd00::7/64 dev away0 nodad && test -e /proc/net/if_inet6 || exit 0
		"$FCOPY" a "http-listen:[::]:8081" 2>log6 &
		until grep -q "receive it with" log6; do sleep 0.01; done
		curl -gfsS -o c "http://[fd00::7]:8081/a"
		wait $!'
	[ $status != 77 ] || skip "no veth devices"
	demand 0
	cmp a b
	[ "$(grep receive log)" = 'fcopy: receive it with: curl -OC - http://10.9.8.7:8080/a' ]
	[ -e c ] || skip "no IPv6"
	cmp a c
	diff <(grep receive log6) - <<-'END'
		fcopy: receive it with: curl -OC - http://10.9.8.7:8081/a
		fcopy: receive it with: curl -OC - 'http://[fd00::7]:8081/a'
	END
}

@test "a sender whose socket connects to itself is refused, and nothing is confirmed" {
	is_root || skip "a network namespace of our own needs root"
	need unshare ip
	echo hello >a
	export FCOPY
	# With two ports to choose from, the kernel chooses the destination's port at once, or soon.
	# shellcheck disable=SC2016
	run --separate-stderr unshare --net bash -euc 'ip link set lo up
		echo "40000 40001" >/proc/sys/net/ipv4/ip_local_port_range
		for try in $(seq 20); do
			s=0
			"$FCOPY" -v a tcp:127.0.0.1:40000 || s=$?
			[ $s = 1 ]
		done'
	demand 0
	mentions "fcopy: tcp:127.0.0.1:40000: connect: Connection refused"
	never mentions confirmed
}

@test "--timeout does not apply to a pipe, whether it blocks or not" {
	need python3
	echo x >a
	# shellcheck disable=SC2016
	for blocking in True False; do
		run --separate-stderr python3 -c '
import os, socket, subprocess, sys, time
with socket.create_server(("127.0.0.1", 0)) as server:
    source, sink = os.pipe()
    os.set_blocking(source, sys.argv[2] == "True")
    copy = subprocess.Popen([sys.argv[1], "--timeout=1", "-", f"tcp:127.0.0.1:{server.getsockname()[1]}"], stdin=source)
    peer, _ = server.accept()
    os.close(source)
    os.write(sink, b"abc")
    time.sleep(1.5)
    os.write(sink, b"def")
    os.close(sink)
    got = b""
    while data := peer.recv(100):
        got += data
    peer.close()
    print(got.decode())
    sys.exit(copy.wait())' "$FCOPY" $blocking
		demand 0
		[ "$output" = abcdef ]
	done
}

@test "sockets of records are no streams: refused, with every name, and nothing is copied" {
	cat >records.py <<-'END'
		import os, socket, subprocess, sys
		for kind in socket.SOCK_SEQPACKET, socket.SOCK_DGRAM:
		    for name in "-", "fd:0":
		        a, b = socket.socketpair(socket.AF_UNIX, kind)
		        b.send(os.urandom(90000))
		        if kind == socket.SOCK_SEQPACKET:
		            b.close()
		        run = subprocess.run([sys.argv[1], name, "out"], stdin=a, capture_output=True, text=True, timeout=20)
		        assert run.returncode == 2, (kind, name, run)
		        assert "is not a stream socket" in run.stderr, run
		        assert not os.path.exists("out")
	END
	timeout 100 python3 records.py "$FCOPY"
}

@test "the demonstration of sockets: the rows of 2008 up to a size, with times of this machine; nothing is left" {
	local demo=$BATS_TEST_DIRNAME/../../bench/demo-sockets.sh
	[ -e "$demo" ] || skip "no bench/"
	mkdir -p tools/bench lab
	cp "$demo" tools/bench/
	ln -s "$(realpath "$FCOPY")" tools/fcopy
	run -0 timeout 60 tools/bench/demo-sockets.sh 21 lab
	[[ $output =~ $'\n'\ +7\ +156\ +45\ +0.29\ +[1-9][0-9]*\ +[1-9][0-9]*\ +[0-9.]+$'\n'\ +21\ +337\ +128\ +0.38 ]]
	[ "${#lines[@]}" = 5 ]
	[ -z "$(ls lab)" ]
	run -1 tools/bench/demo-sockets.sh 5 lab
	run -1 tools/bench/demo-sockets.sh 1G lab
}
