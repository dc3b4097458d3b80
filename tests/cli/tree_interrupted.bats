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
	for n in 2 3; do # the copy is complete, and in use
		rm -rf d
		run strace -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=$n \
			"$FCOPY" -a --resume s d
		echo more >>d/d/f
		expect 0 -a --resume s d
		holds $'data\nmore' d/d/f
		[ "$(ls -A)" = $'d\ns' ]
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
