#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --preserve: the copy has what the source has, and does not let in anybody else.

load helper

# no_entry FILE: its ACL says no more than a mode does.
no_entry() {
	[ "$(getfacl -cp "$1" | grep -v '^$')" = "$(printf '%s\n' user::rw- group::r-- other::---)" ] ||
		{ getfacl "$1"; return 1; }
}

@test "-p of a file without an ACL: neither the directory's default ACL nor DST's own stays" {
	need getfacl setfacl
	echo secret >a
	chmod 640 a
	mkdir d
	setfacl -d -m u:65534:rwx d 2>/dev/null || skip "no ACLs on this file system"
	local how
	for how in -p --preserve=mode --preserve=all --resume\ -p --inplace\ -p; do
		rm -f d/b
		# shellcheck disable=SC2086
		expect 0 $how a d/b
		no_entry d/b
		echo old >c
		setfacl -m u:65534:rw c
		# shellcheck disable=SC2086
		expect 0 $how a c
		no_entry c
	done
	setfacl -m u:65534:r a
	expect 0 -p a c
	getfacl -cp c | grep -q 'user:.*:r--'
}

@test "-a of a tree: what a directory gives to what is made in it does not stay on any file" {
	need strace setfacl getfacl
	local how
	mkdir -p p s/d/e
	echo secret | tee s/a s/d/b >s/d/e/c
	chmod 640 s/a s/d/b s/d/e/c
	# Where no directory gives an ACL, no file of the copy is asked for one.
	traced 0 'trace=fgetxattr,fremovexattr' -a s plain
	never grep '/data/.*[abc]>, "system' trace
	setfacl -d -m u:65534:rwx,m::rwx p 2>/dev/null || skip "no ACLs on this file system"
	for how in -a -r\ -p --mirror\ -a --inplace\ -a; do
		rm -rf p/n
		# shellcheck disable=SC2086
		expect 0 -T $how s p/n
		diff -r s p/n
		no_entry p/n/a
		no_entry p/n/d/b
		no_entry p/n/d/e/c
	done
}

@test "an attribute that is not there is not removed: on ext4 that would cost a transaction" {
	need strace setfacl
	mkdir s
	echo data | tee s/a >s/b
	expect 0 -r s merged
	traced 0 'trace=fremovexattr' -a s d
	never grep fremovexattr trace
	traced 0 'trace=fremovexattr' -r -T s merged
	never grep fremovexattr trace
	setfacl -d -m u:65534:rwx merged 2>/dev/null || skip "no ACLs on this file system"
	traced 0 'trace=fremovexattr' -j1 -r -T s merged # one thread: strace breaks no line
	[ "$(grep -c 'fremovexattr(.*posix_acl_access") = 0' trace)" = 2 ] || { cat trace; return 1; }
}

@test "setuid and setgid bits are not given to another owner, and the message says so" {
	need_root "to change the owner"
	local reason="its setuid and setgid bits are not copied, because its owner or group differs"
	echo data >a
	chown 1234 a
	chmod 4755 a
	expect 1 --preserve=mode a b
	says "fcopy: b: $reason"
	absent b
	mkdir -p s/g
	chgrp 1234 s/g
	chmod 2775 s/g
	expect 0 -a --no-preserve=ownership s d
	says "fcopy: warning: d/g: $reason"
	[ "$(stat -c %a d/g)" = 775 ]
}

@test "-p --verify: reading back leaves the time of access" {
	echo data >a
	touch -d 2001-02-03 a
	expect 0 -p --verify a b
	[ "$(stat -c %X b)" = "$(date -d 2001-02-03 +%s)" ] || { stat b; return 1; }
}

@test "-p without root keeps a group that the user belongs to, and warns that the owner is lost" {
	need_root "to have another user's file"
	mkdir -m 777 d
	echo data >a
	chown 0:1234 a
	chmod 664 a
	NOBODY="setpriv --reuid 65534 --regid 65534 --groups 65534,1234"
	as_nobody 0 -p a d/b
	[ "$(stat -c %u:%g d/b)" = 65534:1234 ] || { stat -c %u:%g d/b; return 1; }
	says "fcopy: warning: d/b: fchown: Operation not permitted"
	echo old >d/c
	chown 0:1234 d/c
	chmod 666 d/c
	as_nobody 0 -f a d/c
	[ "$(stat -c %u:%g d/c)" = 65534:1234 ] || { stat -c %u:%g d/c; return 1; }
}

@test "-a without root keeps the group of symlinks and FIFOs, too" {
	need_root "to have another user's file"
	mkdir -m 777 s d
	ln -s x s/link
	mkfifo -m 644 s/fifo
	chown -h 0:1234 s/link s/fifo
	NOBODY="setpriv --reuid 65534 --regid 65534 --groups 65534,1234"
	as_nobody 0 -a s d/s
	[ "$(stat -c %u:%g d/s/link d/s/fifo | sort -u)" = 65534:1234 ] || { ls -l d/s; return 1; }
}

@test "-a: a FIFO gets the extended attributes of its source, and nothing is warned about" {
	mkdir s
	mkfifo s/none s/fifo
	local name=trusted.test
	setfattr -n $name -v value s/fifo 2>/dev/null || name=''
	expect 0 -a s d
	says ''
	[ -z "$name" ] || [ "$(getfattr --only-values -n $name d/fifo)" = value ]
}

