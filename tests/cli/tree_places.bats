#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Places where a part, or a private directory, is unusual: Landlock, sticky directories, and trees whose own
# directory is read-only.

load helper

@test "Landlock: a new tree and a merge are complete, and --resume is refused before the first byte" {
	need python3
	local -a confined=(python3 "$BATS_TEST_DIRNAME/../tools/landlock.py")
	"${confined[@]}" true || skip "no Landlock in this kernel"
	mkdir -p s/sub d
	head -c 300000 /dev/urandom >s/sub/a
	ln s/sub/a s/sub/b
	ln -s a s/sub/link
	mkfifo s/sub/p
	"${confined[@]}" "$FCOPY" -a s new
	same s new
	mkdir merged
	"${confined[@]}" "$FCOPY" -aT s merged
	same s merged
	run --separate-stderr "${confined[@]}" "$FCOPY" -a --resume s other
	demand 1
	mentions "other: cannot be resumed: nothing can be moved to another directory here"
	run --separate-stderr "${confined[@]}" "$FCOPY" --resume s/sub/a file
	demand 1
	mentions "file: cannot be resumed: nothing can be moved to another directory here" "leave out --resume"
	"${confined[@]}" "$FCOPY" s/sub/a file
	cmp s/sub/a file
	[ "$(ls -A)" = $'d\nfile\nmerged\nnew\ns' ]
}

# same A B: names, types, modes and bytes.
same() {
	diff <(list "$1") <(list "$2") && cmp "$1/sub/a" "$2/sub/a"
}

list() {
	(cd "$1" && find . -printf '%p %y %m %l %n\n' | sort)
}

@test "an ordinary user in a sticky directory: a read-only tree is killed at each step of its commit, and resumed" {
	local call n
	need_strace
	need_root "another user's directory"
	mkdir -p s/sub sticky
	head -c 3000 /dev/urandom >s/sub/a
	chmod 555 s/sub s
	chmod 1777 sticky
	install -m 755 "$FCOPY" fcopy
	for call in mkdirat renameat2 unlinkat fchmod; do
		for n in 1 2 3; do
			run $NOBODY strace -f -qq -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=$n \
				./fcopy -j1 -a --resume s sticky/t
			# What root puts there is not the user's.
			as_nobody 0 -a --resume s sticky/t
			[ "$(ls -A sticky)" = t ] || { ls -lA sticky; return 1; }
			[ "$(stat -c '%a %u' sticky/t sticky/t/sub | paste -sd' ')" = '555 65534 555 65534' ]
			cmp s/sub/a sticky/t/sub/a
			chmod -R u+w sticky/t
			rm -r sticky/t
		done
	done
}

@test "a part in a sticky directory that another user owns is neither continued nor removed" {
	need_root "two users"
	need_strace
	mkdir s sticky
	echo data >s/f
	chmod 1777 sticky
	install -m 755 "$FCOPY" fcopy
	run $NOBODY strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=3 ./fcopy -j1 -r --resume s sticky/t
	[ -d sticky/t.fcopy-part ]
	expect 1 -r --resume s sticky/t
	mentions "sticky/t: its .fcopy-part belongs to another user"
	expect 0 --clean sticky -f
	[[ $output == *"left alone: it belongs to another user" ]]
	as_nobody 0 -r --resume s sticky/t
	[ "$(ls -A sticky)" = t ]
}

@test "storage that shows another mode: -v says it for a merge into a directory that others can write to, too" {
	mkdir -p s backing/d
	mkfifo s/p
	echo data >s/f
	by_fuse fmode=644,dmode=777 '"$FCOPY" -rTv s m/d >out 2>err || { cat err; exit 8; }'
	[ "$(grep -c "other users may reach the unfinished copy" err)" = 1 ]
	[ -p backing/d/p ]
	[ "$(ls -A backing/d)" = $'f\np' ]
}

@test "DST/ that cannot be examined: the message has the reason" {
	echo x >f
	ln -s loop loop
	expect 2 -r f loop/
	says "fcopy: loop/: is a loop of symlinks" "fcopy: hint: remove the symlink"
}
