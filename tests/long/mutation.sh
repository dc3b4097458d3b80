#!/bin/bash
# SPDX-License-Identifier: MIT
#
# mutation.sh [N]: makes N single random changes (40) in src, one after the other, each
# in a scratch copy of HEAD; a test that executes the changed line must fail, twice. A change that leaves the object code as it
# was is drawn again. ROOM names one room. A change that no test notices counts as other: judge whether it has an effect at all,
# and if so write a test. Everything but the scratch copy is read-only: a changed fcopy may remove anything.
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
at=$work/ext4

make_copy() {
	truncate -s 3G "$work/image"
	mkdir "$at"
	{ mkfs.ext4 -q -F "$work/image" && mount -o loop "$work/image" "$at"; } || skip "no ext4 can be mounted"
	git -C "$root" archive HEAD | tar x -C "$at" || exit 1
	mkdir -m 1777 "$at/tmp"
	build tests >"$work/make" 2>&1 || { tail "$work/make" && exit 1; }
}

# Without line numbers, so that equal code is an equal object.
build() {
	env -u MAKEFLAGS -u MAKELEVEL make -C "$at" CFLAGS='-O2 -g0' "$@"
}

# confined COMMAND…: where only the scratch copy can be written to; nothing it starts outlives it.
confined() {
	# shellcheck disable=SC2016 # the inner shell expands them
	timeout --kill-after=5 300 unshare --mount --pid --fork --kill-child --mount-proc bash -c '
		findmnt --noheadings --raw --output TARGET,FSTYPE | while read -r target type; do
			[[ $target == "$0" || $type =~ ^(proc|devpts|autofs)$ ]] || mount -o remount,bind,ro "$target"
		done
		cd "$0" && ulimit -v 16000000 && exec "$@"' "$at" "$@"
}

# fails TEST [BUILD]
fails() {
	local program=tests/$1 dir=$at/run/ext4
	[[ $1 == *.bats ]] || program=${2-build}/tests/$1
	rm -rf "$at/run" 2>/dev/null
	mkdir -p "$dir"
	! TEMP=$at/tmp TMPDIR=$at/tmp FCOPY=$at/${2:+$2/}fcopy FCOPY_BUILD=$at/${2-build} FCOPY_TEST_DIR=$dir \
		confined tests/run.sh "$program" >"$work/out" 2>&1
}

# map_tests: writes "FILE LINE MICROSECONDS TEST" to $work/map, for each line that a test executes. It runs each test once with
# gcov. What builds the program is left out.
map_tests() {
	local test start strip data program
	strip=$(tr -dc / <<<"$at/build/coverage")
	build BUILD=build/coverage PROGRAM=build/coverage/fcopy LDFLAGS= CFLAGS='-O0 -g --coverage -fprofile-update=atomic' \
		build/coverage/fcopy tests >"$work/make" 2>&1 || { tail "$work/make" && exit 1; }
	for program in "$at"/tests/cli/*.bats "$at"/build/coverage/tests/c{heck,mocka}/*_test; do
		test=${program#*/tests/}
		[[ $test != cli/@(documents|install|library).bats ]] || continue
		data=$at/gcov/${test//\//-}
		(cd "$at/build/coverage" && find src -type d -exec mkdir -p -m 1777 "$data/{}" \; && find src -name '*.gcno' -exec ln {} "$data/{}" \;)
		start=${EPOCHREALTIME/./}
		# It may fail: gcov opens files, too.
		if GCOV_PREFIX=$data GCOV_PREFIX_STRIP=${#strip} GCOV_ERROR_FILE=/dev/null fails "$test" build/coverage && fails "$test"; then
			echo "$name: $test is left out: it fails without a change" >&2
		else
			python3 "$root/tests/tools/executed.py" "$data" "${rooms[@]}" | sed "s|\$| $((${EPOCHREALTIME/./} - start)) $test|"
		fi
		rm -rf "$data"
	done >"$work/map"
}

# tests_of FILE LINE: the tests that execute this line (or the last one before it that is executed), at most 40 seconds together.
# First those that execute most lines of FILE in a second.
tests_of() {
	awk -v file="$1" -v line="$2" '
		$1 != file { next }
		{ lines[$4]++; took[$4] = $3 }
		$2 <= line && $2 > nearest { nearest = $2; split("", hits) }
		$2 == nearest { hits[$4] }
		END { for (t in hits) print took[t] / lines[t], took[t], t }' "$work/map" |
		sort -g | awk '{ sum += $2 } NR == 1 || sum <= 40e6 { print $3 }'
}

# find_failing TEST…: sets REPLY to the test that notices the change.
find_failing() {
	local test
	for test; do
		REPLY=$test
		! fails "$test" || ! fails "$test" || return 0
	done
	REPLY=''
	return 1
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
	git -C "$root" show "HEAD:$file" >"$at/$file"
	build "build/${file%.c}.o" >"$work/make" 2>&1
}

make_copy
map_tests
sound=() # tests that noticed a change
while [ $tried -lt "$wanted" ]; do
	mutate
	tried=$((tried + 1))
	mapfile -t tests < <(tests_of "$file" "$line")
	mapfile -t programs < <(printf 'build/tests/%s\n' "${tests[@]}" | grep -v bats)
	if ! build fcopy "${programs[@]}" >"$work/make" 2>&1; then
		echo "$name: caught by the linker: $change"
		caught=$((caught + 1))
	elif find_failing "${tests[@]}"; then
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
	! fails "$test" || { cat "$work/out" && echo "$name: $test fails without a change" && exit 1; }
done
echo "$name: $caught of $tried changes were noticed"
finish
