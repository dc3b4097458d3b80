#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The marker of a mirror: what it says after a kill or a power cut, and what is flushed before it goes.

load helper
load mirror

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

@test "--link-dest: the bytes of an earlier copy are compared with --checksum, with --verify of clones, and after a power cut" {
	local clone options
	make_source
	expect 0 --mirror s old
	printf 'X\n' >old/top
	touch -r s/top old/top
	for clone in "" --reflink=auto; do
		for options in "--mirror --checksum" "-aT --verify" "-aT --update=changed --checksum"; do
			[ "$options$clone" != "-aT --verify" ] || continue # links are not read
			rm -rf d
			# shellcheck disable=SC2086 # words
			expect 0 $options $clone --link-dest=old s d
			holds 3 d/top
			[ -n "$clone" ] || [ d/a/b/y -ef old/a/b/y ]
		done
	done
	rm -rf d
	expect 0 --mirror --link-dest=old s d
	holds X d/top
	expect 0 --mirror --checksum --dry-run --link-dest=old s d
	[ "$output" = "would copy s/top -> d/top" ]
	expect 0 --mirror --checksum --link-dest=old s d
	holds 3 d/top
	holds X old/top
	# An unfinished mirror of another boot wrote the earlier copy, or DST.
	for how in old d; do
		rm -rf d
		expect 0 --mirror --link-dest=old s d
		echo 00000000-0000-0000-0000-000000000000 >$how/.fcopy-mirror
		touch -d '1 minute ago' $how/.fcopy-mirror
		[ $how = d ] || rm -rf d
		expect 0 --mirror --link-dest=old s d
		holds 3 d/top
		rm -f old/.fcopy-mirror
	done
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

@test "two mirrors of one DST that begin at the same moment: both have the marker, and flush" {
	need_strace
	mkdir s d
	random s/big 3000000
	echo old >d/old
	# The first one has looked for the marker, and waits before it makes it.
	strace -f -qq -o trace -P .fcopy-mirror -e trace=openat -e inject=openat:delay_enter=3000000:when=2 \
		"$FCOPY" -q --mirror -j 1 --limit-rate=1M s d 2>err &
	local first=$!
	await grep -qs ENOENT trace
	"$FCOPY" -q --mirror -j 1 --limit-rate=1M s d &
	local second=$!
	await [ -s d/.fcopy-mirror ]
	kill -STOP $second
	await grep -q EEXIST trace
	pkill -STOP -P $first
	kill -CONT $second
	wait $second
	[ -f d/.fcopy-mirror ]
	pkill -CONT -P $first
	wait $first
	[ ! -s err ] || { cat err && return 1; }
	in_trace EEXIST
	absent d/.fcopy-mirror
	diff -r s d
}

@test "a mirror that cannot make its marker says so, and flushes" {
	need_strace
	mkdir s d
	local n
	echo first >s/f
	expect 0 -q --mirror s d
	echo second >s/f
	traced 0 openat -q --mirror -j 1 s d
	n=$(grep 'openat(' trace | grep -n 'fcopy-mirror.*O_EXCL' | cut -d: -f1)
	echo the third >s/f
	run -0 --separate-stderr strace -f -qq -o trace -e trace=openat,syncfs -e "inject=openat:error=EROFS:when=$n" \
		"$FCOPY" --mirror -j 1 s d
	injected
	mentions ".fcopy-mirror: Read-only file system"
	in_trace 'syncfs\(.*= 0'
	cmp s/f d/f
}

@test "storage that counts no names: a mirror finds its marker, and removes it" {
	mkdir s backing
	echo 1 >s/f
	# shellcheck disable=SC2016
	by_fuse linkless 'for n in 1 2; do
			"$FCOPY" --mirror s m/d 2>err
			[ "$(grep -c warning err)" = 0 ]
			[ "$(ls -A m/d)" = f ]
		done'
}
