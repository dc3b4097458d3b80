#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --resume of trees: a source that has become private since, a file system with coarse times, and
# merges into a directory where files have parts.

load helper

@test "--resume: what has become private since the first run is private in the copy" {
	local option
	need_strace
	for option in -r -a; do
		rm -rf s t t.*
		mkdir -p s/d/private
		echo secret >s/d/f
		chmod 644 s/d/f
		chmod 755 s/d/private
		run strace -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=1 \
			"$FCOPY" $option --resume s t
		[ -f t.fcopy-part/d/f ]
		chmod 600 s/d/f
		chmod 700 s/d/private
		expect 0 $option --resume s t
		[ "$(stat -c %a t/d/f t/d/private | paste -sd' ')" = '600 700' ]
	done
}

@test "--resume where times have 1 s: files are compared by their bytes, not copied again" {
	need_root "to mount an image"
	need mkfs.ext4 jq strace
	truncate -s 64M image
	mkfs.ext4 -q -I 128 image 2>/dev/null
	mkdir m
	mkdir -p s/d
	for i in {1..20}; do echo "$i" >s/d/$i; done
	mkfifo s/d/fifo
	export FCOPY T
	# shellcheck disable=SC2016
	private_mounts 'mount -o loop image m || exit 99
		strace -f -qq -o /dev/null -e trace=mknodat -e inject=mknodat:error=EIO "$FCOPY" -r s m/t && exit 3
		[ -d m/t.fcopy-part ]
		echo 7x >s/d/7
		echo eight >s/d/8
		"$FCOPY" -r --resume --json s m/t >report
		diff -r s m/t 2>&1 | grep -v "is a fifo" && exit 4 || true'
	[ "$status" != 99 ] || skip "ext4 cannot be mounted here"
	demand 0
	[ "$(jq .tree.skipped report)" = 18 ]
}

# part FILE…: each has the unfinished copy of an earlier run.
part() {
	local file
	for file; do
		: >"$file.fcopy-part"
		chmod 600 "$file.fcopy-part"
	done
}

@test "-a --resume merged over names that are hard links in the source: they are one file then" {
	mkdir s d
	echo hello >s/a
	ln s/a s/b
	echo old >d/a
	echo old >d/b
	part d/a d/b
	expect 0 -aT --resume s d
	[ "$(stat -c %h d/a d/b | paste -sd' ')" = '2 2' ]
	holds hello d/a
}

@test "-a --resume merged: entries that have the names of parts are neither lost nor linked wrongly" {
	local i n
	mkdir s
	echo hello >s/a
	for i in {1..24}; do
		ln s/a s/b$i
		echo real >s/b$i.fcopy-part
		echo x >s/b$i.fcopy-part.fcopy-part
	done
	for ((n = 0; n < 20; n++)); do
		rm -rf d
		mkdir d
		for i in {1..24}; do echo old >d/b$i; done
		expect 0 -aT --resume s d
		diff -r s d
		[ "$(stat -c %h d/a)" = 25 ]
	done
}

@test "-a --resume merged: a symlink in DST leads to a file whose part is an entry of the source" {
	local name
	for name in a b c d e f; do # directories are read in an order of their own
		rm -rf s d
		mkdir -p s/sub s/$name d/sub d/$name
		echo linked >s/$name/l
		echo precious >s/sub/x.fcopy-part
		chmod 600 s/sub/x.fcopy-part
		echo old >d/sub/x
		ln -s ../sub/x d/$name/l
		expect 0 -aT --resume -j1 s d
		holds precious d/sub/x.fcopy-part
		holds linked d/sub/x
	done
}

# unfinished OPTION…: a first run of s to t, whose FIFO cannot be made.
unfinished() {
	need_strace
	mkfifo s/p
	run strace -f -qq -o /dev/null -e inject=mknodat:error=EIO "$FCOPY" "$@" s t
	[ -d t.fcopy-part ]
	absent t
}

@test "--resume: what has become public since the first run is public in the copy" {
	mkdir -p s/d
	echo 1 >s/f
	chmod 600 s/f
	chmod 700 s/d
	unfinished -r --resume
	chmod 755 s/f s/d
	expect 0 -r --resume s t
	[ "$(stat -c %a t/f t/d | paste -sd' ')" = '755 755' ]
}

