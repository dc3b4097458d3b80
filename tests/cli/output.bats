#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the program says of itself, and how it speaks of files.

load helper

@test "--help: on stdout, exit 0, fits a terminal, names every long option" {
	expect 0 --help
	[ -z "$stderr" ]
	[[ $output == "Usage: fcopy "* ]]
	local option
	for option in mode list buffer-size threads preallocate reflink sparse no-cache limit-rate \
		inplace force no-clobber no-target-directory preserve no-preserve resume verify \
		fsync strict verbose progress stats json benchmark quiet help version; do
		grep -q -- "--$option\b" <<<"$output" || { echo "no --$option"; return 1; }
	done
	[ "$(awk '{ if (length > n) n = length } END { print n }' <<<"$output")" -le 100 ]
}

@test "--version: the version of the public header" {
	expect 0 --version
	local version
	version=$(sed -n 's/^#define FCOPY_VERSION *"\(.*\)"/\1/p' \
		"$BATS_TEST_DIRNAME/../../include/fcopy.h")
	[ "$output" = "fcopy $version" ]
	[ -z "$stderr" ]
}

@test "--list: each mode with number, name and alias, and each can be asked for by all three" {
	expect 0 --list
	local number name alias n=0
	echo data >a
	while read -r number name alias _; do
		[ "$number" = "$n" ]
		n=$((n + 1))
		for name in "$number" "$name" "$alias"; do
			[ "$name" != - ] || continue
			run --separate-stderr "$FCOPY" -m "$name" a b
			[ "$status" != 2 ] || { echo "$name: $stderr"; return 1; }
		done
	done < <("$FCOPY" --list | tail -n +2)
	[ "$n" = "$MODE_COUNT" ]
	[[ "$MODE_LIST, " == "$FIRST_MODES, "* ]] || { echo "$MODE_LIST, not $FIRST_MODES"; return 1; }
	[ "$("$FCOPY" --help | sed -n '/^MODE is one of:/,/\.$/p' | xargs)" = "MODE is one of: $MODE_LIST." ]
}

@test "--list shows that a mode preallocates" {
	expect 0 --list
	[ "$(grep -c preallocates <<<"$output")" = 2 ]
	grep -q '^ *6  direct .*preallocates' <<<"$output"
	grep -q '^ *7  parallel .*preallocates' <<<"$output"
}

@test "--list where the kernel refuses io_uring: why, and the mode is refused with a hint" {
	need_strace
	[[ "$("$FCOPY" --list)" != *"unavailable"* ]] || skip "no io_uring here at all"
	strace -qq -o trace -e inject=io_uring_setup:error=EPERM "$FCOPY" --list >list
	grep -q '^ *6  direct .*\[unavailable: .*io_uring' list
	echo data >a
	traced 1 inject=io_uring_setup:error=EPERM a b direct
	mentions "Operation not permitted" "auto"
	absent b
}

@test "--list, --help and --version to a full disk: exit 1, and it says so" {
	local what
	for what in --list --help --version; do
		run --separate-stderr bash -c '"$0" "$1" >/dev/full' "$FCOPY" $what
		demand 1
		mentions "fcopy: " "No space left on device"
	done
}

@test "--help and --version with --json=FILE: no FILE, because they have no object" {
	expect 0 --help --json=report
	[[ $output == *--json* ]]
	absent report
	expect 0 --json=missing/report --version
	[[ $output == "fcopy "* ]]
}

@test "--list into a closed stdout: exit 1" {
	run --separate-stderr bash -c '"$0" --list >&-' "$FCOPY"
	demand 1
}

@test "a copy is silent" {
	echo data >a
	expect 0 a b
	[ -z "$output$stderr" ]
}

@test "-v: one line that says what was done, on stdout as with cp, unless that is the copy or the JSON" {
	random a 3000000
	expect 0 -v a b readwrite
	says ""
	lists "a -> b: 2.9 MiB, readwrite"
	expect 0 -v -j 2 --fsync a y parallel
	lists "a -> y: 2.9 MiB, readwrite in 2 threads, flushed"
	expect 0 -v -n a b
	lists "b: exists, skipped"
	truncate -s 8M h
	expect 0 -v --reflink=never h i
	[ "$(stat -c %b h)" -gt 0 ] || lists "h -> i: 8.0 MiB, 8.0 MiB of holes"
	expect 0 -vv a c readwrite
	mentions "fcopy: engine: readwrite"
	lists "a -> c: 2.9 MiB, readwrite"
	"$FCOPY" -v a - readwrite >d 2>err
	cmp a d
	grep -qx "a -> -: 2.9 MiB, readwrite" err
	expect 0 -v --json a e readwrite
	[ "${#lines[@]}" = 1 ]
	[[ $output == '{"fcopy": '* ]]
	says "a -> e: 2.9 MiB, readwrite"
	mkdir t
	expect 0 -v --json=out a b t
	lists "a -> t/a" "b -> t/b"
}

