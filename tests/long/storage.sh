#!/bin/bash
# SPDX-License-Identifier: MIT
#
# storage.sh: errors of the storage reach the exit status, and the old file survives them. A FUSE
# file system fails on demand, as source and destination, and as the disk beneath an ext4. From a
# slow one a copy can be interrupted; short reads are no end of file.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need setfattr setpriv mkfs.ext4
need_private_mounts "$@"
make_work
[ -c /dev/fuse ] || skip "no /dev/fuse"
faultfs=$(tool faultfs) || skip "faultfs cannot be built"
size=$((2 * 1024 * 1024 + 7))
random_file "$work/src" $size
random_file "$work/old" 300K
mkdir "$work"/{backing,fault,disk}
mnt=$work/fault
disk=$work/disk

# fault RULE: adds a rule of faultfs; OP:0 removes those of OP.
fault() {
	setfattr -n user.fault -v "$1" "$mnt"
}

# start [OPTION]: faultfs, with a source and an old destination. It ends with this script at latest.
start() {
	find "$work/backing" -mindepth 1 -delete
	cp "$work/src" "$work/backing/src"
	cp "$work/old" "$work/backing/dst"
	setpriv --pdeathsig TERM "$faultfs" "$work/backing" "$mnt" -f -o "${1:-rw}" &
	until mountpoint -q "$mnt"; do
		kill -0 $! 2>/dev/null || skip "FUSE does not mount"
		sleep 0.01
	done
}

# copy DIR ARG…: from DIR/src to DIR/dst; sets status.
copy() {
	timed "$FCOPY" "${@:2}" "$1/src" "$1/dst" 2>"$work/err"
	status=$?
}

# check WHAT DIR STATUS STATE: what came of the copy, and of the destination in DIR.
check() {
	tried=$((tried + 1))
	state_of "$2/dst" "$work/old" "$work/src"
	[ "$status $REPLY" = "$3 $4" ] || fail_copy "$status" old "$REPLY" "$1"
	local reasons='Input/output|No space left|quota exceeded'
	# rclone returns EIO for a rename that it does not support.
	[[ $1 != *" rename:EIO"* ]] || reasons='rename is unsupported here'
	if [ "$status" = 1 ] && ! grep -qE "$reasons" "$work/err"; then
		fail other "$1: $(head -1 "$work/err")"
	fi
	[ -z "$(find "$2" -name '.fcopy-*')" ] || fail other "$1: a temporary file was left"
}

# fails MODE FAULT [MOUNT-OPTION [ARG…]]
fails() {
	local what="mode $1, $2 ${*:3}"
	start "${@:3:1}"
	fault "$2"
	copy "$mnt" -m "$1" "${@:4}"
	umount "$mnt"
	check "$what" "$work/backing" 1 old
}

succeeds() {
	local what="mode $1, ${*:2}"
	start "$2"
	copy "$mnt" -m "$1"
	umount "$mnt"
	check "$what" "$work/backing" 0 new
}

fail_directly() {
	local err offset
	for offset in 0 $((size / 2)) $((size - 1)); do
		fails "$1" read:EIO:$offset
		for err in EIO ENOSPC EDQUOT; do
			fails "$1" write:$err:$offset
			fails "$1" write:$err:$offset writeback
			fails "$1" write:$err:$offset writeback --fsync
		done
	done
	fails "$1" flush:EIO
	fails "$1" flush:ENOSPC
	fails "$1" fsync:EIO rw --fsync
	fails "$1" create:ENOSPC
	fails "$1" rename:EIO
	succeeds "$1" fault=release:EIO
}

# The copy takes two seconds and gets a signal after a fifth of a second.
interrupt() {
	local what="mode $1, interrupted while the disk is slow"
	start rate=2000000
	env --default-signal=INT timeout --foreground --preserve-status --kill-after=10 --signal=INT \
		0.2 "$FCOPY" -m "$1" "$mnt/src" "$mnt/dst" 2>"$work/err"
	status=$?
	umount "$mnt"
	check "$what" "$work/backing" 130 old
}

# mount_disk: the ext4 of an image on faultfs, with nothing of it in any cache.
mount_disk() {
	dd if="$mnt/image" iflag=nocache count=0 status=none
	mount -o loop "$mnt/image" "$disk"
}

# fails_beneath MODE FAULT [ARG…]: the disk fails once the copy runs.
fails_beneath() {
	local what="mode $1, beneath ext4 $2 ${*:3}"
	start
	cp "$work/image" "$work/backing/image"
	mount_disk
	stat "$disk"/{src,dst} >/dev/null
	fault "$2"
	copy "$disk" -m "$1" "${@:3}"
	fault "${2%%:*}:0"
	umount "$disk"
	mount_disk
	check "$what" "$disk" 1 old
	umount "$disk" "$mnt"
}

make_image() {
	truncate -s 32M "$work/image"
	mkfs.ext4 -q -O has_journal "$work/image"
	mount -o loop "$work/image" "$disk"
	cp "$work/src" "$disk/src"
	cp "$work/old" "$disk/dst"
	umount "$disk"
}

make_image
for mode in $(modes); do
	start
	if ! works "mode $mode" timed "$FCOPY" -m "$mode" "$mnt/src" "$mnt/dst"; then
		umount "$mnt"
		continue
	fi
	umount "$mnt"
	fail_directly "$mode"
	# The page cache, and with it the other modes, takes a short read for the end of the file. Less
	# than a block would be no progress for direct I/O, which begins at blocks.
	case $mode in
	0 | 1 | 6 | 7) succeeds "$mode" fault=read:short=5000 ;;
	esac
	interrupt "$mode"
	fails_beneath "$mode" read:EIO
	fails_beneath "$mode" write:EIO --fsync
done
finish
