# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# For the tests of --shard.

setup_file() {
	unset "${!SLURM_@}" "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" PARALLEL_SEQ JOB_COMPLETION_INDEX
}

# shards N [OPTION…]: all shards of src to dst, one after the other.
shards() {
	local share
	for ((share = 0; share < $1; share++)); do
		expect 0 --shard=$share/"$1" "${@:2}" src dst
	done
}

# apart STATUS ARG…: as expect, but where there are no locks: a share is a fixed part of the copy.
apart() {
	local want=$1
	need_strace
	shift
	run --separate-stderr timeout -s KILL "$HANG" strace -f -qq -o /dev/null -e trace=flock \
		-e inject=flock:error=ENOLCK "$FCOPY" "$@"
	demand "$want"
}

# left_only_receipt NAME: of the job, only the receipt is left.
left_only_receipt() {
	[ "$(find "$1".fcopy-part -mindepth 1 -printf '%f\n' | sort | xargs)" = 'journal lock' ] || { ls -A "$1".fcopy-part; return 1; }
	grep -q ' commit ' "$1".fcopy-part/journal
}

# markers NAME: how many chunks of NAME are complete.
markers() { find "$1".fcopy-part -name 'share.done.*' | wc -l; }
