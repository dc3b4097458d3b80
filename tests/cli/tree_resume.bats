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
	[ -f d.fcopy-part/"$MARK" ]
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
	truncate -s 10 d.fcopy-part/d1/13
	touch d.fcopy-part/stale
	as_nobody 0 -r --resume s d
	diff -r s d
}

@test "--resume --verify copies again whatever is in the part" {
	make_small s
	touch s/secret
	chmod 0 s/secret
	chmod 777 .
	as_nobody 1 -r s d
	chmod 644 s/secret
	# Wrong content, with the size and the time of the source.
	random d.fcopy-part/d1/5 35000
	touch -r s/d1/5 d.fcopy-part/d1/5
	as_nobody 0 -r --resume --verify s d
	diff -r s d
}

@test "a part that others may write to, or that is no directory, is refused" {
	make_small s
	mkdir -m 777 d.fcopy-part
	expect 1 -r --resume s d
	mentions "is writable by others"
	rmdir d.fcopy-part
	touch d.fcopy-part
	expect 1 -r --resume s d
	mentions "is not a directory"
	rm d.fcopy-part
	mkdir elsewhere
	ln -s elsewhere d.fcopy-part
	expect 1 -r --resume s d
	[ -z "$(ls elsewhere)" ]
	absent d
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

@test "the times of the first run are those of the sources when they were opened, in every thread" {
	local i
	mkdir -p s/many "s/$(printf 'deep%.0s' {1..50})/below"
	for i in {1..3000}; do
		echo "$i" >s/many/a-name-that-is-long-enough-to-fill-more-than-one-buffer-"$i"
	done
	cp -r s/many/*1 s/deep*/below
	for i in 1 4; do
		rm -rf d
		part_of s -r -j $i
		diff <(cd s && find . -type f -printf '%p %T@\n' | sort) \
			<(cd d.fcopy-part && find . -type f ! -name "$MARK" -printf '%p %T@\n' | sort)
		expect 0 -r --resume --stats s d
		[[ $stderr =~ resumed\ +$(find s -type f | wc -l)[^0-9] ]] || { echo "$stderr"; return 1; }
		diff -r s d
		# Without -p, a copy that succeeds has the present time.
		[ -z "$(find s -newer d)" ]
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
	[ d.fcopy-part/a -ef d.fcopy-part/b ]
	cp -p s/a s/copy
	mv s/copy s/b
	expect 0 -a --resume s d
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
	expect 0 -a --resume s d
	[ d/a -ef d/b ]
	[ d/c -ef d/d ]
	never test d/a -ef d/c
	[ "$(stat -c %a d/a d/c)" = $'644\n600' ]
}

@test "--resume -x: nothing remains of what the source has on another file system" {
	mkdir -p s/mount
	ln -s nowhere s/dangling
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t tmpfs none s/mount && touch s/mount/file
		s=0
		"$FCOPY" -rL s d || s=$?
		[ $s = 1 ]
		[ -f d.fcopy-part/mount/file ]
		rm s/dangling
		"$FCOPY" -rLx --resume s d'
	demand 0
	[ -d d/mount ]
	[ -z "$(ls d/mount)" ]
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

@test "--resume: a copy is incomplete if two names that differ only in case are one file there" {
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
		grep -q "d: has other names than its source" err
		grep -q "d/sub: has other names than its source" err
		rm s/README s/sub/X
		"$FCOPY" -r --resume s m/d
		diff -r s m/d'
}

@test "--resume: an entry that vanishes after it was copied is no failure, and is removed" {
	mkdir -p s/sub
	local name
	for name in 1 2 3 sub/4; do echo $name >s/$name; done
	random s/large 6000000
	"$FCOPY" -r --resume --limit-rate=3M s d &
	local copy=$!
	await eval 'cmp -s s/sub/4 d.fcopy-part/sub/4 && [ "$(ls d.fcopy-part | grep -c "^[123]$")" -ge 2 ]'
	rm -r s/sub
	for name in 1 2 3; do
		[ ! -s d.fcopy-part/$name ] || rm s/$name
	done
	wait "$copy"
	diff -r s d
}

@test "--resume refuses a directory that fcopy did not leave, and does not change it" {
	make_small s
	mkdir -p d.fcopy-part/mine
	echo precious >d.fcopy-part/mine/f
	chmod 750 d.fcopy-part
	local option
	for option in -r -a; do
		expect 1 $option --resume s d
		mentions "d: its .fcopy-part was not left by fcopy" "hint: remove or rename d.fcopy-part"
		expect 1 $option s d
		says "fcopy: d: an earlier copy left its .fcopy-part" \
			"fcopy: hint: use --resume to continue that copy, or remove or rename d.fcopy-part"
	done
	holds precious d.fcopy-part/mine/f
	[ "$(stat -c %a d.fcopy-part)" = 750 ]
	[ "$(find d.fcopy-part | wc -l)" = 3 ]
	absent d
	# An empty one could be that of a process that was killed.
	rm -r d.fcopy-part/mine
	expect 0 -r --resume s d
	diff -r s d
	absent d.fcopy-part
}

@test "--resume refuses a source that has the name of the mark" {
	make_small s
	echo mine >"s/$MARK"
	expect 1 -r --resume s d
	mentions "the source has an entry $MARK"
	absent d
	absent d.fcopy-part
	expect 0 -r s d
	holds mine "d/$MARK"
}

@test "an entry that has the name of the mark, in a tree that is kept, is not written to" {
	make_small s
	echo mine >s/other
	ln s/other "s/$MARK"
	ln -s nowhere s/broken
	expect 1 -aL s d
	mentions "d.fcopy-part: kept, unfinished"
	holds mine "d.fcopy-part/$MARK"
	holds mine d.fcopy-part/other
}

@test "a part loses its mark before it gets its name; the times of the tree are right nevertheless" {
	need_strace
	make_small s
	touch -d 2001-02-03 s
	part_of s -a
	traced 0 trace=unlinkat,renameat2,syncfs,fsync,utimensat -a --resume --fsync s d
	diff -r s d
	[ "$(stat -c %Y d)" = "$(stat -c %Y s)" ]
	order syncfs "unlinkat\(.*$MARK" "fsync\(.*d.fcopy-part" 'renameat2\(.*"d", RENAME_NOREPLACE'
	# If the rename fails, it can still be resumed.
	rm -rf d
	part_of s -r
	traced 1 'inject=renameat2:error=EIO' -r --resume s d
	injected
	mentions "d: rename: Input/output error" "d.fcopy-part: kept"
	[ -f d.fcopy-part/"$MARK" ]
	expect 0 -r --resume s d
	diff -r s d
}

# killed_at CALL OPTION…: resumes the part, and is killed by SIGKILL when it makes the call.
killed_at() {
	run strace -f -qq -o trace -e inject="$1":signal=KILL "$FCOPY" "${@:2}" --resume s d
	[ "$status" = 137 ]
	absent d
	[ -d d.fcopy-part ]
}

@test "--resume: killed between the removal of the mark and the rename, then committed" {
	local option
	need_strace
	make_small s
	ln -s d1/1 s/link
	mkfifo s/fifo
	chmod 555 s/d2
	for option in -r -a; do
		part_of s $option
		killed_at renameat2 $option -L
		absent d.fcopy-part/"$MARK"
		diff -r s/d1 d.fcopy-part/d1
		expect 0 $option -L --resume --stats s d
		[[ $stderr =~ resumed\ +(19|21)[^0-9] ]] || { echo "$stderr"; return 1; }
		diff -r s/d1 d/d1
		absent d.fcopy-part
		chmod -R u+w d
		rm -r d
	done
	# The tree is marked again before anything is removed or replaced.
	part_of s -a
	killed_at renameat2 -a -P
	killed_at unlinkat -a -P
	[ -f d.fcopy-part/"$MARK" ]
	expect 0 -a --resume s d
	[ "$(readlink d/link)" = d1/1 ]
	chmod -R u+w s d
}

@test "--resume refuses a part without a mark that differs from the source in any way" {
	local change
	need_strace
	make_small s
	ln -s d1/1 s/link
	part_of s -a
	killed_at renameat2 -a -P
	cp -a d.fcopy-part kept
	for change in 'echo more >>$p/d1/5' 'touch $p/d2/2' 'touch $p/mine' 'mkdir $p/d3/mine' \
		'rm $p/d0/4; mkdir $p/d0/4' 'ln -sfn elsewhere $p/link' 'rm s/d3/7' 'rm -r s/d3' 'echo new >s/d3'; do
		p=d.fcopy-part
		eval "$change"
		cp -a $p before
		expect 1 -a --resume s d
		mentions "d: its .fcopy-part was not left by fcopy" "hint: remove or rename d.fcopy-part"
		diff -r --no-dereference before $p
		[[ $change == *s/d3* ]] || { rm -r $p && cp -a kept $p; }
		rm -r before
	done
}

@test "a file system without extended attributes and O_TMPFILE: a part is marked and resumed" {
	mkdir backing
	make_small s
	# shellcheck disable=SC2016
	by_fuse direct_io 'ln -s nowhere s/dangling
		s=0
		"$FCOPY" -rL s m/d 2>err || s=$?
		[ $s = 1 ]
		[ -f backing/d.fcopy-part/fcopy-unfinished.txt ]
		rm s/dangling
		"$FCOPY" -rL --resume --stats s m/d 2>err
		grep -q "resumed  *20" err || { cat err; exit 1; }
		diff -r s backing/d
		[ "$(ls backing)" = d ]'
}

@test "--resume: an entry whose name differs only in case from fcopy-unfinished.txt fails if DST ignores case" {
	mkdir s backing
	echo x >s/FCOPY-unfinished.TXT
	expect 0 -r --resume s d
	diff -r s d
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' 's=0
		"$FCOPY" -r --resume --keep-going s m/d 2>err || s=$?
		[ $s = 1 ]
		grep -q "s/FCOPY-unfinished.TXT: has a name that --resume needs" err'
}
