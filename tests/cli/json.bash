# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Objects of --json, checked against the schema that is installed with fcopy.

SCHEMA=$BATS_TEST_DIRNAME/../../src/dist/fcopy.schema.json

# valid TEXT: one line with one object. Whether it fits the schema is looked at once for all tests of the file, when
# they have ended; also for the objects of a file that was added to $OBJECTS.
OBJECTS=$BATS_FILE_TMPDIR/objects
valid() {
	need jq python3
	[[ -n $1 && $1 != *$'\n'* ]] || { echo "not one line: $1"; return 1; }
	printf '%s\n' "$1" >>"$OBJECTS"
}

teardown_file() {
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
		wrong = 0
		for line in open(sys.argv[2], errors="surrogateescape"):
		    for error in fits.iter_errors(json.loads(line)):
		        print(f"{line}does not fit the schema: {error.message}")
		        wrong = 1
		sys.exit(wrong)
	END
}

# is FILTER…: jq finds each of these true of $output.
is() {
	local filter all
	need jq
	printf -v all '(%s),' "$@"
	! jq -e "[${all%,}] | all" <<<"$output" >/dev/null || return 0 # jq takes long to start
	for filter; do
		jq -e "$filter" <<<"$output" >/dev/null || { echo "not $filter: $output"; return 1; }
	done
}
