#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Destinations that cannot be replaced, and the kernel's own protections.

load helper

@test "a bind-mounted file: refused, and the message names --inplace, which works" {
	echo new >a
	echo old >b
	echo image >image
	export FCOPY
	private_mounts 'mount --bind image b; "$FCOPY" a b'
	demand 2
	says "fcopy: b: is a mount point and cannot be replaced" \
		"fcopy: hint: use --inplace=auto to overwrite it"
	holds image image
	private_mounts 'mount --bind image b; "$FCOPY" -f a b'
	demand 2
	mentions "--inplace"
	private_mounts 'mount --bind image b; "$FCOPY" --inplace a b'
	demand 0
	holds new image
	holds old b
}

@test "a read-only file system" {
	echo new >a
	mkdir m
	export FCOPY
	private_mounts 'mount -t tmpfs tmpfs m; echo old >m/b; mount -o remount,bind,ro m
		"$FCOPY" a m/b && exit 9; "$FCOPY" -f a m/b && exit 9; "$FCOPY" --inplace a m/b && exit 9
		"$FCOPY" a m/c && exit 9; cat m/b; ls m; exit 1'
	demand 1
	[ "$output" = $'old\nb' ]
	[ "$(grep -c 'Read-only file system' <<<"$stderr")" = 4 ] || { echo "$stderr"; return 1; }
	[[ $stderr != *hint* ]] || { echo "a hint that does not help: $stderr"; return 1; }
}

@test "a full disk: exit 1, the old file whole, the space given back; every mode" {
	random a 3000000
	mkdir m
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t tmpfs -o size=2m tmpfs m; echo old >m/b; free=$(stat -fc %f m)
		for mode in auto readwrite sendfile splice copy_file_range mmap parallel; do
			if "$FCOPY" a m/b $mode || "$FCOPY" a m/new $mode; then echo "$mode"; fi
			cat m/b
			[ "$(ls -A m)" = b ]
			[ "$(stat -fc %f m)" = "$free" ]
		done'
	demand 0
	[ "$(sort -u <<<"$output")" = old ] || { echo "$output"; return 1; }
	local full
	full=$(grep -c 'No space left on device' <<<"$stderr")
	[ "$full" -ge 12 ] || { echo "$stderr"; return 1; }
	[ "$(grep -cE '^fcopy: stopped (at|before) .*; m/(new not created|b unchanged)$' <<<"$stderr")" = "$full" ] || { echo "$stderr"; return 1; }
}

@test "a full disk with --shard: the hint names what stays, and the same command completes the copy" {
	random a 3000000
	mkdir m tree
	cp a tree/f
	export FCOPY
	# shellcheck disable=SC2016
	# Not by a remount: in a user namespace mount(8) takes an option of the first mount for a new one.
	private_mounts 'mount -t tmpfs -o size=10m tmpfs m
		head -c 8m /dev/zero >m/full
		if "$FCOPY" --shard=0/1 a m/b; then exit 9; fi
		rm m/full
		"$FCOPY" --shard=0/1 a m/b; cmp a m/b
		mount -t tmpfs -o size=10m tmpfs m
		head -c 8m /dev/zero >m/full
		if "$FCOPY" -r --shard=0/1 tree m/t; then exit 9; fi
		rm m/full
		"$FCOPY" -r --shard=0/1 tree m/t; cmp a m/t/f'
	demand 0
	local name
	for name in b t; do
		mentions "hint: run the same command again; to give up, remove m/$name.fcopy-part while no shard runs"
	done
	[ "$(grep -c 'No space left on device' <<<"$stderr")" = 2 ] || { echo "$stderr"; return 1; }
}

@test "across file systems: every mode that can" {
	random a 3000000
	mkdir m
	export FCOPY
	private_mounts 'mount -t tmpfs tmpfs m
		for mode in auto readwrite sendfile splice mmap parallel; do
			"$FCOPY" a m/b $mode; cmp a m/b; "$FCOPY" m/b c $mode; cmp a c; rm c
		done
		"$FCOPY" a m/c reflink && exit 9; exit 0'
	demand 0
	mentions "Invalid cross-device link" "auto"
}

