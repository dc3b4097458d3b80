#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# DST.fcopy-part, the unfinished tree: what --resume keeps of it, and which directory it accepts.

load helper
load tree

# part_of DIR OPTION…: makes d.fcopy-part by a copy of DIR in which one entry fails, which is gone then.
part_of() {
	ln -s nowhere "$1/dangling"
	expect 1 "${@:2}" -L "$1" d
	mentions "$1/dangling: is a dangling symlink" "d.fcopy-part: kept, unfinished"
	rm "$1/dangling"
	[ -f d.fcopy-part/journal ]
	absent d
}

@test "--resume: a file that changed since, is incomplete or was removed is not taken as complete" {
	make_small s
	touch s/secret
	chmod 0 s/secret
	chmod 777 .
	as_nobody 1 -r s d
	kept d.fcopy-part
	chmod 644 s/secret
	echo changed >s/d1/5
	touch -r s/d1/9 s/d1/1
	printf x | dd of=s/d1/1 conv=notrunc status=none
	rm s/d2/2
	truncate -s 10 d.fcopy-part/data/d1/13
	touch d.fcopy-part/data/stale
	as_nobody 0 -r --resume s d
	diff -r s d
}

@test "--resume --verify reads all files of the part back" {
	make_small s
	touch s/secret
	chmod 0 s/secret
	chmod 777 .
	as_nobody 1 -r s d
	chmod 644 s/secret
	# Wrong content, with the size and the time of the source.
	random d.fcopy-part/data/d1/5 35000
	touch -r s/d1/5 d.fcopy-part/data/d1/5
	as_nobody 0 -r --resume --verify s d
	diff -r s d
}

@test "after a first run without --resume, the second one copies only what is not complete" {
	local option hour=0
	need_strace
	make_small s
	for option in -r -rp -a; do
		rm -rf d
		part_of s $option
		echo "changed $hour" >s/d1/5
		touch -d "2001-01-01 $((++hour)):00" s/d2/2 # same size and content
		touch -r s/d3/3 stamp
		printf x | dd of=s/d3/3 conv=notrunc status=none # same size
		rm s/d0/4
		traced 0 trace=openat $option -L --resume s d
		diff -r s d
		absent d.fcopy-part
		[ "$(grep -cE '".*", O_.*(O_CREAT|O_TMPFILE)' trace)" = 3 ] || { grep O_ trace; return 1; }
		random s/d0/4 28000
	done
}

@test "an entry fails, and the command has options that exclude --resume: the hint can be followed" {
	local option
	mkdir -p s earlier
	echo 1 >s/a
	touch s/secret
	chmod 0 s/secret
	chmod 777 . s
	as_nobody 1 -au s d
	says "fcopy: s/secret: open: Permission denied" "fcopy: d.fcopy-part: kept, unfinished; d not created" \
		"fcopy: hint: fix the cause, then run the command again with --resume instead of --update; to commit without the failed entries, add --keep-going"
	chmod 644 s/secret
	as_nobody 1 --mirror s d
	mentions "hint: use --resume (not --mirror) to continue that copy"
	as_nobody 0 -aT --resume s d
	diff -r s d
	# A first mirror makes what it can, and the same command completes it.
	rm -rf d
	chmod 0 s/secret
	as_nobody 1 --mirror s d
	says "fcopy: s/secret: open: Permission denied" "fcopy: d: committed despite 1 failure" \
		"fcopy: 1 copied, 0 unchanged, 0 removed, 1 failed"
	absent d.fcopy-part
	chmod 644 s/secret
	as_nobody 0 --mirror s d
	diff -r s d
	# A tree of links is removed: the same command starts again.
	rm -rf d
	chmod 0 s/secret
	for option in "--link-dest=$T/earlier" --attributes-only; do
		rm -rf d
		as_nobody 1 -aT "$option" s d
		says "fcopy: s/secret: open: Permission denied" "fcopy: d: not created" \
			"fcopy: hint: fix the cause, or commit without the failed entries: --keep-going"
		absent d d.fcopy-part
		as_nobody 1 -aT --keep-going "$option" s d
		[ -e d/a ]
	done
}

