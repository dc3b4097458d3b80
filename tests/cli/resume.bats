#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --resume of a file: what of DST.fcopy-part/ is used again, and what is refused.

load helper

@test "--resume: a part that became DST before it was locked is not written into" {
	need_strace
	random a 300000
	random c 200000
	begin_part c b 64
	strace -f -qq -o trace -e trace=flock -e inject=flock:delay_enter=3000000:when=1 \
		"$FCOPY" --resume --limit-rate=200K c b &
	await said flock trace
	expect 0 --resume a b
	exec 5<b
	wait $!
	injected || grep -q DELAYED trace
	cmp a /dev/fd/5
	exec 5<&-
	cmp c b
	absent b.fcopy-part
}

@test "without --resume a part is neither used nor removed" {
	random a 100000
	head -c 50000 a >b.fcopy-part
	cp b.fcopy-part saved
	expect 0 a b
	cmp a b
	cmp saved b.fcopy-part
}

@test "--resume: two at once: the second fails, the first continues" {
	random a 500000
	"$FCOPY" --resume --limit-rate=50K a b &
	await test -s b.fcopy-part/data
	expect 1 --resume a b
	says "fcopy: b: another fcopy is using its .fcopy-part"
	wait $!
	cmp a b
}

@test "--resume: with -n and a file that appears during the copy no part is left" {
	random a 300000
	"$FCOPY" --resume -n --limit-rate=100K a b &
	await test -s b.fcopy-part/data
	echo theirs >b
	wait $!
	holds theirs b
	absent b.fcopy-part
}

@test "--resume: a file that appears during the copy is replaced by one that is on the disk" {
	need_strace
	random a 300000
	strace -f -y -qq -o trace -e trace=fsync,fdatasync,renameat,renameat2 "$FCOPY" --resume --limit-rate=100K a b &
	await test -s b.fcopy-part/data
	echo theirs >b
	wait $!
	cmp a b
	# The part becomes visible when its journal and the names in it are on the disk.
	order 'fdatasync\(.*journal.* = 0' ' fsync\(.*/\.fcopy-[^/]*>\) += 0' 'renameat2\(.*"b\.fcopy-part"' 'fdatasync\(.*data.* = 0' 'renameat\('
}

larger_than() { [ "$(stat -c %s "$2" 2>/dev/null || echo 0)" -gt "$1" ]; }

@test "--resume: over another's file, interrupted, then gone on with by root" {
	need_root "to have another user's file"
	random a 500000
	echo old >b
	chown 65534:65533 b
	"$FCOPY" --resume --limit-rate=200K a b &
	await larger_than 65536 b.fcopy-part/data
	kill -KILL $!
	wait $! || true
	[ "$(stat -c %u b.fcopy-part)" = 0 ]
	expect 0 --resume a b
	mentions "b: resuming at "
	cmp a b
	[ "$(stat -c %u:%g b)" = 65534:65533 ]
}

@test "a part that has all bytes says so" {
	need strace
	random a 96K
	run strace -f -qq -o /dev/null -e trace=renameat -e inject=renameat:error=EIO "$FCOPY" --resume a b
	demand 1
	absent b
	expect 0 --resume a b
	says "fcopy: b: resuming: all 96 KiB are copied already"
	cmp a b
}

@test "--resume: a source that was edited since, also with the same size and time, is noticed" {
	random a 3000000
	touch -d 2020-01-01 a
	begin_part a b 2048
	printf edited | dd of=a bs=1 seek=5000 conv=notrunc status=none
	touch -d 2020-01-01 a
	expect 0 --resume a b
	says "fcopy: b: resuming at 4.0 KiB of 2.9 MiB (0 %)"
	cmp a b
	rm b
	begin_part a b 2048
	random a 3000000
	expect 0 --resume a b
	says "fcopy: b: starting over: its .fcopy-part differs from the source"
	cmp a b
}

@test "--resume: two sources in turn: the bytes of one are never taken for those of the other" {
	local f last
	for f in one other; do
		random $f 4096
		truncate -s 1M $f
		head -c 4096 /dev/urandom >>$f
	done
	sleep 2.1 # a change just before the copy could be repeated without a change of the times
	for last in one other; do
		rm -f b
		for f in one other; do
			(ulimit -f 64 && exec "$FCOPY" --resume --reflink=never $f b 2>/dev/null) || true
			[[ $(tail -n 1 b.fcopy-part/journal) == *" done 0 4096" ]]
		done
		expect 0 --resume $last b
		cmp $last b
	done
}

