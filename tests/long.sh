#!/bin/bash
# SPDX-License-Identifier: MIT
#
# long.sh: the proofs of tests/long, one after the other, and a whole file of 5 GiB by each mode.
# Ends with the line N passed, N failed, N skipped. FCOPY names another program.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
export FCOPY=${FCOPY:-$root/fcopy} FCOPY_BUILD=${FCOPY_BUILD:-$root/build}
passed=0 failed=0 skipped=0

book() {
	case $2 in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*)
		failed=$((failed + 1))
		echo "long: not ok: $1: status $2"
		;;
	esac
}

# Data at both ends and around 2 and 4 GiB, holes between: the length is what is tried, not the disk.
make_source() {
	local at
	for at in 0 2047 4095 5119; do
		dd if=/dev/urandom of="$1" bs=1M count=1 seek=$at conv=notrunc status=none || return 1
	done
	printf x >>"$1"
}

copy_whole_files() {
	local dir mode
	dir=$(mktemp -d "$FCOPY_BUILD/whole.XXXXXX") || return 1
	trap 'rm -rf "$dir"' EXIT
	make_source "$dir/src" || return 1
	while read -r mode; do
		if ! "$FCOPY" -m "$mode" "$dir/src" "$dir/dst" 2>"$dir/err"; then
			echo "long: 5 GiB by mode $mode: $(head -n 1 "$dir/err")"
			grep -q hint "$dir/err" # refused by the file system: auto is offered
			book "5 GiB by mode $mode" $(($? == 0 ? 77 : 1))
			continue
		fi
		cmp "$dir/src" "$dir/dst"
		book "5 GiB by mode $mode" $?
		rm -f "$dir/dst"
	done < <("$FCOPY" --list | awk '$1 ~ /^[0-9]+$/ && !/not here:/ { print $1 }')
}

for proof in "$root"/tests/long/*.sh; do
	if [ -x "$proof" ] && [ "${proof##*/}" != lib.sh ]; then
		"$proof"
		book "${proof##*/}" $?
	fi
done
copy_whole_files || book "5 GiB" 1
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed != 0 ]
