#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is refused before anything is touched.

load helper

refuses_same() {
	expect 2 "$1" "$2"
	says "fcopy: $1 and $2: are the same file"
	holds data a
}

@test "SRC and DST are the same file, by every alias" {
	echo data >a
	ln a hard
	ln -s a soft
	mkdir d
	ln -s .. d/up
	local alias
	for alias in a ./a hard soft d/../a d/up/a "$PWD/a" "/proc/self/cwd/a"; do
		refuses_same a "$alias"
		refuses_same "$alias" a
	done
	expect 2 a .
	mentions "a and ./a: are the same file"
	expect 2 a d/up
	mentions "a and d/up/a: are the same file"
}

@test "the same file in every mode, and with -f, --inplace and --fsync" {
	echo data >a
	local option
	for option in -m{0..8} -f --inplace --fsync; do
		expect 2 "$option" a a
		says "fcopy: a and a: are the same file"
		holds data a
	done
}

@test "the same file through a descriptor" {
	echo data >a
	local dst
	for dst in /dev/stdout - /dev/fd/1 /proc/self/fd/1; do
		run --separate-stderr bash -c '"$0" a "$1" >>a' "$FCOPY" $dst
		demand 2
		says "fcopy: a and $dst: are the same file"
		holds data a
	done
	for dst in /dev/stdin - /dev/fd/0; do
		run --separate-stderr bash -c '"$0" "$1" a <a' "$FCOPY" $dst
		demand 2
		says "fcopy: $dst and a: are the same file"
		holds data a
	done
	run --separate-stderr bash -c '"$0" - - <a >>a' "$FCOPY"
	demand 2
	holds data a
}

@test "a FIFO and itself: refused, not hung, also while another process has it open" {
	mkfifo p
	ln p hard
	ln -s p soft
	local alias option
	for alias in p ./p hard soft; do
		expect 2 p "$alias"
		says "fcopy: p and $alias: are the same file"
	done
	expect 2 p .
	mentions "p and ./p: are the same file"
	expect 2 -t . p
	expect 0 -n p p
	for option in -m1 --inplace; do
		run --separate-stderr bash -c 'exec 3<>p; echo data >&3; "$0" "$1" p p' "$FCOPY" $option
		demand 2
		says "fcopy: p and p: are the same file"
	done
	run --separate-stderr bash -c '"$0" - p <>p' "$FCOPY"
	demand 2
	says "fcopy: - and p: are the same file"
	run --separate-stderr bash -c 'exec <>p; "$0" - - >&0' "$FCOPY"
	demand 2
}

@test "a bind mount of the source is the same file" {
	echo data >a
	touch b
	export FCOPY
	private_mounts 'mount --bind a b; "$FCOPY" a b'
	demand 2
	says "fcopy: a and b: are the same file"
	holds data a
}

@test "SRC is a directory" {
	mkdir d
	local src
	for src in d d/ . .. /; do
		expect 2 "$src" b
		says "fcopy: $src: is a directory" "fcopy: hint: use -r to copy directories"
	done
	absent b
	expect 2 d d
	mentions "is a directory"
}

@test "SRC is missing, unreadable, a dangling or a looping symlink" {
	echo old >b
	ln -s nowhere dangling
	ln -s loop loop
	mkdir d
	expect 2 nope b
	says "fcopy: nope: open: No such file or directory"
	expect 2 dangling b
	says "fcopy: dangling: is a dangling symlink"
	expect 2 dangling nope .
	says "fcopy: dangling: is a dangling symlink" "fcopy: nope: stat: No such file or directory" \
		"fcopy: 2 entries failed"
	expect 2 loop b
	says "fcopy: loop: open: Too many levels of symbolic links"
	expect 2 b/x c
	says "fcopy: b/x: open: Not a directory"
	expect 2 "" b
	says "fcopy: '': open: No such file or directory"
	echo secret >d/a
	chmod 0 d/a
	chmod 755 d
	as_nobody 1 d/a /dev/null
	says "fcopy: d/a: open: Permission denied"
	holds old b
}

