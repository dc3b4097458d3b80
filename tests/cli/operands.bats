#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The operands, -t and -T: what is missing, given twice, or would be ignored.

load helper

@test "-T with several SRC or with -t: refused, as cp refuses it" {
	local args with
	echo new >a
	echo new >b
	mkdir d e
	for args in "-T a b d" "-T -t d a" "-Tr a b d" "-T a b d e" "-aTt d a"; do
		[[ $args == *t* ]] && with=-t || with="several SRC"
		# shellcheck disable=SC2086
		usage_error "--no-target-directory: cannot be combined with $with" $args
		# shellcheck disable=SC2086
		never cp $args 2>/dev/null
	done
	[ -z "$(find d e -type f)" ]
	expect 0 -T a c 1 # the third operand is a mode
	cmp a c
	expect 0 -rT d c2
}

@test "-t given twice: refused, as cp refuses it" {
	echo new >a
	mkdir d e
	usage_error "--target-directory: is given twice" -t d -t e a
	usage_error "--target-directory: is given twice" --target-directory=d a -td
	never cp -t d -t e a 2>/dev/null
	[ -z "$(find d e -type f)" ]
}

@test "-t without SRC: only SRC is missing" {
	mkdir d
	usage_error "missing SRC: use fcopy -t DIR SRC..." -t d
	usage_error "missing SRC: use fcopy -t DIR SRC..." -rt d
}

@test "a month is a directory: 04 is no mode" {
	echo 1 >a
	echo 2 >b
	mkdir 04
	expect 0 a b 04
	holds 2 04/b
	holds 2 b
	rm -r 04
	expect 2 a b 04
	holds 2 b
	expect 2 -m 04 a b
}

@test "--strip-trailing-slashes leaves the slashes of DST, also with a MODE" {
	echo x >f
	echo y >g
	expect 2 --strip-trailing-slashes f g/ readwrite
	expect 2 --strip-trailing-slashes f g/
	holds y g
	expect 0 --strip-trailing-slashes f/ h readwrite
	holds x h
	mkdir d
	expect 0 --strip-trailing-slashes f/ g// d/
	holds y d/g
}
