#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The order of the last steps: on the disk before it has a name, no error after the name.

load helper

COMMIT=openat,pwrite64,fdatasync,fsync,linkat,renameat,renameat2,close,fcntl,ftruncate,exit_group

@test "a new file: data, close of a duplicate, then the name by link" {
	need_strace
	random a 5000
	traced 0 trace=$COMMIT a b readwrite
	order O_TMPFILE 'pwrite64' 'F_DUPFD_CLOEXEC' 'close\(' 'linkat\(.*"b"' exit_group
	[ "$(calls 'renameat2?')" = 0 ]
	[ "$(calls 'fdatasync|fsync')" = 0 ]
}

@test "an old file: a temporary link, then rename" {
	need_strace
	random a 5000
	echo old >b
	traced 0 trace=$COMMIT a b readwrite
	order O_TMPFILE pwrite64 'linkat\(.*"\.fcopy-[0-9a-z]{16}"' 'close\(' \
		'renameat2?\(.*"\.fcopy-.*"b"' exit_group
}

@test "--fsync: data to the disk, then the name, then the directory; every mode" {
	need_strace
	random a 100000
	local mode
	for mode in $(moving_modes); do
		rm -f b
		traced 0 trace=$COMMIT --fsync a b "$mode"
		order O_DIRECTORY O_TMPFILE 'fdatasync\(' F_DUPFD_CLOEXEC 'close\(' 'linkat\(.*"b"' \
			'fsync\(' exit_group
		traced 0 trace=$COMMIT --fsync a b "$mode"
		order O_TMPFILE 'fdatasync\(' 'linkat\(.*"\.fcopy-' 'renameat' "fsync\([0-9]+<$T>" exit_group
		[ "$(calls fdatasync)" = 1 ]
	done
}

@test "--fsync into another directory: that one is flushed" {
	need_strace
	random a 5000
	mkdir d
	traced 0 trace=$COMMIT --fsync a d/b
	order 'linkat\(.*"b"' "fsync\([0-9]+<$T/d>"
}

@test "--fsync --inplace: the data is flushed" {
	need_strace
	random a 5000
	random b 9000
	traced 0 trace=$COMMIT --fsync --inplace a b
	order pwrite64 'ftruncate' "fdatasync\([0-9]+<$T/b>" 'close\('
	[ "$(calls linkat)" = 0 ]
}

@test "--fsync --inplace of a new file: the data is flushed, then its directory; where that fails, so does the copy" {
	need_strace
	random a 5000
	mkdir d
	local call
	traced 0 trace=$COMMIT --fsync --inplace a d/b
	order 'O_EXCL' pwrite64 "fdatasync\([0-9]+<$T/d/b>" 'close\([0-9]+<[^>]*/d/b>' "fsync\([0-9]+<$T/d>"
	cmp a d/b
	rm d/b
	traced 1 inject=fsync:error=EIO --fsync --inplace a d/b
	injected
	mentions "fsync of the directory: Input/output error" "hint: DST is complete, but may not survive a power cut"
	cmp a d/b
	mkdir t
	traced 0 trace=$COMMIT --fsync --inplace a d/b t
	order 'pwrite64\([0-9]+<[^>]*/t/b>' "fsync\([0-9]+<$T/t>"
	traced 0 trace=pwrite64,fdatasync,fsync,syncfs -r --fsync --inplace d new
	order pwrite64 '(syncfs|fsync)\('
}

@test "--fsync to what cannot be flushed: refused before the first byte, or done" {
	echo data >a
	run --separate-stderr bash -c '"$0" --fsync a - | cat >out' "$FCOPY"
	[ -z "$stderr" ] || { [ ! -s out ] && [[ $stderr != *"Invalid argument"* ]]; } ||
		{ echo "$(wc -c <out) bytes went out, then: $stderr"; return 1; }
	run --separate-stderr "$FCOPY" --fsync a /dev/null
	[[ $stderr != *"Invalid argument"* ]] || { echo "$stderr"; return 1; }
}

