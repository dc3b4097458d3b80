#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is printed about a tree: failures, statistics, JSON, the progress line and the last line.

load helper
load json
load terminal

make_small() {
	mkdir -p s/d
	random s/d/file 300000
	echo a >s/a
	ln s/a s/hard
	ln -s a s/link
	mkfifo s/fifo
}

# value EXPRESSION: of the JSON object in out.json, as Python sees it.
value() {
	python3 -c 'import json, sys
o = json.load(open("out.json"))
t = o["tree"]
print(eval(sys.argv[1]))' "$1"
}

@test "the first 20 failures are printed, and a count; --json has all of them" {
	local i
	mkdir s
	echo x >s/f
	for i in {1..33}; do
		ln -s nowhere "s/link$i"
	done
	expect 1 -rL --json=out.json s d
	[ "$(grep -c 'is a dangling symlink' <<<"$stderr")" = 20 ]
	mentions "33 entries failed; the first 20 are listed above; the JSON object has all" "d.fcopy-part: kept" --resume --keep-going
	[ "$(value 'len(t["failures"]), t["failed"], t["part"], t["committed"], o["done"]')" = \
		"(33, 33, 'd.fcopy-part', False, False)" ]
	[ "$(value 'len({f["path"] for f in t["failures"]})')" = 33 ]
	[ "$(value 't["failures"][0]["errno"], o["error"] == t["failures"][0]')" = "('ENOENT', True)" ]
}

@test "--json: one object that counts what the tree consists of, and obeys the schema" {
	make_small
	expect 0 -a --json=out.json s d
	[ "$(value 't["files"], t["directories"], t["symlinks"], t["specials"], t["hard_links"]')" = \
		"(2, 2, 1, 1, 1)" ]
	[ "$(value 'o["bytes"], o["done"], t["failed"], t["failures"], t["committed"], t["sources"]')" = \
		"(300002, True, 0, [], True, 1)" ]
	[ "$(value 'sum(e["bytes"] for e in o["engines"])')" = 300002 ] ||
		[ "$(value 'o["data"] + o["holes"]')" = 300002 ]
	[ "$(wc -l <out.json)" = 1 ]
	mkdir into
	expect 1 --json=out.json s/a s/d/file s/d into
	[ "$(value 't["files"], t["failed"], t["sources"], t["failures"][0]["path"]')" = "(2, 1, 3, 's/d')" ]
	expect 0 --json=out.json s/a b
	[ "$(value 't')" = None ]
	expect 0 -r --json=out.json s e
	valid "$(cat out.json)"
	expect 2 -r --json=out.json none f
	valid "$(cat out.json)"
}

@test "merge: directories that DST has are not counted as made, in a dry run and after it" {
	need jq
	local options way
	mkdir -p s/d/e s/new
	echo 1 >s/d/f
	chmod 750 s/d
	touch -d 2001-02-03 s/d/e
	for options in -rT -aT "-aT --update=changed" "-rT --preserve=mode"; do
		rm -rf d
		mkdir -p d/d/e
		for way in --dry-run ""; do
			# shellcheck disable=SC2086 # words
			expect 0 $options $way --json=lines s d
			jq -c 'if .entry then [.dst, .action] else [.tree | .directories, .files, .repaired] end' <<<"$output" |
				sort >"listed$way"
		done
		cmp listed--dry-run listed || { cat listed--dry-run listed; return 1; }
		grep -qx '\["d/new","copied"\]' listed
		grep -q '^\[1,1,' listed
		never grep -q '"d/d/*e*","copied"' listed
	done
	expect 0 -aT s d
	expect 0 -aT --json s d
	[ "$(jq -c '.tree | [.directories, .files, .repaired]' <<<"$output")" = "[0,1,0]" ]
}

@test "--stats: entries by kind, entries per second, and bytes by engine" {
	make_small
	expect 0 -a --stats s d
	[[ $stderr =~ entries\ +7\ +[0-9]+/s ]]
	[[ $stderr =~ files\ +2 ]]
	[[ $stderr =~ directories\ +2 ]]
	[[ $stderr =~ symlinks\ +1 ]]
	[[ $stderr =~ "special files"\ +1 ]]
	[[ $stderr =~ "hard links"\ +1 ]]
	grep -qE '^data +29[23] KiB +300002 bytes' <<<"$stderr" || { echo "$stderr"; return 1; }
	mentions engine real user sys "peak memory"
}

@test "--progress: the last line has entries, bytes and what is true of the copy" {
	make_small
	expect 0 -r --progress s d
	[[ $stderr == "s  copied  7 entries  293 KiB  "* ]] || { echo "$stderr"; return 1; }
	expect 0 -r --progress --verify s e
	[[ $stderr == "s  copied, verified, flushed  7 entries  293 KiB  "* ]] || { echo "$stderr"; return 1; }
	expect 0 -r s f
	says ""
}

