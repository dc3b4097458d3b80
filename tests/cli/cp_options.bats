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

@test "an option of rsync is answered with that of fcopy" {
	echo a >a
	expect 2 --bwlimit=1M a b
	says "fcopy: --bwlimit=1M: an option of rsync; use --limit-rate"
	expect 2 --partial a b
	says "fcopy: --partial: an option of rsync; use --resume"
	expect 2 --compress a b
	says "fcopy: --compress: an option of rsync; leave it out: fcopy does not compress"
	usage_error "--delete-excluded: an option of rsync; leave it out: fcopy removes no excluded entry" --delete-excluded a b
	usage_error "--chown=a:b: an option of rsync; leave it out: fcopy keeps owners or uses yours; see chown(1)" --chown=a:b a b
	usage_error "-A: an option of rsync; use -a or --preserve=mode for ACLs" -aAX a b
	usage_error "-X: an option of rsync; use -a or --preserve=xattr" -X a b
	usage_error "--preserve: 'acl': use mode, which includes ACLs" --preserve=acl a b
	absent b
}

@test "-b and --remove-destination replace a device only with -f" {
	need_root "to make a device"
	local option dst
	echo new >a
	mkdir d
	mknod device b 7 99
	mknod d/a c 1 3
	ln -s device link
	for option in -b --remove-destination "-rb" "-b --dry-run"; do
		for dst in device link d; do
			# shellcheck disable=SC2086 # two words
			expect 2 $option a $dst
			mentions "is a device: -b or --remove-destination would give its name to a file" \
				"hint: use -f to replace it anyway"
		done
	done
	[ -b device ]
	[ -c d/a ]
	[ -L link ]
	[ "$(ls -A . d | xargs)" = ".: a d device link d: a" ]
	expect 0 -bf a device
	holds new device
	[ -b device~ ]
	expect 0 --remove-destination -f a d
	holds new d/a
}

@test "-b and --remove-destination flush nothing: the old file was not made during the copy" {
	need_strace
	random a 100000
	mkdir -p d s
	cp a s/a
	for option in -b --remove-destination; do
		echo old >b
		echo old >d/a
		traced 0 fsync,fdatasync $option a b
		[ ! -s trace ]
		traced 0 fsync,fdatasync -rT $option s d
		[ ! -s trace ]
		cmp a b
		cmp a d/a
	done
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
	expect 2 --remove-destination -T a d
	ln a a2
	expect 2 --remove-destination a ./a
	mentions "are the same file"
	holds new a
	expect 0 --remove-destination a a2 # no longer another name of a
	[ "$(stat -c %h a a2 | xargs)" = "1 1" ]
	ln -s loop loop
	expect 0 --remove-destination a loop
	holds new loop
	mkdir e
	expect 0 -R --remove-destination d e
	expect 0 -R --remove-destination d e
}

@test "--attributes-only: existing files keep their bytes, new ones are empty" {
	mkdir -p s/d
	echo source >s/f
	echo other >s/d/g
	ln -s f s/link
	chmod 640 s/f
	touch -d 2001-02-03 s/f
	echo bytes >b
	ln b b2
	expect 0 --attributes-only s/f b
	holds bytes b
	expect 0 -p --attributes-only s/f b
	holds bytes b2
	[ "$(stat -c '%a %Y' b)" = "640 $(stat -c %Y s/f)" ]
	expect 0 -a --attributes-only s d
	[ "$(stat -c '%s %a' d/f) $(readlink d/link) $(stat -c %s d/d/g)" = "0 640 f 0" ]
	expect 2 --attributes-only s/f s/f
	holds source s/f
	ln -s b l
	expect 2 --attributes-only s/f l
	holds bytes b
	expect 0 -n --attributes-only s/d/g b
	usage_error "--attributes-only: cannot be combined with --fsync" \
		--attributes-only --fsync s/f b
}

