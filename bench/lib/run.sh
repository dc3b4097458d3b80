# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# One case: prove each contender, then time them in turn, A B A B, each run prepared alike.

DST=''
DST_DIR=''
REHEARSED=''             # microseconds that the last rehearsal took; empty: there was none
declare -A OWN_CLOCK=() # contender → yes: one thread, and it prints the seconds that count

note() { # FILE FIELD…
	local file=$OUT/$1 IFS=$'\t'
	shift
	printf '%s\n' "$*" >>"$file"
}

leave_out() { # CASE CONTENDER
	say "  left out: $2: $WHY"
	note left.tsv "$1" "$2" "$WHY"
}

run_case() {
	local name=$1 who round=0 order=() most
	say "$name: ${OF[$name:title]}"
	case_note "$name"
	case_enter "$name" || { leave_out "$name" '*'; return 0; }
	! is_root || cache_set cold '' # what the case before has left in the cache scatters memory
	for who in ${OF[$name:with]}; do
		if proof "$name" "$who"; then order+=("$who"); else leave_out "$name" "$who"; fi
	done
	most=$((${OF[$name:rounds]} * 3))
	while ((${#order[@]} && round < most)); do
		round=$((round + 1))
		one_round "$name" "$round"
		((round % ${OF[$name:rounds]} == 0)) || continue
		[[ ! $QUICK && ! $ONCE ]] || break
		report wide "$OUT" "$name" || break
		((round == most)) || say '  the spread is too wide: again'
	done
	group_close
}

# Uses and may shorten run_case's order. Each round begins with another contender, and every other one goes backwards.
one_round() {
	local name=$1 round=$2 i who count=${#order[@]} kept=()
	for ((i = 0; i < count; i++)); do
		who=${order[((round % 2 ? i : count - i) + round) % count]}
		timed "$name" "$who" "$round" || leave_out "$name" "$who"
	done
	for who in "${order[@]}"; do
		grep -q "^$name	$who	" "$OUT/left.tsv" 2>/dev/null || kept+=("$who")
	done
	order=("${kept[@]}")
}

case_note() {
	local name=$1 field bar
	for field in title group layout size rounds source dest cache src_fs dst_fs net memory volume with; do
		note cases.tsv "$name" "$field" "${OF[$name:$field]-}"
	done
	while read -r bar; do
		[[ -z $bar ]] || note cases.tsv "$name" bar "$bar"
	done <<<"${OF[$name:bars]-}"
}

case_enter() {
	local name=$1 size=${OF[$1:size]} need src_dir
	WHY=''
	fcopy_knows "${OF[$name:asks]-}" || return 1
	[[ ${OF[$name:cache]} == warm ]] || cache_can_drop || return 1
	net_enter "${OF[$name:net]}" || return 1
	group_enter "${OF[$name:memory]-}" || return 1
	fs_enter "${OF[$name:dst_fs]}" || return 1
	DST_DIR=$FS_DIR
	fs_enter "${OF[$name:src_fs]}" || return 1
	src_dir=$FS_DIR
	[[ ${OF[$name:cache]} == warm || $(fs_type "$src_dir") != tmpfs ]] || { WHY='what is in memory only cannot be cold'; return 1; }
	need=$((size + size / 50))
	room_for "$DST_DIR" "$need" && room_for "$src_dir" "$need" || return 1
	source_make "${OF[$name:source]}" "$size" "$src_dir" || { WHY='the source cannot be made'; return 1; }
	room_for "$DST_DIR" "$SRC_DATA"
}

fcopy_knows() {
	[[ -z $1 ]] || "$FCOPY" --help 2>/dev/null | grep -q -- "$1" || { WHY="fcopy has no $1"; return 1; }
}

room_for() {
	local free
	free=$(free_bytes "$1")
	((free >= $2)) || { WHY="no room: $(human "$2") wanted, $(human "$free") free"; return 1; }
}

# prepare CASE CONTENDER ROUND: a fresh destination name each time, the same state of affairs for all
prepare() {
	local name=$1 who=$2 round=$3
	program_find "${PROGRAM[$who]}" || return 1
	DST=$DST_DIR/$name.$who.$round
	local prog=$PROG
	[[ ${OF[$name:source]} != fresh ]] || source_write fresh "${OF[$name:size]}" "$SRC" || return 1
	dest_make "${OF[$name:dest:$who]-${OF[$name:dest]}}" "${OF[$name:size]}" "$DST"
	cache_set "${OF[$name:cache]}" "${OF[$name:source]}"
	port_next
	peer_start "$name" "$who" "$DST" || return 1
	command_make "$name" "${COMMAND[$who]}" "$prog" "$DST"
	[[ -z $GROUP_DIR ]] ||
		READY="sh -c $(single_quote "echo \$\$ >$GROUP_DIR/cgroup.procs; exec $READY")"
}

# The first run of each contender is not timed: it must succeed, make a right copy, and is asked for its memory.
proof() {
	local name=$1 who=$2 rss='' gauge=() status=0
	have /usr/bin/time && gauge=(/usr/bin/time -q -f %M -o "$LAB/rss")
	prepare "$name" "$who" 0 || { peer_stop; return 1; }
	run_once "${gauge[@]}" || status=$?
	peer_stop
	((status == 0)) || { WHY="exit $status: $(complaint "$LAB/err")"; rm -f "$DST"; return 1; }
	peer_had_all || return 1
	[[ ! -s $LAB/rss || ${SERVED[$who]-} ]] || rss=$(tail -n 1 "$LAB/rss")
	prove_copy "$name" "$who" || return 1
	note proofs.tsv "$name" "$who" "$rss" "$MAPS" "$BLOCKS" "$(command_show "$who")"
}

run_once() {
	local begun=${EPOCHREALTIME/./} status=0
	eval "timeout --foreground 900 ${*@Q} $READY" </dev/null >/dev/null 2>"$LAB/err" || status=$?
	REHEARSED=$((${EPOCHREALTIME/./} - begun))
	return "$status"
}

# The first line that a program complained with, without this machine's directories.
complaint() { sed -n "s|$LAB/||g; s|$DST_DIR/||g; 1p" "$1"; }

prove_copy() {
	local name=$1 who=$2
	WHY='' MAPS='' BLOCKS=''
	if [[ ${OF[$name:dest]} == none || ${COMMAND[$who]} != *'{dst}'* ]]; then
		return 0
	elif [[ ${OF[$name:source]} =~ sparse|fresh ]]; then
		"${KNOWN[python3]}" "$BENCH/lib/same.py" "$SRC" "$DST" >"$LAB/same" || WHY='its copy differs'
		MAPS=$(awk '/^maps/ { print $2 }' "$LAB/same") BLOCKS=$(awk '/^blocks/ { print $2 }' "$LAB/same")
	else
		cmp -s "$SRC" "$DST" || WHY='its copy differs'
	fi
	rm -f "$DST"
	[[ $WHY != 'its copy differs' ]]
}

# rehearse CASE CONTENDER ROUND: not timed, for the memory (memory.sh); twice, where that does not take for ever. The copy
# stays until the next is prepared, and the run that is timed gets its pages; where an old file stays as well, those of one
# more copy.
rehearse() {
	local held='' status=0
	REHEARSED=''
	is_rehearsed "$1" "$SRC_DATA" || return 0
	memory_compact
	prepare "$@" || return 1
	run_once || status=$?
	if [[ ${OF[$1:dest]} == old ]]; then
		exec {held}<"$DST"
		run_once || status=$?
	elif [[ ${OF[$1:cache]} == warm ]] && ((SRC_DATA < 2 << 30)); then
		peer_stop
		prepare "$@" || return 1
		run_once || status=$?
	fi
	peer_stop
	[[ ! -e $DST ]] || sync "$DST"
	memory_settle
	[[ -z $held ]] || exec {held}<&-
	((status == 0)) || WHY="failed in round $3"
	return "$status"
}

# A run during which memory went back to the host measures that: it is taken again, and counted. A command that takes about
# as long as the kernel waits for that, when rehearsed and when timed, cannot be without.
timed() {
	local name=$1 who=$2 round=$3 status try given begun took
	for ((try = 0; try < 3; try++)); do
		WHY='' status=0
		if ! rehearse "$@" || ! prepare "$@"; then
			peer_stop
			return 1
		fi
		given=$(memory_given_back) begun=${EPOCHREALTIME/./}
		run_timed "$who" || status=$?
		given=$(($(memory_given_back) - given)) took=$((${EPOCHREALTIME/./} - begun))
		peer_stop
		((status == 0)) || { WHY="failed in round $round"; rm -f "$DST"; return 1; }
		peer_had_all && prove_copy "$name" "$who" || return 1
		((given && try < 2 && (took < 1500000 || ${REHEARSED:-$took} < 1500000))) || break
		note again.tsv "$name" "$who" "$round" "$given"
	done
	note runs.tsv "$name" "$who" "$round" "$(figures "$who")" "$given"
}

run_timed() {
	timeout --foreground 900 hyperfine --shell=none --runs=1 --style=none --export-json="$LAB/run.json" \
		--output="$([[ ${OWN_CLOCK[$1]-} ]] && echo "$LAB/stdout" || echo null)" \
		"$READY" >/dev/null 2>"$LAB/err"
}

# What times itself is one thread that never waits: its CPU time is its wall time.
figures() {
	local own
	if [[ ${OWN_CLOCK[$1]-} ]]; then
		own=$(grep -Eo '[0-9]+\.[0-9]+' "$LAB/stdout" | tail -n 1)
		printf '%s\t%s\t0' "$own" "$own"
	elif [[ ${SERVED[$1]-} ]]; then
		printf '%s\t%s' "$(jq '.results[0].times[0]' "$LAB/run.json")" "$PEER_CPU"
	else
		jq -r '.results[0] | [.times[0], .user, .system] | @tsv' "$LAB/run.json"
	fi
}

# The command as a reader can repeat it, without this machine's directories.
command_show() {
	local text=${COMMAND[$1]} pair
	for pair in "prog=${PROGRAM[$1]#rivals/}" src=SRC dst=DST size=SIZE port=PORT host=HOST fcopy=fcopy \
		python=python3 bench=bench classes=build/bench/classes lab=DIR; do
		text=${text//"{${pair%%=*}}"/${pair#*=}}
	done
	printf '%s' "$text"
}
