#!/bin/bash
# SPDX-License-Identifier: MIT
#
# cp-commands.sh [N]: the first N commands of cp-commands.txt (all). Each runs with cp, and with a
# link to fcopy that is called cp, in equal directories in which the names `new` and `out/new` are
# absent, files or directories; then it runs a second time. Exit status and tree must be equal,
# and both or neither must print an error. If the list says that fcopy differs, only crashes count.
# A command that cp here does not know is left out.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need find awk cksum
make_work
[ -x /bin/cp ] || skip "no /bin/cp"
mkdir "$work/bin"
ln -s "$FCOPY" "$work/bin/cp"

# make_world KIND: what the commands copy, and where to.
make_world() {
	mkdir "$work/$1" && cd "$work/$1" || exit 1
	mkdir -p d1/sub/deep d1/empty d2 out/sub
	local name
	for name in f1 f2 f3 a.txt b.dat d1/a.txt d1/b.txt d1/sub/c.txt d1/sub/deep/d.txt d1/.hidden d2/e.txt; do
		echo "$name" >"$name"
	done
	echo old >out/sub/c.txt
	echo old >out/f2
	: >d1/none
	ln d1/a.txt d1/twin
	ln -s a.txt d1/link
	ln -s f1 l1
	ln -s nowhere d1/sub/dangling
	ln -s sub d1/todir
	truncate -s 1M d1/sparse
	chmod 640 f1 d1/b.txt
	chmod 755 f2
	chmod 444 f3 d1/sub/c.txt
	chmod 750 d1/sub
	chmod 700 d2
	case $1 in
	file)
		echo old >new
		echo old >out/new
		chmod 600 new
		;;
	directory)
		mkdir new out/new
		echo old >out/new/a.txt
		;;
	esac
	find . -exec touch -h -d '2005-06-07 08:09:10' {} +
	touch -d '2001-02-03 04:05:06' f2 d1/b.txt d1
	find . new -maxdepth 0 -type d -exec touch {} + 2>/dev/null # their times change with each copy
	find out -type d -exec touch {} +
	cd "$root" || exit 1
}

# state DIR KIND: each entry with all that a copy may give it. A time is shown if a copy can have
# kept it. With `again`, no times of directories: fcopy replaces files that cp writes into.
state() {
	(cd "$1" && find . -printf '%P %y %m %U:%G %n %l %i %T@ %s\n' | sort |
		awk -v again="$2" '{ size = $NF; time = $(NF - 1); inode = $(NF - 2)
			if (!(inode in first)) first[inode] = $1
			if ($2 == "d") { size = ""; if (again) time = 0 }
			if (sub("/twin", "/a.txt", $6) + ($2 == "l")) size = "" # two names of one file
			$NF = ""; $(NF - 1) = time < 1200000000 ? time : "now"; $(NF - 2) = "=" first[inode]
			print $0, size }' &&
		find . -type f -exec cksum {} + | sort -k3)
}

# run PROGRAM COMMAND: in PROGRAM's tree, always under the same path. Sets status.
run() {
	local path=/usr/bin:/bin
	[ "$1" = cp ] || path=$work/bin:$path
	mv "$work/$1.tree" "$work/tree"
	(cd "$work/tree" && PATH=$path timed bash -c "$2" </dev/null >"$work/$1.out" 2>"$work/$1.err")
	status=$?
	mv "$work/tree" "$work/$1.tree"
}

# compare WHAT COMMAND [again]: returns 1 if the results differ, 2 if cp does not know the command.
compare() {
	local expected
	run cp "$2"
	expected=$status
	if grep -qE 'unrecognized option|invalid argument|allow an argument' "$work/cp.err"; then
		left_out "$1" "$(head -n 1 "$work/cp.err")"
		return 2
	fi
	run fcopy "$2"
	state "$work/cp.tree" "$3" >"$work/cp.state"
	state "$work/fcopy.tree" "$3" >"$work/fcopy.state"
	[ "$status" -lt 124 ] || { fail_status $status "$1"; return 1; }
	if [ $status != $expected ]; then
		fail other "$1: status $status, with cp $expected: $(head -n 1 "$work/fcopy.err")$(head -n 1 "$work/cp.err")"
		return 1
	elif ! diff "$work/cp.state" "$work/fcopy.state" >"$work/diff"; then
		fail wrong "$1: $(head -n 3 "$work/diff")"
		return 1
	elif [ -s "$work/cp.err" ] && [ ! -s "$work/fcopy.err" ]; then
		fail other "$1: only cp complains: $(head -n 1 "$work/cp.err")"
		return 1
	elif [ -s "$work/fcopy.err" ] && [ ! -s "$work/cp.err" ]; then
		fail other "$1: only fcopy complains: $(head -n 1 "$work/fcopy.err")"
		return 1
	fi
}

for kind in absent file directory; do
	make_world $kind
done
accepted=0 listed=0
while IFS= read -r line; do
	command=${line%% # *}
	[ "${command:0:1}" != '#' ] || continue
	[ $tried -lt "${1:-1000000}" ] || break
	same=yes
	for kind in absent file directory; do
		rm -rf "$work"/{cp,fcopy}.tree
		/bin/cp -a "$work/$kind" "$work/cp.tree"
		/bin/cp -a "$work/$kind" "$work/fcopy.tree"
		if [ "$line" != "$command" ]; then
			same=listed
			run fcopy "$command"
			[ $status -lt 124 ] || fail_status $status "$command"
			continue
		fi
		compare "$command, $kind" "$command" "" && compare "$command, $kind, again" "$command" again
		case $? in
		1) same=no ;;
		2) continue 2 ;;
		esac
	done
	tried=$((tried + 1))
	case $same in
	yes) accepted=$((accepted + 1)) ;;
	listed) listed=$((listed + 1)) ;;
	esac
done <"$(dirname "$0")/cp-commands.txt"
echo "$name: $accepted of $tried commands have the result of cp, $listed differ on purpose"
finish
