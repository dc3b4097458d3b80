#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --clean: what killed copies left is listed, and removed only if it is certainly fcopy's own and not in use.

load helper
load json

scene() {
	mkdir -p src/sub d
	head -c 3000 /dev/zero >src/a
	ln -s a src/sub/link
	mkdir -m 555 src/closed
}

# killed CALL N ARG…: fcopy ARG… is killed at its Nth CALL, in whatever thread.
killed() {
	local call=$1 n=$2
	shift 2
	run timeout -s KILL "$HANG" strace -f -qq -o trace -e trace="$call" \
		-e inject="$call:signal=KILL:when=$n" "$FCOPY" -j1 "$@"
	[ "$status" = 137 ]
}

# left: the names in d.
left() {
	ls -A d
}

@test "a killed new tree, and parts of a tree and of a file, are listed, and removed with -f" {
	local hidden
	need_strace
	killed renameat2 2 -r src d/new
	hidden=$(left)
	[[ $hidden == .fcopy-* ]]
	killed fchmod 1 -r --resume src "d/a tree"
	killed renameat 1 --resume src/a d/file
	expect 0 --clean d </dev/null
	[ "$stderr" = "" ]
	grep -qx "d/$hidden: temporary directory, [0-9.]* KiB, [0-9]* [a-z]* old: not in use, can be removed" <<<"$output"
	grep -qx "d/file.fcopy-part: unfinished copy, .*: not in use, can be removed" <<<"$output"
	grep -qx "d/a tree.fcopy-part: unfinished copy, .*: not in use, can be removed" <<<"$output"
	[ "$(wc -l <<<"$output")" = 3 ]
	[ "$(left | wc -l)" = 3 ]
	expect 0 --clean -f -- d # whatever the order
	[ "$(grep -c ': removed$' <<<"$output")" = 3 ]
	[ "$(left)" = "" ]
	expect 0 --clean=d
	lists "nothing to clean in d"
}

@test "a part that a running copy uses is left alone, and its removal while it is used cannot begin" {
	need_strace
	killed fchmod 1 -r --resume src d/new
	exec 7>>d/new.fcopy-part/lock
	flock -s 7
	expect 0 --clean d -f
	[[ $output == "d/new.fcopy-part: unfinished copy, "*": in use" ]]
	[ -e d/new.fcopy-part/data/a ]
	exec 7>&-
	expect 0 -r --resume src d/new
	diff -r --no-dereference src d/new
	rm -r d/new
}

@test "names that were exchanged, and what fcopy did not make, are left alone" {
	need_strace
	killed fchmod 1 -r --resume src d/new
	mv d/new.fcopy-part d/other.fcopy-part # the name of another copy's part
	expect 0 --clean d -f
	[[ $output == *": left alone: its journal belongs to another directory" ]]
	mv d/other.fcopy-part d/new.fcopy-part
	mkdir -m 700 d/copied && cp -a d/new.fcopy-part/. d/copied # with another inode
	rm -r d/new.fcopy-part
	mv d/copied d/new.fcopy-part
	expect 0 --clean d -f
	[[ $output == *": left alone: its journal belongs to another directory" ]]
	mv d/new.fcopy-part d/.fcopy-0123456789abcdef
	expect 0 --clean d -f
	[[ $output == *": left alone: nothing in it shows that fcopy created it in this directory" ]]
	touch d/.fcopy-0123456789abcdef/mine
	expect 0 --clean d -f
	[[ $output == *": left alone: it contains entries that fcopy did not make" ]]
	rm d/.fcopy-0123456789abcdef/lock d/.fcopy-0123456789abcdef/mine
	expect 0 --clean d -f
	[[ $output == *": left alone: it has no lock" ]]
	[ -e d/.fcopy-0123456789abcdef/data/a ]
	chmod 755 d/.fcopy-0123456789abcdef
	expect 0 --clean d -f
	[[ $output == *": left alone: it is open to other users" ]]
	[ -e d/.fcopy-0123456789abcdef/data/a ]
	rm -rf d/.fcopy-*
	ln -s "$T/src" d/.fcopy-0123456789abcdef
	mkfifo d/b.fcopy-part
	echo precious >d/.fcopy-fedcba9876543210
	echo old >d/c.fcopy-part
	expect 0 --clean d -f
	grep -q "^d/.fcopy-fedcba9876543210: temporary file, 9 B, .*: left alone: a temporary file has no lock" <<<"$output"
	grep -q "^d/c.fcopy-part: .*: left alone: an earlier version of fcopy, or another program, made it" <<<"$output"
	[ "$(wc -l <<<"$output")" = 2 ]
	[ "$(left | wc -l)" = 4 ]
	rm d/.fcopy-*
}

