#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --update, --delete and --mirror: what is left alone, repaired, replaced and removed.

load helper

make_source() {
	mkdir -p s/a/b s/c s/empty
	echo 1 >s/a/x
	echo 2 >s/a/b/y
	echo 3 >s/top
	ln -s x s/a/link
	mkfifo s/c/fifo
	ln s/a/x s/c/hard
	chmod 640 s/a/b/y
	touch -d '2020-01-01 00:00:00.123456789' s/a/x s/c
}

count() {
	jq -r ".tree.$1" <<<"$output"
}

# mirrored: rsync sees no difference, and a second run changes nothing.
mirrored() {
	local before after
	need rsync
	[ -z "$(rsync -aHAXnc --delete --itemize-changes s/ d/)" ] || { rsync -aHAXnc --delete -i s/ d/; return 1; }
	before=$(find d ! -type d -printf '%P %i %T@ %C@\n' | sort)
	expect 0 --mirror --json s d
	after=$(find d ! -type d -printf '%P %i %T@ %C@\n' | sort)
	[ "$before" = "$after" ]
	[ "$(count 'files + .tree.symlinks + .tree.specials + .tree.hard_links + .tree.deleted + .tree.repaired')" = 0 ]
}

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

@test "an unchanged file of equal size and time is found by --checksum, or after a power cut" {
	make_source
	expect 0 --mirror s d
	for how in checksum marker; do
		printf 'X\n' >d/top
		touch -r s/top d/top
		expect 0 --mirror s d
		holds X d/top
		if [ $how = checksum ]; then
			expect 0 --mirror --checksum s d
		else
			# A mirror of another boot was not finished.
			echo 00000000-0000-0000-0000-000000000000 >d/.fcopy-mirror
			touch -d '1 minute ago' d/.fcopy-mirror
			expect 0 --mirror s d
			absent d/.fcopy-mirror
		fi
		holds 3 d/top
	done
	# What was written before that mirror began had been flushed.
	printf 'X\n' >d/top
	touch -r s/top d/top
	echo >d/.fcopy-mirror
	touch -d '1 minute' d/.fcopy-mirror
	expect 0 --mirror s d
	holds X d/top
}

@test "what a killed mirror wrote is flushed before its marker is removed, even if nothing differs" {
	need_strace
	make_source
	expect 0 --mirror s d
	traced 0 trace=syncfs,unlinkat --mirror s d
	in_trace 'syncfs' 0
	cp /proc/sys/kernel/random/boot_id d/.fcopy-mirror
	traced 0 trace=syncfs,unlinkat --mirror s d
	[ "$(grep -oE 'syncfs|fcopy-mirror' trace | tr '\n' ' ')" = 'syncfs fcopy-mirror ' ]
	absent d/.fcopy-mirror
}

@test "a first mirror is flushed before it has its name, and the marker before what it warns of" {
	need_strace
	make_source
	traced 0 trace=syncfs,/^rename --mirror s d
	order 'syncfs' 'rename.*"d"'
	touch s/top
	traced 0 trace=fsync,syncfs,/^rename,unlinkat --mirror s d
	order "fsync\([0-9]+<$PWD/d/.fcopy-mirror>\) += 0" "fsync\([0-9]+<$PWD/d>\) += 0" 'rename.*top' syncfs 'unlinkat.*fcopy-mirror'
}

@test "... in storage whose directories cannot be flushed, too, without a warning" {
	need_strace
	mkdir s d
	echo 1 >s/a
	traced 0 inject=fsync:error=EINVAL:when=2 -aT --mirror s d
	injected
	never grep warning <<<"$stderr"
}

@test "a marker that is no file is a doubt, and stays" {
	make_source
	expect 0 --mirror s d
	printf 'X\n' >d/top
	touch -r s/top d/top
	mkdir d/.fcopy-mirror
	expect 0 --mirror s d
	holds 3 d/top
	rmdir d/.fcopy-mirror
}

