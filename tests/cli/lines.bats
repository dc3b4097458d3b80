#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --json=lines and --log-file: one line for each entry.

load helper
load json
load terminal


# make_many: 3,001 entries.
make_many() {
	python3 - <<-'END'
		import os
		for d in range(20):
		    os.makedirs(f"s/{d}")
		    for i in range(149):
		        open(f"s/{d}/{i}", "w").write("x" * (i % 7))
	END
}

# check: each line of the file is an object of the schema; the counts equal those of the last line.
check() {
	python3 - "$1" "$OBJECTS" <<-'END'
		import collections, json, sys
		lines = [json.loads(l) for l in open(sys.argv[1])]
		entries, last = lines[:-1], lines[-1]
		with open(sys.argv[2], "a") as objects:
		    for o in entries[:50] + [e for e in entries if e["error"]] + [last]:
		        objects.write(json.dumps(o) + "\n")
		assert all(e["entry"] == 1 for e in entries)
		n, t = collections.Counter(e["action"] for e in entries), last["tree"]
		want = {"copied": t["files"] + t["directories"] + t["symlinks"] + t["specials"],
		        "linked": t["hard_links"], "repaired": t["repaired"],
		        "unchanged": t["reused"] + t["unchanged"] - t["repaired"], "skipped": t["skipped"],
		        "excluded": t["excluded"], "deleted": t["deleted"], "vanished": t["vanished"],
		        "failed": t["failed"]}
		assert {a: n[a] for a in want} == want, (dict(n), want)
		copied = sum(e["bytes"] for e in entries if e["action"] == "copied")
		assert copied == last["bytes"], (copied, last["bytes"])
	END
}

@test "--json=lines: one object for each entry, and their numbers equal the summary" {
	mkdir -p s/d
	random s/d/file 300000
	echo a >s/a
	ln s/a s/hard
	ln -s a s/link
	mkfifo s/fifo
	printf x >$'s/\377'
	expect 0 -a --exclude=d/ --json=lines s d
	printf '%s\n' "$output" >out
	check out
	[ "$(jq -r 'select(.path == null and .action == "copied").dst' out)" = d ]
	[ "$(jq -r 'select(.action == "excluded").path' out)" = d ]
	[ "$(jq -r 'select(.path_b64).path_b64' out | base64 -d)" = $'\377' ]
	[ "$(jq -r 'select(.action == "linked").type' out)" = file ]
	# A merge with failures, and what exists; several SRC; a file.
	ln -s nowhere s/bad
	echo new >s/d/new
	cp s/a other
	expect 1 -rLn --json=lines s/. other missing d
	printf '%s\n' "$output" >out
	check out
	[ "$(jq -c 'select(.path == "bad") | [.operand, .action, .error.errno]' out)" = '["s/.","failed","ENOENT"]' ]
	[ "$(jq -c 'select(.operand == "missing") | [.path, .action]' out)" = '[null,"failed"]' ]
	[ "$(jq -c 'select(.path == "d/file") | [.action, .bytes, .type]' out)" = '["copied",300000,"file"]' ]
	expect 0 --json=lines s/d/file single
	[ "$(jq -sc '[.[0].action, .[0].bytes, .[0].dst, .[1].done]' <<<"$output")" = '["copied",300000,"single",true]' ]
	expect 2 --json=lines missing single
	[ "$(jq -sc '[.[0].action, .[0].error.call, .[1].done]' <<<"$output")" = '["failed","open",false]' ]
}

