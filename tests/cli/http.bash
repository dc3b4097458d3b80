# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What the tests of HTTP share.

setup_file() {
	type python3 >/dev/null || skip "no python3"
	type curl >/dev/null || skip "no curl"
}

get() { curl -sS --max-time "$HANG" "$@"; }

# status ARG…: the status of a response, whose body goes to ./body.
status_of() { get -o body -w '%{http_code}' "$@"; }

url() { echo "http://127.0.0.1:$port/$1"; }

# raw TEXT: what the server answers to these bytes, which printf(1) expands, in PATIENCE seconds.
raw() {
	# shellcheck disable=SC2059
	printf "$1" >request
	python3 - "$port" <<-'END'
	import os, socket, sys
	s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
	s.sendall(open("request", "rb").read())
	s.settimeout(int(os.environ.get("PATIENCE", "60")))
	answer = b""
	try:
	    while piece := s.recv(65536):
	        answer += piece
	except (ConnectionResetError, TimeoutError):
	    answer += b"RESET"
	sys.stdout.buffer.write(answer)
	END
}

# is_refused STATUS REQUEST
is_refused() {
	local first
	first=$(raw "$2" | head -n 1)
	[[ $first == "HTTP/1.1 $1 "* ]] || { echo "$2: $first, not $1"; return 1; }
}

# sender LENGTH BYTES MANNER: a client that announces LENGTH bytes and sends BYTES of them; then it half-closes the
# connection, waits, drips (a byte each 0.1 s), or goes on when ./go is there. The answer is in ./client.out.
sender() {
	rm -f client.out
	python3 - "$port" "$@" >client.out 3>&- <<-'END' &
	import os, socket, sys, time
	port, length, first, manner = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
	s = socket.create_connection(("127.0.0.1", port), 60)
	s.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % length + bytes(first))
	print("sent", flush=True)
	if manner == "half-closes":
	    s.shutdown(socket.SHUT_WR)
	if manner == "goes on":
	    while not os.path.exists("go"): time.sleep(0.01)
	    s.sendall(bytes(length - first))
	start, answer = time.monotonic(), b""
	try:
	    while manner == "drips" and not answer and time.monotonic() - start < 30:
	        s.settimeout(0.1)
	        s.sendall(b"x")
	        try: answer = s.recv(1)
	        except TimeoutError: pass
	    s.settimeout(60)
	    while manner != "drips" or answer:
	        piece = s.recv(65536)
	        answer += piece
	        if not piece: break
	except OSError as e:
	    answer += b" then " + type(e).__name__.encode()
	print(answer.decode() or "nothing", flush=True)
	END
	# shellcheck disable=SC2034 # the tests wait for it
	client=$!
	await said sent client.out
}
