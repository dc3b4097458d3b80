#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Files with several names: what -a makes of them.

load helper
load tree

@test "hard links: among entries, among sources, and beyond the tree" {
	local by
	mkdir -p s/1 s/2 t outside
	echo x >s/1/a
	ln s/1/a s/2/b
	ln s/1/a t/c
	ln s/1/a outside/d
	ln s/1/a e
	for by in cp fcopy; do
		mkdir $by
	done
	cp -a s t e cp
	expect 0 -a s t e fcopy
	equal_trees cp fcopy
	[ "$(stat -c %h fcopy/e)" = 4 ]
	# Merged again, with -f because other names might keep the old content.
	echo new >e
	cp -a s t e cp
	expect 0 -af s t e fcopy
	holds new fcopy/s/2/b
	equal_trees cp fcopy
	cp -r s cp/r
	expect 0 -r s fcopy/r
	equal_trees cp fcopy
	[ "$(stat -c %h fcopy/r/1/a)" = 1 ]
}

@test "-n: names that exist are kept, and the others are still linked" {
	local name
	mkdir s t
	echo new >s/1
	for name in {2..9}; do ln s/1 "s/$name"; done
	for name in 2 4 6 8; do echo kept >t/$name; done
	expect 0 -a -n -T s t
	[ -z "$stderr" ] || { echo "$stderr"; return 1; }
	for name in 2 4 6 8; do [ "$(cat t/$name)" = kept ]; done
	cmp s/1 t/1
	[ "$(stat -c %i t/[13579] | sort -u | wc -l)" = 1 ] || { ls -li t; return 1; }
}

@test "hard links beyond the limit of the file system: a copy, and links to it" {
	local n
	mkdir s
	echo x >s/1
	for n in {2..5}; do
		ln s/1 "s/$n"
	done
	need_strace
	# The second linkat fails with EMLINK.
	traced 0 inject=linkat:error=EMLINK:when=2 -a -j1 s d
	injected
	diff -r s d
	[ "$(find d -type f -links 2 -printf x)" = xx ]
	[ "$(find d -type f -links 3 -printf x)" = xxx ]
}

@test "a merge and a mirror to storage without hard links: each name gets the new content" {
	local options n
	mkdir s
	for n in {1..3}; do
		echo "new $n" >s/a$n
		ln s/a$n s/b$n
	done
	for options in -aT "-aT -b" "-aT --update=changed" --mirror "--mirror --inplace"; do
		rm -rf backing m
		mkdir -p backing/d m
		for n in {1..3}; do
			echo old >backing/d/a$n
			echo older >backing/d/b$n
		done
		by_fuse fault=link:EPERM "\"\$FCOPY\" $options s m/d 2>err"
		grep -q "linkat: Operation not permitted" err
		for n in {1..3}; do
			holds "new $n" backing/d/a$n
			holds "new $n" backing/d/b$n
		done
	done
}

@test "-a repeated over hard links: as cp -a; without -a the hint is one that a tree can follow" {
	local by
	mkdir s
	echo old >s/a
	ln s/a s/b
	echo single >s/c
	mkdir cp fcopy
	cp -a s cp
	expect 0 -a s fcopy
	echo new >s/a
	for by in 1 2; do
		cp -a s cp
		expect 0 -a s fcopy
		equal_trees cp fcopy
		holds new fcopy/s/b
		[ fcopy/s/a -ef fcopy/s/b ]
	done
	ln fcopy/s/c outside
	expect 1 -r s fcopy
	mentions "fcopy/s/c: has other hard links" "use -f to replace it anyway"
	never grep inplace <<<"$stderr"
	expect 0 -a s fcopy
	holds single outside
}

# Each name of a hard-linked file obeys the rules for the file that it replaces.
@test "hard links and a symlink in DST: the symlink is followed, no name becomes a loop" {
	local leads
	for leads in a b; do
		mkdir s$leads d$leads
		echo new >s$leads/a
		ln s$leads/a s$leads/b
		echo old >d$leads/$leads
		ln -s $leads "d$leads/$([ $leads = a ] && echo b || echo a)"
		expect 0 -a -j 1 s$leads/. d$leads
		holds new d$leads/a
		holds new d$leads/b
	done
	mkdir s d
	echo new | tee s/a >/dev/null
	ln s/a s/b
	touch o1 o2
	ln -s ../o1 d/a
	ln -s ../o2 d/b
	expect 0 -a s/. d
	mentions 'copied and not linked'
	holds new o1
	holds new o2
	[ -L d/a ]
	[ -L d/b ]
}

