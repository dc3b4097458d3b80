#!/bin/bash
# SPDX-License-Identifier: MIT
#
# run.sh SUITE…: runs programs that speak TAP, bats files and directories of them (all bats files are one suite). Prints failures,
# skips with their reasons, and the seeds of random tests, and at the end one line: N passed, N failed, N skipped. The line
# "# skip: REASON" makes a skip of the test whose "ok" follows; "# left out: REASON" is a skip without a
# test. A suite that crashed, or that did not run as many tests as it announced, counts as one more
# failure. Exits 1 if anything failed. UNDER is put before each program (a debugger); FCOPY names the program for bats.
#
# UNSTEADY=N (0), for a machine whose load nobody knows: if at most N tests failed, their files run once more,
# alone. What then passes is listed as unsteady, below what it printed when it failed, and counts as passed. The test
# or the program still has a fault.
set -u

passed=0 failed=0 skipped=0 unsteady=0 running=()
logs=$(mktemp -d) || exit 1
# Everything temporary is below one directory, so that a failed or killed run leaves nothing. User nobody must reach it.
chmod 755 "$logs"
mkdir -m 1777 "$logs/tmp"
# Also the home: shells write their history there, and parallel what it remembers.
mkdir "$logs/home"
export TMPDIR=$logs/tmp TMUX_TMPDIR=$logs/tmp HOME=$logs/home PYTHONDONTWRITEBYTECODE=1
# A python3 that only finds the one to start takes most of the time of a short script.
python=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))' 2>/dev/null)
[[ -z $python || :$PATH: == *:$python:* ]] || PATH=$python:$PATH
unset HISTFILE XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME
clean_up() {
	rm -rf --one-file-system "$logs" 2>/dev/null && return
	chmod -R u+rwx "$logs" 2>/dev/null
	rm -rf --one-file-system "$logs"
}
trap clean_up EXIT
stop() {
	kill -- "${running[@]/#/-}" 2>/dev/null
	exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM HUP

run_suite() {
	local jobs=() files=("$@")
	if [[ -d $1 || $1 == *.bats ]]; then
		# Many tests wait for something. The longest files first, so that no CPU is idle at the end:
		# install.bats builds the program several times.
		type parallel >/dev/null 2>&1 && jobs=(--jobs $((4 * $(nproc))) --no-parallelize-within-files)
		mapfile -t files < <(find "$@" -maxdepth 1 -name '*.bats' -printf '%s %p\n' |
			sed '/install.bats$/s/^/9/' | sort -rn | cut -d ' ' -f 2-)
		timeout --foreground -k 9 1800 bats --formatter tap "${jobs[@]}" "${files[@]}"
	else
		# shellcheck disable=SC2086 # a command and its arguments
		CMOCKA_MESSAGE_OUTPUT=TAP ${UNDER-} "$1"
	fi
}

# Counts TAP on standard input; prints failures with what follows them. The last line is for us.
count() {
	awk -v suite="$1" '
		/^1\.\.[0-9]+/ { plan = substr($1, 4) + 0; planned = 1; next }
		/^(not )?ok/ && /# *[Ss][Kk][Ii][Pp]/ { skip++; print suite ": " $0; next }
		/^# skip: / { reason = $0; print suite ": " $0; next }
		/^# .*SEED=/ { print suite ": " $0; next }
		/^# left out/ { left++; print suite ": " $0; next }
		/^ok/ { if (reason == "") pass++; else skip++; reason = ""; show = 0; next }
		/^not ok/ { fail++; show = 1; reason = ""; print suite ": " $0; next }
		show || /ERROR|runtime error|WARNING: / { print suite ": " $0 }
		END {
			if (!planned || pass + fail + skip < plan) {
				print suite ": not ok: ran " pass + fail + skip " of " \
					(planned ? plan : "?") " tests"
				fail++
			}
			printf "%d %d %d\n", pass, fail, skip + left
		}'
}

# run_and_report SUITE, or several bats files: prints what count() found, and last "PASSED FAILED SKIPPED".
run_and_report() {
	local name=${1#*tests/} start=$SECONDS log=$logs/$BASHPID status result p f s
	[ $# = 1 ] || name=${name%/*}
	run_suite "$@" </dev/null >"$log" 2>&1
	status=$?
	result=$(count "$name" <"$log")
	read -r p f s <<<"${result##*$'\n'}"
	if [ "$p $f $s" != "$result" ]; then
		echo "${result%$'\n'*}"
	fi
	# A status without a failed test: a crash, a leak, a race.
	if [ $status != 0 ] && [ "$f" = 0 ]; then
		f=1
		echo "$name: not ok: exit status $status"
	fi
	if [ $status != 0 ] && ! grep -q '^not ok' "$log"; then
		tail -n 60 "$log"
	fi
	if [ "$f" != 0 ]; then
		failed_files "$1" "$f" <"$log" >>"$logs/failed"
	fi
	echo "$name: $p passed, $f failed, $s skipped ($((SECONDS - start)) s)"
	echo "$p $f $s"
}

# failed_files SUITE FAILED: for each failed test in TAP on standard input, its file. A program is its own.
failed_files() {
	local n
	if [[ -d $1 || $1 == *.bats ]]; then
		sed -nE 's/^# .*in test file (.*\.bats), line .*/\1/p'
	else
		for ((n = 0; n < $2; n++)); do
			echo "$1"
		done
	fi
}

# Sets unsteady to the number of tests that failed before, if all of their files now pass, one after the other.
try_again() {
	local file files
	[ "$(wc -l <"$logs/failed")" = $failed ] || return
	mapfile -t files < <(sort -u "$logs/failed")
	for file in "${files[@]}"; do
		echo "once more, alone: $file"
		run_and_report "$file" >"$logs/report"
		sed '$d' "$logs/report"
		[[ $(tail -n 1 "$logs/report") =~ ^[1-9][0-9]*\ 0\  ]] || return
	done
	unsteady=$failed
}

# add_up: one report on standard input; prints all of it but the last line.
add_up() {
	local report p f s
	report=$(cat)
	echo "${report%$'\n'*}"
	read -r p f s <<<"${report##*$'\n'}"
	if [ -z "$s" ]; then # killed before its end
		echo "not ok: no report"
		p=0 f=1 s=0
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# start SUITE…: in a separate process group, because bash makes other background processes ignore ^C.
start() {
	set -m
	{ run_and_report "$@" >"$logs/report.$BASHPID"; } &
	set +m
	running[$!]=$!
}

# finish FEWER: waits until fewer suites are running.
finish() {
	local ended
	while [ ${#running[@]} -ge "$1" ]; do
		wait -n -p ended "${running[@]}"
		unset "running[$ended]"
		add_up <"$logs/report.$ended"
	done
}

# As many suites at once as there are CPUs. bats is one of them, and the longest: it starts several tests at once itself,
# of which many wait.
bats=()
for suite; do
	[[ ! -d $suite && $suite != *.bats ]] || bats+=("$suite")
done
[ ${#bats[@]} = 0 ] || start "${bats[@]}"
for suite; do
	[[ ! -d $suite && $suite != *.bats ]] || continue
	finish "$(nproc)"
	start "$suite"
done
finish 1
if [ $failed != 0 ] && [ $failed -le "${UNSTEADY:-0}" ]; then
	try_again
	passed=$((passed + unsteady)) failed=$((failed - unsteady))
	[ $unsteady = 0 ] || echo "unsteady: $unsteady failed beside other tests, and passed alone"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed != 0 ]
