#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Trees and several sources: what cp copies, whole or absent.

load helper

# make_tree DIR: one of everything that an ordinary user can create.
make_tree() {
	mkdir -p "$1/d/e" "$1/empty" "$1/sp ace"
	random "$1/d/file" 100000
	truncate -s 1M "$1/d/sparse"
	printf x | dd of="$1/d/sparse" bs=1 seek=500000 conv=notrunc status=none
	: >"$1/nothing"
	printf q >"$1/"$'\xff\xfe'
	echo a >"$1/d/e/a"
	ln "$1/d/e/a" "$1/hard"
	ln "$1/d/e/a" "$1/d/hard"
	ln -s d/e/a "$1/symlink"
	ln "$1/symlink" "$1/symlink2"
	ln -s nowhere "$1/dangling"
	mkfifo "$1/fifo"
	touch -d '2001-02-03 04:05:06.789' "$1/d/file" "$1/d/e"
	touch -h -d 2002-02-02 "$1/symlink"
	chmod 4755 "$1/d/file"
	chmod 1777 "$1/empty"
	chmod 500 "$1/d/e"
}

# same_as_cp OPTION…: cp and fcopy make the same tree of `s`.
same_as_cp() {
	cp "$@" s by_cp
	expect 0 "$@" s by_fcopy
	diff <(tree_of by_cp) <(tree_of by_fcopy)
	diff -r --no-dereference by_cp by_fcopy 2>&1 | not_special
}

not_special() {
	! grep -v 'is a fifo\|is a character\|is a block\|is a socket'
}

tree_of() {
	(cd "$1" && find . -printf '%p %y %m %U %G %l ' \( -type f -printf '%s %n\n' -o -printf '\n' \)) | sort
}

@test "-r: the same tree as cp -r" {
	make_tree s
	same_as_cp -r
}

@test "-a: rsync finds no difference to cp -a in a tree with one of everything" {
	type rsync >/dev/null || skip "no rsync"
	make_tree s
	setfattr -n user.name -v value s/d/file s/d 2>/dev/null || true
	setfacl -m u:1234:rwx s/nothing 2>/dev/null && setfacl -d -m u:1234:rwx s/empty
	if is_root; then
		mknod s/null c 1 3
		mknod s/loop b 7 99
		chown 1234:4321 s/d/file
		chown -h 55:66 s/symlink
		chmod 4755 s/d/file
		setfattr -n trusted.name -v value s/symlink 2>/dev/null || true
	fi
	cp -a s by_cp
	expect 0 -a s by_fcopy
	rsync -naHAXi --delete by_cp/ by_fcopy/ >differences
	diff /dev/null differences
	diff -r --no-dereference by_cp by_fcopy 2>&1 | not_special
	diff <(tree_of by_cp) <(tree_of by_fcopy)
}

@test "-rL, -rH, -rP follow the symlinks that cp follows" {
	local letter
	mkdir -p s/d
	echo x >s/d/f
	ln -s f s/d/l
	ln -s d s/dir
	ln -s s link
	for letter in L H P; do
		cp -r$letter link by_cp$letter
		expect 0 -r$letter link by_fcopy$letter
		diff <(tree_of by_cp$letter) <(tree_of by_fcopy$letter)
	done
}

@test "-rL: a symlink to its own directory fails, and the rest is kept" {
	mkdir s
	echo x >s/f
	ln -s . s/loop
	expect 1 -rL s d
	mentions "s/loop: contains itself through a symlink" "d.fcopy-part: kept, unfinished"
	holds x d.fcopy-part/data/f
	[ ! -e d ]
}

@test "into a directory as cp does; with -T as the directory itself" {
	make_tree s
	mkdir d
	expect 0 -r s d
	diff -r --no-dereference s d/s 2>&1 | not_special
	[ -p d/s/fifo ]
	expect 0 -rT s d
	[ -p d/fifo ]
	expect 0 -r s/. e
	[ -p e/fifo ]
	expect 0 -r s/ f/
	[ -p f/fifo ]
}

@test "several files and -t: each one gets its name in the directory" {
	echo 1 >a
	echo 2 >b
	mkdir d
	expect 0 a b d
	holds 1 d/a
	holds 2 d/b
	mkdir 4
	expect 0 -t 4 a b
	holds 2 4/b
}

@test "two sources of the same name: refused before anything is copied" {
	mkdir x y d
	echo 1 >x/a
	echo 2 >y/a
	expect 2 x/a y/a d
	mentions "have the same name"
	[ -z "$(ls d)" ]
}

@test "into itself: refused before anything is created" {
	mkdir -p s/d
	ln -s s/d link
	expect 2 -r s s/d
	expect 2 -r s s/d/new
	expect 2 -r s link/new
	expect 2 -r s/ s
	[ "$(find . | wc -l)" = 4 ]
}