@test "--fsync without a disk: usage, before anybody listens" {
	local reason="cannot be flushed: it is neither a file nor a disk"
	echo data >a
	mkdir d
	mkfifo d/a
	expect 2 --fsync a /dev/null
	says "fcopy: /dev/null: $reason"
	expect 2 --fsync -v a tcp-listen:0
	says "fcopy: tcp-listen:0: $reason"
	run --separate-stderr bash -c '"$0" --fsync a - | cat; exit ${PIPESTATUS[0]}' "$FCOPY"
	demand 2
	says "fcopy: -: $reason"
	expect 2 --verify a tcp-listen:0
	says "fcopy: tcp-listen:0: cannot be verified: only a file or a block device can be read back"
	exec 7<>d/a # what a directory has under that name is found out later
	expect 2 --fsync a d
	exec 7>&-
	says "fcopy: d/a: $reason"
	run --separate-stderr bash -c '"$0" --fsync a - >b' "$FCOPY"
	demand 0
	cmp a b
}

@test "--inplace: never shorter than the old file before the last byte" {
	need_strace
	random a 100000
	random b 300000
	traced 0 trace=openat,ftruncate,pwrite64 --inplace a b readwrite
	never grep -q 'O_TRUNC' trace
	order pwrite64 'ftruncate\(.*, 100000\)'
	sed '1,/ftruncate/d' trace >after
	never grep pwrite64 after
	cmp a b
}

@test "without O_TMPFILE: a name that nobody can guess, 0600 until the commit, then its mode" {
	need_strace
	random a 5000
	chmod 644 a
	traced 0 trace=openat -v a probe
	local n name
	n=$(nth openat O_TMPFILE)
	traced 0 "inject=openat:error=EOPNOTSUPP:when=$n" -v a b
	rm probe
	traced 0 trace=openat a probe
	n=$(nth openat O_TMPFILE)
	strace -f -y -qq -o trace -e "trace=$COMMIT,fchmod" -e "inject=openat:error=EISDIR:when=$n" \
		"$FCOPY" a c readwrite
	grep -Eq 'openat.*"\.fcopy-[0-9a-v]{16}", O_RDWR\|O_CREAT\|O_EXCL.*, 0600' trace
	order pwrite64 'fchmod\(.*, 0644\)' 'close\(' 'renameat2?\(.*"\.fcopy-.*"c"'
	name=$(grep -o '\.fcopy-[0-9a-v]*' trace | head -1)
	strace -f -qq -o trace -e "inject=openat:error=EISDIR:when=$n" "$FCOPY" a c readwrite
	never grep -qF "$name" trace
	cmp a c
}

@test "which way to name it works is found out before the first byte" {
	need_strace
	random a 5000
	traced 0 trace=linkat,pwrite64 a b readwrite
	order 'linkat\(.*"\.".*EEXIST' pwrite64 'linkat\(.*"b"'
	# No capability for AT_EMPTY_PATH, as on older kernels: by /proc.
	traced 0 inject=linkat:error=ENOENT:when=1 a c readwrite
	order 'INJECTED' 'linkat\(.*/proc/self/fd/.*"\.".*EEXIST' 'linkat\(.*/proc/self/fd/.*"c"'
	cmp a c
	# Neither way: a named temporary.
	strace -f -qq -o trace -e trace=openat,linkat,pwrite64,renameat \
		-e inject=linkat:error=ENOENT:when=1..2 "$FCOPY" a d readwrite
	order 'INJECTED' 'INJECTED' 'O_CREAT\|O_EXCL' pwrite64 renameat
	cmp a d
}

@test "an old file is replaced by one whose bytes are on their way to the disk" {
	need_strace
	random a 5000
	echo old >b
	traced 0 trace=pwrite64,sync_file_range,renameat a b
	order pwrite64 sync_file_range renameat
}

