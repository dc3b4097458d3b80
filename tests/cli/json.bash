# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Objects of --json, checked against the schema that is installed with fcopy.

SCHEMA=$BATS_TEST_DIRNAME/../../src/dist/fcopy.schema.json

# valid TEXT: one line with one object. Whether it fits the schema is looked at when the test ends, for all of
# them at once; also for those of a file that was added to $OBJECTS.
OBJECTS=$BATS_TEST_TMPDIR/objects
valid() {
	need jq python3
	[[ -n $1 && $1 != *$'\n'* ]] || { echo "not one line: $1"; return 1; }
	printf '%s\n' "$1" >>"$OBJECTS"
}

fit_schema() {
	[ -s "$OBJECTS" ] || return 0
	python3 - "$SCHEMA" "$OBJECTS" <<-'END' || { [ $? = 77 ] && reports "the schema: no python3-jsonschema"; }
		import json, sys
		try:
		    import jsonschema
		except ImportError:
		    sys.exit(77)
		schema = json.load(open(sys.argv[1]))
		jsonschema.Draft202012Validator.check_schema(schema)
		fits = jsonschema.Draft202012Validator(schema)
		for line in open(sys.argv[2], errors="surrogateescape"):
		    fits.validate(json.loads(line))
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
