#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --count copies at most so many bytes, and --size with --strict stops an endless source.

load helper

# bounded STATUS ARG…: as expect; whatever --count fails to stop ends at 64 MiB.
bounded() {
	run --separate-stderr bash -c 'ulimit -f 65536; exec timeout -s KILL 60 "$0" "$@"' "$FCOPY" "${@:2}"
	demand "$1"
}

# is_head FILE BYTES: b holds the first BYTES of FILE, and no more.
is_head() {
	[ "$(stat -c %s b)" = "$2" ] || { echo "b has $(stat -c %s b) bytes, not $2"; return 1; }
	cmp -n "$2" "$1" b
}

@test "--count: every mode copies the first bytes of a file, at aligned and odd counts" {
	local mode count
	random a 3000000
	for mode in $(moving_modes); do
		for count in 1 511 4096 70000 1048576 1048577 2999999 3000000; do
			rm -f b
			expect 0 --count=$count a b "$mode"
			is_head a $count || { echo "$mode $count"; return 1; }
		done
	done
}

@test "--count larger than SRC: all of it, with success; with --strict a failure" {
	random a 5000
	expect 0 --count=5001 a b
	cmp a b
	expect 1 --strict --count=5001 a c
	says "fcopy: a: had 5000 bytes, not 5001"
	absent c
	expect 0 --strict --count=5000 a c
	cmp a c
}

@test "--count of a large sparse file: holes stay, and nothing after the count is read" {
	truncate -s 8M a
	random tail 1M
	cat tail >>a
	truncate -s 16G a
	expect 0 --count=8500000 --reflink=never a b
	is_head a 8500000
	[ "$(stat -c %b b)" -lt 2000 ] || skip "no holes on this file system"
	expect 0 --count=8500000 --sparse=never --preallocate=always a b
	is_head a 8500000
	[ "$(stat -c %b b)" -ge 16602 ] && [ "$(stat -c %b b)" -le 16700 ] ||
		{ stat -c %b b; return 1; }
}

@test "--count over a longer DST, replaced and in place: DST ends there" {
	random a 200000
	random b 300000
	expect 0 --count=100001 a b
	is_head a 100001
	random b 300000
	expect 0 --inplace --count=100001 a b
	is_head a 100001
}

@test "--count of an endless device: to a file, a pipe, /dev/null" {
	local mode
	for mode in auto readwrite splice; do
		bounded 0 --count=1000001 /dev/zero b "$mode"
		is_head /dev/zero 1000001
		[ "$("$FCOPY" --count=100001 /dev/zero - $mode | head -c 1M | wc -c)" = 100001 ]
	done
	bounded 0 --count=1M /dev/urandom /dev/null
}

@test "--count of standard input leaves the rest to the next reader" {
	random a 300000
	local how
	for how in 'cat a | (sleep 0.2; "$0" --count=100001 - b; cat >c)' \
		'("$0" --count=100001 - b; cat >c) <a'; do
		run --separate-stderr bash -c "$how" "$FCOPY"
		demand 0
		is_head a 100001
		cat b c | cmp a
	done
}

@test "--count of a stream that ends earlier: success as with head -c, with --strict a failure" {
	run --separate-stderr bash -c 'printf abc | "$0" --count=10 - b' "$FCOPY"
	demand 0
	says ""
	holds abc b
	run --separate-stderr bash -c 'printf abcd | "$0" --strict --count=10 - b' "$FCOPY"
	demand 1
	says "fcopy: -: had 4 bytes, not 10"
	holds abc b
}

@test "--size --strict: an endless source fails one byte after SIZE" {
	local mode
	for mode in auto readwrite splice; do
		bounded 1 --strict --size=1M /dev/zero b "$mode"
		says "fcopy: /dev/zero: has more than 1048576 bytes"
		absent b
	done
	run --separate-stderr bash -c 'yes | head -c 64M | "$0" --strict --size=1M - b' "$FCOPY"
	demand 1
	absent b
	run --separate-stderr bash -c 'yes | head -c 64M | "$0" --strict --size=1M --count=2M - b' "$FCOPY"
	demand 1
	says "fcopy: -: has more than 1048576 bytes"
	run --separate-stderr bash -c 'yes | head -c 64M | "$0" --strict --size=1M --count=1M - b' "$FCOPY"
	demand 0
	[ "$(stat -c %s b)" = 1048576 ]
}

@test "--count with --fsync, --verify, --resume and -p" {
	random a 3000000
	touch -d @1 a
	expect 0 -p --verify --count=1500001 a b
	is_head a 1500001
	[ "$(stat -c %Y b)" = 1 ]
	rm b
	begin_part a b 976
	expect 0 --resume --count=1500001 a b
	is_head a 1500001
	rm b
	begin_part a b 1953
	expect 0 --resume --count=1500001 a b
	is_head a 1500001
}

@test "--count of a clone is refused; auto copies instead" {
	random a 100000
	expect 2 --reflink=always --count=50000 a b
	mentions "only the whole file can be cloned"
	expect 2 --count=50000 a b reflink
	mentions "only the whole file can be cloned"
	expect 0 --count=50000 a b
	is_head a 50000
}

@test "--count over a connection: that much arrives" {
	random a 300000
	serve tcp-listen:0 b
	expect 0 --count=100001 a tcp:127.0.0.1:"$port"
	ended 0
	is_head a 100001
}
