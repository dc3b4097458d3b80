#!/bin/bash
# SPDX-License-Identifier: MIT
#
# mutation.sh [N]: makes N single random changes (40) in src, one after the other, each in a scratch copy of HEAD; one of the tests
# that execute the changed line must fail, twice. tools/mutate.py says what can be drawn; a change that leaves the object code as it
# was is drawn again. ROOM names one room. A change that no test notices counts as other: judge whether it has an effect at all,
# and if so write a test. Everything but the scratch copy is read-only: a changed fcopy may remove anything.
#
# Which test executes which line is found out once for each state of src and of the test, and stays in build/executed.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need git make python3 bats gcov mkfs.ext4
need_private_mounts "$@"
make_work
chmod 755 "$work" # also for user nobody
seed_random
wanted=${1:-40}
caught=0
rooms=(cli copy endpoints engines io part shard show source tree)
[ -z "${ROOM-}" ] || rooms=("$ROOM")
at=/mnt # a short path: that of a socket has 107 bytes
commit=$(git -C "$root" rev-parse HEAD) || exit 1

# The image is in memory if there is plenty, and loses its name at once.
make_copy() {
	local image=$work/image
	[ "$(df --output=avail /dev/shm | tail -n 1)" -lt 8000000 ] || image=$(mktemp /dev/shm/fcopy.XXXXXX)
	truncate -s 3G "$image"
	mkfs.ext4 -q -F "$image" && mount -o loop "$image" "$at"
	rm -f "$image"
	mountpoint -q "$at" || skip "no ext4 can be mounted"
	git -C "$root" archive "$commit" | tar x -C "$at" || exit 1
	mkdir -m 1777 "$at/tmp"
	build tests >"$work/make" 2>&1 || { tail "$work/make" && exit 1; }
}

# Without line numbers, so that equal code is an equal object.
build() {
	env -u MAKEFLAGS -u MAKELEVEL make -C "$at" CFLAGS='-O2 -g0' "$@"
}

# confined COMMAND…: where only the scratch copy can be written to, with its own /dev, which has no disk.
confined() {
	# shellcheck disable=SC2016 # the inner shell expands them
	exec unshare --mount --pid --fork --kill-child --mount-proc bash -c '
		cd "$0" && mkdir -p dev && mount -t tmpfs -o mode=755 none dev || exit 1
		cp -a /dev/{null,zero,full,random,urandom,tty,fuse,loop-control,fd,stdin,stdout,stderr} dev 2>/dev/null
		for ((i = 0; i < 64; i++)); do mknod -m 660 dev/loop$i b 7 $i; done
		mkdir dev/pts && mount --bind /dev/pts dev/pts && ln -s pts/ptmx dev/ptmx && mkdir -m 1777 dev/shm || exit 1
		findmnt --noheadings --raw --output TARGET,FSTYPE | while read -r target type; do
			[[ $target/ == "$0"/* || $type =~ ^(proc|devpts|autofs)$ ]] || mount -o remount,bind,ro "$target"
		done
		mount -n --move dev /dev || exit 1
		ulimit -v 16000000 && exec "$@"' "$at" "$@"
}

# fails TEST SECONDS [BUILD]: does it fail, or take longer? Its first failure ends it, and whatever it has started; with BUILD, it
# runs to its end. $work/TEST has its output.
fails() {
	local program=tests/$1 own=${1//\//-} deadline=$((SECONDS + $2)) build=${3-build} status=''
	local dir=$at/run/$own/ext4 tmp=$at/tmp/$own
	[[ $1 == *.bats ]] || program=$build/tests/$1
	rm -rf "$at/run/$own" "$tmp" 2>/dev/null
	mkdir -p "$dir" "$tmp" && chmod 1777 "$tmp"
	TEMP=$tmp TMPDIR=$tmp FCOPY=$at/${3:+$3/}fcopy FCOPY_BUILD=$at/$build FCOPY_TEST_DIR=$dir \
		confined tests/run.sh "$program" >"$work/$own" 2>&1 &
	# Two directories below is the log of run.sh, which is written as the test goes on. Nothing is printed of what is killed.
	{
		while kill -0 $!; do
			if [ $SECONDS -ge $deadline ] || { [ $# = 2 ] && grep -qs '^not ok' "$tmp"/*/[1-9]*; }; then
				status=0
				kill -KILL $!
			fi
			sleep 0.1
		done
		wait $! || status=0
		rm -rf "$tmp"
	} 2>/dev/null
	return ${status:-1}
}

