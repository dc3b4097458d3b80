#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Which mode the directories of a copied tree get, and when: cp runs beside fcopy.

load helper

# same_modes A B: the entries have the same type, mode, owner and group.
same_modes() {
	diff <(modes_of "$1") <(modes_of "$2")
}

modes_of() {
	(cd "$1" && find . -printf '%p %y %m %U:%G\n' | sort)
}

acls_of() {
	(cd "$1" && find . -print0 | sort -z | xargs -0 getfacl)
}

@test "merge: --preserve without mode leaves new directories the mode that cp gives them" {
	local mask mode options
	for mode in 755 750 700 1777 555; do
		mkdir -p s/d$mode
		echo x >s/d$mode/f
		chmod $mode s/d$mode
	done
	! is_root || chown 1234:4321 s/d7*
	for mask in 022 027 000; do
		for options in timestamps ownership xattr timestamps,ownership; do
			rm -rf cp fcopy
			mkdir -m 2755 cp fcopy
			! is_root || chown 0:4242 cp fcopy
			umask $mask
			cp -r --preserve=$options s/. cp
			expect 0 -r --preserve=$options s/. fcopy
			umask 022
			same_modes cp fcopy || { echo "umask $mask, $options"; return 1; }
			chmod -R u+w cp fcopy
		done
	done
	chmod u+w s/d555
	rm -rf s/d[15]* cp
	mkdir cp
	chmod 755 s/d*
	cp -a --no-preserve=mode s/. cp
	mkdir new
	expect 0 -a --no-preserve=mode s/. new
	same_modes cp new
}

@test "merge: --preserve=ownership opens a new directory as its default ACL says, and only in the end" {
	need_strace
	mkdir -p s/d/e plain owned
	chmod 777 s/d
	chmod 1755 s/d/e
	setfacl -d -m u:1234:rwx,u::rwx,g::rx,o::--- plain owned 2>/dev/null ||
		skip "no ACL on this file system"
	expect 0 -r s/. plain
	traced 0 trace=mkdirat -r --preserve=ownership s/. owned
	[ "$(stat -c %a plain/d plain/d/e)" = $'770\n1750' ]
	diff <(acls_of plain) <(acls_of owned)
	in_trace 'mkdirat.*"[de]", 0700' 2
}

# by_user COMMAND…: by a user without rights over other users' files.
by_user() {
	# shellcheck disable=SC2086
	if is_root; then $NOBODY "$@"; else "$@"; fi
}

# make_source: a tree in ./s, in a directory where an ordinary user may create others.
make_source() {
	mkdir -p s/d/e s/closed
	echo a >s/d/e/a
	echo b >s/closed/b
	ln s/closed/b s/d/b
	chmod 750 s/d
	chmod 755 s/closed
	! is_root || chown -R 65534:65534 s
	chmod 777 .
	umask 022
	install -m 755 "$FCOPY" fcopy
}

@test "a umask that takes rights from the owner: an ordinary user's tree is complete, as with cp" {
	local mask how
	make_source
	for mask in 0222 0300 0400 0777; do
		rm -rf cp new cp_into into
		by_user mkdir cp_into into
		for how in "cp -r s cp" "./fcopy -r s new" "cp -r s/. cp_into" "./fcopy -r s/. into" \
			"cp -r --preserve=ownership s/d cp_into/x" "./fcopy -r --preserve=ownership s/d into/x"; do
			# shellcheck disable=SC2016
			by_user bash -c "umask $mask; exec $how" || { echo "umask $mask: $how"; return 1; }
		done
		diff <(modes_of cp) <(modes_of new)
		diff <(modes_of cp_into) <(modes_of into)
		chmod -R u+rwx cp new cp_into into
		diff -r s new
	done
}