@test "the progress line says waiting only while a FIFO has no writer" {
	mkdir s d
	random s/a 2500000
	expect 0 -r --progress --limit-rate=1M s t
	[[ $stderr =~ ^"s  "[0-9]+"%  "[0-9.]+/2.4" MiB  "[0-9.]+" "[KM]"iB/s  " ]] || { echo "$stderr"; return 1; }
	[[ $stderr != *waiting* ]]
	mkfifo f
	{ sleep 2.5; cat s/a >f; } &
	expect 0 -L --progress f s/a d
	mentions 'waiting for a peer'
	cmp s/a d/f
}

@test "the progress line: entries, bytes and speed, and the name of a large file, at every width" {
	local columns
	need tmux
	mkdir -p s/d
	random s/a 3000000
	random s/d/large.img 40000000
	for columns in 40 80 200; do
		terminal $columns
		type_in "\"$FCOPY\" -r --progress --limit-rate=8M s d$columns" Enter
		if [ $columns = 40 ]; then
			until_shown '[0-9]+% .*[0-9]+ of [34] entries'
		else
			until_shown 'large.img +[0-9]+% .* of [34] entries +[0-9.]+/41 MiB +[0-9.]+ MiB/s'
		fi
		until_shown 'copied +4 entries'
		tmux_ kill-server
	done
}

@test "progress says that an unfinished tree is removed; a second signal ends that at once" {
	need_strace
	local status=0
	mkdir s
	random bytes 2000000
	split -b 2000 -a 3 bytes s/ # 10 s at this rate, in whatever order they are copied
	# Each unlinkat takes 60 ms: a minute in all.
	strace -D -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:delay_enter=60000 \
		"$FCOPY" -r -j1 --progress --limit-rate=200K s d 2>err &
	pid=$!
	await is_fcopy
	await said 'entries' err
	kill -TERM $pid
	await said 'removing the copy  [0-9]*%  [1-9][0-9]* of 1001 entries' err
	await unguarded
	kill -TERM $pid
	wait $pid || status=$?
	[ $status = 143 ]
	[ -n "$(find .fcopy-* -type f)" ]
	rm -rf .fcopy-*
}

# stopped NAME ARG…: SIGTERM ends fcopy when NAME exists.
stopped() {
	"$FCOPY" --limit-rate=500K "${@:2}" 2>err &
	pid=$!
	await has_bytes "$1"
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ $status = 143 ] || { cat err; return 1; }
	stderr=$(<err)
}

has_bytes() {
	[ -s "$1" ]
}

@test "a signal during one file: DST is unchanged, or a part is kept and named" {
	mkdir s d
	random s/file 3000000
	echo old >d/file
	"$FCOPY" -a --limit-rate=500K s/file d/file 2>err &
	pid=$!
	await has_written
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ $status = 143 ]
	grep '; d/file unchanged$' err
	holds old d/file
	stopped d/file.fcopy-part/data -a --resume s/file d/file
	says 'fcopy: stopped; d/file unchanged; kept as d/file.fcopy-part' 'fcopy: hint: run the same command again to resume'
	expect 0 -a --resume s/file d/file
	cmp s/file d/file
	expect 0 -rT --resume s d # complete
	echo more >>s/file
	expect 2 -rT --resume s d
	mentions "d: exists and is not the complete copy: to merge into it, leave out --resume"
}

@test "a signal at the commit of the only file: it is complete, and that is the result" {
	mkdir s
	random s/file 100000
	echo old >file
	need_strace
	traced 0 inject=renameat,renameat2:signal=INT -a s/file file
	cmp s/file file
}

@test "several files: the phases of the object add up to its time" {
	random a 100000
	cp a b
	mkdir d
	expect 0 --json --limit-rate=100K a b d
	is '.phases.copy > 0.5' '([.phases[]] | add) <= .real + 0.001'
	expect 0 --json --verify a b d
	valid "$output"
	is '.phases.verify == null' '.phases.copy > 0'
	mkfifo p
	(sleep 0.5 && echo late >p) &
	expect 0 --json p a d
	is '([.phases[]] | add) as $sum | $sum > 0.8 * .real and $sum <= .real + 0.001'
	wait $!
}

@test "on XFS: a tree of clones, one file of which moved bytes, is not reported as cloned" {
	need_root "to mount an image"
	need mkfs.xfs
	truncate -s 400M image
	mkfs.xfs -q image
	mkdir m
	export FCOPY
	# shellcheck disable=SC2016
	private_mounts 'mount -o loop image m || exit 99
		mkdir -p m/t m/d
		head -c 3000000 /dev/urandom >m/t/a
		: >m/t/empty
		"$FCOPY" -r --json m/t m/t2
		head -c 100000 /dev/urandom >b
		"$FCOPY" --json m/t/a b m/d'
	[ "$status" != 99 ] || skip "XFS cannot be mounted here"
	demand 0
	[ "$(jq -c '[.moved, .cloned]' <<<"$output" | paste -sd' ')" = '[0,true] [100000,false]' ]
}

