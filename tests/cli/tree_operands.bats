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

# same_results: tools/as_cp.py with the commands of standard input, of which each begins with what prepare makes.
same_results() {
	need python3
	[ -d prepared ] || (mkdir prepared && cd prepared && prepare)
	python3 -B "$BATS_TEST_DIRNAME/../tools/as_cp.py" "$FCOPY" prepared
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

prepare() {
	mkdir -p s/sub into none/deeper
	echo a >s/a
	echo f >s/sub/f
	echo g >g
	ln -s a s/link
	ln -s sub s/dirlink
	ln -s s to_s
	ln -s g to_g
	ln -s into to_into
	ln -s nowhere dangling
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

@test "operands that are directories, slashes, dots and symlinks: as cp" {
	local options src dst
	for options in -r -rL -rH -a -rT; do
		for src in s s/ s/. to_s to_s/; do
			for dst in into to_into to_into/ new new/ g; do
				case $options:$dst in
				# cp before 9.2 merges into the directory; later versions refuse it as fcopy does.
				-?T:to_into*) continue ;;
				esac
				echo $options $src $dst
			done
		done
	done >commands
	same_results <commands
}

@test "operands that are files and symlinks: as cp" {
	local options src dst
	for options in "" -r -rL -rH -a; do
		for src in g to_g s/link s/dirlink g/ none/such; do
			for dst in into/ to_into new s/a missing/new; do
				case $options:$src:$dst in
				:s/dirlink:*) continue ;; # below
				esac
				echo "$options $src $dst"
			done
		done
	done >commands
	same_results <commands
	same_results <<-'END'
		-r dangling new
		-a dangling into
		-rL dangling new
		-rH dangling new
		s/dirlink new
	END
}

@test "several sources of all kinds: as cp" {
	same_results <<-'END'
		-r s g to_g into
		-a s g to_s dangling into
		-rL s g to_s into
		-t into g s/a
		-r s none/such g into
		-r s g new
		-r s g to_g
	END
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

@test "a directory that is merged into DST, and other sources: as cp" {
	same_results <<-'END'
		-r s/. g into
		-r g s/sub/.. into
		-a g s/ none into
		-r s/sub/. none into/
		-r -t into s/. g
	END
	prepare
	# cp merges .. itself into the directory, too.
	mkdir -p sub/into
	(cd sub && expect 0 -rT ../s into && expect 0 -r ../s/sub/.. ../g into)
	holds g sub/into/g
	holds a sub/into/a
}

@test "names that begin with -, after --, and -T with a directory that exists" {
	mkdir -- -d
	echo x >-d/-f
	mkdir into
	expect 0 -r -- -d into
	holds x into/-d/-f
	expect 0 -r -T -- -d into
	holds x into/-f
	expect 0 -- -d/-f -g
	holds x ./-g
}

@test "-T with a symlink to a directory: with its slash it is the directory, as with cp" {
	mkdir s cp by_fcopy
	echo x >s/f
	ln -s cp to_cp
	ln -s by_fcopy to_fcopy
	cp -rT s to_cp/
	expect 0 -rT s to_fcopy/
	diff -r cp by_fcopy
	[ -L to_fcopy ]
	expect 2 -rT s to_fcopy
	says "fcopy: to_fcopy: is a symlink: a directory cannot replace it"
	ln -s nowhere dangling
	expect 2 -rT s dangling/
}

@test "-P copies a symlink as a symlink also without -r; -L and -H follow it, as cp does" {
	local option
	for option in -P -L -H; do
		same_results <<-END
			$option to_g new
			$option to_g s/a
			$option g new
			$option g to_g into
			$option to_g into
		END
	done
	prepare
	expect 0 -P dangling copy
	[ "$(readlink copy)" = nowhere ]
	mkdir elsewhere
	expect 0 -P to_s elsewhere
	[ "$(readlink elsewhere/to_s)" = s ]
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

@test "sources whose names differ only in case, where DST ignores case: the second is refused" {
	mkdir backing
	echo one >a
	echo two >A
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' 's=0
		mkdir m/d
		"$FCOPY" a A m/d 2>err || s=$?
		[ $s = 1 ]
		[ "$(cat m/d/a)" = one ]
		grep -q "is the copy of another source: their names may differ in case" err'
}

# In each pair one name is copied, and the other one fails: in a new directory, over an old file, and
# whatever the types.
@test "names that DST takes for one: the second one fails, by name, and no copy replaces another" {
	mkdir -p backing s/Dir s/dir
	echo 1 >s/é
	echo 2 >s/É
	echo 1 >s/a
	echo 2 >s/A
	ln -s 1 s/l
	ln -s 2 s/L
	mkfifo s/p
	echo 2 >s/P
	echo 3 >s/b
	ln s/b s/c
	echo 4 >s/C
	echo 4 >s/Dir/x
	echo 5 >s/dir/y
	# shellcheck disable=SC2016
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' 'try() {
			s=0
			"$FCOPY" "$@" 2>err || s=$?
			[ $s = 1 ] || { cat err; exit 1; }
			grep -cE "are one file in the destination|is already the copy of another entry" err || true
		}
		for options in "-r -j1" "-r -j4" "-a -j4" "-a -n"; do
			mkdir m/d
			case $options in *n) ;; *) echo old >m/d/A ;; esac
			n=$(try $options -T s m/d)
			[ "$n" = 6 ] || { echo "$options: $n"; cat err; exit 1; }
			[ "$(cat m/d/b)" = 3 ]
			[ "$(ls m/d | wc -l)" = 7 ]
			[ "$(find m/d -type f ! -name b -size -3c | wc -l)" -ge 3 ]
			[ "$(ls m/d/dir | wc -l)" = 1 ]
			chmod -R u+w m/d && rm -r m/d
		done
		n=$(try -r -T s m/new)
		[ "$n" = 6 ] || { cat err; exit 1; }
		[ ! -e m/new ]'
	mkdir e
	expect 0 -aT s e
	diff -r --no-dereference s e -x p
}

