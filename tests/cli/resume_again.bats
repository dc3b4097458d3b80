#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The same command with --resume after an earlier run has completed some of its copies, or all.

load helper

# moved: bytes that the last command with --json moved.
moved() {
	sed -n 's/.*"moved": \([0-9]*\).*/\1/p' <<<"$output" | head -n 1
}

@test "--resume: a complete file is not written again, and gets the attributes that are asked for" {
	random a 300000
	touch -d 2001-02-03 a
	expect 0 --resume a b
	inode=$(stat -c %i b)
	expect 0 --resume --json a b
	[ "$(moved)" = 0 ]
	expect 0 -p --resume --fsync a b
	[ "$(stat -c %i b)" = "$inode" ]
	[ "$(stat -c %Y b)" = "$(stat -c %Y a)" ]
	cmp a b
}

@test "--resume: a file of the same size with other bytes, or with other names, is replaced" {
	random a 300000
	random b 300000
	ln b other
	cp b old
	expect 2 --resume a b
	mentions "other hard links"
	rm other
	expect 0 --resume a b
	cmp a b
	expect 0 -f --resume a b
	ln b other
	expect 2 -p --resume a b
	mentions "other hard links"
}

@test "--resume: several SRC: complete files and trees are not copied again" {
	mkdir -p t/d o
	random f1 200000
	random t/d/x 100000
	random f2 150000
	expect 0 -a --resume f1 t o
	random t/d/new 7000
	chmod 750 t/d
	expect 0 -a --resume --json f1 t f2 o
	[ "$(moved)" = 157000 ]
	cmp f1 o/f1
	cmp f2 o/f2
	diff -r t o/t
	[ "$(stat -c %a o/t/d)" = 750 ]
	expect 0 -a --resume --json -t o f1 t f2
	[ "$(moved)" = 0 ]
	[ "$(ls o)" = $'f1\nf2\nt' ]
}

@test "--resume --fsync: what is complete is compared on the storage and flushed, with its name" {
	need_strace
	random a 100000
	random c 1000
	mkdir d
	"$FCOPY" --resume a c d
	traced 0 trace=openat,fsync,syncfs --resume --fsync a d/a
	order 'O_DIRECT\|' 'fsync\(' 'O_DIRECTORY' 'fsync\('
	traced 0 trace=openat,fsync,syncfs --resume --fsync a c d
	order 'O_DIRECT\|' 'fsync\(' 'O_DIRECT\|' 'fsync\(' 'syncfs\('
	run strace -f -qq -o /dev/null -e trace=fsync -e inject=fsync:error=EIO:when=2 "$FCOPY" --resume --fsync a d/a
	demand 1
	run strace -f -qq -o /dev/null -e trace=fsync -e inject=fsync:error=EIO "$FCOPY" --resume --fsync a c d
	demand 1
}

@test "-a --resume SRC DST: the same command again does not make DST/SRC" {
	mkdir -p s/sub
	random s/sub/a 10000
	expect 0 -a --resume s d
	expect 0 -a --resume s d
	diff -r s d
	chmod 750 d/sub/a
	expect 2 -a --resume s d
	says "fcopy: d: exists and is not the complete copy" \
		"fcopy: hint: to copy into the directory: fcopy -a --resume -t d s"
	chmod 644 d/sub/a
	expect 0 -a --resume -t d s
	diff -r s d/s
	# A part in DST shows that the copy goes on there.
	mkdir into
	echo x >list
	expect 1 -a --files-from=list s into
	mentions "into/s.fcopy-part: kept, unfinished"
	touch s/x
	expect 0 -a --resume --files-from=list s into
	[ "$(cd into && find . | sort | xargs)" = '. ./s ./s/x' ]
}

@test "-a --resume: a complete copy whose hard links are files of their own: a warning; a missing link: refused" {
	mkdir s
	random s/a 10000
	ln s/a s/b
	ln s/a s/c
	expect 0 -a --resume s d
	expect 0 -aT --resume s d
	says
	rm d/c
	cp -p d/a d/c
	touch -r s d
	expect 0 -aT --resume s d
	says "fcopy: warning: d: is the complete copy, but lacks hard links of SRC: files there are equal"
	expect 0 -aT --resume --dry-run s d
	mentions "lacks hard links"
	rm d/b
	cp -p d/a d/b
	touch -r s d
	expect 0 -aT --resume s d
	says "fcopy: warning: d: is the complete copy, but lacks hard links of SRC: files there are equal"
	expect 0 -rT --resume s d # -r asks for no links
	says
	rm d/b
	touch -r s d
	expect 2 -aT --resume s d
	absent d/b
	expect 0 -aT s d
	[ d/a -ef d/b ]
	[ d/a -ef d/c ]
	expect 0 -aT --resume s d
	says
}