@test "--inplace --preallocate=always on a full disk: what was allocated is given back" {
	need_root "to mount an image"
	need mkfs.ext4
	random a 30000000
	truncate -s 20M image
	mkfs.ext4 -q image
	mkdir m
	export FCOPY
	private_mounts 'mount -o loop image m || exit 77; echo old >m/b; sync -f m; free=$(stat -fc %f m)
		! "$FCOPY" --inplace --preallocate=always a m/b || exit 9
		sync -f m; echo "$(($(stat -fc %f m) - free))"'
	[ "$status" != 77 ] || skip "no loop device here"
	demand 0
	mentions "No space left on device"
	[ "${output#-}" -lt 100 ] || { echo "blocks lost: $output"; return 1; }
}

# tmpfs has no uncached I/O, and direct I/O of the data at 5 KiB is unaligned for it.
@test "--no-cache is refused before a hole is punched, wherever the data starts" {
	need_root "to mount an image"
	need mkfs.ext4
	truncate -s 20M image
	mkfs.ext4 -q -b 1024 image
	mkdir m t
	random data 100000
	head -c 300000 /dev/zero | tr '\0' x >want
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -o loop image m || exit 9
		mount -t tmpfs -o size=20M tmpfs t
		dd if=data of=m/a bs=1024 seek=5 conv=notrunc,sparse status=none
		cp want t/b
		! "$FCOPY" --inplace --no-cache m/a t/b || exit 8
		cmp want t/b
		umount m t'
	[ "$status" != 9 ] || skip "ext4 does not mount"
	demand 0
	mentions 'the page cache cannot be bypassed here'
}

# A server that does not know a file's size before it has read it reports 0, and read(2) returns the bytes.
@test "a file that is longer than its stat says: no mechanism takes its size for the end" {
	mkdir backing
	random backing/a 3000000
	# shellcheck disable=SC2016
	by_fuse sizeless '[ "$(stat -c %s m/a)" = 0 ]
		"$FCOPY" m/a auto
		"$FCOPY" - stdin <m/a
		"$FCOPY" m/a - | cat >stdout
		for mode in 2 3 4 5; do "$FCOPY" m/a $mode $mode || echo "refused $mode"; done'
	[ "$output" = $'refused 2\nrefused 3\nrefused 4\nrefused 5' ] || { echo "$output"; return 1; }
	cmp backing/a auto
	cmp backing/a stdin
	cmp backing/a stdout
	absent 2
}

@test "the same where nobody can seek: no byte is lost to a look at the end" {
	mkdir backing
	random backing/a 3000000
	# shellcheck disable=SC2016
	by_fuse sizeless,stream '"$FCOPY" - stdin <m/a
		"$FCOPY" - - <m/a | cat >stdout'
	cmp backing/a stdin
	cmp backing/a stdout
}

@test "--verify of a source that gives less than it is asked for" {
	mkdir backing
	random backing/a 3000000
	# shellcheck disable=SC2016
	by_fuse fault=read:short=1000 '"$FCOPY" --verify m/a b'
	cmp backing/a b
}

# io_uring repeats such a read at the old offset and reports success (Linux 6.18).
@test "short reads and writes of FUSE: every mode copies the right bytes or refuses" {
	mkdir backing
	random backing/a 3000000
	cp backing/a a
	local operation mode
	for operation in read write; do
		rm -f backing/b b
		# shellcheck disable=SC2016
		by_fuse "direct_io,fault=$operation:short=65536" 'for mode in auto $MODES; do
				if "$FCOPY" -f m/a b $mode; then cmp backing/a b; else [ $mode != auto ]; fi
				if "$FCOPY" -f a m/b $mode; then cmp a backing/b; else [ $mode != auto ]; fi
				if "$FCOPY" --inplace m/a b $mode; then cmp backing/a b; else [ $mode != auto ]; fi
			done
			if "$FCOPY" --no-cache -f m/a b; then exit 8; fi
			if "$FCOPY" -f m/a b direct; then exit 8; fi'
		mentions 'm/a: io_uring on FUSE: Operation not supported' 'the page cache cannot be bypassed'
	done
}

