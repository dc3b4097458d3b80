#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Options as in cp(1), and a link to fcopy that is called cp.

load helper

@test "-R is -r; -d keeps symlinks and hard links" {
	mkdir s
	echo data >s/a
	ln s/a s/b
	ln -s a s/link
	expect 0 -R s d
	diff -r s d
	expect 0 -d s/link l2
	[ "$(readlink l2)" = a ]
	expect 0 -dR s e
	[ "$(stat -c %h e/a)" = 2 ]
	[ "$(readlink e/link)" = a ]
}

@test "called cp: no MODE, usage errors are failures, and unwritable directories are no obstacle" {
	mkdir bin d
	ln -s "$FCOPY" bin/cp
	echo one >a
	echo two >1
	run bin/cp a 1 d
	[ "$status" = 0 ]
	holds one d/a
	holds two d/1
	run bin/cp a 1 2
	[ "$status" = 1 ]
	run bin/cp --bogus a b
	[ "$status" = 1 ]
	run --separate-stderr bin/cp nowhere b
	[ "$status" = 1 ]
	echo old >d/old
	chmod 555 d
	echo new >new
	if ! is_root; then
		run --separate-stderr bin/cp new d/old
		[ "$status" = 0 ]
		holds new d/old
	fi
	chmod 755 d
}

@test "an option of rsync is answered with that of fcopy" {
	echo a >a
	expect 2 --bwlimit=1M a b
	says "fcopy: --bwlimit=1M: an option of rsync; use --limit-rate"
	expect 2 --partial a b
	says "fcopy: --partial: an option of rsync; use --resume"
	absent b
}