@test "a umask that takes rights from the owner: --resume completes an ordinary user's tree" {
	local mask
	make_source
	chmod 000 s/d/e/a
	for mask in 0222 0400 0777; do
		rm -rf new new.fcopy-part
		run by_user bash -c "umask $mask; exec ./fcopy --resume -r s new"
		[ "$status" = 1 ]
		[ -d new.fcopy-part/data/d ]
		chmod 644 s/d/e/a
		by_user bash -c "umask $mask; exec ./fcopy --resume -r s new"
		(umask $mask; cp -r s cp)
		diff <(modes_of cp | cut -d' ' -f1-3) <(modes_of new | cut -d' ' -f1-3)
		chmod -R u+rwx cp new
		diff -r s new
		chmod 000 s/d/e/a
		rm -rf cp
	done
}

@test "a default ACL that takes rights from the owner: an ordinary user's tree is complete, as with cp" {
	local owner
	make_source
	for owner in r-x --- -wx; do
		rm -rf cp by_fcopy
		by_user mkdir cp by_fcopy
		setfacl -d -m u::$owner,g::r-x,o::--- cp by_fcopy 2>/dev/null ||
			skip "no ACL on this file system"
		by_user cp -r s cp/new
		by_user cp -r s/. cp
		by_user ./fcopy -r s by_fcopy/new
		by_user ./fcopy -r s/. by_fcopy
		diff <(modes_of cp) <(modes_of by_fcopy)
		diff <(acls_of cp) <(acls_of by_fcopy)
		chmod -R u+rwx cp by_fcopy
	done
}

# make_box: ./box, where the user may create files but not list them; ./box/d too.
make_box() {
	by_user mkdir box box/d
	by_user chmod 333 box/d box
	is_root || return 0
	chown -R 0:0 box
	chmod -R 1733 box
}

@test "merge: into directories that a user may write and search but not read, as cp -r" {
	local option
	make_source
	make_box
	by_user ./fcopy -r s/. box
	by_user ./fcopy -r s box
	for option in -f -n; do
		by_user ./fcopy -r $option s/. box
	done
	by_user ./fcopy -r s/d box/s/closed
	chmod -R u+r box
	diff -r s/d box/d
	diff -r s/closed box/closed
	[ -z "$(find box -name '.fcopy*')" ]
	diff -r s/d box/s/closed/d
}

@test "a directory of DST without write permission gets the mode of SRC, also if it had a setgid bit" {
	local mode as=()
	! is_root || read -r -a as <<<"$NOBODY"
	chmod 777 .
	for mode in 2550 2500 550 3077; do
		"${as[@]}" sh -c "mkdir -p s/d t/d; echo 1 >s/d/f; chmod 750 s/d; chmod $mode t/d"
		as_nobody 0 --mirror s t
		[ "$(stat -c %a t/d)" = 750 ]
		holds 1 t/d/f
		rm -r s t
	done
	is_root || return 0
	# chmod(2) clears the bit of a group that the user is not in.
	mkdir -p s/d t/d
	echo 1 >s/d/f
	chown -R 65534:5678 s t
	chmod 2700 s/d
	chmod 2500 t/d
	as_nobody 0 -aT s t
	[ "$(stat -c %a t/d)" = 700 ]
}

@test "merge: an unreadable directory is refused at once if it must be flushed or gets attributes" {
	local option
	make_source
	make_box
	for option in -a --fsync --preserve=timestamps; do
		as_nobody 1 -r $option s/. box
		says "fcopy: box: open: Permission denied"
	done
	chmod 000 box
	as_nobody 1 -r s/. box
	[[ $stderr == "fcopy: box: "*": Permission denied" ]] || { echo "$stderr"; return 1; }
	as_nobody 1 -rT s box
	[[ $stderr == "fcopy: box: "*": Permission denied" ]] || { echo "$stderr"; return 1; }
	chmod 755 box
	[ "$(ls box)" = d ]
}

