#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Reasons and hints for what people meet: a missing directory or device, another host, a full disk.

load helper

@test "a missing directory is named, with the command that creates it" {
	echo a >a
	mkdir usr
	expect 2 a usr/local/bin/
	mentions "hint: usr/local does not exist; create it: mkdir -p usr/local/bin"
	expect 2 a usr/local/f
	mentions "hint: usr/local does not exist; create it: mkdir -p usr/local"
	expect 2 a usr/x/
	says "fcopy: usr/x/: no such directory" "fcopy: hint: usr/x does not exist; create it: mkdir -p usr/x/"
	expect 2 -r a usr a/b/c
	mentions "a/b/c"
	[ -z "$(ls usr)" ]
}

@test "HOST:PORT without tcp: gets a hint, a name that only has a colon does not" {
	echo a >a
	expect 0 a localhost:7999
	says "fcopy: hint: localhost:7999 is a new file here; for a connection, write tcp:localhost:7999"
	expect 0 a localhost:7999
	expect 2 nothere:7999 b
	mentions "hint: for a connection, write tcp:nothere:7999"
	expect 0 a http:localhost:7999
	says "fcopy: hint: http:localhost:7999 is a new file here; to send to a URL, use curl -fT a http://localhost:7999/"
	expect 2 http:nothere:7999 b
	mentions "hint: to fetch a URL, use curl -OC - http://nothere:7999/"
	for name in 12:30 a:b name:0 x:70000 :8080; do
		expect 0 a "$name"
		[ -z "$stderr" ]
	done
}

@test "a connection that is refused: the other side must be started first" {
	echo a >a
	local start="nothing listens at this port: start the other side first, with"
	expect 1 a tcp:127.0.0.1:1
	says "fcopy: tcp:127.0.0.1:1: connect: Connection refused" "fcopy: hint: $start tcp-listen:1"
	expect 1 tcp:127.0.0.1:1 b
	mentions "$start tcp-listen:1"
	absent b
	expect 1 a tcp:0.0.0.0:1
	mentions "$start tcp-listen:0.0.0.0:1"
}

@test "a directory to a stream: no hint to use -r, which would be refused, too" {
	local dst
	mkdir d
	for dst in tcp:127.0.0.1:1 - tcp-listen:0; do
		expect 2 d $dst
		says "fcopy: d: is a directory"
		expect 2 -r d $dst
	done
	expect 2 d new
	says "fcopy: d: is a directory" "fcopy: hint: use -r to copy directories"
}

@test "-b takes no CONTROL without =: a hint says so, unless a file has that name" {
	local i
	echo a >a
	mkdir d
	for i in 1 2; do
		expect 1 -b numbered a d # as cp: a was copied
		says "fcopy: numbered: stat: No such file or directory" \
			"fcopy: hint: use --backup=numbered: numbered is a SRC here"
	done
	expect 2 --backup t a new
	says "fcopy: new: no such directory for several SRC" "fcopy: hint: use --backup=t: t is a SRC here"
	expect 2 -b never new
	mentions "use --backup=never"
	expect 1 --backup=simple numbered a d
	says "fcopy: numbered: stat: No such file or directory"
	expect 1 -b other a d
	says "fcopy: other: stat: No such file or directory"
	touch never
	expect 1 -u older -b never a d # a file has one of the two names
	says "fcopy: older: stat: No such file or directory" \
		"fcopy: hint: use --update=older: older is a SRC here"
	absent new
	echo b >numbered
	expect 0 -b numbered a d
	holds b d/numbered
	expect 0 -b numbered new
	holds b new
}