@test "--resume: names of up to 255 bytes, for a file and for a tree" {
	local n name
	need_strace
	random s 200000
	mkdir t
	random t/a 1000
	for n in 243 244 255; do
		name=$(printf "%0${n}d" 7)
		traced 1 inject=pwrite64,write,copy_file_range:error=EIO --resume s "$name" 1
		injected
		expect 0 --resume s "$name"
		cmp s "$name"
		rm "$name"
		ln -s nowhere t/b
		expect 1 -rL --resume t "$name"
		rm t/b
		expect 0 -rL --resume t "$name"
		diff -r t "$name"
		rm -r "$name"
	done
	rm -f trace
	[ "$(ls)" = $'s\nt' ]
}

@test "--dry-run --resume: a tree that exists and is not the complete copy is refused as by the copy itself" {
	local options
	mkdir s d
	echo x >s/f
	for options in '' -T --fsync; do
		# shellcheck disable=SC2086
		expect 2 -r --resume $options --dry-run s d
		mentions "d: exists and is not the complete copy"
		[ -z "$output" ]
	done
	expect 0 -r --resume s new
	expect 0 -r --resume --dry-run s new
	mentions "dry run: 0 would be copied, 1 unchanged"
	expect 0 -r --resume --dry-run -t d s
	says "fcopy: dry run: 1 would be copied"
	[ -z "$(ls -A d)" ]
}

@test "--resume and --checksum: a file of procfs with the size 0 is not equal to an empty one" {
	[ -s /dev/null ] || [ "$(stat -c %s /proc/version)" = 0 ] || skip "/proc/version has a size"
	: >d
	expect 0 --resume /proc/version d
	diff /proc/version d
	mkdir m
	: >m/poolsize
	expect 0 -rT --update=changed --checksum /proc/sys/kernel/random m
	[ -s m/poolsize ]
	: >e
	: >f
	expect 0 --resume e f
}

@test "--resume: after a restart of the machine, what was not flushed is compared" {
	need_root
	random a 6000000
	sleep 2.1 # a change just before the copy could be repeated without a change of the times
	echo 01234567-89ab-cdef-0123-456789abcdef >boot
	export FCOPY
	# In one namespace, so that the mount has the same number.
	private_mounts '"$FCOPY" --resume --limit-rate=3M a b 2>err &
		for i in {1..300}; do ! grep -q " done 0 2097152$" b.fcopy-part/journal 2>err || break; sleep 0.1; done
		kill -KILL $!
		wait $! || true
		grep -q " run $(cat /proc/sys/kernel/random/boot_id) " b.fcopy-part/journal
		[ "$(stat -c %a b.fcopy-part/data)" = 600 ]
		printf lost | dd of=b.fcopy-part/data bs=1 seek=10000 conv=notrunc status=none
		mount --bind boot /proc/sys/kernel/random/boot_id || exit 9
		"$FCOPY" --resume a b 2>err'
	[ "$status" != 9 ] || skip "no other boot_id"
	demand 0
	cmp a b
}

@test "--resume: a flushed file is replaced only by a link to a flushed file" {
	need_strace
	export FCOPY
	# tmpfs lists the newest name first.
	# shellcheck disable=SC2016
	private_mounts 'mkdir m && mount -t tmpfs tmpfs m && cd m && mkdir s s/a s/b s/last
		head -c 30000 /dev/zero >s/a/f
		head -c 3000000 /dev/zero >s/last/f
		ln s/a/f s/b/f
		"$FCOPY" -a -j1 --resume --limit-rate=1M s d 2>err &
		for i in {1..300}; do ! grep -aqs "[ab]/f$" d.fcopy-part/journal || break; sleep 0.05; done
		kill -TERM $!
		wait $! || :
		first=$(grep -ao "[ab]/f$" d.fcopy-part/journal)
		grep -q " flushed$" d.fcopy-part/journal
		for dir in ${first%/f} last; do mv s/$dir s/other && mv s/other s/$dir; done
		strace -f -y -o trace -e trace=fsync,linkat "$FCOPY" -a -j1 --resume s d
		grep -nE "fsync.*/data/[ab]/f>\) = 0" trace || { echo "the other name came first again: $first" && cat trace; exit 1; }
		grep -A1 "fsync(" trace | grep -q "linkat.*/${first%/f}>, .f., 0) = 0"
		diff -r s d'
	demand 0
}
