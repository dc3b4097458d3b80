# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What the tests of trees in shards share.

make_source() {
	[ -d "$BATS_FILE_TMPDIR/made/s" ] || (mkdir "$BATS_FILE_TMPDIR/made" && cd "$BATS_FILE_TMPDIR/made" && make_first)
	cp -a "$BATS_FILE_TMPDIR/made/s" .
	chmod 500 s/d/e
}

make_first() {
	local n
	mkdir -p s/d/e s/empty 's/sp ace'
	for ((n = 0; n < 60; n++)); do
		printf '%s' "$n" >"s/d/$n"
		head -c $((n * 500)) /dev/urandom >"s/d/e/$n"
	done
	ln s/d/1 s/hard
	ln s/d/1 s/d/e/hard
	ln -s d/e/5 s/symlink
	ln -s nowhere s/dangling
	mkfifo s/fifo
	truncate -s 1M s/d/sparse
	printf q >'s/sp ace/'$'\xff\xfe'
	chmod 4755 s/d/3
	chmod 444 s/d/4
	chmod 1777 s/empty
	touch -d '2001-02-03 04:05:06.789' s/d s/d/7
}

# shards N OPTION…: all shards of s to t, one after the other.
shards() {
	local share
	for ((share = 0; share < $1; share++)); do
		expect 0 "${@:2}" --shard=$share/"$1" s t
	done
}

describe() {
	(cd "$1" && find . -printf '%p %y %m %n %l %T@\n' | sort && find . -type f -exec cksum {} + | sort -k3)
}

# t is whole, and of the job only the receipt is left.
committed() {
	diff <(describe s) <(describe t)
	left_only_receipt t
}

# part STATUS OPTION… SHARE: of s to t, as apart, with chunks that do not depend on threads: chunk 0 has the files
# with one name, chunk 1 those with hard links.
part() { apart "$1" -j1 "${@:2}" s t; }

has_copied() { [ -n "$(find t.fcopy-part/data -type f -size +0 2>/dev/null | head -n 1)" ]; }
