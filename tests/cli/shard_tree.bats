#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard of a tree: several processes make one new tree, which is whole or absent.

load helper
load shard

make_source() {
	local n
	mkdir -p s/d/e s/empty 's/sp ace'
	for ((n = 0; n < 60; n++)); do
		printf '%s' "$n" >"s/d/$n"
		head -c $((n * 500)) /dev/urandom >"s/d/e/$n"
	done
	ln s/d/1 s/hard
	ln s/d/1 s/d/e/hard
	ln -s d/e/5 s/symlink
	ln -s nowhere s/dangling
	mkfifo s/fifo
	truncate -s 1M s/d/sparse
	printf q >'s/sp ace/'$'\xff\xfe'
	chmod 4755 s/d/3
	chmod 444 s/d/4
	chmod 500 s/d/e
	chmod 1777 s/empty
	touch -d '2001-02-03 04:05:06.789' s/d s/d/7
}

# shards N OPTION…: all shards of s to t, one after the other.
shards() {
	local share
	for ((share = 0; share < $1; share++)); do
		expect 0 "${@:2}" --shard=$share/"$1" s t
	done
}

describe() {
	(cd "$1" && find . -printf '%p %y %m %n %l %T@\n' | sort && find . -type f -exec cksum {} + | sort -k3)
}

# t is whole, and of the job only the receipt is left.
committed() {
	diff <(describe s) <(describe t)
	left_only_receipt t
}

