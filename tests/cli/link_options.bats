#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -l and -s: links instead of copies.

load helper

@test "-l: hard links, also of a tree; an existing file needs -f" {
	mkdir -p s/d
	echo data >s/d/f
	ln -s f s/d/link
	expect 0 -rlP s d
	[ "$(stat -c %i s/d/f)" = "$(stat -c %i d/d/f)" ]
	[ "$(stat -c %i s/d/link)" = "$(stat -c %i d/d/link)" ]
	expect 0 -l s/d/f d/d/f
	echo other >o
	expect 1 -l s/d/f o
	mentions "o: linkat: File exists"
	holds other o
	expect 0 -lf s/d/f o
	[ "$(stat -c %h o)" = 3 ]
	expect 0 -n -l s/d/f s/d/link
}

@test "-s: symlinks that lead to SRC, also in trees; an existing file needs -f" {
	mkdir -p s/d
	echo data >s/d/f
	ln -s f s/d/link
	chmod 750 s/d
	expect 0 -rs "$PWD/s" d
	[ "$(readlink d/d/f) $(readlink d/d/link)" = "$PWD/s/d/f $PWD/s/d/link" ]
	[ "$(stat -c '%F %a' d/d)" = "directory 750" ]
	expect 0 -s s/d/f here
	[ "$(readlink here)" = s/d/f ]
	expect 2 -s s/d/f d
	mentions "would not lead to SRC"
	expect 1 -s "$PWD/s/d/f" here
	mentions "here: symlink: File exists"
	expect 0 -sf "$PWD/s/d/f" here
	[ "$(readlink here)" = "$PWD/s/d/f" ]
	expect 2 -sf here here
	expect 2 -sf s/d/f s/d/f
	holds data s/d/f
	expect 0 -asb "$PWD/s/d/f" here
	[ "$(readlink here~)" = "$PWD/s/d/f" ]
	touch -d 2001-02-03 s/d/f
	expect 0 -as "$PWD/s/d/f" old
	[ "$(stat -c %Y old)" = "$(stat -c %Y s/d/f)" ]
	usage_error "--symbolic-link: cannot be combined with --link" -sl s/d/f x
	chmod 000 s/d/f
	expect 0 -s s/d/f unreadable
}

@test "-l and -s replace what cp replaces: by a symlink or special file, and a file with other hard links" {
	local options way
	mkdir s
	echo new >s/file
	echo new >s/linked
	ln -s file s/symlink
	mkfifo s/fifo
	for way in -l -s; do
		for options in "-rP" "-dR" "-a" "-r --preserve=links" "-rL" "-rH"; do
			for to in cp d; do
				rm -rf "$to" "$to.other"
				mkdir -p "$to/s"
				echo old | tee "$to/s/file" "$to/s/linked" "$to/s/symlink" >"$to/s/fifo"
				ln "$to/s/linked" "$to.other"
			done
			# shellcheck disable=SC2086 # words; unlike cp, fcopy stops at the first failure
			cp $options $way "$PWD/s" cp || true
			# shellcheck disable=SC2086
			"$FCOPY" --keep-going --dry-run $options $way "$PWD/s" d >plan 2>&1 || true
			# shellcheck disable=SC2086
			expect 1 --keep-going $options $way "$PWD/s" d
			cmp <(cd cp && find . -printf '%p %y %l\n' | sort) <(cd d && find . -printf '%p %y %l\n' | sort)
			[ "$(grep -c 'File exists' plan)" = "$(grep -c 'File exists' <<<"$stderr")" ]
			holds old d.other
		done
	done
}

@test "-l follows symlinks, unless -P: files, directories and what is missing" {
	mkdir dir
	echo x >file
	ln -s dir tod
	ln -s file tof
	ln -s none ton
	local option
	for option in "" -L -H -R -RL -RH; do
		# shellcheck disable=SC2086
		expect 0 -l $option tof dst
		[ "$(stat -c '%F %i' dst)" = "regular file $(stat -c %i file)" ]
		rm dst
		# shellcheck disable=SC2086
		expect 2 -l $option ton dst
	done
	expect 2 -l tod dst
	expect 0 -lR tod dst
	[ -d dst ]
	[ ! -L dst ]
	for option in tod tof ton; do
		expect 0 -lRP $option $option.2
		[ "$(stat -c %i $option.2)" = "$(stat -c %i $option)" ]
	done
	expect 2 -rl dir dir
	[ -z "$(ls dir)" ]
}