@test "what will be flushed anyway starts on its way while the rest is copied, and nothing else does" {
	need_strace
	on_disk "to start writeback"
	truncate -s 200M a
	local calls=trace=pwrite64,splice,sync_file_range,fdatasync,renameat write='(pwrite64|splice)\('
	traced 0 $calls --sparse=never --reflink=never a new
	never grep sync_file_range trace
	traced 0 $calls --sparse=never --reflink=never --fsync -j 1 a flushed
	order "$write" 'sync_file_range\(.*, 0, 16777216, SYNC_FILE_RANGE_WRITE' "$write" fdatasync
	echo old >b
	traced 0 $calls --sparse=never --reflink=never -j 1 a b
	order "$write" 'sync_file_range\(.*, 0, 67108864, SYNC_FILE_RANGE_WRITE' "$write" \
		'sync_file_range\(.*, 0, 0, SYNC_FILE_RANGE_WRITE' renameat
	traced 0 $calls --sparse=never --reflink=never --inplace a b
	never grep sync_file_range trace
	# It cannot fail: what it cannot start is left to the end.
	strace -f -qq -o trace -e trace=sync_file_range -e inject=sync_file_range:error=EIO:when=1 \
		"$FCOPY" --sparse=never --reflink=never --fsync -j 1 a b
	grep -q INJECTED trace
	cmp a b
	# Progress follows the device: it waits for each part, and a part that is lost fails the copy.
	traced 0 $calls --sparse=never --reflink=never --fsync --progress a followed
	order "$write" 'sync_file_range\(.*WAIT_AFTER' "$write" 'sync_file_range\(.*WAIT_AFTER' fdatasync
	run -1 --separate-stderr strace -f -qq -o trace -e trace=sync_file_range \
		-e inject=sync_file_range:error=EIO "$FCOPY" --sparse=never --reflink=never --fsync --progress a lost
	mentions "lost: sync_file_range: Input/output error"
	absent lost
}

@test "a file that appears during the copy is replaced by one that is on the disk" {
	need_strace
	random a 5000
	strace -f -qq -o trace -e trace=linkat,fdatasync,renameat \
		-e inject=linkat:error=EEXIST:when=2 "$FCOPY" a b
	order INJECTED fdatasync 'linkat\(' renameat
	cmp a b
	run --separate-stderr strace -f -qq -o trace -e inject=linkat:error=EEXIST:when=2 \
		-e inject=fdatasync:error=EIO "$FCOPY" a c
	demand 1
	says "fcopy: c: fdatasync: Input/output error"
	absent c
}

@test "--fsync into a directory that cannot be flushed: found out before the copy has a name" {
	echo data >a
	mkdir d
	chmod 333 d
	chmod 777 .
	as_nobody 1 --fsync a d/b
	mentions "Permission denied"
	chmod 755 d
	absent d/b
	chmod 333 d
	as_nobody 0 a d/b
	chmod 755 d
	cmp a d/b
}

@test "--fsync on btrfs flushes the file again when it has a name, before it becomes DST" {
	need_root "to mount an image"
	PATH=$PATH:/usr/sbin:/sbin need mkfs.btrfs
	need_strace
	truncate -s 200M image
	PATH=$PATH:/usr/sbin:/sbin mkfs.btrfs -q image
	mkdir m
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -o loop image m || exit 77
		echo new >m/a
		for dst in new old; do
			[ $dst = new ] || echo old >m/old
			strace -qq -e trace=linkat,fsync,renameat -o trace "$FCOPY" --fsync m/a m/$dst
			cmp m/a m/$dst
			grep -v EEXIST trace | cut -d"(" -f1 | xargs
		done
		ls -A m'
	[ "$status" != 77 ] || skip "no btrfs here"
	demand 0
	[ "$output" = $'linkat fsync renameat fsync\nlinkat fsync renameat fsync\na\nnew\nold' ] || { echo "$output"; return 1; }
}

# flushed_after CALL: the last call that makes a name is this one, and a flush of $T follows.
flushed_after() {
	order "$1" "syncfs\([0-9]+<$T/q>\) += 0"
	[ "$(calls syncfs)" = 1 ]
}

@test "--fsync: a symlink, a FIFO and a second hard link that are operands are flushed, once" {
	need_strace
	local calls=trace=symlinkat,mknodat,linkat,renameat,syncfs
	mkdir hs q
	echo a >hs/a
	ln hs/a hs/b
	ln -s nowhere l
	mkfifo p
	traced 0 $calls -P --fsync l q/l
	flushed_after 'symlinkat.*"l"'
	traced 0 $calls -a --fsync p q/p
	flushed_after 'mknodat.*"p"'
	traced 0 $calls -a --fsync l p q # old ones are replaced
	flushed_after 'renameat.*"p"'
	traced 0 $calls -a --fsync hs/a hs/b q
	flushed_after 'linkat.*"b"'
	[ q/a -ef q/b ]
	traced 0 $calls -a l p q
	[ "$(calls syncfs)" = 0 ]
	traced 0 $calls -a --fsync hs/a q # has flushed itself
	[ "$(calls syncfs)" = 0 ]
	(cd q && traced 0 $calls -a --fsync ../p new)
	mv q/trace .
	flushed_after 'mknodat.*"new"'
	traced 1 inject=syncfs:error=EIO -a --fsync l q
	injected
	mentions "q: syncfs: Input/output error"
	[ -L q/l ]
}

