#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Operands and options of trees: what is copied where, and what is refused before anything is made.

load helper

# usage_refusal TEXT ARG…: exit status 2, the text on stderr, and not one new name.
usage_refusal() {
	local text=$1 before
	before=$(find . | sort)
	expect 2 "${@:2}"
	mentions "$text"
	[ "$(find . | sort)" = "$before" ] || { find .; return 1; }
}

# A symlink that replaced the file it leads to would lead to itself.
@test "a symlink is not copied over what it leads to, nor a file, symlink or FIFO over itself" {
	local option name
	echo data >a
	ln -s a link
	mkfifo fifo
	mkdir -p s d/s
	ln -s ../d/s/file s/file
	echo data >d/s/file
	ln a s/hard
	ln a d/s/hard
	for option in -r -a; do
		expect 2 $option link a
		mentions "link and a: are the same file"
		for name in a link fifo; do
			expect 2 $option $name $name
			mentions "$name: are the same file"
		done
		expect 1 $option s d
		mentions "s/file and d/s/file: are the same file" "s/hard and d/s/hard: are the same file"
	done
	holds data a
	holds data d/s/file
	[ "$(readlink link)" = a ]
	[ -p fifo ]
}

@test "three operands: the last one is a mode or a directory, and the message lists no modes" {
	local last
	echo a >a
	echo b >b
	expect 2 a b c
	says "fcopy: c: neither a mode (see --list) nor a directory for several SRC"
	absent c
	expect 2 a b dir/
	mentions "fcopy: dir/: no such directory for several SRC"
	absent dir
	for last in 9 99; do
		usage_error "$last: neither a mode nor a directory; --list prints the modes" a b $last
		absent $last
	done
	usage_error "splcie: neither a mode nor a directory; did you mean splice?" a b splcie
	absent splcie
	touch file
	expect 2 a b file
	says "fcopy: file: is not a directory, which several SRC need"
	mkdir dir
	expect 0 a b dir
	holds a dir/a
	holds b dir/b
	expect 0 a b splice
	holds a b
}

@test "three operands with -r, -a, -m or -t: the last one is never a mode" {
	local option
	mkdir 4 x y
	echo x >x/f
	echo y >y/f
	for option in -r -a "-r -m 1"; do
		# shellcheck disable=SC2086
		expect 0 $option x y 4
		holds x 4/x/f
		holds y 4/y/f
		rm -r 4/x 4/y
	done
	expect 0 -t 4 x/f 2>&1
	holds x 4/f
	rmdir 4 2>/dev/null || rm -r 4
	usage_error "4: no such directory; use -m 4 to choose a mode" -r x y 4
	usage_error "sendfile: no such directory; use -m sendfile to choose a mode" x/f y x/none sendfile
	usage_error "4: no such directory; use -m 4 to choose a mode" -aT x y 4
	usage_error "rw: no such directory; use -m rw to choose a mode" --mirror x y rw
	absent 4
	absent sendfile
}

@test "-t: every SRC into the directory, which must exist" {
	echo 1 >a
	echo 2 >b
	mkdir -p 4 s/d
	expect 0 -t 4 a b
	holds 1 4/a
	holds 2 4/b
	expect 0 -r --target-directory=4 s
	[ -d 4/s/d ]
	expect 2 -t none a
	mentions "fcopy: none: no such directory"
	expect 2 -t a b
	says "fcopy: a: Not a directory"
	expect 2 -t 4
	absent none
	holds 1 a
}

@test "a directory without -r is refused with advice, and other sources are copied" {
	mkdir dir into
	echo a >a
	expect 2 dir new
	mentions "dir: is a directory" "hint: use -r to copy directories"
	absent new
	expect 1 a dir into # a was copied
	mentions "dir: is a directory" "hint: use -r to copy directories"
	holds a into/a
	absent into/dir
}

@test "two sources of the same name are refused before anything is copied" {
	mkdir -p x y into d/x
	echo 1 >x/a
	echo 2 >y/a
	usage_refusal "have the same name" x/a y/a into
	usage_refusal "have the same name" -t into x/a y/a
	usage_refusal "have the same name" -r x d/x into
	usage_refusal "have the same name" -r x/ ./x into
	usage_refusal "have the same name" -r d/. x into
	usage_refusal "give no other SRC" -r x/. y/. into
}

