#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is written besides the copy (--json=FILE, --log-file, standard output and standard error) is
# no file of the copy, and loses nothing to a slow reader.

load helper
load json

# ends_in FILE END: the file ends with the last line of a log.
ends_in() {
	[ "$(tail -n 1 "$1" | sed 's/^[^ ]* \(end: [a-z]*\).*/\1/')" = "$2" ] || { cat "$1"; return 1; }
}

@test "DIR/SRC that is an output is refused: nothing is written to it, and a new one is removed" {
	local o in
	mkdir d
	echo new >a
	for o in --log-file=d/a --json=d/a; do
		for in in "" --inplace; do
			# shellcheck disable=SC2086
			expect 2 $in $o a d
			says "fcopy: ${o%=*}: d/a is an operand, too: name another file"
			absent d/a
			echo old >d/a
			# shellcheck disable=SC2086
			expect 2 $in $o a d
			holds old d/a
			rm d/a
			# shellcheck disable=SC2086
			expect 2 $in ${o%/a}/n a d/n
			absent d/n
		done
	done
}

@test "one file for two outputs is refused, under any name" {
	local other
	echo new >a
	for other in x ./x link hard; do
		touch x
		ln -s x link
		ln x hard
		expect 2 --json=x --log-file=$other a b
		says "fcopy: --log-file: $other is the file of --json: name another one"
		absent b
		[ ! -s x ]
		rm x link hard
	done
	expect 2 --json=x --log-file=x a b
	absent x
	run bash -c '"$0" -v --json=x a b >x' "$FCOPY"
	[ "$status" = 2 ]
	absent b
	run bash -c '"$0" --log-file=x a b 2>x' "$FCOPY"
	[ "$status" = 2 ]
	said '^fcopy: --log-file: its file is standard error: redirect that to another file$' x
	# Two appended outputs lose nothing.
	run bash -c '"$0" -v --log-file=y a b >>y' "$FCOPY"
	[ "$status" = 0 ]
	said '^a -> b: ' y
	said 'end: done, 4 B$' y
	run bash -c '"$0" --json=/dev/stdout a b >x' "$FCOPY"
	[ "$status" = 0 ]
	valid "$(cat x)"
}

@test "an entry of a tree whose copy is an output fails; the others are copied, and the output is whole" {
	local options name
	for name in sub/f sub/l sub/p sub/h; do
		for options in -aT "-aT --inplace" "-aT -b" "-aT --remove-destination" "-aT -f" "-aTl --force" "-aT --update=changed" \
			"-aT --update=none" "-aT -n" --mirror "-aT --attributes-only"; do
			[ $name = sub/f ] || [[ $options =~ ^(-aT|-aT -b|--mirror)$ ]] || continue
			rm -rf s d log
			mkdir -p s/sub d/sub
			echo f >s/sub/f
			echo g >s/sub/g
			ln -s nowhere s/sub/l
			mkfifo s/sub/p
			ln s/sub/g s/sub/h
			# shellcheck disable=SC2086
			expect 1 $options --keep-going --log-file=d/$name s d
			mentions "fcopy: d/$name: is the file of --log-file: name another one"
			ends_in d/$name "end: failed"
			[[ $options == *attributes-only ]] || holds g d/sub/g
			# shellcheck disable=SC2086
			expect 1 $options --keep-going --json=d/$name s d
			mentions "fcopy: d/$name: is the file of --json: name another one"
			[[ $(cat d/$name) == '{"fcopy":'*'}' ]]
			[ ! -e d/$name~ ]
		done
	done
	# A symlink in DST leads to it.
	rm -rf d log
	mkdir -p d/sub
	ln -s ../../log d/sub/f
	expect 1 -rT --keep-going --log-file=log s d
	mentions "fcopy: d/sub/f: is the file of --log-file: name another one"
	ends_in log "end: failed"
	holds g d/sub/g
	# A dry run says the same.
	rm -rf d log
	mkdir -p d/sub
	expect 1 -aT --dry-run --log-file=d/sub/f s d
	mentions "fcopy: d/sub/f: is the file of --log-file: name another one"
}

@test "--parents, several SRC, --resume and --shard: a copy that is an output fails, and the output is whole" {
	local o
	mkdir s
	echo new >s/f
	echo a >a
	echo c >c
	for o in --log-file --json; do
		rm -rf d
		mkdir -p d/s
		echo old | tee d/s/f >d/c
		expect 1 --parents $o=d/s/f s/f d
		mentions "fcopy: d/s/f: is the file of $o: name another one"
		expect 1 $o=d/c a c d
		mentions "fcopy: d/c: is the file of $o: name another one"
		holds a d/a
		if [ $o = --json ]; then
			valid "$(cat d/s/f)"
			valid "$(cat d/c)"
		else
			ends_in d/s/f "end: failed"
			ends_in d/c "end: failed"
		fi
		expect 2 --resume $o=b a b
		says "fcopy: $o: b is an operand, too: name another file"
		expect 2 --shard=0/1 $o=b a b
		says "fcopy: $o: b is an operand, too: name another file"
		absent b
		absent b.fcopy-part
		touch d/t.fcopy-part
		expect 1 -aT --resume $o=d/t.fcopy-part s d/t
		mentions "d/t: its .fcopy-part "
		absent d/t
		[ -s d/t.fcopy-part ]
	done
}