@test "a regular file that returns EAGAIN fails at once, as with cp, in every mode" {
	mkdir backing
	random backing/a 3000000
	local mode
	# shellcheck disable=SC2016
	by_fuse "direct_io,fault=read:EAGAIN:1000000" 'for mode in auto $MODES; do
			echo old >b
			! timeout -s KILL 10 "$FCOPY" m/a b $mode || exit 8
			[ "$(cat b)" = old ]
		done'
	mentions 'm/a: read: Resource temporarily unavailable' || mentions \
		'm/a: pread: Resource temporarily unavailable'
	never mentions Killed
}

@test "a read that is not permitted is no end: no mode replaces a file by a prefix" {
	mkdir backing
	random backing/a 3000000
	local mode
	# shellcheck disable=SC2016
	by_fuse "direct_io,fault=read:EPERM:1050000" 'for mode in auto $MODES; do
			echo old >b
			! "$FCOPY" m/a b $mode || exit 8
			[ "$(cat b)" = old ]
		done'
	mentions 'Operation not permitted'
}

# What could not be written is clean in the page cache, and the next fsync says that all is well.
@test "--resume --fsync after an error of the storage: what is there is read from there" {
	need setfattr
	mkdir backing
	random a 3000000
	# shellcheck disable=SC2016
	by_fuse writeback 'setfattr -n user.fault -v write:EIO:1000000 m
		"$FCOPY" --resume --fsync a m/b && exit 8
		setfattr -n user.fault -v write:0 m
		"$FCOPY" --resume --fsync a m/b || "$FCOPY" --resume --fsync a m/b'
	cmp a backing/b
}

# The server gives every file the mode 0777, and no other can be set.
@test "--resume where the file system stores no modes: made, interrupted, continued, replaced" {
	mkdir backing
	random a 3000000
	# shellcheck disable=SC2016
	by_fuse modeless '"$FCOPY" --resume a m/b
		cmp a m/b
		(ulimit -f 1000; "$FCOPY" --resume a m/c) && exit 8
		"$FCOPY" --resume a m/c
		cmp a m/c
		"$FCOPY" --resume a m/c
		"$FCOPY" --resume --limit-rate=300K a m/e &
		for i in {1..2000}; do
			[ "$(stat -c %s m/e.fcopy-part/data 2>/dev/null || echo 0)" -le 65536 ] || break
			sleep 0.01
		done
		kill -TERM $!
		if wait $!; then exit 7; fi
		"$FCOPY" --resume a m/e
		cmp a m/e
		"$FCOPY" a m/f
		ls m >names'
	[ "$(cat names)" = $'b\nc\ne\nf' ] || { cat names; return 1; }
	mentions "m/c: resuming at " "m/e: resuming at "
	never mentions "others"
}

@test "overlayfs: a file and its lower or upper file are the same, by any way in" {
	need_root "to mount an overlay"
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t tmpfs tmpfs "$PWD"; cd "$PWD"; mkdir lower upper work m
		head -c 10001 /dev/urandom >lower/a; cp lower/a lower/b; cp lower/a saved; chmod 644 lower/b
		chmod 4755 lower/a
		mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay m || exit 9
		chmod 600 m/b
		for how in --inplace "--inplace --no-cache" "--inplace -m6"; do
			"$FCOPY" $how m/a lower/a && exit 8
			"$FCOPY" $how m/b upper/b && exit 7
			"$FCOPY" $how upper/b m/b && exit 6
		done
		"$FCOPY" m/a - >>lower/a && exit 5
		cmp saved lower/a; cmp saved upper/b
		[ "$(stat -c %a lower/a)" = 4755 ] || exit 4
		cp -p lower/a lower/c
		"$FCOPY" --inplace m/a lower/c
		cmp saved lower/c'
	[ "$status" != 9 ] || skip "no overlay here"
	demand 0
	[ "$(grep -c 'are the same file' <<<"$stderr")" = 10 ] || { echo "$stderr"; return 1; }
}

