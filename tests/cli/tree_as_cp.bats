#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a copied tree is like: the real cp runs beside fcopy, and the results are compared.

load helper
load tree

setup_tree() {
	need rsync
	make_all s
}

# make_all DIR: one of everything that the user may create.
make_all() {
	mkdir -p "$1/d/e" "$1/empty" "$1/read-only/sub" "$1/sp ace"
	random "$1/d/file" 100000
	random "$1/large" 3000000
	truncate -s 1M "$1/d/sparse"
	printf x | dd of="$1/d/sparse" bs=1 seek=500000 conv=notrunc status=none
	: >"$1/nothing"
	printf q >"$1/"$'\xff\xfe\n'
	echo dash >"$1/-r"
	echo long >"$1/$(printf 'l%.0s' {1..255})"
	echo a >"$1/d/e/a"
	ln "$1/d/e/a" "$1/hard"
	ln "$1/d/e/a" "$1/d/hard"
	ln -s d/e/a "$1/symlink"
	ln "$1/symlink" "$1/symlink2"
	ln -s nowhere "$1/dangling"
	ln -s .. "$1/d/up"
	mkfifo -m 620 "$1/fifo"
	ln "$1/fifo" "$1/d/fifo"
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$1/socket"
	setfattr -n user.name -v value "$1/d/file" "$1/d" 2>/dev/null || true
	setfattr -n user.empty "$1/d/file" 2>/dev/null || true
	setfacl -m u:1234:rwx "$1/nothing" 2>/dev/null && setfacl -d -m u:1234:rwx "$1/empty"
	if is_root; then
		mknod "$1/null" c 1 3
		mknod "$1/loop" b 7 99
		chown 1234:4321 "$1/d/file"
		chown -h 55:66 "$1/symlink"
		setfattr -h -n trusted.name -v value "$1/symlink" 2>/dev/null || true
		setcap cap_net_raw+ep "$1/large" 2>/dev/null || true
	fi
	chmod 4755 "$1/d/file"
	chmod 3751 "$1/fifo"
	chmod 2750 "$1/sp ace"
	chmod 1777 "$1/empty"
	chmod 000 "$1/nothing"
	echo r >"$1/read-only/sub/f"
	chmod 444 "$1/read-only/sub/f"
	touch -d '2001-02-03 04:05:06.789' "$1/d/file" "$1/d/e" "$1/read-only/sub" "$1/null" "$1/fifo"
	touch -h -d 2002-02-02 "$1/symlink"
	touch -d 1969-12-31 "$1/hard"
	chmod 555 "$1/read-only/sub" "$1/read-only"
	is_root || chmod 400 "$1/nothing"
}

teardown_tree() {
	chmod -R u+w . 2>/dev/null || true
}

# differences A B [RSYNC-OPTION…]: prints what rsync would change in B.
differences() {
	rsync -rlHDpi --devices --specials --delete -n "${@:3}" "$1/" "$2/"
}

@test "-a: rsync -AXH and stat find no difference to cp -a, and the source's times are kept" {
	setup_tree
	cp -a s by_cp
	expect 0 -a s by_fcopy
	rsync -naHAXi --delete by_cp/ by_fcopy/ >differences
	diff /dev/null differences
	rsync -naHAXi --delete s/ by_fcopy/ >differences
	diff /dev/null differences
	equal_trees by_cp by_fcopy
	[ "$(stat -c %y s/d/file)" = "$(stat -c %y by_fcopy/d/file)" ]
	[ "$(stat -c %b by_fcopy/d/sparse)" -lt 2048 ]
	teardown_tree
}

@test "-a as an ordinary user: an owner that cannot be given is no failure, as with cp -a" {
	is_root || skip "needs files of another user"
	mkdir s
	echo a >s/a
	ln -s a s/link
	chmod 777 .
	setcap cap_net_raw+ep s/a 2>/dev/null || true
	$NOBODY cp -a s by_cp
	as_nobody 0 -a s by_fcopy
	[[ $stderr != *chown* ]] || { echo "$stderr"; return 1; }
	equal_trees by_cp by_fcopy
	rsync -naHAXi by_cp/ by_fcopy/ >differences
	diff /dev/null differences
}

