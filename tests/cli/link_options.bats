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
	mentions "o: exists; use -f to replace it"
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
	mentions "here: exists; use -f to replace it"
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

@test "-l and -s replace nothing without -f, -b or --remove-destination, whatever SRC is and what DST has" {
	local options way name failed
	mkdir s
	echo new >s/file
	echo new >s/linked
	ln -s file s/symlink
	mkfifo s/fifo
	prepare() {
		rm -rf d other
		mkdir d
		echo old | tee d/file d/linked d/symlink >d/fifo
		ln d/linked other
	}
	for way in -l -s; do
		for options in "-rP" "-dR" "-a" "-r --preserve=links" "-rL" "-rH" "-r"; do
			prepare
			# shellcheck disable=SC2086 # words
			expect 1 --keep-going --dry-run $options $way -T "$PWD/s" d
			failed=$(grep -c 'exists; use -f to replace it' <<<"$stderr")
			# shellcheck disable=SC2086
			expect 1 --keep-going $options $way -T "$PWD/s" d
			[ "$failed $(grep -c 'exists; use -f to replace it' <<<"$stderr")" = "4 4" ]
			for name in file linked symlink fifo; do
				holds old d/$name
				[ "$(stat -c %F d/$name)" = "regular file" ]
			done
		done
		for name in file linked symlink fifo; do
			expect 1 -P -a $way "$PWD/s/$name" d
			mentions "d/$name: exists; use -f to replace it"
			holds old d/$name
		done
		for options in -f -b --remove-destination; do
			prepare
			expect 0 -a $way $options -T "$PWD/s" d
			[ "$(readlink d/symlink)" = "$([ $way = -l ] && echo file || echo "$PWD/s/symlink")" ]
			[ ! -f d/fifo ] || [ -L d/fifo ]
			holds old other
			[ $options != -b ] || holds old d/symlink~
		done
	done
	# A name that is a link to SRC already is complete.
	rm -rf d
	expect 0 -a -l -T s d
	expect 0 -a -l -T s d
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
