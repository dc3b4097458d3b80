#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Trees that were interrupted, killed or not committed: what is kept, and the same command again.

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

@test "--resume after kill -9: complete files are reused: each one of 1 MiB, and small ones that were copied slowly" {
	need_strace
	need jq
	local size n
	local -a option=()
	for size in 1048576 1000000; do
		rm -rf s d
		mkdir s
		for n in {1..4}; do
			random s/"$n" $size
		done
		traced 0 trace=openat -rT -j1 --resume s d
		n=$(grep openat trace | grep -nE '"[1-4]", .*O_CREAT' | sed -n 3p | cut -d: -f1)
		[ "$n" ]
		rm -rf d
		# Two files are complete when the third one is created. A small one takes more than a second.
		[ $size = 1048576 ] || option=(--limit-rate=800K)
		run strace -f -qq -o /dev/null -e trace=openat -e inject=openat:signal=KILL:when="$n" \
			"$FCOPY" -rT -j1 --resume "${option[@]}" s d
		absent d
		expect 0 -rT --resume --json s d
		jq -e "[.resumed, .tree.reused, .tree.files] == [2 * $size, 2, 2]" <<<"$output" ||
			{ echo "$output"; return 1; }
		diff -r s d
	done
}

@test "--resume after kill -9: small files are noted before a large one, and when their thread has nothing else to do" {
	need jq
	local threads small=s large=s/sub
	random big 40M
	for threads in 1 2; do
		mkdir -p s/sub
		touch $small/{1..3}
		ln big $large
		"$FCOPY" -rT -j$threads --resume --limit-rate=1M s d 2>/dev/null 3>&- &
		pid=$!
		await has_noted 3
		kill -KILL $pid
		wait $pid || true
		absent d
		expect 0 -rT --resume --json s d
		jq -e '.tree.reused == 3' <<<"$output" || { echo "$output"; return 1; }
		diff -r s d
		rm -rf s d
		small=s/sub large=s
	done
}

has_noted() {
	[ "$(grep -c ' done ' d.fcopy-part/journal 2>/dev/null)" = "$1" ]
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

@test "-a --resume killed at each call of commit and retire: the same command reports the copy as done" {
	local call n left
	need_strace
	mkdir -p s/d
	echo data >s/d/f
	for call in renameat2 unlinkat; do
		for n in 1 2 3 4; do
			rm -rf d
			run strace -f -qq -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=$n \
				"$FCOPY" -a --resume s d
			[ -n "$(find . -name '*.fcopy-part' -o -name '.fcopy-*')" ]
			left=$(find . -name journal)
			[ "$call $n" != "unlinkat 3" ] || [ "$left" ] # it goes last
			expect 0 -a --resume s d
			diff -r s d
			[ "$(ls -A)" = $'d\ns' ] || { echo "$call $n: $(ls -A)"; return 1; }
		done
	done
	for n in 2 3; do # the copy is complete, and in use: it is not the copy any more, and stays as it is
		rm -rf d
		run strace -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=$n \
			"$FCOPY" -a --resume s d
		echo more >>d/d/f
		expect 2 -a --resume s d
		mentions "d: exists and is not the complete copy"
		holds $'data\nmore' d/d/f
		[ "$(ls -A)" = $'d\ns' ]
	done
}

# killed_at CALL:N ARG…: the tree has its name, and what fcopy needed for it is still there.
killed_at() {
	run strace -f -qq -o /dev/null -e trace="${1%:*}" -e inject="${1%:*}:signal=KILL:when=${1#*:}" "$FCOPY" "${@:2}"
	[ "$(left)" ] || { echo "$1: nothing is left"; return 1; }
}

left() {
	find . -name '*.fcopy-part' -o -name '.fcopy-*'
}

@test "-a --resume killed between the rename and the end: another SRC, DST or other options are not taken for the copy" {
	local at change
	need_strace
	for at in renameat2:4 unlinkat:2 unlinkat:3; do
		for change in none src new mode gone options; do
			rm -rf s other d before
			mkdir -p s/dir other/dir
			echo one | tee s/one >other/one
			echo two | tee s/dir/two >other/dir/two
			echo three >other/dir/three
			ln -s one s/link
			killed_at $at -aT --resume s d
			case $change in
			new) echo new >s/dir/new ;;
			mode) chmod 700 s/dir ;;
			gone) rm d/dir/two ;;
			esac
			cp -a d before
			case $change in
			none) ;;
			src) expect 2 -aT --resume other d ;;
			options) expect 2 -rLT --resume s d ;;
			*)
				expect 2 -aT --resume --dry-run s d
				[ "$(left)" ]
				expect 2 -aT --resume s d
				;;
			esac
			[ $change = none ] || mentions "d: exists and is not the complete copy"
			diff -r --no-dereference before d
			[ "$(stat -c %a d/dir)" = 755 ]
			case $change in
			none | src | options) expect 0 -aT --resume s d ;; # the killed command: done
			*) expect 0 -aT s d ;;
			esac
			[ $change = gone ] || [ $change = new ] || diff -r --no-dereference s d
			[ -z "$(left)" ] || { echo "$at, $change: $(left)"; return 1; }
		done
	done
}

