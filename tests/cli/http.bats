#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# http-listen: serves files to HTTP clients, and takes an upload.

load helper
load json
load http

@test "http: a whole file, its head, and ranges of it, in every mode that a socket allows" {
	local mode
	random a.iso 3000001
	for mode in readwrite sendfile splice mmap auto; do
		serve -k a.iso http-listen:0 $mode
		get -o whole "$(url a.iso)"
		cmp whole a.iso
		get -o whole "$(url)"
		cmp whole a.iso
		[ "$(status_of -r 1000-2000000 "$(url)")" = 206 ]
		cmp body <(tail -c +1001 a.iso | head -c 1999001)
		[ "$(status_of -r -1 "$(url)")" = 206 ]
		cmp body <(tail -c 1 a.iso)
		head -c 1000000 a.iso >part
		get -C - -o part "$(url a.iso)"
		cmp part a.iso
		[ "$(status_of -r 3000001- "$(url)")" = 416 ]
		stop TERM
		ended 0
	done
}

@test "http: without -k the server ends after the last byte was delivered, and not before" {
	random a 100000
	serve a http-listen:0
	get -I "$(url)" >head
	grep -q '^Content-Length: 100000' head
	[ "$(status_of -r 0-99998 "$(url)")" = 206 ]
	[ "$(status_of "$(url b)")" = 404 ]
	[ "$(status_of -r 99999- "$(url)")" = 206 ]
	ended 0
	: >empty
	serve empty http-listen:0
	[ "$(status_of "$(url)")" = 200 ]
	ended 0
}

@test "http: conditions" {
	local etag modified
	echo hello >a
	touch -d '2020-01-01 12:00:00 UTC' a
	serve -k a http-listen:0
	get -D head -o body "$(url)"
	etag=$(sed -n 's/^ETag: \(.*\)\r$/\1/p' head)
	modified=$(sed -n 's/^Last-Modified: \(.*\)\r$/\1/p' head)
	[ "$modified" = "Wed, 01 Jan 2020 12:00:00 GMT" ]
	[ "$(status_of -H "If-None-Match: $etag" "$(url)")" = 304 ]
	[ "$(status_of -H "If-None-Match: \"x\"" "$(url)")" = 200 ]
	[ "$(status_of -H "If-Modified-Since: $modified" "$(url)")" = 304 ]
	[ "$(status_of -H "If-Match: \"x\"" "$(url)")" = 412 ]
	[ "$(status_of -H "If-Range: $etag" -r 1-2 "$(url)")" = 206 ]
	echo later >a
	[ "$(status_of -H "If-Range: $etag" -r 1-2 "$(url)")" = 200 ]
	[ "$(status_of -H "If-Match: $etag" "$(url)")" = 412 ]
}

@test "http: several files have their names, and / lists them; no other file can be reached" {
	local target
	echo one >a.txt
	echo two >'b c%?#'
	echo secret >secret
	mkdir d
	echo below >d/e
	serve -k a.txt 'b c%?#' d/e http-listen:0
	[ "$(get "$(url)")" = "$(printf 'a.txt\nb%%20c%%25%%3F%%23\ne')" ]
	[ "$(get "$(url a.txt)")" = one ]
	[ "$(get "$(url b%20c%25%3F%23)")" = two ]
	[ "$(get "$(url e)")" = below ]
	for target in secret d/e ../secret %2e%2e/secret a.txt/ /a.txt a.txt%00 d; do
		[ "$(status_of --path-as-is "$(url "$target")")" = 404 ] || { echo "$target"; return 1; }
	done
	# curl 8 leaves out a query that is empty.
	raw 'GET /a.txt? HTTP/1.1\r\nHost: h\r\n\r\n' | grep -q '^HTTP/1.1 404 '
	expect 2 -k a.txt d/../a.txt http-listen:0
	says "fcopy: d/../a.txt: has the same name as an earlier SRC"
	expect 2 -k a.txt secret tcp-listen:0
}

