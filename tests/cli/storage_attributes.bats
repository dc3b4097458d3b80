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
			! "$FCOPY" s/a m/open 2>err # the umask would take a right of others
			grep -q "m/open: its mode cannot be kept" err
			[ "$(cat m/open)" = old ]
			"$FCOPY" --inplace=auto s/a m/open
			[ "$(stat -c %a m/open)" = 666 ]
			cmp s/a m/open
			s=0
			"$FCOPY" --preserve=mode s/a m/strict 2>err || s=$?
			[ $s = 1 ] && [ ! -e m/strict ]
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
