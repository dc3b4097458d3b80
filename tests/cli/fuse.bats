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

# fails OPTIONS RULE…: the rule that names an errno makes each mode fail; the old DST stays.
fails() {
	# shellcheck disable=SC2016
	RULES="${*:2}" by_fuse "$1" '. ./lib
		for rule in $RULES; do fault "$rule"; done
		for mode in auto $MODES; do
			copy $mode m/a b
			[ $s = 1 ] && [ -s err ] || broken "$mode, $RULES"
			cmp -s old b || broken "$mode, $RULES: DST changed"
			case $mode in auto | readwrite | parallel) [ $seen ] || broken "$mode: no fault" ;; esac
		done'
}

@test "a read that fails at an offset fails the copy in every mode, whatever the errno; DST stays" {
	prepare
	local errno
	for errno in EPERM EIO EINVAL EACCES ENOSYS EOPNOTSUPP ENOENT ENXIO ESTALE ETIMEDOUT; do
		fails rw read:$errno:600000
		fails direct_io read:$errno:600000
	done
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

@test "a short read and then an error: no mode takes the error for the end of the file" {
	prepare
	fails fault=read:short=5000 read:EPERM:5000
	fails fault=read:short=5000 read:EIO:5000
}

@test "EAGAIN of a regular file: every mode retries or fails, and none spins" {
	prepare
	# shellcheck disable=SC2016
	by_fuse fault=read:EAGAIN:600000 '. ./lib
		for mode in auto $MODES; do
			copy $mode m/a b
			[ $s = 1 ] && [ -s err ] || broken "$mode"
			cmp -s old b || broken "$mode: DST changed"
			[ "$(faults)" -lt 1000 ] || broken "$mode: $(faults) reads"
		done'
}

@test "slow reads: SIGTERM ends the copy soon, in every mode" {
	prepare
	# A whole copy takes 0.6 s or more: direct has all reads in flight at once.
	# shellcheck disable=SC2016
	by_fuse direct_io,fault=read:delay=600 '. ./lib
		for mode in auto $MODES; do
			cp old b
			s=0
			timeout -k 20 0.3 "$FCOPY" m/a b $mode 2>err || s=$?
			case $s in
			124 | 1) cmp -s old b || broken "$mode: DST changed" ;;
			*) broken "$mode" ;;
			esac
			[ $s != 1 ] || [ $mode != auto ] || broken auto
			[ -z "$(find . -name ".fcopy-*")" ] || broken "$mode: a temporary file is left"
		done'
}

@test "--benchmark does not count the removal of its scratch files" {
	need jq
	prepare
	by_fuse fault=unlink:delay=1000 '"$FCOPY" --benchmark --runs=1 --json m/a m/b 2>err >own.json || { cat err; exit 1; }
		getfattr --only-values -n user.faults m >faults'
	[ "$(cat faults)" -ge "$MODE_COUNT" ] || { echo "$(cat faults) removals were delayed"; return 1; }
	# A copy itself removes one file: that which finds out whether modes are stored here.
	jq -e '[.modes[].runs[].real | select(. >= 1.9)] == []' own.json || { cat own.json; return 1; }
}

@test "--resume --fsync of a tree: files of the first run are flushed, or copied again if that fails" {
	need_strace
	mkdir -p backing s/d
	echo 1 >s/1
	echo 2 >s/d/2
	echo 3 >s/d/3
	chmod 444 s/d/3
	# shellcheck disable=SC2016
	by_fuse rw 'part() {
			ln -s nowhere s/dangling
			! "$FCOPY" -rL s m/d 2>err && [ -e backing/d.fcopy-part ] || exit 1
			rm s/dangling
		}
		part
		strace -f -y -qq -o trace -e trace=fsync,fdatasync "$FCOPY" -rL --resume --fsync --stats s m/d 2>err
		for f in 1 d/2 d/3; do
			grep -qE "sync\(.*/m/d.fcopy-part/data/$f>" trace || { echo "$f is not flushed"; cat trace; exit 1; }
		done
		grep -q "reused  *[23]" err || { cat err; exit 1; }
		diff -r s backing/d
		rm -r backing/d
		part
		setfattr -n user.fault -v fsync:EIO:0:1 m
		"$FCOPY" -rL -j1 --resume --fsync --stats s m/d 2>err
		grep -q "reused  *[12]" err || { cat err; exit 1; }
		[ "$(getfattr --only-values -n user.faults m)" = 1 ]
		diff -r s backing/d
		ln -s nowhere l
		strace -f -y -qq -o trace -e trace=fsync,syncfs "$FCOPY" -P --fsync l m/l
		[ "$(sed "s/.* \([a-z]*\)(.*>).*/\1/" trace)" = fsync ] || { cat trace; exit 1; }'
}

