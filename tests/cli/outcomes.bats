#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Each entry makes one outcome, which is counted once: in the objects, in the lines, in the progress
# and in what it means for the directory.

load helper
load json

# twice: a library in which getdents64(2) lists $TWICE twice, in each directory whose path has $TWICE_IN, if
# that is set. A part lists no name twice: nobody else changes it.
twice() {
	need cc
	cat >twice.c <<-'END'
		#define _GNU_SOURCE
		#include <dirent.h>
		#include <dlfcn.h>
		#include <limits.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		static int is_in(int fd, const char *part)
		{
			char name[32], path[PATH_MAX] = "";
			snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
			return readlink(name, path, sizeof(path) - 1) > 0 && strstr(path, part);
		}
		ssize_t getdents64(int fd, void *buffer, size_t size)
		{
			ssize_t (*real)(int, void *, size_t) = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "getdents64");
			const char *name = getenv("TWICE"), *in = getenv("TWICE_IN");
			char *b = buffer;
			ssize_t n = real(fd, buffer, size / 2);
			for (ssize_t at = 0, end = n; at < end;) {
				struct dirent64 *d = (struct dirent64 *)(b + at);
				if (name && strcmp(d->d_name, name) == 0 && (!in || is_in(fd, in))) {
					memcpy(b + n, d, d->d_reclen);
					n += d->d_reclen;
				}
				at += d->d_reclen;
			}
			return n;
		}
	END
	cc -shared -fPIC -o twice.so twice.c -ldl
}

# listed NAME STATUS ARG…: fcopy with NAME listed twice in each directory.
listed() {
	local name=$1 want=$2
	shift 2
	run --separate-stderr env TWICE="$name" LD_PRELOAD="$PWD/twice.so" "$FCOPY" "$@"
	demand "$want"
}

