# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the guest's checks share. Results go to descriptor 3 as "FS CHECK ok|FAIL|skip REASON".

fs=-             # the file system under test
dir=/            # an empty directory on it
data=/run/data   # the sources of the copies, on tmpfs
checks=''        # the names of the checks that are wanted; empty: all
modes=()         # the names of fcopy's modes, auto among them
times='2019-03-04 05:06:08' # of the entries of the tree

result() {
	echo "$fs $*" >&3
}

# f ARGUMENT…: fcopy. The watchdog ends it if it hangs.
f() {
	/check/bin/fcopy "$@"
}

# watchdog: kills each fcopy that is older than ten minutes. Generous: the machine may be stopped for a
# minute.
watchdog() {
	while sleep 60; do
		pkill -KILL --older 600 -x fcopy
	done
}

# static_first: the shell finds these programs in busybox, which is static. The emulated machine takes
# three times as long to start a program that it has to link. What makes and compares the files under
# test (cp, dd, cmp, cksum, find, getfattr) stays what Debian uses.
static_first() {
	local name
	mkdir /run/static
	for name in cat grep ls mkdir mv rm sed sleep sort stat tail truncate wc xargs; do
		ln -s /bin/busybox /run/static/$name
	done
	PATH=/run/static:$PATH
}

skip() {
	echo "$*"
	exit 77
}

# check NAME FUNCTION [ARGUMENT…]: runs a function that ends at the first command that fails, in an
# empty directory, and prints the result. The last line of its output is the reason. The console gets
# the duration in milliseconds.
check() {
	local name=$1 status why start=${EPOCHREALTIME/./}
	shift
	if [ -n "$checks" ] && [[ " $checks " != *" $name "* ]]; then
		return
	fi
	rm -rf "${dir:?}/check"
	if ! mkdir "$dir/check"; then
		result "$name" FAIL "mkdir"
		return
	fi
	why=$(
		cd "$dir/check" || exit
		set -eE
		trap 'echo "failed: $BASH_COMMAND"' ERR
		exec 2>&1
		"$@"
	)
	status=$?
	case $status in
	0) result "$name" ok "${why##*$'\n'}" ;;
	77) result "$name" skip "${why##*$'\n'}" ;;
	*) result "$name" FAIL "$(tail -n 3 <<<"$why" | tr '\n' ';' | tr -cd '[:print:]')" ;;
	esac
	echo "$fs $name: $(((${EPOCHREALTIME/./} - start) / 1000)) ms, status $status: $why"
	rm -rf "${dir:?}/check"
}

# has_fs NAME: whether the kernel has the file system.
has_fs() {
	modprobe "$1" 2>/dev/null
	grep -qw "$1" /proc/filesystems
}

# kib FILE: how much of the disk the file has.
kib() {
	echo $(($(stat -c '%b * %B' "$1") / 1024))
}

# make_data: the sources.
make_data() {
	mkdir -p "$data"
	head -c 6291333 /dev/urandom >"$data/large"
	head -c 7340032 /dev/urandom >"$data/old"
	head -c 4099 /dev/urandom >"$data/small"
	: >"$data/empty"
	fill_tree "$data/tree"
	# shellcheck disable=SC2034 # checks.sh reads it
	read -r -d '' -a modes < <(f --list | awk '$1 ~ /^[0-9]+$/ { print $2 }')
}

# make_tree DIR: what the file system under test can hold of it. One process: starting one takes long
# in a machine that is emulated.
make_tree() {
	cp -a "$data/tree" "$1" 2>/dev/null || true
	if [ "$fs" = cifs ]; then
		# The client closes a file late, and a server may then set its time once more, to now.
		sleep 3
		find "$1" -depth -exec touch -h -d "$times" {} +
	fi
}

# fill_tree DIR: on tmpfs.
fill_tree() {
	local i
	for i in {1..16}; do
		mkdir -p "$1/$((i % 4))/$((i % 3))"
		head -c $((i * i * 500)) "$data/large" >"$1/$((i % 4))/$((i % 3))/$i"
	done
	{
		ln "$1/1/1/1" "$1/hard"
		ln -s 1/1/1 "$1/symlink"
		mkfifo "$1/2/fifo"
		chmod 4711 "$1/1/1/1"
		chmod 1750 "$1/3"
		chown 12:34 "$1/2/2/2"
		setfattr -n user.fcopy -v value "$1/1/1/1"
		setfacl -m u:77:r "$1/0/1/4"
	} 2>/dev/null || true
	truncate -s 1M "$1/hole"
	find "$1" -depth -exec touch -h -d "$times" {} +
}

# names_and_bytes DIR, names_and_metadata DIR: what two equal trees have in common.
names_and_bytes() {
	(cd "$1" && find . -printf '%p %y %l\n' | sort && find . -type f -exec cksum {} + | sort)
}

names_and_metadata() {
	(
		cd "$1" && find . -type d -printf '%p %y %m %U %G %T@\n' -o -printf '%p %y %m %U %G %n %s %T@ %l\n' |
			sort
		find . ! -type l -print0 | sort -z | xargs -0 getfattr -d 2>/dev/null
		find . ! -type l -print0 | sort -z | xargs -0 getfacl -n 2>/dev/null
	)
}