@test "-a --resume: attributes that the source has lost, and a time that is a second later" {
	mkdir -p s/d
	echo 1 >s/f
	need setfattr
	setfattr -n user.k -v 1 s/f s/d 2>/dev/null || skip "no extended attributes here"
	touch -d '2020-01-01 00:00:00' s/f
	unfinished -a --resume
	setfattr -x user.k s/f
	setfattr -x user.k s/d
	touch -d '2020-01-01 00:00:01.7' s/f
	expect 0 -a --resume s t
	never getfattr -n user.k t/f
	never getfattr -n user.k t/d
	[ "$(stat -c %y t/f)" = "$(stat -c %y s/f)" ]
}

@test "--resume: a symlink of the part that cannot be removed is not followed to change a mode" {
	echo v >victim
	chmod 644 victim
	mkdir -p s/d
	ln -s "$T/victim" s/d/l
	unfinished -a --resume
	traced 1 inject=unlinkat:error=EPERM -a --resume s t
	injected
	[ "$(stat -c %a victim)" = 644 ]
}

@test "--resume --keep-going: nothing old remains of a directory that cannot be read" {
	local i line when
	umask 022
	mkdir -p s/d/below/below
	echo old | tee s/d/f s/d/gone s/d/below/below/f >/dev/null
	for i in {1..3000}; do echo $i >s/d/$i; done
	! is_root || chown 1000 s/d/7 s/d/below
	chmod 4755 s/d/7
	ln s/d/1 s/d/hard
	ln -s old s/d/symlink
	ln -s same s/d/same
	mkfifo s/d/fifo
	echo same | tee s/d/below/f s/d/below/below/g >/dev/null
	need_strace
	run strace -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=1 \
		"$FCOPY" -a --resume s t
	[ -d t.fcopy-part ]
	echo newer | tee s/d/f s/d/below/below/f >/dev/null
	! is_root || chown 1001 s/d/7 s/d/below
	chmod 600 s/d/7
	chmod 700 s/d/below
	ln -sf newer s/d/symlink
	rm s/d/gone
	mv s/d/9 s/d/file && mkdir s/d/9
	for when in 1 2; do
		rm -rf t part
		cp -a t.fcopy-part part
		run --separate-stderr strace -f -qq -o /dev/null -P "$T/s/d" \
			-e inject=getdents64:error=EIO:when=$when "$FCOPY" -a --resume --keep-going s t
		[ "$status" = 1 ]
		absent t/d/gone t/d/file
		cmp s/d/below/below/g t/d/below/below/g
		[ "$(readlink t/d/same)" = same ]
		[ -p t/d/fifo ]
		cmp t/d/1 t/d/hard
		for i in 7 below; do
			[ "$(stat -c '%u %a' t/d/$i)" = "$(stat -c '%u %a' s/d/$i)" ]
		done
		for i in {1..8} {10..3000}; do
			read -r line <t/d/$i
			[ "$line" = $i ]
		done
		# What could be read is new, and the rest is not there.
		for i in f symlink below/below/f 9; do
			if [ -e t/d/$i ] || [ -L t/d/$i ]; then
				diff -r --no-dereference s/d/$i t/d/$i
			else
				mentions "t/d/$i: was copied from another version of its source"
			fi
		done
		[ $when = 2 ] || absent t/d/f t/d/symlink t/d/below/below/f t/d/9
		rm -rf t.fcopy-part
		mv part t.fcopy-part
	done
}

@test "--resume of a file of another owner, as root: killed at its fsync, it is continued" {
	need_root "to change the owner"
	need_strace
	random s 3000000
	chown 33:33 s
	for signal in TERM KILL; do
		rm -f t t.*
		run strace -f -qq -o /dev/null -e inject=fsync,fdatasync:signal=$signal:when=1 \
			"$FCOPY" -p --resume --fsync s t
		[ -f t.fcopy-part ]
		expect 0 -p --resume --fsync -v s t
		cmp s t
		[ "$(stat -c %u t)" = 33 ]
	done
}

