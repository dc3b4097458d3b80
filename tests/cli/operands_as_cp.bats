#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Operands: where the copy goes, as with cp.

load helper

# same_results: tools/as_cp.py with the commands of standard input, of which each begins with what prepare makes.
same_results() {
	need python3
	[ -d prepared ] || (mkdir prepared && cd prepared && prepare)
	python3 -B "$BATS_TEST_DIRNAME/../tools/as_cp.py" "$FCOPY" prepared
}

prepare() {
	mkdir -p s/sub into none/deeper
	echo a >s/a
	echo f >s/sub/f
	echo g >g
	ln -s a s/link
	ln -s sub s/dirlink
	ln -s s to_s
	ln -s g to_g
	ln -s into to_into
	ln -s nowhere dangling
}

@test "operands that are directories, slashes, dots and symlinks: as cp" {
	local options src dst
	for options in -r -rL -rH -a -rT; do
		for src in s s/ s/. to_s to_s/; do
			for dst in into to_into to_into/ new new/ g; do
				case $options:$dst in
				# cp before 9.2 merges into the directory; later versions refuse it as fcopy does.
				-?T:to_into*) continue ;;
				esac
				echo $options $src $dst
			done
		done
	done >commands
	same_results <commands
}

@test "operands that are files and symlinks: as cp" {
	local options src dst
	for options in "" -r -rL -rH -a; do
		for src in g to_g s/link s/dirlink g/ none/such; do
			for dst in into/ to_into new s/a missing/new; do
				case $options:$src:$dst in
				:s/dirlink:*) continue ;; # below
				esac
				echo "$options $src $dst"
			done
		done
	done >commands
	same_results <commands
	same_results <<-'END'
		-r dangling new
		-a dangling into
		-rL dangling new
		-rH dangling new
		s/dirlink new
	END
}

@test "several sources of all kinds: as cp" {
	same_results <<-'END'
		-r s g to_g into
		-a s g to_s dangling into
		-rL s g to_s into
		-t into g s/a
		-r s none/such g into
		-r s g new
		-r s g to_g
	END
}

@test "a directory that is merged into DST, and other sources: as cp" {
	same_results <<-'END'
		-r s/. g into
		-r g s/sub/.. into
		-a g s/ none into
		-r s/sub/. none into/
		-r -t into s/. g
	END
	prepare
	# cp merges .. itself into the directory, too.
	mkdir -p sub/into
	(cd sub && expect 0 -rT ../s into && expect 0 -r ../s/sub/.. ../g into)
	holds g sub/into/g
	holds a sub/into/a
}

@test "names that begin with -, after --, and -T with a directory that exists" {
	mkdir -- -d
	echo x >-d/-f
	mkdir into
	expect 0 -r -- -d into
	holds x into/-d/-f
	expect 0 -r -T -- -d into
	holds x into/-f
	expect 0 -- -d/-f -g
	holds x ./-g
}

@test "-T with a symlink to a directory: with its slash it is the directory, as with cp" {
	mkdir s cp by_fcopy
	echo x >s/f
	ln -s cp to_cp
	ln -s by_fcopy to_fcopy
	cp -rT s to_cp/
	expect 0 -rT s to_fcopy/
	diff -r cp by_fcopy
	[ -L to_fcopy ]
	expect 2 -rT s to_fcopy
	says "fcopy: to_fcopy: is a symlink: a directory cannot replace it"
	ln -s nowhere dangling
	expect 2 -rT s dangling/
}

@test "-P copies a symlink as a symlink also without -r; -L and -H follow it, as cp does" {
	local option
	for option in -P -L -H; do
		same_results <<-END
			$option to_g new
			$option to_g s/a
			$option g new
			$option g to_g into
			$option to_g into
		END
	done
	prepare
	expect 0 -P dangling copy
	[ "$(readlink copy)" = nowhere ]
	mkdir elsewhere
	expect 0 -P to_s elsewhere
	[ "$(readlink elsewhere/to_s)" = s ]
}
