#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A FUSE file system that fails, shortens and delays by rule (tests/tools/faultfs.c), in every mode.

load helper

prepare() {
	need setfattr getfattr
	mkdir backing
	random backing/a 1000003
	echo "old and whole" >old
	# Run inside the mount namespace, where functions of this file are unknown.
	cat >lib <<-'END'
		fault() { setfattr -n user.fault -v "$1" m; }
		faults() { getfattr --only-values -n user.faults m; }
		# copy MODE SRC DST: over an old DST; sets s, and seen if a rule was applied.
		copy() {
			local before
			before=$(faults)
			s=0 seen=
			cp old "$3"
			timeout -s KILL 20 "$FCOPY" "$2" "$3" "$1" 2>err || s=$?
			[ "$(faults)" = "$before" ] || seen=yes
		}
		broken() { echo "$*: status $s: $(cat err)"; exit 1; }
	END
}

@test "a write that fails at an offset fails the copy in every mode, whatever the errno; DST stays" {
	prepare
	local errno
	cp backing/a a
	for errno in EPERM EIO EINVAL ENOSPC EDQUOT EFBIG ENOSYS EOPNOTSUPP; do
		# shellcheck disable=SC2016
		by_fuse fault=write:$errno:600000 '. ./lib
			for mode in auto $MODES; do
				copy $mode a m/b
				[ $s = 1 ] && [ -s err ] || broken "$mode, $0"
				cmp -s old m/b || broken "$mode: DST changed"
			done'
	done
}

@test "short reads without the page cache are no end of file, in any mode" {
	prepare
	# shellcheck disable=SC2016
	by_fuse fault=read:short=5000 '. ./lib
		for mode in auto $MODES; do
			copy $mode m/a b
			case $mode:$s in
			*:0) cmp m/a b || broken "$mode: bytes differ"; [ $seen ] || broken "$mode: no fault" ;;
			auto:* | readwrite:* | parallel:*) broken "$mode" ;;
			*:1) cmp -s old b || broken "$mode: DST changed" ;;
			*) broken "$mode" ;;
			esac
		done'
}

@test "short writes are continued, in every mode" {
	prepare
	cp backing/a a
	# shellcheck disable=SC2016
	by_fuse fault=write:short=5000 '. ./lib
		for mode in auto $MODES; do
			copy $mode a m/b
			case $mode:$s in
			*:0) cmp a m/b || broken "$mode: bytes differ"; [ $seen ] || broken "$mode: no fault" ;;
			auto:* | readwrite:* | parallel:*) broken "$mode" ;;
			*:1) cmp -s old m/b || broken "$mode: DST changed" ;;
			*) broken "$mode" ;;
			esac
		done'
}
