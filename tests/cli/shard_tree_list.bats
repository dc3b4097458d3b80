#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The list of a tree in shards: who lists, and what is copied of it.

load helper
load shard
load shard_tree

@test "an interrupted read of a list is repeated, and another failure is reported" {
	need_strace
	local call path
	path=$(pwd -P)/t.fcopy-part/share.list.0
	mkdir s
	echo data >s/a
	for call in read "?fstat,?newfstatat,?fstatat64"; do
		separately strace -f -qq -o trace -P "$path" -e trace="$call" -e inject="$call:error=EIO:when=1" \
			"$FCOPY" -a -j1 --shard=0/1 s t
		demand 1
		injected
		mentions 't: read of its list: Input/output error'
		absent t
	done
	separately strace -f -qq -o trace -P "$path" -e trace=read -e inject=read:error=EINTR:when=1 \
		"$FCOPY" -a -j1 --shard=0/1 s t
	demand 0
	injected
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

# list_and_stop: shard 0 has listed a part of s, and is stopped; shard 1 has copied what is listed. Sets lister and copier.
list_and_stop() {
	local i
	for i in {1..40}; do
		mkdir -p s/$i
		echo $i | tee s/$i/{1..40} >/dev/null
	done
	strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=STOP:when=6 \
		"$FCOPY" -a -j1 --shard=0/2 s t 3>&- &
	lister=$!
	await test -e t.fcopy-part/share.list.2
	timeout 60 "$FCOPY" -a --shard=1/2 s t 3>&- &
	copier=$!
	await has_copied
	[ ! -s t.fcopy-part/share.claim.list ]
}

@test "a shard copies what is listed, while another one is still listing" {
	need_strace
	local lister copier
	list_and_stop
	kill -CONT "$(pgrep -P $lister)"
	wait $lister
	wait $copier
	committed
}

@test "a shard that waits for the list makes the rest of it when the one that lists is killed or interrupted" {
	need_strace
	local lister copier pid signal i
	mkdir -p s/{1..40}
	for i in {1..40}; do # of some files, one of two names is listed then
		echo $i >s/$i/a
		ln s/$i/a s/$((i % 40 + 1))/b
	done
	for signal in KILL TERM; do
		list_and_stop
		pid=$(pgrep -P $lister)
		kill -$signal "$pid"
		kill -CONT "$pid" 2>/dev/null || [ $signal = KILL ]
		wait $copier
		committed
		rm -r t t.fcopy-part
	done
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

@test "an entry that appears after the walk is not copied; one that was copied may change then" {
	make_source
	part 0 -a --shard=0/2
	echo new >s/d/new
	echo changed >s/d/5
	expect 0 -a --shard=1/2 s t
	absent t/d/new
	[ "$(cat t/d/5)" = 5 ]
}

@test "whichever fstat of a shard fails, it ends with a message or the whole tree, and the same command completes it" {
	need_strace
	local n failed=0 calls=?fstat,?newfstatat,?fstatat64
	mkdir s
	echo a | tee s/{a,b} >/dev/null
	ln s/a s/link
	for ((n = 1; n < 200; n++)); do
		part 0 -a --shard=1/2 # it lists, and copies nothing
		run --separate-stderr strace -f -qq -o trace -e trace=$calls -e inject=$calls:error=EIO:when=$n \
			"$FCOPY" -a -j1 --shard=0/2 s t
		grep -q INJECTED trace || break
		if [ "$status" = 1 ]; then
			[ -n "$stderr" ]
			failed=$((failed + 1))
		elif [ "$status" != 0 ]; then
			[ "$status" = 127 ] # libc was not loaded
			mentions 'error while loading shared libraries'
		fi
		expect 0 -a -j1 --shard=0/2 s t
		committed
		rm -r t t.fcopy-part
	done
	[ $failed -gt 8 ]
}
