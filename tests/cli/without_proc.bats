#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Copies where /proc is not mounted.

load helper

@test "without /proc: a copy is made anyway" {
	need_root "to hide /proc"
	random a 100000
	echo old >b
	export FCOPY
	private_mounts 'mount -t tmpfs tmpfs /proc; "$FCOPY" a b; "$FCOPY" a c; cmp a b; cmp a c'
	demand 0
}

@test "without /proc: what cannot be done names it, and a file in another directory is replaced" {
	need_root "to hide /proc"
	echo new >a
	mkdir d
	echo old >d/b
	ln -s d/b link
	export FCOPY
	private_mounts 'while umount -l /proc 2>/dev/null; do :; done # it may be mounted twice
		"$FCOPY" a link || "$FCOPY" --inplace a link || cat d/b
		"$FCOPY" --verify a c && "$FCOPY" a d/b'
	demand 0
	says "fcopy: link: readlink: needs /proc, which is not mounted" \
		"fcopy: link: readlink: needs /proc, which is not mounted" \
		"fcopy: warning: c: verified through the page cache: /proc is not mounted"
	[ "$output" = old ]
	holds new d/b
	holds new c
}

@test "without /proc: the modes are those that the umask leaves, also with --resume and --shard" {
	need unshare
	unshare -rm true 2>/dev/null || skip "no mount namespaces here"
	local mask mode
	mkdir tree
	echo a >a
	echo f >tree/f
	chmod 755 a tree
	for mask in 022:755 007:750 027:750 000:755; do
		mode=${mask#*:}
		rm -rf plain part shared sharedtree
		# shellcheck disable=SC2016
		unshare -rm sh -c 'umask '${mask%:*}'; mount -t tmpfs none /proc || exit
			"$0" a plain && "$0" --resume a part && "$0" -T --shard=0/1 a shared && "$0" -rT --shard=0/1 tree sharedtree' "$FCOPY"
		[ "$(stat -c %a plain part shared sharedtree | sort -u)" = "$mode" ]
	done
}

# same_attributes A B: equal names, types, modes and sizes; the times of what is not a symlink; and equal bytes.
same_attributes() {
	local dir
	for dir in "$1" "$2"; do
		(cd "$dir" && find . '(' -type l -o -printf '%T@ ' ')' -printf '%P %y %m %s\n' | sort) >"listed.$dir"
	done
	diff "listed.$1" "listed.$2"
	diff -r --no-dereference --exclude=fifo "$1" "$2"
}

@test "without /proc: FIFOs, symlinks and read-only directories of trees and mirrors, without false warnings" {
	need unshare
	unshare -rm true 2>/dev/null || skip "no mount namespaces here"
	local long n
	long=$(printf 'n%.0s' {1..255})
	mkdir -p "tree/$long/ro" tree/gone
	echo 1 | tee "tree/$long/$long" "tree/$long/ro/a" >"tree/$long/ro/b"
	touch tree/gone/f
	mkfifo -m 666 tree/fifo
	ln -s "$long" tree/link
	touch -d @1000000 "tree/$long/ro" "tree/$long"
	chmod 555 "tree/$long/ro"
	cp -a tree now
	chmod 755 "now/$long/ro"
	rm -r "now/$long/ro/b" now/gone
	touch -d @1000000 "now/$long/ro"
	chmod 555 "now/$long/ro"
	# shellcheck disable=SC2016
	unshare -rm sh -c 'umask 022; mount -t tmpfs none /proc || exit
		"$0" -a tree copy1 && "$0" -a --resume tree copy2 && "$0" -aT --shard=0/1 tree copy3 &&
			"$0" --mirror tree copy4 && "$0" --mirror now/. copy4/' "$FCOPY" >out 2>&1
	for n in 1 2 3; do
		same_attributes tree copy$n
	done
	same_attributes now copy4
	# Linux 6.13 lists the attributes of a FIFO.
	[ "$(printf '%s\n' 6.13 "$(uname -r)" | sort -V | head -n 1)" = 6.13 ] || { reports "an old kernel"; return 0; }
	never grep -v "copied, " out
}
