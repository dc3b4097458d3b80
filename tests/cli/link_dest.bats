#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --link-dest: files of an earlier copy.

load helper
load mirror

@test "--link-dest into a copy that exists: no entry replaces the link of another one, and no backup is lost" {
	local same other
	# In either order of the names.
	for same in a b; do
		other=$(tr ab ba <<<$same)
		rm -rf s s1 d
		mkdir s s1 d
		echo A >s/$same
		echo BB >s/$other
		cp -p s/$same s1/$same
		ln s1/$same d/$same
		ln -s $same d/$other
		expect 1 -aT -j1 -f --link-dest=s1 s d
		holds A d/$same
		expect 1 -aT -j1 -f --update=changed s d
		holds A d/$same
	done
	# What is that link already, is no reason for a backup or a question.
	rm -rf s s1 d
	mkdir s d
	echo v2 >s/f
	expect 0 -aT s s1
	echo precious >d/f
	expect 0 -aT -b --link-dest=s1 s d
	expect 0 -aT -b -i --link-dest=s1 s d </dev/null
	holds precious d/f~
	expect 0 -aT --dry-run --json --link-dest=s1 s d
	[ "$(jq -c '[.tree.files, .tree.unchanged]' <<<"$output")" = '[0,1]' ]
	# A symlink is followed, and its target is a copy.
	rm -rf d
	mkdir d
	echo old >d/t
	ln -s t d/f
	expect 0 -aT --json=lines --link-dest=s1 s d
	[ "$(jq -r 'select(.path == "f").action' <<<"$output")" = copied ]
	holds v2 d/t
}

