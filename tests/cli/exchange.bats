#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Root copies into a directory of another user, who exchanges names between two system calls of
# fcopy. tests/tools/exchange.py describes the combinations; tests/long/exchange.sh tries all.
load helper

# exchanges PATTERN…: tries the combinations that match.
exchanges() {
	local tools=$BATS_TEST_DIRNAME/../tools
	need python3
	need_root "to copy into a directory of another user"
	need_strace # no sanitizer looks for leaks where another process traces
	[[ $(uname -m) =~ ^(x86_64|aarch64)$ ]] || skip "exchange.py knows the calls of x86-64 and arm64"
	printf '%s\n' "$@" >only
	FCOPY_EXCHANGE_DIR=$T python3 "$tools/exchange.py" --only only \
		--expected "$BATS_TEST_DIRNAME/../long/exchange.expected" "$FCOPY" >log 2>&1 && return
	grep -v '^pass' log
	return 1
}

@test "a merge changes, links and exposes no inode that another user puts in place of a new one" {
	exchanges "merge mknodat exit * 1 file" "merge mknodat exit * 1 root-file" \
		"merge symlinkat exit * 1 root-file" "merge symlinkat exit * 1 root-dir" \
		"merge mkdirat exit dst/sub/* 1 root-dir" "merge renameat2 exit dst/sub/new 1 root-dir" \
		"merge openat enter dst/[az]/[fk] 1 root-file" "merge linkat exit dst/[az]/[fk] 1 symlink-file"
}

@test "-b: an entry whose new backup another user takes away is replaced all the same, or fails" {
	exchanges "backup linkat exit dst/sub/lo~ 1 nothing" "backup linkat exit dst/sub/lo~ 1 root-dir" \
		"backup linkat exit dst/sub/r~ 1 dir" "backup linkat exit dst/sub/r~ 1 root-file"
}

@test "a new tree is not built in a directory that another user puts in its place" {
	exchanges "new mkdirat exit home/* 1 dir" "new mkdirat exit home/* 1 root-dir" \
		"new renameat2 enter home/* 1 dir" "resume-new mkdirat exit home/* 1 root-dir" \
		"resume openat enter home/dst.fcopy-part* 1 root-dir"
}

@test "a new tree under its final name is not built in a directory that another user puts in its place" {
	exchanges "new-inplace mkdirat exit home/* 1 dir" "new-inplace mkdirat exit home/* 1 root-dir" \
		"new-inplace renameat2 exit home/dst 1 root-dir"
}

@test "--parents: no attribute of a directory that another user puts in place of a new one changes" {
	exchanges "parents mkdirat exit home/* 1 root-dir" "parents mkdirat exit home/* 1 symlink-dir" \
		"parents renameat2 exit home/tree 1 root-dir" \
		"parents-some renameat2 exit home/tree/sub 1 root-dir"
}

@test "--parents: a symlink that another user made or can move is not followed, others are" {
	need_root "to own files as another user"
	mkdir -p a/b dst root/b
	echo new >a/b/f
	echo old >root/b/f
	chmod 700 root
	chown 65534 dst
	$NOBODY ln -s ../root dst/a
	expect 1 --parents a/b/f dst
	mentions "dst/a/b/f: is below a symlink that another user made or can move: --parents does not follow it"
	holds old root/b/f
	rm dst/a
	ln -s ../root dst/a # the other user can move it
	expect 1 -p --parents a/b/f dst
	mentions "dst/a/b/f: is below a symlink that another user made or can move: --parents does not follow it"
	chown 0 dst
	expect 0 -p --parents a/b/f dst
	holds new root/b/f
	has_mode 700 root
}

# named_by_another NAME: root's private directory $T/dst/NAME with files of a common name.
named_by_another() {
	mkdir -p dst
	mkdir -m 700 "dst/mine"
	(umask 077 && echo precious | tee dst/mine/lock >dst/mine/journal)
	chown 65534 dst
	$NOBODY mv dst/mine "dst/$1"
}