@test "a new tree that fails is absent; --resume completes it, --keep-going accepts it" {
	mkdir -p s/d
	random s/d/a 100000
	echo b >s/d/b
	chmod 777 .
	is_root || skip "needs a file that its reader cannot read"
	touch s/secret
	chmod 600 s/secret
	as_nobody 1 -r s d
	mentions "s/secret: open: Permission denied" "kept, unfinished"
	[ ! -e d ]
	cmp s/d/a d.fcopy-part/data/d/a
	as_nobody 1 -r s d
	mentions "an earlier copy left its .fcopy-part"
	as_nobody 1 -r --resume s d
	[ ! -e d ]
	chmod 644 s/secret
	rm s/d/b
	as_nobody 0 -r --resume s d
	diff -r s d
	[ ! -e d.fcopy-part ]
	chmod 600 s/secret
	as_nobody 1 -r --keep-going s e
	cmp s/d/a e/d/a
	[ ! -e e/secret ]
	[ ! -e e.fcopy-part ]
}

@test "merge: files are replaced, others stay, a directory is not replaced by a file" {
	mkdir -p s/d s/x d/s/d
	echo new >s/d/a
	echo new >s/d/b
	echo old >d/s/d/a
	echo old >d/s/d/other
	echo file >d/s/x
	expect 1 -r s d
	mentions "d/s/x: is not a directory"
	holds new d/s/d/a
	holds new d/s/d/b
	holds old d/s/d/other
	holds file d/s/x
	rm d/s/x
	echo newer >s/d/a
	expect 0 -rn s d
	holds new d/s/d/a
	[ -d d/s/x ]
}

@test "9 system calls for a small file of a new tree" {
	need_strace
	local n
	mkdir s
	for n in {1..100}; do
		echo "$n" >"s/$n"
	done
	strace -f -o trace "$FCOPY" -r -j1 s d
	diff -r s d
	n=$(sed -n '/"data", O_RDONLY/,$p' trace | sed '/renameat2/,$d' | sed -n '/getdents64/,$p' | grep -vc 'getdents64\|brk\|mmap\|munmap')
	echo "$n calls for 100 files"
	[ "$n" -le 910 ]
	[ "$n" -ge 700 ]
}

@test "14 system calls for a small file that a merge replaces" {
	need_strace
	local n lines=()
	case $(stat -f -c %T .) in ext2/ext3 | xfs | btrfs | tmpfs | f2fs) ;; *) skip "the file system is asked more" ;; esac
	umask 022
	for n in 20 120; do
		mkdir s$n
		for ((i = 0; i < n; i++)); do
			echo "$i" >"s$n/$i"
		done
		cp -r s$n d$n
		[ -z "$(getfattr -m - s$n d$n/1 2>/dev/null)" ] || skip "files have attributes here"
		strace -f -o trace "$FCOPY" -rT -j1 s$n d$n
		diff -r s$n d$n
		lines+=("$(grep -vc 'getdents64\|brk\|mmap\|munmap' trace)")
	done
	n=$((lines[1] - lines[0]))
	echo "$n calls for 100 files"
	[ "$n" -le 1420 ]
	[ "$n" -ge 1000 ]
}

@test "12 system calls for a small file that is new in a merge" {
	need_strace
	local n lines=()
	case $(stat -f -c %T .) in ext2/ext3 | xfs | btrfs | tmpfs | f2fs) ;; *) skip "the file system is asked more" ;; esac
	umask 022
	for n in 20 120; do
		mkdir s$n d$n
		for ((i = 0; i < n; i++)); do
			echo "$i" >"s$n/$i"
		done
		strace -f -o trace "$FCOPY" -rT -j1 s$n d$n
		diff -r s$n d$n
		lines+=("$(grep -vc 'getdents64\|brk\|mmap\|munmap' trace)")
	done
	n=$((lines[1] - lines[0]))
	echo "$n calls for 100 files"
	[ "$n" -le 1220 ]
	[ "$n" -ge 900 ]
}

@test "what the storage lacks is asked once in a merge: unnamed files, and how they get a name" {
	need_strace
	local i
	mkdir s d
	for ((i = 0; i < 30; i++)); do
		echo "$i" >s/$i
		[ $((i % 2)) = 0 ] || echo old >d/$i
	done
	strace -f -qq -o trace -e trace=openat,linkat,fstatfs -e inject=linkat:error=EPERM "$FCOPY" -rT -j1 s d
	diff -r s d
	grep -c O_TMPFILE trace
	[ "$(grep -c O_TMPFILE trace)" -le 3 ]
	# By FUSE, no such file can be made.
	cp -r d backing
	# shellcheck disable=SC2016
	by_fuse rw 'strace -f -qq -o trace -e trace=openat "$FCOPY" -rT -j1 s m
		diff -r s m
		[ "$(grep -c O_TMPFILE trace)" -le 3 ]'
}

