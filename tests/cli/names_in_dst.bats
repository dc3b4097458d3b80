#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Names of SRC that are one in DST: no copy replaces another one.

load helper

@test "sources whose names differ only in case, where DST ignores case: the second is refused" {
	mkdir backing
	echo one >a
	echo two >A
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' 's=0
		mkdir m/d
		"$FCOPY" a A m/d 2>err || s=$?
		[ $s = 1 ]
		[ "$(cat m/d/a)" = one ]
		grep -q "is the copy of another source: their names may differ in case" err'
}

# In each pair one name is copied, and the other one fails: in a new directory, over an old file, and
# whatever the types.
@test "names that DST takes for one: the second one fails, by name, and no copy replaces another" {
	mkdir -p backing s/Dir s/dir
	echo 1 >s/é
	echo 2 >s/É
	echo 1 >s/a
	echo 2 >s/A
	ln -s 1 s/l
	ln -s 2 s/L
	mkfifo s/p
	echo 2 >s/P
	echo 3 >s/b
	ln s/b s/c
	echo 4 >s/C
	echo 4 >s/Dir/x
	echo 5 >s/dir/y
	# shellcheck disable=SC2016
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' 'try() {
			s=0
			"$FCOPY" "$@" 2>err || s=$?
			[ $s = 1 ] || { cat err; exit 1; }
			grep -cE "are one file in the destination|is already the copy of another entry" err || true
		}
		for options in "-r -j1" "-r -j4" "-a -j4" "-a -n"; do
			mkdir m/d
			case $options in *n) ;; *) echo old >m/d/A ;; esac
			n=$(try $options -T s m/d)
			[ "$n" = 6 ] || { echo "$options: $n"; cat err; exit 1; }
			[ "$(cat m/d/b)" = 3 ]
			[ "$(ls m/d | wc -l)" = 7 ]
			[ "$(find m/d -type f ! -name b -size -3c | wc -l)" -ge 3 ]
			[ "$(ls m/d/dir | wc -l)" = 1 ]
			chmod -R u+w m/d && rm -r m/d
		done
		n=$(try -r -T s m/new)
		[ "$n" = 6 ] || { cat err; exit 1; }
		[ ! -e m/new ]'
	mkdir e
	expect 0 -aT s e
	diff -r --no-dereference s e -x p
}

@test "a directory that lists each name twice is one copy of each" {
	mkdir -p backing/s/sub d
	echo 1 >backing/s/a
	ln backing/s/a backing/s/sub/b
	ln -s a backing/s/l
	mkfifo backing/s/p
	# shellcheck disable=SC2016
	by_fuse twice 'for options in "-r -j1" "-r -j4" "-a -j4"; do
			for dst in new d d; do
				"$FCOPY" --json -v $options -T m/s $dst >out 2>err || { cat err; exit 1; }
				[ ! -s err ] || ! grep -q warning err || { cat err; exit 1; }
				grep -qE "\"(files|hard_links)\": " out
				[ "$(find $dst ! -type d | wc -l)" = 4 ]
				[ "$(cat $dst/sub/b)" = 1 ]
			done
			rm -r new
		done'
}

@test "symlinks in DST: no copy replaces another one, or a file of the source" {
	new() {
		rm -rf s d t
		mkdir s d
		echo one >s/a
		echo two >s/b
		echo old >t
	}
	local option
	for option in -r -a "-r -j1"; do
		new
		ln -s ../t d/a
		ln -s ../t d/b
		# shellcheck disable=SC2086
		expect 1 $option -T s d
		mentions "are one file in the destination"
		new
		ln -s b d/a
		echo x >d/b
		# shellcheck disable=SC2086
		expect 1 $option -T s d
		grep -qE "are one file in the destination|its target moved while it was opened" <<<"$stderr"
		new
		ln -s ../s/b d/a
		# shellcheck disable=SC2086
		expect 1 $option -T s d
		mentions "d/a: leads to a file of the source"
		holds two s/b
		holds two d/b
	done
	new
	ln -s ../t d/a
	ln -s ../t d/b
	expect 1 s/a s/b d
	mentions "d/b: is already the copy of another entry"
	holds one t
	new
	ln -s ../s/b d/a
	expect 1 s/a s/b d
	mentions "d/a: is another SRC: nothing in it is changed"
	holds two s/b
	new
	ln -s ../t d/a
	expect 0 -rT s d
	holds one t
	[ -L d/a ]
}

@test "symlinks from one directory of DST to another: what came first stays, and the other one fails" {
	local option
	for option in -r "-r -j1" -a "-a --inplace" -ru "-rf --inplace"; do
		rm -rf s d
		mkdir -p s/a s/b d/a d/b
		echo one >s/a/f
		echo two >s/b/f
		echo three >s/a/g
		echo four >s/b/g
		echo old >d/b/f
		echo old >d/a/g
		touch -d 2020-01-01 d/b/f d/a/g
		ln -s ../b/f d/a/f
		ln -s ../a/g d/b/g
		# shellcheck disable=SC2086
		expect 1 $option -T s d
		[ "$(grep -cE "is already the copy of another entry: not replaced|its target moved while it was opened" <<<"$stderr")" = 2 ]
	done
}

@test "a file in DST that an unchanged entry reaches by a symlink stays its copy, and a dry run says so" {
	local option link file
	for option in --update=changed "--update=changed --checksum" "-a --update=changed" "-a --update=changed -H"; do
		for link in a b; do
			file=$([ $link = a ] && echo b || echo a)
			rm -rf s d
			mkdir -p s/a s/b d/a d/b
			echo same >s/$link/l
			case $option in *-H) ln s/$link/l s/$link/also ;; esac
			echo other >s/$file/t
			cp s/$link/l d/$file/t
			ln -s ../$file/t d/$link/l
			touch -d 2020-01-01 s/$link/l d/$file/t
			# shellcheck disable=SC2086
			expect 1 -r ${option% -H} --dry-run -T s d
			mentions "is already the copy of another entry: not replaced"
			# shellcheck disable=SC2086
			expect 1 -r ${option% -H} -T s d
			mentions "is already the copy of another entry: not replaced"
			[ "$(cat d/$link/l)" = "$(cat d/$file/t)" ] # one of both was copied, and the other one was named
		done
	done
}

@test "a dry run says, too, that of a symlink in DST and its target only one is copied" {
	local link file
	for link in a b; do
		file=$([ $link = a ] && echo b || echo a)
		rm -rf s d
		mkdir -p s/a s/b d/a d/b
		echo one >s/$link/l
		echo two >s/$file/t
		echo old >d/$file/t
		ln -s ../$file/t d/$link/l
		expect 1 -r -j1 --dry-run -T s d
		mentions "is already the copy of another entry: not replaced"
		expect 1 -r -j1 -T s d
		mentions "is already the copy of another entry: not replaced"
	done
}
