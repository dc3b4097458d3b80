#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --keep-directory-symlink: an overlay with lib/ over a system where lib leads to usr/lib.

load helper

# s has lib/ and usr/lib/; in d, lib leads to usr/lib.
make_overlay() {
	mkdir -p s/lib/sub s/usr/lib/sub d/usr/lib/sub
	echo 1 >s/lib/a
	echo 2 >s/usr/lib/b
	echo 3 >s/lib/sub/c
	echo 4 >s/usr/lib/sub/e
	echo old >d/usr/lib/a
	ln -s usr/lib d/lib
}

overlaid() {
	[ "$(readlink d/lib)" = usr/lib ]
	[ "$(cat d/usr/lib/a d/usr/lib/b d/usr/lib/sub/c d/usr/lib/sub/e | xargs)" = "1 2 3 4" ]
}

@test "without the option the symlink stays, and what is below it is not copied" {
	make_overlay
	expect 1 -rT s d
	mentions "d/lib: is a symlink: a directory cannot replace it"
	holds old d/usr/lib/a
	[ "$(readlink d/lib)" = usr/lib ]
}

@test "both directories are merged into the one that the symlink leads to" {
	local options
	for options in -rT -aT "-rT -j1" "-rT --fsync" "-rT --inplace" "-aT --update=changed" "-rT -b"; do
		make_overlay
		# shellcheck disable=SC2086
		expect 0 $options --keep-directory-symlink --dry-run s d
		holds old d/usr/lib/a
		absent d/usr/lib/b
		# shellcheck disable=SC2086
		expect 0 $options --keep-directory-symlink s d
		overlaid || { echo "with $options"; return 1; }
		[ "$options" != "-rT -b" ] || holds old d/usr/lib/a~
		rm -r s d
	done
}

@test "a new directory below the symlink, and an absolute symlink" {
	make_overlay
	rm d/lib
	mkdir elsewhere
	ln -s "$PWD/elsewhere" d/lib
	expect 0 -rT --keep-directory-symlink s d
	holds 1 elsewhere/a
	holds 3 elsewhere/sub/c
	holds old d/usr/lib/a
	holds 2 d/usr/lib/b
}

@test "DST/SRC, and DST with -T, may be the symlink" {
	mkdir -p lib d/usr/lib
	echo 1 >lib/a
	ln -s usr/lib d/lib
	expect 0 -r --keep-directory-symlink lib d
	holds 1 d/usr/lib/a
	rm d/usr/lib/a
	expect 0 -rT --keep-directory-symlink lib d/lib
	holds 1 d/usr/lib/a
	[ -L d/lib ]
	expect 2 -rT lib d/lib
}

@test "a symlink that dangles, loops or leads to a file stays, and is refused" {
	local target
	for target in nowhere lib file; do
		mkdir -p s/lib d
		echo 1 >s/lib/a
		echo file >d/file
		ln -s $target d/lib
		expect 1 -rT --keep-directory-symlink s d
		mentions "d/lib: "
		[ "$(readlink d/lib)" = $target ]
		holds file d/file
		absent d/nowhere
		rm -r s d
	done
}

@test "two entries that lead to one file: one is copied, the other is reported" {
	make_overlay
	echo other >s/usr/lib/a
	expect 1 -rT --keep-directory-symlink s d
	mentions "lib/a: is already the copy of another entry: not replaced"
	grep -qxE '1|other' d/usr/lib/a
	holds 2 d/usr/lib/b
}

@test "a symlink into SRC, or to it: nothing in SRC is changed" {
	local target
	for target in ../s/usr ../s .. "$PWD/s/lib"; do
		mkdir -p s/lib s/usr/lib d
		echo 1 >s/lib/a
		echo usr >s/usr/a
		cp -a s before
		ln -s "$target" d/lib
		run timeout 20 "$FCOPY" -rT --keep-directory-symlink s d
		[ "$target" = .. ] || [ "$status" = 1 ] || { echo "$target: $status"; return 1; }
		diff -r before s
		rm -rf s before d a
	done
}

