# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The mechanisms against each other, on the file that the works behind this project used
# (made by fallocate) and on one with content.

mode_names() {
	local list
	list=$("$FCOPY" --list 2>/dev/null | awk '$1 ~ /^[1-8]$/ { print $1 ":" $2 }')
	echo "${list:-1:readwrite 2:sendfile 3:splice 4:copy_file_range}"
}

modes=$(mode_names | paste -sd ' ')
read -ra in_place <<<"$modes"
in_place=("${in_place[@]/%/-inplace}")

# Where no bar is to be judged, three rounds show what there is to see. The quick set has the warm copies to a new file.
of_kind() { # KIND STATE DEST
	from "$1"; cache "$2"; to "$3"
	[[ $1-$2 == random-warm ]] || rounds 3
	[[ $2-$3 == warm-new ]] || slow
}

# The bars of random bytes that lie in the page cache, whatever file they go to.
bars() {
	local mode suffix=${1-}
	for mode in 2:sendfile 3:splice 4:copy_file_range; do
		bar cpu "$mode$suffix" "1:readwrite$suffix" 0.40
	done
	bar wall "3:splice$suffix" "2:sendfile$suffix" 1.00
	bar wall "4:copy_file_range$suffix" cp 1.05
	for mode in 1:readwrite 2:sendfile 3:splice 4:copy_file_range; do
		bar rss "$mode$suffix" - 3
	done
}

for kind in allocated random; do
	for state in warm cold; do
		begin "modes-$kind-$state-new" "each mode to a new file"
		of_kind "$kind" "$state" new
		# shellcheck disable=SC2086  # a list of names
		with $modes 0:auto cp
		[[ $kind-$state != random-warm ]] || bars

		begin "modes-$kind-$state-replaced" "each mode, replacing an existing file"
		of_kind "$kind" "$state" old
		# shellcheck disable=SC2086
		with $modes 0:auto cp
		[[ $kind-$state != random-warm ]] || bars

		begin "modes-$kind-$state-inplace" "each mode, into an existing fallocate-made file"
		of_kind "$kind" "$state" allocated
		with "${in_place[@]}" 0:auto-inplace cp
		[[ $kind-$state != random-warm ]] || bars -inplace
	done
done