@test "--resume: what the journal notes is not read again, the rest is compared" {
	need_strace
	random a 200M
	touch -d 2020-01-01 a
	sleep 2.1 # a change just before the copy could be repeated without a change of the times
	strace -f -qq -o /dev/null -e trace=write -e inject=write:signal=KILL:when=5 \
		"$FCOPY" --resume a b 2 || true
	[[ $(tail -n 1 b.fcopy-part/journal) == *" done 0 67108864" ]]
	traced 0 trace=pread64 --resume --stats a b 2
	cmp a b
	[[ $stderr =~ resuming\ at\ (64|1[0-9][0-9])\ of\ 200\ MiB ]] || { echo "$stderr"; return 1; }
	if [[ $(findmnt -no FSTYPE -T .) =~ ^(ext4|xfs|btrfs|tmpfs)$ ]]; then
		never grep -E 'pread64\(.*, (0|1048576|66060288)\) = 1048576' trace
	fi
}

@test "--resume: what is a hole in SRC and in the part is not read; what is one in only one of them is" {
	need_strace
	# write FILE MIB: a MiB of data there
	write() { head -c 1M /dev/urandom | dd of="$1" bs=1M seek="$2" conv=notrunc status=none; }
	# again: SRC has another change time, so that everything is compared; prints how much is read
	again() {
		chmod "$1" a
		traced 0 trace=pread64,preadv,preadv2 --resume a b
		cmp a b
		awk '/preadv?2?(64)?\(/ && $NF > 0 { n += $NF } END { print int(n / 1048576) }' trace
	}
	local where
	truncate -s 512M a
	for where in 0 125 375 499; do write a $where; done
	for where in none part source both; do
		rm -rf b b.fcopy-part
		(ulimit -f $((475 * 1024)) && exec "$FCOPY" --resume a b 2>/dev/null) || true
		[ "$(stat -c %s b.fcopy-part/data)" -gt 375000000 ]
		case $where in
		none) ;;
		part) write b.fcopy-part/data 175 ;;
		source) write a 300 ;;
		both) write a 325 && write b.fcopy-part/data 325 ;;
		esac
		again $([ $where = source ] && echo 600 || echo 644)
		[ "$(again 640)" -lt 100 ] # DST is complete
	done >read
	[ "$(head -n 1 read)" -lt 100 ] || { cat read; return 1; }
}

@test "--resume: after a failed flush of the part, its bytes are read past the page cache" {
	need_strace
	random a 6000000
	timeout -s KILL 1 "$FCOPY" --resume --limit-rate=3M a b || [ -e b.fcopy-part/data ]
	strace -f -y -qq -o trace -e trace=fsync,open,openat -e inject=fsync:error=EIO:when=1 \
		"$FCOPY" --resume a b
	grep -q "fsync(.*/b.fcopy-part/data>) .*EIO" trace
	grep -q "O_DIRECT|.*/b.fcopy-part/data>" trace
	cmp a b
}

@test "--resume --verify: bytes that differ from the source are copied again by the next run" {
	random a 6000000
	sleep 2.1 # a change just before the copy could be repeated without a change of the times
	"$FCOPY" --resume --verify --limit-rate=3M a b 2>err &
	await larger_than 2000000 b.fcopy-part/data
	dd if=a bs=1 skip=1000000 count=9 status=none | tr '\000-\377' '\001-\377\000' |
		dd of=b.fcopy-part/data bs=1 seek=1000000 conv=notrunc status=none
	never wait $!
	grep -qx "fcopy: b: differs from the source at byte 1000000" err
	expect 0 --resume a b
	says "fcopy: b: resuming at 976 KiB of 5.7 MiB (16 %)"
	cmp a b
}

@test "--resume: what a failed flush has lost is copied again by the next run" {
	need_strace
	random a 300000
	sleep 2.1 # a change just before the copy could be repeated without a change of the times
	for error in ENOSPC EIO; do
		strace -f -qq -o trace -P "$PWD/b.fcopy-part/data" -e inject=fdatasync:error=$error:when=1 \
			"$FCOPY" --resume --fsync --reflink=never a b 2>err && return 1
		grep -q "b: fdatasync: " err || { cat err; return 1; }
		printf lost | dd of=b.fcopy-part/data bs=1 seek=100000 conv=notrunc status=none
		expect 0 --resume a b
		cmp a b
		rm b
	done
}

@test "--resume: other attributes than the first run would have given start over, which is said" {
	random a 100000
	begin_part a b 64
	echo old >b
	expect 0 --resume a b
	says "fcopy: b: starting over: the file was created or removed since its .fcopy-part was begun"
	cmp a b
	rm b
	begin_part a b 64
	expect 0 --resume -p a b
	says "fcopy: b: starting over: its .fcopy-part was begun with other options"
	cmp a b
	[ "$(stat -c %Y a)" = "$(stat -c %Y b)" ]
}

