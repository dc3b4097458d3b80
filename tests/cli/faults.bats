#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Calls that fail, on the real program: exit 1, the old file whole, nothing left.

load helper

prepare() {
	need_strace
	random a 3000000
	echo old >b
	touch trace
}

# ordinal CALL ARG…: which CALL is the first on this test's files; the loader makes some before.
ordinal() {
	traced 0 "trace=$1" "${@:2}"
	nth "$1" "<$T/"
}

# fails CALL ERRNO WHEN TEXT ARG…: over an old file and to a new one, fcopy prints TEXT, exits 1.
fails() {
	local dst before
	before=$(ls -A)
	for dst in b new; do
		traced 1 "inject=$1:error=$2:when=$3" "${@:5}" a $dst
		injected
		mentions "$4"
		[ "$(ls -A)" = "$before" ] || { ls -A; return 1; }
		holds old b
	done
}

# Each errno at the first and at the third call that moves data.
fails_in() {
	local mode=$1 call=$2 n name=${3:-$2}
	prepare
	n=$(ordinal "$call" -m "$mode" a probe)
	rm probe
	fails "$call" ENOSPC "$n" "$name: No space left on device" -m "$mode"
	fails "$call" EIO "$((n + 2))" "$name: Input/output error" -m "$mode"
	fails "$call" EDQUOT "$((n + 1))+" "$name: Disk quota exceeded" -m "$mode"
}

@test "readwrite: errors of write" {
	fails_in readwrite pwrite64 pwrite
}

@test "readwrite: errors of read" {
	prepare
	local n
	n=$(ordinal pread64 -m readwrite a probe)
	rm probe
	fails pread64 EIO "$n" "a: pread: Input/output error" -m readwrite
	fails pread64 EIO "$((n + 2))" "a: pread: Input/output error" -m readwrite
}

# One call takes 16 MiB: a short count makes the next one.
@test "sendfile: errors, after a short count too" {
	prepare
	fails sendfile ENOSPC 1 "sendfile: No space left on device" -m sendfile
	truncate -s 40M a
	fails sendfile EIO 2 "sendfile: Input/output error" -m sendfile
}

@test "splice: errors" {
	fails_in splice splice
}

@test "copy_file_range: errors" {
	prepare
	fails copy_file_range ENOSPC 1 "copy_file_range: No space left on device" -m 4
	truncate -s 40M a
	fails copy_file_range EIO 2 "copy_file_range: Input/output error" -m 4
}

@test "mmap: errors of write" {
	fails_in mmap pwrite64 pwrite
}

@test "parallel: an error of one thread stops all, and is the one reported" {
	prepare
	truncate -s 20M a
	fails pwrite64 EIO 3 ": pwrite: Input/output error" -m parallel -j4
	fails pwrite64 ENOSPC 1 "No space left on device" -m parallel -j2
}

@test "reflink: real failures are reported as such, without the hint to use auto" {
	prepare
	local error n
	traced 0 trace=ioctl a probe
	rm probe
	n=$(nth ioctl FICLONE)
	for error in EIO ENOSPC EDQUOT ENOMEM; do
		fails ioctl $error "$n" "ioctl(FICLONE)" -m reflink
		never grep -E "hint: use (auto|--reflink)" <<<"$stderr"
		fails ioctl $error "$n" "ioctl(FICLONE)" --reflink=always
		never grep -E "hint: use (auto|--reflink)" <<<"$stderr"
	done
	fails ioctl EOPNOTSUPP "$n" "hint: use --reflink=auto" --reflink=always
	fails ioctl EOPNOTSUPP "$n" "hint: use auto" -m reflink
}

@test "auto: an error in the middle is no reason to try another engine" {
	prepare
	local n
	n=$(ordinal splice a probe)
	rm probe
	fails splice ENOSPC "$((n + 1))" "splice: No space left on device"
	fails splice EIO "$n" "splice: Input/output error"
	random a 1000000
	n=$(ordinal pwrite64 a probe)
	rm probe
	fails pwrite64 ENOSPC "$n" "pwrite: No space left on device"
	fails pwrite64 EIO "$((n + 1))" "pwrite: Input/output error"
}

@test "EINTR is retried: every call that moves data" {
	prepare
	local mode call
	while read -r mode call; do
		traced 0 "inject=$call:error=EINTR:when=1+3" a c "$mode"
		injected
		cmp a c
	done <<-'TABLE'
		readwrite pwrite64
		sendfile sendfile
		splice splice
		copy_file_range copy_file_range
		mmap pwrite64
		parallel pwrite64
		auto splice
	TABLE
	random a 1500000
	traced 0 "inject=pwrite64:error=EINTR:when=1+3" a c
	injected
	cmp a c
	local n
	n=$(ordinal pread64 -m readwrite a probe)
	traced 0 "inject=pread64:error=EINTR:when=$n+2" a c readwrite
	injected
	cmp a c
}

