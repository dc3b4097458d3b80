#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Holes, clones, preallocation and the page cache, as far as they can be seen from outside.

load helper

allocated() {
	echo $(($(stat -c %b "$1") * 512))
}

# 1 MiB of data, 30 MiB of hole, 1 MiB of data, 8 MiB of hole.
make_sparse() {
	rm -f a
	random part 1048576
	truncate -s 40M a
	dd if=part of=a bs=1M conv=notrunc status=none
	dd if=part of=a bs=1M seek=31 conv=notrunc status=none
	sync a
	[ "$(allocated a)" -lt 4000000 ] || skip "no holes on this file system"
}

@test "auto keeps holes, also at the end, over nothing, an old file, and in place" {
	make_sparse
	local size
	size=$(allocated a)
	expect 0 a new
	echo old >old
	expect 0 a old
	random inplace 45000000
	expect 0 --inplace a inplace
	local b
	for b in new old inplace; do
		cmp a $b
		sync $b
		[ "$(allocated $b)" -le $((size + 65536)) ] || { echo "$b: $(allocated $b)"; return 1; }
	done
}

@test "auto reads only the data of a sparse file" {
	need_strace
	make_sparse
	traced 0 trace=pread64,preadv2,read,sendfile,splice,copy_file_range --reflink=never a b
	local n
	n=$(grep "<$T/a>" trace | sed -n 's/.* = \([0-9]*\)$/\1/p' | awk '{ n += $1 } END { print n }')
	[ "$n" -le 2200000 ] || { echo "$n bytes were read"; return 1; }
	[ "$n" -ge 2097152 ]
}

@test "a huge file of nothing takes no time and no space" {
	truncate -s 1T a 2>/dev/null || skip "no file of 1 TiB here"
	SECONDS=0
	expect 0 a b
	[ $SECONDS -lt 60 ]
	[ "$(stat -c %s b)" = 1099511627776 ]
	[ "$(allocated b)" -le 65536 ]
}

@test "--sparse=never writes every byte" {
	make_sparse
	expect 0 --sparse=never a b
	cmp a b
	sync b
	[ "$(allocated b)" -ge 41943040 ]
	truncate -s 30000 a
	expect 0 --sparse=never a b
	cmp a b
}

@test "--sparse=always makes holes of zeros" {
	head -c 10M /dev/zero >a
	random part 1048576
	cat part >>a
	head -c 5M /dev/zero >>a
	expect 0 --sparse=always a b
	cmp a b
	sync b
	[ "$(allocated b)" -le $((1048576 + 262144)) ] || { allocated b; return 1; }
	# What the source has of holes stays.
	make_sparse
	expect 0 --sparse=always a b
	cmp a b
	[ "$(allocated b)" -le 4000000 ]
}

@test "--sparse=always: a small file, one of zeros only, an odd length, in place" {
	local size
	for size in 1 4095 4096 12289 65536 100001; do
		head -c $size /dev/zero >a
		expect 0 --sparse=always a b
		cmp a b
		printf end >>a
		expect 0 --sparse=always a b
		cmp a b
	done
	random c 200000
	expect 0 --sparse=always --inplace a c
	cmp a c
}

@test "--sparse=always: from a pipe" {
	{ head -c 3M /dev/zero; echo end; } >a
	# shellcheck disable=SC2002
	cat a | "$FCOPY" --sparse=always - b
	cmp a b
	sync b
	[ "$(allocated b)" -le 262144 ] || { allocated b; return 1; }
}

@test "in place: old bytes never show through a hole" {
	make_sparse
	random b 41000000
	expect 0 --inplace a b
	cmp a b
	random c 41000000
	expect 0 --inplace --sparse=never a c
	cmp a c
	need_strace
	random d 41000000
	traced 0 inject=fallocate:error=EOPNOTSUPP --inplace a d
	injected
	cmp a d
}