@test "-r, -rL, -rH, -rP, -rp, -rpL, -aL: the same tree as cp with these options" {
	setup_tree
	local options
	rm s/d/up s/dangling
	for options in -r -rL -rH -rP -rp -rpL -rpP -aL; do
		rm -rf by_cp by_fcopy
		umask 027
		cp $options s by_cp
		expect 0 $options s by_fcopy
		umask 022
		equal_trees by_cp by_fcopy || { echo "with $options"; return 1; }
		[[ $options != *p* ]] || rsync -naHi by_cp/ by_fcopy/ >differences
		[ ! -s differences ] || { cat differences; return 1; }
		chmod -R u+w by_cp by_fcopy
	done
	teardown_tree
}

@test "a user outside the group of a setgid directory: a new tree keeps group and bit, as with cp" {
	is_root || skip "another user needs root"
	mkdir -p s/d p
	echo x >s/d/f
	chgrp 100 p
	chmod 2777 p
	as_nobody 0 -r s p/by_fcopy
	[ "$(stat -c '%a %g' p/by_fcopy p/by_fcopy/d p/by_fcopy/d/f)" = $'2755 100\n2755 100\n644 100' ]
}

# In the order of names: tmpfs lists what is newest first.
acls() {
	(cd "$1" && find . ! -type l -print0 | sort -z | xargs -0 getfacl 2>/dev/null)
}

@test "any umask, setgid and default ACL of the parent: the modes that cp -r gives" {
	setup_tree
	local mask
	for mask in 000 022 077 027 0777; do
		is_root || [ $mask != 0777 ] || continue
		rm -rf parent_*
		mkdir parent_cp parent_fcopy
		chmod 2755 parent_cp parent_fcopy
		! is_root || chown 0:4242 parent_cp parent_fcopy
		if [ $mask = 027 ]; then
			setfacl -d -m u:1234:rx,g::r parent_cp parent_fcopy 2>/dev/null ||
				reports "no ACL on this file system"
		fi
		(umask $mask && cp -r s parent_cp/d && "$FCOPY" -r s parent_fcopy/d)
		equal_trees parent_cp parent_fcopy || { echo "umask $mask"; return 1; }
		diff <(acls parent_cp) <(acls parent_fcopy)
		chmod -R u+rwx parent_*
	done
	teardown_tree
}

@test "merge -r: modes of existing directories stay, files are replaced, as cp -r" {
	local by
	mkdir -p s/d s/new
	echo new >s/d/a
	chmod 700 s/d s
	for by in cp fcopy; do
		mkdir -p $by/s/d $by/s/other
		echo old, and longer >$by/s/d/a
		chmod 640 $by/s/d/a
		chmod 751 $by/s/d
		ln -s target $by/s/d/link
		mkfifo $by/s/d/fifo
	done
	ln -s new s/d/link
	mkfifo s/d/fifo
	cp -r s cp
	expect 0 -r s fcopy
	equal_trees cp fcopy
	cp -rp s cp
	expect 0 -rp s fcopy
	equal_trees cp fcopy
	cp -a s cp
	expect 0 -a s fcopy
	equal_trees cp fcopy
}

@test "merge: each file is replaced atomically: a reader has the old one, and the new one has its name" {
	mkdir -p s/d d/s/d
	echo new >s/d/a
	echo old >d/s/d/a
	exec 7<d/s/d/a
	expect 0 -r s d
	holds new d/s/d/a
	[ "$(cat <&7)" = old ]
	exec 7<&-
}

@test "merge: directories against files, and symlinks inside DST: as cp -r" {
	local by options
	mkdir -p s/dir s/to_dir s/to_none
	echo new >s/file
	echo new >s/dir/f
	echo new >s/to_dir/f
	echo new >s/through
	echo new >s/dangling
	for options in -r -a -rL; do
		rm -rf cp fcopy
		for by in cp fcopy; do
			mkdir -p $by/s/file/sub $by/target
			echo old >$by/s/dir
			ln -s ../target $by/s/to_dir
			ln -s nowhere $by/s/to_none
			echo old >$by/target/real
			ln -s ../target/real $by/s/through
			ln -s nowhere $by/s/dangling
		done
		run cp $options s cp
		[ "$status" = 1 ]
		expect 1 $options s fcopy
		mentions fcopy/s/file fcopy/s/dir fcopy/s/to_dir fcopy/s/to_none fcopy/s/dangling
		equal_trees cp fcopy
		[ -z "$(find fcopy/target -name f)" ]
	done
}

