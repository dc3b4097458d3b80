#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --update, -i and -b look at DST before the copy. What gets the name during the copy is replaced only
# if they would have allowed that, too.

load helper

# appears WANT ARG…: d/x is made while fcopy ARG… waits in the call that writes, links or makes it.
# CALL: that call, and which one of them.
appears() {
	local want=$1
	shift
	rm -rf d
	mkdir d
	strace -D -f -qq -o trace -e "inject=${CALL:-pwrite64:when=1}:delay_enter=700000" "$FCOPY" -q "$@" \
		2>err </dev/null &
	pid=$!
	await in_delay
	echo precious >n
	touch -d 2035-01-01 n
	ln n d/x || { echo "$*: d/x is there too early"; wait $pid; return 1; }
	status=0
	wait $pid || status=$?
	[[ " $* " != *" -i "* ]] || want=1 # the answer is no
	[ "$status" = "$want" ] || { echo "$*: exit $status, not $want: $(cat err)"; return 1; }
	grep -D skip -qx precious d/* || { echo "$*: lost: $(ls -l d)"; return 1; }
}

# The call that is delayed is not yet in the trace; what comes before it is.
in_delay() {
	sleep 0.3
	[ -s trace ]
}

@test "a file that appears during the copy: --update and -i leave it, -b keeps it as a backup" {
	need_strace
	random s 100000
	touch -d 2001-01-01 s
	mkdir t
	cp -p s t/x
	local options
	for options in --update=none -u -i; do
		appears 0 $options -m 1 s d/x
		holds precious d/x
		appears 0 -rT $options -m 1 t d
		holds precious d/x
	done
	for options in "-m 1 s d/x" "-rT -m 1 t d"; do
		# shellcheck disable=SC2086
		appears 1 --update=none-fail $options
		holds precious d/x
		grep -q "exists, and is not replaced" err
	done
	for options in -b --backup=numbered "-b -S.old"; do
		# shellcheck disable=SC2086
		appears 0 $options -m 1 s d/x
		cmp s d/x
		[ "$(ls -A d | wc -l)" = 2 ]
	done
}

@test "the same for symlinks, FIFOs, hard links and links to SRC" {
	need_strace
	mkdir t l
	ln -s nowhere t/x
	echo 1 >l/a
	ln l/a l/x
	touch -h -d 2001-01-01 t/x l/a
	mkfifo f
	touch -d 2001-01-01 f
	local option
	for option in --update=none -u -i; do
		CALL=symlinkat appears 0 -aT $option t d
		holds precious d/x
		CALL=mknodat appears 0 -rT $option f d/x
		holds precious d/x
		CALL=linkat:when=1 appears 0 -rT -l $option l/a d/x
		holds precious d/x
		CALL=symlinkat appears 0 -T -s $option "$T/l/a" d/x
		holds precious d/x
	done
	CALL=symlinkat appears 0 -aT -b t d
	[ "$(readlink d/x)" = nowhere ] && holds precious d/x~
	CALL=mknodat appears 0 -rT -b f d/x
	[ -p d/x ] && holds precious d/x~
	CALL=linkat:when=1 appears 0 -T -l -b l/a d/x
	[ d/x -ef l/a ] && holds precious d/x~
	CALL=symlinkat appears 0 -T -s -b "$T/l/a" d/x
	[ d/x -ef l/a ] && holds precious d/x~
}

@test "-u and -b: DST is replaced during the copy by another file" {
	need_strace
	random s 100000
	local options
	for options in -u -b --backup=numbered; do
		rm -rf d
		mkdir d
		echo old >d/x
		touch -d 2001-01-01 d/x
		strace -D -f -qq -o trace -e inject=pwrite64:delay_enter=700000:when=1 "$FCOPY" $options -m 1 s d/x &
		pid=$!
		await in_delay
		echo precious >n
		touch -d 2035-01-01 n
		mv n d/x
		wait $pid
		grep -qx precious d/*
		[ "$options" = -u ] || cmp s d/x
	done
}

@test "numbered backups: of four copies at once, each content is there at the end" {
	local i round
	for i in 1 2 3 4; do random s$i 200000; done
	for round in $(seq 25); do
		rm -rf d
		mkdir d
		echo first >d/x
		for i in 1 2 3 4; do "$FCOPY" --backup=numbered s$i d/x & done
		wait
		for i in 1 2 3 4; do
			local found=
			for g in d/x*; do ! cmp -s s$i "$g" || found=1; done
			[ $found ] || { echo "round $round: s$i is lost: $(ls -l d)"; return 1; }
		done
		grep -qx first d/x.~*
	done
}

@test "--update=none-fail: of four copies at once, exactly one has exit status 0" {
	local i round n
	for i in 1 2 3 4; do random s$i 300000; done
	for round in $(seq 15); do
		rm -rf d
		mkdir d
		n=0
		local pids=()
		for i in 1 2 3 4; do "$FCOPY" -q --update=none-fail s$i d/x 2>/dev/null & pids+=($!); done
		for i in "${pids[@]}"; do ! wait "$i" || n=$((n + 1)); done
		[ $n = 1 ] || { echo "round $round: $n of 4"; return 1; }
	done
}

@test "--inplace makes a new tree under its name: what another process makes in it is no copy" {
	need_strace
	mkdir -p s/sub
	echo 1 >s/sub/f
	random s/big 100000
	random s/big2 100000
	ln -s big s/link
	strace -D -f -qq -o trace -e inject=pwrite64:delay_enter=700000:when=1 "$FCOPY" -a -j1 -m 1 --inplace \
		s d 2>err &
	pid=$!
	await test -d d
	await in_delay
	mkdir -p d/sub
	local name
	for name in big big2 link; do
		# Those that are not made yet.
		(set -C; echo theirs >d/$name) 2>/dev/null || true
	done
	status=0
	wait $pid || status=$?
	if [ "$(grep -lx theirs d/big d/big2 d/link 2>/dev/null | wc -l)" = 0 ]; then
		diff -r s d
	else
		[ "$status" = 1 ]
		grep -q "was made by another process during the copy: not replaced" err
	fi
	holds 1 d/sub/f
}

@test "a mkdir, symlink or mkfifo that NFS answers with EEXIST, although it made the name" {
	cat >twice.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
/* The name was made by the first request; the answer is that of the second one. */
static int again(int r, const char *name)
{
	if (r == 0 && strcmp(name, getenv("TWICE")) == 0) {
		errno = EEXIST;
		return -1;
	}
	return r;
}
#define REAL(call, ...) ((int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, call))
int mkdirat(int dir, const char *name, mode_t mode)
{
	return again(REAL("mkdirat", int, const char *, mode_t)(dir, name, mode), name);
}
int symlinkat(const char *text, int dir, const char *name)
{
	return again(REAL("symlinkat", const char *, int, const char *)(text, dir, name), name);
}
int mknodat(int dir, const char *name, mode_t mode, dev_t dev)
{
	return again(REAL("mknodat", int, const char *, mode_t, dev_t)(dir, name, mode, dev), name);
}
C
	"${CC:-cc}" -shared -fPIC -o twice.so twice.c -ldl 2>cc || skip "no C compiler: $(head -1 cc)"
	mkdir -p s/sub/below
	echo 1 >s/sub/below/f
	ln -s f s/link
	mkfifo s/fifo
	local name
	for name in sub below link fifo; do
		rm -rf d
		TWICE=$name LD_PRELOAD=$T/twice.so expect 0 -a s d
		says
		holds 1 d/sub/below/f
		[ "$(readlink d/link)" = f ]
		[ -p d/fifo ]
	done
}

