#!/bin/bash
# SPDX-License-Identifier: MIT
#
# mirror.sh [N]: N random trees (300), each mirrored, changed in SRC and sometimes in DST, perhaps killed at a random
# moment, and mirrored again. rsync must see no difference, and another run must copy and
# remove nothing. With patterns, the same entries must be there as with rsync. SEED repeats a run.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3 rsync jq
need_mounts "$@"
make_work
seed_random
wanted=${1:-300}
tree=$root/tests/tools/random_tree.py

# pick WORD…: sets REPLY to one of them.
pick() {
	random_below $#
	shift $REPLY
	REPLY=$1
}

# mirror WHAT OPTION…: it must succeed; $work/out has the report.
mirror() {
	local what=$1 status=0
	shift
	timed "$FCOPY" --mirror --json "$@" "$from/src" "$to/fcopy" >"$work/out" 2>"$work/err" || status=$?
	[ $status = 0 ] || fail_status $status "$what: $(head -n 2 "$work/err")"
	return $status
}

one() {
	local from to options seed_of_case what killed=
	pick "${dirs[@]}"
	from=$REPLY
	pick "${dirs[@]}"
	to=$REPLY
	pick "" "" -j1 -j8 --checksum
	options=$REPLY
	random_below 1000000000
	seed_of_case=$REPLY
	what="tree $seed_of_case: --mirror $options, $(fs_of "$from") to $(fs_of "$to")"
	chmod -R u+rwx "$from/src" "$to"/* 2>/dev/null
	rm -rf "$from/src" "$to"/{fcopy,rsync}
	python3 "$tree" draw "$from/src" "$seed_of_case" "" || exit 1
	tried=$((tried + 1))
	# shellcheck disable=SC2086 # none or one word
	mirror "$what, new" $options || return
	python3 "$tree" change "$from/src" "$seed_of_case" || exit 1
	random_below 3
	[ "$REPLY" != 0 ] || python3 "$tree" change "$to/fcopy" $((seed_of_case + 1)) || exit 1
	random_below 3
	if [ "$REPLY" = 0 ]; then
		random_below 30
		killed=", killed after $REPLY ms"
		(timeout -s KILL "0.0$(printf %02d "$REPLY")" "$FCOPY" -q --mirror --max-delete=1000000 "$from/src" "$to/fcopy") 2>/dev/null
	fi
	# shellcheck disable=SC2086
	mirror "$what$killed" $options --max-delete=1000000 || return
	# A killed copy leaves its temporary files: they may belong to another one that is at work.
	# XFS lists each ACL as an attribute, too: rsync 3.5 copies it, cp does not.
	rsync -aHAXnc --delete --exclude='.fcopy-*' --filter='-x trusted.SGI_ACL_*' --itemize-changes "$from/src/" "$to/fcopy/" >"$work/differences" 2>&1
	if [ -s "$work/differences" ]; then
		fail wrong "$what$killed: $(head -n 4 "$work/differences")"
		return
	fi
	# shellcheck disable=SC2086
	mirror "$what$killed, again" $options --max-delete=1000000 || return
	jq -e '.tree | .files + .symlinks + .specials + .hard_links + .repaired + .deleted == 0' "$work/out" >/dev/null ||
		fail other "$what$killed: the second run does something: $(jq -c .tree "$work/out")"
	patterns
}

patterns() {
	local a b
	pick '*a*' '*/' '/*a' 'a*/b*' '**b' '*[0-5]' '?*'
	a=$REPLY
	pick '*b*' '*1' '/*/*' '*c'
	b=$REPLY
	rm -rf "$to"/{rsync,filtered}
	rsync -a --include="$b" --exclude="$a" "$from/src/" "$to/rsync/" 2>/dev/null
	timed "$FCOPY" -q -aT --include="$b" --exclude="$a" "$from/src" "$to/filtered" 2>"$work/err" ||
		fail other "$what, --include=$b --exclude=$a: $(head -n 1 "$work/err")"
	diff <(cd "$to/rsync" && find . | LC_ALL=C sort) <(cd "$to/filtered" && find . | LC_ALL=C sort) >"$work/differences" ||
		fail wrong "$what, --include=$b --exclude=$a: $(head -n 4 "$work/differences")"
	chmod -R u+rwx "$to"/{rsync,filtered} 2>/dev/null
	rm -rf "$to"/{rsync,filtered}
}

while [ $tried -lt "$wanted" ]; do
	one
done
chmod -R u+rwx "${dirs[@]}" 2>/dev/null
finish
