#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A late retry of a tree in shards, and the receipt.

load helper
load shard
load shard_tree

@test "a late retry accepts the receipt, and makes no DST/SRC" {
	make_source
	shards 2 -a
	expect 0 -a --shard=1/2 --json s t
	[ "$(jq -c '[.shard, .shards, .committed, .tree.committed]' <<<"$output")" = '[1,2,true,true]' ]
	committed
	expect 0 -a --shard=1/2 -T s t
	committed
}

@test "a late retry compares the source with what was committed, and refuses if it has changed below" {
	local change
	for change in 'printf X >s/d/5' 'touch s/d/e/new' 'rm s/d/e/7' 'mv s/d/8 s/d/88' 'ln s/d/6 s/d/66'; do
		chmod -R u+rwx s t 2>/dev/null || true
		rm -rf s t t.*
		make_source
		shards 2 -a
		cp -a t before
		sleep 0.01
		chmod u+w s/d/e # a user may change what is in it only then
		eval "$change"
		chmod 500 s/d/e
		for share in 0 1; do
			expect 1 -a --shard=$share/2 --json s t
			mentions 'fcopy: t: is complete, but of another job, or of an earlier SRC: rename DST and run again'
			[ "$(jq .committed <<<"$output")" = false ]
		done
		expect 0 -a --shard=finish/2 s t # it compares nothing
		says ''
		diff <(describe before) <(describe t)
		chmod -R u+rwx before
		rm -r before
		mv t moved
		shards 2 -a
		committed
		chmod -R u+rwx moved
		rm -r moved
	done
}

@test "a late retry compares what identifies a single source, too: a change of mode is not one of SRC" {
	make_source
	shards 2 -a
	chmod 600 s/d/5
	for share in 0 1; do
		expect 0 -a --shard=$share/2 --json s t
		[ "$(jq -c '[.committed, .bytes]' <<<"$output")" = '[true,0]' ]
	done
	[ "$(stat -c %a t/d/5)" != 600 ]
	left_only_receipt t
}

@test "a late retry opens no file, and is silent if the source is unchanged" {
	need_strace
	make_source
	shards 2 -a
	echo changed >t/d/5 # DST may be used as soon as it is there
	cat s/d/5 >/dev/null
	strace -qq -f -e trace=openat -o trace "$FCOPY" -a --shard=0/2 s t
	! grep -E '"(5|sparse|hard)"' trace || false
	[ "$(cat t/d/5)" = changed ]
}

@test "a retry flushes the directory of DST if the commit could not" {
	need_strace
	make_source
	part 0 -a --shard=0/2
	# Its first fsync is that of the markers.
	run strace -qq -f -y -o trace -e inject=fsync:error=EIO:when=2 "$FCOPY" -a --shard=1/2 s t
	[ "$status" = 1 ] || { echo "status $status: $output"; return 1; }
	[ -d t ]
	strace -qq -f -y -e trace=fsync -o trace "$FCOPY" -a --shard=1/2 s t
	grep -qF "<$(realpath .)>)" trace || { cat trace; return 1; }
	diff <(describe s) <(describe t)
}

@test "DST is the copy, with -T or without: a directory that exists already is refused" {
	local dst option
	make_source
	mkdir t
	for dst in t t/ ./t; do
		for option in -a -aT; do
			expect 2 $option --shard=0/2 s $dst
			mentions "${dst%/}: exists: shards only make a new tree"
			[ -z "$(ls -A t)" ]
			absent t.fcopy-part
		done
	done
	for share in 0 1; do expect 0 -a --shard=$share/2 s t/s; done
	diff <(describe s) <(describe t/s)
}

@test "a late retry without the receipt, with -T or without: refused, and DST is unchanged" {
	local option
	make_source
	shards 2 -a
	rm -r t.fcopy-part
	cp -a t before
	for option in -a -aT; do
		for share in 0 1; do
			expect 2 $option --shard=$share/2 s t
			mentions 't: exists: shards only make a new tree'
		done
		expect 2 $option --shard=finish/2 s t
	done
	diff <(describe before) <(describe t)
	absent t.fcopy-part
}

@test "a receipt is in no other copy's way" {
	make_source
	shards 1 -a
	mv t moved
	expect 0 -a s t # another copy needs the name
	absent t.fcopy-part
}

@test "the receipt of a tree that was moved away: a retry is refused, and nothing is copied into a new DST" {
	mkdir s
	echo x >s/f
	expect 0 -r --shard=0/1 s t
	mv t elsewhere
	mkdir t
	expect 2 -r --shard=0/1 s t
	mentions "t: exists"
	[ -z "$(ls t)" ]
}
