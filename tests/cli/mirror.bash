# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What the tests of mirrors share.

make_source() {
	mkdir -p s/a/b s/c s/empty
	echo 1 >s/a/x
	echo 2 >s/a/b/y
	echo 3 >s/top
	ln -s x s/a/link
	mkfifo s/c/fifo
	ln s/a/x s/c/hard
	chmod 640 s/a/b/y
	touch -d '2020-01-01 00:00:00.123456789' s/a/x s/c
}

count() {
	jq -r ".tree.$1" <<<"$output"
}

# mirrored: rsync sees no difference, and a second run changes nothing.
mirrored() {
	local before after
	need rsync
	[ -z "$(rsync -aHAXnc --delete --itemize-changes s/ d/)" ] || { rsync -aHAXnc --delete -i s/ d/; return 1; }
	before=$(find d ! -type d -printf '%P %i %T@ %C@\n' | sort)
	expect 0 --mirror --json s d
	after=$(find d ! -type d -printf '%P %i %T@ %C@\n' | sort)
	[ "$before" = "$after" ]
	[ "$(count 'files + .tree.symlinks + .tree.specials + .tree.hard_links + .tree.deleted + .tree.repaired')" = 0 ]
}

# everything: each name, inode, mode, owner, time and content of a tree, and none of its access times.
everything() {
	find "$1" -printf '%P %i %m %U %G %n %T@ %C@ %s %l\n' | sort
	find "$1" -type f | sort | xargs -r -d '\n' sha256sum
}

# lists LINE…: these lines are in $output.
lists() {
	local line
	for line; do
		grep -qxF -- "$line" <<<"$output" || { echo "no '$line' in: $output"; return 1; }
	done
}

# one_inode NAME…: they are names of one file.
one_inode() {
	[ "$(stat -c %i "$@" | sort -u | wc -l)" = 1 ]
}
