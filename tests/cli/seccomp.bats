#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# System calls that a seccomp filter denies: a sample of tests/long/seccomp.sh.

load helper

@test "a denied system call: no wrong copy, no lost DST; auto completes where readwrite does" {
	need_strace
	export FCOPY
	run timeout -k 5 60 "$BATS_TEST_DIRNAME/../long/seccomp.sh" 10
	[ "$status" != 77 ] || skip "$(grep -m 1 "left out" <<<"$output")"
	[ "$status" = 0 ] || { echo "$output"; return 1; }
}
