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

@test "a file on slow storage is read by several threads at once; by one with -j1 or a limited rate" {
	random backing.a 24000003
	mkdir backing
	mv backing.a backing/a
	# shellcheck disable=SC2016
	slow 4000 '
		copy() {
			name=$1
			shift
			"$FCOPY" --json "$@" m/a "$name" >out || exit 1
			cmp backing/a "$name" || exit 1
			n=$(grep -o "\"threads\": *[0-9]*" out | grep -o "[0-9]*" | sort -n | tail -1)
		}
		copy b
		[ "$n" -ge 4 ] || { cat out; exit 1; }
		umount m && $FAULTFS backing m -o latency=4000 -o max_threads=64 || exit 1
		copy c --limit-rate=500M
		[ "$n" = 1 ] || { cat out; exit 1; }
		umount m && $FAULTFS backing m -o latency=4000 -o max_threads=64 || exit 1
		copy d -j 1
		[ "$n" = 1 ] || { cat out; exit 1; }'
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
