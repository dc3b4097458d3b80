#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard where the locks of one machine reach no other one, or where there are none: refused.

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
refused() {
	local status=0
	copies "$@" || status=$?
	[ $status = 1 ] || return "$((status ? status : 1))"
	grep -q "cannot be copied in shards: its file system has no locks that other machines see" err
}
'
refusal='fcopy: t: cannot be copied in shards: its file system has no locks that other machines see'

@test "the options of the mount say whether other machines see a lock: otherwise nothing is begun" {
	export FCOPY
	mkdir s
	echo data | tee s/{1..40} >/dev/null
	ln s/1 s/link # a chunk of its own
	private_mounts "$functions"'
		copies rw -a --shard=0/1 s locked || exit
		for options in rw,relatime rw,vers=4.2,local_lock=none rw,local_lock=posix rw,path=nolock rw,nolocks; do
			rm -rf t t.fcopy-part
			copies $options -a -j1 --shard=0/2 s t || { echo "$options: no locks" >&2; exit 1; }
			diff -r s t
		done
		rm -rf t t.fcopy-part
		for options in rw,vers=3,nolock,local_lock=all rw,local_lock=flock nolock rw,nobrl localflock \
			rw,localflocks,data=ordered; do
			for from in s s/1; do
				refused $options -a -j1 --shard=0/2 $from t || { echo "$options: locks" >&2; exit 1; }
				left=$(find . -maxdepth 1 -name "t*" -o -name ".fcopy-*")
				[ -z "$left" ] || { echo "$options: left $left" >&2; exit 1; }
			done
		done'
	[ "$status" != 99 ] || skip "mountinfo cannot be replaced: $stderr"
	demand 0
}

@test "one machine without locks joins no job, which the others complete" {
	need_strace
	export FCOPY
	mkdir s
	echo data | tee s/{1..40} >/dev/null
	ln s/1 s/link
	apart 0 -a -j1 --shard=0/2 s t
	private_mounts "$functions"'refused nolock -a -j1 --shard=1/2 s t'
	[ "$status" != 99 ] || skip "mountinfo cannot be replaced: $stderr"
	demand 0
	absent t
	[ "$(markers t)" = 1 ]
	expect 0 -a --shard=1/2 s t
	diff -r s t
	left_only_receipt t
}

@test "a file system without locks is refused, for each share, and nothing is begun" {
	need_strace
	mkdir s
	echo data >s/a
	local err shard from
	for err in ENOLCK ENOSYS EOPNOTSUPP; do
		for from in s s/a; do
			for shard in 0/2 1/2; do
				run --separate-stderr strace -f -qq -o /dev/null -e trace=flock -e inject=flock:error=$err \
					"$FCOPY" -a --shard=$shard $from t
				demand 1
				mentions "$refusal" 'hint: leave out --resume and --shard'
				absent t
				absent t.fcopy-part
				[ -z "$(find . -name '.fcopy-*')" ]
			done
		done
	done
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
