#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The user's own read-only files and directories in DST: what a mirror and -a do for their owner.

load helper

# as_owner COMMAND…: with the rights of the user whom as_nobody runs fcopy for.
as_owner() {
	# shellcheck disable=SC2086
	if is_root; then $NOBODY "$@"; else "$@"; fi
}

# shared: makes a directory for the tests that this user may write to, and enters it.
shared() {
	as_nobody 0 --version # copies the program
	mkdir w
	! is_root || chown 65534:65534 w
	cd w || return
	cp ../fcopy .
}

modes_of() {
	find "$1" -type d -printf '%P %m\n' | sort
}

# A source with read-only directories, and its mirror.
mirrored() {
	as_owner mkdir -p s/ro/sub s/open
	as_owner sh -c 'echo 1 >s/ro/a; echo 1 >s/same; echo 3 >s/ro/sub/c; echo 4 >s/ro/gone
		touch -d 2001-01-01 s/ro/a s/same; chmod 555 s/ro/sub s/ro'
	as_nobody 0 --mirror s d
}

@test "a new tree in a directory that may not be written to: the dry run fails as the run does" {
	local options
	shared
	as_owner mkdir -m 555 ro
	as_owner mkdir s
	for options in -r -aT --mirror; do
		# shellcheck disable=SC2086 # words
		as_nobody 1 $options s ro/new
		# shellcheck disable=SC2086
		as_nobody 1 --dry-run $options s ro/new
		mentions "Permission denied"
	done
}

@test "a mirror changes, adds, links and removes names in its owner's read-only directories" {
	shared
	mirrored
	as_owner sh -c 'chmod 755 s/ro s/ro/sub; echo 22 >s/ro/a; rm s/ro/gone; echo n >s/ro/new; mkdir s/ro/dir
		ln -s x s/ro/link; mkfifo s/ro/fifo; echo 33 >s/ro/sub/c; chmod 555 s/ro/sub s/ro'
	as_nobody 0 --mirror --dry-run s d
	[ "$(modes_of d | xargs)" = "755 open 755 ro 555 ro/sub 555" ]
	holds 1 d/ro/a
	as_nobody 0 --mirror s d
	says "fcopy: 5 copied, 1 unchanged, 1 removed"
	diff -r --no-dereference s d 2>&1 | never grep -v 'is a fifo'
	[ "$(modes_of s)" = "$(modes_of d)" ]
	# Two names become one file, although none of them has changed otherwise.
	as_owner sh -c 'chmod 755 s/ro; echo 1 >s/ro/a; touch -d 2001-01-01 s/ro/a; chmod 555 s/ro'
	as_nobody 0 --mirror s d
	as_owner sh -c 'chmod 755 s/ro; ln -f s/same s/ro/a; chmod 555 s/ro'
	as_nobody 0 --mirror s d
	[ d/same -ef d/ro/a ]
	# An entry of another type, both ways, and a whole directory that is to go.
	as_owner sh -c 'chmod -R u+w s/ro; rm -r s/ro/sub s/ro/a; echo f >s/ro/sub; mkdir s/ro/a; chmod 555 s/ro/a s/ro'
	as_nobody 0 --mirror s d
	diff -r --no-dereference s d 2>&1 | never grep -v 'is a fifo'
	[ "$(modes_of s)" = "$(modes_of d)" ]
	as_owner sh -c 'chmod -R u+w s/ro; rm -r s/ro'
	as_nobody 0 --mirror s d
	absent d/ro
}

@test "DST itself is read-only: a mirror and -a fill it, and it has the mode of SRC in the end" {
	shared
	as_owner mkdir s
	as_owner sh -c 'echo 1 >s/a; chmod 555 s'
	as_nobody 0 --mirror s d
	as_owner sh -c 'chmod 755 s; echo 22 >s/a; echo 1 >s/b; chmod 555 s'
	as_nobody 0 --mirror s d
	says "fcopy: 2 copied, 0 unchanged, 0 removed"
	diff -r s d
	[ "$(stat -c %a d)" = 555 ]
	as_owner sh -c 'chmod 755 s; echo 1 >s/c; chmod 500 s'
	as_nobody 0 -aT s d
	holds 1 d/c
	[ "$(stat -c %a d)" = 500 ]
	# What --delete keeps the mode of gets it back.
	as_owner sh -c 'chmod 755 s; rm s/c; echo 1 >s/e'
	as_nobody 0 -rT --delete s d
	diff -r s d
	[ "$(stat -c %a d)" = 500 ]
}

@test "-a copies into its owner's read-only directory; -r does not, as cp, and leaves its mode" {
	shared
	mirrored
	as_owner sh -c 'chmod 755 s/ro; echo n >s/ro/new; chmod 555 s/ro'
	as_nobody 1 -rT s d
	mentions "d/ro/new: open: Permission denied"
	absent d/ro/new
	[ "$(stat -c %a d/ro)" = 555 ]
	as_nobody 0 -aT s d
	diff -r s d
	[ "$(modes_of s)" = "$(modes_of d)" ]
}

