# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The local file systems. /dev/vdc and /dev/vdd are empty disks of 8 GiB.

fs=${fs-} dir=${dir-} # of lib.sh

# make_fs FS DEVICE
make_fs() {
	case $1 in
	ext4) mkfs.ext4 -q -F "$2" ;;
	xfs) mkfs.xfs -q -f -m reflink=1 "$2" ;;
	btrfs) mkfs.btrfs -q -f "$2" ;;
	f2fs) mkfs.f2fs -q -f "$2" ;;
	exfat) mkfs.exfat "$2" ;;
	vfat) mkfs.vfat -F 32 "$2" ;;
	ntfs3) mkfs.ntfs -q -Q -F "$2" ;;
	esac
}

# mount_fs FS DEVICE MOUNTPOINT: empty.
mount_fs() {
	mkdir -p "$3"
	wipefs -q -a "$2"
	if ! make_fs "$1" "$2" || ! mount -t "$1" "$2" "$3"; then
		result mount FAIL "$1 on $2"
		return 1
	fi
}

remount() {
	umount /mnt/disk && mount -t "$1" /dev/vdc /mnt/disk
}

on_disk() {
	if ! has_fs "$1"; then
		result mount skip "the kernel has no $1"
		return
	fi
	mount_fs "$1" /dev/vdc /mnt/disk || return
	dir=/mnt/disk
	all_checks remount "$1"
	umount /mnt/disk
}

on_tmpfs() {
	mkdir -p /mnt/tmpfs
	mount -t tmpfs -o size=512M tmpfs /mnt/tmpfs
	dir=/mnt/tmpfs
	check remount skip "tmpfs ends with its mount"
	all_checks
	umount /mnt/tmpfs
}

mount_overlay() {
	mount -t overlay -o lowerdir=/mnt/disk/lower,upperdir=/mnt/disk/upper,workdir=/mnt/disk/work overlay /mnt/overlay
}

remount_overlay() {
	umount /mnt/overlay && remount ext4 && mount_overlay
}

# on_overlay: the sources are in the upper layer.
on_overlay() {
	if ! has_fs overlay; then
		result mount skip "the kernel has no overlay"
		return
	fi
	mount_fs ext4 /dev/vdc /mnt/disk || return
	mkdir -p /mnt/disk/{lower,upper,work} /mnt/overlay
	mount_overlay
	dir=/mnt/overlay
	all_checks remount_overlay
	umount /mnt/overlay /mnt/disk
}

# run_suite PROGRAM: the library's own tests, which say "not ok" and "# skip:".
run_suite() {
	local status=0
	CK_TIMEOUT_MULTIPLIER=60 FCOPY_TEST_DIR=$PWD timeout 1800 "$1" >tap 2>&1 || status=$?
	grep '^not ok' tap && return 1
	[ $status = 0 ]
	awk '/^ok/ { ok++ } /^# skip:/ { skipped++ } END { printf "%d tests, %d skipped\n", ok, skipped }' tap
}

# library_suite: on /dev/vdc, the programs that depend on the file system and on the kernel most.
library_suite() {
	local kind program
	for kind in ext4 xfs btrfs; do
		fs=suite-$kind
		mount_fs $kind /dev/vdc /mnt/$kind || continue
		dir=/mnt/$kind
		for program in engines extents in_place replace; do
			check ${program}_test run_suite /check/bin/${program}_test
		done
		umount /mnt/$kind
	done
}
