#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard: no process removes records that are still needed, and a refused command changes none.

load helper
load shard

# dst is whole, and only the receipt of the job is left.
committed() {
	diff -r src dst
	left_only_receipt dst
}

# stale [left]: shards have committed dst, and then dst was removed. left: the process that committed
# was killed before it removed the other records.
stale() {
	rm -rf dst dst.*
	expect 0 --shard=0/2 src dst
	mkdir before
	cp dst.fcopy-shards/* before
	expect 0 --shard=1/2 src dst
	[ "${1-}" != left ] || cp -n before/* dst.fcopy-shards/
	inode=$(stat -c %i dst)
	rm -r dst before
}

# take_inode: a file takes the inode of the old dst, so that the part gets another one.
take_inode() {
	local n
	for n in {1..300}; do
		: >"filler$n"
		[ "$(stat -c %i "filler$n")" != "$inode" ] || return 0
	done # a file of another process has it
}

# delayed SECONDS N SRC [OPTION…]: starts shard 1, which waits before its Nth call to list records.
delayed() {
	: >trace
	strace -qq -o trace -e inject=getdents64:delay_enter=$(($1 * 1000000)):when="$2" "${@:4}" \
		"$FCOPY" --shard=1/2 "$3" dst 2>err &
	late=$!
	await listed "$2"
}

@test "two shards that start over from one old receipt: neither removes records of the other" {
	need_strace
	random src 4000000
	local left n
	for left in '' left; do
		for n in 1 3 5; do
			stale $left
			delayed 2 $n src
			expect 0 --shard=0/2 src dst
			wait $late || { cat err; return 1; }
			grep -q DELAYED trace
			committed
		done
	done
}

@test "a retry that looks for DST just before the commit, and for records after it, finds the copy complete" {
	need_strace
	random src 4000000
	expect 0 --shard=0/2 src dst
	delayed 2 1 src
	expect 0 --shard=1/2 src dst
	wait $late || { cat err; return 1; }
	grep -q DELAYED trace
	committed
}

@test "without locks a shard that removes an old receipt late keeps the records of another part" {
	need_strace
	random src 4000000
	local n
	for n in 3 5; do
		stale
		take_inode
		delayed 2 $n src -e inject=flock:error=ENOLCK
		expect 0 --shard=0/2 src dst
		wait $late || { cat err; return 1; }
		grep -q DELAYED trace
		committed
		rm filler*
	done
}

@test "a shard that removes another job's receipt keeps the records of that job if it starts over" {
	need_strace
	random src 4000000
	random other 4000000
	local n first
	for n in 3 5; do
		stale
		delayed 2 $n other
		run "$FCOPY" --shard=0/2 src dst
		first=$status
		# One of the two jobs is refused, and the other one completes its copy.
		if wait $late; then
			[ "$first" = 1 ]
			expect 0 --shard=0/2 other dst
			cmp other dst
		else
			[ "$first" = 0 ] || { cat err; return 1; }
			expect 0 --shard=1/2 src dst
			cmp src dst
		fi
		grep -q DELAYED trace
	done
}

@test "finish leaves the receipt of another job, and of an older copy" {
	random src 3000000
	shards 2
	expect 1 --shard=finish/3 src dst
	mentions 'dst: missing shares 0-2 of 3'
	committed
	expect 0 --shard=finish/2 src dst
	expect 0 --shard=1/2 src dst
	committed
	stale left
	find dst.fcopy-shards | sort >before
	expect 1 --shard=finish/2 src dst
	mentions 'dst: missing shares 0-1 of 2'
	find dst.fcopy-shards | sort | diff before -
	shards 2
	committed
}

@test "a tree that is refused because DST exists: the receipt stays" {
	mkdir src other
	echo one >src/file
	echo two >other/file
	expect 0 -aT --shard=0/1 src dst
	for share in 0/2 finish/2; do
		expect 1 -aT --shard=$share src dst
		mentions 'dst: exists: shards only make a new tree'
	done
	expect 1 -aT --shard=0/1 other dst
	mentions 'dst: exists: shards only make a new tree'
	committed
	expect 0 -aT --shard=finish/1 src dst
	expect 0 -aT --shard=0/1 src dst
}

@test "a command that is refused because of DST begins no job" {
	mkdir src dst
	expect 1 -aT --shard=0/2 src dst
	mentions 'dst: exists: shards only make a new tree'
	absent dst.fcopy-shards
	rmdir dst
	touch -d '2001-02-03' src
	shards 2 -aT
	committed
	rm -r src dst dst.fcopy-shards
	random src 3000000
	echo old >dst
	ln dst link
	expect 1 --shard=0/2 src dst
	mentions 'dst: has other hard links'
	absent dst.fcopy-shards
	rm link
	touch -d '2001-02-03' src
	shards 2
	committed
}

@test "a file that has content but no size is refused, begins no job and keeps DST" {
	echo old >dst
	[ ! -s /proc/cpuinfo ] || skip "/proc/cpuinfo has a size"
	local share
	for share in 0/1 0/2 1/2 finish/1; do
		expect 1 --shard=$share /proc/cpuinfo dst
		says "fcopy: /proc/cpuinfo: has content, but reports no size: shards cannot divide it"
	done
	absent dst.fcopy-shards
	absent dst.fcopy-part
	holds old dst
}

@test "an entry that has changed in size: the hint is to start over" {
	mkdir -p src/d
	echo x >src/d/2
	expect 0 -a --shard=0/2 src dst
	echo y >>src/d/2
	expect 1 -a --shard=1/2 src dst
	mentions 'dst: its source changed between the shards' \
		'hint: to start over, remove dst.fcopy-part and dst.fcopy-shards while no shard runs'
	[[ $stderr != *'same command'* ]]
	rm -r dst.fcopy-part dst.fcopy-shards
	shards 2 -a
	committed
}

@test "a part that something changed: the hint is to start over" {
	local name change
	mkdir src
	for name in {1..20}; do echo "$name" >"src/$name"; done
	for change in 'rm' 'truncate -s 9'; do
		rm -rf dst dst.*
		expect 0 -a --shard=0/2 src dst
		# shellcheck disable=SC2046
		$change $(find dst.fcopy-part -type f | head -n 1)
		expect 1 -a --shard=1/2 src dst
		mentions 'dst: its .fcopy-part was changed by something else' 'hint: to start over'
		[[ $stderr != *'same command'* ]]
	done
}

@test "a .fcopy-part that is not a regular file is refused, and the hint names it" {
	random src 3000000
	local make
	for make in 'ln -s src' 'mkdir' 'mkfifo'; do
		rm -rf dst.fcopy-part
		$make dst.fcopy-part
		expect 1 --shard=0/2 src dst
		mentions 'dst: its .fcopy-part is not a regular file' \
			'hint: remove or rename dst.fcopy-part'
		[[ $stderr != *'same command'* ]]
	done
	rm dst.fcopy-part
	shards 2
	committed
	echo more >>src
	expect 0 --shard=0/2 src dst
	mv dst.fcopy-part moved
	ln -s moved dst.fcopy-part
	expect 1 --shard=1/2 src dst
	mentions 'its .fcopy-part is not the one that its shards began'
	mkdir tree
	ln -s tree other.fcopy-part
	expect 1 -aT --shard=0/2 tree other
	mentions 'other: its .fcopy-part is not a directory' 'hint: remove or rename other.fcopy-part'
}
