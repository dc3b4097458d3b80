#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Promises where two options meet: cells of tests/promises.md that belong to no other subject.

load helper
load tree

@test "-b: with several SRC, with -u only of what is replaced, and never with --inplace, --resume, --shard or --delete" {
	local option
	mkdir s d
	echo new | tee s/older >s/newer
	echo old | tee d/older >d/newer
	touch -d '1 hour ago' d/older
	touch -d '1 hour' d/newer
	expect 0 -bu s/older s/newer d
	holds old d/older~
	holds new d/older
	holds old d/newer
	absent d/newer~
	expect 0 -b s/older s/newer d
	holds old d/newer~
	for option in --inplace --resume --shard=0/1 --mirror; do
		expect 2 -rbT $option s d
		mentions "cannot be combined with"
	done
	# Nothing is left to be backed up of a stream, and nothing is asked.
	echo new >a
	echo old >b
	for option in -b -i; do
		run --separate-stderr bash -c 'echo x | "$0" "$1" - b' "$FCOPY" $option
		demand 2
		mentions "is a stream or a device"
		holds old b
	done
}

@test "-n: a stream does not replace a file" {
	echo old >b
	run --separate-stderr bash -c 'echo new | "$0" -n - b' "$FCOPY"
	demand 0
	holds old b
	run --separate-stderr bash -c 'echo new | "$0" -n - c' "$FCOPY"
	demand 0
	holds new c
}

@test "-b --fsync: the backup has its name before the old file is replaced, and both are flushed" {
	need_strace
	echo new >a
	echo old >b
	traced 0 trace=linkat,renameat,renameat2,fsync,fdatasync -b --fsync a b
	order 'fdatasync\(' 'linkat\(.*"b~"' 'renameat2?\(.*"b"' "fsync\([0-9]+<$T>"
}

@test "--link-dest: a tree that fails or is flushed is one like any other: absent, or flushed as a whole" {
	need_strace
	mkdir s
	random s/f 10000
	expect 0 -a s one
	ln -s nowhere s/bad
	expect 1 -aL --link-dest=one s two
	mentions "fcopy: two: not created"
	[ "$(ls -A)" = $'one\ns' ]
	rm s/bad
	random s/g 10000
	traced 1 inject=pwrite64,splice,copy_file_range:error=ENOSPC -a -j1 --reflink=never --link-dest=one s two
	injected
	mentions "two not created"
	absent two
	[ -z "$(find . -name '.fcopy-*')" ]
	traced 0 trace=linkat,syncfs,renameat2,fsync -a --fsync --link-dest=one s two
	order 'linkat\(.*"f"' 'syncfs\(' 'renameat2\(.*"two"' "fsync\([0-9]+<$T>"
	[ two/f -ef one/f ]
	# The earlier copy is SRC: it is linked, and not changed by what the next copies do.
	expect 0 -a --link-dest=s s three
	[ three/f -ef s/f ]
	cp -a s before
	random other 10000
	expect 0 --inplace -f other two/g
	expect 0 -a --link-dest=s s four
	mkdir changed
	cp other changed/f
	expect 0 -rTf --inplace changed four
	cmp other four/f
	diff -r s before
	chmod 600 before/f
	expect 0 --mirror before three
	[ "$(stat -c %a s/f)" = 644 ]
	expect 0 -aT -f before three
	diff -r s before
}

# The storage has other bytes than were written to the file.
@test "--verify finds a difference in a file, a merge, a mirror, several SRC and a backup; the old file stays" {
	need_strace
	local -a commands=("s/f d/f" "-rT -j1 s d" "--mirror -j1 s d" "s/f g d" "-b s/f d/f" "--parents s/f e")
	local command
	for command in "${commands[@]}"; do
		rm -rf s d e
		mkdir -p s d e/s
		random s/f 1000
		echo g >g # no tree has a file that may be the first
		echo old | tee d/f >e/s/f
		touch -d '1 hour ago' d/f e/s/f
		# shellcheck disable=SC2086 # words
		traced 1 inject=pwrite64:retval=1000:when=1 --reflink=never --verify $command
		injected
		mentions "f: differs from the source at byte "
		holds old "$([ "${command: -1}" = e ] && echo e/s/f || echo d/f)"
		absent d/f~
	done
	# The bytes that --link-dest does not copy are not read.
	rm -rf s d e
	mkdir s
	random s/f 1000
	expect 0 -a s one
	traced 0 trace=read,pread64 -a --verify --link-dest=one s two
	never grep -E '/f>' trace
}