@test "--resume: a flush that fails while the copy goes on is its failure; the next run mends it" {
	need_strace
	mkdir backing s
	random s/a 70000000
	random s/b 300000
	sleep 2.1 # an edit just before the copy could be repeated without a change of the times
	# shellcheck disable=SC2016
	by_fuse rw 'strace -f -qq -o trace -P "$PWD/m/a.fcopy-part/data" -e inject=fdatasync:error=EIO:when=1 \
			"$FCOPY" --resume --limit-rate=12M s/a m/a 2>err && exit 1
		grep -q "m/a: fdatasync: Input/output error" err || { cat err; exit 1; }
		[ -e backing/a.fcopy-part ]
		[ ! -e backing/a ]
		printf lost | dd of=backing/a.fcopy-part/data bs=1 seek=1000000 conv=notrunc status=none
		"$FCOPY" --resume s/a m/a
		cmp s/a backing/a
		strace -f -qq -o trace -P "$PWD/m/b.fcopy-part/data" -e inject=fdatasync:error=EIO:when=1 \
			"$FCOPY" --resume --fsync s/b m/b 2>err && exit 1
		grep -q "m/b: fdatasync: Input/output error" err || { cat err; exit 1; }
		printf lost | dd of=backing/b.fcopy-part/data bs=1 seek=100000 conv=notrunc status=none
		"$FCOPY" --resume --fsync s/b m/b
		cmp s/b backing/b'
}

@test "a temporary file or symlink that cannot be removed after a failure is named" {
	need_strace
	mkdir backing
	random a 100000
	ln -s x l
	# shellcheck disable=SC2016
	by_fuse rw 'ln -s y m/l
		deny=(strace -f -qq -o trace -e inject=unlinkat:error=EACCES -e)
		named() { grep -qx "fcopy: warning: .*/m/$1: remove: Permission denied" err || { cat err; exit 1; }; }
		"${deny[@]}" inject=fdatasync,fsync:error=EIO "$FCOPY" --fsync a m/a 2>err && exit 1
		named "$(find backing -size +90k -printf %f)"
		"${deny[@]}" inject=renameat,renameat2:error=EIO "$FCOPY" -P -f l m/l 2>err && exit 1
		named "$(find backing -name ".fcopy-*" -type l -printf %f)"
		rm -r backing/.fcopy-*'
}

@test "--fsync of a merge: FUSE mounted below DST has each of its directories flushed" {
	need_strace
	mkdir -p backing s/sub/{1,2}/3 d/sub
	ln -s nowhere s/sub/1/3/l
	# shellcheck disable=SC2016
	by_fuse rw 'mount --bind m d/sub
		strace -f -y -qq -o trace -e trace=fsync,syncfs "$FCOPY" -r -j1 --fsync s/. d
		sed "s/.* \([a-z]*\)([0-9]*<\(.*\)>).*/\1 \2/; s|$PWD/||" trace | sort >flushed
		umount d/sub'
	holds "$(printf "fsync d%s\n" "" /sub /sub/1 /sub/1/3 /sub/2 /sub/2/3; echo syncfs d)" flushed
}

@test "a file system without symlinks or FIFOs, as exFAT: the message says so" {
	mkdir -p backing s
	ln -s x s/link
	mkfifo s/fifo
	by_fuse 'fault=symlink:EPERM,fault=mknod:EPERM' '
		"$FCOPY" -P s/link m/link 2>err && exit 1
		grep -q "symlink: symbolic links are unsupported there; -L copies what they lead to" err || { cat err; exit 1; }
		"$FCOPY" -r s/fifo m/fifo 2>err && exit 1
		grep -q "mknod: such special files are unsupported there" err || { cat err; exit 1; }'
}