@test "an empty directory is removed with or without a lock; the mark of a killed mirror stays for the next run" {
	mkdir -m 700 d/.fcopy-0123456789abcdef d/.fcopy-fedcba9876543210
	(umask 077 && : >d/.fcopy-fedcba9876543210/lock) # a process was killed just after that
	touch d/.fcopy-mirror
	expect 0 --clean d -f
	absent d/.fcopy-0123456789abcdef
	absent d/.fcopy-fedcba9876543210
	[ -f d/.fcopy-mirror ]
	[[ $output != *mirror* ]]
	rm d/.fcopy-mirror
}

@test "what belongs to another user is left alone" {
	need_root "another user's part"
	need_strace
	killed fchmod 1 -r --resume src d/new
	chown -R 65534 d/new.fcopy-part
	expect 0 --clean d -f
	[[ $output == *": left alone: it belongs to another user" ]]
	[ -e d/new.fcopy-part/data/a ]
	chmod 777 d
	chown 0 d/new.fcopy-part
	as_nobody 0 --clean d -f
	[[ $output == *": left alone: it belongs to another user" ]]
}

@test "killed while it removes, --clean continues" {
	need_strace
	killed fchmod 1 -r --resume src d/new
	run timeout -s KILL "$HANG" strace -f -qq -o trace -e trace=unlinkat \
		-e inject=unlinkat:signal=KILL:when=2 "$FCOPY" --clean d -f
	[ "$status" = 137 ]
	[[ $(left) == .fcopy-* ]]
	expect 0 --clean d -f
	[[ $output == *": removed" ]]
	[ "$(left)" = "" ]
}

@test "a removal that fails is reported, and the exit status is 1" {
	need_strace
	killed fchmod 1 -r --resume src d/new
	run --separate-stderr strace -f -qq -o trace -e trace=unlinkat \
		-e inject=unlinkat:error=EIO "$FCOPY" --clean d -f
	demand 1
	mentions "d/new.fcopy-part: remove: Input/output error"
	[[ $output == *": cannot be removed" ]]
	# The directory itself is last.
	run --separate-stderr strace -f -qq -o trace -e trace=unlinkat "$FCOPY" --clean d -f
	demand 0
	local last
	last=$(grep -c unlinkat trace)
	killed fchmod 1 -r --resume src d/new
	run --separate-stderr strace -f -qq -o trace -e trace=unlinkat -e inject=unlinkat:error=EIO:when=$last "$FCOPY" --clean d -f
	grep -q 'AT_REMOVEDIR.*INJECTED' trace
	demand 1
	[[ $output == *": cannot be removed" ]]
	rm -rf d/.fcopy-*
	expect 2 --clean nowhere
	says "fcopy: nowhere: open: No such file or directory"
}

