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

# stale: shards have committed dst, and then dst was removed.
stale() {
	rm -rf dst dst.*
	shards 2
	rm -r dst
}

# delayed N SRC: starts share 1, which waits before its Nth look at a lock.
delayed() {
	: >trace
	strace -qq -o trace -e inject=flock:delay_enter=2000000:when="$1" \
		"$FCOPY" --shard=1/2 "$2" dst 2>err &
	late=$!
	began() { [ "$(grep -c 'flock(' trace)" -ge "$1" ]; }
	await began "$1"
}

@test "two shards that start over from one old receipt: neither removes what the other has made" {
	need_strace
	random src 4000000
	local n
	for n in 1 2 3; do
		stale
		delayed $n src
		expect 0 --shard=0/2 src dst
		wait $late || { cat err; return 1; }
		grep -q DELAYED trace
		committed
	done
}

@test "a shard that drops another job's receipt late keeps the part of that job if it starts over" {
	need_strace
	random src 4000000
	random other 4000000
	local n
	for n in 1 2 3; do
		stale
		delayed $n other
		expect 0 --shard=0/2 src dst
		# The other job copies, too, or is refused.
		if wait $late; then cmp other dst; else cmp src dst; fi
		grep -q DELAYED trace
	done
}

@test "a late shard that found an old receipt removes none of the job that has committed since" {
	need_strace
	random src 4000000
	stale
	: >trace
	strace -qq -o trace -P dst.fcopy-part -e trace=openat -e inject=openat:delay_enter=2000000:when=2 \
		"$FCOPY" --shard=1/2 --json src dst >report 2>err 3>&- &
	local late=$! inode
	looks_again() { [ "$(grep -c 'openat(' trace)" -ge 2 ]; } # the second time to remove it
	await looks_again
	expect 0 --shard=0/2 src dst
	inode=$(stat -c %i dst)
	wait $late || { cat err; return 1; }
	grep -q DELAYED trace
	[ "$(jq -c '[.committed, .bytes]' report)" = '[true,0]' ]
	[ "$(stat -c %i dst)" = "$inode" ]
	committed
}

@test "a process that was killed after the rename: the next one finds the copy complete, and cleans up" {
	need_strace
	random src 4000000
	mkdir tree
	cp src tree
	local from i
	for from in src tree; do
		rm -rf dst dst.*
		# The last unlinkat is after the rename.
		run strace -f -qq -o trace -e inject=unlinkat:signal=KILL:when=2+ "$FCOPY" -r --shard=0/2 $from dst
		diff -r $from dst
		[ -e dst.fcopy-part/share.claim.0 ]
		expect 0 -rT --shard=1/2 --json $from dst
		[ "$(jq .committed <<<"$output")" = true ]
		left_only_receipt dst
	done
}

@test "finish leaves the receipt of another job, and of an older copy" {
	random src 3000000
	shards 2
	expect 1 --shard=finish/3 src dst
	mentions 'dst: 3 of 3 chunks are missing'
	committed
	expect 0 --shard=finish/2 src dst
	expect 0 --shard=1/2 src dst
	committed
	stale
	cp dst.fcopy-part/journal before
	expect 1 --shard=finish/2 src dst
	mentions 'dst: 2 of 2 chunks are missing'
	cmp before dst.fcopy-part/journal
	shards 2
	committed
}

@test "a tree that is refused because DST exists: the receipt stays" {
	local of_another_job='fcopy: dst: is complete, but of another job, or of an earlier SRC: rename DST and run again'
	mkdir src other
	echo one >src/file
	echo two >other/file
	expect 0 -aT --shard=0/1 src dst
	for share in 0/2 finish/2; do
		expect 1 -aT --shard=$share src dst
		says "$of_another_job"
		expect 1 -a --shard=$share src dst
		says "$of_another_job"
	done
	expect 1 -rT --shard=0/1 src dst
	says "$of_another_job"
	expect 1 -aT --shard=0/1 --job=other src dst
	says "$of_another_job"
	expect 1 -aT --shard=0/1 other dst
	says "$of_another_job"
	committed
	expect 0 -aT --shard=finish/1 src dst
	expect 0 -aT --shard=0/1 src dst
}

@test "a command that is refused because of DST begins no job" {
	mkdir src dst
	expect 2 -aT --shard=0/2 src dst
	mentions 'dst: exists: shards only make a new tree'
	absent dst.fcopy-part
	rmdir dst
	touch -d '2001-02-03' src
	shards 2 -aT
	committed
	rm -r src dst dst.fcopy-part
	random src 3000000
	echo old >dst
	ln dst link
	expect 2 --shard=0/2 src dst
	mentions 'dst: has other hard links'
	absent dst.fcopy-part
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
	absent dst.fcopy-part
	holds old dst
}