# killed_at CALL:N ARG…: at the last step.
killed_at() {
	run strace -f -qq -o trace -e trace="${1%:*}" -e inject="${1%:*}":signal=KILL:when="${1#*:}" "$FCOPY" --resume "${@:2}"
	[ "$status" = 137 ]
	[ -f b.fcopy-part/data ]
}

@test "--resume: killed, or failed, before the rename: completed with the right mode" {
	need_strace
	local call
	random a 100000
	chmod 640 a
	killed_at renameat:1 a b
	expect 0 --resume a b
	says "fcopy: b: resuming at 96 of 98 KiB (98 %)"
	cmp a b
	[ "$(stat -c %a b)" = 640 ]
	echo old >b
	chmod 444 a b
	killed_at renameat:1 -f a b
	expect 0 --resume -f a b
	cmp a b
	[ "$(stat -c %a b)" = 444 ]
	chmod 664 a
	umask 002
	for call in renameat:error=EDQUOT fdatasync:error=EIO:when=2; do # the first one is the journal's
		rm -f b
		traced 1 inject=$call --resume --fsync a b
		injected
		expect 0 --resume --fsync a b
		mentions "b: resuming at 96 of 98 KiB (98 %)"
		[ "$(stat -c %a b)" = 664 ]
		cmp a b
	done
	absent b.fcopy-part
}

@test "--resume: a kill at each call of publish and commit, then the same command" {
	need_strace
	local call n killed=0
	random a 300000
	for call in mkdirat openat flock write renameat2 unlinkat renameat; do
		for ((n = 1; n < 30; n++)); do
			rm -rf b b.fcopy-part .fcopy-*
			run strace -f -qq -o trace -e trace=$call -e inject=$call:signal=KILL:when=$n "$FCOPY" --resume a b
			[ "$status" = 137 ] || break
			killed=$((killed + 1))
			expect 0 --resume a b
			cmp a b
			[ "$(ls -A)" = $'a\nb\ntrace' ] || { echo "$call $n"; ls -A; return 1; }
		done
	done
	[ $killed -ge 20 ]
}

@test "--resume: a kill between the rename and the removal of the part: the next run removes it" {
	need_strace
	local options call n killed=0
	random a 300000
	for options in "" -a; do
		for call in unlinkat renameat2; do
			for ((n = 1; n < 10; n++)); do
				rm -rf b b.fcopy-part .fcopy-*
				# shellcheck disable=SC2086
				run strace -f -qq -o trace -e trace=$call -e inject=$call:signal=KILL:when=$n "$FCOPY" --resume $options a b
				[ "$status" = 137 ] || break
				[ ! -e b ] || [ ! -e b.fcopy-part ] || killed=$((killed + 1))
				# shellcheck disable=SC2086
				expect 0 --resume $options a b
				cmp a b
				[ "$(ls -A)" = $'a\nb\ntrace' ] || { echo "$options $call $n"; ls -A; return 1; }
			done
		done
	done
	[ $killed -ge 2 ]
}

@test "--resume: waits for a lock that a dying process still holds, and no longer than a second" {
	need flock
	random a 300000
	begin_part a b 64
	flock b.fcopy-part/lock sleep 0.4 &
	await never flock -n b.fcopy-part/lock true
	expect 0 --resume a b
	says "fcopy: b: resuming at 64 of 293 KiB (21 %)"
	cmp a b
	wait
	rm b
	begin_part a b 64
	flock b.fcopy-part/lock sleep 60 &
	await never flock -n b.fcopy-part/lock true
	local start=$EPOCHREALTIME
	expect 1 --resume a b
	says "fcopy: b: another fcopy is using its .fcopy-part"
	[ $(((${EPOCHREALTIME/./} - ${start/./}) / 100000)) -ge 10 ]
}

@test "--resume over an old file: whichever stat fails, exit 0 means that the new file is there" {
	need_strace
	local n failed=0 calls=?fstat,?newfstatat,?fstatat64,?statx
	random a 300000
	for ((n = 1; n < 200; n++)); do
		echo old >b
		run --separate-stderr strace -f -qq -o trace -e trace=$calls -e inject=$calls:error=EIO:when=$n "$FCOPY" --resume a b
		grep -q INJECTED trace || break
		if [ "$status" = 0 ]; then
			cmp a b
		elif [ "$status" -le 2 ]; then
			[ -n "$stderr" ]
			cmp -s a b || holds old b
			failed=$((failed + 1))
		else
			[ "$status" = 127 ] # libc was not loaded
			mentions 'error while loading shared libraries'
		fi
		rm -rf b.fcopy-part
	done
	[ $failed -gt 3 ]
}

