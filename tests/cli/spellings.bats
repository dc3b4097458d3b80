#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# FUSE that gives every name a different inode number, and ignores case.

load helper

# on_caseless ,OPTION… COMMAND: as by_fuse. In COMMAND, `empty` leaves only the empty directory m/t, and `fails STATUS COMMAND` puts
# the messages into err.
on_caseless() {
	mkdir -p backing
	# shellcheck disable=SC2016
	by_fuse "drawn,caseless,entry_timeout=0,attr_timeout=0,negative_timeout=0$1" 'empty() { rm -rf m/* && mkdir m/t; }
		fails() { # STATUS COMMAND…
			s=0
			"${@:2}" 2>err || s=$?
			[ $s = $1 ] || { echo "$* $s"; cat err; exit 1; }
		}
		'"$2"
}

@test "every name has a different inode number, and DST ignores case: no copy replaces that of another entry" {
	mkdir -p c/Dir c/dIR backing
	echo A >c/File
	echo bb >c/fiLE
	echo e >c/ä
	echo EE >c/Ä
	ln -s x c/Sym
	ln -s y c/sYM
	mkfifo c/Fi c/fI
	echo 1 >c/Dir/x
	echo 22 >c/dIR/x
	# shellcheck disable=SC2016
	on_caseless '' 'loses() { # PAIRS COMMAND…: of each pair one is copied
			empty
			echo old >m/t/filE
			touch -d @1 m/t/filE
			fails 1 "${@:2}"
			[ "$(grep -cE "is already the copy of another|are one file in the destination|is the copy of another source" err)" = "$1" ]
			[ "$(cat m/t/File)" != old ]
			[ -z "$(find backing -name ".fcopy-*")" ]
		}
		for options in -rT "-rT -j1" -aT -ruT -rbT "-rT --inplace" "-rT -f" --mirror; do
			loses 5 "$FCOPY" $options c m/t
		done
		loses 1 "$FCOPY" c/File c/fiLE m/t
		loses 1 "$FCOPY" c/ä c/Ä c/File m/t
		loses 1 "$FCOPY" -P c/Sym c/sYM c/File m/t
		loses 1 "$FCOPY" -r c/Dir c/dIR c/File m/t'
}

