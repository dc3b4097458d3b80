#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Storage that keeps less of a file's times and attributes than the source has: what is equal there?

load helper

# second_runs DIR BACKING: on this storage nothing is copied again. BACKING shows its real inodes.
second_runs() {
	set -e
	local m=$1 b=$2 before f
	"$FCOPY" --mirror s "$m/mirror" 2>err
	before=$(stat -c '%i %Z' "$b"/mirror/[123] "$b"/mirror/d/x)
	sleep 1.1 # ctime in seconds
	"$FCOPY" -v --mirror s "$m/mirror" >out 2>>err
	[ ! -s out ]
	"$FCOPY" --mirror --checksum --dry-run s "$m/mirror" >out 2>>err
	[ ! -s out ]
	[ "$(stat -c '%i %Z' "$b"/mirror/[123] "$b"/mirror/d/x)" = "$before" ]
	"$FCOPY" -aT s "$m/monday"
	"$FCOPY" -aT --link-dest="$m/monday" s "$m/tuesday"
	for f in 1 2 3 d/x; do
		[ "$(stat -c %i "$b/monday/$f")" = "$(stat -c %i "$b/tuesday/$f")" ]
	done
	before=$(stat -c '%i %Z' "$b"/monday/[123])
	"$FCOPY" -v -a -u -T s "$m/monday" >out
	! grep -e "->" out || return 1 # only lines about what is skipped
	"$FCOPY" -v -a --update=changed -T s "$m/monday" >out
	[ ! -s out ]
	"$FCOPY" -aT --resume s "$m/monday"
	[ "$(stat -c '%i %Z' "$b"/monday/[123])" = "$before" ]
	# A file that really differs is seen, also within the same second on storage with finer steps.
	printf y >s/d/x
	touch -d "2024-05-06 07:08:13.2" s/d/x
	"$FCOPY" -v --mirror s "$m/mirror" >out
	grep -q "^s/d/x -> " out
	cmp s/d/x "$b/mirror/d/x"
	printf x >s/d/x
	touch -d "2024-05-06 07:08:09.123456789" s/d/x
	rm -r "$b"/m* "$b"/tuesday
}
export -f second_runs

@test "FUSE with times of 2 s, 1 s, 1 us and 100 ns: the second mirror, -u, --link-dest and --resume copy nothing" {
	mkdir backing
	timed_tree x
	local o
	for o in steps=2 steps=1 grain=1000 grain=100; do
		by_fuse "$o" 'second_runs m backing'
	done
}

@test "ext4, ext3 and ext2 with small inodes: the second mirror, -u, --link-dest and --resume copy nothing" {
	need mkfs.ext4
	timed_tree x
	local t
	for t in ext4 ext3 ext2; do
		truncate -s 30M "image.$t"
		mkfs.$t -q -F -I 128 "image.$t" 2>log
		mkdir -p m
		private_mounts "mount -o loop image.$t m || exit 9
			second_runs m m
			umount m"
		[ "$status" != 9 ] || skip "$t does not mount"
		demand 0
	done
}

@test "storage that keeps all of a time: one that differs by 1 ns, or has no fraction, is another time" {
	mkdir -p s t
	local time
	for time in 07:08:09.123456788 07:08:09.1234567 07:08:09.123456 07:08:09 07:08:08; do
		rm -rf s/a t
		mkdir t
		printf 1 >t/a
		# A change time in steps of 100 ns, as one in a hundred is by chance, would speak for such storage.
		for _ in {1..50}; do
			touch -d "2024-05-06 $time" t/a
			[[ $(stat -c %z t/a) == *00\ * ]] || break
		done
		printf 2 >s/a
		touch -d "2024-05-06 07:08:09.123456789" s/a
		"$FCOPY" -a --update=changed -T s t
		cmp s/a t/a
	done
}

@test "--modify-window=0 compares all of a time, wherever DST is" {
	mkdir -p backing s
	echo 1 >s/a
	touch -d "2024-05-06 07:08:09.5" s/a
	# shellcheck disable=SC2016
	by_fuse steps=1 '"$FCOPY" --mirror s m/t
		"$FCOPY" -v --mirror --modify-window=0 s m/t >out
		grep -q "^s/a -> " out'
}