# first_and_last: sets first and last to the order in which fcopy -j1 copies s/a and s/b.
first_and_last() {
	last=$("$FCOPY" -v -j 1 -rT s probe 2>&1 | sed -n 's,^s/\([ab]\) ->.*,\1,p' | tail -n 1)
	first=$(tr ab ba <<<"$last")
	rm -rf probe
}

# The inode of an old file, which one entry replaces, has the name of another entry when its turn comes.
@test "another process links the old file of one entry to the name of another one: both are copied" {
	need_strace
	mkdir s
	local options first last call
	for call in a b; do echo "new $call" >s/$call; done
	touch -d 2020-01-01 s/*
	first_and_last
	for options in -aT "-aT -u" --mirror -rT "-aT -b" "-aT --inplace"; do
		call=renameat,renameat2
		[[ $options != *inplace ]] || call=pwrite64
		rm -rf d trace
		mkdir d
		echo old >d/"$first"
		touch -d 2010-01-01 d/"$first"
		# shellcheck disable=SC2086
		strace -D -f -qq -o trace -e trace=$call -e inject=$call:delay_enter=1500000:when=1 "$FCOPY" -q -j 1 $options s d 2>err &
		pid=$!
		sleep 0.7
		ln d/"$first" d/"$last"
		status=0
		wait $pid || status=$?
		holds "new $first" d/"$first" || { echo "$options"; return 1; }
		# In place, both names are one file, which two entries would write to.
		[ "$status" = 0 ] || [[ $options == *inplace ]] || { cat err; return 1; }
		[ "$status" = 1 ] || holds "new $last" d/"$last" || { echo "$options: exit $status"; return 1; }
	done
}

@test "another process renames a copied directory to the name of the next one: that fails" {
	need_strace
	mkdir -p s/a s/b
	echo 1 >s/a/f
	echo 2 >s/b/f
	local first last
	last=$("$FCOPY" -v -j 1 -rT s probe 2>&1 | sed -n 's,^s/\([ab]\)/f ->.*,\1,p' | tail -n 1)
	first=$(tr ab ba <<<"$last")
	mkdir -p d/"$first"
	strace -D -f -qq -o trace -P "$last" -e trace=openat -e inject=openat:delay_enter=1500000:when=1 "$FCOPY" -q -j 1 -aT s d 2>err &
	pid=$!
	await [ -s d/"$first"/f ]
	sleep 0.3
	mv d/"$first" d/"$last"
	status=0
	wait $pid || status=$?
	[ $status = 1 ]
	grep -q "d/$last: is already the copy of another entry" err || { cat err; return 1; }
	cmp s/"$first"/f d/"$last"/f
}

# The numbers of files that one of them has replaced are soon those of files that the other one makes.
@test "two -u to one DST at once: the newest files are there after the run that has them" {
	mkdir s1 s2
	local i n
	for i in {1..50}; do
		echo "one $i" >s1/$i
		echo "two $i" >s2/$i
	done
	touch -d 2020-01-02 s1/*
	touch -d 2020-01-01 s2/*
	for n in {1..10}; do
		rm -rf d
		mkdir d
		for i in {1..50}; do echo old >d/$i; done
		touch -d 2010-01-01 d/*
		"$FCOPY" -aT -u s1 d &
		expect 0 -aT -u s2 d
		wait $! || return 1
		diff -r s1 d
	done
}

@test "two copies of one SRC with hard links, symlinks and FIFOs to one DST at once: both succeed" {
	mkdir s
	local i n options
	for i in {1..60}; do
		echo "new $i" >s/$i
		ln s/$i s/link$i
		ln -s $i s/symlink$i
		mkfifo s/fifo$i
	done
	for options in -aT --mirror; do
		for n in {1..5}; do
			rm -rf d
			mkdir d
			for i in {,symlink,fifo}{1..60}; do echo old >d/$i; done
			touch -d 2010-01-01 d/*
			"$FCOPY" -q $options s d &
			expect 0 -q $options s d
			wait $! || return 1
			diff -r --no-dereference --exclude='fifo*' s d
			[ "$(find d -type p | wc -l)" = 60 ]
		done
	done
}
