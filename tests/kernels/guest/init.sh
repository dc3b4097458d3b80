#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The guest's first process: mounts each file system, checks fcopy on it, and ends the machine.
# /dev/ttyS1 gets the results, the console everything else. /check/checks limits the checks, and
# /check/wanted the groups; /check/cuts is for interrupted.sh:
# ext4 xfs btrfs tmpfs f2fs exfat vfat ntfs3 overlay nfs flakey log-writes cifs suite
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root
export DM_DISABLE_UDEV=1 # dmsetup makes the device nodes itself
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
ln -s /proc/self/fd /dev/fd
mount -t tmpfs -o size=1G run /run
mount -t tmpfs -o size=512M tmp /tmp
mount --bind /check/modules /lib/modules
ip link set lo up
exec 3>/dev/ttyS1 </dev/null

cd /check/guest || exit
# shellcheck source=tests/kernels/guest/lib.sh
. ./lib.sh
# shellcheck source=tests/kernels/guest/checks.sh
. ./checks.sh
# shellcheck source=tests/kernels/guest/local.sh
. ./local.sh
# shellcheck source=tests/kernels/guest/network.sh
. ./network.sh
# shellcheck source=tests/kernels/guest/storage.sh
. ./storage.sh
# shellcheck source=tests/kernels/guest/power.sh
. ./power.sh
# shellcheck source=tests/kernels/guest/interrupted.sh
. ./interrupted.sh

# release: what a group that failed left mounted would disturb the next one.
release() {
	local at
	awk '$2 ~ "^/(mnt|srv)/" { print $2 }' /proc/mounts | tac | while read -r at; do
		echo "still mounted: $at"
		umount "$at" || umount --lazy "$at"
	done
	[ ! -e /dev/mapper/control ] || dmsetup remove_all
}

# group NAME COMMAND…: unless the group is not wanted. Prints its duration.
group() {
	local start=$SECONDS
	if [ -n "$wanted" ] && [[ " $wanted " != *" $1 "* ]]; then
		return
	fi
	fs=$1
	echo "--- $1"
	"${@:2}"
	release
	echo "--- $1: $((SECONDS - start)) s"
	fs=$1
	result seconds - $((SECONDS - start))
}

wanted=$(cat /check/wanted) checks=$(cat /check/checks)
static_first
make_data
watchdog &
for fs in ext4 xfs btrfs f2fs exfat vfat ntfs3; do
	group $fs on_disk $fs
done
group tmpfs on_tmpfs
group overlay on_overlay
group nfs over_nfs
group cifs over_cifs
group flakey storage_errors
group suite library_suite
group log-writes power_cuts
fs=-
result end ok "$(uname -r)"
sync
echo o >/proc/sysrq-trigger
sleep 60