@test "two names of one symlink: nothing is left to do, as with cp -d; one name is refused" {
	mkdir s d
	ln -s nowhere s/a
	ln s/a b
	ln s/a d/a
	local id
	id=$(stat -c %i b)
	expect 0 -P s/a b
	expect 0 -a s/. d
	[ "$(stat -c %i b s/a d/a)" = "$id"$'\n'"$id"$'\n'"$id" ]
	expect 2 -P b ./b
	mentions "are the same file"
	[ -L b ]
}

@test "hard links: no name replaces a FIFO, or a file that the user may not write" {
	local name
	for name in a b; do
		mkdir "s$name" "d$name"
		echo new >"s$name/a"
		ln "s$name/a" "s$name/b"
		mkfifo "d$name/$name"
		expect 1 -a "s$name/." "d$name"
		mentions "d$name/$name: is not a regular file"
		[ -p "d$name/$name" ]
	done
	mkdir s d
	echo new >s/0
	ln s/0 s/a
	ln s/0 s/b
	echo old | tee d/a >d/b
	chmod 400 d/*
	! is_root || chown -R 65534 s d .
	as_nobody 1 -a s/. d
	mentions 'd/a: is not writable by you' 'd/b: is not writable by you'
	holds old d/a
	holds old d/b
	holds new d/0
}

@test "-a: a symlink in DST leads to a file with other names: refused, and both keep the old content" {
	mkdir s d
	echo new >s/a
	echo old >outside
	ln outside other
	ln -s ../outside d/a
	expect 1 -a s/. d
	mentions 'd/a: has other hard links'
	holds old outside
	[ outside -ef other ]
}

@test "-a: a later name of a file is a symlink in DST: followed, with a warning" {
	mkdir s d
	echo new >s/a
	ln s/a s/b
	echo old >outside
	ln -s ../outside d/a
	expect 0 -a -j1 s/. d
	mentions 'warning: ' 'copied and not linked'
	holds new d/b
	holds new outside
	rm -r d
	mkdir d
	ln -s ../outside d/b
	expect 0 -a -j1 s/. d
	mentions 'warning: ' 'copied and not linked'
}

@test "-n: a directory, and another name of the source, are kept, as with cp -n" {
	mkdir -p s d/a
	echo new >s/a
	expect 0 -rn s/. d
	expect 0 -n -T s/a d/a
	[ -d d/a ]
	rmdir d/a
	ln s/a d/a
	expect 0 -an s/. d
	expect 0 -n s/a d/a
	[ s/a -ef d/a ]
	rm s/a d/a
	mkfifo s/a
	ln s/a d/a
	expect 0 -an s/. d
	[ s/a -ef d/a ]
}

@test "-a: many operands that have hard links need few descriptors" {
	mkdir s d
	local i
	for ((i = 0; i < 60; i++)); do
		echo $i >s/a$i
		ln s/a$i s/b$i
	done
	# shellcheck disable=SC2016
	run --separate-stderr bash -c 'ulimit -n 40; "$0" -a s/a* s/b* d' "$FCOPY"
	demand 0
	diff -r s d
	[ d/a0 -ef d/b0 ]
	[ d/a59 -ef d/b59 ]
}

@test "--link-dest on another file system: many operands fail for that, not for want of descriptors" {
	mkdir d
	touch f{1..60}
	# shellcheck disable=SC2016
	run --separate-stderr bash -c 'ulimit -n 40; "$0" -av --link-dest=/proc f* d' "$FCOPY"
	demand 2
	mentions "/proc: is on another file system or subvolume than DST"
	never grep "Too many" <<<"$stderr"
}

@test "--link-dest: its directory is closed once, also in a new tree" {
	need_strace
	mkdir s old
	echo 1 >s/a
	traced 0 trace=close,openat -aT --link-dest="$T/old" s d
	in_trace 'openat.*"old"' || in_trace "openat.*$T/old"
	never grep EBADF trace
}

@test "-rl closes each file that it links" {
	mkdir s
	touch s/{1..60}
	# shellcheck disable=SC2016
	run --separate-stderr bash -c 'ulimit -n 40; "$0" -rl -j1 s d' "$FCOPY"
	demand 0
	[ s/60 -ef d/60 ]
}

@test "-a from storage without times of birth: hard links, by size and time" {
	mkdir -p backing/s
	echo data >backing/s/a
	ln backing/s/a backing/s/b
	# shellcheck disable=SC2016
	by_fuse rw '[ "$(stat -c "%h %w" m/s/a)" = "2 -" ] || exit 8
		"$FCOPY" -a m/s d || exit 7
		[ d/a -ef d/b ] || exit 6'
}

@test "-a --resume into a directory: a name that becomes a link leaves no unfinished copy" {
	mkdir s d
	random s/a 3000000
	ln s/a s/b
	timeout 60 "$FCOPY" --limit-rate=1M -a --resume s/a s/b d 3>&- &
	await test -s d/a.fcopy-part/data
	pkill -KILL -P $!
	never wait $!
	[ "$(ls d)" = a.fcopy-part ]
	expect 0 -a --resume s/b s/a d
	[ "$(ls d)" = $'a\nb' ] || { ls -la d; return 1; }
	[ d/a -ef d/b ]
	cmp s/a d/a
	rm d/*
	echo mine >d/b.fcopy-part # not one that fcopy left: others may read it
	expect 0 -a --resume s/a s/b d
	holds mine d/b.fcopy-part
}

@test "-a --resume: symlinks of the part that the source has made hard links since" {
	need_strace
	mkdir -p s/x
	echo 1 >s/a
	ln -s a s/b
	ln -s a s/c
	traced 1 inject=mkdirat:error=EIO:when=4 -a -j1 s d
	[ -L d.fcopy-part/data/b ]
	ln -f s/a s/b
	ln -f s/a s/c
	expect 0 -a --resume s d
	[ -z "$stderr" ] || { echo "$stderr"; return 1; }
	[ "$(stat -c %h d/a)" = 3 ]
	[ d/a -ef d/c ]
}

@test "-a: no hard link of a symlink replaces the file that the symlink leads to" {
	local try
	for try in 1 2 3 4 5 6 7 8; do # the order of the names differs
		mkdir -p $try/src $try/dst
		ln -s "$PWD/$try/dst/l$try" $try/src/k$try
		ln $try/src/k$try $try/src/l$try
		echo data >$try/dst/l$try
		expect 1 -a $try/src/. $try/dst
		mentions "$try/src/./l$try and $try/dst/l$try: are the same file"
		[ "$(cat $try/dst/l$try)" = data ]
	done
}

@test "-a: a file that is found through two operands is one file in DIR, with all its names" {
	mkdir -p src d
	echo 1 >src/a
	ln src/a src/b
	expect 0 -a src/a src d
	[ d/a -ef d/src/a ]
	[ d/a -ef d/src/b ]
}

@test "-a: a file that gets the inode number of a removed one is no hard link of it" {
	local pid ino i
	mkdir s s2 d
	echo first >s/x
	ln s/x other
	ino=$(stat -c %i s/x)
	random slow 3000000
	"$FCOPY" -a --limit-rate=1M s slow s2 d &
	pid=$!
	await test -e d/s/x
	kill -STOP $pid
	rm s/x other
	for i in {1..300}; do
		echo "another file" >s2/y$i
		[ "$(stat -c %i s2/y$i)" != "$ino" ] || break
	done
	if [ "$(stat -c %i s2/y$i)" != "$ino" ]; then
		kill -KILL $pid
		skip "inode numbers are not used again here"
	fi
	ln s2/y$i s2/z
	kill -CONT $pid
	wait $pid
	diff -r s2 d/s2
	[ s2/z -ef s2/y$i ]
	[ d/s2/z -ef d/s2/y$i ]
	holds first d/s/x
}

@test "a file that a merge wrote through a symlink is copied for a later operand, not linked" {
	mkdir -p s/B d
	echo new >s/f
	ln s/f s/B/g
	echo old >real
	ln -s ../real d/f
	expect 0 -a s/f s/B d
	holds new real
	[ -f d/B/g ] && [ ! -L d/B/g ] || { ls -l d/B; return 1; }
	holds new d/B/g
}

@test "-a: a hard link of a symlink or FIFO replaces no directory, and the copy fails" {
	local make name
	mkdir s
	for make in "mkfifo s/a" "ln -s nowhere s/a"; do
		for name in a b; do
			rm -rf s/* d
			mkdir -p d/$name
			$make
			ln -P s/a s/b
			expect 1 -aT --dry-run s d
			expect 1 -aT s d
			mentions "fcopy: d/$name: rename: Is a directory"
			[ -d d/$name ]
		done
	done
}

# foreseen OPTION…: a dry run reports the same entries, and counts, as the copy.
foreseen() {
	local counts='.tree | [.files, .hard_links, .unchanged, .repaired, .failed]'
	local entry='select(.entry and .type != "directory") | [.path, .action]'
	run --separate-stderr "$FCOPY" -j1 --dry-run --json=lines "$@"
	jq -c "$entry" <<<"$output" | sort >dry
	tail -n 1 <<<"$output" | jq -c "$counts" >>dry
	run --separate-stderr "$FCOPY" -j1 --json=lines "$@"
	jq -c "$entry" <<<"$output" | sort >real
	tail -n 1 <<<"$output" | jq -c "$counts" >>real
	diff -u dry real
	[ "$(tail -n 1 real)" = "$want" ] || { cat real; return 1; }
}

@test "--dry-run foresees hard links, also of unchanged files" {
	need jq
	mkdir -p s/sub d/sub
	echo a >s/1
	ln s/1 s/2
	ln s/1 s/sub/3
	cp -p s/1 d/1
	cp -p s/1 d/2
	cp -p s/1 d/sub/3
	want='[0,2,1,0,0]' foreseen --mirror s d
	want='[0,0,3,0,0]' foreseen --mirror s d
	[ "$(stat -c %h d/1)" = 3 ]
	# All changed: the first is copied, and the others become links to the copy.
	echo new >s/1
	want='[1,2,0,0,0]' foreseen --mirror s d
	want='[1,2,0,0,0]' foreseen -a s new
	# Links that only DST has stay, as with rsync -aH.
	rm s/2
	cp -p s/1 s/2
	want='[0,0,4,1,0]' foreseen --mirror s d # the directory has got another time
	[ "$(stat -c %h d/1)" = 3 ]
	# A directory in the way.
	rm d/sub/3
	mkdir d/sub/3
	echo newer >s/1
	want='[1,0,1,0,1]' foreseen -aT --update=changed s d
}

# links_with ERRNO ARG…: each stat of a merge over other files fails once. What is no link afterwards has a message.
links_with() {
	local err=$1 nth
	shift
	rm -rf s
	mkdir s
	echo content >s/a
	ln s/a s/b
	ln s/a s/c
	for ((nth = 1; nth < 80; nth++)); do
		rm -rf d
		mkdir d
		echo old >d/b
		echo old >d/c
		status=0
		timeout -s KILL $HANG strace -f --seccomp-bpf -qq -o trace -e trace=newfstatat,fstat,statx \
			-e inject=newfstatat,fstat,statx:error="$err":when=$nth "$FCOPY" -j1 "$@" -T s d 2>err || status=$?
		grep -q INJECTED trace || break
		if ! [[ d/a -ef d/b && d/b -ef d/c || -s err ]]; then
			echo "$* $err at stat $nth: status $status, no message"
			ls -li d
			grep -B3 -A3 INJECTED trace
			return 1
		fi
	done
	[ $nth -gt 20 ]
}

@test "a stat that fails once makes no hard link a copy without a message" {
	need_strace
	links_with ENOMEM -a
	links_with EACCES -a
	links_with EIO --mirror -q
}