@test "-r --preserve=xattr --keep-going commits if only the operand's own attribute fails" {
	need setfattr
	mkdir s m
	echo 1 >s/f
	setfattr -n user.k -v v s 2>/dev/null || skip "no extended attributes on this file system"
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t ramfs none m
		fails() {
			s=0
			"$FCOPY" -r --preserve=xattr "$@" 2>err || s=$?
			cat err >&2
			[ $s = 1 ] && grep -qE "d: fsetxattr: (Operation n|N)ot supported" err
		}
		fails --keep-going s m/d
		[ "$(find m -mindepth 1 -printf "%P:%m ")" = "d:755 d/f:644 " ]
		rm -r m/d
		fails s m/d
		grep -q keep-going err
		[ "$(ls m)" = d.fcopy-part ]
		fails --resume --keep-going s m/d
		[ "$(find m -mindepth 1 -printf "%P:%m ")" = "d:755 d/f:644 " ]'
	demand 0
}

@test "-a as root: a tree that has the owner of its source, but not its name, can be resumed" {
	need_root "to give a tree to another user"
	need_strace
	mkdir s
	echo 1 >s/f
	chown -R 1000:1000 s
	chmod 6775 s
	traced 1 inject=renameat2:error=EIO:when=2 -a s d
	injected
	[ "$(stat -c %u:%a d.fcopy-part)" = 0:700 ]
	traced 1 inject=renameat2:error=EIO:when=1 -a --resume s d
	[ "$(stat -c %u:%a d.fcopy-part)" = 0:700 ]
	expect 0 -a --resume s d
	[ "$(stat -c %u:%g:%a d d/f | xargs)" = "1000:1000:6775 1000:1000:644" ]
	absent d.fcopy-part
}

@test "an attribute user.* of a read-only file, as an ordinary user: as cp does" {
	local options
	echo x >a
	setfattr -n user.fcopy -v 1 a || skip "no user attributes"
	chmod 444 a
	! is_root || chown 65534 a .
	for options in -a --preserve=xattr '-r --preserve=xattr'; do
		# shellcheck disable=SC2086
		as_nobody 0 $options a copy
		[ "$(getfattr --only-values -n user.fcopy copy)" = 1 ]
		[ "$(stat -c %a copy)" = 444 ]
		rm -f copy
	done
}

@test "--symbolic-link --preserve=ownership: only the lack of the right to give a file away is passed over" {
	need_strace
	local nobody=
	! is_root || nobody=$NOBODY
	install -m 755 "$FCOPY" fcopy
	chmod 777 .
	attempt() { # of another user's file
		# shellcheck disable=SC2086 # several words
		run --separate-stderr timeout -s KILL $HANG strace -f -qq -o trace -e signal=none -e "inject=fchownat:error=$2" \
			$nobody ./fcopy --symbolic-link --preserve=ownership /etc/passwd "$3"
		demand "$1"
		injected
	}
	attempt 0 EPERM b
	[ -L b ]
	attempt 1 EIO c
	mentions "c: fchownat: Input/output error"
}

@test "a symlink or FIFO that cannot get its owner is absent, and an old one is unchanged" {
	need_root
	mkdir s
	ln -s new s/link
	mkfifo s/fifo
	random s/f 1000
	install -d -o 65534 -g 65534 d
	chmod 777 .
	as_nobody 1 -rT --preserve=ownership --keep-going s d
	mentions "d/link: fchownat: Operation not permitted"
	[ -z "$(ls -A d)" ]
	as_nobody 1 -r --preserve=ownership --keep-going s t
	[ -z "$(ls -A t)" ]
	ln -s old d/link
	chown -h 65534:65534 d/link
	as_nobody 1 -rT --preserve=ownership --keep-going s d
	[ "$(ls -A d)" = link ]
	[ "$(readlink d/link)" = old ]
}

@test "a file that is written in place keeps the setuid bits and capabilities that it shares with SRC" {
	need_root "to set capabilities"
	need setcap getcap setpriv
	local as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	mkdir own
	chown 65534:65534 own
	cp "$FCOPY" own/program
	"${as[@]}" sh -c 'cd own && echo 1 >s && cp -p s d && chmod 4755 d && echo 22 >s && chmod 4755 s && ./program --inplace -p s d'
	[ "$(stat -c %a own/d)" = 4755 ]
	holds 22 own/d
	echo 1 >r
	setcap cap_net_raw=ep r 2>/dev/null || skip "no capabilities here"
	cp -a r e
	echo 22 >r
	setcap cap_net_raw=ep r
	expect 0 --inplace -a r e
	[ -n "$(getcap e)" ]
	holds 22 e
}

@test "a mirror does not copy a file again whose capabilities it may not set" {
	need_root "to set capabilities"
	need setcap setpriv
	mkdir s
	echo 1 >s/a
	setcap cap_net_raw=ep s/a 2>/dev/null || skip "no capabilities here"
	local without=(setpriv --bounding-set=-setfcap --inh-caps=-setfcap)
	"${without[@]}" "$FCOPY" -q --mirror s d 2>err
	run -0 --separate-stderr "${without[@]}" "$FCOPY" --mirror s d
	mentions "0 copied, 1 unchanged"
}

@test "the repair of a file with an ACL never widens access to it" {
	need_root "to give files away"
	need strace setfacl setfattr
	mkdir s
	echo secret >s/f
	chmod 600 s/f
	setfacl -m u:1234:r,g::---,m::r s/f 2>/dev/null || skip "no ACLs here"
	cp -a s d
	setfattr -n user.x -v 1 s/f || skip "no attributes here"
	traced 0 trace=fsetxattr,fremovexattr,fchmod --mirror s d
	never grep -E 'fremovexattr.*posix_acl|fchmod.*07' trace
	[ "$(getfacl -c d/f | grep group::)" = "group::---" ]
}