@test "a directory of this user to which another user gives a hidden name is not cleaned up" {
	need_root "to own files as another user"
	local hidden=.fcopy-0123456789abcdef
	named_by_another $hidden
	mkdir src
	echo x >src/f
	expect 0 -r src dst/new
	holds precious "dst/$hidden/lock"
	holds precious "dst/$hidden/journal"
	expect 0 --clean -f dst
	[[ $output == "dst/$hidden: temporary directory, "*": left alone: nothing in it shows that fcopy created it in this directory" ]]
	holds precious "dst/$hidden/lock"
	holds precious "dst/$hidden/journal"
	# Without its lock, it would be one that was being removed.
	rm "dst/$hidden/lock"
	expect 0 -r src dst/new2
	expect 0 --clean -f dst
	holds precious "dst/$hidden/journal"
	mv "dst/$hidden" dst/mine
}

@test "what asks whether directories can be renamed removes nothing through a symlink in their place" {
	need_strace
	mkdir -p backing s outside
	echo x >s/f
	echo keep >outside/lock
	# Before and after the rename of the directory that holds the lock, fcopy waits.
	by_fuse rw 'strace -f -qq -o trace -e trace=renameat -e inject=renameat:delay_enter=1000000:delay_exit=2000000:when=2 \
			"$FCOPY" -r s m/new & copy=$!
		holder() { cd m && ls -d .fcopy-*/lock 2>/dev/null | head -n 1; cd ..; }
		for i in {1..300}; do first=$(holder); [ -z "$first" ] || break; sleep 0.02; done
		for i in {1..300}; do now=$(holder); [ "$now" = "$first" ] || [ -z "$now" ] || break; sleep 0.02; done
		mv "m/${now%/lock}" m/away
		ln -s "$PWD/outside" "m/${now%/lock}"
		wait $copy
		[ -L "m/${now%/lock}" ]
		rm "m/${now%/lock}"'
	grep -q DELAYED trace
	holds keep outside/lock
	holds x backing/new/f
}

@test "a mirror does not wait for a process that locks its marker" {
	mkdir src dst
	echo x >src/f
	echo >dst/.fcopy-mirror
	exec 7<dst/.fcopy-mirror
	flock -x 7
	expect 0 --mirror -T src dst
	holds x dst/f
	[ -e dst/.fcopy-mirror ] # it may be that of a copy which is not flushed
	exec 7<&-
	expect 0 --mirror -T src dst
	absent dst/.fcopy-mirror
}

@test "a copy into a directory DST that another user exchanges after it was looked up fails" {
	exchanges "mirror-his openat exit home/dst 1 dir" "mirror-his openat enter home/dst 2 root-dir"
}

@test "--log-file and --json: a symlink that another user made or can move is refused, others are followed" {
	need_root "to own files as another user"
	local o reason
	mkdir his
	chown 65534 his
	echo f >f
	echo old >mine
	$NOBODY ln -s ../mine his/report
	for o in --log-file --json; do
		expect 1 $o=his/report f g
		reason="open: is, or leads through, a symlink that another user made or can move"
		[ "$stderr" = "fcopy: his/report: $reason" ] || { echo "$stderr"; return 1; }
		absent g
		holds old mine
		ln -sf his/report way
		expect 1 $o=way f g
		[ "$stderr" = "fcopy: way: $reason" ]
		$NOBODY ln -sf ../new his/report
		expect 1 $o=his/report f g
		absent new
		$NOBODY ln -sf ../mine his/report
	done
	rm his/report way
	ln -s ../mine his/report # the other user can move it
	expect 1 --log-file=his/report f g
	chown 0 his
	expect 0 --log-file=his/report f g
	[ "$(head -n 1 mine)" = old ]
	[ "$(wc -l <mine)" -gt 1 ]
	expect 0 --json=his/report f g
	[ "$(head -c 1 mine)" = "{" ]
	expect 0 --json=/dev/stdout f g
	[ "${output:0:1}" = "{" ]
	chown 65534 his
	$NOBODY mkfifo his/fifo
	run --separate-stderr timeout 20 "$FCOPY" --json=his/fifo f g
	demand 1
	says "fcopy: his/fifo: open: is a FIFO of another user"
}