@test "-a replaces a symlink or a FIFO at once: its name never leads to nothing" {
	need_strace
	mkdir s d
	ln -s new s/l
	mkfifo s/p
	ln -s old d/l
	echo old >d/p
	traced 0 trace=unlink,unlinkat,renameat,renameat2 -aT -j1 s d
	in_trace 'rename.*"l"'
	in_trace 'rename.*"p"'
	never grep -E 'unlink.*"[lp]"' trace
	[ "$(readlink d/l)" = new ]
	[ -p d/p ]
}

@test "-u and --update=none of SRC itself: left as it is, by every name" {
	echo data >a
	ln a hard
	ln -s a soft
	local before option name
	before=$(stat -c '%i %h %s %y %z' a hard soft)
	for option in -u -n --update=none -pu -p\ --update=changed; do
		for name in a hard soft ./a; do
			# shellcheck disable=SC2086 # two words
			expect 0 $option a $name
			says ""
			[ "$(stat -c '%i %h %s %y %z' a hard soft)" = "$before" ] || { echo "$option $name"; return 1; }
		done
	done
	for name in a hard soft; do
		expect 1 --update=none-fail a $name
		expect 2 a $name
		[ "$(stat -c '%i %h %s %y %z' a hard soft)" = "$before" ]
	done
	holds data a
}

@test "-a with several SRC: each copy has the attributes of its SRC, and what is lost is a warning" {
	need rsync
	need_strace
	mkdir -p dir/sub o
	echo 1 | tee dir/sub/f >file
	mkfifo fifo
	chmod 640 file
	chmod 750 dir/sub
	chmod 600 fifo
	touch -h -d 2001-02-03 file fifo dir/sub/f dir/sub dir
	! is_root || chown 1234:4321 file dir/sub fifo
	expect 0 -a file fifo dir o
	says ""
	[ -z "$(rsync -aHAXni file fifo dir o/)" ]
	rm -r o
	mkdir o
	traced 0 inject=utimensat:error=EPERM -a file dir o
	injected
	mentions "warning: o/file: futimens: Operation not permitted" "warning: o/dir: "
}

# stopped_at SIGNAL ARG…: fcopy ARG… is stopped by SIGNAL after the first bytes of a file.
stopped_at() {
	local status=0
	env --default-signal=INT "$FCOPY" --limit-rate=200K "${@:2}" 2>err 3>&- &
	pid=$!
	await has_written
	kill -"$1" $pid
	wait $pid || status=$?
	[ $status = $((128 + $(kill -l "$1"))) ]
}

@test "a signal during a mirror and during -b: the old files stay, nothing is left, and the message says so" {
	mkdir s d
	random s/f 3000000
	echo old >d/f
	echo extra >d/extra
	stopped_at TERM -j1 --mirror s d
	grep -qE '^fcopy: stopped; d is incomplete' err || { cat err; return 1; }
	holds old d/f
	holds extra d/extra
	stopped_at INT -b s/f d/f
	grep -qE '^fcopy: stopped.*; d/f unchanged$' err || { cat err; return 1; }
	holds old d/f
	absent d/f~
	[ -z "$(find . -name '.fcopy-*' ! -name .fcopy-mirror)" ]
	expect 0 --mirror s d
	[ "$(ls -A d)" = f ]
}

@test "--inplace, -b and a stream: the report counts the bytes and the file, and a failure is none" {
	need jq
	need_strace
	random a 100000
	echo old >b
	expect 0 --json --inplace a b
	[ "$(jq -c '[.done, .bytes, .tree]' <<<"$output")" = '[true,100000,null]' ]
	expect 0 --json -b a b
	[ "$(jq -c '[.done, .bytes, .tree.files]' <<<"$output")" = '[true,100000,1]' ]
	run --separate-stderr bash -c 'cat a | "$0" --json - b' "$FCOPY"
	[ "$(jq -c '[.done, .bytes]' <<<"$output")" = '[true,100000]' ]
	for option in --inplace -b; do
		traced 1 inject=pwrite64:error=EIO -m readwrite --json $option a b
		injected
		[ "$(jq -c '.done' <<<"$output")" = false ]
	done
}