@test "a file system that is mounted below DST is flushed before the marker is removed, which stays if that fails" {
	need_strace
	make_source
	mkdir -p d/a
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t tmpfs none d/a
		strace -f -y -qq -o trace -e trace=syncfs,unlinkat "$FCOPY" --mirror s d
		[ ! -e d/.fcopy-mirror ] || exit 9
		touch s/a/new
		strace -f -y -qq -o again -e inject=syncfs:error=EIO:when=1 "$FCOPY" --mirror s d 2>err && exit 9
		[ -f d/.fcopy-mirror ] || exit 9
		"$FCOPY" --mirror s d
		[ ! -e d/.fcopy-mirror ]'
	demand 0
	order "syncfs\([0-9]+<$T/d/a>\) += 0" "syncfs\([0-9]+<$T/d>\) += 0" 'unlinkat\(.*fcopy-mirror'
	[ "$(calls syncfs)" = 2 ]
	grep -qE "d/a: syncfs: (Input/output|I/O) error" err
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

@test "nothing is removed if an entry failed, if SRC is empty, or above --max-delete" {
	make_source
	expect 0 --mirror s d
	echo extra >d/extra
	mkdir d/dir
	echo >d/dir/f
	expect 1 --mirror --max-delete=2 s d
	mentions "d: nothing is removed: 3 would be, and --max-delete is 2"
	expect 1 --mirror --dry-run --max-delete=2 s d
	mentions "3 would be, and --max-delete is 2"
	[ "$(sort <<<"$output")" = $'would remove d/dir\nwould remove d/dir/f\nwould remove d/extra' ]
	usage_error "--mirror: cannot be combined with --resume: to begin or continue a new DST, use fcopy -aT --resume SRC DST" --mirror --resume s d
	[ -f d/extra ]
	[ -f d/dir/f ]
	mkdir -p none excluded/lost+found
	expect 1 --mirror none d
	mentions "d: nothing is removed, because SRC is empty; to remove all, use --max-delete=N"
	expect 1 --mirror --exclude=lost+found/ excluded d
	mentions "d: nothing is removed, because all of SRC is excluded; to remove all else, use --max-delete=N"
	[ -f d/extra ]
	[ -f d/top ]
	printf 'top\n' >s/locked
	if is_root; then
		chattr +i d/top 2>/dev/null || skip "no immutable files here"
		echo 4444 >s/top
	else
		chmod 000 s/locked
	fi
	expect 1 --mirror s d
	mentions "nothing is removed, because entries failed"
	[ -f d/extra ]
	! is_root || chattr -i d/top
	chmod 644 s/locked
	expect 0 --mirror --max-delete=3 s d
	mirrored
	expect 0 --mirror --max-delete=100 none d
	[ -z "$(ls -A d)" ]
}

@test "above --max-delete an entry of another type is not removed either" {
	make_source
	expect 0 --mirror s d
	rm -r s/a
	echo a file >s/a
	expect 1 --mirror --max-delete=3 s d
	mentions "d/a: differs in type from its source: its removal would exceed --max-delete"
	[ "$(cat d/a/b/y)" = 2 ]
	expect 0 --mirror --max-delete=5 s d
	mirrored
}

@test "excluded entries and copies at work are not removed; a directory that keeps some stays" {
	make_source
	expect 0 --mirror s d
	mkdir -p d/gone/deep d/x.fcopy-part d/.fcopy-0123456789abcdef
	touch d/gone/deep/keep.me d/gone/deep/f d/keep.me s/keep.me.not
	expect 0 --mirror --exclude=keep.me s d
	[ "$(find d/gone | sort | xargs)" = 'd/gone d/gone/deep d/gone/deep/keep.me' ]
	[ -f d/keep.me ]
	[ -d d/x.fcopy-part ]
	[ -d d/.fcopy-0123456789abcdef ]
	rm -r d/x.fcopy-part d/.fcopy-0123456789abcdef
	expect 0 --mirror s d
	mirrored
}

@test "a pattern for directories keeps no file of that name: rsync removes it, too" {
	local options
	need rsync
	for options in '--exclude=*/' '--exclude=x/***' '--include=*.o --exclude=/sub/x/ --exclude=*/x/'; do
		rm -rf s d r
		mkdir -p s/sub/x s/x s/sub/y d/sub/y d/x d/sub
		touch s/x/f d/x/kept s/sub/f
		mkfifo d/sub/x d/fifo
		cp -a d r
		# shellcheck disable=SC2086 # words
		rsync -a --delete $options s/ r/
		# shellcheck disable=SC2086
		expect 0 --mirror --max-delete=9 --dry-run $options s d
		[ -p d/sub/x ]
		# shellcheck disable=SC2086
		expect 0 --mirror --max-delete=9 $options s d
		cmp <(cd r && find . | sort) <(cd d && find . | sort)
		absent d/fifo
	done
	absent d/sub/x
	[ -d s/sub/x ]
}

@test "a directory that would become a file, but holds an entry that stays, keeps all of it" {
	local before options
	mkdir -p s d/x/sub d/y/t.fcopy-part d/z
	touch s/x s/y s/z d/x/a d/x/sub/keep.o d/y/b d/z/c
	before=$(everything d/x; everything d/y)
	for options in --dry-run '--dry-run --max-delete=9' --max-delete=9 ''; do
		# shellcheck disable=SC2086
		expect 1 --mirror --exclude='*.o' $options s d
		mentions 'd/x: differs in type from its source, but holds sub/keep.o, which is excluded'
		mentions 'd/y: differs in type from its source, but holds t.fcopy-part, which is an unfinished copy'
		[ "$(everything d/x; everything d/y)" = "$before" ]
		[[ $options = --dry* && -d d/z ]] || [ -f d/z ]
		[[ $output != *d/x* && $output != *d/y* ]]
	done
	mkdir s/dir
	mkfifo d/dir
	expect 1 --mirror --exclude='dir' --exclude='*.o' s d
	[ -p d/dir ]
}

@test "SRC inside DST is never removed, nor is what contains it" {
	mkdir -p d/data/s d/other
	echo 1 >d/data/s/f
	echo 2 >d/other/g
	expect 1 --mirror --max-delete=100 d/data/s d
	mentions "d/data: contains SRC: not removed"
	holds 1 d/data/s/f
	absent d/other
	holds 1 d/f
}

@test "what is mounted in DST is neither entered nor removed" {
	export FCOPY
	private_mounts 'mkdir -p s d/m d/sub; echo 1 >s/f; mount -t tmpfs none d/m; echo 2 >d/m/g; echo 3 >t; mkdir t.d; echo 4 >t.d/h
		mount --bind t.d d/sub
		"$FCOPY" --mirror s d && exit 8
		[ -f d/m/g ] && [ -f d/sub/h ] && [ -f d/f ]'
	demand 0
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

# everything: each name, inode, mode, owner, time and content of a tree, and none of its access times.
everything() {
	find "$1" -printf '%P %i %m %U %G %n %T@ %C@ %s %l\n' | sort
	find "$1" -type f | sort | xargs -r -d '\n' sha256sum
}

# lists LINE…: these lines are in $output.
lists() {
	local line
	for line; do
		grep -qxF -- "$line" <<<"$output" || { echo "no '$line' in: $output"; return 1; }
	done
}

@test "--dry-run does not try what network storage can do, in a directory of several users either" {
	mkdir -p backing/d s
	touch s/f backing/d/f
	chmod 777 backing/d
	touch -d 2001-02-03 backing/d
	by_fuse attr_timeout=0 '"$FCOPY" --dry-run -aT s m/d && "$FCOPY" --dry-run --mirror s m/d'
	[ "$(stat -c %y backing/d)" = "$(date -d 2001-02-03 '+%F %T.%N %z')" ]
}

@test "a directory whose attributes differ is foretold and reported; its time alone only if no name changed" {
	local said options
	mkdir -p s/mode s/time s/named s/equal
	touch s/named/old
	touch -d 2001-02-03 s s/*
	cp -a s d
	chmod 700 s/mode
	touch -d 2002-03-04 s/time
	touch s/named/new
	for options in --mirror '-aT --delete' '-aT --update=changed'; do
		rm -rf e
		cp -a d e
		# shellcheck disable=SC2086
		said=$("$FCOPY" --dry-run $options s e 2>/dev/null | grep repaired | sort)
		[ "$said" = $'e/mode: attributes would be repaired\ne/time: attributes would be repaired' ] || { echo "$options: $said"; return 1; }
		# shellcheck disable=SC2086
		said=$("$FCOPY" -v $options s e 2>/dev/null | grep repaired | sort)
		[ "$options" = '-aT --delete' ] || [ "$said" = $'e/mode: attributes repaired\ne/time: attributes repaired' ] || { echo "$options: $said"; return 1; }
		[ "$(stat -c '%a %y' e/mode e/time e/named e/equal e)" = "$(stat -c '%a %y' s/mode s/time s/named s/equal s)" ]
	done
	chmod 700 s
	expect 0 --dry-run --mirror s e
	lists 'e: attributes would be repaired'
	expect 0 --mirror --json s e
	[ "$(count repaired)" = 1 ]
	expect 0 --mirror --json s e
	[ "$(count repaired)" = 0 ]
}

@test "--dry-run says what would happen, and changes nothing" {
	local before options
	make_source
	expect 0 --dry-run -a s d
	absent d
	lists 'would copy s/a/b/y -> d/a/b/y' 'would copy s/empty -> d/empty'
	says 'fcopy: dry run: 5 would be copied, 1 would be linked'
	expect 0 --mirror s d
	echo extra >d/extra
	mkdir -p d/ex/tra
	rm -r s/c
	echo file >s/c
	echo 33 >s/top
	chmod 600 s/a/b/y
	mkdir s/new
	echo n >s/new/n
	before=$(everything d)
	for options in --mirror '--mirror --max-delete=100' -aT -rTu '-aT --update=none' '--mirror --checksum -j1' -aTL '-aT --resume'; do
		# shellcheck disable=SC2086
		run --separate-stderr "$FCOPY" --dry-run $options s d
		[ "$(everything d)" = "$before" ] || { echo "$options changed something"; return 1; }
	done
	expect 0 --dry-run --mirror s d
	lists 'would copy s/c -> d/c' 'would copy s/new/n -> d/new/n' 'would copy s/new -> d/new' 'would copy s/top -> d/top' \
		'would remove d/extra' 'would remove d/ex/tra' 'would remove d/c/fifo'
	says 'fcopy: dry run: 3 would be copied, 3 unchanged (attributes of 1 would be repaired), 6 would be removed'
	[[ $output != *'s/a/'* ]]
	lists 'd/a/b/y: attributes would be repaired'
	expect 0 --dry-run s/top d/top
	[ "$output" = 'would copy s/top -> d/top' ]
	says 'fcopy: dry run: 1 would be copied'
	# As many names are missing in DST as are too many.
	mkdir one two
	touch one/a two/b
	expect 0 --dry-run --mirror one two
	lists 'would copy one/a -> two/a' 'would remove two/b'
	expect 2 --dry-run - d/top <s/top
	# It refuses what the copy would refuse, and makes no backup.
	echo 4 >old
	ln old other
	ln -s nowhere dangling
	expect 0 --dry-run -b s/top d/top
	for options in 'old old' 's/top other' 's/top dangling' 'old missing/x' '-l old s/top' '-s old s/top' '-s old old' '-s old new/'; do
		# shellcheck disable=SC2086
		run --separate-stderr "$FCOPY" $options
		local real=$status
		# shellcheck disable=SC2086
		expect "$real" --dry-run $options
		[ "$real" != 0 ] && [ -z "$output" ] || { echo "$options: $real $output"; return 1; }
	done
	[ "$(everything d)" = "$before" ]
	expect 1 --dry-run --mirror --max-delete=4 s d
	[ "$(everything d)" = "$before" ]
	expect 0 --mirror s d
	mirrored
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

# one_inode NAME…: they are names of one file.
one_inode() {
	[ "$(stat -c %i "$@" | sort -u | wc -l)" = 1 ]
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

@test "--dry-run --mirror: a script sees a difference by the output, not by the exit status" {
	local change
	for change in ':' 'echo bb >s/f' 'chmod 711 s/f' 'touch s/new' 'ln -s f s/link' 'mkdir s/d' 'ln s/f s/hard' 'rm s/g'; do
		rm -rf s d
		mkdir s
		echo a >s/f
		echo g >s/g
		expect 0 --mirror s d
		eval "$change"
		expect 0 --mirror --dry-run s d
		[ -z "$output" ] && is=equal || is=different
		[ "$change" = : ] && want=equal || want=different
		[ "$is" = "$want" ] || { echo "$change: $is"; return 1; }
		expect 0 --mirror s d
		expect 0 --mirror --dry-run s d
		[ -z "$output" ]
	done
}

@test "two mirrors of one DST at once: the marker stays until the last one has ended" {
	mkdir s
	random s/big 3000000
	expect 0 --mirror s d
	random s/big 4000000
	"$FCOPY" -q --mirror --limit-rate=1M s d &
	local first=$!
	await grep -q "FLOCK .* READ *$first " /proc/locks
	kill -STOP $first
	expect 0 --mirror s d
	[ -f d/.fcopy-mirror ]
	kill -CONT $first
	wait $first
	absent d/.fcopy-mirror
	cmp s/big d/big
}

@test "a dry run does not lock the marker, which a mirror that ends would then leave" {
	need_strace
	mkdir s
	touch s/f
	expect 0 --mirror s d
	cp /proc/sys/kernel/random/boot_id d/.fcopy-mirror
	traced 0 openat,flock --mirror --dry-run s d
	in_trace '"\.fcopy-mirror"'
	never grep 'flock(.*fcopy-mirror' trace
	traced 0 flock --mirror s d
	in_trace 'flock\(.*fcopy-mirror.*LOCK_SH'
	absent d/.fcopy-mirror
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
