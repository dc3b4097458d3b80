#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tree-inject.sh [N]: finds out with strace which system calls the copy of a tree makes, and fails N of
# them (5000), drawn at random, with plausible errnos. No crash, no hang, no exit 0 with an incomplete
# tree; a new tree is whole or absent; in an existing one no file is torn.
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
cells=("new -r -j1" "new -a -j2" "new -r -j2 --fsync" "old -a -j1" "new -r -j1 --resume" "old -r -j2 --verify")

# run DIR CELL [STRACE-OPTION…]
run() {
	local options=${2#* }
	rm -rf "$1/d"
	mkdir "$1/d"
	[ "${2%% *}" = new ] || cp -r "$work/old" "$1/d/dst"
	# shellcheck disable=SC2086 # options are words
	timeout --kill-after=1 30 strace -f -o "$work/trace" "${@:3}" "$FCOPY" $options -T "$1/src" \
		"$1/d/dst" 2>"$work/err"
}

# list_faults DIR N: N faults, drawn at random from the calls in the trace.
list_faults() {
	local call when err
	list_calls "$1" all | while read -r call when; do
		for err in $(errnos_of "$call"); do
			echo "$call:error=$err:when=$when"
		done
	done | shuf -n "$2" --random-source=<(yes "$seed $1")
}

# check_old DIR WHAT: each file is old or new.
check_old() {
	local file
	while read -r -d '' file; do
		[ -e "$1/d/dst/$file" ] || fail lost "$2: $file is gone"
		cmp -s "$1/d/dst/$file" "$work/old/$file" || cmp -s "$1/d/dst/$file" "$1/src/$file" ||
			fail lost "$2: $file is torn"
	done < <(cd "$work/old" && find . -type f -print0)
}

# is_whole DIR: a name may be missing that a warning calls vanished: the fault says so.
is_whole() {
	same_tree "$1/src" "$1/d/dst" ||
		{ grep -q 'warning: .*\(vanished\|: \(fsetxattr\|fchown\|setxattr\|chmod\|utimens\|futimens\|f*[gl]*etxattr\|flistxattr\|fgetxattr\|f*removexattr\|fchmod\|fstat\)\)' "$work/err" &&
			! diff -rq --no-dereference "$1/src" "$1/d/dst" 2>&1 | grep -q 'differ$'; }
}

inject() {
	local what status
	what="$2 on $(fs_of "$1"), $3"
	run "$1" "$2" --seccomp-bpf -e "inject=$3" -e "trace=${3%%:*}"
	status=$?
	if ! grep -q '(INJECTED)' "$work/trace"; then
		missed=$((missed + 1))
		return
	fi
	tried=$((tried + 1))
	case $status:${2%% *} in
	0:*)
		if [ "${2%% *}" = old ]; then
			check_old "$1" "$what"
			rm "$1/d/dst/other"
			# What has vanished from the source stays as it was.
			grep -q 'warning: .*vanished' "$work/err" && return
		fi
		is_whole "$1" || fail wrong "$what: $(head -n 2 "$work/err")"
		;;
	1:new)
		# After the rename, only the flush of the directory may fail.
		if [ -e "$1/d/dst" ] && ! is_whole "$1"; then
			fail lost "$what: a partial tree: $(head -n 1 "$work/err")"
		fi
		;;
	1:old) check_old "$1" "$what" ;;
	*) fail_status $status "$what" ;;
	esac
	[ $status = 0 ] || [ -s "$work/err" ] || fail other "$what: exit 1 without a message"
	case $3 in
	unlink* | getdents* | rename* | fchmodat*) ;; # then it cannot be removed
	*)
		[ -z "$(find "$1/d" -name '.fcopy-*' ! -path '*.fcopy-part*')" ] ||
			fail other "$what: a temporary name was left: $(head -n 1 "$work/err")"
		;;
	esac
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
		done < <(list_faults "$dir" "$each")
	done
	before=$((tried - before))
	echo "$name: $(fs_of "$dir"): $before faults injected, $missed did not come"
	[ $missed -le $((10 + before / 5)) ] || fail other "$(fs_of "$dir"): too few came"
done
finish
