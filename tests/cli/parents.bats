#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --parents: the directories of SRC below DST.

load helper

@test "--parents --fsync: the name and the attributes of each new directory are flushed, and fail if that fails" {
	local n
	need_strace
	mkdir -p s/t/u d
	echo 1 >s/t/u/f
	touch -d 2001-02-03 s/t
	traced 0 trace=mkdirat,linkat,fsync,utimensat -p --parents --fsync s/t/u/f d
	order 'mkdirat\(.*"s"' "fsync\([0-9]+<$T/d>" 'mkdirat\(.*"t"' "fsync\([0-9]+<$T/d/s>" 'mkdirat\(.*"u"' \
		"fsync\([0-9]+<$T/d/s/t>" 'linkat\(.*"f"' "fsync\([0-9]+<$T/d/s/t/u>"
	for n in u t s; do order "utimensat\([0-9]+<.*/$n>" "fsync\([0-9]+<.*/$n>"; done
	traced 0 trace=fsync --parents s/t/u/f d # nothing is flushed without the option
	[ ! -s trace ]
	for n in 1 2 3 6 7 8; do
		rm -rf d
		mkdir d
		traced 1 "inject=fsync:error=EIO:when=$n" -p --parents --fsync s/t/u/f d
		injected
		mentions "fsync: Input/output error"
	done
}

@test "--parents: -n, -b and -u do below DST what they do in it; a failed copy leaves the old file" {
	need_strace
	mkdir -p s/t d/s/t
	echo new >s/t/f
	echo old >d/s/t/f
	expect 0 -n --parents s/t/f d
	holds old d/s/t/f
	touch -d '1 hour' d/s/t/f
	expect 0 -u --parents s/t/f d
	holds old d/s/t/f
	traced 1 inject=pwrite64:error=EIO -m readwrite --parents s/t/f d
	injected
	[ "$(ls -A d/s/t)" = f ]
	holds old d/s/t/f
	expect 0 -b --parents s/t/f d
	holds new d/s/t/f
	holds old d/s/t/f~
	# The names lead back to SRC.
	mkdir e
	ln -s ../s e/s
	expect 2 --parents s/t/f e
	mentions "are the same file"
	expect 2 -r --parents s/t e
	mentions "e/s/t: is the source directory"
	holds new s/t/f
	[ "$(ls -A s/t)" = f ]
}

@test "--parents --dry-run makes no directory, and foresees what the copy does" {
	need jq
	mkdir -p s/t/u q d e/s/t
	echo 1 >s/x
	echo 2 >s/t/f
	echo 3 >s/t/u/g
	ln -s f s/t/l
	ln s/t/f s/t/h
	mkfifo s/t/p
	echo q >q/z
	echo other >d/x # is not d/s/x
	echo old >e/s/t/f
	snapshot() { find s q d e -printf '%p %y %m %T@ %C@ %s\n' | sort; }
	local before dst o
	before=$(snapshot)
	for dst in d e; do
		for o in "s/x" "-p s/t/f" "-n s/t/f" "-u s/x" "-b s/t/f" "-s $PWD/s/t/u/g" "-l s/t/u/g" "--fsync s/x" "s/x s/t/f q/z" \
			"-r s/t" "-a s/t/u q" "-r s/t s/x q/z" "-r s/t/l s/t/p" "--inplace s/t/u/g" "--json s/x q/z" "-r --json=lines s/t"; do
			# shellcheck disable=SC2086
			expect 0 --parents --dry-run $o $dst
			[ "$(snapshot)" = "$before" ] || { echo "$o $dst"; diff <(echo "$before") <(snapshot); return 1; }
		done
	done
	expect 0 --json=lines --parents --dry-run -rn s/t s/x q/z d
	[[ $output == *'"dst": "d/s/t/u/g"'* && $output == *'"dst": "d/s/x"'* && $output == *'"dst": "d/q/z"'* ]]
	[[ $output != *'"dst": "d/s"'* && $output != *skipped\",* ]]
	jq -es '.[-1].tree | .files == 5 and .directories == 2 and .failed == 0' <<<"$output" >/dev/null
	echo file >d/s
	ln -s nowhere d/q
	for o in s/t/f q/z s/none/f q/none; do
		local want=$([[ $o == */none* ]] && echo 2 || echo 1) # SRC is missing
		expect "$want" --parents --dry-run $o d
		local foreseen=$stderr
		expect "$want" --parents $o d
		[ "${foreseen%%$'\n'*}" = "${stderr%%$'\n'*}" ] || { echo "$foreseen"; echo "$stderr"; return 1; }
	done
	rm d/s d/q
	expect 2 --parents --dry-run s/t/../x d
	expect 0 -r --parents s/t s/x q/z d # and this is what was foreseen
	[ -f d/s/t/u/g ]
	[ -f d/s/x ]
	[ -f d/q/z ]
}

@test "--parents: a SRC with .. among its directories is refused before anything is made" {
	mkdir -p a/b d u
	echo 1 | tee a/b/g >a/x
	local options src
	for options in "" -a --dry-run; do
		for src in a/b/../b/g ../u/../a/x a/none/../x "$PWD/u/../a/b/g" a/b/./../x//; do
			# shellcheck disable=SC2086 # words
			expect 2 --parents $options "$src" d
			# shellcheck disable=SC2086
			expect 2 --parents $options a/x "$src" d
			mentions "$src: contains '..': --parents cannot copy it below DST"
			[ -z "$(ls -A d)" ]
		done
	done
}

@test "--parents: the report counts the copies, and names each in DST" {
	need jq
	mkdir -p s/t d
	echo 1 >s/t/f
	expect 1 --json=lines --parents s/t/f s/t/none d
	[ "$(jq -sc '[.[] | select(.action) | [.action, .operand, .dst]]' <<<"$output")" = \
		'[["copied","s/t/f","d/s/t/f"],["failed","s/t/none",null]]' ]
	[ "$(jq -sc '.[-1].tree | [.files, .failed]' <<<"$output")" = '[1,1]' ]
}
