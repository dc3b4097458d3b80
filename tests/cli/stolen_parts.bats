#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What happens if a part is removed, moved or committed by somebody else while it is in use.

load helper
load shard

has_bytes() {
	[ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt 0 ]
}

@test "--resume: a part that was removed and begun again by another copy is not committed by the first" {
	local first second status=0
	random a 4000000
	"$FCOPY" --resume --limit-rate=2M a b 2>err 3>&- &
	first=$!
	await has_bytes b.fcopy-part/data
	kill -STOP $first
	mv b.fcopy-part away
	"$FCOPY" --resume --limit-rate=100K a b 2>/dev/null 3>&- &
	second=$!
	await has_bytes b.fcopy-part/data
	kill -CONT $first
	wait $first || status=$?
	[ $status = 1 ]
	[ "$(cat err)" = "fcopy: b: its .fcopy-part was moved or replaced during the copy" ] || { cat err; return 1; }
	absent b
	kill -TERM $second
	wait $second || true
	[ -f b.fcopy-part/data ]
}

@test "-r --resume: a part that was moved away and begun again by another copy is not committed by the first" {
	local first second status=0
	mkdir s
	random s/f 4000000
	"$FCOPY" -r --resume --limit-rate=2M s d 2>err 3>&- &
	first=$!
	await test -f d.fcopy-part/journal
	kill -STOP $first
	mv d.fcopy-part away
	"$FCOPY" -r --resume --limit-rate=100K s d 2>/dev/null 3>&- &
	second=$!
	await test -f d.fcopy-part/journal
	kill -CONT $first
	wait $first || status=$?
	[ $status = 1 ]
	absent d
	never grep 'kept' err
	kill -TERM $second
	wait $second || true
	[ -f d.fcopy-part/journal ]
}

@test "a process that only commits for other shards can be interrupted" {
	need_strace
	need flock pgrep
	local tracer status=0
	random src 3000000
	apart 0 --shard=0/2 src dst
	run --separate-stderr flock -s dst.fcopy-part/lock "$FCOPY" --shard=1/2 src dst # marker, no commit
	absent dst
	strace -qq -o /dev/null -e trace=fsync -e inject=fsync:delay_enter=2000000:when=1 \
		"$FCOPY" --shard=finish/2 src dst 2>/dev/null 3>&- &
	tracer=$!
	started() { pgrep -P $tracer -x fcopy >pid; }
	await started
	in_fsync() { grep -q '^74 ' "/proc/$(cat pid)/syscall"; } # x86-64
	[ "$(uname -m)" = x86_64 ] || skip "the number of fsync is that of x86-64"
	await in_fsync
	kill -TERM "$(cat pid)"
	wait $tracer || status=$?
	[ $status = 143 ]
	absent dst
	expect 0 --shard=finish/2 src dst
	cmp src dst
}

@test "a late retry of a committed job does not disturb the job that has begun since" {
	need_strace
	local late status=0
	random src 4000000
	shards 2
	: >trace
	strace -qq -o trace -e trace=flock -e inject=flock:delay_enter=3000000:when=1 \
		"$FCOPY" --shard=1/2 src dst 2>/dev/null 3>&- &
	late=$!
	await said 'flock(' trace
	rm dst
	apart 0 --shard=0/2 src dst
	wait $late || status=$?
	[ $status -le 1 ]
	expect 0 --shard=1/2 src dst
	cmp src dst
}

@test "a large file that becomes a symlink before the commit: refused, and no attribute of its target" {
	need_strace
	need setfattr getfattr flock
	mkdir s
	truncate -s 256M s/big
	echo x >other
	setfattr -n user.foreign -v 1 other 2>/dev/null || skip "no extended attributes here"
	# After the marker it waits for 3 s.
	strace -f -qq -o trace -e trace=fsync -e inject=fsync:delay_exit=3000000:when=1 \
		"$FCOPY" -a -j 1 --shard=0/1 s d 2>err 3>&- &
	pid=$!
	marked() { [ -n "$(find d.fcopy-part -name 'share.done.0' 2>/dev/null)" ]; }
	await marked
	mv s/big big.old
	ln -s ../other s/big
	wait $pid && status=0 || status=$?
	[ $status = 1 ] || { cat err; return 1; }
	grep -q '^fcopy: s/big: open: Too many levels of symbolic links$' err || { cat err; return 1; }
	absent d
}

@test "a late retry of a tree writes nothing into DST, even if an entry is missing for one call" {
	need_strace
	local n inode
	mkdir s
	echo 1 >s/f
	expect 0 -r --shard=0/1 s d
	inode=$(stat -c %i d/f)
	for ((n = 1; n < 40; n++)); do
		strace -f -qq -o trace -e trace=newfstatat,fstatat64 -e inject=newfstatat,fstatat64:error=ENOENT:when=$n \
			"$FCOPY" -r -j1 --shard=0/1 s d 2>/dev/null || true
		grep -q INJECTED trace || break
		[ "$(stat -c %i d/f)" = "$inode" ] || { echo "d/f was replaced at call $n"; return 1; }
	done
	[ $n -gt 5 ]
}