@test "--fsync --parents: symlinks in directories on several file systems are flushed, and on one file system at once" {
	need_strace
	mkdir -p a b c d/{a,b,c}
	ln -s nowhere a/l
	ln -s nowhere b/l
	ln -s nowhere c/l
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'trace() {
			local to=$1
			shift
			strace -f -y -qq -o "$to" -e trace=symlinkat,syncfs "$@" "$FCOPY" -P --fsync --parents a/l b/l c/l d
		}
		trace one
		rm d/?/l
		mount -t tmpfs -o mode=755 none d/a
		trace several
		rm d/?/l
		trace failed -e inject=syncfs:error=EIO:when=1 2>err || echo $? >status
		ls d/a/l d/b/l d/c/l'
	demand 0
	[ "$(grep -c syncfs one)" = 1 ]
	cp several trace
	order "symlinkat\(.*/d/a>" "syncfs\([0-9]+<$T/d/a>\) += 0" "symlinkat\(.*/d/b>" "symlinkat\(.*/d/c>" "syncfs\([0-9]+<$T/d/c>\) += 0"
	[ "$(calls syncfs)" = 2 ]
	[ "$(cat status)" = 1 ]
	grep -qE "d/a/: syncfs: (Input/output|I/O) error" err
}

@test "--verify of a tree implies --fsync: the names are flushed, too" {
	need_strace
	mkdir s
	echo a >s/a
	traced 0 trace=syncfs,fsync,renameat2 -r --verify s d
	order "syncfs\(.*\.fcopy-" "renameat2\(.*\"d\"" "fsync\(.*$T>"
	ln -s nowhere s/l
	traced 0 trace=symlinkat,syncfs -r --verify s/. d
	order symlinkat "syncfs\(.*/d>"
}

@test "--verify of a tree finds a difference, and the tree gets no name" {
	need_strace
	mkdir s
	random s/f 1000
	traced 1 inject=pwrite64:retval=1000:when=1 -r -j1 --reflink=never --verify s d
	injected
	mentions "f: differs from the source at byte "
	absent d
}

@test "--fsync of a merge: a file is on the disk before it replaces an old one" {
	need_strace
	mkdir s d
	random s/a 5000
	echo old >d/a
	traced 0 trace=fdatasync,fsync,renameat,renameat2 -rT -j1 --fsync s d
	order 'f(data)?sync\([0-9]+<[^>]*/d/.* = 0' 'renameat2?\(.*"a"'
}

@test "--fsync of a merge: a file system that is mounted below DST is flushed, too, and fails if that fails" {
	need_strace
	mkdir -p s/sub/{1,2}/3 d/sub
	ln -s nowhere s/sub/1/3/l
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t tmpfs none d/sub
		strace -f -y -qq -o trace -e trace=mkdirat,utimensat,syncfs "$FCOPY" -a --fsync s/. d
		strace -f -y -qq -o again -e inject=syncfs:error=EIO:when=1 "$FCOPY" -a --fsync s/. d 2>err ||
			echo $? >status
		diff -r --no-dereference s d'
	demand 0
	order 'mkdirat.*"3"' 'utimensat\(.*/d/sub>' "syncfs\([0-9]+<$T/d/sub>\) += 0" "syncfs\([0-9]+<$T/d>\) += 0"
	[ "$(calls syncfs)" = 2 ]
	[ "$(cat status)" = 1 ]
	grep -qE "d/sub: syncfs: (Input/output|I/O) error" err
}

@test "--fsync: attributes of a single file that are repaired are flushed" {
	need_strace
	local options
	mkdir s
	echo a >s/f
	for options in '--fsync -p --update=changed' '--verify -p --update=changed' '--fsync --mirror'; do
		cp -p s/f f
		chmod 711 f
		# shellcheck disable=SC2086 # words
		traced 0 trace=/chmod,fsync,syncfs $options s/f f
		order '(fchmod|chmod)\(' '(fsync|syncfs)\('
	done
}
