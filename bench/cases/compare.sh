# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Two revisions of fcopy against each other; compare.sh builds them and says where they are.

if [[ ${FCOPY_A-} && ${FCOPY_B-} ]]; then
	for mode in auto readwrite sendfile splice copy_file_range; do
		contender "$mode-a" fcopy-a "{prog} {src} {dst} $mode"
		contender "$mode-b" fcopy-b "{prog} {src} {dst} $mode"
		for bytes in 4K "$SIZE"; do
			begin "compare-$mode-$bytes" 'the earlier revision against the later'
			size "$bytes"; layout row
			[[ $bytes != 4K ]] || rounds 100
			with "$mode-a" "$mode-b"
			bar wall-low "$mode-b" "$mode-a" 1.00
		done
	done
fi
