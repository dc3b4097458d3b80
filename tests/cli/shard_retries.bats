#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard: attempts that failed or were killed, and a source that has changed since. What such an
# attempt left must not get into the copy.

load helper
load shard

# killed OPTION…: one attempt of share 0/1 of s to t, killed when its share is copied.
killed() {
	need_strace
	run strace -f -qq -o /dev/null -e trace=syncfs -e inject=syncfs:signal=KILL \
		"$FCOPY" "$@" --shard=0/1 s t
	[ -d t.fcopy-part ]
	absent t
}

# retried OPTION…: the next attempt completes the copy.
retried() {
	expect 0 "$@" --shard=0/1 s t
	diff -r --no-dereference s t
	left_only_receipt t
}

# big FILE SIZE LETTER MIB…: a sparse file with 20 MiB of that letter at each offset.
big() {
	local at
	truncate -s "$2" "$1"
	for at in "${@:4}"; do
		head -c 20M /dev/zero | tr '\0' "$3" | dd of="$1" bs=1M seek="$at" conv=notrunc status=none
	done
}

# has_blocks PATTERN: a file of that name.
has_blocks() {
	# shellcheck disable=SC2086
	[ "$(stat -c %b $1 2>/dev/null || echo 0)" -gt 0 ]
}

@test "whichever mkdir of a shard fails, the same command completes the copy" {
	need_strace
	local n
	mkdir -p s/empty
	echo a >s/a
	for n in 1 2 3 4 5; do
		separately strace -f -qq -o trace -e trace=mkdirat -e inject=mkdirat:error=EIO:when=$n \
			"$FCOPY" -a -j1 --shard=0/1 s t
		grep -q INJECTED trace || break
		demand 1
		retried -a -j1
		rm -r t t.fcopy-part
	done
	[ "$n" = 5 ] # the last failure was that of t/empty
	demand 0
}

@test "a symlink that has become a file since is not followed" {
	for option in -r -a; do
		rm -rf s t t.* victim
		mkdir -p s/d victim
		echo precious >victim/file
		echo source >s/d/x
		ln -s "$T/victim/file" s/d/l
		ln -s x s/d/m
		killed $option
		rm s/d/l s/d/m
		echo new >s/d/l
		echo newer >s/d/m
		retried $option
		holds precious victim/file
		holds source s/d/x
	done
}

@test "any type of entry can become any other one" {
	local before after
	for before in file directory symlink fifo link; do
		for after in file directory symlink fifo link; do
			rm -rf s t t.*
			mkdir -p s/d
			echo first >s/d/first
			make_entry $before
			killed -a
			rm -r s/d/x
			make_entry $after
			expect 0 -a --shard=0/1 s t
			diff <(cd s && find . -printf '%p %y %m %n %l\n' | sort) \
				<(cd t && find . -printf '%p %y %m %n %l\n' | sort)
		done
	done
}

make_entry() {
	case $1 in
	file) echo file >s/d/x ;;
	directory) mkdir s/d/x && echo below >s/d/x/y ;;
	symlink) ln -s first s/d/x ;;
	fifo) mkfifo s/d/x ;;
	link) ln s/d/first s/d/x ;;
	esac
}

@test "large files that were hard links of each other get their own bytes" {
	mkdir -p s/d
	big s/d/a 256M A 100
	ln s/d/a s/d/b
	killed -a
	rm s/d/b
	big s/d/b 256M B 100
	retried -a
	[ "$(stat -c %h t/d/a t/d/b | sort -u)" = 1 ]
}

@test "a file that grows while a shard copies it: refused, and DST stays absent" {
	mkdir -p s/sub
	big s/sub/big1 250M O 0
	"$FCOPY" -r --limit-rate=8M --shard=1/2 s t 2>err &
	await test -s t.fcopy-part/data/sub/big1
	head -c 20M /dev/zero | tr '\0' N >>s/sub/big1
	never wait $!
	grep -q 'grew while it was copied' err
	if [ "$(markers t)" -gt 0 ]; then # on a busy machine: after 5 seconds
		expect 1 -r --shard=1/2 s t
		mentions "t: SRC changed between the shards"
		absent t
		return
	fi
	expect 0 -r --shard=1/2 s t # nothing was complete
	cmp s/sub/big1 t/sub/big1
	left_only_receipt t
}

