#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Trees that cannot be copied whole: what fails, what is kept, what is removed, and what is resumed.

load helper
load tree

@test "an unfinished tree with a long name is kept under a hash of it, and resumed" {
	mkdir s into
	echo x >s/f
	ln -s nowhere s/broken
	local long
	long=$(printf 'n%.0s' {1..250})
	expect 1 -rL s "into/$long"
	mentions "s/broken: is a dangling symlink"
	[[ $(ls -A into) =~ ^[0-9a-f]{16}.fcopy-part$ ]]
	mentions "into/$(ls -A into): kept, unfinished"
	expect 1 -rL --resume --keep-going s "into/$long"
	[ "$(ls -A into)" = "$long" ]
	holds x "into/$long/f"
}

@test "an unreadable file and an unreadable directory: the rest is kept, with two ways forward" {
	make_small s
	touch s/secret
	mkdir s/closed
	chmod 0 s/secret s/closed
	chmod 777 .
	as_nobody 1 -r s d
	mentions "s/secret: open: Permission denied" "s/closed: open: Permission denied" "2 entries failed"
	kept d.fcopy-part
	diff -r s/d1 d.fcopy-part/data/d1
	# It is neither overwritten nor resumed without being asked.
	as_nobody 1 -r s d
	mentions d.fcopy-part resume remove
	absent d
	# The first way forward.
	as_nobody 1 -r --resume s d
	kept d.fcopy-part
	chmod 755 s/secret s/closed
	as_nobody 0 -r --resume s d
	diff -r s d
	absent d.fcopy-part
	chmod 755 s
	# The second one, after the failure and from the start.
	chmod 0 s/secret
	as_nobody 1 -r s f
	as_nobody 1 -r --resume --keep-going s f
	diff <(cd s && find . ! -name secret | sort) <(cd f && find . | sort)
	absent f.fcopy-part
	as_nobody 1 -r --keep-going s e
	says "fcopy: s/secret: open: Permission denied" "fcopy: e: committed despite 1 failure"
	diff <(cd s && find . ! -name secret | sort) <(cd e && find . | sort)
	absent e.fcopy-part
}

@test "the message names the part beside DST, whatever the operands are" {
	mkdir -p s/sub into "with space"
	touch s/secret
	chmod 0 s/secret
	chmod 777 . into "with space"
	as_nobody 1 -r s into
	kept into/s.fcopy-part
	as_nobody 1 -r s/. "with space/new/"
	kept "with space/new.fcopy-part"
	as_nobody 1 -r s "$PWD/into/../absolute"
	kept "$PWD/into/../absolute.fcopy-part"
}

