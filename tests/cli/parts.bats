#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# DST.fcopy-part is also a source, or of another copy, or is taken away: nothing is lost.

load helper
load tree

# is_source ARG…: fcopy ARG… refuses a source that is the part of d/x, and touches nothing.
is_source() {
	expect 1 "$@"
	says "fcopy: d/x: its .fcopy-part is the source"
	holds data d/x.fcopy-part
	[ "$(ls d)" = x.fcopy-part ]
}

@test "--resume: the part is the source, by every alias" {
	local option
	mkdir d
	echo data >d/x.fcopy-part
	chmod 600 d/x.fcopy-part
	for option in --resume -a -p -r --verify --strict --fsync -f; do
		is_source --resume $option d/x.fcopy-part d/x
	done
	ln -s d/x.fcopy-part soft
	ln -s d/x.fcopy-part x
	is_source --resume soft d/x
	is_source --resume x d/
	ln d/x.fcopy-part hard
	is_source --resume hard d/x
	[ "$(stat -c %a hard)" = 600 ]
}

@test "--resume: the part is the source, and DST exists" {
	echo data >x.fcopy-part
	chmod 600 x.fcopy-part
	echo old >x
	expect 1 --resume x.fcopy-part x
	says "fcopy: x: its .fcopy-part is the source"
	holds data x.fcopy-part
	holds old x
}

@test "--resume: the part is the source, through an overlay" {
	need_root "to mount an overlay"
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t tmpfs tmpfs "$PWD"; cd "$PWD"; mkdir lower upper work m
		mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay m || exit 9
		head -c 10001 /dev/urandom >m/x.fcopy-part; cp m/x.fcopy-part saved
		chmod 600 m/x.fcopy-part
		"$FCOPY" --resume upper/x.fcopy-part m/x && exit 8
		"$FCOPY" --shard=0/1 upper/x.fcopy-part m/x && exit 7
		cmp saved upper/x.fcopy-part'
	[ "$status" != 9 ] || skip "no overlay here"
	demand 0
	[ "$(grep -c 'x: its .fcopy-part is the source' <<<"$stderr")" = 2 ]
}

@test "shards: the part is the source" {
	local shard
	mkdir d
	for shard in 0/1 1/2 finish/1; do
		echo data >d/x.fcopy-part
		is_source --shard=$shard d/x.fcopy-part d/x
		: >d/x.fcopy-part
		expect 1 --shard=$shard d/x.fcopy-part d/x
		[ "$(ls d)" = x.fcopy-part ]
	done
	rm d/x.fcopy-part
	mkdir d/x.fcopy-part
	expect 1 -r --shard=0/1 d/x.fcopy-part d/x
	says "fcopy: d/x: its .fcopy-part contains the source"
	[ "$(ls d)" = x.fcopy-part ]
}

# contains ARG…: fcopy ARG… refuses a source in the part of x, and touches nothing.
contains() {
	expect 1 "$@"
	says "fcopy: x: its .fcopy-part contains the source"
	[ "$(names_of x.fcopy-part)" = "$before" ]
	absent x
}

@test "--resume: the part is the source directory, or contains it" {
	local before option
	mkdir -p x.fcopy-part/sub/d
	echo data >x.fcopy-part/sub/d/f
	echo other >x.fcopy-part/other
	ln -s x.fcopy-part/sub link
	before=$(names_of x.fcopy-part)
	for option in -r -a -rx -rL; do
		contains $option x.fcopy-part x
		contains $option --resume x.fcopy-part x
		contains $option --resume x.fcopy-part/sub x
		contains $option --resume x.fcopy-part/sub/d x
		contains $option --resume link/ x
	done
	contains -r --shard=0/1 x.fcopy-part/sub x
}

@test "--resume: the part contains the source, or is inside it, by a bind mount" {
	need_root "to mount"
	mkdir -p x.fcopy-part/sub m s/sub {y,z}.fcopy-part
	touch s/file x.fcopy-part/sub/f
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount --bind x.fcopy-part/sub m; mount --bind s y.fcopy-part
		"$FCOPY" -r --resume m x && exit 8
		"$FCOPY" -rx --resume m x && exit 7
		"$FCOPY" -r --resume s/sub y && exit 6
		mount --bind s/sub z.fcopy-part
		"$FCOPY" -r --resume s z && exit 5
		exit 0'
	demand 0
	mentions "x: its .fcopy-part contains the source" "y: its .fcopy-part contains the source" \
		"z: is inside the source tree"
	[ -e x.fcopy-part/sub/f ]
	[ -e s/file ]
}

# collides FIRST SECOND ARG…: fcopy ARG… refuses, because the part of FIRST has the name of SECOND.
collides() {
	local first=$1 second=$2
	shift 2
	expect 2 "$@"
	mentions "$first and $second: cannot be copied together: an unfinished copy of the first"
	[ -z "$(ls -A into)" ]
}

@test "a source whose unfinished copy has the name of another source is refused" {
	mkdir into d d/dir dir.fcopy-part m
	random a 100000
	head -c 50000 a >a.fcopy-part
	chmod 600 a.fcopy-part
	touch d/dir/1 dir.fcopy-part/2 a-b
	collides a a.fcopy-part --resume a a.fcopy-part into
	collides a a.fcopy-part --resume a.fcopy-part a-b ./a into
	collides a a.fcopy-part -a --resume -t into a.fcopy-part a
	collides d/dir/ dir.fcopy-part/ -r --resume dir.fcopy-part/ d/dir/ into
	# A tree with failed entries is kept without --resume, too.
	collides d/dir dir.fcopy-part -r dir.fcopy-part d/dir into
	collides d/dir dir.fcopy-part -a d/dir dir.fcopy-part into
	cp a.fcopy-part m
	collides a m/./a.fcopy-part -r --resume m/. a into
	expect 0 -r m/. a into
	expect 0 a a.fcopy-part into
	cmp a into/a
	cmp a.fcopy-part into/a.fcopy-part
}

has_bytes() {
	[ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt 0 ]
}

@test "--resume: a part that was removed and begun again by another copy is not committed by the first" {
	local first second status=0
	random a 4000000
	"$FCOPY" --resume --limit-rate=2M a b 2>err 3>&- &
	first=$!
	await has_bytes b.fcopy-part/data
	kill -STOP $first
	mv b.fcopy-part away
	"$FCOPY" --resume --limit-rate=100K a b 2>/dev/null 3>&- &
	second=$!
	await has_bytes b.fcopy-part/data
	kill -CONT $first
	wait $first || status=$?
	[ $status = 1 ]
	[ "$(cat err)" = "fcopy: b: its .fcopy-part was moved or replaced during the copy" ] || { cat err; return 1; }
	absent b
	kill -TERM $second
	wait $second || true
	[ -f b.fcopy-part/data ]
}

@test "-r --resume: a part that was moved away and begun again by another copy is not committed by the first" {
	local first second status=0
	mkdir s
	random s/f 4000000
	"$FCOPY" -r --resume --limit-rate=2M s d 2>err 3>&- &
	first=$!
	await test -f d.fcopy-part/journal
	kill -STOP $first
	mv d.fcopy-part away
	"$FCOPY" -r --resume --limit-rate=100K s d 2>/dev/null 3>&- &
	second=$!
	await test -f d.fcopy-part/journal
	kill -CONT $first
	wait $first || status=$?
	[ $status = 1 ]
	absent d
	never grep 'kept' err
	kill -TERM $second
	wait $second || true
	[ -f d.fcopy-part/journal ]
}
