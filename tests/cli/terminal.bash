# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# A terminal of a given width for the tests of what is drawn on one: tmux, with a server of its own for each terminal,
# because kill-server returns before the server has ended.

export FCOPY # its path may have spaces: commands say "$FCOPY"

tmux_() {
	env -u TMUX LC_ALL=C.UTF-8 tmux -L "fcopy-$BATS_ROOT_PID-$BATS_TEST_NUMBER-${BATS_SUITE_TEST_NUMBER:-0}-${TERMINALS:-0}" -f /dev/null "$@"
}

# terminal COLUMNS: a shell in it, in the test's directory.
terminal() {
	need tmux
	TERMINALS=$((${TERMINALS:-0} + 1))
	tmux_ new-session -d -x "$1" -y 12 -s t -c "$T" \
		"env PS1='\$ ' LC_ALL=${LOCALE-C.UTF-8} ${ENVIRONMENT-} bash --norc -i"
	until_shown '^\$'
}

type_in() {
	tmux_ send-keys -t t "$@"
}

screen() {
	tmux_ capture-pane -p -t t | sed 's/ *$//' | grep -v '^$'
}

# until_shown PATTERN [SECONDS]: waits for a line like that; fails if it does not come.
until_shown() {
	local end=$((SECONDS + ${2-60}))
	until screen | grep -qE -- "$1"; do
		[ $SECONDS -lt $end ] || { echo "no '$1' in:"; screen; return 1; }
		sleep 0.05
	done
}

# recorded ARG…: what fcopy sends to a terminal, byte by byte, in ./record.
recorded() {
	need script
	script -qec "\"\$FCOPY\" $*" record </dev/null >/dev/null
}

eval "clean_up() $(declare -f teardown | tail -n +2)"
teardown() {
	tmux_ kill-server 2>/dev/null || true
	clean_up
}
