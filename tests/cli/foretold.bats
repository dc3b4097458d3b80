#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --dry-run: its exit status and its lines are those of the run.

load helper

# fixture KIND KIND: s/x and d/x
fixture() {
	local side kind
	rm -rf s d t
	mkdir s d t
	echo target >t/file
	for side in "s $1" "d $2"; do
		kind=${side#* } side=${side% *}
		case $kind in
		file) echo "$side" >"$side/x" ;;
		two) echo "$side" >"$side/x" && ln "$side/x" "$side/other" ;;
		symlink) ln -s ../t/file "$side/x" ;;
		dangling) ln -s ../t/none "$side/x" ;;
		fifo) mkfifo "$side/x" ;;
		dir) mkdir "$side/x" && echo in >"$side/x/in" ;;
		itself) ln -P s/x d/x ;;
		leads) ln -s ../s/x d/x ;;
		esac
	done
}

# foretells COMMAND ARG…: the dry run has the status of the run, changes nothing, and names something if
# and only if the run changes something.
foretells() {
	local before after dry said
	state() { find s d t -type d -printf '%p %m\n' -o -printf '%p %y %i %n %m %T@ %l\n' && cat s/x s/other d/x d/other t/file 2>/dev/null; }
	before=$(skip_fifos state)
	separately timeout -s KILL "$HANG" "$FCOPY" --dry-run "$@"
	dry=$status said=$output
	after=$(skip_fifos state)
	[ "$after" = "$before" ] || { echo "changed by --dry-run $*"; diff <(echo "$before") <(echo "$after"); return 1; }
	separately timeout -s KILL "$HANG" "$FCOPY" "$@"
	after=$(skip_fifos state)
	[ "$dry" = "$status" ] || { echo "--dry-run $*: $dry, then $status: $stderr"; find s d -ls; return 1; }
	[[ $after = "$before" || $said == *would* ]] || { echo "$*: not foretold"; diff <(echo "$before") <(echo "$after"); return 1; }
}

@test "--dry-run has the exit status of the run, and foretells what it refuses" {
	skip_fifos() { if [[ -p s/x || -p d/x ]]; then find s d t -type d -printf '%p %m\n' -o -printf '%p %y %i %n %m %T@ %l\n'; else "$@"; fi; }
	local src dst o
	for src in file symlink fifo; do
		for dst in absent two symlink itself; do
			for o in "" -s -sf "--attributes-only -p" --inplace "-aT --delete"; do
				fixture $src $dst
				# shellcheck disable=SC2086
				foretells -rT $o s d || { echo "$src over $dst"; return 1; }
				[[ $src == fifo || $dst == fifo || $o == -aT* ]] && continue
				fixture $src $dst
				# shellcheck disable=SC2086
				foretells $o s/x d/x || { echo "$src over $dst, named"; return 1; }
			done
		done
	done
	# Two names of one file in DST, the first of which stays.
	for o in "-u s/x s/new" "-u s/new s/x"; do
		fixture file two
		touch -d 2001-01-01 s/x
		echo new >s/new
		ln d/other d/new
		# shellcheck disable=SC2086
		foretells $o d || { echo "$o"; return 1; }
	done
	for o in 1 "direct -f"; do # MODE is no third SRC
		for dst in absent two dir; do
			fixture file $dst
			# shellcheck disable=SC2086
			foretells s/x d/x $o || { echo "file over $dst"; return 1; }
		done
	done
	cd s # where a relative symlink leads to SRC
	expect 0 --dry-run -s ../t/file f
	[ ! -e f ]
	expect 0 -s ../t/file f
	[ "$(readlink f)" = ../t/file ]
}

@test "a dry run lists what the run then lists, for random trees and command lines" {
	need python3
	run python3 "$BATS_TEST_DIRNAME/../tools/foretold.py" "$FCOPY" 60 3 work
	[ "$status" = 0 ] || { echo "$output"; return 1; }
}

@test "a dry run foresees that a symlink in DST leads to the copy of another SRC, and the times of DST" {
	mkdir s d
	echo new >s/a
	ln s/a s/d
	mkfifo s/p
	echo old >d/a
	echo old >d/p
	ln -s a d/d
	ln -s p d/b
	cp s/a s/b
	touch -d 2001-01-01 d/a d/p
	for operands in "--update=changed -r s/d s/a" "-r s/p s/b" "-r s/a s/d"; do
		rm -rf copy
		cp -a d copy
		# shellcheck disable=SC2086
		expect 1 --dry-run $operands copy
		mentions "copy of another"
		# shellcheck disable=SC2086
		expect 1 $operands copy
		mentions "copy of another"
	done
	# The other name of a file that is replaced stays.
	ln d/a d/c
	ln -s nowhere s/c
	for o in --dry-run ""; do
		# shellcheck disable=SC2086
		expect 0 $o -d -r s/a s/c d
	done
	[ -L d/c ]
	rm d/[ac] s/c
	# Nor does a symlink that replaces one name give the other one a rival.
	echo old >d/c
	ln d/c d/f
	ln -s nowhere s/c
	echo new >s/f
	for o in --dry-run ""; do
		# shellcheck disable=SC2086
		expect 0 $o -f --attributes-only -d -r s/c s/f d
	done
	[ -L d/c ]
	# -n leaves a symlink, although it leads to a new copy.
	mkdir leads
	ln -s a leads/b
	for o in --dry-run ""; do
		# shellcheck disable=SC2086
		expect 0 $o -n -r s/a s/b leads
		# shellcheck disable=SC2086
		expect 0 $o -n -rT s leads
	done
	[ -L leads/b ]
	# No symlink becomes a hard link.
	mkdir hard linked
	echo 1 >hard/f
	ln hard/f hard/g
	for name in f g; do
		rm -rf linked
		mkdir linked
		echo old >linked/target
		ln -s target linked/$name
		for o in --dry-run ""; do
			# shellcheck disable=SC2086
			expect 0 $o -drT hard linked
			mentions "copied and not linked"
		done
	done
	# A file that is replaced leaves the names of its directory as they are.
	mkdir x y
	echo new >x/f
	echo older >y/f
	touch -d 2001-01-01 x y/f
	expect 0 --dry-run --json=lines --mirror x y
	grep '"dst": "y", .*"action": "repaired"' <<<"$output"
	expect 0 --json=lines --mirror x y
	grep '"dst": "y", .*"action": "repaired"' <<<"$output"
}

@test "a dry run of a mirror that writes in place: what has another type in DST becomes a file" {
	mkdir s d
	echo 1 >s/a
	echo 2 >s/p
	echo 3 >s/q
	local options
	for options in "--mirror --inplace" "--mirror --inplace=auto" --mirror; do
		rm -rf d/*
		ln -s x d/a
		mkfifo d/p
		mkdir d/q
		# shellcheck disable=SC2086
		expect 0 --dry-run $options s d
		# shellcheck disable=SC2086
		expect 0 $options s d
		diff -r s d
	done
}

@test "a dry run of several SRC: those that are refused do not make the status that of all" {
	mkdir -p s/empty d/empty
	local options
	for options in -r -a "-l -r" "-r --dry-run" "-l -r --dry-run"; do
		# shellcheck disable=SC2086
		expect 1 $options s/empty s/none d
		# shellcheck disable=SC2086
		expect 2 $options s/none s/nope d
	done
}