# While the copy reads s/x/a/…/leaf, x is closed for want of descriptors, and x and x/a are moved away.
@test "a directory that was closed, and exchanged before it is opened again, is neither read nor written" {
	local kind a
	a=x/a/$(seq -s / 30)
	need python3
	need_strace
	[[ $(uname -m) =~ ^(x86_64|aarch64)$ ]] || skip "stops.py knows the calls of x86-64 and arm64"
	cat >exchange.py <<-'END'
		import os, shutil, sys
		sys.path.insert(0, sys.argv[1])
		import stops
		fcopy, kind, side = sys.argv[2:5]
		moved = []
		def is_open(path, pid):
		    fds = "/proc/%d/fd/" % pid
		    return path in [os.readlink(fds + fd) for fd in os.listdir(fds)]
		def exchange(call, moment):
		    at = os.path.join(os.getcwd(), side, "x")
		    if moved or not any(path.endswith("/leaf") for path in call.paths()):
		        return
		    moved.append(not is_open(at, call.pid))
		    os.rename(at + "/a", at + "/../a-away")
		    os.rename(at, at + "-away")
		    if kind == "again": # the file system may use the inode number again
		        shutil.rmtree(at + "-away")
		    if kind == "symlink":
		        os.symlink(os.getcwd() + "/outside", at)
		    else:
		        os.mkdir(at)
		status = stops.run(["/bin/sh", "-c", 'ulimit -n 24; exec "$0" -r -j1 -T s d', fcopy],
		                   exchange, os.getcwd(), os.getcwd() + "/err")
		sys.exit(0 if status == 1 and moved == [True] else "status %d, x was closed: %s" % (status, moved))
	END
	for kind in d:dir d:symlink d:again s:dir s:symlink; do
		rm -rf s d outside err
		mkdir -p "s/$a" s/x/b d outside
		touch s/x/file s/x/b/file "s/$a/leaf" outside/theirs
		python3 -B exchange.py "$BATS_TEST_DIRNAME/../tools" "$FCOPY" "${kind#*:}" "${kind%:*}" || { cat err; return 1; }
		grep -Eq "s/x: open: (this directory or its copy was moved or replaced|Not a directory)" err || { cat err; return 1; }
		[ $kind = "${kind#d}" ] || [ -z "$(find d/x/ -name file)" ]
		[ -z "$(find d -name theirs)" ]
		[ "$(ls outside)" = theirs ]
	done
}

@test "a file replaces, and is not, what another user puts in place of its temporary name" {
	exchanges "file-old renameat enter home/.fcopy-* 1 root-file" \
		"file-old renameat exit home/f 1 root-dir" \
		"file-inplace openat enter home/f 1 root-file" \
		"file-resume rename* enter home/*fcopy-* 1 file" \
		"shard-file openat enter home/f.fcopy-* * root-file"
}