@test "--link-dest into a copy that exists: names of one file of SRC become one file, also with an earlier copy of one name" {
	local names option
	for names in "a b c" "b c a" "c a b"; do
		for option in -j1 -j4 --mirror; do
			# shellcheck disable=SC2086
			set -- $names
			rm -rf s old d
			mkdir -p s/sub old d
			echo x >s/$1
			ln s/$1 s/$2
			ln s/$1 s/sub/$3
			cp -p s/$2 old/$2
			ln old/$2 d/$2
			expect 0 -aT --dry-run $option --link-dest=old s d
			[ "$(ls d)" = $2 ]
			expect 0 -aT $option --link-dest=old s d
			[ "$(wc -l <<<"$stderr")" = 1 ] # what was done
			one_inode d/$1 d/$2 d/sub/$3
			holds x old/$2
			expect 0 -aT $option --link-dest=old s d
			one_inode d/$1 d/$2 d/sub/$3
		done
	done
	# An earlier copy with all names: nothing is left to do.
	rm -rf old d
	cp -a s old
	expect 0 -aT --link-dest=old s d
	for option in --dry-run -j1; do
		expect 0 -aT --json $option --link-dest=old s d
		[ "$(jq -c '[.tree.files, .tree.hard_links, .tree.unchanged]' <<<"$output")" = '[0,0,3]' ]
	done
	one_inode d/a d/b d/sub/* old/a
}

@test "--link-dest where DST ignores case: of two names that are one there, the second fails" {
	local same
	for same in a A; do
		rm -rf s s0 backing
		mkdir s s0 backing
		echo AAA >s/$same
		echo bbbb >"s/$(tr aA Aa <<<$same)"
		cp -p s/$same s0/$same
		# shellcheck disable=SC2016
		by_fuse 'caseless,entry_timeout=0,attr_timeout=0' 'try() {
				s=0
				"$FCOPY" -aT -j1 "$@" --link-dest=m/e s m/d 2>err || s=$?
				[ $s = 1 ] || { cat m/d/a; exit 1; }
				grep -qE "are one file in the destination|is already the copy" err || { cat err; exit 1; }
			}
			"$FCOPY" -aT s0 m/e
			mkdir m/d
			ln m/e/a m/d/a # it is the link already
			try
			try -f
			rm m/d/a       # is linked again
			try
			echo other >m/d/a2
			mv m/d/a2 m/d/a
			try -f'
		holds AAA backing/e/a
	done
}

@test "... whatever the second is, and whichever name DST lists" {
	local same other kind
	for same in $'\303\251' $'\303\211'; do # as that, small and large
		other=$([ "$same" = $'\303\251' ] && printf '\303\211' || printf '\303\251')
		for kind in file symlink fifo directory 'hard link' 'earlier hard link'; do
			rm -rf s s0 backing
			mkdir s s0 backing
			echo AAA >"s/$same"
			cp -p "s/$same" "s0/$same"
			case $kind in
			file) echo bbbb >"s/$other" ;;
			symlink) ln -s nowhere "s/$other" ;;
			fifo) mkfifo "s/$other" ;;
			directory) mkdir "s/$other" ;;
			*)
				echo bbbb >s/b
				ln s/b "s/$other"
				[ "$kind" = 'hard link' ] || { mv "s/$same" s/c && mv s/c "s/$same"; } # its place in the list
				;;
			esac
			# Whichever of them comes first, its copy stays, and the other one fails.
			# shellcheck disable=SC2016
			by_fuse 'caseless,entry_timeout=0,attr_timeout=0' '
				"$FCOPY" -aT s0 m/e
				for options in "" -f --delete "-b --suffix=.old"; do
					rm -rf m/d
					mkdir m/d
					s=0
					"$FCOPY" -aT -j1 $options --link-dest=m/e s m/d 2>err || s=$?
					[ $s = 1 ] || { ls -lR m backing; cat err; exit 1; }
					grep -qE "in the destination|is already the copy|is a directory|not a directory" err || { cat err; exit 1; }
				done'
			holds AAA backing/e/$'\303\251'
		done
	done
}

@test "--link-dest: unchanged files become hard links to the earlier copy, changed ones do not" {
	make_source
	expect 0 -a s day1
	echo 33 >s/top
	chmod 600 s/a/b/y
	setfacl -m u:1234:r s/a/x 2>/dev/null || true
	expect 0 -a --link-dest=day1 s day2
	[ -z "$(rsync -aHAXnc --delete -i s/ day2/)" ]
	[ "$(stat -c %i day1/top day1/a/b/y day2/top day2/a/b/y | sort -u | wc -l)" = 4 ]
	expect 0 -a --json --link-dest=day2 s day3
	[ "$(jq '.tree.files' <<<"$output")" = 0 ]
	[ "$(cd day2 && find . -type f -printf '%p %i\n' | sort)" = "$(cd day3 && find . -type f -printf '%p %i\n' | sort)" ]
	[ "$(stat -c %i day3/a/x)" = "$(stat -c %i day3/c/hard)" ]
	# A mirror of a snapshot does not change the other ones.
	chmod 400 s/top
	expect 0 --mirror s day3
	[ "$(stat -c %a day2/top)" = 644 ]
	expect 0 --mirror --link-dest=day1 s day4
	[ -z "$(rsync -aHAXnc --delete -i s/ day4/)" ]
	# A snapshot that exists: its files become links, once; -n leaves it alone.
	chmod 600 s/top day3/top day4/top
	expect 0 -aT -n --link-dest=day3 s day4
	[ "$(stat -c %h day4/top)" = 1 ]
	expect 0 -aT --json --link-dest=day3 s day4
	[ "$(jq -c '[.tree.files, .tree.unchanged]' <<<"$output")" = '[0,0]' ]
	[ "$(stat -c %i day3/a/x)" = "$(stat -c %i day4/c/hard)" ]
	rm day4/top
	echo other >day4/top
	expect 0 -aT --json=lines --link-dest=day3 s day4
	[ "$(jq -r 'select(.path == "top" or .path == "a/b/y") | .path + " " + .action' <<<"$output" | sort)" = $'a/b/y unchanged\ntop linked' ]
	[ "$(stat -c %i day3/top)" = "$(stat -c %i day4/top)" ]
	[ -z "$(rsync -aHAXnc --delete -i s/ day4/)" ]
	expect 2 -a --link-dest=nowhere s day5
	says "fcopy: nowhere: open: No such file or directory" \
		"fcopy: hint: name an earlier copy, relative to the current directory, or leave out --link-dest"
	expect 2 -a --link-dest="$PWD/nowhere" s day5
	says "fcopy: $PWD/nowhere: open: No such file or directory" "fcopy: hint: name an earlier copy, or leave out --link-dest"
	absent day5 day5.fcopy-part
	expect 2 --link-dest=day1 s/top day5
	expect 2 -a --resume --link-dest=day1 s day5
	usage_error "--link-dest: was given twice: name one earlier copy" -a --link-dest=day1 --link-dest=day2 s day5
	usage_error "--parents: cannot be combined with --link-dest" -a --parents --link-dest=day1 s day4
}

@test "--link-dest: -v, --dry-run and the log show what is a link, as for the links of a tree" {
	mkdir s
	echo same >s/same
	echo old >s/other
	expect 0 -a s one
	echo new >s/other
	ln s/other s/third
	expect 0 -a --dry-run -j1 --link-dest=one s two
	grep -qx 'would link s/same -> two/same' <<<"$output"
	[ "$(grep -cE '^would copy s/(other|third) -> two/' <<<"$output")" = 1 ]
	[ "$(grep -cE '^would link s/(other|third) -> two/' <<<"$output")" = 1 ]
	expect 0 -av -j1 --log-file=log --link-dest=one s two
	grep -qx 's/same -> two/same: linked' <<<"$output"
	[ "$(grep -cE '^s/(other|third) -> two/(other|third)$' <<<"$output")" = 1 ]
	[ "$(grep -cE '^s/(other|third) -> two/(other|third): linked$' <<<"$output")" = 1 ]
	grep -q ' s/same -> two/same: linked$' log
}

@test "--link-dest: a DIR in DST, as rsync takes it, gets a hint that is true" {
	local dir dst option
	mkdir -p s snaps/tue/inner
	echo a >s/a
	"$FCOPY" -aT s snaps/mon
	"$FCOPY" -aT s snaps/tue/inner/old
	while read -r dir dst; do
		expect 2 -aT --link-dest=$dir s $dst
		[[ $stderr =~ hint:\ use\ (--link-dest=snaps/[^:]*):\ DIR\ is\ relative\ to\ the\ current\ directory$ ]] || { echo "$stderr"; return 1; }
		option=${BASH_REMATCH[1]}
		expect 0 -aT --json $option s $dst
		[ "$(jq '.tree.hard_links' <<<"$output")" = 1 ]
		rm -r snaps/wed
	done <<-END
		../mon snaps/wed
		../mon snaps/wed//
		../../snaps/mon snaps/wed
		../tue/inner/old snaps/wed
	END
	expect 2 -aT --link-dest=inner/old s snaps/tue
	mentions "use --link-dest=snaps/tue/inner/old:"
}

@test "--link-dest of a copy that goes into DST: its DIR stands for DST" {
	make_source
	echo other >other
	mkdir one two three more
	echo >more/new
	expect 0 -a s other one
	expect 0 -a --json --link-dest=one s other two
	[ "$(jq '.tree.files' <<<"$output")" = 0 ]
	[ -z "$(rsync -aHAXncO --delete -i one/ two/)" ] # the times of one and two are of the copies
	[ "$(cd one && find . -type f -printf '%p %i\n' | sort)" = "$(cd two && find . -type f -printf '%p %i\n' | sort)" ]
	expect 0 -a --link-dest=one s more three
	says "fcopy: warning: one/more: does not exist: no file of this SRC is linked" "fcopy: 3 copied, 4 linked"
	[ "$(stat -c %i three/s/top)" = "$(stat -c %i one/s/top)" ]
	[ -f three/more/new ]
	# A symlink there is not followed.
	ln -s ../s one/more
	expect 0 -a --link-dest=one more two
	mentions "fcopy: warning: one/more: open: Not a directory"
	[ "$(stat -c %h two/more/new)" = 1 ]
}

@test "--link-dest --dry-run: counts links as the run does, in a new tree, an older one and a mirror" {
	need jq
	mkdir -p s/d
	local f option n
	for f in 1 2 d/3 d/4; do echo $f >s/$f; done
	"$FCOPY" -aT s monday
	echo changed >s/1
	for option in -aT --mirror "-aT --reflink=auto"; do
		rm -rf tuesday
		for n in first again; do
			# shellcheck disable=SC2086 # words
			"$FCOPY" --json $option --dry-run --link-dest=monday s tuesday >dry 2>err
			# shellcheck disable=SC2086
			"$FCOPY" --json $option --link-dest=monday s tuesday >run 2>err
			cmp <(jq -c '.tree | [.files, .hard_links, .unchanged, .bytes]' dry) \
				<(jq -c '.tree | [.files, .hard_links, .unchanged, .bytes]' run) || { cat dry run; return 1; }
		done
	done
}

@test "--link-dest by root into a directory of another user: hard links stay, without a warning" {
	need_root
	mkdir s s1 d
	echo x >s/a
	ln s/a s/b
	cp -p s/a s1/a
	ln s1/a s1/b
	chown 65534 d s
	expect 0 --mirror --link-dest=s1 s d
	[[ $stderr != *warning* ]] || { echo "$stderr"; return 1; }
	[ "$(stat -c %i s1/a d/a d/b | sort -u | wc -l)" = 1 ] || { ls -li s1 d; return 1; }
}
