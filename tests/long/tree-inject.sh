#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tree-inject.sh [N]: finds out with strace which system calls the copy of a tree makes, and fails N of
# them (5000), drawn at random, with plausible errnos. No crash, no hang, no exit 0 with an incomplete
# tree; a new tree is whole or absent; in an existing one no file is torn. A mirror, a copy that is continued and a shard are
# also killed at calls. After a failure or a kill, the same command line must complete them. CELL limits the runs to one kind.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need strace
need_mounts "$@"
make_work
# shellcheck source=calls.sh
. "$(dirname "$0")/calls.sh"
seed_random
wanted=${1:-5000}
strace -o /dev/null true 2>/dev/null || skip "strace may not trace"
cells=("new -r -j1" "new -a -j2" "new -r -j2 --fsync" "old -a -j1" "old -r -j2 --verify" "old -a -j2 --backup" "new -r -j1 --resume"
	"mirror --mirror -j1 --max-delete=99" "mirror --mirror -j2 --checksum --max-delete=99" "part -a -j1 --resume"
	"part -a -j2 --resume --fsync" "shard -a -j1 --shard=0/1" "share -a -j2 --shard=0/1")
if [ -n "${CELL-}" ]; then
	mapfile -t cells < <(printf '%s\n' "${cells[@]}" | grep "^$CELL ")
fi

# prepare DIR CELL: what the copy finds. A part, or the part of shards, has only the small files.
prepare() {
	rm -rf "$1/d"
	mkdir "$1/d"
	case $2 in
	old* | mirror*) cp -r "$work/old" "$1/d/dst" ;;
	part* | share*)
		(ulimit -f 60 && copy "$1" "$2" timed)
		[[ ! -e $1/d/dst && -e $1/d/dst.fcopy-part/journal ]] || fail other "$2: there is no part: $(head -n 1 "$work/err")"
		;;
	esac
}

