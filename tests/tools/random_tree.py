#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# random_tree.py draw DIR SEED OPTIONS: makes a tree of random entries. With L in OPTIONS, symlinks lead to
# files only, because they are followed.
# random_tree.py change DIR SEED: changes a tree as days of work do: contents, sizes, times, types, attributes,
# names, links.
import os, random, shutil, socket, stat, struct, sys

r, root = random.Random(), os.geteuid() == 0


def acl(user, group_rights):
    """A POSIX ACL as the kernel stores it: the owner, a user, the group, the mask, the others."""
    entries = [(1, 7, -1), (2, r.randrange(8), user), (4, group_rights, -1), (16, r.randrange(8), -1), (32, r.choice([0, 5]), -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, rights, i & 0xffffffff) for tag, rights, i in entries)


def name_of(number):
    letters = r.choice([b"abc", b"a b-", b"\xff\xc3\xa9x", b"\n\t'\"\\*", b"long"])
    return (bytes(r.choice(letters) for _ in range(r.choice([1, 2, 8, 40, 255]))) + b"%d" % number)[:255]


def write_file(path):
    with open(path, "xb") as f:
        for _ in range(r.choice([0, 1, 1, 3])):
            f.seek(r.choice([0, 0, 4096, 100000]), 1)
            f.write(r.randbytes(r.choice([1, 100, 5000, 70000, 300000])))
        if r.random() < .1: # unwritten
            os.posix_fallocate(f.fileno(), f.tell(), r.choice([1, 4096, 200000]))
        elif r.random() < .1:
            f.truncate(f.tell() + r.choice([1, 4096, 200000]))


def make_socket(path):
    here = os.open(os.path.dirname(path), os.O_PATH)
    s = socket.socket(socket.AF_UNIX)
    s.bind(b"/proc/self/fd/%d/s" % here); s.close()
    os.rename(os.path.join(os.path.dirname(path), b"s"), path); os.close(here)


def make(kind, path, files, dirs, follows):
    """Whether there is a new entry."""
    if kind == "file":
        write_file(path); files.append(path)
    elif kind == "dir":
        os.mkdir(path); dirs.append(path)
    elif kind == "link":
        near = [os.path.relpath(f, os.path.dirname(path)) for f in files[-3:]]
        os.symlink(r.choice([b"x"] * follows + [b"x", b".", b".."] * (not follows) + near), path)
    elif kind == "hard" and files:
        os.link(r.choice(files), path, follow_symlinks=False); files.append(path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        make_socket(path)
    elif kind == "device" and root:
        os.mknod(path, stat.S_IFCHR | 0o640, os.makedev(1, 3))
    else:
        return False
    return True


def give_attributes(kind, path):
    if root and r.random() < .2:
        os.chown(path, r.randrange(3000), r.randrange(3000), follow_symlinks=False)
    if kind in ("file", "dir") and r.random() < .3:
        try: os.setxattr(path, "user." + r.choice("ab"), r.randbytes(r.choice([0, 10, 900])))
        except OSError: pass
    if kind not in ("link", "hard") and r.random() < .5:
        os.chmod(path, r.choice([0o600, 0o644, 0o755, 0o444, 0o500, 0o4755, 0o2775, 0o1777, 0o7, 0]) | (0o500 if kind == "dir" else 0))
    if kind in ("file", "dir") and r.random() < .1:
        try: os.setxattr(path, "system.posix_acl_access", acl(r.randrange(3000), r.randrange(8)))
        except OSError: pass
    if kind == "dir" and r.random() < .1:
        try: os.setxattr(path, "system.posix_acl_default", acl(r.randrange(3000), r.randrange(8)))
        except OSError: pass


def draw(top, seed, follows):
    """Makes a tree at top, a path of bytes. Returns its files."""
    global r
    r, files, dirs, late = random.Random(seed), [], [top], []
    os.mkdir(top)
    deep = r.random() < .1
    for number in range(r.choice([0, 3, 30, 120])):
        path = os.path.join(dirs[-1] if deep else r.choice(dirs), name_of(number))
        kind = r.choice(["file"] * 6 + ["dir"] * 4 + ["link", "hard", "fifo", "socket", "device"])
        try:
            if not make(kind, path, files, dirs, follows):
                continue
            give_attributes(kind, path)
        except OSError:
            continue
        if r.random() < .7:
            late.append((path, r.randrange(-10**9, 4 * 10**9), r.randrange(10**9)))
    for path, s, ns in reversed(late):
        ns += s * 10**9
        os.utime(path, ns=(ns, ns), follow_symlinks=False)
    return files


def entries(top):
    for at, dirs, names in os.walk(top):
        for name in sorted(dirs + names):
            yield os.path.join(at, name)


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def change_one(path):
    regular = os.path.isfile(path) and not os.path.islink(path)
    kind = r.choice(["remove", "bytes", "grow", "touch", "chmod", "chown", "xattr", "type", "rename", "link", "hole", "new"])
    if kind == "remove":
        remove(path)
    elif kind == "bytes" and regular and os.path.getsize(path):
        with open(path, "r+b") as f:
            f.write(r.randbytes(1))
    elif kind == "grow" and regular:
        with open(path, "ab") as f:
            f.write(r.randbytes(r.choice([1, 5000])))
    elif kind == "touch":
        ns = r.randrange(-10**18, 4 * 10**18)
        os.utime(path, ns=(ns, ns), follow_symlinks=False)
    elif kind == "chmod" and not os.path.islink(path):
        os.chmod(path, r.choice([0o600, 0o644, 0o755, 0o4711]) | (0o700 if os.path.isdir(path) else 0))
    elif kind == "chown" and root:
        os.chown(path, r.randrange(3000), r.randrange(3000), follow_symlinks=False)
    elif kind == "xattr" and regular:
        if os.listxattr(path) and r.random() < .5:
            os.removexattr(path, os.listxattr(path)[0])
        else:
            os.setxattr(path, "user.c", r.randbytes(9))
    elif kind == "type":
        remove(path)
        r.choice([lambda: os.mkdir(path), lambda: os.symlink(b"t", path), lambda: os.mkfifo(path), lambda: open(path, "xb").close()])()
    elif kind == "rename":
        os.rename(path, path[:-1] + b"R")
    elif kind == "link" and regular:
        os.link(path, path[:-1] + b"L")
    elif kind == "hole" and regular:
        with open(path, "r+b") as f:
            f.truncate(os.path.getsize(path) + r.choice([4096, 1 << 20]))
    elif kind == "new":
        with open(path[:-1] + b"N", "xb") as f:
            f.write(r.randbytes(r.choice([0, 10, 70000])))


def change(top, seed):
    global r
    r = random.Random(seed)
    everything = list(entries(top))
    for path in r.sample(everything, min(len(everything), r.choice([0, 1, 5, 20]))):
        try:
            change_one(path)
        except OSError:
            pass


if __name__ == "__main__":
    at = os.fsencode(sys.argv[2])
    if sys.argv[1] == "draw":
        draw(at, int(sys.argv[3]), "L" in sys.argv[4])
    else:
        change(at, int(sys.argv[3]))