@test "the write-back cache of FUSE: a failed write is the copy's, not an attribute's; DST stays" {
	need setfattr
	local errno
	mkdir -p backing s/t
	random s/t/f 1000003
	touch -d 2001-01-01 s/t/f
	chmod 640 s/t/f
	for errno in ENOSPC EIO EDQUOT; do
		# shellcheck disable=SC2016
		by_fuse writeback,fault=write:$errno:600000 '
			broken() { echo "$*: $(cat err)"; exit 1; }
			old() { rm -rf m/*; mkdir m/t; echo old >m/t/f; chmod 600 m/t/f; }
			for how in "" -p --preserve=timestamps --preserve=ownership -m1 -m3 -m7 --sparse=always \
				--preallocate=always --fsync --verify -b -f; do
				rm -rf m/*
				! "$FCOPY" $how s/t/f m/new 2>err || broken "new, $how"
				[ ! -e m/new ] || broken "new is there, $how"
				old
				! "$FCOPY" $how s/t/f m/t/f 2>err || broken "old, $how"
				[ "$(cat m/t/f; ls m/t)" = "old
f" ] || broken "old is changed, $how"
				grep -qi "space left\|Input/output\|I/O error\|quota" err || broken "message, $how"
			done
			old
			! "$FCOPY" --resume s/t/f m/t/f 2>err || broken resume
			[ "$(cat m/t/f)" = old ] || broken "resume: changed"
			for how in -r -a -rp "-a --inplace" "-r --preserve=mode"; do
				rm -rf m/*
				! "$FCOPY" $how s m/new 2>err || broken "tree, $how"
				[ ! -e m/new ] || broken "tree is there, $how"
				old
				! "$FCOPY" $how -T s/t m/t 2>err || broken "merge, $how"
				[ "${how%inplace}" != "$how" ] || [ "$(cat m/t/f)" = old ] || broken "merge: changed, $how"
			done
			old
			! "$FCOPY" --inplace -p s/t/f m/t/f 2>err || broken inplace
			! "$FCOPY" --mirror s/t m/t 2>err || broken mirror
			! "$FCOPY" -p --parents s/t/f m 2>err || broken parents
			rm -rf m/*'
		rm -rf backing/*
	done
	# Without a failure each attribute is kept.
	# shellcheck disable=SC2016
	by_fuse writeback '"$FCOPY" -p s/t/f m/f
		cmp s/t/f m/f
		[ "$(stat -c "%a %Y" s/t/f)" = "$(stat -c "%a %Y" m/f)" ]'
}

@test "a lack of space, or an error of I/O, of a call that sets an attribute fails the copy; DST stays" {
	need setfattr
	mkdir -p backing/d s
	random s/f 5000
	echo old >backing/d/f
	# shellcheck disable=SC2016
	by_fuse rw 'for errno in EIO ENOSPC EDQUOT ESTALE; do
			setfattr -n user.fault -v utimens:$errno m
			for how in "-p s/f m/d/f" "-pf s/f m/d/f" "-aT s m/d" "-rpT s m/d"; do
				! "$FCOPY" $how 2>err || exit 1
				[ "$(cat m/d/f | tr -d "\0")" = old ] || exit 2
			done
		done'
}

# A server that links what it removes at close(2) says neither by linkat(2) nor by st_nlink that the file will not last.
@test "an unnamed file that gets its name, and vanishes when it is closed: the copy has a name from the start" {
	need python3
	[ -c /dev/fuse ] || skip "no /dev/fuse"
	export FCOPY TOOLS=$BATS_TEST_DIRNAME/../tools
	mkdir -p m s/d
	random a 300000
	cp a s/f
	cp a s/d/f
	# shellcheck disable=SC2016
	private_mounts 'python3 "$TOOLS/vanishing.py" m </dev/null >/dev/null 2>err || exit 9
		trap "umount m" EXIT
		wrong() { echo "$*"; ls -lR m; exit 1; }
		python3 -c "import os
fd = os.open(\"m\", os.O_TMPFILE | os.O_RDWR, 0o644)
os.link(f\"/proc/self/fd/{fd}\", \"m/x\", src_dir_fd=fd, follow_symlinks=True)
assert os.fstat(fd).st_nlink == 1 and os.listdir(\"m\") == [\"x\"]
os.close(fd)
assert os.listdir(\"m\") == []" || wrong "the file system keeps the file"
		for o in "" "--fsync --verify" -n -b -p --update "--resume"; do
			rm -f m/b*
			"$FCOPY" $o a m/b && cmp a m/b || wrong "a new file, $o"
			[ "$o" != -n ] || continue
			echo old >m/b
			touch -d "2001-01-01" m/b
			"$FCOPY" $o a m/b && cmp a m/b || wrong "an old file, $o"
			[ "$o" != -b ] || grep -qx old m/b~ || wrong "no backup"
		done
		for o in -r "-r --fsync --verify" -a "-r --inplace" --mirror; do
			rm -rf m/t
			mkdir m/t
			echo old >m/t/f
			"$FCOPY" -T $o s m/t && diff -r s m/t || wrong "a merge, $o"
		done
		"$FCOPY" -r s m/new && diff -r s m/new || wrong "a new tree"
		! find m -name "*fcopy*" | grep . || wrong "something is left"'
	[ "$status" != 9 ] || skip "FUSE does not mount"
	demand 0
}