@test "DST in a directory that is missing, or none" {
	echo data >a
	local option
	for option in -f -r; do # a file, and a tree of one file
		expect 2 $option a newdir/
		says "fcopy: newdir/: no such directory" "fcopy: hint: newdir does not exist; create it: mkdir -p newdir/"
		absent newdir
		expect 2 $option a nodir/b
		says "fcopy: nodir/b: open of its directory: No such file or directory" "fcopy: hint: nodir does not exist; create it: mkdir -p nodir"
		expect 2 $option a a/b
		says "fcopy: a/b: open of its directory: Not a directory"
	done
	echo old >b
	expect 2 a b/
	says "fcopy: b/: open: Not a directory"
	holds old b
	expect 2 a ""
	says "fcopy: '': open: No such file or directory"
}

@test "DST is a dangling symlink: refused, and the hint says what to do" {
	echo data >a
	ln -s nowhere link
	local option
	for option in -f --inplace -m1; do
		expect 2 $option a link
		says "fcopy: link: is a dangling symlink" \
			"fcopy: hint: remove the symlink, or create its target"
	done
	absent nowhere
	[ -L link ]
	mkdir d
	ln -s nowhere d/a
	expect 2 a d
	says "fcopy: d/a: is a dangling symlink" \
		"fcopy: hint: remove the symlink, or create its target"
}

@test "DST is a symlink to itself" {
	echo data >a
	ln -s loop loop
	expect 2 a loop
	says "fcopy: loop: is a loop of symlinks" "fcopy: hint: remove the symlink"
}

@test "DST/basename(SRC) is a directory" {
	echo data >a
	mkdir -p d/a
	local dst
	for dst in d d/; do
		expect 2 a $dst
		says "fcopy: d/a: is a directory"
	done
	[ -z "$(ls d/a)" ]
}

@test "a source without a name into a directory: usage" {
	echo data >a
	mkdir d
	run --separate-stderr bash -c '"$0" - d <a' "$FCOPY"
	demand 2
	says "fcopy: d: is a directory, and the source has no name to use there"
	[ -z "$(ls d)" ]
}

@test "a name of 256 bytes and a path of 4096: too long" {
	echo data >a
	local long
	long=$(printf 'x%.0s' {1..256})
	expect 2 a "$long"
	says "fcopy: $long: open: File name too long"
	expect 2 "$long" b
	says "fcopy: $long: open: File name too long"
	long=$(printf './%.0s' {1..2050})b
	expect 2 a "$long"
	mentions "open: File name too long"
	absent b
	# The name in the directory makes a path too long that was not.
	long=$(printf './%.0s' {1..2045})
	mkdir d
	echo data >longname
	expect 2 longname "${long}d/"
	mentions "open: File name too long"
}

@test "hard links: refused unless -f or --inplace" {
	echo new >a
	echo old >b
	ln b other
	expect 2 a b
	says "fcopy: b: has other hard links, which would keep the old content" \
		"fcopy: hint: use --inplace to overwrite it, or -f to replace it anyway"
	holds old b
	expect 0 --inplace a b
	holds new b
	holds new other
	echo newer >a
	expect 0 -f a b
	holds newer b
	holds new other
}

@test "not writable by the user: refused unless -f" {
	echo new >a
	mkdir d
	echo old >d/b
	chmod 444 d/b
	chmod 777 d
	! is_root || chown -R 65534:65534 d
	as_nobody 1 a d/b
	says "fcopy: d/b: is not writable by you" "fcopy: hint: use -f to replace it anyway"
	holds old d/b
	as_nobody 1 --inplace a d/b
	says "fcopy: d/b: open: Permission denied"
	holds old d/b
	as_nobody 0 -f a d/b
	holds new d/b
	[ "$(stat -c %a d/b)" = 444 ]
}

@test "a directory that is not writable: the error names --inplace, which works" {
	echo new >a
	mkdir d
	echo old >d/b
	chmod 666 d/b
	chmod 555 d
	as_nobody 1 a d/b
	says "fcopy: d/b: open: Permission denied" \
		"fcopy: hint: use --inplace=auto to overwrite it"
	holds old d/b
	as_nobody 0 --inplace a d/b
	holds new d/b
	as_nobody 1 a d/c
	says "fcopy: d/c: open: Permission denied" "fcopy: hint: you may not write to the directory d"
	chmod 755 d
}

