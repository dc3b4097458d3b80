#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --mirror and --delete: what must stay in DST, and in SRC.

load helper

# fill N: s has N files of 100,000 bytes, and d has older ones with the same names.
fill() {
	local i
	mkdir -p s d
	for ((i = 1; i <= $1; i++)); do
		random s/f$i 100000
		echo old >d/f$i
	done
	touch -d 2001-01-01 d/*
}

# begin ARG…: a slow mirror at work: it has copied a file.
begin() {
	"$FCOPY" -q --limit-rate=1M "$@" 2>"$T/err" &
	pid=$!

	await eval '[ -n "$(find "$T/d" -name "f*" -size +50k -print -quit)" ]'
}

ended() {
	status=0
	wait "$pid" || status=$?
	stderr=$(cat err) # for mentions
	export stderr
	demand "$1"
}

@test "SRC is replaced, linked elsewhere or removed during a mirror: nothing is removed from DST" {
	local how
	for how in replaced linked removed moved here; do
		rm -rf s s.* d
		fill 20
		mkdir s.new
		touch s.new/f{1..20}
		[ $how != linked ] || { mv s s.old; ln -s s.old s; }
		[ $how = here ] || begin --mirror s/ d
		case $how in
		replaced) mv s s.old && mv s.new s && rm -r s.old ;;
		linked) ln -sfn s.new s && rm -r s.old ;;
		removed) rm -r s ;;
		moved) mv s s.old ;;
		here)
			pushd s
			begin --mirror . ../d
			popd
			rm -r s
			;;
		esac
		ended 1
		[ "$(ls d | xargs)" = "$(printf 'f%d\n' {1..20} | sort | xargs)" ] || { ls d; cat err; return 1; }
	done
}

@test "a directory of SRC is replaced during a mirror: nothing is removed from its copy" {
	fill 20
	mkdir t e t.new
	mv s t/s
	mv d e/s
	mv e d
	touch d/extra
	mkdir t.new/s
	touch t.new/s/f{1..15}
	begin --mirror t d
	mv t/s gone
	mv t.new/s t/s
	rm -r gone
	ended 1
	[ "$(ls d/s | wc -l)" = 20 ]
	[ -f d/extra ]
	expect 0 --mirror t d
	diff -r t d
}

@test "a directory of SRC is removed during a mirror: so is its copy" {
	fill 20
	mkdir t e
	mv s t/s
	mv d e/s
	mv e d
	touch t/f
	begin --mirror t d
	rm -r t/s
	wait $pid || true
	expect 0 --mirror t d
	diff -r t d
}

@test "SRC is replaced while a copy is resumed: what is in the part stays, and gets no name" {
	fill 20
	rm -r d
	"$FCOPY" -q -aT --resume --limit-rate=1M s d &
	pid=$!
	await test -d d.fcopy-part
	await eval '[ "$(ls d.fcopy-part/data | wc -l)" -ge 5 ]'
	kill -KILL $pid
	wait $pid || true
	chmod 700 d.fcopy-part
	"$FCOPY" -q -aT --resume --limit-rate=1M s d 2>err &
	pid=$!
	sleep 0.3
	mkdir s.new
	mv s s.old
	mv s.new s
	rm -r s.old
	ended 1
	absent d
	[ "$(ls d.fcopy-part/data | wc -l)" -ge 5 ]
	rm -rf d.fcopy-part
}

@test "inode numbers that change keep nothing: what SRC lacks is removed" {
	mkdir -p s/sub backing/d/sub
	echo 1 >s/sub/1
	touch backing/d/sub/{x,y,z} backing/d/extra
	by_fuse 'renumber,attr_timeout=0' '"$FCOPY" --mirror s m/d && "$FCOPY" --mirror --json s m/d >json'
	[ "$(cd backing/d && find . | sort | xargs)" = '. ./sub ./sub/1' ]
}

@test "what another program puts in the place of an extra entry during the run stays, and the mirror fails" {
	mkdir -p s/sub d/sub
	random s/big 1000000
	echo 1 >s/sub/f
	echo old >d/sub/x
	echo 22 >new
	"$FCOPY" -q -j4 --mirror --limit-rate=700k s d 2>err &
	pid=$!
	await test -f d/sub/f
	sleep 0.4
	mv new d/sub/x
	ended 1
	mentions "d/sub/x: was replaced during the run: not removed"
	holds 22 d/sub/x
	expect 0 --mirror s d
	absent d/sub/x
}

@test "inode numbers that change, and a DST that ignores case: what may be a copy stays, and the mirror fails" {
	mkdir -p s backing/d
	echo 1 >s/Name
	touch backing/d/extra
	by_fuse 'renumber,caseless,entry_timeout=0,attr_timeout=0' '
		"$FCOPY" --mirror s m/d 2>err && exit 8
		grep -q "may be the copy of an entry with another name" err'
	holds 1 backing/d/name
	[ -f backing/d/extra ]
}

@test "every name has a different inode number, and DST ignores case: what got another case stays, and the mirror fails" {
	mkdir -p s/d backing
	echo 1 >s/name
	echo 2 >s/d/in
	echo 3 >s/other
	# shellcheck disable=SC2016
	by_fuse 'drawn,caseless,entry_timeout=0,attr_timeout=0,negative_timeout=0' '"$FCOPY" --mirror s m/t
		mv s/name s/NAME
		mv s/d s/D
		rm s/other
		for content in 1 longer; do
			echo $content >s/NAME
			for option in --dry-run -q; do
				"$FCOPY" --mirror $option s m/t 2>err && exit 8
				grep -q "may be the copy of an entry with another name" err
			done
			[ "$(cat backing/t/name)" = $content ]
			[ "$(cat backing/t/d/in)" = 2 ]
			[ -e backing/t/other ]
		done'
}

@test "two names of one entry that DST lists by a third one: it stays, and what SRC lacks is removed" {
	mkdir -p s backing
	echo 1 >s/name
	echo 2 >s/other
	# shellcheck disable=SC2016
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' '"$FCOPY" --mirror s m/t
		mv s/name s/NAme
		ln s/NAme s/naME
		rm s/other
		"$FCOPY" --mirror s m/t || [ $? = 1 ]
		[ "$(ls backing/t | grep -v fcopy)" = name ]'
	holds 1 backing/t/name
}

# cpu ARG…: the CPU milliseconds of fcopy ARG….
cpu() {
	local TIMEFORMAT='%3U %3S' times
	times=$({ time "$FCOPY" "$@" >/dev/null 2>err; } 2>&1) || { cat err; return 1; }
	awk '{ printf "%d\n", ($1 + $2) * 1000 }' <<<"$times"
}

@test "a mirror after all files have got other names takes time in proportion to their number" {
	local n how
	local -A took
	for n in 2500 5000; do
		mkdir s$n d$n
		(cd s$n && seq -f new-%g $n | xargs touch)
		(cd d$n && seq -f old-%g $n | xargs touch)
		took[dry$n]=$(cpu --mirror --dry-run s$n d$n)
		took[run$n]=$(cpu --mirror s$n d$n)
		[ "$(ls d$n | wc -l)" = $n ]
		absent d$n/old-1
	done
	for how in dry run; do
		echo "$how: ${took[${how}2500]} and ${took[${how}5000]} ms"
		[ "${took[${how}5000]}" -lt $((3 * ${took[${how}2500]} + 150)) ]
	done
}

@test "a time of a directory that cannot be set again after a removal is a warning" {
	local call nth status
	need_strace
	mkdir -p s/sub
	touch -d 2001-01-01 s/sub
	for call in utimensat fstat,newfstatat; do
		for ((nth = 1; nth < 80; nth++)); do
			rm -rf d
			mkdir -p d/sub
			: >d/sub/extra
			status=0
			timeout -s KILL "$HANG" strace -f --seccomp-bpf -qq -o trace -e trace=$call \
				-e inject=$call:error=EACCES:when=$nth "$FCOPY" -j1 --mirror s d 2>err || status=$?
			grep -q INJECTED trace || break
			[ $status != 0 ] || grep -q warning err || [ "$(stat -c %Y d/sub)" = "$(stat -c %Y s/sub)" ] || {
				echo "$call $nth: $(stat -c %y d/sub), and no message"
				return 1
			}
		done
		[ "$nth" -gt 1 ]
	done
}

@test "SRC inside DST, with an entry of its own name: nothing in SRC is changed" {
	local options
	for options in --mirror '-aT --delete' -aT '-rT -u' '--mirror --dry-run'; do
		rm -rf d
		mkdir -p d/s/s/deep
		echo 1 >d/s/f
		echo 22 >d/s/s/f
		echo 3 >d/s/s/g
		cp -a d/s before
		# shellcheck disable=SC2086
		expect 1 $options d/s d
		mentions 'd/s: is SRC itself: nothing in it is changed'
		diff -r before d/s
		[[ $options = *dry-run ]] || holds 1 d/f
		rm -r before
	done
}

@test "SRC, or a directory in it, is mounted in DST: nothing in SRC is changed" {
	local options
	for options in --mirror -aT '-aT --update=all'; do
		rm -rf s d
		mkdir -p s/x s/sub/x s/y/sub d/x d/sub d/y
		echo 1 >s/x/f
		echo 22 >s/sub/f
		echo 333 >s/f
		cp -a s before
		export FCOPY options
		# shellcheck disable=SC2016
		private_mounts 'mount --bind s d/x
			mount --bind s/y d/sub
			"$FCOPY" $options s d 2>err && exit 8
			umount d/x d/sub
			cat err >&2'
		demand 0
		mentions 'd/x: is SRC itself' 'd/sub: is a mount point of what is inside SRC'
		diff -r before s
		holds 333 d/f
		rm -r before
	done
}

@test "lost+found at the top of an ext file system is neither removed nor a failure" {
	need_root
	need mkfs.ext4
	export FCOPY NOBODY
	truncate -s 8M image image2
	mkfs.ext4 -q image
	mkfs.ext4 -q image2
	mkdir -p s m other
	echo 1 >s/f
	cp "$FCOPY" fcopy
	# shellcheck disable=SC2016
	private_mounts 'mount -o loop image m || exit 77
		mount -o loop image2 other
		touch m/extra m/lost+found/found
		mkdir -p m/sub/lost+found
		"$FCOPY" --mirror s m
		"$FCOPY" --mirror --max-delete=0 s m
		[ "$(cd m && find . | sort | xargs)" = ". ./f ./lost+found ./lost+found/found" ]
		# Both have one: what DST has found is not in SRC.
		touch other/lost+found/too
		"$FCOPY" --mirror --max-delete=9 other m
		[ "$(cd m && find . | sort | xargs)" = ". ./lost+found ./lost+found/found ./lost+found/too" ]
		# An ordinary user may not read it.
		chmod 777 m
		touch other/g
		$NOBODY ./fcopy --mirror other m 2>err
		grep -q "warning: other/lost+found: .*is not copied: only root can read it" err
		$NOBODY ./fcopy --mirror s m
		[ "$(cd m && find . | sort | xargs)" = ". ./f ./lost+found ./lost+found/found ./lost+found/too" ]'
	[ "$status" != 77 ] || skip "no loop devices"
	demand 0
}

@test "the first mirror is made as a whole without what could not be copied, and fails" {
	local options
	mkdir -p s/sub
	echo 1 >s/sub/f
	echo 2 >s/g
	for options in --mirror '-aT --delete'; do
		chmod 000 s/g
		chmod 777 .
		# shellcheck disable=SC2086
		as_nobody 1 $options s d
		mentions 's/g: open: Permission denied'
		holds 1 d/sub/f
		absent d/g
		absent d.fcopy-part
		chmod 644 s/g
		as_nobody 0 $options s d
		diff -r s d
		rm -r d
	done
	chmod 000 s/g
	as_nobody 1 -aT s d
	absent d
	chmod -R u+rwx d.fcopy-part
	rm -r d.fcopy-part
}

@test "DST inside SRC is accepted where a pattern excludes it, as a new tree and as a mirror" {
	local how
	for how in '--exclude=/copy copy' '--exclude=copy copy' '--exclude=/a/ a/b/copy' '--include=*.x --exclude=/a/b/copy/ a/b/copy'; do
		rm -rf s
		mkdir -p s/a/b s/sub
		echo 1 >s/f
		random s/big 300000
		echo 2 >s/sub/g
		# shellcheck disable=SC2086
		expect 0 --mirror ${how% *} s "s/${how##* }"
		holds 1 "s/${how##* }/f"
		[ "$(find "s/${how##* }" -name copy | wc -l)" = 1 ]
		[ -z "$(find s -name '.fcopy-*')" ]
		rm s/sub/g
		echo 33 >s/f
		for _ in 1 2; do
			# shellcheck disable=SC2086
			expect 0 --mirror ${how% *} s "s/${how##* }"
			holds 33 "s/${how##* }/f"
			absent "s/${how##* }/sub/g"
			[ "$(find "s/${how##* }" -name copy | wc -l)" = 1 ]
		done
		expect 2 --mirror s "s/${how##* }"
		mentions "is inside the source tree"
		expect 2 --mirror --exclude=/f s s/new
		absent s/new
	done
	# Killed, and resumed: the part is in SRC, too.
	rm -rf s
	mkdir s
	random s/big 3000000
	echo 1 >s/f
	"$FCOPY" -q -aT --resume --exclude=/copy --limit-rate=1M s s/copy 2>err &
	await test -d s/copy.fcopy-part
	sleep 0.2
	kill -KILL $!
	wait $! || true
	expect 0 -aT --resume --exclude=/copy s s/copy
	[ "$(ls -A s/copy | xargs)" = 'big f' ]
	[ "$(ls -A s | xargs)" = 'big copy f' ]
	cmp s/big s/copy/big
}

@test "a mirror by a user who may not set owners names them in its last line, once one differs" {
	need_root
	mkdir s own
	echo 1 >s/a
	echo 1 >own/a
	chown -R 12:34 s
	chown -R 65534:65534 own
	chmod -R a+rX . && chmod 777 .
	local from
	for from in s own; do
		# shellcheck disable=SC2086 # words
		$NOBODY "$FCOPY" --mirror $from m 2>err
		# shellcheck disable=SC2086
		$NOBODY "$FCOPY" --mirror $from m 2>again
		cat again
		if [ $from = s ]; then
			grep -q "^fcopy: 0 copied, 1 unchanged, 0 removed; not compared, .*you may not set them: owners$" again
		else
			grep -q "^fcopy: 0 copied, 1 unchanged, 0 removed$" again
		fi
	done
}

@test "a directory keeps its time where utimensat with one time has no effect, as with libfuse before 3.15" {
	mkdir -p backing s/d
	touch s/d/{1..3} s/d/new
	touch -d 2001-02-03 s/d
	by_fuse pairs '"$FCOPY" --mirror s m/t
		rm s/d/1
		touch -d 2002-03-04 s/d
		"$FCOPY" --mirror s m/t
		"$FCOPY" -rT s m/t'
	[ "$(stat -c %Y s/d)" = "$(stat -c %Y backing/t/d)" ]
	[ ! -e backing/t/d/1 ]
}
