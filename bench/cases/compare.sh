# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Two revisions of fcopy against each other; compare.sh builds them and says where they are.

if [[ ${FCOPY_A-} && ${FCOPY_B-} ]]; then
	for mode in auto readwrite sendfile splice copy_file_range; do
		contender "$mode-a" fcopy-a "{prog} {src} {dst} $mode"
		contender "$mode-b" fcopy-b "{prog} {src} {dst} $mode"
		for bytes in small large; do
			begin "compare-$mode-$bytes" 'the earlier revision against the later'
			layout row
			[[ $bytes == large ]] || { size 4K; rounds 100; }
			with "$mode-a" "$mode-b"
			# Ten cases: a hair's breadth in one of them is chance.
			bar wall-low "$mode-b" "$mode-a" 1.02
		done
	done
fi