@test "http: a name cannot end its line of the head" {
	local name=$'a\r\nX-Evil: "1"\n.iso'
	echo x >"$name"
	serve -k "$name" http-listen:0
	get -D head -o body "$(url)"
	run ! grep -qi '^X-Evil' head
	grep -q "filename\*=UTF-8''a%0D%0AX-Evil%3A%20%221%22%0A.iso" head
}

@test "http: what another server may understand in another way is refused; the next client is served" {
	local host='Host: h\r\n'
	echo hello >a
	serve -k a http-listen:0
	is_refused 400 'GET / HTTP/1.1\r\n\r\n'
	is_refused 400 "GET / HTTP/1.1\r\n$host$host\r\n"
	is_refused 400 "GET / HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n"
	is_refused 400 "GET / HTTP/1.1\r\n${host}X : a\r\n\r\n"
	is_refused 400 "GET / HTTP/1.1\r\n${host}X: a\rb\r\n\r\n"
	is_refused 400 "GET / HTTP/1.1\r\n${host}X: a\\\\0b\r\n\\0\r\n\r\n"
	is_refused 400 "GET / HTTP/1.1\r\n${host}Content-Length: 3\r\n\r\nabc"
	is_refused 400 "GET / HTTP/1.1\r\n${host}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"
	is_refused 405 "PUT / HTTP/1.1\r\n${host}Content-Length: 3\r\n\r\nabc"
	is_refused 405 "DELETE / HTTP/1.1\r\n$host\r\n"
	is_refused 501 "BREW / HTTP/1.1\r\n$host\r\n"
	is_refused 505 "GET / HTTP/3.0\r\n$host\r\n"
	is_refused 414 "GET /$(printf '%09000d' 0) HTTP/1.1\r\n$host\r\n"
	is_refused 431 "GET / HTTP/1.1\r\n${host}X: $(printf '%065536d' 0)\r\n\r\n"
	raw 'PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n' | grep -q '^Allow: GET, HEAD'
	# One response for each connection.
	[ "$(raw "GET / HTTP/1.1\r\n$host\r\nGET / HTTP/1.1\r\n$host\r\n" | grep -c '^HTTP/1.1 ')" = 1 ]
	[ "$(get "$(url)")" = hello ]
}

@test "http: clients whose request does not come take no place, and learn why after 10 seconds" {
	echo hello >a
	serve -k --max-clients=1 a http-listen:0
	python3 - "$port" >slow.out 3>&- <<-'END' &
	import socket, sys, time
	many = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(50)]
	for s in many: s.sendall(b"GET / HT")
	print("connected", flush=True)
	start = time.monotonic()
	s = many[0]
	s.settimeout(1)
	while True:
	    try:
	        answer = s.recv(100)
	        break
	    except TimeoutError:
	        s.sendall(b"x")
	print(answer[:12].decode(), time.monotonic() - start < 60)
	END
	await said connected slow.out
	[ "$(get --max-time 5 "$(url)")" = hello ]
	await said 'HTTP/1.1 408 True' slow.out
	wait $!
}

@test "http: curl, wget and aria2 that were killed half-way resume, and have the right bytes" {
	local client command size half=4000000 rate
	local -A commands=([curl]='curl -sS -C - -o' [wget]='wget -q -c -O' [aria2c]='aria2c -q -c --file-allocation=none --auto-save-interval=1 -o')
	random a 8000001
	for client in curl wget aria2c; do
		type "$client" >/dev/null || { reports "no $client"; continue; }
		command=${commands[$client]}
		rate=8M
		[ $client != aria2c ] || rate=2M # it saves what it has once a second
		serve -k -v --limit-rate=$rate a http-listen:0
		$command "got-$client" "$(url a)" 3>&- &
		# shellcheck disable=SC2016
		await sh -c '[ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -ge "$2" ]' - got-$client $half
		kill -KILL $!
		wait $! || true
		size=$(stat -c %s got-$client)
		[ "$size" -lt 8000001 ]
		timeout "$HANG" $command "got-$client" "$(url a)"
		cmp got-$client a
		stop TERM
		ended 0
		said 'GET 206 (from byte [1-9]' server.log || { cat server.log; return 1; }
	done
}

