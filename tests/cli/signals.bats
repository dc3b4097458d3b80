#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ^C and kill -9: the old file or the new one, nothing else, and the right way to die.

load helper

# ends STATUS: that is how $pid ends.
ends() {
	server=$pid ended "$1"
}

# stall COMMAND…: COMMAND, which copies ./pipe to ./b, has taken 5 bytes and waits for
# more. A background job of a shell ignores SIGINT, and nohup SIGHUP, hence env.
stall() {
	echo old >b
	mkfifo pipe
	exec 6<>pipe
	printf 'half:' >&6
	env --default-signal=HUP,INT,TERM "$@" 6>&- &
	pid=$!
	await has_written
}

# nothing_changed: b is the old one, and there is nothing else.
nothing_changed() {
	holds old b
	[ "$(ls -A)" = $'b\npipe' ] || { ls -A; return 1; }
}

@test "SIGINT, SIGTERM, SIGHUP in the middle: nothing half made; status 128 + n; silent enough" {
	local name number
	while read -r name number; do
		stall "$FCOPY" pipe b 2>/dev/null
		kill -"$name" $pid
		ends "$number"
		nothing_changed
		rm -f b pipe
	done <<-'TABLE'
		INT 130
		TERM 143
		HUP 129
	TABLE
}

@test "the process dies by the signal itself, not by an exit status that looks like it" {
	need_strace
	local name
	for name in INT TERM HUP; do
		stall strace -D -q -o ../trace.$$ -e trace=none "$FCOPY" pipe b
		kill -$name $pid
		wait $pid || true
		await grep -q "+++ killed by SIG$name" ../trace.$$
		rm -f ../trace.$$ b pipe
	done
}

@test "an alarm that was set before fcopy started ends it, and nothing is left" {
	# GNU parallel, which runs these tests, ignores SIGALRM.
	stall python3 -c 'import os, signal, sys
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.alarm(5)
os.execv(sys.argv[1], sys.argv[1:])' "$FCOPY" pipe b 2>/dev/null
	ends 142
	nothing_changed
}

