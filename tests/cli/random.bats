#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# For some seconds what tests/long/tree-random.sh does: each run draws other trees and options, and prints its seed.

load helper

@test "random trees and options: the copy is that of cp or rsync" {
	local s=0
	need python3 rsync
	export FCOPY FCOPY_BUILD=${FCOPY_BUILD:-$PWD/build} RANDOM_SECONDS=3 RANDOM_PLAIN=yes
	"$BATS_TEST_DIRNAME/../long/tree-random.sh" 40 >out 2>err || s=$?
	cat out err
	sed 's/^/# /' out >&3 # the seed, also where nothing fails
	[ "$s" = 0 ]
}
