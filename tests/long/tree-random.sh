#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tree-random.sh [N]: N random trees (500), copied with random options from and to random file systems
# by fcopy and by cp; rsync and find must not see a difference. SEED repeats a run.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3 rsync
need_mounts "$@"
make_work
seed_random
wanted=${1:-500}

# pick WORD…: sets REPLY to one of them.
pick() {
	random_below $#
	shift $REPLY
	REPLY=$1
}

# What find shows; the times too, if they are kept.
listing() {
	local times=
	[[ " $2 " != *a* && " $2 " != *p* ]] || times=' %T@'
	(cd "$1" && find . \( -type d -printf "%p %y %m %U %G$times\n" -o -type f -printf "%p %y %m %U %G %s %n$times\n" \
		-o -printf "%p %y %m %U %G %l$times\n" \) | LC_ALL=C sort)
}

one() {
	local from to options extra what seed_of_case by_cp=0 by_fcopy=0
	pick "${dirs[@]}"
	from=$REPLY
	pick "${dirs[@]}"
	to=$REPLY
	pick -a -a -r -rp -aL -rL -rH -rP
	options=$REPLY
	pick "" "" -j1 -j4 --fsync --verify --resume --no-cache "--sparse=never" "--reflink=never"
	extra=$REPLY
	random_below 1000000000
	seed_of_case=$REPLY
	what="tree $seed_of_case: fcopy $options $extra, $(fs_of "$from") to $(fs_of "$to")"
	chmod -R u+rwx "$from/src" "$to/cp" "$to/fcopy" 2>/dev/null
	rm -rf "$from/src" "$to"/{cp,fcopy,fcopy.fcopy-part}
	python3 "$root/tests/tools/random_tree.py" draw "$from/src" "$seed_of_case" "$options" || exit 1
	timed cp "$options" "$from/src" "$to/cp" 2>"$work/cp.err" || by_cp=$?
	# shellcheck disable=SC2086 # none or one word
	timed "$FCOPY" "$options" $extra --keep-going "$from/src" "$to/fcopy" 2>"$work/err" || by_fcopy=$?
	tried=$((tried + 1))
	if [ $by_cp != $by_fcopy ]; then
		fail_status $by_fcopy "$what: cp exits with $by_cp, fcopy: $(head -n 2 "$work/err")"
		return
	fi
	[ $by_cp = 0 ] || refused=$((refused + 1))
	if ! diff <(listing "$to/cp" "$options") <(listing "$to/fcopy" "$options") >"$work/differences" ||
		! rsync -rlHDAXnic --no-t --delete "$to/cp/" "$to/fcopy/" >"$work/differences" ||
		grep -v '^\.[fdLDS]\.\.t\.\.\.\.\.\.\.\? ' "$work/differences" | grep -q .; then
		fail wrong "$what: $(head -n 4 "$work/differences")"
	fi
}

refused=0
while [ $tried -lt "$wanted" ]; do
	one
done
chmod -R u+rwx "${dirs[@]}" 2>/dev/null
echo "$name: $refused trees could not be copied whole, by cp either"
finish
