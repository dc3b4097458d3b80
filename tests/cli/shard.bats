#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard of one file: several processes make one copy, and DST is whole or absent.

load helper
load shard

# DST is whole, and of the job only the receipt is left.
committed() {
	cmp src dst
	left_only_receipt dst
}

markers() {
	find dst.fcopy-shards -name 'share.*' | wc -l
}

@test "four shards make one file, which is absent until the last one" {
	random src 9000000
	for share in 2 0 3; do
		expect 0 --shard=$share/4 src dst
		says ''
		absent dst
	done
	[ "$(stat -c %s dst.fcopy-part)" = 9000000 ]
	[ "$(markers)" = 3 ]
	expect 0 --shard=1/4 src dst
	committed
}

@test "the ranges of shards begin and end at multiples of 1 MiB" {
	random src 9000000
	expect 0 --shard=1/4 src dst
	[ -e "$(echo dst.fcopy-shards/share.1.2097152-4194304.*)" ]
	cmp <(tail -c +2097153 src | head -c 2097152) <(tail -c +2097153 dst.fcopy-part | head -c 2097152)
	cmp -n 2097152 dst.fcopy-part /dev/zero
}

@test "concurrent shards of every mode make one whole file" {
	random src 5000001
	local mode i pid
	for mode in $(moving_modes); do
		rm -rf dst dst.*
		local -a pids=()
		for i in 0 1 2; do
			"$FCOPY" -m "$mode" --shard=$i/3 src dst 2>"err$i" &
			pids+=($!)
		done
		for pid in "${pids[@]}"; do wait "$pid" || { cat err*; return 1; }; done
		committed
	done
}

@test "more shards than MiB, and an empty file: every share still has its marker" {
	random src 2000000
	shards 5
	committed
	rm -r dst dst.fcopy-shards
	: >src
	shards 3
	committed
}

@test "the holes of a sparse file stay holes" {
	truncate -s 64M src
	printf x | dd of=src bs=1 seek=20000000 conv=notrunc status=none
	shards 4
	committed
	[ "$(stat -c %b dst)" -lt 2048 ]
}

@test "finish names the missing shares and exits 1; then it commits" {
	random src 9000000
	expect 1 --shard=finish/6 src dst
	mentions 'dst: missing shares 0-5 of 6'
	absent dst.fcopy-shards
	expect 0 --shard=1/6 src dst
	expect 0 --shard=4/6 src dst
	expect 1 --shard=finish/6 src dst
	says 'fcopy: dst: missing shares 0, 2-3, 5 of 6' \
		'fcopy: hint: run each missing share with --shard=I/6'
	for share in 0 2 3; do expect 0 --shard=$share/6 src dst; done
	expect 1 --shard=finish/6 src dst
	mentions 'dst: missing share 5/6'
	# A process that is killed after its marker leaves the commit to a retry.
	expect 0 --shard=5/6 src dst
	committed
	expect 0 --shard=finish/6 src dst
}

@test "an incomplete part that was moved to DST is not taken for the copy" {
	random src 3000000
	expect 0 --shard=0/3 src dst
	mv dst.fcopy-part dst
	expect 1 --shard=1/3 src dst
	mentions 'its .fcopy-part is gone'
	expect 1 --shard=finish/3 src dst
	mentions 'missing shares 1-2 of 3'
}

@test "a part that something truncated after a marker is refused" {
	random src 3000000
	expect 0 --shard=0/3 src dst
	truncate -s 1500000 dst.fcopy-part
	expect 1 --shard=1/3 src dst
	mentions 'its .fcopy-part was truncated'
	absent dst
}

@test "-v says whether the shard has committed" {
	random src 3000000
	expect 0 -v --shard=0/2 src dst
	[[ $output == *'flushed, not committed: other shards have not finished' ]]
	expect 0 -v --shard=1/2 src dst
	[[ $output == *'flushed, committed' ]]
	expect 0 -v --shard=1/2 src dst
	lists 'dst: committed'
}

