#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Temporary files and unfinished trees that a killed copy left. The next copy that uses such names itself
# warns about old ones, and removes nothing.

load helper
load json

# space DIR: the disk space of the files in it, as messages print it.
space() {
	find "$1" -type f -printf '%b\n' | awk '{ n += $1 } END { printf "%.1f KiB", n / 2 }'
}

NAME=.fcopy-0123456789abcdef
LEFT="left by an interrupted copy"

# old NAME…: last modified two days and an hour ago.
old() {
	touch -h -d '49 hours ago' "$@"
}

# tree DIR: an unfinished tree of 3000 bytes and two directories, two days old.
tree() {
	mkdir -p "$1/sub"
	head -c 1000 /dev/zero >"$1/one"
	head -c 2000 /dev/zero >"$1/sub/two"
	ln -s /dev/zero "$1/link"
	old "$1"
}

# hint: the command that the warning names.
hint() {
	sed -n 's/^fcopy: hint: if no other machine is writing to it, remove it: //p' <<<"$stderr"
}

@test "without O_TMPFILE: a copy warns about an old temporary file, and its command removes just that" {
	mkdir backing
	echo data >a
	head -c 3000 /dev/zero >backing/$NAME
	head -c 5 /dev/zero >backing/.fcopy-fedcba9876543210
	old backing/$NAME
	by_fuse rw '"$FCOPY" a m/b'
	says "fcopy: warning: $T/m/$NAME: $LEFT (2.9 KiB, 2 days old)" \
		"fcopy: hint: if no other machine is writing to it, remove it: rm $T/m/$NAME"
	cmp a backing/b
	[ -e backing/$NAME ]
	eval "$(hint | sed 's|/m/|/backing/|')"
	absent backing/$NAME
	[ "$(ls -A backing)" = $'.fcopy-fedcba9876543210\nb' ]
	rm backing/.fcopy-*
}

@test "without O_TMPFILE: each way to name DST finds it, and the copy that fails, too" {
	local dst
	mkdir backing d
	echo data >a
	echo more >a2
	ln -s "$T/m/c" link
	touch backing/$NAME backing/c
	old backing/$NAME
	for dst in m m/ m/c link "--in m/c"; do
		# shellcheck disable=SC2016
		DST=$dst by_fuse rw 'if [ "$DST" = "--in m/c" ]; then cd m; "$FCOPY" ../a c; cd ..
			else "$FCOPY" a "$DST"; fi'
		mentions "warning: $T/m/$NAME: $LEFT"
	done
	by_fuse rw '"$FCOPY" a a2 m'
	mentions "warning: $T/m/$NAME: $LEFT"
	[ "$(grep -c warning: <<<"$stderr")" = 1 ]
	by_fuse fault=write:ENOSPC '! "$FCOPY" a m/e'
	mentions "warning: $T/m/$NAME: $LEFT" "No space left"
	rm backing/$NAME
}

@test "-q prints no such warning; --json has it, also with -q" {
	need jq python3
	mkdir backing
	echo data >a
	touch backing/$NAME
	old backing/$NAME
	by_fuse rw '"$FCOPY" -q a m/b'
	says ""
	by_fuse rw '"$FCOPY" -q --json a m/b'
	says ""
	jq -e --arg path "$T/m/$NAME" '.done and .error == null and (.warnings | length == 1) and
		(.warnings[0] | .path == $path and .errno == "EEXIST" and (.message | test("\\(0 B, 2 days old")))' \
		<<<"$output"
	valid "$output"
	rm backing/$NAME
	by_fuse rw '"$FCOPY" --json a m/b'
	jq -e '.warnings == []' <<<"$output"
}

