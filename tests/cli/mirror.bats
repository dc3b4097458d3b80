#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --update, --delete and --mirror: what is left alone, repaired, replaced and removed.

load helper
load mirror

@test "a mirror says what it did, on a terminal and without one, but not with -q" {
	need script
	export FCOPY
	mkdir s d
	echo 1 >s/a
	echo 2 >d/b
	script -qec '"$FCOPY" --mirror s d' record </dev/null >/dev/null
	grep -q '^fcopy: 1 copied, 0 unchanged, 1 removed' record
	script -qec '"$FCOPY" --mirror s d' record </dev/null >/dev/null
	grep -q '^fcopy: 0 copied, 1 unchanged, 0 removed' record
	echo 2 >d/an-older-copy # as long as a name of fcopy's own
	expect 0 --mirror s d
	says "fcopy: 0 copied, 1 unchanged, 1 removed"
	absent d/an-older-copy
	echo 2 >d/b
	expect 0 --mirror -q s d
	says ""
	absent d/b
	mkdir many
	touch many/{1..1234}
	expect 0 --mirror many t
	says "fcopy: 1,234 copied, 0 unchanged, 0 removed"
	echo 1 >many/1
	expect 0 -aT --link-dest=t many u
	says "fcopy: 1 copied, 1,233 linked"
	expect 0 -aT many v
	says ""
	expect 2 --mirror nowhere d
	says "fcopy: nowhere: stat: No such file or directory"
	ln -s "$(realpath "$FCOPY")" cp
	rm -r u
	run --separate-stderr ./cp -a many u
	says ""
}

@test "--mirror copies what is new or changed, repairs attributes, removes the rest" {
	local inode
	make_source
	expect 0 --mirror s d
	mirrored
	inode=$(stat -c %i d/a/b/y)
	echo extra >d/extra
	mkdir -p d/ex/tra
	echo z >d/ex/tra/z
	ln -s nowhere d/c/ln
	chmod 600 s/a/b/y
	echo 33 >s/top
	ln -sf b s/a/link
	expect 0 --mirror --dry-run s d
	lists 'd/a/b/y: attributes would be repaired'
	cp -a d e
	expect 0 --mirror -v s e
	lists 'e/a/b/y: attributes repaired'
	cp -aT d f
	expect 0 --mirror --json=lines s f
	[ "$(jq -r 'select(.action == "repaired").path' <<<"$output")" = a/b/y ]
	expect 0 --mirror --json s d
	[ "$(count deleted)/$(count repaired)/$(count files)/$(count symlinks)" = 5/1/1/1 ]
	[ "$(stat -c '%i %a' d/a/b/y)" = "$inode 600" ]
	mirrored
}

@test "--mirror: where the types differ, the old entry is removed first, also a symlink to a directory" {
	make_source
	expect 0 --mirror s d
	rm -r s/a/b s/a/link
	echo now a file >s/a/b
	mkdir s/a/link
	echo in >s/a/link/in
	rm s/c/fifo
	ln -s ../a s/c/fifo
	mkdir outside
	rm -r d/empty
	ln -s ../outside d/empty
	echo new >s/empty/new
	expect 0 --mirror s d
	[ -z "$(ls outside)" ]
	mirrored
}

@test "... in storage whose directories cannot be flushed, too, without a warning" {
	need_strace
	mkdir s d
	echo 1 >s/a
	traced 0 inject=fsync:error=EINVAL:when=2 -aT --mirror s d
	injected
	never grep warning <<<"$stderr"
}

@test "--modify-window: times that differ by less are equal" {
	make_source
	expect 0 --mirror s d
	printf 'X\n' >d/top
	touch -d "$(stat -c %y s/top) + 1 second" d/top
	expect 0 -rT --update=changed --modify-window=1.5 s d
	holds X d/top
	expect 0 -rT --update=changed --modify-window=0 s d
	holds 3 d/top
}

@test "--modify-window counts for a SRC that is a file, and for --link-dest into a new tree" {
	mkdir s d
	echo new >s/a
	echo old >d/a
	touch -d '2024-05-06 07:08:09.5' s/a
	touch -d '2024-05-06 07:08:10.2' d/a
	expect 0 --update=changed --modify-window=2 s/a d/a
	holds old d/a
	cp s/a d/a
	chmod --reference=s/a d/a
	touch -d '2024-05-06 07:08:10.2' d/a
	expect 0 -aT --update=changed --modify-window=2 --link-dest=d s n
	[ n/a -ef d/a ]
	expect 0 -aT --update=changed --modify-window=0 --link-dest=d s m
	[ ! m/a -ef d/a ]
	rm -r n
	echo old >d/a
	touch -d '2024-05-06 07:08:10.2' d/a
	expect 0 --update=changed --modify-window=0 s/a d/a
	holds new d/a
}

