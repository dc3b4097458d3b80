# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Storage that loses its power: what is written goes through dm-log-writes. The log is replayed up to
# a cut, and what is then on the disk is mounted. interrupted.sh has the copies that a cut interrupts.

fs=${fs-} data=${data:?} dir=${dir-} # of lib.sh
sectors=1310720                      # of the devices: 640 MiB

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

# fill_logged AT: what is there before the copies.
fill_logged() {
	local mode
	head -c 1000003 "$data/large" | tee /run/logged.new >"$1/from"
	head -c 1500000 "$data/old" >/run/logged.old
	for mode in "${logged_modes[@]}"; do
		cp /run/logged.old "$1/old.$mode"
	done
	mkdir "$1/tree" "$1/tree/sub"
	cp "$data/small" "$1/tree/one"
	cp "$data/small" "$1/tree/sub/two"
	cp -r "$1/tree" /run/logged.tree
}

# log_writes FS FILL COPY: leaves the log of COPY on /dev/vdd, and in /mnt/scratch/disk what FILL wrote
# before.
log_writes() {
	local at=/mnt/logged status=0
	dmsetup create logged --table "0 $sectors linear /dev/vdc 0"
	mount_fs "$1" /dev/mapper/logged $at || return
	"$2" $at
	umount $at && dmsetup remove --retry logged || return
	dd if=/dev/vdc of=/mnt/scratch/disk bs=1M count=$((sectors / 2048)) conv=sparse status=none
	dmsetup create logged --table "0 $sectors log-writes /dev/vdc /dev/vdd" || return
	mount -t "$1" /dev/mapper/logged $at && "$3" $at || status=1
	umount $at && dmsetup remove --retry logged && return $status
}

# cuts_of FS CHECK FILL COPY INSPECT: if the check is wanted.
cuts_of() {
	if [ -n "$checks" ] && [[ " $checks " != *" $2 "* ]]; then
		return
	fi
	if log_writes "$1" "$3" "$4"; then
		check "$2" "$5" "$1"
	else
		result "$2" FAIL "the copies failed: see the console"
	fi
	umount -q /mnt/cut
	rm -rf /mnt/scratch/* /run/logged.*
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
		cuts_of $kind power-cuts fill_logged logged_copies check_cuts
		cuts_of $kind interrupted fill_interrupted interrupted_copies check_interrupted
	done
	umount /mnt/scratch
}