@test "modes and owners that DST cannot store are not compared: files stay equal, and are linked" {
	[ "$(id -u)" = 0 ] || skip "needs root, which may set owners"
	mkdir backing
	timed_tree x
	chmod 640 s/1
	chown 5:6 s/2
	local owner
	for owner in '' ,uid=1234,gid=1234; do # an NFS server squashes root so
		# shellcheck disable=SC2016
		by_fuse "fmode=755,dmode=755,fault=chown:EPERM$owner" '"$FCOPY" -q -aT s m/monday
			"$FCOPY" -q -aT --link-dest=m/monday s m/tuesday
			for f in 1 2 3 d/x; do
				[ "$(stat -c %i backing/monday/$f)" = "$(stat -c %i backing/tuesday/$f)" ]
			done
			"$FCOPY" -v --mirror s m/monday >out 2>err
			[ ! -s out ]
			! grep warning err '"${owner:+ | grep -v 'm/monday: fchown: '}"' || exit 1
			[ -z "$(find backing -name ".fcopy-*")" ]
			rm -r backing/*'
	done
}

@test "extended attributes that DST cannot store are not compared: files are linked, and stay equal" {
	need setfattr
	mkdir backing
	timed_tree x
	setfattr -n user.origin -v here s/1 s/d/x 2>/dev/null || skip "no extended attributes here"
	# shellcheck disable=SC2016
	by_fuse rw '"$FCOPY" -q -aT s m/monday
		"$FCOPY" -aT --link-dest=m/monday s m/tuesday 2>err
		[ "$(stat -c %i backing/monday/1)" = "$(stat -c %i backing/tuesday/1)" ]
		"$FCOPY" -v --mirror s m/monday >out 2>err
		[ ! -s out ]
		! grep warning err || exit 1'
}

@test "an ordinary user's --link-dest links the files of others, whose owners the copies cannot have" {
	[ "$(id -u)" = 0 ] || skip "needs root, to make files of another user"
	need setpriv
	timed_tree x
	chown -R 5:6 s
	mkdir out
	chmod 777 . out
	local as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	cp "$FCOPY" ./program
	"${as[@]}" ./program -aT s out/monday
	"${as[@]}" ./program -aT --link-dest=out/monday s out/tuesday
	[ out/monday/1 -ef out/tuesday/1 ]
	[ out/monday/d/x -ef out/tuesday/d/x ]
}

@test "an attribute that DST refuses each time: nothing is called repaired that did not change" {
	need setcap setpriv jq
	[ "$(id -u)" = 0 ] || skip "needs root"
	mkdir s out
	echo 1 >s/a
	setcap cap_net_raw=ep s/a 2>/dev/null || skip "no capabilities here"
	chmod 777 . out
	cp "$FCOPY" ./program
	local as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	"${as[@]}" ./program -q --mirror s out/t
	"${as[@]}" ./program -v --mirror s out/t >out/lines
	[ ! -s out/lines ]
	"${as[@]}" ./program --mirror --json s out/t >json
	[ "$(jq -c '[.tree.unchanged, .tree.repaired]' json)" = '[1,0]' ]
	"${as[@]}" cp -al out/t out/snapshot
	"${as[@]}" ./program -v --mirror s out/t >out/lines
	[ ! -s out/lines ]
	[ out/t/a -ef out/snapshot/a ]
	rm -r out/snapshot
	chmod 600 out/t/a
	"${as[@]}" ./program -v --mirror s out/t >out/lines
	[ "$(cat out/lines)" = "out/t/a: attributes repaired" ]
}

@test "an ACL that XFS lists as trusted.SGI_ACL_FILE is no attribute of its own" {
	need mkfs.xfs mkfs.ext4 setfacl getfattr
	truncate -s 320M xi
	truncate -s 40M ei
	mkfs.xfs -q xi 2>log || skip "mkfs.xfs fails"
	mkfs.ext4 -q -F ei 2>log
	mkdir x e
	# shellcheck disable=SC2016
	private_mounts 'set -e
		mount -o loop xi x || exit 9
		mount -o loop ei e || exit 9
		mkdir e/s
		echo 1 >e/s/f
		setfacl -m u:1234:rw e/s/f
		"$FCOPY" --mirror e/s x/t
		"$FCOPY" -v --mirror e/s x/t >out
		[ ! -s out ]
		"$FCOPY" -aT --link-dest=x/t e/s x/u
		[ x/t/f -ef x/u/f ]
		"$FCOPY" -a x/t/f e/back
		getfattr -d -m - e/back 2>/dev/null >out
		! grep SGI out || exit 1
		getfacl -cn e/back | grep -q "^user:1234:rw-"
		setfattr -n trusted.SGI_ACL_FILE -v old e/back
		"$FCOPY" --preserve=xattr e/back x/again
		! getfattr -d -m SGI x/again 2>/dev/null | grep SGI || exit 1'
	[ "$status" != 9 ] || skip "cannot mount"
	demand 0
}
