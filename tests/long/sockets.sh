#!/bin/bash
# SPDX-License-Identifier: MIT
#
# sockets.sh [N]: N copies over TCP of which one side is killed at a random instant, N/10 through a
# link that breaks after a random number of bytes; a slow link, and one that goes down; a thousand
# clients in turn and a hundred at once; N streams from peers that send urgent data, reset or stall.
# A receiver that succeeded has the whole file, a sender that succeeded has a receiver that has it,
# and otherwise the old file is still there. A receiver whose peer stalls ends after its timeout. A
# proxy may acknowledge the last bytes and keep them: a sender that got no receipt has to say so.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3 timeout
want_private_network "$@"
make_work
seed_random
wanted=${1:-200}
cd "$work" || exit 1
random_file src 32M
random_file old 3M

# receive ARG…: a receiver in the background, killed after limit (60) seconds; sets receiver and port.
receive() {
	local i
	: >log
	"${inside[@]}" timeout -s KILL "${limit:-60}" "$FCOPY" "$@" 2>log &
	receiver=$!
	for ((i = 0; i < 500; i++)); do
		port=$(sed -nE 's/^fcopy: (listening|serving .*|receiving .*) on [^ ]*:([0-9]+)( .*)?$/\2/p' log)
		[ -z "$port" ] || return 0
		sleep 0.01
	done
	status_of "$receiver"
	fail_status "$REPLY" "no listener: $*"
	return 1
}

# The process under a timeout(1), which may be gone.
child() {
	pgrep -P "$1"
}

# judge WHAT SENDER RECEIVER: the two exit statuses, one of which may be "killed", and the sender's
# "unconfirmed", against the file that is there.
judge() {
	local what="$1: sender $2, receiver $3" status
	tried=$((tried + 1))
	state_of dst old src
	for status in "$2" "$3"; do
		[[ $status == [01] || $status == killed || $status == unconfirmed ]] ||
			fail_status "$status" "$1"
	done
	case $2:$3:$REPLY in
	*:0:new | *:killed:new | [!0]*:[!0]*:old) ;;
	*:new) [ "$3" != 1 ] || fail other "$what, but the file is new" ;;
	0:* | *:0:*) fail wrong "$what, but the file is $REPLY" ;;
	*) fail lost "$what, and the file is $REPLY" ;;
	esac
	[ "$REPLY" = old ] && aborted=$((aborted + 1))
}

status_of() {
	REPLY=0
	wait "$1" 2>/dev/null || REPLY=$?
}

# strike SIDE SIGNAL MICROSECONDS: one copy, one kill.
strike() {
	local sender s r victim
	cp old dst
	receive tcp-listen:0 dst || return
	timeout -s KILL 60 "$FCOPY" --limit-rate 200M -m "$mode" src tcp:127.0.0.1:"$port" 2>sender.log &
	sender=$!
	victim=$receiver
	[ "$1" = receiver ] || victim=$sender
	sleep "$(printf '0.%06d' "$3")"
	victim=$(child "$victim") && kill -"$2" "$victim" 2>/dev/null
	status_of $sender
	s=$REPLY
	status_of $receiver
	r=$REPLY
	case $1:$((128 + $(kill -l "$2"))) in
	sender:"$s") s=killed ;;
	receiver:"$r") r=killed ;;
	esac
	judge "kill -$2 of the $1 after $3 us, mode $mode" "$s" "$r"
}

kill_at_random() {
	local i sides=(sender receiver) signals=(KILL KILL TERM) modes=(auto readwrite splice)
	aborted=0
	for ((i = 0; i < wanted; i++)); do
		mode=${modes[i % 3]}
		random_below 200000
		strike "${sides[i % 2]}" "${signals[i / 2 % 3]}" "$REPLY"
	done
	echo "$name: $aborted of $wanted killed copies were aborted"
	[ $aborted -gt 0 ] || fail other "no kill came in time"
}

# break_link MANNER BYTES
break_link() {
	local proxy_port proxy s
	cp old dst
	receive --timeout 1 tcp-listen:0 dst || return
	coproc PROXY { exec python3 "$root/tests/tools/proxy.py" "$1" "$port" "$2"; }
	proxy=$PROXY_PID
	read -r proxy_port <&"${PROXY[0]}"
	timeout -s KILL 60 "$FCOPY" --timeout 1 src tcp:127.0.0.1:"$proxy_port" 2>sender.log
	s=$?
	if [ $s = 0 ] && grep -q 'not confirmed: the peer has every byte' sender.log; then
		s=unconfirmed
	fi
	status_of $receiver
	judge "$1 after $2 bytes" "$s" "$REPLY"
	wait "$proxy" 2>/dev/null
}

break_links() {
	local i manners=(reset drop)
	aborted=0
	for ((i = 0; i < wanted / 10; i++)); do
		random_below 33554432
		break_link "${manners[i % 2]}" "$REPLY"
	done
	[ $aborted = $((wanted / 10)) ] || fail other "$aborted of $((wanted / 10)) broken links reported"
}

# Descriptors and memory of the server, in a line that two moments can be compared by.
footprint() {
	local pid
	pid=$(child "$receiver")
	echo "$(find "/proc/$pid/fd" -type l | wc -l) $(awk '/VmRSS/ { print $2 }' "/proc/$pid/status")"
}

