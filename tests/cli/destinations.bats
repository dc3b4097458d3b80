#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Where the copy goes, and what an existing destination keeps.

load helper

mode_of() {
	stat -c %a "$1"
}

@test "DST is a directory: the copy is DST/basename(SRC)" {
	echo data >a
	mkdir d e
	ln -s d link
	expect 0 a d
	cmp a d/a
	expect 0 "$PWD/a" e/
	cmp a e/a
	rm d/a
	expect 0 ./a link
	cmp a d/a
	[ -L link ]
	echo newer >a
	expect 0 a d/.
	cmp a d/a
}

@test "a new file: the mode of the source under the umask, nothing of setuid" {
	local mask mode want n
	need_strace
	echo data >a
	traced 0 trace=openat a probe
	n=$(nth openat O_TMPFILE)
	while read -r mask mode want; do
		chmod "$mode" a
		rm -f b c
		(umask "$mask" && "$FCOPY" a b)
		[ "$(mode_of b)" = "$want" ] || { echo "$mask $mode: $(mode_of b)"; return 1; }
		(umask "$mask" && strace -f -qq -o trace -e inject=openat:error=EOPNOTSUPP:when="$n" \
			"$FCOPY" a c)
		injected
		[ "$(mode_of c)" = "$want" ] || { echo "named, $mask $mode: $(mode_of c)"; return 1; }
	done <<-'TABLE'
		022 644 644
		022 666 644
		077 755 700
		000 666 666
		027 777 750
		022 600 600
		022 4755 755
		022 2755 755
		022 1644 644
		000 444 444
		777 644 0
	TABLE
}

@test "the umask is read again if a call fails: the mode is no stricter than it should be" {
	local fault n
	need_strace
	mkdir s
	echo data >s/a
	chmod 775 s
	chmod 664 s/a
	umask 002
	for fault in $OPEN:error=EMFILE $OPEN:error=ENOMEM $OPEN:error=EINTR read:error=EAGAIN read:error=EIO \
		read:error=ENOMEM read:retval=0; do
		rm -rf d
		traced 0 "trace=$OPEN,read" -r -j1 --resume s d
		n=$(nth "${fault%%:*}" "/proc/[^ ]*status")
		rm -r d
		traced 0 "inject=$fault:when=$n" -r -j1 --resume s d
		grep -q '/proc/.*status.*INJECTED' trace || { cat trace; return 1; }
		[ "$(mode_of d)" = 775 ] || { echo "$fault: $(mode_of d)"; return 1; }
		cmp s/a d/a
	done
}

@test "a source that is no file: 0666 under the umask" {
	umask 027
	expect 0 /dev/null b
	[ "$(mode_of b)" = 640 ]
}

