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
	on_disk "to drop pages"
	random a 20000000
	sync a
	dd if=a iflag=nocache count=0 status=none
	[ "$(resident a)" -lt 200000 ] || skip "pages cannot be dropped on this file system"
}

# uncached: can files here be read and written with RWF_DONTCACHE (Linux 6.14)? The kernel is
# asked by plain system calls, not by the program under test.
uncached() {
	python3 - <<-'END' 2>/dev/null
		import os
		fd = os.open("uncached.probe", os.O_RDWR | os.O_CREAT)
		os.unlink("uncached.probe")
		os.pwritev(fd, [b"x"], 0, 0x80)
		os.preadv(fd, [bytearray(1)], 0, 0x80)
	END
}

# direct: can files here be read and written past the page cache by O_DIRECT and io_uring?
direct() {
	has_mode direct
}

# need_uncached [WAY]: skips where neither way, or not this one, is possible.
need_uncached() {
	need python3
	"${1:-uncached}" || { [ $# = 0 ] && direct; } || skip "no ${1:-uncached or direct} I/O here"
}

no_cache() {
	need_uncached
	expect 0 --no-cache "$@"
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
	local able=1
	need_strace
	setup_uncached
	need python3
	! uncached || able=0
	run --separate-stderr strace -f -qq -o trace -e inject=io_uring_setup:error=EPERM \
		"$FCOPY" --no-cache a b
	injected
	demand $able
	if [ $able = 0 ]; then
		[ "$(resident b)" -le 200000 ] || { echo "b: $(resident b)"; return 1; }
		cmp a b
	else
		mentions "fcopy: "
		absent b
	fi
}

@test "--no-cache --sparse=always: holes, or a refusal" {
	truncate -s 3M a
	random b 100000
	cat b >>a
	if ! uncached; then # no other way writes holes
		expect 1 --no-cache --sparse=always a c
		says "fcopy: a: the page cache cannot be bypassed here" "fcopy: hint: leave out --no-cache"
		absent c
		return
	fi
	no_cache --sparse=always a c
	cmp a c
	[ "$(stat -c %b c)" -lt 1000 ]
}

@test "--no-cache from a pipe: a usage error" {
	run --separate-stderr bash -c 'echo a | "$0" --no-cache - b' "$FCOPY"
	demand 2
	says "fcopy: -: has no page cache to bypass"
	absent b
}

@test "--no-cache --inplace where nothing goes past the cache: refused before the first hole" {
	need_strace
	on_disk "for uncached I/O"
	random d 4096
	truncate -s 300000 a
	dd if=d of=a bs=4096 seek=20 conv=notrunc status=none
	random old 400000
	need_uncached uncached
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
	mentions "fcopy: m/b: the page cache cannot be bypassed here" \
		"fcopy: m/a: the page cache cannot be bypassed here" \
		"fcopy: hint: leave out --no-cache"
}
