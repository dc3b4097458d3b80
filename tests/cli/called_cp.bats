#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A link to fcopy that is called cp.

load helper

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
	if is_root && chattr +a d 2>/dev/null; then
		run --separate-stderr bin/cp new d/old
		chattr -a d
		[ "$status" = 0 ]
		holds new d/old
	fi
}

@test "called cp: an abbreviation is of an option of cp; a tree lacks only what failed" {
	local option
	mkdir -p bin s/d d
	ln -s "$FCOPY" bin/cp
	echo one >s/f
	touch -d 2001-02-03 s/f
	bin/cp --pr s/f a
	[ "$(stat -c %Y a)" = "$(stat -c %Y s/f)" ]
	bin/cp --rem --pre=mode --target d --sp=auto -- s/f a
	[ "$(ls d)" = $'a\nf' ]
	run bin/cp --re s/f a
	[ "$status" = 1 ]
	# Several options of fcopy begin so, one of cp: its value follows =, or is the next word, or is missing.
	bin/cp --b=numbered s/f a
	cmp a.~1~ a
	bin/cp --b s/f a
	cmp a.~2~ a
	rm a.* d/f
	bin/cp --t=d s/f
	bin/cp --t d a --f
	[ "$(ls d)" = $'a\nf' ]
	for option in --f=1 --t= --b=x; do
		run bin/cp $option s/f a
		[ "$status" = 1 ]
	done
	run bin/cp s/f --t
	[ "$status" = 1 ]
	ln -s nowhere s/d/dangling
	run bin/cp -rL s t
	[ "$status" = 1 ]
	holds one t/f
	[ "$(ls t/d)" = "" ]
	run --separate-stderr bin/cp -uv s/f u
	[ -z "$stderr" ]
	run --separate-stderr bin/cp -rv s w
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	run bin/cp -r --preserve=context s v
	[ "$status" = 1 ]
	bin/cp -r --no-preserve=context,links s/f v
}

@test "named cp: what is a stream to fcopy is a file" {
	local name
	ln -s "$FCOPY" cp
	mkdir t d c
	for name in - fd:0 tcp-listen:0 tcp:127.0.0.1:1 plain; do echo "$name" >"t/$name"; done
	cd t
	for name in *; do
		timeout 5 ../cp -- "$name" ../x </dev/null
		holds "$name" ../x
		cp plain ../c/
		[ "$name" = plain ] || (cd ../c && timeout 5 ../cp -- plain "$name" </dev/null) # DST, too
	done
	timeout 5 ../cp -- * ../d </dev/null
	diff -r . ../d
	timeout 5 ../cp -t - plain </dev/null && return 1
	mkdir ../e
	cd ../e
	mkdir ./-
	timeout 5 ../cp -t - ../t/plain </dev/null
	holds plain ./-/plain
}

@test "named cp: /dev/stdin and other absolute names of descriptors are not names below this directory" {
	local name
	ln -s "$FCOPY" cp
	mkdir dev # as in the tree of a system that is being built
	for name in stdin stdout; do echo wrong >"dev/$name"; done
	for name in /dev/stdin /dev/fd/0 /proc/self/fd/0; do
		echo data | timeout 5 ./cp "$name" x
		holds data x
	done
	for name in /dev/stdout /dev/fd/1 /proc/self/fd/1; do
		[ "$(timeout 5 ./cp x "$name")" = data ]
	done
	timeout 5 ./cp <(echo named) x
	holds named x
	holds wrong dev/stdout
}