@test "a large file that was replaced by another one while an old attempt still runs is never mixed" {
	mkdir -p s/sub
	big s/sub/big 300M O 140 160
	"$FCOPY" -r --limit-rate=3M --shard=1/2 s t 2>err &
	await has_blocks 't.fcopy-part/data/sub/big'
	big new 400M N 140 160
	mv new s/sub/big
	expect 0 -r --shard=0/2 s t # the old attempt has all chunks
	kill -KILL $!
	wait $! || true
	absent t
	expect 0 -r --shard=1/2 s t
	cmp s/sub/big t/sub/big
	left_only_receipt t
}

@test "what has become private since is private in the copy" {
	for option in -r -a; do
		rm -rf s t t.*
		mkdir -p s/d/private
		echo secret >s/d/f
		big s/d/large 256M L 10
		chmod 644 s/d/f s/d/large
		chmod 755 s/d/private
		killed $option
		chmod 600 s/d/f s/d/large
		chmod 700 s/d/private
		retried $option
		[ "$(stat -c %a t/d/f t/d/large t/d/private | paste -sd' ')" = '600 600 700' ]
	done
}

@test "a commit that is refused removes nothing" {
	mkdir -p s/sub/mounted
	echo 1 >s/sub/mounted/one
	echo 3 >s/three
	ln s/three s/sub/three
	apart 0 -a -j1 --shard=0/2 s t
	absent t
	mv s/sub/mounted hidden # as a mount that is missing on one machine
	expect 1 -a --shard=1/2 s t
	mentions 't: SRC changed between the shards'
	[ -f t.fcopy-part/data/sub/mounted/one ]
	absent t
}

@test "what the source lacks is removed from a complete copy" {
	mkdir -p s/d/gone
	echo 1 >s/d/gone/one
	echo 2 >s/d/two
	killed -a
	rm -r s/d/gone
	retried -a
	absent t/d/gone
}

@test "in a setgid directory a new tree keeps the bit, with --shard and --resume too" {
	mkdir -p s/d setgid
	chmod 2775 setgid
	[ "$(stat -c %a setgid)" = 2775 ] || skip "setgid is refused here"
	expect 0 -r s setgid/plain
	expect 0 -r --resume s setgid/resumed
	expect 0 -r --shard=0/1 s setgid/shard
	[ "$(stat -c %a setgid/plain setgid/resumed setgid/shard | sort -u)" = 2755 ]
}

@test "a file with holes where an attempt has copied bytes, and nothing can punch holes" {
	need_strace
	head -c 1000000 /dev/urandom >s
	truncate -s 20M s
	cp -p --sparse=always s good
	local -a without=(strace -f -qq -o /dev/null -e trace=fallocate -e inject=fallocate:error=EOPNOTSUPP)
	"${without[@]}" "$FCOPY" --limit-rate=1M --shard=0/2 s t 2>/dev/null &
	await has_blocks t.fcopy-part/data
	head -c 4M /dev/urandom | dd of=s bs=1M seek=5 conv=notrunc status=none
	wait $! || true
	cp -p --sparse=always good s
	"${without[@]}" "$FCOPY" --shard=0/2 s t
	"${without[@]}" "$FCOPY" --shard=1/2 s t
	cmp good t
}

