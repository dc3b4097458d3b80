#!/bin/bash
# SPDX-License-Identifier: MIT
#
# fulldisk.sh: copies onto a disk that a filler has left N KiB of, N in steps from nothing to
# enough, with each mode, to a new and an old destination, on each file system, and under a quota on
# btrfs. The copy is whole, or the exit status is 1 and the old file survives; no space is lost.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need_private_mounts "$@"
make_work
steps=(0 4 20 64 200 310 500 900 1020 1024 1028 1100 1400 2200 6000)
random_file "$work/src" 1M
random_file "$work/old" 300K
disk=$work/disk
mkdir "$disk"

# Mounts an empty file system at disk; dir is where on it the copies are made.
mount_disk() {
	local image=$work/$1.img
	dir=$disk
	case $1 in
	tmpfs)
		mount -t tmpfs -o size=16M tmpfs "$disk"
		return
		;;
	ext4) truncate -s 64M "$image" && mkfs.ext4 -q -m 0 -O has_journal "$image" ;;
	xfs) truncate -s 300M "$image" && mkfs.xfs -q "$image" ;;
	btrfs | quota) truncate -s 256M "$image" && mkfs.btrfs -q "$image" ;;
	esac >/dev/null && mount -o loop "$image" "$disk" || return 1
	rm "$image"
	if [ "$1" = quota ]; then
		dir=$disk/subvolume
		btrfs quota enable "$disk" && btrfs subvolume create "$dir" >/dev/null &&
			group=0/$(btrfs inspect-internal rootid "$dir")
	fi
}

# Sets REPLY to the KiB that are free once all that was deleted is really gone.
free() {
	if [ "$1" = quota ]; then
		btrfs filesystem sync "$disk"
		REPLY=$(btrfs qgroup show -f --raw "$dir" | awk '/^0/ { print -int($2 / 1024) }')
		return
	fi
	sync -f "$disk"
	read -r blocks size < <(stat -f -c '%a %S' "$disk")
	REPLY=$((blocks * size / 1024))
}

# fill FS KIB: leaves so much, by a filler of pieces: each that does not fit is halved.
fill() {
	local at=0 piece
	if [ "$1" = quota ]; then
		free quota
		btrfs qgroup limit $(($2 - REPLY))K "$group" "$disk"
		return
	fi
	free "$1"
	piece=$((REPLY - $2))
	while [ $piece -gt 3 ]; do
		if fallocate -o ${at}K -l ${piece}K "$dir/filler" 2>/dev/null; then
			at=$((at + piece))
			free "$1"
			piece=$((REPLY - $2))
		else
			piece=$((piece / 2))
		fi
	done
}

empty() {
	if [ "$1" = quota ]; then
		btrfs qgroup limit none "$group" "$disk"
	fi
	rm -f "$dir"/{dst,filler} "$dir"/.fcopy-*
}

# try FS MODE DESTINATION KIB [OPTION…]
try() {
	local fs=$1 destination=$3 what before status lost was=absent
	what="mode $2 on $1, $3 destination, $4 KiB left ${*:5}"
	empty "$fs"
	if [ "$destination" = old ]; then
		cp "$work/old" "$dir/dst"
		was=old
	fi
	fill "$fs" "$4"
	free "$fs"
	before=$REPLY
	timed "$FCOPY" "${@:5}" -m "$2" "$dir/src" "$dir/dst" 2>"$work/err"
	status=$?
	tried=$((tried + 1))
	# What the disk has counts, not what the cache has.
	if [ -e "$dir/dst" ]; then
		sync -f "$disk"
		dd if="$dir/dst" iflag=nocache count=0 status=none
	fi
	state_of "$dir/dst" "$work/old" "$work/src"
	case $status:$was:$REPLY in
	0:*:new) whole=$((whole + 1)) ;;
	1:old:old | 1:absent:absent) refused=$((refused + 1)) ;;
	*) fail_copy "$status" "$was" "$REPLY" "$what" ;;
	esac
	if [ $status = 1 ] && ! grep -qE 'No space left|quota exceeded' "$work/err"; then
		fail other "$what: $(cat "$work/err")"
	fi
	if [ "$REPLY" = new ]; then
		rm "$dir/dst"
		[ "$destination" = new ] || before=$((before + 300))
	fi
	free "$fs"
	lost=$((before - REPLY))
	# The file systems' own trees may have grown by some blocks.
	[ $lost -lt 128 ] || fail other "$what: $lost KiB lost"
	[ -z "$(find "$dir" -name '.fcopy-*')" ] || fail other "$what: a temporary file was left"
}

for fs in ext4 xfs btrfs quota tmpfs; do
	mount_disk $fs || {
		left_out $fs "no mount"
		continue
	}
	cp "$work/src" "$dir/src"
	whole=0
	refused=0
	for mode in $(modes); do
		empty $fs
		works "mode $mode on $fs" timed "$FCOPY" -m "$mode" "$dir/src" "$dir/dst" || continue
		for kib in "${steps[@]}"; do
			try $fs "$mode" new "$kib"
			try $fs "$mode" old "$kib"
			try $fs "$mode" old "$kib" --fsync
		done
	done
	echo "$name: $fs: $whole copies were whole, $refused were refused"
	if [ $whole = 0 ] || [ $refused = 0 ]; then
		fail other "$fs: the disk was always, or never, full"
	fi
	umount "$disk"
done
finish
