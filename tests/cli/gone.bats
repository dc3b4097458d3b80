#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# SRC, or a directory in it, is removed or replaced as a whole while a tree is copied; a file is
# truncated while it is sent.

load helper

# delayed PATH COMMAND ARG…: COMMAND runs while fcopy ARG… waits to read the directory.
delayed() {
	local path=$1 command=$2
	shift 2
	rm -rf s d old new d.fcopy-part trace
	mkdir -p s/sub new
	for i in 1 2 3; do echo $i | tee s/sub/$i >new/$i; done
	[ ! -d keep ] || cp -a keep d
	status=0
	strace -f -qq -o trace -P "$PWD/$path" -e trace=getdents64 \
		-e inject=getdents64:delay_enter=1000000 "$FCOPY" "$@" s d 2>err >out &
	await said getdents64 trace
	eval "$command"
	wait $! || status=$?
	stderr=$(cat err)
	output=
}

@test "a directory of SRC that is removed or replaced before it is read: a warning; --strict: a failure" {
	need_strace
	local change
	for change in 'rm -r s/sub' 'mv s/sub old; mv new s/sub; rm -r old'; do
		delayed s/sub "$change" -a -j1
		demand 0
		says "fcopy: warning: s/sub: was removed or replaced before it could be read"
		delayed s/sub "$change" -a -j1 --strict
		demand 1
		mentions "fcopy: s/sub: was removed or replaced before it could be read"
		absent d
	done
	# A mirror removes nothing from the copy of one that was replaced.
	mkdir -p keep/sub
	echo mine >keep/sub/x
	delayed s/sub 'mv s/sub old; mkdir s/sub; rm -r old' --mirror -j1
	mentions "s/sub: was removed or replaced"
	holds mine d/sub/x
	rm -r keep
}

@test "a resumed copy of a directory that is removed is not taken for the present one" {
	need_strace
	mkdir -p s/sub
	echo old >s/sub/1
	ln -s nowhere s/broken
	expect 1 -aL s d
	[ -f d.fcopy-part/data/sub/1 ]
	rm s/broken
	echo new >s/sub/1
	status=0
	strace -f -qq -o trace -P "$PWD/s/sub" -e trace=getdents64 \
		-e inject=getdents64:delay_enter=1000000 "$FCOPY" -aL -j1 --resume s d 2>err &
	await said getdents64 trace
	rm -r s/sub
	mkdir s/sub
	wait $! || status=$?
	stderr=$(cat err) output=
	demand 1
	absent d
}

@test "SRC itself is removed, replaced or moved while a tree is copied: a failure" {
	need_strace
	local change how
	for change in 'rm -r s' 'mv s old; mkdir s' 'mv s old; ln -s old/none s' 'mv s old; mv new s; rm -r old'; do
		for how in s s/sub; do
			[ $how = s ] || [ "${change#rm}" = "$change" ] || continue
			delayed $how "$change" -a -j1
			demand 1
			mentions "fcopy: s"
			absent d
			# A merge, too.
			mkdir keep
			echo other >keep/other
			delayed $how "$change" -aT -j1
			demand 1
			holds other d/other
			rm -r keep
		done
	done
	# A symlink as SRC is no directory that was replaced.
	rm -rf s d real d.fcopy-part
	mkdir -p real/sub
	echo 1 >real/sub/1
	ln -s real s
	expect 0 -a s/ d
	expect 0 -rH s e
	expect 0 -rT s/. e
	diff -r real d
	diff -r real e
}

@test "SRC itself is removed, replaced or moved during a first mirror, or with --keep-going: nothing gets the name DST" {
	need_strace
	local change how
	for change in 'rm -r s' 'mv s old; mkdir s' 'mv s old; ln -s old/none s' 'mv s old; mv new s; rm -r old'; do
		for how in "--mirror" "-aT --delete" "-a --keep-going" "-aT --inplace --keep-going"; do
			# shellcheck disable=SC2086
			delayed s "$change" $how -j1
			demand 1
			mentions "fcopy: s"
			absent d
		done
	done
	# Also if an entry fails before; the next mirror is as the first one.
	delayed s 'ln -s /none/x s/sub/x; mv s old; mv new s' --mirror -L -j1
	demand 1
	absent d
	absent d.fcopy-part
	expect 0 --mirror s d
	diff -r s d
}

@test "storage that answers ENOENT for a directory that is there: a failure" {
	need_strace
	mkdir -p s/sub
	echo 1 >s/sub/1
	run --separate-stderr strace -f -qq -o trace -P s/sub -e trace=getdents64 \
		-e inject=getdents64:error=ENOENT "$FCOPY" -a s d
	demand 1
	injected
	mentions "fcopy: s/sub: getdents64: No such file or directory"
	absent d
}

@test "a file that is truncated while it is sent: the sender fails, and the receiver has no whole copy" {
	local mode sender
	for mode in auto readwrite sendfile splice mmap; do
		random f 3000000
		serve tcp-listen:0 out
		"$FCOPY" --limit-rate=1M -m $mode f tcp:127.0.0.1:$port 2>err &
		sender=$!
		await has_received 300000
		truncate -s 200000 f
		status=0
		wait $sender || status=$?
		stderr=$(cat err) output=
		demand 1
		mentions "fcopy: f: was truncated while it was copied"
		ended 1
		absent out
	done
	# One that has fewer bytes than its size says is no failure.
	"$FCOPY" /sys/kernel/mm/transparent_hugepage/enabled - 2>/dev/null | cat >out || true
	[ ! -e /sys/kernel/mm/transparent_hugepage/enabled ] || cmp out /sys/kernel/mm/transparent_hugepage/enabled
}

# has_received BYTES: the server has, into its unnamed file.
has_received() {
	pid=$server has_written "$1"
}

@test "the same to a pipe, and to a client of -k" {
	local sender client
	random f 3000000
	"$FCOPY" --limit-rate=1M f - 2>err >pipe.out &
	sender=$!
	await test -s pipe.out
	truncate -s 200000 f
	wait $sender || true # a file has its own end
	rm pipe.out # otherwise its bytes could be taken for those of the next copy
	mkfifo fifo
	random f 3000000
	cat fifo >pipe.out &
	"$FCOPY" --limit-rate=1M f fifo 2>err &
	sender=$!
	await test -s pipe.out
	truncate -s 20000 f
	status=0
	wait $sender || status=$?
	stderr=$(cat err) output=
	demand 1
	mentions "was truncated while it was copied"
	random f 3000000
	serve -k --limit-rate=1M f tcp-listen:0
	"$FCOPY" tcp:127.0.0.1:$port got 2>err &
	client=$!
	sleep 0.5
	truncate -s 20000 f
	status=0
	wait $client || status=$?
	[ $status = 1 ]
	absent got
	stop TERM
	wait $server || true
	grep -q "was truncated while it was copied" server.log
}