@test "a late retry accepts the receipt, and does not copy again" {
	random src 3000000
	shards 3
	inode=$(stat -c %i dst)
	expect 0 --shard=1/3 --json src dst
	[ "$(jq -c '[.shard, .shards, .committed, .bytes]' <<<"$output")" = '[1,3,true,0]' ]
	[ "$(stat -c %i dst)" = "$inode" ]
	committed
}

@test "the receipt counts only while DST is the file that it names" {
	random src 3000000
	shards 2
	rm dst
	expect 0 --shard=0/2 src dst
	absent dst
	expect 0 --shard=1/2 src dst
	committed
	echo changed >>dst
	shards 2
	committed
}

@test "the next job, with another source or N, replaces the receipt" {
	random src 3000000
	shards 3
	shards 2
	committed
	random src 4000000
	shards 2
	committed
}

@test "a second job with another N is refused, and nothing is mixed" {
	random src 4000000
	expect 0 --shard=0/2 src dst
	find dst.fcopy-part dst.fcopy-shards -printf '%p %s %T@\n' | sort >before
	expect 1 --shard=0/3 src dst
	mentions 'dst: its shards were begun with N = 2, not 3' \
		'hint: to start over, remove dst.fcopy-part and dst.fcopy-shards while no shard runs'
	expect 1 --shard=finish/3 src dst
	find dst.fcopy-part dst.fcopy-shards -printf '%p %s %T@\n' | sort | diff before -
	expect 0 --shard=1/2 src dst
	committed
}

@test "a second job with another source is refused" {
	random src 4000000
	random other 4000000
	expect 0 --shard=0/2 src dst
	expect 1 --shard=1/2 other dst
	mentions 'begun with another source or options, or the source has changed'
	expect 0 --shard=1/2 src dst
	committed
}

@test "a source that changes between two shards is refused, and an old DST stays" {
	random src 4000000
	echo old >dst
	expect 0 --shard=0/2 src dst
	sleep 0.01
	printf x | dd of=src bs=1 seek=3000000 conv=notrunc status=none
	expect 1 --shard=1/2 src dst
	mentions 'or the source has changed'
	holds old dst
	[ "$(markers)" = 1 ]
	expect 1 --shard=finish/2 src dst
	holds old dst
}

@test "a source that is replaced while a shard runs is refused" {
	random src 4000000
	cp src new
	expect 0 --shard=0/2 src dst
	"$FCOPY" --limit-rate=500K --shard=1/2 src dst 2>err &
	pid=$!
	await cmp -s -i 2097152 -n 65536 src dst.fcopy-part
	mv new src
	! wait $pid || false
	grep -q 'its source changed between the shards' err
	absent dst
}

@test "a marker whose part is gone is refused, and the part is not made again" {
	random src 4000000
	expect 0 --shard=0/2 src dst
	cp src other # while the part exists, so that it cannot get the inode of the part
	rm dst.fcopy-part
	expect 1 --shard=1/2 src dst
	mentions 'dst: its .fcopy-part is gone'
	absent dst.fcopy-part
	mv other dst.fcopy-part
	expect 1 --shard=1/2 src dst
	absent dst
}

@test "a part of an earlier --resume is refused, and --resume refuses the part of shards" {
	random src 4000000
	head -c 1000000 src >dst.fcopy-part
	chmod 600 dst.fcopy-part
	expect 1 --shard=0/2 src dst
	mentions 'an earlier copy left its .fcopy-part'
	rm dst.fcopy-part
	expect 0 --shard=0/2 src dst
	expect 1 --resume src dst
	mentions 'dst: its .fcopy-part belongs to a copy in shards'
	expect 0 --shard=1/2 src dst
	committed
	expect 0 --resume src dst
}

