#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Root copies into a directory of another user, who exchanges names between two system calls of
# fcopy. tests/tools/exchange.py describes the combinations; tests/long/exchange.sh tries all.
load helper

# exchanges PATTERN…: tries the combinations that match.
exchanges() {
	local tools=$BATS_TEST_DIRNAME/../tools
	need python3
	need_root "to copy into a directory of another user"
	need_strace # no sanitizer looks for leaks where another process traces
	[[ $(uname -m) =~ ^(x86_64|aarch64)$ ]] || skip "exchange.py knows the calls of x86-64 and arm64"
	printf '%s\n' "$@" >only
	FCOPY_EXCHANGE_DIR=$T python3 "$tools/exchange.py" --only only \
		--expected "$BATS_TEST_DIRNAME/../long/exchange.expected" "$FCOPY" >log 2>&1 && return
	grep -v '^pass' log
	return 1
}

@test "a merge changes, links and exposes no inode that another user puts in place of a new one" {
	exchanges "merge mknodat exit * 1 file" "merge mknodat exit * 1 root-file" \
		"merge symlinkat exit * 1 root-file" "merge symlinkat exit * 1 root-dir" \
		"merge mkdirat exit dst/sub/* 1 root-dir" "merge renameat2 exit dst/sub/new 1 root-dir" \
		"merge openat enter dst/[az]/[fk] 1 root-file" "merge linkat exit dst/[az]/[fk] 1 symlink-file"
}

@test "a new tree is not built in a directory that another user puts in its place" {
	exchanges "new mkdirat exit home/* 1 dir" "new mkdirat exit home/* 1 root-dir" \
		"new renameat2 enter home/* 1 dir" "resume-new mkdirat exit home/* 1 root-dir" \
		"resume openat enter home/dst.fcopy-part* 1 root-dir"
}

@test "a file replaces, and is not, what another user puts in place of its temporary name" {
	exchanges "file-old renameat enter home/.fcopy-* 1 root-file" \
		"file-old renameat exit home/f 1 root-dir" \
		"file-inplace openat enter home/f 1 root-file" \
		"file-resume rename* enter home/*fcopy-* 1 file" \
		"shard-file openat enter home/f.fcopy-* * root-file"
}
