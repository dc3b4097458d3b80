#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a mirror removes, and what it leaves: limits, patterns, mounts and SRC itself.

load helper
load mirror

@test "nothing is removed if an entry failed, if SRC is empty, or above --max-delete" {
	make_source
	expect 0 --mirror s d
	echo extra >d/extra
	mkdir d/dir
	echo >d/dir/f
	expect 1 --mirror --max-delete=2 s d
	mentions "d: nothing is removed: 3 would be, and --max-delete is 2"
	expect 1 --mirror --dry-run --max-delete=2 s d
	mentions "3 would be, and --max-delete is 2" "0 would be removed"
	[ -z "$output" ]
	usage_error "--mirror: cannot be combined with --resume: to begin or continue a new DST, use fcopy -aT --resume SRC DST" --mirror --resume s d
	[ -f d/extra ]
	[ -f d/dir/f ]
	mkdir -p none excluded/lost+found
	expect 1 --mirror none d
	mentions "d: nothing is removed, because SRC is empty; to remove all, use --max-delete=N"
	expect 1 --mirror --exclude=lost+found/ excluded d
	mentions "d: nothing is removed, because all of SRC is excluded; to remove all else, use --max-delete=N"
	[ -f d/extra ]
	[ -f d/top ]
	printf 'top\n' >s/locked
	if is_root; then
		chattr +i d/top 2>/dev/null || skip "no immutable files here"
		echo 4444 >s/top
	else
		chmod 000 s/locked
	fi
	expect 1 --mirror s d
	mentions "nothing is removed, because entries failed"
	[ -f d/extra ]
	! is_root || chattr -i d/top
	chmod 644 s/locked
	expect 0 --mirror --max-delete=3 s d
	mirrored
	expect 0 --mirror --max-delete=100 none d
	[ -z "$(ls -A d)" ]
}

@test "above --max-delete an entry of another type is not removed either" {
	make_source
	expect 0 --mirror s d
	rm -r s/a
	echo a file >s/a
	expect 1 --mirror --max-delete=3 s d
	mentions "d/a: differs in type from its source: its removal would exceed --max-delete"
	[ "$(cat d/a/b/y)" = 2 ]
	expect 0 --mirror --max-delete=5 s d
	mirrored
}

@test "--max-delete counts what is in directories that their owner has closed" {
	local mode as=()
	! is_root || read -r -a as <<<"$NOBODY"
	chmod 777 .
	for mode in 0 300 400 600 500; do
		"${as[@]}" mkdir -p s/d t/d t/extra
		"${as[@]}" touch s/d/f t/d/{f,1,2} t/extra/{1,2,3}
		"${as[@]}" chmod $mode t/d t/extra
		as_nobody 1 --mirror --no-preserve=mode --max-delete=5 s t
		mentions "t: nothing is removed: 6 would be, and --max-delete is 5"
		[ "$(stat -c %a t/d t/extra | xargs)" = "$mode $mode" ]
		as_nobody 0 --mirror --no-preserve=mode --max-delete=6 s t
		[ "$(ls t)" = d ]
		"${as[@]}" chmod 700 t/d
		[ "$(ls t/d)" = f ]
		rm -r s t
	done
	is_root || return 0
	# A count takes no setgid bit.
	mkdir -p s t/extra
	touch s/f t/{f,extra/1}
	chown -R 65534:5678 s t
	chmod 2300 t/extra
	as_nobody 1 --mirror --max-delete=5 s t
	mentions "t: nothing is removed: not all can be counted, which --max-delete requires"
	as_nobody 1 --mirror --dry-run --max-delete=5 s t
	mentions "not all can be counted"
	[ "$(stat -c %a t/extra)" = 2300 ]
	as_nobody 0 --mirror s t
	[ "$(ls t)" = f ]
}

@test "what was removed for another type counts for --max-delete, and the message says so" {
	make_source
	expect 0 --mirror s d
	rm -r s/a
	echo a file >s/a
	touch d/extra
	local way
	for way in --dry-run ""; do
		# shellcheck disable=SC2086 # a word or none
		expect 1 $way --mirror --max-delete=5 s d
		mentions "d: nothing else is removed: 6 would be, and --max-delete is 5"
		[ -f d/extra ]
	done
	holds "a file" d/a
	mentions "5 removed"
	touch d/more # nothing was removed before
	expect 1 --mirror --max-delete=1 s d
	mentions "d: nothing is removed: 2 would be, and --max-delete is 1"
	expect 0 --mirror --max-delete=2 s d
	mirrored
}

@test "excluded entries and copies at work are not removed; a directory that keeps some stays" {
	make_source
	expect 0 --mirror s d
	mkdir -p d/gone/deep d/x.fcopy-part d/.fcopy-0123456789abcdef
	touch d/gone/deep/keep.me d/gone/deep/f d/keep.me s/keep.me.not
	expect 0 --mirror --exclude=keep.me s d
	[ "$(find d/gone | sort | xargs)" = 'd/gone d/gone/deep d/gone/deep/keep.me' ]
	[ -f d/keep.me ]
	[ -d d/x.fcopy-part ]
	[ -d d/.fcopy-0123456789abcdef ]
	rm -r d/x.fcopy-part d/.fcopy-0123456789abcdef
	expect 0 --mirror s d
	mirrored
}

