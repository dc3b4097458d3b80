#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -b: a backup replaces neither a copy of the same run, nor, if the copy fails, an older backup.

load helper

# pairs N: s has I and I~, d has I, for each I up to N. The order of a directory is not that of the
# names: many pairs have both orders.
pairs() {
	local i
	mkdir -p s d
	for ((i = 0; i < $1; i++)); do
		echo "new $i" >s/$i
		echo "own $i" >s/$i~
		echo "old $i" >d/$i
	done
}

# paired N SUFFIX: d has the copies of both, and each old file under its name with the suffix.
paired() {
	local i
	for ((i = 0; i < $1; i++)); do
		holds "new $i" d/$i
		holds "own $i" d/$i~
		holds "old $i" "d/$i$2"
	done
}

@test "-b: SRC has NAME and NAME~: both are copied, and the old NAME becomes NAME~~" {
	local jobs i
	for jobs in 1 4; do
		pairs 40
		expect 0 -aT -b -j $jobs s d
		paired 40 '~~'
		rm -r s d
	done
	# Also where NAME~~ is a copy, and where DST has an old NAME~.
	mkdir s d
	echo new | tee s/a s/a~ s/a~~ >d/plain
	echo old >d/a
	echo older >d/a~
	expect 0 -aT --backup=simple s d
	diff -r s d -x 'a~~~*' -x plain
	[ "$(cat d/a~~~ d/a~~~~ | sort | xargs)" = "old older" ]
	# One suffix may lead to the name that another entry wants.
	rm -r s d
	mkdir s d
	echo new | tee s/a s/aa >s/aaa
	for i in a aa aaa; do echo "old $i" >d/$i; done
	expect 0 -aT -S a s d
	[ "$(cat d/aaaa d/aaaaa d/aaaaaa | sort | xargs)" = "old a old aa old aaa" ]
	diff -r s d -x 'aaaa*'
}

@test "-b: names of SRC that are excluded leave the backup its name" {
	pairs 3
	expect 0 -aT -b --exclude '*~' s d
	[ "$(cat d/0 d/0~ d/1~ | xargs)" = "new 0 old 0 old 1" ]
	[ "$(ls d | wc -l)" = 6 ]
}

@test "-b: several SRC: the backup for one never replaces the copy of another" {
	local order
	for order in "s/0~ s/0" "s/0 s/0~" "other/0~ one/0" "one/0 other/0~"; do
		pairs 1
		mkdir other one
		cp s/0~ other/
		cp s/0 one/
		# shellcheck disable=SC2086 # words
		expect 0 -b $order d
		holds "new 0" d/0
		holds "own 0" d/0~
		holds "old 0" d/0~~
		rm -r s d other one
	done
	# A neighbour of a SRC that is a file is not copied: the backup has its usual name.
	pairs 1
	expect 0 -b s/0 d
	holds "old 0" d/0~
}

@test "--backup=numbered: the number of a name that SRC has is not used" {
	local i
	mkdir s d
	for ((i = 0; i < 30; i++)); do
		echo "new $i" >s/$i
		echo "own $i" >s/$i.~1~
		echo "old $i" >d/$i
	done
	expect 0 -aT --backup=numbered s d
	for ((i = 0; i < 30; i++)); do
		holds "new $i" d/$i
		holds "own $i" d/$i.~1~
		holds "old $i" d/$i.~2~
	done
}

# A copy that is too large fails: both old files stay.
stays() {
	rm -rf d
	mkdir d
	echo old >d/f
	echo older >"d/f$1"
	(ulimit -f 10; trap '' XFSZ; expect 1 "${@:2}")
	holds old d/f
	holds older "d/f$1"
	[ "$(ls -A d | wc -l)" = 2 ]
}

@test "--backup=numbered: the highest number counts, whatever other names there are" {
	local i name
	mkdir s d
	for i in a b c; do
		echo new >s/$i
		echo old >d/$i
	done
	touch d/a.~3~ d/a.~12~ d/a.~012~ d/a.~13 d/a.~14~x d/ab.~20~ d/a.~x~ d/a.~~ d/a~ d/b.~1000000000~ d/c.~-1~
	expect 0 -rT --backup=numbered s d
	for name in a.~13~ b.~1~ c.~1~; do holds old "d/$name"; done
	expect 0 -rT --backup=existing s d
	for name in a.~14~ b.~2~ c.~2~; do holds new "d/$name"; done
	# Several SRC of one directory. The number that another process has taken in between is not used.
	mkfifo answers
	"$FCOPY" -i --backup=numbered s/a s/b s/c d <answers 2>questions 3>&- &
	exec 4>answers
	echo y >&4
	until [ -e d/a.~15~ ]; do sleep 0.02; done
	echo other >d/b.~3~
	printf 'y\ny\n' >&4
	exec 4>&-
	wait $!
	for name in a.~15~ b.~4~ c.~3~; do holds new "d/$name"; done
	holds other d/b.~3~
}

