#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench.sh --list | CASE… | all  [--dir DIR] [--size SIZE] [--rounds N] [--quick] [--once] [--output DIR | --continue DIR]
#
# The one harness: reads contenders.sh and cases/*.sh, times them by hyperfine in turn, and leaves
# JSON, CSV and Markdown in results/. CASE is a case, a group of cases, or a pattern.
#
#   --dir DIR     where the files are made: "here" in the cases (default: build/bench)
#   --size SIZE   of the large files, and a bound for the others (default: 1G)
#   --rounds N    timed rounds, where a case names no number (default: 9; fewer than 6 give no interval)
#   --once        measures no case again whose spread is wide
#   --quick       6 rounds and no more, without rehearsals, files of 128M, and of `all` only what is not
#                 marked slow
#   --output DIR  results go there
#   --continue DIR  goes on with the run that was ended there: what it has is not measured again
#
# SIGUSR1 ends it after the case that is being measured, with a report of what there is; so can a run of
# hours be taken in parts.
# FCOPY names the program, RIVALS_DIR the directory that rivals/install.sh filled.
set -uo pipefail
export LC_ALL=C.UTF-8 # times have a point, wherever we are

BENCH=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
ROOT=$(dirname "$BENCH")
FCOPY=$(realpath -m "${FCOPY:-$ROOT/fcopy}")
RIVALS=$(realpath -m "${RIVALS_DIR:-$ROOT/build/rivals}")/bin
CLASSES=$ROOT/build/bench/classes
INVOCATION="bench/bench.sh $*"
DIR=$ROOT/build/bench
SIZE=1G SIZE_GIVEN='' ROUNDS=9 ROUNDS_GIVEN='' QUICK='' ONCE='' LIST='' OUT='' GO_ON='' ENOUGH=''
NETNS_RUN=()

for part in say lab files memory cases programs peers run circumstances; do
	# shellcheck source=/dev/null
	. "$BENCH/lib/$part.sh"
done

usage() {
	sed -n '4,21s/^# \{0,1\}//p' "$BENCH/bench.sh"
	exit "${1-0}"
}

report() { python3 "$BENCH/lib/report.py" "$@"; }

options() {
	WORDS=()
	while (($#)); do
		case $1 in
		--dir | --size | --rounds | --output | --continue) (($# > 1)) || usage 2 >&2 ;;&
		--dir) DIR=$2; shift ;;
		--size) SIZE=$2 SIZE_GIVEN=$2; shift ;;
		--rounds) ROUNDS=$2 ROUNDS_GIVEN=$2; shift ;;
		--output) OUT=$2; shift ;;
		--continue) OUT=$2 GO_ON=yes; shift ;;
		--once) ONCE=yes ;;
		--quick) QUICK=yes ;;
		--list) LIST=yes ;;
		--help) usage ;;
		-*) usage 2 >&2 ;;
		*) WORDS+=("$1") ;;
		esac
		shift
	done
	[[ ! $QUICK ]] || ROUNDS=${ROUNDS_GIVEN:-6} SIZE=${SIZE_GIVEN:-128M}
	SIZE=$(bytes "$SIZE") || exit 2
	[[ $ROUNDS =~ ^[1-9][0-9]*$ ]] || die "not a number of rounds: $ROUNDS"
	[[ $LIST || ${#WORDS[@]} -gt 0 ]] || usage 2 >&2
}

# A small --size is a wish for a small run: fixed larger sizes are not for it.
drop_larger() {
	local name kept=()
	[[ $SIZE_GIVEN ]] || return 0
	for name in "${CASES[@]}"; do
		if ((${OF[$name:size]} <= SIZE)); then kept+=("$name"); else say "$name: larger than --size, left out"; fi
	done
	CASES=("${kept[@]}")
}

# The notes of a run that was ended stay where its results are.
drop_measured() {
	local name kept=()
	[[ $GO_ON ]] || return 0
	OUT=$(realpath -m "$OUT")
	grep -qs '^ended	' "$OUT/facts.tsv" || die "$OUT: no run was ended there"
	grep -qF "program	$(program_id)" "$OUT/facts.tsv" || die "$OUT: that run was of another program"
	for name in "${CASES[@]}"; do
		grep -q "^$name	" "$OUT/cases.tsv" || kept+=("$name")
	done
	CASES=("${kept[@]}")
}

output_open() {
	local base n=1
	mkdir -p "$DIR"
	[[ ! $GO_ON ]] || { sed -i '/^ended	/d' "$OUT/facts.tsv"; return; }
	base=$BENCH/results/$(date +%Y-%m-%d)-$(uname -r)-$(fs_type "$DIR")
	[[ -n $OUT ]] || { OUT=$base; while [[ -e $OUT ]]; do n=$((n + 1)); OUT=$base-$n; done; }
	mkdir -p "$OUT" && OUT=$(realpath "$OUT") || exit 1
	[[ -e $OUT/results.json || -e $OUT/facts.tsv || -z $(ls -A "$OUT") ]] ||
		die "$OUT is not empty, and holds no results: name another"
	report forget "$OUT"
}

main() {
	local name
	options "$@"
	cases_load
	[[ ${#WORDS[@]} -eq 0 ]] || cases_select "${WORDS[@]}"
	drop_larger
	drop_measured
	[[ ! $LIST ]] || { cases_list; exit; }
	need hyperfine hyperfine jq jq python3 python3 findmnt util-linux ss iproute2
	[[ -x $FCOPY ]] || say "$FCOPY is missing (run make): fcopy is left out"
	program_find python3
	IMAGE_SIZE=$((4 * $(cases_largest) + (1 << 30)))
	say "${#CASES[@]} cases: about $(($(cases_seconds) / 60 + 1)) min," \
		"and up to $(human $((3 * $(cases_largest)))) of disk in $DIR"
	((${#CASES[@]})) || die 'nothing to do'
	lab_open "$DIR"
	output_open
	if [[ $GO_ON ]]; then circumstances_again; else circumstances; fi
	trap 'ENOUGH=yes' USR1
	for name in "${CASES[@]}"; do
		[[ ! $ENOUGH ]] || { fact ended "on request, before $name"; break; }
		run_case "$name"
	done
	circumstances_used
	report write "$OUT"
	grep -q '^ended	' "$OUT/facts.tsv" || report forget "$OUT"
	say "results: $OUT"
}

main "$@"