@test "a merge follows a symlink of another user only to a file of his in a directory of his" {
	need_root "to own files as another user"
	mkdir -p src/d dst/d outside
	echo new | tee src/d/out src/d/own src/d/root >/dev/null
	echo old | tee outside/out outside/root dst/d/file >/dev/null
	ln -s ../../outside/out dst/d/out
	ln -s ../../outside/root dst/d/root
	ln -s file dst/d/own
	chown -h 65534 dst/d dst/d/out dst/d/own dst/d/file
	expect 1 --keep-going -r -T src dst
	mentions "dst/d/out: is, or leads through, a symlink that another user made or can move; its target, or the directory of the target, is not that user's"
	mentions "dst/d/root: is, or leads through, a symlink that another user made or can move"
	holds old outside/out
	holds old outside/root
	holds new dst/d/file
	# A file that is copied into the directory, and one that is named.
	expect 1 src/d/out dst/d
	mentions "dst/d/out: is, or leads through, a symlink that another user made or can move; its target, or the directory of the target, is not that user's"
	expect 1 --inplace src/d/out dst/d/
	holds old outside/out
	expect 0 src/d/own dst/d
	holds new dst/d/file
	expect 0 src/d/out dst/d/out
	holds new outside/out
	# A file that has lost its name can only be overwritten.
	local fd
	echo kept >outside/root
	exec {fd}<>outside/root
	rm outside/root dst/d/root
	ln -s /proc/$BASHPID/fd/$fd dst/d/root
	chown -h 65534 dst/d/root
	expect 1 --inplace src/d/root dst/d
	mentions "dst/d/root: is, or leads through, a symlink that another user made or can move; its target, or the directory of the target, is not that user's"
	expect 1 -rT --inplace src dst
	mentions "dst/d/root: is, or leads through, a symlink"
	[ "$(cat <&"$fd")" = kept ]
	exec {fd}>&-
}

@test "a symlink that another user can have moved, or that leads through one that he made, is not written through" {
	need_root "to own files as another user"
	local way
	mkdir -m 700 secret
	for way in -aT -rT '-aT --inplace' '-rT --update=changed' '-aT --attributes-only'; do
		rm -rf src dst
		mkdir src dst
		echo orig >secret/f
		chmod 600 secret/f
		echo f >src/f
		echo evil >src/g
		ln -s f src/link
		chown 65534 dst
		expect 0 -aT src dst
		chown 65534 dst
		# That of root, which was copied, leads to one of his.
		$NOBODY sh -c 'cd dst && mv -f link g && rm -f f && ln -s ../secret/f f'
		# shellcheck disable=SC2086 # words
		expect 1 --keep-going $way src dst
		[[ $stderr == *"dst/g: is"*" a symlink"* ]]
		holds orig secret/f
		has_mode 600 secret/f
		rm -rf src/link dst
		mkdir -p dst/his
		chown 65534 dst/his
		ln -s his/there dst/g
		$NOBODY ln -s ../../secret/f dst/his/there
		# shellcheck disable=SC2086
		expect 1 --keep-going $way src dst
		[[ $stderr == *"dst/g: is"*" a symlink"* ]]
		holds orig secret/f
	done
	# A directory that all can write to: not if it is sticky.
	mkdir -p dst/all
	ln -s ../own dst/all/f
	echo old >dst/own
	chmod 777 dst/all
	expect 1 src/f dst/all
	mentions "dst/all/f: is, or leads through, a symlink that another user made or can move"
	chmod 1777 dst/all
	expect 0 src/f dst/all
	holds f dst/own
	chgrp 12345 dst/all
	chmod 775 dst/all
	expect 1 src/f dst/all/
	expect 1 -rT src dst/all
	mentions "dst/all/f: is, or leads through, a symlink that another user made or can move"
	holds f dst/own
	chgrp 0 dst/all
	expect 0 -rT src dst/all
}

# capable FILE: it gets cap_setuid=ep, as by setcap(8).
capable() {
	setfattr -n security.capability -v 0x0100000280000000000000000000000000000000 "$1"
}

is_capable() {
	getfattr --absolute-names -n security.capability "$1" >/dev/null 2>&1
}

