#!/bin/sh
# SPDX-License-Identifier: MIT
#
# figures.sh               draws the pictures and fills the figures of both READMEs from the committed runs
# figures.sh RUN [RUN]     the same, after committing these runs in place of the present ones
# figures.sh --check       changes nothing; fails if a figure, a picture or a limit is wrong (check.sh)
set -eu

here=$(dirname "$(realpath "$0")")
case ${1-} in
--check) exec "$here/check.sh" ;;
-*) sed -n '4,6s/^# //p' "$0" >&2; exit 2 ;;
?*)
	[ $# -le 2 ] || { echo "figures.sh: at most two runs are committed" >&2; exit 2; }
	for run; do
		[ -s "$run/circumstances.json" ] || { echo "figures.sh: no run: $run" >&2; exit 2; }
	done
	new=$(mktemp -d "$here/results.XXXXXX")
	cp -r "$1" "$new/first"
	[ $# -lt 2 ] || cp -r "$2" "$new/second"
	rm -rf "$here/results"
	mv "$new" "$here/results"
	chmod -R u=rwX,go=rX "$here/results"
	;;
esac
command -v gnuplot >/dev/null || { echo "figures.sh: gnuplot is missing (Debian: gnuplot-nox)" >&2; exit 1; }
exec python3 -B "$here/lib/figures.py" draw "$here/results" "$here/README.md" "$here/METHOD.md" "$here/MODES.md" "$here/../README.md"