# lines_agree: the numbers of lines with each action equal the counts of the last line, $output.
lines_agree() {
	need jq
	jq -s -e '.[-1].tree as $t | [.[:-1][] | .action + (if .action == "copied" then "." + .type else "" end)] |
		group_by(.) | map({key: .[0], value: length}) | from_entries as $n |
		($n["copied.file"] // 0) == $t.files and ($n["copied.directory"] // 0) == $t.directories and
		($n["copied.symlink"] // 0) == $t.symlinks and
		($n["copied.fifo"] // 0) + ($n["copied.socket"] // 0) + ($n["copied.device"] // 0) == $t.specials and
		($n.linked // 0) == $t.hard_links and ($n.skipped // 0) == $t.skipped and
		($n.unchanged // 0) + ($n.repaired // 0) == $t.unchanged + $t.reused and
		($n.repaired // 0) == $t.repaired and ($n.deleted // 0) == $t.deleted and
		($n.excluded // 0) == $t.excluded and ($n.vanished // 0) == $t.vanished and
		($n.failed // 0) == $t.failed' <<<"$output" >/dev/null || { echo "$output"; return 1; }
}

tree_of_all() {
	mkdir -p s/d/e s/x
	echo one >s/one
	echo two >s/d/two
	ln s/d/two s/d/e/two
	ln s/d/two s/x/two
	ln -s one s/link
	mkfifo s/pipe
}

@test "a name that its directory lists twice: one entry, in all kinds of trees" {
	twice
	tree_of_all
	local name
	for name in one two link pipe d; do
		rm -rf new merged mirrored
		listed $name 0 -a --json=lines s new
		lines_agree
		[ -z "$(diff -r --no-dereference -x pipe s new)" ]
		[ "$(jq -s '.[-1].tree | .files + .hard_links + .symlinks + .specials' <<<"$output")" = 6 ]
		[ "$(stat -c %h new/d/two)" = 3 ]
		mkdir -p merged/d
		echo old >merged/d/two
		listed $name 0 -aT --json=lines s merged
		lines_agree
		[ -z "$(diff -r --no-dereference -x pipe s merged)" ]
		[ "$(stat -c %h merged/d/two)" = 3 ]
		mkdir mirrored
		echo extra >mirrored/extra
		listed $name 0 --mirror --json=lines s mirrored
		lines_agree
		[ -z "$(diff -r --no-dereference -x pipe s mirrored)" ]
		[ "$(jq -s '.[-1].tree.deleted' <<<"$output")" = 1 ]
		listed $name 0 --mirror --json=lines s mirrored
		lines_agree
		[ "$(jq -s '.[-1].tree | .files + .hard_links + .symlinks + .specials' <<<"$output")" = 0 ]
		listed $name 0 -aT --inplace --json=lines s placed
		lines_agree
		[ -z "$(diff -r --no-dereference -x pipe s placed)" ]
		rm -rf placed
	done
}

@test "a hard link that is listed twice stays in a tree that is resumed with --keep-going" {
	twice
	need_root
	tree_of_all
	echo secret >s/secret
	chmod 0 s/secret
	chown -R 65534 .
	for name in two one; do
		rm -rf new new.fcopy-part
		# shellcheck disable=SC2086 # words
		run --separate-stderr $NOBODY "$FCOPY" -aT --resume s new
		demand 1
		[ -d new.fcopy-part ]
		# shellcheck disable=SC2086 # words
		run --separate-stderr env TWICE=$name TWICE_IN="$PWD/s" LD_PRELOAD="$PWD/twice.so" $NOBODY "$FCOPY" -aT --resume --keep-going \
			--json=lines s new
		demand 1
		lines_agree
		cmp s/d/two new/d/e/two
		cmp s/x/two new/x/two
		cmp s/one new/one
		[ "$(stat -c %h new/d/two)" = 3 ]
		absent new/secret
	done
}

@test "-ru: an entry that is left alone does not change the time of its directory" {
	mkdir -p s/d d/d
	echo old >s/d/skipped
	touch -d '2001-01-01' s/d/skipped
	echo mine >d/d/skipped
	echo old >d/d/replaced
	touch -d '2001-01-01' d/d/replaced
	echo new >s/d/replaced
	touch -d '2002-02-02 02:02:02' d/d d
	expect 0 -ruT s d
	[ "$(cat d/d/skipped d/d/replaced)" = $'mine\nnew' ]
	[ "$(stat -c %y d/d)" = "2002-02-02 02:02:02.000000000 +0000" ]
	echo new >s/d/added
	expect 0 -ruT s d
	[ "$(stat -c %Y d/d)" != "$(date -d '2002-02-02 02:02:02' +%s)" ]
}

@test "-ai asks once about each name of a file, also if one waits for the copy of another" {
	mkdir s d
	random s/a 20000000
	ln s/a s/b
	ln s/a s/c
	cp s/a d/a
	cp s/a d/b
	cp s/a d/c
	for _ in 1 2 3; do
		run --separate-stderr bash -c 'yes | "$0" -aiT -j4 --limit-rate=100M s d' "$FCOPY"
		demand 0
		[ "$(grep -o 'overwrite' <<<"$stderr" | wc -l)" = 3 ]
		[ "$(stat -c %h d/a)" = 3 ]
		rm d/?
		cp s/a d/a
		cp s/a d/b
		cp s/a d/c
	done
}

@test "an entry that was repaired is reported as repaired, also if it has several names" {
	mkdir s d
	echo data >s/a
	ln s/a s/b
	expect 0 -aT s d
	chmod 600 s/a
	expect 0 --mirror --json=lines s d
	lines_agree
	[ "$(stat -c %a d/a)" = 600 ]
	echo data >s/c
	expect 0 --mirror s d
	chmod 640 s/c
	expect 0 --mirror --json=lines s d
	lines_agree
	[ "$(jq -s '.[-1].tree.repaired' <<<"$output")" = 1 ]
}

@test "a directory whose attributes cannot be set is not reported as repaired" {
	need_root "to make directories of two users"
	mkdir w
	chown 65534 w
	as_nobody 0 --version # copies the program
	cp fcopy w
	cd w
	mkdir -p s/sub t/sub
	chown -R 65534 s
	chmod 777 t t/sub
	touch -d 2001-01-01 s/sub s
	for _ in 1 2; do
		as_nobody 0 --mirror -v --json=lines s t
		lines_agree
		mentions "t: futimens: Operation not permitted" "t/sub: futimens: Operation not permitted"
		[ "$(jq -s '.[-1].tree.repaired' <<<"$output")" = 0 ]
		never grep "attributes repaired" <<<"$stderr"
	done
	chown -R 65534 t
	as_nobody 0 --mirror --json=lines s t
	lines_agree
	[ "$(jq -s '.[-1].tree.repaired' <<<"$output")" = 2 ]
	# It is repaired, too, if the mode that it has during the copy is that of SRC.
	$NOBODY chmod 700 s/sub
	as_nobody 0 --mirror s t
	$NOBODY chmod 0 t/sub
	as_nobody 0 --mirror --json=lines s t
	lines_agree
	[ "$(jq -s '.[-1].tree.repaired' <<<"$output")" = 1 ]
}

@test "what -i, -n and -u leave alone: the object does not say that DST is the copy" {
	mkdir s d
	echo new >s/f
	echo more >s/g
	echo old >d/f
	run --separate-stderr bash -c 'echo n | "$0" -riT --json s d' "$FCOPY"
	demand 1
	is '.done == false' '.tree.operands[0].state == "skipped"' '.tree.skipped == 1'
	rm d/g
	expect 0 -rnT --json s d
	is .done '.tree.operands[0].state == "skipped"'
	touch d/f
	rm d/g
	expect 0 -ruT --json s d
	is .done '.tree.operands[0].state == "skipped"' '.tree.files == 1'
	rm d/f
	expect 0 -rnT --json s d
	is '.tree.operands[0].state == "skipped"' '.tree.files == 1'
	expect 0 -rT --json s d
	is '.tree.operands[0].state == "complete"'
	valid "$output"
}

@test "the progress counts the directory itself, and ends at its total" {
	need script
	mkdir -p s/d
	seq 5 | sed 's,^,s/d/,' | xargs touch
	random s/large 3000000
	script -qec "'$FCOPY' -r --progress --limit-rate=1M s d" /dev/null >out
	tr '\r' '\n' <out >lines
	grep -q 'of 8 entries' lines
	run ! grep -q 'of 7 entries' lines
	grep -q 'copied  *8 entries' lines
}

@test "--json=lines of one file has its type" {
	echo data >a
	expect 0 --json=lines a b
	[ "$(head -n 1 <<<"$output" | jq -r .type)" = file ]
	run --separate-stderr bash -c 'cat a | "$0" --json=lines - c' "$FCOPY"
	demand 0
	[ "$(head -n 1 <<<"$output" | jq -r .type)" = fifo ]
}

@test "-u, --update=none and -b: DST is not replaced if it could not be looked at" {
	need_strace
	local options name
	echo new >a
	echo mine >b
	touch -d '2001-01-01' a
	for options in -u --update=none "-u -b" "-u -T"; do
		for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
			# shellcheck disable=SC2086 # words
			run --separate-stderr strace -f -qq -o trace -e signal=none -e trace=openat \
				-e inject=openat:error=ENOMEM:when=$n "$FCOPY" $options a b
			[ "$(cat b)" = mine ] || { echo "$options, openat $n: status $status"; return 1; }
		done
	done
	mkdir s d
	cp -p a s/f
	cp b d/f
	for n in 5 6 7 8 9 10 11 12 13 14 15; do
		run --separate-stderr strace -f -qq -o trace -e signal=none -e trace=openat,newfstatat \
			-e inject=openat,newfstatat:error=EIO:when=$n "$FCOPY" -ruT -j1 s d
		[ "$(cat d/f)" = mine ] || { echo "-ru, call $n: status $status"; return 1; }
	done
}

@test "a file that is equal already is complete, by name and in a tree" {
	need jq
	mkdir s
	echo 1 >s/1
	"$FCOPY" -p s/1 d
	"$FCOPY" -aT s t
	local n
	for n in "s/1 d" "s t"; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr "$FCOPY" --json -aT --update=changed $n
		is .done '.tree.operands[0].state == "complete"' .tree.operands[0].committed '.tree.unchanged == 1'
	done
}

@test "-ru copies without a word, and with -v counts what it did" {
	mkdir s
	touch s/{1..3}
	"$FCOPY" -rTu s d 2>err
	[ ! -s err ]
	touch s/4
	"$FCOPY" -rTuv s d 2>err
	grep -qx "fcopy: 1 copied, 0 unchanged, 3 skipped" err || { cat err; return 1; }
}