@test "what another user can write to gets no setuid or setgid bits, and no capabilities" {
	need_root "to own files as another user"
	need setfattr getfattr
	local bits options
	mkdir src
	for bits in 4755 2755 caps; do
		echo GOOD >src/su
		touch -d 2020-01-01 src/su
		if [ $bits = caps ]; then
			chmod 755 src/su
			capable src/su || skip "no capabilities of files here"
		else
			chmod $bits src/su
		fi
		for options in --mirror '-aT --update=changed' '-aT --attributes-only --no-preserve=links' '-aT --inplace'; do
			rm -rf dst
			mkdir dst
			chown 65534 dst
			$NOBODY sh -c 'echo EVIL >dst/su; touch -d 2020-01-01 dst/su'
			# shellcheck disable=SC2086 # words
			run --separate-stderr "$FCOPY" $options src dst
			[ "$status" = 0 ]
			if [[ $options == *--inplace || $options == *-only* ]]; then
				mentions "are not copied, because DST existed: others may have it open"
				expect 0 $options src dst # it is root's now, and can still be mapped
			fi
			if [ "$(cat dst/su)" = GOOD ] && [[ $options != *--inplace ]]; then
				[ $bits != caps ] || is_capable dst/su # a new inode
				[ $bits = caps ] || [ "$(stat -c %a dst/su)" = $bits ]
			else
				never is_capable dst/su
				[ "$(stat -c %a dst/su)" = 755 ]
			fi
			[[ $options != --mirror && $options != *changed ]] || holds GOOD dst/su
		done
	done
	# Nor is its owner asked: it may have had another one when it was opened.
	chown 0 dst
	chmod 4755 src/su
	rm dst/su
	cp -p src/su dst/su
	chmod 755 dst/su
	local inode
	inode=$(stat -c %i dst/su)
	expect 0 --mirror src dst
	[ "$(stat -c %a dst/su)" = 4755 ]
	[ "$(stat -c %i dst/su)" != "$inode" ]
	inode=$(stat -c %i dst/su)
	chmod 4711 src/su # it keeps what it has
	expect 0 --mirror src dst
	[ "$(stat -c '%a %i' dst/su)" = "4711 $inode" ]
	# Capabilities are for the owner and group of SRC, also in a new file that keeps those of the old one.
	chmod 755 src/su
	capable src/su
	for options in "src/su dst/su" "--inplace src/su dst/su" "-rT src dst"; do
		rm dst/su
		install -o 65534 -g 65534 -m 755 /dev/null dst/su
		# shellcheck disable=SC2086 # words
		run --separate-stderr "$FCOPY" --preserve=xattr $options
		mentions "dst/su: its capabilities are not copied, because "
		never is_capable dst/su
	done
	# An earlier copy that another user owns is not linked, whatever is preserved; nor one with setuid bits that SRC lacks.
	rm -rf src dst old
	mkdir src old
	echo GOOD >src/f
	touch -d 2020-01-01 src/f
	chown 65534 old
	$NOBODY sh -c 'echo EVIL >old/f; touch -d 2020-01-01 old/f; chmod 4777 old/f'
	expect 0 -rT --link-dest=old src dst
	holds GOOD dst/f
	rm -r dst
	chown 0 old/f
	chmod 4755 old/f
	expect 0 -rT --link-dest=old src dst
	holds GOOD dst/f
}

