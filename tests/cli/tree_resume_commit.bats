#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --resume of a tree: what happens just before its commit.

load helper
load tree

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
	grep -q "s: got an entry during the copy; the part has an earlier copy under that name" err || { cat err; return 1; }
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
	await test ! -e d.fcopy-part/data/sub/big # the old copy is removed when the source is open
	rm -r s/sub
	local status=0
	wait $pid || status=$?
	never grep -q getdents64 err
	[ $status = 0 ] || { cat err; return 1; }
	grep -q 'warning: s/sub/big: was replaced or removed' err || { cat err; return 1; }
}

@test "--resume --keep-going: a directory that cannot be read is not committed as an earlier run left it" {
	need_strace
	mkdir -p s/d
	echo old >s/d/f
	echo 1 >s/g
	run strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=3 \
		"$FCOPY" -r --resume s t
	[ -f t.fcopy-part/data/d/f ]
	echo newer >s/d/f
	run --separate-stderr strace -f -qq -o /dev/null -P "$T/s/d" \
		-e inject=getdents64:error=EIO:when=1 "$FCOPY" -r --resume --keep-going s t
	[ "$status" = 1 ]
	absent t
	mentions "t.fcopy-part: kept"
	expect 0 -r --resume --keep-going s t
	diff -r s t
}

# part_fails ERROR: the look at the part before the commit fails. On a busy machine there may be another call before it:
# then they are counted again.
part_fails() {
	local n try
	for try in 1 2 3 4 5; do
		rm -rf d d.fcopy-part
		traced 0 trace=newfstatat -r --resume -j1 s d
		n=$(nth newfstatat '"d\.fcopy-part", \{')
		rm -r d
		traced 1 "inject=newfstatat:error=$1:when=$n" -r --resume -j1 s d || continue
		! grep -q '"d\.fcopy-part".*INJECTED' trace || return 0
	done
	echo "the call was not met in $try tries"
	return 1
}

@test "--resume: before the commit, the part cannot be examined, or is no longer there" {
	need_strace
	mkdir s
	echo a >s/a
	part_fails EIO
	says "fcopy: d: stat: Input/output error" "fcopy: d.fcopy-part: kept, unfinished; d not created" \
		"fcopy: hint: fix the cause and run the command again with --resume; or commit without the failed entries: --resume --keep-going"
	absent d
	part_fails ENOENT
	says "fcopy: d: its .fcopy-part was moved or replaced during the copy"
	absent d
}

@test "--resume of one new tree by two copies: the second finds what the first has committed since it looked" {
	need strace
	mkdir s
	random s/a 100000
	echo b >s/b
	strace -f -o trace -e trace=mkdirat -e inject=mkdirat:delay_enter=1000000:when=1 \
		"$FCOPY" -a --resume --stats s d >out 2>err &
	await grep -qs mkdirat trace
	[ ! -e d ]
	expect 0 -a --resume s d
	wait $! || { cat err; return 1; }
	grep -qx "  unchanged *2" err || { cat err; return 1; }
	diff -r s d
	[ "$(echo d*)" = d ]
	grep -q DELAYED trace
}