@test "files with holes or unwritten extents: shards in any order, and all at once" {
	local file i round
	truncate -s 8M holes
	head -c 2M /dev/urandom | dd of=holes bs=1M seek=2 conv=notrunc status=none
	head -c 1M /dev/urandom | dd of=holes bs=1M seek=6 conv=notrunc status=none
	fallocate -l 8M unwritten || cp holes unwritten
	head -c 2M /dev/urandom | dd of=unwritten bs=1M seek=5 conv=notrunc status=none
	for file in holes unwritten; do
		for i in 3 2 1 0; do
			apart 0 --shard=$i/4 $file t
		done
		cmp $file t
		rm -r t t.*
		for round in 1 2 3 4 5; do
			for i in 0 1 2 3; do
				"$FCOPY" --shard=$i/4 $file t &
			done
			wait
			cmp $file t
			rm -r t t.*
		done
	done
}

@test "what an attempt preserved, and the source has lost since, is not in the copy" {
	need setfattr
	need_strace
	mkdir -p s/d
	setfattr -n user.k -v 1 s 2>/dev/null || skip "no extended attributes here"
	run strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=4 "$FCOPY" -a -j1 --shard=0/1 s t
	setfattr -x user.k s
	expect 0 -a --shard=0/1 s t
	never getfattr -n user.k t
	for option in --shard=0/1 --resume; do
		rm -rf s t t.*
		echo 1 >s
		setfattr -n user.k -v 1 s
		run strace -f -qq -o /dev/null -e trace=renameat,renameat2 \
			-e inject=renameat,renameat2:signal=KILL "$FCOPY" --preserve=all $option s t
		setfattr -x user.k s
		expect 0 --preserve=all $option s t
		never getfattr -n user.k t
	done
}

@test "what has become public since is public in the copy" {
	mkdir -p s/d
	echo 1 >s/d/f
	chmod 700 s/d
	chmod 600 s/d/f
	killed -r
	chmod 755 s/d/f s/d
	retried -r
	[ "$(stat -c %a t/d t/d/f | paste -sd' ')" = '755 755' ]
}

@test "a late retry after the source's first directory has changed: refused, and DST is unchanged" {
	local i
	mkdir s
	echo 1 >s/f
	for i in 0 1; do expect 0 -a --shard=$i/2 s t; done
	sleep 0.01
	echo 2 >s/g
	for i in 0 1 finish; do
		expect 1 -a --shard=$i/2 s t
		says 'fcopy: t: is complete, but of another job, or of an earlier SRC: rename DST and run again'
	done
	[ "$(ls -A t)" = f ]
	mkdir other
	echo 3 >other/h
	for i in 0 1; do
		expect 1 -a --shard=$i/2 other t
		says 'fcopy: t: is complete, but of another job, or of an earlier SRC: rename DST and run again'
	done
	[ "$(ls -A t)" = f ]
}

@test "the roots of two file systems, which have one inode number: shards take neither for the other" {
	export FCOPY
	private_mounts 'mkdir -p m n; set -e
		for i in m n; do mount -t tmpfs none $i; echo $i >$i/f; done
		[ "$(stat -c %i m)" = "$(stat -c %i n)" ]
		for i in 0 1; do "$FCOPY" -a --shard=$i/2 m t; done
		diff -r m t
		for i in 0 1 finish; do ! "$FCOPY" -a --shard=$i/2 n t || exit 9; done
		diff -r m t
		for i in 0 1; do "$FCOPY" -a --shard=$i/2 n u; done
		diff -r n u'
	demand 0
}

@test "shards of a large file under a umask without write permission, as an ordinary user" {
	chmod 777 .
	mkdir s
	truncate -s 256M s/big
	AS_UMASK=0222 as_nobody 0 -r --shard=0/2 s t
	AS_UMASK=0222 as_nobody 0 -r --shard=1/2 s t
	[ "$(stat -c '%s %a' t/big)" = '268435456 444' ]
	chmod 755 t
}

