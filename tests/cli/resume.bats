#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --resume: what is called DST.fcopy-part is gone on with only if it is ours, and nothing is lost.

load helper

# refused REASON: of a copy of a to b.
refused() {
	expect 1 --resume a b
	says "fcopy: b: its .fcopy-part $1" "fcopy: hint: remove or rename b.fcopy-part"
}

@test "--resume: a part that became DST before it was locked is not written into" {
	need_strace
	random a 300000
	random c 200000
	strace -f -qq -o trace -e trace=flock -e inject=flock:delay_enter=3000000:when=1 \
		"$FCOPY" --resume --limit-rate=200K c b &
	await test -e b.fcopy-part
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
	await test -s b.fcopy-part
	expect 1 --resume a b
	says "fcopy: b: another copy writes its .fcopy-part"
	wait $!
	cmp a b
}

@test "--resume: a part of another user is not adopted, not even if DST is his" {
	need_root "to have another user's file"
	random a 100000
	echo old >b
	echo planted >b.fcopy-part
	chmod 600 b.fcopy-part
	chown 65534:65534 b b.fcopy-part
	refused "belongs to another user"
	expect 1 --resume -p a b
	holds old b
	holds planted b.fcopy-part
}

@test "--resume: a part that others may write, or that has two names" {
	random a 100000
	cp a b.fcopy-part
	chmod 620 b.fcopy-part
	refused "is writable by others"
	chmod 600 b.fcopy-part
	ln b.fcopy-part other
	refused "has other hard links"
	cmp a other
	rm b.fcopy-part
	mkfifo -m 600 b.fcopy-part
	refused "is not a regular file"
}

@test "--resume: the user's own file of that name is kept" {
	random a 100000
	echo precious >b.fcopy-part
	refused "is not a part of this copy"
	holds precious b.fcopy-part
	cat a - <<<more >b.fcopy-part
	refused "is not a part of this copy"
	[ "$(stat -c %s b.fcopy-part)" = 100005 ]
	absent b
	ln -s t b
	echo old >t
	mv b.fcopy-part t.fcopy-part
	expect 1 --resume a b
	mentions "hint: remove or rename $PWD/t.fcopy-part"
}

@test "--resume: a part of mode 0600 that differs is started over, with a message" {
	random a 100000
	echo other >b.fcopy-part
	chmod 600 b.fcopy-part
	expect 0 --resume a b
	says "fcopy: b: starting over: its .fcopy-part differs from the source"
	cmp a b
	[ "$(stat -c %a b)" = 644 ]
}

# killed_at CALL ARG…: at the last step.
killed_at() {
	local call=$1
	shift
	run strace -f -qq -o trace -e inject="$call":signal=KILL "$FCOPY" --resume "$@"
	[ "$status" = 137 ]
	[ -e b.fcopy-part ]
}

@test "--resume: killed between the mode and the name, then gone on with" {
	need_strace
	random a 100000
	chmod 640 a
	killed_at renameat a b
	[ "$(stat -c %a b.fcopy-part)" = 640 ]
	expect 0 --resume a b
	says "fcopy: b: resuming at 96 of 98 KiB (98 %)"
	cmp a b
	[ "$(stat -c %a b)" = 640 ]
	echo old >b
	chmod 444 a b
	killed_at renameat -f a b
	expect 0 --resume -f a b
	cmp a b
	[ "$(stat -c %a b)" = 444 ]
}

@test "--resume: failed after the mode was set, then gone on with" {
	need_strace
	random a 100000
	chmod 664 a
	umask 002
	traced 1 inject=fsync,fdatasync:error=EIO:when=1 --resume --fsync a b
	injected
	[ "$(stat -c %a b.fcopy-part)" = 600 ]
	expect 0 --resume --fsync a b
	says "fcopy: b: resuming at 96 of 98 KiB (98 %)"
	[ "$(stat -c %a b)" = 664 ]
	cmp a b
}

@test "--resume: failed at the name, then gone on with" {
	need_strace
	random a 100000
	chmod 664 a
	umask 002
	traced 1 inject=renameat:error=EDQUOT --resume a b
	injected
	[ "$(stat -c %a b.fcopy-part)" = 600 ]
	expect 0 --resume a b
	says "fcopy: b: resuming at 96 of 98 KiB (98 %)"
	cmp a b
}

@test "--resume: what another user owns already is not left to him" {
	need_root "to give a file away"
	need_strace
	random a 100000
	chown 65534:65534 a
	traced 1 inject=fsync,fdatasync:error=EIO:when=1 --resume -p --fsync a b
	injected
	[ "$(stat -c '%u %a' b.fcopy-part)" = "0 600" ]
	expect 0 --resume -p --fsync a b
	cmp a b
	[ "$(stat -c %u b)" = 65534 ]
}

