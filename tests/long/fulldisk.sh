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
# shellcheck source=disk.sh
. "$(dirname "$0")/disk.sh"
steps=(0 4 20 64 200 310 500 900 1020 1024 1028 1100 1400 2200 6000)
random_file "$work/src" 1M
random_file "$work/old" 300K

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
	# The file systems' own trees may have grown by some blocks.
	! is_lost "$fs" "$before" 128 || fail other "$what: $lost KiB lost"
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
