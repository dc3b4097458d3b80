#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Storage that lacks attributes, or stores other ones than were set.

load helper

# Without -p no mode was asked for: the copy succeeds, and has the mode of its creation.
@test "storage without chmod: files and trees are created with their final modes, whatever the errno" {
	mkdir -p backing s/d
	random s/a 100000
	echo b >s/d/b
	chmod 640 s/a
	chmod 750 s/d
	# shellcheck disable=SC2016
	by_fuse rw 'for errno in ENOSYS EPERM EOPNOTSUPP EACCES EINVAL EIO; do
			setfattr -n user.fault -v chmod:$errno m
			rm -rf m/*
			mkdir -p m/merged/s/d
			echo old >m/merged/s/a
			echo old >m/old
			echo old >m/open
			command chmod 604 backing/old
			command chmod 666 backing/open
			command chmod 700 backing/merged/s/d
			"$FCOPY" s/a m/a
			"$FCOPY" s/a m/old
			"$FCOPY" -r s m/t
			"$FCOPY" -r s m/merged
			cmp s/a m/a
			cmp s/a m/old
			diff -r s m/t
			diff -r s m/merged/s
			[ "$(stat -c %a m/a m/old m/t/a m/t/d m/t/d/b | tr "\n" " ")" = "640 604 640 750 644 " ]
			[ "$(stat -c %a m/merged/s/a m/merged/s/d/b m/merged/s/d | tr "\n" " ")" = "644 644 700 " ]
			! "$FCOPY" s/a m/open 2>err || exit 1 # the umask would take a right of others
			grep -q "m/open: its mode cannot be kept" err
			[ "$(cat m/open)" = old ]
			"$FCOPY" --inplace=auto s/a m/open
			[ "$(stat -c %a m/open)" = 666 ]
			cmp s/a m/open
			s=0
			"$FCOPY" --preserve=mode s/a m/strict 2>err || s=$?
			[ $s = 1 ]
			[ ! -e m/strict ]
			"$FCOPY" -a s m/all 2>err
			grep -q "warning: .*fchmod: " err
			diff -r s m/all
			[ -z "$(find backing -name ".fcopy-*")" ]
		done'
}

@test "storage with fixed modes: a probe is not fooled by those that it asks for" {
	mkdir -p backing s/d
	random s/a 5000
	echo b >s/d/b
	chmod 555 s/d
	local modes chmod
	for modes in fmode=600,dmode=700 fmode=644,dmode=755 fmode=600,dmode=755 fmode=640,dmode=700; do
		for chmod in "" ,fault=chmod:ENOSYS ,fault=chmod:EPERM; do
			rm -rf backing
			mkdir backing
			# shellcheck disable=SC2016
			by_fuse "$modes$chmod" '"$FCOPY" s/a m/a
				"$FCOPY" s/d/b m/a
				cmp s/d/b m/a
				"$FCOPY" -r s m/t
				diff -r s m/t
				"$FCOPY" -rT s m/t
				"$FCOPY" --resume s/a m/r
				cmp s/a m/r
				"$FCOPY" -r --resume s m/rt 2>err
				diff -r s m/rt'
		done
	done
}

@test "storage with fixed modes: whichever open fails, no hidden directory stays that no message names" {
	need_strace
	mkdir -p backing s
	echo a >s/a
	# shellcheck disable=SC2016
	by_fuse fmode=755,dmode=755 'for ((n = 1, failed = 0; n < 200; n++)); do
			strace -f -qq -o trace -e trace=openat -e inject=openat:error=ENOSPC:when=$n \
				"$FCOPY" -j1 --mirror s m/d 2>err || true
			grep -q INJECTED trace || break
			if grep "INJECTED" trace | grep -q "O_EXCL.*, 0400)"; then failed=$((failed + 1)); fi
			find m -name ".fcopy-*" -type d -printf "%f\n" | while read -r name; do grep -qF "$name" err || exit 1; done
			rm -rf m/d m/.fcopy-*
		done
		[ $failed -ge 1 ]'
}

@test "-v says that an unfinished copy is not private where every directory has a fixed mode" {
	mkdir -p backing s
	echo data >s/a
	# shellcheck disable=SC2016
	by_fuse fmode=644,dmode=755 'for options in "-rv s m/t" "-v --resume s/a m/r"; do
			"$FCOPY" $options >out 2>err || exit 8
			[ "$(grep -c "^fcopy: ${options##* }: not private: other users may reach" err)" = 1 ] || { cat err; exit 7; }
		done
		"$FCOPY" -r s m/silent 2>err || exit 6
		[ ! -s err ] || exit 5'
	# shellcheck disable=SC2016
	by_fuse fmode=600,dmode=700 '"$FCOPY" -rv --resume s m/private 2>err || exit 8
		! grep "not private" err || exit 7'
}

@test "-a where ACLs cannot be stored: the group gets what its entry says, not the mask, and a warning" {
	need_strace
	need setfacl
	mkdir -p s/d
	echo secret >s/f
	mkfifo s/p
	chmod 600 s/f s/p
	chmod 700 s/d
	setfacl -m u:65534:rwx s/f s/p s/d 2>/dev/null || skip "no ACL on this file system"
	setfacl -m g::rx s/d
	traced 0 inject=fsetxattr,setxattr:error=EOPNOTSUPP -a s a
	injected
	mentions "warning: "
	[ "$(stat -c %a a/f a/p a/d | tr '\n' ' ')" = "600 600 750 " ]
	traced 0 inject=fsetxattr:error=EOPNOTSUPP -p s/f f
	injected
	[ "$(stat -c %a f)" = 600 ]
	traced 1 inject=fsetxattr:error=EOPNOTSUPP --preserve=mode s/f g
	absent g
}

@test "the attributes of the old file cannot be read: they count as none, whatever the errno" {
	mkdir -p backing s
	random a 5000
	cp a s/f
	# shellcheck disable=SC2016
	by_fuse rw 'for errno in EIO EPERM EACCES EINVAL ENOSYS; do
			setfattr -n user.fault -v getxattr:$errno m
			setfattr -n user.fault -v listxattr:$errno m
			rm -rf m/*
			mkdir -p m/d
			echo old | tee m/d/f >m/f
			"$FCOPY" a m/f
			cmp a m/f
			"$FCOPY" -rT s m/d
			cmp a m/d/f
			"$FCOPY" m/f b # as the source
			cmp a b
			rm b
		done'
}

@test "-x: the FUSE mount of another user is a mount point, although it denies everything" {
	need_root "to mount as another user"
	need cc pkg-config fusermount3
	[ -c /dev/fuse ] || skip "no /dev/fuse"
	mkdir -p s/mount s/d backing
	echo d >s/d/f
	echo hidden >backing/hidden
	chown -R 65534:65534 s backing
	mknod device c 10 229
	chmod 666 device
	chmod 711 .
	pkg-config --exists fuse3 || skip "no libfuse3"
	# shellcheck disable=SC2046
	cc -o faultfs "$BATS_TEST_DIRNAME"/../tools/faultfs.c "$BATS_TEST_DIRNAME"/../tools/faults.c \
		$(pkg-config --cflags --libs fuse3)
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount --bind device /dev/fuse
		setpriv --reuid=65534 --regid=65534 --clear-groups ./faultfs backing s/mount || exit 9
		! stat s/mount 2>/dev/null || exit 9
		"$FCOPY" -ax s x
		s=0
		"$FCOPY" -a s a 2>err || s=$?
		umount -l s/mount
		[ $s = 1 ]
		grep -q "s/mount: .*: Permission denied" err'
	[ "$status" != 9 ] || skip "FUSE does not mount"
	demand 0
	holds d x/d/f
	[ -d x/mount ]
	[ -z "$(ls -A x/mount)" ]
	[ "$(stat -c %a x/mount)" = 700 ]
}

# time_of FILE…: their modification times, in seconds.
time_of() {
	stat -c %Y "$@" | tr '\n' ' '
}

# closed_as TIMES FILE…: they get these times when the kernel has closed them, which a busy machine delays.
closed_as() {
	local want=$1 tries
	shift
	for ((tries = 0; tries < 40; tries++)); do
		[ "$(time_of "$@")" != "$want" ] || return 0
		sleep 0.05
	done
	time_of "$@"
	return 1
}

@test "storage that sets times at close and at rename: files and trees keep the source's time" {
	mkdir -p backing s/d
	random s/a 100000
	echo b >s/d/b
	: >s/empty
	touch -d @981158400 s/a s/d/b s/empty s/d s
	export -f time_of closed_as
	# shellcheck disable=SC2016
	by_fuse touch 'for how in -p --preserve=timestamps "-p --inplace" "-p --resume" "-p --fsync"; do
			rm -f m/f
			"$FCOPY" $how s/a m/f 2>err
			"$FCOPY" $how s/d/b m/f 2>>err
			[ ! -s err ]
			closed_as "981158400 " backing/f
		done
		for how in "" -j1 --resume; do
			rm -rf m/t
			"$FCOPY" -a $how s m/t 2>err
			"$FCOPY" -aT s m/t 2>>err
			[ ! -s err ]
			closed_as "981158400 981158400 981158400 981158400 " backing/t/a backing/t/d/b backing/t/empty backing/t
		done
		"$FCOPY" -a --fsync s m/w
		[ "$(time_of backing/w backing/w/d)" = "981158400 981158400 " ]
		setfattr -n user.fault -v utimens:EPERM m
		"$FCOPY" -a s m/u 2>err
		grep -q "warning: .*futimens: Operation not permitted" err
		s=0
		"$FCOPY" --preserve=timestamps s/a m/v 2>err || s=$?
		[ $s = 1 ] && [ ! -e m/v ]'
}

@test "times and modes that were set without an error, but stored as others: found, warned about or failed" {
	mkdir -p backing s/d
	echo a >s/a
	echo b >s/d/b
	chmod 640 s/a
	touch -d @981158401 s/a s/d/b s/d
	touch -d @981158400.5 s
	# shellcheck disable=SC2016
	by_fuse steps=1000 '"$FCOPY" -a s m/t 2>err
		grep -q "warning: .*futimens: a different modification time was stored" err
		diff -r s m/t'
	rm -r backing/t
	# Storage with steps of 2 s cannot do better, as FAT: that is an error only where it was asked for.
	# shellcheck disable=SC2016
	by_fuse steps=2 '"$FCOPY" -a s m/t 2>err
		[ ! -s err ]
		diff -r s m/t
		s=0
		"$FCOPY" --preserve=timestamps s/a m/f 2>err || s=$?
		[ $s = 1 ]
		[ ! -e m/f ]
		grep -q "m/f: futimens: a different modification time was stored" err
		"$FCOPY" -r s m/r 2>err
		touch -d @981158400.5 s/a
		"$FCOPY" --preserve=timestamps s/a m/f 2>>err
		[ ! -s err ]'
	# shellcheck disable=SC2016
	by_fuse fmode=644,dmode=755 'rm -rf m/*
		"$FCOPY" -a s m/t 2>err
		grep -q "warning: .*fchmod: a different mode was stored" err
		diff -r s m/t
		s=0
		"$FCOPY" --preserve=mode s/a m/f 2>err || s=$?
		[ $s = 1 ]
		[ ! -e m/f ]
		grep -q "m/f: fchmod: a different mode was stored" err
		"$FCOPY" -r s m/r 2>err
		"$FCOPY" --preserve=mode s/d/b m/b 2>>err
		[ ! -s err ]'
}

@test "an owner that was set without an error, but not stored: found, and it gets no setuid" {
	need_root "to give a file to another user"
	mkdir -p backing s
	echo a >s/a
	chown 5:6 s/a
	chmod 6755 s/a
	# shellcheck disable=SC2016
	by_fuse unowned '"$FCOPY" -a s m/t 2>err
		grep -q "warning: m/t/a: fchown: a different owner or group was stored" err
		grep -q "warning: .*a: its setuid and setgid bits are not copied" err
		[ "$(stat -c %a backing/t/a)" = 755 ]
		s=0
		"$FCOPY" --preserve=ownership s/a m/f 2>err || s=$?
		[ $s = 1 ]
		[ ! -e m/f ]
		grep -q "m/f: fchown: a different owner or group was stored" err'
}

@test "an owner that no storage keeps is not compared: a mirror copies nothing again" {
	need_root "to give a file to another user"
	mkdir -p backing s
	echo a >s/a
	chown 5:6 s/a
	# shellcheck disable=SC2016
	by_fuse unowned '"$FCOPY" --mirror s m/t 2>err
		"$FCOPY" --mirror s m/t 2>err
		grep -q "0 copied, 1 unchanged" err
		[ "$(grep -c warning err)" = 0 ]'
}

@test "sshfs: the owner and times of a symlink are not set, because its target would get them" {
	mkdir backing s
	echo 1 >outside
	touch -d 2001-02-03 outside
	ln -s "$T/outside" s/link
	touch -h -d 2002-03-04 s/link
	! is_root || chown -h 5:6 s/link
	local before
	before=$(stat -c '%u %g %Y' outside)
	by_fuse targets,subtype=sshfs '"$FCOPY" -a s m/t 2>err
		grep -qx "fcopy: warning: m/t/link: sshfs would change the times of what it leads to" err
		"$FCOPY" --mirror s m/t 2>err
		grep "0 copied, 1 unchanged, 0 removed; not compared, because DST cannot store them: .*times of symlinks" err
		ln -sf elsewhere backing/t/link
		"$FCOPY" --mirror s m/t 2>err
		grep "1 copied, 0 unchanged" err
		s=0
		"$FCOPY" -r --preserve=timestamps s m/u 2>err || s=$?
		[ $s = 1 ]
		grep -q "fcopy: m/u/link: sshfs would change the times" err
		"$FCOPY" --clean -f m'
	[ "$(stat -c '%u %g %Y' outside)" = "$before" ]
	[ "$(readlink backing/t/link)" = "$T/outside" ]
}