@test "an owner is repaired whatever the order of the SRC operands" {
	[ "$(id -u)" = 0 ] || skip "needs root, which may set owners"
	mkdir -p s/t s/u
	echo 1 >s/a
	echo 2 >s/b
	echo 3 >s/t/f
	echo 4 >s/u/f
	chown 5:6 s/a s/b s/t/f s/u/f
	local one two three four order n=0
	for one in a b t u; do
		for two in a b t u; do
			for three in a b t u; do
				for four in a b t u; do
					order=$one$two$three$four
					[[ $order == *a* && $order == *b* && $order == *t* && $order == *u* ]] || continue
					rm -rf d
					cp -rp s d
					chown 7:8 d/a d/b d/t/f d/u/f
					expect 0 -a --update=changed s/$one s/$two s/$three s/$four d
					[ "$(stat -c %u:%g d/a d/b d/t/f d/u/f | sort -u)" = 5:6 ] ||
						{ echo $one $two $three $four; ls -lnR d; return 1; }
					n=$((n + 1))
				done
			done
		done
	done
	[ $n = 24 ]
}

@test "attributes of a file with another name in DST are not changed in place: it is replaced" {
	make_source
	expect 0 --mirror s d
	ln d/top snapshot
	chmod 600 s/top
	expect 0 --mirror --json s d
	[ "$(count repaired)/$(count files)" = 0/1 ]
	[ "$(stat -c %a snapshot)" = 644 ]
	[ "$(stat -c %a d/top)" = 600 ]
}

@test "hard links: attributes that differ, links that are missing, links that SRC does not have" {
	make_source
	expect 0 --mirror s d
	chmod 600 s/a/x
	expect 0 --mirror -j1 s d
	mirrored
	rm d/c/hard
	cp -a d/a/x d/c/hard
	expect 0 --mirror s d
	[ "$(stat -c %i d/a/x)" = "$(stat -c %i d/c/hard)" ]
	ln s/top s/c/top
	echo 333 >s/top
	expect 0 --mirror s d
	mirrored
	rm s/c/hard
	expect 0 --mirror s d
	mirrored
}

@test "-u replaces older files only, as cp does; none, none-fail and all say what they do" {
	local how n
	mkdir s old
	for n in older same newer absent; do
		echo new >s/$n
		touch -d '2020-01-02' s/$n
	done
	for n in older same newer; do echo old >old/$n; done
	touch -d '2020-01-01' old/older
	touch -d '2020-01-02' old/same
	touch -d '2020-01-03' old/newer
	cp -a old c
	cp -a old f
	cp -ru s/. c
	expect 0 -ru s/. f
	diff -r c f
	[ "$(cat f/older f/same f/newer | xargs)" = 'new old old' ]
	expect 0 -u s/older f/newer
	holds old f/newer
	for how in none:'old old old' all:'new new new' none-fail:'old old old'; do
		rm -rf f
		cp -a old f
		expect $([ ${how%:*} = none-fail ] && echo 1 || echo 0) -r --update=${how%:*} s/. f
		[ "$(cat f/older f/same f/newer | xargs)" = "${how#*:}" ]
		[ -f f/absent ]
	done
	mentions "f/older: exists, and is not replaced"
}

@test "combinations that would lose data or do nothing are refused" {
	mkdir s d
	expect 2 -an --delete s d
	mentions "--no-clobber: cannot be combined with --delete; to list changes (-n of rsync), use --dry-run"
	expect 2 --delete s d
	says "fcopy: --delete: requires -r or -a"
	expect 2 -a --delete s s d
	expect 2 -a --max-delete=1 s d
	says "fcopy: --max-delete: requires --delete"
	expect 2 -a --checksum s d
	expect 2 --mirror --max-delete=-1 s d
	expect 2 -a --update=newer s d
	mentions "--update: invalid value 'newer' (older, changed, none, none-fail, all)"
	expect 2 --mirror --resume s d
	expect 2 --mirror --shard=0/2 s d
	[ -z "$(ls d)" ]
}