@test "a new file in a directory with a default ACL" {
	need setfacl getfacl strace
	local acl mode name acls='u:65534:rw,g::r,o::r u:65534:rw,g::rw,o::rw,m::rw u:65534:rwx,g::-,o::-,m::x g::rw,o::w'
	echo data >a
	mkdir d
	# Others could not write what this test and the shards create beside the copies.
	! is_root || acls+=' u::r,g::-,o::r'
	# The umask does not apply here: a mask, or without one the group, limits the mode.
	for acl in $acls; do
		setfacl -k d 2>/dev/null && setfacl -d -m $acl d || skip "no ACLs on this file system"
		for mode in 640 666 755; do
			chmod $mode a
			cp a d/cp
			expect 0 a d/new
			expect 0 --resume a d/resumed
			expect 0 --shard=0/1 a d/shard
			(cd d && without_tmpfile 0 ../a named)
			for name in new resumed shard named; do
				diff <(getfacl -c d/cp) <(getfacl -c d/$name) || { echo "$acl, $mode: $name"; return 1; }
			done
			rm -rf d/*
		done
	done
}

@test "an existing file keeps its mode, but not setuid and setgid" {
	local mode
	echo data >a
	chmod 777 a
	for mode in 600 644 640 755 606; do
		echo old >b
		chmod $mode b
		expect 0 a b
		cmp a b
		[ "$(mode_of b)" = $mode ]
	done
	chmod 6755 b
	expect 0 a b
	[ "$(mode_of b)" = 755 ]
	chmod 6755 b
	expect 0 -f a b
	[ "$(mode_of b)" = 755 ]
}

@test "an existing file keeps its ACL, and gets none from its directory" {
	need setfacl getfacl
	echo data >a
	mkdir d
	echo old >d/b
	setfacl -m u:65534:r,m::rw d/b 2>/dev/null || skip "no ACLs on this file system"
	echo old >d/plain
	setfacl -d -m u:65534:rwx d
	local before
	before=$(getfacl -c d/b)
	expect 0 a d/b
	cmp a d/b
	[ "$(getfacl -c d/b)" = "$before" ]
	before=$(getfacl -c d/plain)
	expect 0 a d/plain
	[ "$(getfacl -c d/plain)" = "$before" ]
}

@test "an existing file keeps owner and group, if root replaces it" {
	need_root "to own files of others"
	echo data >a
	echo old >b
	chown 1234:5678 b
	chmod 4751 b
	expect 0 a b
	[ "$(stat -c %u:%g:%a b)" = 1234:5678:751 ]
}

@test "the new file is another inode: who reads the old one goes on reading it" {
	echo new >a
	echo old >b
	exec 5<b
	expect 0 a b
	[ "$(cat <&5)" = old ]
	exec 5<&-
	holds new b
}

@test "a symlink to a file: the target is replaced, the link stays" {
	echo new >a
	mkdir d e
	local dst
	for dst in link d/chain; do
		echo old >e/target
		ln -sf e/target link
		ln -sf ../link d/chain
		expect 0 a $dst
		[ -L link ]
		[ -L d/chain ]
		holds new e/target
		[ ! -L e/target ]
	done
	[ "$(ls -A e)" = target ]
	ln -s "$PWD/e/target" e/a
	echo newer >a
	expect 0 a e
	holds newer e/target
	[ -L e/a ]
}

@test "a symlink to a file in a directory that is not writable: refused, names --inplace" {
	echo new >a
	mkdir d
	echo old >d/target
	chmod 666 d/target
	chmod 555 d
	ln -s d/target link
	chmod 777 .
	as_nobody 1 a link
	mentions "link: open: Permission denied" "--inplace"
	holds old d/target
	chmod 755 d .
}

@test "a source that is a symlink is followed" {
	echo data >a
	ln -s a link
	expect 0 link b
	[ ! -L b ]
	cmp a b
}

@test "--inplace: the inode stays, a missing file is made whole" {
	echo new >a
	echo "an old and longer one" >b
	chmod 604 b
	local inode
	inode=$(stat -c %i b)
	expect 0 --inplace a b
	holds new b
	[ "$(stat -c %i:%a b)" = "$inode:604" ]
	expect 0 --inplace a c
	holds new c
	expect 2 --inplace a nodir/c
	mkfifo pipe
	expect 2 --inplace pipe/x d
	absent d
}

@test "names: a newline, control characters, a backslash, 255 bytes, no UTF-8, a lone dash" {
	echo data >a
	local name
	for name in $'new\nline' $'\e[31m' 'back\slash' "$(printf 'x%.0s' {1..255})" $'\xff\xfe' \
		' ' '*' ./- '%s%n' '~'; do
		expect 0 a "$name"
		cmp a "$name"
		expect 0 "$name" b
		cmp a b
		expect 0 a "$name"
		rm "$name" b
	done
}

@test "two copies to one destination at once: the result is exactly one of them" {
	random a 3000000
	random b 2000000
	for _ in 1 2 3 4 5; do
		rm -f c
		"$FCOPY" a c & "$FCOPY" b c & wait
		cmp -s a c || cmp b c
		"$FCOPY" a c readwrite & "$FCOPY" b c & wait
		cmp -s a c || cmp b c
	done
}

@test "a file that appears during the copy is replaced, not torn" {
	need_strace
	random a 100000
	echo other >other
	strace -D -f -qq -o trace -e inject=linkat:delay_enter=2000000:when=2+ "$FCOPY" a b &
	pid=$!
	await has_written
	ln other b
	wait $pid
	cmp a b
	holds other other
}

@test "a destination that is removed during the copy comes back whole" {
	need_strace
	random a 100000
	echo old >b
	strace -D -f -qq -o trace -e inject=linkat:delay_enter=2000000:when=2+ "$FCOPY" a b &
	pid=$!
	await has_written
	rm b
	wait $pid
	cmp a b
}

@test "a component of the path that is replaced during the copy has no effect" {
	mkdir d other
	random a 300000
	"$FCOPY" --limit-rate=100K a d/b &
	pid=$!
	await has_written
	mv d moved
	ln -s other d
	wait $pid
	cmp a moved/b
	[ -z "$(ls -A other)" ]
}

@test "-T: a directory is refused, not entered" {
	echo data >a
	mkdir d
	expect 2 -T a d
	says "fcopy: d: is a directory"
	[ -z "$(ls d)" ]
	expect 0 -T a b
	cmp a b
}