# The space that a copy needs, on a tmpfs of 10 MiB.
on_small() {
	need_root "to mount"
	mkdir -p small
	random a 8M
	export FCOPY
	private_mounts "mount -t tmpfs -o size=10m none small; $1"
}

@test "too little space: a warning before the first byte, and ENOSPC repeats the numbers" {
	on_small 'head -c 6M /dev/zero >small/old; "$FCOPY" --preallocate=never a small/old'
	demand 1
	[[ ${stderr_lines[0]} =~ ^fcopy:\ warning:\ small/old\ needs\ 8\.0\ MiB,\ but\ only\ 4\.0\ MiB\ are\ free\ \(the\ old\ file\ is\ kept\ until\ the\ copy\ is\ complete\)$ ]] ||
		{ echo "$stderr"; return 1; }
	[ "${stderr_lines[1]}" = "fcopy: hint: use --inplace to overwrite it" ]
	[[ ${stderr_lines[2]} =~ ^fcopy:\ small/old:\ [a-z_0-9]+:\ No\ space\ left\ on\ device\ \(the\ copy\ needs\ 8\.0\ MiB,\ 4\.0\ MiB\ were\ free\)$ ]] ||
		{ echo "$stderr"; return 1; }
	on_small 'head -c 6M /dev/zero >small/old; "$FCOPY" --inplace a small/old && cmp a small/old'
	demand 0
	says ""
	on_small 'head -c 7M /dev/zero >small/other; "$FCOPY" a small/new'
	demand 1
	[[ ${stderr_lines[0]} =~ ^fcopy:\ warning:\ small/new\ needs\ 8\.0\ MiB,\ but\ only\ 3\.0\ MiB\ are\ free$ ]] || { echo "$stderr"; return 1; }
	[ "$(grep hint <<<"$stderr")" = "fcopy: hint: use --resume to keep an unfinished copy" ]
}

@test "no warning of space: holes, a small enough file, bytes that --count leaves out, -q" {
	on_small 'truncate -s 1G h; "$FCOPY" h small/h && "$FCOPY" a small/a'
	demand 0
	says ""
	on_small 'head -c 7M /dev/zero >small/other; "$FCOPY" --count=2M a small/a'
	demand 0
	says ""
	on_small 'head -c 7M /dev/zero >small/other; "$FCOPY" -q a small/a'
	demand 1
	[[ $stderr == "fcopy: small/a: "* ]]
	on_small 'head -c 7M /dev/zero >small/other; cat a | "$FCOPY" --size=8M - small/a'
	demand 1
	mentions "fcopy: warning: small/a needs 8.0 MiB, but only 3.0 MiB are free"
}

@test "too little space on btrfs, as root: the warning, although f_bfree is larger" {
	need_root "to mount"
	PATH=$PATH:/usr/sbin:/sbin need mkfs.btrfs
	truncate -s 300M image
	PATH=$PATH:/usr/sbin:/sbin mkfs.btrfs -q image
	mkdir m
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -o loop image m || exit 77
		head -c 180M /dev/urandom >m/fill
		sync m/fill
		head -c 70M /dev/urandom >big
		[ "$(stat -f -c "%f * %S / 1048576" m | xargs expr)" -gt 70 ] || exit 78
		"$FCOPY" big m/o'
	[ "$status" != 77 ] || skip "no btrfs here"
	[ "$status" != 78 ] || skip "f_bfree is not larger"
	demand 1
	[[ ${stderr_lines[0]} =~ ^fcopy:\ warning:\ m/o\ needs\ 70\ MiB,\ but\ only\ [0-9]+\ MiB\ are\ free$ ]] || { echo "$stderr"; return 1; }
}

@test "too little space on a small ext4: the warning, and a sparse source needs less" {
	need_root "to mount"
	need mkfs.ext4
	mkdir m
	truncate -s 24M image
	mkfs.ext4 -q image
	random a 30M
	truncate -s 30M sparse
	export FCOPY
	private_mounts 'mount -o loop image m || exit 77; "$FCOPY" sparse m/s || exit; "$FCOPY" a m/a'
	[ "$status" != 77 ] || skip "no loop device here"
	demand 1
	[[ ${stderr_lines[0]} =~ ^fcopy:\ warning:\ m/a\ needs\ 30\ MiB,\ but\ only\ [0-9]+\ MiB\ are\ free$ ]] || { echo "$stderr"; return 1; }
	mentions "No space left on device (the copy needs 30 MiB, "
}

