#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Trees that cannot be copied whole: what fails, what is kept, what is removed, and what is resumed.

load helper
load tree

@test "an unfinished tree with a long name is kept under a hash of it, and resumed" {
	mkdir s into
	echo x >s/f
	ln -s nowhere s/broken
	local long
	long=$(printf 'n%.0s' {1..250})
	expect 1 -rL s "into/$long"
	mentions "s/broken: is a dangling symlink"
	[[ $(ls -A into) =~ ^[0-9a-f]{16}.fcopy-part$ ]]
	mentions "into/$(ls -A into): kept, unfinished"
	expect 1 -rL --resume --keep-going s "into/$long"
	[ "$(ls -A into)" = "$long" ]
	holds x "into/$long/f"
}

@test "an unreadable file and an unreadable directory: the rest is kept, with two ways forward" {
	make_small s
	touch s/secret
	mkdir s/closed
	chmod 0 s/secret s/closed
	chmod 777 .
	as_nobody 1 -r s d
	mentions "s/secret: open: Permission denied" "s/closed: open: Permission denied" "2 entries failed"
	kept d.fcopy-part
	diff -r s/d1 d.fcopy-part/data/d1
	# It is neither overwritten nor resumed without being asked.
	as_nobody 1 -r s d
	mentions d.fcopy-part resume remove
	absent d
	# The first way forward.
	as_nobody 1 -r --resume s d
	kept d.fcopy-part
	chmod 755 s/secret s/closed
	as_nobody 0 -r --resume s d
	diff -r s d
	absent d.fcopy-part
	chmod 755 s
	# The second one, after the failure and from the start.
	chmod 0 s/secret
	as_nobody 1 -r s f
	as_nobody 1 -r --resume --keep-going s f
	diff <(cd s && find . ! -name secret | sort) <(cd f && find . | sort)
	absent f.fcopy-part
	as_nobody 1 -r --keep-going s e
	says "fcopy: s/secret: open: Permission denied" "fcopy: e: committed despite 1 failure"
	diff <(cd s && find . ! -name secret | sort) <(cd e && find . | sort)
	absent e.fcopy-part
}

@test "the message names the part beside DST, whatever the operands are" {
	mkdir -p s/sub into "with space"
	touch s/secret
	chmod 0 s/secret
	chmod 777 . into "with space"
	as_nobody 1 -r s into
	kept into/s.fcopy-part
	as_nobody 1 -r s/. "with space/new/"
	kept "with space/new.fcopy-part"
	as_nobody 1 -r s "$PWD/into/../absolute"
	kept "$PWD/into/../absolute.fcopy-part"
}

@test "a source file that gives EIO: not committed; later files are copied" {
	mkdir backing
	random backing/a 100000
	random backing/b 300000
	random backing/c 100000
	# shellcheck disable=SC2016
	by_fuse fault=read:EIO:250000 'cp backing/a backing/c .
		s=0
		"$FCOPY" -r m d 2>err || s=$?
		[ $s = 1 ] || { echo "status $s"; exit 1; }
		grep -qE "m/b: .*(Input/output|I/O) error" err
		grep -q "d.fcopy-part" err
		[ ! -e d ]
		cmp a d.fcopy-part/data/a
		cmp c d.fcopy-part/data/c
		[ ! -e d.fcopy-part/data/b ]
		setfattr -n user.fault -v read:0 m
		"$FCOPY" -r --resume m d
		diff -r backing d
		[ ! -e d.fcopy-part ]'
}

