#!/bin/bash
# SPDX-License-Identifier: MIT
#
# pictures.sh [SIZE] [DIR]: draws bench/terminal.svg, the README's picture, from what the program
# really shows on a terminal: the progress line of a copy under way, its statistics, and --benchmark.
# SIZE of the file is 512M, DIR is the temporary directory's. Needs tmux and python3.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
size=${1-512M}
work=$(mktemp -d "${2-${TMPDIR:-/tmp}}/fcopy-pictures.XXXXXX")
columns=80

tmux_() {
	env -u TMUX LC_ALL=C.UTF-8 TERM=xterm-256color tmux -L "fcopy-pictures-$$" -f /dev/null "$@"
}

clean_up() {
	tmux_ kill-server 2>/dev/null || true
	rm -rf "$work"
}
trap clean_up EXIT

# shown PATTERN: waits for it.
shown() {
	for _ in $(seq 600); do
		tmux_ capture-pane -p | grep -qE -- "$1" && return
		sleep 0.1
	done
	echo "pictures.sh: nothing like '$1' was shown:" >&2
	tmux_ capture-pane -p >&2
	return 1
}

type_in() {
	tmux_ send-keys "$1" Enter
}

for tool in tmux python3; do
	type $tool >/dev/null || { echo "pictures.sh: $tool is missing" >&2; exit 1; }
done
head -c "$size" /dev/urandom >"$work/disk.img"
tmux_ new-session -d -x $columns -y 40 -c "$work" \
	"env PATH='$here/..:$PATH' PS1='\[\e[1;34m\]\$\[\e[0m\] ' LC_ALL=C.UTF-8 bash --norc -i"
shown '^\$'

type_in 'clear; fcopy --limit-rate=200M disk.img backup.img'
shown ' 6[0-9]%'
{
	echo $'\e[1;34m$\e[0m fcopy --limit-rate=200M disk.img backup.img'
	tmux_ capture-pane -ep | grep '%'
	echo
} >"$work/picture"
shown '^copied'

for command in '--stats --fsync disk.img new.img' '--benchmark disk.img .'; do
	# Rehearsed, as every timed copy here: memory that a host took back is slow to come again.
	type_in "clear; fcopy $command >/dev/null 2>&1; rm -f new.img; echo end"
	shown '^end'
	type_in "clear; fcopy $command; echo; echo end"
	shown '^end'
	tmux_ capture-pane -ep | sed '/^end/,$d' | grep -v '^copied' |
		sed "1i \\\\x1b[1;34m\$\\x1b[0m fcopy $command" >>"$work/picture"
done

about=$("$here/../fcopy" --version; uname -sr; stat -f -c %T "$work"; date +%F)
python3 "$here/lib/terminal.py" $columns "${about//$'\n'/, }" <"$work/picture" >"$work/svg"
cp "$work/svg" "$here/terminal.svg"
echo "drawn: bench/terminal.svg"