@test "-vv: each refusal of an engine, with call and reason" {
	need_strace
	random a 3000000
	traced 0 inject=ioctl:error=EOPNOTSUPP -vv a b
	cmp a b
	mentions "ioctl(FICLONE)" "Operation not supported" "readwrite"
}

@test "control characters of names are not sent to the terminal" {
	local name=$'no\nsuch\e[31m\t\x7f'
	expect 2 "$name" b
	says 'fcopy: no\012such\033[31m\011\177: open: No such file or directory'
	expect 2 a b "$name"
	[[ $stderr != *$'\e'* ]]
	echo data >a
	expect 2 -j "$name" a b
	[[ $stderr != *$'\e'* ]]
	expect 2 --sparse="$name" a b
	[[ $stderr != *$'\e'* ]]
	expect 2 --buffer-size="$name" a b 1
	[[ $stderr != *$'\e'* ]]
}

@test "control characters of a DST that is gone on with are not sent to the terminal" {
	local name=$'b\n\e[31m'
	random a 100000
	begin_part a "$name" 8
	expect 0 --resume a "$name"
	says 'fcopy: b\012\033[31m: resuming at 8 of 98 KiB (8 %)'
	rm "$name"
	begin_part a "$name" 8
	random a 100000
	expect 0 --resume a "$name"
	says 'fcopy: b\012\033[31m: starting over: its .fcopy-part differs from the source'
}

@test "control characters in UTF-8 (C1) are not sent to the terminal either" {
	expect 2 $'no\xc2\x9b31msuch' b
	[[ $stderr != *$'\xc2\x9b'* ]]
}

@test "names in UTF-8 and in no encoding at all are printed as they are" {
	expect 2 $'na\xc3\xafve' b
	says $'fcopy: na\xc3\xafve: open: No such file or directory'
	expect 2 $'bad\xff' b
	mentions "open: No such file or directory"
}

@test "-q: no warning, but the failure is printed" {
	expect 2 -q nope b
	says "fcopy: nope: open: No such file or directory"
}

@test "what turns or hides a name (bidi, no width, tags) is not sent to the terminal, nor a raw C1 byte" {
	expect 2 $'no\xe2\x80\xaesuch\xe2\x80\x8b\xef\xbb\xbf\xf3\xa0\x81\x81\x9b' b
	says 'fcopy: no\342\200\256such\342\200\213\357\273\277\363\240\201\201\233: open: No such file or directory'
	expect 2 $'\xe2\x82\xac\xf0\x9f\x98\x80\xe4\xbd\xa0' b
	says $'fcopy: \xe2\x82\xac\xf0\x9f\x98\x80\xe4\xbd\xa0: open: No such file or directory'
	expect 2 --json $'no\xe2\x80\xaesuch\xf3\xa0\x81\x81' b
	[[ $output == *'"src": "no\u202esuch\udb40\udc41"'* ]] || { echo "$output"; return 1; }
}

@test "-p to a device: one warning, and what was named still fails" {
	echo data >a
	expect 0 -p a /dev/null
	says "fcopy: warning: /dev/null: attributes are preserved between files only"
	expect 2 -p --preserve=xattr a /dev/null
	says "fcopy: /dev/null: attributes are preserved between files only"
}

@test "a message is one write, whatever is in its name" {
	need_strace
	traced 2 trace=write $'no\nsuch\033file' b
	[ "$(grep -c 'write(2<' trace)" = 1 ] || { cat trace; return 1; }
	traced 2 trace=write a /no/such/directory/b copy_file_range
	[ "$(grep -c 'write(2<' trace)" = 1 ] || { cat trace; return 1; }
}

@test "--json: standard output is DST: refused; if it becomes a copy below DST: a message, exit 1, and a whole copy" {
	local option
	need jq
	random a 100000
	mkdir d
	for option in --inplace --force; do
		run bash -c '"$0" --json $1 a b >b' "$FCOPY" $option
		[ "$status" = 2 ]
		[ "$output" = "fcopy: --json: standard output receives the copy: use --json=FILE" ]
		[ ! -s b ]
	done
	run bash -c '"$0" --json -r a d >d/a' "$FCOPY"
	[ "$status" = 1 ]
	jq -e '.done == false and .tree.failed == 1' d/a
	# A file that had no name before the copy is not the copy.
	run -0 bash -c 'exec 7>t 8<t; rm t; "$0" --json a b >&7; cat <&8' "$FCOPY"
	jq -e .done <<<"$output"
}

@test "--json and --benchmark into a full disk: exit 1" {
	echo data >a
	local option
	for option in --json --benchmark; do
		run --separate-stderr bash -c '"$0" "$1" a b >/dev/full' "$FCOPY" $option
		demand 1
		mentions "No space left on device"
	done
}
