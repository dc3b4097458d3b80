#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tree-race.sh [N]: copies a tree N times (500) while a process keeps exchanging its directories and
# files for symlinks to a canary; and merges it as often into a tree whose directories are exchanged.
# The canary must never be read into a copy, and never be written. A symlink to a file in an existing
# tree is followed, as cp does, so there only directories are exchanged.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3
make_work
wanted=${1:-500}
directories=0
symlinks=0

# prepare DIR: directories and files with symlinks beside them that lead to the canary.
prepare() {
	local i
	mkdir -p "$1"
	for i in 1 2 3; do
		mkdir -p "$1/$i/sub"
		echo harmless >"$1/$i/file"
		echo harmless >"$1/$i/sub/file"
		ln -s "$work/canary" "$1/$i.link"
		ln -s "$work/canary/sub" "$1/$i/sub.link"
		ln -s "$work/canary/file" "$1/$i/file.link"
	done
}

# exchange DIR NAME…: below 1, 2 and 3, until it is killed; both names exist at any moment.
exchange() {
	python3 - "$@" <<-'END' &
		import ctypes, sys
		call = ctypes.CDLL(None, use_errno=True).renameat2
		top = sys.argv[1].encode() + b"/"
		pairs = [(top + a, top + a + b".link") for i in (b"1", b"2", b"3")
		         for a in [i] + [i + b"/" + name.encode() for name in sys.argv[2:]]]
		while True:
		    for a, b in pairs:
		        call(-100, a, -100, b, 2)  # RENAME_EXCHANGE
	END
	exchanger=$!
}

stop_exchange() {
	kill "$exchanger"
	wait "$exchanger" 2>/dev/null
}

state_of_canary() {
	(cd "$work/canary" && find . -printf '%p %y %m %T@ %C@ %n\n' | sort && cat file sub/file)
}

# copy WHAT ARG…
copy() {
	timed "$FCOPY" "${@:2}" 2>"$work/err"
	local status=$?
	tried=$((tried + 1))
	[ $status -le 1 ] || fail_status $status "$1"
}

mkdir -p "$work/canary/sub"
echo CANARY >"$work/canary/file"
echo CANARY >"$work/canary/sub/file"
state_of_canary >"$work/before"

prepare "$work/src"
exchange "$work/src" sub file
options=(-r -a "-r -j4" "-a --fsync")
for ((n = 0; n < wanted; n++)); do
	# shellcheck disable=SC2086 # options are words
	copy "${options[n % 4]}" ${options[n % 4]} --keep-going "$work/src" "$work/dst"
	if grep -rqs CANARY "$work/dst"; then
		fail lost "copy $n: the canary was read"
	fi
	directories=$((directories + $(find "$work/dst" -maxdepth 1 -name '[123]' -type d -printf x | wc -c)))
	symlinks=$((symlinks + $(find "$work/dst" -maxdepth 1 -name '[123]' -type l -printf x | wc -c)))
	rm -rf "$work/dst" "$work"/.fcopy-*
done
stop_exchange
echo "$name: $directories directories were copied as such, $symlinks as symlinks"
if [ $directories = 0 ] || [ $symlinks = 0 ]; then
	fail other "the race was never on"
fi

rm -rf "$work/src"
mkdir "$work/src" "$work/into"
for i in 1 2 3; do
	mkdir -p "$work/src/$i/sub"
	echo new >"$work/src/$i/new"
	echo new >"$work/src/$i/sub/new"
	echo new >"$work/src/$i/file"
done
refused=0
for ((n = 0; n < wanted; n++)); do
	[ $((n % 20)) != 0 ] || {
		rm -rf "$work/into/src"
		prepare "$work/into/src"
		exchange "$work/into/src" sub
	}
	# shellcheck disable=SC2086
	copy "merge, ${options[n % 4]}" ${options[n % 4]} "$work/src" "$work/into"
	[ ! -s "$work/err" ] || refused=$((refused + 1))
	if [ $((n % 20)) = 19 ] || [ $n = $((wanted - 1)) ]; then
		stop_exchange
	fi
done
echo "$name: $refused merges met a symlink"
if [ $refused = 0 ] || [ $refused = "$wanted" ]; then
	fail other "merge: the race was never on"
fi
state_of_canary | cmp -s - "$work/before" || {
	state_of_canary | diff "$work/before" -
	fail lost "the canary was written"
}
finish
