# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What is checked on every file system. Each function runs in an empty directory; see check().

modes=${modes-} data=${data:?} dir=${dir:?} # of lib.sh

# refused_elsewhere MODE FROM TO: fcopy refused the mode, with a hint, and left nothing; and another
# program is refused the same. Modes that are not named here are refused nowhere.
refused_elsewhere() {
	grep -q 'hint: use auto' err
	[ ! -e "$3" ]
	case $1 in
	reflink) ! cp --reflink=always "$2" "$3.probe" ;;
	direct) ! dd if="$2" of="$3.probe" iflag=direct oflag=direct bs=64K ;;
	copy_file_range) xfs_io -f -c "copy_range $2" "$3.probe" 2>&1 | grep copy_range: ;;
	*) false ;;
	esac
	rm -f "$3.probe"
}

# copies MODE FROM TO: sets REPLY to copied or refused; fails if the copy is wrong.
copies() {
	REPLY=copied
	if f -m "$1" "$2" "$3" 2>err; then
		cmp "$2" "$3"
		return
	fi
	cat err
	refused_elsewhere "$@"
	REPLY=refused
}

# check_mode MODE: on this file system. The copy is kept, for check_kept.
check_mode() {
	local name
	copies "$1" ../from/large to.large
	[ $REPLY = copied ] || skip "$(sed -n '1s/^fcopy: .*to.large: //p' err)"
	for name in small empty; do
		copies "$1" ../from/$name to.$name
		[ $REPLY = copied ]
	done
	cp "$data/old" to.old
	copies "$1" ../from/large to.old
	[ $REPLY = copied ]
	mv to.large "$dir/kept.$1"
	[ "$1" != auto ] || f -v ../from/large to.large 2>&1 | sed 's/.*MiB, //'
}

# check_cross: to and from tmpfs, in every mode.
check_cross() {
	local mode refused=''
	cp "$data/large" here
	for mode in "${modes[@]}"; do
		[ "$mode" != reflink ] || continue
		copies "$mode" "$data/large" in
		[ $REPLY = copied ] || refused+=" $mode (in)"
		copies "$mode" here "$data/out"
		[ $REPLY = copied ] || refused+=" $mode (out)"
		rm -f in "$data/out"
	done
	echo "${refused:+refused:$refused}"
}

# check_kept: what check_mode kept is the same after the file system was mounted again.
check_kept() {
	local file
	for file in "$dir"/kept.*; do
		cmp "$data/large" "$file"
	done
	rm -f "$dir"/kept.*
}

check_option() {
	cp "$data/old" over
	f "$@" ../from/large to
	f "$@" ../from/large over
	cmp ../from/large to
	cmp ../from/large over
}

# check_no_cache: refused only if another program is refused O_DIRECT, too.
check_no_cache() {
	if ! f --no-cache ../from/large to 2>err; then
		cat err
		grep -q 'hint: leave out --no-cache' err
		[ ! -e to ]
		! dd if=../from/large of=/dev/null iflag=direct bs=64K
		skip "no O_DIRECT: fcopy refuses"
	fi
	check_option --no-cache
}

# wait_for_bytes FILE: until it has a MiB.
wait_for_bytes() {
	local i
	for i in {1..300}; do
		[ ! -e "$1" ] || [ "$(stat -c %s "$1")" -lt 1048576 ] || return 0
		sleep 0.1
	done
	echo "no $1 after $i waits"
	return 1
}

check_resume() {
	cp "$data/large" from
	/check/bin/fcopy --reflink=never --resume --limit-rate=1M from to &
	wait_for_bytes to.fcopy-part/data
	kill -9 $!
	wait $! || true
	[ ! -e to ]
	f -v --reflink=never --resume from to >said 2>&1 || { cat said && return 1; }
	cmp from to
	[ ! -e to.fcopy-part ]
	grep -o 'resuming at .*' said
}