@test "streams and sockets are refused with -r and -a, as SRC and as DST" {
	local option stream
	mkdir s
	echo a >s/a
	for option in -r -a; do
		for stream in - fd:1 tcp:127.0.0.1:9 tcp-listen:0; do
			usage_refusal "$stream: is a stream" $option $stream new
			usage_refusal "$stream: is a stream" $option s $stream
			usage_refusal "$stream: is a stream" $option -t s $stream
		done
	done
}

@test "--size and --count are refused with what makes it a tree, which is named" {
	local option
	mkdir s
	echo a >f
	for option in --count --size; do
		usage_refusal "$option: cannot be combined with -r or -a" -r $option=1 s new
		usage_refusal "$option: cannot be combined with -r or -a" -a $option=1 s new
		usage_refusal "$option: cannot be combined with --dry-run" $option=4 --dry-run f new
		usage_refusal "$option: cannot be combined with --no-dereference" $option=4 -P f new
		usage_refusal "$option: cannot be combined with --interactive" $option=4 -i f new
		usage_refusal "$option: cannot be combined with -t" $option=4 -t s f
	done
	usage_error "--keep-listening: cannot be combined with --dry-run" -k --dry-run f tcp-listen:0
}

@test "into itself: refused before anything is created, also by symlinks and bind mounts" {
	mkdir -p s/d out
	echo a >s/a
	ln -s s/d link
	ln -s ../s out/up
	usage_refusal "" -r s s/d
	usage_refusal "" -r s s/d/new
	usage_refusal "" -r s s
	usage_refusal "" -rT s s/d/new
	usage_refusal "" -a s link/new
	usage_refusal "" -r s/ s
	usage_refusal "" -rL out/up s/d
	usage_refusal "" -rH out/up/ s/new
	usage_refusal "" -r . s/d
	usage_refusal "" -r s/. s/d/new
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mkdir bound
		mount --bind s/d bound
		for dst in bound bound/new; do
			s=0
			"$FCOPY" -r s $dst 2>>err || s=$?
			[ $s = 2 ] || { echo "status $s for $dst"; exit 1; }
		done
		s=0
		"$FCOPY" -rT s bound 2>>err || s=$?
		[ $s = 2 ] || { echo "status $s for -T bound"; exit 1; }
		find s bound | sort >after
		printf "%s\n" bound s s/a s/d | diff - after
		# A mount below the source shows the directory of the destination.
		mkdir "x y" s/d/m
		mount --bind "x y" s/d/m
		s=0
		"$FCOPY" -r s "x y/new" 2>>err || s=$?
		[ $s = 2 ] && [ -z "$(ls -A "x y")" ] || { echo "status $s for a mount in s"; exit 1; }
		"$FCOPY" -r s "x z"
		[ -d "x z/d/m" ]
		# With -x, what is mounted there is not copied.
		umount s/d/m
		mount -t tmpfs tmpfs s/d/m
		mount --bind s/d/m "x y"
		"$FCOPY" -rx s "x y/new"
		[ -d "x y/new/d/m" ]'
	demand 0
}

@test "the copy's own parent may be inside another source" {
	mkdir -p a b/into
	echo a >a/f
	expect 0 -r a b/into
	holds a b/into/a/f
}

@test "-x: a directory of another file system is copied empty, as cp -x" {
	mkdir -p s/other s/d
	echo a >s/d/a
	need_root "to mount a tmpfs"
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t tmpfs tmpfs s/other
		echo hidden >s/other/f
		chmod 751 s/other
		cp -rx s by_cp
		"$FCOPY" -rx s by_fcopy
		diff -r by_cp by_fcopy
		[ -z "$(ls by_fcopy/other)" ]
		[ "$(stat -c %a by_cp/other)" = "$(stat -c %a by_fcopy/other)" ]
		"$FCOPY" -r s all
		grep -q hidden all/other/f'
	demand 0
}

