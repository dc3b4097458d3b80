#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A call that storage or a sandbox lacks, whatever errno says so: the copy goes on without what nobody asked for.

load helper

@test "flock that fails with any errno but that of a held lock: trees, --resume and mirrors are complete, shards refused" {
	need cc
	cc -o deny "$BATS_TEST_DIRNAME/../tools/deny.c" -lseccomp 2>log || skip "no libseccomp"
	./deny flock EPERM true || skip "no seccomp filters here"
	mkdir s
	random s/a 20000
	random s/b 300000
	local errno i
	for errno in ENOSYS ENOLCK EOPNOTSUPP EACCES EPERM ENOTTY 524; do
		rm -rf o
		mkdir o
		./deny flock $errno "$FCOPY" -rT s o/tree
		diff -r s o/tree
		./deny flock $errno "$FCOPY" --resume s/b o/file
		cmp s/b o/file
		for i in 1 2; do
			./deny flock $errno "$FCOPY" -q --mirror s o/mirror
		done
		diff -r s o/mirror
		[ -z "$(find o -name '*fcopy*')" ]
		run --separate-stderr ./deny flock $errno "$FCOPY" -q -T --shard=0/2 s/b o/shards
		demand 1
		mentions "no locks that other machines see"
		absent o/shards
		[ -z "$(find o -name '*fcopy*')" ]
	done
}

@test "flock that fails with an error of I/O is a failure" {
	need cc
	cc -o deny "$BATS_TEST_DIRNAME/../tools/deny.c" -lseccomp 2>log || skip "no libseccomp"
	./deny flock EPERM true || skip "no seccomp filters here"
	random f 300000
	run --separate-stderr ./deny flock EIO "$FCOPY" --resume f g
	demand 1
	mentions "flock: Input/output error"
	absent g
}

@test "--verify where O_DIRECT opens a file but reads nothing: through the page cache, with a warning" {
	mkdir -p backing s
	random s/a 3000000
	random s/b 30
	: >s/empty
	# shellcheck disable=SC2016
	by_fuse unaligned '"$FCOPY" --verify s/a m/f 2>err
		cmp s/a m/f
		grep -q "warning: m/f: verified through the page cache" err
		"$FCOPY" --verify m/f out 2>err
		cmp s/a out
		grep -q "warning: out: verified through the page cache" err
		"$FCOPY" -q -aT --verify s m/t
		diff -r s m/t
		"$FCOPY" s/a - | "$FCOPY" -q --verify - m/stream
		cmp s/a m/stream
		setfattr -n user.fault -v read:EIO m
		! "$FCOPY" --verify s/a m/bad 2>err || exit 1
		grep -qE "read back: (Input/output|I/O) error" err
		[ ! -e m/bad ]'
}

@test "--verify without /proc: files and trees are compared, with a warning" {
	mkdir s
	random s/a 3000000
	random s/b 30
	# shellcheck disable=SC2016
	private_mounts 'mount -t tmpfs none /proc || exit 9
		"$FCOPY" --verify s/a f 2>err
		cmp s/a f
		grep -q "warning: f: verified through the page cache: /proc is not mounted" err
		"$FCOPY" -q -aT --verify s t
		diff -r s t
		"$FCOPY" --verify s/b f 2>err
		cmp s/b f'
	[ "$status" != 9 ] || skip "cannot mount"
	demand 0
}