@test "a full disk: the new tree is removed, whatever was copied, and nothing else is" {
	need_root "to mount a small tmpfs"
	make_small s
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mkdir disk
		mount -t tmpfs -o size=1M tmpfs disk
		mkdir disk/mine disk/other
		for i in 1 2; do
			s=0
			"$FCOPY" -r s disk/d 2>err || s=$?
			[ $s = 1 ] || { echo "status $s"; exit 1; }
			grep -q "No space left" err
			grep -qx "fcopy: stopped; disk/d not created" err
			[ "$(tail -n 1 err)" = "fcopy: hint: use --resume to keep an unfinished copy" ]
			[ "$(ls -A disk | tr "\n" " ")" = "mine other " ] || { ls -A disk; exit 1; }
			"$FCOPY" --mirror s disk/d 2>err && exit 1
			if grep hint err; then exit 1; fi
		done
		# The part is kept if it may be resumed.
		s=0
		"$FCOPY" -r --resume s disk/d 2>err || s=$?
		[ $s = 1 ]
		[ ! -e disk/d ]
		[ -d disk/d.fcopy-part ]
		n=$(find disk/d.fcopy-part/data -type f | wc -l)
		grep -qE "^fcopy: stopped; disk/d not created; disk/d.fcopy-part has [0-9]+ entries \([0-9.]+ [KMi]*B\)$" err
		[ "$(sed -n "s/.*has \([0-9]*\) entr.*/\1/p" err)" -ge "$n" ]
		grep -qx "fcopy: hint: free space, then run the command again with --resume" err
		mount -o remount,size=100M disk
		"$FCOPY" -r --resume s disk/d
		diff -r s disk/d
		# In an existing tree, the files that are there stay whole.
		mkdir old
		mount -t tmpfs -o size=1M tmpfs old
		mkdir -p old/s/d1
		echo old >old/s/d1/5
		s=0
		"$FCOPY" -r s old 2>err || s=$?
		[ $s = 1 ]
		[ -z "$(find old -name ".fcopy-*")" ]
		find old -type f -printf "%P\n" | while read -r f; do
			cmp -s "old/$f" "$f" || [ "$(cat "old/$f")" = old ]
		done'
	demand 0
}

@test "a directory that may not be searched or written in DST: that entry fails, others are merged" {
	is_root || skip "needs another user's directory"
	mkdir -p s/a s/b d/s/a
	echo x >s/a/f
	echo y >s/b/f
	chmod 755 d/s/a
	chmod 777 . d d/s
	as_nobody 1 -r s d
	mentions "d/s/a/f"
	holds y d/s/b/f
	absent d/s/a/f
}

@test "-L: a symlink that leads nowhere fails, as with cp -rL" {
	mkdir s
	echo x >s/f
	ln -s nowhere s/dangling
	expect 1 -rL s d
	mentions "s/dangling: is a dangling symlink"
	kept d.fcopy-part
	rm -r d.fcopy-part
	expect 1 -rL --keep-going s d
	holds x d/f
	expect 1 -rL --keep-going -q s e
	holds x e/f
	mentions "fcopy: e: committed despite 1 failure"
	mkdir t into
	expect 1 -rL --keep-going -t into s t
	mentions "fcopy: into/s: committed despite 1 failure"
	holds x into/s/f
}

@test "1,000 levels and paths beyond PATH_MAX: copied, merged, resumed, and removed after a failure" {
	deep s
	# A limit that is below the depth.
	(ulimit -Sn 256 && "$FCOPY" -r s d)
	is_deep d
	expect 0 -rT s d
	need_strace
	# The last file fails: the tree is kept, completed, and a cancelled one is removed.
	traced 1 'inject=openat:error=EIO:when=2001' -r -j1 s e
	[ -d e.fcopy-part ]
	expect 0 -r --resume s e
	is_deep e
	traced 1 'inject=openat:error=ENOSPC:when=1500' -r -j1 s f
	injected
	absent f
	[ -z "$(find . -maxdepth 1 -name '.fcopy-*')" ]
	find s d e -depth -delete
}

@test "DT_UNKNOWN: a file system that does not report types is copied like any other" {
	mkdir -p backing/d/e
	make_small backing
	ln -s d backing/link
	ln -s nowhere backing/dangling
	mkfifo backing/d/fifo
	echo x >backing/d/e/f
	# shellcheck disable=SC2016
	by_fuse direct_io '"$FCOPY" -r m d
		diff -r --no-dereference backing/d d/d 2>&1 | grep -v "is a fifo" && exit 1
		diff -r backing/d1 d/d1
		[ -p d/d/fifo ]
		[ "$(readlink d/link)" = d ]
		[ "$(readlink d/dangling)" = nowhere ]
		cp -rL m/d1 by_cp
		"$FCOPY" -rL m/d1 by_fcopy
		diff -r by_cp by_fcopy
		if type strace >/dev/null; then
			strace -f -v -o trace -P m -e trace=getdents64 "$FCOPY" -r m e
			grep -q "DT_UNKNOWN" trace
			if grep -q DT_REG trace; then cat trace; exit 1; fi
		fi'
}

