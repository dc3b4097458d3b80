# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sources, destinations and the state of the cache before a timed run.

SRC=''       # answer of source_make
SRC_DATA=0   # bytes of it that are allocated

# source_make KIND SIZE DIR: one source at a time is kept, for the next case often wants the same.
source_make() {
	local kind=$1 size=$2 file=$3/source.$1.$2
	[[ $SRC == "$file" && -e $file ]] && return
	[[ -z $SRC ]] || rm -f "$SRC"
	SRC=$file
	source_write "$kind" "$size" "$file" || { rm -f "$file"; SRC=''; return 1; }
	sync "$file"
	SRC_DATA=$(($(stat -c '%b * %B' "$file")))
}

source_write() {
	local kind=$1 size=$2 file=$3
	rm -f "$file"
	case $kind in
	random) head -c "$size" /dev/urandom >"$file" ;;
	allocated | fresh) if ((size)); then fallocate -l "$size" "$file"; else : >"$file"; fi ;;
	sparse) source_sparse "$size" "$file" ;;
	*) die "no such kind of source: $kind" ;;
	esac
}

# A hundred extents of SIZE/1024 each, spread over a file of 100 × SIZE: 1 GiB → 100 GiB, 1 MiB each.
source_sparse() {
	local size=$1 file=$2 i
	truncate -s $((100 * size)) "$file"
	for ((i = 0; i < 100; i++)); do
		head -c $((size / 1024)) /dev/urandom |
			dd of="$file" bs=1M seek=$((i * size + size / 2)) oflag=seek_bytes conv=notrunc status=none
	done
}

# dest_make KIND SIZE FILE: in the place of what an earlier run left there; an old file may be that.
dest_make() {
	local kind=$1 size=$2 file=$3
	case $kind in
	new | none) rm -f "$file"; return ;;
	empty) rm -f "$file"; : >"$file" ;;
	old) [[ -e $file ]] || cp --reflink=never --sparse=never "$SRC" "$file" ;;
	allocated) rm -f "$file"; fallocate -l "$size" "$file" ;;
	*) die "no such kind of destination: $kind" ;;
	esac
	sync "$file"
}

# Not every root may: not that of a container.
cache_can_drop() {
	WHY='a cold cache needs root'
	is_root && [[ -w /proc/sys/vm/drop_caches ]]
}

cache_set() {
	local state=$1 kind=$2
	case $state in
	cold)
		sync
		echo 3 >/proc/sys/vm/drop_caches
		;;
	warm)
		# Reading makes unwritten extents look like data, and a sparse giant takes for ever.
		[[ $kind == fresh || $kind == sparse ]] || cat "$SRC" >/dev/null
		;;
	esac
}