@test "on a terminal, each is removed after a yes" {
	need python3
	need_strace
	killed fchmod 1 -r --resume src d/one
	killed fchmod 1 -r --resume src d/two
	run python3 -c 'import os, pty, sys
answers = [b"n\n", b"yes\n"]
def read(fd):
    text = os.read(fd, 1024)
    if text.rstrip().endswith(b")?"):
        os.write(fd, answers.pop(0))
    return text
sys.exit(os.waitstatus_to_exitcode(pty.spawn([os.environ["FCOPY"], "--clean", "d"], read)))'
	demand 0
	[[ $output == *"remove 'd/one.fcopy-part' (unfinished copy, "* ]]
	[ "$(left)" = one.fcopy-part ]
	expect 0 --clean d -f
}

@test "--json lists the same; the object matches the schema" {
	need jq python3
	need_strace
	killed fchmod 1 -r --resume src d/new
	touch d/.fcopy-0123456789abcdef
	expect 0 --clean d --json
	jq -e '.clean == "d" and .done and .error == null and (.left | length == 2)' <<<"$output"
	jq -e '.left[0] | .kind == "file" and .state == "unknown" and .bytes == 0 and .reason != null' <<<"$output"
	jq -e '.left[1] | .kind == "part" and .state == "dead" and .bytes > 3000 and .age < 3600' <<<"$output"
	valid "$output"
	expect 0 --clean d -f -q
	lists ""
	[ "$(left)" = .fcopy-0123456789abcdef ]
	rm d/.fcopy-*
}

@test "--clean -r of a deep tree needs few descriptors, and little of the stack" {
	need_strace
	local deep limit
	deep=d/$(printf 'a/%.0s' {1..1900})
	mkdir -p "$deep" d/z
	killed renameat 1 --resume src/a d/file
	mv d/file.fcopy-part "$deep"
	killed renameat 1 --resume src/a d/a/b
	killed renameat 1 --resume src/a d/z/file
	for limit in '-n 64' '-n 4096 -s 1024'; do
		(eval "ulimit ${limit/ -s/; ulimit -s}" && expect 0 --clean -r d && [ "$(wc -l <<<"$output")" = 3 ])
	done
	expect 0 --clean -rf d
	[ "$(grep -c ': removed$' <<<"$output")" = 3 ]
}

@test "--clean takes one directory; options of copies are refused" {
	usage_error "src: --clean takes one directory" --clean d src
	usage_error "src: --clean takes one directory" --clean=d src
	usage_error "--archive: cannot be combined with --clean" -a --clean d
	usage_error "--json=lines: cannot be combined with --clean" --json=lines --clean d
	usage_error "--clean: needs a directory" --clean
	usage_error "--clean: needs a directory" --clean -f
	usage_error "--clean: invalid value '' (empty)" --clean ''
	usage_error "--clean: invalid value '' (empty)" --clean=
}

@test "on storage of other machines, only what was made since this machine was started is removed" {
	need_strace
	need python3
	mkdir backing
	by_fuse rw 'strace -f -qq -o trace -e trace=fchmod -e inject=fchmod:signal=KILL:when=1 "$FCOPY" -j1 -r --resume src m/new || true'
	[ -d backing/new.fcopy-part ]
	cp backing/new.fcopy-part/journal journal
	python3 - journal backing/new.fcopy-part/journal <<-'END'
		import sys
		def sealed(line):
		    hash = 0xcbf29ce484222325
		    for byte in line:
		        hash = (hash ^ byte) * 0x100000001b3 % 2**64
		    return b'%08x ' % (hash >> 32 ^ hash % 2**32) + line
		lines = [line[9:].split(b' ') for line in open(sys.argv[1], 'rb').read().splitlines()]
		for line in lines:
		    if line[0] == b'run':
		        line[1] = b'another-boot'
		open(sys.argv[2], 'wb').write(b''.join(sealed(b' '.join(line)) + b'\n' for line in lines))
	END
	by_fuse rw '"$FCOPY" --clean m -f'
	[[ $output == *": left alone: another machine may be using it" ]]
	[ -e backing/new.fcopy-part/data ]
	cat journal >backing/new.fcopy-part/journal
	by_fuse rw '"$FCOPY" --clean m -f'
	[[ $output == *": removed" ]]
	[ "$(ls -A backing)" = "" ]
}