@test "a directory of DST that its owner may not list or search: a mirror, -a and --delete copy into it" {
	local mode options
	shared
	as_owner mkdir -p s/d/sub/deep
	as_owner sh -c 'echo 1 >s/f; echo 1 >s/d/f; echo 1 >s/d/sub/deep/f'
	for mode in 0 100 200 300 400 600; do
		for options in --mirror '-aT --delete' -aT '-rT --delete'; do
			rm -rf d
			as_owner mkdir -p d/d/sub/deep
			as_owner sh -c 'echo x >d/d/x; echo x >d/d/sub/deep/x; touch -d 2001-01-01 d/d'
			if [ "$options" = '-rT --delete' ]; then
				as_owner rm d/d/sub/deep/x
			else
				as_owner chmod $mode d/d/sub/deep d/d/sub
			fi
			as_owner chmod $mode d/d
			# shellcheck disable=SC2086 # words
			as_nobody 0 $options s d
			# Without the modes of SRC, each directory gets its own back.
			[ "$options" != '-rT --delete' ] || [ "$(stat -c %a d/d)" = $mode ]
			as_owner chmod u+rwx d/d
			[ "$(modes_of s)" = "$(modes_of d)" ] || [ "$options" = '-rT --delete' ]
			[ "$options" != -aT ] || as_owner rm d/d/x d/d/sub/deep/x
			diff -r s d
		done
	done
	# A directory of SRC that cannot be read, and a directory of another user in DST.
	need_root
	rm -rf d
	as_owner mkdir d
	as_owner mkdir -m 0 d/d d/secret
	mkdir -m 700 s/secret
	as_nobody 1 --mirror s d
	[ "$(stat -c %a d/secret)" = 0 ]
	rmdir s/secret
	rm -r d/d
	mkdir -m 700 d/d
	as_nobody 1 --mirror s d
	mentions "d/d: open: Permission denied"
	[ "$(stat -c '%u %a' d/d)" = "0 700" ]
}

@test "a mirror replaces its owner's read-only files; -a refuses them, and names -f" {
	shared
	as_owner mkdir s
	as_owner sh -c 'echo 1 >s/a; echo 2 >s/b; ln -s a s/l; echo 3 >s/h; ln s/h s/i; chmod 444 s/a s/b s/h'
	as_nobody 0 --mirror s d
	as_owner cp -a d e
	as_owner sh -c 'rm -f s/*; echo 111 >s/a; ln -s x s/b; echo file >s/l; echo 33 >s/h; ln s/h s/i; chmod 444 s/a s/h; chmod 400 s/l'
	as_nobody 0 --mirror --dry-run s d
	holds 1 d/a
	as_nobody 0 --mirror s d
	as_owner diff -r --no-dereference s d
	[ "$(stat -c %a d/a d/l d/h | xargs)" = "444 400 444" ]
	[ d/h -ef d/i ]
	as_nobody 1 -aT s e
	mentions "e/a: is not writable by you" "use -f"
	holds 1 e/a
	as_nobody 0 -aTf --remove-destination s e
	holds 111 e/a
}

@test "a file that belongs to another user, and is read-only, stays as it is in a mirror" {
	need_root
	shared
	as_owner mkdir s d
	as_owner sh -c 'echo new >s/f; touch -d 2001-01-01 s/f'
	echo old >d/f
	as_nobody 1 --mirror s d
	mentions "d/f: is not writable by you"
	holds old d/f
	# Nor is the mode of another user's directory changed.
	as_owner mkdir s/x
	as_owner sh -c 'echo 1 >s/x/f'
	mkdir d/x
	as_nobody 1 --mirror s d
	mentions "d/x/f: open: Permission denied"
	[ "$(stat -c '%u %a' d/x)" = "0 755" ]
	# Equal names that nobody can make one file: the mirror says so.
	as_owner sh -c 'rm -r s/*; mkdir s/x; echo 1 >s/x/a; ln s/x/a s/x/b; touch -d 2001-01-01 s/x/a; chmod 644 s/x/a'
	rm -rf d/x d/f
	cp -rp s/x d/x
	rm d/x/b
	cp -p d/x/a d/x/b
	chown 0:0 d/x
	as_nobody 0 --mirror s d
	mentions ": unchanged, but not linked to its other name: it cannot be replaced"
}

@test "a signal, a failure and a limit: the read-only directory has its mode again" {
	shared
	mirrored
	as_owner sh -c 'chmod 755 s/ro s/ro/sub; head -c 3000000 /dev/zero >s/ro/sub/big; rm s/ro/a; chmod 500 s/ro/sub s/ro'
	# shellcheck disable=SC2086,SC2046
	env --default-signal=INT $(! is_root || echo $NOBODY) ./fcopy -j1 --limit-rate=500K --mirror s d 2>err &
	pid=$!
	await is_open d/ro/sub
	kill -INT $pid
	wait $pid || status=$?
	[ "$status" = 130 ]
	[ "$(stat -c %a d/ro/sub)" = 555 ]
	holds 1 d/ro/a
	as_nobody 1 --mirror --max-delete=0 s d
	mentions "--max-delete is 0"
	[ "$(modes_of s)" = "$(modes_of d)" ]
	holds 1 d/ro/a
	as_nobody 0 --mirror s d
	absent d/ro/a
	# A directory that holds an excluded name stays, with its mode.
	as_owner sh -c 'chmod -R u+w s; echo 1 >s/ro/sub/keep; echo 2 >s/ro/sub/other; chmod 555 s/ro/sub'
	as_nobody 0 --mirror s d
	as_owner sh -c 'chmod -R u+w s/ro; rm -r s/ro/sub'
	as_nobody 0 --mirror --exclude=keep s d
	[ "$(ls d/ro/sub)" = keep ]
	[ "$(stat -c %a d/ro/sub)" = 555 ]
}

is_open() {
	[ "$(stat -c %a "$1")" = 755 ]
}
