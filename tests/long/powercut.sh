#!/bin/bash
# SPDX-License-Identifier: MIT
#
# powercut.sh [CUTS]: takes the power away from journalled ext4 and XFS. With --fsync, at once after
# exit, CUTS times (2) for each mode: the copy is whole after the next mount. Then, by snapshots of
# the disk 1, 8 and 40 s after exit, with and without --fsync: no copy has fared worse than both that
# of a cp before it and that of one after it.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need xfs_io mkfs.xfs mkfs.ext4
need_private_mounts "$@"
make_work
cuts=${1:-2}
delays=(1 8 40)
random_file "$work/src" 1M
random_file "$work/old" 300K
random_file "$work/large" 48M
mkdir "$work/disks"
declare -A states

# Snapshots of disks are clones on an XFS of their own: they show one instant.
truncate -s 16G "$work/disks.img"
{ mkfs.xfs -q -m reflink=1 "$work/disks.img" && mount -o loop "$work/disks.img" "$work/disks"; } ||
	skip "no XFS mount"
rm "$work/disks.img"

# attach DISK FS: makes and mounts a file system at work/DISK, with a source that is on the disk.
attach() {
	local image=$work/disks/$1 mnt=$work/$1
	rm -f "$image"
	truncate -s 2G "$image"
	mkdir -p "$mnt"
	case $2 in
	ext4) mkfs.ext4 -q -O has_journal "$image" ;;
	xfs) mkfs.xfs -q -m reflink=1 "$image" ;;
	esac || exit 1
	mount -o loop "$image" "$mnt"
	cp "$work/src" "$work/large" "$mnt"
	sync -f "$mnt"
}

# find_modes FS: writes down those that work on it.
find_modes() {
	local mnt=$work/cut mode
	: >"$work/modes.$1"
	for mode in $(modes); do
		works "mode $mode on $1" timed "$FCOPY" -m "$mode" "$mnt/src" "$mnt/dst" &&
			echo "$mode" >>"$work/modes.$1"
	done
}

# cut_power FS MODE DESTINATION
cut_power() {
	local mnt=$work/cut status was=absent
	tried=$((tried + 1))
	rm -f "$mnt/dst"
	if [ "$3" = old ]; then
		cp "$work/old" "$mnt/dst"
		was=old
	fi
	sync -f "$mnt"
	timed "$FCOPY" --fsync -m "$2" "$mnt/src" "$mnt/dst" 2>"$work/err"
	status=$?
	xfs_io -x -c shutdown "$mnt"
	umount "$mnt"
	mount -o loop "$work/disks/cut" "$mnt"
	state_of "$mnt/dst" "$work/old" "$work/src"
	[ $status:"$REPLY" = 0:new ] ||
		fail_copy $status $was "$REPLY" "mode $2 on $1, power cut after --fsync"
}

for fs in ext4 xfs; do
	attach cut $fs
	find_modes $fs
	while read -r mode; do
		for ((i = 0; i < cuts; i++)); do
			cut_power $fs "$mode" new
			cut_power $fs "$mode" old
		done
	done <"$work/modes.$fs"
	umount "$work/cut"
done
echo "$name: $tried power cuts at exit with --fsync"

# source_of FS DESTINATION: on XFS, so large that the rename of a new file over an old one can reach
# the disk long before its bytes do.
source_of() {
	[ "$1$2" = xfsold ] && echo large || echo src
}