@test "--verify finds a difference in a share of a file and of a tree, which is not committed" {
	need_strace
	local what call=1 # strace counts the calls of each thread: one copies the tree
	mkdir s
	random s/f 1000000
	for what in "s/f d" "-j1 -r s d"; do
		rm -rf d d.fcopy-part
		# shellcheck disable=SC2086 # words
		traced 1 inject=pwrite64:retval=1000000:when=$call -m readwrite --buffer-size=1M --verify --shard=0/1 $what
		injected
		mentions "differs from the source at byte "
		absent d
		# shellcheck disable=SC2086
		expect 0 --verify --shard=0/1 $what
		cmp s/f "$([ -d d ] && echo d/f || echo d)"
		call=2 # after the one that says who lists the tree
	done
}

@test "-u with -b, --remove-destination, -l or -s: the time of a symlink in DST counts, not of its target, as with cp" {
	local option target by
	mkdir s
	echo new >s/f
	touch -d 2001-02-03 s/f
	for target in nowhere ../t; do
		for option in -b --remove-destination -l -s -asf; do
			for by in cp fcopy; do
				rm -rf $by
				mkdir $by
				echo older >t
				touch -d 2000-01-01 t
				ln -s $target $by/f
			done
			cp -u $option "$PWD/s/f" cp/f
			expect 0 --dry-run -u $option "$PWD/s/f" fcopy/f
			[ "$output" = "fcopy/f: exists, skipped" ]
			expect 0 -u $option "$PWD/s/f" fcopy/f
			diff <(cd cp && find . -printf '%p %y %l\n') <(cd fcopy && find . -printf '%p %y %l\n')
			holds older t
			expect 0 -ruP $option "$PWD/s/." fcopy
			[ "$(readlink fcopy/f)" = $target ]
			# An older symlink is replaced.
			touch -h -d 2000-01-01 cp/f fcopy/f
			cp -uf $option "$PWD/s/f" cp/f
			expect 0 -uf $option "$PWD/s/f" fcopy/f
			diff <(cd cp && find . -printf '%p %y %l\n') <(cd fcopy && find . -printf '%p %y %l\n')
			holds older t
		done
	done
}

@test "no symlink, FIFO or link takes the place of a directory, with any option; it keeps its name and what it holds" {
	local option before name
	echo f >file
	for option in -a -ab "-a --remove-destination" -au -aub "-au --remove-destination" "-ab -j1 --fsync" "-al -b" \
		"-as -b" "-al -u" "-as -u -f" "-a --backup=numbered --keep-going"; do
		rm -rf s d
		mkdir -p s d/{symlink,fifo,hard,file}{,-empty}
		for name in symlink fifo hard file; do
			echo "$name" | tee d/$name/mine >d/plain
		done
		ln -s x s/symlink
		ln -s x s/symlink-empty
		mkfifo s/fifo s/fifo-empty
		ln file s/hard
		ln file s/hard-empty
		echo f | tee s/file >s/file-empty
		find d -exec touch -d 2001-02-03 {} +
		before=$(find d -printf '%p %y %i\n' | sort)
		# shellcheck disable=SC2086 # words
		expect 1 $option -T "$PWD/s" d
		[ "$(find d -printf '%p %y %i\n' | sort)" = "$before" ] || { echo "$option"; find d; return 1; }
		for name in symlink fifo hard file; do
			holds $name d/$name/mine
			# shellcheck disable=SC2086
			expect 1 $option -P "$PWD/s/$name" d || [ "$status" = 2 ]
			[ "$(find d -printf '%p %y %i\n' | sort)" = "$before" ] || { echo "$option $name"; find d; return 1; }
		done
	done
}

@test "-u and -b: a stat that fails once leaves the old file or the new one, its backup, and no hidden name" {
	need_strace
	local n option status
	echo new >a
	for option in -u -b; do
		for n in {1..40}; do
			rm -f b b~
			echo old >b
			touch -d '1 hour ago' b
			status=0
			strace -f -qq -o trace -e trace="$STATS" -e inject="$STATS":error=EIO:when="$n" "$FCOPY" $option a b 2>err || status=$?
			grep -q INJECTED trace || break
			[ "$status" = 0 ] && holds new b || [ "$(cat b)" = old ] || [ "$(cat b)" = new ]
			[ $option = -u ] || [ "$(cat b)" = old ] || holds old b~
			[ -z "$(find . -name '.fcopy-*')" ] || { echo "$option $n: $(ls -A) $(cat err)"; return 1; }
		done
		[ "$n" -gt 5 ]
	done
}