@test "EINTR of the calls that switch to direct I/O: nothing is taken for a whole copy" {
	local n
	need_mode direct
	prepare
	for n in 1 2; do
		traced 0 trace=fcntl -f a c direct
		traced 0 "inject=fcntl:error=EINTR:when=$(($(nth fcntl F_SETFL.*O_DIRECT) + n - 1))" -f a c direct
		grep -q 'F_SETFL.*O_DIRECT.*INJECTED' trace
		cmp a c
	done
}

@test "EAGAIN: waits for a pipe, fails at once for a regular file" {
	prepare
	echo text >c
	traced 0 inject=splice:error=EAGAIN:when=1 c - splice # bats reads it through a pipe
	injected
	[ "$output" = text ]
	traced 1 inject=splice:error=EAGAIN:when=2 a d splice
	injected
	mentions "splice: Resource temporarily unavailable"
	absent d
}

@test "a write of nothing is an error, not an endless loop" {
	prepare
	traced 1 inject=pwrite64:retval=0 a b readwrite
	injected
	mentions "Input/output error"
	holds old b
}

@test "copy_file_range that answers 0 with bytes left is refused; auto and the end are not fooled" {
	prepare
	traced 1 inject=copy_file_range:retval=0 a b 4
	injected
	mentions "copy_file_range" "auto"
	holds old b
}

@test "the commit: linkat, renameat, close" {
	prepare
	local n
	fails linkat EACCES 2 "linkat: Permission denied"
	fails linkat ENOSPC 2+ "linkat: No space left on device"
	for n in EIO EACCES ENOSPC EBUSY; do
		traced 1 inject=renameat,renameat2:error=$n a b
		injected
		mentions "b: renameat: "
		holds old b
		[ "$(ls -A)" = $'a\nb\ntrace' ]
	done
}

@test "the commit: an error of close comes before the name, EINTR too" {
	prepare
	local n error
	# The other modes also close what they read in /proc, and how often depends on the load.
	traced 0 trace=close,fcntl -m readwrite a probe
	n=$(grep -E '^[0-9]+ +(close|fcntl)\(' trace | grep -n F_DUPFD | head -1 | cut -d: -f1)
	n=$(($(grep -E '^[0-9]+ +(close|fcntl)\(' trace | head -"$n" | grep 'close(' | wc -l) + 1))
	rm probe
	for error in EIO ENOSPC EDQUOT EINTR; do
		fails close $error $n "close: " -m readwrite
	done
}

@test "--fsync: an error fails the copy, is not tried again, and comes before the name" {
	prepare
	local error
	for error in EIO ENOSPC EDQUOT EINTR EINVAL; do
		fails fdatasync $error 1 "fdatasync: " --fsync
		[ "$(calls fdatasync)" = 1 ]
		[ "$(calls renameat)" = 0 ]
	done
}

@test "--fsync: an error of the directory's fsync is exit 1, and says what it was about" {
	prepare
	traced 1 inject=fsync:error=EIO --fsync a b
	injected
	mentions "fsync of the directory: Input/output error"
	mentions "hint: DST is complete, but may not survive a power cut"
	# The name is there, whole; whether a power cut lets it be is not known.
	cmp a b
	# Some network file systems cannot flush a directory: their server does it at once.
	traced 0 inject=fsync:error=EINVAL --fsync a b
	injected
}

@test "--inplace: errors of write, ftruncate, fdatasync and close are exit 1" {
	prepare
	truncate -s 4000000 b # longer, so that it has to be cut
	local call n
	for call in pwrite64 ftruncate fdatasync; do
		traced 1 inject=$call:error=EIO:when=1 --inplace --fsync a b readwrite
		injected
		mentions "Input/output error"
	done
	traced 0 trace=close --inplace a b readwrite
	n=$(grep -E '^[0-9]+ +close\(' trace | grep -n "<$T/b>" | tail -n 1 | cut -d: -f1)
	traced 1 "inject=close:error=EIO:when=$n" --inplace a b readwrite
	injected
	mentions "b: close: Input/output error"
	[ "$(ls -A)" = $'a\nb\ntrace' ]
}

@test "errors before the first byte" {
	prepare
	local n
	traced 0 trace=openat a probe
	n=$(nth openat O_TMPFILE)
	rm probe
	fails openat ENOSPC "$n" "open: No space left on device"
	fails openat EMFILE "$n" "open: Too many open files"
	fails openat EACCES "$n" "open: Permission denied"
}

@test "--resume: a full disk or quota, when the storage is asked what it can move, is reported as such" {
	prepare
	mkdir s
	echo x >s/f
	fails renameat2 EDQUOT 1 "rename: Disk quota exceeded" --resume
	fails renameat2 ENOSPC 1 "rename: No space left on device" --resume
	traced 1 inject=renameat2:error=EDQUOT:when=1 -r --resume s t
	injected
	mentions "t: rename: Disk quota exceeded"
	traced 1 inject=renameat2:error=ENOSPC:when=1 --shard 1/2 a c
	injected
	mentions "c: rename: No space left on device"
	[ "$(ls -A)" = $'a\nb\ns\ntrace' ]
}
