# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# For the tests of --shard.

setup_file() {
	unset "${!SLURM_@}" "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" PARALLEL_SEQ JOB_COMPLETION_INDEX
}

# committed: dst is the copy of src. For trees: shard_tree.bash.
committed() {
	cmp src dst
	left_only_receipt dst
}

# shards N [OPTION…]: all shards of src to dst, one after the other.
shards() {
	local share
	for ((share = 0; share < $1; share++)); do
		expect 0 --shard=$share/"$1" "${@:2}" src dst
	done
}

# busy DST SHARD: sets busy to the options of strace by which, for that shard of DST, other processes have the
# chunks of all other shares.
busy() {
	local path=${1%/*} share=${2%/*} n=${2#*/} chunk
	[[ $1 == */* ]] || path=.
	path=$(cd "$path" && pwd -P)/${1##*/}.fcopy-part
	busy=(-e trace=flock -e inject=flock:error=EAGAIN)
	for ((chunk = 0; chunk < 64; chunk++)); do
		((chunk % n == 10#$share)) || busy+=(-P "$path/share.claim.$chunk")
	done
}

# apart STATUS ARG… SRC DST: as expect, but the process gets only the chunks of its own share. Nobody has begun
# the others.
apart() {
	local want=$1 shard
	local -a busy
	need_strace
	shift
	shard=$(printf '%s\n' "$@" | sed -n 's/^--shard=//p')
	busy "${!#}" "$shard"
	run --separate-stderr timeout -s KILL "$HANG" strace -f -qq -o /dev/null "${busy[@]}" "$FCOPY" "$@"
	demand "$want"
	find "${!#}.fcopy-part" -name 'share.claim.[0-9]*' -empty -delete 2>/dev/null || true
}

# left_only_receipt NAME: of the job, only the receipt is left.
left_only_receipt() {
	[ "$(find "$1".fcopy-part -mindepth 1 -printf '%f\n' | sort | xargs)" = 'journal lock' ] || { ls -A "$1".fcopy-part; return 1; }
	grep -q ' commit ' "$1".fcopy-part/journal
}

# markers NAME: how many chunks of NAME are complete.
markers() { find "$1".fcopy-part -name 'share.done.*' | wc -l; }
