#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is drawn on a real terminal.

load helper
load terminal

export TERM=xterm # whatever it is where the tests run
export LC_ALL=C.UTF-8 # columns are to be counted, not bytes

# start ARG…: runs fcopy in the terminal, and waits for its line.
start() {
	type_in "clear; \"\$FCOPY\" $*; echo end" Enter
	until_shown '^([^ ]+ +)?[1-9][0-9]?%'
}

ended() {
	until_shown '^end'
}

# tidy LINES: what the copy left on the screen: its last line, and whatever else was to be there.
tidy() {
	local shown
	shown=$(screen)
	[ "$(grep -cvE '^(\$|end|$)' <<<"$shown")" = "$1" ] || { echo "not $1 lines: $shown"; return 1; }
}

# fits WIDTH [LEAST]: one line is shown, of at most WIDTH columns and at least LEAST.
fits() {
	local n
	n=$(screen | grep % | wc -m)
	tidy 1 >/dev/null && [ "$n" -le "$1" ] && [ "$n" -ge "${2-1}" ]
}

@test "a short copy draws nothing" {
	random a 1000000
	terminal 80
	type_in "clear; \"\$FCOPY\" a b; echo end" Enter
	ended
	tidy 0
}

@test "80 columns: name, percentage, bar, bytes and total, speed, time left" {
	random a 12M
	terminal 80
	start --limit-rate=3M -m rw a b
	screen | grep -E '^a  [0-9]+% █+░+  [ 0-9.]+/12 MiB  [ 0-9.]+ MiB/s  0:0[0-9] left$'
	[ "$(screen | grep left | wc -m)" = 80 ] # with the newline
	ended
	screen | grep -E '^a  copied  12 MiB  [0-9.]+ MiB/s  0:0[0-9]$'
	tidy 1
	cmp a b
}

@test "20 columns: percentage, bar and time" {
	random a 12M
	terminal 20
	start --limit-rate=3M -m rw a b
	screen | grep -E '^a +[0-9]+% [█░]{3} 0:0[0-9] left$'
	ended
	tidy 1
}

@test "40 columns: the name too, and no line is wider" {
	random disk-image-of-a-server.img 12M
	terminal 40
	start --limit-rate=3M disk-image-of-a-server.img b -m rw
	screen | grep -E '^disk[^ ]*…[^ ]*img +[0-9]+%.* 0:0[0-9] left$'
	[ "$(screen | grep left | wc -m)" -le 40 ]
	ended
	screen | grep -E '^disk[^ ]*…[^ ]*img +copied +12 MiB'
	tidy 1
}

@test "every width from 20 to 200: percentage and time, never a second line" {
	local width
	random a 60M
	terminal 200
	start --limit-rate=3M -m rw a b
	for width in 20 23 26 31 39 40 47 58 66 79 100 133 200; do
		tmux_ resize-window -t t -x $width
		sleep 0.35
		await fits $width $((width - 10)) || { screen; return 1; }
		screen | grep -qE '[0-9]+%.* [0-9]:[0-9]{2} left$' || { echo "$width:"; screen; return 1; }
	done
	type_in C-c
}

@test "names that are wide, in another encoding, or that control a terminal" {
	local name=$'\u4f60\u597d\u4f60\u597d\u4f60\u597d\u4f60\u597d\e[31m\xff.img'
	random "$name" 12M
	terminal 60
	type_in "clear; \"\$FCOPY\" --limit-rate=3M *.img b readwrite; echo end" Enter
	until_shown '%.*left$'
	screen | grep -E $'^\u4f60.*img  [ 0-9]+%'
	ended
	tidy 1
}

@test "TERM=dumb: plain lines, without --progress too, and no escapes" {
	random a 9M
	TERM=dumb recorded --limit-rate=3M a b -m rw
	tr -d '\r' <record | grep -qaE '^a  [0-9]+%  [0-9.]+/9.0 MiB  .* left$'
	never grep -qa $'\e' record
	tr -d '\r' <record | grep -qa '^a  copied  9.0 MiB'
}

@test "a receiver on a terminal: for whom it waits, and for how long" {
	random a 3M
	terminal 80
	type_in "clear; \"\$FCOPY\" tcp-listen:127.0.0.1:0 b; echo end" Enter
	until_shown '^waiting for a sender on 127.0.0.1:[0-9]+  0:0[1-9]$'
	expect 0 a tcp:127.0.0.1:"$(screen | sed -nE 's/^fcopy: listening on [^ ]*:([0-9]+).*/\1/p')"
	ended
	cmp a b
}