# map_test TEST FILE: writes "FILE LINE MICROSECONDS TEST" to FILE, for each line that the test executes with gcov.
map_test() {
	local start=${EPOCHREALTIME/./} strip data=$at/gcov/${1//\//-}
	strip=$(tr -dc / <<<"$at/build/coverage")
	# An empty, world-writable file for each object, so that tests that run as other users can add their counts.
	(cd "$at/build/coverage" && find src -type d -exec mkdir -p "$data/{}" \; && find src -name '*.gcno' -exec ln {} "$data/{}" \; &&
		find src -name '*.gcno' | sed "s|^|$data/|; s|gcno$|gcda|" | xargs -d '\n' sh -c ': | tee "$@" && chmod 666 "$@"' sh)
	# It may fail: gcov opens files, too.
	if GCOV_PREFIX=$data GCOV_PREFIX_STRIP=${#strip} GCOV_ERROR_FILE=/dev/null fails "$1" 900 build/coverage && fails "$1" 900; then
		echo "$name: $1 is left out: it fails without a change" >&2
	else
		start=$((${EPOCHREALTIME/./} - start))
		find "$data" -name '*.gcda' -empty -delete
		python3 "$root/tests/tools/executed.py" "$data" "${rooms[@]}" | sed "s|\$| $start $1|" >"$data.map" &&
			mv "$data.map" "$2"
	fi
	rm -rf "$data"
}

# map_tests: writes $work/map, the lines of all tests. What builds the program is left out. Four tests at once: many wait.
map_tests() {
	local test source file known maps=()
	known=$root/build/executed/$(git -C "$root" rev-parse "$commit:src") || exit 1
	mkdir -p "$known"
	for test in $(cd "$at/build/tests" && ls c{heck,mocka}/*_test) $(cd "$at/tests" && ls cli/*.bats); do
		[[ $test != cli/@(documents|install|library).bats ]] || continue
		source=tests/${test%_test}
		[[ $test == *.bats ]] || source=tests/$test.c
		file=$known/${test//\//-}-$(git -C "$root" rev-parse "$commit:$source")
		maps+=("$file")
		[ ! -e "$file" ] || continue
		[ -x "$at/build/coverage/fcopy" ] || build BUILD=build/coverage PROGRAM=build/coverage/fcopy LDFLAGS= \
			CFLAGS='-O0 -g --coverage -fprofile-update=atomic' build/coverage/fcopy tests >"$work/make" 2>&1 ||
			{ tail "$work/make" && exit 1; }
		while [ "$(jobs -rp | wc -l)" -ge 4 ]; do wait -n; done
		map_test "$test" "$file" &
	done
	wait
	cat "${maps[@]}" >"$work/map" 2>/dev/null # but for those that are left out
}

# body_of FILE LINE: prints the line of the { of the function that it is in; or if it is in none, a later line.
body_of() {
	awk -v line="$2" 'NR <= line && /^[{}]/ { at = /^{/ ? NR : 0 } END { print at ? at : line + 1 }' "$at/$1"
}

# tests_of FILE LINE: the tests that execute this line, or the last one before it in the same function that is executed, each with its
# seconds. First those that execute most lines of FILE in a second. If no test executes such a line (in a table, for example), all tests of FILE.
tests_of() {
	awk -v file="$1" -v line="$2" -v nearest="$(body_of "$1" "$2")" '
		$1 != file { next }
		{ lines[$4]++; took[$4] = $3 }
		$2 <= line && $2 > nearest { nearest = $2; found = 1; split("", hits) }
		found && $2 == nearest { hits[$4] }
		END {
			if (!found)
				for (t in lines) hits[t]
			for (t in hits) print took[t] / lines[t], took[t], t
		}' "$work/map" |
		sort -g | awk '{ print $3, int($2 / 1e6) }'
}

# notices TEST SECONDS: does it fail twice?
notices() {
	local seconds=$((20 + 4 * $2))
	fails "$1" $seconds && fails "$1" $seconds
}

# find_failing "TEST SECONDS"…: builds and runs the tests, and sets REPLY to one that notices the change. Most changes are noticed by
# one of the first 7, which are built alone; of the others, four run at once.
find_failing() {
	local test seconds program
	for REPLY in "${@:1:7}"; do
		read -r REPLY seconds <<<"$REPLY"
		program=build/tests/$REPLY
		[[ $REPLY != *.bats ]] || program=fcopy
		build "$program" >"$work/make" 2>&1 || return 0
		! notices "$REPLY" "$seconds" || return 0
	done
	[ $# -le 7 ] || build fcopy tests >"$work/make" 2>&1
	: >"$work/noticed"
	for REPLY in "${@:8}"; do
		while [ "$(jobs -rp | wc -l)" -ge 4 ]; do wait -n; done
		[ ! -s "$work/noticed" ] || break
		read -r test seconds <<<"$REPLY"
		{ ! notices "$test" "$seconds" || echo "$test" >>"$work/noticed"; } &
	done
	wait
	read -r REPLY <"$work/noticed"
}

# mutate: draws until a change compiles to other code; sets change and file.
mutate() {
	local room
	while :; do
		random_below ${#rooms[@]}
		room=${rooms[REPLY]}
		random_below 1000000000
		change=$(python3 "$root/tests/tools/mutate.py" "$at" "$room" "$REPLY") || exit 1
		IFS=: read -r file line _ <<<"$change"
		object=$at/build/${file%.c}.o
		cp "$object" "$work/object"
		build "build/${file%.c}.o" >"$work/make" 2>&1 && ! cmp -s "$object" "$work/object" && return
		restore
	done
}

# restore: the object too, with which the next change of this file is compared.
restore() {
	git -C "$root" show "$commit:$file" >"$at/$file"
	build "build/${file%.c}.o" >"$work/make" 2>&1
}

make_copy
map_tests
sound=() # tests that noticed a change
while [ $tried -lt "$wanted" ]; do
	mutate
	tried=$((tried + 1))
	mapfile -t tests < <(tests_of "$file" "$line")
	if find_failing "${tests[@]}"; then
		echo "$name: caught by $REPLY: $change"
		caught=$((caught + 1))
		[[ " ${sound[*]} " == *" $REPLY "* ]] || sound+=("$REPLY")
	else
		fail other "not noticed: $change"
	fi
	restore
done
build fcopy tests >"$work/make" 2>&1
for test in "${sound[@]}"; do
	! fails "$test" 300 || { cat "$work/${test//\//-}" && echo "$name: $test fails without a change" && exit 1; }
done
echo "$name: $caught of $tried changes were noticed"
finish
