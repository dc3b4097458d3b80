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
	diff <(cd plain && getfacl -R .) <(cd owned && getfacl -R .)
	in_trace 'mkdirat.*"[de]", 0700' 2
}
