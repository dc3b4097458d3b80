# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Where the contenders' programs are, and commands made of their templates.

PROG=''   # answer of program_find
READY=''  # answer of command_make
declare -A KNOWN=() # program → path

# program_find NAME: PROG, or 1 and WHY
program_find() {
	local name=$1
	[[ -n ${KNOWN[$name]-} ]] || program_seek "$name" || return 1
	PROG=${KNOWN[$name]}
}

program_seek() {
	local name=$1 path=''
	case $name in
	fcopy) path=$FCOPY ;;
	fcopy-a) path=${FCOPY_A-} ;;
	fcopy-b) path=${FCOPY_B-} ;;
	rivals/*) path=$RIVALS/${name#rivals/} ;;
	# A version manager's wrapper would be timed along with the interpreter.
	python3) path=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) ;;
	java) java_compile && path=$(command -v java) ;;
	*) path=$(command -v "$name") ;;
	esac
	[[ -x $path ]] || { WHY="$name is missing"; return 1; }
	KNOWN[$name]=$path
}

java_compile() {
	local stamp=$CLASSES/.compiled source
	have javac || return 1
	for source in "$BENCH"/rivals/*.java; do
		[[ $source -nt $stamp ]] || continue
		mkdir -p "$CLASSES" && javac -d "$CLASSES" "$BENCH"/rivals/*.java && touch "$stamp"
		return
	done
}

# expand TEMPLATE NAME=VALUE…: {NAME} → VALUE, quoted for a shell
expand() {
	local text=$1 pair value
	shift
	for pair; do
		printf -v value %q "${pair#*=}"
		text=${text//"{${pair%%=*}}"/$value}
	done
	printf '%s' "$text"
}

# command_make CASE TEMPLATE PROG DST: READY, one line that needs no shell
command_make() {
	local name=$1 template=$2 prog=$3 dst=$4
	READY=$(expand "$template" prog="$prog" src="$SRC" dst="$dst" size="${OF[$name:size]}" \
		port="$PORT" host="$HOST" fcopy="$FCOPY" bench="$BENCH" classes="$CLASSES" \
		python="${KNOWN[python3]-python3}" lab="$LAB")
	if [[ $template == *\|* ]]; then
		READY="bash -o pipefail -c $(single_quote "$READY")"
	elif [[ $template == *[\<\>\&\;]* ]]; then
		READY="sh -c $(single_quote "$READY")"
	fi
}

single_quote() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# version_tell NAME: one line
version_tell() {
	local command
	program_find "${PROGRAM[$1]}" || return 0
	command=$(expand "${VERSION[$1]}" prog="$PROG" fcopy="$FCOPY")
	PATH=$PATH:/usr/sbin sh -c "$command" 2>&1 </dev/null | sed -n '/[0-9]/{p;q}'
}