@test "a source file that gives EIO: not committed; later files are copied" {
	mkdir backing
	random backing/a 100000
	random backing/b 300000
	random backing/c 100000
	# shellcheck disable=SC2016
	by_fuse fault=read:EIO:250000 'cp backing/a backing/c .
		s=0
		"$FCOPY" -r m d 2>err || s=$?
		[ $s = 1 ] || { echo "status $s"; exit 1; }
		grep -qE "m/b: .*(Input/output|I/O) error" err
		grep -q "d.fcopy-part" err
		[ ! -e d ]
		cmp a d.fcopy-part/data/a
		cmp c d.fcopy-part/data/c
		[ ! -e d.fcopy-part/data/b ]
		setfattr -n user.fault -v read:0 m
		"$FCOPY" -r --resume m d
		diff -r backing d
		[ ! -e d.fcopy-part ]'
}

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
	need_strace
	make_small s
	ln -s x s/d1/link
	mkdir backing
	# shellcheck disable=SC2016
	by_fuse rw 'strace -f -y -qq -o trace -e trace=fsync,fdatasync,syncfs "$FCOPY" -r --fsync s m/d
		[ "$(grep -c "fdatasync(" trace)" = 20 ] || { cat trace; exit 1; }
		[ "$(grep -cE "\<fsync\(.*/d[0-3]>" trace)" = 4 ] || { cat trace; exit 1; }
		grep -qE "\<fsync\(.*/m>" trace
		strace -f -qq -o trace -e trace=fsync,fdatasync,syncfs "$FCOPY" -r s m/e
		[ ! -s trace ]'
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

@test "an entry that vanishes after it was listed: a warning, and the tree is committed" {
	need_strace
	make_small s
	touch s/victim
	mkdir s/victims
	strace -f -qq -o trace -P s -e trace=getdents64 -e inject=getdents64:delay_exit=2500000:when=1 \
		"$FCOPY" -r -j1 s d 2>err &
	pid=$!
	await said getdents64 trace
	rm -r s/victim s/victims
	wait $pid
	grep -q 'warning: s/victim: .*vanished' err
	grep -q 'warning: s/victims: .*vanished' err
	diff -r s d
}

@test "names that vanish and appear during the copy: at most warnings, and all other entries are whole" {
	local option round churn vanished=0
	make_small s
	cp -r s stable
	python3 - <<-'END' 3>&- &
		import os, random, shutil
		n = 0
		while True:
		    n += 1
		    at = "s/d%d/churn%d" % (n % 4, n % 40)
		    if n % 80 >= 40:
		        shutil.rmtree(at) if os.path.isdir(at) else os.path.exists(at) and os.unlink(at)
		    elif n % 3 == 0:
		        os.makedirs(at + "/sub", exist_ok=True)
		        open(at + "/sub/file", "w").close()
		    else:
		        open(at, "w").write("x" * random.randrange(5000))
	END
	churn=$!
	await test -e s/d3/churn3
	for round in {1..10}; do # some, and until a name has vanished
		[ $round -le 3 ] || [ $vanished = 0 ] || break
		for option in -r -a "-r -j4" "-a --verify"; do
			rm -rf d
			# shellcheck disable=SC2086
			expect 0 $option -T s d
			if grep -v '^fcopy: warning: ' <<<"$stderr" | grep .; then return 1; fi
			[[ $stderr != *vanished* ]] || vanished=$((vanished + 1))
			diff -r stable d | grep -v '^Only in d.*: churn' && return 1
			[ -z "$(find d -type f -size +5k -name 'churn*')" ]
		done
	done
	kill $churn
	[ $vanished -gt 0 ]
}

@test "a full disk: the new tree is removed, whatever was copied, and nothing else is" {
	need_root "to mount a small tmpfs"
	make_small s
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mkdir disk
		mount -t tmpfs -o size=1M tmpfs disk
		mkdir disk/mine disk/other
		for i in 1 2; do
			s=0
			"$FCOPY" -r s disk/d 2>err || s=$?
			[ $s = 1 ] || { echo "status $s"; exit 1; }
			grep -q "No space left" err
			grep -qx "fcopy: stopped; disk/d not created" err
			[ "$(tail -n 1 err)" = "fcopy: hint: use --resume to keep an unfinished copy" ]
			[ "$(ls -A disk | tr "\n" " ")" = "mine other " ] || { ls -A disk; exit 1; }
			"$FCOPY" --mirror s disk/d 2>err && exit 1
			if grep hint err; then exit 1; fi
		done
		# The part is kept if it may be resumed.
		s=0
		"$FCOPY" -r --resume s disk/d 2>err || s=$?
		[ $s = 1 ]
		[ ! -e disk/d ]
		[ -d disk/d.fcopy-part ]
		n=$(find disk/d.fcopy-part/data -type f | wc -l)
		grep -qE "^fcopy: stopped; disk/d not created; disk/d.fcopy-part has [0-9]+ entries \([0-9.]+ [KMi]*B\)$" err
		[ "$(sed -n "s/.*has \([0-9]*\) entr.*/\1/p" err)" -ge "$n" ]
		grep -qx "fcopy: hint: free space, then run the command again with --resume" err
		mount -o remount,size=100M disk
		"$FCOPY" -r --resume s disk/d
		diff -r s disk/d
		# In an existing tree, the files that are there stay whole.
		mkdir old
		mount -t tmpfs -o size=1M tmpfs old
		mkdir -p old/s/d1
		echo old >old/s/d1/5
		s=0
		"$FCOPY" -r s old 2>err || s=$?
		[ $s = 1 ]
		[ -z "$(find old -name ".fcopy-*")" ]
		find old -type f -printf "%P\n" | while read -r f; do
			cmp -s "old/$f" "$f" || [ "$(cat "old/$f")" = old ]
		done'
	demand 0
}

# slow SIGNAL-TEST ARG…: starts a copy that takes long; $pid is its process.
slow() {
	env --default-signal=INT "$FCOPY" -r --limit-rate 200K "$@" 2>err &
	pid=$!
	await is_fcopy
	await has_started
}

has_started() {
	[ -n "$(find . -path '*.fcopy-*' -type f ! -name journal -size +0)" ]
}

@test "SIGINT, SIGTERM and SIGHUP remove the new tree, and end the program" {
	local signal status
	make_small s
	for signal in INT TERM HUP; do
		slow s d
		kill -$signal $pid
		status=0
		wait $pid || status=$?
		[ $status = $((128 + $(kill -l $signal))) ]
		absent d
		[ "$(ls -A)" = $'err\ns' ] || { ls -A; return 1; }
		[ "$(cat err)" = $'fcopy: stopped; d not created\nfcopy: hint: use --resume to keep an unfinished copy' ]
	done
}

@test "a signal during a merge: the message says that DST is incomplete; with -q nothing is printed" {
	local option
	make_small s
	for option in -v -q; do
		rm -rf into
		mkdir -p into/s
		env --default-signal=INT "$FCOPY" -r --limit-rate 200K $option s into 2>err &
		pid=$!
		await is_fcopy
		await test -d into/s/d1
		kill -INT $pid
		wait $pid || [ $? = 130 ]
		if [ $option = -q ]; then
			[ ! -s err ]
		else
			grep -qE '^fcopy: stopped; into/s is incomplete: [0-9]+ entr(y|ies) \([0-9.]+ (KiB|B)\) copied$' err
		fi
	done
}

@test "a signal with --resume keeps the part, and the next run skips what is complete" {
	local status=0
	make_small s
	slow --resume s d
	await eval '[ "$(find d.fcopy-part/data -type f -size +0 | wc -l)" -ge 6 ]'
	kill -TERM $pid
	wait $pid || status=$?
	[ $status = 143 ]
	absent d
	grep -qxE "fcopy: stopped; d not created; d.fcopy-part has [0-9]+ entr(y|ies) \([0-9.]+ (KiB|B)\)" err
	n=$(cd d.fcopy-part/data && find . -type f -exec cmp -s {} ../../s/{} \; -print | wc -l)
	said=$(sed -n 's/.* has \([0-9]*\) entr.*/\1/p' err)
	[ "$said" -ge "$n" ] && [ "$said" -le $((n + $(find d.fcopy-part/data -type d | wc -l))) ] || { cat err; return 1; }
	grep -qx 'fcopy: hint: run the same command again to resume' err
	[ "$(wc -l <err)" = 2 ]
	[ -d d.fcopy-part ]
	[ -n "$(find d.fcopy-part/data -type f)" ]
	need_strace
	traced 0 trace=openat -r --resume s d
	diff -r s d
	[ "$(grep -c 'O_CREAT\|O_TMPFILE' trace)" -lt 20 ]
	absent d.fcopy-part
}

@test "SIGKILL leaves a temporary name and no DST; the next copy is whole" {
	make_small s
	slow s d
	kill -KILL $pid
	wait $pid || true
	absent d
	[ -n "$(find . -maxdepth 1 -name '.fcopy-*')" ]
	expect 0 -r s d
	diff -r s d
	rm -rf .fcopy-*
}

@test "two copies to the same DST at once: one of them has it, whole, and the other one fails" {
	make_small s
	make_small t
	local a=0 b=0
	"$FCOPY" -rT s d 2>err.a &
	pid=$!
	"$FCOPY" -rT t d 2>err.b || b=$?
	wait $pid || a=$?
	case $a$b in
	01) diff -r s d ;;
	10) diff -r t d ;;
	00) [ -d d ] ;; # the second one began after the first one's commit, and merged
	*) cat err.?; return 1 ;;
	esac
	[ -z "$(find . -name '*fcopy-*')" ]
}

