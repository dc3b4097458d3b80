#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Several SRC, in every order.

load helper

@test "several SRC, of which one is in DST: no copy of another one changes it, whatever the order" {
	prepare_own() {
		rm -rf x d
		mkdir -p x/b/c d/b/c
		echo new | tee x/b/f x/b/c/g >x/b/new
		touch -d 2001-01-01 x/b/c/g
		echo mine | tee d/b/f >d/b/c/g
		ln -s f x/b/link
	}
	local how
	for how in -r -a -rn "-r --inplace" "-r --remove-destination" "-r -b" "-r -j1 --keep-going"; do
		for command in "x/b d/b/c d" "d/b/c x/b d"; do
			prepare_own
			# shellcheck disable=SC2086
			expect 1 $how --dry-run $command
			# shellcheck disable=SC2086
			expect 1 $how $command
			mentions "d/b/c: is another SRC: nothing in it is changed"
			holds mine d/b/c/g
			holds mine d/c/g
			holds new d/b/new
		done
		[ "$how" != -rn ] || continue
		for command in "x/b d/b/f d" "d/b/f x/b d"; do
			prepare_own
			# shellcheck disable=SC2086
			expect 1 $how --dry-run $command
			# shellcheck disable=SC2086
			expect 1 $how $command
			mentions "d/b/f: is another SRC: nothing in it is changed"
			holds mine d/b/f
			holds mine d/f
			holds new d/b/c/g
		done
	done
	# So it is with a symlink, a FIFO, a link to SRC, and attributes.
	for how in "-a link" "-a fifo" "-rlf f" "-r --attributes-only -p f"; do
		for command in "x/b d/b/${how##* } d" "d/b/${how##* } x/b d"; do
			prepare_own
			mkfifo x/b/fifo
			chmod 604 x/b/f
			echo mine | tee d/b/link d/b/fifo
			# shellcheck disable=SC2086
			expect 1 ${how% *} --dry-run $command
			# shellcheck disable=SC2086
			expect 1 ${how% *} $command
			mentions "d/b/${how##* }: is another SRC: nothing in it is changed"
			holds mine "d/b/${how##* }"
			[ -f "d/b/${how##* }" ]
			[ ! -L "d/b/${how##* }" ]
			[ "$(stat -c %a "d/b/${how##* }")" = 644 ]
		done
	done
	# Under several names it is replaced, as one of them keeps it.
	prepare_own
	ln d/b/f d/b/h
	expect 0 -a x/b d/b/h d
	holds mine d/h
	holds new d/b/f
}

# in_every_order OLD: tools/orders.py with the lines of standard input; the exit statuses are in ./statuses.
in_every_order() {
	python3 -B "$BATS_TEST_DIRNAME/../tools/orders.py" "$FCOPY" "$1" >statuses
}

@test "four SRC in every order: the same exit status, and the same DST, also of equal files and hard links" {
	need python3
	mkdir -p s/one/sub s/two s/p/q old/one old/two
	echo 1 >s/one/a
	echo 2 >s/one/sub/b
	ln s/one/a s/two/link # of another SRC
	ln -s a s/one/symlink
	mkfifo s/two/fifo
	echo 3 >s/f
	ln s/f s/two/f
	echo 4 >s/g
	chmod 600 s/g
	chmod 700 s/one/sub
	find s ! -type l -exec touch -d '2001-01-01 00:00:00.5' {} +
	[ "$(id -u)" != 0 ] || chown -h 1:1 s/f s/one/sub s/one/symlink
	cp -a s earlier
	echo old >old/one/a
	echo newer >old/f
	echo 4 >old/g
	echo other >old/two/fifo
	find old -exec touch -d 2000-01-01 {} +
	touch -d 2030-01-01 old/f
	touch -d '2001-01-01 00:00:02' old/g # equal within two seconds, and repaired
	[ "$(id -u)" != 0 ] || chown 2:2 old/g
	in_every_order old <<-END
		-a -- s/one s/two s/f s/g
		-a -u -- s/one s/two s/f s/g
		-a -b -- s/one s/two s/f s/g
		-a --update=changed --modify-window=2 -- s/one s/two s/f s/g
		-a --update=changed -- s/one s/two s/f s/g
		-a --link-dest=$T/earlier -- s/one s/two s/f s/g
	END
	# Names that two SRC have, one of them a tree.
	mkdir none
	in_every_order none <<<"-a --parents -- s/one s/one/sub s/g s"
}

@test "--parents, SRC that contain each other, in every order: each entry is copied once" {
	local how order set
	need python3
	mkdir -p s/two/dir s/x old/s/two
	echo 1 >s/one
	echo 2 >s/two/g
	echo 3 >s/two/dir/h
	ln s/two/dir/h s/linked
	ln -s one s/symlink
	ln -s two s/to
	echo old >old/s/one
	echo old >old/s/two/g
	find s old -exec touch -h -d 2001-01-01 {} +
	for how in -a "-a -b" -an -aL; do
		for set in "s/one s s/two/g" "s s/two s/two/dir/h" "s/linked ./s/two//dir s" "s/symlink s/one s" \
			"s s/ s/one"; do
			echo "$how --parents -- $set"
		done
	done >commands
	in_every_order old <commands
	[ "$(sort -u statuses)" = 0 ]
	# What the walk of a SRC leaves out is copied if it is named.
	rm -rf d
	cp -a old d
	expect 0 -a --exclude=g --parents s s/two/g d
	holds 2 d/s/two/g
	# A directory that cannot be listed does not keep what is named in it from being copied.
	if [ "$(id -u)" != 0 ]; then
		echo 5 >s/x/named
		chmod 300 s/x
		expect 1 -a --parents s s/x/named d
		holds 5 d/s/x/named
		chmod 700 s/x
	fi
	# The copies of both have one name.
	for order in "s s/to/g" "s/to/g s" "s/to s/to/g" "s/to/g s/to"; do
		rm -rf d
		mkdir d
		# shellcheck disable=SC2086
		expect 2 -a --parents $order d
		mentions "cannot be copied together: the second is below a symlink"
		[ -z "$(ls -A d)" ]
	done
	expect 0 -rL --parents s/to s/to/g s/one d
	holds 2 d/s/to/g
	rm -rf d
	mkdir d
	expect 2 -r --parents s s/two/../one d
	mentions "contains '..'"
	[ -z "$(ls -A d)" ]
}

@test "several directories whose names differ in case only, where DST ignores case: the second one is refused" {
	mkdir -p 1/sub 2/SUB backing
	echo one >1/sub/f
	echo two >2/SUB/f
	export FCOPY
	# shellcheck disable=SC2016
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' 'for options in -r -a -aj1; do
			for old in "" m/d/sub; do
				rm -rf m/d
				mkdir -p m/d $old
				s=0
				"$FCOPY" $options 1/sub 2/SUB m/d 2>err || s=$?
				[ $s = 1 ]
				grep -q "m/d/SUB: is the copy of another source" err
				[ "$(cat m/d/sub/f)" = one ]
			done
		done'
}