@test "what a killed copy left that had asked what can be renamed is removed" {
	need_strace
	mkdir -p backing s
	random s/a 1000
	# shellcheck disable=SC2016
	by_fuse rw 'for call in renameat:1 renameat:2 unlinkat:1 unlinkat:2; do
			strace -qq -o /dev/null -e inject=${call%:*}:signal=KILL:when=${call#*:} "$FCOPY" -j1 -r s m/t &&
				exit 1
			[ -n "$(ls -A backing)" ]
			"$FCOPY" --clean m -f
			[ -z "$(ls -A backing)" ]
		done'
}

@test "what shards left after their commit is called a receipt, not an unfinished copy" {
	expect 0 --shard=0/1 src/a d/copy
	expect 0 --json --clean d
	[ "$(jq -r '.left[].kind' <<<"$output")" = receipt ] || { echo "$output"; return 1; }
	touch d/copy.fcopy-part/share.0 # as if the process that committed had died at once
	expect 0 --clean d -f
	[[ $output == "d/copy.fcopy-part: receipt of shards, "*": removed" ]] || { echo "$output"; return 1; }
	[ "$(left)" = copy ]
	cmp src/a d/copy
}

@test "the part of shards is left alone, with the way to remove it" {
	random src/big 300000
	run bash -c 'ulimit -f 64; "$FCOPY" --shard=0/2 src/big d/copy'
	demand 1
	expect 0 --clean d -f
	[[ $output == "d/copy.fcopy-part: unfinished copy, "*": left alone: it belongs to a copy in shards: if none runs, remove it with rm -r" ]] ||
		{ echo "$output"; return 1; }
	rm -r d/copy.fcopy-part
	[ "$(left)" = "" ]
}

@test "the size of a sparse part is the space that its removal frees" {
	need_strace
	mkdir -p src d
	truncate -s 4G src/sparse
	dd if=/dev/urandom of=src/sparse bs=1M count=8 seek=2000 conv=notrunc status=none
	killed fchmod 1 -r --resume src d/new
	expect 0 --clean d --json
	[ "$(jq '.left[0].bytes < 10000000 and .left[0].bytes >= 8000000' <<<"$output")" = true ]
	expect 0 --clean d -f
}

@test "a temporary directory that holds an entry keeps its lock when another copy comes by, and can be removed" {
	need_strace
	chmod 777 d
	mkdir fifo
	mkfifo fifo/f
	killed renameat2 1 -aT fifo d
	[ -p d/.fcopy-*/entry ]
	expect 0 -rq src/sub d # a new tree looks for such directories
	[ -p d/.fcopy-*/entry ]
	expect 0 --clean d -f
	[[ $output == *": temporary directory, "*": removed" ]] || { echo "$output"; return 1; }
	[ "$(left)" = sub ]
}

@test "--clean says where it did not look; with -r it looks below DIR, but not into what is mounted" {
	need_strace
	mkdir -p d/e/f d/e/g
	killed fchmod 1 -r --resume src d/e/f/new
	expect 0 --clean d </dev/null
	[ "$output" = "nothing to clean in d" ]
	says "fcopy: hint: use -r to search the directories in d, too"
	expect 0 --clean -r d </dev/null
	[[ $output == "d/e/f/new.fcopy-part: unfinished copy, "*": not in use, can be removed" ]]
	[ -d d/e/f/new.fcopy-part ]
	if is_root; then
		export FCOPY
		private_mounts 'mount --bind d/e/f d/e/g; "$FCOPY" --clean -r d'
		[ "$(wc -l <<<"$output")" = 1 ]
	fi
	expect 0 --clean -rf d </dev/null
	[[ $output == *": removed" ]]
	[ -z "$(ls -A d/e/f)" ]
	expect 0 --clean d/e/f </dev/null
	[ "$output" = "nothing to clean in d/e/f" ]
}
