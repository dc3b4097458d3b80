#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard on ext4 and XFS: two bind mounts of one file system are two machines that share it, and inode
# numbers are used again.

load helper
load shard

# on_image FS COMMAND: runs COMMAND in bash below a new file system, m, with the bind mounts c0 and c1
# of it.
on_image() {
	PATH=$PATH:/usr/sbin:/sbin
	need_root "to mount an image"
	need "mkfs.$1"
	rm -f image
	truncate -s 400M image
	"mkfs.$1" -q image
	mkdir -p m c0 c1
	export FCOPY
	private_mounts "mount -o loop image m || exit 99
		mount --bind m c0
		mount --bind m c1
		$2"
	[ "$status" != 99 ] || skip "$1 cannot be mounted: $stderr"
	demand 0
}

# What the commands use. left: what stands beside DST. apart: as in shard.bash.
functions="$(declare -f busy)"'
left() { (cd m && find . -maxdepth 2 -path "./dst*" ! -path "./dst/*" | sort | xargs); }
whole="./dst ./dst.fcopy-part ./dst.fcopy-part/journal ./dst.fcopy-part/lock"
apart() {
	local -a busy
	busy "${!#}" "${1#--shard=}"
	strace -f -qq -o /dev/null "${busy[@]}" "$FCOPY" -a -q -j1 "$@"
}
all_at_once() {
	local i pids=()
	for i in 0 1 2 3; do
		"$FCOPY" -a --shard=$i/4 "c$((i % 2))/$1" "c$((i % 2))/dst" & pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
}
fails() {
	local status=0
	"${@:2}" 2>err || status=$?
	cat err >&2
	[ $status = "${FAILS:-1}" ] && grep -q "$1" err
}
'

@test "two mounts of ext4 and of XFS: four shards at once make one file and one tree" {
	for fs in ext4 xfs; do
		on_image $fs "$functions"'
			head -c 9000001 /dev/urandom >m/src
			mkdir -p m/tree/{a,b}/c
			for i in {1..200}; do head -c $((i * 90)) m/src >"m/tree/a/$i"; ln "m/tree/a/$i" "m/tree/b/c/$i"; done
			for round in 1 2 3; do
				all_at_once src
				cmp m/src m/dst
				[ "$(left)" = "$whole" ]
				rm -r m/dst*
				all_at_once tree
				diff -r m/tree m/dst
				[ "$(cd m/dst && find . -links 2 -type f | wc -l)" = 400 ]
				[ "$(left)" = "$whole" ]
				rm -r m/dst*
			done'
	done
}

@test "two mounts: a second job on DST is refused, and nothing is mixed" {
	need_strace
	for fs in ext4 xfs; do
		on_image $fs "$functions"'
			head -c 9000001 /dev/urandom >m/src
			head -c 9000001 /dev/urandom >m/other
			mkdir -p m/tree/d m/trees/d
			cp m/src m/tree/d
			echo one >m/tree/one
			ln m/tree/one m/tree/two
			cp m/other m/trees/d/src
			apart --shard=0/2 c0/src c0/dst
			fails "begun with N = 2, not 3" "$FCOPY" -a --shard=0/3 c1/src c1/dst
			fails "begun with another source" "$FCOPY" -a --shard=1/2 c1/other c1/dst
			"$FCOPY" -a --shard=1/2 c1/src c1/dst
			cmp m/src m/dst
			[ "$(left)" = "$whole" ]
			rm -r m/dst*
			apart --shard=0/2 c0/tree c0/dst
			fails "begun with N = 2, not 3" "$FCOPY" -a --shard=0/3 c1/tree c1/dst
			fails "begun with another source" "$FCOPY" -a --shard=1/2 c1/trees c1/dst
			"$FCOPY" -a --shard=1/2 c1/tree c1/dst
			diff -r m/tree m/dst
			[ "$(left)" = "$whole" ]'
	done
}