@test "-j N: the pool has N threads" {
	need_strace
	local n
	mkdir s
	touch s/a s/b s/c
	for n in 1 2 5; do
		traced 0 trace=clone,clone3 -r -j $n s d$n
		[ "$(calls 'clone3?')" = $((n - 1)) ]
		diff -r s d$n
	done
	mkfifo p
	mkdir into
	echo data >p &
	expect 0 -j 3 -m 1 -t into s/a p # a stream among the sources
	holds data into/p
	rm -r into
	traced 0 trace=clone,clone3 -r -j 3 -m sendfile s d # a mode that copies one file in one thread
	[ "$(calls 'clone3?')" = 2 ]
	diff -r s d
}

@test "-m MODE: each file is copied by this engine alone, in every mode" {
	local mode
	mkdir s
	random s/a 300000
	random s/b 100
	for mode in $MODES; do
		has_mode "$mode" || { reports "no $mode on this file system or kernel"; continue; }
		expect 0 -r -m "$mode" s "d-$mode"
		diff -r s "d-$mode"
	done
	has_mode reflink || expect 1 -r -m reflink s refused
	absent refused
}

@test "-v: one line for each entry" {
	mkdir -p s/d
	touch s/a s/d/b s/d/$'new\nline'
	ln -s a s/link
	mkfifo s/fifo
	expect 0 -rv s d
	[ -z "$(grep -v "^fcopy: threads: " <<<"$stderr")" ] || { echo "$stderr"; return 1; }
	diff <(sort <<<"$output") - <<-'END'
		s -> d
		s/a -> d/a
		s/d -> d/d
		s/d/b -> d/d/b
		s/d/new\012line -> d/d/new\012line
		s/fifo -> d/fifo
		s/link -> d/link
	END
	rm d/a
	expect 0 -rvTn s d
	grep -qx 's/a -> d/a' <<<"$output"
	[ "$(grep -c ': exists, skipped$' <<<"$output")" = 4 ] || { echo "$output"; return 1; }
}

@test "-n: what exists is left as it is, and the rest is copied, as cp -n" {
	mkdir -p s/d by_cp/s/d by_fcopy/s/d
	echo new >s/d/a
	echo new >s/d/b
	ln -s new s/d/link
	local d
	for d in by_cp by_fcopy; do
		echo old >$d/s/d/a
		ln -s old $d/s/d/link
	done
	cp -rn s by_cp || true # since 9.2 a file that was skipped is a failure
	expect 0 -rn s by_fcopy
	diff -r --no-dereference by_cp by_fcopy
	holds old by_fcopy/s/d/a
	holds new by_fcopy/s/d/b
}

@test "--limit-rate holds for the whole tree" {
	local n start
	mkdir s
	for n in {1..8}; do
		random "s/$n" 100000
	done
	start=${EPOCHREALTIME/./}
	expect 0 -r -j4 --limit-rate=1600000 s d
	diff -r s d
	n=$(((${EPOCHREALTIME/./} - start) / 1000))
	[ $n -ge 350 ] || { echo "$n ms for half a second's worth of bytes"; return 1; }
}

@test "--fsync: one syncfs before the rename, then an fsync of the parent" {
	need_strace
	mkdir -p s/d
	echo a >s/a
	echo b >s/d/b
	traced 0 trace=syncfs,fsync,fdatasync,renameat2,rename,renameat -r --fsync s d
	diff -r s d
	[ "$(calls syncfs)" = 1 ]
	[ "$(calls 'fsync|fdatasync')" = 1 ]
	order "syncfs\(.*\.fcopy-" "renameat2\(.*\"d\", RENAME_NOREPLACE" "fsync\(.*$PWD>"
	traced 0 trace=syncfs,fsync,fdatasync -r s e
	[ "$(calls 'syncfs|fsync|fdatasync')" = 0 ]
}