@test "another host or a URL is refused, unless a file has that name" {
	echo a >a
	local dst
	for dst in user@host:/x user@host:x https://example.org/x; do
		expect 2 a "$dst"
		says "fcopy: $dst: fcopy copies local files, and tcp:HOST:PORT; a file of this name needs ./ in front"
		expect 2 -r "$dst" b
	done
	expect 2 https://example.org/x b
	says "fcopy: https://example.org/x: fcopy fetches no URL: use curl -OC - URL; a file of this name needs ./ in front"
	# A name with a colon may be a file, but no directory is to be created for what rsync would reach.
	for dst in host:/x nas-1.lan:/x/y; do
		expect 2 a "$dst"
		says "fcopy: $dst: open of its directory: No such file or directory" \
			"fcopy: hint: fcopy copies local files: for another host, use rsync or ssh, or tcp:HOST:PORT"
		expect 2 "$dst" b
		mentions "hint: fcopy copies local files"
		expect 2 -t "$dst" a
		mentions "hint: fcopy copies local files"
		expect 2 -a . "$dst"
		mentions "hint: fcopy copies local files"
	done
	mkdir host:
	expect 2 a host:/x/y
	mentions "hint: host:/x does not exist; create it: mkdir -p host:/x"
	rmdir host:
	expect 0 a ./user@host:x
	expect 0 user@host:x b
	holds a b
	[ "$(ls)" = $'a\nb\nuser@host:x' ]
}

@test "a device that is not there: no regular file is created in /dev without -f" {
	need_root "to write to /dev"
	[ ! -e /dev/fcopy-absent ] || skip "/dev/fcopy-absent exists"
	echo a >a
	local option
	for option in -v -a "--remove-destination"; do
		expect 2 $option a /dev/fcopy-absent
		mentions "no such device" "use -f"
		absent /dev/fcopy-absent
	done
	mkdir d
	mv a d/fcopy-absent
	expect 2 d/fcopy-absent /dev
	absent /dev/fcopy-absent
	expect 0 -f d/fcopy-absent /dev
	rm /dev/fcopy-absent
}

@test "a file that is not writable, in a directory that is not: no hint at -f" {
	mkdir d
	echo old >d/f
	echo new >a
	chmod 444 d/f
	chmod 555 d
	as_nobody 1 a d/f
	says "fcopy: d/f: is not writable by you, and neither is its directory"
	chmod 755 d
	holds old d/f
}

@test "a full file system: the message says whether inodes are what is missing" {
	need_root "to mount a tmpfs"
	mkdir m
	random a 5000
	private_mounts 'mount -t tmpfs -o nr_inodes=20,size=1M none m
		(cd m && i=0 && while : >$i; do i=$((i + 1)); done 2>/dev/null) || true
		"$FCOPY" a m/new 2>err && exit 9 || echo "$?"
		rm m/1 m/2
		"$FCOPY" a m/new && cmp a m/new
		umount m
		mount -t tmpfs -o size=100M none m
		head -c 120M /dev/zero | "$FCOPY" - m/new 2>stream && exit 9
		head -c 30M /dev/zero >m/used
		truncate -s 80M large
		"$FCOPY" --resume --preallocate=always large m/new 2>allocated && exit 9
		umount m'
	demand 0
	[ "${lines[0]}" = 1 ]
	grep -q "No space left on device" err
	grep -q "hint: no inodes are left" err
	# Space that the copy has freed by now is no reason to think of anything else.
	grep -q "No space left on device" stream
	never grep hint stream
	[ "$(grep hint allocated)" = "fcopy: hint: make 80 MiB free, then run the same command again" ]
}

@test "a link to one file fails: no hint at an option for trees" {
	mkdir a b
	touch a/f
	expect 2 -s a/f b/q
	never grep 'keep-going' <<<"$output"
	expect 1 -rsT a b/r
	mentions "or commit without the failed entries: --keep-going"
}