@test "a default ACL of the parent: the tree's root gets the mode that cp -r gives, in each way" {
	need setfacl
	local options
	mkdir -p s/e p
	setfacl -d -m u::rwx,g::r-x,o::--- p 2>/dev/null || skip "no ACLs on this file system"
	cp -r s p/cp
	for options in -r '-r --resume' '-r --shard=0/1'; do
		# shellcheck disable=SC2086
		expect 0 $options s p/new
		[ "$(stat -c %a p/new p/new/e)" = "$(stat -c %a p/cp p/cp/e)" ] || { stat -c '%a %n' p/*; return 1; }
		rm -r p/new*
	done
}

@test "--no-preserve=mode: 0666 for files and 0777 for directories, less the umask or as the default ACL says" {
	mkdir -p s/d deny
	echo a >s/d/f
	mkfifo s/p
	chmod 444 s/d/f
	chmod 400 s/p
	chmod 555 s/d s
	local how mask
	for mask in 022 077; do
		for how in -r -a "-r --preserve=mode" "-r --inplace"; do
			rm -rf cp new merged
			mkdir -p merged/s/d
			chmod 700 merged/s/d
			umask $mask
			# shellcheck disable=SC2086
			cp ${how%--inplace} --no-preserve=mode s cp
			# shellcheck disable=SC2086
			expect 0 $how --no-preserve=mode s new
			same_modes cp new || { echo "umask $mask, $how"; return 1; }
			# shellcheck disable=SC2086
			expect 0 $how --no-preserve=mode s merged
			umask 022
			[ "$(stat -c %a merged/s/d)" = 700 ]
			[ "$(stat -c %a merged/s/d/f)" = "$(stat -c %a cp/d/f)" ]
		done
	done
	expect 0 --no-preserve=mode s/d/f f
	expect 0 --no-preserve=mode --resume s/d/f resumed
	expect 0 --resume -r --no-preserve=mode s tree
	expect 0 --no-preserve=mode --preserve=all s/d/f all
	[ "$(stat -c %a f resumed tree tree/d tree/d/f all | tr '\n' ' ')" = "644 644 755 755 644 444 " ]
	setfacl -d -m u::rwx,g::rwx,o::--- deny 2>/dev/null || skip "no ACL on this file system"
	expect 0 -r --no-preserve=mode s deny
	[ "$(stat -c %a deny/s/d deny/s/d/f | tr '\n' ' ')" = "770 660 " ]
}

@test "merge with -r: directories that only had files replaced keep time and mode, as with cp" {
	mkdir -p s/d/e s/new cp/s/d/e
	echo a | tee s/a s/d/b >s/d/e/c
	echo old | tee cp/s/a cp/s/d/b >cp/s/d/e/c
	chmod 700 cp/s/d
	chmod 1777 cp/s/d/e
	touch -d @981158400 cp/s/d/e cp/s/d cp/s
	cp -a cp fcopy
	echo f >s/d/e/f
	cp -r s cp
	expect 0 -r s fcopy
	diff -r s fcopy/s
	[ "$(stat -c '%Y %a' fcopy/s/d)" = "981158400 700" ]
	[ "$(stat -c %Y cp/s/d)" = 981158400 ]
	for d in s s/d/e; do # has a new name
		[ "$(stat -c %Y fcopy/$d)" != 981158400 ]
		[ "$(stat -c %a fcopy/$d)" = "$(stat -c %a cp/$d)" ]
	done
	touch -d @981158400 fcopy/s
	expect 0 -rT s fcopy/s
	[ "$(stat -c %Y fcopy/s)" = 981158400 ]
}

@test "a directory whose mode cannot be set: a warning, but none where the storage has fixed modes" {
	need_strace
	local errno
	mkdir -p s/d
	chmod 555 s/d
	for errno in EIO EACCES EROFS EPERM ENOSYS EOPNOTSUPP; do
		rm -rf d
		run --separate-stderr strace -f -qq -o trace -e inject=fchmod:error=$errno "$FCOPY" -r s d
		[ "$status" = 0 ]
		[ -d d/d ]
		grep -q INJECTED trace
		case $errno in
		E[IAR]*) mentions "warning: d/d: fchmod: " ;;
		*) [ -z "$stderr" ] || { echo "$errno: $stderr"; return 1; } ;;
		esac
	done
	chmod 755 s/d
}