# check_killed: the old file stays. What remains of the copy is reported.
check_killed() {
	local left
	cp "$data/large" from
	cp "$data/old" to
	/check/bin/fcopy --reflink=never --limit-rate=1M from to &
	sleep 2
	kill -9 $!
	wait $! || true
	cmp "$data/old" to
	left=$(find . -name '.fcopy-*' | wc -l)
	[ "$left" = 0 ] || echo "leaves a temporary file"
}

# reports_holes FILE: is a hole reported before the end of FILE? These file systems must report it.
reports_holes() {
	# shellcheck disable=SC2154 # init.sh sets it
	case $fs in ext4 | xfs | btrfs | tmpfs) return 0 ;; esac
	xfs_io -r -c 'seek -h 0' "$1" |
		awk -v size="$(stat -c %s "$1")" '$1 == "HOLE" && $2 < size { found = 1 } END { exit !found }'
}

# check_sparse: no more blocks than cp writes. If the file system does not report holes, only
# --sparse=always finds them.
check_sparse() {
	local at holes=yes
	truncate -s 24M from
	for at in 0 7 23; do
		dd if="$data/large" of=from bs=1M count=1 seek=$at conv=notrunc status=none
	done
	cp from by-cp || skip "cp fails"
	f from to
	f --sparse=always from always
	cmp from to
	cmp from always
	sync -f .
	reports_holes from || holes=no
	echo "$(kib from) KiB, cp $(kib by-cp), fcopy $(kib to), always $(kib always), holes are reported: $holes"
	# XFS keeps blocks allocated that it expected to need.
	[ "$(kib always)" -le $(($(kib by-cp) + 4096)) ]
	[ $holes = no ] || [ "$(kib to)" -le $(($(kib by-cp) + 512)) ]
}

# check_5gib: where holes are not reported, 5 GiB of zeros would be copied. A shard copies the last 80 MiB
# of them.
check_5gib() {
	local at
	truncate -s 16M hole
	sync -f .
	[ "$(kib hole)" -lt 1024 ] || skip "no sparse files"
	truncate -s 5121M from 2>/dev/null || skip "no file of this size"
	for at in 0 4300 5120; do
		dd if="$data/large" of=from bs=1M count=1 skip=$((at % 5)) seek=$at conv=notrunc status=none
	done
	if ! reports_holes from; then
		/check/bin/fcopy --shard=63/64 from to & # it begins with the last chunk
		at=$!
		for _ in {1..300}; do
			! cmp -s --bytes=81M --ignore-initial=5040M from to.fcopy-part/data || break
			sleep 1
		done
		cmp --bytes=81M --ignore-initial=5040M from to.fcopy-part/data
		kill $at
		wait $at || true
		rm -r to.fcopy-part
		echo "the last 80 MiB"
		return
	fi
	f -v from to
	[ "$(stat -c %s to)" = $((5121 << 20)) ]
	for at in 0 2000 4095 4096 4300 5120; do
		cmp --bytes=1M --ignore-initial=${at}M from to
	done
}

check_tree_r() {
	make_tree from
	f -r from to
	f -r from to # into the existing directory
	cmp <(names_and_bytes from) <(names_and_bytes to/from)
	rm -r to/from
	cmp <(names_and_bytes from) <(names_and_bytes to)
}

check_tree_a() {
	make_tree from
	f -a from to
	diff <(names_and_bytes from) <(names_and_bytes to)
	diff <(names_and_metadata from) <(names_and_metadata to)
}

# check_tree_in: a tree with links, owners and attributes from tmpfs. What the file system cannot hold is
# an error, and then no tree appears; with --keep-going all files do.
check_tree_in() {
	local status=0 file
	f -a "$data/tree" to 2>err || status=$?
	cat err
	if [ $status = 0 ]; then
		diff <(names_and_bytes "$data/tree") <(names_and_bytes to)
		head -n 1 err
		return
	fi
	[ $status = 1 ]
	[ ! -e to ]
	f -a --keep-going "$data/tree" kept 2>err || status=$?
	[ $status = 1 ]
	find "$data/tree" -type f -links 1 -printf '%P\n' >files
	while read -r file; do
		cmp "$data/tree/$file" "kept/$file"
	done <files
	grep -vE 'warning|hint' err | head -n 2 | tr '\n' ';'
}