@test "an optional value that is typed with a space gets the hint that it needs a =" {
	local option value
	echo a >a
	echo old >old
	mkdir d
	while read -r option value; do
		expect 2 "$option" "$value" a b
		says "fcopy: b: no such directory for several SRC" "fcopy: hint: use $option=$value: $value is a SRC here"
		expect 1 "$option" "$value" a d
		mentions "hint: use $option=$value: $value is a SRC here"
		expect 2 "$option" "$value" b
		mentions "hint: use $option=$value: $value is a SRC here"
		expect 2 "$option" "$value" a old
		says "fcopy: old: is not a directory, which several SRC need" \
			"fcopy: hint: use $option=$value: $value is a SRC here"
		holds old old
	done <<-END
		--update older
		--update none-fail
		--preserve mode
		--preserve mode,xattr
		--inplace auto
		--reflink never
		--backup numbered
	END
	for option in -u:older:update -b:t:backup -p:all:preserve; do
		IFS=: read -r option value LONG <<<"$option"
		expect 2 "$option" "$value" a b
		mentions "hint: use --$LONG=$value: $value is a SRC here"
	done
	# The value may come last.
	expect 2 a b --update older
	says "fcopy: older: no such directory for several SRC" "fcopy: hint: use --update=older: older is DST here"
	expect 2 a b -vu older
	mentions "hint: use --update=older: older is DST here"
	absent older
	# Without another DST, it is DST, and the copy succeeds.
	for option in "--update older" "-u older" "-r --update older" "--dry-run --update older"; do
		rm -f older
		# shellcheck disable=SC2086
		expect 0 a $option
		mentions "fcopy: hint: use --update=older: older is DST here"
		rm -f older
		# shellcheck disable=SC2086
		expect 0 -q a $option
		says ""
	done
	expect 0 a --json report.json
	says "fcopy: hint: use --json=report.json: report.json is DST here"
	# What exists is a SRC, and another word is no value.
	echo x >older
	expect 0 a --update older
	says ""
	expect 0 a --update odd
	says ""
	rm odd
	echo x >older
	expect 0 --update older a d
	expect 2 --update odd a b
	never grep -q 'use --update' <<<"$stderr"
}

@test "rsync's words: what they would do here is refused, and what to use instead is true" {
	mkdir s
	echo a >s/f
	local letters
	for letters in -rlptgoD -avrlptgoD; do
		usage_error "$letters: an option of rsync, which is -a here; -t takes a directory" $letters s d
	done
	usage_error "-z: an option of rsync; leave it out: fcopy does not compress" -avz s d
	usage_error "-V: an option of rsync; use --version" -V
	usage_error "--append-verify: an option of rsync; use --resume" --append-verify s d
	usage_error "--filter=- *.o: an option of rsync; use --include and --exclude" -a "--filter=- *.o" s d
	usage_error "--from0: an option of rsync; use -0" -a --from0 --files-from=list s d
	usage_error "--remove-source-files: an option of rsync; leave it out: copy with --verify, then use rm" --remove-source-files -a s d
	usage_error "--chmod=700: an option of rsync; leave it out: fcopy keeps modes or uses your umask; see chmod(1)" --chmod=700 -a s d
	usage_error "--mkpath: an option of rsync; leave it out: create the directory first, with mkdir -p" --mkpath -a s d
	absent d
	# A directory of that name is one.
	mkdir goD
	expect 0 -rtgoD s
	holds a goD/s/f
}

@test "-h, --help, --version and --list stand alone: with anything else they fail, and nothing is copied" {
	local option
	echo a >a
	expect 2 -avh a b
	says "fcopy: -h: prints the help, and stands alone: leave it out (sizes always have units, as with -h of rsync)"
	for option in --help --version --list; do
		usage_error "$option: stands alone: leave out everything else" $option a b
		expect 2 -v $option
		expect 0 $option
		[ -z "$stderr" ]
	done
	expect 0 --list --json
	absent b
	# cp prints them whatever follows.
	ln -s "$FCOPY" cp
	./cp --help a b | grep -q '^Usage:'
}

