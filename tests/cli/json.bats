#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --json: for programs. Every object is checked against the schema that is installed with fcopy.

load helper
load json

@test "a copy: one object on stdout, nothing on stderr" {
	random a 3000000
	expect 0 --json a b 1
	[ -z "$stderr" ]
	valid "$output"
	is '.done' '.error == null' '.src == "a"' '.dst == "b"' '.mode == "readwrite"' \
		'.bytes == 3000000' '.data == 3000000' '.holes == 0' '.real > 0' \
		'.engines | length == 1' '.engines[0].calls == 735' '.peak_memory > 100000' '.committed == null'
}

@test "the name of a copy into a directory" {
	mkdir d
	echo data >a
	expect 0 --json a d
	is '.dst == "d/a"'
}

@test "DST is standard output: the object needs a FILE" {
	local dst
	echo data >a
	for dst in - fd:1 /dev/stdout /dev/fd/1; do
		usage_error "--json: standard output receives the copy: use --json=FILE" --json a $dst
		[ -z "$output" ]
		expect 0 --json=report a $dst
		[ "$output" = data ]
		valid "$(cat report)"
		says ""
	done
}

@test "--json with an empty file name is a usage error" {
	random a 100
	usage_error "--json: invalid file name '' (empty)" --json= a b
	absent b
}

@test "--json=FILE: one object, also over a longer file; - is standard output" {
	random a 100000
	head -c 10000 /dev/zero >report
	expect 0 --json=report --stats a b
	[ -z "$output" ]
	valid "$(cat report)"
	[ "$(wc -l <report)" = 1 ]
	expect 0 --json=- a b
	valid "$output"
	expect 1 --json=nodir/report a c
	says "fcopy: nodir/report: open: No such file or directory"
	absent c
	run --separate-stderr "$FCOPY" --json=/dev/full a c
	demand 1
	mentions "fcopy: /dev/full: write: No space left on device"
}

@test "--json=FILE never overwrites SRC or DST" {
	random a 100000
	cp a before
	ln -s a link
	echo old >b
	mkdir d
	local file
	for file in a ./a link; do
		expect 2 --json=$file a c
		says "fcopy: --json: $file is an operand, too: name another file"
		expect 2 --json=$file --nope a c
		cmp a before
	done
	expect 2 --json=b a b
	holds old b
	expect 2 --json=new a new
	absent new
	expect 2 --json=d/a a d
	says "fcopy: --json: d/a is an operand, too: name another file"
	absent d/a
	echo old >d/a
	expect 2 --json=d/a --inplace a d
	holds old d/a
}

@test "--json=-: standard output, with the same rules as --json" {
	echo data >a
	usage_error "--json: standard output receives the copy: use --json=FILE" --json=- a -
	[ -z "$output" ]
	expect 2 --nope --json=- a -
	[ -z "$output" ]
	expect 0 --list --json=-
	valid "$output"
}

@test "--json=FILE never writes to a descriptor that is SRC or DST" {
	local file
	random a 100000
	cp a before
	for file in /dev/stdout /dev/fd/1; do
		run bash -c '"$0" --json=$1 a - 2>err | cat >b; exit ${PIPESTATUS[0]}' "$FCOPY" $file
		[ "$status" = 2 ]
		said "^fcopy: --json: $file is an operand, too: name another file" err
		[ ! -s b ]
		run bash -c '"$0" --json=$1 a - >c' "$FCOPY" $file
		[ "$status" = 2 ]
		[ ! -s c ]
	done
	run bash -c '"$0" --json=c a fd:7 7>c' "$FCOPY"
	[ "$status" = 2 ]
	[ ! -s c ]
	run bash -c '"$0" --json=a - c <a' "$FCOPY"
	[ "$status" = 2 ]
	cmp a before
	run -0 --separate-stderr bash -c '"$0" --json=/dev/stdout - c <a | cat' "$FCOPY"
	valid "$output"
	cmp a c
}

@test "--list --json: every mode as an object" {
	expect 0 --list --json
	valid "$output"
	[ "$(jq -r '.list[] | "\(.number) \(.mode)"' <<<"$output" | paste -sd, | sed 's/,/, /g')" = "$MODE_LIST" ]
	is '.list[1].mode == "readwrite"' '.list[0].engine == null'
	expect 0 --list --json=report
	[[ $output == MODE* ]]
	valid "$(cat report)"
}

