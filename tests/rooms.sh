#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/rooms.sh OBJECT...: do calls run only down through the rooms, the directories of src/, and in
# one direction between the files of a room? `make lint` runs it. nm(1) lists the symbols of the
# object files: one that is undefined is a call, or a variable of another file. It also checks that
# what musl does not declare is not used without io/libc.h, which glibc does not need.
set -euo pipefail
[ $# != 0 ] || {
	echo "usage: ${0##*/} OBJECT..." >&2
	exit 2
}

# The rooms from top to bottom. Those on one line do not call each other. fcopy.c, which is in no
# room, may call all of them.
ORDER='
cli
show
shard
tree
copy
endpoints engines
part
source
io
'

# CALLER DEFINER SYMBOL of each symbol that one file uses and another one defines.
uses() {
	"${NM:-nm}" -A "$@" | sed 's|^[^:]*/src/|src/|; s|^[^:]*/fcopy\.o|fcopy.o|' | awk '
		{ sub(/:.*/, "", $1); sub(/\.o$/, ".c", $1) }
		$(NF - 1) == "U" { used[$1 " " $NF] }
		$(NF - 1) ~ /^[A-TV-Z]$/ { defines[$NF] = $1 }
		END {
			for (u in used) {
				split(u, at, " ")
				to = defines[at[2]]
				if (to && to != at[1])
					print at[1], to, at[2]
			}
		}' | sort
}

# Prints each use that runs up or sideways, and each room that the order lacks.
check_rooms() {
	awk -v order="${ORDER//$'\n'/;}" '
		BEGIN {
			for (lines = split(order, line, ";"); lines > 0; lines--)
				for (n = split(line[lines], name, " "); n > 0; n--)
					level[name[n]] = lines
		}
		split($1, from, "/") == 3 && (split($2, to, "/") != 3 || from[2] != to[2]) {
			if (!level[from[2]] || !level[to[2]])
				print $1 " uses " $3 " of " $2 ": a room is missing in tests/rooms.sh"
			else if (level[from[2]] >= level[to[2]])
				print $1 " uses " $3 " of " $2 ", but calls run from the top to the bottom"
		}'
}

# Prints each object that calls what io/libc.h declares, and did not include it.
check_libc() {
	local object
	for object; do
		"${NM:-nm}" -u "$object" | grep -qE ' (statx|renameat2|getdents64|p(read|write)v(64)?v2)$' || continue
		grep -q 'io/libc\.h' "${object%.o}.d" || echo "${object#*/}: io/libc.h is not included"
	done
}

used=$(uses "$@")
[ -n "$used" ] || { echo 'tests/rooms.sh: no file uses another one' >&2; exit 1; }
wrong=$(check_rooms <<<"$used"; check_libc "$@")
[ -z "$wrong" ] || { printf '%s\n' "$wrong" >&2; exit 1; }
cut -d ' ' -f 1,2 <<<"$used" | tsort >/dev/null # names the files of a loop, and fails
