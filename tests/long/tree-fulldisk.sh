#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tree-fulldisk.sh [STEP]: copies a tree of about 4 MiB onto a disk that has N KiB left, N from nothing
# to enough in steps of STEP KiB (200), on each file system, and under a quota on btrfs. A new tree is
# whole, or the exit status is 1 and nothing is left. In an existing one, each file is old or new. With
# --mirror and --resume, the same command then makes it whole when there is room.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need_private_mounts "$@"
make_work
# shellcheck source=disk.sh
. "$(dirname "$0")/disk.sh"
step=${1:-200}
RANDOM=1
make_tree "$work/src" 40
options=("-r" "-a -j4" "-r --fsync" "--mirror" "-a --resume")

empty() {
	if [ "$1" = quota ]; then
		btrfs qgroup limit none "$group" "$disk"
	fi
	rm -rf "$dir"/{dst,dst.fcopy-part,filler} "$dir"/.fcopy-*
}

# check_files WHAT: each file of the old tree is old or new.
check_files() {
	local file
	while read -r -d '' file; do
		cmp -s "$dir/dst/$file" "$work/src/$file" || [ "$(cat "$dir/dst/$file")" = old ] ||
			fail lost "$1: $file is neither old nor new"
	done < <(cd "$dir/dst" && find . -type f ! -name hole ! -name .fcopy-mirror -print0)
}

# again FS OPTIONS WHAT: with enough room.
again() {
	rm -f "$dir/filler"
	[ "$1" != quota ] || btrfs qgroup limit none "$group" "$disk"
	# shellcheck disable=SC2086 # options are words
	timed "$FCOPY" $2 -T "$work/src" "$dir/dst" 2>"$work/err" || fail_status $? "$3, then with room"
	state_of_tree "$dir/dst" "$work/src"
	[ "$REPLY" = whole ] || fail_tree 0 "$REPLY" "$3, then with room"
}

# try FS OPTIONS new|old KIB
try() {
	local what="$2 on $1, $3 destination, $4 KiB left" status before lost
	empty "$1"
	if [ "$3" = old ]; then
		mkdir -p "$dir/dst/0/0"
		echo old >"$dir/dst/0/0/0"
		echo old >"$dir/dst/0/0/15"
	fi
	fill "$1" "$4"
	free "$1"
	before=$REPLY
	# shellcheck disable=SC2086 # options are words
	timed "$FCOPY" $2 -T "$work/src" "$dir/dst" 2>"$work/err"
	status=$?
	tried=$((tried + 1))
	state_of_tree "$dir/dst" "$work/src"
	case $status:$3:$REPLY in
	0:new:whole) whole=$((whole + 1)) ;;
	0:old:whole) ;;
	1:new:absent) refused=$((refused + 1)) ;;
	1:old:*) check_files "$what" ;;
	124:* | 1[3-9]?:*) fail_status $status "$what" ;;
	*) fail_tree $status "$REPLY" "$what" ;;
	esac
	if [ $status = 1 ] && ! grep -qE 'No space left|quota exceeded' "$work/err"; then
		fail other "$what: $(head -n 3 "$work/err")"
	fi
	if [[ $status:$2 =~ ^1:.*--(mirror|resume) ]]; then
		again "$1" "$2" "$what"
		status=0
	elif [ $status = 1 ] && grep -q ': rename: ' "$work/err"; then # the whole tree is kept
		again "$1" "$2 --resume" "$what"
		status=0
	fi
	[ -z "$(find "$dir" -name '.fcopy-*' -o -name '*.fcopy-part')" ] || fail other "$what: something was left"
	[ "$3" = new ] && [ $status = 1 ] || return
	# The file systems' own trees may have grown by some blocks.
	! is_lost "$1" "$before" 256 || fail other "$what: $lost KiB lost"
}

for fs in ext4 xfs btrfs quota tmpfs; do
	mount_disk $fs || {
		left_out $fs "no mount"
		continue
	}
	whole=0
	refused=0
	for option in "${options[@]}"; do
		for ((kib = 0; kib < 8000; kib += step)); do
			try $fs "$option" new $kib
		done
		try $fs "$option" new 12000
		[[ $option != *--resume* ]] || continue # it merges into no directory
		for ((kib = 0; kib < 8000; kib += 4 * step)); do
			try $fs "$option" old $kib
		done
	done
	echo "$name: $fs: $whole trees were whole, $refused were refused"
	if [ $whole = 0 ] || [ $refused = 0 ]; then
		fail other "$fs: the disk was always, or never, full"
	fi
	umount "$disk"
done
finish
