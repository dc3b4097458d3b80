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

@test "without /proc: a copy is made anyway" {
	need_root "to hide /proc"
	random a 100000
	echo old >b
	export FCOPY
	private_mounts 'mount -t tmpfs tmpfs /proc; "$FCOPY" a b; "$FCOPY" a c; cmp a b; cmp a c'
	demand 0
}

@test "immutable and append-only destinations: refused, untouched" {
	need_root "to set the attributes"
	need chattr
	echo new >a
	echo old >b
	local attribute
	for attribute in i a; do
		chattr +$attribute b 2>/dev/null || skip "no such attributes on this file system"
		expect 1 a b
		says "fcopy: b: is immutable or append-only" \
			"fcopy: hint: remove the flag with chattr -i or chattr -a"
		expect 1 -f a b
		expect 1 --inplace a b
		says "fcopy: b: open: Operation not permitted"
		holds old b
		chattr -$attribute b
	done
}

@test "an append-only file takes what comes through a descriptor" {
	need_root "to set the attribute"
	need chattr
	echo new >a
	echo old >b
	chattr +a b 2>/dev/null || skip "no such attribute on this file system"
	local mode
	for mode in auto readwrite splice; do
		run --separate-stderr bash -c '"$0" a - '$mode' >>b' "$FCOPY"
		[ $mode = splice ] || demand 0
	done
	chattr -a b
	holds $'old\nnew\nnew' b
}

# The setting is the whole machine's: hold it for the moment of one copy, and one test at a time.
# shellcheck disable=SC2094 # the lock is on the setting itself
protected_symlinks() {
	(
		flock 9
		old=$(cat /proc/sys/fs/protected_symlinks)
		trap 'echo "$old" >/proc/sys/fs/protected_symlinks' EXIT
		echo 1 >/proc/sys/fs/protected_symlinks
		"$@"
	) 9</proc/sys/fs/protected_symlinks
}