@test "DST that appears during the copy is not replaced" {
	make_small s
	slow s d
	mkdir d
	echo mine >d/mine
	kill -CONT $pid
	local status=0
	wait $pid || status=$?
	[ $status = 1 ]
	holds mine d/mine
	[ "$(ls d)" = mine ]
	grep -q 'd: was created by another process during the copy' err
	# A part beside an existing DST could not be resumed.
	[ "$(ls -A)" = $'d\nerr\ns' ] || { ls -A; return 1; }
	# With --resume it is kept, and completed when the name is free again.
	rm -r d
	slow --resume s d
	mkdir d
	status=0
	wait $pid || status=$?
	[ $status = 1 ]
	[ -f d.fcopy-part/journal ]
	rmdir d
	expect 0 -r --resume s d
	diff -r s d
}

@test "a directory that may not be searched or written in DST: that entry fails, others are merged" {
	is_root || skip "needs another user's directory"
	mkdir -p s/a s/b d/s/a
	echo x >s/a/f
	echo y >s/b/f
	chmod 755 d/s/a
	chmod 777 . d d/s
	as_nobody 1 -r s d
	mentions "d/s/a/f"
	holds y d/s/b/f
	absent d/s/a/f
}

@test "a source that grows or is exchanged for a FIFO or a symlink during the copy" {
	need_strace
	mkdir s
	touch s/victim s/other
	echo canary >canary
	local to
	for to in 'mkfifo s/victim' 'ln -s ../canary s/victim' 'mkdir s/victim'; do
		rm -rf s/victim d trace
		touch s/victim
		strace -f -qq -o trace -P s -e trace=getdents64 -e inject=getdents64:delay_exit=2500000:when=1 \
			timeout -s KILL "$HANG" "$FCOPY" -r -j1 s d 2>err &
		pid=$!
		await said getdents64 trace
		rm s/victim
		$to
		wait $pid
		diff <(stat -c '%F %N' s/victim | sed 's/s.victim//') <(stat -c '%F %N' d/victim | sed 's/d.victim//')
	done
}

