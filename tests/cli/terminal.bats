#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is drawn on a real terminal.

load helper
load terminal

export LC_ALL=C.UTF-8 # columns are to be counted, not bytes

# start ARG…: runs fcopy in the terminal, and waits for its line.
start() {
	type_in "clear; \"\$FCOPY\" $*; echo end" Enter
	until_shown '^ *(copying )? *[1-9][0-9]?%'
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

@test "a short copy draws nothing" {
	random a 1000000
	terminal 80
	type_in "clear; \"\$FCOPY\" a b; echo end" Enter
	ended
	tidy 0
}

@test "80 columns: phase, percentage, bar, bytes, both speeds, time left" {
	random a 12M
	terminal 80
	start --limit-rate=3M a b rw
	screen | grep -E '^copying +[0-9]+% █+░+ [0-9. ]+ MiB [0-9. ]+ MiB/s avg [0-9. ]+ MiB/s 0:0[0-9] left$'
	[ "$(screen | grep left | wc -m)" -le 80 ]
	ended
	screen | grep -E '^copied 100% █+ 12\.0 MiB avg [0-9. ]+ MiB/s 0:0[0-9]$'
	tidy 1
	cmp a b
}

@test "20 columns: percentage, bytes and time" {
	random a 12M
	terminal 20
	start --limit-rate=3M a b rw
	screen | grep -E '^ *[0-9]+% [0-9. ]+ MiB 0:0[0-9]$'
	ended
	tidy 1
}

@test "200 columns: one line, that wide" {
	random a 12M
	terminal 200
	start --limit-rate=3M a b rw
	[ "$(screen | grep left | wc -m)" -ge 195 ]
	ended
	tidy 1
}

@test "500 columns: a bar of 250, and all that belongs behind it" {
	random a 6M
	terminal 500
	start --limit-rate=3M a b rw
	screen | grep -E '^copying +[0-9]+% [█░]{250} [0-9. ]+ MiB [0-9. ]+ MiB/s avg [0-9. ]+ MiB/s 0:0[0-9] left$'
	ended
	tidy 1
}

@test "resized in the middle, narrower and wider: one line of the new width, nothing left behind" {
	local width
	random a 24M
	terminal 200
	start --limit-rate=3M a b rw
	for width in 70 15 120; do
		tmux_ resize-window -t t -x $width
		sleep 0.5
		screen
		tidy 1
		[ "$(screen | grep % | wc -m)" -le $width ]
	done
	ended
	tidy 1
	cmp a b
}

@test "stopped, in the background, and in the foreground again" {
	random a 12M
	terminal 80
	start --limit-rate=2M a b rw
	type_in C-z
	until_shown Stopped
	type_in "clear; bg" Enter
	sleep 0.7
	screen
	never grep -q % <(screen)
	type_in "clear; fg" Enter
	until_shown '^copying'
	until_shown '^copied 100%'
	[ "$(screen | grep -c %)" = 1 ]
	cmp a b
}

@test "^C: the line stays where it was, the message and the prompt come after it" {
	random a 12M
	terminal 80
	start --limit-rate=3M a b rw
	type_in C-c
	until_shown '^stopped'
	until_shown '^\$'
	tidy 1
	absent b
}

@test "a failure in the middle: the line, then the error" {
	terminal 80
	type_in "clear; ulimit -f 8000; \"\$FCOPY\" --limit-rate=3M /dev/zero b; echo end" Enter
	ended
	screen | head -n 1 | grep '^stopped'
	screen | sed -n 2p | grep '^fcopy: b: .*File too large'
	tidy 2
}

@test "SIGUSR1 does not break the line" {
	random a 12M
	terminal 80
	type_in "clear; \"\$FCOPY\" --limit-rate=3M a b rw & pid=\$!; (sleep 1.5; kill -USR1 \$pid) & fg %1; echo end" Enter
	ended
	screen | grep -E '^fcopy: copying +[0-9]+% .* left$'
	screen | grep '^copied 100%'
}

@test "-q: nothing, however long it takes" {
	random a 5M
	terminal 80
	type_in "clear; \"\$FCOPY\" -q --limit-rate=3M a b rw; echo end" Enter
	ended
	tidy 0
}

@test "another phase than copying is named" {
	need_strace
	random a 100000
	terminal 80
	type_in "clear; strace -o /dev/null -e inject=fdatasync:delay_enter=5000000 \"\$FCOPY\" --fsync a b; echo end" Enter
	until_shown '^flushing'
	ended
}

# recorded ARG…: what fcopy sends to a terminal, byte by byte, in ./record.
recorded() {
	need script
	script -qec "\"\$FCOPY\" $*" record </dev/null >/dev/null
}

@test "--verify is named, and a warning does not break the line" {
	need_strace
	random a 3M
	terminal 80
	type_in "clear; strace -f -o /dev/null -e inject=utimensat:error=EPERM -e inject=openat:delay_enter=1000000:when=5..12 \"\$FCOPY\" -p --verify --progress --limit-rate=3M a b; echo end" Enter
	until_shown '^verifying'
	ended
	screen | grep -qx 'fcopy: b: futimens: Operation not permitted (warning)'
	screen | grep -q '^copied 100%'
	tidy 2
}

@test "--benchmark on a terminal: the round that is going on, and only the table at the end" {
	random a 1M
	recorded --benchmark a b
	grep -qa $'\r\e\[Jwarming up: auto' record
	grep -qaE $'\r\e\[Jround 1: [a-z_]+' record
	tr '\r' '\n' <record | grep -qa $'^\e\[J.*mode  '
}

@test "--benchmark in the background draws no rounds" {
	random a 1M
	terminal 80
	tmux_ pipe-pane -t t 'exec cat >record'
	type_in "\"\$FCOPY\" --benchmark a b >table & wait; echo end" Enter
	ended
	grep -q '^Fastest here' table
	await grep -qa '^end' record
	never grep -qaE 'warming up|round [0-9]' record
}

@test "ten updates a second at most" {
	local start took n
	random a 6M
	start=$(date +%s%N)
	recorded --progress --limit-rate=3M a b rw
	took=$((($(date +%s%N) - start) / 100000000)) # tenths of a second: a stall makes it longer
	n=$(grep -oa $'\r\e\[J' record | wc -l)
	[ "$n" -ge 10 ] && [ "$n" -le $((took + 4)) ] || { echo "$n updates in $took/10 s"; return 1; }
}

@test "colours on a terminal, but not with NO_COLOR or a dumb terminal" {
	random a 100000
	unset NO_COLOR
	TERM=xterm recorded --progress a b
	grep -qa $'\e\[32m' record
	NO_COLOR=1 TERM=xterm recorded --progress a b
	never grep -qa $'\e\[[0-9]*m' record
	TERM=dumb recorded --progress a b
	never grep -qa $'\e\[[0-9]*m' record
}

@test "a locale without UTF-8 gets a bar of ASCII" {
	random a 100000
	LC_ALL=C recorded --progress a b
	grep -qa '####' record
	LC_ALL=C never grep -qaP '[\x80-\xff]' record
}