# copy TOOL SRC DST [OPTION]: by cp, or by a mode.
copy() {
	if [ "${1%-*}" = cp ]; then
		cp --reflink=never "$2" "$3" && { [ $# = 3 ] || sync "$3" "${3%/*}"; }
	else
		timed "$FCOPY" "${@:4}" -m "$1" "$2" "$3"
	fi
}

# What is older has more of it on the disk: one cp is the first to copy, and one the last.
#
# snapshots FS [--fsync]: prints FS OPTION TOOL DESTINATION DELAY STATE for each copy, and before
# them …exit STATUS for those that failed.
snapshots() {
	local fs=$1 option=${2-} disk=$1${2-} tool tools delay slept=0 destination
	local mnt=$work/$disk
	attach "$disk" "$fs"
	read -r -d '' -a tools < <(echo cp-first && cat "$work/modes.$fs" && echo cp-last)
	for tool in "${tools[@]}"; do
		cp "$work/old" "$mnt/$tool.old"
	done
	sync -f "$mnt"
	for tool in "${tools[@]}"; do
		for destination in new old; do
			copy "$tool" "$mnt/$(source_of "$fs" $destination)" "$mnt/$tool.$destination" ${option:+"$option"} ||
				echo "$fs ${option:--} $tool $destination exit $?"
		done
	done
	for delay in "${delays[@]}"; do
		sleep $((delay - slept))
		slept=$delay
		cp --reflink=always "$work/disks/$disk" "$work/disks/$disk.$delay"
	done
	umount "$mnt"
	for delay in "${delays[@]}"; do
		mount -o loop,nouuid "$work/disks/$disk.$delay" "$mnt" 2>/dev/null ||
			mount -o loop "$work/disks/$disk.$delay" "$mnt"
		for tool in cp-first cp-last "${tools[@]:1:${#tools[@]}-2}"; do
			state_of "$mnt/$tool.new" "" "$work/src"
			echo "$fs ${option:--} $tool new $delay $REPLY"
			state_of "$mnt/$tool.old" "$work/old" "$work/$(source_of "$fs" old)"
			echo "$fs ${option:--} $tool old $delay $REPLY"
		done
		umount "$mnt"
	done
}

for fs in ext4 xfs; do
	snapshots $fs >"$work/$fs.states" &
	snapshots $fs --fsync >"$work/$fs--fsync.states" &
done
wait

# rank DESTINATION STATE: what was lost is worst; an old file as it was comes before it. A new file is
# absent, then torn, then whole with anybody who does not flush.
rank() {
	case $1:$2 in
	*:new) echo 2 ;;
	old:old) echo 1 ;;
	*) echo 0 ;;
	esac
}

# worse DESTINATION STATE STATE: prints that of the two.
worse() {
	if [ "$(rank "$1" "$2")" -lt "$(rank "$1" "$3")" ]; then
		echo "$2"
	else
		echo "$3"
	fi
}

# judge KIND DESTINATION STATE OF-CP WHAT: KIND is that of a failure by which nothing is lost.
judge() {
	local kind=$1 rank
	rank=$(rank "$2" "$3")
	[ "$rank" -lt "$(rank "$2" "$4")" ] || return
	[ "$rank" != 0 ] || kind=lost
	fail "$kind" "$5: $3, cp: $4"
}

printf '%-5s %-8s %-8s %-4s %7s s %5s s %5s s\n' fs option tool dst "${delays[@]}"
while read -r fs option tool destination delay state; do
	cell="$fs $option $tool $destination"
	states[$cell $delay]=$state
	if [ "$delay" = exit ]; then
		fail_status "$state" "$tool: $cell"
		continue
	fi
	if [ "$delay" = "${delays[-1]}" ]; then
		printf '%-5s %-8s %-8s %-4s' "$fs" "$option" "$tool" "$destination"
		for delay in "${delays[@]}"; do
			printf ' %8s' "${states[$cell $delay]}"
		done
		echo
	fi
	if [ "${tool%-*}" = cp ]; then
		continue
	fi
	tried=$((tried + 1))
	kind=other
	cp=$(worse "$destination" "${states[$fs $option cp-first $destination $delay]}" \
		"${states[$fs $option cp-last $destination $delay]}")
	if [ "$option" = --fsync ] && [ -z "${states[$cell exit]-}" ]; then
		kind=wrong # by itself
		cp=new
	fi
	judge $kind "$destination" "$state" "$cp" "mode $tool: $cell, $delay s"
done < <(cat "$work"/*.states)
finish
