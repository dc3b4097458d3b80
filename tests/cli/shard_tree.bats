#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard of a tree: several processes make one new tree, which is whole or absent.

load helper
load shard
load shard_tree

@test "three shards that are run one after the other: the first one makes the whole tree" {
	make_source
	for share in 2 0 1; do
		expect 0 -a --shard=$share/3 --json s t
		[ "$(jq .committed <<<"$output")" = true ]
		committed
	done
	expect 0 -av --shard=1/3 s t
	[ "$output" = "t: committed" ]
}

@test "each shard copies the chunks that no other one has, and the tree is absent until the last one" {
	make_source
	for share in 2 0; do
		part 0 -a --shard=$share/3
		says ''
		absent t
	done
	[ "$(stat -c %a t.fcopy-part)" = 700 ]
	[ "$(markers t)" = 1 ]
	part 0 -a --shard=1/3
	committed
}

@test "another process holds the lock of a new part: the shard makes another one" {
	need_strace
	mkdir s
	echo data >s/a
	run --separate-stderr strace -f -qq -o trace -e trace=flock -e inject=flock:error=EAGAIN:when=2 "$FCOPY" -a --shard=0/1 s t
	demand 0
	grep -q INJECTED trace
	committed
}

@test "a shard that could not copy an entry ends without waiting for the others" {
	need_strace
	mkdir s
	touch s/{a,b}
	part 0 -r --shard=1/2 # it lists, and copies nothing
	run --separate-stderr strace -f -qq -o trace -P b -P "$(pwd -P)/t.fcopy-part/lock" -e trace=openat,flock \
		-e inject=openat:error=EIO:when=1 "$FCOPY" -r -j1 --shard=0/2 s t
	demand 1
	mentions 'fcopy: s/b: open: Input/output error'
	grep -q LOCK_SH trace
	never grep LOCK_UN trace # as before a wait
}

@test "a shard finds by one look what another one has completed, and opens none of its chunks" {
	need_strace
	mkdir s
	echo data | tee s/{1..40} >/dev/null
	ln s/1 s/link # a chunk of its own
	strace -f -qq -o trace -e trace=openat,utimensat -e inject=utimensat:signal=SIGSTOP:when=1 \
		"$FCOPY" -a -j1 --shard=1/2 s t 2>err 3>&- &
	local pid=$!
	stops() { grep -q 'stopped by SIGSTOP' trace; }
	await stops
	"$FCOPY" -a -j1 --shard=0/2 s t &
	local other=$!
	marked() { [ -e t.fcopy-part/share.done.0 ]; }
	await marked
	kill -CONT "$(grep -o '^[0-9]*' trace | head -n 1)"
	wait $pid
	wait $other
	committed
	never grep -q 'share\.claim\.0' trace
}

@test "concurrent shards make one tree" {
	make_source
	local -a pids=()
	for n in 0 1 2 3; do
		"$FCOPY" -a --shard=$n/4 s t 2>"err$n" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || { cat err*; return 1; }; done
	committed
}

@test "a file of 256 MiB is shared by ranges, and gets its attributes last" {
	mkdir s
	truncate -s 300M s/big
	for at in 0 100 200 299; do
		head -c 500000 /dev/urandom | dd of=s/big bs=1M seek=$at conv=notrunc status=none
	done
	truncate -s 300M s/big
	chmod 440 s/big
	touch -d 2001-01-01 s/big
	part 0 -a --shard=0/2
	absent t
	[ "$(markers t)" = 2 ] # ranges 0 and 2 of 100 MiB
	[ "$(stat -c %a t.fcopy-part/data/big)" != 440 ]
	part 0 -a --shard=1/2
	committed
	[ "$(stat -c %b t/big)" -lt 20000 ]
}

