#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Trees with mount points in the source: what -x leaves out cannot contain the copy.

load helper

# setup_system: a tree with a mount point, as a root file system has it.
setup_system() {
	mkdir -p root/etc root/mnt other
	echo name >root/etc/hostname
	echo hidden >root/mnt/below
	chmod 750 root/etc
	export FCOPY
}

@test "-ax of a file system into one that is mounted in it: complete, and as cp -ax" {
	setup_system
	# shellcheck disable=SC2016
	private_mounts 'for how in "root/. root/mnt" "-T root root/mnt" "root root/mnt" "-T root root/mnt/new"; do
		for by in cp "$FCOPY"; do
			mount -t tmpfs -o mode=711 tmpfs root/mnt
			timeout 60 "$by" -ax $how || exit 3
			(cd root/mnt && find . -mindepth 1 -printf "%p %y %m %U:%G %s\n" | sort)
			cat $(find root/mnt -name hostname)
			umount root/mnt
			echo
		done >result
		sed "/^$/q" result >by_cp
		sed "1,/^$/d" result | diff by_cp -
	done; cat by_cp'
	demand 0
	[ "$(grep -c 'new/mnt d 711' <<<"$output")" = 1 ] || { echo "$output"; return 1; }
	holds hidden root/mnt/below
}

@test "into itself: refused without -x, and with -x if the same file system is mounted there" {
	setup_system
	# shellcheck disable=SC2016
	private_mounts 'tries=0
		refused() {
			timeout 60 "$FCOPY" "$@" 2>err && exit 3
			grep "is inside the source tree" err && [ -z "$(ls -A other)" ] || exit 4
		}
		mount -t tmpfs tmpfs root/mnt
		refused -a root/. root/mnt
		refused -aT root root/mnt/new
		[ -z "$(ls -A root/mnt)" ]
		mkdir root/mnt/back root/mnt/away
		mount --bind root/etc root/mnt/back
		mount --bind other root/mnt/away
		for dst in root/mnt/back root/mnt/back/new root/mnt/away root/mnt/away/new; do
			refused -axT root $dst
		done
		umount root/mnt/back root/mnt/away root/mnt
		mount --bind other root/mnt
		refused -ax root/. root/mnt
		refused -axT root root/mnt
		refused -axT root root/mnt/new
		refused -axT root root/etc
		refused -axT root root/new
		umount root/mnt
		mount --bind root/etc other
		timeout 60 "$FCOPY" -axT root other 2>err && exit 3
		grep "is inside the source tree" err'
	demand 0
	[ "$(find root | wc -l)" = 5 ]
}

@test "merge: a directory of DST that is mounted in the source would be copied into itself: refused" {
	mkdir -p s/x/m d/x
	echo 1 >s/x/f
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount --bind d/x s/x/m
		timeout 20 "$FCOPY" -aT s d 2>err && exit 3
		[ $? = 1 ] || exit 4
		grep "cannot be copied into itself" err
		umount s/x/m'
	demand 0
	absent d/x/m/m
}

# The path of the directory that DST is created in is "/".
@test "into the root directory, of which the source has the parent directory by a bind mount: refused" {
	mkdir outer
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -t tmpfs tmpfs outer
		mkdir -p outer/root/src outer/first
		mount --bind outer/root outer/root # listed in /proc/self/mountinfo
		touch outer/root/fcopy
		for dir in bin lib lib64 nix proc usr; do
			[ ! -d /$dir ] || { mkdir outer/root/$dir && mount --rbind /$dir outer/root/$dir || exit 9; }
		done
		mount --bind "$FCOPY" outer/root/fcopy
		mount --bind outer outer/root/src
		chroot outer/root /fcopy --version || exit 9
		timeout 60 chroot outer/root /fcopy -a /src /new 2>err && exit 3
		grep "is inside the source tree" err
		[ ! -e outer/root/new ]'
	[ "$status" != 9 ] || skip "no root directory of our own"
	demand 0
}

@test "more than 64 file systems in DST, whose files have the same inode numbers: all entries are copied" {
	mkdir -p s/{1..70}/sub d/{1..70}
	local i options
	for i in {1..70}; do
		echo "new $i" >s/$i/f
		echo "new $i" >s/$i/sub/g
	done
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'for options in -aT --mirror; do
			for i in {1..70}; do
				mount -t tmpfs none d/$i || exit 77
				mkdir d/$i/sub
				echo old | tee d/$i/f >d/$i/sub/g
			done
			[ "$(stat -c %i d/1/f)" = "$(stat -c %i d/70/f)" ]
			timeout 60 "$FCOPY" -q $options s d
			diff -r s d
			umount d/*
		done'
	[ "$status" != 77 ] || skip "no tmpfs can be mounted here"
	demand 0
}

@test "a directory of DST that is bound to a second place: one copy of it, and a failure" {
	mkdir -p s/a/x s/b/y d/a/x d/b/y
	echo one >s/a/x/f
	echo two >s/b/y/g
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount --bind d/a/x d/b/y || exit 77
		for options in -aT --mirror; do
			s=0
			timeout 60 "$FCOPY" -q -j 1 $options s d 2>err || s=$?
			[ $s = 1 ]
			grep -q "is already the copy of another entry" err
			[ "$(cat d/a/x/*)" = one ] || [ "$(cat d/a/x/*)" = two ]
			rm d/a/x/*
		done
		echo top >s/f
		mkdir s/e d/e
		echo below >s/e/f
		mount --bind d d/e
		for options in -aT --mirror "-rT --inplace"; do
			s=0
			timeout 60 "$FCOPY" -q $options s d 2>err || s=$?
			[ $s = 1 ]
			grep -q "d/e: is already the copy of another entry" err
			[ "$(cat d/f)" = top ]
		done'
	[ "$status" != 77 ] || skip "no bind mounts here"
	demand 0
}