@test "--resume: an entry that is of another type now, is replaced in the part" {
	local option by
	for option in -r -a; do
		rm -rf s d
		mkdir -p s/{file_was_dir/sub/sub,link_was_dir/sub,fifo_was_dir,hard_was_dir,dir_was_dir}
		touch s/{file_was_dir/sub/f,link_was_dir/sub/f,fifo_was_dir/f,hard_was_dir/f}
		for by in dir link fifo; do
			echo "$by" >s/${by}_was_file
		done
		ln -s nowhere s/dir_was_link
		ln -s nowhere s/file_was_link
		mkfifo s/dir_was_fifo s/file_was_fifo
		chmod 555 s/file_was_dir/sub/sub s/file_was_dir/sub s/file_was_dir
		chmod 777 .
		touch s/secret
		chmod 0 s/secret
		as_nobody 1 $option s d
		chmod -R u+w s
		chmod 644 s/secret
		rm -rf s/*_was_*
		mkdir -p s/{dir_was_dir,dir_was_file,dir_was_link,dir_was_fifo}
		for by in s/dir_was_*; do
			echo new >"$by/f"
		done
		echo new >s/file_was_dir
		echo new >s/file_was_link
		echo new >s/file_was_fifo
		ln s/file_was_dir s/hard_was_dir
		ln -s new s/link_was_dir
		ln -s new s/link_was_file
		mkfifo s/fifo_was_dir s/fifo_was_file
		as_nobody 0 $option --resume s d
		diff <(cd s && find . -printf '%p %y %l %n\n' | sed 's/ 2$/ 1/' | sort) \
			<(cd d && find . -printf '%p %y %l %n\n' | sed 's/ 2$/ 1/' | sort)
		holds new d/file_was_dir
		[ $option = -r ] || [ d/file_was_dir -ef d/hard_was_dir ]
		absent d.fcopy-part
	done
}

@test "--resume: directories that the earlier copy finished with a read-only mode" {
	mkdir -p s/a/b s/c
	echo 1 >s/a/b/1
	touch s/secret
	chmod 0 s/secret
	chmod 555 s/a/b s/a s/c s
	chmod 777 .
	local option
	for option in -r -a; do
		as_nobody 1 $option s d
		chmod 755 s s/a s/a/b s/c
		chmod 644 s/secret
		echo 2 >s/a/b/2
		mkdir s/c/new
		rm s/a/b/1
		chmod 555 s/a/b s/a s/c s
		as_nobody 0 $option --resume s d
		diff -r s d
		[ "$(cd d && stat -c %a . a a/b c c/new | tr '\n' ' ')" = "555 555 555 555 755 " ]
		chmod -R u+w d s
		rm -rf d s/c/new
		echo 1 >s/a/b/1
		chmod 0 s/secret
		chmod 555 s/a/b s/a s/c s
	done
	chmod -R u+w s
}

@test "--resume -a: names that were hard links in the part and are not any more" {
	mkdir s
	echo same >s/a
	ln s/a s/b
	part_of s -a
	[ d.fcopy-part/data/a -ef d.fcopy-part/data/b ]
	cp -p s/a s/copy
	mv s/copy s/b
	expect 0 -aL --resume s d
	diff -r s d
	never test d/a -ef d/b
}

@test "--resume -a: two files of the source share an inode in the part: each gets its own attributes" {
	mkdir s
	echo same >s/a
	touch -d 2020-01-01 s/a
	for name in b c d; do ln s/a s/$name; done
	part_of s -a
	rm s/c s/d
	cp -p s/a s/c
	chmod 600 s/c
	ln s/c s/d
	expect 0 -aL --resume s d
	[ d/a -ef d/b ]
	[ d/c -ef d/d ]
	never test d/a -ef d/c
	[ "$(stat -c %a d/a d/c)" = $'644\n600' ]
}

@test "--resume --keep-going: an entry that fails leaves no older copy of it" {
	mkdir s
	echo old >s/a
	echo c >s/c
	touch s/secret
	chmod 0 s/secret
	chmod 777 .
	as_nobody 1 -a s d
	kept d.fcopy-part
	echo newer >s/a
	chmod 0 s/a
	rm s/c
	mkdir -m 0 s/c
	as_nobody 1 -a --resume --keep-going s d
	mentions "s/a: open: Permission denied"
	[ -d d ]
	[ -z "$(ls d)" ]
}

@test "--resume: two names that differ only in case are one file there: the second one fails" {
	mkdir backing s s/sub
	echo one >s/readme
	echo longer >s/README
	cp -p s/readme s/sub/x
	cp -p s/readme s/sub/X
	# shellcheck disable=SC2016
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' 's=0
		"$FCOPY" -r --resume s m/d 2>err || s=$?
		cat err
		[ $s = 1 ]
		[ ! -e m/d ]
		[ "$(grep -c "are one file in the destination: only the second is copied" err)" = 2 ]
		rm s/README s/sub/X
		"$FCOPY" -r --resume s m/d
		diff -r s m/d'
}

@test "a file system without extended attributes and O_TMPFILE: a part is kept and resumed" {
	mkdir backing
	make_small s
	# shellcheck disable=SC2016
	by_fuse direct_io 'ln -s nowhere s/dangling
		s=0
		"$FCOPY" -rL s m/d 2>err || s=$?
		[ $s = 1 ]
		[ -f backing/d.fcopy-part/journal ]
		rm s/dangling
		"$FCOPY" -rL --resume --stats s m/d 2>err
		grep -q "reused  *20" err || { cat err; exit 1; }
		diff -r s backing/d
		[ "$(ls backing)" = d ]'
}

@test "--resume: every thread notes what is complete: the next run copies nothing again" {
	local i name
	name=$(printf 'name%.0s' {1..55}) # long enough for each thread to fill more than one buffer
	mkdir -p s/many "s/$(printf 'deep%.0s' {1..50})/below"
	for i in {1..1200}; do echo "$i" >s/many/"$name-$i"; done
	cp -r s/many/*1 s/deep*/below
	for i in 1 4; do
		rm -rf d
		part_of s -r -j $i
		expect 0 -rL --resume --stats s d
		[[ $stderr =~ reused\ +$(find s -type f | wc -l)[^0-9] ]] || { echo "$stderr"; return 1; }
		diff -r s d
	done
}

