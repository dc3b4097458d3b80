#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Extended attributes and ACLs: what a copy gives, a mirror finds equal; what differs, it repairs.

load helper

# The attributes that a copy has of its source, on each type of file that can have them; those of root
# are left out where they cannot be set.
KINDS="user.fcopy trusted.fcopy security.capability security.fcopy"
CAPABILITY=0sAQAAAgAgAAAAAAAAAAAAAAAAAAA= # cap_net_raw+ep

scene() {
	need getfattr setfattr getfacl setfacl
	mkdir -p s/d
	echo file >s/f
	ln -s nowhere s/l
	mkfifo s/p
}

value_of() {
	case $1 in
	security.capability) echo "$CAPABILITY" ;;
	*) echo "0s$(printf '%s' "${2:-first}" | base64)" ;;
	esac
}

# give NAME FILE [VALUE]: returns 1 where the file system, the type or the user does not allow it.
give() {
	setfattr -h -n "$1" -v "$(value_of "$1" "${3-}")" "$2" 2>/dev/null
}

has() {
	getfattr -h --absolute-names -n "$1" "$2" -e hex 2>/dev/null | tail -n +2
}

# settled SRC DST: the next mirror finds nothing to do, and the comparison agrees.
settled() {
	expect 0 -T --mirror -v "$1" "$2"
	[[ $output$stderr != *repaired* ]] || { echo "$output$stderr"; return 1; }
	expect 0 -T --mirror --dry-run "$1" "$2"
	[[ $output$stderr != *"would be repaired"* ]] || { echo "$output$stderr"; return 1; }
}

@test "each kind of attribute: a copy has it, a mirror finds that equal, and repairs what differs" {
	local kind file given=
	for kind in $KINDS; do
		for file in f d l p; do
			rm -rf m s2
			cp -a s s2
			give $kind s2/$file || continue
			given+=" $kind:$file"
			expect 0 -aT s2 m
			[ -n "$(has $kind m/$file)" ]
			settled s2 m
			# the copy has another value
			if give $kind m/$file second && [ "$(has $kind s2/$file)" != "$(has $kind m/$file)" ]; then
				expect 0 -T --mirror s2 m
				[ "$(has $kind s2/$file)" = "$(has $kind m/$file)" ] || { echo "$kind $file"; return 1; }
				settled s2 m
			fi
			# the copy lacks it
			setfattr -h -x $kind m/$file
			expect 0 -T --mirror s2 m
			[ "$(has $kind s2/$file)" = "$(has $kind m/$file)" ] || { echo "$kind $file"; return 1; }
			settled s2 m
			# the source lacks it
			setfattr -h -x $kind s2/$file
			expect 0 -T --mirror s2 m
			if [ $kind != security.fcopy ]; then
				[ -z "$(has $kind m/$file)" ] || { echo "$kind $file stays"; return 1; }
			fi
			settled s2 m
		done
	done
	[ -n "$given" ] || skip "no attributes on this file system"
}

@test "a label of the security module: the directory gives it, and a mirror does not compare it" {
	setfattr -n security.selinux -v label s/f 2>/dev/null || skip "needs the right to set it"
	expect 0 -aT s m
	settled s m
	setfattr -n security.selinux -v other m/f
	settled s m
	[ "$(getfattr --only-values -n security.selinux m/f)" = other ]
	# a file that is replaced hands it on
	echo changed >s/f
	expect 0 -T --mirror s m
	[ "$(getfattr --only-values -n security.selinux m/f)" = other ]
	settled s m
}

@test "ACLs, also those that a directory gives to what is made in it: copy and mirror agree" {
	local file
	setfacl -m u:1234:r s/f s/p 2>/dev/null || skip "no ACL on this file system"
	setfacl -d -m u:1234:rwx s/d
	expect 0 -aT s m
	settled s m
	for file in f p; do
		setfacl -b m/$file
		chmod "$(stat -c %a s/$file)" m/$file
		expect 0 -T --mirror s m
		diff <(getfacl -c s/$file) <(getfacl -c m/$file)
		settled s m
		setfacl -m u:4321:rw m/$file
		expect 0 -T --mirror s m
		diff <(getfacl -c s/$file) <(getfacl -c m/$file)
		settled s m
	done
	setfacl -k m/d
	expect 0 -T --mirror s m
	diff <(getfacl -c s/d) <(getfacl -c m/d)
	settled s m
	setfacl -b s/f s/p s/d
	chmod 644 s/f s/p
	expect 0 -T --mirror s m
	for file in f p d; do
		diff <(getfacl -c s/$file) <(getfacl -c m/$file)
	done
	settled s m
}

