#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/mounts.sh CMD [ARG…]: runs CMD with FCOPY_TEST_DIR naming one empty directory on each file
# system that can be mounted here, and a plain one beside the build; the last part of each name is
# the file system's. What had to be left out is reported on stderr. Exits with CMD's status.
set -u
PATH=$PATH:/usr/sbin:/sbin

if [ $# = 0 ]; then
	echo "usage: ${0##*/} CMD [ARG…]" >&2
	exit 2
fi

# In a separate mount namespace the mounts end with the last process in it, even after kill -9.
if [ "${FCOPY_MOUNTS_PID-}" != $$ ] && unshare --mount true 2>/dev/null; then
	FCOPY_MOUNTS_PID=$$ exec unshare --mount "$0" "$@"
fi
private=$([ "${FCOPY_MOUNTS_PID-}" = $$ ] && echo yes)
unset FCOPY_MOUNTS_PID

build=${FCOPY_BUILD:-$(cd "$(dirname "$0")/.." && pwd)/build}
mkdir -p "$build"
top=$(mktemp -d "$build/mounts.XXXXXX") || exit 1

leave() {
	local dir
	for dir in "$top"/*/; do
		if mountpoint -q "$dir" && ! umount "$dir" 2>/dev/null; then
			umount --lazy "$dir"
		fi
	done
	rm -rf --one-file-system "$top"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

left_out() {
	echo "${0##*/}: left out $1: $2" >&2
}

# Where there is room, images are in memory, so that tests do not wait for a disk: no test looks at what a power cut leaves.
place_images() {
	local room
	images=$top
	room=$(awk '$1 == "MemAvailable:" { print int($2 / 1048576) }' /proc/meminfo)
	[ "${room:-0}" -ge 10 ] && mkdir "$top/images" && mount -t tmpfs -o size=7G tmpfs "$top/images" && images=$top/images
}

# The image loses its name once it is mounted: the loop device alone keeps it alive.
mount_image() {
	local fs=$1 mkfs=$2 image=$images/$1.img dir=$top/$1 why

	if ! type "${mkfs%% *}" >/dev/null 2>&1; then
		left_out "$fs" "no ${mkfs%% *}"
		return 1
	fi
	truncate -s 2G "$image"
	# shellcheck disable=SC2086 # the command and its options are words
	why=$({ $mkfs "$image" >/dev/null && mkdir "$dir" && mount -o loop "$image" "$dir"; } 2>&1)
	rm -f "$image"
	if ! mountpoint -q "$dir"; then
		rm -rf "$dir"
		left_out "$fs" "${why##*$'\n'}"
		return 1
	fi
}

mount_tmpfs() {
	mkdir "$top/tmpfs"
	if ! mount -t tmpfs -o size=2G tmpfs "$top/tmpfs"; then
		rmdir "$top/tmpfs"
		left_out tmpfs "mount failed"
		return 1
	fi
}

chmod 755 "$top"
mkdir "$top/plain"
FCOPY_TEST_DIR=$top/plain
offer() {
	# The root of a fresh ext4 holds lost+found: the tests get an empty directory.
	mkdir "$top/$1/$1"
	FCOPY_TEST_DIR=$FCOPY_TEST_DIR:$top/$1/$1
}

if [ "$(id -u)" != 0 ]; then
	left_out "ext4, xfs, btrfs and tmpfs" "only root may mount"
elif [ -z "$private" ]; then
	left_out "ext4, xfs, btrfs and tmpfs" "no mount namespace of our own"
else
	place_images
	mount_image ext4 "mkfs.ext4 -q -O has_journal" && offer ext4
	mount_image xfs "mkfs.xfs -q -m reflink=1" && offer xfs
	mount_image btrfs "mkfs.btrfs -q" && offer btrfs
	mount_tmpfs && offer tmpfs
fi
export FCOPY_TEST_DIR
"$@"
