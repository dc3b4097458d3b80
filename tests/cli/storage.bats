#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Storage that lacks operations or restricts them, as object stores and small FUSE file systems do.

load helper

@test "storage that accepts writes in order only: one thread writes each file, also of a tree" {
	mkdir -p backing s/d
	random s/a 40000000
	cp s/a s/d/b
	by_fuse sequential 'for threads in "" -j4; do
			rm -rf m/*
			"$FCOPY" -r $threads s m/t
			diff -r s backing/t
		done
		"$FCOPY" s/a m/f
		cmp s/a backing/f
		"$FCOPY" --sparse=always s/a m/f
		cmp s/a backing/f'
}

# What rename is asked for, with any name, is left nowhere.
no_probe_left() {
	[ -z "$(find backing -name '.fcopy-*')" ]
}

@test "storage that cannot rename directories: a new tree is built under its name, whatever the errno" {
	mkdir -p backing s/d
	random s/a 100000
	random s/d/b 4097
	ln -s a s/link
	# shellcheck disable=SC2016
	by_fuse rw 'for errno in ENOSYS EMFILE EOPNOTSUPP EPERM EACCES EINVAL EIO EXDEV; do
			setfattr -n user.fault -v renamedir:$errno m
			rm -rf m/*
			"$FCOPY" -r -v --json=out s m/t 2>err
			diff -r --no-dereference s backing/t
			grep -qx "fcopy: m/t: not atomic: rename is unsupported here" err
			grep -q "\"not_atomic\": \"rename is unsupported here\"" out
			[ "$(stat -c %a s/d)" = "$(stat -c %a backing/t/d)" ]
			"$FCOPY" -a s m/u
			diff -r --no-dereference s backing/u
		done'
	no_probe_left
	[ "$(stat -c %a s)" = "$(stat -c %a backing/t)" ]
	expect 0 -r -v --json=out s known
	never mentions 'not atomic'
	grep -q '"not_atomic": null' out
}

@test "storage that cannot rename directories: a tree that fails is removed, unless --keep-going" {
	mkdir -p backing s/{1..40..1} "s/$(printf 'd/%.0s' {1..40})"
	random s/a 100000
	random s/b 1000
	# shellcheck disable=SC2016
	by_fuse fault=renamedir:ENOSYS 's=0
		setfattr -n user.fault -v write:EIO:90000 m
		"$FCOPY" -r s m/t 2>err || s=$?
		[ $s = 1 ]
		[ -z "$(ls -A backing)" ]
		s=0
		"$FCOPY" -r --keep-going s m/t 2>err || s=$?
		[ $s = 1 ]
		cmp s/b backing/t/b
		rm -r m/t
		for option in --resume --shard=0/1; do
			s=0
			"$FCOPY" -r $option s m/t 2>err || s=$?
			[ $s = 1 ]
			grep -q "m/t: cannot be .*: directories cannot be renamed here" err
			[ -z "$(find backing -name "*fcopy-p*")" ]
		done'
	no_probe_left
}
