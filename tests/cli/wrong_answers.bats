#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Sources that report what is not true: holes, sizes, names. And sources that never end.

load helper

@test "a wrong answer of SEEK_DATA makes no hole: dense and sparse files, with and without FIEMAP" {
	need_strace
	random dense 300000
	random sparse 1M
	truncate -s 3M sparse
	sync
	traced 0 trace=lseek dense a
	in_trace 'lseek\(.*SEEK_(DATA|HOLE)' 0
	local file n
	for file in dense sparse; do
		traced 0 inject=lseek:error=ENXIO:when=1 "$file" b
		cmp "$file" b
		n=$(stat -c %b b)
		[ "$n" -le 2100 ] || { echo "$file: $n blocks"; return 1; }
	done
	injected
	mkdir backing
	cp sparse dense backing
	by_fuse blind 'for f in sparse dense; do
			for o in -r --sparse=always --inplace; do
				"$FCOPY" $o m/$f b
				cmp $f b
				[ "$(stat -c %b b)" -le 2100 ] || { ls -ls; exit 1; }
			done
		done'
}

@test "a file without blocks whose first hole has bytes is read: gocryptfs -reverse" {
	mkdir backing
	random backing/a 300000
	truncate -s 1M backing/hole
	by_fuse blind,blockless 'for o in "" -r --sparse=always --inplace --resume; do
			rm -rf b b.fcopy-part
			"$FCOPY" $o m/a b
			cmp backing/a b
		done
		"$FCOPY" m/hole b
		[ "$(stat -c "%s %b" b)" = "1048576 0" ]'
}

@test "a size above what read(2) returns makes no zeros, also where the file ends with a hole" {
	mkdir backing
	random backing/dense 300000
	random backing/sparse 5000
	truncate -s 1M backing/sparse
	: >backing/empty
	# shellcheck disable=SC2016
	by_fuse oversize 'cd m
		for f in *; do
			for o in "-m 0" "-m 1" "-m 2" "-m 3" "-m 7" -r -a --sparse=always --sparse=never --verify; do
				rm -f ../b
				"$FCOPY" $o $f ../b
				cmp ../backing/$f ../b || { echo "$o $f"; exit 1; }
			done
		done
		cd ..'
}

# Each read returns what stat reports: of a local file, it would be the whole.
@test "a size below what read(2) returns loses no bytes, also after files of another file system" {
	mkdir backing local d
	random local/a 5000
	random backing/b 40000
	# shellcheck disable=SC2016
	by_fuse half,fault=read:short=20000 '[ "$(stat -c %s m/b)" = 20000 ]
		mkdir local/m
		mount --bind m local/m
		"$FCOPY" -r -j1 local d/tree
		"$FCOPY" -j1 local/a m/b d
		umount local/m'
	cmp local/a d/tree/a
	cmp backing/b d/tree/m/b
	cmp backing/b d/b
}

@test "a listed name that does not exist fails the tree, whenever the directory changed" {
	mkdir -p backing/d
	echo x >backing/d/f
	# shellcheck disable=SC2016
	by_fuse phantom,attr_timeout=0,entry_timeout=0 'for when in 2001-01-01 now 2099-01-01; do
			touch -d $when backing backing/d
			s=0
			"$FCOPY" -rT m o 2>err || s=$?
			[ $s = 1 ]
			grep -q "m/phantom: .*No such file" err
			grep -q "m/d/phantom: .*No such file" err
			rm -rf o*
		done'
}

is_longer() { [ "$(stat -c %s "$2")" -gt "$1" ]; }

# grows FILE: from 3 MB on by 100 MB/s, as holes, for at most 4 s.
grows() {
	random "$1" 3000000
	python3 - "$1" 3>&- <<-'END' &
		import os, sys, time
		start = time.monotonic()
		while time.monotonic() - start < 4:
		    os.truncate(sys.argv[1], 3000000 + int((time.monotonic() - start) * 1e8))
		    time.sleep(0.005)
	END
	await is_longer 3000000 "$1"
}

@test "a source that grows faster than it is copied: the copy ends, a warning, and a failure with --strict" {
	local arguments size
	for arguments in "" "-m 1" -r "- b --strict"; do
		grows a
		# shellcheck disable=SC2086
		case $arguments in
		-\ *) expect 1 --limit-rate=40M $arguments <a ;;
		*) expect 0 --limit-rate=40M $arguments a b ;;
		esac
		size=$(stat -c %s a)
		kill %% && wait
		mentions ": grew while it was copied: the copy ends after "
		case $arguments in
		*strict) absent b ;;
		*) [ "$(stat -c %s b)" -lt "$size" ] && cmp -n "$(stat -c %s b)" a b ;;
		esac
		rm -f a b
	done
}