@test "a signal while a FIFO has no other side, with a large or a small stack" {
	mkfifo pipe
	echo data >a
	local arguments
	for arguments in "8192 pipe b" "8192 a pipe" "512 pipe b" "512 a pipe"; do
		# With 512 KiB, another thread than the first one waits.
		# shellcheck disable=SC2086
		(ulimit -s ${arguments%% *} && exec env --default-signal=INT "$FCOPY" ${arguments#* }) &
		pid=$!
		await is_fcopy
		sleep 0.1 # until it waits
		kill -INT $pid
		ends 130
		absent b
	done
}

@test "--inplace: a signal before the first byte leaves DST unchanged, and the message says so" {
	echo old >b
	env --default-signal=INT "$FCOPY" --inplace tcp-listen:0 b 2>err &
	pid=$!
	await said listening err
	kill -INT $pid
	ends 130
	holds old b
	[ "$(tail -n 1 err)" = 'fcopy: stopped before the first byte; b unchanged' ] || { cat err; return 1; }
}

@test "a SIGHUP or SIGINT that was ignored at the start stays ignored" {
	local name
	for name in HUP INT; do
		echo old >b
		mkfifo pipe
		exec 6<>pipe
		printf 'half:' >&6
		(trap '' $name && exec "$FCOPY" pipe b 6>&-) &
		pid=$!
		await has_written
		kill -$name $pid
		sleep 0.05
		printf 'whole' >&6
		exec 6>&-
		wait $pid
		holds half:whole b
		rm -f b pipe
	done
}

@test "SIGPIPE while a FIFO is awaited: it only means that a message was lost; the copy goes on" {
	mkfifo pipe
	(trap - PIPE && exec "$FCOPY" --json pipe b >out 2>err) &
	pid=$!
	await unguarded_pipe
	kill -PIPE $pid
	sleep 0.05
	timeout $HANG sh -c 'echo whole >pipe'
	wait $pid
	holds whole b
	grep -q '"interrupted": null' out
}

# Has $pid a handler of SIGPIPE, and does it wait?
unguarded_pipe() {
	local caught
	caught=$(sed -n 's/^SigCgt:\t//p' /proc/$pid/status)
	(((0x$caught >> 12) & 1)) && grep -q '^State:.S' /proc/$pid/status
}

@test "a second signal kills at once, while the first one is still being obeyed" {
	need_strace
	# The loader closes some files, then comes what abort closes.
	local closed
	closed=$(strace -qq -e trace=close "$FCOPY" --version 2>&1 >/dev/null | wc -l)
	stall strace -D -q -o ../trace.$$ -e inject=close:delay_enter=600000:when=$((closed + 1))+ \
		"$FCOPY" pipe b readwrite
	kill -INT $pid
	await unguarded
	kill -TERM $pid
	wait $pid || true
	await grep -q '+++ killed by' ../trace.$$
	grep -q '+++ killed by SIGTERM' ../trace.$$ || { tail -5 ../trace.$$; return 1; }
	never grep kill\( ../trace.$$ # it did not get as far as to end by itself
	rm -f ../trace.$$
	nothing_changed
}

@test "two signals at once, as timeout sends them, count as one: the tree is removed" {
	need_strace
	mkdir s
	seq 50 | sed 's,^,s/,' | xargs touch
	random s/large 2000000
	strace -D -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:delay_enter=30000 \
		"$FCOPY" -r -j1 --limit-rate=200K s d &
	pid=$!
	await is_fcopy
	await eval '[ -n "$(find .fcopy-* -name large)" ]'
	kill -TERM $pid
	sleep 0.05
	kill -TERM $pid
	ends 143
	absent d
	[ -z "$(find . -maxdepth 1 -name ".fcopy-*")" ]
}

@test "/dev/zero until interrupted: to a file, to /dev/null" {
	local dst
	for dst in b /dev/null; do
		(ulimit -f 4000000 && exec env --default-signal=INT "$FCOPY" /dev/zero $dst readwrite) &
		pid=$!
		await is_fcopy
		if [ $dst = b ]; then
			await has_written
		else
			sleep 0.1
		fi
		kill -0 $pid
		kill -INT $pid
		ends 130
		absent b
	done
}

@test "kill -9 in the middle: the old file, and no name of ours" {
	stall "$FCOPY" pipe b
	kill -KILL $pid
	wait $pid || true
	nothing_changed
}

# at_random SIGNAL: 4 instants a mode, over an old and a new destination.
at_random() {
	local mode i dst name status interrupted=0
	random new 12000000
	random old 12000000
	for mode in auto readwrite sendfile splice copy_file_range mmap direct parallel; do
		for i in 1 2 3 4; do
			dst=d.$i
			rm -f $dst
			[ $((i % 2)) = 0 ] || cp old $dst
			env --default-signal=INT "$FCOPY" new $dst $mode 2>/dev/null &
			pid=$!
			sleep 0.00$((RANDOM % 10))
			name=
			read -r name 2>/dev/null <"/proc/$pid/comm" || true
			kill -"$1" $pid 2>/dev/null || true
			status=0
			wait $pid 2>/dev/null || status=$?
			[ "$name" != fcopy ] || [ $status -lt 128 ] || interrupted=$((interrupted + 1))
			cmp -s new $dst || cmp -s old $dst || [ ! -e $dst ] || {
				echo "$mode: torn"
				return 1
			}
			[ $((i % 2)) = 0 ] || [ -e $dst ]
		done
	done
	[ $interrupted -gt 0 ]
	# A temporary name is found after kill -9 only where there is no O_TMPFILE, and in the
	# moment of the rename.
	[ "$1" != KILL ] || rm -f .fcopy-*
	[ -z "$(find . -name '.fcopy-*')" ]
}

@test "kill -9 at 32 random instants: old, new, or absent; never torn" {
	at_random KILL
}

@test "SIGINT at 32 random instants: old, new, or absent; nothing left" {
	at_random INT
}

@test "SIGINT while threads copy: all of them stop, nothing is left" {
	need_strace
	random a 20000000
	echo old >b
	strace -D -f -qq -o trace -e inject=pwrite64:delay_enter=300000 \
		env --default-signal=INT "$FCOPY" -j4 a b parallel &
	pid=$!
	await eval '[ "$(find /proc/$pid/task -mindepth 1 -maxdepth 1 | wc -l)" -gt 3 ]'
	kill -INT $pid
	ends 130
	holds old b
}

@test "a signal before the commit, but after the last byte, still stops it" {
	need_strace
	random a 100000
	echo old >b
	strace -D -qq -o trace -e inject=fdatasync:signal=INT env --default-signal=INT "$FCOPY" --fsync a b &
	pid=$!
	ends 130
	in_trace "^fdatasync"
	holds old b
}

@test "--inplace and ^C: dies by the signal, and the file keeps its length" {
	random a 100000
	mkfifo pipe
	exec 6<>pipe
	printf 'half:' >&6
	env --default-signal=INT "$FCOPY" --inplace pipe a readwrite 6>&- 2>/dev/null &
	pid=$!
	await grep -q '^half:' a
	kill -INT $pid
	ends 130
	[ "$(stat -c %s a)" = 100000 ]
}

@test "messages that nobody reads do not change the outcome of a copy" {
	need python3
	local -a args
	random a 3000000
	while read -ra args; do
		rm -f b
		run -0 unread "${args[@]}" a b
		cmp a b
	done <<-'END'
		-v
		-vv
		--progress
		--size=5
		-vv --resume
	END
	run -0 unread --json --size=5 a c
	[[ $output == *'"done": true'* ]] || { echo "$output"; return 1; }
	run -2 unread -vv nope c2
	[ "$(ls -A)" = $'a\nb\nc' ] || { ls -A; return 1; }
	run -1 unread --stats a b # the user asked for them
	cmp a b
}

@test "DST is a pipe that nobody reads: quiet, and death by SIGPIPE, if it is not ignored" {
	local mode
	random a 3000000
	for mode in auto readwrite sendfile splice mmap; do
		run env --default-signal=PIPE bash -c "'$FCOPY' --json=report a - $mode 2>err | head -c 10 >/dev/null
			exit \${PIPESTATUS[0]}"
		[ "$status" = 141 ]
		holds "" err
		grep -q '"interrupted": "SIGPIPE"' report
		run env --ignore-signal=PIPE bash -c "'$FCOPY' a - $mode 2>err | head -c 10 >/dev/null
			exit \${PIPESTATUS[0]}"
		[ "$status" = 1 ]
		said 'Broken pipe' err
	done
}

@test "a limited rate does not delay the end: a thread never sleeps for long" {
	local start
	head -c 40M /dev/zero >a
	"$FCOPY" -q -j64 --limit-rate=1M a b &
	pid=$!
	await has_written
	sleep 1
	start=${EPOCHREALTIME//./}
	kill -TERM $pid
	ends 143
	[ $((${EPOCHREALTIME//./} - start)) -lt 4000000 ]
	absent b
}

@test "--json names each signal that ended the copy" {
	random a 8000000
	local name
	for name in INT TERM HUP ALRM XCPU; do
		# GNU parallel, which runs these tests, ignores SIGALRM.
		run env --default-signal=$name timeout -s $name 1 "$FCOPY" -q --json=report --limit-rate=2M a b
		grep -q "\"interrupted\": \"SIG$name\"" report
		absent b
	done
}

@test "a limit of CPU time ends the copy, and nothing is left, however often its signal comes" {
	random a 8000000
	mkdir s d
	ln a s/a
	local arguments
	for arguments in "a d" "-r s d" "--mirror s d"; do
		# shellcheck disable=SC2016,SC2086
		run bash -c '"$@" & pid=$!
			sleep 0.5
			for i in 1 2 3 4 5; do kill -XCPU $pid || break; sleep 0.3; done
			wait $pid' bash "$FCOPY" -q --json=../report.$$ --limit-rate=1M $arguments
		[ "$status" = 152 ]
		grep -q '"interrupted": "SIGXCPU"' ../report.$$
		rm ../report.$$
		[ -z "$(ls -A d | grep -vx .fcopy-mirror)" ]
		rm -f d/.fcopy-mirror
	done
	rm -r d
	# By the kernel: one second of CPU time.
	run bash -c 'ulimit -St 1; exec "$0" -q --size=1T /dev/zero - readwrite | timeout -s KILL 60 cat >/dev/null; exit ${PIPESTATUS[0]}' "$FCOPY"
	[ "$status" = 152 ]
}
