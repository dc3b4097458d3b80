#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Storage that lacks operations or restricts them, as object stores and small FUSE file systems do.

load helper

@test "storage that accepts writes in order only: one thread writes each file, also of a tree" {
	mkdir -p backing s/d
	random s/a 40000000
	cp s/a s/d/b
	by_fuse sequential 'for threads in "" -j4; do
			rm -rf m/*
			"$FCOPY" -r $threads s m/t
			diff -r s backing/t
		done
		"$FCOPY" s/a m/f
		cmp s/a backing/f
		"$FCOPY" --sparse=always s/a m/f
		cmp s/a backing/f'
}