@test "a range whose source has changed since an interrupted attempt has no old bytes" {
	mkdir s
	head -c 3000000 /dev/urandom >s/big
	truncate -s 256M s/big
	need_strace
	for option in --sparse=auto --sparse=always; do
		rm -rf t t.*
		run strace -f -qq -o /dev/null -e trace=syncfs -e inject=syncfs:signal=KILL \
			"$FCOPY" -r $option --shard=0/2 s t
		[ -s t.fcopy-part/data/big ]
		cp s/big old
		head -c 1000000 /dev/zero | dd of=s/big bs=1M seek=1 conv=notrunc status=none
		fallocate --punch-hole --offset 0 --length 500000 s/big || true
		expect 0 -r $option --shard=0/2 s t
		cmp s/big t/big
		mv old s/big
	done
}

@test "finish counts the missing chunks, and commits" {
	make_source
	expect 1 -a --shard=finish/3 s t
	mentions 't: SRC is not listed yet' 'hint: run any share again'
	part 0 -a --shard=1/3
	expect 1 -a --shard=finish/3 s t
	says 'fcopy: t: 1 of 2 chunks are missing' 'fcopy: hint: run any share again'
	run --separate-stderr flock -s t.fcopy-part/lock "$FCOPY" -a --shard=finish/3 s t
	demand 1
	says 'fcopy: t: is being copied: run this again when the other shards have ended'
	expect 1 -aT s t
	says 'fcopy: t: its .fcopy-part belongs to a copy in shards' \
		'fcopy: hint: to start over, remove t.fcopy-part while no shard runs'
	expect 0 -a --shard=2/3 s t
	committed
	expect 0 -a --shard=finish/3 s t
	committed
}

@test "without --fsync the commit is flushed, too: before and after the rename" {
	need_strace
	make_source
	strace -qq -f -e trace=syncfs,fsync,renameat2 -o trace "$FCOPY" -r --shard=1/2 s t
	# One for the chunks, one for what the commit has set; the first renames are of the part.
	grep -oE '(syncfs|fsync|renameat2)[(]' trace | paste -sd' ' >calls
	grep -qE 'syncfs[(].* syncfs[(] renameat2[(] fsync[(]' calls || { cat trace; return 1; }
}

@test "what an interrupted attempt left is replaced" {
	need_strace
	make_source
	run strace -f -qq -o /dev/null -e trace=syncfs -e inject=syncfs:signal=KILL "$FCOPY" -a -j1 --shard=0/2 s t
	: >t.fcopy-part/data/d/9
	echo partial >t.fcopy-part/data/d/10
	echo alone >t.fcopy-part/data/hard
	shards 2 -a
	committed
}

@test "a commit that was killed after it set attributes is done again" {
	need_strace
	is_root || skip "needs root to give a directory away"
	make_source
	chmod 777 s
	chown 65534:65534 s
	part 0 -a --shard=0/2
	run strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL "$FCOPY" -a -j1 --shard=1/2 s t
	absent t
	[ "$(stat -c '%u %a' t.fcopy-part/data)" = '65534 777' ]
	chmod 500 t.fcopy-part/data/d/e
	expect 0 -a --shard=1/2 s t
	committed
}

@test "the same share in three processes at once: hard links stay whole" {
	local n round
	mkdir -p s/a s/b
	for n in {1..60}; do
		echo "$n" >s/a/$n
		ln s/a/$n s/b/$n.1
		ln s/a/$n s/b/$n.2
	done
	for round in 1 2 3 4 5 6; do
		rm -rf t t.*
		local -a pids=()
		for n in 1 2 3; do
			"$FCOPY" -a --shard=0/1 s t 2>err$n &
			pids+=($!)
		done
		for n in "${pids[@]}"; do wait "$n" || { cat err*; return 1; }; done
		[ ! -s err1 ] && [ ! -s err2 ] && [ ! -s err3 ] || { cat err*; return 1; }
		committed
	done
}