@test "a tree fails that has more files than a buffer: all are noted, with and without an unnamed file" {
	need_strace
	local at n
	mkdir s
	touch s/a-name-that-is-long-enough-to-fill-more-than-one-buffer-with-what-is-noted-of-it-{1..900}
	ln -s nowhere s/dangling
	traced 1 trace=openat -rL -j1 s d
	n=$(nth openat '"\.", .*O_TMPFILE')
	mv d.fcopy-part e.fcopy-part
	expect 1 -rL -j1 --resume s e
	mentions "its .fcopy-part has the journal of another part" # which has the name of d
	mv e.fcopy-part d.fcopy-part
	cp -p d.fcopy-part/journal journal
	rm -r d.fcopy-part
	for ((at = n - 3; at < n + 4; at++)); do # on a busy machine there may be another call before it
		rm -rf d.fcopy-part
		traced 1 "inject=openat:error=EOPNOTSUPP:when=$at" -rL -j1 s d || continue
		! grep -q 'O_TMPFILE.*INJECTED' trace || break
	done
	grep -q 'O_TMPFILE.*INJECTED' trace || skip "the call was not met"
	[ "$(grep -c ' done ' journal)" = 900 ]
	[ "$(grep -c ' done ' d.fcopy-part/journal)" = 900 ]
	rm s/dangling
	expect 0 -rL --resume --stats s d
	[[ $stderr =~ reused\ +900[^0-9] ]] || { echo "$stderr"; return 1; }
	diff -r s d
}

@test "--resume: a finished file that was edited since is copied again, also with the same size and time" {
	mkdir s
	echo first >s/a
	echo same >s/b
	touch -d 2020-01-01 s/a s/b
	part_of s -r
	echo other >s/a
	touch -d 2020-01-01 s/a
	expect 0 -rL --resume --stats s d
	diff -r s d
	[[ $stderr =~ reused\ +1[^0-9] ]] || { echo "$stderr"; return 1; }
}