@test "a symlink of another user, or in a directory of one, is not followed; one of root is" {
	need_root "to have another user's symlink"
	make_overlay
	chown 65534 d
	chown -h 65534 d/lib
	expect 1 -rT --keep-directory-symlink s d
	mentions "d/lib: is, or leads through, a symlink that another user made or can move: it is not followed to a directory"
	holds old d/usr/lib/a
	holds 2 d/usr/lib/b
	expect 1 -rT --keep-directory-symlink --dry-run s d
	mentions "d/lib: is, or leads through, a symlink"
	expect 2 -rT lib --keep-directory-symlink d/lib
	mkdir lib
	expect 1 -rT lib --keep-directory-symlink d/lib
	mentions "a symlink that another user made or can move"
	chown -h 0 d/lib # in a directory of the user nobody, who can have moved it there
	expect 1 -rT --keep-directory-symlink s d
	mentions "a symlink that another user made or can move"
	holds old d/usr/lib/a
	chown 0 d
	expect 0 -rT --keep-directory-symlink s d
	overlaid
	# The symlink of root leads through one of another user.
	mkdir -p theirs
	mv d/usr/lib theirs/lib
	chown 65534 theirs
	$NOBODY ln -s lib theirs/there
	ln -sfn ../theirs/there d/lib
	echo old | tee theirs/lib/a >theirs/lib/b
	expect 1 -rT --keep-directory-symlink s d
	mentions "a symlink that another user made or can move"
	holds old theirs/lib/a
}

@test "no entry replaces a symlink in DST that another one was written through" {
	local options make
	mkdir -p s/a
	echo 1 >s/a/z
	for options in -a -r "-a -f" "-a -b" "-a --remove-destination" "-a --update=changed"; do
		for make in "ln -s x1" mkfifo; do
			rm -rf d s/a/a
			mkdir d
			ln -s . d/a
			$make s/a/a
			# shellcheck disable=SC2086
			expect 1 $options --keep-directory-symlink -T s d
			mentions "d/a/a: is already the copy of another entry: not replaced"
			holds 1 d/a/z
		done
	done
	# A symlink that the first one leads to.
	rm -rf s d
	mkdir -p s/c d/real
	echo new >s/c/z
	ln -s x s/l
	ln -s real d/l
	ln -s l d/c
	expect 1 -a --keep-directory-symlink -T s d
}

@test "-l and -s: of two entries that become one, the second fails" {
	local options
	mkdir -p s/a
	ln -s x1 s/a/c
	ln -s x2 s/c
	for options in "-a -l -f" "-a -l -b" "-a -l --remove-destination" "-a -s -f"; do
		rm -rf d
		mkdir d
		ln -s . d/a
		# shellcheck disable=SC2086
		expect 1 $options --keep-directory-symlink -T "$T/s" d
		mentions "c: is already the copy of another entry: not replaced"
		absent d/c~
	done
}

@test "few descriptors: directories below the symlink are opened again" {
	local i
	mkdir -p s/lib d/usr/lib
	ln -s usr/lib d/lib
	for i in {1..60}; do
		mkdir -p "s/lib/$i/x/y/z"
		echo "$i" >"s/lib/$i/x/y/z/f"
	done
	run --separate-stderr bash -c 'ulimit -n 32; "$0" -rTj4 --keep-directory-symlink s d' "$FCOPY"
	demand 0
	diff -r s/lib d/usr/lib
	[ -L d/lib ]
}

@test "what it is combined with, and under the name cp" {
	make_overlay
	usage_error "--keep-directory-symlink: requires -r or -a" --keep-directory-symlink s/lib/a b
	usage_error "--keep-directory-symlink: cannot be combined with --delete" -aT --delete --keep-directory-symlink s d
	usage_error "--keep-directory-symlink: cannot be combined with --mirror" --mirror --keep-directory-symlink s d
	usage_error "--keep-directory-symlink: cannot be combined with --shard" -a --shard=1/2 --keep-directory-symlink s new
	expect 0 -a --keep-directory-symlink s new
	diff -r s new
	mkdir bin
	ln -s "$FCOPY" bin/cp
	run bin/cp -rT --keep-d s d
	[ "$status" = 0 ]
	overlaid
}