@test "a share waits for the commit of another process, however long that takes" {
	need flock
	make_source
	part 0 -a --shard=0/2
	flock -s t.fcopy-part/lock "$FCOPY" -a --shard=1/2 s t 2>err # all markers are there
	grep -q 'not committed yet' err
	flock -x t.fcopy-part/lock sleep 3 &
	sleep 0.3
	local start=$SECONDS
	expect 0 -a --json --shard=0/2 s t
	[ $((SECONDS - start)) -ge 2 ]
	[ "$(jq .committed <<<"$output")" = true ]
	committed
}

@test "the part is gone at the rename, as a client of NFS may see it: look again" {
	need_strace
	make_source
	part 0 -a --shard=0/2
	strace -qq -f -o trace -e inject=renameat2:error=ENOENT:when=1 "$FCOPY" -a --shard=1/2 s t
	grep -q INJECTED trace
	committed
}

@test "a copy that is gone or truncated although its marker exists is not committed" {
	local change
	for change in 'rm t.fcopy-part/data/d/5' 'truncate -s 9 t.fcopy-part/data/d/e/40' 'ln -sf / t.fcopy-part/data/d/5'; do
		chmod -R u+rwx s t.* 2>/dev/null || true
		rm -rf s t t.*
		make_source
		part 0 -a --shard=0/2
		$change
		expect 1 -a --shard=1/2 s t
		mentions 't: its .fcopy-part was changed by something else' 'hint: to start over'
		absent t
	done
}

@test "the list of what is complete is damaged: it is not committed" {
	local list
	make_source
	part 0 -a --shard=0/2
	for list in t.fcopy-part/share.list.*; do # one of them is of the chunk that is complete
		cp "$list" list
		sed 's/^end .*/end 0 0/' list >"$list"
		expect 1 -a --shard=1/2 s t
		mentions "damaged list"
		absent t
		cat list >"$list"
	done
	expect 0 -a --shard=1/2 s t
	committed
}

# stopped_after_markers ACT…: a shard that makes the whole of t is stopped when all its markers are
# there, until ACT is done. Its status is in $status.
stopped_after_markers() {
	strace -f -qq -o trace -e trace=fsync -e inject=fsync:signal=SIGSTOP:when=3 \
		"$FCOPY" -a -j1 --shard=0/1 s t 2>err0 3>&- &
	local pid=$!
	marked() { [ "$(markers t 2>/dev/null)" = 2 ]; }
	stops() { grep -q 'stopped by SIGSTOP' trace; }
	await marked
	await stops
	"$@"
	kill -CONT "$(grep -o '^[0-9]*' trace | head -n 1)"
	status=0
	wait $pid || status=$?
}

@test "the commit compares names: one that is gone is noticed, and an unfinished file is removed" {
	need_strace
	make_source
	stopped_after_markers rm t.fcopy-part/data/d/5
	[ "$status" = 1 ]
	grep -q 'its .fcopy-part was changed by something else' err0
	absent t
	chmod -R u+rwx t.*
	rm -rf t.*
	litter() {
		mkdir t.fcopy-part/data/.fcopy-0123456789abcdef t.fcopy-part/data/d/.fcopy-0123456789abcdef
		touch t.fcopy-part/data/.fcopy-0123456789abcdef/x t.fcopy-part/data/d/.fcopy-fedcba9876543210
	}
	stopped_after_markers litter
	[ "$status" = 0 ] || { cat err0; return 1; }
	committed
}

@test "a part of an earlier copy is refused, and --resume refuses the part of shards" {
	make_source
	mkdir -m 700 t.fcopy-part
	echo other >t.fcopy-part/file
	expect 1 -a --shard=0/2 s t
	mentions 'its .fcopy-part' 'hint: remove or rename t.fcopy-part'
	[ "$(cat t.fcopy-part/file)" = other ]
	rm -r t.fcopy-part
	part 0 -a --shard=0/2
	expect 1 -a s t
	mentions 't: its .fcopy-part belongs to a copy in shards'
	expect 1 -a --resume s t
	mentions 't: its .fcopy-part belongs to a copy in shards'
	expect 0 -a --shard=1/2 s t
	committed
}

