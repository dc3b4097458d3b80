#!/bin/bash
# SPDX-License-Identifier: MIT
#
# exchange.sh: root copies into directories of another user, who exchanges a name between two system
# calls of fcopy: all combinations of tests/tools/exchange.py. What must not happen counts as lost
# (see there); those in exchange.expected may fail.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3
[ "$(id -u)" = 0 ] || skip "only root can copy into the directory of another user safely or not"
make_work
chmod 755 "$work"
FCOPY_EXCHANGE_DIR=$(mktemp -d "${TMPDIR:-/tmp}/exchange.XXXXXX") || exit 1 # the user can reach it
chmod 755 "$FCOPY_EXCHANGE_DIR"
export FCOPY_EXCHANGE_DIR
dirs+=("$FCOPY_EXCHANGE_DIR")

while IFS= read -r line; do
	echo "$name: $line"
	case $line in
	pass:* | given:* | expected:*) tried=$((tried + 1)) ;;
	FAIL:*)
		tried=$((tried + 1))
		fail lost "${line#FAIL: }"
		;;
	missed:*) fail other "${line#missed: }: no exchange" ;;
	absent:* | exchanges:* | 'left out'*) ;;
	*) fail other "$line" ;;
	esac
done < <(python3 "$root/tests/tools/exchange.py" --expected "${0%.sh}.expected" "$FCOPY" "$@" 2>&1)
finish
