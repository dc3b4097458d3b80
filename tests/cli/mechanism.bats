#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A mode uses its mechanism, and no other, for every byte.

load helper

DATA=read,write,pread64,pwrite64,readv,writev,preadv,pwritev,preadv2,pwritev2,sendfile,splice,tee
DATA=$DATA,vmsplice,copy_file_range,mmap,ioctl,io_uring_enter,fallocate

# The calls that moved data of this test's files: a read that found the end moved none.
data_calls() {
	grep -E "<$T/|^[0-9]+ +io_uring_enter\(" trace | grep -Ev 'p?read(64)?\(.* = 0$|FS_IOC_FIEMAP' | sed -E 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/' |
		sort -u | paste -sd' '
}

# moves MODE CALLS: a copy over nothing, over an old file and in place makes just these.
moves() {
	need_strace
	need_mode "$1"
	random a 3000001
	random b 100
	random c 4000000
	local arguments got
	for arguments in new b "--inplace c"; do
		# shellcheck disable=SC2086
		traced 0 trace=$DATA -m "$1" a $arguments
		got=$(data_calls)
		[ "$got" = "$2" ] || { echo "$1 $arguments: $got"; return 1; }
	done
	cmp a new && cmp a b && cmp a c
}

@test "readwrite: pread and pwrite, and nothing else" {
	moves readwrite "pread64 pwrite64"
}