@test "hugetlbfs has no write(2): neither auto nor --inplace is suggested" {
	need_root "to mount hugetlbfs"
	echo new >a
	mkdir m
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t hugetlbfs none m || exit 9
		for mode in auto readwrite sendfile splice; do "$FCOPY" a m/b $mode && exit 8; done
		touch m/b; chattr +a m 2>/dev/null || true
		"$FCOPY" a m/b || ls -A m'
	[ "$status" != 9 ] || skip "no hugetlbfs here"
	[ "$output" = b ]
	never mentions hint
}

# make_btrfs: the file image, to be mounted at m.
make_btrfs() {
	need_root "to mount an image"
	export FCOPY PATH=$PATH:/usr/sbin:/sbin
	need mkfs.btrfs btrfs
	truncate -s 120M image
	mkfs.btrfs -q image
	mkdir m
}

@test "a btrfs subvolume is no mount point: -x leaves it out with a warning, a mirror keeps it and says so" {
	make_btrfs
	# shellcheck disable=SC2016
	private_mounts 'mount -o loop image m || exit 9
		mkdir -p m/s/mnt m/d m/t; mount -t tmpfs tmpfs m/s/mnt
		btrfs -q subvolume create m/s/home; echo 1 >m/s/home/f; echo 1 >m/s/g
		"$FCOPY" -axv m/s new >listed 2>with || exit 8
		"$FCOPY" -ax m/s other 2>without || exit 7
		umount m/s/mnt; echo 2 >m/t/f
		btrfs -q subvolume create m/d/old; echo 2 >m/d/old/f
		"$FCOPY" --mirror m/t m/d 2>kept && exit 6
		[ -e m/d/old/f ] || exit 5
		mkdir m/t/old; "$FCOPY" --mirror m/t m/d 2>cleared || exit 4
		[ ! -e m/d/old/f ] || exit 3
		mkdir -p m/t/old/in m/d/old/in/f; echo 1 >m/t/old/in/f
		"$FCOPY" --mirror m/t m/d 2>>cleared && diff -r m/t m/d || exit 2
		umount m'
	[ "$status" != 9 ] || skip "no btrfs here"
	demand 0
	[ "$(find new -mindepth 1 | sort | xargs)" = "new/g new/home new/mnt" ]
	grep -qx "fcopy: warning: m/s/home: is a subvolume: -x copies nothing in it" with
	grep -qx "fcopy: m/s/mnt: is a mount point: -x copies nothing in it" with
	[ "$(cat without)" = "fcopy: warning: m/s/home: is a subvolume: -x copies nothing in it" ]
	grep -q "m/d/old: is a subvolume: not removed; delete it, or use --exclude to keep it" kept
	never grep -r "mount point" kept cleared
}

@test "--link-dest in another subvolume of btrfs: refused before DST is made or changed, also by a mirror" {
	make_btrfs
	# shellcheck disable=SC2016
	private_mounts 'mount -o loop image m || exit 9
		cd m && btrfs -q subvolume create mon && mkdir s old && echo 1 >s/f && echo 2 >old/f && chmod 711 old
		"$FCOPY" -aT s mon || exit 8
		for how in "--mirror --reflink" --mirror "-aT --keep-going" "-aT --inplace --keep-going"; do
			! "$FCOPY" $how --link-dest=mon s new 2>said || exit 7
			grep -qx "fcopy: mon: is on another file system or subvolume than DST: no file can be linked" said || exit 6
			[ ! -e new ] || exit 5
		done
		! "$FCOPY" --mirror --link-dest=mon s old || exit 4
		[ "$(stat -c %a old) $(cat old/f) $(ls -A old)" = "711 2 f" ] || exit 3
		[ "$(ls -A | xargs)" = "mon old s said" ] || exit 2
		cd / && umount "$OLDPWD"'
	[ "$status" != 9 ] || skip "no btrfs here"
	demand 0
}
