#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A few of the copies of tests/long/minimal.sh, which compares each with that of cp.

load helper

@test "storage that lacks an operation: wherever cp makes the copy, fcopy makes an equal one" {
	local s=0
	export FCOPY FCOPY_BUILD=$PWD/build
	"$BATS_TEST_DIRNAME/../long/minimal.sh" few >out 2>err || s=$?
	[ "$s" != 77 ] || skip "$(tail -n 1 err)"
	cat out err
	[ "$s" = 0 ]
	grep -qE '^minimal: [0-9]+ tried, 0 lost, 0 wrong, 0 hung, 0 crashed, 0 other' out
}
