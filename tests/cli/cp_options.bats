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

@test "--preserve: links, and names that are shortened" {
	mkdir s
	echo data >s/a
	chmod 751 s/a
	touch -d 2001-02-03 s/a
	ln s/a s/b
	expect 0 -r --preserve=l,t s d
	[ "$(stat -c '%h %Y' d/a)" = "2 $(stat -c %Y s/a)" ]
	expect 0 -a --no-preserve=links s e
	[ "$(stat -c %h e/a)" = 1 ]
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

@test "-b, --backup and --suffix: the old file keeps its data under another name" {
	echo old >b
	chmod 640 b
	ln b name
	echo new >a
	chmod 644 a
	expect 0 -b a b
	holds new b
	holds old b~
	[ "$(stat -c '%a %h' b~)" = "640 2" ]
	[ "$(stat -c %a b)" = 644 ]
	echo newer >a
	expect 0 --backup=numbered a b
	holds new b.~1~
	echo newest >a
	expect 0 -b a b
	holds newer b.~2~
	expect 0 --backup=simple -S .bak a b
	holds newest b.bak
	expect 0 --backup=none a b
	VERSION_CONTROL=simple SIMPLE_BACKUP_SUFFIX=.env expect 0 -b a b
	holds newest b.env
	usage_error "--backup: invalid value 'x' (none, numbered, existing, simple, or off, t, nil, never)" --backup=x a b
	[ "$(ls)" = $'a\nb\nb.bak\nb.env\nb.~1~\nb.~2~\nb~\nname' ]
}

@test "-b in a tree: files, symlinks and special files, but no directory" {
	mkdir -p s/d o/s/d
	echo new >s/d/f
	ln -s new s/l
	mkfifo s/p
	echo old >o/s/d/f
	ln -s old o/s/l
	echo old >o/s/p
	expect 0 -ab s o
	holds old o/s/d/f~
	[ "$(readlink o/s/l~) $(readlink o/s/l)" = "old new" ]
	holds old o/s/p~
	[ -p o/s/p ]
	[ "$(ls o/s)" = $'d\nl\nl~\np\np~' ]
}

@test "-b: after a failure the old file is as it was, and has no backup" {
	need_strace
	random a 100000
	echo old >b
	traced 1 inject=pwrite64,write:error=EIO -b -m readwrite a b
	injected
	holds old b
	rm trace
	[ "$(ls)" = $'a\nb' ]
	# The backup would be the source.
	echo old >b~
	expect 1 --backup=simple b~ b
	mentions "backup that is the source"
	holds old b~
}

@test "--remove-destination: a symlink, a hard link, a FIFO or a file with a mode gives the copy nothing" {
	echo new >a
	chmod 644 a
	echo old >victim
	ln -s victim link
	ln victim hard
	mkfifo fifo
	echo old >ro
	chmod 400 ro
	local dst
	for dst in link hard fifo ro; do
		expect 0 --remove-destination a $dst
		holds new $dst
		[ "$(stat -c '%F %a %h' $dst)" = "regular file 644 1" ]
	done
	holds old victim
	mkdir d
	expect 1 --remove-destination -T a d
	ln a a2
	expect 1 --remove-destination a a2
	mentions "are the same file"
	holds new a
}

@test "-l: hard links, also of a tree; an existing file needs -f" {
	mkdir -p s/d
	echo data >s/d/f
	ln -s f s/d/link
	expect 0 -rl s d
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

@test "-i: asks, keeps the file after any other answer than yes, and fails then" {
	echo old >b
	echo old >c
	mkdir d
	cp b d/b
	echo new >a
	run --separate-stderr "$FCOPY" -i a b <<<n
	[ "$status" = 1 ]
	mentions "fcopy: overwrite 'b'?"
	holds old b
	run --separate-stderr "$FCOPY" -i a b </dev/null
	[ "$status" = 1 ]
	holds old b
	run --separate-stderr "$FCOPY" -i a b <<<yes
	[ "$status" = 0 ]
	holds new b
	run --separate-stderr "$FCOPY" -i a new </dev/null
	[ "$status" = 0 ]
	run --separate-stderr "$FCOPY" -i b c d < <(echo n)
	[ "$status" = 1 ]
	holds old d/b
	holds old d/c
}

@test "--parents: the directories of SRC are made below DST, with their modes" {
	mkdir -p s/t/u d
	echo 1 >s/t/f
	echo 2 >s/t/u/f
	chmod 750 s/t
	touch -d 2001-02-03 s/t
	expect 0 --parents s/t/f s/t/u/f d
	holds 1 d/s/t/f
	holds 2 d/s/t/u/f
	[ "$(stat -c %a d/s/t)" = 750 ]
	expect 0 -a --parents "$PWD/./s/t" d
	diff -r s/t "d$PWD/s/t"
	mkdir e
	expect 0 -p --parents s/t/f e
	[ "$(stat -c %Y e/s/t)" = "$(stat -c %Y s/t)" ]
	chmod 555 s/t
	expect 0 --parents s/t/f -t e
	mkdir g
	expect 0 --parents s/t/f g
	[ "$(stat -c %a g/s/t)" = 555 ]
	expect 2 --parents s/t/f new
	cd s
	expect 2 --parents ../s/t/f ../d
	mentions "leaves its directory"
	cd ..
	chmod 755 s/t g/s/t
}

@test "-Z is ignored without SELinux" {
	[ ! -e /sys/fs/selinux/enforce ] || skip "SELinux"
	echo a >a
	expect 0 -Z a b
	expect 0 --context=x a b
	holds a b
}

@test "-P with a file: it is written to a stream or device, as without -P" {
	echo data >a
	ln -s a l
	mkfifo f
	expect 0 -P a -
	[ "$output" = data ]
	expect 0 -P a /dev/null
	timeout "$HANG" cat f >out 3>&- &
	expect 0 -P a f
	wait $!
	holds data out
	expect 2 -P l -
	mentions "a symlink can be copied to a path only"
	expect 0 -P l m
	[ -L m ]
}
