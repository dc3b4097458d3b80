# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The other end of a socket: started before a timed run, stopped after it; the network between them.

PEER=''         # its process
PEER_CPU=''     # seconds that the last one took, from its start to its end: user, a tab, system
PORT=0
HOST=127.0.0.1
NETNS=''        # network namespace of the peer
GROUP_DIR=''    # memory cgroup of the contender

net_enter() {
	case $1 in
	'' | loopback) HOST=127.0.0.1 NETNS_RUN=() ;;
	veth) net_veth && HOST=10.177.77.2 NETNS_RUN=(ip netns exec "$NETNS") ;;
	*) die "no such network: $1" ;;
	esac
}

# We are at one end of a veth pair, the peer in its own namespace at the other.
net_veth() {
	[[ -z $NETNS ]] || return 0
	WHY='a veth pair needs root, ip and network namespaces'
	is_root && have ip && ip netns add "fcb$$" || return 1
	NETNS=fcb$$
	veth_make "$NETNS" || { net_close; return 1; }
}

veth_make() {
	ip link add "$1" type veth peer name "${1}p" netns "$1" &&
		ip addr add 10.177.77.1/30 dev "$1" && ip link set "$1" up &&
		ip -n "$1" addr add 10.177.77.2/30 dev "${1}p" &&
		ip -n "$1" link set "${1}p" up && ip -n "$1" link set lo up
}

net_close() {
	[[ -n $NETNS ]] || return 0
	ip link del "$NETNS" 2>/dev/null
	ip netns del "$NETNS"
	NETNS=''
}

port_next() {
	((PORT)) || PORT=$((20000 + RANDOM % 10000))
	PORT=$((PORT + 1))
}

listening() { "${NETNS_RUN[@]}" ss -Hltn "sport = :$PORT" | grep -q .; }

# peer_start CASE CONTENDER DST
peer_start() {
	local name=$1 who=$2 dst=$3 template kind
	: >"$LAB/peer.err"
	template=${OF[$name:peer:$who]-${OF[$name:peer:*]-}}
	kind=${OF[$name:kind:$who]-${OF[$name:kind:*]-}}
	[[ -n $template ]] || return 0
	command_make "$name" "$template" '' "$dst"
	eval "exec ${NETNS_RUN[*]} $READY" </dev/null >/dev/null 2>"$LAB/peer.err" &
	PEER=$!
	[[ $kind == dial ]] || peer_wait
}

peer_wait() {
	local try
	for ((try = 0; try < 500; try++)); do
		listening && return
		kill -0 "$PEER" 2>/dev/null || break
		sleep 0.02
	done
	WHY="its peer does not listen: $(complaint "$LAB/peer.err")"
	return 1
}

peer_stop() {
	[[ -n $PEER ]] || return 0
	times >"$LAB/before"
	kill "$PEER" 2>/dev/null
	wait "$PEER" 2>/dev/null
	times >"$LAB/after"
	PEER_CPU=$(cat "$LAB/before" "$LAB/after" | awk -F '[ms ]+' -v OFS='\t' '
		NR % 2 == 0 { user = $1 * 60 + $2 - user; kernel = $3 * 60 + $4 - kernel } END { print user, kernel }')
	PEER=''
	return 0
}

# A stream that was cut makes the run that it was cut in fast.
peer_had_all() {
	WHY=$(sed -n '/ bytes came$/{p;q}' "$LAB/peer.err" 2>/dev/null)
	[[ -z $WHY ]]
}

# group_enter BYTES: processes that write their id to $GROUP_DIR/cgroup.procs get no more memory.
group_enter() {
	local root=/sys/fs/cgroup knob=memory.max
	group_close
	[[ -n $1 ]] || return 0
	[[ ! -d $root/memory ]] || root=$root/memory knob=memory.limit_in_bytes
	GROUP_DIR=$root/fcopy-bench.$$
	WHY='a memory limit needs root and a memory cgroup'
	mkdir "$GROUP_DIR" 2>/dev/null && echo "$1" >"$GROUP_DIR/$knob"
}

group_close() {
	[[ -n $GROUP_DIR ]] || return 0
	rmdir "$GROUP_DIR" 2>/dev/null
	GROUP_DIR=''
}
