#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -n: an existing file is left as it is, also one that appears during the copy.

load helper

@test "-n: an existing file is left, exit 0; a missing one is made" {
	echo new >a
	echo old >b
	expect 0 -n a b
	holds old b
	expect 0 --no-clobber a c
	holds new c
	expect 0 -nf a b
	holds old b
}

@test "-n: a symlink of another user is left, too, exit 0" {
	need_root "to own a directory as another user"
	mkdir his
	echo new >f
	echo old >mine
	chown 65534 his
	ln -s ../mine his/f
	chown -h 65534 his/f
	expect 1 f his
	expect 0 -n f his
	expect 0 -n f his/f
	expect 0 -nr f his
	holds old mine
}

@test "--update of a stream or a device: none and none-fail leave DST, the others are refused" {
	local option src
	mkfifo fifo
	for src in - fd:0 /dev/stdin /dev/null http-listen:0; do
		printf old >d
		expect 0 --update=none $src d <<<new
		expect 1 --update=none-fail $src d <<<new
		says "fcopy: d: exists, and is not replaced"
		for option in -u --update=changed --attributes-only --remove-destination; do
			expect 2 $option $src d <<<new
			mentions "is a stream or a device: -b, -i, -l, -s, -u, --parents, --attributes-only and --remove-destination need a file"
		done
		expect 0 --json --update=none $src d <<<new
		[[ $output == *'"skipped": 1,'* ]]
		[ "$(cat d)" = old ]
	done
	expect 0 --update=none - new <<<new
	holds new new
	ln -s d link
	expect 2 --remove-destination - link <<<new
	[ "$(cat d)" = old ]
	mkdir dir
	echo old >dir/null
	expect 0 --update=none d /dev/null dir
	holds old dir/null
	expect 2 --attributes-only d -
	[ -z "$output" ]
}

@test "-n: of two at once exactly one makes the file, and it is whole" {
	random a 3000000
	random b 3000000
	local _
	for _ in 1 2 3 4; do
		rm -f c
		"$FCOPY" -n a c & "$FCOPY" -n b c & wait
		cmp -s a c || cmp b c
	done
}

@test "-n: a file that appears during the copy is left as it is" {
	need_strace
	random a 100000
	strace -D -f -qq -o trace -e inject=linkat:delay_enter=2000000:when=2+ "$FCOPY" -n a b &
	pid=$!
	await has_written
	echo other >b
	wait $pid
	holds other b
}

@test "-n: an EEXIST of any call but the commit's is a failure, not a file that was skipped" {
	need_strace
	random a 100000
	local call
	for call in pwrite64 fcntl; do
		traced 1 "inject=$call:error=EEXIST" -n a b 1
		injected
		mentions "File exists"
		absent b
		traced 1 "inject=$call:error=EEXIST" --json --resume -n a b 1
		injected
		[[ $output == *'"skipped": false'* ]] || { echo "$output"; return 1; }
		absent b
		rm -rf b.fcopy-part
	done
}

@test "storage that has no links and no rename that replaces nothing, whatever the errno: a new file gets its name" {
	need_strace
	mkdir -p backing
	random f 10000
	# shellcheck disable=SC2016
	by_fuse rw 'for errno in EPERM EOPNOTSUPP EIO ERANGE; do
			setfattr -n user.fault -v link:$errno m
			for option in -n -u --update=none-fail -b; do
				strace -f -qq -o trace -e trace=renameat2,linkat -e inject=renameat2:error=EINVAL \
					"$FCOPY" $option f m/f
				grep -q "linkat.* -1 $errno" trace
				cmp f backing/f
				rm m/f
			done
			echo old >m/f
			! strace -f -qq -o trace -e inject=renameat2:error=EINVAL "$FCOPY" --update=none-fail f m/f || exit 8
			[ "$(cat backing/f)" = old ]
			rm m/f
		done'
	[ -z "$(ls -A backing)" ]
}

@test "-n with --resume leaves the attributes of a file, too; and -n opens no FIFO if DST exists" {
	local option
	mkdir d
	echo x | tee f >d/f
	chmod 600 f
	touch -d 2020-01-01 f
	chmod 644 d/f
	expect 0 --resume -n -p -t d f
	has_mode 644 d/f
	[ d/f -nt f ]
	mkfifo fifo
	for option in -n --update=none; do
		run timeout 20 "$FCOPY" $option fifo d/f
		[ "$status" = 0 ]
	done
	run timeout 20 "$FCOPY" --update=none-fail fifo d/f
	[ "$status" = 1 ]
	expect 2 -n f d/f/
	expect 0 --inplace --update=none - new <<<new
	holds new new
}

@test "--update=none leaves a symlink that leads nowhere, as -n does; none-fail reports it" {
	local option
	mkdir s t
	echo 1 >s/f
	ln -s nowhere t/f
	ln -s loop t/loop
	echo 1 >s/loop
	for option in -n --update=none; do
		expect 0 -rT $option s t
		expect 0 $option s/f t
		expect 0 $option s/f t/f
		expect 0 $option --dry-run s/loop t
		expect 0 $option - t/f <s/f
	done
	expect 1 -rT --update=none-fail s t
	mentions "fcopy: t/f: exists, and is not replaced" "fcopy: t/loop: exists, and is not replaced"
	[ "$(readlink t/f t/loop | xargs)" = "nowhere loop" ]
}
