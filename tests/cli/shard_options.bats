#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard and --job: values, launchers, and what they exclude.

load helper
load shard

@test "--job: its name has 1 to 200 bytes, and it needs --shard" {
	random src 10
	expect 2 --job= --shard=0/1 src dst
	expect 2 --job=- --shard=0/1 src dst
	expect 2 --job="$(printf '%0201d' 0)" --shard=0/1 src dst
	expect 2 --job=name src dst
	mentions '--job: requires --shard'
	absent dst
}

@test "--shard: combinations without a meaning are usage errors" {
	random src 10
	for option in --inplace --resume --count=5 --size=10 -n --reflink=always '-m reflink' -k --benchmark; do
		# shellcheck disable=SC2086
		expect 2 $option --shard=0/2 src dst
	done
	expect 2 --shard=0/2 - dst <src
	expect 2 --shard=0/2 src -
	expect 2 --shard=0/2 src tcp:localhost:1
	mkdir s
	echo '*.o' >list
	for option in --exclude=x --include=x --exclude-from=list --files-from=list --update --delete --mirror; do
		expect 2 -rT $option --shard=0/2 s dst
		says "fcopy: ${option%%=*}: cannot be combined with --shard"
	done
	absent dst.fcopy-part
}

@test "--shard: numbers are decimal, with leading zeros or without" {
	random src 3000000
	expect 0 --shard=000/03 src dst
	expect 0 --shard=01/3 src dst
	expect 0 --shard=2/03 src dst
	cmp src dst
}

@test "--shard: invalid values" {
	for value in 0 2/2 -1/2 0/0 a/2 1/ /2 finish finish/0 auto/0 autox 0/2x 0/100001 '0 /3' finish/00; do
		expect 2 --shard="$value" src dst
		mentions "--shard: invalid value '$value'"
	done
}

# launched VARIABLE=VALUE… -- STATUS ARG…
launched() {
	local -a vars=()
	while [ "$1" != -- ]; do
		vars+=("$1")
		shift
	done
	shift
	run --separate-stderr env "${vars[@]}" "$FCOPY" "${@:2}"
	demand "$1"
}

@test "--shard=auto: I and N from each launcher's pair of variables" {
	random src 3000000
	for family in 'SLURM_PROCID SLURM_STEP_NUM_TASKS' 'OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE' 'PMI_RANK PMI_SIZE'; do
		read -r index count <<<"$family"
		rm -rf dst dst.*
		for share in 0 1; do
			launched "$index=$share" "$count=2" -- 0 --shard=auto --json src dst
			[ "$(jq -c '[.shard, .shards]' <<<"$output")" = "[$share,2]" ]
		done
		committed
	done
}

@test "--shard=auto: a Slurm array counts from its minimum in its steps" {
	random src 3000000
	for id in 10 13; do
		launched SLURM_ARRAY_TASK_ID=$id SLURM_ARRAY_TASK_MIN=10 SLURM_ARRAY_TASK_COUNT=2 \
			SLURM_ARRAY_TASK_STEP=3 SLURM_PROCID=0 SLURM_NTASKS=4 -- 0 --shard=auto src dst
	done
	committed
	launched SLURM_ARRAY_TASK_ID=11 SLURM_ARRAY_TASK_MIN=10 SLURM_ARRAY_TASK_COUNT=2 \
		SLURM_ARRAY_TASK_STEP=3 -- 2 --shard=auto src dst
}

@test "--shard=auto/N: the index alone from PMIx, parallel and Kubernetes" {
	random src 3000000
	for family in 'PMIX_RANK 0 1' 'PARALLEL_SEQ 1 2' 'JOB_COMPLETION_INDEX 0 1'; do
		read -r index first second <<<"$family"
		rm -rf dst dst.*
		launched "$index=$first" -- 0 --shard=auto/2 src dst
		launched "$index=$second" -- 0 --shard=auto/2 src dst
		committed
		launched "$index=$first" -- 2 --shard=auto src dst
		says "fcopy: --shard: $index comes without a count: use --shard=auto/N"
	done
	launched PARALLEL_SEQ=0 -- 2 --shard=auto/2 src dst
	launched PARALLEL_SEQ=3 -- 2 --shard=auto/2 src dst
}

@test "--shard=auto/N: the launcher's own number of processes may be another one, or unknown" {
	random src 3000000
	local -a array=(SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=3 SLURM_PROCID=0)
	launched SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 -- 0 --json --shard=auto/3 src dst
	[ "$(jq -c '[.shard, .shards]' <<<"$output")" = '[1,3]' ]
	rm -r dst dst.fcopy-part
	launched SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 -- 0 --json --shard=auto/32 src dst
	[ "$(jq -c '[.shard, .shards]' <<<"$output")" = '[3,32]' ]
	rm -r dst dst.fcopy-part
	launched SLURM_PROCID=1 -- 0 --json --shard=auto/4 src dst
	[ "$(jq -c '[.shard, .shards]' <<<"$output")" = '[1,4]' ]
	rm -r dst dst.fcopy-part
	launched "${array[@]}" SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_STEP=2 -- 0 --json --shard=auto/8 src dst
	[ "$(jq -c '[.shard, .shards]' <<<"$output")" = '[1,8]' ]
	committed
	launched SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 -- 2 --shard=auto/3 src dst
	says "fcopy: --shard: invalid 'auto/3': SLURM_PROCID gives share 3, but the shares are 0 to 2"
	launched SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 PMI_RANK=2 PMI_SIZE=4 -- 2 --shard=auto/8 src dst
	mentions SLURM_PROCID PMI_RANK disagree
	launched SLURM_PROCID=1 OMPI_COMM_WORLD_RANK=2 -- 2 --shard=auto/8 src dst
	mentions SLURM_PROCID OMPI_COMM_WORLD_RANK disagree
}

@test "--shard=auto: two launchers that disagree are a usage error that names both" {
	launched SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 \
		-- 2 --shard=auto src dst
	mentions SLURM_PROCID SLURM_STEP_NUM_TASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE disagree
	launched SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 PMI_RANK=1 PMI_SIZE=2 -- 2 --shard=auto src dst
	mentions SLURM_PROCID PMI_RANK disagree
	launched SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 PMIX_RANK=2 -- 2 --shard=auto src dst
	mentions SLURM_PROCID PMIX_RANK disagree
	launched SLURM_PROCID=x SLURM_STEP_NUM_TASKS=4 -- 2 --shard=auto src dst
	mentions "SLURM_PROCID is 'x', not a number"
}

@test "--shard=auto without a launcher is a usage error, and no launcher shards without the option" {
	random src 3000000
	launched SLURM_PROCID=0 SLURM_NTASKS=4 -- 2 --shard=auto src dst
	says 'fcopy: --shard: SLURM_PROCID is set, but not SLURM_STEP_NUM_TASKS: use --shard=auto/N'
	launched A=1 -- 2 --shard=auto src dst
	mentions "no variables of a launcher are set"
	launched SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 PMI_RANK=1 PMI_SIZE=4 -- 0 src dst
	cmp src dst
	absent dst.fcopy-part
}
