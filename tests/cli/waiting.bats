#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Storage that answers late (tests/tools/faultfs.c, latency=): how many threads wait for it at once.

load helper

# slow MICROSECONDS COMMAND: as by_fuse. A mount of libfuse has 10 threads by default.
slow() {
	by_fuse "latency=$1 -o max_threads=64" "number() { sed -n \"s/.*\\\"\$1\\\": *\\([0-9]*\\).*/\\1/p\"; }
		$2"
}

start_threads() {
	echo $(($(nproc) + 1))
}

@test "a tree on slow storage gets more threads than it starts with, and -j fixes their number" {
	mkdir -p backing/tree
	for i in {1..80}; do echo "content of $i" >"backing/tree/$i"; done
	# shellcheck disable=SC2016
	start=$(start_threads) slow 10000 '
		"$FCOPY" -r --json m/tree a >out || exit 1
		diff -r backing/tree a || exit 1
		n=$(number threads_most <out)
		[ "$start" -ge 64 ] || [ "$n" -gt "$start" ] || { echo "$n threads:"; cat out; exit 1; }
		"$FCOPY" -r -j 2 --json m/tree b >out || exit 1
		diff -r backing/tree b || exit 1
		[ "$(number threads_most <out)" = 2 ] || { cat out; exit 1; }
		grep -q "\"threads_reason\": *null" out || { cat out; exit 1; }'
}

@test "a tree with a limited rate gets no more threads than it starts with" {
	mkdir s
	for i in {1..60}; do
		random s/$i $((i > 48 ? 300000 : 100))
	done
	expect 0 -r --limit-rate=2M --json=out s d
	diff -r s d
	[ "$(grep -o '"threads_most": *[0-9]*' out | grep -o '[0-9]*$')" -le "$(start_threads)" ] || { cat out; false; }
}

@test "where writes, fsync and close wait, a tree gets more threads, also with one large file" {
	mkdir -p backing tree
	for i in {1..80}; do echo "content of $i" >"tree/$i"; done
	random tree/large 20000000
	# shellcheck disable=SC2016
	start=$(start_threads) by_fuse "fault=fsync:delay=20 -o fault=flush:delay=20 -o max_threads=64" '
		number() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p"; }
		for option in --fsync --no-preserve=mode; do
			"$FCOPY" -r $option --json tree m/a >out || exit 1
			diff -r tree m/a || exit 1
			rm -r m/a
			n=$(number threads_most <out)
			[ "$start" -ge 64 ] || [ "$n" -gt "$start" ] || { echo "$option: $n threads:"; cat out; exit 1; }
		done'
}

@test "a file on slow storage is read by several threads at once; by one with -j1 or a limited rate" {
	random backing.a 24000003
	mkdir backing
	mv backing.a backing/a
	# shellcheck disable=SC2016
	slow 20000 '
		copy() {
			name=$1
			shift
			"$FCOPY" --json "$@" m/a "$name" >out || exit 1
			cmp backing/a "$name" || exit 1
			n=$(grep -o "\"threads\": *[0-9]*" out | grep -o "[0-9]*" | sort -n | tail -1)
		}
		for _ in 1 2 3; do # on a busy machine the reader may mostly wait for a CPU
			copy b
			[ "$n" -lt 4 ] || break
			umount m && $FAULTFS backing m -o latency=20000 -o max_threads=64 || exit 1
		done
		[ "$n" -ge 4 ] || { cat out; exit 1; }
		umount m && $FAULTFS backing m -o latency=20000 -o max_threads=64 || exit 1
		copy c --limit-rate=500M
		[ "$n" = 1 ] || { cat out; exit 1; }
		umount m && $FAULTFS backing m -o latency=20000 -o max_threads=64 || exit 1
		copy d -j 1
		[ "$n" = 1 ] || { cat out; exit 1; }'
}

