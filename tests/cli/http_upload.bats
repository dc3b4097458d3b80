#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# http-listen: as SRC: one upload.

load helper
load json
load http

@test "http: an upload is stored, and its status is sent after the commit" {
	random a 3000001
	serve http-listen:0 b
	[ "$(status_of -T a "$(url)")" = 201 ]
	ended 0
	cmp a b
	echo new >a
	serve http-listen:0 b
	[ "$(status_of -X POST --data-binary @a "$(url whatever)")" = 204 ]
	ended 0
	cmp a b
	: >a
	serve -f http-listen:0 b
	[ "$(status_of -X PUT -H 'Content-Length: 0' "$(url)")" = 204 ]
	ended 0
	cmp a b
}

@test "http: what is no upload is refused, and the upload still comes" {
	echo hello >a
	serve http-listen:0 b
	[ "$(status_of "$(url)")" = 405 ]
	is_refused 411 'PUT / HTTP/1.1\r\nHost: h\r\n\r\n'
	is_refused 501 'PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n'
	is_refused 400 'PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'
	is_refused 404 'PUT /a/b HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx'
	is_refused 417 'PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: x\r\n\r\n'
	absent b
	[ "$(status_of -T a "$(url)")" = 201 ]
	ended 0
	cmp a b
}

@test "http: a part of a file or a form does not become the file, and a condition is not ignored" {
	seq 100000 >a
	echo old >b
	serve http-listen:0 b
	[ "$(status_of -C 5000 -T a "$(url)")" = 400 ]
	is_refused 400 'PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Range: bytes 0-2/*\r\n\r\nabc'
	is_refused 400 'PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Range: bytes 0-2/9\r\n\r\nabc'
	[ "$(status_of -H 'If-None-Match: *' -T a "$(url)")" = 501 ]
	[ "$(status_of -F file=@a "$(url)")" = 415 ]
	[ "$(status_of -H 'If-Match: "x"' -T a "$(url)")" = 501 ]
	[ "$(cat b)" = old ]
	[ "$(status_of -C - -T a "$(url)")" = 204 ] # from the first byte to the last
	ended 0
	cmp a b
}

@test "http: an upload that is cut, too short or too long leaves DST as it was" {
	local request
	echo old >b
	for request in 'Content-Length: 100\r\n\r\nshort' 'Content-Length: 3\r\n\r\nmore than that'; do
		serve http-listen:0 b
		PATIENCE=2 raw "PUT / HTTP/1.1\r\nHost: h\r\n$request" >answer
		ended 1
		run ! grep -q '^HTTP/1.1 2' answer
		[ "$(cat b)" = old ]
	done
	said 'the client sent more bytes than it had announced' server.log
}

@test "http: an upload onto a full disk: 507 before the body, or when it is full" {
	is_root || skip "needs root"
	mkdir full
	mount -t tmpfs -o size=1M none full
	random a 3000000
	echo old >full/b
	serve http-listen:0 full/b
	[ "$(get -o body -w '%{http_code} %{size_upload}' --expect100-timeout 60 -T a "$(url)")" = "507 0" ]
	ended 1
	serve -f http-listen:0 full/b
	[ "$(status_of -T a "$(url)")" = 507 ]
	ended 1
	[ "$(cat full/b)" = old ]
	[ "$(ls full)" = b ]
	umount full
}

@test "http: the JSON object of an upload has the request and the status of the response" {
	random a 1000
	serve --json http-listen:0 b
	[ "$(status_of -T a "$(url)")" = 201 ]
	ended 0
	cp server.out stored
	serve --json http-listen:0 b
	sender 1000 500 half-closes
	wait "$client"
	ended 1
	cp server.out short
	serve --json http-listen:0 b
	stop TERM
	ended 143
	python3 - <<-'END'
	import json
	http = [json.load(open(name))["http"] for name in ("stored", "short", "server.out")]
	none = {"file": None, "first": 0, "length": 0, "last": False}
	assert http == [{"method": "PUT", "status": 201, **none}, {"method": "PUT", "status": 400, **none}, None], http
	END
	cat stored short server.out >>"$OBJECTS"
}

@test "http: an upload with --fsync: the data, the name and its directory are flushed before the 201" {
	need_strace
	random a 3000001
	printf '#!/bin/sh\nexec strace -D -f -qq -o trace -e trace=fsync,fdatasync,linkat,sendto "%s" "$@"\n' "$FCOPY" >traced
	chmod +x traced
	FCOPY=./traced serve --fsync http-listen:0 b
	[ "$(status_of -T a "$(url)")" = 201 ]
	ended 0
	cmp a b
	order 'f(data)?sync' 'linkat' 'fsync' 'sendto.*HTTP/1.1 201'
	[ "$(grep -c 'sendto.*HTTP/1.1 2' trace)" = 1 ]
}

