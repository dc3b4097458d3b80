#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --resume: what is no part of this copy is refused, and stays as it was.

load helper

# refused REASON: of a copy of a to b.
refused() {
	expect 1 --resume a b
	says "fcopy: b: its .fcopy-part $1" "fcopy: hint: remove or rename b.fcopy-part"
}

@test "--resume refuses what it did not leave as a part, and does not change it" {
	random a 100000
	echo precious >b.fcopy-part
	refused "has no journal: an earlier version of fcopy, or another program, made it"
	holds precious b.fcopy-part
	rm b.fcopy-part
	mkdir b.fcopy-part
	chmod 750 b.fcopy-part
	refused "is open to other users"
	chmod 700 b.fcopy-part
	refused "has no journal: an earlier version of fcopy, or another program, made it"
	rmdir b.fcopy-part
	begin_part a b 64
	cp -p b.fcopy-part/journal journal
	chmod 620 b.fcopy-part/journal
	refused "has the journal of another part"
	chmod 600 b.fcopy-part/journal
	ln b.fcopy-part/journal other
	refused "has the journal of another part"
	rm other
	mv b.fcopy-part c.fcopy-part # the journal names b
	expect 1 --resume a c
	mentions "c: its .fcopy-part has the journal of another part"
	mv c.fcopy-part b.fcopy-part
	echo old >t
	ln -s t b
	mkdir t.fcopy-part
	expect 1 --resume a b
	mentions "hint: remove or rename $PWD/t.fcopy-part"
	rm -r b t t.fcopy-part
	if is_root; then
		chown 65534:65534 b.fcopy-part
		refused "belongs to another user"
		chown 0:0 b.fcopy-part
	fi
	expect 0 --resume a b
	says "fcopy: b: resuming at 64 of 98 KiB (65 %)"
	cmp a b
	absent b.fcopy-part
}

@test "--resume of a tree and of a file: the part of the other kind is refused" {
	random a 100000
	mkdir s
	touch s/f
	ln -s nowhere s/broken
	begin_part a b 64
	expect 1 -r --resume s b
	mentions "b: its .fcopy-part is the copy of a file"
	rm -r b.fcopy-part
	expect 1 -rL s b
	expect 1 --resume a b
	mentions "b: its .fcopy-part is the copy of a directory"
}

@test "--resume: what is refused before the first byte leaves the part as it was" {
	local option
	random a 300000
	begin_part a b 64
	cp b.fcopy-part/data data
	has_mode reflink || for option in --mode=reflink --reflink=always; do
		expect 1 --resume $option a b
		cmp data b.fcopy-part/data
	done
	random c 100000 # no clone has what the part of a longer file has left
	! has_mode reflink || for option in --mode=reflink --reflink=always; do
		rm -rf b b.fcopy-part
		begin_part a b 64
		expect 0 --resume $option a b
		cmp a b
		rm b
		begin_part a b 128
		expect 0 --resume $option c b
		cmp c b
	done
	rm -rf b b.fcopy-part
	# The size of the source is judged before anything is truncated.
	begin_part a b 200
	cp b.fcopy-part/data data
	expect 1 --resume --strict --size=100K a b
	says "fcopy: a: has more than 102400 bytes"
	cmp data b.fcopy-part/data
	expect 1 --resume --strict --count=150K c b
	says "fcopy: c: had 100000 bytes, not 153600"
	cmp data b.fcopy-part/data
	expect 0 --resume --size=300000 --strict a b
	mentions "resuming at 200 of 293 KiB"
	cmp a b
}

@test "--resume of a source without a known size: the message has no share of it" {
	local source=/proc/kallsyms
	[ "$(head -c 98304 $source | wc -c)" = 98304 ] || skip "no $source here"
	begin_part $source b 96
	expect 0 --resume $source b
	says "fcopy: b: resuming at 96 KiB"
	cmp $source b
}

@test "--resume: a planted symlink, hard link, FIFO or directory is neither followed nor written" {
	echo data >a
	echo secret >victim
	ln -s victim b.fcopy-part
	expect 1 --resume a b
	holds secret victim
	rm b.fcopy-part
	ln victim b.fcopy-part
	expect 1 --resume a b
	holds secret victim
	rm b.fcopy-part
	mkfifo b.fcopy-part
	expect 1 --resume a b
	rm b.fcopy-part
	mkdir b.fcopy-part
	expect 1 --resume a b
	absent b
}

@test "--resume and --verify of what is no file: the culprit is named, and nothing is made" {
	echo data >a
	mkfifo pipe
	local reason="cannot be resumed: SRC and DST must be paths of files"
	expect 2 --resume /dev/null b
	says "fcopy: /dev/null: $reason"
	expect 2 --resume a pipe
	says "fcopy: pipe: $reason"
	expect 2 --resume - b <a
	says "fcopy: -: $reason"
	expect 2 --verify a pipe
	says "fcopy: pipe: cannot be verified: only a file or a block device can be read back"
	expect 2 --verify - b splice <a
	mentions "fcopy: -: cannot be verified in this mode: a stream requires mode auto or readwrite"
	[ "$(ls)" = $'a\npipe' ]
}

@test "a FIFO in place of the journal of an unfinished copy holds up nobody" {
	random a 100000
	mkdir b.fcopy-part
	: >b.fcopy-part/data
	mkfifo b.fcopy-part/journal
	expect 0 -v a b
	cmp a b
}