@test "an output is no backup, and no link of a new tree leads to it" {
	mkdir -p s d
	echo new >s/f
	echo old >d/f
	expect 0 -aT -b --log-file=d/f~ s d
	holds new d/f
	holds old d/f~~
	ends_in d/f~ "end: done"
	rm -rf e
	cp -a s earlier
	expect 0 -a --link-dest=earlier --log-file=earlier/f s e
	holds new e/f
	ends_in earlier/f "end: done"
	expect 1 -al --log-file=s/f s g
	mentions "fcopy: s/f: is the file of --log-file: name another one"
}

@test "a mirror does not remove its output, nor the directory that holds it" {
	mkdir -p s d/extra
	echo a >s/a
	echo x >d/extra/other
	expect 0 --mirror --log-file=d/extra/log s d
	ends_in d/extra/log "end: done"
	absent d/extra/other
	expect 0 --mirror --json=d/report s d
	absent d/extra
	valid "$(cat d/report)"
	run bash -c '"$0" --mirror -v s d >d/list 2>d/messages' "$FCOPY"
	[ "$status" = 0 ]
	said '^removed d/report$' d/list
	[ -f d/messages ]
	# SRC has a file where DST has the directory that holds it.
	echo b >s/b
	mkdir d/b
	expect 1 --mirror --log-file=d/b/log s d
	mentions "d/b: differs in type from its source, but holds log, which is written by this run"
	ends_in d/b/log "end: failed"
	[ "$(cat d/a)" = a ]
}

@test "standard output and standard error: a file that receives them is not replaced, written or mixed" {
	local in
	echo new >a
	mkdir s d
	cp a s/out
	for in in "" --inplace; do
		run bash -c '"$0" $1 -v a b >b 2>err' "$FCOPY" $in
		[ "$status" = 2 ]
		[ ! -s b ]
		said '^fcopy: b: is standard output: redirect that to another file$' err
		run bash -c '"$0" $1 a b 2>b' "$FCOPY" $in
		[ "$status" = 2 ]
		said '^fcopy: b: is standard error: redirect that to another file$' b
		run bash -c '"$0" -rT $1 s d 2>d/out' "$FCOPY" $in
		[ "$status" = 1 ]
		said '^fcopy: d/out: is standard error: redirect that to another file$' d/out
		run bash -c '"$0" -rT $1 --json=lines s d 2>err >d/out' "$FCOPY" $in
		[ "$status" = 1 ]
		said '^fcopy: d/out: is standard output, which receives the object of --json$' err
		tail -n 1 d/out | jq -e '.done == false' || skip "no jq"
	done
	# Nothing is written there: the file is replaced.
	run bash -c '"$0" a b >b' "$FCOPY"
	[ "$status" = 0 ]
	holds new b
	# The bytes of a stream go there by the user's wish.
	run bash -c '"$0" a - >b 2>&1' "$FCOPY"
	[ "$status" = 0 ]
	holds new b
}

@test "a non-blocking standard output or error loses nothing to a slow reader: pipe and socket" {
	need python3
	cat >slow.py <<-'END'
		import fcntl, os, socket, subprocess, sys, time
		kind, stream, *command = sys.argv[1:]
		if kind == "socket":
		    ours, its = socket.socketpair()
		    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
		    its.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2304)
		    r, w = ours.detach(), its.detach()
		else:
		    r, w = os.pipe()
		    fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 4096)
		os.set_blocking(w, False)
		p = subprocess.Popen(command, **{"stdout": subprocess.DEVNULL, stream: w})
		os.close(w)
		time.sleep(0.2)
		while True:
		    text = os.read(r, 1500)
		    if not text:
		        break
		    os.write(1, text)
		    time.sleep(0.0001)
		sys.exit(p.wait())
	END
	mkdir s l
	for i in $(seq 200); do
		: >"s/an-entry-with-a-name-of-some-length-$i"
		ln -s nowhere "l/a-dangling-symlink-with-a-long-name-$i"
	done
	"$FCOPY" -rLv --keep-going l want 2>want.err || [ $? = 1 ]
	for kind in pipe socket; do
		rm -rf d e g
		python3 slow.py $kind stdout "$FCOPY" -av s d >list
		[ "$(grep -c ' -> d/an-entry' list)" = 200 ] || { wc list; return 1; }
		python3 slow.py $kind stdout "$FCOPY" -a --json=lines s e >lines
		[ "$(grep -c '"entry"' lines)" = 201 ] || { wc lines; return 1; }
		[[ $(tail -n 1 lines) == '{"fcopy":'*'}' ]]
		run python3 slow.py $kind stderr "$FCOPY" -rLv --keep-going l g
		[ "$status" = 1 ]
		[ "$(grep -c dangling <<<"$output")" = "$(grep -c dangling want.err)" ]
	done
}

@test "--json=FILE: another process that removes FILE during the copy makes the copy fail, which is complete" {
	mkfifo f
	"$FCOPY" --json=report f b 2>err &
	until [ -e report ]; do sleep 0.01; done
	rm report
	timeout "$HANG" bash -c 'echo data >f'
	status=0
	wait $! || status=$?
	[ "$status" = 1 ]
	holds data b
	absent report
	said '^fcopy: report: was removed or replaced during the run: no JSON was written$' err
}