@test "--resume: with -n and a file that appears during the copy no part is left" {
	random a 300000
	"$FCOPY" --resume -n --limit-rate=100K a b &
	await test -s b.fcopy-part
	echo theirs >b
	wait $!
	holds theirs b
	absent b.fcopy-part
}

@test "--resume: a file that appears during the copy is replaced by one that is on the disk" {
	need_strace
	random a 300000
	strace -f -qq -o trace -e trace=fdatasync,renameat "$FCOPY" --resume --limit-rate=100K a b &
	await test -s b.fcopy-part
	echo theirs >b
	wait $!
	cmp a b
	order 'fdatasync\(.* = 0' renameat
}

@test "--resume: with -n a file of that name is no reason for success" {
	random a 1000
	echo precious >b.fcopy-part
	expect 1 --resume -n a b
	absent b
}

@test "--resume: a read-only part of this copy is continued without root" {
	local mode
	mkdir -m 777 d
	random a 100000
	for mode in 444 400 555; do
		rm -f d/b
		head -c 65536 a >d/b.fcopy-part
		chmod $mode d/b.fcopy-part
		! is_root || chown 65534:65534 d/b.fcopy-part
		as_nobody 0 --resume a d/b
		says "fcopy: d/b: resuming at 64 of 98 KiB (65 %)"
		cmp a d/b
		[ "$(stat -c %a d/b)" = 644 ]
		absent d/b.fcopy-part
	done
}

@test "--resume: a read-only part of another copy keeps its bytes and its mode" {
	local mode
	mkdir -m 777 d
	random a 100000
	for mode in 444 400; do
		echo precious >d/b.fcopy-part
		chmod $mode d/b.fcopy-part
		! is_root || chown 65534:65534 d/b.fcopy-part
		as_nobody 1 --resume a d/b
		says "fcopy: d/b: its .fcopy-part is not a part of this copy" \
			"fcopy: hint: remove or rename d/b.fcopy-part"
		holds precious d/b.fcopy-part
		[ "$(stat -c %a d/b.fcopy-part)" = $mode ]
		absent d/b
		rm -f d/b.fcopy-part
	done
}

@test "--resume: waits for a lock that a dying process still holds, and no longer than a second" {
	need flock
	random a 300000
	head -c 65536 a >b.fcopy-part
	chmod 600 b.fcopy-part
	flock b.fcopy-part sleep 0.4 &
	await never flock -n b.fcopy-part true
	expect 0 --resume a b
	says "fcopy: b: resuming at 64 of 293 KiB (21 %)"
	cmp a b
	wait
	mv b b.fcopy-part
	chmod 600 b.fcopy-part
	flock b.fcopy-part sleep 60 &
	await never flock -n b.fcopy-part true
	local start=$EPOCHREALTIME
	expect 1 --resume a b
	says "fcopy: b: another copy writes its .fcopy-part"
	[ $(((${EPOCHREALTIME/./} - ${start/./}) / 100000)) -ge 10 ]
}

@test "--resume: a part that its owner may not read is named with the advice" {
	mkdir -m 777 d
	random a 1000
	cp a d/b.fcopy-part
	chmod 000 d/b.fcopy-part
	is_root && chown 65534:65534 d/b.fcopy-part
	as_nobody 1 --resume a d/b
	says "fcopy: d/b: open of its .fcopy-part: Permission denied" \
		"fcopy: hint: remove or rename d/b.fcopy-part"
	rm -f d/b.fcopy-part
	chmod 755 d
	is_root || chmod 555 d
	as_nobody 1 --resume a d/b
	says "fcopy: d/b: open of its .fcopy-part: Permission denied"
	chmod 755 d
}

larger_than() { [ "$(stat -c %s "$2" 2>/dev/null || echo 0)" -gt "$1" ]; }

@test "--resume: over another's file, interrupted, then gone on with by root" {
	need_root "to have another user's file"
	random a 500000
	echo old >b
	chown 65534:65533 b
	"$FCOPY" --resume --limit-rate=200K a b &
	await larger_than 65536 b.fcopy-part
	kill -KILL $!
	wait $! || true
	[ "$(stat -c %u b.fcopy-part)" = 0 ]
	expect 0 --resume a b
	mentions "b: resuming at "
	cmp a b
	[ "$(stat -c %u:%g b)" = 65534:65533 ]
}

@test "--resume of a source without a known size: the message has no share of it" {
	local source=/proc/kallsyms
	[ "$(head -c 98304 $source | wc -c)" = 98304 ] || skip "no $source here"
	head -c 98304 $source >b.fcopy-part
	chmod 600 b.fcopy-part
	expect 0 --resume $source b
	says "fcopy: b: resuming at 96 KiB"
	cmp $source b
}
