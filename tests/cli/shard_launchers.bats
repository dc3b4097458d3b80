#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard under launchers: GNU parallel itself, and the environment of an indexed Kubernetes Job.

load helper
load shard

@test "parallel --retries: each first try fails, and the copy is whole" {
	need parallel
	random src 9000000
	cat >share <<-END
		#!/bin/sh
		mkdir try\$PARALLEL_SEQ 2>/dev/null && exit 1
		exec '$FCOPY' --shard=auto/4 src dst
	END
	chmod +x share
	HOME=$T parallel --will-cite --joblog log --retries 3 './share #' ::: 1 2 3 4
	[ "$(find . -name 'try?' | wc -l)" = 4 ]
	cmp src dst
}

@test "the Kubernetes example runs fcopy with a share for each of its pods" {
	random src 9000000
	yaml=$BATS_TEST_DIRNAME/../../src/dist/examples/job.yaml
	completions=$(sed -n 's/^ *completions: //p' "$yaml")
	option=$(sed -n 's/^ *command: \[fcopy, \(--shard=[^,]*\),.*/\1/p' "$yaml")
	[ "$option" = "--shard=auto/$completions" ]
	for ((pod = 0; pod < completions; pod++)); do
		JOB_COMPLETION_INDEX=$pod "$FCOPY" "$option" src dst
	done
	cmp src dst
}

@test "the command lines of the manual for parallel work as they are printed" {
	need parallel
	random SRC 5000000
	line=$(sed -n '/^\$ seq 4 | parallel /{N;s/^\$ //;s/\\e\n *//p}' "$BATS_TEST_DIRNAME/../../src/man/fcopy-shards.7")
	[ -n "$line" ]
	ln -s "$FCOPY" fcopy
	PATH=$T:$PATH HOME=$T bash -c "$line"
	cmp SRC DST
}