@test "young files, those of other users, other names and types are not named" {
	mkdir backing
	echo data >a
	touch backing/.fcopy-0000000000000000 -d '23 hours ago'
	touch backing/.fcopy-000000000000000 backing/.fcopy-00000000000000000 backing/.fcopy-000000000000000z \
		backing/b.fcopy-part backing/fcopy-0000000000000000
	ln -s "$T/a" backing/.fcopy-1111111111111111
	mkfifo backing/.fcopy-2222222222222222
	touch backing/.fcopy-3333333333333333
	old backing/*fcopy-*[!0] backing/.fcopy-*[123z]
	if is_root; then
		chown 65534 backing/.fcopy-3333333333333333
	else
		rm backing/.fcopy-3333333333333333
	fi
	by_fuse rw '"$FCOPY" a m/b'
	says ""
	rm backing/.fcopy-*
}

@test "with O_TMPFILE: a copy of a file reads no directory, a new tree does" {
	need_strace
	mkdir src dst
	echo data >a
	echo data >src/a
	traced 0 trace=openat a probe
	grep -q 'O_TMPFILE.* = [0-9]' trace || skip "no O_TMPFILE on this file system"
	tree dst/$NAME
	traced 0 trace=getdents64,openat a dst/a
	says ""
	never grep -q getdents64 trace
	traced 0 trace=getdents64,openat a probe dst
	says ""
	never grep -q getdents64 trace
	expect 0 -r src dst/new
	says "fcopy: warning: $T/dst/$NAME: $LEFT ($(space "$T/dst/$NAME"), 2 days old)" \
		"fcopy: hint: if no other machine is writing to it, remove it: rm -r $T/dst/$NAME"
	[ -e dst/$NAME/sub/two ]
	eval "$(hint)"
	[ "$(ls -A dst)" = $'a\nnew\nprobe' ]
}

@test "the command is --clean where that removes it, once for each directory" {
	need_strace
	mkdir -p src/sub "a dir"
	echo data >src/a
	for _ in 1 2; do
		run timeout -s KILL "$HANG" strace -f -qq -o trace -e trace=renameat2 \
			-e inject=renameat2:signal=KILL:when=2 "$FCOPY" -j1 -r src "a dir/new"
		[ "$status" = 137 ]
	done
	[ "$(find "a dir" -maxdepth 1 -name '.fcopy-*' | wc -l)" = 2 ]
	old "a dir"/.fcopy-*
	expect 0 -r src "a dir/new"
	[ "$(grep -c "$LEFT" <<<"$stderr")" = 2 ]
	[ "$(grep hint: <<<"$stderr")" = "fcopy: hint: to remove it, if no copy uses it: fcopy --clean '$T/a dir'" ]
	expect 0 --clean -f "$T/a dir"
	[ "$(ls -A "a dir")" = new ]
}

@test "a tree that a copy on this machine is writing is not named" {
	mkdir src dst
	tree dst/$NAME
	exec 7>dst/$NAME/lock
	flock -x 7
	touch -d '2 days ago' dst/$NAME
	expect 0 -r src dst/new
	says ""
	exec 7>&-
	expect 0 -r src dst/another
	mentions "$LEFT"
	rm -r dst/$NAME
}

@test "a copy of a tree locks a file in its temporary directory" {
	need_strace
	mkdir src
	traced 0 trace=flock,renameat2 -r src dst
	order 'flock\([0-9]+<.*/\.fcopy-[0-9a-v]{16}/lock>, LOCK_EX' 'renameat2.*"dst"'
}

@test "the command works whatever the directory's name contains" {
	local name
	mkdir src
	for name in "a b" "it's" '$(touch bad)`touch bad`' $'new\nline' $'tab\t\\n' $'\x1b[31mred' "x -r ü" $'\xff\xfe'; do
		mkdir -p "$name/$NAME/sub"
		old "$name/$NAME"
		expect 0 -r src "$name/new"
		mentions "$LEFT"
		[ "$(wc -l <<<"$stderr")" = 2 ]
		never grep -q $'\x1b' <<<"$stderr"
		eval "$(hint)"
		[ "$(ls -A "$name")" = new ]
	done
	absent bad
}

@test "a huge directory and a huge unfinished tree are read in part" {
	need_strace
	mkdir src dst dst/$NAME
	(cd dst && seq -f 'a name of some length %g' 20000 | xargs -d '\n' touch)
	traced 0 trace=getdents64 -r src dst/new
	[ "$(calls getdents64)" -lt 12 ]
	rm -r dst/new dst/a*
	(cd dst/$NAME && seq -f 'a name of some length %g' 20000 | xargs -d '\n' touch)
	old dst/$NAME
	expect 0 -r src dst/new
	mentions "$LEFT (more than 0 B"
	rm -r dst/$NAME
}

@test "of many leftovers eight are looked at, and five are named" {
	mkdir src dst
	local i
	for i in {10..29}; do
		touch "dst/.fcopy-00000000000000$i"
	done
	old dst/.fcopy-*
	expect 0 -r src dst/new
	[ "$(grep -cE "[.]fcopy-[0-9]+: $LEFT" <<<"$stderr")" = 5 ]
	mentions "fcopy: warning: $LEFT: 8 times; the first 5 are listed"
	rm dst/.fcopy-*
}

@test "a directory that may be searched but not read: no warning, and the copy succeeds" {
	mkdir src dst
	touch dst/$NAME
	old dst/$NAME
	! is_root || chown -R 65534 dst
	chmod 333 dst
	as_nobody 0 -r src dst/new
	says ""
	chmod 755 dst
	rm dst/$NAME
}

@test "another copy's part is not examined, however old: a kill at that moment could leave a file" {
	need_strace
	mkdir -m 755 x.fcopy-part s
	for when in now '49 hours ago'; do
		touch -d "$when" x.fcopy-part/journal
		strace -f -qq -o trace -e trace=openat "$FCOPY" -rT s "t of $when"
		[ -d "t of $when" ]
		never grep 'x\.fcopy-part' trace
	done
}