# share_of PATH N: its FNV-1a hash, mixed, mod N. Bash has no unsigned numbers.
share_of() {
	local hash=$((0xcbf29ce484222325)) at
	for ((at = 0; at < ${#1}; at++)); do
		hash=$(((hash ^ $(printf '%d' "'${1:at:1}")) * 0x100000001b3))
	done
	hash=$(((hash ^ hash >> 33 & 0x7fffffff) * 0xff51afd7ed558ccd))
	hash=$((hash ^ hash >> 33 & 0x7fffffff))
	local high=$((hash >> 32 & 0xffffffff)) low=$((hash & 0xffffffff))
	echo $(((high % $2 * (0x100000000 % $2) + low % $2) % $2))
}

@test "three shards make one tree, which is absent until the last one" {
	make_source
	for share in 2 0; do
		expect 0 -a --shard=$share/3 s t
		says ''
		absent t
	done
	[ "$(stat -c %a t.fcopy-part)" = 700 ]
	expect 0 -a --shard=1/3 s t
	committed
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

@test "each shard copies other entries, by the FNV-1a hash of the relative path" {
	mkdir -p s/d
	for name in {a..c} {e..z} d/{a..z}; do echo "$name" >"s/$name"; done
	expect 0 -r --shard=0/3 s t
	for name in {a..c} {e..z} d/{a..z}; do
		[ "$(share_of "$name" 3)" != 0 ] || echo "$name"
	done | sort >expected
	(cd t.fcopy-part && find . -type f | cut -c3- | sort) | diff expected -
	[ -s expected ]
	for share in 1 2; do expect 0 -r --shard=$share/3 s t; done
	diff -r s t
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
	expect 0 -a --shard=0/2 s t
	absent t.fcopy-part/big # the last walk gives it this name
	cmp -n 104857600 s/big t.fcopy-part/.fcopy-*
	never cmp -s s/big t.fcopy-part/.fcopy-*
	expect 0 -a --shard=1/2 s t
	committed
	[ "$(stat -c %b t/big)" -lt 20000 ]
}

@test "a range whose source has changed since an interrupted attempt has no old bytes" {
	mkdir s
	head -c 3000000 /dev/urandom >s/big
	truncate -s 256M s/big
	for option in --sparse=auto --sparse=always; do
		rm -rf t t.*
		expect 0 -r $option --shard=0/2 s t
		rm t.fcopy-shards/share.*
		cp s/big old
		head -c 1000000 /dev/zero | dd of=s/big bs=1M seek=1 conv=notrunc status=none
		fallocate --punch-hole --offset 0 --length 500000 s/big || true
		expect 0 -r $option --shard=0/2 s t
		expect 0 -r $option --shard=1/2 s t
		cmp s/big t/big
		mv old s/big
	done
}

@test "finish names the missing shares, and commits" {
	make_source
	expect 1 -a --shard=finish/3 s t
	mentions 't: missing shares 0-2 of 3' 'hint: run each missing share with --shard=I/3'
	expect 0 -a --shard=1/3 s t
	expect 1 -a --shard=finish/3 s t
	mentions 't: missing shares 0, 2 of 3'
	expect 0 -a --shard=0/3 s t
	expect 1 -a --shard=finish/3 s t
	says 'fcopy: t: missing share 2/3' 'fcopy: hint: run each missing share with --shard=I/3'
	expect 0 -a --shard=2/3 s t
	committed
	expect 0 -a --shard=finish/3 s t
	committed
}

@test "a late retry accepts the receipt, and makes no DST/SRC" {
	make_source
	shards 2 -a
	expect 0 -a --shard=1/2 --json s t
	[ "$(jq -c '[.shard, .shards, .committed, .tree.committed]' <<<"$output")" = '[1,2,true,true]' ]
	committed
	expect 0 -a --shard=1/2 -T s t
	committed
}

@test "a late retry compares the source with what was committed, and refuses if it has changed below" {
	local change
	for change in 'printf X >s/d/5' 'touch s/d/e/new' 'rm s/d/e/7' 'mv s/d/8 s/d/88' 'chmod 600 s/d/5' 'ln s/d/6 s/d/66'; do
		chmod -R u+rwx s t 2>/dev/null || true
		rm -rf s t t.*
		make_source
		shards 2 -a
		cp -a t before
		sleep 0.01
		chmod u+w s/d/e # a user may change what is in it only then
		eval "$change"
		chmod 500 s/d/e
		for share in 0 1; do
			expect 1 -a --shard=$share/2 --json s t
			mentions 'fcopy: t: its source has changed since these shards committed it: move it away to copy again'
			[ "$(jq .committed <<<"$output")" = false ]
		done
		expect 0 -a --shard=finish/2 s t # it compares nothing
		says ''
		diff <(describe before) <(describe t)
		chmod -R u+rwx before
		rm -r before
		mv t moved
		shards 2 -a
		committed
		chmod -R u+rwx moved
		rm -r moved
	done
}

@test "a late retry opens no file, and is silent if the source is unchanged" {
	need_strace
	make_source
	shards 2 -a
	echo changed >t/d/5 # DST may be used as soon as it is there
	cat s/d/5 >/dev/null
	strace -qq -f -e trace=openat -o trace "$FCOPY" -a --shard=0/2 s t
	! grep -E '"(5|sparse|hard)"' trace || false
	[ "$(cat t/d/5)" = changed ]
}

@test "without --fsync the commit is flushed, too: before and after the rename" {
	need_strace
	make_source
	expect 0 -r --shard=0/2 s t
	strace -qq -f -e trace=syncfs,fsync,renameat2 -o trace "$FCOPY" -r --shard=1/2 s t
	# One for the share, one for what the commit has set, then the records.
	grep -oE '(syncfs|fsync|renameat2)[(]' trace | paste -sd' ' >calls
	grep -qE 'syncfs[(].* syncfs[(] renameat2[(] fsync[(]' calls || { cat trace; return 1; }
}

@test "a retry flushes the directory of DST if the commit could not" {
	need_strace
	make_source
	expect 0 -a --shard=0/2 s t
	# The second fsync is that of the directory, after the rename.
	run strace -qq -f -o trace -e inject=fsync:error=EIO:when=2 "$FCOPY" -a --shard=1/2 s t
	[ "$status" = 1 ] || { echo "status $status: $output"; return 1; }
	[ -d t ]
	strace -qq -f -y -e trace=fsync -o trace "$FCOPY" -a --shard=1/2 s t
	grep -qF "<$(realpath .)>)" trace || { cat trace; return 1; }
	diff <(describe s) <(describe t)
}

@test "a directory that exists already is refused; DST that is a directory gets DST/SRC" {
	make_source
	mkdir d t
	for share in 0 1; do expect 0 -a --shard=$share/2 s d; done
	diff <(describe s) <(describe d/s)
	expect 1 -aT --shard=0/2 s t
	mentions 't: exists: shards only make a new tree'
	[ -z "$(ls t)" ]
}

@test "another N, other options or another source are refused" {
	make_source
	expect 0 -a --shard=0/2 s t
	expect 1 -a --shard=1/3 s t
	mentions 'its shards were begun with N = 2, not 3'
	expect 1 -r --shard=1/2 s t
	mentions 'begun with another source or options'
	touch s/new
	expect 1 -a --shard=1/2 s t
	absent t
}

@test "a source that changes between two shards is refused" {
	make_source
	expect 0 -a --shard=0/2 s t
	sleep 0.01
	printf X >s/d/5 # as long as before
	expect 1 -a --shard=1/2 s t
	mentions 't: its source changed between the shards'
	absent t
	expect 1 -a --shard=finish/2 s t
	absent t
}

@test "a mode that changes between two shards is a changed source" {
	make_source
	expect 0 -a --shard=0/2 s t
	sleep 0.01
	chmod 600 s/d/5
	expect 1 -a --shard=1/2 s t
	mentions 't: its source changed between the shards'
	absent t
}

@test "what an interrupted share left is replaced or removed" {
	make_source
	expect 0 -a --shard=0/2 s t
	rm t.fcopy-shards/share.*
	: >t.fcopy-part/d/9
	echo partial >t.fcopy-part/d/10
	rm -f t.fcopy-part/hard
	echo alone >t.fcopy-part/hard
	echo litter >t.fcopy-part/d/.fcopy-0123456789abcdef
	shards 2 -a
	committed
}

@test "a commit that was killed after it set attributes is done again" {
	need flock
	is_root || skip "needs root to give a directory away"
	make_source
	chmod 777 s
	chown 65534:65534 s
	expect 0 -a --shard=0/2 s t
	# The lock keeps the last shard from committing.
	flock -s t.fcopy-shards/job.* "$FCOPY" -a --shard=1/2 s t 2>err
	grep -q 'not committed yet' err
	absent t
	chown 65534:65534 t.fcopy-part
	chmod 777 t.fcopy-part
	chmod 500 t.fcopy-part/d/e
	expect 0 -a --shard=1/2 s t
	committed
}

@test "two processes do not copy one share at once: hard links stay whole" {
	need flock
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
	rm -rf t t.*
	expect 0 -a --shard=0/2 s t
	rm t.fcopy-shards/share.*
	flock t.fcopy-shards/lock.0.* "$FCOPY" -a --shard=0/2 s t 2>err && false
	[ "$(cat err)" = 'fcopy: t: another process copies this share' ]
	expect 0 -a --shard=0/2 s t
	expect 0 -a --shard=1/2 s t
	committed
}

@test "a share that is complete waits for the commit of another process, however long that takes" {
	need flock
	mkdir s
	for name in {1..20}; do echo "$name" >s/$name; done
	expect 0 -r --shard=0/2 s t
	flock -s t.fcopy-shards/job.* "$FCOPY" -r --shard=1/2 s t 2>err # all markers are there
	grep -q 'not committed yet' err
	flock -x t.fcopy-shards/job.* sleep 3 &
	sleep 0.3
	local start=$SECONDS
	expect 0 -r --json --shard=0/2 s t
	[ $((SECONDS - start)) -ge 2 ]
	[ "$(jq .committed <<<"$output")" = true ]
	diff -r s t
}

@test "the part is gone at the rename, as a client of NFS may see it: look at the records again" {
	need_strace
	make_source
	expect 0 -a --shard=0/2 s t
	strace -qq -f -o trace -e inject=renameat2:error=ENOENT:when=1 "$FCOPY" -a --shard=1/2 s t
	grep -q INJECTED trace
	committed
}

@test "a copy that is gone although its marker exists is not committed" {
	make_source
	expect 0 -a --shard=0/2 s t
	find t.fcopy-part -type f -links 1 | head -n 1 | xargs -d '\n' rm
	expect 1 -a --shard=1/2 s t
	absent t
}

@test "a part of an earlier copy is refused, and --resume refuses the part of shards" {
	make_source
	mkdir t.fcopy-part
	echo other >t.fcopy-part/file
	expect 1 -a --shard=0/2 s t
	mentions 'an earlier copy left its .fcopy-part'
	rm -r t.fcopy-part
	expect 0 -a --shard=0/2 s t
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

@test "-a: a new or removed link to a large file between two shards is a changed source" {
	local change first
	mkdir s
	printf x >s/large
	truncate -s 256M s/large
	printf x | dd of=s/large bs=1 seek=200M conv=notrunc status=none
	for change in 'ln s/large outside' 'rm outside'; do
		for first in 0 1; do
			rm -rf t.* outside
			[ "$change" != 'rm outside' ] || ln s/large outside
			expect 0 -a --shard=$first/2 s t
			$change
			expect 1 -a --shard=$((1 - first))/2 s t
			mentions 'its source changed between the shards'
			absent t
		done
	done
}

@test "-a: a name outside the source does not keep the last shard from committing" {
	mkdir s outside
	for file in {1..20}; do
		printf x >s/$file
		ln s/$file outside/
	done
	shards 3 -a
	diff -r s t
	absent t.fcopy-part
}

@test "as an ordinary user: read-only directories, and a retry after the commit" {
	make_source
	chmod -R a+rX s
	chmod 777 .
	for share in 0 1 0; do as_nobody 0 -a --shard=$share/2 s t; done
	diff -r --no-dereference -x fifo s t
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
	absent t.fcopy-shards
}

@test "a shard that is killed at any moment and retried: absent or whole, and only the receipt left" {
	make_source
	local end=$((SECONDS + 5)) runs
	for ((runs = 0; runs < 4 || SECONDS < end; runs++)); do
		chmod -R u+rwx t t.* 2>/dev/null || true
		rm -rf t t.*
		"$FCOPY" -a --shard=0/3 s t &
		other=$!
		for share in 1 2; do
			printf -v instant '0.%03d' $((RANDOM % 50 + 1))
			timeout -s KILL "$instant" "$FCOPY" -a --shard=$share/3 s t 2>/dev/null || true
			[ ! -e t ] || diff <(describe s) <(describe t)
			expect 0 -a --shard=$share/3 s t
		done
		wait $other
		committed
	done
}

@test "the last share succeeds while another process flushes its marker, and that process commits" {
	need_strace
	mkdir s
	for name in {1..20}; do echo "$name" >s/$name; done
	strace -f -qq -o trace -e trace=fsync -e inject=fsync:delay_enter=3000000 \
		"$FCOPY" -r --shard=0/2 s t 2>err0 3>&- &
	pid=$!
	marked() { ls t.fcopy-shards/share.0.* >/dev/null 2>&1; }
	await marked
	expect 0 -r --shard=1/2 s t
	mentions "not committed yet"
	wait $pid || { cat err0; return 1; }
	diff -r s t
	absent t.fcopy-part
}

@test "the receipt of a tree that was moved away: a retry is refused, and nothing is copied into a new DST" {
	mkdir s
	echo x >s/f
	expect 0 -r --shard=0/1 s t
	mv t elsewhere
	mkdir t
	expect 1 -r --shard=0/1 s t
	mentions "t: exists"
	[ -z "$(ls t)" ]
}

@test "two jobs that begin at once: one of them can go on" {
	need_strace
	random src 100000
	for n in 2 3; do
		strace -qq -o trace$n -e trace=mkdirat -e inject=mkdirat:delay_exit=500000 \
			"$FCOPY" --shard=0/$n src dst 2>err$n 3>&- &
	done
	wait
	"$FCOPY" --shard=0/2 src dst 2>err || "$FCOPY" --shard=0/3 src dst 2>>err || { cat err; return 1; }
}
