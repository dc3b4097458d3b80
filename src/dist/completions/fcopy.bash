# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# bash: options and modes come from the program itself, so they are always right.

# The words that the value called $1 may be; the program is $2.
_fcopy_values() {
	case $1 in
	WHEN | WHICH | CONTROL | LIST) "$2" --help | sed -n "s/^$1: //p" | tr -d , ;;
	MODE) "$2" --list | awk 'NR > 1 { print $1, $2; if ($3 != "-") print $3 }' ;;
	OPERAND) "$2" --list | awk 'NR > 1 { print $1, $2 }' ;; # without the aliases
	SIZE) echo 64K 1M 16M 128M 1G ;;
	SHARE) echo auto ;;
	esac
}

# The options of program $1: "--mode =MODE -m", "--preserve [=LIST -p" or "--list =".
_fcopy_options() {
	"$1" --help | sed -nE 's/^  (-.|  )[, ] (--[a-z-]+)(\[?)=?([A-Z]*)\]? .*/\2 \3=\4 \1/p'
}

# What --help calls the value that option $1 of program $2 takes after a =.
_fcopy_value_of() {
	_fcopy_options "$2" | awk -v option="$1" '$1 == option { sub(/^.*=/, "", $2); print $2 }'
}

# The same for the next word: it is no value if the value may be left out.
_fcopy_next_of() {
	_fcopy_options "$2" | awk -v option="$1" '
		($1 == option || $3 == option) && $2 ~ /^=./ { print substr($2, 2) }'
}

# How many operands of program $1 stand before the word that is completed; 9: the first is a
# directory, which no mode copies without -r.
_fcopy_operands() {
	local i n=0
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} != -?* ]]; then
			n=$((n + 1))
			[[ $n != 1 || ! -d ${COMP_WORDS[i]} ]] || n=9
		elif [ "${COMP_WORDS[i + 1]}" = = ]; then
			i=$((i + 2))
		elif [ -n "$(_fcopy_next_of "${COMP_WORDS[i]}" "$1")" ]; then
			i=$((i + 1))
		fi
	done
	echo $n
}

# The third operand may be a mode after a file, unless an option makes it another SRC or DST.
_fcopy_mode_operand() {
	local word
	[ "$(_fcopy_operands "$1")" = 2 ] || return
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $word in
		--) break ;;
		--rec* | --a* | --mi* | --ta* | --mo* | --ba* | --su* | --u* | --int* | --link* | --sy* | --pa* | --rem*) return 1 ;;
		--*) ;;
		-*[rRatmbSuils]*) return 1 ;;
		esac
	done
}

_fcopy() {
	local program=$1 cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
	local value='' modes='' names=-f list=''
	if [ "$cur" = = ]; then
		cur=
		value=$(_fcopy_value_of "$option" "$program")
	elif [ "$option" = = ]; then
		value=$(_fcopy_value_of "${COMP_WORDS[COMP_CWORD - 2]}" "$program")
	elif [[ $option == -?* ]]; then
		value=$(_fcopy_next_of "$option" "$program")
	fi
	[ -n "$value" ] || ! _fcopy_mode_operand "$program" || modes=$(_fcopy_values OPERAND "$program")
	case $value in # a path, as SRC and DST are
	FILE) value= ;;
	DIR) value='' names=-d ;;
	esac
	if [[ $cur == -?* || ($cur == - && -z $value) ]]; then
		value=$(_fcopy_options "$program" | awk '{ print $1 }')
	elif [ -n "$value" ]; then
		# After a comma, the next name of a list.
		[[ $value != LIST || $cur != *,* ]] || list=${cur%,*},
		value=$(_fcopy_values "$value" "$program")
		# shellcheck disable=SC2086 # a list of words
		[ -z "$list" ] || value=$(printf "$list%s\n" $value)
	else
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -W "$modes" -- "$cur"; compgen $names -- "$cur")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$value" -- "$cur")
}

complete -F _fcopy fcopy