many_clients() {
	local i before after pids=()
	limit=1800 receive -k src tcp-listen:0 || return
	for ((i = 0; i < 100; i++)); do
		timed "$FCOPY" tcp:127.0.0.1:"$port" /dev/null || fail_status $? "client $i"
	done
	before=$(footprint)
	for ((i = 0; i < 1000; i++)); do
		timed "$FCOPY" tcp:127.0.0.1:"$port" /dev/null || fail_status $? "client $i"
	done
	for ((i = 0; i < 100; i++)); do
		timed "$FCOPY" tcp:127.0.0.1:"$port" "many.$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || fail_status $? "one of a hundred clients at once"
	done
	for ((i = 0; i < 100; i++)); do
		cmp src "many.$i" || fail wrong "many.$i differs"
		rm -f "many.$i"
	done
	sleep 0.5
	after=$(footprint)
	tried=$((tried + 1))
	[ "${before% *}" = "${after% *}" ] || fail other "descriptors: $before, then $after"
	[ "${after#* }" -lt $((${before#* } + 4096)) ] || fail other "memory: $before, then $after"
	echo "$name: 1100 clients, descriptors and KiB: $before, then $after"
	kill "$(child "$receiver")"
	status_of "$receiver"
	[ "$REPLY" = 0 ] || fail_status "$REPLY" "the server"
}

# Prints the modes that take a stream as the source.
stream_modes() {
	local mode status
	for mode in $(mode_names); do
		echo x | "$FCOPY" -m "$mode" - probe 2>/dev/null
		status=$?
		rm -f probe
		# These take any stream: a refusal by them would be a defect.
		if [ $status = 0 ] || [[ $mode == @(auto|readwrite) ]]; then
			echo "$mode"
		else
			left_out "mode $mode" "it takes no stream"
		fi
	done
}

# misbehave MODE MANNER BYTES: one stream from a peer of that manner (see peer.py). A stream that
# ends in order is received whole or refused; one that is reset or stalls is never a success.
misbehave() {
	local what="mode $1, peer $2 with $3 bytes" peer start=$SECONDS status
	cp old dst
	receive --timeout 1 -m "$1" tcp-listen:0 dst || return
	python3 "$root/tests/tools/peer.py" "$2" "$port" "$3" >peer.log 2>&1 &
	peer=$!
	status_of "$receiver"
	status=$REPLY
	tried=$((tried + 1))
	# The peer keeps a stalled stream open for ten seconds.
	kill "$peer" 2>/dev/null
	wait "$peer" 2>/dev/null
	head -c "$3" pattern >whole
	state_of dst old whole
	case $2:$status:$REPLY in
	urgent:0:new) received=$((received + 1)) ;;
	*:1:old) ;;
	*:0:*) fail wrong "$what: exit 0, and the file is $REPLY" ;;
	*:1:*) fail lost "$what: the file is $REPLY" ;;
	*) fail_status "$status" "$what" ;;
	esac
	[ $((SECONDS - start)) -lt 8 ] || fail hung "$what: $((SECONDS - start)) s with --timeout 1"
}

misbehaving_peers() {
	local i mode=() manners=(urgent urgent-reset urgent-stall send-reset send-stall)
	mapfile -t mode < <(stream_modes)
	python3 -c 'import sys
sys.stdout.buffer.write(bytes(i % 251 for i in range(251)) * 1000)' >pattern
	received=0
	for ((i = 0; i < wanted; i++)); do
		random_below 250000
		# Every seventh is short: all of it is there when the receiver first looks.
		[ $((i % 7)) != 0 ] || REPLY=$((REPLY % 50 + 2))
		misbehave "${mode[i / ${#manners[@]} % ${#mode[@]}]}" "${manners[i % ${#manners[@]}]}" "$REPLY"
	done
	echo "$name: $wanted streams from peers that misbehave, $received received whole"
	[ $received -gt 0 ] || fail other "no stream with urgent data was received whole"
}

# A second network that ends with its process, and 40 Mbit/s to it.
make_slow_link() {
	unshare --net sleep 60 &
	far=$!
	inside=(nsenter -t "$far" -n)
	sleep 0.2
	ip link add slow0 type veth peer name slow1 netns "$far" &&
		ip addr add 10.199.77.1/30 dev slow0 && ip link set slow0 up &&
		"${inside[@]}" ip addr add 10.199.77.2/30 dev slow1 &&
		"${inside[@]}" ip link set slow1 up &&
		tc qdisc add dev slow0 root tbf rate 40mbit burst 32k latency 100ms
}

# slow_link WHAT COMMAND: COMMAND runs while the copy does; sets ends, the two exit statuses.
slow_link() {
	local sender
	cp old dst
	receive --timeout 2 tcp-listen:10.199.77.2:0 dst || return
	timeout -s KILL 60 "$FCOPY" --timeout 2 src tcp:10.199.77.2:"$port" 2>sender.log &
	sender=$!
	sleep 0.5
	eval "$2"
	status_of $sender
	ends=$REPLY
	status_of $receiver
	ends="$ends $REPLY"
	judge "$1" "${ends% *}" "${ends#* }"
}

slow_links() {
	if [ -z "${FCOPY_PRIVATE_PID-}" ]; then
		left_out "the slow link" "only root may make network namespaces"
		return
	fi
	make_slow_link || {
		left_out "the slow link" "no veth pair with a rate limit"
		return
	}
	slow_link "a slow link" :
	[ "$ends" = "0 0" ] || fail other "a link that only is slow: $ends"
	slow_link "a link that goes down" "ip link set slow0 down"
	[ "$ends" = "1 1" ] || fail other "a link that goes down: $ends"
	kill "$far"
}

inside=()
aborted=0
kill_at_random
break_links
many_clients
misbehaving_peers
slow_links
finish