# fill_nights DIR: files only, with times that no coarse storage keeps.
fill_nights() {
	cp -r "$data/tree" "$1"
	rm -f "$1"/symlink "$1"/2/fifo
	chmod 640 "$1/2/2/2"
	chown 12:34 "$1/2/2/2"
	find "$1" -depth -exec touch -h -d '2024-05-06 07:08:11.987654321' {} +
}

# said_last PATTERN: of the last line that fcopy wrote to ./err.
said_last() {
	tail -n 1 err | grep -E "$1" || { cat err && return 1; }
}

# check_nights [REMOUNT…]: a mirror, a snapshot and -u, and once more after the file system was mounted again:
# nothing is copied. A copy that was killed continues. What rsync and cp copy again is the reason.
check_nights() {
	local from=$data/nights files linked by_rsync by_cp
	rm -rf "$from"
	fill_nights "$from"
	files=$(find "$from" -type f | wc -l)
	f --mirror "$from" mirror 2>err || cat err
	f -aT "$from" monday 2>err || cat err
	f -aT --link-dest=monday "$from" tuesday 2>err || cat err
	rsync -a "$from/" by-rsync || true
	cp -au "$from" by-cp || true
	cp "$data/large" "$from/large"
	/check/bin/fcopy -q -aT --resume --limit-rate=1M "$from" tree &
	wait_for_bytes tree.fcopy-part/data/large
	kill -9 $!
	wait $! || true
	if [ $# -gt 0 ]; then
		cd /
		"$@"
		cd "$dir/check" || return
	fi
	f -aT --resume "$from" tree 2>err || cat err
	diff <(names_and_bytes "$from") <(names_and_bytes tree)
	rm "$from/large"
	touch -d '2024-05-06 07:08:11.987654321' "$from"
	f --mirror "$from" mirror 2>err || cat err
	said_last "^fcopy: 0 copied, $files unchanged, 0 removed"
	f -v -auT "$from" monday >out 2>err || cat err
	! grep -e ' -> ' out
	f -aT --link-dest=tuesday "$from" wednesday 2>err || cat err
	linked=$(find wednesday -type f -links +1 | wc -l)
	! ln tuesday/hole probe || said_last "^fcopy: 0 copied, .*[1-9][0-9]* linked"
	diff <(names_and_bytes "$from") <(names_and_bytes wednesday)
	f -a --verify "$from" verified 2>err || cat err
	diff <(names_and_bytes "$from") <(names_and_bytes verified)
	by_rsync=$(rsync -ai "$from/" by-rsync | grep -c '^>f') || true
	by_cp=$(cp -auv "$from/." by-cp 2>/dev/null | grep -c -e ' -> ') || true
	echo "$files files, $linked linked; rsync copies $by_rsync again, cp -au $by_cp"
}

# all_checks [REMOUNT…]: REMOUNT is a command that mounts the file system again.
all_checks() {
	local mode
	rm -rf "${dir:?}/from"
	mkdir "$dir/from"
	cp "$data"/{large,small,empty} "$dir/from/"
	for mode in "${modes[@]}"; do
		check "$mode" check_mode "$mode"
	done
	if [ $# -gt 0 ]; then
		if ! "$@"; then
			result remount FAIL "see the console"
			return 1
		fi
		check remount check_kept
	fi
	rm -f "$dir"/kept.*
	check cross check_cross
	check verify check_option --verify
	check no-cache check_no_cache
	check fsync check_option --fsync
	check inplace check_option --inplace
	check resume check_resume
	check killed check_killed
	check sparse check_sparse
	check 5GiB check_5gib
	check tree-r check_tree_r
	check tree-a check_tree_a
	check tree-in check_tree_in
	check nights check_nights "$@"
	return 0
}