@test "-L: a symlink that leads nowhere fails, as with cp -rL" {
	mkdir s
	echo x >s/f
	ln -s nowhere s/dangling
	expect 1 -rL s d
	mentions "s/dangling: is a dangling symlink"
	kept d.fcopy-part
	rm -r d.fcopy-part
	expect 1 -rL --keep-going s d
	holds x d/f
	expect 1 -rL --keep-going -q s e
	holds x e/f
	mentions "fcopy: e: committed despite 1 failure"
	mkdir t into
	expect 1 -rL --keep-going -t into s t
	mentions "fcopy: into/s: committed despite 1 failure"
	holds x into/s/f
}

@test "1,000 levels and paths beyond PATH_MAX: copied, merged, resumed, and removed after a failure" {
	deep s
	# A limit that is below the depth.
	(ulimit -Sn 256 && "$FCOPY" -r s d)
	is_deep d
	expect 0 -rT s d
	need_strace
	# The last file fails: the tree is kept, completed, and a cancelled one is removed.
	traced 1 'inject=openat:error=EIO:when=2001' -r -j1 s e
	[ -d e.fcopy-part ]
	expect 0 -r --resume s e
	is_deep e
	traced 1 'inject=openat:error=ENOSPC:when=1500' -r -j1 s f
	injected
	absent f
	[ -z "$(find . -maxdepth 1 -name '.fcopy-*')" ]
	find s d e -depth -delete
}

@test "DT_UNKNOWN: a file system that does not report types is copied like any other" {
	mkdir -p backing/d/e
	make_small backing
	ln -s d backing/link
	ln -s nowhere backing/dangling
	mkfifo backing/d/fifo
	echo x >backing/d/e/f
	# shellcheck disable=SC2016
	by_fuse direct_io '"$FCOPY" -r m d
		diff -r --no-dereference backing/d d/d 2>&1 | grep -v "is a fifo" && exit 1
		diff -r backing/d1 d/d1
		[ -p d/d/fifo ]
		[ "$(readlink d/link)" = d ]
		[ "$(readlink d/dangling)" = nowhere ]
		cp -rL m/d1 by_cp
		"$FCOPY" -rL m/d1 by_fcopy
		diff -r by_cp by_fcopy
		if type strace >/dev/null; then
			strace -f -v -o trace -P m -e trace=getdents64 "$FCOPY" -r m e
			grep -q "DT_UNKNOWN" trace
			if grep -q DT_REG trace; then cat trace; exit 1; fi
		fi'
}

