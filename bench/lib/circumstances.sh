# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What must be known to believe a figure: the machine, the file systems, the versions, the command.

circumstances() {
	fact date "$(date --utc +%Y-%m-%dT%H:%M:%SZ)"
	fact command "$INVOCATION"
	fact revision "$(revision | paste -sd " ")"
	fact kernel "$(uname -srm)"
	fact system "$(. /etc/os-release && echo "$PRETTY_NAME")"
	fact cpu "$(cpu)"
	fact memory "$(awk '/^MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)"
	fact hyperfine "$(hyperfine --version)"
	fact program "$(program_id)"
	fact 'memory given back' "$([[ -r $GIVEN_BACK ]] && echo counted || echo 'not counted here')"
	fact load "$(cut -d' ' -f1-3 /proc/loadavg)"
}

circumstances_again() {
	fact "continued $(date --utc +%Y-%m-%dT%H:%M:%SZ)" \
		"revision $(revision | paste -sd " "), load $(cut -d' ' -f1-3 /proc/loadavg)"
}

fact() { note facts.tsv "$1" "$2"; }

cpu() {
	local model virtual
	model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
	virtual=$(grep -qw hypervisor /proc/cpuinfo && echo ', virtual machine')
	echo "$(nproc) × ${model:-$(uname -m)}$virtual"
}

revision() {
	local changes
	git -C "$BENCH" rev-parse --short=12 HEAD 2>/dev/null || { echo unknown; return; }
	changes=$(git -C "$BENCH" status --porcelain --untracked-files=no -- \
		../src ../include ../fcopy.c ../Makefile . ':!results' ':!*.md' ':!*.svg')
	[[ -z $changes ]] || echo '+ changes'
}

program_id() {
	[[ ! -x $FCOPY ]] || echo "$("$FCOPY" --version | head -n 1), sha256 $(sha256sum "$FCOPY" | cut -c 1-16)…"
}

# What a table of its own begins with.
origin() { printf 'Revision %s, %s.\n\n' "$(revision | paste -sd ' ')" "$(uname -sr)"; }

lines_in() { grep -c '' "$OUT/$1.tsv" 2>/dev/null || echo 0; }

# After the cases: what was taken again, what was mounted for them, and who ran.
circumstances_used() {
	local fs who
	fact 'taken again' "$(lines_in again) times, for $(lines_in runs) runs"
	fact 'memory went back during' "$(awk -F '\t' '$7 > 0' "$OUT/runs.tsv" 2>/dev/null | wc -l) of these runs"
	for fs in "${!FS_AT[@]}"; do
		fact "fs $fs" "$(findmnt --noheadings --output FSTYPE,OPTIONS --target "${FS_AT[$fs]}" |
			tr -s ' ')$([[ ${FS_AT[$fs]} == "$LAB" || $fs == tmpfs ]] || echo ' (loop image)')"
	done
	cut -f2 "$OUT/proofs.tsv" 2>/dev/null | sort -u | while read -r who; do
		fact "version $who" "$(version_tell "$who")"
	done
}
