#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --no-cache leaves the page cache as it was.

load helper

resident() {
	fincore --bytes --noheadings --output RES "$1" 2>/dev/null | tr -d ' '
}

# A file of 20 MB on the disk, and not in the cache.
setup_uncached() {
	need fincore # of util-linux-extra
	random a 20000000
	sync a
	dd if=a iflag=nocache count=0 status=none
	[ "$(resident a)" -lt 200000 ] || skip "pages cannot be dropped on this file system"
}

# An honest refusal is an answer too: then it is told why, and nothing is made.
no_cache() {
	run --separate-stderr "$FCOPY" --no-cache "$@"
	[ "$status" != 1 ] || [[ $stderr != *"fcopy: "* ]] || skip "refused here: $stderr"
	demand 0
}

@test "--no-cache: of neither file more than 1 % is cached afterwards" {
	setup_uncached
	no_cache a b
	cmp -n 0 a b
	[ "$(resident a)" -le 200000 ] || { echo "a: $(resident a)"; return 1; }
	[ "$(resident b)" -le 200000 ] || { echo "b: $(resident b)"; return 1; }
	cmp a b
}

@test "--no-cache: over an old file, an odd tail, a small file, an empty one" {
	setup_uncached
	local size
	for size in 0 1 4097 1000001; do
		random c $size
		sync c
		echo "old and whole" >b
		no_cache c b
		cmp c b
		rm b
		no_cache c b
		cmp c b
	done
}

@test "--no-cache: what of the source was cached stays" {
	setup_uncached
	cat a >/dev/null
	local before
	before=$(resident a)
	no_cache a b
	[ "$(resident a)" -ge $((before - 200000)) ] || { echo "$before, now $(resident a)"; return 1; }
	[ "$(resident b)" -le 200000 ] || { echo "b: $(resident b)"; return 1; }
	cmp a b
}

@test "--no-cache: a sparse file, and in place" {
	setup_uncached
	truncate -s 30000001 a
	sync a
	no_cache a b
	cmp a b
	random c 35000000
	sync c
	no_cache --inplace a c
	cmp a c
}

@test "--no-cache where the kernel refuses direct I/O: another way, or a refusal; never a cached copy" {
	need_strace
	setup_uncached
	run --separate-stderr strace -f -qq -o trace -e inject=io_uring_setup:error=EPERM \
		"$FCOPY" --no-cache a b
	injected
	if [ "$status" = 0 ]; then
		[ "$(resident b)" -le 200000 ] || { echo "b: $(resident b)"; return 1; }
		cmp a b
	else
		demand 1
		mentions "fcopy: "
		absent b
	fi
}

@test "--no-cache --sparse=always: holes, or a refusal" {
	truncate -s 3M a
	random b 100000
	cat b >>a
	no_cache --sparse=always a c
	cmp a c
	[ "$(stat -c %b c)" -lt 1000 ]
}

@test "--no-cache from a pipe: a usage error" {
	run --separate-stderr bash -c 'echo a | "$0" --no-cache - b' "$FCOPY"
	demand 2
	says "fcopy: -: has no page cache that could be left as it was"
	absent b
}

@test "--no-cache --inplace where nothing goes past the cache: refused before the first hole" {
	need_strace
	random d 4096
	truncate -s 300000 a
	dd if=d of=a bs=4096 seek=20 conv=notrunc status=none
	random old 400000
	strace -f -qq -o trace -e inject=io_uring_setup:error=EPERM "$FCOPY" --no-cache a probe ||
		skip "no uncached I/O on this file system"
	mkdir m
	export FCOPY
	# tmpfs has no uncached I/O
	private_mounts 'mount -t tmpfs tmpfs m; cp old m/b; cp a m/a
		for pair in "a m/b" "m/a old2"; do
			cp old old2
			! strace -f -qq -o trace -e inject=io_uring_setup:error=EPERM \
				"$FCOPY" --no-cache --inplace $pair || exit 9
			grep -q INJECTED trace; cmp old m/b; cmp old old2
		done'
	demand 0
	mentions "fcopy: m/b: cannot be copied past the page cache here" \
		"fcopy: m/a: cannot be copied past the page cache here" \
		"fcopy: hint: it is --no-cache that is refused: leave it out"
}
