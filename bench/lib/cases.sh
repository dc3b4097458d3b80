# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The words in which contenders.sh and cases/*.sh are written, and what they are remembered as.

CASES=()              # names, in order
GROUP=''              # the file that is being read: cases/GROUP.sh
CASE=''               # the case that is being described
declare -A OF=()      # "case:field" → value
declare -A PROGRAM=() # contender → program that it needs
declare -A COMMAND=() # contender → its command
declare -A VERSION=() # contender → command that tells its version
declare -A SERVED=()  # contender → yes: a client; what counts is the CPU time of the server, its peer

# --- contenders: contender NAME PROGRAM COMMAND [VERSION COMMAND], served NAME
contender() {
	PROGRAM[$1]=$2
	COMMAND[$1]=$3
	VERSION[$1]=${4-'{prog} --version'}
}

served() { SERVED[$1]=yes; }

# --- cases: begin NAME TITLE, then any of the lines below it; all but `with` have a default
begin() {
	CASE=$1
	CASES+=("$1")
	OF[$1:title]=$2
	OF[$1:group]=$GROUP
	OF[$1:size]=$SIZE
	OF[$1:rounds]=$ROUNDS
	OF[$1:source]=random
	OF[$1:dest]=new
	OF[$1:cache]=warm
	OF[$1:net]=''
	on here
}

set_field() { OF[$CASE:$1]=$2; }

on() { set_field src_fs "$1"; set_field dst_fs "${2-$1}"; }       # file systems; "here": that of --dir
from() { set_field source "$1"; }                                 # random allocated fresh sparse
to() { name_field dest "$@"; }                                    # new old allocated empty none, [for NAME…]
cache() { set_field cache "$1"; }                                 # warm cold
size() { set_field size "$(bytes "$1")"; set_field fixed yes; }   # default: --size
rounds() { [[ $QUICK ]] || set_field rounds "$1"; }               # default: --rounds
layout() { set_field layout "$1"; }                               # row: one line a case in the report
memory() { set_field memory "$(bytes "$1")"; }                    # limit of the contender's cgroup
net() { set_field net "$1"; }                                     # loopback veth
asks() { set_field asks "$1"; }                                   # a word that fcopy --help must know
slow() { set_field slow yes; }                                    # not for --quick all
clones() { set_field clones yes; }                                # extents are shared: nothing to rehearse
volume() { set_field volume "$1"; }                               # a run moves this many times SIZE

# with NAME…: the contenders; the first is the one that the others are compared with.
with() { set_field with "$*"; }

# serve COMMAND [NAME…]: a peer that listens on {port} before the timed run (for these contenders only).
# dial COMMAND [NAME…]: a peer that connects to {port} once the contender listens there.
serve() { peer_field serve "$@"; }
dial() { peer_field dial "$@"; }

# name_field FIELD VALUE [NAME…]: of the case, or only for these contenders
name_field() {
	local field=$1 value=$2 name
	shift 2
	(($#)) || set_field "$field" "$value"
	for name; do
		set_field "$field:$name" "$value"
	done
}

peer_field() {
	local kind=$1 command=$2 name
	shift 2
	(($#)) || set -- '*'
	for name; do
		set_field "peer:$name" "$command"
		set_field "kind:$name" "$kind"
	done
}

# bar METRIC CONTENDER RIVAL LIMIT: what we want to see.
#   wall cpu     median ratio to the rival      wall-low  lower end of that ratio's interval
#   rss          MiB; blocks, maps: difference from the source (rival: -)
bar() { OF[$CASE:bars]+="$*"$'\n'; }

cases_load() {
	local file
	# shellcheck source=/dev/null
	. "$BENCH/contenders.sh"
	for file in "$BENCH"/cases/*.sh; do
		GROUP=$(basename "$file" .sh)
		# shellcheck source=/dev/null
		. "$file"
	done
}

# cases_select WORD…: names, groups or patterns → CASES
cases_select() {
	local word name found chosen=()
	[[ $* != all ]] || { cases_all; return; }
	for word; do
		found=''
		for name in "${CASES[@]}"; do
			# shellcheck disable=SC2053  # a pattern is meant
			[[ $name == $word || ${OF[$name:group]} == $word ]] || continue
			found=yes
			[[ " ${chosen[*]} " == *" $name "* ]] || chosen+=("$name")
		done
		[[ $found ]] || die "no case, group or pattern: $word (try --list)"
	done
	CASES=("${chosen[@]}")
}

cases_all() {
	local name chosen=()
	for name in "${CASES[@]}"; do
		[[ $QUICK && ${OF[$name:slow]-} ]] || chosen+=("$name")
	done
	CASES=("${chosen[@]}")
}

# is_rehearsed CASE BYTES: what takes much memory is. Quick runs are small and follow each other so fast that it stays.
is_rehearsed() { (($2 >= 16 << 20)) && [[ ! $QUICK && ! ${OF[$1:clones]-} && ${OF[$1:dest]} != none ]]; }

# Bytes that one run of a case moves, and the seconds and disk that a selection may need.
case_bytes() { echo $((${OF[$1:size]} * ${OF[$1:volume]-1})); }

cases_seconds() {
	local name total=0 names once each
	for name in "${CASES[@]}"; do
		read -ra names <<<"${OF[$name:with]}"
		# A copy is prepared, made and compared, or a stream only made. Before what is timed, a large one is rehearsed, and
		# two quiet seconds are awaited.
		once=$((100 + $(case_bytes "$name") / 900000)) each=$once
		! is_rehearsed "$name" "${OF[$name:size]}" || each=$((once * 2 + 2000))
		total=$((total + ${#names[@]} * (${OF[$name:rounds]} * each + once)))
	done
	echo $((total / 1000))
}

cases_largest() {
	local name most=0
	for name in "${CASES[@]}"; do
		((${OF[$name:size]} <= most)) || most=${OF[$name:size]}
	done
	echo "$most"
}

cases_list() {
	local name
	printf '%-30s %-8s %-9s %-12s %-10s %-6s %s\n' CASE GROUP SIZE FS SOURCE CACHE 'CONTENDERS'
	for name in "${CASES[@]}"; do
		printf '%-30s %-8s %-9s %-12s %-10s %-6s %s\n' "$name" "${OF[$name:group]}" \
			"$(human "${OF[$name:size]}")" "${OF[$name:src_fs]}-${OF[$name:dst_fs]}" \
			"${OF[$name:source]}" "${OF[$name:cache]}" "${OF[$name:with]}"
	done
}
