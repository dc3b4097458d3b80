#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A table: what storage does not keep, and what a second run does there. It copies nothing again, or its
# last line says what and why.

load helper

# source_tree: s, with times of nine digits, an owner, a mode and an attribute; big; and the tree t.
source_tree() {
	timed_tree README
	chmod 640 s/2
	is_root && chown 5:6 s/3
	setfattr -n user.origin -v here s/1 2>/dev/null || true
	touch -d "2024-05-06 07:08:11.987654321" s/d s
	random big 3000000
	mkdir t
	cp big t/big
	echo small >t/small
}

# again COMMAND…: what has run already copies nothing when it runs once more, and says so.
again() {
	"$FCOPY" -v "$@" >out 2>err || { cat out err; return 1; }
	! grep -e ' -> ' out || { cat err; return 1; }
	! grep -Eq ' [1-9][0-9]* copied|^fcopy: [1-9][0-9]* copied' err || { cat err; return 1; }
}

# nights OPTIONS: on faultfs, mounted at m with these options.
nights() {
	set -e
	"$FCOPY" --mirror s m/mirror 2>err
	again --mirror s m/mirror
	grep -q "^fcopy: 0 copied, [1-9][0-9]* unchanged, 0 removed" err
	"$FCOPY" -aT s m/monday 2>err
	"$FCOPY" -aT --link-dest=m/monday s m/tuesday 2>err
	grep -q "^fcopy: 0 copied, .*4 linked" err || { cat err; return 1; }
	for f in 1 2 3 d/README; do # faultfs folds to small letters
		[ "backing/monday/$f" -ef "backing/tuesday/$f" ] || [ "backing/monday/${f,,}" -ef "backing/tuesday/${f,,}" ]
	done
	again -au -T s m/monday
	# Killed, mounted again, and continued.
	timeout -s KILL 1 "$FCOPY" -q --resume --limit-rate=1M big m/big || [ $? = 137 ]
	timeout -s KILL 1 "$FCOPY" -q -aT --resume --limit-rate=1M t m/t || [ $? = 137 ]
	[ -e m/big.fcopy-part ]
	[ -e m/t.fcopy-part ]
	until umount m 2>/dev/null; do sleep 0.1; done
	$FAULTFS backing m -o "$1"
	"$FCOPY" --stats --resume big m/big 2>err || { cat err; return 1; }
	grep -q "^resumed" err || { cat err; return 1; }
	cmp big m/big
	"$FCOPY" -aT --resume t m/t 2>err || { cat err; return 1; }
	diff -r t m/t
	again --mirror s m/mirror
}
export -f again nights

# row OPTIONS: one line of the table.
row() {
	mkdir backing
	source_tree
	by_fuse "$1" "nights '$1'"
	[ -z "$(find backing -name '.fcopy-*' ! -name .fcopy-mirror; find backing -name '*.fcopy-part')" ]
}

@test "storage with times of 2 s: a second run copies nothing, and a copy continues after a remount" {
	row steps=2
}

@test "storage with times of 1 s: the same" {
	row steps=1
}

@test "storage with times of 100 ns: the same" {
	row grain=100
}

@test "storage without owners: the same" {
	row fault=chown:EPERM
}

@test "storage without owners and modes: the same" {
	row fmode=755,dmode=755,fault=chown:EPERM
}

@test "storage without extended attributes: the same" {
	row fault=setxattr:EOPNOTSUPP,fault=listxattr:EOPNOTSUPP,fault=getxattr:EOPNOTSUPP
}

@test "storage that keeps extended attributes: the same" {
	row xattrs
}

@test "storage that folds names: the same" {
	row caseless,entry_timeout=0,attr_timeout=0
}

@test "storage that gives other inode numbers after a remount: the same" {
	row drawn
}

@test "storage without hard links: a second mirror and -u copy nothing; --link-dest copies, and says so" {
	mkdir backing
	source_tree
	# shellcheck disable=SC2016
	by_fuse fault=link:EPERM '"$FCOPY" --mirror s m/mirror 2>err
		again --mirror s m/mirror
		"$FCOPY" -aT s m/monday 2>err
		"$FCOPY" -aT --link-dest=m/monday s m/tuesday 2>err; cat err
		again -au -T s m/monday'
	echo "$output"
	[[ $output == *"m/tuesday/1: linkat: Operation not permitted"* ]]
	[[ $output == *$'\n'"fcopy: 4 copied, 0 linked"* ]]
}