@test "a view of an ACL that a file system lists is neither copied nor compared, whatever has it" {
	local file
	for file in f d l p; do
		setfattr -h -n trusted.SGI_ACL_FILE -v old s/$file 2>/dev/null || skip "needs root"
	done
	expect 0 -aT s m
	settled s m
	for file in f d l p; do
		[ -z "$(has trusted.SGI_ACL_FILE m/$file)" ] || { echo "$file has it"; return 1; }
	done
}

@test "--link-dest: a file whose attribute differs, of any kind, is copied and not linked" {
	local kind given=
	for kind in $KINDS; do
		rm -rf one two s2
		cp -a s s2
		give $kind s2/f || continue
		given=1
		expect 0 -aT s2 one
		expect 0 -aT --link-dest=one s2 two
		[ "$(stat -c %i one/f)" = "$(stat -c %i two/f)" ]
		setfattr -x $kind one/f
		rm -rf two
		expect 0 -aT --link-dest=one s2 two
		[ "$(stat -c %i one/f)" != "$(stat -c %i two/f)" ]
		[ "$(has $kind s2/f)" = "$(has $kind two/f)" ]
	done
	[ -n "$given" ] || skip "no attributes on this file system"
}

@test "a mirror that overwrites in place removes what the source lacks: the next one finds it equal" {
	setfattr -n user.fcopy -v first s/f 2>/dev/null || skip "no attributes on this file system"
	expect 0 -aT s m
	setfattr -x user.fcopy s/f
	echo changed >>s/f
	expect 0 -T --mirror --inplace s m
	[ -z "$(has user.fcopy m/f)" ]
	settled s m
}

@test "attributes that cannot be listed or read are never equal" {
	need_strace
	local call
	setfattr -n user.fcopy -v first s/f 2>/dev/null || skip "no attributes on this file system"
	expect 0 -aT s m
	setfattr -n user.fcopy -v second m/f
	# No kernel call shows at once that there are none.
	for call in flistxattr listxattr getxattr; do
		rm -rf two
		cp -a m one
		traced 0 "inject=$call:error=EIO" -aT --link-dest=one s two
		injected
		[ "$(stat -c %i one/f)" != "$(stat -c %i two/f)" ] || { echo "$call"; return 1; }
		rm -rf one
	done
}

# per_file OPTION: the calls for one more file of a tree of small files.
per_file() {
	local -i few many
	few=$(calls_of "$1" few) many=$(calls_of "$1" many)
	echo $(((many - few) / 8))
}

calls_of() {
	strace -f -qq -o "trace.$2" -e signal=none "$FCOPY" -q -j1 -T "$1" "$2" "copy.$2" >&2
	grep -vcE '(brk|mmap|munmap|madvise|futex|getdents64)\(|resumed' "trace.$2"
}

@test "calls for one more small file: 11 of -a, 4 of an unchanged mirror" {
	need_strace
	counting && skip "it writes down what it counted"
	case $(stat -f -c %T .) in
	ext2/ext3 | tmpfs | xfs | btrfs) ;;
	*) skip "a file system that may not list all attributes" ;;
	esac
	local calls file
	mkdir few many
	touch few/{1..9} many/{1..17}
	for file in few/* many/*; do
		echo data >"$file"
	done
	calls=$(per_file -a)
	[ "$calls" -le 11 ] || { echo "-a: $calls"; cat trace.many; return 1; }
	[ "$(printf '%s\n' 6.13 "$(uname -r)" | sort -V | head -1)" = 6.13 ] || skip "no listxattrat(2) before Linux 6.13"
	calls=$(per_file --mirror)
	[ "$calls" -le 4 ] || { echo "--mirror: $calls"; cat trace.many; return 1; }
}