@test "a small source that grows during the copy: a warning, with --strict a failure" {
	need_strace
	local want strict=
	for want in 0 1; do
		rm -rf s d trace
		mkdir s
		printf '%s' first >s/f
		strace -f -qq -o trace -e trace=pwrite64 -e inject=pwrite64:delay_exit=2500000:when=1 \
			timeout -s KILL "$HANG" "$FCOPY" -r -j1 $strict s d 2>err &
		pid=$!
		await said pwrite64 trace
		printf '%s' second >>s/f
		status=0
		wait $pid || status=$?
		grep -q 's/f: changed while it was copied' err
		[ "$status" = $want ]
		strict=--strict
	done
	absent d
}

@test "short reads of FUSE: a small file of a tree is read to its end" {
	local short
	mkdir backing
	random backing/a 10000
	random backing/b 1000
	random backing/c 50000
	for short in 999 1000 4096; do
		# shellcheck disable=SC2016
		by_fuse "direct_io,fault=read:short=$short" "\"\$FCOPY\" -r m d$short"
		diff -r backing d$short
	done
}

@test "a signal removes the new tree" {
	mkdir -p s/d
	random s/d/a 3000000
	"$FCOPY" -r --limit-rate 100K s d &
	pid=$!
	await has_started
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ $status = 143 ]
	[ ! -e d ]
	[ "$(ls -A)" = s ]
}

has_started() {
	[ -n "$(find . -name 'a' -size +0 -path './.fcopy-*')" ]
}

@test "deep: 1,000 levels, and paths beyond PATH_MAX" {
	deep s
	expect 0 -a s d
	is_deep d
	[ "$(find d | wc -l)" = 1002 ]
	find s d -depth -delete
}

@test "a file under a lease is waited for, as with cp" {
	local pid
	need python3
	cat >lease.py <<-'END'
		import fcntl, os, signal, sys, time
		fd = os.open(sys.argv[1], os.O_RDWR)
		def end(*signal_and_frame):
		    time.sleep(0.2)
		    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
		    sys.exit("the lease was asked for")
		signal.signal(signal.SIGIO, end)
		fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
		print("leased", flush=True)
		time.sleep(120)
	END
	mkdir -p s/d dir
	echo hi >s/d/f
	for args in "-r s t" "s/d/f other dir"; do
		echo other >other
		rm -f out err
		python3 lease.py s/d/f >out 2>err 3>&- &
		pid=$!
		await said leased out || skip "no leases here"
		# shellcheck disable=SC2086
		expect 0 $args
		wait $pid || true
		grep -q 'asked for' err
	done
	holds hi t/d/f
	holds hi dir/f
}

@test "small files of a tree: one read, and one stat, unless it took long; one that grows before it is read is copied whole" {
	need_strace
	case $(stat -f -c %T .) in ext2/ext3 | xfs | btrfs | tmpfs | f2fs) ;; *) skip "not one of the file systems where st_size is the end" ;; esac
	mkdir s
	# libc's fstat() is newfstatat(2), or fstat(2) since glibc 2.39.
	local i looks='fstat\([0-9]*<[^>]*/s/[0-9]*>|/s/[0-9]*>, "", .*AT_EMPTY_PATH'
	for i in {1..20}; do
		random s/$i $((i * 3000))
	done
	traced 0 trace=%file,%desc -r -j1 --reflink=never s d
	[ "$(calls pread64)" = $((20 + $(grep -c 'pread64.*lib' trace))) ]
	[ "$(grep -cE '/(s|data)/[0-9]+>|"[0-9]+"' trace)" -lt $((20 * 8)) ]
	# A file that took long is looked at again, and strace takes long on a busy machine.
	[ "$(grep -cE "$looks" trace)" -lt 40 ]
	diff -r s d
	traced 0 trace=%file,%desc --strict -r -j1 --reflink=never s e
	[ "$(grep -cE "$looks" trace)" -ge 40 ]
	rm -r s/?*[0-9] d trace
	strace -f -qq -o trace -P s/9 -e trace=pread64 -e inject=pread64:delay_enter=500000:when=1 \
		"$FCOPY" -r -j1 --reflink=never s d 2>err &
	pid=$!
	await grep -q pread64 trace
	random more 5000
	cat more >>s/9
	wait $pid
	diff -r s d
	said "s/9: changed while it was copied" err
}