@test "--json FILE with a space, and an earlier report: it replaces no other file" {
	echo a >a
	echo disk >disk
	"$FCOPY" --json a b >report.json
	expect 2 --json report.json disk
	says "fcopy: --json: report.json is an earlier report and would replace disk: use --json=report.json, or -f to copy it"
	holds disk disk
	expect 2 --json new.json disk
	mentions "hint: use --json=new.json"
	holds disk disk
	expect 0 --json report.json other
	cmp report.json other
	expect 0 --json a disk
	holds a disk
	expect 0 --json -f report.json disk
	cmp report.json disk
	# As DST, as one of several SRC, and with a directory.
	mkdir d s
	echo disk >disk
	cp report.json before
	expect 2 disk --json report.json
	says "fcopy: --json: report.json is an earlier report, and DST: use --json=report.json, or -f to replace it"
	expect 2 disk other --json report.json
	cmp report.json before
	expect 2 -r --json report.json s d
	says "fcopy: --json: report.json is an earlier report, and a SRC: use --json=report.json, or -f to copy it"
	expect 2 --json report.json s
	says "fcopy: --json: report.json is an earlier report and would go into s: use --json=report.json, or -f to copy it"
	[ -z "$(find d s -type f)" ]
	# A report that is not the word after --json is a SRC like any other.
	expect 0 report.json d --json
	cmp report.json d/report.json
}