@test "fs.protected_symlinks: a link of somebody else in a sticky directory is not followed" {
	need_root "to make links of others"
	[ -w /proc/sys/fs/protected_symlinks ] || skip "fs.protected_symlinks cannot be set"
	echo new >a
	echo old >target
	mkdir sticky
	chmod 1777 sticky
	ln -s ../target sticky/link
	chown -h 65534 sticky/link
	local option
	for option in -f --inplace; do
		protected_symlinks expect 1 $option a sticky/link
		holds old target
	done
	protected_symlinks expect 1 sticky/link b
	absent b
	chown -h "$(id -u)" sticky/link
	protected_symlinks expect 0 a sticky/link
	holds new target
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

IN_PLACE_HINT="fcopy: hint: use --inplace=auto to overwrite it"

@test "a new tree in an append-only directory: refused before anything is created" {
	need_root "to set the attribute"
	need chattr
	mkdir -p s/below d/old
	echo new >s/below/a
	chattr +a d 2>/dev/null || skip "no such attribute on this file system"
	local arguments
	for arguments in "-r s d" "-a s d" "--resume -r -t d s"; do
		# shellcheck disable=SC2086
		expect 1 $arguments
		says "fcopy: d/s: cannot be renamed: its directory is append-only"
		[ "$(ls -A d)" = old ]
	done
	expect 0 -rT s d/old
	holds new d/old/below/a
	chattr -a d
}

@test "an append-only directory: refused before the first byte, and --inplace works" {
	need_root "to set the attribute"
	need chattr
	echo new >a
	mkdir d
	echo old >d/b
	chattr +a d 2>/dev/null || skip "no such attribute on this file system"
	local option
	for option in --fsync -f --resume; do
		expect 1 $option a d/b
		says "fcopy: d/b: cannot be replaced: its directory is append-only" \
			"$IN_PLACE_HINT$([ $option != --resume ] || echo '; leave out --resume')"
		holds old d/b
	done
	expect 1 --resume a d/c
	says "fcopy: d/c: cannot be replaced: its directory is append-only"
	[ "$(ls -A d)" = b ]
	expect 0 --inplace a d/b
	holds new d/b
	expect 0 a d/c
	[ "$(ls -A d)" = $'b\nc' ]
}

@test "a sticky directory, and nothing in it is ours: refused, and not -f but --inplace works" {
	need_root "to make a file of somebody else's"
	echo new >a
	mkdir sticky
	chmod 1777 sticky
	echo old >sticky/b
	chmod 666 sticky/b
	local option
	for option in --fsync -f; do
		as_nobody 1 $option a sticky/b
		says "fcopy: sticky/b: cannot be replaced: you own neither it nor its sticky directory" \
			"$IN_PLACE_HINT"
		holds old sticky/b
	done
	as_nobody 0 --inplace a sticky/b
	holds new sticky/b
	NOBODY="$NOBODY --inh-caps +fowner --ambient-caps +fowner" as_nobody 0 -f a sticky/b
	chown 0 sticky/b
	chown 65534 sticky
	as_nobody 0 -f a sticky/b
	chown 0 sticky
	chown 65534:65534 sticky/b
	as_nobody 0 a sticky/b
}

@test "without /proc: what cannot be done names it, and a file in another directory is replaced" {
	need_root "to hide /proc"
	echo new >a
	mkdir d
	echo old >d/b
	ln -s d/b link
	export FCOPY
	private_mounts 'umount -l /proc; "$FCOPY" a link || "$FCOPY" --inplace a link || cat d/b
		"$FCOPY" --verify a c && "$FCOPY" a d/b'
	demand 0
	says "fcopy: link: readlink: needs /proc, which is not mounted" \
		"fcopy: link: readlink: needs /proc, which is not mounted" \
		"fcopy: warning: c: verified through the page cache: /proc is not mounted"
	[ "$output" = old ]
	holds new d/b
	holds new c
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

@test "erofs: a read-only file system, and no word of immutable files" {
	need_root "to mount an image"
	need mkfs.erofs
	mkdir tree m
	echo old >tree/b
	echo new >a
	mkfs.erofs image tree >/dev/null
	export FCOPY
	private_mounts 'mount -t erofs -o loop image m || exit 9; "$FCOPY" a m/b; exit $?'
	[ "$status" != 9 ] || skip "no erofs here"
	demand 1
	says "fcopy: m/b: open: Read-only file system"
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

@test "without /proc: the modes are those that the umask leaves, also with --resume and --shard" {
	need unshare
	unshare -rm true 2>/dev/null || skip "no mount namespaces here"
	local mask mode
	mkdir tree
	echo a >a
	echo f >tree/f
	chmod 755 a tree
	for mask in 022:755 007:750 027:750 000:755; do
		mode=${mask#*:}
		rm -rf plain part shared sharedtree
		# shellcheck disable=SC2016
		unshare -rm sh -c 'umask '${mask%:*}'; mount -t tmpfs none /proc || exit
			"$0" a plain && "$0" --resume a part && "$0" -T --shard=0/1 a shared && "$0" -rT --shard=0/1 tree sharedtree' "$FCOPY"
		[ "$(stat -c %a plain part shared sharedtree | sort -u)" = "$mode" ]
	done
}

# same_attributes A B: equal names, types, modes and sizes; the times of what is not a symlink; and equal bytes.
same_attributes() {
	local dir
	for dir in "$1" "$2"; do
		(cd "$dir" && find . '(' -type l -o -printf '%T@ ' ')' -printf '%P %y %m %s\n' | sort) >"listed.$dir"
	done
	diff "listed.$1" "listed.$2"
	diff -r --no-dereference --exclude=fifo "$1" "$2"
}

@test "without /proc: FIFOs, symlinks and read-only directories of trees and mirrors, without false warnings" {
	need unshare
	unshare -rm true 2>/dev/null || skip "no mount namespaces here"
	local long n
	long=$(printf 'n%.0s' {1..255})
	mkdir -p "tree/$long/ro" tree/gone
	echo 1 | tee "tree/$long/$long" "tree/$long/ro/a" >"tree/$long/ro/b"
	touch tree/gone/f
	mkfifo -m 666 tree/fifo
	ln -s "$long" tree/link
	touch -d @1000000 "tree/$long/ro" "tree/$long"
	chmod 555 "tree/$long/ro"
	cp -a tree now
	chmod 755 "now/$long/ro"
	rm -r "now/$long/ro/b" now/gone
	touch -d @1000000 "now/$long/ro"
	chmod 555 "now/$long/ro"
	# shellcheck disable=SC2016
	unshare -rm sh -c 'umask 022; mount -t tmpfs none /proc || exit
		"$0" -a tree copy1 && "$0" -a --resume tree copy2 && "$0" -aT --shard=0/1 tree copy3 &&
			"$0" --mirror tree copy4 && "$0" --mirror now/. copy4/' "$FCOPY" >out 2>&1
	for n in 1 2 3; do
		same_attributes tree copy$n
	done
	same_attributes now copy4
	# Linux 6.13 lists the attributes of a FIFO.
	[ "$(printf '%s\n' 6.13 "$(uname -r)" | sort -V | head -n 1)" = 6.13 ] || { reports "an old kernel"; return 0; }
	never grep -v "copied, " out
}

@test "a btrfs subvolume is no mount point: -x leaves it out with a warning, a mirror keeps it and says so" {
	need_root "to mount an image"
	PATH=$PATH:/usr/sbin:/sbin need mkfs.btrfs btrfs
	truncate -s 120M image
	PATH=$PATH:/usr/sbin:/sbin mkfs.btrfs -q image
	mkdir m
	export FCOPY PATH=$PATH:/usr/sbin:/sbin
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
