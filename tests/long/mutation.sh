#!/bin/bash
# SPDX-License-Identifier: MIT
#
# mutation.sh [N]: makes N single random changes (40) in src/part, src/tree, src/shard and src/source, one after the other, each
# in a scratch copy of HEAD; the tests of that room must fail. A change that leaves the object code as it was is drawn again; a
# test must fail twice. ROOM names one room. A change that no test notices counts as other: judge whether it has an effect at
# all, and if so write a test. Everything but the scratch copy is read-only: a changed fcopy may remove anything.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need git make python3 bats mkfs.ext4
need_private_mounts "$@"
make_work
chmod 755 "$work" # also for user nobody
seed_random
wanted=${1:-40}
caught=0
rooms=(part tree shard source)
[ -z "${ROOM-}" ] || rooms=("$ROOM")
at=$work/ext4

# The tests of a room, quick ones first: at most 40 seconds together on two CPUs.
tests_of() {
	case $1 in
	src/part/*) echo check/part_test cmocka/races_test cli/{parts,clean,tree_interrupted,resume_attributes,tree_resume}.bats cmocka/journal_test cli/{shard_unlocked,resume,storage_attributes}.bats ;;
	src/tree/mirror*) echo cli/mirror.bats cmocka/journal_test ;;
	src/tree/tun*) echo cmocka/tuner_test cli/waiting.bats ;;
	src/tree/*) echo check/inodes_test cmocka/{races,places}_test cli/{tree_places,tree_mounts,preserve,count,tree_interrupted,tree_modes,tree_as_cp,mirror,tree_links,tree_resume,stats,cp_options,wrong_answers}.bats check/tree_test ;;
	src/shard/file.c) echo cli/{shard_records,shard_retries,shard}.bats ;;
	src/shard/*) echo cli/{shard_records,shard_retries,shard_tree}.bats ;;
	src/source/*) echo cmocka/filter_test cli/{filters,mirror,tree}.bats ;;
	esac
}

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

# fails TEST
fails() {
	local program=tests/$1 dir=$at/run/ext4
	[[ $1 == *.bats ]] || program=build/tests/$1
	rm -rf "$at/run" 2>/dev/null
	mkdir -p "$dir"
	! TEMP=$at/tmp TMPDIR=$at/tmp FCOPY=$at/fcopy FCOPY_BUILD=$at/build FCOPY_TEST_DIR=$dir \
		confined tests/run.sh "$program" >"$work/out" 2>&1
}

# find_failing FILE: sets REPLY to the test that notices the change.
find_failing() {
	local test
	for test in $(tests_of "$1"); do
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
		file=${change%%:*}
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
for file in part/ tree/mirror.c tree/tuning.c tree/ shard/file.c shard/ source/; do
	[[ " ${rooms[*]} " == *" ${file%%/*} "* ]] || continue
	for test in $(tests_of "src/$file"); do
		! fails "$test" || { cat "$work/out" && echo "$name: $test fails without a change" && exit 1; }
	done
done
while [ $tried -lt "$wanted" ]; do
	mutate
	tried=$((tried + 1))
	mapfile -t programs < <(tests_of "$file" | tr ' ' '\n' | grep -v bats | sed 's|^|build/tests/|')
	if ! build fcopy "${programs[@]}" >"$work/make" 2>&1; then
		echo "$name: caught by the linker: $change"
		caught=$((caught + 1))
	elif find_failing "$file"; then
		echo "$name: caught by $REPLY: $change"
		caught=$((caught + 1))
	else
		fail other "not noticed: $change"
	fi
	restore
done
echo "$name: $caught of $tried changes were noticed"
finish
