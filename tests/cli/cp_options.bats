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
	expect 2 --compress a b
	says "fcopy: --compress: an option of rsync; leave it out: fcopy does not compress"
	usage_error "--delete-excluded: an option of rsync; leave it out: fcopy removes no excluded entry" --delete-excluded a b
	usage_error "--chown=a:b: an option of rsync; leave it out: fcopy keeps owners or uses yours; see chown(1)" --chown=a:b a b
	usage_error "-A: an option of rsync; use -a or --preserve=mode for ACLs" -aAX a b
	usage_error "-X: an option of rsync; use -a or --preserve=xattr" -X a b
	usage_error "--preserve: 'acl': use mode, which includes ACLs" --preserve=acl a b
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
	usage_error "--backup: invalid value 'x' (simple, numbered, existing, none)" --backup=x a b
	[ "$(ls)" = $'a\nb\nb.bak\nb.env\nb.~1~\nb.~2~\nb~\nname' ]
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
	# Backups that cannot be listed are not replaced.
	echo older >b.~1~
	traced 1 inject=getdents64:error=EIO --backup=numbered a b
	injected
	mentions "fcopy: b: getdents64: Input/output error"
	holds older b.~1~
	holds old b
	rm trace b.~1~
	# The backup would be the source.
	echo old >b~
	expect 2 --backup=simple b~ b
	mentions "its backup would replace SRC"
	holds old b~
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

@test "--backup=numbered where there are no hard links: the old file is renamed" {
	mkdir -p backing/d s
	echo new >s/a
	echo old >backing/d/a
	# shellcheck disable=SC2016
	by_fuse fault=link:EPERM '"$FCOPY" -r --backup=numbered -T s m/d || exit 8'
	holds new backing/d/a
	holds old backing/d/a.~1~
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
