#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tree-random.sh [N]: N random trees (500), copied with random options from and to random file systems
# by fcopy and by cp; rsync and find must not see a difference. SEED repeats a run.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need python3 rsync
need_mounts "$@"
make_work
seed_random
wanted=${1:-500}

# pick WORD…: sets REPLY to one of them.
pick() {
	random_below $#
	shift $REPLY
	REPLY=$1
}

# draw_tree DIR SEED OPTIONS
draw_tree() {
	python3 - "$1" "$2" "$3" <<-'END'
		import os, random, socket, stat, sys
		top, r = os.fsencode(sys.argv[1]), random.Random(int(sys.argv[2]))
		root, follows = os.geteuid() == 0, "L" in sys.argv[3]
		files, dirs, late = [], [top], []
		os.mkdir(top)
		def name():
		    letters = r.choice([b"abc", b"a b-", b"\xff\xc3\xa9x", b"\n\t'\"\\*", b"long"])
		    return bytes(r.choice(letters) for _ in range(r.choice([1, 2, 8, 40, 255]))) + b"%d" % len(files)
		def times(path):
		    late.append((path, r.randrange(-10**9, 4 * 10**9), r.randrange(10**9)))
		for _ in range(r.choice([0, 3, 30, 120])):
		    path = os.path.join(r.choice(dirs), name()[:255])
		    kind = r.choice(["file"] * 6 + ["dir"] * 4 + ["link", "hard", "fifo", "socket", "device"])
		    try:
		        if kind == "file":
		            with open(path, "xb") as f:
		                for _ in range(r.choice([0, 1, 1, 3])):
		                    f.seek(r.choice([0, 0, 4096, 100000]), 1)
		                    f.write(r.randbytes(r.choice([1, 100, 5000, 70000, 300000])))
		            files.append(path)
		        elif kind == "dir":
		            os.mkdir(path); dirs.append(path)
		        elif kind == "link":
		            os.symlink(r.choice([b"x"] * follows + [b"x", b".", b".."] * (not follows) + files[-3:]), path)
		        elif kind == "hard" and files:
		            os.link(r.choice(files), path, follow_symlinks=False); files.append(path)
		        elif kind == "fifo":
		            os.mkfifo(path)
		        elif kind == "socket":
		            here = os.open(os.path.dirname(path), os.O_PATH)
		            s = socket.socket(socket.AF_UNIX)
		            s.bind(b"/proc/self/fd/%d/s" % here); s.close()
		            os.rename(os.path.join(os.path.dirname(path), b"s"), path); os.close(here)
		        elif kind == "device" and root:
		            os.mknod(path, stat.S_IFCHR | 0o640, os.makedev(1, 3))
		        else:
		            continue
		    except (FileExistsError, OSError):
		        continue
		    if root and r.random() < .2:
		        os.chown(path, r.randrange(3000), r.randrange(3000), follow_symlinks=False)
		    if kind in ("file", "dir") and r.random() < .3:
		        try: os.setxattr(path, "user." + r.choice("ab"), r.randbytes(r.choice([0, 10, 900])))
		        except OSError: pass
		    if kind not in ("link", "hard") and r.random() < .5:
		        os.chmod(path, r.choice([0o600, 0o644, 0o755, 0o444, 0o500, 0o4755, 0o2775, 0o1777, 0o7, 0]) | (0o500 if kind == "dir" else 0))
		    if r.random() < .7:
		        times(path)
		for path, s, ns in reversed(late):
		    ns += s * 10**9
		    os.utime(path, ns=(ns, ns), follow_symlinks=False)
	END
}

# What find shows; the times too, if they are kept.
listing() {
	local times=
	[[ " $2 " != *a* && " $2 " != *p* ]] || times=' %T@'
	(cd "$1" && find . \( -type d -printf "%p %y %m %U %G$times\n" -o -type f -printf "%p %y %m %U %G %s %n$times\n" \
		-o -printf "%p %y %m %U %G %l$times\n" \) | LC_ALL=C sort)
}

one() {
	local from to options extra what seed_of_case by_cp=0 by_fcopy=0
	pick "${dirs[@]}"
	from=$REPLY
	pick "${dirs[@]}"
	to=$REPLY
	pick -a -a -r -rp -aL -rL -rH -rP
	options=$REPLY
	pick "" "" -j1 -j4 --fsync --verify --resume --no-cache "--sparse=never" "--reflink=never"
	extra=$REPLY
	random_below 1000000000
	seed_of_case=$REPLY
	what="tree $seed_of_case: fcopy $options $extra, $(fs_of "$from") to $(fs_of "$to")"
	chmod -R u+rwx "$from/src" "$to/cp" "$to/fcopy" 2>/dev/null
	rm -rf "$from/src" "$to"/{cp,fcopy,fcopy.fcopy-part}
	draw_tree "$from/src" "$seed_of_case" "$options" || exit 1
	timed cp "$options" "$from/src" "$to/cp" 2>"$work/cp.err" || by_cp=$?
	# shellcheck disable=SC2086 # none or one word
	timed "$FCOPY" "$options" $extra --keep-going "$from/src" "$to/fcopy" 2>"$work/err" || by_fcopy=$?
	tried=$((tried + 1))
	if [ $by_cp != $by_fcopy ]; then
		fail_status $by_fcopy "$what: cp exits with $by_cp, fcopy: $(head -n 2 "$work/err")"
		return
	fi
	[ $by_cp = 0 ] || refused=$((refused + 1))
	if ! diff <(listing "$to/cp" "$options") <(listing "$to/fcopy" "$options") >"$work/differences" ||
		! rsync -rlHDAXnic --no-t --delete "$to/cp/" "$to/fcopy/" >"$work/differences" ||
		grep -v '^\.[fdLDS]\.\.t\.\.\.\.\.\.\.\? ' "$work/differences" | grep -q .; then
		fail wrong "$what: $(head -n 4 "$work/differences")"
	fi
}

refused=0
while [ $tried -lt "$wanted" ]; do
	one
done
chmod -R u+rwx "${dirs[@]}" 2>/dev/null
echo "$name: $refused trees could not be copied whole, by cp either"
finish
