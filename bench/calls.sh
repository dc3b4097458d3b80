#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# calls.sh [SIZE] [DIR]: how many system calls and context switches each mode takes for a file of
# SIZE (1G), counted by strace and by GNU time; a Markdown table.
set -uo pipefail

BENCH=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
fcopy=$BENCH/../fcopy
size=${1:-1G}
for part in say circumstances; do
	# shellcheck source=/dev/null
	. "$BENCH/lib/$part.sh"
done

bytes=$(bytes "$size") || exit 1
[[ -x $fcopy ]] || die "there is no $fcopy: run make"
need awk mawk strace strace /usr/bin/time time
mkdir -p "${2:-$BENCH/../build}"
lab=$(mktemp -d "$(realpath "${2:-$BENCH/../build}")/fcopy-calls.XXXXXX") || exit 1
trap 'rm -rf "$lab"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
head -c "$bytes" /dev/urandom >"$lab/src"

# calls MODE: all of them, and the three most frequent
calls() {
	strace -f -c -U calls,name -S calls -o "$lab/calls" "$fcopy" "$lab/src" "$lab/dst" "$1" 2>/dev/null || return 1
	rm -f "$lab/dst"
	awk '$1 ~ /^[0-9]+$/ && $2 != "total" { if (n++ < 3) most = most (n > 1 ? ", " : "") $2 " " $1 }
		$2 == "total" { total = $1 } END { print total " | " most }' "$lab/calls"
}

# switches MODE: voluntary and involuntary
switches() {
	/usr/bin/time -q -f '%w | %c' -o "$lab/switches" "$fcopy" "$lab/src" "$lab/dst" "$1" || return 1
	rm -f "$lab/dst"
	cat "$lab/switches"
}

origin
echo "| mode, $size | system calls | the most frequent | waits | preemptions |"
echo '| --- | ---: | --- | ---: | ---: |'
"$fcopy" --list | awk '$1 ~ /^[0-9]+$/ { print $1, $2 }' | while read -r mode name; do
	counted=$(calls "$mode") || { say "$name: refused here"; continue; }
	switched=$(switches "$mode")
	echo "| $mode $name | $counted | $switched |"
done