@test "an object for each kind of usage error, before and after --json" {
	echo data >a
	expect 2 --nope --json a b
	valid "$output"
	is '.done == false' '.usage == "--nope: no such option"'
	expect 2 --json=report --nope a b
	[ -z "$output" ]
	valid "$(cat report)"
	expect 2 --json --verify a /dev/null
	valid "$output"
	is '.done == false' '.error.path == "/dev/null"'
}

@test "a failure before the first byte" {
	expect 2 --json nope b
	valid "$output"
	is '.done == false' '.bytes == 0' '.error.call == "open"' '.error.operation == null' '.error.errno == "ENOENT"' \
		'.error.path == "nope"' '.error.message == "No such file or directory"'
	says "fcopy: nope: open: No such file or directory"
}

@test "a failure in the middle: how far it got" {
	random a 3000000
	run --separate-stderr bash -c 'ulimit -f 1000; "$0" --json a b readwrite' "$FCOPY"
	demand 1
	valid "$output"
	is '.done == false' '.bytes == 1024000' '.error.errno == "EFBIG"' '.error.call == "pwrite"' \
		'.error.path == "b"' '.error.engine == "readwrite"'
}

@test "a refusal of the kernel, and one of fcopy's own" {
	need_strace
	echo data >a
	traced 1 inject=sendfile:error=EINVAL --json a b 2
	valid "$output"
	is '.error.call == "sendfile"' '.error.errno == "EINVAL"' '.error.path2 == "b"' \
		'.engines[0].refused_errno == "EINVAL"'
	expect 2 --json a a
	valid "$output"
	is '.error.call == null' '.error.message == "are the same file"'
}

@test "usage errors write an object, too" {
	local -a args
	while read -ra args; do
		expect 2 --json "${args[@]}"
		valid "$output"
		is '.done == false' '.usage | length > 10'
	done <<-'END'
		a
		-m nomode a b
		-j 0 a b
		--nope a b
	END
}

@test "--json=FILE of a server has the object of a client as soon as the client is served" {
	need python3
	random a 1000
	serve --json=report -k a tcp-listen:0
	expect 0 tcp:127.0.0.1:"$port" b
	await test -s report
	output=$(cat report)
	valid "$output"
	is '.done == true' '.bytes == 1000'
	stop KILL
	ended 137
	[ "$(cat report)" = "$output" ]
}

@test "an interrupted copy: the object, then death by the signal" {
	local pid status=0
	"$FCOPY" --json --limit-rate=1M /dev/zero b >out &
	pid=$!
	await has_written
	kill -TERM $pid
	wait $pid || status=$?
	[ $status = 143 ]
	output=$(cat out)
	valid "$output"
	is '.done == false' '.error.errno == "EINTR"' '.interrupted == "SIGTERM"'
	absent b
}

@test "a tree that SIGPIPE interrupts: the object names the signal" {
	local pid status=0
	mkdir s
	random s/a 3000000
	env --default-signal=PIPE "$FCOPY" -r --json=report --limit-rate=100K s d 2>err 3>&- &
	pid=$!
	await compgen -G '.fcopy-*'
	kill -PIPE $pid
	wait $pid || status=$?
	[ $status = 141 ]
	output=$(cat report)
	valid "$output"
	is '.done == false' '.interrupted == "SIGPIPE"'
	absent d
}

@test "--json=FILE that cannot be truncated: a message, exit 1, and a whole copy" {
	need_strace
	random a 1000
	echo old >report
	traced 1 inject=ftruncate:error=EIO --json=report a b
	injected
	says "fcopy: report: ftruncate: Input/output error"
	cmp a b
	holds old report
	traced 1 inject=ftruncate:error=EIO --list --json=report
	injected
	says "fcopy: report: ftruncate: Input/output error"
}

@test "a path that is not UTF-8: U+FFFD, and exactly in base64" {
	local name=$'z\xff\xc3\xa4"\\\n\t\xed\xa0\x80\xc0\xaf\xf4\x90'
	echo data >"$name"
	expect 0 --json "$name" b
	valid "$output"
	is '.src == "z\ufffdä\"\\\n\t\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"' 'has("dst_b64") | not'
	[ "$(jq -r .src_b64 <<<"$output" | base64 -d | od -c)" = "$(printf %s "$name" | od -c)" ]
}

