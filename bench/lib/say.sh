# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Words to the person, and sizes.

say() { printf '%s\n' "$*" >&2; }

die() {
	say "${0##*/}: $*"
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# need TOOL PACKAGE…: all that is missing is named at once.
need() {
	local lacking=()
	while (($#)); do
		have "$1" || lacking+=("$1 (Debian: $2)")
		shift 2
	done
	((${#lacking[@]} == 0)) || die "missing: $(join ', ' "${lacking[@]}")"
}

join() {
	local separator=$1 text=$2
	shift 2
	text+=$(printf '%s' "${@/#/$separator}")
	printf '%s' "$text"
}

# bytes 64M → 67108864
bytes() { numfmt --from=iec "$1" 2>/dev/null || die "not a size: $1"; }

human() { numfmt --to=iec-i --suffix=B --format='%.1f' "$1" | sed 's/\.0//'; }

is_root() { ((EUID == 0)); }

# free_bytes DIR: what an ordinary user may still write there.
free_bytes() { echo $(($(stat -f -c '%a * %S' "$1"))); }

fs_type() { findmnt --noheadings --output FSTYPE --target "$1"; }
