#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What happens while a tree is copied: signals, kills, another copy, changes of SRC and DST.

load helper
load tree

@test "an entry that vanishes after it was listed: a warning, and the tree is committed" {
	need_strace
	make_small s
	touch s/victim
	mkdir s/victims
	strace -f -qq -o trace -P s -e trace=getdents64 -e inject=getdents64:delay_exit=2500000:when=1 \
		"$FCOPY" -r -j1 s d 2>err &
	pid=$!
	await said getdents64 trace
	rm -r s/victim s/victims
	wait $pid
	grep -q 'warning: s/victim: .*vanished' err
	grep -q 'warning: s/victims: .*vanished' err
	diff -r s d
}

@test "names that vanish and appear during the copy: at most warnings, and all other entries are whole" {
	local option round churn vanished=0
	make_small s
	cp -r s stable
	python3 - <<-'END' 3>&- &
		import os, random, shutil
		n = 0
		while True:
		    n += 1
		    at = "s/d%d/churn%d" % (n % 4, n % 40)
		    if n % 80 >= 40:
		        shutil.rmtree(at) if os.path.isdir(at) else os.path.exists(at) and os.unlink(at)
		    elif n % 3 == 0:
		        os.makedirs(at + "/sub", exist_ok=True)
		        open(at + "/sub/file", "w").close()
		    else:
		        open(at, "w").write("x" * random.randrange(5000))
	END
	churn=$!
	await test -e s/d3/churn3
	for round in {1..10}; do # some, and until a name has vanished
		[ $round -le 3 ] || [ $vanished = 0 ] || break
		for option in -r -a "-r -j4" "-a --verify"; do
			rm -rf d
			# shellcheck disable=SC2086
			expect 0 $option -T s d
			if grep -v '^fcopy: warning: ' <<<"$stderr" | grep .; then return 1; fi
			[[ $stderr != *vanished* ]] || vanished=$((vanished + 1))
			diff -r stable d | grep -v '^Only in d.*: churn' && return 1
			[ -z "$(find d -type f -size +5k -name 'churn*')" ]
		done
	done
	kill $churn
	[ $vanished -gt 0 ]
}

# slow SIGNAL-TEST ARG…: starts a copy that takes long; $pid is its process.
slow() {
	env --default-signal=INT "$FCOPY" -r --limit-rate 200K "$@" 2>err &
	pid=$!
	await is_fcopy
	await has_started
}

has_started() {
	[ -n "$(find . -path '*.fcopy-*' -type f ! -name journal ! -name lock -size +0)" ]
}

@test "SIGINT, SIGTERM and SIGHUP remove the new tree, and end the program" {
	local signal status
	make_small s
	for signal in INT TERM HUP; do
		slow s d
		kill -$signal $pid
		status=0
		wait $pid || status=$?
		[ $status = $((128 + $(kill -l $signal))) ]
		absent d
		[ "$(ls -A)" = $'err\ns' ] || { ls -A; return 1; }
		[ "$(cat err)" = $'fcopy: stopped; d not created\nfcopy: hint: use --resume to keep an unfinished copy' ]
	done
}

@test "a signal during a merge: the message says that DST is incomplete; with -q nothing is printed" {
	local option
	make_small s
	for option in -v -q; do
		rm -rf into
		mkdir -p into/s
		env --default-signal=INT "$FCOPY" -r --limit-rate 200K $option s into 2>err &
		pid=$!
		await is_fcopy
		await test -d into/s/d1
		kill -INT $pid
		wait $pid || [ $? = 130 ]
		if [ $option = -q ]; then
			[ ! -s err ]
		else
			grep -qE '^fcopy: stopped; into/s is incomplete: [0-9]+ entr(y|ies) \([0-9.]+ (KiB|B)\) copied$' err
		fi
	done
}

@test "a signal during the second of several SRC: the message names it, and those that were not begun" {
	local n status not_begun=([3]=s3 [4]='s3 and 1 more')
	make_small s2
	for n in 1 3 4; do
		mkdir s$n
		echo $n >s$n/f
	done
	for n in 2 3 4; do
		rm -rf into
		mkdir into
		env --default-signal=INT "$FCOPY" -r -j1 --limit-rate 200K s1 s2 $([ $n = 2 ] || seq -f s%g 3 $n) into 2>err &
		pid=$!
		await is_fcopy
		await test -e into/s1/f
		await eval '[ -n "$(find into -path "*.fcopy-*" -type f -size +0)" ]'
		kill -INT $pid
		status=0
		wait $pid || status=$?
		[ $status = 130 ]
		[ "$(ls into)" = s1 ]
		diff err - <<<"fcopy: stopped; copied 1 of $n SRC to into
fcopy: into/s2: not created${not_begun[n]:+
fcopy: not begun: ${not_begun[n]}}
fcopy: hint: use --resume to keep an unfinished copy"
	done
}

