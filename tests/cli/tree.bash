# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Trees that tests of several files copy.

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
	[ "$(find "$1" -mindepth 1 -maxdepth 1 -printf '%f %m\n' | grep -v "^data " | sort)" = $'journal 600\nlock 600' ]
	absent "${1%.fcopy-part}"
}

# equal_trees A B: all that stat shows but times and inode numbers, and the bytes.
equal_trees() {
	diff <(names_of "$1") <(names_of "$2") &&
		diff -r --no-dereference "$1" "$2" 2>&1 | not_special
}

not_special() {
	never grep -v 'is a fifo\|is a character\|is a block\|is a socket'
}

names_of() {
	(cd "$1" && find . -printf '%p %y %m %U %G %l ' \
		\( -type f -printf '%s %n\n' -o -type d -printf '\n' -o -printf '%n\n' \)) | sort
}
