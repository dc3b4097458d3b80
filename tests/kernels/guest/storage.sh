# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Storage that fails (dm-flakey) and storage that loses its power (dm-log-writes).

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

# mark NAME: an entry in the log. The name is one word.
mark() {
	dmsetup message logged 0 mark "$1"
}

# The modes whose blocks get to the disk in different ways; the commit is the same in all.
logged_modes=(auto splice direct parallel reflink)

# logged_copies AT: makes new.MODE, replaces old.MODE, and copies a tree, all with --fsync.
logged_copies() {
	local mode
	for mode in "${logged_modes[@]}"; do
		if ! f -m "$mode" "$1/from" "$1/probe" 2>/dev/null; then
			continue
		fi
		mark "begin:$mode" || return
		f --fsync -m "$mode" "$1/from" "$1/new.$mode" && f --fsync -m "$mode" "$1/from" "$1/old.$mode" || return
		mark "done:$mode"
	done
	mark begin:tree
	f -r --fsync "$1/tree" "$1/new.tree" || return
	mark done:tree
}

# read_sums FILE…: sets sum[FILE] to its checksum and size, unless it cannot be read. One process for
# all files.
read_sums() {
	local crc size file
	while read -r crc size file; do
		sum[$file]="$crc $size"
	done < <(cksum "$@" 2>/dev/null)
}

# state FILE: sets REPLY to absent, new, old or torn.
state() {
	if [ ! -e "$1" ]; then
		REPLY=absent
	elif [ -d "$1" ]; then
		REPLY=torn
		[ "$(names_and_bytes "$1")" != "$new_tree" ] || REPLY=new
	else
		case ${sum[$1]-} in
		"$new_sum") REPLY=new ;;
		"$old_sum") REPLY=old ;;
		*) REPLY=torn ;;
		esac
	fi
}

# inspect FS: mounts a copy of the replayed disk, as after a power cut, and looks at each copy.
inspect() {
	local at=/mnt/cut name options=loop found
	local -A sum
	[ "$1" != xfs ] || options+=,nouuid
	cp --reflink=always /mnt/scratch/disk /mnt/scratch/cut
	mount -t "$1" -o $options /mnt/scratch/cut $at
	read_sums $at/new.* $at/old.*
	for name in "${!phase[@]}"; do
		state "$at/new.$name"
		found=$REPLY
		if [ "$name" != tree ]; then
			state "$at/old.$name"
			found+=" $REPLY"
		fi
		case ${phase[$name]}:$found in
		before:absent | 'before:absent old' | after:new | 'after:new new') ;;
		during:absent | during:new | during:absent\ old | during:new\ old | during:new\ new) ;;
		*)
			echo "$name: ${phase[$name]} the copy, after the power cut: $found"
			return 1
			;;
		esac
	done
	umount $at
	rm /mnt/scratch/cut
	cuts=$((cuts + 1))
}

# check_cuts FS: replays the log to each flush of the disk's cache.
check_cuts() {
	local number flags from=0 cuts=0 name new_sum old_sum new_tree
	local -A phase
	new_sum=$(cksum </run/logged.new) old_sum=$(cksum </run/logged.old)
	[ -n "$new_sum" ] && [ -n "$old_sum" ] || return 1
	new_tree=$(names_and_bytes /run/logged.tree)
	for name in $(/check/bin/replay /dev/vdd | sed -n 's/.* mark begin://p'); do
		phase[$name]=before
	done
	[ ${#phase[@]} -ge 5 ]
	while read -r number flags; do
		case $flags in
		'mark begin:'*) phase[${flags#*:}]=during ;;
		'mark done:'*) phase[${flags#*:}]=after ;;
		*flush* | *fua*)
			/check/bin/replay /dev/vdd /mnt/scratch/disk $from $((number + 1))
			from=$((number + 1))
			inspect "$1"
			;;
		esac
	done < <(/check/bin/replay /dev/vdd)
	echo "$cuts power cuts, ${#phase[@]} kinds of copies"
}

# log_copies FS: leaves the log on /dev/vdd, and in /mnt/scratch/disk what was there before.
log_copies() {
	local at=/mnt/logged mode
	dmsetup create logged --table "0 $sectors linear /dev/vdc 0"
	mount_fs "$1" /dev/mapper/logged $at || return
	head -c 1000003 "$data/large" | tee /run/logged.new >$at/from
	head -c 1500000 "$data/old" >/run/logged.old
	for mode in "${logged_modes[@]}"; do
		cp /run/logged.old "$at/old.$mode"
	done
	mkdir $at/tree $at/tree/sub
	cp "$data/small" $at/tree/one
	cp "$data/small" $at/tree/sub/two
	cp -r $at/tree /run/logged.tree
	umount $at && dmsetup remove --retry logged || return
	dd if=/dev/vdc of=/mnt/scratch/disk bs=1M count=$((sectors / 2048)) conv=sparse status=none
	dmsetup create logged --table "0 $sectors log-writes /dev/vdc /dev/vdd" || return
	mount -t "$1" /dev/mapper/logged $at && logged_copies $at
	umount $at && dmsetup remove --retry logged
}

power_cuts() {
	local kind
	if ! modprobe dm-log-writes; then
		result mount skip "the kernel has no dm-log-writes"
		return
	fi
	modprobe loop
	mount_fs xfs /dev/vde /mnt/scratch || return
	mkdir -p /mnt/{logged,cut}
	dir=/mnt/scratch
	for kind in ext4 xfs btrfs; do
		fs=log-writes-$kind
		if log_copies $kind; then
			check power-cuts check_cuts $kind
		else
			result power-cuts FAIL "the copies failed: see the console"
		fi
		umount -q /mnt/cut
		rm -rf /mnt/scratch/* /run/logged.*
	done
	umount /mnt/scratch
}
