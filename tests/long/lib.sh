# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the long proofs share. Each ends with the line "NAME: N tried, N lost, N wrong, N hung, N
# crashed, N other", of which tests/long.sh makes a table, and exits 0 if nothing failed, 1 if
# something did, 77 if nothing could be tried. FCOPY names another program.
set -u
PATH=$PATH:/usr/sbin:/sbin

# When process IDs are used again soon, bash 5.2 can take the status of one process for that of another: exit 1 became 0. This is the
# limit that systemd sets.
[ "$(id -u)" != 0 ] || echo 4194304 2>/dev/null >/proc/sys/kernel/pid_max || :

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${FCOPY_BUILD:-$root/build}
FCOPY=${FCOPY:-$root/fcopy}
name=$(basename "$0" .sh)
tried=0
kinds=(lost wrong hung crashed other)
declare -A failed=([lost]=0 [wrong]=0 [hung]=0 [crashed]=0 [other]=0)
dirs=()

# fail KIND WHAT: one failure more of this kind:
#   lost     DST is neither what it was nor the whole new file, and no failure was reported
#   wrong    exit 0, and DST is not the whole new file
#   hung     it had to be killed
#   crashed  it died of a signal that nobody sent
#   other    a wrong status or message, a temporary file or blocks that remain, …
fail() {
	failed[$1]=$((failed[$1] + 1))
	echo "$name: FAILED ($1): ${*:2}"
}

# fail_status STATUS WHAT: a failure of the kind that the exit status means.
fail_status() {
	local kind=other
	case $1 in
	124 | 137) kind=hung ;; # what timeout(1) says of it
	1[3-9]? | 12[89] | 2??) kind=crashed ;;
	esac
	fail $kind "$2: status $1"
}

# fail_copy STATUS BEFORE AFTER WHAT: a copy that did not do as it should. BEFORE is what DST was
# and AFTER what it is, as state_of says; BEFORE is torn if it may be that.
fail_copy() {
	local what
	what="$4: status $1, DST was $2, is $3: $(head -n 1 "$work/err")"
	case $1:$2:$3 in
	0:*:new) fail other "$what" ;;
	0:*) fail wrong "$what" ;;
	*:torn:* | *:new | *:old:old | *:absent:absent) [ "$1" -gt 1 ] || fail other "$what" ;;
	*) fail lost "$what" ;;
	esac
	[ "$1" -le 1 ] || fail_status "$1" "$4"
}

# works WHAT COPY…: whether the command COPY succeeds. A mode that the file system refuses, where
# fcopy offers auto, is left out.
works() {
	local status
	"${@:2}" 2>"$work/err"
	status=$?
	if [ $status = 1 ] && grep -q 'hint:.* auto' "$work/err"; then
		left_out "$1" "$(head -n 1 "$work/err")"
	elif [ $status != 0 ]; then
		fail_status $status "$1: $(head -n 1 "$work/err")"
	fi
	return $status
}

left_out() {
	echo "$name: left out $1: $2" >&2
}

finish() {
	local kind line="$name: $tried tried" sum=0
	for kind in "${kinds[@]}"; do
		line="$line, ${failed[$kind]} $kind"
		sum=$((sum + failed[$kind]))
	done
	echo "$line"
	[ $sum = 0 ] || exit 1
	[ "$tried" != 0 ] || exit 77
	exit 0
}

# skip REASON…: nothing can be tried here.
skip() {
	left_out everything "$*"
	finish
}

# need TOOL…: or there is nothing to try.
need() {
	local tool
	for tool in "$@"; do
		type "$tool" >/dev/null 2>&1 || skip "no $tool"
	done
}

# Restarts the script with the mounts that tests/mounts.sh makes; sets dirs to a directory of its
# own on each, which go when the script ends.
need_mounts() {
	local dir
	[ -n "${FCOPY_TEST_DIR-}" ] || exec "$root/tests/mounts.sh" "$0" "$@"
	while read -r -d: dir; do
		dirs+=("$(mktemp -d "$dir/$name.XXXXXX")") || exit 1
	done <<<"$FCOPY_TEST_DIR:"
}

# fs_of DIR: prints the file system's name.
fs_of() {
	basename "${1%/*}"
}

# Restarts the script where its mounts end with its last process, whatever happens.
need_private_mounts() {
	[ "$(id -u)" = 0 ] || skip "only root may mount"
	if [ "${FCOPY_PRIVATE_PID-}" != $$ ]; then
		unshare --mount true 2>/dev/null || skip "no mount namespace of our own"
		FCOPY_PRIVATE_PID=$$ exec unshare --mount "$0" "$@"
	fi
	unset FCOPY_PRIVATE_PID
}