@test "--resume: directories of equal files that exchanged their names since are copied again" {
	need_strace
	local i
	mkdir -p s/a s/b s/sub/c s/sub/d
	for i in {1..30}; do
		echo "a$i" >s/a/"$i"
		echo "b$i" >s/b/"$i"
		echo "c$i" >s/sub/c/"$i"
		echo "d$i" >s/sub/d/"$i"
	done
	# One call sets all times within one tick of the clock: the change times are equal, too.
	touch -d 2020-01-01 s/{a,b,sub/c,sub/d}/*
	sleep 2.1
	run strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=3 "$FCOPY" -a --resume s d
	[ -f d.fcopy-part/data/sub/d/30 ]
	mv s/a s/x
	mv s/b s/a
	mv s/x s/b
	mv s/sub/c s/sub/e
	mv s/sub/d s/sub/c
	expect 0 -a --resume s d
	diff -r s d
}

@test "--resume: other options than those of the first run are refused" {
	make_small s
	part_of s -r
	local option
	for option in -rLp -rP -rLx '-rL --exclude=1'; do
		expect 1 $option --resume s d
		mentions "d: its .fcopy-part was begun with other options" "remove or rename d.fcopy-part"
	done
	umask 077
	expect 1 -rL --resume s d
	umask 022
	expect 0 -rL --resume s d
	diff -r s d
}

@test "--resume refuses what it did not leave as a part, and does not change it" {
	make_small s
	mkdir -p d.fcopy-part/data
	echo precious >d.fcopy-part/data/f
	chmod 755 d.fcopy-part
	local reason
	for reason in "is open to other users" "has no journal" "has the journal of another part"; do
		expect 1 -r --resume s d
		mentions "d: its .fcopy-part $reason" "hint: remove or rename d.fcopy-part"
		expect 1 -r s d
		says "fcopy: d: an earlier copy left its .fcopy-part" \
			"fcopy: hint: use --resume (not --mirror) to continue that copy, or remove or rename d.fcopy-part"
		if [ "$(stat -c %a d.fcopy-part)" = 755 ]; then
			chmod 700 d.fcopy-part
		else
			echo '00000000 fcopy-part 1' >d.fcopy-part/journal
			touch d.fcopy-part/lock
			chmod 600 d.fcopy-part/journal d.fcopy-part/lock
		fi
	done
	holds precious d.fcopy-part/data/f
	absent d
	rm -r d.fcopy-part
	touch d.fcopy-part
	expect 1 -r --resume s d
	mentions "d: its .fcopy-part has no journal"
	rm d.fcopy-part
	mkdir -m 700 elsewhere
	ln -s elsewhere d.fcopy-part
	expect 1 -r --resume s d
	[ -z "$(ls elsewhere)" ]
	absent d
}

@test "the commit of a part: flush, rename, then the part goes; a failed rename keeps it" {
	need_strace
	make_small s
	touch -d 2001-02-03 s
	part_of s -a
	touch -d 2001-02-03 s
	traced 0 trace=unlinkat,renameat2,syncfs,utimensat -aL --resume --fsync s d
	diff -r s d
	[ "$(stat -c %Y d)" = "$(stat -c %Y s)" ]
	order syncfs 'renameat2\(.*"data", .*"d", RENAME_NOREPLACE' 'renameat2\(.*"d.fcopy-part", .*"\.fcopy-' 'unlinkat\(.*"journal"'
	rm -rf d
	part_of s -r
	traced 1 'inject=renameat2:error=EIO' -rL --resume s d
	injected
	mentions "d: rename: Input/output error" "d.fcopy-part: kept"
	expect 0 -rL --resume s d
	diff -r s d
	never grep fcopy- <<<"$(ls -A)"
}

@test "--resume of several trees: the second is treated as if it were alone" {
	mkdir -p s1 s2 d
	chmod 777 .
	echo 1 >s1/f
	echo 2 >s2/g
	ln -s nowhere s1/x
	! is_root || chown -R 65534:65534 s1 s2 d
	as_nobody 1 -rL s1 d
	rm s1/x
	as_nobody 0 -rL --resume s1 s2 d
	holds 2 d/s2/g
	holds 1 d/s1/f
}
