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
	expect 1 -T a d
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

@test "--resume: a name that leaves no room for .fcopy-part" {
	local name
	name=$(printf '%0250d' 0)
	echo data >a
	expect 1 --resume a "$name"
	mentions "open of its .fcopy-part: File name too long"
	absent "$name"
	expect 0 a "$name"
}

@test "--resume: a refusal names the file that is in the way" {
	echo data >a
	echo secret >victim
	ln -s victim b.fcopy-part
	expect 1 --resume a b
	mentions 'b: open of its .fcopy-part'
	rm b.fcopy-part
	mkdir b.fcopy-part
	expect 1 --resume a b
	mentions 'b: open of its .fcopy-part'
}

@test "--resume: interrupted, then gone on with, to the same bytes" {
	random a 9000000
	local status=0
	# So slow that it cannot be done before the signal, however busy the machine is.
	env --default-signal=INT "$FCOPY" --resume --limit-rate=50K a b 2>/dev/null &
	await test -s b.fcopy-part
	kill -INT $!
	wait $! || status=$?
	[ $status = 130 ]
	absent b
	[ -s b.fcopy-part ]
	cmp -n "$(stat -c %s b.fcopy-part)" a b.fcopy-part
	expect 0 --resume a b
	cmp a b
	absent b.fcopy-part
	expect 0 --json --resume a c
	cmp a c
}

@test "--resume and --verify of what is no file: the culprit is named, and nothing is made" {
	echo data >a
	mkfifo pipe
	local reason="only a copy from a file to a file can be resumed"
	expect 2 --resume /dev/null b
	says "fcopy: /dev/null: $reason"
	expect 2 --resume a pipe
	says "fcopy: pipe: $reason"
	expect 2 --resume - b <a
	says "fcopy: -: $reason"
	expect 2 --verify a pipe
	says "fcopy: pipe: cannot be verified: only a file or a block device can be read back"
	expect 1 --verify - b splice <a
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

@test "-n: an EEXIST of any call but the commit's is a failure, not a file that was kept" {
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
		[[ $output == *'"kept": false'* ]] || { echo "$output"; return 1; }
		absent b
		rm -f b.fcopy-part
	done
}

@test "-r: a tree that only failed to get its name or mode is kept with the times that --resume needs" {
	need_strace
	local call option
	make_small s
	for call in renameat2:error=EIO:when=1 fchmod:error=EIO:when=2; do
		for option in -j1 -j4 --keep-going; do
			[ "$call $option" != "fchmod:error=EIO:when=2 --keep-going" ] || continue # commits
			rm -rf d
			traced 1 inject=$call -r $option s d
			injected
			kept d.fcopy-part
			expect 0 -r --resume --stats s d
			[[ $stderr =~ resumed\ +20[^0-9] ]] || { echo "$stderr"; return 1; }
			diff -r s d
		done
	done
}

@test "a symlink in place of a directory of the kept tree: the time of what it leads to stays" {
	need_strace
	make_small s
	mkdir canary
	touch -d 2001-02-03 canary/5
	strace -f -qq -o trace -e trace=renameat2 \
		-e inject=renameat2:error=EIO:delay_enter=2000000:when=1 "$FCOPY" -r s d 2>err 3>&- &
	pid=$!
	await said renameat2 trace
	mv .fcopy-*/d1 moved
	ln -s "$T/canary" "$(echo .fcopy-*)/d1"
	never wait $pid
	[ -L d.fcopy-part/d1 ]
	[ s/d2/6 -nt canary/5 ]
	[ "$(stat -c %Y canary/5)" = "$(date -d 2001-02-03 +%s)" ]
	[ "$(stat -c %y d.fcopy-part/d2/6)" = "$(stat -c %y s/d2/6)" ]
}

PROOF='complete files were on the disk'

@test "--resume after kill -9: size and time prove nothing, the bytes are compared" {
	make_small s
	"$FCOPY" -r --resume --limit-rate=200K s d &
	pid=$!
	await has_files 3
	kill -KILL $pid
	wait $pid || true
	never grep -q "$PROOF" "d.fcopy-part/$MARK"
	# What a power cut leaves: the size and the time, and zeros.
	file=$(cd d.fcopy-part && find . -name '[0-9]*' | head -n 1)
	dd if=/dev/zero of="d.fcopy-part/$file" bs=1 count=100 conv=notrunc status=none
	touch -r "s/$file" "d.fcopy-part/$file"
	expect 0 -r --resume --json s d
	diff -r s d
	[ "$(jq .tree.skipped <<<"$output")" -ge 1 ] || { echo "$output"; return 1; }
}

has_files() {
	[ "$(find d.fcopy-part -name '[0-9]*' 2>/dev/null | wc -l)" -ge "$1" ]
}

@test "a tree that is kept is flushed first, and its mark says so until files are added" {
	need_strace
	make_small s
	traced 1 inject=renameat2:error=EIO:when=1 -r s d
	grep -q "$PROOF" "d.fcopy-part/$MARK"
	in_order() { awk -v a="$1" -v b="$2" '$0 ~ a && !first { first = NR } $0 ~ b && !second { second = NR }
		END { exit !(first && second && first < second) }' trace; }
	in_order 'syncfs' "openat.*$MARK"
	# The next run makes files that are not on the disk yet.
	rm d.fcopy-part/d1/1
	"$FCOPY" -r --resume --limit-rate=2K s d &
	pid=$!
	await withdrawn
	kill -KILL $pid
	wait $pid || true
	# With --fsync each file is on the disk before it has its name.
	"$FCOPY" -r --resume --fsync --limit-rate=100K s f &
	pid=$!
	await proven f
	kill -KILL $pid
	wait $pid || true
	expect 0 -r --resume s d
	expect 0 -r --resume s f
	diff -r s d
	diff -r s f
}

withdrawn() {
	! grep -q "$PROOF" "d.fcopy-part/$MARK"
}

proven() {
	grep -qs "$PROOF" "$1.fcopy-part/$MARK"
}