@test "shards share the lock of the job, and the commit needs it alone; --resume excludes them by the part" {
	need flock
	random src 2000000
	expect 0 --shard=0/2 src dst
	flock -x dst.fcopy-part "$FCOPY" --shard=1/2 src dst 2>err && false
	grep -q 'another fcopy is using its .fcopy-part' err
	flock -s dst.fcopy-shards/job.* "$FCOPY" --shard=1/2 src dst 2>err
	grep -q 'not committed yet' err
	flock -s dst.fcopy-shards/job.* "$FCOPY" --shard=finish/2 src dst 2>err && false
	grep -q 'another fcopy is using its .fcopy-part' err
	absent dst
	[ "$(markers)" = 2 ]
	expect 0 --shard=1/2 src dst
	committed
}

part_has() { [ "$(stat -c %s dst.fcopy-part)" = "$1" ]; }

# duplicate STATUS: share 0 is copied twice; then share 1 ends while the first copy of share 0 runs.
duplicate() {
	rm -rf dst dst.*
	"$FCOPY" --limit-rate=600K --shard=0/2 src dst &
	late=$!
	await part_has 4000000
	expect 0 --shard=0/2 src dst
	expect 0 -v --json --shard=1/2 src dst
	kill -0 $late
	[ "$(jq .committed <<<"$output")" = false ]
	mentions 'warning: dst: not committed yet: another process is still copying a share and will commit;' \
		'not committed: other shards have not finished'
	absent dst
}

@test "a late duplicate of a complete share does not fail the last shard, and commits" {
	random src 4000000
	duplicate
	wait $late
	committed
}

@test "a late duplicate that is killed leaves the commit to a retry or to finish" {
	random src 4000000
	local share
	for share in 0 finish; do
		duplicate
		kill -KILL $late
		wait $late || true
		absent dst
		expect 0 --shard=$share/2 src dst
		committed
	done
}

@test "DST gets the mode of the source, or keeps the one that it had" {
	random src 2000000
	chmod 640 src
	shards 2
	[ "$(stat -c %a dst)" = 640 ]
	chmod 604 dst
	echo more >>src
	shards 2
	[ "$(stat -c %a dst)" = 604 ]
}

@test "an ordinary user's commit keeps the group of DST, as a single copy does" {
	is_root || skip "needs root to give a file away"
	random src 2000000
	chmod 644 src
	echo old >dst
	chown 65534:1 dst
	chmod 777 .
	install -m 755 "$FCOPY" fcopy
	for share in 0 1; do
		setpriv --reuid 65534 --regid 65534 --groups 65534,1 ./fcopy --shard=$share/2 src dst
	done
	committed
	[ "$(stat -c %u:%g dst)" = 65534:1 ]
}

@test "-p keeps times and mode, and a late retry is accepted although DST is read-only" {
	random src 2000000
	chmod 444 src
	touch -d '2001-02-03 04:05:06.789' src
	shards 2 -p
	committed
	[ "$(stat -c '%a %Y' dst)" = "$(stat -c '%a %Y' src)" ]
	expect 0 -p --shard=0/2 src dst
}

@test "--verify reads back the bytes of its share" {
	random src 4000000
	shards 2 --verify
	committed
}

@test "--json reports shard, shards and committed" {
	random src 3000000
	expect 0 --shard=0/2 --json src dst
	[ "$(jq -c '[.shard, .shards, .committed, .bytes]' <<<"$output")" = '[0,2,false,1048576]' ]
	expect 0 --shard=1/2 --json src dst
	[ "$(jq -c '[.shard, .shards, .committed, .bytes]' <<<"$output")" = '[1,2,true,1951424]' ]
	expect 1 --shard=finish/3 --json src other
	[ "$(jq -c '[.shard, .shards, .committed]' <<<"$output")" = '[null,3,false]' ]
	expect 0 --json src plain
	[ "$(jq -c '[.shard, .shards, .committed]' <<<"$output")" = '[null,null,null]' ]
}