@test "a copy that is written in place is closed, until it is complete, to users who may not read SRC" {
	need_root "to own files as another user"
	need strace setfattr
	local made
	mkdir -m 2775 shared
	chown 65534:65534 shared
	random secret 1000
	chmod 640 secret
	for made in --inplace '--attributes-only --no-preserve=links' '-aT --inplace'; do
		rm -f shared/*
		# shellcheck disable=SC2086 # words
		traced 0 trace=openat,open $made -p secret shared/f
		grep -q '"f", .*O_CREAT.*, 0600)' trace || { cat trace; return 1; }
		[ "$(stat -c '%u %a' shared/f)" = '0 640' ]
	done
	# The mode of what was there is narrowed first.
	echo old >there
	chmod 644 there
	setfattr -n user.token -v hunter2 secret || skip "no attributes here"
	traced 0 trace=fchmod,fsetxattr --attributes-only --preserve=all secret there
	grep -v '"security' trace | head -n 1 | grep -q 'fchmod(.*, 0640)' || { cat trace; return 1; }
	getfattr -n user.token there
}

@test "setuid and setgid bits that a change of owner has taken are not given back on the way" {
	need_root "to own files as another user"
	need strace
	mkdir src dst
	random src/f 1000
	chmod 755 src/f
	local options
	for options in --mirror '-aT --update=changed' '-aT --inplace' '-aT --attributes-only'; do
		cp -p src/f dst/f
		chown 65534:65534 dst/f
		chmod 6777 dst/f
		touch -r src/f dst/f
		# shellcheck disable=SC2086 # words
		traced 0 trace=fchown,fchmod $options src dst
		grep -q 'fchown(.*, 0, 0)' trace
		never grep 'fchmod(.*, 0[2-7][0-7][0-7][0-7])' trace
		[ "$(stat -c '%u %a' dst/f)" = '0 755' ]
	done
}

@test "setuid and setgid bits that SRC lacks are taken before the file changes in any other way" {
	need_root "to own files as another user"
	need strace setfacl
	local mode options
	mkdir src dst
	random src/f 1000
	chmod 755 src/f
	setfacl -m u:55:rx src/f || skip "no ACLs here"
	for mode in '65534:65534 2745' '0:0 4700'; do
		cp -p src/f dst/f
		setfacl -b dst/f
		chown "${mode% *}" dst/f
		chmod "${mode#* }" dst/f
		touch -r src/f dst/f
		traced 0 trace=fchmod,fsetxattr --mirror src dst
		# An ACL can give the right to execute.
		head -n 1 trace | grep -q 'fchmod(.*, 07[04][05])' || { cat trace; return 1; }
		never grep 'fchmod(.*, 0[2-7][0-7][0-7][0-7])' trace
		[ "$(stat -c %a dst/f)" = 755 ]
	done
	for options in '-aT --inplace' '-aT --inplace --mode=readwrite'; do
		echo other >dst/f
		chmod 6755 dst/f
		# shellcheck disable=SC2086 # words
		traced 0 trace=fchmod,pwrite64,write,copy_file_range,ftruncate,ioctl $options src dst
		grep -v -e '= -1 ' -e FIGETBSZ trace | head -n 1 | grep -q 'fchmod(.*, 0755)' || { cat trace; return 1; }
	done
	# Another user can give his file away before the bits are set: only a new one gets them.
	setfacl -b src/f
	chown 65534:65534 src/f
	chmod 4755 src/f
	for options in '-aT --inplace' '-aT --attributes-only' --mirror; do
		rm dst/f
		cp -p src/f dst/f
		chmod 4750 dst/f
		# shellcheck disable=SC2086 # words
		expect 0 $options src dst
		if [ "$options" = --mirror ]; then
			[ "$(stat -c %a dst/f)" = 4755 ]
		else
			mentions "dst/f: its setuid and setgid bits are not copied, because DST existed"
			[ "$(stat -c %a dst/f)" = 755 ]
		fi
	done
}

@test "whether SRC and DST are one file is found out without writing back setuid bits" {
	need strace
	mkdir backing
	random backing/f 1000
	chmod 4755 backing/f
	# shellcheck disable=SC2016
	by_fuse rw 'strace -f -qq -o trace -e trace=fchmod,utimensat "$FCOPY" --inplace backing/f m/f 2>err && exit 1
		grep -q "are the same file" err'
	grep -q 'utimensat(' trace
	never grep 'fchmod(' trace
	[ "$(stat -c %a backing/f)" = 4755 ]
}

@test "capabilities that a file holds, and SRC has, stay when its owner is not SRC's" {
	need_root "to own files as another user"
	need setcap getcap
	local options
	mkdir src
	echo 1 >src/f
	chown 65534 src/f
	setcap cap_net_raw=ep src/f || skip "no capabilities of files here"
	for options in --mirror '-aT --inplace'; do
		rm -rf dst
		chmod 755 src/f
		expect 0 --mirror --no-preserve=ownership src dst
		chmod 700 src/f
		# shellcheck disable=SC2086 # words
		expect 0 $options --no-preserve=ownership src dst
		never grep capabilities <<<"$stderr"
		[ -n "$(getcap dst/f)" ]
		[ "$(stat -c '%u %a' dst/f)" = '0 700' ]
	done
}

@test "a symlink of another user is followed to no file that he cannot reach, and no FIFO of his is written to" {
	need_root "to own files as another user"
	mkdir home dst his
	mkdir -m 700 backup
	echo history >home/h
	chown -R 65534 home dst his
	expect 0 -aT home backup/his
	$NOBODY ln -s ../backup/his/h dst/f
	echo evil >f
	expect 1 f dst
	mentions "dst/f: is, or leads through, a symlink that another user made or can move"
	holds history backup/his/h
	chmod 755 backup
	expect 0 f dst
	holds evil backup/his/h
	$NOBODY mkfifo his/f
	for options in "" -p -f --inplace; do
		# shellcheck disable=SC2086
		run --separate-stderr timeout 20 "$FCOPY" $options f his/
		demand 1
		mentions "his/f: is a FIFO of another user"
	done
	ln -s his/f way
	run --separate-stderr timeout 20 "$FCOPY" --json=way f g
	demand 1
	mentions "way: open: is a FIFO of another user"
	# Their own is waited for.
	mkfifo mine
	cat mine >got &
	expect 0 --json=mine f g
	wait $!
	[ "$(head -c 1 got)" = "{" ]
}

@test "--json: a file with a lease is not waited for, and the message says why, also behind a symlink" {
	need python3
	local name
	echo a >f
	echo old >report
	ln -s report way
	for name in report way; do
		run --separate-stderr timeout 30 python3 -c '
import fcntl, os, signal, subprocess, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open("report", os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
sys.exit(subprocess.run(sys.argv[1:]).returncode)' "$FCOPY" --json=$name f g
		demand 1
		says "fcopy: $name: open: Resource temporarily unavailable"
		absent g
	done
	holds old report
}

@test "an ACL that lets another user move symlinks counts" {
	need_root "to own files as another user"
	need setfacl
	mkdir src dst
	echo evil >src/g
	echo orig >f
	ln -s ../f dst/g
	setfacl -m u:65534:rwx,m::rwx dst || skip "no ACLs here"
	expect 1 -rT src dst
	mentions "dst/g: is, or leads through, a symlink that another user made or can move"
	holds orig f
	setfacl -b dst
	chmod 775 dst
	expect 0 -rT src dst
	holds evil f
}

@test "a merge into a directory that others can write to leaves no private directory in it" {
	local i
	mkdir -p src/d/new/deep dst/d
	echo x >src/d/a
	ln src/d/a src/d/b
	ln src/d/a src/d/new/c
	echo y >src/d/new/deep/f
	for i in {1..40}; do ln -s "$i" "src/d/l$i"; done
	mkfifo src/d/p
	chmod 777 dst/d
	echo old >dst/d/b
	ln -s old dst/d/l1
	expect 0 -a -T src dst
	says
	diff <(cd src && find . -printf '%p %y %m %l %n\n' | sort) \
		<(cd dst && find . -printf '%p %y %m %l %n\n' | sort)
	[ dst/d/a -ef dst/d/new/c ]
	[ dst/d/a -ef dst/d/b ]
}

@test "a merge into a directory of this user alone makes nothing in a private directory" {
	need_strace
	mkdir -p src/d dst/d
	ln -s x src/d/l
	mkdir src/d/new
	echo x >src/d/f
	echo old >dst/d/f
	traced 0 trace=mkdir,mkdirat,mknodat,symlinkat,statx,name_to_handle_at -a -j1 -T src dst
	in_trace 'mkdirat\(.*"new"' 1
	in_trace 'mkdir(at)?\(' 1
	in_trace 'symlinkat\(.*"l"' 1
	in_trace 'name_to_handle_at' 0
}
