#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --preserve and --no-preserve, and what is said of what could not be kept; --verify.

load helper

# A source with all that can be kept: mode, owner (as root), times, an attribute.
setup_source() {
	echo new >a
	is_root && chown 1234:4321 a
	chmod 640 a
	touch -d 2001-02-03T04:05:06.123456789Z a
	setfattr -n user.fcopy -v kept a 2>/dev/null || skip "no extended attributes here"
}

# traits FILE: mode, owner, time, attribute.
traits() {
	echo "$(stat -c '%a %u:%g %y' "$1") $(getfattr --only-values -n user.fcopy "$1" 2>/dev/null)"
}

# like_source FILE FORMAT: equal in what stat prints for FORMAT.
like_source() {
	[ "$(stat -c "$2" a)" = "$(stat -c "$2" "$1")" ] || { traits a; traits "$1"; return 1; }
}

@test "-p keeps mode, owner and times; --preserve=all the attributes too" {
	setup_source
	expect 0 -p a b
	like_source b '%a %u %g %y'
	[ -z "$(getfattr -d b 2>/dev/null)" ]
	expect 0 --preserve=all a c
	[ "$(traits a)" = "$(traits c)" ] || { traits a; traits c; return 1; }
	cmp a c
}

@test "--preserve takes a list, --no-preserve takes from it" {
	setup_source
	expect 0 --preserve=timestamps,xattr a b
	like_source b %y
	[ "$(getfattr --only-values -n user.fcopy b)" = kept ]
	[ "$(stat -c %u b)" = "$(id -u)" ]
	expect 0 --preserve=all --no-preserve=timestamps,ownership a c
	[ "$(stat -c %y c)" != "$(stat -c %y a)" ]
	[ "$(stat -c %u c)" = "$(id -u)" ]
	like_source c %a
	expect 0 -p --no-preserve=all a d
	[ "$(stat -c %y d)" != "$(stat -c %y a)" ]
}

@test "lists that are none" {
	echo new >a
	local list
	for list in "" nope mode, ,mode mode,nope modes moda ownership:mode; do
		usage_error "--preserve: invalid list '$list' (mode, ownership, timestamps, links, xattr, all)" \
			--preserve="$list" a b
		usage_error "--no-preserve: invalid list '$list' (mode, ownership, timestamps, links, xattr, all)" \
			--no-preserve="$list" a b
	done
	absent b
}

@test "what is lost is a warning under -p and all, a failure by its own name" {
	need_strace
	setup_source
	local text="b: futimens: Operation not permitted" option
	for option in -p --preserve=all; do
		traced 0 inject=utimensat:error=EPERM "$option" a b
		injected
		says "fcopy: warning: $text"
		cmp a b
		rm b
	done
	traced 0 inject=utimensat:error=EPERM -q -p a b
	injected
	[ -z "$stderr" ]
	echo old >b
	traced 1 inject=utimensat:error=EPERM --preserve=mode,timestamps a b
	injected
	says "fcopy: $text"
	holds old b
}

@test "nothing can be kept of a stream, or by one: a warning, or a failure" {
	setup_source
	local text="attributes are preserved between files only"
	run --separate-stderr bash -c 'cat a | "$0" --preserve=all - b' "$FCOPY"
	demand 0
	mentions "fcopy: warning: b: $text"
	cmp a b
	expect 2 --preserve=mode a /dev/null
	says "fcopy: /dev/null: $text"
}

@test "--verify: both files are read again, past the cache, and the copy is flushed" {
	need_strace
	random a 3000001
	traced 0 "trace=pread64,$OPEN,fdatasync,fsync,linkat" --verify a b
	cmp a b
	[ "$(calls fdatasync)" = 1 ]
	[ "$(calls fsync)" = 1 ]
	[ "$(grep -c "$OPEN"'(.*/proc/self/fd/.*' trace)" -ge 2 ]
	sed -n '/fdatasync/,$p' trace >after
	[ "$(grep -c "pread64.*= 1048576" after)" -ge 4 ]
	# The name comes last.
	[ "$(tail -n 1 <(grep -E 'pread64|linkat\(' after) | grep -c linkat)" = 1 ]
	[ "$(tail -n 1 <(grep -E 'linkat\(|fsync\(' after) | grep -c fsync)" = 1 ]
}

@test "--verify of a copy that its owner may not read" {
	need_root "to have another user's file"
	random a 100000
	chmod 044 a
	mkdir -m 777 d
	as_nobody 0 --verify a d/b
	mentions "verified through the page cache"
	cmp a d/b
}

@test "--verify --inplace of a file that may be written but not read: refused before the first byte" {
	random a 100000
	echo old >b
	chmod 222 b
	is_root && chown 65534 b
	as_nobody 1 --inplace --verify a b
	says "fcopy: b: open: Permission denied"
	chmod 600 b
	holds old b
	chmod 222 b
	as_nobody 0 --inplace a b
	chmod 600 b
	cmp a b
}

