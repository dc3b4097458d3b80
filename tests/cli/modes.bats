#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Each mode by each of its names: right bytes, and what is no regular file.

load helper

@test "every mode, sizes around its edges: equal bytes, also over a longer and a shorter old file" {
	local mode size
	for size in 0 1 4095 4096 4097 65536 65537 1048583; do
		random src.$size $size
	done
	for mode in $(moving_modes); do
		for size in 0 1 4095 4096 4097 65536 65537 1048583; do
			"$FCOPY" src.$size "new.$mode.$size" "$mode"
			cmp src.$size "new.$mode.$size"
			"$FCOPY" src.$size old "$mode"
			cmp src.$size old
		done
		"$FCOPY" src.1 old "$mode"
		cmp src.1 old
	done
}

@test "the copy in place: longer and shorter old files, every mode" {
	local mode size
	for size in 1 5000 1048583; do
		random src.$size $size
	done
	random dst 300000
	local inode
	inode=$(stat -c %i dst)
	for mode in $(moving_modes); do
		for size in 1048583 1 5000; do
			"$FCOPY" --inplace src.$size dst "$mode"
			cmp src.$size dst
		done
	done
	[ "$(stat -c %i dst)" = "$inode" ]
}

@test "an alias is no MODE operand: a third operand of that name is a directory" {
	echo a >n1
	echo b >n2
	expect 2 n1 n2 par
	says "fcopy: par: no such directory; use -m par to choose a mode"
	holds b n2
	mkdir par
	expect 0 n1 n2 par
	[ "$(ls par)" = $'n1\nn2' ]
}

@test "numbers, names and aliases with -m are the same modes" {
	need_strace
	random a 100
	local mode
	for mode in 2 sendfile; do
		traced 0 trace=/sendfile a b "$mode"
		[ "$(calls "sendfile(64)?")" -gt 0 ]
	done
	traced 0 trace=/sendfile -m sf a b
	[ "$(calls "sendfile(64)?")" -gt 0 ]
	traced 0 trace=/sendfile --mode=2 a b
	[ "$(calls "sendfile(64)?")" -gt 0 ]
}

@test "/dev/null as source: an empty file; refused where the kernel does" {
	local mode
	for mode in auto readwrite; do
		echo old >b
		expect 0 /dev/null b "$mode"
		[ -f b ]
		[ ! -s b ]
	done
	for mode in copy_file_range mmap direct reflink; do
		expect 1 /dev/null c "$mode"
		mentions "/dev/null" "auto"
		absent c
	done
	for mode in parallel; do # a device has no offsets: known before it is opened
		expect 2 /dev/null c "$mode"
		mentions "/dev/null" "auto"
		absent c
	done
}

@test "/dev/null as destination stays a device" {
	random a 100000
	local mode
	for mode in auto readwrite sendfile splice mmap; do
		expect 0 a /dev/null "$mode"
	done
	[ -c /dev/null ]
}

@test "/dev/full with every mode: an error, and no mode takes another's way" {
	random a 100000
	local mode
	for mode in auto readwrite mmap; do
		expect 1 a /dev/full "$mode"
		says "fcopy: /dev/full: write: No space left on device"
	done
	for mode in sendfile splice copy_file_range direct reflink; do
		expect 1 a /dev/full "$mode"
		mentions "/dev/full" "use auto, or no MODE, to let fcopy choose"
	done
	expect 2 a /dev/full parallel
	mentions "/dev/full" "use auto, or no MODE, to let fcopy choose"
}

@test "/dev/full as source: zeros without end, until the file size limit" {
	run --separate-stderr bash -c 'ulimit -f 1024; exec "$0" /dev/full b' "$FCOPY"
	demand 1
	mentions "File too large"
	absent b
}

# musl has other words for errors.
in_words_of_glibc() {
	stderr=$(sed 's/: Cross-device link$/: Invalid cross-device link/; s/: Not supported$/: Operation not supported/' <<<"$stderr")
}

@test "a mode that the file system refuses: call, files, reason and hint; nothing is made" {
	need_strace
	echo new >a
	echo old >b
	traced 1 inject=copy_file_range:error=EXDEV a b 4
	in_words_of_glibc
	says "fcopy: a -> b: copy_file_range: Invalid cross-device link" \
		"fcopy: hint: use auto, or no MODE, to let fcopy choose"
	holds old b
	traced 1 inject=ioctl:error=EOPNOTSUPP a c reflink
	in_words_of_glibc
	says "fcopy: a -> c: ioctl(FICLONE): Operation not supported" \
		"fcopy: hint: use auto, or no MODE, to let fcopy choose"
	absent c
}

@test "direct, where the file system says that it does no direct I/O" {
	need_root "to mount"
	need mkfs.ext4
	need_mode direct
	truncate -s 64M image
	mkfs.ext4 -q image
	mkdir m
	export FCOPY
	private_mounts 'mount -o loop,data=journal image m || exit 77; cd m; head -c 3000000 /dev/urandom >a
		"$FCOPY" a b direct'
	[ "$status" != 77 ] || skip "no loop device here"
	demand 1
	mentions "fcopy: a -> b: O_DIRECT: Invalid argument" "hint: use auto"
	private_mounts 'mount -o loop image m; ls m'
	[ "$output" = $'a\nlost+found' ]
}