@test "--json=lines: a mirror reports what it leaves alone and what it removes" {
	mkdir -p s/d t/old/x
	echo a >s/a
	echo b >s/d/b
	mkdir links # each name is counted once
	echo c >links/1
	ln links/1 links/2
	ln links/1 links/3
	expect 0 --mirror links linked
	rm linked/2
	cp -p linked/1 linked/2 # unchanged, but no link
	for _ in 1 2; do
		expect 0 --mirror --json=lines links linked
		printf '%s\n' "$output" >out
		check out
	done
	[ "$(jq -r 'select(.action == "unchanged").path' out | sort | tr '\n' ' ')" = "1 2 3 " ]
	expect 0 --mirror --max-delete=9 --json=lines s t
	printf '%s\n' "$output" >out
	check out
	[ "$(jq -r 'select(.action == "deleted").dst' out | sort | tr '\n' ' ')" = "t/old t/old/x " ]
	expect 0 --mirror --json=lines s t
	printf '%s\n' "$output" >out
	check out
	[ "$(jq -r 'select(.action == "unchanged").path' out | sort | tr '\n' ' ')" = "a d/b " ]
	[ "$(jq -r 'select(.action == "copied").dst' out)" = "" ] # not even SRC itself
	[ "$(jq -s '.[-1].tree.directories' out)" = 0 ]
	expect 0 --mirror -v s t
	[ "$output" = "" ]
	# What an option leaves alone is not called unchanged: it may differ.
	echo newer >t/a
	expect 0 -aT -u --json=lines s t
	printf '%s\n' "$output" >out
	check out
	[ "$(jq -r 'select(.action == "skipped").path' out | sort | tr '\n' ' ')" = "a d/b " ]
	expect 1 -aTv -i --update=changed s t <<<n
	grep -qx "t/a: exists, skipped" <<<"$output"
	[ "$(cat t/a)" = newer ]
}

@test "--json=lines --dry-run: each object says that nothing was done" {
	mkdir -p s/d
	echo a >s/a
	ln s/a s/d/b
	local options
	for options in '-a s d' '-aT s m' '--mirror s m' 's/a new'; do
		mkdir -p m/d
		echo old >m/d/extra
		# shellcheck disable=SC2086
		expect 0 --dry-run --json=lines $options
		printf '%s\n' "$output" >out
		check out
		jq -es 'all(.dry_run)' out
		jq -es '.[-1].done and .[-1].committed == null and (.[-1].tree.committed | not)' out
		jq -es 'all(.[-1].tree.operands[]; (.committed | not) and .state == "unchanged")' out
		absent d
		absent new
		absent m/a
	done
	expect 0 --json=lines -a s d
	jq -es 'all(.dry_run == false) and .[-1].tree.committed' <<<"$output"
}

@test "--json=lines, killed: every line but the last parses, and lines come within a second" {
	make_many
	"$FCOPY" -r --limit-rate=5K --json=lines s d >out &
	pid=$!
	await test -s out
	kill -KILL $pid
	wait $pid || [ $? = 137 ]
	head -n -1 out | python3 -c 'import json, sys
for line in sys.stdin: json.loads(line)'
	rm -rf .fcopy-*
}

@test "--json=lines where no thread can be started: lines still come during the copy" {
	make_many
	install -m 755 "$FCOPY" fcopy
	chmod 777 .
	local nobody=
	# shellcheck disable=SC2153 # it is the helper's
	! is_root || nobody=$NOBODY
	# shellcheck disable=SC2086
	$nobody bash -c 'ulimit -u 1; exec ./fcopy -r --limit-rate=2K --json=lines s d' >out &
	pid=$!
	await test -s out
	kill -KILL $pid
	wait $pid || [ $? = 137 ]
	rm -rf .fcopy-*
	# shellcheck disable=SC2086
	$nobody bash -c 'ulimit -u 1; exec ./fcopy -r --json=lines s f' >out
	check out
	[ "$(wc -l <out)" = 3002 ]
}

@test "--json=lines: a slow reader loses nothing; one that goes away ends the copy" {
	make_many
	"$FCOPY" -r --json=lines s d | python3 -c 'import sys, time
time.sleep(0.5)
for n, line in enumerate(sys.stdin):
    if n % 100 == 0: time.sleep(0.01)
    sys.stdout.write(line)' >out
	check out
	[ "$(wc -l <out)" = 3002 ]
	run -141 bash -c 'set -o pipefail; "$FCOPY" -r --limit-rate=50K --json=lines s e | head -n 1 >one'
	[ "$(wc -l <one)" = 1 ]
	absent e
	[ -z "$(find . -maxdepth 1 -name '.fcopy-*')" ]
	# The same where SIGPIPE is ignored.
	python3 - "$FCOPY" <<-'END'
		import os, signal, subprocess, sys
		signal.signal(signal.SIGPIPE, signal.SIG_IGN)
		r, w = os.pipe()
		os.close(r)
		run = subprocess.run([sys.argv[1], "-r", "--json=lines", "--limit-rate=50K", "s", "e"], stdout=w,
		                     stderr=subprocess.PIPE, restore_signals=False)
		assert run.returncode == 1 and b"Broken pipe" in run.stderr, run
	END
	absent e
}