@test "a merge in which an entry fails is incomplete: neither a message nor --json says committed" {
	local option
	mkdir -p s/x d
	echo a >s/a
	echo f >d/x
	for option in "" --keep-going; do
		rm -f d/a
		# shellcheck disable=SC2086
		expect 1 -rT $option --json=out.json s d
		holds a d/a
		[[ $stderr != *ommitted* ]] || { echo "$stderr"; return 1; }
		[ "$(value 't["committed"], t["failed"], t["operands"][0]["state"], t["operands"][0]["committed"]')" = \
			"(False, 1, 'incomplete', False)" ]
	done
	rm -r d
	expect 1 -rLT --keep-going --json=out.json s d || true
	ln -s nowhere s/bad
	rm -rf d
	expect 1 -rLT -q --keep-going --json=out.json s d
	[ "$(value 't["committed"], t["operands"][0]["state"], t["operands"][0]["failed"]')" = "(True, 'incomplete', 1)" ]
	says "fcopy: s/bad: is a dangling symlink" "fcopy: d: committed despite 1 failure"
}

@test "--json with several SRC: DST is the directory, and each SRC is described" {
	mkdir s d
	echo 1 >s/1
	random one 3000
	echo 2 >two
	expect 1 -r --json=out.json s one missing two d
	valid "$(cat out.json)"
	[ "$(value 'o["src"], o["dst"], o["done"], t["sources"], t["committed"]')" = "('s', 'd', False, 4, False)" ]
	[ "$(value '[(p["src"], p["dst"], p["state"]) for p in t["operands"]]')" = \
		"[('s', 'd/s', 'complete'), ('one', 'd/one', 'complete'), ('missing', None, 'unchanged'), ('two', 'd/two', 'complete')]" ]
	[ "$(value '[(p["files"], p["directories"], p["failed"], p["bytes"]) for p in t["operands"]]')" = \
		"[(1, 1, 0, 2), (1, 0, 0, 3000), (0, 0, 1, 0), (1, 0, 0, 2)]" ]
	[ "$(value 'all(t[k] == sum(p[k] for p in t["operands"]) for k in ("files", "directories", "failed"))')" = True ]
	expect 0 -n --json=out.json one two d
	[ "$(value '[(p["state"], p["skipped"], p["files"]) for p in t["operands"]]')" = "[('skipped', 1, 0), ('skipped', 1, 0)]" ]
	expect 0 --json=out.json one d/1
	[ "$(value 'o["dst"], t')" = "('d/1', None)" ] || [ "$(value 'o["dst"]')" = d/1 ]
}

is_writing() {
	[ -n "$(find "$1" -path '*.fcopy-*' -type f -size +100k)" ]
}

@test "a signal with several SRC: the last lines say which is in place" {
	mkdir a b d
	random a/x 1000
	random b/x 3000000
	"$FCOPY" -a --json=out.json --limit-rate=500K a b c e d 2>err &
	pid=$!
	await is_writing d
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ $status = 143 ]
	cmp a/x d/a/x
	absent d/b
	diff - err <<-'END'
		fcopy: stopped; copied 1 of 4 SRC to d
		fcopy: d/b: not created
		fcopy: not begun: c and 1 more
		fcopy: hint: use --resume to keep an unfinished copy
	END
	valid "$(cat out.json)"
	[ "$(value '[p["state"] for p in t["operands"]]')" = "['complete', 'unchanged', 'not begun', 'not begun']" ]
	[ "$(value 'o["bytes"], t["files"]')" = "(1000, 1)" ]
}

@test "warnings by the hundred: five of a kind and their number; --json has all" {
	local i
	need_root "to give files away"
	need_strace
	mkdir s
	for i in {1..60}; do
		echo $i >s/$i
	done
	chown 1234 s/*
	traced 0 inject=fchown:error=EPERM -a --json=out.json s d
	mentions "fcopy: warning: fchown: Operation not permitted: 60 times; the first 5 are listed"
	[ "$(wc -l <<<"$stderr")" = 6 ] || { echo "$stderr"; return 1; }
	[ "$(value 'len(o["warnings"])')" = 60 ]
	rm -r d
	traced 0 inject=fchown:error=EPERM -av s d
	[ "$(grep -c 'warning: .*fchown' <<<"$stderr")" = 60 ]
}

@test "failures by the dozen: -v prints all of them" {
	local i
	mkdir s
	for i in {1..33}; do
		ln -s nowhere "s/link$i"
	done
	expect 1 -rLv s d
	[ "$(grep -c 'is a dangling symlink' <<<"$stderr")" = 33 ]
	mentions "fcopy: 33 entries failed"
	expect 1 -rL s e
	mentions "fcopy: 33 entries failed; the first 20 are listed above; -v or --json lists all"
}