@test "a signal with --resume keeps the part, and the next run skips what is complete" {
	local status=0
	make_small s
	slow --resume s d
	await eval '[ "$(find d.fcopy-part/data -type f -size +0 | wc -l)" -ge 6 ]'
	kill -TERM $pid
	wait $pid || status=$?
	[ $status = 143 ]
	absent d
	grep -qxE "fcopy: stopped; d not created; d.fcopy-part has [0-9]+ entr(y|ies) \([0-9.]+ (KiB|B)\)" err
	n=$(cd d.fcopy-part/data && find . -type f -exec cmp -s {} ../../s/{} \; -print | wc -l)
	said=$(sed -n 's/.* has \([0-9]*\) entr.*/\1/p' err)
	[ "$said" -ge "$n" ] && [ "$said" -le $((n + $(find d.fcopy-part/data -type d | wc -l))) ] || { cat err; return 1; }
	grep -qx 'fcopy: hint: run the same command again to resume' err
	[ "$(wc -l <err)" = 2 ]
	[ -d d.fcopy-part ]
	[ -n "$(find d.fcopy-part/data -type f)" ]
	need_strace
	traced 0 trace=openat -r --resume s d
	diff -r s d
	[ "$(grep -c 'O_CREAT\|O_TMPFILE' trace)" -lt 20 ]
	absent d.fcopy-part
}

@test "SIGKILL leaves a temporary name and no DST; the next copy is whole" {
	make_small s
	slow s d
	kill -KILL $pid
	wait $pid || true
	absent d
	[ -n "$(find . -maxdepth 1 -name '.fcopy-*')" ]
	expect 0 -r s d
	diff -r s d
	rm -rf .fcopy-*
}

@test "two copies to the same DST at once: one of them has it, whole, and the other one fails" {
	make_small s
	make_small t
	local a=0 b=0
	"$FCOPY" -rT s d 2>err.a &
	pid=$!
	"$FCOPY" -rT t d 2>err.b || b=$?
	wait $pid || a=$?
	case $a$b in
	01) diff -r s d ;;
	10) diff -r t d ;;
	00) [ -d d ] ;; # the second one began after the first one's commit, and merged
	*) cat err.?; return 1 ;;
	esac
	[ -z "$(find . -name '*fcopy-*')" ]
}

@test "DST that appears during the copy is not replaced" {
	make_small s
	slow s d
	mkdir d
	echo mine >d/mine
	kill -CONT $pid
	local status=0
	wait $pid || status=$?
	[ $status = 1 ]
	holds mine d/mine
	[ "$(ls d)" = mine ]
	grep -q 'd: was created by another process during the copy' err
	# A part beside an existing DST could not be resumed.
	[ "$(ls -A)" = $'d\nerr\ns' ] || { ls -A; return 1; }
	# With --resume it is kept, and completed when the name is free again.
	rm -r d
	slow --resume s d
	mkdir d
	status=0
	wait $pid || status=$?
	[ $status = 1 ]
	[ -f d.fcopy-part/journal ]
	rmdir d
	expect 0 -r --resume s d
	diff -r s d
}

@test "a source that grows or is exchanged for a FIFO or a symlink during the copy" {
	need_strace
	mkdir s
	touch s/victim s/other
	echo canary >canary
	local to
	for to in 'mkfifo s/victim' 'ln -s ../canary s/victim' 'mkdir s/victim'; do
		rm -rf s/victim d trace
		touch s/victim
		strace -f -qq -o trace -P s -e trace=getdents64 -e inject=getdents64:delay_exit=2500000:when=1 \
			timeout -s KILL "$HANG" "$FCOPY" -r -j1 s d 2>err &
		pid=$!
		await said getdents64 trace
		rm s/victim
		$to
		wait $pid
		diff <(stat -c '%F %N' s/victim | sed 's/s.victim//') <(stat -c '%F %N' d/victim | sed 's/d.victim//')
	done
}

@test "messages that nobody reads any more: SIGPIPE removes the unfinished tree" {
	need python3
	mkdir s
	seq 3000 | sed 's,^,s/,' | xargs touch
	UNREAD=both run -141 unread -rv s d
	absent d
	[ -z "$(find . -maxdepth 1 -name '.fcopy-*')" ]
}

@test "a source that is replaced by a rename, or removed, while it is copied: a warning" {
	local victim
	mkdir s
	random s/large 300000
	for victim in rename remove; do
		slow s $victim
		if [ $victim = rename ]; then
			random other 100
			mv other s/large
		else
			rm s/large
		fi
		wait $pid
		grep -q "warning: s/large: was replaced or removed while it was copied" err
		[ "$(stat -c %s $victim/large)" = 300000 ]
		random s/large 300000
	done
}

@test "--strict: an entry that vanishes fails" {
	need_strace
	make_small s
	touch s/victim
	strace -f -qq -o trace -P s -e trace=getdents64 -e inject=getdents64:delay_exit=3000000:when=1 \
		"$FCOPY" -r -j1 --strict s d 2>err &
	pid=$!
	await said getdents64 trace
	rm s/victim
	local failed=0
	wait $pid || failed=$?
	[ $failed = 1 ]
	grep -q 's/victim: .*vanished' err
	absent d
}