@test "auto goes on where the kernel refuses" {
	need_strace
	random a 3000000
	traced 0 inject=ioctl,copy_file_range,sendfile,splice:error=EINVAL a b
	cmp a b
	injected
}

@test "a FIFO as source: every mode that can" {
	random a 300000
	mkfifo pipe
	local mode
	for mode in auto readwrite splice; do
		cat a >pipe &
		expect 0 pipe b "$mode"
		wait $!
		cmp a b
	done
	[ -p pipe ]
}

@test "a FIFO as destination stays one" {
	random a 300000
	mkfifo pipe
	local mode
	for mode in auto readwrite sendfile splice mmap; do
		cat pipe >b &
		expect 0 a pipe "$mode"
		wait $!
		cmp a b
	done
	[ -p pipe ]
}

@test "a FIFO and a mode that cannot: refused, not hung" {
	random a 3000
	mkfifo pipe
	local mode
	for mode in copy_file_range direct parallel reflink; do
		expect 2 a pipe "$mode" # nobody reads it, and nobody has to
		mentions "auto"
		expect 2 pipe b "$mode"
		mentions "auto"
		absent b
	done
}

@test "stdin and stdout, by - and by their names" {
	random a 200000
	"$FCOPY" - b <a
	cmp a b
	"$FCOPY" a - >c
	cmp a c
	# shellcheck disable=SC2002
	cat a | "$FCOPY" - - | cmp - a
	"$FCOPY" /dev/stdin /dev/stdout <a >d
	cmp a d
	"$FCOPY" a /dev/fd/3 3>e
	cmp a e
	"$FCOPY" /dev/fd/3 f 3<a
	cmp a f
}

@test "a descriptor is used at its own position" {
	printf 'abcdef' >a
	{ printf 'head:'; "$FCOPY" a -; printf ':tail'; } >b
	holds head:abcdef:tail b
	{ head -c 0; dd bs=1 count=3 status=none of=/dev/null; "$FCOPY" - c; } <a
	holds def c
	"$FCOPY" a - >>b
	holds head:abcdef:tailabcdef b
}

@test "fcopy file - | head dies quietly, as cat does" {
	random a 3000000
	run --separate-stderr env --default-signal=PIPE \
		bash -c '"$0" a - | head -c 10 >b; echo ${PIPESTATUS[0]}' "$FCOPY"
	[ "$output" = 141 ]
	[ -z "$stderr" ]
}

@test "a sysfs file that says 4096 and has less" {
	local file=/sys/kernel/mm/transparent_hugepage/enabled mode
	[ -r $file ] || skip "no $file"
	for mode in auto readwrite; do
		expect 0 $file b "$mode"
		cmp $file b
	done
}

@test "memory for some of the threads only, or none for direct I/O: auto continues anyway" {
	local limit
	[ -z "${UNDER-}" ] || skip "$UNDER needs more memory"
	[ -z "${EMULATOR-}" ] || skip "$EMULATOR needs more memory"
	random a 20000000
	sync a
	# The stack of a second thread, its buffer, 16 MiB for direct I/O: each is the first that is too much.
	for limit in 8000 10500 11000 11500 12000 12500 13000 14000 20000; do
		(ulimit -v $limit && "$FCOPY" --reflink=never a b) 2>err || { echo "$limit: $(cat err)"; return 1; }
		cmp a b
		dd if=a iflag=nocache count=0 status=none
		(ulimit -v $limit && "$FCOPY" --reflink=never --fsync a b) 2>err || { echo "$limit: $(cat err)"; return 1; }
		cmp a b
	done
}

@test "memory for one buffer only: one thread copies" {
	[ -z "${UNDER-}" ] || skip "$UNDER needs more memory"
	[ -z "${EMULATOR-}" ] || skip "$EMULATOR needs more memory"
	random a 70000000
	(ulimit -v 100000 && "$FCOPY" --mode=parallel -j8 --buffer-size=16M --json=report a b)
	cmp a b
	[ "$(jq ".engines[0].threads" report)" = 1 ]
}

@test "auto, -vv: the plan says why" {
	local size reason
	while read -r size reason; do
		random a "$size"
		expect 0 -vv --reflink=never a "b$size"
		mentions "fcopy: plan: $reason"
	done <<-'END'
		1000 read and write through one buffer: the file is small
		3000000 splice: the file is too small for threads
	END
	expect 0 -vv --sparse=always a z
	mentions "fcopy: plan: read and write through one buffer, to find zeros"
}

@test "-vv says what a trial of splice and threads has shown, or why there was none" {
	random big 70000000
	expect 0 -vv big copy
	[[ $stderr == *'plan: splice, or read and write in threads where that proves faster'* ]] || skip "no trial with one CPU, or on this file system"
	grep -Eq '^fcopy: plan: (a trial: [0-9.]+ s per GiB by splice, [0-9.]+ s in [0-9]+ threads|no trial now: fewer than two CPUs are idle)$' <<<"$stderr"
}