@test "http: an upload with --fsync whose flush fails has no 2xx" {
	need_strace
	random a 3000001
	echo old >b
	printf '#!/bin/sh\nexec strace -D -f -qq -o trace -e trace=fsync,fdatasync -e inject=fsync,fdatasync:error=EIO:when=1 "%s" "$@"\n' "$FCOPY" >traced
	chmod +x traced
	FCOPY=./traced serve --fsync http-listen:0 b
	[ "$(status_of -T a "$(url)")" = 500 ]
	grep -qxE 'not stored: (Input/output|I/O) error' body
	ended 1
	injected
	holds old b
}

@test "http: an upload with --verify, --limit-rate, --count, --size and -f" {
	local start=$EPOCHREALTIME
	random a 3000001
	serve --verify http-listen:0 b
	[ "$(status_of -T a "$(url)")" = 201 ]
	ended 0
	cmp a b
	serve -f --limit-rate=1M http-listen:0 b
	start=${EPOCHREALTIME/./}
	[ "$(status_of -T a "$(url)")" = 204 ]
	[ $((${EPOCHREALTIME/./} - start)) -gt 2000000 ]
	ended 0
	cmp a b
	serve --count=1000 http-listen:0 c
	[ "$(status_of -T a "$(url)")" = 201 ]
	holds 'received 1000 bytes' body
	ended 0
	cmp c <(head -c 1000 a)
	serve --size=5 http-listen:0 c
	[ "$(status_of -T a "$(url)")" = 204 ]
	ended 0
	said '^fcopy: warning: http-listen:0: had 3000001 bytes, not 5' server.log
	cmp a c
	echo old >c
	serve --strict --size=5 http-listen:0 c
	[ "$(status_of -T a "$(url)")" = 500 ]
	ended 1
	holds old c
}

@test "http: an upload whose bytes differ when they are read back is not stored" {
	need_strace
	random a 3000001
	echo old >b
	printf '#!/bin/sh\nexec strace -D -f -qq -o trace -e trace=pread64 $INJECT "%s" "$@"\n' "$FCOPY" >traced
	chmod +x traced
	FCOPY=./traced serve --verify http-listen:0 c
	[ "$(status_of -T a "$(url)")" = 201 ]
	ended 0
	INJECT="-e inject=pread64:retval=1048576:when=$(nth pread64 '1048576, 0\) = 1048576')" FCOPY=./traced serve --verify http-listen:0 b
	[ "$(status_of -T a "$(url)")" = 500 ]
	ended 1
	injected
	said 'b: differs from what the source sent' server.log
	holds old b
}

@test "http: an upload with -n: not for a DST that exists, or that appears during it" {
	echo old >b
	expect 0 -n http-listen:0 b
	holds old b
	rm b
	serve -n http-listen:0 b
	sender 1000 500 'goes on'
	echo other >b
	touch go
	wait "$client"
	said '^HTTP/1.1 409 Conflict' client.out
	said '^not stored: such a file exists by now' client.out
	await gone
	holds other b
	rm b
	serve -n http-listen:0 b
	sender 1000 500 'goes on'
	wait "$client"
	said '^HTTP/1.1 201 ' client.out
	ended 0
	[ "$(stat -c %s b)" = 1000 ]
}

@test "http: an upload whose client half-closes too early is refused, with the reason" {
	echo old >b
	serve http-listen:0 b
	sender 100000 50000 half-closes
	wait "$client"
	said '^HTTP/1.1 400 ' client.out
	said '^not stored: the upload ended after 50000 of 100000 bytes' client.out
	ended 1
	holds old b
	[ "$(ls)" = "$(printf '%s\n' b client.out server.log server.out)" ]
}

@test "http: a signal during an upload: DST is as before, and the client knows" {
	echo old >b
	serve http-listen:0 b
	sender 100000 50000 waits
	stop TERM
	wait "$client"
	said '^HTTP/1.1 503 ' client.out
	said '^not stored: interrupted' client.out
	ended 143
	said '^fcopy: stopped .*; b unchanged' server.log
	holds old b
	serve http-listen:0 b
	sender 100000 50000 waits
	stop KILL
	wait "$client"
	said 'then ConnectionResetError' client.out
	ended 137
	holds old b
}

@test "http: a byte now and then does not keep an upload alive" {
	echo old >b
	serve --timeout=1 http-listen:0 b
	sender 100000 10 drips
	wait "$client"
	said '^HTTP/1.1 408 ' client.out
	ended 1
	holds old b
}