@test "--resume -t killed between the rename and the end: the same command completes what SRC has got since" {
	local at option
	need_strace
	for at in renameat2:4 unlinkat:2 unlinkat:3; do
		for option in -r -a; do
			rm -rf s t
			mkdir -p s/dir t
			echo one >s/dir/one
			killed_at $at $option --resume -t t s
			echo two >s/dir/two
			chmod 700 s
			expect 0 $option --resume -t t s
			diff -r s t/s
			[ $option = -r ] || [ "$(stat -c %a t/s)" = 700 ]
			[ -z "$(left)" ] || { echo "$at: $(left)"; return 1; }
		done
	done
}

@test "--resume: of a complete copy the attributes of directories are compared, too, as those of files are" {
	mkdir -p s/dir/sub
	echo one >s/dir/sub/one
	expect 0 -a --resume s d
	expect 0 -a --resume s d
	local at
	for at in s s/dir s/dir/sub; do
		touch -r $at stamp
		chmod 700 $at
		expect 2 -a --resume s d
		mentions "d: exists and is not the complete copy"
		expect 2 -a --resume --dry-run s d
		chmod 755 $at
		touch -d 2001-02-03 $at
		expect 2 -a --resume s d
		touch -r stamp $at
		expect 0 -a --resume s d
		if setfattr -n user.x -v 1 $at 2>/dev/null; then
			expect 2 -a --resume s d
			setfattr -x user.x $at
		fi
		if setfacl -d -m u:65534:rwx $at 2>/dev/null; then
			expect 2 -a --resume s d
			setfacl -k $at
			expect 0 -a --resume s d
		fi
		if is_root; then
			chown 65534 $at
			expect 2 -a --resume s d
			chown 0 $at
		fi
	done
	[ "$(stat -c %a d d/dir d/dir/sub | xargs)" = "755 755 755" ]
	chmod 700 s/dir # what -r does not copy is not compared
	expect 0 -r --resume s d
}

@test "--resume: SRC itself in DST, by a symlink or a hard link, is no copy" {
	local how
	mkdir s o
	echo one >s/one
	echo two >s/two
	for how in s "" l; do
		rm -rf d o/*
		mkdir d o/s
		cp -p s/two d
		cp -p s/two o/s
		case $how in
		s)
			ln -s ../s/one d/one
			ln -s ../../s/one o/s/one
			;;
		l)
			ln s/one d/one
			ln s/one o/s/one
			;;
		*) # to another file with the same bytes
			echo one >other
			touch -r s/one other
			ln -s ../other d/one
			ln -s ../../other o/s/one
			;;
		esac
		expect 2 -rT --resume s d
		mentions "d: exists and is not the complete copy"
		if [ $how ]; then
			expect 1 -r --resume -t o s
			mentions "o/s/one"
			expect 1 --resume s/one s/two o/s
			mentions "o/s/one"
		else
			expect 0 -r --resume -t o s # a merge follows it
		fi
		[ "$(cat s/one)" = one ]
		[ $how = l ] || [ -L d/one ]
	done
}

@test "-a --resume of a copy that is complete and has no part: equal is done, anything else is refused and unchanged" {
	mkdir -p s/d
	echo data >s/d/f
	ln s/d/f s/d/g
	ln -s f s/d/l
	mkfifo s/p
	chmod 640 s/d/f
	expect 0 -a --resume s t
	cp -a t before
	for option in "" --fsync; do
		expect 0 -a --resume --json $option s t
		jq -e '.done and .tree.committed and .tree.unchanged == 4 and .tree.files == 0' <<<"$output"
	done
	expect 2 -a --resume --verify s t # it would have to be read from the storage
	mentions "t: exists; whether it is the complete copy is not known with --verify: leave that out"
	chmod 600 s/d/f
	expect 2 -a --resume s t
	chmod 640 s/d/f
	expect 0 -a --resume s t
	ln -sf g s/d/l
	expect 2 -a --resume s t
	ln -sf f s/d/l
	mkdir s/new
	expect 2 -a --resume s t
	diff -r --no-dereference -x p before t # diff refuses FIFOs
	[ -p t/p ]
	[ "$(stat -c %a t/d/f)" = 640 ]
}

@test "--resume interrupted while it compares a complete copy: it stops, and says nothing else" {
	need_strace
	mkdir s
	touch s/{1..5}
	expect 0 -r --resume s d
	run --separate-stderr strace -f -qq -o trace -e trace=getdents64 -e inject=getdents64:signal=INT:when=2 \
		"$FCOPY" -r -j1 --resume s d
	demand 130
	says 'fcopy: stopped; d unchanged'
	diff -r s d
}

@test "--resume into a directory that exists takes the hidden directory of another copy for no part of this one" {
	need_strace
	mkdir s
	echo data >s/f
	run strace -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=2 "$FCOPY" -a --resume s d
	[ "$(find . -name journal | wc -l)" = 1 ]
	mv d e
	echo more >>s/f
	expect 2 -a --resume s e # another name
	holds data e/f
	mkdir d
	expect 2 -a --resume s d # another inode
	[ -z "$(ls d)" ]
}

@test "-r --resume: the tree is flushed before it gets its name" {
	need_strace
	mkdir s
	echo data >s/f
	traced 0 trace=syncfs,renameat,renameat2 -rT --resume s d
	order 'renameat2\(.*d\.fcopy-part' 'syncfs\(' 'renameat2?\(.*"d"'
}
