# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Small disks of each file system, and what is free on them; for a proof that has made work.
# shellcheck disable=SC2154 # work: see make_work
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

# is_lost FS BEFORE KIB: are so many KiB fewer free than BEFORE? Sets lost to their number. XFS frees the blocks of removed files a
# little later, in its own threads.
is_lost() {
	local tries=0
	while free "$1" && lost=$(($2 - REPLY)) && [ "$lost" -ge "$3" ]; do
		[ $((tries++)) -lt 50 ] || return 0
		sleep .1
	done
	return 1
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