@test "--verify without O_DIRECT: the pages are dropped, and a warning says so" {
	need_strace
	random a 100000
	local n
	traced 0 "trace=$OPEN" --verify a probe
	n=$(nth "$OPEN" /proc/self/fd/)
	traced 0 "inject=$OPEN:error=EINVAL:when=$n" --verify a b
	injected
	says "fcopy: warning: b: verified through the page cache: O_DIRECT is unsupported here"
	cmp a b
}

# The kernel takes O_DIRECT on both, and reads through the cache.
@test "--verify of what is read through the cache in any case: first nothing is left there" {
	need_strace
	random a 100000
	traced 0 trace=openat,pread64,fadvise64,fdatasync --verify a b
	sed -n '/fdatasync/,$p' trace >after
	[ "$(grep -c 'fadvise64(.*POSIX_FADV_DONTNEED) = 0' after)" = 2 ]
	[ "$(grep -nm1 pread64 after | cut -d: -f1)" -gt "$(grep -n fadvise64 after | tail -n 1 | cut -d: -f1)" ]
}

@test "--verify where every byte of the data is journalled: a warning says so" {
	need_root "to mount an image"
	PATH=$PATH:/usr/sbin:/sbin need mkfs.ext4
	export FCOPY
	random a 100000
	truncate -s 32M image
	mkdir journalled
	PATH=$PATH:/usr/sbin:/sbin mkfs.ext4 -q image
	private_mounts 'mount -o loop,data=journal image journalled || exit 77
		"$FCOPY" --verify a journalled/b; cmp a journalled/b'
	[ "$status" != 77 ] || skip "no loop device here"
	demand 0
	says "fcopy: warning: journalled/b: verified through the page cache: O_DIRECT is unsupported here"
}

@test "--verify of a DST that cannot be read back, and --resume of what cannot be read twice: exit 2" {
	random a 1000
	expect 2 --verify a /dev/null
	mentions "/dev/null: cannot be verified"
	expect 2 --resume a /dev/null
	mentions "/dev/null: cannot be resumed: SRC and DST must be paths of files"
	expect 2 --resume - b <a
	absent b
}

# A disk that loses what it was sent: the read back returns other bytes than were written.
@test "--verify of a stream: the copy is read back, and a difference fails the copy" {
	need_strace
	random a 3000001
	local from
	for from in "- b" "- b readwrite" "fd:0 b" "--sparse=always - b" "--count=2000000 - b"; do
		# shellcheck disable=SC2086
		traced 0 trace=read,pread64,preadv2,$OPEN --verify $from <a
		in_trace "$OPEN\(.*/proc/self/fd/"
		cmp -n "$(stat -c %s b)" a b
		rm b
	done
	cat a | "$FCOPY" --verify - b
	cmp a b
	serve --verify tcp-listen:0 c
	expect 0 a "tcp:127.0.0.1:$port"
	ended 0
	cmp a c
	traced 0 trace=pread64 --verify - c <a
	echo old >b
	traced 1 "inject=pread64:retval=1048576:when=$(nth pread64 '1048576, 0\) = 1048576')" --verify - b <a
	injected
	mentions "b: differs from what the source sent"
	holds old b
}

trusted() {
	getfattr -d -m trusted "$1" | grep '='
}

@test "-aL, -aH: a special file that a symlink leads to keeps its ACL and attributes" {
	local by
	mkdir target s fcopy
	mkfifo target/p target/other
	setfacl -m u:1000:rw,g::r target/p 2>/dev/null || skip "no ACL on this file system"
	setfattr -n trusted.name -v value target/p 2>/dev/null || true # root may
	ln -s ../target/p s/p
	expect 0 -aL s fcopy/tree
	expect 0 -aH s/p fcopy/one
	for by in tree/p one; do
		[ -p fcopy/$by ]
		diff <(acl target/p) <(acl fcopy/$by) # cp 9.7 loses it
		diff <(trusted target/p) <(trusted fcopy/$by)
	done
}

@test "-aL: a symlink that leads to another type of file during the copy: its attributes are not taken" {
	need_strace
	mkdir target s
	mkfifo -m 600 target/p
	echo x >target/f
	setfacl -m u:1000:rw target/f 2>/dev/null || skip "no ACL on this file system"
	ln -s ../target/p s/p
	strace -f -qq -o trace -e trace=mknodat -e inject=mknodat:delay_exit=2000000 \
		"$FCOPY" -aL s d 2>err 3>&- &
	await compgen -G '.fcopy-*/data/p'
	ln -sfn ../target/f s/p
	wait $!
	never grep '^user:1000:' <(getfacl -n d/p)
	[ "$(stat -c %a d/p)" = 600 ]
	grep -x 'fcopy: warning: s/p: open: was replaced during the copy' err || { cat err; return 1; }
}