@test "a path in UTF-8 is given as it is, with no base64" {
	local name=$'\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7'
	echo data >"$name"
	expect 0 --json "$name" $'\xc2\x9b1m'
	valid "$output"
	is '.src == "ä€🐧"' 'has("src_b64") | not'
	# What a terminal takes for a command is escaped.
	[[ $output != *$'\xc2\x9b'* ]]
	[[ $output == *'\u009b1m'* ]]
}

@test "the object does not get through: exit 1" {
	echo data >a
	run --separate-stderr bash -c '"$0" --json a b >/dev/full' "$FCOPY"
	demand 1
	mentions "standard output: write: No space left on device"
	cmp a b
}

@test "--json=FILE that cannot be closed: the message names close" {
	need strace
	echo data >a
	# shellcheck disable=SC2016
	run --separate-stderr strace -qq -f -P "$PWD/report" -e trace=close -e inject=close:error=EIO -o trace \
		"$FCOPY" --json=report a b
	demand 1
	injected
	says "fcopy: report: close: Input/output error"
}

@test "--fsync, --verify and a clone in the object" {
	random a 100000
	expect 0 --json --verify a c
	valid "$output"
	is '.phases.verify > 0'
	if "$FCOPY" a d reflink 2>/dev/null; then
		expect 0 --json a e
		is '.cloned'
	fi
	# Where there is nothing to flush it may take less than the six decimals.
	need_strace
	traced 0 inject=fsync,fdatasync:delay_enter=10000 --json --fsync a b
	is '.phases.fsync >= 0.01' '.phases.replace > 0'
}

@test "the time until a FIFO has a writer is that of a wait, none of the copy" {
	random a 1000
	mkfifo p
	(sleep 1 && cat a >p) 3>&- &
	expect 0 --json p b
	wait
	cmp a b
	is '.phases.wait > 0.8' '.phases.copy < .phases.wait' '.phases.wait < .real'
}

@test "a mode that cannot copy from this SRC: error.option is the mode" {
	random a 1000
	expect 2 --json=report a - 4
	[ "$(jq -r .error.option report)" = mode ]
}

# A count that is added in one place only fails here.
@test "each count: header, objects, schema and manual name the same, in the same order" {
	need jq
	mkdir s
	echo data >s/f
	local top=$BATS_TEST_DIRNAME/../.. keys
	keys=$(sed -n '/^enum fcopy_count {/,/FCOPY_COUNTS/s/^\tFCOPY_COUNT_\([A-Z_]*\),.*/\1/p' "$top/include/fcopy.h" | tr A-Z a-z)
	[ "$(wc -l <<<"$keys")" -ge 19 ]
	same() { [ "$1" = "$keys" ] || { diff <(echo "$keys") <(echo "$1"); return 1; }; }
	expect 0 -r --json s d
	valid "$output"
	same "$(jq -r '.tree | keys_unsorted[] | select(IN("sources", "operands", "committed", "part", "threads_most", "threads_average", "threads_reason", "failures") | not)' <<<"$output")"
	same "$(jq -r '.tree.operands[0] | keys_unsorted[] | select(IN("src", "dst", "state", "committed", "part") | not)' <<<"$output")"
	same "$(jq -r '."$defs".counts.properties | keys_unsorted[]' "$SCHEMA")"
	same "$(jq -r '."$defs".counts.required[]' "$SCHEMA")"
	same "$(sed -n '/have these counts/,/^\.El$/s/^\.It Li //p' "$top/src/man/fcopy-json.5" | sed 's/ , /\n/g')"
}

@test "the counts of the operands add up to those of the tree, and bytes to those of the object" {
	need jq
	mkdir -p a/e b
	random a/f 3000000
	truncate -s 5M a/holes
	echo data >b/g
	ln b/g b/h
	ln -s g b/s
	mkdir d
	expect 0 -a --exclude e --json a b d
	valid "$output"
	is '[.tree.operands[].files] | add == 3' '.tree.files == 3' '.tree.hard_links == 1' '.tree.excluded == 1' \
		'. as $o | all("bytes", "data", "holes", "resumed"; $o[.] == $o.tree[.])' \
		'. as $o | all($o.tree.operands[0] | keys[] | select($o.tree.operands[0][.] | type == "number"); . as $k | ([$o.tree.operands[][$k]] | add) == $o.tree[$k])'
}