@test "--resume in a setgid directory: the copy has the bit, however often it is resumed" {
	mkdir -p s/d p
	chmod 2755 p
	echo 1 >s/d/f
	mkfifo s/p
	for _ in 1 2; do
		run strace -f -qq -o /dev/null -e inject=mknodat:error=EIO "$FCOPY" -r --resume s p/t
		[ -d p/t.fcopy-part ]
	done
	expect 0 -r --resume s p/t
	[ "$(stat -c %a p/t p/t/d | paste -sd' ')" = '2755 2755' ]
}

@test "--resume of a file: what an earlier run gave to the part admits nobody to the copy" {
	local by
	need_root "to give a file to a group"
	need setfacl getfacl strace
	umask 022
	for by in replaced preserved; do
		rm -f s t t.*
		echo public >s
		if [ $by = replaced ]; then
			echo old >t
			setfacl -m u:1000:r t 2>/dev/null || skip "no ACLs on this file system"
			chgrp 1001 t
			traced 1 inject=renameat:error=EIO:when=1 --resume s t
			rm t
		else
			setfacl -m u:1000:r s
			chgrp 1001 s
			traced 1 inject=renameat:error=EIO:when=1 -p --resume s t
		fi
		injected
		[ -f t.fcopy-part ]
		rm s
		echo secret >s
		chmod 640 s
		expect 0 --resume s t
		cmp s t
		[ "$(stat -c '%u:%g %a' t)" = "0:0 640" ]
		never grep 1000 <<<"$(getfacl -cpn t)"
	done
}

@test "one shard of a file: what a killed commit gave to the part admits nobody to the copy" {
	need_root "to give a file away"
	need setfacl getfacl strace
	echo new >s
	echo old >t
	chown 1000:1000 t
	setfacl -m u:1000:rw t 2>/dev/null || skip "no ACLs on this file system"
	run strace -f -qq -o /dev/null -e trace=renameat -e inject=renameat:signal=KILL:when=1 "$FCOPY" --shard=0/1 s t
	rm t
	expect 0 --shard=0/1 s t
	cmp s t
	[ "$(stat -c '%u:%g' t)" = 0:0 ]
	never grep 1000 <<<"$(getfacl -cpn t)"
}

@test "--resume of a file that others may write to: killed at its fsync, it is continued" {
	need_strace
	umask 002
	random s 3000000
	chmod 664 s
	run strace -f -qq -o /dev/null -e trace=fsync,fdatasync -e inject=fsync,fdatasync:signal=KILL:when=1 \
		"$FCOPY" --resume --fsync --verify s t
	[ -f t.fcopy-part ]
	expect 0 --resume --fsync --verify -v s t
	mentions "resumed"
	cmp s t
	[ "$(stat -c %a t)" = 664 ]
}

@test "--resume where times have 1 s: a tree that was killed at its rename is continued" {
	need_root "to mount an image"
	need mkfs.ext4 strace
	truncate -s 64M image
	mkfs.ext4 -q -I 128 image 2>/dev/null
	mkdir m s
	echo 1 >s/f
	touch -d '2024-01-01 00:00:00.123456789' s/f
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -o loop image m || exit 99
		strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=1 \
			"$FCOPY" -r --resume s m/t || true
		[ -f m/t.fcopy-part/f ]
		"$FCOPY" -r --resume s m/t
		diff -r s m/t'
	[ "$status" != 99 ] || skip "ext4 cannot be mounted here"
	demand 0
}

@test "--resume of a merge: a name without room for .fcopy-part is copied" {
	local name
	name=$(printf 'n%.0s' {1..250})
	mkdir s d
	echo 1 >s/$name
	expect 0 -rT --resume s d
	cmp s/$name d/$name
}

@test "--resume --keep-going: a directory below one that cannot be read keeps its sticky bit" {
	need_strace
	umask 022
	mkdir -p s/d/below
	echo 1 >s/d/below/f
	chmod 1777 s/d/below
	run strace -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=1 \
		"$FCOPY" -r --resume s t
	[ -d t.fcopy-part ]
	run strace -f -qq -o /dev/null -P "$T/s/d" -e inject=getdents64:error=EIO:when=1 \
		"$FCOPY" -r --resume --keep-going s t
	[ "$status" = 1 ]
	cmp s/d/below/f t/d/below/f
	[ "$(stat -c %a t/d/below)" = 1755 ]
}