@test "a shard opens a large file that another one has just made, and cannot write yet" {
	need_strace
	chmod 777 .
	mkdir s
	truncate -s 256M s/big
	install -m 755 "$FCOPY" fcopy
	local nobody=
	! is_root || nobody=$NOBODY
	# shellcheck disable=SC2086
	(umask 0222 && exec strace -f -qq -y -o trace -e trace=fchmod -e inject=fchmod:delay_enter=1500000 \
		$nobody ./fcopy -r -j1 --shard=0/2 s t) 2>err 3>&- &
	made() { [ "$(stat -c %a t.fcopy-part/data/big 2>/dev/null)" = 444 ]; }
	await made
	AS_UMASK=0222 as_nobody 0 -r --shard=1/2 s t
	wait $!
	[ "$(stat -c '%s %a' t/big)" = '268435456 444' ]
	in_trace '/data/big>, 0644'
	chmod 755 t
}

@test "one file with -r: --shard=finish says that chunks are missing" {
	random big 4000000
	apart 0 -r --shard=0/2 big d
	expect 1 -r --shard=finish/2 big d
	mentions "d: 1 of 2 chunks are missing" "hint: run any share again"
}

@test "shards and --resume: new directories lack rights of their owner; the sticky bit stays" {
	local by option
	need setfacl
	mkdir -p s/d p
	echo 1 | tee s/f s/d/f >/dev/null
	chmod 1755 s
	chmod 777 .
	for by in umask acl; do
		rm -rf p
		mkdir p
		chmod 777 p
		[ $by = umask ] || setfacl -d -m u::rx,g::rx,o::- p 2>/dev/null || skip "no ACLs here"
		for option in --shard=0/1 --resume; do
			AS_UMASK=$([ $by = umask ] && echo 0277 || echo 022) as_nobody 0 -r $option s p/t
			diff -r s p/t
			[ "$(stat -c %a p/t)" = $([ $by = umask ] && echo 1500 || echo 1550) ]
			chmod -R u+w p/t
			rm -rf p/t
		done
	done
}

@test "a large file that becomes a symlink before the commit: refused, and no attribute of its target" {
	need_strace
	need setfattr getfattr flock
	mkdir s
	truncate -s 256M s/big
	echo x >other
	setfattr -n user.foreign -v 1 other 2>/dev/null || skip "no extended attributes here"
	# After the marker it waits for 3 s.
	strace -f -qq -o trace -e trace=fsync -e inject=fsync:delay_exit=3000000:when=3 \
		"$FCOPY" -a -j 1 --shard=0/1 s d 2>err 3>&- &
	pid=$!
	marked() { [ -n "$(find d.fcopy-part -name 'share.done.0' 2>/dev/null)" ]; }
	await marked
	mv s/big big.old
	ln -s ../other s/big
	wait $pid && status=0 || status=$?
	[ $status = 1 ] || { cat err; return 1; }
	grep -qE '^fcopy: s/big: open: (Too many levels of symbolic links|Symbolic link loop)$' err || { cat err; return 1; }
	absent d
}

@test "what another client of NFS has just removed or replaced is looked up again" {
	need_strace
	mkdir s
	echo data | tee s/{a,b} >/dev/null
	ln s/a s/link # a chunk of its own
	local name
	for name in t.fcopy-part lock journal share.claim.list data share.list.1 share.claim.1 share.done.1; do
		rm -rf t t.fcopy-part
		apart 0 -a -j1 --shard=0/2 s t
		run --separate-stderr timeout -s KILL "$HANG" strace -f -qq -o trace -P $name -e trace=openat \
			-e inject=openat:error=ESTALE:when=1 "$FCOPY" -a -j1 --shard=1/2 s t
		demand 0
		never grep fcopy: <<<"$stderr"
		grep -q INJECTED trace
		diff -r s t
		left_only_receipt t
	done
	rm -rf t t.fcopy-part
	apart 0 -a -j1 --shard=0/2 s t
	run --separate-stderr timeout -s KILL "$HANG" strace -f -qq -o trace -P journal -e trace=openat \
		-e inject=openat:error=ESTALE "$FCOPY" -a -j1 --shard=1/2 s t
	demand 1
	mentions "open of its journal: Stale file handle"
}