@test "a merge onto a FIFO, a socket or a device fails for that entry, without opening it" {
	local kind
	mkdir s d
	for kind in fifo link socket; do
		random s/$kind 1000
	done
	random s/z 1000
	mkfifo d/fifo
	ln -s fifo d/link
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("d/socket")'
	if is_root; then
		random s/null 1000
		mknod d/null c 1 3
	fi
	for kind in -r -a "-r -f"; do
		# shellcheck disable=SC2086
		expect 1 $kind s/. d
		mentions "d/fifo: is not a regular file" "d/link: is not a regular file" \
			"d/socket: is not a regular file"
		! is_root || mentions "d/null: is not a regular file"
		cmp s/z d/z
		[ -p d/fifo ]
		[ -L d/link ]
		[ -S d/socket ]
	done
	! is_root || [ -c d/null ]
}

@test "-a: a hard link that the disk refuses is a failure; one that the file system lacks is a warning" {
	need_strace
	local errno
	mkdir s
	echo data >s/a
	ln s/a s/b
	for errno in EIO ENOSPC; do
		run -1 strace -f -qq -o trace -e trace=linkat -e inject=linkat:error=$errno "$FCOPY" -a s d
		grep -q INJECTED trace
		[[ $output == *linkat* ]]
		absent d
		rm -rf d.fcopy-part
	done
	run -0 strace -f -qq -o trace -e trace=linkat -e inject=linkat:error=EMLINK "$FCOPY" -a s d
	grep -q INJECTED trace
	[[ $output == *"warning"*"Too many links"* ]]
	diff -r s d
}

@test "an entry that cannot be opened although its directory is unchanged fails" {
	need_strace
	make_small s
	touch s/x
	touch -d '1 hour ago' s
	traced 0 trace=openat -r -j1 s d
	rm -r d
	traced 1 "inject=openat:error=ENOENT:when=$(nth openat '"x"')" -r -j1 s d
	injected
	mentions "s/x: open: No such file or directory"
	never mentions vanished
	absent d
}

@test "several trees fail: each part that was kept is named" {
	mkdir A B d
	touch A/x B/x
	chmod 0 A/x B/x
	! is_root || chown 65534:65534 A B A/x B/x d
	as_nobody 1 -r A B d
	mentions "d/A.fcopy-part: kept, unfinished" "d/B.fcopy-part: kept, unfinished"
	[ -d d/A.fcopy-part ]
}

# Whether another directory was copied into it would be unknown.
@test "merge: a directory of DST that cannot be identified fails, and nothing is copied into it" {
	need_strace
	mkdir -p s/a d/a
	echo x >s/a/f
	# libc's fstat() is newfstatat(2), or fstat(2) since glibc 2.39.
	run -1 --separate-stderr strace -f -qq -o trace -P "$PWD/d/a" \
		-e inject='?fstat,?newfstatat:error=EIO:when=1' "$FCOPY" -rT -j1 s d
	injected
	mentions "d/a: fstat: Input/output error"
	absent d/a/f
	expect 0 -rT s d
	holds x d/a/f
}

# Some storage renames no file over another one. The old file, which is still there, is no copy of another entry.
@test "merge: a rename that finds the old file in its way is a failure" {
	need_strace
	local errno options
	mkdir s d
	echo new >s/f
	for options in -aT --mirror; do
		for errno in EEXIST EISDIR; do
			echo old >d/f
			touch -d 2001-01-01 d/f
			run -1 --separate-stderr strace -f -qq -o trace -e trace=renameat -e inject=renameat:error=$errno \
				"$FCOPY" $options -j1 s d
			injected
			mentions "d/f: renameat: "
			holds old d/f
		done
	done
}

# Another -u can have exchanged the old file and put it back at that moment: its own claim is no rival.
@test "merge: -u tries again if the old file is back after a rename that did not find it" {
	need_strace
	local errno links
	for links in 1 2; do
		for errno in EEXIST ENOENT; do
			rm -rf s d
			mkdir s d
			echo new >s/f
			echo old >d/f
			touch -d 2001-01-01 d/f
			[ $links = 1 ] || ln d/f other
			run -0 --separate-stderr strace -f -qq -o trace -e trace=renameat2 \
				-e inject=renameat2:error=$errno:when=1 "$FCOPY" -aTu -j1 s d
			injected
			holds new d/f
			[ $links = 1 ] || holds old other
			rm -f other
		done
	done
}
