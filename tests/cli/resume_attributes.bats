#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --resume and attributes: those of the source have changed since, or an earlier run gave others.

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
		run strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=3 \
			"$FCOPY" $option --resume s t
		[ -f t.fcopy-part/data/d/f ]
		chmod 600 s/d/f
		chmod 700 s/d/private
		expect 0 $option --resume s t
		[ "$(stat -c %a t/d/f t/d/private | paste -sd' ')" = '600 700' ]
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

@test "--resume of a file of another owner, as root: killed at its fsync, it is continued" {
	need_root "to change the owner"
	need_strace
	random s 3000000
	chown 33:33 s
	for signal in TERM KILL; do
		rm -f t t.*
		run strace -f -qq -o /dev/null -e inject=fsync:signal=$signal:when=2 \
			"$FCOPY" -p --resume --fsync s t
		[ -f t.fcopy-part/data ]
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
		[ -f t.fcopy-part/data ]
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
	run strace -f -qq -o /dev/null -e inject=fdatasync:signal=KILL:when=2 \
		"$FCOPY" --resume --fsync --verify s t
	[ -f t.fcopy-part/data ]
	expect 0 --resume --fsync --verify -v s t
	[[ $output == *resumed* ]]
	cmp s t
	[ "$(stat -c %a t)" = 664 ]
}
