#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What fits a terminal: names of wide characters, the table of --benchmark; and terminals that cannot move the cursor.

load helper
load terminal

export TERM=xterm
export LC_ALL=C.UTF-8

@test "names of characters that take two columns: no line is wider than the terminal" {
	local character
	need python3
	random a 200K
	for character in $'\u2b50' $'\u2705' $'\U1f197' $'\ua960' $'\U17000' $'\U1b001' $'\uffe5' $'\ufe10'; do
		cp a "name"
		mv name "$(printf "$character%.0s" {1..20})"
		recorded --progress --limit-rate=400K "$character*" b -m rw
		rm "$character"*
		python3 - <<-'END'
			import re, sys, unicodedata
			drawn = open("record", encoding="utf-8").read()
			lines = [re.sub(r"\x1b\[[0-9?]*[mJlh]", "", x) for x in re.split("[\r\n]", drawn) if "left" in x]
			width = lambda x: sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in x)
			if not lines or max(map(width, lines)) > 79:
			    sys.exit(f"{len(lines)} lines: {lines[:1]}")
		END
	done
}

@test "--benchmark on terminals of 72 to 80 columns: no row wraps" {
	local columns
	need script
	random a 100K
	export FCOPY
	for columns in 72 78 79 80; do
		script -qec "stty cols $columns; \"\$FCOPY\" --benchmark --runs=1 a b" record </dev/null >/dev/null
		tr '\r' '\n' <record | sed 's/\x1b\[J//g' | grep -E '^[0-9]+ |^mode' >table
		[ "$(wc -L <table)" -lt "$columns" ] || { echo "$columns:"; cat table; return 1; }
	done
	grep -q 'readwrite .*  ████████████$' table
}

@test "--benchmark with TERM=dumb: no escapes" {
	random a 100K
	TERM=dumb recorded --benchmark --runs=1 a b
	grep -qa '^1 readwrite' record
	never grep -qa $'\e' record
	never grep -qa 'warming up' record
}

@test "TERM=dumb: a background job prints nothing at the prompt" {
	random a 5M
	ENVIRONMENT=TERM=dumb terminal 80
	type_in "\"\$FCOPY\" --limit-rate=2M a b readwrite & wait; echo \"\$?\" end" Enter
	until_shown '^0 end'
	never grep % <(screen)
	cmp a b
}

@test "hints break between words at the width of the terminal, at most at 80 columns; elsewhere they are one line" {
	local columns
	need script
	mkdir d s
	ln -s nowhere s/bad
	random a 5000
	run --separate-stderr "$FCOPY" a "d/no such directory/b"
	demand 2
	[ "${stderr_lines[1]}" = "fcopy: hint: 'd/no such directory' does not exist; create it: mkdir -p 'd/no such directory'" ]
	for columns in 50 80 200; do
		script -qec "stty cols $columns; \"\$FCOPY\" a 'd/no such directory/b'" record </dev/null >/dev/null || true
		tr -d '\r' <record | sed -n '/^fcopy: hint: /,/^$/ { /^Script/d; /^$/d; p }' >hint
		[ "$(wc -l <hint)" -gt 1 ]
		[ "$(wc -L <hint)" -lt "$((columns < 80 ? columns : 80))" ] || { echo "$columns:"; cat hint; return 1; }
		[ "${stderr_lines[1]}" = "$(sed 's/^             //' hint | paste -sd ' ')" ] || { cat hint; return 1; }
		grep -q "mkdir -p 'd/no such directory'$" hint # a command is not broken
		script -qec "stty cols $columns; \"\$FCOPY\" -rL s new" record </dev/null >/dev/null || true
		[ "$(tr -d '\r' <record | sed -n '/^fcopy/,/^$/p' | grep -v ^Script | wc -L)" -lt 80 ]
		rm -r new.fcopy-part
	done
}

@test "--help and --list of fcopy, and of a link called cp, have at most 80 columns" {
	local name option
	ln -s "$FCOPY" cp
	for name in "$FCOPY" ./cp; do
		for option in --help --list; do
			"$name" $option >text
			[ "$(wc -l <text)" -gt 8 ]
			[ "$(wc -L <text)" -le 80 ] || { echo "$name $option:"; grep -E '.{81}' text; return 1; }
		done
	done
}
