#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What has changed between the shards of a tree: source, options, umask.

load helper
load shard
load shard_tree

@test "another N, other options or another source are refused" {
	make_source
	part 0 -a --shard=0/2
	expect 1 -a --shard=1/3 s t
	mentions 'its shards were begun with N = 2, not 3'
	expect 1 -r --shard=1/2 s t
	mentions 'begun with another source or options'
	touch s/new
	expect 1 -a --shard=1/2 s t
	absent t
}

@test "a source that changes between two shards is refused" {
	local change
	for change in 'printf X >s/d/1' 'chmod 600 s/d/1' 'rm s/d/1' 'chmod 700 s/empty' 'ln s/d/1 outside'; do
		chmod -R u+rwx s t.* 2>/dev/null || true
		rm -rf s t t.* outside
		make_source
		part 0 -a --shard=0/2 # chunk 1 has s/d/1 and its other names
		sleep 0.01
		eval "$change"
		expect 1 -a --shard=1/2 s t
		mentions 't: SRC changed between the shards' 'hint: to start over, remove t.fcopy-part'
		absent t
	done
}

@test "a file that could not be read, and is made readable: the same commands complete the copy" {
	local share
	mkdir w
	cp "$FCOPY" w/fcopy
	! is_root || chown 65534:65534 w
	cd w
	as() { if is_root; then run $NOBODY "$@"; else run "$@"; fi; }
	as bash -c 'mkdir s; for i in $(seq 900); do echo $i >s/$i; done; chmod 0 s/7'
	as ./fcopy -a --shard=0/2 s t
	[ "$status" = 1 ]
	[[ $output == *"s/7: open: Permission denied"* ]]
	as ./fcopy -a --shard=1/2 s t
	absent t
	as chmod 640 s/7
	for share in 0 1 0 1; do
		as ./fcopy -a --shard=$share/2 s t
		[ "$status" = 0 ] || { echo "$output"; return 1; }
	done
	diff -r s t
	[ "$(stat -c %a t/7)" = 640 ]
	# What has other bytes is refused.
	as chmod 0 s/8
	as ./fcopy -a --shard=0/2 s u
	[ "$status" = 1 ]
	as bash -c 'chmod 640 s/8; echo more >>s/8'
	as ./fcopy -a --shard=0/2 s u
	[ "$status" = 1 ]
	[[ $output == *"u: SRC changed between the shards"* ]]
	absent u
}

@test "a large file that could not be read, and is made readable: the copy has its new mode" {
	local share
	mkdir w
	cp "$FCOPY" w/fcopy
	! is_root || chown 65534:65534 w
	cd w
	as() { if is_root; then run $NOBODY "$@"; else run "$@"; fi; }
	as bash -c 'mkdir -p s/d; for i in $(seq 400); do echo $i >s/d/$i; done; truncate -s 300M s/d/large
		echo data | dd of=s/d/large bs=1M seek=200 conv=notrunc status=none; chmod 0 s/d/large'
	as ./fcopy -a --shard=0/2 s t
	[ "$status" = 1 ]
	[[ $output == *"s/d/large: open: Permission denied"* ]]
	as chmod 640 s/d/large
	for share in 0 1 0 1; do
		as ./fcopy -a --shard=$share/2 s t
		[ "$status" = 0 ] || { echo "$output"; return 1; }
	done
	[ "$(stat -c '%a %s' t/d/large)" = '640 314572800' ]
	as diff -r s t
	[ "$status" = 0 ]
}

@test "a large file whose ctime alone has changed since an attempt may have other bytes: refused" {
	mkdir -p s/d
	for n in {1..400}; do echo $n >s/d/$n; done
	truncate -s 300M s/d/large
	echo data | dd of=s/d/large bs=1M seek=200 conv=notrunc status=none
	touch -r s/d/large time
	(
		ulimit -f 100
		expect 1 -a --shard=0/2 s t
		mentions 't/d/large: ' ': File too large'
	)
	echo new | dd of=s/d/large bs=1M seek=100 conv=notrunc status=none
	touch -r time s/d/large
	expect 1 -a --shard=0/2 s t
	mentions 't: SRC changed between the shards'
	absent t
}

@test "shards with another umask are refused if modes depend on it, also that of the commit" {
	local share
	make_source
	(
		umask 022
		part 0 -r --preserve=links --shard=0/2
	)
	for share in 0/2 1/2 finish/2; do
		(
			umask 027
			expect 1 -r --preserve=links --shard=$share s t
			mentions 't: its shards were begun with umask 022: use the same umask'
		)
	done
	absent t
	umask 022
	expect 0 -r --preserve=links --shard=1/2 s t
	[ "$(stat -c %a t/d/5)" = 644 ]
	chmod -R u+rwx t
	rm -r t t.*
	(
		umask 022
		part 0 -a --shard=0/2
	)
	umask 027
	expect 0 -a --shard=1/2 s t
	committed
}

@test "--job with a space: other options are refused as such, another name by that name" {
	make_source
	part 0 -a --job='a b' --shard=0/2
	expect 1 -r --job='a b' --shard=1/2 s t
	mentions 't: its shards were begun with another source or options'
	[[ $stderr != *--job* ]] || { printf '%s\n' "$stderr"; return 1; }
	expect 1 -a --job='a c' --shard=1/2 s t
	mentions 't: its shards were begun with --job=a b'
	expect 0 -a --job='a b' --shard=1/2 s t
	committed
}
