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

@test "what stays as it is excludes no other entry that stays, nor one whose rename leaves it alone" {
	# A file and a symlink to it, both unchanged.
	mkdir -p s/a s/b
	echo t >s/b/t
	ln -s ../b/t s/a/x
	cp -a s d
	expect 0 -rL --update=changed -T s d
	cp -rLp s same
	expect 0 -a --update=changed -T same d
	expect 0 -r --update=changed same/b same/a d
	expect 0 -r --update=changed --dry-run same/a same/b d
	# A file of which DST has another name, which an entry replaces.
	rm -r s d
	mkdir s d
	echo same >s/g
	echo new >s/f
	cp -p s/g d/t
	ln d/t d/f
	ln -s t d/g
	expect 0 -a -j1 --update=changed -T s d
	holds same d/g
	holds new d/f
	# Of several SRC, names that are skipped.
	rm -r s d
	mkdir -p s/c
	echo t >s/b
	ln s/b s/c/a
	cp -a s d
	local option
	for option in "-r -u" "-r -n" "-a -u" "-a -n" "-a --update=changed" "-r -u -f"; do
		for order in "s/b s/c" "s/c s/b"; do
			# shellcheck disable=SC2086
			expect 0 $option $order d
		done
	done
}

@test "an unchanged file that may have links stays, too, when a symlink in DST leads to it" {
	local how
	for how in "-aL --update=changed -T s d" "-aL -j1 --update=changed -T s d" "-a --update=changed -T s d" \
		"-aL --update=changed s/a s/b d" "-a --update=changed s/a s/b d" "-aL --resume s/a s/b d"; do
		rm -rf s d
		mkdir -p s/a s/b
		echo 1111 >s/a/f
		[[ $how == -aL* ]] || ln s/a/f s/z
		echo 22 >s/b/g
		cp -a s d
		rm d/b/g
		ln -s ../a/f d/b/g
		# shellcheck disable=SC2086
		run "$FCOPY" $how
		[ "$status" = 1 ] || [ "$(cat d/a/f)" = 1111 ]
		# If s lists b first, the file has changed before s/a/f is compared with it.
		[[ $how == *-T* ]] || holds 1111 d/a/f
	done
}

@test "a file is written through symlinks in DST: no other entry replaces one of them" {
	local target options first
	for target in f real/f; do
		for options in -a -r "-a -f" "-a -j1" "-a --inplace" "-a --update=changed" "-a --dry-run"; do
			for first in c l; do
				rm -rf s d
				mkdir -p s d/real
				[ $first = l ] || echo new >s/c # some file systems list the newest name first
				ln -s x s/l
				[ -e s/c ] || echo new >s/c
				echo old | tee d/f d/real/f >d/x
				ln -s "${target%%f*}." d/l
				ln -s l/f d/c
				[ $target != f ] || ln -sfn f d/l
				[ $target != f ] || ln -sf l d/c
				# shellcheck disable=SC2086
				expect 1 $options -T s d
				holds old d/x
			done
		done
	done
}

@test "an unchanged file is not replaced through a symlink in DST by another thread" {
	need_strace
	local how
	for how in -aL -a; do
		rm -rf s d
		mkdir -p s/a s/b
		echo 1111 >s/a/f
		random s/b/g 60000
		cp -a s d
		rm d/b/g
		ln -s ../a/f d/b/g
		# Delays the thread that compares s/a/f, so that the other one begins to copy s/b/g first.
		run strace -f -o trace -P f -P "$PWD/d/a/f" -e trace=openat -e inject=openat:delay_exit=100000 \
			"$FCOPY" "$how" -j2 --limit-rate=100K --update=changed -T s d
		[ "$status" = 1 ] || cmp s/a/f d/a/f
		[ "$status" = 1 ] || cmp s/b/g d/b/g
	done
}

@test "an unchanged file that a symlink in DST leads to is not replaced under one of several names" {
	local how
	for how in -a -aL "-rLf" "-aLb"; do
		rm -rf s d
		mkdir -p s/a s/b d/a d/b
		echo 22 >s/a/f
		echo 1111 >s/b/g
		cp -p s/b/g d/a/f
		touch -d @1000000000 s/b/g d/a/f
		ln d/a/f d/other
		ln -s ../a/f d/b/g
		# shellcheck disable=SC2086
		expect 1 $how --update=changed -j1 s/b s/a d
		mentions "d/a/f: is already the copy of another entry: not replaced"
		holds 1111 d/b/g
		holds 1111 d/a/f
	done
}

@test "an unchanged file is not replaced by way of a symlink in DST to its directory" {
	local how order
	for how in -a -aL "-aLb" "-aL other" "-a linked"; do
		for order in "s/a s/b" "s/b s/a" "-T s"; do
			rm -rf s d
			mkdir -p s/a s/b d/a
			echo 1111 >s/a/f
			echo 22 >s/b/f
			touch -d @1000000000 s/a/f
			cp -p s/a/f d/a/f
			ln -s a d/b
			[[ $how != *other ]] || ln d/a/f d/other
			[[ $how != *linked ]] || ln s/a/f s/a/g
			# shellcheck disable=SC2086
			expect 1 ${how% *} --keep-directory-symlink --update=changed -j1 $order d
			mentions ": is already the copy of another entry: not replaced"
		done
	done
}

@test "two names of one file, where DST has symlinks to a directory: that is a failure" {
	mkdir -p s/a s/b d/a d/b
	echo new >s/b/g
	ln s/b/g s/b/h
	ln -s ../a d/b/g
	ln -s ../a d/b/h
	expect 1 -r -j1 -T s d
	expect 1 -r s/a s/b d
	expect 1 -a -T s d
}

@test "every name has a different inode number, and DST ignores case: a new tree fails where two entries become one" {
	mkdir -p c/Dir c/dIR backing
	echo A >c/File
	echo bb >c/fiLE
	echo 1 >c/Dir/x
	echo 2 >c/dIR/x
	# shellcheck disable=SC2016
	by_fuse 'drawn,caseless,entry_timeout=0,attr_timeout=0,negative_timeout=0' 'for option in -j1 -j4 "-a -j1"; do
			s=0
			"$FCOPY" $option -rT c m/t 2>err || s=$?
			[ $s = 1 ]
			[ "$(grep -cE "are one file in the destination|is already the copy of another entry" err)" = 2 ]
			[ ! -e m/t ]
			rm -rf m/*
		done'
}
