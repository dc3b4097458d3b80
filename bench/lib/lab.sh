# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The laboratory: one temporary directory, the file systems mounted in it, and nothing left behind.

LAB=''          # the temporary directory
WHY=''          # why the last question was answered with "no"
FS_DIR=''       # answer of fs_enter
IMAGE_SIZE=4G   # of a loop image; the file is sparse
declare -A FS_AT=()
LOOPS=()

lab_open() {
	mkdir -p "$1" || die "cannot make $1"
	LAB=$(mktemp -d "$(realpath "$1")/fcopy-bench.XXXXXX") || die "cannot write in $1"
	trap lab_close EXIT
	local signal
	for signal in INT TERM HUP; do
		# shellcheck disable=SC2064  # the signal's name is known now
		trap "lab_close; trap - EXIT $signal; kill -s $signal \$\$" "$signal"
	done
}

lab_close() {
	[[ -n $LAB ]] || return 0
	peer_stop
	net_close
	group_close
	local fs
	for fs in "${!FS_AT[@]}"; do
		[[ ${FS_AT[$fs]} == "$LAB" ]] || umount "${FS_AT[$fs]}"
	done
	((${#LOOPS[@]} == 0)) || losetup --detach "${LOOPS[@]}"
	rm -rf --one-file-system "$LAB"
	LAB=''
}

# fs_enter FS: FS_DIR is a directory on such a file system, or 1 and WHY. "here" is DIR's own.
fs_enter() {
	local fs=$1
	if [[ -z ${FS_AT[$fs]-} ]]; then
		if [[ $fs == here || $fs == "$(fs_type "$LAB")" ]]; then
			FS_AT[$fs]=$LAB
		else
			fs_mount "$fs" || return 1
		fi
	fi
	FS_DIR=${FS_AT[$fs]}
}

fs_mount() {
	local fs=$1 at=$LAB/mnt.$1
	is_root || { WHY="mounting $fs needs root"; return 1; }
	mkdir -p "$at"
	if [[ $fs == tmpfs ]]; then
		mount -t tmpfs -o size=90% fcopy-bench "$at" || { WHY='tmpfs cannot be mounted'; return 1; }
	else
		image_mount "$fs" "$at" || return 1
	fi
	FS_AT[$fs]=$at
}

image_mount() {
	local fs=$1 at=$2 image=$LAB/$1.img device options=()
	case $fs in
	ext4) options=(-q -F) ;;
	xfs) options=(-q -m reflink=1) ;;
	btrfs) options=(--quiet) ;;
	*) WHY="no recipe for $fs"; return 1 ;;
	esac
	have "mkfs.$fs" || { WHY="mkfs.$fs is missing"; return 1; }
	truncate -s "$IMAGE_SIZE" "$image"
	"mkfs.$fs" "${options[@]}" "$image" >/dev/null 2>&1 || { WHY="mkfs.$fs failed"; return 1; }
	# Without direct I/O the image's pages would be cached twice, and "cold" would not be cold.
	device=$(losetup --find --show --direct-io=on "$image" 2>/dev/null ||
		losetup --find --show "$image") || { WHY='no loop device'; return 1; }
	LOOPS+=("$device")
	mount "$device" "$at" || { WHY="$fs cannot be mounted"; return 1; }
}