@test "unwritten extents stay allocated and are not written" {
	need fallocate
	need_strace
	fallocate -l 20M a 2>/dev/null || skip "no fallocate here"
	random part 1000
	dd if=part of=a bs=1000 conv=notrunc status=none
	sync a
	traced 0 trace=pwrite64,write,splice,copy_file_range,sendfile --reflink=never a b
	cmp a b
	[ "$(stat -c %s b)" = 20971520 ]
	[ "$(allocated b)" -ge 20000000 ]
	# For tmpfs, unwritten extents are data: lseek(2) finds no hole, and FIEMAP is unknown.
	[ "$(stat -f -c %T .)" != tmpfs ] || return 0
	[ "$(calls 'pwrite64|write|splice|copy_file_range|sendfile')" -le 4 ] || { cat trace; return 1; }
}

@test "nothing stays allocated past the end" {
	need fallocate
	random a 1000000
	fallocate --keep-size -l 30M a 2>/dev/null || skip "no fallocate here"
	local mode
	for mode in auto direct parallel; do
		has_mode $mode || { reports "no $mode here"; continue; }
		expect 0 a b $mode
		cmp a b
		[ "$(allocated b)" -le 1100000 ] || { echo "$mode: $(allocated b)"; return 1; }
	done
}

@test "--preallocate: a new file by default, one that replaces another only with --fsync" {
	need_strace
	on_disk "auto allocates no blocks of a tmpfs"
	random a 20000000
	local mode n
	for mode in auto parallel; do
		rm -f b
		while read -r n arguments; do
			# shellcheck disable=SC2086
			traced 0 trace=fallocate -m $mode $arguments a b
			[ "$(calls fallocate)" -ge 1 ] || [ "$n" = 0 ]
			[ "$(calls fallocate)" = 0 ] || [ "$n" != 0 ]
			cmp a b
		done <<-'TABLE'
			1
			0
			1 --fsync
			1 --preallocate=always
			0 --fsync --preallocate=never
		TABLE
	done
}

@test "--preallocate=always of what has no blocks, or from what has no size: refused" {
	echo data >a
	expect 2 --preallocate=always a /dev/null
	says "fcopy: /dev/null: has no blocks to allocate"
	run --separate-stderr bash -c '"$0" --preallocate=always a - >b' "$FCOPY"
	demand 2
	says "fcopy: -: has no blocks to allocate"
	rm b
	run --separate-stderr bash -c 'cat a | "$0" --preallocate=always - b' "$FCOPY"
	demand 2
	says "fcopy: -: has no known size to allocate"
	absent b
}

@test "--preallocate=always of a file of any size" {
	need_strace
	echo data >a
	traced 0 trace=fallocate --preallocate=always a b
	[ "$(grep -c "fallocate(.*, FALLOC_FL_KEEP_SIZE, 0, 5)" trace)" = 1 ]
	cmp a b
}

@test "--preallocate=always where it cannot be: exit 1, and why" {
	need_strace
	random a 3000000
	traced 1 inject=fallocate:error=EOPNOTSUPP --preallocate=always a b readwrite
	mentions "fallocate: " "ot supported" # musl words it differently
	absent b
	traced 0 inject=fallocate:error=EOPNOTSUPP a c parallel
	cmp a c
	rm c
	traced 1 inject=fallocate:error=ENOSPC a c parallel
	mentions "fallocate: No space left on device"
	absent c
}

@test "--reflink: always clones or fails, never writes, auto tries" {
	need_strace
	random a 3000000
	traced 1 inject=ioctl:error=EOPNOTSUPP --reflink=always a b
	mentions "FICLONE"
	# It was auto that was asked.
	never grep -q "without a MODE" <<<"$stderr"
	absent b
	expect 2 --reflink=always a -
	says "fcopy: -: only a file can be cloned"
	traced 1 inject=ioctl:error=EOPNOTSUPP --reflink a b
	traced 0 trace=ioctl,copy_file_range --reflink=never a b
	never grep -q 'FICLONE\|copy_file_range' trace
	traced 0 trace=ioctl --sparse=always a c
	never grep -q 'FICLONE' trace
	traced 0 trace=ioctl --sparse=never a c
	never grep -q 'FICLONE' trace
	traced 0 trace=ioctl --reflink=auto a d
	grep -q 'FICLONE' trace
}

# make_image FS: the file FS.img, to be mounted at m. Fails if that cannot be made here.
make_image() {
	type mkfs.$1 >/dev/null 2>&1 || return 1
	truncate -s 400M $1.img
	mkfs.$1 -q $1.img
	mkdir -p m
}

