#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --inplace and storage that cannot rename or replace.

load helper

# refuses_and_overwrites RULE: an old file is kept or overwritten, in a copy and in a merge.
refuses_and_overwrites() {
	# shellcheck disable=SC2016
	by_fuse "fault=$1" 'fails() {
			local s=0
			"$FCOPY" "$@" 2>err || s=$?
			[ $s = 1 ] || exit 8
			grep -q "cannot be replaced: rename is unsupported here" err
			grep -q "hint: use --inplace=auto to overwrite" err
			[ "$(cat backing/d/a backing/d/n/b)" = "$(printf "old\nold")" ]
			[ -z "$(find backing -name ".fcopy-*")" ]
		}
		for option in -b --remove-destination; do
			rm -rf m/*
			mkdir -p m/d/n
			echo old >m/d/a
			echo old >m/d/n/b
			fails $option s/a m/d/a
			fails -rT $option s m/d
			"$FCOPY" $option --inplace=auto -rT s m/d
			diff -r -x "*~" s backing/d
			[ $option != -b ] || [ "$(cat backing/d/a~ backing/d/n/b~)" = "$(printf "old\nold")" ]
			echo old >m/d/a
			rm -f m/d/a~
			setfattr -n user.fault -v write:EIO:50000 m
			! "$FCOPY" -b --inplace=auto s/a m/d/a 2>err || exit 1
			grep -qE "(Input/output|I/O) error" err
			setfattr -n user.fault -v write:0 m
			[ "$(cat backing/d/a)" = old ]
		done
		for how in --inplace --inplace=auto; do
			rm -rf m/*
			mkdir -p m/d/n
			echo old >m/d/a
			echo old >m/d/n/b
			chmod 604 m/d/a
			fails s/a m/d/a
			fails s/a s/c m/d
			fails -rT s m/d
			[ "$(cat m/d/c)" = c ]
			"$FCOPY" $how s/a m/d/a
			cmp s/a backing/d/a
			[ "$(stat -c %a backing/d/a)" = 604 ]
			echo old >m/d/a
			"$FCOPY" -v $how -rT s m/d 2>err
			diff -r s backing/d
			grep -q "not atomic: it is written in place" err
		done'
}

@test "storage that cannot replace a file: refused before the first byte; --inplace overwrites it" {
	mkdir -p backing s/n
	random s/a 100000
	echo b >s/n/b
	echo c >s/c
	refuses_and_overwrites rename:ENOSYS
	refuses_and_overwrites renameover:EPERM
}

@test "--inplace=auto replaces what it can, and overwrites a file that is mounted" {
	need_root "for a bind mount"
	mkdir -p s d
	random s/a 100000
	random s/b 5000
	echo old >image
	echo old >d/a
	echo old >d/b
	ln d/b inode
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount --bind image d/a
		! "$FCOPY" -rT s d 2>err || exit 1
		grep -q "d/a: is a mount point and cannot be replaced" err
		grep -q "hint: use --inplace=auto to overwrite it" err
		rm inode
		ln -f d/b inode
		"$FCOPY" -v -aT --inplace=auto s d 2>err
		diff -r s d
		grep -q "d/a: not atomic: it is written in place" err'
	demand 0
	cmp s/a image
	holds old inode
}

@test "--inplace=auto overwrites another's file in a sticky directory, and in one that is not writable" {
	need_root "to own files of two users"
	random a 100000
	mkdir -p sticky closed s
	cp a s/b
	for dir in sticky closed; do
		echo old >$dir/b
		chmod 666 $dir/b
	done
	chmod 1777 sticky
	chmod 755 closed s
	chmod 644 a s/b
	for dir in sticky closed; do
		as_nobody 1 a $dir/b
		mentions "hint: use --inplace=auto to overwrite it"
		as_nobody 0 --inplace=auto a $dir/b
		cmp a $dir/b
		echo old >$dir/b
		as_nobody 0 -rT --inplace=auto s $dir
		cmp a $dir/b
	done
}

@test "--inplace in a tree: a file with other hard links is refused, or replaced with -a" {
	mkdir s d
	random s/a 5000
	random s/b 6000
	for how in --inplace --inplace=auto; do
		rm -rf d
		mkdir d
		echo old >d/a
		ln d/a d/b
		ln -f d/a outside
		expect 1 -rT $how s d
		mentions "has other hard links" "use -f to replace it anyway"
		holds old outside
		holds old d/a
		expect 0 -aT $how s d
		diff -r s d
		holds old outside
	done
	rm -rf d
	expect 0 -r -v --inplace s d
	mentions "d: not atomic: it is written in place"
	diff -r s d
}

@test "--inplace in a tree: a failed copy leaves the name of a file that has other hard links" {
	local how
	mkdir s
	random s/a 100000
	for how in "-aT --inplace" "-aT --inplace=auto" "-rTf --inplace" "-aT --remove-destination --inplace=auto"; do
		rm -rf d
		mkdir d
		echo old >d/a
		ln d/a outside
		# shellcheck disable=SC2086 # two words
		(ulimit -f 10; trap '' XFSZ; expect 1 $how s d)
		holds old d/a
		[ d/a -ef outside ]
		[ "$(ls -A d)" = a ]
		# shellcheck disable=SC2086
		expect 0 $how s d
		diff -r s d
		holds old outside
		[ "$(ls -A d)" = a ]
		rm outside
	done
}

@test "the same on storage without rename, where the file is replaced under its final name" {
	mkdir -p backing s
	random s/a 100000
	# shellcheck disable=SC2016
	by_fuse fault=rename:ENOSYS 'for how in --inplace --inplace=auto "--remove-destination --inplace=auto"; do
			rm -rf m/d
			mkdir m/d
			echo old >m/d/a
			ln m/d/a m/outside
			setfattr -n user.fault -v write:EIO:50000 m
			! "$FCOPY" -aT $how s m/d || exit 1
			[ "$(cat m/d/a) $(ls -A m/d)" = "old a" ] || exit 2
			[ $(stat -c %h backing/d/a) = 2 ] || exit 3
			setfattr -n user.fault -v write:0 m
			"$FCOPY" -aT $how s m/d || exit 4
			cmp s/a m/d/a
			[ "$(cat m/outside) $(ls -A m/d)" = "old a" ] || exit 5
			rm m/outside
		done'
}

@test "storage without rename: a symlink that is in the way is replaced with --inplace only" {
	mkdir -p backing s
	ln -s new s/link
	# shellcheck disable=SC2016
	by_fuse fault=rename:ENOSYS 'mkdir m/d
		ln -s old m/d/link
		! "$FCOPY" -rT s m/d 2>err || exit 1
		grep -q "hint: use --inplace=auto" err
		[ "$(readlink m/d/link)" = old ]
		"$FCOPY" -rT --inplace=auto s m/d
		[ "$(readlink m/d/link)" = new ]
		[ "$(ls -A m/d)" = link ]'
}

@test "--inplace where a file is truncated only when it is opened, or written in order only" {
	mkdir backing
	random a 100000
	random old 200000
	local options
	for options in sequential fault=truncate:ENOSYS; do
		# shellcheck disable=SC2016
		by_fuse $options 'for how in --inplace "--inplace --verify"; do
				cp old backing/b
				"$FCOPY" $how a m/b
				cmp a backing/b
				rm m/b
			done
			"$FCOPY" --resume a m/c
			cmp a backing/c'
	done
	by_fuse fault=fsync:EPERM 's=0
		"$FCOPY" --fsync a m/b 2>err || s=$?
		[ $s = 1 ]
		grep -q "hint: leave out --fsync" err
		[ "$(ls backing)" = c ]
		"$FCOPY" -b a m/c
		cmp a backing/c'
}