@test "an entry that has changed in size: the hint is to start over" {
	mkdir -p src/d
	echo x >src/d/1
	echo x >src/d/2
	ln src/d/2 src/link
	apart 0 -a -j1 --shard=0/2 src dst
	echo y >>src/d/2
	expect 1 -a --shard=1/2 src dst
	mentions 'dst: SRC changed between the shards' \
		'hint: to start over, remove dst.fcopy-part while no shard runs'
	[[ $stderr != *'same command'* ]]
	rm -r dst.fcopy-part
	shards 2 -a
	committed
}

@test "a receipt that holds a foreign file is neither hidden nor removed: the copy is refused" {
	local -a of_shards=('fcopy: dst: its .fcopy-part belongs to a copy in shards'
		'fcopy: hint: to start over, remove dst.fcopy-part while no shard runs')
	random src 100000
	shards 2
	echo mine >dst.fcopy-part/mine
	random src 100000
	expect 1 --resume src dst
	says "${of_shards[@]}"
	holds mine dst.fcopy-part/mine
	need_strace
	run --separate-stderr strace -f -qq -o trace -P "$(pwd -P)/dst.fcopy-part" -e trace=getdents64 \
		-e inject=getdents64:error=EIO "$FCOPY" --resume src dst # what it holds is unknown
	demand 1
	injected
	says "${of_shards[@]}"
	holds mine dst.fcopy-part/mine
	expect 1 --shard=0/2 src dst # another job
	says 'fcopy: dst: its .fcopy-part can be neither used nor removed' "${of_shards[1]}"
	holds mine dst.fcopy-part/mine
	rm dst.fcopy-part/mine
	expect 0 --resume src dst
	cmp src dst
	[ "$(find . -name '.fcopy-*' -o -name '*.fcopy-part')" = '' ]
}

@test "a .fcopy-part that is not a directory of this user with mode 700 is refused, and the hint names it" {
	random src 3000000
	mkdir tree
	local make from
	for from in src tree; do
		for make in 'ln -s src' 'ln -s tree' 'mkdir -m 755' 'mkdir -m 700' mkfifo touch; do
			rm -rf dst.fcopy-part
			$make dst.fcopy-part
			expect 1 -r --shard=0/2 $from dst
			mentions 'dst: its .fcopy-part' 'hint: remove or rename dst.fcopy-part'
			[[ $stderr != *'same command'* ]]
			absent dst
		done
	done
	rm dst.fcopy-part
	shards 2
	committed
}

# damage_list HOW: the list of dst; its last line has the right sum where only what is before it is damaged.
damage_list() {
	python3 - "$1" dst.fcopy-part/share.list.* <<'PYTHON'
import sys

def list_hash_text(text):
    mask, whole = (1 << 64) - 1, len(text) // 8 * 8
    total = 0xcbf29ce484222325 ^ len(text)
    for i in range(0, whole, 8):
        total = (total ^ int.from_bytes(text[i:i + 8], "little")) * 0x9e3779b97f4a7c15 & mask
        total ^= total >> 29
    for byte in text[whole:]:
        total = (total ^ byte) * 0x100000001b3 & mask
    total ^= total >> 33
    total = total * 0xff51afd7ed558ccd & mask
    return total ^ total >> 33

for path in sys.argv[2:]:
    with open(path, "rb") as f:
        lines = f.read().splitlines(True)[:-1]
    text = {"null": b"".join(lines)[:-1] + b"\0\n", "kind": b"x" + b"".join(lines)[1:], "field": b"".join(lines).replace(b" ", b" z ", 3),
            "escape": b"".join(lines)[:-2] + b"\\9\n", "empty": b"".join(lines)[:-2] + b"\\000\n",
            "in": b"in ../b\n" + b"".join(lines[1:]), "root": b"in /\n" + b"".join(lines[1:]),
            "from": b"".join(lines[:-1]) + b"link a/../../b c\n", "absolute": b"".join(lines[:-1]) + b"link /b c\n",
            "parent": b"".join(lines[:-1]) + lines[-1].rsplit(b" ", 1)[0] + b" ..\n"}.get(sys.argv[1], b"".join(lines))
    total = list_hash_text(text)
    end = b"" if sys.argv[1] == "short" else b"end %d %016x\n" % (len(lines), total ^ (sys.argv[1] == "sum"))
    with open(path, "wb") as f:
        f.write(b"" if sys.argv[1] == "nothing" else (text + end)[:-1] if sys.argv[1] == "cut" else text + end)
PYTHON
}