# copy DIR CELL COMMAND…: under COMMAND.
copy() {
	# shellcheck disable=SC2086 # options are words
	"${@:3}" "$FCOPY" ${2#* } -T "$1/src" "$1/d/dst" 2>"$work/err"
}

# run DIR CELL [STRACE-OPTION…]
run() {
	prepare "$1" "$2"
	copy "$1" "$2" timeout --kill-after=1 30 strace -f -o "$work/trace" "${@:3}"
}

# Can the copy be continued by the same command line?
continues() { [[ $1 =~ ^(mirror|part|shard|share|new.*--resume) ]]; }

# list_faults DIR N CELL: N faults, drawn at random from the calls in the trace.
list_faults() {
	local call when err
	list_calls "$1" all | while read -r call when; do
		[[ -z $(errnos_of "$call") ]] || ! continues "$3" || printf "$call:signal=KILL:when=$when\n%.0s" 1 2
		for err in $(errnos_of "$call"); do
			echo "$call:error=$err:when=$when"
		done
	done | shuf -n "$2" --random-source=<(yes "$seed $1")
}

# check_old DIR WHAT: each file is old or new.
check_old() {
	local file
	while read -r -d '' file; do
		if [ ! -e "$1/d/dst/$file" ]; then
			[[ $2 == mirror* && ! -e $1/src/$file ]] || fail lost "$2: $file is gone"
			continue
		fi
		cmp -s "$1/d/dst/$file" "$work/old/$file" || cmp -s "$1/d/dst/$file" "$1/src/$file" ||
			fail lost "$2: $file is torn"
		[[ $2 != *--backup* ]] || cmp -s "$1/d/dst/$file" "$work/old/$file" || cmp -s "$1/d/dst/$file~" "$work/old/$file" ||
			fail lost "$2: $file has no backup"
	done < <(cd "$work/old" && find . -type f -print0)
}

# is_whole DIR: a name may be missing that a warning calls vanished: the fault says so.
is_whole() {
	same_tree "$1/src" "$1/d/dst" ||
		{ grep -q 'warning: .*\(vanished\|: \(fsetxattr\|fchown\|setxattr\|chmod\|utimens\|futimens\|f*[gl]*etxattr\|flistxattr\|fgetxattr\|f*removexattr\|fchmod\|fstat\)\)' "$work/err" &&
			! diff -rq --no-dereference "$1/src" "$1/d/dst" 2>&1 | grep -q 'differ$'; }
}

# follow DIR CELL WHAT: after a failure or a kill, the same command line.
follow() {
	local status
	copy "$1" "$2" timed
	status=$?
	# A mirror that was killed between a link and its rename, perhaps of another thread, leaves a whole file with a temporary
	# name, which --clean lists.
	[[ $2 != mirror* || $3 != *KILL* ]] || find "$1/d/dst" -type f -name '.fcopy-*' ! -name .fcopy-mirror -delete
	[ $status = 0 ] || fail_status $status "$3, then the same command line: $(head -n 2 "$work/err")"
	[ $status != 0 ] || same_tree "$1/src" "$1/d/dst" || fail wrong "$3, then the same command line: differs"
	[ $status != 0 ] || [[ $2 == mirror* ]] || [ -z "$(find "$1/d" -name '.fcopy-*' -o -path '*/dst.fcopy-part/*' ! -name journal ! -name lock)" ] ||
		fail other "$3, then the same command line left: $(find "$1/d" -name '*fcopy-*')"
}

inject() {
	local what status left
	what="$2 on $(fs_of "$1"), $3"
	# shellcheck disable=SC2046 # one option
	run "$1" "$2" $(faster "$3") -e "inject=$3" -e "trace=${3%%:*}" 2>/dev/null # bash reports a kill
	status=$?
	if ! grep -qE '\(INJECTED\)|killed by SIGKILL' "$work/trace"; then
		missed=$((missed + 1))
		return
	fi
	tried=$((tried + 1))
	case $status:${2%% *}:$3 in
	137:*:*signal=KILL*)
		[[ $2 != mirror* ]] || check_old "$1" "$what"
		[[ $2 == mirror* || ! -e $1/d/dst ]] || same_tree "$1/src" "$1/d/dst" || # not yet its mode
			diff -r --no-dereference -x fifo "$1/src" "$1/d/dst" >"$work/diff" || fail lost "$what: a partial tree"
		;;
	0:*)
		if [[ $2 == old* ]]; then
			check_old "$1" "$what"
			rm "$1/d/dst/other"
			find "$1/d/dst" -name '*~' -delete # backups
		fi
		# What has vanished from the source stays as it was.
		[[ $2 == old* || $2 == mirror* ]] && grep -q 'warning: .*vanished' "$work/err" && return
		! grep -q 'warning: .*: unlink of \.fcopy-mirror' "$work/err" || rm -f "$1/d/dst/.fcopy-mirror"
		is_whole "$1" || fail wrong "$what: $(head -n 2 "$work/err")"
		;;
	1:old:* | 1:mirror:*) check_old "$1" "$what" ;;
	1:*)
		# After the rename, only the flush of the directory may fail.
		if [ -e "$1/d/dst" ] && ! is_whole "$1"; then
			fail lost "$what: a partial tree: $(head -n 1 "$work/err")"
		fi
		;;
	*) fail_status $status "$what" ;;
	esac
	[ $status = 0 ] || [ $status = 137 ] || [ -s "$work/err" ] || fail other "$what: exit 1 without a message"
	case $3 in
	unlink* | getdents* | rename* | fchmodat* | *KILL*) ;; # then it cannot be removed
	open*ELOOP*) ;;                                        # then it is a symlink of another user
	*)
		while read -r left; do
			grep -qF "$left: remove: " "$work/err" || fail other "$what: a temporary name was left: $left"
		done < <(find "$1/d" -name '.fcopy-*' ! -name .fcopy-mirror ! -path '*.fcopy-part*' -prune)
		;;
	esac
	[ $status = 0 ] || ! continues "$2" || follow "$1" "$2" "$what"
}

make_tree "$work/tree" 12
mkdir "$work/old" "$work/old/0" "$work/old/0/0"
random_file "$work/old/0/0/0" 30K
random_file "$work/old/other" 3K
each=$(((wanted + ${#cells[@]} * ${#dirs[@]} - 1) / (${#cells[@]} * ${#dirs[@]})))
for dir in "${dirs[@]}"; do
	cp -a "$work/tree" "$dir/src"
	before=$tried
	missed=0
	for cell in "${cells[@]}"; do
		run "$dir" "$cell" || {
			fail_status $? "$cell on $(fs_of "$dir"): $(head -n 1 "$work/err")"
			continue
		}
		while read -r fault; do
			inject "$dir" "$cell" "$fault"
		done < <(list_faults "$dir" "$each" "$cell")
	done
	before=$((tried - before))
	echo "$name: $(fs_of "$dir"): $before faults injected, $missed did not come"
	[ $missed -le $((10 + before / 4)) ] || fail other "$(fs_of "$dir"): too few came"
done
finish
