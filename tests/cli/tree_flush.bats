#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --fsync of a tree on a disk or a server that fails.

load helper
load tree

@test "a destination that gives EIO on write, or when it is flushed: nothing is committed" {
	local rule cache
	make_small s
	mkdir backing
	for rule in write:EIO write:EIO:50000 fsync:EIO fsync:EIO:0:1 flush:EIO create:EIO; do
		for cache in writeback rw; do
			rm -rf backing/*
			# shellcheck disable=SC2016
			RULE=$rule by_fuse $cache 'setfattr -n user.fault -v $RULE m
				s=0
				"$FCOPY" -r --fsync s m/d 2>err || s=$?
				seen=$(getfattr --only-values -n user.faults m)
				setfattr -n user.fault -v ${RULE%%:*}:0 m
				[ $seen != 0 ] && [ $s = 1 ] && [ ! -e m/d ] ||
					{ echo "$RULE: $seen faults, status $s"; cat err; exit 1; }
				grep -qE "(Input/output|I/O) error" err
				"$FCOPY" -r --fsync --resume s m/d
				diff -r s m/d'
		done
	done
}

@test "--fsync on FUSE: every file and directory is flushed, since syncfs(2) does not reach the server" {
	local rule
	need_strace
	make_small s
	ln -s x s/d1/link
	for rule in rw fault=statfs:EINVAL; do # the second one hides that it is FUSE
		rm -rf backing
		mkdir backing
		# shellcheck disable=SC2016
		by_fuse $rule 'strace -f -y -qq -o trace -e trace=fsync,fdatasync,syncfs "$FCOPY" -r --fsync s m/d
			[ "$(grep -c "fdatasync(" trace)" = 20 ] || { cat trace; exit 1; }
			[ "$(grep -cE "\<fsync\(.*/d[0-3]>" trace)" = 4 ] || { cat trace; exit 1; }
			grep -qE "\<fsync\(.*/m>" trace
			strace -f -qq -o trace -e trace=fsync,fdatasync,syncfs "$FCOPY" -r s m/e
			[ ! -s trace ]'
	done
}

@test "shards on FUSE: the range of a large file is flushed before its marker, its attributes at the end" {
	need_strace
	mkdir s backing
	truncate -s 257M s/large
	# shellcheck disable=SC2016
	by_fuse rw 'strace -f -y -qq -o trace -e trace=fsync,fdatasync,syncfs "$FCOPY" -a --shard=0/1 s m/d
		cmp s/large m/d/large
		# Its three ranges may end at once.
		[ "$(grep -cE "sync\(.*/large>" trace)" -ge 2 ] || { cat trace; exit 1; }'
}

@test "--fsync: a write error of the disk after the last close shows at syncfs, and is a failure" {
	need_root "to mount an image"
	need mkfs.ext4
	make_small s
	mkdir backing disk
	truncate -s 30M backing/image
	mkfs.ext4 -q -F -O ^has_journal backing/image
	# shellcheck disable=SC2016
	by_fuse rw 'mount -o loop m/image disk || exit 9
		"$FCOPY" -r --fsync s disk/good
		setfattr -n user.fault -v write:EIO m
		# It is unknown which files lost data: --resume must not take them for complete.
		for option in -r -a -rp; do
			s=0
			"$FCOPY" $option --fsync s disk/bad 2>err || s=$?
			cat err
			[ $s = 1 ] || { echo "status $s"; exit 1; }
			grep -qE "disk/bad: syncfs: (Input/output|I/O) error" err
			[ "$(ls disk | grep -v lost+found)" = good ] || { ls disk; exit 1; }
		done
		setfattr -n user.fault -v write:0 m
		diff -r s disk/good
		umount disk'
}

@test "--fsync --resume: a new tree that cannot be flushed is removed, because nobody knows what was lost" {
	need_strace
	make_small s
	traced 1 inject=syncfs:error=EIO -r --resume --fsync s d
	injected
	absent d
	absent d.fcopy-part
}

# The disk below ./disk loses 30 writes of data, but none of metadata.
LOSES_DATA=write:EIO:60000000:30

make_losing_disk() {
	local n
	need_root "to mount an image"
	need mkfs.ext4
	mkdir s backing disk
	for n in {1..8}; do
		random "s/$n" 12M
	done
	truncate -s 500M backing/image
	mkfs.ext4 -q -F -O ^has_journal backing/image
	export LOSES_DATA
}

@test "--fsync on overlayfs: a write error of the disk below fails the copy, also with --shard" {
	make_losing_disk
	# shellcheck disable=SC2016
	by_fuse rw 'mount -o loop m/image disk || exit 9
		mkdir disk/upper disk/work low merged
		mount -t overlay -o lowerdir=low,upperdir=disk/upper,workdir=disk/work o merged || exit 9
		sync
		for option in -r --shard=0/1; do
			setfattr -n user.fault -v "$LOSES_DATA" m
			s=0
			"$FCOPY" -r --fsync $option s merged/d 2>err || s=$?
			cat err
			[ $s = 1 ] && [ ! -e merged/d ] || { echo "$option: status $s"; exit 1; }
			grep -qE "(Input/output|I/O) error" err
			setfattr -n user.fault -v write:0 m
			rm -rf merged/*
		done
		umount merged disk'
}

@test "--fsync --resume: what the disk has lost after a failed copy is copied again" {
	make_losing_disk
	ln -s nowhere s/bad
	# shellcheck disable=SC2016
	by_fuse rw 'mount -o loop m/image disk || exit 9
		setfattr -n user.fault -v "$LOSES_DATA" m
		s=0
		"$FCOPY" -aL --fsync s disk/d || s=$?
		[ $s = 1 ] && [ -e disk/d.fcopy-part/data/8 ] || { echo "status $s"; exit 1; }
		sync -f disk || true
		setfattr -n user.fault -v write:0 m
		ln -sf 8 s/bad
		# Another file of the disk may report the old error once more.
		"$FCOPY" -aL --fsync --resume s disk/d || "$FCOPY" -aL --fsync --resume s disk/d
		umount disk
		mount -o loop m/image disk
		diff -r s disk/d
		umount disk'
}
