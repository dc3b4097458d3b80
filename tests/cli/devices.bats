#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Block devices, for those who come from dd.

load helper

setup_device() {
	need_root "to make a loop device"
	need losetup
	truncate -s 4M image
	loop=$(losetup --find --show image 2>/dev/null) || skip "no loop device here"
}

release() {
	[ -z "${loop-}" ] || losetup --detach "$loop"
}

eval "clean_up() $(declare -f teardown | tail -n +2)"
teardown() {
	release
	clean_up
}

@test "a file onto a block device, and back; the device stays one" {
	setup_device
	random a 4194304
	local mode
	for mode in auto readwrite sendfile splice mmap; do
		random a 4194304
		expect 0 a "$loop" $mode
		[ -b "$loop" ]
		cmp a "$loop"
		rm -f b
		expect 0 "$loop" b
		cmp a b
		[ "$(stat -c %s b)" = 4194304 ]
	done
}

@test "--verify: a block device is read back over the length that was written, not from its cache" {
	setup_device
	need_strace
	random a 1000003
	random b 4194304
	expect 0 b "$loop"
	traced 0 "trace=$OPEN,pread64,fadvise64" --verify a "$loop"
	in_trace "fadvise64\(.*$loop>?.*DONTNEED"
	in_trace "$OPEN\("'.*/proc/self/fd/[0-9]+", O_RDONLY\|.*O_DIRECT'
	cmp -n 1000003 a "$loop"
	cmp -i 1000003 b "$loop"
	expect 0 --verify - "$loop" <a
	expect 0 --verify "$loop" c
	cmp c "$loop"
	# The device returns other bytes than were written.
	traced 1 "inject=pread64:retval=1000003:when=$(calls pread64)" --verify a "$loop"
	injected
	mentions "$loop: differs from the source at byte" ", and was written in place"
}

@test "the copy of a device is as private as the device" {
	setup_device
	chmod 640 "$loop"
	expect 0 "$loop" b
	[ "$(stat -c %a b)" = 640 ]
	chmod 660 "$loop"
}

@test "a smaller file onto a device: only its bytes are written" {
	setup_device
	random a 4194304
	expect 0 a "$loop"
	random b 10001
	expect 0 b "$loop"
	cmp -n 10001 b "$loop"
	cmp -i 10001 a "$loop"
}

@test "a device that is too small: refused before the first byte" {
	setup_device
	random a 4194305
	expect 1 a "$loop"
	[ -n "$stderr" ]
	cmp -n 4194304 /dev/zero "$loop"
	expect 1 --count=4194305 a "$loop"
	mentions "the device is smaller than the source"
	expect 1 --dry-run a "$loop"
	mentions "$loop: the device is smaller than the source"
	expect 0 --dry-run image "$loop"
	cmp -n 4194304 /dev/zero "$loop"
	expect 0 --count=4194304 a "$loop"
	cmp -n 4194304 a "$loop"
}

@test "a device that does not report its size: an error before the first byte" {
	setup_device
	need_strace
	random a 100000
	local n
	traced 0 trace=ioctl "$loop" b
	n=$(nth ioctl BLKGETSIZE64)
	traced 1 "inject=ioctl:error=EIO:when=$n" "$loop" c
	injected
	mentions "$loop: ioctl(BLKGETSIZE64): Input/output error"
	absent c
	traced 0 trace=ioctl a "$loop"
	n=$(nth ioctl BLKGETSIZE64)
	traced 1 "inject=ioctl:error=EIO:when=$n" b "$loop"
	injected
	mentions "$loop: ioctl(BLKGETSIZE64): Input/output error"
	cmp -n 100000 a "$loop"
}

@test "a device in use (mounted): refused" {
	setup_device
	need mkfs.ext4
	mkfs.ext4 -q "$loop"
	random a 100000
	mkdir m
	export FCOPY loop
	private_mounts 'mount "$loop" m || exit 77
		"$FCOPY" --dry-run a "$loop" 2>dry && exit 9
		"$FCOPY" a "$loop"'
	[ "$status" != 77 ] || skip "ext4 cannot be mounted here"
	demand 1
	mentions "$loop" "mounted or in use"
	grep -q "mounted or in use" dry
}

@test "a device as source reads to its end; --fsync onto it" {
	setup_device
	random a 4194304
	expect 0 --fsync a "$loop"
	run --separate-stderr bash -c '"$0" "$1" - | cmp - a' "$FCOPY" "$loop"
	demand 0
}

@test "a device and itself" {
	setup_device
	expect 2 "$loop" "$loop"
	mentions "are the same file"
}

# A cold file goes by direct I/O with --fsync, too. Dropping pages needs no right but a clean file.
make_cold() {
	sync "$1"
	dd if="$1" iflag=nocache count=0 status=none
}

@test "what is after the last byte on a device stays, to the byte: direct I/O, too" {
	setup_device
	need_mode direct
	random a 4194304
	local how size
	for how in auto direct --no-cache; do
		for size in 1 446 512 4095 5000 1048577; do
			expect 0 a "$loop"
			random b $size
			expect 0 b "$loop" $how
			cmp -n $size b "$loop"
			cmp -i $size a "$loop" || { echo "$how, $size bytes"; return 1; }
		done
	done
}

@test "what is after the last byte stays, with --fsync of a large and cold file" {
	need_mode direct
	setup_device
	truncate -s 20M image
	losetup --set-capacity "$loop"
	random a 20971520
	expect 0 a "$loop"
	random b 16777733
	make_cold b
	expect 0 --fsync b "$loop"
	cmp -n 16777733 b "$loop"
	cmp -i 16777733 a "$loop"
}

@test "mode direct onto a device: the tail can be read back past the page cache" {
	setup_device
	need_mode direct
	random a 10001
	expect 0 a "$loop" direct
	dd if="$loop" iflag=direct bs=4096 count=3 status=none | cmp -n 10001 - a
	expect 0 a "$loop" --no-cache
	dd if="$loop" iflag=direct bs=4096 count=3 status=none | cmp -n 10001 - a
}

@test "every mode that can reads a device to its end" {
	local mode
	setup_device
	random a 4194304
	expect 0 a "$loop"
	for mode in readwrite sendfile splice mmap direct parallel; do
		has_mode $mode || continue
		expect 0 -f "$loop" b $mode
		cmp a b
	done
}