@test "readwrite: 8 KiB a call" {
	need_strace
	random a 100001
	traced 0 trace=pread64,pwrite64 a b readwrite
	[ "$(grep -c "pread64(.*<$T/a>.*, 8192, " trace)" = 14 ]
	[ "$(grep -c "pwrite64(" trace)" = 13 ]
	[ "$(sed -n 's/.*pwrite64(.* = \([0-9]*\)$/\1/p' trace | sort -nu | tail -1)" = 8192 ]
}

@test "readwrite: --buffer-size is the size of each call" {
	need_strace
	random a 100001
	traced 0 trace=pwrite64 --buffer-size=64K a b readwrite
	[ "$(sed -n 's/.*pwrite64(.* = \([0-9]*\)$/\1/p' trace | paste -sd' ')" = "65536 34465" ]
}

@test "sendfile: sendfile, and no write of data" {
	moves sendfile sendfile
}

@test "splice: splice through a pipe, and no write of data" {
	moves splice splice
	[ "$(grep -c "splice($(printf '[0-9]+')<$T/a>" trace)" = 0 ]
	grep -Eq "splice\([0-9]+<$T/a>, \[[0-9]+\].*<pipe:" trace
	grep -Eq "splice\([0-9]+<pipe:.*<$T/c>" trace
}

@test "splice: the pipe is made as large as the buffer asked for" {
	need_strace
	random a 1000000
	traced 0 trace=fcntl --buffer-size=128K a b splice
	grep -q 'F_SETPIPE_SZ, 131072' trace
	traced 0 trace=fcntl a b splice
	grep -q 'F_SETPIPE_SZ, 1048576' trace
	for size in 4096 1000; do
		traced 0 trace=splice --buffer-size=$size a b splice
		never grep -E "splice\\(.*, $((size + 1))[0-9]*, " trace
		[ "$(calls splice)" -ge $((2 * 1000000 / size)) ]
	done
}

@test "splice: where the kernel refuses a larger pipe, the small one does" {
	need_strace
	random a 1000000
	traced 0 trace=fcntl a c splice
	local n
	n=$(nth fcntl F_SETPIPE_SZ)
	traced 0 "inject=fcntl:error=EPERM:when=$n..$((n + 4))" a c splice
	injected
	cmp a c
}

@test "copy_file_range: file to file, and no write of data" {
	moves copy_file_range copy_file_range
}

@test "mmap: windows of the source, and pwrite out of them" {
	moves mmap "mmap pwrite64"
	grep -q "mmap(NULL, [0-9]*, PROT_READ, .*<$T/a>" trace
	never grep -Eq "p?read(64)?\(.*<$T/a>.* = [1-9][0-9]+$" trace
}

@test "direct: io_uring with O_DIRECT on both sides" {
	need_strace
	need_mode direct
	random a 3000001
	traced 0 trace=$DATA,fcntl,io_uring_setup a b direct
	cmp a b
	[ "$(data_calls)" = "fallocate fcntl io_uring_enter" ] || { data_calls; cat trace; return 1; }
	[ "$(grep -c 'F_SETFL, .*O_DIRECT' trace)" = 2 ]
	[ "$(calls io_uring_setup)" -ge 1 ]
}

# A write beyond the end has the file to itself until it is done.
@test "direct: the file has its size before the first write, so that several are in flight" {
	need_strace
	need_mode direct
	random a 3000001
	traced 0 trace=ftruncate,io_uring_enter -m direct a b
	sed -i '/io_uring_enter([0-9]*<[^>]*>, 0, 0/d' trace # the ring was tried first
	[ "$(grep -E -m1 -n "ftruncate\([0-9]+<$T.*, 3000001\) += 0" trace | cut -d: -f1)" = 1 ]
	[ "$(stat -c %s b)" = 3000001 ]
	cmp a b
}

has_size() { [ "$(stat -c %s "$1")" = "$2" ]; }

# It has its size early, too.
@test "direct: interrupted in place, it leaves no file that looks whole" {
	local status=0
	need_mode direct
	random a 40000000
	echo old >b
	env --default-signal=INT "$FCOPY" --inplace --limit-rate=5M a b direct 2>/dev/null &
	pid=$!
	await has_size b 40000000
	kill -INT $pid
	wait $pid || status=$?
	[ "$status" = 130 ]
	[ "$(stat -c %s b)" -lt 40000000 ]
	[ "$(stat -c %b b)" -lt 78125 ]
}

@test "direct: a size that cannot be set first is none of the copy's business" {
	need_strace
	need_mode direct
	random a 3000001
	traced 0 "inject=ftruncate:error=EIO:when=1" -m direct a b
	injected
	cmp a b
}

@test "parallel: pread and pwrite in as many threads as asked for" {
	need_strace
	random a 20000001
	traced 0 trace=$DATA,clone,clone3 --preallocate=never -j4 a b parallel
	cmp a b
	[ "$(data_calls)" = "pread64 pwrite64" ]
	[ "$(calls 'clone3?')" = 3 ]
	traced 0 trace=clone,clone3 -j1 a b parallel
	[ "$(calls 'clone3?')" = 0 ]
}

@test "parallel: the report counts the threads that could be created" {
	need_strace
	random a 20000001
	traced 0 inject=clone,clone3:error=EAGAIN:when=2+ --json -j4 a b parallel
	cmp a b
	[ "$(jq '.engines[0].threads' <<<"$output")" = 2 ]
	traced 0 inject=clone,clone3:error=EAGAIN --json -j4 a b parallel
	[ "$(jq '.engines[0].threads' <<<"$output")" = 1 ]
}

@test "parallel: more than one thread moves data" {
	need_strace
	random a 20000001
	traced 0 inject=pread64:delay_exit=20000 -j2 a b parallel
	[ "$(grep 'pread64.*= 1048576' trace | cut -d' ' -f1 | sort -u | wc -l)" = 2 ]
}

@test "auto: --threads=1 starts no thread, and splice moves every byte" {
	need_strace
	random a 40000001
	traced 0 "trace=$DATA,clone,clone3" --reflink=never -j1 a b
	cmp a b
	[ "$(calls 'clone3?')" = 0 ]
	[ "$(data_calls)" = "fallocate splice" ] || [ "$(data_calls)" = splice ]
}

@test "auto: --threads=3 uses three threads for every byte" {
	need_strace
	random a 40000001
	traced 0 "trace=$DATA,clone,clone3" --reflink=never --preallocate=never -j3 a b
	cmp a b
	[ "$(calls 'clone3?')" = 2 ]
	[ "$(data_calls)" = "pread64 pwrite64" ]
}

# Not with auto: whether it starts a thread depends on what else runs.
@test "threads: as many as the cgroup's cpu.max allows" {
	need_strace
	need_root
	[ "$(nproc)" -ge 2 ] || skip "one CPU"
	local group
	group=$(sed -n 's/^0:://p' /proc/self/cgroup)
	[ -n "$group" ] || skip "no cgroup version 2"
	unshare --mount true 2>/dev/null || skip "no mount namespace of our own"
	random a 20000001
	cat >limited <<-'END'
		set -e
		group=$1 limit=$2
		mount -t tmpfs none /sys/fs/cgroup
		mkdir -p "/sys/fs/cgroup/$group"
		echo "$limit" >"/sys/fs/cgroup/$group/cpu.max"
		exec strace -f -qq -o trace -e trace=clone,clone3 "$FCOPY" "${@:3}"
	END
	export FCOPY
	unshare --mount bash limited "$group" "max 100000" a b parallel
	[ "$(calls 'clone3?')" -ge 1 ]
	unshare --mount bash limited "$group" "199999 100000" a b parallel
	[ "$(calls 'clone3?')" = 0 ]
	cmp a b
	# A tree has as many. A small file is copied by one of them.
	mkdir s
	random s/a 1000001
	unshare --mount bash limited "$group" "max 100000" -r s d
	[ "$(calls 'clone3?')" -ge 1 ]
	unshare --mount bash limited "$group" "199999 100000" -r s e
	[ "$(calls 'clone3?')" = 0 ]
	diff -r s e
}

@test "a cold file that is larger than the cgroup's memory.max goes by direct I/O, another one does not" {
	need_strace
	need_root
	need_mode direct
	need fincore
	on_disk "no direct I/O in memory"
	[[ $(stat -fc %T .) =~ ^(ext2/ext3|xfs|f2fs)$ ]] || skip "not a file system of a local disk"
	local group
	group=$(sed -n 's/^0:://p' /proc/self/cgroup)
	[ -n "$group" ] || skip "no cgroup version 2"
	unshare --mount true 2>/dev/null || skip "no mount namespace of our own"
	random a 70000001
	cat >limited <<-'END'
		set -e
		group=$1 limit=$2
		mount -t tmpfs none /sys/fs/cgroup
		mkdir -p "/sys/fs/cgroup/$group"
		echo "$limit" >"/sys/fs/cgroup/$group/memory.max"
		sync a
		dd if=a iflag=nocache count=0 status=none
		[ "$(fincore -nbo RES a)" -lt 10000000 ] || exit 77
		[ "$3" = cold ] || cat a >/dev/null
		exec strace -f -qq -o trace -e trace=io_uring_setup "$FCOPY" --reflink=never a b
	END
	export FCOPY
	local limit cache direct status=0
	while read -r limit cache direct; do
		rm -f b
		unshare --mount bash limited "$group" "$limit" "$cache" || status=$?
		[ "$status" != 77 ] || skip "the file stays in the page cache"
		cmp a b
		[ "$(calls io_uring_setup)" = "$direct" ] || { echo "$limit $cache:"; cat trace; return 1; }
	done <<-END
		67108864 cold 1
		67108864 cached 0
		max cold 0
	END
}

@test "reflink: FICLONE alone" {
	moves reflink ioctl
	grep -q 'FICLONE' trace
}

@test "reflink: refused, not replaced by another mechanism" {
	need_strace
	random a 100000
	traced 1 "inject=ioctl:error=EOPNOTSUPP" a b reflink
	absent b
	traced 1 trace=$DATA /dev/null b reflink
	absent b
}

@test "modes 1 to 4 never preallocate, also not with --fsync" {
	need_strace
	random a 3000000
	local mode
	for mode in 1 2 3 4; do
		traced 0 trace=fallocate --fsync a new.$mode $mode
		[ "$(calls fallocate)" = 0 ]
		[ $mode != 4 ] || continue # it takes no --preallocate=always
		traced 0 trace=fallocate --preallocate=always a new.$mode $mode
		[ "$(calls fallocate)" -ge 1 ]
	done
}

@test "modes 1, 2, 3 and 5 move holes as the zeros they are" {
	need_strace
	truncate -s 3000000 a
	local mode
	for mode in 1 2 3 5; do
		traced 0 trace=lseek,fallocate,ioctl a b $mode
		cmp a b
		never grep -q 'SEEK_DATA\|SEEK_HOLE\|FIEMAP' trace
		[ $(($(stat -c %b b) * 512)) -ge 3000000 ]
	done
}

@test "sendfile and copy_file_range are asked for pieces, so that ^C works" {
	need_strace
	truncate -s 100M a
	local mode
	for mode in sendfile copy_file_range; do
		traced 0 trace=$mode a b $mode
		[ "$(calls $mode)" -ge 3 ]
		[ "$(sed -n 's/.* = \([0-9]*\)$/\1/p' trace | sort -nu | tail -1)" -le 67108864 ]
	done
}

# The calls from opening SRC on, but for memory, random numbers and blocked signals: how often libc asks the kernel
# for those depends on its version (glibc 2.41 sets up a getrandom in user space).
decided_calls() {
	sed -n '/openat(.*"a"/,$p' trace |
		grep -Ev '^[0-9]+ +(brk|mmap|munmap|mprotect|madvise|prctl|sched_getaffinity|getrandom|rt_sigprocmask)\(' >decided
	wc -l <decided
}

@test "a copy of 4 KiB: the system calls from opening SRC on" {
	need_strace
	! counting || skip "counts its own lines"
	random a 4096
	traced 0 trace=all a b
	# Three of them ask what the storage promises: of an unnamed file, and of errors that a close reports.
	[ "$(decided_calls)" -le 20 ] || { cat trace; return 1; }
	never grep -Eq 'clone|fallocate|FIEMAP|SEEK_|ftruncate|fsync|fdatasync' decided
	traced 0 trace=all a b
	[ "$(decided_calls)" -le 31 ] || { cat trace; return 1; }
}

@test "every descriptor is closed on exec" {
	need_strace
	random a 100000
	local mode
	for mode in auto readwrite splice; do
		traced 0 "trace=open,openat,pipe2,fcntl" a b $mode
		sed -n '/"a"/,$p' trace | grep -v '\.gcda' >from_open
		never grep -Ev 'CLOEXEC|[GS]ETPIPE_SZ|[GS]ETFL' from_open
	done
}

@test "a stream: an engine that the kernel refuses is tried once, however long the stream is" {
	need_strace
	head -c 64M /dev/zero | strace -f -qq -o trace -e trace=splice,sendfile -e inject=splice,sendfile:error=EINVAL "$FCOPY" - copy
	[ "$(stat -c %s copy)" = $((64 << 20)) ]
	[ "$(grep -c 'splice(' trace)" -le 2 ] && [ "$(grep -c 'sendfile(' trace)" -le 2 ] || { cat trace; return 1; }
}