@test "every name has a different inode number, and DST ignores case: -n and -u leave what exists" {
	mkdir c
	echo A >c/File
	echo bb >c/fiLE
	touch -d 2001-02-03 c/*
	# shellcheck disable=SC2016
	on_caseless '' 'for options in -n -u --update=none; do
			empty
			echo old >m/t/file
			fails 0 "$FCOPY" -rT $options c m/t
			fails 0 "$FCOPY" $options c/File c/fiLE m/t
			[ "$(cat m/t/file)" = old ]
		done
		empty
		echo old >m/t/file
		printf "n\ny\n" | "$FCOPY" -i c/File c/fiLE m/t 2>err || :
		grep -q "overwrite .m/t/fiLE" err
		[ "$(cat m/t/file)" = bb ]'
}

@test "every name has a different inode number, and DST ignores case: names of one source are one file" {
	mkdir c
	echo A >c/File
	ln c/File c/fiLE
	# shellcheck disable=SC2016
	on_caseless '' 'for options in -aT -rT "-rT -j1"; do
			empty
			"$FCOPY" $options c m/t
			[ "$(cat m/t/FILE)" = A ]
		done
		"$FCOPY" -a c/File c/fiLE m/t'
}

@test "every name has a different inode number, and DST ignores case: a copy whose source cannot be read excludes no other" {
	is_root || skip "needs root"
	mkdir -p c backing/t
	echo A >c/File
	mkfifo c/fiLE
	# shellcheck disable=SC2016
	on_caseless ',fault=mknod:EPERM' 'fails 1 "$FCOPY" -r c/fiLE c/File m/t
		[ "$(cat m/t/File)" = A ]
		[ "$(grep -c "^fcopy: m/t" err)" = 1 ]'
}

@test "every name has a different inode number, and DST ignores case: -b overwrites no copy" {
	mkdir s
	echo new >s/file
	echo NEWT >"s/FILE~"
	# shellcheck disable=SC2016
	on_caseless '' 'for command in "-rT -j1 -b s m/t" "-b s/FILE~ s/file m/t" "-b s/file s/FILE~ m/t" "-rT -b s m/t"; do
			empty
			echo oldfile >m/t/file
			"$FCOPY" $command
			[ "$(cat m/t/* | sort | tr "\n" " ")" = "NEWT new oldfile " ]
		done'
}

@test "DST ignores case: of two names of one file, the second does not overwrite the backup of the first" {
	mkdir s two
	echo new >s/B
	ln s/B s/b
	local i numbers
	for i in 1 2 3 4 5 6 7 8; do
		echo new >two/N$i
		echo newer >two/n$i
	done
	# shellcheck disable=SC2016
	for numbers in ,drawn ''; do
		rm -rf backing
		mkdir backing
		by_fuse "caseless,entry_timeout=0,attr_timeout=0,negative_timeout=0$numbers" 'for command in "-r -T s" "-a -T s" "-dr -T s" \
				"-a -f -T s" "-r -j1 -T s" "-a --no-preserve=links -T s" "s/B s/b" "-a s/B s/b"; do
				for backup in -b --backup=numbered; do
					rm -rf m/t
					mkdir m/t
					echo precious >m/t/B
					s=0
					"$FCOPY" $backup $command m/t 2>err || s=$?
					[ $s = 1 ] || { echo "$backup $command: $s"; cat err; exit 1; }
					[ "$(cat m/t/*~)" = precious ]
					[ "$(cat m/t/b)" = new ]
				done
			done
			for i in 1 2 3 4 5 6 7 8; do # two threads at a time
				rm -rf m/t
				mkdir m/t
				for k in 1 2 3 4 5 6 7 8; do echo precious >m/t/N$k; done
				"$FCOPY" -rbT -j8 two m/t 2>err && exit 1
				[ "$(cat m/t/*~ | grep -c precious)" = 8 ]
			done'
	done
}

@test "every name has a different inode number, and DST ignores case: symlinks in DST that lead to one entry" {
	mkdir -p s/Link s/real p
	echo 1 >s/Link/File
	echo 2 >s/real/FILE
	echo 1 >p/Ln
	echo 2 >p/TARGET
	# shellcheck disable=SC2016
	on_caseless '' 'empty
		mkdir m/t/real
		ln -s real m/t/link
		fails 1 "$FCOPY" -rT --keep-directory-symlink s m/t
		for command in "-rT -j1 p m/t" "-rT p m/t" "p/Ln p/TARGET m/t" "p/TARGET p/Ln m/t"; do
			empty
			touch m/t/target
			ln -s target m/t/ln
			fails 1 "$FCOPY" $command
		done'
}

@test "every name has a different inode number, and DST ignores case: nothing is created to find that out" {
	mkdir s backing
	echo A >s/File
	echo bb >s/fiLE
	mkdir backing/t
	echo old >backing/t/file
	# shellcheck disable=SC2016
	on_caseless ,fault=create:EACCES 'fails 1 "$FCOPY" --inplace=auto s/File s/fiLE m/t
		fails 1 "$FCOPY" -rT --inplace s m/t'
}

@test "every name has a different inode number, and DST lists names in lower case: a new tree fails where two become one" {
	mkdir s
	echo 22 >s/file
	echo 3 >s/FILE
	# shellcheck disable=SC2016
	on_caseless '' 'for options in -r "-r -j1" -a --mirror "-r --keep-going"; do
			rm -rf m/*
			fails 1 "$FCOPY" $options s m/n
			grep -q "are one file in the destination" err
		done'
}

@test "every name has a different inode number, and DST ignores case: no copy replaces or removes SRC, however that is spelled" {
	# shellcheck disable=SC2016
	on_caseless '' 'empty
		rmdir m/t
		echo DATA >m/b
		mkdir -p m/photos/sub
		echo x >m/photos/sub/x
		echo c >m/photos/a
		w=$PWD
		for options in -sf "-s --remove-destination" -sb; do
			fails 2 "$FCOPY" $options "$w/m/b" "$w/m/B"
			fails 2 "$FCOPY" -r $options "$w/m/photos" "$w/m/Photos" -T
		done
		fails 2 "$FCOPY" --mirror m/photos/sub m/Photos
		fails 2 "$FCOPY" -a m/photos m/Photos/sub
		fails 2 "$FCOPY" --mirror m/photos m/Photos/sub
		fails 2 "$FCOPY" -aT m/photos m/PHOTOS
		fails 0 "$FCOPY" -a m/photos m/other
		[ "$(cat m/b m/photos/sub/x m/photos/a)" = "DATA
x
c" ]
		[ "$(find backing -type f | wc -l)" = 5 ]'
}

@test "DST ignores case: if a file and a directory are one entry, a mirror keeps what it made first" {
	mkdir -p s/b s2/B
	echo x | tee s/b/in >s2/B/in
	echo content | tee s/B >s2/b
	local numbers
	# shellcheck disable=SC2016
	for numbers in ,drawn ''; do
		rm -rf backing
		mkdir -p backing
		by_fuse "caseless,entry_timeout=0,attr_timeout=0,negative_timeout=0$numbers" 'mirrors() { # SRC DST_IS: m/t/b, which DST lists
				for options in "--mirror -j1" --mirror; do
					for run in 1 2 3; do
						s=0
						"$FCOPY" $options $1 m/t 2>err || s=$?
						[ $s = 1 ]
						grep -q " 1 failed" err || { cat err; exit 1; }
						grep -qE "are one file in the destination|is already the copy of another entry" err
						[ "$(cd m/t && grep -r . | tr "\n" " ")" = "$2" ] || { ls -lRa m/t; cat err; exit 1; }
					done
				done
				rm -rf m/t
			}
			mkdir -p m/t/b
			mirrors s "b/in:x "
			mkdir m/t
			"$FCOPY" -p s2/b m/t/b
			mirrors s2 "b:content "
			for src in s s2 s s2 s s2; do
				mkdir m/t
				"$FCOPY" --mirror $src m/t 2>err && exit 1
				grep -q "^fcopy: 1 copied, .* 1 failed" err || { cat err; exit 1; }
				[ "$(find m/t -type f | wc -l)" = 1 ] || { ls -lRa m/t; cat err; exit 1; }
				rm -rf m/t
			done'
	done
}

@test "DST ignores case: a file is not copied over itself, however it is spelled" {
	local numbers
	# shellcheck disable=SC2016
	for numbers in ,drawn ''; do
		rm -rf backing
		mkdir backing
		by_fuse "caseless,entry_timeout=0,attr_timeout=0,negative_timeout=0$numbers" 'mkdir m/d
			echo data >m/d/File
			ln -s File m/d/link
			for options in "" -f --remove-destination -b --backup=numbered --verify --resume --inplace -a "-a -b" "-a --remove-destination"; do
				for names in "m/d/File m/d/file" "m/d/File m/D/File" "m/d/File m/D"; do
					s=0
					"$FCOPY" $options $names 2>err || s=$?
					[ $s = 2 ] || { echo "$options $names: $s"; cat err; exit 1; }
					grep -q "are the same file" err
				done
			done
			"$FCOPY" m/d/link m/d/FILE && exit 1
			"$FCOPY" m/d/File m/d/LINK && exit 1
			"$FCOPY" m/d/File m/d/other
			"$FCOPY" m/d/File m/d/other
			"$FCOPY" -b m/d/File m/d/Other
			[ "$(ls m/d | LC_ALL=C sort | tr "\n" " " | tr A-Z a-z)" = "file link other other~ " ]
			[ "$(cat m/d/file)" = data ]'
	done
}

@test "every name has a different inode number, and DST keeps case: names that differ in case are copied" {
	mkdir -p c/photos c/Photos backing
	echo 1 >c/photos/a
	echo 2 >c/Photos/A
	echo 3 >c/Photos/a
	# shellcheck disable=SC2016
	by_fuse drawn '"$FCOPY" -rT c m/t
		for options in -rT -aT --mirror; do
			"$FCOPY" $options c m/t
			diff -r c m/t
		done
		"$FCOPY" -r c/photos c/Photos m
		"$FCOPY" -r m/photos m/Photos m/t
		"$FCOPY" -aT m/photos m/Photos/photos
		"$FCOPY" -sf "$PWD/m/photos/a" "$PWD/m/Photos/a"'
}
