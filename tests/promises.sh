#!/bin/bash
# SPDX-License-Identifier: MIT
#
# promises.sh [TABLE…]: checks promises.md, or other tables of this form: each row has a cell for each operation, each cell names
# keys of the list or letters of the reasons, and each test of the list exists and is named by a cell. Exits 1 if not.
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
[ $# != 0 ] || set -- "$tests/promises.md"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
status=0

# check_keys TABLE: what is wrong with the keys; list gets FILE<tab>TEST of each line.
check_keys() {
	awk -F' *[|] *' -v list="$list" '
	function complain(text) { print FILENAME ":" FNR ": " text; bad = 1 }
	# The first cell of a line is the second field.
	/^\|/ { row = $2 }
	/^\|( ---)? ?---/ { next }
	/^\| promise / { part = "table"; columns = NF; next }
	/^\| key / { part = "list"; next }
	/^- \([a-z]\) / { reason[substr($0, 3, 3)] = FNR; next }
	!/^\|/ { next }
	part == "table" {
		if (NF != columns) complain("has " NF - 3 " cells, not " columns - 3)
		for (i = 3; i < NF; i++) {
			n = split($i, words, " ")
			for (j = 1; j <= n; j++) cell[words[j]] = FNR
		}
		rows++
	}
	part == "list" {
		if (NF != 5) complain("a line of the list has a key, a file and a test")
		if (row in known) complain(row ": is listed twice")
		known[row] = FNR
		keys++
		print $3 "\t" $4 >list
	}
	END {
		if (!rows || !keys) { print FILENAME ": no table, or no list"; exit 1 }
		for (word in cell) {
			if (word ~ /^\(/ ? !(word in reason) : !(word in known)) {
				print FILENAME ":" cell[word] ": " word ": is not explained below the table"; bad = 1
			}
		}
		for (word in known) if (!(word in cell)) {
			print FILENAME ":" known[word] ": " word ": no cell names it"; bad = 1
		}
		for (word in reason) if (!(word in cell)) {
			print FILENAME ":" reason[word] ": " word ": no cell names it"; bad = 1
		}
		exit bad
	}' "$1"
}

# The tests of bats, libcheck and cmocka.
declare -A test
while IFS=: read -r file name; do
	test[$file/$name]=1
done < <(cd "$tests" && grep -oE '^@test ".*" \{$|START_TEST\([a-z_0-9]+|^static void [a-z_0-9]+\(void \*\*' cli/*.bats check/*.c cmocka/*.c |
	sed -E 's/:@test "(.*)" \{$/:\1/; s/:START_TEST\(/:/; s/:static void ([a-z_0-9]+)\(.*/:\1/')

# exists FILE TEST: a test of bats, libcheck or cmocka, a long test, or a scenario of exchange.sh.
exists() {
	case $1 in
	cli/*.bats | check/*.c | cmocka/*.c) [ -n "${test[$1/$2]-}" ] ;;
	long/exchange.sh) grep -qF "\"$2\": (" "$tests/tools/worlds.py" ;;
	long/*.sh) [ -z "$2" ] && grep -qF "\"$(basename "$1" .sh)|" "$tests/long.sh" && [ -x "$tests/$1" ] ;;
	*) false ;;
	esac 2>/dev/null
}

for table; do
	check_keys "$table" || status=1
	while IFS=$'\t' read -r file name; do
		exists "$file" "$name" || { echo "$table: $file has no test '$name'"; status=1; }
	done <"$list"
done
exit $status
