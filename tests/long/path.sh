#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# How many functions and source files a copy passes through, without inlining: of one more small file
# of a new tree, of a merge and of a mirror without changes, of a whole tree with one file, and of
# `fcopy a b`. And how often the names of one more file are looked up, by strace. It measures the
# structure, and fails only if it cannot run.
#
# usage: tests/long/path.sh [-v]    -v: also lists the functions of one more file of a new tree
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$top/build/path
mkdir -p "$build"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cc -O1 -c -o "$build/path.o" "$top/tests/tools/path.c"
make -s -C "$top" -j"$(nproc)" BUILD=build/path PROGRAM=build/path/fcopy LDFLAGS="$build/path.o -no-pie" \
	CFLAGS='-O0 -g -finstrument-functions' build/path/fcopy >/dev/null

# trace NAME COMMAND…: "FUNCTION FILE COUNT" lines into $work/NAME. The same static function of a header
# is in several object files.
trace() {
	local name=$1
	shift
	FCOPY_PATH=$work/raw "$@" >/dev/null
	sort "$work/raw" >"$work/sorted"
	cut -d' ' -f1 "$work/sorted" | addr2line -f -s -e "$build/fcopy" | paste - - |
		sed 's/:[0-9?]*\( .*\)*$//' | paste -d' ' - <(cut -d' ' -f2 "$work/sorted") |
		tr '\t' ' ' | awk '{ n[$1 " " $2] += $3 } END { for (f in n) print f, n[f] }' >"$work/$name"
}

# row TITLE: of "FUNCTION FILE COUNT" lines: functions, files, calls
row() {
	awk -v title="$1" '{ f[$1 " " $2]; s[$2]; n += $3 }
		END { printf "| %s | %d | %d | %d |\n", title, length(f), length(s), n }'
}

# more A B: what B has more than A
more() {
	awk 'NR == FNR { a[$1 " " $2] = $3; next } { n = $3 - a[$1 " " $2]; if (n > 0) print $1, $2, n }' "$work/$1" "$work/$2"
}

# The directory that the copies are made in is read, too: each count has one of its own.
for n in 8 9; do
	mkdir -p "$work/$n/s"
	cd "$work/$n"
	for i in $(seq $n); do head -c 4000 /dev/urandom >"s/f$i"; done
	trace new$n "$build/fcopy" -r -j1 s d
	trace merge$n "$build/fcopy" -rT -j1 s d
	"$build/fcopy" -aT -j1 s m
	trace mirror$n "$build/fcopy" --mirror -j1 s m
done
cd "$work"
mkdir one
cp 9/s/f1 one/f
cp 9/s/f1 a
trace tree "$build/fcopy" -r -j1 one two
trace file "$build/fcopy" a b
echo '| | functions | files | calls |'
echo '| --- | ---: | ---: | ---: |'
more new8 new9 | row 'one more file of a new tree'
more merge8 merge9 | row 'one more file of a merge'
more mirror8 mirror9 | row 'one more file of a mirror, unchanged'
row 'a whole tree of one file' <tree
row 'fcopy a b' <file
[ "${1-}" != -v ] || more new8 new9 | sort -k2

command -v strace >/dev/null || exit 0
# looks TITLE OPTION…: calls with the names of the source and of DST before the rename of one file
looks() {
	local title=$1
	shift
	rm -rf from to
	mkdir from to
	echo new >from/name
	echo old >to/name
	strace -f -qq -o trace -e trace=%file,renameat2,linkat "$build/fcopy" "$@" -rT -j1 from to 2>/dev/null
	awk -v title="$title" '/"name"/ { if (/rename/ && !done) { done = 1 } if (!done) n++ }
		END { printf "%s: %d look-ups of the name in SRC and DST before the rename\n", title, n }' trace
}
looks 'merge'
looks 'merge with -b' -b