@test "a merge onto a FIFO, a socket or a device fails for that entry, without opening it" {
	local kind
	mkdir s d
	for kind in fifo link socket; do
		random s/$kind 1000
	done
	random s/z 1000
	mkfifo d/fifo
	ln -s fifo d/link
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("d/socket")'
	if is_root; then
		random s/null 1000
		mknod d/null c 1 3
	fi
	for kind in -r -a "-r -f"; do
		# shellcheck disable=SC2086
		expect 1 $kind s/. d
		mentions "d/fifo: is not a regular file" "d/link: is not a regular file" \
			"d/socket: is not a regular file"
		! is_root || mentions "d/null: is not a regular file"
		cmp s/z d/z
		[ -p d/fifo ]
		[ -L d/link ]
		[ -S d/socket ]
	done
	! is_root || [ -c d/null ]
}

@test "-a: a hard link that the disk refuses is a failure; one that the file system lacks is a warning" {
	need_strace
	local errno
	mkdir s
	echo data >s/a
	ln s/a s/b
	for errno in EIO ENOSPC; do
		run -1 strace -f -qq -o trace -e trace=linkat -e inject=linkat:error=$errno "$FCOPY" -a s d
		grep -q INJECTED trace
		[[ $output == *linkat* ]]
		absent d
		rm -rf d.fcopy-part
	done
	run -0 strace -f -qq -o trace -e trace=linkat -e inject=linkat:error=EMLINK "$FCOPY" -a s d
	grep -q INJECTED trace
	[[ $output == *"warning"*"Too many links"* ]]
	diff -r s d
}

@test "messages that nobody reads any more: SIGPIPE removes the unfinished tree" {
	need python3
	mkdir s
	seq 3000 | sed 's,^,s/,' | xargs touch
	UNREAD=both run -141 unread -rv s d
	absent d
	[ -z "$(find . -maxdepth 1 -name '.fcopy-*')" ]
}

@test "a source that is replaced by a rename, or removed, while it is copied: a warning" {
	local victim
	mkdir s
	random s/large 300000
	for victim in rename remove; do
		slow s $victim
		if [ $victim = rename ]; then
			random other 100
			mv other s/large
		else
			rm s/large
		fi
		wait $pid
		grep -q "warning: s/large: was replaced or removed while it was copied" err
		[ "$(stat -c %s $victim/large)" = 300000 ]
		random s/large 300000
	done
}

@test "--strict: an entry that vanishes fails" {
	need_strace
	make_small s
	touch s/victim
	strace -f -qq -o trace -P s -e trace=getdents64 -e inject=getdents64:delay_exit=3000000:when=1 \
		"$FCOPY" -r -j1 --strict s d 2>err &
	pid=$!
	await said getdents64 trace
	rm s/victim
	local failed=0
	wait $pid || failed=$?
	[ $failed = 1 ]
	grep -q 's/victim: .*vanished' err
	absent d
}

@test "an entry that cannot be opened although its directory is unchanged fails" {
	need_strace
	make_small s
	touch s/x
	touch -d '1 hour ago' s
	traced 0 trace=openat -r -j1 s d
	rm -r d
	traced 1 "inject=openat:error=ENOENT:when=$(nth openat '"x"')" -r -j1 s d
	injected
	mentions "s/x: open: No such file or directory"
	never mentions vanished
	absent d
}

@test "several trees fail: each part that was kept is named" {
	mkdir A B d
	touch A/x B/x
	chmod 0 A/x B/x
	! is_root || chown 65534:65534 A B A/x B/x d
	as_nobody 1 -r A B d
	mentions "d/A.fcopy-part: kept, unfinished" "d/B.fcopy-part: kept, unfinished"
	[ -d d/A.fcopy-part ]
}

# Whether another directory was copied into it would be unknown.
@test "merge: a directory of DST that cannot be identified fails, and nothing is copied into it" {
	need_strace
	mkdir -p s/a d/a
	echo x >s/a/f
	# libc's fstat() is newfstatat(2), or fstat(2) since glibc 2.39.
	run -1 --separate-stderr strace -f -qq -o trace -P "$PWD/d/a" \
		-e inject='?fstat,?newfstatat:error=EIO:when=1' "$FCOPY" -rT -j1 s d
	injected
	mentions "d/a: fstat: Input/output error"
	absent d/a/f
	expect 0 -rT s d
	holds x d/a/f
}