@test "--verify: every file is read back before the commit" {
	need_strace
	mkdir -p s/d
	random s/a 300000
	random s/d/b 1000
	traced 0 trace=openat,renameat2,read,pread64,fadvise64 -r -j1 --verify s d
	diff -r s d
	order '(read|pread64)\(.*\.fcopy-[^/]*/data/a>' "renameat2\(.*\"d\", RENAME_NOREPLACE"
	order '(read|pread64)\(.*\.fcopy-[^/]*/data/d/b>' "renameat2\(.*\"d\", RENAME_NOREPLACE"
}

@test "9 system calls for a small file of a new tree, whatever the number of threads" {
	need_strace
	local n threads
	mkdir s
	for n in {1..200}; do
		echo "$n" >"s/$n"
	done
	for threads in 1 2 4; do
		strace -f -c -o sum "$FCOPY" -r -j $threads s d$threads
		diff -r s d$threads
		n=$(awk '$NF ~ /^(openat|fstat|newfstatat|statx|read|write|pread64|pwrite64|copy_file_range|sendfile|splice|ioctl|fallocate|ftruncate|fadvise64|lseek|close|futex)$/ && $NF != "futex" { n += $4 } END { print n }' sum)
		echo "$threads threads: $n calls for 200 files"
		[ "$n" -ge 1400 ]
		[ "$n" -le 1900 ]
	done
}

@test "-P of a symlink to a stream is refused: only a path can become a symlink" {
	local dst
	echo a >a
	ln -s a l
	for dst in - fd:1 tcp:127.0.0.1:9; do
		expect 2 -P l $dst
		mentions "fcopy: $dst: is a stream: a symlink can be copied to a path only"
		[ -z "$output" ]
		absent "$dst"
	done
	expect 0 -P l ./-
	[ "$(readlink ./-)" = a ]
}

@test "... also one that lists many names again because they were replaced while it was read" {
	cat >again.c <<'C'
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
/* The first directory with a file17 is read twice. */
ssize_t getdents64(int fd, void *buffer, size_t size)
{
	ssize_t (*real)(int, void *, size_t) = dlsym(RTLD_NEXT, "getdents64");
	static int in, done;
	ssize_t n = real(fd, buffer, size);
	if (n == 0 && in == fd && !done++ && lseek(fd, 0, SEEK_SET) == 0)
		n = real(fd, buffer, size);
	if (n > 0 && memmem(buffer, (size_t)n, "file17", 6))
		in = fd;
	return n;
}
C
	"${CC:-cc}" -shared -fPIC -o again.so again.c -ldl 2>cc || skip "no C compiler: $(head -1 cc)"
	mkdir s d
	local i
	for i in {1..40}; do echo $i >s/file$i; done
	for i in d new d; do
		LD_PRELOAD=$T/again.so expect 0 -aT s $i
		says
		diff -r s $i
		find s -type f -exec touch {} +
	done
}

@test "a tree where chmod fails because modes are not stored" {
	mkdir -p backing s/sub
	echo x >s/sub/f
	by_fuse modeless '"$FCOPY" -r s m/d; diff -r s m/d
		"$FCOPY" -r --resume s m/e; diff -r s m/e
		for share in 0 1; do "$FCOPY" -r --shard=$share/2 s m/g; done; diff -r s m/g'
}

@test "-x and --keep-going need -r or -a" {
	echo a >a
	mkdir d
	usage_refusal "--keep-going: requires -r or -a" --keep-going a b
	usage_refusal "--one-file-system: requires -r or -a" -x a b
	usage_refusal "--keep-going: requires -r or -a" --keep-going a a d
}

@test "a new name in /dev: a file or symlink that is copied as in a tree is refused without -f" {
	local name=/dev/fcopy-test.$$ arguments
	echo a >f
	ln -s f link
	for arguments in "-P link" "-r f" "-a link"; do
		# shellcheck disable=SC2086 # two words
		expect 2 $arguments $name
		mentions "no such device: the copy would be a regular file in /dev"
		[ ! -e $name ]
		[ ! -L $name ]
	done
	[ "$(id -u)" = 0 ] && [ -w /dev ] || { reports "only root may write in /dev"; return; }
	expect 0 -Pf link $name
	[ "$(readlink $name)" = f ] && rm $name
}