@test "-b: after a failure an older backup is as it was" {
	local mode
	mkdir s
	random s/f 100000
	for mode in auto readwrite parallel; do
		stays '~' -b -m $mode s/f d
	done
	stays '~' -aT --backup=simple s d
	stays .bak -aT -S .bak s d
	# With success, it is replaced.
	mv d/f.bak d/f~
	expect 0 -b s/f d
	holds old d/f~
	# Both names of one file.
	ln -f d/f~ d/f
	(ulimit -f 10; trap '' XFSZ; expect 1 -b s/f d)
	holds old d/f
	holds old d/f~
	expect 0 -b s/f d
	cmp s/f d/f
	holds old d/f~
	# A directory is no backup.
	rm d/f~
	mkdir d/f~
	echo 1 >d/f~/x
	cp s/f before
	echo old >d/f
	expect 2 -b s/f d
	holds old d/f
	holds 1 d/f~/x
	[ "$(ls -A d | xargs)" = "f f~" ]
}

@test "-b: the same where names cannot be exchanged, and where there are no hard links" {
	need_strace
	mkdir s d
	random s/f 100000
	echo old >d/f
	echo older >d/f~
	(ulimit -f 60; trap '' XFSZ; traced 1 inject=renameat2:error=EINVAL -b s/f d)
	holds old d/f
	holds older d/f~
	# The same when the last rename fails: the commit has exchanged the backups before that.
	run strace -f -qq -o trace -e trace=renameat,renameat2 -e inject=renameat2:error=EINVAL \
		-e inject=renameat:error=EIO:when=2 "$FCOPY" -b s/f d
	[ "$status" = 1 ]
	injected
	holds old d/f
	holds older d/f~
	[ "$(ls -A d | xargs)" = "f f~" ]
	traced 0 inject=renameat2:error=EINVAL -b s/f d
	injected
	cmp s/f d/f
	holds old d/f~
	[ "$(ls -A d | xargs)" = "f f~" ]
	rm -r d trace
	mkdir -p backing/d
	# shellcheck disable=SC2016
	by_fuse fault=link:EPERM 'echo old >m/d/f; echo older >m/d/f~
		setfattr -n user.fault -v write:EIO:50000 m
		! "$FCOPY" -b s/f m/d || exit 8
		[ "$(cat m/d/f m/d/f~ | xargs)" = "old older" ] || exit 7
		setfattr -n user.fault -v write:0 m
		"$FCOPY" -b s/f m/d || exit 6
		cmp s/f m/d/f || exit 5'
	holds old backing/d/f~
	[ "$(ls -A backing/d | xargs)" = "f f~" ]
}

@test "-b: only the commit makes a backup: a copy that is killed leaves the old file its name" {
	need_strace
	local how plain=(-e inject=renameat2:error=EINVAL -e inject=linkat:error=EPERM)
	# run_plain STATUS OPTION…: where a backup can only be a rename
	run_plain() {
		run strace -f -qq -o trace -e trace=linkat,renameat,renameat2,write,pwrite64 "${plain[@]}" "${@:2}"
		[ "$status" = "$1" ]
		grep -q INJECTED trace
	}
	mkdir s d
	random s/f 100000
	for how in -b --backup=numbered; do
		echo old >d/f
		run strace -f -qq -o trace -e inject=write,pwrite64:signal=KILL:when=1 "$FCOPY" -m readwrite $how s/f d
		[ "$status" = 137 ]
		holds old d/f
		[ "$(stat -c %h d/f)" = 1 ]
		run_plain 137 -e inject=write,pwrite64:signal=KILL:when=1 "$FCOPY" -m readwrite $how s/f d
		holds old d/f
		absent d/f~
		absent d/f.~1~
		rm -f d/.fcopy-* # of the killed copy
		# The rename of the copy fails: the old file gets its name back.
		run_plain 1 -e inject=renameat:error=EIO:when=2 "$FCOPY" $how s/f d
		holds old d/f
		[ "$(ls -A d)" = f ]
		run_plain 0 "$FCOPY" $how s/f d
		cmp s/f d/f
		holds old d/f?*
		rm d/f*
	done
}

@test "-b of another user's file in a sticky directory: it fails, and no link that stays is made" {
	need_root "to have another user's file"
	local options
	mkdir d
	chmod 1777 d
	echo old >d/r
	echo new >s
	chmod 666 d/r s
	for options in -b -ab "-b -f" --backup=numbered "-b --inplace=auto"; do
		# shellcheck disable=SC2086
		as_nobody 1 $options s d/r
		[ "$(ls -A d)" = r ] || { ls -la d; return 1; }
		holds old d/r
		[ "$(stat -c %h d/r)" = 1 ]
	done
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

@test "--backup=numbered where there are no hard links: the old file is renamed" {
	mkdir -p backing/d s
	echo new >s/a
	echo old >backing/d/a
	# shellcheck disable=SC2016
	by_fuse fault=link:EPERM '"$FCOPY" -r --backup=numbered -T s m/d || exit 8'
	holds new backing/d/a
	holds old backing/d/a.~1~
}

@test "--backup=none makes no backup, also with -S" {
	local options
	for options in '--backup=none -S .x' '-S .x --backup=none' '-b --backup=none -S .x'; do
		echo new >f
		echo old >d
		echo older >d.x
		# shellcheck disable=SC2086 # words
		expect 0 $options f d
		holds older d.x
		holds new d
	done
}
