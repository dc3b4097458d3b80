#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --shard of a large file: it has more ranges than shards, so that a slow shard copies fewer of them, and a
# process that was killed does not copy them again.

load helper
load shard

RANGE=$((128 << 20))

# large RANGES: src, of so many ranges for one or two shards; each begins with 1 MiB, and is a hole otherwise.
large() {
	local i
	truncate -s $(($1 * RANGE)) src
	for ((i = 0; i < $1; i++)); do
		head -c 1M /dev/urandom | dd of=src bs=128M seek=$i conv=notrunc status=none
	done
}

# whole RANGES: dst is the copy of src, and of the job only the receipt is left.
whole() {
	local i
	[ "$(stat -c %s dst)" = $(($1 * RANGE)) ]
	for ((i = 0; i < $1; i++)); do cmp -i $((i * RANGE)) -n 1200000 src dst || return; done
	[ "$(stat -c %b dst)" -lt $(($1 * 2 * 2100)) ]
	left_only_receipt dst
}

# copied RANGES: so many were copied by the last command, which had --json.
copied() { [ "$(jq .bytes <<<"$output")" = $(($1 * RANGE)) ] || { echo "$output"; return 1; }; }

@test "a slow shard copies fewer ranges than a fast one, which leaves it only the range at work" {
	large 8
	"$FCOPY" --limit-rate=50K --shard=0/2 src dst 2>/dev/null 3>&- &
	local slow=$! status=0
	await cmp -s -n 4096 src dst.fcopy-part/data
	expect 0 --json --shard=1/2 src dst
	copied 7
	absent dst
	kill -KILL $slow
	wait $slow || status=$?
	[ $status = 137 ]
	expect 0 --json --shard=1/2 src dst
	copied 1
	whole 8
}

@test "share I takes ranges I, I + N and so on first, and the missing ranges are counted" {
	large 6
	apart 0 --json --shard=1/2 src dst
	copied 3
	[ "$(cd dst.fcopy-part && echo share.done.*)" = 'share.done.1 share.done.3 share.done.5' ]
	expect 1 --shard=finish/2 src dst
	mentions 'dst: 3 of 6 chunks are missing'
	apart 0 --json --shard=0/2 src dst
	copied 3
	whole 6
}

@test "ranges that a killed process has marked are not copied again" {
	need_strace
	large 34
	run strace -f -qq -o /dev/null -P "$(pwd -P)/dst.fcopy-part/data" -e trace=fsync \
		-e inject=fsync:signal=KILL:when=2 "$FCOPY" --shard=0/1 src dst
	absent dst
	local marked
	marked=$(markers dst)
	[ "$marked" -ge 1 ]
	[ "$marked" -lt 34 ]
	expect 0 --json --shard=0/1 src dst
	copied $((34 - marked))
	whole 34
}

@test "SIGTERM and SIGINT: a shard marks what is complete, and ends by the signal" {
	large 8
	local status shard number name kind data marked
	mkdir s
	mv src s/src
	ln s/src src
	while read -r name number kind; do
		rm -rf dst dst.fcopy-part
		data=dst.fcopy-part/data
		local -a what=(src dst)
		if [ "$kind" = tree ]; then
			what=(-r -j1 s dst)
			data=$data/src
		fi
		env --default-signal=TERM,INT "$FCOPY" --limit-rate=1M --shard=0/1 "${what[@]}" 2>/dev/null 3>&- &
		shard=$! status=0
		await cmp -s -i $((2 * RANGE)) -n 4096 src $data 2>/dev/null
		kill -"$name" $shard
		wait $shard || status=$?
		[ "$status" = "$number" ]
		absent dst
		marked=$(markers dst)
		[ "$marked" -ge 2 ]
		[ "$marked" -lt 8 ]
		if [ "$kind" = file ]; then
			expect 0 --json --shard=0/1 src dst
			copied $((8 - marked))
			whole 8
		fi
	done <<-'TABLE'
		TERM 143 file
		INT 130 file
		TERM 143 tree
	TABLE
}

@test "a part whose file is divided in another way, as by another version, is refused" {
	need python3
	large 6
	apart 0 --shard=0/2 src dst
	cp -r dst.fcopy-part before
	python3 - dst.fcopy-part/journal <<-'PYTHON'
		import sys
		with open(sys.argv[1]) as f:
		    lines = f.read().split("\n")
		for i, line in enumerate(lines):
		    if line[9:17] == "options ":
		        fact = "options %d" % (int(line[17:]) & 0xff)
		        total = 0xcbf29ce484222325
		        for byte in fact.encode():
		            total = (total ^ byte) * 0x100000001b3 % (1 << 64)
		        lines[i] = "%08x %s" % ((total >> 32) ^ (total & 0xffffffff), fact)
		with open(sys.argv[1], "w") as f:
		    f.write("\n".join(lines))
	PYTHON
	never cmp -s before/journal dst.fcopy-part/journal
	expect 1 --shard=1/2 src dst
	mentions 'begun with another source or options'
	[ "$(markers dst)" = 3 ]
	absent dst
}

@test "the time of a copy, and the total of its progress, are those of all ranges" {
	large 4
	expect 0 --json --progress --limit-rate=4M --shard=0/2 src dst
	copied 4
	jq -e '.phases.copy > 0.6 and .phases.copy <= .real' <<<"$output" >/dev/null || { echo "$output"; return 1; }
	# Two of the four ranges are expected of it; it takes all.
	[[ $stderr != *" 100% "*"/256 MiB"* ]]
	whole 4
}