@test "http: a file that shrinks, or is written while it is sent: the client sees a cut transfer" {
	local change
	for change in 'truncate -s 9000000 a' 'printf x | dd of=a bs=1 seek=5 conv=notrunc status=none' 'printf x >>a'; do
		rm -f got
		random a 30000000
		serve -k --limit-rate=8M a http-listen:0
		get -o got "$(url)" 2>/dev/null 3>&- &
		await test -s got
		sh -c "$change"
		status=0
		wait $! || status=$?
		[ "$status" != 0 ] || { echo "$change: status 0"; return 1; }
		get -o again "$(url)"
		cmp again a
		stop TERM
		ended 0
	done
}

@test "http: a small file that is written when it was sent, and before it is read: the client gets the old one, whole" {
	local mode
	for mode in auto readwrite mmap; do
		head -c 500000 /dev/zero | tr '\0' o >a
		serve -k a http-listen:0 $mode
		python3 - "$port" <<-'END'
		import array, fcntl, socket, sys, termios, time
		s = socket.socket()
		s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
		s.connect(("127.0.0.1", int(sys.argv[1])))
		s.sendall(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
		queued, end = array.array("i", [0]), time.monotonic() + 30
		while queued[0] <= 500000 and time.monotonic() < end:
		    fcntl.ioctl(s, termios.FIONREAD, queued)
		    time.sleep(0.01)
		assert queued[0] > 500000, queued[0]
		with open("a", "r+b") as f: f.write(b"n" * 500000)
		answer = b""
		while piece := s.recv(1 << 20): answer += piece
		body = answer.split(b"\r\n\r\n", 1)[1]
		assert body == b"o" * 500000, (len(body), body.count(b"n"))
		END
		stop TERM
		ended 0
	done
}

@test "http: a file that is replaced while it is sent: the client gets the old one, whole" {
	random a 8000000
	cp a old
	serve -k --limit-rate=8M a http-listen:0
	get -o got "$(url)" 3>&- &
	await test -s got
	random b 8000000
	mv b a
	wait $!
	cmp got old
}

@test "http: a client's line and its JSON object have the request, and no byte of it unescaped" {
	random a 1000
	serve -v -k --json a http-listen:0
	get -r 100-199 -o body "$(url)"
	raw 'GET /\033[31m HTTP/1.1\r\nHost: h\r\n\r\n' >/dev/null
	get -I -o body "$(url)"
	stop TERM
	ended 0
	said '^fcopy: client 127.0.0.1:[0-9]*: GET 206 (from byte 100): 100 B in ' server.log
	said '^fcopy: client 127.0.0.1:[0-9]*: HEAD 200: ' server.log
	run ! grep -q $'\033' server.log
	python3 - <<-'END'
	import json
	reports = [json.loads(line) for line in open("server.out")]
	assert [reports[0][n] for n in ("bytes", "data", "moved")] == [100, 100, 100], reports[0]
	got = [r["http"] for r in reports]
	assert {"method": "GET", "status": 206, "file": "a", "first": 100, "length": 100, "last": False} in got, got
	assert {"method": "HEAD", "status": 200, "file": "a", "first": 0, "length": 0, "last": False} in got, got
	assert any(h["status"] == 400 for h in got), got
	END
}

@test "http: the URL and the commands are printed" {
	echo x >'a b'
	serve 'a b' http-listen:0
	said "^fcopy: receive it with: curl -OJ http://127.0.0.1:$port/a%20b$" server.log
	stop TERM
	ended 143
	serve http-listen:0 b
	said "^fcopy: send it with: curl -fT FILE http://127.0.0.1:$port/$" server.log
	stop TERM
	ended 143
}

@test "http: -b and options of trees are refused; attributes are refused, or a warning" {
	local o
	echo data >a
	echo old >b
	for o in -b -i -l -s; do
		expect 2 $o http-listen:0 b
		says "fcopy: http-listen:0: is a stream or a device: -b, -i, -l, -s, -u, --parents, --attributes-only and --remove-destination need a file"
		expect 2 $o a http-listen:0
	done
	expect 2 --preserve=mode http-listen:0 b
	says "fcopy: http-listen:0: attributes are preserved between files only"
	expect 2 -p a http-listen:0
	says "fcopy: --preserve: cannot be used if DST is http-listen:"
	holds old b
	[ "$(ls -A | grep -v '^err')" = "$(printf 'a\nb')" ]
	serve -p http-listen:0 b
	[ "$(status_of -T a "$(url)")" = 204 ]
	ended 0
	said '^fcopy: warning: b: attributes are preserved between files only' server.log
	cmp a b
}

@test "http: a report is no file that is sent or stored, by no name of it" {
	local o
	echo data >a
	echo old >b
	ln a a-too
	ln -s b b-too
	for o in --log-file --json; do
		expect 2 $o=b http-listen:0 b
		says "fcopy: $o: b is an operand, too: name another file"
		expect 2 $o=b-too http-listen:0 b
		expect 2 $o=a a http-listen:0
		says "fcopy: $o: a is an operand, too: name another file"
		expect 2 $o=a-too a http-listen:0
		expect 2 $o=a-too b a http-listen:0
		holds data a
		holds old b
	done
}

@test "http: a client that closes as soon as it has the last byte confirms; one that half-closes before does not" {
	need strace
	random a 100000
	serve -v a http-listen:0
	strace -f -o trace -e trace=shutdown -e inject=shutdown:delay_enter=500000 -p "$server" 2>/dev/null &
	until grep -q TracerPid:.*[1-9] "/proc/$server/status"; do sleep 0.01; done
	get -o b "$(url a)"
	ended 0
	cmp a b
	said "^fcopy: client [0-9.:]*: GET 200: 98 KiB in [^,]*$" server.log
	: >empty # its client closes after the head
	serve -v empty http-listen:0
	strace -f -o trace -e trace='?poll,?ppoll' -e inject='?poll,?ppoll:delay_enter=100000' -p "$server" 2>/dev/null &
	until grep -q TracerPid:.*[1-9] "/proc/$server/status"; do sleep 0.01; done
	get -o b "$(url empty)"
	ended 0
	said "^fcopy: client [0-9.:]*: GET 200: 0 B in [^,]*$" server.log
	serve -v a http-listen:0
	python3 - "$port" <<-'END'
	import socket, sys
	s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
	s.sendall(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", socket.MSG_MORE) # one packet with its end
	s.shutdown(socket.SHUT_WR)
	while s.recv(65536): pass
	END
	ended 0
	said "^fcopy: client [0-9.:]*: GET 200: 98 KiB in .*, not confirmed$" server.log
}

@test "http: over IPv6, with the address in brackets" {
	[ -e /proc/net/if_inet6 ] && grep -q '^0*1 ' /proc/net/if_inet6 || skip "no ::1"
	random a 100000
	serve a 'http-listen:[::1]:0'
	said "^fcopy: receive it with: curl -OC - 'http://\[::1\]:$port/a'$" server.log
	get -g -o b "http://[::1]:$port/a"
	ended 0
	cmp a b
	serve 'http-listen:[::1]:0' c
	[ "$(status_of -g -T a "http://[::1]:$port/")" = 201 ]
	ended 0
	cmp a c
}

@test "tcp-listen: that receives an HTTP request warns, and names http-listen:" {
	echo hello >a
	serve tcp-listen:0 b
	curl -sS --max-time 1 -T a "$(url)" || true
	await gone
	said '^fcopy: warning: tcp-listen:0: receives an HTTP request, .*: use http-listen: ' server.log
	serve tcp-listen:0 b
	printf 'GET is no request\n' | timeout 20 "$FCOPY" - tcp:127.0.0.1:"$port"
	ended 0
	run ! grep -q 'HTTP' server.log
}
