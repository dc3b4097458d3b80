#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# demo-sockets.sh [MB] [DIR]: IBM's table of 2008 on this machine, or its rows up to that size, in a minute. A file is sent over
# loopback by read + send of 4 KiB and by sendfile, the fastest of three runs each; cat(1) receives it. Needs coreutils only.
set -uo pipefail
export LC_ALL=C.UTF-8 # times have a point everywhere

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
fcopy=$here/../fcopy most=${1:-1024} dir=${2:-$here/../build}
SECONDS_MOST=50

# MB, and milliseconds of read + send and of transferTo (sendfile) on Linux 2.6: "Efficient data transfer through zero copy".
article="7 156 45
21 337 128
63 843 387
98 1320 617
200 2124 1150
350 3631 1762
700 13498 4422
1024 18399 8537"

die() {
	echo "demo-sockets.sh: $*" >&2
	exit 1
}

# await_port: the port on which the server listens.
await_port() {
	local i
	for ((i = 0; i < 500; i++)); do
		port=$(sed -n 's/^fcopy: listening on 127\.0\.0\.1:\([0-9]*\) .*/\1/p' "$lab/log")
		[[ -z $port ]] || return 0
		kill -0 "$server" 2>/dev/null || return 1
		sleep 0.01
	done
	return 1
}

# send MB OPTION...: milliseconds that a client waits for the file.
send() {
	local megabytes=$1 start end
	shift
	: >"$lab/log" # the server may start late: the port of the last one is not its own
	timeout 60 "$fcopy" --count="${megabytes}M" "$@" "$lab/source" tcp-listen:127.0.0.1:0 2>"$lab/log" &
	server=$!
	await_port || die "no server: $(cat "$lab/log")"
	start=${EPOCHREALTIME/./}
	cat <"/dev/tcp/127.0.0.1/$port" >/dev/null || die "the client failed"
	end=${EPOCHREALTIME/./}
	wait "$server" || die "the server failed: $(cat "$lab/log")"
	server=
	milliseconds=$(((end - start + 500) / 1000))
}

# fastest MB OPTION...: of three runs, or of fewer on a slow machine.
fastest() {
	local i best=
	for ((i = 0; i < 3 && (i == 0 || SECONDS < SECONDS_MOST); i++)); do
		send "$@"
		((milliseconds > 0)) || milliseconds=1
		[[ -n $best ]] && ((best <= milliseconds)) || best=$milliseconds
	done
	milliseconds=$best
}

[[ -x $fcopy ]] || die "there is no $fcopy: run make"
[[ $most =~ ^[1-9][0-9]{0,3}$ ]] || most=0
((most >= 7 && most <= 1024)) || die "invalid size '${1-}': MB, 7 to 1024"
size=$((most << 20))
mkdir -p "$dir" || die "cannot make $dir"
free=$(($(stat -f -c '%a * %S' "$dir")))
((free >= size + (32 << 20))) || die "$dir has $((free >> 20)) MiB free, $((most + 32)) MiB are needed"
lab=$(mktemp -d "$(realpath "$dir")/fcopy-demo.XXXXXX") || die "cannot write to $dir"
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$lab"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
fallocate -l "$size" "$lab/source" || die "fallocate does not work in $dir"
cat "$lab/source" >/dev/null

echo "file to socket, loopback, warm; the fastest of three runs, ms; load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) CPUs"
echo "             2008 (IBM, Linux 2.6)           this machine"
printf '%6s %12s %11s %6s %12s %9s %6s\n' MB 'read + send' transferTo ratio 'read + send' sendfile ratio
while read -r megabytes old_send old_transfer; do
	((megabytes <= most)) || break
	fastest "$megabytes" --mode=readwrite --buffer-size=4K
	by_send=$milliseconds
	fastest "$megabytes" --mode=sendfile
	echo "$megabytes $old_send $old_transfer $by_send $milliseconds" |
		awk '{ printf "%6d %12d %11d %6.2f %12d %9d %6.2f\n", $1, $2, $3, $3 / $2, $4, $5, $5 / $4 }'
done <<<"$article"
exit 0