@test "a directory that lists each name twice is one copy of each" {
	mkdir -p backing/s/sub d
	echo 1 >backing/s/a
	ln backing/s/a backing/s/sub/b
	ln -s a backing/s/l
	mkfifo backing/s/p
	# shellcheck disable=SC2016
	by_fuse twice 'for options in "-r -j1" "-r -j4" "-a -j4"; do
			for dst in new d d; do
				"$FCOPY" --json -v $options -T m/s $dst >out 2>err || { cat err; exit 1; }
				[ ! -s err ] || ! grep -q warning err || { cat err; exit 1; }
				grep -qE "\"(files|hard_links)\": " out
				[ "$(find $dst ! -type d | wc -l)" = 4 ]
				[ "$(cat $dst/sub/b)" = 1 ]
			done
			rm -r new
		done'
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

@test "symlinks in DST: no copy replaces another one, or a file of the source" {
	new() {
		rm -rf s d t
		mkdir s d
		echo one >s/a
		echo two >s/b
		echo old >t
	}
	local option
	for option in -r -a "-r -j1"; do
		new
		ln -s ../t d/a
		ln -s ../t d/b
		# shellcheck disable=SC2086
		expect 1 $option -T s d
		mentions "are one file in the destination"
		new
		ln -s b d/a
		echo x >d/b
		# shellcheck disable=SC2086
		expect 1 $option -T s d
		grep -qE "are one file in the destination|its target moved while it was opened" <<<"$stderr"
		new
		ln -s ../s/b d/a
		# shellcheck disable=SC2086
		expect 1 $option -T s d
		mentions "d/a: leads to a file of the source"
		holds two s/b
		holds two d/b
	done
	new
	ln -s ../t d/a
	ln -s ../t d/b
	expect 1 s/a s/b d
	mentions "d/b: is already the copy of another entry"
	holds one t
	new
	ln -s ../s/b d/a
	expect 1 s/a s/b d
	mentions "d/a: is another SRC: nothing in it is changed"
	holds two s/b
	new
	ln -s ../t d/a
	expect 0 -rT s d
	holds one t
	[ -L d/a ]
}

@test "symlinks from one directory of DST to another: what came first stays, and the other one fails" {
	local option
	for option in -r "-r -j1" -a "-a --inplace" -ru "-rf --inplace"; do
		rm -rf s d
		mkdir -p s/a s/b d/a d/b
		echo one >s/a/f
		echo two >s/b/f
		echo three >s/a/g
		echo four >s/b/g
		echo old >d/b/f
		echo old >d/a/g
		touch -d 2020-01-01 d/b/f d/a/g
		ln -s ../b/f d/a/f
		ln -s ../a/g d/b/g
		# shellcheck disable=SC2086
		expect 1 $option -T s d
		[ "$(grep -cE "is already the copy of another entry: not replaced|its target moved while it was opened" <<<"$stderr")" = 2 ]
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

@test "several SRC, of which one is in DST: no copy of another one changes it, whatever the order" {
	prepare_own() {
		rm -rf x d
		mkdir -p x/b/c d/b/c
		echo new | tee x/b/f x/b/c/g >x/b/new
		touch -d 2001-01-01 x/b/c/g
		echo mine | tee d/b/f >d/b/c/g
		ln -s f x/b/link
	}
	local how
	for how in -r -a -rn "-r --inplace" "-r --remove-destination" "-r -b" "-r -j1 --keep-going"; do
		for command in "x/b d/b/c d" "d/b/c x/b d"; do
			prepare_own
			# shellcheck disable=SC2086
			expect 1 $how --dry-run $command
			# shellcheck disable=SC2086
			expect 1 $how $command
			mentions "d/b/c: is another SRC: nothing in it is changed"
			holds mine d/b/c/g
			holds mine d/c/g
			holds new d/b/new
		done
		[ "$how" != -rn ] || continue
		for command in "x/b d/b/f d" "d/b/f x/b d"; do
			prepare_own
			# shellcheck disable=SC2086
			expect 1 $how --dry-run $command
			# shellcheck disable=SC2086
			expect 1 $how $command
			mentions "d/b/f: is another SRC: nothing in it is changed"
			holds mine d/b/f
			holds mine d/f
			holds new d/b/c/g
		done
	done
	# So it is with a symlink, a FIFO, a link to SRC, and attributes.
	for how in "-a link" "-a fifo" "-rlf f" "-r --attributes-only -p f"; do
		for command in "x/b d/b/${how##* } d" "d/b/${how##* } x/b d"; do
			prepare_own
			mkfifo x/b/fifo
			chmod 604 x/b/f
			echo mine | tee d/b/link d/b/fifo
			# shellcheck disable=SC2086
			expect 1 ${how% *} --dry-run $command
			# shellcheck disable=SC2086
			expect 1 ${how% *} $command
			mentions "d/b/${how##* }: is another SRC: nothing in it is changed"
			holds mine "d/b/${how##* }"
			[ -f "d/b/${how##* }" ]
			[ ! -L "d/b/${how##* }" ]
			[ "$(stat -c %a "d/b/${how##* }")" = 644 ]
		done
	done
	# Under several names it is replaced, as one of them keeps it.
	prepare_own
	ln d/b/f d/b/h
	expect 0 -a x/b d/b/h d
	holds mine d/h
	holds new d/b/f
}

# in_every_order OLD: tools/orders.py with the lines of standard input; the exit statuses are in ./statuses.
in_every_order() {
	python3 -B "$BATS_TEST_DIRNAME/../tools/orders.py" "$FCOPY" "$1" >statuses
}

@test "four SRC in every order: the same exit status, and the same DST, also of equal files and hard links" {
	need python3
	mkdir -p s/one/sub s/two s/p/q old/one old/two
	echo 1 >s/one/a
	echo 2 >s/one/sub/b
	ln s/one/a s/two/link # of another SRC
	ln -s a s/one/symlink
	mkfifo s/two/fifo
	echo 3 >s/f
	ln s/f s/two/f
	echo 4 >s/g
	chmod 600 s/g
	chmod 700 s/one/sub
	find s ! -type l -exec touch -d '2001-01-01 00:00:00.5' {} +
	[ "$(id -u)" != 0 ] || chown -h 1:1 s/f s/one/sub s/one/symlink
	cp -a s earlier
	echo old >old/one/a
	echo newer >old/f
	echo 4 >old/g
	echo other >old/two/fifo
	find old -exec touch -d 2000-01-01 {} +
	touch -d 2030-01-01 old/f
	touch -d '2001-01-01 00:00:02' old/g # equal within two seconds, and repaired
	[ "$(id -u)" != 0 ] || chown 2:2 old/g
	in_every_order old <<-END
		-a -- s/one s/two s/f s/g
		-a -u -- s/one s/two s/f s/g
		-a -b -- s/one s/two s/f s/g
		-a --update=changed --modify-window=2 -- s/one s/two s/f s/g
		-a --update=changed -- s/one s/two s/f s/g
		-a --link-dest=$T/earlier -- s/one s/two s/f s/g
	END
	# Names that two SRC have, one of them a tree.
	mkdir none
	in_every_order none <<<"-a --parents -- s/one s/one/sub s/g s"
}

@test "--parents, SRC that contain each other, in every order: each entry is copied once" {
	local how order set
	need python3
	mkdir -p s/two/dir s/x old/s/two
	echo 1 >s/one
	echo 2 >s/two/g
	echo 3 >s/two/dir/h
	ln s/two/dir/h s/linked
	ln -s one s/symlink
	ln -s two s/to
	echo old >old/s/one
	echo old >old/s/two/g
	find s old -exec touch -h -d 2001-01-01 {} +
	for how in -a "-a -b" -an -aL; do
		for set in "s/one s s/two/g" "s s/two s/two/dir/h" "s/linked ./s/two//dir s" "s/symlink s/one s" \
			"s s/ s/one"; do
			echo "$how --parents -- $set"
		done
	done >commands
	in_every_order old <commands
	[ "$(sort -u statuses)" = 0 ]
	# What the walk of a SRC leaves out is copied if it is named.
	rm -rf d
	cp -a old d
	expect 0 -a --exclude=g --parents s s/two/g d
	holds 2 d/s/two/g
	# A directory that cannot be listed does not keep what is named in it from being copied.
	if [ "$(id -u)" != 0 ]; then
		echo 5 >s/x/named
		chmod 300 s/x
		expect 1 -a --parents s s/x/named d
		holds 5 d/s/x/named
		chmod 700 s/x
	fi
	# The copies of both have one name.
	for order in "s s/to/g" "s/to/g s" "s/to s/to/g" "s/to/g s/to"; do
		rm -rf d
		mkdir d
		# shellcheck disable=SC2086
		expect 2 -a --parents $order d
		mentions "cannot be copied together: the second is below a symlink"
		[ -z "$(ls -A d)" ]
	done
	expect 0 -rL --parents s/to s/to/g s/one d
	holds 2 d/s/to/g
	rm -rf d
	mkdir d
	expect 1 -r --parents s s/two/../one d
	mentions "contains '..'"
}