@test "--shard is always flushed: data, then marker, then the rename" {
	need strace
	random src 2000000
	expect 0 --shard=0/2 src dst
	strace -f -o trace "$FCOPY" --shard=1/2 src dst
	grep -nE 'fsync\(|share\.1\.|renameat' trace | grep -v ENOENT >order
	marker=$(grep -n 'share\.1\..*O_EXCL' order | cut -d: -f1)
	rename=$(grep -n 'renameat' order | cut -d: -f1)
	[ "$(head -n "$((marker - 1))" order | grep -c 'fsync(')" -ge 2 ]
	[ "$marker" -lt "$rename" ]
	[ "$(tail -n +"$rename" order | grep -c 'fsync(')" -ge 1 ]
}

@test "a full disk fails the shard, and the others keep their bytes" {
	is_root || skip "needs root to mount"
	mkdir m
	mount -t tmpfs -o size=6m tmpfs m || skip "no tmpfs"
	random src 8000000
	run "$FCOPY" --shard=0/2 src m/dst
	first=$status
	run "$FCOPY" --shard=1/2 src m/dst
	second=$status
	[ -e m/dst ] && whole=1 || whole=0
	umount m
	[ "$first $second $whole" = "0 1 0" ]
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
	absent dst.fcopy-shards
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
		says "fcopy: --shard: $index does not say how many: use --shard=auto/N"
	done
	launched PARALLEL_SEQ=0 -- 2 --shard=auto/2 src dst
	launched PARALLEL_SEQ=3 -- 2 --shard=auto/2 src dst
}

@test "--shard=auto: two launchers that disagree are a usage error that names both" {
	launched SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 \
		-- 2 --shard=auto src dst
	mentions SLURM_PROCID SLURM_STEP_NUM_TASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE disagree
	launched SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 PMI_RANK=1 PMI_SIZE=2 -- 2 --shard=auto src dst
	mentions SLURM_PROCID PMI_RANK disagree
	launched SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 PMIX_RANK=2 -- 2 --shard=auto src dst
	mentions SLURM_PROCID PMIX_RANK disagree
	launched SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 -- 2 --shard=auto/3 src dst
	mentions 'auto/3, but SLURM_STEP_NUM_TASKS=4'
	launched SLURM_PROCID=x SLURM_STEP_NUM_TASKS=4 -- 2 --shard=auto src dst
	mentions "SLURM_PROCID is 'x', not a number"
}

@test "--shard=auto without a launcher is a usage error, and no launcher shards without the option" {
	random src 3000000
	launched SLURM_PROCID=0 SLURM_NTASKS=4 -- 2 --shard=auto src dst
	launched SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 PMI_RANK=1 PMI_SIZE=4 -- 0 src dst
	cmp src dst
	absent dst.fcopy-shards
}

@test "one file with -a, and DST that is a directory" {
	random src 3000000
	mkdir d
	expect 0 --shard=0/2 src d
	expect 0 --shard=1/2 src d
	cmp src d/src
	expect 0 --shard=0/2 src d
}

@test "a shard that is killed at any moment and retried: absent or whole, and only the receipt left" {
	random src 6000000
	local end=$((SECONDS + 5)) runs
	for ((runs = 0; runs < 6 || SECONDS < end; runs++)); do
		rm -rf dst dst.*
		"$FCOPY" --shard=0/3 src dst &
		other=$!
		for share in 1 2; do
			printf -v instant '0.%03d' $((RANDOM % 50 + 1))
			timeout -s KILL "$instant" "$FCOPY" --shard=$share/3 src dst 2>/dev/null || true
			[ ! -e dst ] || cmp src dst
			expect 0 --shard=$share/3 src dst
		done
		wait $other
		committed
	done
}

@test "an owner that cannot be kept is refused before the first byte" {
	need_root "to own a file of another user"
	mkdir d
	random d/src 100000
	echo old >d/dst
	chmod 666 d/dst
	chmod 777 d
	as_nobody 1 --shard=0/2 d/src d/dst
	mentions "its owner or group cannot be kept" "-f"
	never mentions "--inplace"
	absent d/dst.fcopy-part
	absent d/dst.fcopy-shards
}