# The same for a separate network, if root may create one; otherwise the present network is used.
want_private_network() {
	if [ "${FCOPY_PRIVATE_PID-}" = $$ ]; then
		ip link set lo up
	elif [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
		FCOPY_PRIVATE_PID=$$ exec unshare --net "$0" "$@"
	fi
}

unmount_all() {
	local at
	findmnt --noheadings --raw --output TARGET | grep -F "$work/" | tac | while read -r at; do
		umount "$at" 2>/dev/null || umount --lazy "$at"
	done
}

# Makes work, a directory beside the build that goes when the script ends.
make_work() {
	mkdir -p "$build"
	work=$(mktemp -d "$build/$name.XXXXXX") || exit 1
	trap 'unmount_all; rm -rf --one-file-system "$work" "${dirs[@]}"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# tool NAME [SOURCE…]: compiles a program of tests/tools, and prints where it is.
tool() {
	local program=$build/tools/$1 libs=''
	local -a source=("$root/tests/tools/$1.c")
	if [ "$1" = faultfs ]; then
		source+=("$root/tests/tools/faults.c")
		libs=$(pkg-config --cflags --libs fuse3) || return 1
	elif [ "$1" = deny ]; then
		libs=$(pkg-config --cflags --libs libseccomp) || return 1
	fi
	mkdir -p "$build/tools"
	# shellcheck disable=SC2086 # lists of words; the name changes at once, for others may run it
	if [ ! -x "$program" ] || [ -n "$(find "${source[@]}" -newer "$program")" ]; then
		${CC:-cc} -O2 -Wall -Wextra -Werror -o "$program.$$" "${source[@]}" $libs &&
			mv "$program.$$" "$program" || return 1
	fi
	echo "$program"
}

# The numbers of the modes that are there.
modes() {
	"$FCOPY" --list | awk '$1 ~ /^[0-9]+$/ && !/\[unavailable:/ { print $1 }'
}

# Their names; auto is one of them.
mode_names() {
	"$FCOPY" --list | awk '$1 ~ /^[0-9]+$/ && !/\[unavailable:/ { print $2 }'
}

# random_below N: sets REPLY. No subshell, where RANDOM would go on from the same seed each time.
random_below() {
	REPLY=$(((RANDOM << 30 | RANDOM << 15 | RANDOM) % $1))
}

seed_random() {
	seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
	RANDOM=$seed
	echo "$name: SEED=$seed"
}

# random_file FILE BYTES
random_file() {
	head -c "$2" /dev/urandom >"$1"
}

# timed COMMAND…: under a limit of time; 124 or 137 if that was needed.
timed() {
	timeout --kill-after=1 60 "$@"
}

# state_of FILE OLD NEW: sets REPLY to what FILE is: absent, old, new or torn.
state_of() {
	if [ ! -e "$1" ]; then
		REPLY=absent
	elif cmp -s "$1" "$3"; then
		REPLY=new
	elif [ -e "$2" ] && cmp -s "$1" "$2"; then
		REPLY=old
	else
		REPLY=torn
	fi
}

# make_tree DIR FILES: files of 0 to 200 KiB in directories of 3 levels, links, and a FIFO.
make_tree() {
	local i dir
	mkdir "$1"
	for ((i = 0; i < $2; i++)); do
		dir=$1/$((i % 5))/$((i % 3))
		mkdir -p "$dir"
		random_below 200
		head -c ${REPLY}K /dev/urandom >"$dir/$i"
	done
	ln "$1/0/0/0" "$1/hard"
	ln -s 0/0/0 "$1/symlink"
	mkfifo "$1/0/fifo"
	truncate -s 1M "$1/hole"
}

# same_tree A B: the same names, types, modes, link targets and bytes.
same_tree() {
	cmp -s <(describe_tree "$1") <(describe_tree "$2")
}

describe_tree() {
	(cd "$1" && find . -printf '%p %y %m %l\n' | sort && find . -type f -print0 | sort -z | xargs -0r cksum)
}

# fail_tree STATUS AFTER WHAT: a tree that should be absent or whole, or whose status is wrong.
fail_tree() {
	case $1:$2 in
	0:*) fail wrong "$3: exit 0, but $2: $(head -n 3 "$work/err"); there: $(find "${dir-$work}" -maxdepth 3 2>&1 | head -n 20 | xargs)" ;;
	*:torn) fail lost "$3: status $1, $2" ;;
	*) fail other "$3: status $1, $2: $(head -n 1 "$work/err")" ;;
	esac
}

# state_of_tree DST SRC: sets REPLY to what DST is: absent, whole or torn.
state_of_tree() {
	if [ ! -e "$1" ] && [ ! -L "$1" ]; then
		REPLY=absent
	elif same_tree "$2" "$1"; then
		REPLY=whole
	else
		REPLY=torn
	fi
}
