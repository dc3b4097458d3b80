#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --resume of trees: copies that an earlier run completed, and a source that changes during the copy.

load helper
load tree

# killed_at_commit ARG…: fcopy is killed when it renames the complete tree.
killed_at_commit() {
	run strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=3 "$FCOPY" "$@"
}

@test "--resume interrupted while it compares: the complete copy stays in the part" {
	need_strace
	mkdir s
	random s/big 20000000
	killed_at_commit -r --resume s d
	cmp s/big d.fcopy-part/data/big
	strace -D -f -qq -o trace -e trace=pread64 -e inject=pread64:delay_enter=200000 \
		env --default-signal=INT "$FCOPY" -r --resume s d 2>/dev/null 3>&- &
	local pid=$! status=0
	await said 'pread64(.*, 1048576,' trace
	kill -INT $pid
	wait $pid || status=$?
	[ $status = 130 ]
	absent d
	cmp s/big d.fcopy-part/data/big
	expect 0 -r --resume s d
	cmp s/big d/big
}

@test "--resume: an entry that the source gets again during the copy is not committed as it was before" {
	need_strace
	mkdir s
	echo old >s/x
	random s/big 6000000
	ln -s nowhere s/y
	expect 1 -rL s d
	[ -f d.fcopy-part/data/x ]
	rm s/x s/y
	random s/big 6000001
	# While one thread copies, the other one reads the directory to its end.
	strace -D -f -qq -o trace -P s -e trace=getdents64 "$FCOPY" -rL -j2 --resume --limit-rate=1M s d 2>err 3>&- &
	pid=$!
	await said 'getdents64.*= 0$' trace
	echo newer >s/x
	local status=0
	wait $pid || status=$?
	[ $status = 1 ] || { cat err; ls -l d d.fcopy-part; return 1; }
	absent d
	grep -q "s: got an entry during the copy of which the part has an old copy" err || { cat err; return 1; }
	expect 0 -rL --resume s d
	diff -r s d
}

@test "--resume: a directory of the source that is removed during the copy is a warning" {
	mkdir -p s/sub
	echo 1 >s/sub/a
	random s/sub/big 6000000
	ln -s nowhere s/y
	expect 1 -rL s d
	rm s/y
	random s/sub/big 6000001
	"$FCOPY" -rL -j1 --resume --limit-rate=3M s d 2>err 3>&- &
	pid=$!
	await has_written 500000
	rm -r s/sub
	local status=0
	wait $pid || status=$?
	never grep -q getdents64 err
	[ $status = 0 ] || { cat err; return 1; }
	grep -q 'warning: s/sub/big: was replaced or removed' err || { cat err; return 1; }
}

@test "--resume of a file through a symlink: the message names the part that exists" {
	mkdir into e
	echo old >e/x
	ln -s ../e/x into/a
	random a 5000000
	"$FCOPY" --resume --limit-rate=1M -t into a 2>err 3>&- &
	await test -s e/x.fcopy-part
	kill -TERM $!
	wait $! || [ $? = 143 ]
	grep -qF "$T/e/x.fcopy-part" err || { cat err; return 1; }
	[ -f e/x.fcopy-part/data ]
}

@test "--resume of several trees: the second is treated as if it were alone" {
	mkdir -p s1 s2 d
	chmod 777 .
	echo 1 >s1/f
	echo 2 >s2/g
	ln -s nowhere s1/x
	! is_root || chown -R 65534:65534 s1 s2 d
	as_nobody 1 -rL s1 d
	rm s1/x
	as_nobody 0 -rL --resume s1 s2 d
	holds 2 d/s2/g
	holds 1 d/s1/f
}
