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

@test "a file that grows past 256 MiB while one shard copies it keeps the other shard's range" {
	mkdir -p s/sub # sub/big1 is of share 1
	big s/sub/big1 250M O 0
	"$FCOPY" -r --limit-rate=8M --shard=1/2 s t 2>err &
	sleep 1
	head -c 20M /dev/zero | tr '\0' N >>s/sub/big1
	expect 0 -r --shard=0/2 s t
	never wait $!
	grep -q 'changed while it was copied' err
	expect 0 -r --shard=1/2 s t
	cmp s/sub/big1 t/sub/big1
	left_only_receipt t
}

@test "a large file that was replaced by another one while an old attempt still runs" {
	mkdir -p s/sub
	big s/sub/big 300M O 140 160
	"$FCOPY" -r --limit-rate=3M --shard=1/2 s t 2>err &
	sleep 1
	big new 400M N 140 160
	mv new s/sub/big
	expect 0 -r --shard=0/2 s t
	sleep 1.5
	kill -KILL $!
	wait $! || true
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
	expect 0 -r --shard=0/2 s t
	need_strace
	run strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL \
		"$FCOPY" -r --shard=1/2 s t
	absent t
	mv s/sub/mounted/one hidden # as a mount that is missing on one machine
	expect 1 -r --shard=finish/2 s t
	mentions 't: its source changed between the shards'
	[ -f t.fcopy-part/sub/mounted/one ]
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
	"${without[@]}" "$FCOPY" --limit-rate=2M --shard=0/2 s t 2>/dev/null &
	sleep 0.4
	head -c 4M /dev/urandom | dd of=s bs=1M seek=5 conv=notrunc status=none
	wait $! || true
	cp -p --sparse=always good s
	"${without[@]}" "$FCOPY" --shard=0/2 s t
	"${without[@]}" "$FCOPY" --shard=1/2 s t
	cmp good t
}

@test "the part stays open and locked until the marker exists: a later part can have its inode number" {
	need_strace
	random s 2000000
	strace -qq -o trace -e trace=openat,close,fcntl "$FCOPY" --shard=0/2 s t
	held=$(sed -n 's/^fcntl([0-9]*, F_DUPFD_CLOEXEC, 0) *= //p' trace | tail -1)
	[ -n "$held" ]
	awk -v held="$held" '/"share\.0/ { marked = 1 } $0 ~ "^close\\(" held "\\)" && marked { found = 1 }
		/F_DUPFD_CLOEXEC/ { dup = 1 } $0 ~ "^close\\(" held "\\)" && dup && !marked { early = 1 }
		END { exit !found || early }' trace
}
