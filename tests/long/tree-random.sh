#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tree-random.sh [N]: N random command lines (500) for random trees, from and to random file systems, also an overlay
# and FUSE without some operations, by fcopy and by cp or rsync; tools/random_copy.py must see no difference.
# SEED repeats a run, SEED:I its Ith command line. RANDOM_SECONDS ends it sooner; RANDOM_PLAIN
# makes new trees only, and leaves the overlay and FUSE out.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3 rsync
need_mounts "$@"
make_work
SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
echo "$name: SEED=$SEED"
faultfs=''

# add_overlay: a directory on overlayfs, whose layers are on a tmpfs.
add_overlay() {
	mkdir -p "$work/layers" "$work/overlay"
	mount -t tmpfs -o size=1G layers "$work/layers" 2>/dev/null || return
	mkdir "$work"/layers/{lower,upper,work}
	mount -t overlay -o "lowerdir=$work/layers/lower,upperdir=$work/layers/upper,workdir=$work/layers/work" \
		overlay "$work/overlay" 2>/dev/null || return
	mkdir "$work/overlay/overlay"
}

at=()
for dir in "${dirs[@]}"; do
	mkdir "$dir/$(fs_of "$dir")"
	at+=("$dir/$(fs_of "$dir")")
done
if [ "$(id -u)" = 0 ] && [ -z "${RANDOM_PLAIN-}" ]; then
	if add_overlay; then
		at+=("$work/overlay/overlay")
	else
		left_out overlay "it does not mount"
	fi
	if [ -c /dev/fuse ] && faultfs=$(tool faultfs); then
		at+=("$work/fuse" "$work/fuse") # twice as often as others
	else
		left_out fuse "faultfs cannot be built or mounted"
	fi
fi
python3 "$root/tests/tools/random_copy.py" "$name" "$FCOPY" "${1:-500}" "$SEED" "$work" "$faultfs" "${at[@]}"
