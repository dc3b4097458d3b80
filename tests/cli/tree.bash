# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Trees that tests of several files copy.

MARK=fcopy-unfinished.txt # in a part: fcopy left it

# make_small DIR: a tree of 20 files in 4 directories.
make_small() {
	local i
	for i in {1..20}; do
		mkdir -p "$1/d$((i % 4))"
		random "$1/d$((i % 4))/$i" $((i * 7000))
	done
}

# kept PART: a directory of mode 0700, reported with both ways forward; the copy itself is absent.
kept() {
	mentions "$1" --resume --keep-going
	[ "$(stat -c '%F %a' "$1")" = "directory 700" ]
	[ -f "$1/$MARK" ]
	absent "${1%.fcopy-part}"
}
