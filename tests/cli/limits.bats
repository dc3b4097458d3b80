#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Descriptors that are closed or used up, and the limits of ulimit.

load helper

@test "a closed descriptor: exit 1" {
	echo data >a
	run --separate-stderr bash -c '"$0" a - >&-' "$FCOPY"
	demand 1
	mentions "Bad file descriptor"
	run --separate-stderr bash -c '"$0" - b <&-' "$FCOPY"
	demand 1
	mentions "Bad file descriptor"
	absent b
	expect 1 a /dev/fd/77
	mentions "Bad file descriptor"
}

@test "closed standard descriptors: no message lands in the copy" {
	printf x >a
	local closed options want
	for closed in '<&- 2>&-' '<&- >&- 2>&-' '>&- 2>&-' '>&-' '2>&-' '<&-'; do
		# The list of -v cannot be written then.
		want=0
		[[ " $closed" != *' >&-'* ]] || want=1
		for options in -v '-v old' '-v --inplace old'; do
			rm -f b
			[[ $options != *old ]] || echo "old and longer" >b
			run --separate-stderr bash -c "\"\$0\" ${options% old} a b $closed" "$FCOPY"
			demand $want
			holds x b
			[ "$closed" != '>&-' ] || mentions "standard output: write: Bad file descriptor"
		done
	done
}

@test "closed standard descriptors: a refusal is still exit 2" {
	run bash -c '"$0" nope b <&- >&- 2>&-' "$FCOPY"
	[ "$status" = 2 ]
	absent b
}

@test "stderr on a full disk changes no exit status" {
	echo data >a
	run bash -c '"$0" -v a b 2>/dev/full' "$FCOPY"
	[ "$status" = 0 ]
	cmp a b
	run bash -c '"$0" nope b 2>/dev/full' "$FCOPY"
	[ "$status" = 2 ]
	run bash -c '"$0" 2>/dev/full' "$FCOPY"
	[ "$status" = 2 ]
}

@test "requested output to stderr on a full disk: exit 1" {
	echo data >a
	run bash -c '"$0" --stats a b 2>/dev/full' "$FCOPY"
	[ "$status" = 1 ]
	cmp a b
	run "$FCOPY" --json=/dev/full a b
	[ "$status" = 1 ]
	run bash -c '"$0" --json -v a b 2>/dev/full' "$FCOPY"
	[ "$status" = 0 ]
}

# Bats has descriptors open, so the limit is set where they are closed.
limited() {
	local n=$1
	shift
	run --separate-stderr bash -c 'for fd in {3..20}; do eval "exec $fd>&-"; done
		n=$1; shift
		ulimit -n "$n"; exec "$0" "$@"' "$FCOPY" "$n" "$@"
}

@test "too few descriptors: exit 1, why, and the old file whole" {
	random a 100000
	echo old >b
	local mode n refused=0
	for mode in auto readwrite splice direct parallel; do
		for n in 4 5 6; do
			limited $n a b "$mode"
			if [ "$status" = 0 ]; then
				cmp a b
				echo old >b
			else
				demand 1
				mentions "Too many open files"
				never grep -q 'close: ' <<<"$stderr"
				holds old b
				refused=$((refused + 1))
			fi
		done
	done
	[ $refused -ge 5 ]
}

@test "a soft limit of descriptors is raised to the hard one" {
	mkdir -p s/{1..20}/d
	local i
	for i in {1..20}; do echo "$i" >s/$i/d/f; done
	limited 6 -aT s d
	demand 1
	rm -rf d
	run -0 --separate-stderr bash -c 'ulimit -Sn 6 && exec "$0" -aT s d' "$FCOPY"
	diff -r s d
}

@test "too few descriptors for a mode: no next engine is promised, where there is none" {
	random a 100000
	limited 5 -v a b direct
	demand 1
	[[ $stderr != *"next engine"* ]]
}

