#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -n, -T and --resume: an existing file is left as it is, a directory is none, a planted file no trap.

load helper
load tree

@test "-n: an existing file is left, exit 0; a missing one is made" {
	echo new >a
	echo old >b
	expect 0 -n a b
	holds old b
	expect 0 --no-clobber a c
	holds new c
	expect 0 -nf a b
	holds old b
}

@test "-n: of two at once exactly one makes the file, and it is whole" {
	random a 3000000
	random b 3000000
	local _
	for _ in 1 2 3 4; do
		rm -f c
		"$FCOPY" -n a c & "$FCOPY" -n b c & wait
		cmp -s a c || cmp b c
	done
}

@test "-n: a file that appears during the copy is left as it is" {
	need_strace
	random a 100000
	strace -D -f -qq -o trace -e inject=linkat:delay_enter=2000000:when=2+ "$FCOPY" -n a b &
	pid=$!
	await has_written
	echo other >b
	wait $pid
	holds other b
}

@test "-T: a directory is refused, not entered" {
	echo data >a
	mkdir d
	expect 2 -T a d
	says "fcopy: d: is a directory"
	[ -z "$(ls d)" ]
	expect 0 -T a b
	cmp a b
}

@test "--resume: a planted symlink, hard link, FIFO or directory is neither followed nor written" {
	echo data >a
	echo secret >victim
	ln -s victim b.fcopy-part
	expect 1 --resume a b
	holds secret victim
	rm b.fcopy-part
	ln victim b.fcopy-part
	expect 1 --resume a b
	holds secret victim
	rm b.fcopy-part
	mkfifo b.fcopy-part
	expect 1 --resume a b
	rm b.fcopy-part
	mkdir b.fcopy-part
	expect 1 --resume a b
	absent b
}

@test "--resume: a name that leaves no room for .fcopy-part has a hash in the part" {
	local name
	name=$(printf '%0250d' 0)
	random a 100000
	(ulimit -f 64 && "$FCOPY" --resume a "$name") || true
	[[ $(ls -d ./*.fcopy-part) =~ ^./[0-9a-f]{16}\.fcopy-part$ ]]
	expect 0 --resume a "$name"
	mentions "resuming at 64 of 98 KiB"
	[ "$(ls)" = "$name"$'\n'a ]
}

@test "--resume: interrupted, then gone on with, to the same bytes" {
	random a 9000000
	local status=0
	# So slow that it cannot be done before the signal, however busy the machine is.
	env --default-signal=INT "$FCOPY" --resume --limit-rate=50K a b 2>/dev/null &
	await test -s b.fcopy-part/data
	kill -INT $!
	wait $! || status=$?
	[ $status = 130 ]
	absent b
	[ -s b.fcopy-part/data ]
	cmp -n "$(stat -c %s b.fcopy-part/data)" a b.fcopy-part/data
	expect 0 --resume a b
	cmp a b
	absent b.fcopy-part
	expect 0 --json --resume a c
	cmp a c
}

@test "--resume and --verify of what is no file: the culprit is named, and nothing is made" {
	echo data >a
	mkfifo pipe
	local reason="cannot be resumed: SRC and DST must be paths of files"
	expect 2 --resume /dev/null b
	says "fcopy: /dev/null: $reason"
	expect 2 --resume a pipe
	says "fcopy: pipe: $reason"
	expect 2 --resume - b <a
	says "fcopy: -: $reason"
	expect 2 --verify a pipe
	says "fcopy: pipe: cannot be verified: only a file or a block device can be read back"
	expect 2 --verify - b splice <a
	mentions "fcopy: -: can be read only once, and this mode does not see its bytes to sum them"
	[ "$(ls)" = $'a\npipe' ]
}

@test "--json and --benchmark into a full disk: exit 1" {
	echo data >a
	local option
	for option in --json --benchmark; do
		run --separate-stderr bash -c '"$0" "$1" a b >/dev/full' "$FCOPY" $option
		demand 1
		mentions "No space left on device"
	done
}

@test "-n: an EEXIST of any call but the commit's is a failure, not a file that was skipped" {
	need_strace
	random a 100000
	local call
	for call in pwrite64 fcntl; do
		traced 1 "inject=$call:error=EEXIST" -n a b 1
		injected
		mentions "File exists"
		absent b
		traced 1 "inject=$call:error=EEXIST" --json --resume -n a b 1
		injected
		[[ $output == *'"skipped": false'* ]] || { echo "$output"; return 1; }
		absent b
		rm -rf b.fcopy-part
	done
}

@test "-r: a tree that only failed to get its name is kept with all that --resume needs" {
	need_strace
	local option
	make_small s
	for option in -j1 -j4 --keep-going; do
		rm -rf d
		traced 1 inject=renameat2:error=EIO:when=2 -r $option s d
		injected
		kept d.fcopy-part
		expect 0 -r --resume --stats s d
		[[ $stderr =~ reused\ +20[^0-9] ]] || { echo "$stderr"; return 1; }
		diff -r s d
	done
}

@test "--resume after kill -9: what the journal notes is not copied again, the rest is" {
	random big 100000
	make_small s
	cp big s
	"$FCOPY" -r --resume --limit-rate=200K s d &
	pid=$!
	await has_files 8
	kill -KILL $pid
	wait $pid || true
	absent d
	# Complete but not noted, or half a file: neither counts.
	rm -f d.fcopy-part/data/big
	head -c 50000 big >d.fcopy-part/data/big
	expect 0 -r --resume s d
	diff -r s d
	absent d.fcopy-part
}

has_files() {
	[ "$(find d.fcopy-part/data -type f 2>/dev/null | wc -l)" -ge "$1" ]
}

@test "a tree that is kept is flushed first, and its journal says so" {
	need_strace
	make_small s
	traced 1 inject=renameat2:error=EIO:when=2 -r s d
	injected
	order syncfs 'flushed' 'fdatasync'
	[ "$(tail -n 1 d.fcopy-part/journal | cut -d' ' -f2-)" = flushed ]
	expect 0 -r --resume --fsync --stats s d
	[[ $stderr =~ reused\ +20[^0-9] ]] || { echo "$stderr"; return 1; }
	diff -r s d
}
