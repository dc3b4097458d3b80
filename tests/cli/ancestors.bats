#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The faults of the program's ancestor (`fcopy SRC DST 1|2`, stdio or one call of sendfile): each
# has a test that catches it.

load helper

@test "one sendfile call held in an int: files over 2 GiB, and more than one call takes, are whole" {
	need_strace
	truncate -s 2049M a
	echo 'the end' >>a
	# The first 2 GiB only cost time: those calls are skipped and reported as done.
	traced 0 inject=sendfile:retval=16777216:when=1..128 a /dev/null sendfile
	injected
	[ "$(sed -n 's/.* sendfile(.* = \([0-9]*\).*/\1/p' trace |
		awk '{ n += $1 } END { printf "%.0f", n }')" = "$(stat -c %s a)" ]
	grep -q '\[2147483648\]' trace
}

@test "sendfile that takes only a part: the rest follows" {
	need_strace
	random a 40000000
	traced 0 trace=sendfile a b sendfile
	cmp a b
	[ "$(calls sendfile)" -ge 3 ]
}

@test "no truncation in mode 2: a longer old destination keeps no tail, in any mode" {
	local mode
	printf short >a
	for mode in $(moving_modes); do
		echo "an old and longer file" >b
		expect 0 a b "$mode"
		holds short b
		echo "an old and longer file" >b
		expect 0 --inplace a b "$mode"
		holds short b
	done
}

@test "truncation in mode 1 only: all modes treat the old file alike" {
	need_strace
	random a 100000
	local mode
	for mode in 1 2 3 4 5; do
		random b 200000
		traced 0 trace=openat,open,creat,ftruncate,truncate --inplace a b $mode
		never grep -q O_TRUNC trace
		[ "$(calls 'ftruncate|truncate')" = 1 ]
		traced 0 trace=openat,open,creat a b $mode
		never grep -q O_TRUNC trace
	done
}

@test "no check of open: exit 1 for a missing source, 2 for a destination in a missing directory" {
	local mode
	echo data >a
	for mode in 1 2; do
		expect 2 nope b $mode
		expect 2 a nodir/b $mode
		absent b
	done
}

@test "no check of write: a full disk is exit 1, by both modes" {
	echo data >a
	expect 1 a /dev/full 1
	says "fcopy: /dev/full: write: No space left on device"
	expect 1 a /dev/full 2
	need_strace
	traced 1 inject=sendfile:error=ENOSPC a b 2
	mentions "No space left on device"
	absent b
}

@test "no check of close: an error that comes with it is exit 1" {
	need_strace
	random a 5000
	local first
	traced 0 trace=close,fcntl a probe 1
	# Of the closes, the one after the duplication.
	first=$(($(sed '/F_DUPFD/q' trace | grep 'close(' | wc -l) + 1))
	traced 1 inject=close:error=EIO:when=$first a b 1
	injected
	mentions "close: Input/output error"
	absent b
}

@test "while (!feof): a read error ends the copy, at once" {
	need_strace
	random a 100000
	local n
	traced 0 trace=pread64 a probe 1
	n=$(nth pread64 "<$T/a>")
	traced 1 "inject=pread64:error=EIO:when=$((n + 1))+" a b 1
	mentions "a: pread: Input/output error"
	[ "$(calls pread64)" -le $((n + 3)) ]
	absent b
}

@test "a source that is a directory cannot be read: exit 2, no endless loop" {
	mkdir d
	expect 2 d b 1
	expect 2 d b 2
	absent b
}

@test "stdio in place of read and write: mode 1 makes calls of 8192 bytes, file to file" {
	need_strace
	random a 81920
	traced 0 trace=read,write,pread64,pwrite64 a b 1
	[ "$(grep -Ec "p?read(64)?\([0-9]+<$T/a>.*= 8192$" trace)" = 10 ]
	[ "$(grep -Ec 'p?write(64)?\(.*= 8192$' trace)" = 10 ]
}

@test "fcopy a a 1 empties a: refused, by every mode and every alias, content kept" {
	echo precious >a
	ln a b
	ln -s a c
	local mode dst
	for mode in 1 2; do
		for dst in a b c ./a; do
			expect 2 a $dst $mode
			mentions "are the same file"
			holds precious a
		done
	done
}

@test "files of /proc copy as empty: they are whole, or the mode refuses" {
	local file mode
	for file in /proc/version /proc/cpuinfo /proc/filesystems; do
		grep -v MHz $file >want
		for mode in auto readwrite sendfile splice copy_file_range mmap direct parallel; do
			rm -f b
			if "$FCOPY" $file b $mode 2>err; then
				grep -v MHz b | cmp want -
			else
				grep -q 'fcopy: ' err
				absent b
			fi
		done
		for mode in auto readwrite; do
			rm -f b
			"$FCOPY" $file b $mode
		done
	done
}

@test "any mode but 1 silently means sendfile: unknown ones are refused" {
	echo new >a
	echo old >b
	local mode
	for mode in 9 3x two "" one 11 -2; do
		run --separate-stderr "$FCOPY" a b -- "$mode"
		demand 2
		mentions "irectory"
		holds old b
		run --separate-stderr "$FCOPY" -m "$mode" a b
		demand 2
		mentions "no such mode" "0 auto, 1 readwrite"
		holds old b
	done
}