@test "a mirror of a file removes no directory: not DST, and not DST/SRC" {
	local from to options
	mkdir -p d/a/x d/l d/p
	echo precious >d/a/x/f
	echo 1 >a
	ln -s a l
	mkfifo p
	for from in a l p; do
		for options in --mirror '-rT --delete' '-aT --update=changed --delete'; do
			# shellcheck disable=SC2086
			expect 2 $options $from d
			says "fcopy: d: is a directory"
			# shellcheck disable=SC2086
			expect 2 --dry-run $options $from d
		done
		expect 2 -a --delete $from d
	done
	holds precious d/a/x/f
	[ -d d/l ]
	[ -d d/p ]
	# What is no directory is replaced, as without the option.
	expect 0 --mirror a d/file
	echo 22 >a
	expect 0 --mirror a d/file
	holds 22 d/file
	expect 1 --mirror a p
	[ -p p ]
}

# That file system makes all letters small.
@test "a destination that ignores case keeps the copy that it lists in another case" {
	mkdir -p s backing
	echo 1 >s/Name
	echo 2 >s/Other
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' '
		"$FCOPY" --mirror s m/d
		[ "$(ls backing/d | xargs)" = "name other" ]
		rm s/Other
		"$FCOPY" --mirror --json s m/d >json
		[ "$(ls backing/d | xargs)" = name ]
		[ "$(jq -c "[.tree.unchanged, .tree.deleted]" json)" = "[1,1]" ]'
	holds 1 backing/d/name
}

@test "a mirror warns about what a killed copy left in any directory, and leaves it" {
	mkdir -p s/sub
	echo 1 >s/sub/f
	expect 0 --mirror s d
	echo bytes >d/sub/.fcopy-0123456789abcdef
	touch -d '3 days ago' d/sub/.fcopy-0123456789abcdef
	expect 0 --mirror s d
	mentions "d/sub/.fcopy-0123456789abcdef: left by an interrupted copy (6 B, 3 days old)"
	holds bytes d/sub/.fcopy-0123456789abcdef
	touch d/sub/.fcopy-0123456789abcdef # perhaps of a copy at work
	expect 0 --mirror s d
	says "fcopy: 0 copied, 1 unchanged, 0 removed"
	rm d/sub/.fcopy-*
}

@test "a name that waits for the first name of its file displaces nothing before" {
	need_strace
	mkdir -p s/b s/z d/b/x d/z/x
	echo old | tee d/b/x/in >d/z/x/in
	echo new >s/b/x
	ln s/b/x s/z/x
	run --separate-stderr timeout -s KILL "$HANG" strace -f -y -qq -o trace -e signal=none \
		-e trace=renameat2,pread64 -e inject=pread64:delay_enter=500000:when=1 \
		"$FCOPY" -q --mirror -j4 s d
	demand 0
	[ d/b/x -ef d/z/x ]
	[ "$(cat d/z/x)" = new ]
	# Each directory gets a hidden name once, and does not come back in between.
	[ "$(calls renameat2)" = 2 ]
}

@test "a name of several of one file takes the place of a directory or a FIFO, also if it waits for the first name" {
	local kind tries
	mkdir -p s/b s/z
	head -c 270000 /dev/zero >s/b/x
	ln s/b/x s/z/a
	for kind in directory fifo; do
		for tries in {1..8}; do
			rm -rf d
			mkdir -p d/b d/z
			if [ $kind = directory ]; then
				mkdir d/z/a
				echo in >d/z/a/in
				expect 0 -q --mirror -j4 s d
			else
				mkfifo d/z/a
				expect 0 -q --mirror -j4 --inplace=auto s d
			fi
			[ d/b/x -ef d/z/a ] || { ls -lR d; return 1; }
			cmp s/b/x d/z/a
		done
	done
}

@test "--mirror --inplace, and -b: a file of SRC gets a second hard link, in either order of the names" {
	local options same other
	for options in '--mirror --inplace' '-aT --update=changed --inplace' '-aT --update=changed -b'; do
		for same in a b; do
			other=$(tr ab ba <<<$same)
			rm -rf s d
			mkdir s
			echo 1 >s/$same
			expect 0 --mirror s d
			ln s/$same s/$other
			# shellcheck disable=SC2086 # words
			expect 0 -j1 $options s d
			[ d/a -ef d/b ]
			# shellcheck disable=SC2086
			expect 0 -j1 $options s d
		done
	done
}
