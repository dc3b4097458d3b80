#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard of one file: several processes make one copy, and DST is whole or absent.

load helper
load shard

# DST is whole, and of the job only the receipt is left.
@test "four shards that are run one after the other: the first one makes the whole file" {
	random src 9000000
	for share in 2 0 3 1; do
		expect 0 --shard=$share/4 --json src dst
		[ "$(jq .committed <<<"$output")" = true ]
		committed
	done
	[ "$(jq .bytes <<<"$output")" = 0 ]
}

@test "each of four shards copies the chunks that no other one has, and DST is absent until the last one" {
	random src 9000000
	for share in 2 0 3; do
		apart 0 --shard=$share/4 src dst
		says ''
		absent dst
	done
	[ "$(stat -c %s dst.fcopy-part/data)" = 9000000 ]
	[ "$(stat -c %a dst.fcopy-part)" = 700 ]
	[ "$(markers dst)" = 3 ]
	apart 0 --shard=1/4 src dst
	committed
}

@test "the ranges of shards begin and end at multiples of 1 MiB" {
	random src 9000000
	apart 0 --shard=1/4 src dst
	[ -e dst.fcopy-part/share.done.1 ]
	cmp <(tail -c +2097153 src | head -c 2097152) <(tail -c +2097153 dst.fcopy-part/data | head -c 2097152)
	cmp -n 2097152 dst.fcopy-part/data /dev/zero
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
	rm -r dst dst.fcopy-part
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

@test "finish counts the missing chunks and exits 1; then it commits" {
	random src 9000000
	expect 1 --shard=finish/6 src dst
	mentions 'dst: 6 of 6 chunks are missing'
	absent dst.fcopy-part
	apart 0 --shard=1/6 src dst
	apart 0 --shard=4/6 src dst
	expect 1 --shard=finish/6 src dst
	says 'fcopy: dst: 4 of 6 chunks are missing' 'fcopy: hint: run any share again'
	for share in 0 2 3; do apart 0 --shard=$share/6 src dst; done
	expect 1 --shard=finish/6 src dst
	mentions 'dst: 1 of 6 chunks are missing'
	expect 0 --shard=5/6 src dst
	committed
	expect 0 --shard=finish/6 src dst
}

@test "a part that something truncated after a marker is refused" {
	random src 3000000
	apart 0 --shard=0/3 src dst
	truncate -s 1500000 dst.fcopy-part/data
	expect 1 --shard=1/3 src dst
	mentions 'its .fcopy-part was truncated' \
		'hint: to start over, remove dst.fcopy-part while no shard runs'
	absent dst
	cp src other
	mv other dst.fcopy-part/data # not cp: the inode number could come back
	expect 1 --shard=1/3 src dst
	mentions 'the data in its .fcopy-part was replaced'
	absent dst
}

@test "-v says whether the shard has committed" {
	random src 3000000
	apart 0 -v --shard=0/2 src dst
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

@test "a late shard replaces nothing that DST has become since; without DST the job starts over" {
	local share
	random src 3000000
	shards 2
	echo changed >>dst
	cp dst changed
	for share in 0/2 1/2 finish/2; do
		expect 1 --shard=$share src dst
		says 'fcopy: dst: was complete, and has changed since: rename DST and run again'
		cmp changed dst
	done
	mv changed dst # another inode
	expect 1 --shard=0/2 src dst
	mentions 'dst: was complete, and has changed since'
	expect 0 --shard=0/2 --job=next src dst # another job replaces it
	committed
	rm -r dst dst.fcopy-part
	shards 2
	rm dst
	apart 0 --shard=0/2 src dst
	absent dst
	apart 0 --shard=1/2 src dst
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

@test "a second job with another N or name is refused, and nothing is mixed" {
	random src 4000000
	apart 0 --shard=0/2 --job=one src dst
	find dst.fcopy-part -printf '%p %s %T@\n' | sort >before
	expect 1 --shard=0/3 src dst
	mentions 'dst: its shards were begun with N = 2, not 3' \
		'hint: to start over, remove dst.fcopy-part while no shard runs'
	expect 1 --shard=finish/3 src dst
	expect 1 --shard=1/2 --job='an other' src dst
	mentions 'dst: its shards were begun with --job=one'
	find dst.fcopy-part -printf '%p %s %T@\n' | sort | diff before -
	expect 0 --shard=1/2 --job=one src dst
	committed
	expect 0 --shard=1/2 --job='an other' src dst # a new job
	expect 0 --shard=0/2 --job='an other' --json src dst
	[ "$(jq -c '[.committed, .bytes]' <<<"$output")" = '[true,0]' ]
	committed
	apart 0 --shard=0/2 src other
	expect 1 --shard=1/2 --job=one src other
	mentions 'other: its shards were begun with no --job'
}

@test "a second job with another source is refused" {
	random src 4000000
	random other 4000000
	apart 0 --shard=0/2 src dst
	expect 1 --shard=1/2 other dst
	mentions 'begun with another source or options, or the source has changed'
	expect 0 --shard=1/2 src dst
	committed
}

@test "a source that changes between two shards is refused, and an old DST stays" {
	random src 4000000
	echo old >dst
	apart 0 --shard=0/2 src dst
	sleep 0.01
	printf x | dd of=src bs=1 seek=3000000 conv=notrunc status=none
	expect 1 --shard=1/2 src dst
	mentions 'or the source has changed'
	holds old dst
	[ "$(markers dst)" = 1 ]
	expect 1 --shard=finish/2 src dst
	holds old dst
}

@test "a source that is replaced while a shard runs is refused" {
	random src 4000000
	cp src new
	"$FCOPY" --limit-rate=1M --shard=1/2 src dst 2>err &
	pid=$!
	await cmp -s -i 2097152 -n 65536 src dst.fcopy-part/data
	mv new src
	! wait $pid || false
	grep -q 'SRC changed between the shards' err
	absent dst
}

@test "a part of an earlier --resume is refused, and --resume refuses the part of shards" {
	random src 4000000
	mkdir -m 700 dst.fcopy-part
	expect 1 --shard=0/2 src dst
	mentions 'its .fcopy-part has no journal' 'hint: remove or rename dst.fcopy-part'
	rmdir dst.fcopy-part
	timeout --foreground -s KILL 1 "$FCOPY" --limit-rate=500K --resume src dst || true
	[ -f dst.fcopy-part/journal ]
	expect 1 --shard=0/2 src dst
	mentions 'an earlier copy left its .fcopy-part'
	rm -r dst.fcopy-part
	apart 0 --shard=0/2 src dst
	expect 1 --resume src dst
	mentions 'dst: its .fcopy-part belongs to a copy in shards'
	expect 0 --shard=1/2 src dst
	committed
	expect 0 --resume src dst # a receipt is in nobody's way
	echo more >>src
	expect 0 --resume src dst
	absent dst.fcopy-part
}

@test "shards share the lock of the part, and the commit needs it alone" {
	need flock
	random src 2000000
	apart 0 --shard=0/2 src dst
	flock -x dst.fcopy-part/share.claim.1 "$FCOPY" --shard=0/2 src dst # another process has chunk 1
	absent dst
	flock -s dst.fcopy-part/lock "$FCOPY" --shard=1/2 src dst 2>err
	grep -q 'not committed yet' err
	flock -s dst.fcopy-part/lock "$FCOPY" --shard=finish/2 src dst 2>err && false
	grep -q 'another fcopy is using its .fcopy-part' err
	absent dst
	[ "$(markers dst)" = 2 ]
	expect 0 --shard=1/2 src dst
	committed
}

@test "a shard takes over the chunk of a process that was killed" {
	random src 8000000
	"$FCOPY" --limit-rate=1M --shard=0/2 src dst &
	pid=$!
	await cmp -s -n 65536 src dst.fcopy-part/data
	"$FCOPY" --limit-rate=6M --shard=1/2 src dst &
	other=$!
	kill -KILL $pid
	wait $pid || true
	wait $other
	committed
}

@test "the same share twice at once: both succeed, and the copy is whole" {
	random src 4000000
	local round
	for round in 1 2 3 4 5; do
		rm -rf dst dst.*
		"$FCOPY" --shard=0/2 src dst &
		other=$!
		expect 0 --shard=0/2 src dst
		wait $other
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
	apart 0 --shard=0/2 --json src dst
	[ "$(jq -c '[.shard, .shards, .committed, .bytes]' <<<"$output")" = '[0,2,false,1048576]' ]
	expect 0 --shard=1/2 --json src dst
	[ "$(jq -c '[.shard, .shards, .committed, .bytes]' <<<"$output")" = '[1,2,true,1951424]' ]
	expect 1 --shard=finish/3 --json src other
	[ "$(jq -c '[.shard, .shards, .committed]' <<<"$output")" = '[null,3,false]' ]
	expect 0 --json src plain
	[ "$(jq -c '[.shard, .shards, .committed]' <<<"$output")" = '[null,null,null]' ]
}

@test "--shard is always flushed: data, then marker, then the rename" {
	need_strace
	random src 2000000
	apart 0 --shard=0/2 src dst
	strace -f -y -o trace "$FCOPY" --shard=1/2 src dst
	grep -nE 'fsync\(|share\.done\.1|renameat' trace | grep -v ENOENT >order
	marker=$(grep -n 'share\.done\.1.*O_EXCL' order | cut -d: -f1)
	rename=$(grep -n 'renameat' order | cut -d: -f1)
	head -n "$((marker - 1))" order | grep -q 'fsync(.*/data>'
	[ "$marker" -lt "$rename" ]
	tail -n +"$rename" order | grep -q 'fsync('
}

@test "a full disk fails the shard, and the copy can go on" {
	is_root || skip "needs root to mount"
	mkdir m
	mount -t tmpfs -o size=6m tmpfs m || skip "no tmpfs"
	random src 8000000
	run "$FCOPY" --shard=0/2 src m/dst
	first=$status
	run "$FCOPY" --shard=1/2 src m/dst
	second=$status
	[ -e m/dst ] && whole=1 || whole=0
	mount -o remount,size=20m m
	"$FCOPY" --shard=1/2 src m/dst
	cmp src m/dst
	umount m
	[ "$first $second $whole" = "1 1 0" ]
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
	local runs
	for runs in {1..6}; do # tests/long/shard-kill.sh has more
		rm -rf dst dst.*
		"$FCOPY" --shard=0/3 src dst &
		other=$!
		for share in 1 2; do
			printf -v instant '0.%03d' $((RANDOM % 50 + 1))
			timeout --foreground -s KILL "$instant" "$FCOPY" --shard=$share/3 src dst 2>/dev/null || true
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
	absent d/dst.fcopy-part
}
