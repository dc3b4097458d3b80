#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Twice as much to do takes about twice as long. What is compared is CPU time, the least of several runs: a busy machine then
# changes little. Each input is large enough that the part that grows is most of the time.

load helper

# cpu COMMAND…: prints the milliseconds of CPU that the faster of two runs took, or with RUNS=1, the only one.
cpu() {
	local TIMEFORMAT='%3U %3S' least=999999 run user system now
	for ((run = 0; run < ${RUNS:-2}; run++)); do
		read -r user system < <({ time "$@" >/dev/null 2>cpu.err || echo 'failed' >>cpu.err; } 2>&1)
		! grep -q '^failed$' cpu.err || break
		now=$((10#${user/./} + 10#${system/./}))
		[ $least -lt $now ] || least=$now
	done
	echo "$least"
}

# grows_evenly RUN N: RUN 2N takes at most three times the CPU time of RUN N, and 50 ms.
grows_evenly() {
	local try one two
	for try in 1 2 3 4; do # another process may disturb one
		one=$(cpu "$1" "$2") two=$(RUNS=1 cpu "$1" $((2 * $2)))
		[ "$two" -gt $((3 * one + 50)) ] || return 0
		echo "$1: $2: $one ms of CPU; $((2 * $2)): $two ms; $(cat cpu.err)"
	done
	return 1
}

# copy ARG…: fcopy, for at most some seconds.
copy() {
	timeout -s KILL 100 "$FCOPY" "$@"
}

# files DIR PREFIX N
files() {
	mkdir -p "$1"
	seq -f "$1/$2%06g" "$3" | xargs touch
}

# path BYTES: a directory of that length, of components of 50 bytes.
path() {
	local p=
	while [ ${#p} -lt "$1" ]; do p+=$(printf '/%049d' 0); done
	echo "${p#/}"
}

length_of_paths() {
	copy -rT --dry-run --exclude='**/cache/**' --exclude='*a*/**b**c*' "length$1" d
}

@test "patterns with ** take time in proportion to the length of the paths" {
	for n in 1000 2000; do files "length$n/$(path $n)" f 30; done
	grows_evenly length_of_paths 1000
}

number_of_patterns() {
	copy -rT --dry-run --exclude-from=<(seq -f '**/cache%g/**' "$1") s d
}

@test "... and to their number" {
	files "s/$(path 100)" f 300
	grows_evenly number_of_patterns 300
	[ "$(cpu number_of_patterns 300)" -lt 1000 ] # and each costs little
}

length_of_pattern() {
	copy -rT --dry-run --exclude="$(printf 'x**%.0s' $(seq "$1"))y" s d
}

@test "... and a pattern with many stars, to its length" {
	mkdir s
	for ((i = 0; i < 500; i++)); do printf 's/%s%05d\0' "$(printf 'x%.0s' {1..200})" $i; done | xargs -0 touch
	grows_evenly length_of_pattern 40
}

linked() {
	mkdir "tue$1"
	copy -aT --link-dest="mon$1" "accents$1" "tue$1" && copy -aT --link-dest="mon$1" "accents$1" "tue$1" && rm -r "tue$1"
}

@test "--link-dest into a directory that exists takes time in proportion to the names, also with accents" {
	for n in 1000 2000; do
		files "accents$n" $'\303\251t\303\251' $n
		expect 0 -aT "accents$n" "mon$n"
	done
	grows_evenly linked 1000
	# With ASCII letters only, no list of names is needed.
	files accents1 ete 1000
	expect 0 -aT accents1 mon1
	[ "$(cpu linked 1000)" -lt $((4 * $(cpu linked 1) + 100)) ]
}

# linked_into NEW N ARG…: fcopy of sN into the directory NEW, beside an earlier copy, and its calls.
linked_into() {
	local new=$1 n=$2 s=0
	shift 2
	mkdir "$new"
	strace -f -qq -e trace=getdents64 -o "calls.${new##*/}" "$FCOPY" -aT --link-dest="m/mon$n" "$@" "s$n" "$new" 2>err || s=$?
	[ $s = "$want" ] || { cat err && return 1; }
}

new_names() {
	local n
	for n in 400 800; do
		"$FCOPY" -aT "s$n" "m/mon$n" || return
		linked_into "m/tue$n" $n || return
	done
}

# Where DST may list a name in another form than it was given, its names count, and are read once.
@test "... and reads DST once, also if that ignores case, and for names that it did not have" {
	need strace
	local n
	mkdir backing
	for n in 400 800; do files s$n $'\303\251t\303\251' $n; done
	export -f linked_into new_names
	by_fuse entry_timeout=0,attr_timeout=0 'want=0 new_names'
	[ "$(grep -c getdents64 calls.tue800)" -lt 40 ]
	[ "$(find backing/tue800 -type f -links +1 | wc -l)" = 800 ]
	rm -r backing/*
	by_fuse caseless,entry_timeout=0,attr_timeout=0 'want=0 new_names'
	[ "$(grep -c getdents64 calls.tue800)" -lt 40 ]
	[ "$(find backing/tue800 -type f -links +1 | wc -l)" = 800 ]
}

uncached_extents() {
	copy --no-cache "extents$1" d
}

@test "--no-cache makes one ring for all extents of a file, and one for each thread of a tree" {
	"$FCOPY" --list | awk '$2 == "direct"' | grep -qv unavailable || skip "no io_uring here"
	need strace
	on_disk "no direct I/O in memory"
	local n
	mkdir t
	for n in 100 200; do
		for ((i = 0; i < n; i++)); do
			dd if=/dev/zero of=extents$n bs=8k count=1 seek=$((16 * i)) conv=notrunc status=none
		done
	done
	for ((i = 0; i < 50; i++)); do head -c 8192 /dev/urandom >t/$i; done
	for n in 'extents100 d' '-j1 -r t u'; do
		# shellcheck disable=SC2086
		strace -f -qq -e trace=io_uring_setup,io_uring_register -o calls "$FCOPY" --no-cache $n
		grep -q 'io_uring_setup.*= [0-9]' calls || skip "no direct I/O here"
		[ "$(grep -c io_uring_setup calls)" = 1 ]
		[ "$(grep -c IORING_REGISTER_BUFFERS calls)" = 1 ]
	done
	cmp extents100 d
	diff -r t u
	grows_evenly uncached_extents 100
}

backed_up() {
	cp -r "s$1" d && copy -rT --backup="$kind" "s$1" d && copy -rT --backup="$kind" "s$1" d && rm -r d
}

@test "numbered backups take time in proportion to the names" {
	for n in 500 1000; do files "s$n" f $n; done
	for kind in numbered existing; do
		grows_evenly backed_up 500
	done
}

# A new directory each time: where many files were removed, ext4 without a journal takes long to make others.
parents_backed_up() {
	local to
	to=$(mktemp -d "$PWD/d$1.XXXXXX")
	(cd "s$1" && "$FCOPY" --parents --backup=numbered -t "$to" dir/* && "$FCOPY" --parents --backup=numbered -t "$to" dir/*)
}

@test "... also with --parents" {
	for n in 500 1000; do files "s$n/dir" f $n; done
	grows_evenly parents_backed_up 500
	mkdir d
	(cd s500 && for i in 1 2 3; do "$FCOPY" --parents --backup=numbered -t ../d dir/f00000*; done)
	[ "$(ls d/dir | wc -l)" = 27 ]
	[ -e d/dir/f000001.~2~ ]
}

# Half of the names collide.
collide() {
	local s=0
	rm -rf "m/d$1"
	mkdir "m/d$1"
	copy -rT "s$1" "m/d$1" || s=$?
	[ $s = 1 ]
}

collide_new() {
	local s=0
	copy -rT "s$1" m/new || s=$?
	[ $s = 1 ] || return 1
	[ ! -e m/new ]
}

both_collide() {
	grows_evenly collide 300 && grows_evenly collide_new 300
}

@test "names that storage takes for one take time in proportion to their number" {
	mkdir backing
	for n in 300 600; do
		files s$n name $n
		files s$n NAME $n
	done
	export -f cpu grows_evenly copy collide collide_new both_collide
	by_fuse 'caseless,entry_timeout=0,attr_timeout=0' both_collide
}

# costs_as RUN N PLAIN: RUN N takes at most three times the CPU time of PLAIN N, which does the same without what is in question.
costs_as() {
	local try one two
	for try in 1 2 3 4; do # another process may disturb one
		one=$(cpu "$3" "$2") two=$(RUNS=1 cpu "$1" "$2")
		[ "$two" -gt $((3 * one + 50)) ] || return 0
		echo "$3 $2: $one ms of CPU; $1 $2: $two ms; $(tail -n 3 cpu.err)"
	done
	return 1
}

# Each file of one directory would be written to that of another one.
lead_elsewhere() {
	local s=0
	copy -rT "s$1" "d$1" || s=$?
	[ $s = 1 ]
}

lead_nowhere() {
	copy -rT "s$1" "e$1"
}

@test "symlinks in DST that lead to other copies, too" {
	for n in 500 1000; do
		files s$n/a f $n
		files s$n/b f $n
		mkdir -p d$n/a d$n/b
		(cd d$n/a && seq -f '../b/f%06g' $n | xargs ln -s -t .)
	done
	cp -r s1000 e1000
	grows_evenly lead_elsewhere 500
	costs_as lead_elsewhere 1000 lead_nowhere
}

mounted() {
	copy -rT "s$1" "d$1"
}

not_mounted() {
	copy -rT "s$1" "e$1"
}

# with_mounts FUNCTION…: the last one, in a mount namespace.
with_mounts() {
	export FCOPY
	export -f cpu grows_evenly costs_as copy "$@"
	private_mounts "${!#}"
	[ "$status" != 77 ] || skip "no bind mounts here"
	[ "$status" = 0 ] || { echo "$output" && return 1; }
}

mount_each() {
	local n
	mount -t tmpfs none t
	for n in 150 300; do
		seq -f "t/$n/%g" $n | xargs mkdir -p
		for ((i = 1; i <= n; i++)); do mount --bind t/$n/$i d$n/$i || exit 77; done
	done
	grows_evenly mounted 150
	costs_as mounted 300 not_mounted
}

@test "mount points in DST, too" {
	mkdir t
	for n in 150 300; do
		seq -f "s$n/%g" $n | xargs mkdir -p
		cp -r s$n d$n
		cp -r s$n e$n
	done
	with_mounts mounted not_mounted mount_each
}

# In one thread: several wait for the kernel's locks, and that takes CPU time, too.
follow_each() {
	copy -rT -j1 "f$1" "e$1"
}

follow_none() {
	copy -rT -j1 "f$1" "u$1"
}

follow_with_mounts() {
	local i
	for ((i = 1; i <= 600; i++)); do mount --bind t t$i || exit 77; done
	grows_evenly follow_each 500
	costs_as follow_each 1000 follow_none
}

@test "... and symlinks in DST that are followed, beside many mounts" {
	mkdir t t{1..600} u
	for n in 500 1000; do
		files f$n f $n
		files u$n f $n
		mkdir e$n
		(cd e$n && seq -f "../u$n/f%06g" $n | xargs ln -s -t .)
	done
	with_mounts follow_each follow_none follow_with_mounts
}