@test "a server on a terminal: what it serves, how to receive it, and a line for each client" {
	random a 3M
	terminal 120
	type_in "clear; \"\$FCOPY\" -k a tcp-listen:0" Enter
	until_shown '^fcopy: receive it with: fcopy --size=3145728 tcp:127.0.0.1:[0-9]+ a$'
	screen | sed 's/^       //' | paste -sd ' ' |
		grep -E '^(.* )?fcopy: serving a \(3.0 MiB\) on 127.0.0.1:[0-9]+ \(this machine only; use 0.0.0.0:[0-9]+ for the network\) fcopy: '
	expect 0 tcp:127.0.0.1:"$(screen | sed -nE 's/^fcopy: receive.*:([0-9]+) a$/\1/p')" b
	until_shown '^fcopy: client 127.0.0.1:[0-9]+: 3.0 MiB in [0-9.]+ (us|ms|s)$'
	cmp a b
}

@test "200 columns: one line, that wide" {
	random a 12M
	terminal 200
	start --limit-rate=3M -m rw a b
	[ "$(screen | grep left | wc -m)" -ge 195 ]
	ended
	tidy 1
}

@test "500 columns: a bar of 250, and all that follows it" {
	random a 6M
	terminal 500
	start --limit-rate=3M -m rw a b
	screen | grep -E '^a  [0-9]+% [█░]{250}  [ 0-9.]+/6.0 MiB  [ 0-9.]+ MiB/s  0:0[0-9] left$'
	ended
	tidy 1
}

@test "resized in the middle, narrower and wider: one line of the new width, no remains" {
	local width
	random a 24M
	terminal 200
	start --limit-rate=3M -m rw a b
	for width in 70 15 120; do
		tmux_ resize-window -t t -x $width
		sleep 0.5
		await fits $width || { screen; return 1; }
	done
	ended
	tidy 1
	cmp a b
}

@test "stopped, in the background, and in the foreground again" {
	random a 12M
	terminal 80
	start --limit-rate=2M a b -m rw
	type_in C-z
	until_shown Stopped
	type_in "clear; bg" Enter
	sleep 0.7
	screen
	never grep -q % <(screen)
	type_in "clear; fg" Enter
	until_shown '^a  [0-9]+%'
	until_shown '^a  copied'
	never grep -q % <(screen)
	cmp a b
}

@test "^C: says how far it got, what became of DST, and that --resume would have kept it" {
	random a 12M
	terminal 80
	start --limit-rate=3M -m rw a b
	type_in C-c
	until_shown '^(\^C)?fcopy: stopped at [0-9]+ of 12 MiB; b not created$'
	until_shown '^fcopy: hint: use --resume to keep an unfinished copy$'
	until_shown '^\$'
	tidy 2
	absent b
}

@test "a failure in the middle: the error, then how far it got" {
	terminal 80
	type_in "clear; ulimit -f 8000; \"\$FCOPY\" --limit-rate=3M /dev/zero b; echo end" Enter
	ended
	screen | sed -n 1p | grep '^fcopy: b: .*File too large'
	screen | sed -n 2p | grep '^fcopy: stopped at 7.8 MiB; b not created$'
	tidy 2
}

@test "SIGUSR1 does not break the line" {
	random a 12M
	terminal 80
	type_in "clear; \"\$FCOPY\" --limit-rate=3M a b readwrite & pid=\$!; (sleep 1.5; kill -USR1 \$pid) & fg %1; echo end" Enter
	ended
	screen | grep -E '^fcopy: a  [0-9]+%  .* left$'
	screen | grep '^a  copied'
}

@test "-q: nothing, however long it takes" {
	random a 5M
	terminal 80
	type_in "clear; \"\$FCOPY\" -q --limit-rate=3M a b readwrite; echo end" Enter
	ended
	tidy 0
}

@test "another phase than copying is named" {
	need_strace
	random a 100000
	terminal 80
	type_in "clear; strace -o /dev/null -e inject=fdatasync:delay_enter=5000000 \"\$FCOPY\" --fsync a b; echo end" Enter
	until_shown '^a  fsync  0:0[1-9]$'
	ended
}

