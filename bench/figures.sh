#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# figures.sh [--check | RUN…]: the plots in bench/ and the tables in README.md and bench/README.md, made
# from the results that bench/results/published names; RUN…, directories there, become those.
# --check only says whether they match.
set -euo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
check=''
# shellcheck source=/dev/null
. "$here/lib/say.sh"
need python3 python3
[[ ${1-} != --check ]] || { check=yes; shift; }
[[ -z $check || $# == 0 ]] || die '--check takes no runs'
[[ $check ]] || need gnuplot gnuplot-nox
runs=$here/results/published
(($# == 0)) || basename -a "$@" >"$runs"

pages=()
for page in "$here/../README.md" "$here/README.md"; do
	[[ ! -e $page ]] || pages+=("$page")
done
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
python3 "$here/lib/figures.py" data "$runs" "$data"

# Another gnuplot draws another file; what a plot was drawn from is the same everywhere.
digest() { cat "$data/$1.dat" "$data/$1.size" "$here/plots/$1.gp" "$here/plots/style.gp" | sha256sum | cut -d' ' -f1; }

plot() {
	gnuplot -e "size='$(cat "$data/$1.size")'; data='$data/$1.dat'; style='$here/plots/style.gp'" "$here/plots/$1.gp" >"$data/svg"
	echo "<!-- drawn from $(digest "$1") -->" | cat "$data/svg" - >"$here/$1.svg"
}

plot_check() {
	grep -qF "drawn from $(digest "$1") " "$here/$1.svg" ||
		{ echo "figures.sh: bench/$1.svg is not what the results say; run make figures" >&2; return 1; }
}

status=0
for script in "$here"/plots/*.gp; do
	name=$(basename "$script" .gp)
	[[ $name != style && $(wc -w <"$data/$name.dat") -gt 0 ]] || continue
	if [[ $check ]]; then plot_check "$name" || status=1; else plot "$name"; fi
done
python3 "$here/lib/figures.py" "$([[ $check ]] && echo check || echo readme)" "$runs" "${pages[@]}" || status=1
exit "$status"
