#!/bin/bash
# SPDX-License-Identifier: MIT
#
# walk.sh [N]: N random walks (500) of two to five commands on one DST, on each file system in turn, and on storage that keeps less:
# copies, merges, mirrors, backups, --resume, --link-dest, --clean, two at once, over HTTP, by shards; killed or failed at a system
# call; SRC and DST change in between, or at a call. After exit 0, DST is what tools/walk_oracle.py says. Whatever the status, nothing
# that existed is lost unless an option says so, and what is left is named by the message. SEED repeats a run, SEED:I its Ith walk.
# RANDOM_SECONDS ends it sooner.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3 strace
need_mounts "$@"
make_work
strace -o /dev/null true 2>/dev/null || skip "strace may not trace"
FAULTFS=
if ! type setpriv fusermount3 >/dev/null 2>&1 || [ ! -c /dev/fuse ] || ! FAULTFS=$(tool faultfs 2>/dev/null); then
	left_out "storage that keeps less" "no FUSE"
fi
export FAULTFS
SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
echo "$name: SEED=$SEED"
python3 "$root/tests/tools/random_walk.py" "$name" "$FCOPY" "${1:-500}" "$SEED" "${dirs[@]}"