@test "a user replaces the part of root by his own, which has got its inode number: nothing of it is used" {
	need_strace
	need setpriv
	on_image ext4 "$functions"'
		head -c 3000000 /dev/urandom >m/src
		mkdir m/home
		chown 65534:65534 m/home
		apart --shard=0/2 m/src m/home/dst
		inode=$(stat -c %i m/home/dst.fcopy-part)
		rm -r m/home/dst.fcopy-part
		cat >m/user <<-"END"
			cd "$1" && for i in $(seq 400); do
				mkdir -m 700 new$i
				[ "$(stat -c %i new$i)" != "$2" ] || break
			done
			mv new$i dst.fcopy-part
			cd dst.fcopy-part && touch journal lock share.done.0 && echo evil >data
		END
		setpriv --reuid 65534 --regid 65534 --clear-groups bash m/user m/home "$inode"
		fails "its .fcopy-part belongs to another user" "$FCOPY" -a --shard=1/2 m/src m/home/dst
		[ ! -e m/home/dst ]'
}

@test "a directory with the inode number of a committed tree is not taken for it" {
	on_image ext4 "$functions"'
		mkdir m/tree
		echo bytes >m/tree/file
		for i in 0 1; do "$FCOPY" -r --shard=$i/2 m/tree m/dst; done
		inode=$(stat -c %i m/dst)
		rm -r m/dst
		for i in {1..64}; do
			mkdir "m/new$i"
			[ "$(stat -c %i "m/new$i")" != "$inode" ] || break
		done
		mv "m/new$i" m/dst
		[ "$(stat -c %i m/dst)" = "$inode" ]
		FAILS=2 fails "exists: shards only make a new tree" "$FCOPY" -rT --shard=0/2 m/tree m/dst
		[ -z "$(ls m/dst)" ]'
}

@test "names that DST takes for one: the commit is refused, and names the second one" {
	mkdir -p backing s
	echo 1 >s/a
	echo 2 >s/A
	echo 3 >s/b
	# shellcheck disable=SC2016
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' '
		r=0
		"$FCOPY" -a --shard=0/1 s m/d 2>err || r=$?
		[ $r = 1 ] || { echo "$r"; cat err; exit 1; }
		grep -qi "m/d/a: is the copy of another entry, too" err || { cat err; exit 1; }
		[ ! -e m/d ]
		mkdir -p u/x u/X # directories, whose files all differ in name
		echo 1 >u/x/1
		echo 2 >u/X/2
		r=0
		"$FCOPY" -a --shard=0/1 u m/e 2>err || r=$?
		[ $r = 1 ] || { echo "$r"; cat err; exit 1; }
		grep -qi "m/e/x: is the copy of another entry, too" err || { cat err; exit 1; }
		[ ! -e m/e ]'
}

@test "a part is renamed with closed files, as SMB needs: shards that join before it is locked again keep it" {
	need_root "to mount a file system"
	need_strace
	export FCOPY
	random src 8000000
	# The second rename gives the part its name; the third lock is taken after it was repeated.
	private_mounts 'mkdir m; mount -t ramfs none m || exit 99
		cp src m/src
		strace -f -qq -o trace -e trace=renameat2,flock -e inject=renameat2:error=EACCES:when=2 \
			-e inject=flock:delay_enter=1500000:when=3 "$FCOPY" --shard=0/2 m/src m/dst 2>err 3>&- &
		for i in {1..100}; do [ -e m/dst.fcopy-part ] && break; sleep 0.1; done
		"$FCOPY" --limit-rate=2M --shard=1/2 m/src m/dst || exit
		wait $! || { cat err >&2; exit 1; }
		grep -q "renameat2.*INJECTED" trace && grep -q "flock.*DELAYED" trace || exit
		cmp m/src m/dst'
	[ "$status" != 99 ] || skip "ramfs cannot be mounted: $stderr"
	demand 0
}
