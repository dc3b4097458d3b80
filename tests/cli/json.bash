# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Objects of --json, checked against the schema that is installed with fcopy.

SCHEMA=$BATS_TEST_DIRNAME/../../src/dist/fcopy.schema.json

# valid TEXT: one line with one object that fits the schema.
valid() {
	need jq python3
	python3 -c 'import jsonschema' 2>/dev/null || skip "no python3-jsonschema"
	[ "$(wc -l <<<"$1")" = 1 ]
	python3 - "$SCHEMA" "$1" <<-'END'
		import json, sys, jsonschema
		schema = json.load(open(sys.argv[1]))
		jsonschema.Draft202012Validator.check_schema(schema)
		jsonschema.validate(json.loads(sys.argv[2]), schema)
	END
}

# is FILTER…: jq finds each of these true of $output.
is() {
	local filter
	need jq
	for filter; do
		jq -e "$filter" <<<"$output" >/dev/null || { echo "not $filter: $output"; return 1; }
	done
}
