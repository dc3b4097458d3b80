#!/bin/bash
# SPDX-License-Identifier: MIT
#
# part-kill.sh [N]: kills copies that can be continued: N (60) at random instants, and one at each
# call, for a file and a tree with --resume, and for a tree that is kept because an entry failed.
# The same command follows, for the kept tree with --resume and without the cause. The copy must be
# equal then, and nothing else may be left; what a killed copy without --resume left goes with
# --clean. On each file system.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need_mounts "$@"
need strace setpriv
make_work
seed_random
wanted=${1:-60}
kinds_of_copy=(file tree kept)
later=0

# run_copy KIND DIR COMMAND…: the copy that is killed, under COMMAND.
run_copy() {
	local kind=$1 dir=$2
	shift 2
	case $kind in
	file) "$@" "$FCOPY" -q -j1 --resume "$dir/file" "$dir/d/dst" ;;
	tree) "$@" "$FCOPY" -q -a -j1 --resume "$dir/src" "$dir/d/dst" ;;
	kept) "$@" "${as_user[@]}" "$FCOPY" -q -r -j1 "$dir/src" "$dir/d/dst" ;;
	esac 2>"$work/err"
}

# run_again KIND DIR: the command that follows.
run_again() {
	local status
	if [ "$1" != kept ]; then
		run_copy "$1" "$2" timeout --kill-after=1 60
		return
	fi
	chmod 644 "$2/src/0/closed"
	timeout --kill-after=1 60 "${as_user[@]}" "$FCOPY" -q -r -j1 --resume "$2/src" "$2/d/dst" 2>"$work/err"
	status=$?
	chmod 000 "$2/src/0/closed"
	"${as_user[@]}" "$FCOPY" --clean "$2/d" -f >/dev/null
	return $status
}

is_equal() {
	case $1 in
	file) cmp -s "$2/file" "$2/d/dst" ;;
	tree) same_tree "$2/src" "$2/d/dst" ;;
	kept) diff -r --no-dereference -x closed -x fifo "$2/src" "$2/d/dst" >/dev/null && [ -e "$2/d/dst/0/closed" ] ;;
	esac
}

prepare() {
	rm -rf "$1/d"
	mkdir "$1/d"
	[ "$(id -u)" != 0 ] || chown 65534 "$1/d"
}

# is_unsigned DIR: what is left beside the copy is a directory with an empty lock. In a directory of another user, who could have
# given it this name, nothing shows that fcopy made it: it stays.
is_unsigned() {
	local left
	left=$(find "$1/d" -mindepth 1 -maxdepth 1 ! -name dst)
	[ "$(id -u)" = 0 ] && [ "$(ls -A "$left")" = lock ] && [ ! -s "$left/lock" ]
}

# follow KIND DIR WHAT: after a kill.
follow() {
	local status
	tried=$((tried + 1))
	run_again "$1" "$2"
	status=$?
	[ $status = 0 ] || fail_status $status "$3, then the same command: $(head -n 1 "$work/err")"
	is_equal "$1" "$2" || fail wrong "$3, then the same command: differs"
	[ "$(ls -A "$2/d")" = dst ] || is_unsigned "$2" || fail other "$3 left: $(ls -A "$2/d")"
	prepare "$2"
}

# strike_at_random KIND DIR
strike_at_random() {
	local start=${EPOCHREALTIME/./} duration struck=0 instant
	prepare "$2"
	run_copy "$1" "$2" timeout --kill-after=1 60
	duration=$((${EPOCHREALTIME/./} - start))
	for ((attempt = 0; struck < wanted && attempt < 20 * wanted; attempt++)); do
		prepare "$2"
		random_below $((duration * 11 / 10))
		printf -v instant '%d.%06d' $((REPLY / 1000000)) $((REPLY % 1000000))
		run_copy "$1" "$2" timeout --foreground --preserve-status --kill-after=20 --signal=KILL "$instant"
		if [ $? = 137 ]; then
			struck=$((struck + 1))
			follow "$1" "$2" "$1 on $(fs_of "$2"), KILL after $instant s"
		else
			later=$((later + 1))
		fi
	done
	[ "$struck" = "$wanted" ] || fail other "$1 on $(fs_of "$2"): hardly ever struck"
}

# strike_each_call KIND DIR: strace counts the calls of each name.
strike_each_call() {
	local call count n
	local calls=%file,%desc,flock,fsync,fdatasync,syncfs
	prepare "$2"
	run_copy "$1" "$2" strace -f -qq -o "$work/trace" -e trace=$calls
	while read -r count call; do
		for ((n = 1; n <= count; n++)); do
			prepare "$2"
			run_copy "$1" "$2" strace -f -qq -o /dev/null -e trace="$call" \
				-e inject="$call:signal=KILL:when=$n"
			if [ $? = 137 ]; then
				follow "$1" "$2" "$1 on $(fs_of "$2"), KILL at $call number $n"
			else
				later=$((later + 1))
			fi
		done
	done < <(sed -nE 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/p' "$work/trace" |
		grep -vE '^(execve|access|mmap|readlink|ioctl|lseek)$' | sort | uniq -c)
}

as_user=()
[ "$(id -u)" != 0 ] || as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
for dir in "${dirs[@]}"; do
	chmod 755 "$dir"
	make_tree "$dir/src" 40
	random_file "$dir/src/0/closed" 10K
	chmod 000 "$dir/src/0/closed"
	random_file "$dir/file" 20M
	for kind in "${kinds_of_copy[@]}"; do
		strike_at_random "$kind" "$dir"
	done
	# Each call needs few files.
	rm -rf "$dir/src"
	make_tree "$dir/src" 4
	random_file "$dir/src/0/closed" 10K
	chmod 000 "$dir/src/0/closed"
	random_file "$dir/file" 1M
	for kind in "${kinds_of_copy[@]}"; do
		strike_each_call "$kind" "$dir"
	done
done
echo "$name: $later more were done before the blow"
finish
