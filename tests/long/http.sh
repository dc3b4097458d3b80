#!/bin/bash
# SPDX-License-Identifier: MIT
#
# http.sh [HEADS]: our parser of HTTP requests against h11, a parser that others keep (Python's h11). 100,000 heads, valid, damaged
# and random: whatever we accept, h11 accepts with the same meaning.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3
python3 -c 'import h11' 2>/dev/null || skip "Python has no h11"
make_work
seed_random
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -I"$root/src" -I"$root/include" -o "$work/heads" "$root/tests/tools/http_heads.c" \
	"$root/src/endpoints/http_parse.c" "$root/src/endpoints/http_response.c" || exit 1
tried=${1:-100000}
python3 "$root/tests/tools/judge_http.py" "$work/heads" "$tried" "$seed" >"$work/judged" ||
	fail differs "$(tail -n 5 "$work/judged")"
tail -n 1 "$work/judged"
finish
