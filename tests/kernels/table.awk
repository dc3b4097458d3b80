# SPDX-License-Identifier: MIT
#
# Makes the tables of tests/kernels/RESULTS.md from the lines "KERNEL FS CHECK ok|FAIL|skip REASON". Of several
# lines for one check the last one counts.

# add(LIST, ITEM): appends the item to the array unless it is there.
function add(list, item) {
	if (!((list, item) in known)) {
		known[list, item] = 1
		name[list, ++size[list]] = item
	}
}

# cell(FS, CHECK): yes, –, or the kernels on which the check passed; a failure is never hidden.
function cell(fs, check, k, kernel, said, ok, run, result) {
	for (k = 1; k <= size["kernel"]; k++) {
		kernel = name["kernel", k]
		said = status[kernel, fs, check]
		if (said == "FAIL")
			result = result " FAIL:" kernel
		if (said == "ok") {
			ok++
			result = result " " kernel
		}
		run += said != ""
	}
	if (!run)
		return ""
	if (result ~ /FAIL/)
		return substr(result, 2)
	return ok == size["kernel"] ? "yes" : ok ? substr(result, 2) : "–"
}

$2 == "-" { next }
$3 == "seconds" { next }
{
	add("kernel", $1)
	add("fs", $2)
	add("check", $3)
	status[$1, $2, $3] = $4
	if ($3 == "mount")
		next
	delete status[$1, $2, "mount"]
	if ($2 !~ /^(flakey|log-writes|suite)/) {
		add("column", $2)
		add("row", $3)
	}
}

# count(KERNEL, FS, SAID): how many checks ended so.
function count(kernel, fs, said, c, n) {
	for (c = 1; c <= size["check"]; c++)
		n += status[kernel, fs, name["check", c]] == said
	return n + 0
}

END {
	printf "| check |"
	for (c = 1; c <= size["column"]; c++)
		printf " %s |", name["column", c]
	printf "\n| --- |"
	for (c = 1; c <= size["column"]; c++)
		printf " --- |"
	for (r = 1; r <= size["row"]; r++) {
		printf "\n| %s |", name["row", r]
		for (c = 1; c <= size["column"]; c++)
			printf " %s |", cell(name["column", c], name["row", r])
	}
	printf "\n\n| passed, failed, skipped |"
	for (k = 1; k <= size["kernel"]; k++)
		printf " %s |", name["kernel", k]
	printf "\n| --- |"
	for (k = 1; k <= size["kernel"]; k++)
		printf " --- |"
	for (f = 1; f <= size["fs"]; f++) {
		printf "\n| %s |", name["fs", f]
		for (k = 1; k <= size["kernel"]; k++) {
			kernel = name["kernel", k]
			fs = name["fs", f]
			numbers = count(kernel, fs, "ok") ", " count(kernel, fs, "FAIL") ", " count(kernel, fs, "skip")
			printf " %s |", numbers == "0, 0, 0" ? "not run" : numbers
		}
	}
	print ""
}
