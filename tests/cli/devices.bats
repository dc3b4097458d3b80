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

teardown() {
	release
	cd / && rm -rf "$T"
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
}

@test "a device that does not tell its size: an error before the first byte" {
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
	private_mounts 'mount "$loop" m; "$FCOPY" a "$loop"'
	demand 1
	mentions "$loop" "mounted or in use"
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
	expect 1 "$loop" "$loop"
	mentions "are the same file"
}
