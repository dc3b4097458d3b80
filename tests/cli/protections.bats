#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Destinations that the kernel protects: flags, sticky directories, symlinks of others.

load helper

@test "immutable and append-only destinations: refused, untouched" {
	need_root "to set the attributes"
	need chattr
	echo new >a
	echo old >b
	local attribute
	for attribute in i a; do
		chattr +$attribute b 2>/dev/null || skip "no such attributes on this file system"
		expect 1 a b
		says "fcopy: b: is immutable or append-only" \
			"fcopy: hint: remove the flag with chattr -i or chattr -a"
		expect 1 -f a b
		expect 1 --inplace a b
		says "fcopy: b: open: Operation not permitted"
		holds old b
		chattr -$attribute b
	done
}

@test "an append-only file takes what comes through a descriptor" {
	need_root "to set the attribute"
	need chattr
	echo new >a
	echo old >b
	chattr +a b 2>/dev/null || skip "no such attribute on this file system"
	local mode
	for mode in auto readwrite splice; do
		run --separate-stderr bash -c '"$0" a - '$mode' >>b' "$FCOPY"
		[ $mode = splice ] || demand 0
	done
	chattr -a b
	holds $'old\nnew\nnew' b
}

# The setting is the whole machine's: hold it for the moment of one copy, and one test at a time.
# shellcheck disable=SC2094 # the lock is on the setting itself
protected_symlinks() {
	(
		flock 9
		old=$(cat /proc/sys/fs/protected_symlinks)
		trap 'echo "$old" >/proc/sys/fs/protected_symlinks' EXIT
		echo 1 >/proc/sys/fs/protected_symlinks
		"$@"
	) 9</proc/sys/fs/protected_symlinks
}

@test "fs.protected_symlinks: a link of somebody else in a sticky directory is not followed" {
	need_root "to make links of others"
	[ -w /proc/sys/fs/protected_symlinks ] || skip "fs.protected_symlinks cannot be set"
	echo new >a
	echo old >target
	mkdir sticky
	chmod 1777 sticky
	ln -s ../target sticky/link
	chown -h 65534 sticky/link
	local option
	for option in -f --inplace; do
		protected_symlinks expect 1 $option a sticky/link
		holds old target
	done
	protected_symlinks expect 1 sticky/link b
	absent b
	chown -h "$(id -u)" sticky/link
	protected_symlinks expect 0 a sticky/link
	holds new target
}

IN_PLACE_HINT="fcopy: hint: use --inplace=auto to overwrite it"

@test "a new tree in an append-only directory: refused before anything is created" {
	need_root "to set the attribute"
	need chattr
	mkdir -p s/below d/old
	echo new >s/below/a
	chattr +a d 2>/dev/null || skip "no such attribute on this file system"
	local arguments
	for arguments in "-r s d" "-a s d" "--resume -r -t d s"; do
		# shellcheck disable=SC2086
		expect 1 $arguments
		says "fcopy: d/s: cannot be renamed: its directory is append-only"
		[ "$(ls -A d)" = old ]
	done
	expect 0 -rT s d/old
	holds new d/old/below/a
	chattr -a d
}

@test "an append-only directory: refused before the first byte, and --inplace works" {
	need_root "to set the attribute"
	need chattr
	echo new >a
	mkdir d
	echo old >d/b
	chattr +a d 2>/dev/null || skip "no such attribute on this file system"
	local option
	for option in --fsync -f --resume; do
		expect 1 $option a d/b
		says "fcopy: d/b: cannot be replaced: its directory is append-only" \
			"$IN_PLACE_HINT$([ $option != --resume ] || echo '; leave out --resume')"
		holds old d/b
	done
	expect 1 --resume a d/c
	says "fcopy: d/c: cannot be replaced: its directory is append-only"
	[ "$(ls -A d)" = b ]
	expect 0 --inplace a d/b
	holds new d/b
	expect 0 a d/c
	[ "$(ls -A d)" = $'b\nc' ]
}

@test "a sticky directory, and nothing in it is ours: refused, and not -f but --inplace works" {
	need_root "to make a file of somebody else's"
	echo new >a
	mkdir sticky
	chmod 1777 sticky
	echo old >sticky/b
	chmod 666 sticky/b
	local option
	for option in --fsync -f; do
		as_nobody 1 $option a sticky/b
		says "fcopy: sticky/b: cannot be replaced: you own neither it nor its sticky directory" \
			"$IN_PLACE_HINT"
		holds old sticky/b
	done
	as_nobody 0 --inplace a sticky/b
	holds new sticky/b
	NOBODY="$NOBODY --inh-caps +fowner --ambient-caps +fowner" as_nobody 0 -f a sticky/b
	chown 0 sticky/b
	chown 65534 sticky
	as_nobody 0 -f a sticky/b
	chown 0 sticky
	chown 65534:65534 sticky/b
	as_nobody 0 a sticky/b
}

@test "erofs: a read-only file system, and no word of immutable files" {
	need_root "to mount an image"
	need mkfs.erofs
	mkdir tree m
	echo old >tree/b
	echo new >a
	mkfs.erofs image tree >/dev/null
	export FCOPY
	private_mounts 'mount -t erofs -o loop image m || exit 9; "$FCOPY" a m/b; exit $?'
	[ "$status" != 9 ] || skip "no erofs here"
	demand 1
	says "fcopy: m/b: open: Read-only file system"
}