@test "a limit of the file's size: an error, no signal; every mode" {
	random a 300000
	echo old >b
	local mode
	for mode in auto readwrite sendfile splice copy_file_range mmap parallel; do
		run --separate-stderr bash -c 'ulimit -f 100; exec "$0" a b '"$mode" "$FCOPY"
		demand 1
		mentions "File too large"
		never grep -q hint <<<"$stderr"
		holds old b
		run --separate-stderr bash -c 'ulimit -f 100; exec "$0" a c '"$mode" "$FCOPY"
		demand 1
		absent c
	done
}

@test "a limit of the file's size that was ignored at the start, too" {
	random a 300000
	run --separate-stderr bash -c 'trap "" XFSZ; ulimit -f 100; exec "$0" a b' "$FCOPY"
	demand 1
	mentions "File too large"
	absent b
}

@test "little memory for locked pages: mode direct copies anyway, or says why" {
	need_mode direct
	random a 3000000
	run --separate-stderr bash -c 'ulimit -l 0; exec "$0" a b direct' "$FCOPY"
	[ "$status" = 0 ] && cmp a b || mentions "io_uring"
}

@test "no threads to be had: parallel copies with the one it has" {
	need_strace
	random a 5000000
	traced 0 inject=clone,clone3:error=EAGAIN -j4 a b parallel
	injected
	cmp a b
}

@test "io_uring without worker threads: auto continues with readwrite after the finished prefix" {
	need_mode direct
	random a 20000000
	install -m 755 "$FCOPY" fcopy
	chmod 777 .
	local nobody=
	# shellcheck disable=SC2153 # it is the helper's
	! is_root || nobody=$NOBODY
	# shellcheck disable=SC2086
	run --separate-stderr $nobody bash -c \
		'ulimit -u 1; exec ./fcopy -v --no-cache --preallocate=never a b'
	[[ $stderr == *"Operation canceled"* ]] || skip "no worker thread was needed: $stderr"
	[[ $stderr != *"Operation not supported"* ]] || skip "no uncached I/O here"
	demand 0
	mentions "engine: readwrite"
	cmp a b
}

@test "no descriptor for an entry: exit 1, why, and what was copied is kept" {
	need_strace
	local dir=tree level
	for level in {1..40}; do
		dir+=/$level
	done
	mkdir -p "$dir"
	echo deep > "$dir/file"
	run --separate-stderr bash -c 'ulimit -n 20; exec timeout 30 "$0" -r tree copy' "$FCOPY"
	demand 0
	diff -r tree copy
	rm -r copy
	traced 0 trace=openat -r -j1 tree copy
	rm -r copy
	traced 1 "inject=openat:error=EMFILE:when=$(nth openat '"file"')" -r -j1 tree copy
	injected
	mentions "Too many open files"
	[ -d copy.fcopy-part ]
	absent copy
	# With more descriptors the same copy is completed.
	run --separate-stderr "$FCOPY" -r --resume tree copy
	demand 0
	diff -r tree copy
	absent copy.fcopy-part
}

@test "--limit-rate holds for zeros that are written in place of a hole, too" {
	need_strace
	truncate -s 4M hole
	head -c 4M /dev/urandom >b
	local start=${EPOCHREALTIME/./}
	traced 0 inject=fallocate:error=EOPNOTSUPP --limit-rate=2M --inplace hole b
	injected
	[ $((${EPOCHREALTIME/./} - start)) -ge 1500000 ]
	cmp hole b
}

@test "a tree of 120 levels with 64 descriptors: new, merged, and with symlinks followed" {
	local at=s i options mode=755
	! is_root || mode=500 # nobody else may merge into such a directory
	for ((i = 0; i < 120; i++)); do
		at=$at/d
	done
	mkdir -p "$at"
	at=s
	for ((i = 0; i < 120; i++)); do
		at=$at/d
		mkdir "$at/e"
		echo $i >"$at/f"
		: >"$at/e/x"
	done
	ln s/d/f "$at/link"
	chmod $mode s/d/d/d
	for options in "-r -j1" -a "-rL -j4"; do
		# shellcheck disable=SC2016
		run --separate-stderr timeout -s KILL $HANG bash -c 'ulimit -n 64; "$0" "$@"' "$FCOPY" $options -T s d
		demand 0
		diff -r s d
		[ "$(stat -c %a d/d/d/d)" = $mode ]
		case $options in *j1) ;; *) chmod 700 d/d/d/d && rm -r d ;; esac
	done
	chmod 700 s/d/d/d
}

