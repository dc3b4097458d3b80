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

# listed N: what strace writes to ./trace has begun its Nth call to list records.
listed() { [ "$(grep -c 'getdents64(' trace)" -ge "$1" ]; }

# left_only_receipt NAME: of the job, only the receipt is left.
left_only_receipt() {
	absent "$1".fcopy-part
	local -a left=("$1".fcopy-shards/*)
	[ ${#left[@]} = 1 ] || { echo "left: ${left[*]}"; return 1; }
	[[ ${left[0]} == "$1".fcopy-shards/receipt.* ]]
}