@test "-r keeps no times, and gives modes by the umask" {
	make_source
	umask 027
	shards 2 -r
	cp -r s by_cp
	diff <(cd by_cp && find . -printf '%p %y %m %l\n' | sort) <(cd t && find . -printf '%p %y %m %l\n' | sort)
	diff -r --no-dereference -x fifo by_cp t
}

@test "-a: a name outside the source does not keep the last shard from committing" {
	mkdir s outside
	for file in {1..20}; do
		printf x >s/$file
		ln s/$file outside/
	done
	shards 3 -a
	diff -r s t
	left_only_receipt t
}

@test "as an ordinary user: read-only directories, and a retry after the commit" {
	make_source
	chmod -R a+rX s
	chmod 777 .
	for share in 0 1 0; do as_nobody 0 -a --shard=$share/2 s t; done
	diff -r --no-dereference -x fifo s t
}

@test "as an ordinary user, under a umask that takes rights from the owner: also after a failure" {
	local mask share
	make_source
	chmod -R a+rX s
	random s/large 900000
	as_nobody 0 --version # copies the program
	chmod 777 .
	for mask in 0222 0477; do
		(
			ulimit -f 500
			AS_UMASK=$mask as_nobody 1 -r --shard=0/2 s t
			mentions 'fcopy: t/large: ' ': File too large'
		)
		chmod u-w t.fcopy-part/data/d # as if a process was killed right after mkdir
		for share in 0 1; do AS_UMASK=$mask as_nobody 0 -r --shard=$share/2 s t; done
		(umask $mask && cp -r s cp)
		diff <(cd cp && find . -printf '%p %y %m\n' | sort) <(cd t && find . -printf '%p %y %m\n' | sort)
		chmod -R u+rwx t cp
		diff -r --no-dereference -x fifo s t
		rm -r t cp t.fcopy-part
	done
}

@test "several sources, -t and --keep-going are usage errors" {
	mkdir s u d
	expect 2 -a --shard=0/2 s u d
	expect 2 -a --shard=0/2 -t d s
	expect 2 -a --shard=0/2 --keep-going s t
	expect 2 -a --shard=0/2 --resume s t
	expect 2 -a --shard=0/2 s s/t
	mkfifo f
	expect 2 -a --shard=0/2 f t
	absent t.fcopy-part
}

@test "a shard that is killed at any moment and retried: absent or whole, and only the receipt left" {
	make_source
	local runs
	for runs in {1..4}; do # tests/long/shard-kill.sh has more
		chmod -R u+rwx t t.* 2>/dev/null || true
		rm -rf t t.*
		"$FCOPY" -a --shard=0/3 s t &
		other=$!
		for share in 1 2; do
			printf -v instant '0.%03d' $((RANDOM % 50 + 1))
			timeout --foreground -s KILL "$instant" "$FCOPY" -a --shard=$share/3 s t 2>/dev/null || true
			[ ! -e t ] || diff <(describe s) <(describe t)
			expect 0 -a --shard=$share/3 s t
		done
		wait $other
		committed
	done
}

@test "the last share succeeds while another process flushes its marker, and one of them commits" {
	need_strace
	make_source
	strace -f -qq -o trace -e trace=fsync -e inject=fsync:delay_enter=3000000:when=3 \
		"$FCOPY" -a -j1 --shard=0/2 s t 2>err0 3>&- &
	pid=$!
	marked() { [ "$(markers t 2>/dev/null)" = 2 ]; }
	await marked
	expect 0 -a --shard=1/2 s t
	wait $pid || { cat err0; return 1; }
	committed
}

@test "two jobs that begin at once: at most one is refused, and DST is whole" {
	random src 100000
	local n
	local -a pids=()
	for n in 2 3; do
		"$FCOPY" --limit-rate=100K --shard=0/$n src dst 2>err$n 3>&- &
		pids+=($!)
	done
	wait "${pids[0]}" && first=0 || first=$?
	wait "${pids[1]}" && second=0 || second=$?
	[ $((first + second)) -le 1 ]
	cmp src dst
}
