#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Storage that lacks operations or restricts them, as object stores and small FUSE file systems do.

load helper

@test "storage that accepts writes in order only: one thread writes each file, also of a tree" {
	mkdir -p backing s/d
	random s/a 40000000
	cp s/a s/d/b
	truncate -s 3M s/holes
	printf data | dd of=s/holes bs=1 seek=300000 conv=notrunc status=none
	truncate -s 2M s/hole
	by_fuse sequential 'for threads in "" -j4; do
			rm -rf m/*
			"$FCOPY" -r $threads s m/t
			diff -r s backing/t
		done
		"$FCOPY" s/a m/f
		cmp s/a backing/f
		"$FCOPY" --sparse=always s/a m/f
		cmp s/a backing/f
		setfattr -n user.fault -v truncate:EOPNOTSUPP m
		for how in "" --resume --inplace; do
			for file in holes hole; do
				"$FCOPY" $how s/$file m/g
				cmp s/$file backing/g
				rm m/g
			done
		done'
}

# What rename is asked for, with any name, is left nowhere.
no_probe_left() {
	[ -z "$(find backing -name '.fcopy-*')" ]
}

@test "storage that cannot rename directories: a new tree is built under its name, whatever the errno" {
	mkdir -p backing s/d
	random s/a 100000
	random s/d/b 4097
	ln -s a s/link
	# shellcheck disable=SC2016
	by_fuse rw 'for errno in ENOSYS EMFILE EOPNOTSUPP EPERM EACCES EINVAL EIO EXDEV; do
			setfattr -n user.fault -v renamedir:0 m
			setfattr -n user.fault -v renamefull:$errno m
			rm -rf m/*
			"$FCOPY" -r s m/t
			diff -r --no-dereference s backing/t
			setfattr -n user.fault -v renamedir:$errno m
			rm -rf m/*
			"$FCOPY" -r -v --json=out s m/t 2>err
			diff -r --no-dereference s backing/t
			grep -qx "fcopy: m/t: not atomic: rename is unsupported here" err
			grep -q "\"not_atomic\": \"rename is unsupported here\"" out
			[ "$(stat -c %a s/d)" = "$(stat -c %a backing/t/d)" ]
			"$FCOPY" -a s m/u
			diff -r --no-dereference s backing/u
		done'
	no_probe_left
	[ "$(stat -c %a s)" = "$(stat -c %a backing/t)" ]
	expect 0 -r -v --json=out s known
	never mentions 'not atomic'
	grep -q '"not_atomic": null' out
}

@test "storage that is full, or has another one's name, when it is asked what it can rename does not lack that" {
	mkdir -p backing s
	random s/a 1000
	# shellcheck disable=SC2016
	by_fuse rw 'for rule in renamedir:EDQUOT:0:1 renamefull:ENOSPC:0:1 renamefull:ENOTEMPTY:0:5 \
			renamefull:EEXIST:0:5 renamefull:ENOTDIR:0:5; do
			setfattr -n user.fault -v $rule m
			"$FCOPY" -r -v --resume s m/t 2>err
			[ "$(getfattr --only-values -n user.faults m)" != 0 ]
			diff -r s backing/t
			! grep "cannot be\|not atomic" err || exit 1
			rm -rf m/t
			setfattr -n user.fault -v ${rule%%:*}:0 m
		done'
	no_probe_left
}

@test "storage that cannot rename directories: root makes nothing in another one's that he could exchange" {
	need_root "to copy into a directory of another user"
	mkdir -p backing/d s/sub
	random s/a 1000
	random s/sub/b 1000
	ln -s a s/link
	ln -s a s/sub/link
	mkfifo s/fifo
	chown 65534 backing/d
	# shellcheck disable=SC2016
	by_fuse fault=renamedir:ENOSYS 's=0
		"$FCOPY" -rT s m/d 2>err || s=$?
		[ $s = 1 ]
		grep -q "m/d/link: rename of a directory: " err
		grep -q "m/d/fifo: rename of a directory: " err
		[ "$(ls -A backing/d)" = "$(printf "a\nsub")" ]
		cmp s/a backing/d/a
		diff -r --no-dereference s/sub backing/d/sub'
	no_probe_left
}

@test "storage that cannot rename directories: a tree that fails is removed, unless --keep-going" {
	mkdir -p backing s/{1..40..1} "s/$(printf 'd/%.0s' {1..40})"
	random s/a 100000
	random s/b 1000
	# shellcheck disable=SC2016
	by_fuse fault=renamedir:ENOSYS 's=0
		setfattr -n user.fault -v write:EIO:90000 m
		"$FCOPY" -r s m/t 2>err || s=$?
		[ $s = 1 ]
		[ -z "$(ls -A backing)" ]
		s=0
		"$FCOPY" -r --keep-going s m/t 2>err || s=$?
		[ $s = 1 ]
		cmp s/b backing/t/b
		rm -r m/t
		for option in --resume --shard=0/1; do
			s=0
			"$FCOPY" -r $option s m/t 2>err || s=$?
			[ $s = 1 ]
			grep -q "m/t: cannot be .*: directories cannot be renamed here" err
			[ -z "$(find backing -name "*fcopy-p*")" ]
		done'
	no_probe_left
}

ERRNOS="ENOSYS EOPNOTSUPP EPERM EACCES EINVAL EIO EMFILE EXDEV"

@test "storage without rename: a new file is written under its name, and removed after a failure" {
	mkdir backing
	random a 300000
	chmod 640 a
	# shellcheck disable=SC2016
	ERRNOS=$ERRNOS by_fuse rw 'for how in "" --fsync --verify -n --inplace --inplace=auto --preserve=timestamps -t; do
			setfattr -n user.fault -v rename:${ERRNOS%% *} m
			ERRNOS=${ERRNOS#* }
			rm -f m/*
			if [ "$how" = -t ]; then set -- -v -t m a; else set -- -v $how --json=out a m/a; fi
			"$FCOPY" "$@" 2>err
			cmp a backing/a
			[ "$(stat -c %a backing/a)" = 640 ]
			grep -q "fcopy: m/a: not atomic: " err
			[ "$how" = -t ] || grep -q "\"not_atomic\": \"" out
		done
		rm -f m/*
		setfattr -n user.fault -v write:EIO:200000 m
		for how in "" --inplace -t; do
			s=0
			if [ "$how" = -t ]; then set -- -t m a; else set -- $how a m/a; fi
			"$FCOPY" "$@" 2>err || s=$?
			[ $s = 1 ]
			grep -qE "(Input/output|I/O) error" err
			[ -z "$(ls -A backing)" ]
		done
		setfattr -n user.fault -v write:0 m
		setfattr -n user.fault -v flush:EIO m
		! "$FCOPY" a m/a || exit 1
		[ -z "$(ls -A backing)" ]
		setfattr -n user.fault -v flush:0 m
		for option in --resume --shard=0/2; do
			s=0
			"$FCOPY" $option a m/a 2>err || s=$?
			[ $s = 1 ]
			grep -q "cannot have a .fcopy-part: rename is unsupported here" err
		done'
}

@test "storage that cannot rename an open file: every copy is complete" {
	mkdir -p backing s/n
	random s/a 100000
	random s/n/b 4096
	# shellcheck disable=SC2016
	by_fuse fault=renameopen:EOPNOTSUPP 'for how in "" --fsync --verify --resume -n; do
			"$FCOPY" $how s/a m/a
			cmp s/a backing/a
			[ "$how" = -n ] || "$FCOPY" $how s/n/b m/a
			rm -f m/a
		done
		mkdir -p m/d/n
		echo old >m/d/a
		"$FCOPY" -aT s m/d
		diff -r s backing/d
		[ -z "$(find backing -name ".fcopy-*")" ]'
}

@test "storage whose open directories can be read once: a tree is resumed, mirrored and removed" {
	mkdir -p backing s/d
	random s/a 1000
	random s/d/b 1000
	# shellcheck disable=SC2016
	by_fuse norewind '"$FCOPY" -r --resume s m/t
		diff -r s backing/t
		"$FCOPY" -a s m/u
		"$FCOPY" -aT s m/u
		diff -r s backing/u
		setfattr -n user.fault -v write:EIO:500:1 m
		! "$FCOPY" -r s m/v || exit 1
		"$FCOPY" -r --resume s m/v
		diff -r s backing/v
		setfattr -n user.fault -v write:ENOSPC m
		! "$FCOPY" -r s m/w || exit 1
		[ "$(ls -A backing)" = "$(printf "t\nu\nv")" ]'
}

@test "storage that renames no directory of which a file is open: copies are resumed" {
	mkdir -p backing s/d
	random s/a 3000000
	random s/d/b 100000
	# shellcheck disable=SC2016
	by_fuse busy '"$FCOPY" --resume s/a m/f
		cmp s/a m/f
		setfattr -n user.fault -v write:EIO:2000000:1 m
		! "$FCOPY" --resume s/a m/g 2>/dev/null || exit 1
		[ -s m/g.fcopy-part/data ]
		"$FCOPY" --resume s/a m/g
		cmp s/a m/g
		setfattr -n user.fault -v write:EIO:50000:1 m
		! "$FCOPY" -r --resume s m/t 2>/dev/null || exit 1
		[ -d m/t.fcopy-part/data ]
		"$FCOPY" -r --resume s m/t
		diff -r s m/t
		[ "$(ls -A m)" = "$(printf "f\ng\nt")" ]'
}

@test "storage that renames no directory of which a file is open: what copies have left is removed" {
	mkdir backing
	random a 3000000
	random b 3000
	# shellcheck disable=SC2016
	for later in "" ,fault=release:delay=30; do
		by_fuse busy$later 'for next in "--shard=0/1 --job=two a" "--resume b" "b"; do
				"$FCOPY" --shard=0/1 a m/f
				[ -d m/f.fcopy-part ]
				"$FCOPY" $next m/f
				cmp ${next##* } m/f
				"$FCOPY" --clean m -f
				[ "$(ls -A m)" = f ]
			done
			setfattr -n user.fault -v write:EIO:2000000:1 m
			! "$FCOPY" --resume a m/g 2>/dev/null || exit 1
			[ -s m/g.fcopy-part/data ]
			"$FCOPY" --clean m -f
			[ "$(ls -A m)" = f ]
			rm m/f'
	done
}

@test "the same where a file is released later than close(2) returns: nothing is said to be impossible" {
	mkdir -p backing s/d
	random s/a 3000000
	random s/d/b 100000
	# shellcheck disable=SC2016
	by_fuse busy,fault=release:delay=30 'for how in "" -n --fsync --resume; do
			"$FCOPY" $how s/a m/f
			cmp s/a m/f
			"$FCOPY" -r $how s m/t
			diff -r s m/t
			rm -r m/f m/t
		done
		setfattr -n user.fault -v write:EIO:2000000:1 m
		! "$FCOPY" --resume s/a m/g 2>err || exit 1
		[ -s m/g.fcopy-part/data ] || { cat err; exit 1; }
		"$FCOPY" --resume s/a m/g
		cmp s/a m/g
		"$FCOPY" --shard=0/1 s/a m/h
		cmp s/a m/h
		rm -r m/h.fcopy-part
		[ "$(ls -A m)" = "$(printf "g\nh")" ]'
	never mentions "cannot be"
}

@test "--no-cache: FUSE that refuses statfs is recognised, so the copy is right or refused" {
	mkdir backing
	random backing/a 1170000
	# shellcheck disable=SC2016
	by_fuse direct_io,fault=statfs:EACCES 'for how in "--no-cache" "-m direct"; do
			! "$FCOPY" $how m/a copy 2>err || exit 1
			[ ! -e copy ]
			[ -s err ]
		done'
}

@test "storage that is busy with a directory: its rename is waited for" {
	mkdir -p backing s
	random s/a 1000
	# shellcheck disable=SC2016
	by_fuse fault=write:delay=400 '"$FCOPY" -r s m/t &
		until [ "$(find backing -name a)" ]; do sleep 0.01; done
		setfattr -n user.fault -v renamedir:EBUSY:0:5 m
		wait $!
		diff -r s backing/t
		[ "$(getfattr --only-values -n user.faults m)" -ge 6 ]
		[ "$(ls -A backing)" = t ]'
}

@test "storage with a cache of writes: a mirror is complete although its removed probes cannot be flushed" {
	mkdir -p backing/d s
	random s/a 5000
	# shellcheck disable=SC2016
	by_fuse writeback,attr_timeout=0,entry_timeout=0 '"$FCOPY" --mirror s m/d
		diff -r s m/d
		[ "$(ls -A m/d)" = a ]'
}

@test "names of at most 143 bytes: all that fits is copied, whatever the names of unfinished copies" {
	local long option
	long=$(printf 'n%.0s' {1..140})
	mkdir backing s "d${long%n}"
	echo 1 >"s/$long"
	echo 2 >"d${long%n}/a"
	head -c 3000000 /dev/zero >big
	export long
	for option in namemax=143 namemax=143,namemute; do
		# shellcheck disable=SC2016
		by_fuse "$option" 'set -e
			"$FCOPY" "s/$long" m/; "$FCOPY" -r "d${long%n}" m/; "$FCOPY" -aT --resume s "m/r${long%n}"
			"$FCOPY" --resume big "m/b${long%n}"; rm "m/b${long%n}"
			timeout -s KILL 1 "$FCOPY" --resume --limit-rate=1M big "m/b${long%n}" || [ $? = 137 ]
			ls backing | grep -qx "[0-9a-f]*\.fcopy-part"
			"$FCOPY" --clean m | grep -q "unfinished copy"
			"$FCOPY" --resume big "m/b${long%n}" 2>resumed; cmp big "m/b${long%n}"
			cat resumed; grep -q "resuming at" resumed
			! "$FCOPY" big "m/more$long" || exit 3'
		[ "$(ls backing | wc -l)" = 4 ]
		mentions "more$long: stat: File name too long"
		rm -rf backing/*
	done
}

@test "--resume: after a remount that gives directories other inode numbers, the copy continues" {
	mkdir backing s
	random s/f 3000000
	cp s/f f
	# shellcheck disable=SC2016
	by_fuse drawn 'set -e
		timeout -s KILL 1 "$FCOPY" --resume --limit-rate=1M f m/f || [ $? = 137 ]
		timeout -s KILL 1 "$FCOPY" -aT --resume --limit-rate=1M s m/t || [ $? = 137 ]
		before=$(stat -c %i m/t.fcopy-part)
		until umount m 2>/dev/null; do sleep 0.1; done
		$FAULTFS backing m -o drawn; ls m >/dev/null; ls m/t.fcopy-part/data >/dev/null; ls m/f.fcopy-part >/dev/null
		[ "$(stat -c %i m/t.fcopy-part)" != "$before" ] || exit 77
		"$FCOPY" --resume f m/f; cmp f m/f; "$FCOPY" -aT --resume s m/t; diff -r s m/t' || [ "$status" = 77 ] || return 1
	[ "$status" = 0 ] || skip "inode numbers stay"
	[ "$(ls -A backing | xargs)" = "f t" ]
}

@test "--resume: after a remount that gives files other inode numbers, what was flushed is not read again" {
	need_strace
	mkdir backing
	random backing/f 6000000
	sleep 2.1 # an edit just before the copy could be repeated without a change of the times
	# shellcheck disable=SC2016
	by_fuse drawn 'set -e
		for i in a b; do
			"$FCOPY" --resume --limit-rate=2M m/f m/$i 2>/dev/null & p=$!
			until [ "$(stat -c %s m/$i.fcopy-part/data 2>/dev/null || echo 0)" -gt 1000000 ]; do sleep 0.05; done
			kill -TERM $p; wait $p || true
		done
		before=$(stat -c %i m/f)
		until umount m 2>/dev/null; do sleep 0.1; done
		mv backing/b.fcopy-part/lock lock # another one
		cp -p backing/a.fcopy-part/lock backing/b.fcopy-part/lock
		$FAULTFS backing m -o drawn; ls m/* >/dev/null
		[ "$(stat -c %i m/f)" != "$before" ] || exit 77
		"$FCOPY" --resume m/f m/b 2>refused || mv -f lock backing/b.fcopy-part/lock
		for i in a b; do
			strace -f -y -qq -o trace.$i -e trace=pread64,preadv "$FCOPY" --resume m/f m/$i
			cmp m/f m/$i
		done' || [ "$status" = 77 ] || return 1
	[ "$status" = 0 ] || skip "inode numbers stay"
	grep -q 'its .fcopy-part has the journal of another part' refused
	[ "$(grep -c 'resuming at' <<<"$stderr")" = 2 ]
	never grep 'fcopy-part/data' trace.a trace.b
	[ "$(ls -A backing | xargs)" = "a b f" ]
}

@test "storage that removes nothing: a copy warns about the hidden file that it leaves, and leaves no more" {
	need bindfs fusermount3
	need_root "to mount"
	random f 100000
	mkdir b m s
	cp f s/1
	cp f s/2
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'bindfs --delete-deny b m || exit 9
		"$FCOPY" f m/1 2>err1; "$FCOPY" f m/1 2>>err1; find b -name ".fcopy-*" | wc -l
		"$FCOPY" -r s m/t 2>err2; find b -name ".fcopy-*" -exec rm -r {} +
		cmp f b/1; diff -r s b/t; umount m'
	[ "$status" != 9 ] || skip "bindfs does not mount"
	demand 0
	[ "$output" = 2 ]
	[ "$(grep -c "^fcopy: warning: m/1: removal of the hidden files .*: Operation not permitted" err1)" = 2 ]
	[ "$(grep -c "^fcopy: warning: m/t: removal of the hidden files .*: Operation not permitted" err2)" = 1 ]
}

@test "rclone: --resume is refused before the first byte, each time, and leaves nothing" {
	need rclone fusermount3
	need_root "to mount"
	random f 100000
	mkdir s b m
	cp f s/f
	touch conf
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'rclone mount --config conf --vfs-cache-mode off b m >log 2>&1 &
		for i in {1..100}; do mountpoint -q m && break; sleep 0.1; done; mountpoint -q m || exit 9
		for i in 1 2 3; do "$FCOPY" --resume f m/$i && exit 8; "$FCOPY" -aT --resume s m/t$i && exit 7; done
		ls -A m; umount m'
	[ "$status" != 9 ] || skip "rclone does not mount"
	demand 0
	[ "$output" = "" ]
	[ "$(grep -c "cannot be resumed: rclone renames a directory only when it has uploaded what is in it" <<<"$stderr")" = 6 ]
}

@test "rclone: a mirror leaves no marker, which would come back when it is closed; a new file is not replaced with -n" {
	need rclone fusermount3
	need_root "to mount"
	mkdir b m s
	echo 1 >s/f
	touch conf
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'rclone mount --config conf --vfs-cache-mode off b m >log 2>&1 &
		for ((i = 0; i < 100; i++)); do mountpoint -q m && break; sleep 0.1; done
		mountpoint -q m || exit 9
		set -e
		for run in 1 2 3; do
			"$FCOPY" -q --mirror s m/t
			[ "$(ls -A m/t)" = f ]
		done
		"$FCOPY" -n s/f m/new
		umount m'
	[ "$status" != 9 ] || skip "rclone does not mount"
	demand 0
	[ "$(ls -A b/t)" = f ]
	holds 1 b/new
}

@test "the file that shows which modes storage gives is removed, even if the first unlink fails" {
	mkdir -p backing s/d
	echo 1 >s/d/f
	# shellcheck disable=SC2016
	by_fuse modeless,fault=unlink:EIO:0:1 '"$FCOPY" -r s m/t 2>err
		[ ! -s err ]
		[ -z "$(find backing -name ".fcopy-*")" ]
		diff -r s m/t'
}