@test "a shard refuses a damaged list of a tree, and commits nothing" {
	need_strace
	need python3
	local how i
	mkdir src
	for ((i = 0; i < 600; i++)); do echo $i >src/$i; done
	for how in whole nothing cut short sum null kind field escape empty parent in root from absolute; do
		rm -rf dst dst.*
		apart 0 -r --shard=0/2 src dst
		damage_list $how
		if [ $how = whole ]; then
			apart 0 -r --shard=1/2 src dst
			diff -r src dst
			continue
		fi
		apart 1 -r --shard=1/2 src dst
		mentions "damaged list"
		[ ! -e dst ]
	done
}

@test "a process that only commits for other shards can be interrupted" {
	need_strace
	need flock pgrep
	local tracer status=0
	random src 3000000
	apart 0 --shard=0/2 src dst
	run --separate-stderr flock -s dst.fcopy-part/lock "$FCOPY" --shard=1/2 src dst # marker, no commit
	absent dst
	strace -qq -o /dev/null -e trace=fsync -e inject=fsync:delay_enter=2000000:when=1 \
		"$FCOPY" --shard=finish/2 src dst 2>/dev/null 3>&- &
	tracer=$!
	started() { pgrep -P $tracer -x fcopy >pid; }
	await started
	in_fsync() { grep -q '^74 ' "/proc/$(cat pid)/syscall"; } # x86-64
	[ "$(uname -m)" = x86_64 ] || skip "the number of fsync is that of x86-64"
	await in_fsync
	kill -TERM "$(cat pid)"
	wait $tracer || status=$?
	[ $status = 143 ]
	absent dst
	expect 0 --shard=finish/2 src dst
	cmp src dst
}

@test "a late retry of a committed job does not disturb the job that has begun since" {
	need_strace
	local late status=0
	random src 4000000
	shards 2
	: >trace
	strace -qq -o trace -e trace=flock -e inject=flock:delay_enter=3000000:when=1 \
		"$FCOPY" --shard=1/2 src dst 2>/dev/null 3>&- &
	late=$!
	await said 'flock(' trace
	rm dst
	apart 0 --shard=0/2 src dst
	wait $late || status=$?
	[ $status -le 1 ]
	expect 0 --shard=1/2 src dst
	cmp src dst
}

@test "a late retry of a tree writes nothing into DST, even if an entry is missing for one call" {
	need_strace
	local n inode
	mkdir s
	echo 1 >s/f
	expect 0 -r --shard=0/1 s d
	inode=$(stat -c %i d/f)
	for ((n = 1; n < 40; n++)); do
		strace -f -qq -o trace -e trace=newfstatat,fstatat64 -e inject=newfstatat,fstatat64:error=ENOENT:when=$n \
			"$FCOPY" -r -j1 --shard=0/1 s d 2>/dev/null || true
		grep -q INJECTED trace || break
		[ "$(stat -c %i d/f)" = "$inode" ] || { echo "d/f was replaced at call $n"; return 1; }
	done
	[ $n -gt 5 ]
}

@test "a signal interrupts the call that settles a claim, or empties the list: it is made again" {
	need_strace
	local n all
	mkdir s
	echo a >s/f
	traced 0 trace=ftruncate -r -j1 --shard=0/1 s d
	all=$(grep -E '^[0-9]+ +ftruncate\(' trace | grep -n '/share\.' | cut -d: -f1)
	[ "$(wc -w <<<"$all")" = 2 ]
	grep -q 'ftruncate(.*/share\.claim\.list>, 0)' trace
	for n in $all; do
		rm -r d d.fcopy-part
		traced 0 "inject=ftruncate:error=EINTR:when=$n" -r -j1 --shard=0/1 s d
		injected
		diff -r s d
	done
}

@test "a signal while the end of the list is written: no other failure is reported" {
	need_strace
	mkdir s
	echo a >s/f
	ln s/f s/link
	# The first one is of the journal, the second one of the chunk of the link.
	run --separate-stderr strace -f -qq -o trace -e trace=fdatasync -e inject=fdatasync:signal=TERM:when=2 \
		"$FCOPY" -a -j1 --shard=0/1 s d
	grep -q 'fdatasync(.*INJECTED' trace || grep -q SIGTERM trace
	never grep -i memory <<<"$stderr"
	absent d
	expect 0 -a -j1 --shard=0/1 s d
	diff -r s d
}

@test "a commit line torn by a power cut: the next commit line is still read" {
	need_strace
	random src 4000000
	! strace -f -qq -o /dev/null -e trace=renameat -e inject=renameat:signal=KILL \
		"$FCOPY" --shard=0/2 src dst || return 1
	[ "$(tail -n 1 dst.fcopy-part/journal | cut -d ' ' -f 2)" = commit ]
	[ -e dst.fcopy-part/data ]
	truncate -s -20 dst.fcopy-part/journal
	expect 0 --shard=1/2 src dst
	committed
	expect 0 --shard=0/2 src dst
	committed
}