@test "owner or group that cannot be kept: refused unless -f or --inplace" {
	need_root "to make a file of somebody else's"
	echo new >a
	mkdir d
	chmod 777 d
	echo old >d/b
	chmod 666 d/b
	as_nobody 1 a d/b
	says "fcopy: d/b: its owner or group cannot be kept" \
		"fcopy: hint: use --inplace to overwrite it, or -f to replace it anyway"
	holds old d/b
	as_nobody 0 --inplace a d/b
	holds new d/b
	[ "$(stat -c %u d/b)" = 0 ]
	as_nobody 0 -f a d/b
	[ "$(stat -c %u:%a d/b)" = 65534:666 ]
}

@test "a file without a name, by its descriptor in /proc: only --inplace, which works" {
	echo data >a
	echo gone >b
	local fd dst
	exec {fd}<>b
	rm b
	dst=/proc/$BASHPID/fd/$fd
	for option in -T -f --fsync --resume; do
		expect 2 $option a "$dst"
		says "fcopy: $dst: has no name to replace: it is a deleted file or a memfd" \
			"fcopy: hint: use --inplace=auto to overwrite it$([ $option != --resume ] || echo '; leave out --resume')"
	done
	[ "$(cat <&"$fd")" = gone ]
	expect 0 --inplace a "$dst"
	holds data "$dst"
	exec {fd}>&-
}

@test "a memfd, by its descriptor in /proc: only --inplace, which works" {
	need python3
	echo data >a
	cat >memfd.py <<-'END'
		import os, subprocess, sys
		fd = os.memfd_create("m")
		dst = f"/proc/{os.getpid()}/fd/{fd}"
		run = subprocess.run([sys.argv[1], "a", dst], capture_output=True, text=True)
		assert run.returncode == 2, run
		assert "has no name to replace: it is a deleted file or a memfd" in run.stderr, run
		assert os.fstat(fd).st_size == 0
		run = subprocess.run([sys.argv[1], "--inplace", "a", dst])
		assert run.returncode == 0 and os.pread(fd, 9, 0) == b"data\n", run
	END
	python3 memfd.py "$FCOPY"
}

@test "--inplace is not suggested where the file may not be written" {
	need_root "to have another user's file"
	echo new >a
	mkdir d
	echo old >d/b
	ln d/b d/other
	chmod 444 d/b
	chmod 1777 d
	as_nobody 1 a d/b
	says "fcopy: d/b: cannot be replaced: you own neither it nor its sticky directory"
	as_nobody 1 -f a d/b
	says "fcopy: d/b: cannot be replaced: you own neither it nor its sticky directory"
	chmod 777 d
	as_nobody 2 a d/b
	says "fcopy: d/b: has other hard links, which would keep the old content" \
		"fcopy: hint: use -f to replace it anyway"
	chmod 755 d
	as_nobody 1 -f a d/b
	says "fcopy: d/b: open: Permission denied"
	chmod 666 d/b
	as_nobody 1 -f a d/b
	says "fcopy: d/b: open: Permission denied" \
		"fcopy: hint: use --inplace=auto to overwrite it"
	holds old d/b
}

@test "faccessat2 is denied, as in old container runtimes: faccessat decides" {
	need_strace
	[ "$(id -u)" = 0 ] || skip "only root may write to the file of another user"
	echo new >a
	echo old >b
	chown 1234 b # of one of this user, owner and mode say enough
	traced 0 inject=faccessat2:error=EPERM a b
	injected
	holds new b
}

@test "getrandom is denied: the message names it" {
	need_strace
	echo new >a
	echo old >b
	traced 1 inject=getrandom:error=ENOSYS a b
	injected
	says "fcopy: b: getrandom: Function not implemented"
	holds old b
}

@test "--reflink=always fails if the source has no size, and copies nothing" {
	expect 1 --reflink=always /proc/cpuinfo copy
	absent copy
}