# cp gives such a name a link to a new, empty file.
@test "--attributes-only: a file that exists keeps its bytes, and becomes no link to a new name" {
	mkdir s d
	echo new >s/a
	ln s/a s/b
	ln s/a s/c
	local name
	for name in a b c; do
		rm -f d/*
		echo bytes >d/$name
		expect 0 -aT -j 1 --attributes-only s d
		holds bytes d/$name
		[ "$(ls d | wc -l)" = 3 ]
		[ "$(find d -empty -links 2 | wc -l)" = 2 ] || [ "$(find d -size 6c -links 3 | wc -l)" = 3 ]
	done
	# Names that are one file stay that, without a warning.
	rm d/*
	echo bytes >d/a
	ln d/a d/b
	ln d/a d/c
	expect 0 -aT -j 1 --attributes-only s d
	[ -z "$stderr" ]
	[ "$(find d -size 6c -links 3 | wc -l)" = 3 ]
}

@test "--attributes-only: a file that exists becomes no symlink or FIFO without -f" {
	local name way
	mkdir s d
	ln -s target s/link
	mkfifo s/fifo
	expect 0 -aT --attributes-only s new
	[ "$(readlink new/link)" = target ]
	[ -p new/fifo ]
	echo precious | tee d/link >d/fifo
	for way in --dry-run ""; do
		# shellcheck disable=SC2086 # a word or none
		expect 1 $way --keep-going -aT --attributes-only s d
		mentions "d/link: exists; use -f to replace it" "d/fifo: exists; use -f to replace it"
		for name in link fifo; do
			# shellcheck disable=SC2086
			expect 1 $way -a --attributes-only s/$name d
			holds precious d/$name
			[ ! -L d/$name ]
		done
	done
	# What has no bytes either is replaced.
	ln -sfn other new/link
	expect 0 -aT --attributes-only s new
	[ "$(readlink new/link)" = target ]
	expect 0 -afT --attributes-only s d
	[ "$(readlink d/link)" = target ]
	[ -p d/fifo ]
}

@test "--strip-trailing-slashes; --copy-contents is the default without -r" {
	mkdir d
	ln -s d l
	expect 0 -rP --strip-trailing-slashes l// copy
	[ "$(readlink copy)" = d ]
	expect 0 -rP l/ copy2
	[ ! -L copy2 ]
	mkfifo fifo
	echo data >fifo &
	expect 0 --copy-contents fifo data
	holds data data
	usage_error "--copy-contents: cannot be combined with -r or -a: special files of a tree are not read" \
		-r --copy-contents d e
}

@test "SRC and DST are two names of one file" {
	same() { # same STATUS WHAT-IS-LEFT OPTIONS AND OPERANDS
		rm -f foo* hard* link* sl*
		echo XYZ >foo
		ln foo hard
		ln -s foo link
		ln -s foo sl
		run "$FCOPY" "${@:3}"
		[ "$status" = "$1" ] && [ "$(find . -type f -printf '%f%n\n' -o -type l -printf '%f:%l\n' | sort | xargs)" = "$2" ] ||
			{ echo "${*:3}: $status, $(ls -l)"; return 1; }
		grep -q XYZ foo
	}
	local all="foo2 hard2 link:foo sl:foo"
	same 2 "$all" foo link
	same 2 "$all" -f link foo
	same 2 "$all" --remove-destination link foo
	same 2 "$all" -b link foo
	same 2 "$all" -bd link foo # cp leaves a loop of symlinks
	same 2 "$all" -dfl link foo
	same 2 "$all" -b foo foo
	same 0 "foo1 foo~2 hard2 link:foo sl:foo" -bf foo foo
	same 2 "$all" foo hard
	same 0 "foo1 hard1 link:foo sl:foo" --remove-destination foo hard
	same 0 "foo2 hard1 hard~2 link:foo sl:foo" -b foo hard
	same 0 "$all" -l foo hard
	same 0 "$all" -fl foo foo
	same 2 "$all" -sf foo hard
	same 2 "$all" -sf link foo
	same 0 "$all" -sf foo link
	same 0 "foo2 hard2 link1 sl:foo" --remove-destination foo link
	same 0 "foo2 hard2 link1 link~:foo sl:foo" -b foo link
	same 0 "foo2 hard2 link:foo sl1" --remove-destination link sl
	same 0 "$all" -df link sl
	same 0 "foo3 hard3 link3 sl:foo" -fl foo link
}

@test "dangling symlinks, loops and trailing slashes in DST and SRC" {
	echo hi >f
	ln -s none dangle
	ln -s loop loop
	mkdir d
	local option
	for option in "" -f; do
		# shellcheck disable=SC2086
		expect 2 $option f dangle
		absent none
	done
	expect 2 f loop
	mentions "loop: is a loop of symlinks"
	expect 0 -r dangle junk
	[ "$(readlink junk)" = none ]
	ln -s f a
	ln -s f b
	expect 0 -u -P a b
	expect 0 -u -P dangle junk
	echo old >target
	ln -s target slink
	expect 0 -d f slink # DST is followed
	holds hi target
	expect 2 f new/
	expect 2 f/ new
	expect 2 -R d f
	expect 0 -R d/ e
	expect 0 -R d/ e
	[ -d e/d ]
	expect 2 --parents f/g d
	[ -z "$(ls d)" ]
}

@test "-i, -n, -u and -b together: the last of -i and -n counts" {
	echo c >c
	ask() { # ask ANSWER STATUS DST OPTION…
		echo d >d
		touch -d 2001-02-03 d
		run "$FCOPY" "${@:4}" c d <<<"$1"
		[ "$status" = "$2" ] || { echo "${*:4}: $status $output"; return 1; }
		holds "$3" d
	}
	ask n 1 d -i
	ask y 0 c -i
	ask y 0 c -ni
	ask y 0 c -fi
	ask n 1 d -i --update=older
	ask n 1 d -iu
	expect 2 -bn c d
	expect 2 -b --update=none c d
	run --separate-stderr "$FCOPY" -in c d </dev/null
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	run --separate-stderr "$FCOPY" -i --update=none c d </dev/null
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	mkdir -p a b/a/c
	echo >a/c
	run "$FCOPY" -iR a b <<<n
	[ "$status" = 1 ]
	[ -d b/a/c ]
}

@test "-u and --update=none: a directory in the place of a file is skipped, as by cp -n, or refused" {
	mkdir -p s d/s/f
	echo data >s/f
	touch -d 2001-02-03 s/f
	expect 0 -Ru s d
	expect 0 -r --update=none s d
	expect 0 -T --update=none s/f d/s/f
	expect 0 --dry-run -Ru s d
	cp -Ru s d
	expect 1 -r --update=none-fail s d
	mentions "d/s/f: exists, and is not replaced"
	touch -d 2031-02-03 s/f
	expect 1 -Ru s d
	mentions "d/s/f: is a directory"
	expect 1 -a --update=changed s d
	mentions "d/s/f: is a directory"
	[ -d d/s/f ]
}

@test "--preserve=links and -u: one file in DST for the names of one file" {
	mkdir -p s c
	echo f >s/f
	ln s/f s/linkm
	ln s/f s/linke
	ln s/f s/fileo
	local first
	for first in f linkm; do
		rm -rf t
		mkdir -p t/s
		cp -p s/f t/s/$first
		ln t/s/$first t/s/linke
		touch -d '-1 hour' t/s/fileo
		expect 0 -a --update=changed s t
		[ "$(stat -c %h t/s/f)" = 4 ]
	done
	expect 0 -r --preserve=all -u s/* t/s
	expect 0 -r --preserve=all -u s/* t/s
	ln -s f s/sym
	expect 0 --preserve=links -R -L s c
	[ "$(stat -c %h c/s/sym)" = 5 ]
	expect 0 --preserve=links -R -H s/f s/sym c
	[ "$(stat -c %i c/f)" = "$(stat -c %i c/sym)" ]
	expect 0 -dR --no-preserve=links s u
	[ "$(stat -c %h u/f)" = 1 ]
}

@test "two sources with one name; special files; modes of existing directories" {
	mkdir a b c
	ln -s ../t a/1
	echo payload >b/1
	expect 2 -dR a/1 b/1 c
	[ -z "$(ls c)" ]
	mkfifo fifo
	: >e
	expect 0 -R fifo e
	[ -p e ]
	mkdir -p -m 775 s/dir
	mkdir -p -m 700 t/dir
	expect 0 -r s/. t/
	[ "$(stat -c %a t/dir)" = 700 ]
	mkdir x y
	expect 0 -ab x y
	expect 0 -ab x y
	absent y/x~
	mkdir -p src/foo dst/foo
	touch {src,dst}/foo/bar
	expect 0 -R --backup src/foo dst
	[ "$(ls dst/foo)" = $'bar\nbar~' ]
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

@test "--parents: a directory of SRC that cannot be opened is named, and not made below DST" {
	need_strace
	mkdir -p s/t d
	echo 1 >s/t/f
	run --separate-stderr strace -f -qq -o trace -P s -e trace=openat -e inject=openat:error=EIO:when=1 "$FCOPY" --parents s/t/f d
	demand 1
	mentions 'fcopy: s/t/f: open: Input/output error'
	absent d/s
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
	mkdir -p s/v/w
	: >s/v/w/g
	chmod 700 e/s
	expect 0 -p --parents s/v/w/g e # a new directory: then all get the attributes
	[ "$(stat -c %a e/s)" = "$(stat -c %a s)" ]
	chmod 700 e/s
	expect 0 -p --parents s/v/w/g e
	[ "$(stat -c %a e/s)" = 700 ]
	chmod 555 s/t
	expect 0 --parents s/t/f -t e
	mkdir g
	expect 0 --parents s/t/f g
	[ "$(stat -c %a g/s/t)" = 555 ]
	expect 2 --parents s/t/f new
	cd s
	expect 2 --parents ../s/t/f ../d
	mentions "contains '..'"
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