@test "read-only directories of the source are filled, and are read-only in the end" {
	mkdir -p s/d/e
	echo x >s/d/e/f
	chmod 555 s/d/e s/d s
	chmod 777 .
	local option
	for option in -r -a -rp; do
		rm -f fcopy
		as_nobody 0 $option s "d$option"
		diff -r s "d$option"
		[ "$(find "d$option" -type d -printf '%m ')" = "555 555 555 " ]
		chmod -R u+w "d$option"
	done
	chmod -R u+w s
}

@test "a FIFO, a socket and devices are created and never opened" {
	need_strace
	mkdir s
	mkfifo s/fifo
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s/socket")'
	! is_root || mknod s/device c 1 3
	local option
	for option in -r -a; do
		traced 0 trace=openat,open $option s d$option
		[ -p d$option/fifo ]
		[ -S d$option/socket ]
		! is_root || [ -c d$option/device ]
		never grep -v O_PATH <(grep -E '"(fifo|socket|device)"' trace)
	done
	expect 0 -r s/fifo copy
	[ -p copy ]
	expect 0 -a s/fifo s/socket d-a
}

@test "an ordinary user may not create a device: that entry fails, and the others are copied" {
	need_root "to make a device"
	mkdir s
	mknod s/device c 1 3
	echo a >s/a
	chmod 777 .
	as_nobody 1 -r --keep-going s d
	mentions "d/device: mknod: Operation not permitted"
	holds a d/a
}

@test "files that say 0 bytes, and files of /proc and /sys: as cp -r" {
	[ -d /proc/sys/vm ] || skip "no /proc/sys"
	cp -r /proc/sys/fs/inotify by_cp
	expect 0 -r /proc/sys/fs/inotify by_fcopy
	diff -r by_cp by_fcopy
	[ -s by_fcopy/max_user_watches ]
}

@test "files with holes, unwritten extents or clones: as single copies" {
	local n
	mkdir s
	for n in 1 2 3; do
		truncate -s 20M s/$n
		printf data | dd of=s/$n bs=1 seek=$((n * 5000000)) conv=notrunc status=none
	done
	fallocate -l 20M s/unwritten 2>/dev/null || true
	expect 0 -r s d
	diff -r s d
	for n in 1 2 3 unwritten; do
		[ -e s/$n ] || continue
		expect 0 s/$n single
		[ "$(stat -c %b single)" = "$(stat -c %b d/$n)" ] || { stat single d/$n; return 1; }
	done
	[ "$(stat -c %b d/2)" -lt 1000 ]
}

@test "-a: special files get no ACL of the directory; one of their own is copied" {
	local by
	mkdir s fcopy
	mkfifo s/fifo s/other
	setfacl -m u:1234:rw s/other 2>/dev/null || skip "no ACL on this file system"
	setfacl -d -m u:4321:rwx fcopy
	expect 0 -a s/fifo s/other fcopy
	for by in fifo other; do # cp 9.7 gives fifo the ACL of the directory
		diff <(acl s/$by) <(acl fcopy/$by)
	done
	never grep 4321 <(getfacl fcopy/fifo)
}

@test "an attribute of the source that cannot be read: the message names the source and the call" {
	need_strace
	mkdir s
	echo x >s/f
	setfattr -n user.name -v value s/f s || skip "no extended attributes on this file system"
	traced 0 'inject=fgetxattr:error=EIO' -a s d
	injected
	mentions "warning: s/f: fgetxattr: Input/output error" "warning: s: fgetxattr: Input/output error"
	traced 0 'inject=flistxattr:error=EIO' -a s e
	mentions "warning: s/f: flistxattr: Input/output error"
	traced 1 'inject=fgetxattr:error=EIO' --preserve=xattr s/f g
	mentions "s/f: fgetxattr: Input/output error"
	mkfifo s/fifo
	traced 0 'inject=listxattr:error=EIO' -a s/fifo h
	mentions "warning: s/fifo: listxattr: Input/output error"
}

@test "-n: a symlink that leads nowhere is kept" {
	mkdir s d
	echo x >s/f
	ln -s nowhere link
	ln -s nowhere d/f
	expect 0 -n s/f link
	says ""
	expect 0 -n s/f d
	expect 0 -rn s/. d
	[ -L d/f ]
	[ -L link ]
	absent nowhere
	absent d/nowhere
}