@test "--verify is named, and a warning does not break the line" {
	need_strace
	random a 3M
	terminal 80
	type_in "clear; strace -f -o /dev/null -e inject=utimensat:error=EPERM -e inject=$OPEN:delay_enter=700000:when=5+ \"\$FCOPY\" -p --verify --progress --limit-rate=3M a b; echo end" Enter
	until_shown '^a  verify  '
	ended
	screen | grep -qx 'fcopy: warning: b: futimens: Operation not permitted'
	screen | grep -q '^a  copied, verified, flushed  3.0 MiB'
	tidy 2
}

@test "--benchmark on a terminal: the run under way, and rows as they are measured" {
	random a 1M
	recorded --benchmark a b
	grep -qa $'\r\e\[Jwarming up: auto' record
	grep -qaE $'\r\e\[Jrun 1: [a-z_]+' record
	tr '\r' '\n' <record | sed 's/^\x1b\[J//' | grep -qaE '^1 readwrite +[0-9]'
}

@test "--benchmark in the background draws no runs" {
	random a 1M
	terminal 80
	tmux_ pipe-pane -t t 'exec cat >record'
	type_in "\"\$FCOPY\" --benchmark a b >table & wait; echo end" Enter
	ended
	grep -qE '^(Fastest|No clear winner)' table
	await grep -qa '^end' record
	never grep -qaE 'warming up|run [0-9]: ' record
}

@test "ten updates a second at most" {
	local start took n
	random a 6M
	start=$(date +%s%N)
	recorded --progress --limit-rate=3M a b -m rw
	took=$((($(date +%s%N) - start) / 100000000)) # tenths of a second: a stall makes it longer
	n=$(grep -oa $'\r\e\[J' record | wc -l)
	[ "$n" -ge 10 ] && [ "$n" -le $((took + 4)) ] || { echo "$n updates in $took/10 s"; return 1; }
}

@test "colours on a terminal, but not with NO_COLOR or a dumb terminal" {
	random a 500K
	unset NO_COLOR
	TERM=xterm recorded --progress --limit-rate=1M a b -m rw
	grep -qa $'\e\[32m[^m]*\e\[2m[^m]*\e\[0m' record
	NO_COLOR=1 TERM=xterm recorded --progress --limit-rate=1M a b -m rw
	never grep -qa $'\e\[[0-9]*m' record
	TERM=dumb recorded --progress --limit-rate=1M a b -m rw
	never grep -qa $'\e\[[0-9]*m' record
}

@test "a locale without UTF-8 gets a bar of ASCII" {
	random a 500K
	LC_ALL=C recorded --progress --limit-rate=1M a b -m rw
	grep -qa '####' record
	LC_ALL=C never grep -qaP '[\x80-\xff]' record
}

@test "-n with a tree: a terminal is told that it is no dry run" {
	need script
	mkdir s
	echo a >s/a
	local note="-n leaves existing files as they are; it is no dry run: use --dry-run"
	script -qec "'$FCOPY' -an s d" /dev/null >said </dev/null
	grep -q -- "$note" said
	script -qec "'$FCOPY' -anq s d" /dev/null >said </dev/null
	never grep -q -- "$note" said
	expect 0 -an s d
	[ -z "$stderr" ]
	holds a d/a
}

@test "on a terminal, SRC with a final slash, which is in DST then: a hint says so once, and what rsync would do is possible" {
	need script
	local command
	mkdir photos m1
	echo a >photos/a
	script -qec "stty cols 200; '$FCOPY' -a photos/ m1/" /dev/null >said </dev/null
	grep -qF 'fcopy: hint: the copy is m1/photos; to copy what is in photos/ to m1/, use -T' said
	cmp photos/a m1/photos/a
	expect 0 -aT photos/ m1/
	cmp photos/a m1/a
	for command in "-a photos/ m1/" "-a photos m2" "-aT photos/ m2" "-aq photos/ m2" "-at m2 photos/" "-a photos/. m2"; do
		rm -rf m2
		mkdir m2
		script -qec "stty cols 200; '$FCOPY' $command" /dev/null >said </dev/null
		never grep -F 'the copy is' said
	done
	# A program that reads standard error gets none.
	rm -rf m2/*
	expect 0 -a photos/ m2/
	says ""
}