@test "a pattern for directories keeps no file of that name: rsync removes it, too" {
	local options
	need rsync
	for options in '--exclude=*/' '--exclude=x/***' '--include=*.o --exclude=/sub/x/ --exclude=*/x/'; do
		rm -rf s d r
		mkdir -p s/sub/x s/x s/sub/y d/sub/y d/x d/sub
		touch s/x/f d/x/kept s/sub/f
		mkfifo d/sub/x d/fifo
		cp -a d r
		# shellcheck disable=SC2086 # words
		rsync -a --delete $options s/ r/
		# shellcheck disable=SC2086
		expect 0 --mirror --max-delete=9 --dry-run $options s d
		[ -p d/sub/x ]
		# shellcheck disable=SC2086
		expect 0 --mirror --max-delete=9 $options s d
		cmp <(cd r && find . | sort) <(cd d && find . | sort)
		absent d/fifo
	done
	absent d/sub/x
	[ -d s/sub/x ]
}

@test "a directory that would become a file, but holds an entry that stays, keeps all of it" {
	local before options
	mkdir -p s d/x/sub d/y/t.fcopy-part d/z
	touch s/x s/y s/z d/x/a d/x/sub/keep.o d/y/b d/z/c
	before=$(everything d/x; everything d/y)
	for options in --dry-run '--dry-run --max-delete=9' --max-delete=9 ''; do
		# shellcheck disable=SC2086
		expect 1 --mirror --exclude='*.o' $options s d
		mentions 'd/x: differs in type from its source, but holds sub/keep.o, which is excluded'
		mentions 'd/y: differs in type from its source, but holds t.fcopy-part, which is an unfinished copy'
		[ "$(everything d/x; everything d/y)" = "$before" ]
		[[ $options = --dry* && -d d/z ]] || [ -f d/z ]
		[[ $output != *d/x* && $output != *d/y* ]]
	done
	mkdir s/dir
	mkfifo d/dir
	expect 1 --mirror --exclude='dir' --exclude='*.o' s d
	[ -p d/dir ]
}

@test "SRC inside DST is never removed, nor is what contains it" {
	mkdir -p d/data/s d/other
	echo 1 >d/data/s/f
	echo 2 >d/other/g
	expect 1 --mirror --max-delete=100 d/data/s d
	mentions "d/data: contains SRC: not removed"
	holds 1 d/data/s/f
	absent d/other
	holds 1 d/f
}

@test "what is mounted in DST is neither entered nor removed" {
	export FCOPY
	private_mounts 'mkdir -p s d/m d/sub; echo 1 >s/f; mount -t tmpfs none d/m; echo 2 >d/m/g; echo 3 >t; mkdir t.d; echo 4 >t.d/h
		mount --bind t.d d/sub
		"$FCOPY" --mirror s d && exit 8
		[ -f d/m/g ] && [ -f d/sub/h ] && [ -f d/f ]'
	demand 0
}

@test "a file that a symlink or a FIFO replaces counts for --max-delete" {
	local i options
	for options in --mirror '-rT --delete'; do
		rm -rf s d
		mkdir s d
		for i in 1 2; do
			ln -s x s/link$i
			mkfifo s/fifo$i
			echo old | tee d/link$i >d/fifo$i
		done
		echo extra >d/extra
		# shellcheck disable=SC2086 # words
		expect 1 --dry-run $options --max-delete=0 s d
		# shellcheck disable=SC2086
		expect 1 $options --max-delete=0 s d
		[ "$(cat d/*)" = "$(printf '%s\n' extra old old old old)" ]
	done
	expect 1 --mirror --max-delete=2 s d
	[ "$(find d -type f | wc -l)" = 3 ]
	expect 0 --mirror --max-delete=5 s d
	[ "$(find d -type f | wc -l)" = 0 ]
}

@test "below a mount point of DST, which may be another view of SRC, nothing is removed and no type changes" {
	export FCOPY
	private_mounts 'mkdir -p s/m p/dst/m p/other; echo 1 >s/m/t; echo 2 >p/other/x
		mount -t tmpfs none p/dst/m || exit 9
		mkdir p/dst/m/t; echo 3 >p/dst/m/t/kept
		"$FCOPY" --mirror s p/dst 2>one && exit 8
		[ -f p/dst/m/t/kept ] || exit 7
		umount p/dst/m
		mount --bind p p/dst/m
		"$FCOPY" --mirror s p/dst 2>two && exit 6
		[ -f p/other/x ] && [ -d p/dst/m/dst ] || exit 5
		umount p/dst/m
		mkdir -p o/t; echo 4 >o/t/kept
		mount --bind o p/dst/m
		"$FCOPY" --mirror s p/dst 2>three && exit 4
		[ -f o/t/kept ] || exit 3'
	[ "$status" != 9 ] || skip "no tmpfs can be mounted here"
	demand 0
	grep -qx "fcopy: p/dst/m/t: differs in type from its source, but is below a mount point: not removed" one
	grep -qx "fcopy: p/dst/m/t: differs in type from its source, but is below a mount point: not removed" three
	grep -qx "fcopy: p/dst/m/other: is below a mount point: not removed" two
}
