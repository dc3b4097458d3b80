#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tree-kill.sh [N]: strikes N running copies of a tree with KILL, INT or TERM at random instants, on
# each file system. A new tree must be whole or absent. Only KILL may leave something: a temporary
# name. After INT and TERM, death is by that signal.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need_mounts "$@"
make_work
seed_random
wanted=${1:-500}
signals=(KILL INT KILL TERM)
options=("-r" "-a -j1" "-r -j4 --fsync" "-a --verify")
finished=0
litter=0

copy() {
	# shellcheck disable=SC2086 # options are words
	env --default-signal=INT "${@:3}" "$FCOPY" $1 "$2/src" "$2/d/dst" 2>"$work/err"
}

# time_copy OPTIONS DIR: sets duration, in microseconds.
time_copy() {
	local start=${EPOCHREALTIME/./}
	copy "$1" "$2" timeout --kill-after=1 60 || fail_status $? "$1 on $(fs_of "$2")"
	duration=$((${EPOCHREALTIME/./} - start))
	rm -rf "$2/d/dst"
}

# strike OPTIONS DIR SIGNAL: one attempt, at a random instant; true if it struck.
strike() {
	local what status instant file
	random_below $((duration * 11 / 10))
	printf -v instant '%d.%06d' $((REPLY / 1000000)) $((REPLY % 1000000))
	what="$1 on $(fs_of "$2"), SIG$3 after $instant s"
	copy "$1" "$2" timeout --foreground --preserve-status --kill-after=20 --signal="$3" "$instant"
	status=$?
	state_of_tree "$2/d/dst" "$2/src"
	case $status:$REPLY in
	0:whole | [!0]*:whole | [!0]*:absent) ;;
	*) fail_tree $status "$REPLY" "$what" ;;
	esac
	rm -rf "$2/d/dst"
	while read -r file; do
		litter=$((litter + 1))
		[[ $3/$file == KILL/.fcopy-* ]] || fail other "$what left $file"
	done < <(ls -A "$2/d")
	rm -rf "$2"/d/.fcopy-* "$2"/d/*
	if [ $status = 0 ]; then
		finished=$((finished + 1))
		return 1
	fi
	[ $status = $((128 + $(kill -l "$3"))) ] || fail_status $status "$what: $(cat "$work/err")"
}

each=$(((wanted + ${#dirs[@]} * ${#options[@]} - 1) / (${#dirs[@]} * ${#options[@]})))
for dir in "${dirs[@]}"; do
	make_tree "$dir/src" 150
	mkdir "$dir/d"
	for option in "${options[@]}"; do
		time_copy "$option" "$dir"
		struck=0
		for ((attempt = 0; struck < each; attempt++)); do
			if [ $attempt -gt $((20 * each + 100)) ]; then
				fail other "$option on $(fs_of "$dir"): hardly ever struck"
				break
			fi
			if strike "$option" "$dir" "${signals[tried % 4]}"; then
				struck=$((struck + 1))
				tried=$((tried + 1))
			fi
		done
	done
done
echo "$name: $finished more were done before the blow; KILL left $litter temporary names"
finish