@test "--resume: what fails before the first byte leaves no part, and no hint to continue it" {
	[ -s /proc/kallsyms ] || [ "$(head -c 1000 /proc/kallsyms | wc -c)" = 1000 ] || skip "no /proc/kallsyms here"
	expect 1 --resume --no-cache /proc/kallsyms b
	says "fcopy: /proc/kallsyms: the page cache cannot be bypassed here" "fcopy: hint: leave out --no-cache"
	absent b b.fcopy-part
	need_strace
	random a 300000
	traced 1 inject=pwrite64:error=EIO --resume a b 1
	injected
	absent b b.fcopy-part
	never grep -q 'to resume' <<<"$stderr"
	begin_part a b 64
	traced 1 inject=pwrite64:error=EIO --resume a b 1
	mentions "fcopy: hint: run the same command again to resume"
	expect 0 --resume a b
	mentions "resuming at 64 of 293 KiB"
	cmp a b
}

@test "--resume: a name that leaves no room for .fcopy-part has a hash in the part" {
	local name
	name=$(printf '%0250d' 0)
	random a 100000
	(ulimit -f 64 && "$FCOPY" --resume a "$name") || true
	[[ $(ls -d ./*.fcopy-part) =~ ^./[0-9a-f]{16}\.fcopy-part$ ]]
	expect 0 --resume a "$name"
	mentions "resuming at 64 of 98 KiB"
	[ "$(ls)" = "$name"$'\n'a ]
}

@test "--resume: interrupted, then gone on with, to the same bytes" {
	random a 9000000
	local status=0
	# So slow that it cannot be done before the signal, however busy the machine is.
	env --default-signal=INT "$FCOPY" --resume --limit-rate=50K a b 2>/dev/null &
	await test -s b.fcopy-part/data
	kill -INT $!
	wait $! || status=$?
	[ $status = 130 ]
	absent b
	[ -s b.fcopy-part/data ]
	cmp -n "$(stat -c %s b.fcopy-part/data)" a b.fcopy-part/data
	expect 0 --resume a b
	cmp a b
	absent b.fcopy-part
	expect 0 --json --resume a c
	cmp a c
}

@test "--resume of a file through a symlink: the message names the part that exists" {
	mkdir into e
	echo old >e/x
	ln -s ../e/x into/a
	random a 5000000
	"$FCOPY" --resume --limit-rate=1M -t into a 2>err 3>&- &
	await test -s e/x.fcopy-part
	kill -TERM $!
	wait $! || [ $? = 143 ]
	grep -qF "$T/e/x.fcopy-part" err || { cat err; return 1; }
	[ -f e/x.fcopy-part/data ]
}

@test "a part that is not used: one line on a terminal and with -v, none for scripts" {
	need script
	local note="fcopy: b.fcopy-part: unfinished copy, not used without --resume"
	random a 300000
	begin_part a b 64
	expect 0 a b
	[ "$stderr" = "" ]
	expect 0 -v a b
	says "$note"
	[ "$(script -qec '"$FCOPY" a b' /dev/null </dev/null | tr -d '\r')" = "$note" ]
	expect 0 -qv a b
	[ "$stderr" = "" ]
	mkdir d
	mv b.fcopy-part d/a.fcopy-part
	expect 0 -v a b d/
	says "fcopy: d/a.fcopy-part: unfinished copy, not used without --resume"
	expect 0 -v a d
	says "fcopy: d/a.fcopy-part: unfinished copy, not used without --resume"
	test -s d/a.fcopy-part/data
	rm d/a.fcopy-part/data # as a receipt of shards
	expect 0 -v a d
	[ "$stderr" = "" ]
}

@test "--resume of a complete copy leaves the part that another SRC has begun" {
	random old 200000
	random new 300000
	cp -p old d
	begin_part new d 100
	expect 0 --resume old d
	cmp old d
	[ "$(stat -c %s d.fcopy-part/data)" = 102400 ]
	expect 0 --resume new d
	mentions "resuming at"
	cmp new d
	absent d.fcopy-part
}

@test "--resume: a complete copy that has another size than --size is judged as without --resume" {
	random a 100000
	cp a b
	expect 1 --resume --strict --size=50000 a b
	says "fcopy: a: has more than 50000 bytes"
	expect 1 --resume --strict --size=200000 a b
	says "fcopy: a: had 100000 bytes, not 200000"
	expect 0 --resume --size=200000 a b
	says "fcopy: warning: a: had 100000 bytes, not 200000" "fcopy: b: resuming: all 98 KiB are copied already"
	expect 0 --resume --strict --size=100000 a b
	says "fcopy: b: resuming: all 98 KiB are copied already"
	cmp a b
}
