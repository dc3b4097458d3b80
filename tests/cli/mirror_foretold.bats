#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --dry-run of a mirror: what it says, and that it changes nothing.

load helper
load mirror

@test "--dry-run does not try what network storage can do, in a directory of several users either" {
	mkdir -p backing/d s
	touch s/f backing/d/f
	chmod 777 backing/d
	touch -d 2001-02-03 backing/d
	by_fuse attr_timeout=0 '"$FCOPY" --dry-run -aT s m/d && "$FCOPY" --dry-run --mirror s m/d'
	[ "$(stat -c %y backing/d)" = "$(date -d 2001-02-03 '+%F %T.%N %z')" ]
}

@test "a directory whose attributes differ is foretold and reported; its time alone only if no name changed" {
	local said options
	mkdir -p s/mode s/time s/named s/equal
	touch s/named/old
	touch -d 2001-02-03 s s/*
	cp -a s d
	chmod 700 s/mode
	touch -d 2002-03-04 s/time
	touch s/named/new
	for options in --mirror '-aT --delete' '-aT --update=changed'; do
		rm -rf e
		cp -a d e
		# shellcheck disable=SC2086
		said=$("$FCOPY" --dry-run $options s e 2>/dev/null | grep repaired | sort)
		[ "$said" = $'e/mode: attributes would be repaired\ne/time: attributes would be repaired' ] || { echo "$options: $said"; return 1; }
		# shellcheck disable=SC2086
		said=$("$FCOPY" -v $options s e 2>/dev/null | grep repaired | sort)
		[ "$options" = '-aT --delete' ] || [ "$said" = $'e/mode: attributes repaired\ne/time: attributes repaired' ] || { echo "$options: $said"; return 1; }
		[ "$(stat -c '%a %y' e/mode e/time e/named e/equal e)" = "$(stat -c '%a %y' s/mode s/time s/named s/equal s)" ]
	done
	chmod 700 s
	expect 0 --dry-run --mirror s e
	lists 'e: attributes would be repaired'
	expect 0 --mirror --json s e
	[ "$(count repaired)" = 1 ]
	expect 0 --mirror --json s e
	[ "$(count repaired)" = 0 ]
}

@test "--dry-run says what would happen, and changes nothing" {
	local before options
	make_source
	expect 0 --dry-run -a s d
	absent d
	lists 'would copy s/a/b/y -> d/a/b/y' 'would copy s/empty -> d/empty'
	says 'fcopy: dry run: 5 would be copied, 1 would be linked'
	expect 0 --mirror s d
	echo extra >d/extra
	mkdir -p d/ex/tra
	rm -r s/c
	echo file >s/c
	echo 33 >s/top
	chmod 600 s/a/b/y
	mkdir s/new
	echo n >s/new/n
	before=$(everything d)
	for options in --mirror '--mirror --max-delete=100' -aT -rTu '-aT --update=none' '--mirror --checksum -j1' -aTL '-aT --resume'; do
		# shellcheck disable=SC2086
		run --separate-stderr "$FCOPY" --dry-run $options s d
		[ "$(everything d)" = "$before" ] || { echo "$options changed something"; return 1; }
	done
	expect 0 --dry-run --mirror s d
	lists 'would copy s/c -> d/c' 'would copy s/new/n -> d/new/n' 'would copy s/new -> d/new' 'would copy s/top -> d/top' \
		'would remove d/extra' 'would remove d/ex/tra' 'would remove d/c/fifo'
	says 'fcopy: dry run: 3 would be copied, 3 unchanged (attributes of 1 would be repaired), 6 would be removed'
	[[ $output != *'s/a/'* ]]
	lists 'd/a/b/y: attributes would be repaired'
	expect 0 --dry-run s/top d/top
	[ "$output" = 'would copy s/top -> d/top' ]
	says 'fcopy: dry run: 1 would be copied'
	# As many names are missing in DST as are too many.
	mkdir one two
	touch one/a two/b
	expect 0 --dry-run --mirror one two
	lists 'would copy one/a -> two/a' 'would remove two/b'
	expect 2 --dry-run - d/top <s/top
	# It refuses what the copy would refuse, and makes no backup.
	echo 4 >old
	ln old other
	ln -s nowhere dangling
	expect 0 --dry-run -b s/top d/top
	for options in 'old old' 's/top other' 's/top dangling' 'old missing/x' '-l old s/top' '-s old s/top' '-s old old' '-s old new/'; do
		# shellcheck disable=SC2086
		run --separate-stderr "$FCOPY" $options
		local real=$status
		# shellcheck disable=SC2086
		expect "$real" --dry-run $options
		[ "$real" != 0 ] && [ -z "$output" ] || { echo "$options: $real $output"; return 1; }
	done
	[ "$(everything d)" = "$before" ]
	expect 1 --dry-run --mirror --max-delete=4 s d
	[ "$(everything d)" = "$before" ]
	expect 0 --mirror s d
	mirrored
}

@test "--dry-run --mirror: a script sees a difference by the output, not by the exit status" {
	local change
	for change in ':' 'echo bb >s/f' 'chmod 711 s/f' 'touch s/new' 'ln -s f s/link' 'mkdir s/d' 'ln s/f s/hard' 'rm s/g'; do
		rm -rf s d
		mkdir s
		echo a >s/f
		echo g >s/g
		expect 0 --mirror s d
		eval "$change"
		expect 0 --mirror --dry-run s d
		[ -z "$output" ] && is=equal || is=different
		[ "$change" = : ] && want=equal || want=different
		[ "$is" = "$want" ] || { echo "$change: $is"; return 1; }
		expect 0 --mirror s d
		expect 0 --mirror --dry-run s d
		[ -z "$output" ]
	done
}
