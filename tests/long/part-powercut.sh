#!/bin/bash
# SPDX-License-Identifier: MIT
#
# part-powercut.sh [N]: takes the power away N (100) times during a copy with --resume, of a file and
# of a tree, to journalled ext4 and XFS. After the next mount the same command must succeed, the copy
# must be equal, and nothing else may be left. The boot is the same one, but the mount is not: the
# journal of the part may vouch only for what was flushed.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need xfs_io mkfs.xfs mkfs.ext4
need_private_mounts "$@"
make_work
seed_random
wanted=${1:-100}
random_file "$work/file" 96M
make_tree "$work/tree" 300
touch -d '1 hour ago' "$work/file"
find "$work/tree" -exec touch -h -d '1 hour ago' {} +
sleep 2.1 # the change times must not be recent, or everything is compared
mkdir "$work/mnt"
continued=0

# attach FS: makes and mounts a file system at work/mnt.
attach() {
	truncate -s 1G "$work/disk"
	case $1 in
	ext4) mkfs.ext4 -qF -O has_journal "$work/disk" ;;
	xfs) mkfs.xfs -qf "$work/disk" ;;
	esac || exit 1
	mount -o loop "$work/disk" "$work/mnt" || skip "no $1 mount"
}

# copy KIND COMMAND…: under COMMAND.
copy() {
	"${@:2}" "$FCOPY" -q -a -T --resume --limit-rate=80M "$work/$1" "$work/mnt/dst" 2>"$work/err"
}

is_equal() {
	if [ "$1" = file ]; then cmp -s "$work/file" "$work/mnt/dst"; else same_tree "$work/tree" "$work/mnt/dst"; fi
}

# cut_power FS KIND MICROSECONDS: after that time.
cut_power() {
	local what pid instant half status
	printf -v instant '%d.%06d' $(($3 / 1000000)) $(($3 % 1000000))
	what="$2 on $1, power cut after $instant s"
	copy "$2" timeout --kill-after=1 60 &
	pid=$!
	# What was written by then is on the disk, unless nothing was flushed.
	if [ $((RANDOM % 4)) != 0 ]; then
		printf -v half '%d.%06d' $(($3 / 2000000)) $(($3 / 2 % 1000000))
		sleep "$half"
		sync -f "$work/mnt"
		sleep "$half"
	else
		sleep "$instant"
	fi
	xfs_io -x -c shutdown "$work/mnt"
	wait $pid
	umount "$work/mnt"
	mount -o loop "$work/disk" "$work/mnt" || exit 1
	[ ! -e "$work/mnt/dst.fcopy-part" ] || continued=$((continued + 1))
	tried=$((tried + 1))
	copy "$2" timeout --kill-after=1 60
	status=$?
	[ $status = 0 ] || fail_status $status "$what, then the same command: $(head -n 1 "$work/err")"
	is_equal "$2" || fail wrong "$what, then the same command: differs"
	rm -rf "$work/mnt/dst" "$work/mnt/lost+found"
	[ -z "$(ls -A "$work/mnt")" ] || fail other "$what left: $(ls -A "$work/mnt")"
	find "$work/mnt" -mindepth 1 -delete
	sync -f "$work/mnt"
}

for fs in ext4 xfs; do
	attach $fs
	for kind in file tree; do
		start=${EPOCHREALTIME/./}
		copy $kind timeout 60 || fail_status $? "$kind on $fs"
		duration=$((${EPOCHREALTIME/./} - start))
		rm -rf "$work/mnt/dst"
		for ((i = 0; i < (wanted + 3) / 4; i++)); do
			random_below $((duration * 11 / 10))
			cut_power $fs $kind "$REPLY"
		done
	done
	umount "$work/mnt"
done
echo "$name: a part was there after $continued of the cuts"
finish