@test "a large file of a tree on slow storage is read by several threads: bytes, holes, mode; EIO and ^C" {
	need setfattr
	mkdir -p backing/tree
	for i in {1..20}; do echo "content of $i" >"backing/tree/$i"; done
	random backing/tree/large 24000000
	truncate -s 60M backing/tree/large
	random tail 9000000
	dd if=tail of=backing/tree/large bs=1M seek=50 conv=notrunc status=none
	chmod 640 backing/tree/large
	# shellcheck disable=SC2016
	slow 5000 '
		"$FCOPY" -r -j 4 --json m/tree a >out || exit 1
		diff -r backing/tree a || exit 1
		[ $(stat -c %b a/large) -lt $((36 * 2048)) ] && [ $(stat -c %a a/large) = 640 ] || { stat a/large; exit 1; }
		grep -q "\"threads\": *[234]" out || { cat out; exit 1; }
		again() { umount m && $FAULTFS backing m -o latency=5000 -o max_threads=64 -o fault=$1 || exit 1; }
		again read:EIO:16000000
		"$FCOPY" -r -j 4 m/tree b 2>err && exit 1
		grep -qE "m/tree/large: pread: (Input/output|I/O) error" err && [ ! -e b ] || { cat err; exit 1; }
		rm -r b.fcopy-part
		again read:delay=1000:16000000
		env --default-signal=INT "$FCOPY" -r -j 4 m/tree c 2>err &
		pid=$!
		until find . -path "./.fcopy-*" -name large -size +4M 2>find.err | grep -q .; do
			kill -0 $pid || exit 1
		done
		kill -INT $pid
		status=0
		wait $pid || status=$?
		[ $status = 130 ] || { cat err; exit 1; }
		! ls -A | grep -E "^(c|\.fcopy)"'
	demand 0
}

@test "holes of a file on slow storage stay holes" {
	mkdir backing
	random backing/a 9000000
	truncate -s 40M backing/a
	random tail 9000000
	dd if=tail of=backing/a bs=1M seek=30 conv=notrunc status=none
	# shellcheck disable=SC2016
	slow 2000 '
		"$FCOPY" m/a b || exit 1
		cmp backing/a b || exit 1
		[ $(stat -c %b b) -lt $((22 * 2048)) ] || { stat b; exit 1; }'
}

@test "-vv prints how many threads copied a tree, and why; without schedstat, that this is unknown" {
	need strace
	mkdir -p backing/tree
	for i in {1..40}; do echo "content of $i" >"backing/tree/$i"; done
	# shellcheck disable=SC2016
	slow 10000 '
		"$FCOPY" -rvv m/tree a >out 2>err || exit 1
		diff -r backing/tree a || exit 1
		grep -qE "^fcopy: threads: at most [0-9]+, on average [0-9.]+: [a-z]" err || { cat err; exit 1; }
		"$FCOPY" -rvv -j 2 m/tree b 2>err >out || exit 1
		grep -qx "fcopy: threads: at most 2, on average 2.0" err || { cat err; exit 1; }
		strace -f -o trace -P /proc/thread-self/schedstat -e inject=$OPEN:error=ENOENT \
			"$FCOPY" -rvv m/tree c 2>err >out || exit 1
		grep -q INJECTED trace || exit 1
		grep -q "without schedstat, waiting cannot be measured$" err || { cat err; exit 1; }'
}

@test "without --fsync, a line says that data may be in memory if the device is removable" {
	need strace
	need_root "another /sys/dev/block"
	local memory='fcopy: b: data may still be in memory (with --fsync, fcopy waits for the device)'
	random a 1M
	export memory
	# shellcheck disable=SC2016
	private_mounts '
		mount -t tmpfs none /sys/dev/block
		device=$(python3 -c "import os; d = os.stat(\".\").st_dev; print(os.major(d), os.minor(d))")
		d=/sys/dev/block/${device/ /:}
		mkdir "$d"
		says() { [ "$(cat err)" = "$1" ] || { echo "stderr was:"; cat err; exit 1; }; }
		echo 1 >"$d/removable"
		"$FCOPY" -v a b >out 2>err; says "$memory"
		"$FCOPY" -v --fsync a b >out 2>err; says ""
		"$FCOPY" a b 2>err; says "" # nobody watches
		# One call looks DST up before the copy has its name: beside it, only execve and that one name it.
		strace -f -o trace "$FCOPY" -v a n >out 2>err; says "$(echo "$memory" | sed "s/b:/n:/")"
		[ "$(sed "/\(link\|rename\).*\"n\"/q" trace | grep -c "\"n\"")" = 3 ] || { grep -n "\"n\"" trace; exit 1; }
		echo 0 >"$d/removable"
		"$FCOPY" -v a b >out 2>err; says ""'
	demand 0
}