@test "the examples of the manual for jq, Python and a shell loop work as they are printed" {
	need mandoc
	mkdir -p backing/src bin
	echo one >backing/src/a
	ln -s "$FCOPY" bin/fcopy
	mandoc -Tascii -O width=120 "$BATS_TEST_DIRNAME/../../src/man/fcopy-json.5" | col -bx >page
	sed -n 's/^ *\$ \(jq .*report.*\)/\1/p' page >jq.sh
	# From its first line to its last one, without the indent.
	block() { sed -n "/^ *$1/,/^ *$2/p" page | python3 -c 'import sys, textwrap
print(textwrap.dedent(sys.stdin.read()))'; }
	block 'import json' '  *print(entry' >example.py
	block 'fcopy -a --keep-going' 'done' >loop.sh
	[ "$(wc -l <jq.sh)" = 2 ]
	[ -s example.py ]
	[ -s loop.sh ]
	# Each open of a file for reading reaches the storage: the first two reads of a fail.
	# shellcheck disable=SC2016
	by_fuse 'fault=read:EIO:0:2 -o direct_io' '
		PATH=$PWD/bin:$PATH
		cd m
		[ "$(python3 ../example.py)" = "a EIO" ] || { echo "python: $(python3 ../example.py)"; exit 1; }
		rm -rf dst.fcopy-part
		sh ../loop.sh
		cmp src/a dst/a || exit 1
		[ "$(sh ../jq.sh)" = "      1 readwrite" ] || { sh ../jq.sh; exit 1; }
		cp report failed
		echo "{\"tree\": {\"failures\": [{\"path\": \"src/x\", \"call\": \"open\", \"errno\": \"EACCES\"}]}}" >report
		[ "$(sh ../jq.sh)" = "$(printf "src/x\topen\tEACCES")" ] || { sh ../jq.sh; exit 1; }
		cd ..'
}

@test "--log-file: what is kept of a copy that failed, of a file and of a tree" {
	random a 100000
	(ulimit -f 64 && exec "$FCOPY" --resume --log-file=log a b 2>/dev/null) || true
	sed 's/^[^ ]* //' log >lines
	grep -qxF "b: not created; kept as b.fcopy-part" lines
	mkdir s
	ln -s nowhere s/bad
	expect 1 -rL --log-file=tree s e
	sed 's/^[^ ]* //' tree >lines
	grep -qxF "e: not created; kept as e.fcopy-part" lines
	echo old >c
	(ulimit -f 64 && exec "$FCOPY" --resume --log-file=old a c 2>/dev/null) || true
	grep -qF " c: unchanged; kept as c.fcopy-part" old
}

@test "--log-file: what -v lists, with times, is appended; it is opened first, and is no operand" {
	mkdir s
	echo a >s/a
	ln -s nowhere s/bad
	expect 0 -a --log-file=log s d
	says ""
	[ -z "$output" ]
	expect 1 -rL --keep-going --log-file=log s e
	time='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[+-][0-9]{4}'
	[ "$(grep -vcE "^$time " log)" = 0 ] || { cat log; return 1; }
	[ "$(grep -cE " start: .*fcopy " log)" = 2 ]
	grep -qE "^$time s/a -> d/a$" log
	grep -qE "^$time failed: s/bad: is a dangling symlink$" log
	[ "$(tail -n 1 log | sed 's/^[^ ]* //')" = "end: failed, 2 entries, 1 failed, 2 B" ]
	expect 1 -r --log-file=missing/log s f
	absent f
	expect 2 --log-file=s/a s/a g
	holds a s/a
	expect 0 --log-file=log s/a g
	tail -n 2 log | grep -qE "^$time s/a -> g: 2 B"
}
