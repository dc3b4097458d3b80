# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Storage that fails (dm-flakey).

fs=${fs-} data=${data:?} dir=${dir-} modes=${modes-} # of lib.sh
sectors=1310720                                     # of the devices: 640 MiB

# set_flakey DEVICE up|writes|all: which I/O of /dev/mapper/flakey fails.
set_flakey() {
	local table="0 $sectors flakey $1 0"
	case $2 in
	up) table+=' 3600 0' ;;
	writes) table+=' 0 3600 1 error_writes' ;;
	all) table+=' 0 3600' ;;
	esac
	if [ ! -e /dev/mapper/flakey ]; then
		dmsetup create flakey --table "$table"
		return
	fi
	dmsetup suspend --noflush --nolockfs flakey
	dmsetup load flakey --table "$table"
	dmsetup resume flakey
}

# fails_with_eio MODE FROM TO OPTION…: fcopy reports the error.
fails_with_eio() {
	local status=0
	f -m "$1" "${@:4}" "$2" "$3" 2>err || status=$?
	cat err
	[ $status = 1 ]
	grep -qE 'Input/output error|Read-only file system|Structure needs cleaning' err
}

# check_write_error FS MODE: all writes fail. At the next mount, the old DST and no temporary file must
# be there.
check_write_error() {
	local at=/mnt/flakey
	set_flakey /dev/vdc up
	mount_fs "$1" /dev/mapper/flakey $at
	cp "$data/large" $at/from
	cp "$data/old" $at/to
	sync -f $at
	set_flakey /dev/vdc writes
	fails_with_eio "$2" $at/from $at/to --fsync
	set_flakey /dev/vdc up
	umount $at
	mount -t "$1" /dev/mapper/flakey $at
	cmp "$data/old" $at/to
	[ -z "$(find $at -name '.fcopy-*')" ]
	umount $at
	sed -n '1s/^fcopy: //p' err
}

# check_read_error FS MODE: all reads of the source's disk fail. DST is on tmpfs.
check_read_error() {
	local at=/mnt/flakey
	set_flakey /dev/vdc up
	mount_fs "$1" /dev/mapper/flakey $at
	cp "$data/large" $at/from
	cp "$data/old" "$PWD/to"
	sync -f $at
	mount -o remount,ro $at
	dd if=$at/from iflag=nocache count=0 status=none # drops its pages
	set_flakey /dev/vdc all
	fails_with_eio "$2" $at/from "$PWD/to"
	cmp "$data/old" to
	set_flakey /dev/vdc up
	umount $at
	sed -n '1s/^fcopy: //p' err
}

# release_flakey: also after a check that failed. A file system that shut down hides its mount point.
release_flakey() {
	if grep -q ' /mnt/flakey ' /proc/mounts; then
		set_flakey /dev/vdc up
		umount /mnt/flakey
	fi
}

# storage_errors: a new file system for each mode, since a failed write can end it.
storage_errors() {
	local mode kind
	if ! modprobe dm-flakey; then
		result mount skip "the kernel has no dm-flakey"
		return
	fi
	mkdir -p /mnt/errors
	mount -t tmpfs tmpfs /mnt/errors
	dir=/mnt/errors
	for kind in ext4 xfs; do
		for mode in "${modes[@]}"; do
			fs=flakey-$kind
			[ "$kind $mode" = "ext4 reflink" ] || check "write-$mode" check_write_error $kind "$mode"
			release_flakey
			case $mode in
			copy_file_range | reflink | direct) ;; # refused between this file system and tmpfs
			*) check "read-$mode" check_read_error $kind "$mode" ;;
			esac
			release_flakey
		done
		dmsetup remove --retry flakey
	done
	umount /mnt/errors
}