@test "on btrfs and xfs: a clone shares its extents, --reflink=never does not" {
	need_root "to mount"
	need filefrag
	need_strace
	local fs tried=
	export FCOPY fs
	for fs in btrfs xfs; do
		make_image $fs || continue
		private_mounts 'mount -o loop $fs.img m || exit 77
			cd m && head -c 3000000 /dev/urandom >a && sync
			"$FCOPY" a auto
			strace -f -y -qq -o trace -e trace=pwrite64,write,copy_file_range "$FCOPY" a eight 8
			if grep -qv "\.gcda" trace; then exit 9; fi; "$FCOPY" --reflink a always
			"$FCOPY" --reflink=never a never; "$FCOPY" a rw readwrite; sync .
			for f in auto eight always never rw; do
				cmp a $f; filefrag -v $f | grep -q shared && echo $f shared || echo $f own
			done'
		[ "$status" != 77 ] || continue
		tried=yes
		demand 0
		[ "$(paste -sd' ' <<<"$output")" = \
			"auto shared eight shared always shared never own rw own" ] ||
			{ echo "$fs: $output"; return 1; }
		rm $fs.img
	done
	[ "$tried" ] || skip "neither can be made and mounted here"
}

@test "on btrfs and xfs: --inplace clones over a longer file; a refused clone leaves it whole" {
	need_root "to mount"
	need filefrag
	local fs tried=
	export FCOPY fs
	for fs in btrfs xfs; do
		make_image $fs || continue
		# shellcheck disable=SC2016
		private_mounts 'mount -o loop $fs.img m || exit 77
			cd m && random() { head -c "$2" /dev/urandom >$1; }
			for size in 6 4095 70001; do
				random a $size
				for how in --reflink -m8 --reflink=auto; do
					random b 3000000
					"$FCOPY" --inplace $how a b || exit 9
					cmp a b || exit 8
					[ $size = 70001 ] || continue
					sync . && filefrag -v b | grep -q shared || exit 7
				done
				# btrfs clones no file without checksums into one with them.
				[ $fs = btrfs ] || continue
				rm -f bare; touch bare; chattr +C bare; cat a >bare; random b 3000000; cp b old
				! "$FCOPY" --inplace --reflink bare b || exit 6
				! "$FCOPY" --inplace -m8 bare b || exit 5
				cmp b old || exit 4
				"$FCOPY" --inplace --reflink=auto bare b || exit 3
				cmp a b || exit 2
			done'
		[ "$status" != 77 ] || continue
		tried=yes
		demand 0
		rm $fs.img
	done
	[ "$tried" ] || skip "neither can be made and mounted here"
}

@test "on tmpfs and btrfs auto does not try threads: they save too little" {
	need_root "to mount"
	need mkfs.btrfs
	truncate -s 300M btrfs.img
	mkfs.btrfs -q btrfs.img
	mkdir -p m
	local mount
	export FCOPY
	for mount in "-t tmpfs tmpfs" "-o loop btrfs.img"; do
		private_mounts "mount $mount m || exit 77
			cd m && head -c 40000000 /dev/urandom >a
			\"\$FCOPY\" -vv --reflink=never a b && cmp a b"
		[ "$status" != 77 ] || skip "no $mount here"
		demand 0
		grep -qx 'fcopy: plan: splice: threads would save too little here' <<<"$stderr"
		never grep -q 'in threads' <<<"$stderr"
	done
}

@test "--sparse=always to what cannot have holes: refused" {
	echo data >a
	run --separate-stderr bash -c '"$0" --sparse=always a - >b' "$FCOPY"
	demand 2
	says "fcopy: -: cannot get holes: it is a stream"
	expect 2 --sparse=always a tcp:127.0.0.1:1
	says "fcopy: --sparse: cannot be used if DST is a socket"
}

@test "--preallocate=always gives every block of a file with holes" {
	truncate -s 8M a
	for at in 1 5; do
		head -c 1M /dev/urandom | dd of=a bs=1M seek=$at conv=notrunc status=none
	done
	[ "$(stat -c %b a)" -lt 16384 ] || skip "no holes here"
	expect 0 --preallocate=always a b
	cmp a b
	[ "$(stat -c %b b)" -ge 16384 ]
}