@test "little memory: a mirror and --resume are whole, or fail and are whole after the same command" {
	local limit options
	[ -z "${UNDER-}" ] || skip "$UNDER needs more memory"
	mkdir -p s/{1,2,3}/{1,2,3}
	for limit in s/*/*; do
		random "$limit/file" 20000
		ln -s file "$limit/link"
	done
	for options in '--mirror -j4' '-a --resume'; do
		for limit in $(seq 11900 80 12500) $(seq 20300 100 20700); do
			rm -rf d
			[[ $options != *mirror* ]] || { mkdir d; touch d/old; }
			# shellcheck disable=SC2086 # words
			run --separate-stderr bash -c 'ulimit -v '"$limit"'; exec timeout -s KILL '"$HANG"' "$0" "$@"' "$FCOPY" $options -T s d
			if [ "$status" != 0 ]; then
				demand 1
				[[ $stderr = *"Cannot allocate memory"* ]]
				# shellcheck disable=SC2086
				expect 0 $options -T s d
			fi
			diff -r --no-dereference s d
		done
	done
}

@test "a stack of 64 KiB: files, trees, shards, reports and a signal, as with any other" {
	local arguments
	mkdir -p s/d
	random s/a 3000000
	echo b >s/d/b
	small() { (ulimit -s 64 && exec timeout -s KILL $HANG "$FCOPY" "$@"); }
	for arguments in "" "--resume --verify" "--progress --fsync" "--shard=0/1" "-j4 --json=lines --no-clobber"; do
		# shellcheck disable=SC2086
		small $arguments s/a f >out 2>err || { echo "$arguments: $?"; cat err; return 1; }
		cmp s/a f
		# shellcheck disable=SC2086
		small -a $arguments s t >out 2>err || { echo "-a $arguments: $?"; cat err; return 1; }
		diff -r s t
		rm -r f* t*
	done
	small --mirror s m
	small --mirror --checksum s m
	diff -r s m
	run --separate-stderr small missing x
	demand 2
	says "fcopy: missing: open: No such file or directory"
	run --separate-stderr small --unknown
	demand 2
	run bash -c 'ulimit -s 64; timeout -s TERM 1 "$0" --limit-rate=500K s/a x' "$FCOPY"
	[ "$status" = 124 ]
	absent x
}

@test "few descriptors: a deep tree with --link-dest, and what a mirror removes of one" {
	local path=s i
	for i in {1..100}; do path+=/d; done
	mkdir -p $path
	echo 1 >$path/f
	echo 2 >s/d/d/g
	expect 0 -aT s mon
	deep() {
		run --separate-stderr timeout -s KILL $HANG bash -c 'ulimit -n 64; exec "$0" "$@"' "$FCOPY" "$@"
		demand 0
	}
	deep -aT --link-dest=mon s tue
	says "fcopy: 0 copied, 2 linked"
	diff -r s tue
	[ tue/${path#s/}/f -ef mon/${path#s/}/f ]
	rm -r s/d/d/d
	deep --mirror s mon
	says "fcopy: 0 copied, 1 unchanged, 99 removed"
	diff -r s mon
}

@test "shards that would run out of descriptors are refused before anything is made" {
	local n what
	mkdir -p s/d/e/f
	random s/a 3000000
	for n in {1..40}; do mkdir -p s/$n/e/f && echo "$n" >s/$n/e/f/x; done
	for what in s s/a; do
		for n in {8..40}; do
			limited "$n" -a --shard=0/2 $what o
			if [ "$status" = 0 ]; then
				limited $((n + 1)) -a --shard=1/2 $what o # it finds o, and has that open, too
				demand 0
				diff -r $what o
				rm -r o o.fcopy-part
			else
				demand 1
				[ ! -e o ]
				[ ! -e o.fcopy-part ]
				[ -z "$(ls -A | grep -vx s)" ]
			fi
		done
		limited 40 -a --shard=0/1 $what o
		demand 0
		rm -r o o.fcopy-part
		limited 20 -a --shard=0/1 $what o
		mentions "o: is copied in shards, which need 20 more open files: raise the limit (ulimit -n)"
	done
}

@test "shards of many chunks, each of which is claimed, need no more descriptors than others" {
	local n
	mkdir many
	(cd many && seq 6000 | xargs touch)
	truncate -s 8G large
	for n in 30 50; do
		limited "$n" -a --shard=0/64 many o
		demand 0
		diff -r many o
		rm -r o o.fcopy-part
		limited "$n" -a --shard=0/64 large o
		demand 0
		[ "$(stat -c %s o)" = "$(stat -c %s large)" ]
		rm -r o o.fcopy-part
	done
}

# frugal [OPTION…] OPERAND…: runs fcopy with 40 descriptors: too few if each entry keeps one.
frugal() {
	limited 40 -j1 "$@"
	[ "$status" -le 1 ] && [[ $stderr != *"Too many open files"* ]] && return
	echo "$*: exit status $status: $stderr"
	return 1
}

@test "no entry leaves a descriptor open: new trees, merges, mirrors, links, backups and shards" {
	local i options
	mkdir -p s/{1,2,3}
	for i in {1..45}; do
		echo "$i" >s/1/$i
		ln s/1/$i s/2/$i
		ln -s $i s/1/link$i
		mkdir s/2/d$i
		: >s/3/$i
		mkfifo s/3/fifo$i
	done
	(cd s && find . -type f) >list
	for options in -a -r -rl -rs "-a --verify" "-a --no-cache" "-a --resume" "-a --inplace" "-a --shard=0/1" "-a --files-from=list"; do
		# shellcheck disable=SC2086
		frugal $options -T "$T/s" d
		[ "$(find d -type f,l | wc -l)" -ge 135 ]
		case $options in
		-a | -r | *inplace | -rl)
			for i in "" -f --update=changed "--update=changed --checksum" -u --backup=numbered --dry-run; do
				[[ $options$i != *inplace*backup* ]] || continue
				# shellcheck disable=SC2086
				frugal $options $i -T s d
			done
			;;
		esac
		rm -rf d d.*
	done
	frugal -a -T s d
	for i in {1..45}; do
		echo "$i" >>s/1/$i
		chmod 600 s/3/$i
		rmdir s/2/d$i
		mv s/3/fifo$i s/3/moved$i
		ln -sf x$i s/1/link$i
	done
	for options in "--mirror --dry-run" --mirror "--mirror --checksum"; do
		# shellcheck disable=SC2086
		frugal $options s d
	done
	[ "$(find s | wc -l)" = "$(find d | wc -l)" ]
	frugal -aT --link-dest="$T/d" s e
	[ "$(find e/3 -type f -links 2 | wc -l)" = 45 ]
	frugal -aT --link-dest="$T/d" --reflink=auto s clones
	rm -rf e
	mkdir e
	! is_root || chown 65534 d e # fcopy uses other calls there: that user can exchange names
	frugal -a -f -T s d
	rm -r d/1/* d/2
	frugal --mirror s d
	frugal --parents -a s/1/* s/2/* e
	frugal -a -f s/1/[0-9]* e
	rm e/[0-9]*
	for i in {1..45}; do ln -s s/1/$i e/$i; done
	frugal -aL -T s/2 e # through symlinks
}

@test "a failed entry leaves no descriptor open" {
	local i options
	mkdir -p s/{1,2} d/{1,2}
	for i in {1..45}; do
		echo "$i" >s/1/$i
		mkdir s/1/d$i s/2/$i
		mkdir d/1/$i
		: >d/1/d$i
		ln -s nowhere d/2/$i
	done
	for options in -r -a "-a --update=changed" "-a -n" "-a -b" "-r --keep-directory-symlink" "-rl" "-a --dry-run" "-a --parents"; do
		# shellcheck disable=SC2086
		frugal $options s/. d
	done
}
