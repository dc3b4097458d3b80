#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard of a tree: several processes make one new tree, which is whole or absent.

load helper
load shard

make_source() {
	[ -d "$BATS_FILE_TMPDIR/made/s" ] || (mkdir "$BATS_FILE_TMPDIR/made" && cd "$BATS_FILE_TMPDIR/made" && make_first)
	cp -a "$BATS_FILE_TMPDIR/made/s" .
	chmod 500 s/d/e
}

make_first() {
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

# part STATUS OPTION… SHARE: of s to t, as apart, with chunks that do not depend on threads: chunk 0 has the files
# with one name, chunk 1 those with hard links.
part() { apart "$1" -j1 "${@:2}" s t; }

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

@test "an interrupted read of a list is repeated" {
	need_strace
	mkdir s
	echo data >s/a
	run --separate-stderr strace -f -qq -o trace -P "$(pwd -P)/t.fcopy-part/share.list.0" -e trace=read \
		-e inject=read:error=EINTR:when=1 "$FCOPY" -a -j1 --shard=0/1 s t
	demand 0
	grep -q INJECTED trace
	committed
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

@test "four shards read each directory of the source once, in all" {
	need_strace
	local i one four
	for i in {1..80}; do
		mkdir -p s/$i
		echo $i | tee s/$i/{1..20} >/dev/null
	done
	strace -f -qq -y -e trace=getdents64 -o one "$FCOPY" -r s u
	local -a pids=()
	for i in 0 1 2 3; do
		strace -f -qq -y -e trace=getdents64 -o four.$i "$FCOPY" -r --shard=$i/4 s t &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
	diff -r s t
	one=$(grep -c "<$T/s" one)
	four=$(cat four.* | grep -c "<$T/s")
	[ "$one" = "$four" ]
}

@test "what a process that was killed has listed is not listed again, and a process that lives lists the rest" {
	need_strace
	local i
	for i in {1..40}; do
		mkdir -p s/$i
		echo $i | tee s/$i/{1..40} >/dev/null
	done
	ln s/1/1 s/link
	ln s/1/1 s/2/link
	run strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=6 \
		"$FCOPY" -a -j1 --shard=0/2 s t
	[ "$(find t.fcopy-part -name 'share.list.*' | wc -l)" = 3 ]
	[ ! -s t.fcopy-part/share.claim.list ]
	traced 0 trace=renameat2 -a -j1 --shard=1/2 s t
	in_trace '"share\.list\.3"' 1
	in_trace '"share\.list\.[012]"' 0
	committed
	rm -r t t.fcopy-part
	run strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=6 \
		"$FCOPY" -a -j1 --shard=0/2 s t
	for i in {1..40}; do echo changed >s/$i/1; done
	expect 0 -a --shard=1/2 s t # no chunk was complete: it starts over
	committed
}

@test "hard links that a process has listed, which was killed before the end of its list: the same, more, or fewer" {
	need_strace
	local change
	for change in : 'ln s/d/a s/d/c' 'ln s/d/a s/d/0' 'rm s/d/b' 'rm s/d/b; echo 2 >s/d/b'; do
		rm -rf s t t.fcopy-part
		mkdir -p s/d
		echo 1 >s/d/a
		ln s/d/a s/d/b
		run strace -f -qq -o /dev/null -e trace=ftruncate -e inject=ftruncate:signal=KILL:when=1 \
			"$FCOPY" -a -j1 --shard=0/1 s t
		[ -s t.fcopy-part/share.list.0 ]
		[ ! -s t.fcopy-part/share.claim.list ]
		eval "$change"
		expect 0 -a -j1 --shard=0/1 s t
		committed
	done
}

has_copied() { [ -n "$(find t.fcopy-part/data -type f -size +0 2>/dev/null | head -n 1)" ]; }

@test "a shard copies what is listed, while another one is still listing" {
	need_strace
	local i lister copier
	for i in {1..40}; do
		mkdir -p s/$i
		echo $i | tee s/$i/{1..40} >/dev/null
	done
	strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=STOP:when=6 \
		"$FCOPY" -a -j1 --shard=0/2 s t 3>&- &
	lister=$!
	await test -e t.fcopy-part/share.list.2
	"$FCOPY" -a --shard=1/2 s t 3>&- &
	copier=$!
	await has_copied
	[ ! -s t.fcopy-part/share.claim.list ]
	kill -CONT "$(pgrep -P $lister)"
	wait $lister
	wait $copier
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
	for change in 'printf X >s/d/5' 'touch s/d/e/new' 'rm s/d/e/7' 'mv s/d/8 s/d/88' 'ln s/d/6 s/d/66'; do
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
			mentions 'fcopy: t: is complete, but of another job, or of an earlier SRC: rename DST and run again'
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

@test "a late retry compares what identifies a single source, too: a change of mode is not one of SRC" {
	make_source
	shards 2 -a
	chmod 600 s/d/5
	for share in 0 1; do
		expect 0 -a --shard=$share/2 --json s t
		[ "$(jq -c '[.committed, .bytes]' <<<"$output")" = '[true,0]' ]
	done
	[ "$(stat -c %a t/d/5)" != 600 ]
	left_only_receipt t
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
	strace -qq -f -e trace=syncfs,fsync,renameat2 -o trace "$FCOPY" -r --shard=1/2 s t
	# One for the chunks, one for what the commit has set; the first renames are of the part.
	grep -oE '(syncfs|fsync|renameat2)[(]' trace | paste -sd' ' >calls
	grep -qE 'syncfs[(].* syncfs[(] renameat2[(] fsync[(]' calls || { cat trace; return 1; }
}

@test "each file of the list is flushed before it gets its name: a power cut leaves no damaged list" {
	need_strace
	make_source
	traced 0 trace=fdatasync,renameat,renameat2 -a -j1 --shard=0/2 s t
	awk 'match($0, /share\.new\.[a-z0-9]+/) {
			name = substr($0, RSTART, RLENGTH)
			if (/fdatasync\(/) flushed[name] = 1
			else if (/rename/ && !flushed[name]) { print "not flushed: " $0; bad = 1 }
			else if (/rename/) { delete flushed[name]; renamed++ }
		}
		END { exit bad || renamed < 2 }' trace
}

@test "a retry flushes the directory of DST if the commit could not" {
	need_strace
	make_source
	part 0 -a --shard=0/2
	# Its first fsync is that of the markers.
	run strace -qq -f -y -o trace -e inject=fsync:error=EIO:when=2 "$FCOPY" -a --shard=1/2 s t
	[ "$status" = 1 ] || { echo "status $status: $output"; return 1; }
	[ -d t ]
	strace -qq -f -y -e trace=fsync -o trace "$FCOPY" -a --shard=1/2 s t
	grep -qF "<$(realpath .)>)" trace || { cat trace; return 1; }
	diff <(describe s) <(describe t)
}

@test "DST is the copy, with -T or without: a directory that exists already is refused" {
	local dst option
	make_source
	mkdir t
	for dst in t t/ ./t; do
		for option in -a -aT; do
			expect 2 $option --shard=0/2 s $dst
			mentions "${dst%/}: exists: shards only make a new tree"
			[ -z "$(ls -A t)" ]
			absent t.fcopy-part
		done
	done
	for share in 0 1; do expect 0 -a --shard=$share/2 s t/s; done
	diff <(describe s) <(describe t/s)
}

@test "a late retry without the receipt, with -T or without: refused, and DST is unchanged" {
	local option
	make_source
	shards 2 -a
	rm -r t.fcopy-part
	cp -a t before
	for option in -a -aT; do
		for share in 0 1; do
			expect 2 $option --shard=$share/2 s t
			mentions 't: exists: shards only make a new tree'
		done
		expect 2 $option --shard=finish/2 s t
	done
	diff <(describe before) <(describe t)
	absent t.fcopy-part
}

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

@test "the number of names of a file that could not be read must stay: the list says which are links" {
	local share
	mkdir w
	cp "$FCOPY" w/fcopy
	! is_root || chown 65534:65534 w
	cd w
	as() { if is_root; then run $NOBODY "$@"; else run "$@"; fi; }
	as bash -c 'mkdir -p s/d; echo 1 >s/d/a; ln s/d/a s/d/b; for i in $(seq 900); do echo $i >s/$i; done; chmod 0 s/d/a'
	as ./fcopy -a --shard=0/1 s t
	[ "$status" = 1 ]
	as bash -c 'chmod 640 s/d/a; rm s/d/b; echo 2 >s/d/b'
	as ./fcopy -a --shard=0/1 s t
	[ "$status" = 1 ]
	[[ $output == *"t: SRC changed between the shards"* ]]
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

@test "an entry that appears after the walk is not copied; one that was copied may change then" {
	make_source
	part 0 -a --shard=0/2
	echo new >s/d/new
	echo changed >s/d/5
	expect 0 -a --shard=1/2 s t
	absent t/d/new
	[ "$(cat t/d/5)" = 5 ]
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

@test "a receipt is in no other copy's way" {
	make_source
	shards 1 -a
	mv t moved
	expect 0 -a s t # another copy needs the name
	absent t.fcopy-part
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

@test "the receipt of a tree that was moved away: a retry is refused, and nothing is copied into a new DST" {
	mkdir s
	echo x >s/f
	expect 0 -r --shard=0/1 s t
	mv t elsewhere
	mkdir t
	expect 2 -r --shard=0/1 s t
	mentions "t: exists"
	[ -z "$(ls t)" ]
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