@test "after a signal, the command that keeps an unfinished copy is one that is accepted" {
	mkdir 'my photos' usb
	random 'my photos/x' 8000000
	run --separate-stderr timeout -s INT 1 "$FCOPY" -a --limit-rate=4M 'my photos' usb/
	mentions "usb/my photos not created" "hint: to keep an unfinished copy: fcopy -a --limit-rate=4M --resume -t usb/ 'my photos'"
	local command=${stderr##*unfinished copy: fcopy }
	eval "run --separate-stderr timeout -s INT 1 \"\$FCOPY\" $command"
	[ -d 'usb/my photos.fcopy-part' ]
	eval "\"\$FCOPY\" ${command/4M/4G}"
	diff -r 'my photos' 'usb/my photos'
	# What goes to DST itself needs --resume alone.
	run --separate-stderr timeout -s INT 1 "$FCOPY" -aT --limit-rate=4M 'my photos' new
	mentions "hint: use --resume to keep an unfinished copy"
}

# no_resume: nothing on stderr offers to continue.
no_resume() {
	[[ $stderr != *--resume* && $stderr != *again* ]] || { echo "$stderr"; return 1; }
}

@test "no hint at --resume where another attempt would fail in the same way: a file is too large" {
	mkdir m
	private_mounts 'mount -t tmpfs -o size=1m none m; truncate -s 3M zeros; "$FCOPY" --sparse=never zeros m/b'
	demand 1
	mentions "hint: the copy does not fit: the file system has 1.0 MiB in all"
	no_resume
	private_mounts 'mount -t tmpfs -o size=1m none m; "$FCOPY" --sparse=never --resume zeros m/b'
	demand 1
	mentions "; kept as m/b.fcopy-part" "hint: to remove the unfinished copy: rm -r m/b.fcopy-part"
	no_resume
	# One that is only full may have room later.
	private_mounts 'mount -t tmpfs -o size=4m none m; head -c 2M /dev/zero >m/x; "$FCOPY" --sparse=never zeros m/b'
	demand 1
	mentions "hint: use --resume to keep an unfinished copy"
}

@test "... or larger than a file may be, alone, in a tree and as a share: the message has the limit" {
	random a 3000000
	mkdir s
	cp a s
	echo b >s/b
	run --separate-stderr bash -c 'ulimit -f 1000; "$FCOPY" a b'
	demand 1
	says "fcopy: b: pwrite: File too large: 1.0 MiB is the limit of this process (ulimit -f)"
	run --separate-stderr bash -c 'ulimit -f 1000; "$FCOPY" --resume a b'
	demand 1
	mentions "hint: to remove the unfinished copy: rm -r b.fcopy-part"
	no_resume
	eval "${stderr##*unfinished copy: }"
	[ ! -e b.fcopy-part ]
	run --separate-stderr bash -c 'ulimit -f 1000; "$FCOPY" -a s t'
	demand 1
	mentions "fcopy: t/a: pwrite: File too large: 1.0 MiB is the limit" \
		"hint: to commit without the failed entries, run the command again with --resume --keep-going"
	run --separate-stderr bash -c 'ulimit -f 1000; "$FCOPY" -a --resume --keep-going s t'
	demand 1
	holds b t/b
	run --separate-stderr bash -c 'ulimit -f 1000; "$FCOPY" -T --shard=0/1 a shared'
	demand 1
	mentions "fcopy: hint: to give up, remove shared.fcopy-part while no shard runs"
	no_resume
}

@test "... or an attribute is refused: the hint is to leave it out" {
	need_root
	random a 102400
	chmod 644 a
	mkdir -m 777 d
	as_nobody 1 --resume --preserve=ownership a d/b
	says "fcopy: d/b: fchown: Operation not permitted" "fcopy: stopped at 100 of 100 KiB; d/b not created; kept as d/b.fcopy-part" \
		"fcopy: hint: to copy without that attribute, leave it out of --preserve" \
		"fcopy: hint: to remove the unfinished copy: rm -r d/b.fcopy-part"
	as_nobody 0 --resume a d/b
	cmp a d/b
	[ ! -e d/b.fcopy-part ]
	mkdir s
	cp a s
	as_nobody 1 -r --preserve=ownership s d/s
	mentions "hint: to commit without the failed entries, run the command again with --resume --keep-going"
	as_nobody 1 -r --resume --keep-going --preserve=ownership s d/s
	mentions "d/s: committed despite"
	as_nobody 1 -T --shard=0/1 --preserve=ownership a d/c
	mentions "fcopy: hint: to give up, remove d/c.fcopy-part while no shard runs"
	no_resume
}

# follows ARG…: the command fails, and its hint is "use OPTION …", or "leave out OPTION", or both. With that it is no
# usage error. UNDER: before the program.
follows() {
	local command=() word add drop
	# shellcheck disable=SC2086
	run --separate-stderr $UNDER ./fcopy "$@"
	[ "$status" != 0 ] || { echo "no failure: $*"; return 1; }
	add=$(sed -nE 's/^fcopy: hint: use (--?[a-z=-]+).*/\1/p' <<<"$stderr")
	drop=$(sed -nE 's/^fcopy: hint: .*leave out (--[a-z-]+).*/\1/p' <<<"$stderr")
	[ -n "$add$drop" ] || { echo "no hint: $* $stderr"; return 1; }
	for word; do
		[[ -n $drop && $word == "$drop"* ]] || command+=("$word")
	done
	# shellcheck disable=SC2086
	run --separate-stderr $UNDER ./fcopy $add "${command[@]}"
	[ "$status" != 2 ] || { echo "refused: $add ${command[*]}: $stderr"; return 1; }
}

@test "what a hint proposes is accepted together with the other options" {
	local UNDER='' option
	install -m 755 "$FCOPY" fcopy
	mkdir dir full
	echo a >a
	# They exclude -r.
	follows dir new
	rm -r new
	for option in --count=1 --size=1; do
		follows $option dir new
		[ -d new ]
		rm -r new
	done
	# The old file has another name.
	echo b >b
	ln b c
	follows a b
	holds a c
	rm b c
	echo b >b
	ln b c
	follows --resume a b
	holds a b
	holds b c
	# No new file can be made next to it; --resume excludes --inplace.
	! is_root || UNDER=$NOBODY
	for option in --progress --resume; do
		echo old >full/b
		chmod 666 full/b
		chmod 555 full
		follows $option a full/b
		holds a full/b
		chmod 755 full
	done
}
