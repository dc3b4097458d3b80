#!/bin/bash
# SPDX-License-Identifier: MIT
#
# seccomp.sh [N]: denies each system call that a mode makes, as the seccomp filters of containers do,
# with ENOSYS, EPERM, EACCES and EINVAL: for the whole life of the process, one call at a time (or N
# of these cells a mode, drawn at random). strace finds the calls. No exit 0 with wrong bytes, no
# hang, no lost old file; and auto completes wherever mode readwrite completes under the same filter.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need strace timeout
make_work
seed_random
most=${1:-}
strace -o /dev/null true 2>/dev/null || skip "strace may not trace"
deny=$(tool deny) || skip "deny cannot be built (libseccomp-dev)"
"$deny" getppid EPERM true || skip "no seccomp filters here"
cd "$work" || exit 1
random_file src 300001
random_file old 20000
declare -A loaded
declare -A verdicts # of readwrite: "CALL ERRNO DESTINATION" -> exit status

# run MODE DESTINATION [COMMAND…]: one copy, under COMMAND; the destination may carry options.
run() {
	rm -rf d
	mkdir d
	[ "${2%% *}" = new ] || cp old d/dst
	# shellcheck disable=SC2046 # options, or no word at all
	timeout --kill-after=1 20 "${@:3}" "$FCOPY" -m "$1" $(grep -oe '--.*' <<<"$2") src d/dst 2>err
}

# calls_of MODE DESTINATION: prints the calls that the copy makes. Denying those that start a
# program shows nothing about a copy; denied exits and signal returns cannot be survived.
calls_of() {
	run "$1" "$2" strace -f -o trace
	sed -nE 's/^[0-9]+ +([a-z_0-9]+)\(.*/\1/p' trace | sort -u |
		grep -vxE 'execve|exit|exit_group|rt_sigreturn|restart_syscall|arch_prctl'
}

# deny_one MODE DESTINATION CALL ERRNO
deny_one() {
	local what="mode $1, $2 destination, $3 denied with $4" was=absent status
	[ "${2%% *}" = new ] || was=old
	[[ $2 != *--inplace* ]] || was=torn
	run "$1" "$2" "$deny" "$3" "$4"
	status=$?
	tried=$((tried + 1))
	state_of d/dst old src
	# The C library aborts any program with threads when futex(2) fails in an unknown way.
	if [ $status = 134 ] && grep -q 'futex facility' err && [[ $was =~ ^("$REPLY"|torn)$ ]]; then
		left_out "$what" "$(head -n 1 err)"
		return
	fi
	case $status:$was:$REPLY in
	0:*:new | 1:*:new | 1:old:old | 1:absent:absent | 1:torn:*) ;;
	*) fail_copy $status $was "$REPLY" "$what" ;;
	esac
	if [ "$1" = readwrite ]; then
		verdicts[$3 $4 $2]=$status
	elif [ "$1" = auto ] && [ $status != 0 ]; then
		[ -n "${verdicts[$3 $4 $2]-}" ] || deny_one readwrite "$2" "$3" "$4"
		[ "${verdicts[$3 $4 $2]}" != 0 ] || {
			run auto "$2" "$deny" "$3" "$4"
			fail other "$what: readwrite completes, auto does not: $(head -n 1 err)"
		}
	fi
}

# loads CALL ERRNO: whether a program starts under this filter. The loader and the C library make
# calls before main; where these end another program too, nothing is shown about a copy.
loads() {
	local key="$1 $2"
	if [ -z "${loaded[$key]-}" ]; then
		loaded[$key]=0
		"$deny" "$1" "$2" true 2>/dev/null || loaded[$key]=$?
		[ "${loaded[$key]}" = 0 ] || left_out "$1 denied with $2" "true(1) ends with ${loaded[$key]}"
	fi
	[ "${loaded[$key]}" = 0 ]
}

# list_cells MODE: prints "CALL ERRNO DESTINATION" for each of its cells, or those drawn.
list_cells() {
	local destination call err
	for destination in new old "old --fsync" "old --inplace"; do
		for call in $(calls_of "$1" "$destination"); do
			for err in ENOSYS EPERM EACCES EINVAL; do
				echo "$call $err $destination"
			done
		done
	done | shuf ${most:+-n "$most"} --random-source=<(yes "$seed $1")
}

for mode in $(mode_names); do
	works "mode $mode" run "$mode" new || continue
	before=$tried
	while read -r call err destination; do
		! loads "$call" "$err" || deny_one "$mode" "$destination" "$call" "$err"
	done < <(list_cells "$mode")
	echo "$name: mode $mode: $((tried - before)) copies with a call denied"
	[ "$tried" != "$before" ] || fail other "mode $mode: no calls found"
done
finish
