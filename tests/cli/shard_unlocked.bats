#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard where the locks of one machine reach no other one: each share is a fixed part of the copy, and one
# share is appointed to commit.

load helper
load shard

# In bash, as if the mount of the working directory had other options: copies OPTIONS ARGUMENT…: fcopy in a
# process whose mountinfo has them, and the options nolock for each other mount.
functions='
copies() {
	(
		exec 9<.
		id=$(sed -n "s/^mnt_id:[[:space:]]*//p" /proc/$BASHPID/fdinfo/9)
		awk -v id="$id" -v options="$1" "{ \$NF = \$1 == id ? options : \"rw,nolock\" } 1" \
			/proc/$BASHPID/mountinfo >mountinfo
		grep -q "^$id .* $1\$" mountinfo
		mount --bind mountinfo /proc/$BASHPID/mountinfo || exit 99
		exec "$FCOPY" "${@:2}" 2>err
	)
}
unlocked() { grep -q "the file system has no locks" err; }
'

@test "the options of the mount say whether other machines see a lock" {
	export FCOPY
	mkdir s
	echo data | tee s/{1..40} >/dev/null
	ln s/1 s/link # a chunk of its own
	private_mounts "$functions"'
		copies rw -a --shard=0/1 s locked || exit
		for options in rw,relatime rw,vers=4.2,local_lock=none rw,local_lock=posix rw,path=nolock rw,nolocks; do
			rm -rf t t.fcopy-part
			copies $options -a -j1 --shard=0/2 s t
			! unlocked || { echo "$options: no locks" >&2; exit 1; }
			diff -r s t
		done
		for options in rw,vers=3,nolock,local_lock=all rw,local_lock=flock nolock rw,nobrl localflock \
			rw,localflocks,data=ordered; do
			rm -rf t t.fcopy-part
			copies $options -a -j1 --shard=0/2 s t
			unlocked || { echo "$options: locks" >&2; exit 1; }
			if [ -e t ]; then echo "$options: share 0 has taken the other one" >&2; exit 1; fi
		done
		copies nolock -a -j1 --shard=1/2 s t
		diff -r s t'
	[ "$status" != 99 ] || skip "mountinfo cannot be replaced: $stderr"
	demand 0
}

@test "what another machine is making stays, if its lock cannot be seen here" {
	need_strace
	export FCOPY
	mkdir s m
	echo data >s/a
	private_mounts "$functions"'
		mount --bind . m
		strace -f -qq -o /dev/null -e trace=fdatasync -e inject=fdatasync:signal=KILL:when=1 \
			"$FCOPY" -a --shard=0/1 m/s m/other 2>/dev/null || true
		[ -s .fcopy-*/journal ]
		copies nolock -a s t
		[ -s .fcopy-*/journal ]
		copies nolock --clean . || true
		ls -a .fcopy-*
		rm -r t
		copies rw -a s t
		ls -d .fcopy-* && exit 1
		diff -r s t'
	[ "$status" != 99 ] || skip "mountinfo cannot be replaced: $stderr"
	demand 0
}

make_source() {
	mkdir -p s/d
	echo a >s/a
	echo b >s/d/b
	ln s/a s/link
	chmod 500 s/d
}

# killed CALL N: share 1 of 2, which has the last chunk, at its Nth call.
killed() {
	run --separate-stderr strace -f -qq -o /dev/null -e trace=flock,"$1" -e inject=flock:error=ENOLCK \
		-e inject="$1:signal=KILL:when=$2" "$FCOPY" -a -j1 --shard=1/2 s t
}

# whole: t is absent or whole.
whole() { [ ! -e t ] || diff -r s t; }

@test "the share that commits is killed at any step: only its retry commits" {
	need_strace
	make_source
	local call n appointed steps=0
	for call in symlinkat linkat write fdatasync syncfs renameat2 fsync unlinkat; do
		for n in 1 2 3; do
			chmod -R u+w t 2>/dev/null || true
			rm -rf t t.fcopy-part
			apart 0 -a -j1 --shard=0/2 s t
			absent t
			killed $call $n
			[ "$status" != 0 ] || break
			[ "$status" = 137 ]
			steps=$((steps + 1))
			whole
			appointed=$(readlink t.fcopy-part/share.committer || true)
			[ -z "$appointed" ] || [ "$appointed" = 1 ]
			if [ -n "$appointed" ] && [ ! -e t ]; then
				apart 0 -a -j1 --shard=0/2 s t
				absent t
				mentions "another share commits"
			fi
			apart 0 -a -j1 --shard=1/2 s t
			diff -r s t
			[ t/a -ef t/link ]
			[ "$(stat -c %a t/d)" = 500 ]
			left_only_receipt t
		done
	done
	[ $steps -ge 12 ]
}

@test "two shares that could commit at once: one of them does" {
	need_strace
	make_source
	local share rounds=5
	for ((; rounds > 0; rounds--)); do
		chmod -R u+w t 2>/dev/null || true
		rm -rf t t.fcopy-part
		apart 0 -a -j1 --shard=0/2 s t
		killed symlinkat 1
		[ "$(markers t)" = 2 ]
		local -a pids=()
		for share in 0 1; do
			strace -f -qq -o trace$share -e trace=flock,fdatasync,renameat2 -e inject=flock:error=ENOLCK \
				-e inject=fdatasync:delay_enter=50000 "$FCOPY" -a -j1 --shard=$share/2 s t 2>err$share 3>&- &
			pids+=($!)
		done
		wait "${pids[0]}" || { cat err0; return 1; }
		wait "${pids[1]}" || { cat err1; return 1; }
		[ "$(cat trace0 trace1 | grep -c 'renameat2(.*"data"')" = 1 ]
		[ "$(grep -c ' commit ' t.fcopy-part/journal)" = 1 ]
		diff -r s t
		left_only_receipt t
	done
}
