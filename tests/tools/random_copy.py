#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# random_copy.py NAME FCOPY N SEED WORK FAULTFS DIR…: N random command lines, each for a random tree from one of the
# directories to one of them, by fcopy and by cp (or rsync) to equal destinations. Prints each difference with
# its command and, at the end, the line that the long proofs share. The FILE SYSTEM of a directory is its name; one
# that is named fuse is mounted again and again by FAULTFS, each time without some operations. An empty FAULTFS:
# there is none. SEED:N repeats the Nth command line of a run alone.
import errno, hashlib, json, os, random, re, shutil, signal, stat, subprocess, sys, time

sys.dont_write_bytecode = True

import random_tree

NAME, FCOPY, COUNT, SEED, WORK, FAULTFS = sys.argv[1:7]
PLAIN = "RANDOM_PLAIN" in os.environ  # new trees only
failed = dict.fromkeys(["lost", "wrong", "hung", "crashed", "other"], 0)
counts = {}  # of the command lines, by kind
ERRNOS = ["ENOSYS", "EPERM", "EOPNOTSUPP", "EACCES", "EINVAL", "EIO"]
LACKS = ["chmod", "chown", "utimens", "link", "symlink", "truncate", "fsync", "statfs", "fallocate", "lseek",
         "getxattr", "setxattr", "listxattr", "rename", "renamedir", "renameover", "renameopen", "mknod"]
# What fcopy refuses and cp does not: DIFFERENCES FROM CP in the manual.
STRICTER = re.compile(r"(?:linkat|symlink|mknod): File exists|exists; use -f to replace it|is not a regular file|its setuid and setgid bits are not copied|backup: File name too long|has other hard links|leads? to|is also|was made by|the same file|would replace|cannot be replaced|is already the copy of another entry|--attributes-only does not follow|a symlink that another user made or can move|another user may write to DST|is a FIFO of another user|in type from its source, but is excluded|fsetxattr: Operation not supported")


def short(text):
    """Names are shortened, and values: SEED repeats the case."""
    return re.sub(r"([^/\s]{12})[^/\s]{20,}([^/\s]{8})", r"\1…\2", re.sub(r"/[^ ]*/(?=(?:fcopy|cp)\d)", "", text))


def digest(path):
    try:
        with open(path, "rb") as f:
            return hashlib.file_digest(f, "md5").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.md5(f.read()).hexdigest()
    except OSError as e:
        return e.errno


def attributes(path):
    try:
        return {n: os.getxattr(path, n, follow_symlinks=False) for n in os.listxattr(path, follow_symlinks=False)
                if not n.startswith("trusted.SGI_")}  # XFS lists an ACL twice
    except OSError:
        return {}


def snapshot(top):
    """Everything that can be seen of each entry, by its path below top. top may be a file."""
    seen, inodes, todo, is_file, home = {}, {}, [b""], False, os.getcwd()
    if not os.path.lexists(top):
        return seen
    if not stat.S_ISDIR(os.lstat(top).st_mode):
        top, todo, is_file = os.path.split(top)[0], [os.path.basename(top)], True
    os.chdir(top)
    while todo:
        path = todo.pop()
        st = os.lstat(path or b".")
        kind = stat.S_IFMT(st.st_mode)
        e = {"type": kind, "mode": oct(st.st_mode & 0o7777), "owner": (st.st_uid, st.st_gid), "time": st.st_mtime_ns}
        if kind == stat.S_IFREG:
            e.update(size=st.st_size, bytes=digest(path))
        elif kind == stat.S_IFLNK:
            e["target"] = os.readlink(path)
        elif kind in (stat.S_IFCHR, stat.S_IFBLK):
            e["device"] = st.st_rdev
        else:
            try:
                todo += sorted(os.path.join(path, n) for n in os.listdir(path or b".")) if kind == stat.S_IFDIR else []
            except OSError as error:
                e["unreadable"] = error.errno
        e["attributes"] = attributes(path or b".")
        if kind != stat.S_IFDIR:
            e["link"] = inodes.setdefault(st.st_ino, path)
        seen[path] = e
        e["inode"], e["ctime"], e["links"], e["blocks"] = st.st_ino, st.st_ctime_ns, st.st_nlink, st.st_blocks
    os.chdir(home)
    if is_file:
        seen = {b"": dict(e, link=b"") for e in seen.values()}  # whatever its name is
    return seen


PRIVATE = ("inode", "ctime", "links", "blocks")  # of one inode, and not of what it is a copy of


def differences(a, b, since=None, but=()):
    """Each as (what, path, text); times after since are equal, and so is what but names."""
    found = []
    for path in sorted(a.keys() | b.keys()):
        x, y = a.get(path), b.get(path)
        if x is None or y is None:
            found.append(("entry", path, "%r is only in the %s" % (path, "second" if x is None else "first")))
            continue
        for what in (x.keys() | y.keys()) - set(PRIVATE) - set(but):
            v, w = x.get(what), y.get(what)
            if what == "time" and since and v >= since and w >= since:
                continue
            if v != w:
                found.append((what, path, "%s of %r: %s, %s" % (what, path, v, w)))
    return found


class Case:
    def __init__(self, number, dirs):
        self.number, self.r = number, random.Random("%s:%d" % (SEED, number))
        self.dirs, self.note, self.compare, self.log = dirs, [], "cp", ""
        self.src_dir, self.to = self.pick(dirs), self.pick(dirs)
        self.lacks = lacking.get(self.to, []) + lacking.get(self.src_dir, [])

    def pick(self, *choices):
        return self.r.choice(choices[0] if len(choices) == 1 else choices)

    def often(self, share):
        return self.r.random() < share

    def fail(self, kind, what):
        failed[kind] += 1
        print("%s: FAILED (%s) SEED=%s:%d %s to %s%s, %s, fcopy %s: %s" % (NAME, kind, SEED, self.number,
              os.path.basename(self.src_dir), os.path.basename(self.to), "".join(", without " + " ".join(l) for l in [self.lacks] if l),
              self.what, " ".join(self.options), short(what)[:500]), flush=True)

    # -- what is copied, and onto what

    def prepare(self):
        self.src, self.cp, self.ours = [os.path.join(os.fsencode(d), n) for d, n in
                                        ((self.src_dir, b"src%d" % self.number), (self.to, b"cp%d" % self.number), (self.to, b"fcopy%d" % self.number))]
        self.earlier = self.cp + b".earlier"
        self.options, self.extra = self.draw_options()
        follows = any("L" in o for o in self.options if not o.startswith("--")) and "-P" not in self.options
        random_tree.draw(below(self.src), self.r.randrange(10**9), follows)
        self.old = "new" if PLAIN else getattr(self, "old", None) or \
            (self.pick("new", "new", "old", "old", "into") if self.kind not in ("changed", "mirror", "mirror-filter", "dry-run") else "old")
        if self.kind == "link-dest":
            self.old = "new"
            subprocess.run(["cp", "-aT", below(self.src), below(self.earlier)], stderr=subprocess.DEVNULL)
            random_tree.change(below(self.earlier), self.r.randrange(10**9))
        self.given = self.draw_operand(follows or ("-rH" in self.options and "-P" not in self.options))
        if self.old == "into":
            os.mkdir(self.cp), os.mkdir(self.ours)
        self.copy, self.theirs = [d + b"/" + os.path.basename(self.given) if self.old == "into" else d for d in (self.ours, self.cp)]
        if self.old != "new" and (self.old == "old" or self.often(.6)):
            # Where all operations work, so that both are alike.
            subprocess.run(["cp", "-a" if self.often(.8) else "-dR", below(self.src), below(self.copy)], stderr=subprocess.DEVNULL)
            for _ in range(self.pick(0, 1, 2)):
                random_tree.change(below(self.copy), self.r.randrange(10**9))
            subprocess.run(["cp", "-aT", below(self.copy), below(self.theirs)], stderr=subprocess.DEVNULL)
        self.what = self.kind + " " + self.old
        self.before = snapshot(below(self.copy))
        self.source = snapshot(self.src)
        if "--files-from=" + self.listed in self.options:
            with open(self.listed, "wb") as f:
                f.write(b"".join(p + b"\0" for p in self.r.sample(sorted(set(self.source) - {b""}), min(len(self.source) - 1, 3))))
        self.shared = {p for p, e in self.before.items() if e["links"] > 1 and e["type"] != stat.S_IFDIR}

    def draw_operand(self, followed):
        """SRC, a symlink to it, or SRC/. which stands for what is in it."""
        how = self.r.random() if self.kind == "cp" and not PLAIN and "-s" not in self.options else 1
        if followed and how < .3:
            os.symlink(os.path.basename(self.src), below(self.src) + b".link")
            return self.src + b".link"
        return self.src + b"/." if how < .1 and self.old != "into" else self.src

    def draw_options(self):
        """Those that the other program gets, too, and those that must not change the result."""
        self.kind = "cp" if PLAIN else self.pick(["cp"] * 12 + ["changed", "mirror"] * 2 + ["dry-run", "filter", "mirror-filter", "link-dest"])
        self.listed = os.path.join(WORK, "listed")
        extra = []
        for option in ("-j1", "-j4", "--fsync", "--verify", "--no-cache", "--preallocate=never", "--strict", "--stats", "-v", "--inplace=auto"):
            if self.often(.06) and not (PLAIN and option == "--no-cache"):
                extra.append(option)
        if self.kind == "cp":
            return self.draw_as_cp(extra), extra
        if self.kind in ("filter", "mirror-filter"):
            return self.draw_filter(), extra
        options = {"changed": ["-aT", "--update=changed"], "mirror": ["--mirror", "--max-delete=1000000"],
                   "dry-run": ["--dry-run", self.pick("-aT", "-rT", "--mirror")],
                   "link-dest": ["-aT", "--link-dest=" + os.fsdecode(self.earlier)]}[self.kind]
        if self.kind == "mirror" and self.often(.3):
            return ["-aT", "--delete", self.pick("-j1", "-j2")], extra
        return options + [self.pick("--checksum", "-j2", "-j1")] * (self.kind in ("changed", "mirror")), extra

    def draw_filter(self):
        first = ["-aT"] if self.kind == "filter" else ["--mirror", "--max-delete=1000000"]
        patterns = [self.pick("*a*", "*/", "/*a", "a*/b*", "**b", "*[0-5]", "?*", "*1", "/*/*", "*c", "*.x/***") for _ in range(self.pick(1, 2, 3))]
        if self.kind == "filter" and self.often(.3):
            return first + ["-0", "--files-from=" + self.listed]
        if self.often(.3):
            with open(self.listed, "w") as f:
                f.write("# none\n\n%s\n" % "\n".join(patterns))
            return first + ["--exclude-from=" + self.listed]
        return first + ["--%s=%s" % (self.pick("include", "exclude"), p) for p in patterns]

    def draw_as_cp(self, extra):
        how = self.pick(["-r"], ["-R"], ["-rp"], ["-a"], ["-a"], ["-aL"], ["-rL"], ["-rH"], ["-rP"], ["-dr"], ["-r", "--preserve=links"],
                        ["-r", "--preserve=mode,timestamps"], ["-r", "--preserve=ownership"], ["-a", "--no-preserve=mode"],
                        ["-a", "--no-preserve=ownership,timestamps"], ["-r", "--no-preserve=mode"], ["-a", "--no-preserve=xattr"])
        if self.often(.4) and not PLAIN:
            how = how + self.pick(["-f"], ["-n"], ["-u"], ["--remove-destination"], ["-b"], ["--backup=numbered"], ["--backup=existing"],
                                  ["-b", "-S.x"], ["-l", "-P"], ["-x"], ["-s"], ["--attributes-only"], ["--sparse=always"], ["--sparse=never"], ["--reflink=never"], ["--reflink=auto"])
        elif self.often(.2):
            extra += self.pick(["--inplace"], ["--resume"], ["-m1"], ["-m2"], ["-m3"], ["-m7"], ["-m5", "--buffer-size=64K"])
            if "--resume" in extra:
                self.old = "new"
        return how

    # -- the copies

    def run(self, *command):
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 if command[0] == FCOPY else 4, errors="backslashreplace")
        except subprocess.TimeoutExpired:
            return 124, "", "timeout"
        return done.returncode, done.stdout, done.stderr

    def copies(self):
        self.since = time.time_ns() - 10**9
        target = ["-T"] if self.old != "into" and self.kind == "cp" and not self.given.endswith(b"/.") else []
        dst = self.ours if self.kind == "cp" else self.copy
        into = self.old == "into" and self.kind == "cp" and self.often(.3)
        by_cp, self.cp_log = 0, ""
        if self.kind == "cp":
            by_cp, _, self.cp_log = self.run("cp", *self.options, *target, *([b"-t", self.cp, self.given] if into else [self.given, self.cp]))
        elif self.kind == "changed":
            by_cp, _, self.cp_log = self.run("cp", "-aT", self.src, self.theirs)
        elif self.kind in ("filter", "mirror-filter"):
            by_cp, _, self.cp_log = self.run("rsync", "-aI", *["--delete"] * (self.kind != "filter"), *[o for o in self.options if "clude" in o or "-from" in o or o == "-0"],
                                             self.src + b"/", self.theirs + b"/")
        json_file = os.path.join(WORK, "json")
        lines = self.kind != "dry-run" and self.often(.5)
        status, self.out, log = self.run(FCOPY, *self.options, *target, *self.extra, "--keep-going", "--json=lines" if lines else "--json=" + json_file,
                                         *([b"-t", dst, self.given] if into else [self.given, dst]))
        self.entries = None
        try:
            if lines:
                *self.entries, self.report = [json.loads(l) for l in self.out.splitlines()]
            else:
                with open(json_file, encoding="utf-8") as f:
                    self.report = json.load(f)
        except ValueError:
            self.report = None
        self.warnings, self.log = log, "\n".join(l for l in log.splitlines() if l.startswith("fcopy:") and not l.startswith("fcopy: warning"))
        self.options += self.extra
        if status < 0 or status > 2:
            self.fail("hung" if status == 124 else "crashed", "status %d: %s" % (status, self.log))
        return by_cp, status

    def check(self):
        by_cp, status = self.copies()
        counts[self.what] = counts.get(self.what, 0) + 1
        after = snapshot(below(self.copy))
        theirs = self.source if self.kind in ("mirror", "link-dest") else snapshot(below(self.theirs))
        self.check_always(status, after)
        if status == 2 and not re.search("cannot be combined|not supported by mode", self.log):
            return self.fail("other", "refused: " + self.log)
        if self.kind == "dry-run" or status == 2:
            found = differences(self.before, after)
            return found and self.fail("lost", "changed: " + found[0][2])
        return self.check_result(by_cp, status, after, theirs)

    def check_lines(self):
        """The numbers of lines equal the counts of the object."""
        t, n = self.report["tree"], {}
        for e in self.entries:
            what = e["action"] if e["action"] != "copied" else {"file": "files", "directory": "directories", "symlink": "symlinks"}.get(e["type"], "specials")
            n[what] = n.get(what, 0) + 1
        n["unchanged"] = n.get("unchanged", 0) + n.get("repaired", 0)
        wrong = [k for k in ("files", "directories", "symlinks", "specials", "skipped", "repaired", "deleted", "excluded", "vanished", "failed") if n.get(k, 0) != t[k]]
        wrong += ["hard_links"] * (n.get("linked", 0) != t["hard_links"]) + ["unchanged"] * (n["unchanged"] != t["unchanged"] + t["reused"])
        if wrong:
            self.fail("other", "lines and counts differ in %s: %s, %s" % (wrong, n, {k: v for k, v in t.items() if isinstance(v, int)}))

    def check_always(self, status, after):
        """What no option may change."""
        if self.entries is not None and self.report and self.report.get("tree"):
            self.check_lines()
        if "-l" not in self.options:
            found = differences(self.source, snapshot(self.src))
            if found:
                self.fail("lost", "SRC has changed: " + found[0][2])
        left = [n for n in os.listdir(os.path.dirname(self.ours)) if n.startswith(b".fcopy-")] + [p for p in after if b".fcopy-" in p and p not in self.source]
        if self.kind in ("mirror", "mirror-filter", "changed") and status == 1:  # the next run compares what this one has written
            after.pop(b".fcopy-mirror", None)
            left = [l for l in left if l != b".fcopy-mirror"]
        if status == 1:  # the message may name it
            left = [l for l in left if os.fsdecode(os.path.basename(l)) not in self.log]
        if left:
            self.fail("other", "left: %s: %s" % (left[0], self.log))
        if status == 1 and not self.log.strip():
            self.fail("other", "exit 1 without a message")
        for path, e in self.before.items():
            if path not in self.source and self.kind in ("cp", "changed", "filter") and "-b" not in self.options and path not in after:
                self.fail("lost", "%r is gone" % path)
        if status == 0 and self.report and self.kind == "cp" and self.old == "new" and not self.lacks:
            t = self.report["tree"]
            if t["directories"] != sum(e["type"] == stat.S_IFDIR for e in after.values()) or \
                    t["files"] + t["hard_links"] + t["symlinks"] + t["specials"] != sum(e["type"] != stat.S_IFDIR for e in after.values()):
                self.fail("other", "the report's counts: %s" % {k: t[k] for k in ("directories", "files", "hard_links", "symlinks", "specials")})

    def preserves(self, what):
        words = " ".join(o for o in self.options if not o.startswith("--backup"))
        every = re.search(r"(^| )-a|--mirror", words)
        listed = re.search(r"--preserve=(\S+)", words)
        names = {"mode": "mode", "owner": "ownership", "time": "timestamps", "attributes": "xattr"}
        dropped = re.search(r"--no-preserve=(\S+)", words)
        if dropped and names.get(what) in dropped.group(1).split(","):
            return False
        return every or ("-rp" in words and what != "attributes") or bool(listed and names.get(what) in listed.group(1).split(","))

    def excused(self, path, what, after, theirs, by_cp):
        """A difference of the manual's table; or only cp's copy differs from what is to be preserved."""
        new, old, source = after.get(path), self.before.get(path), self.source.get(path)
        if what == "entry" and by_cp and old and new and new["inode"] == old["inode"]:
            return True  # cp removes what it then fails to replace
        if new and old and source and by_cp and source["type"] in (stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR):
            return True  # cp -L fails to replace a special file
        if not new or what not in new:
            return False
        if source and source["type"] != stat.S_IFDIR and source["links"] > 1 and \
                any(p in self.before for p, e in self.source.items() if e.get("link") == source["link"]):
            return True  # of linked names any may be copied first: one that replaces a file keeps its owner
        if what == "attributes" and "xattr" in "".join(self.lacks):
            return True  # nobody knows them
        if what == "target" and "-s" in self.options and source and source["links"] > 1:
            return True  # the first of linked names
        if what == "owner" and "-f" in self.options and "chown" in "".join(self.lacks):
            return True  # replaced despite the owner
        if self.preserves(what) and source and source.get(what) == new[what]:
            return True
        if what == "mode" and not self.preserves("mode") and \
                (not int(new["mode"], 8) & ~0o1777 or int(new["mode"], 8) ^ int(theirs[path]["mode"], 8) == 0o1000):
            return True  # cp keeps the sticky bit, and others of special files
        if what == "mode" and new["type"] not in (stat.S_IFREG, stat.S_IFDIR) and source and \
                not (int(source["mode"], 8) ^ int(new["mode"], 8)) & 0o7000:
            return True  # to give a FIFO to its owner again, as cp does, removes setuid and setgid
        if what in ("attributes", "mode") and not self.preserves("mode") and any("acl" in a for a in new["attributes"]):
            return True  # the default ACL of the directory above says what a new entry gets
        if what == "time" and new.get("size") == 0:
            return True  # in place, nothing was written
        if what == "mode" and not self.preserves("owner") and not int(new["mode"], 8) & 0o6000:
            return True  # setuid and setgid need the owner and group
        if what == "time" and not self.preserves("time") and new["type"] == stat.S_IFDIR:
            return True
        if not old or old["type"] != stat.S_IFREG or "--inplace" in self.options:
            return False
        return what == "attributes" or (what == "mode" and not int(new["mode"], 8) & 0o6000)  # replaced: see WHAT HAPPENS TO DST

    def check_result(self, by_cp, status, after, theirs):
        if by_cp == 124:
            return self.check_untorn(after)  # cp waits for a reader of a FIFO
        if status == 1:
            linked = self.kind in ("cp", "changed") and any(e["type"] == stat.S_IFLNK and self.source.get(p, {}).get("links", 0) > 1 for p, e in self.before.items())
            why = "linked names" if linked and "is a dangling symlink" in self.log else \
                "operations missing" if self.lacks and (re.search("getxattr: |rename of a directory: ", self.log) or by_cp or self.kind not in ("cp", "changed") or re.search("hint: |unsupported here|cannot be renamed here", self.warnings)) else \
                "stricter than cp" if STRICTER.search(self.log) else \
                "a target that is too long for XFS" if "symlink: File name too long" in self.log else \
                "no direct I/O" if "--no-cache" in self.options and re.search("not supported|cannot be bypassed", self.log) else \
                "no flush" if re.search("--fsync|--verify", " ".join(self.options)) and "sync: " in self.log else \
                "types" if self.kind in ("filter", "mirror-filter") and re.search("is not replaced|has another type|cannot replace it|is not a directory|[iI]s a directory|dangling", self.log) else ""
            if why:
                counts["refused, " + why] = counts.get("refused, " + why, 0) + 1
                return self.check_untorn(after)
            if by_cp == 0:
                return self.fail("other", "cp copies, fcopy: " + self.log)
        if status == 0 and by_cp != 0:
            counts["copied, not by cp"] = counts.get("copied, not by cp", 0) + 1
            if self.kind == "cp" and self.old == "new" and "-a" in self.options and not {"-s", "--attributes-only"} & set(self.options):
                found = differences(self.source, after, but=("owner", "mode", "attributes", "time", "link"))
                found and self.fail("wrong", "exit 0, unlike cp (%s): %s" % (self.cp_log, found[0][2]))
            return None
        found = differences(theirs, after, self.since, 
                            but=("time", "attributes", "link", "mode", "owner") if "filter" in self.kind or self.kind in ("mirror", "link-dest") and self.lacks else ("link",) if self.kind == "link-dest" else ())
        if self.shared and self.kind in ("cp", "changed"):
            found = []  # cp writes through a name that has other links
        files = {e["inode"] for e in self.source.values() if e["type"] == stat.S_IFREG}
        if "-s" in self.options and ("Invalid cross-device link" in str(self.cp_log) or
                                     any(e["type"] == stat.S_IFREG and e["inode"] in files for p, e in theirs.items() if p not in self.before)):
            found = []  # cp -aL -s makes hard links to files of the source
        if "copied and not linked" in self.warnings:
            found = []  # cp replaces a symlink by a hard link: two entries lead to one file
        found = [d for d in found if not self.excused(d[1], d[0], after, theirs, by_cp)]
        if found:
            return self.fail("wrong" if status == 0 else "other", "status %d: %s%s" % (status, "; ".join(f[2] for f in found[:2]), self.log and " // " + self.log))
        return None

    def check_untorn(self, after):
        """Each file is the old one or the new one."""
        new = {e.get("bytes") for e in self.source.values()}
        for path, e in after.items() if "--attributes-only" not in self.options else ():
            old = self.before.get(path)
            if e["type"] == stat.S_IFREG and e["bytes"] not in new and not (old and old.get("bytes") == e["bytes"]) and \
                    e["bytes"] not in {o.get("bytes") for o in self.before.values()}:
                self.fail("lost", "%r is torn: %s" % (path, self.log))

    def clean(self):
        for at in mounted if "writeback" in self.lacks else ():  # what is below would be gone when the kernel writes it
            subprocess.run(["sync", "-f", at], stderr=subprocess.DEVNULL)
        if os.path.islink(below(self.src) + b".link"):
            os.unlink(below(self.src) + b".link")
        for path in (self.src, self.cp, self.ours, self.ours + b".fcopy-part", self.earlier):
            if os.geteuid() != 0:
                subprocess.run(["chmod", "-R", "u+rwx", path], stderr=subprocess.DEVNULL)
            shutil.rmtree(below(path), ignore_errors=True)


lacking, mounted, stop = {}, {}, []


def below(path):
    """The same where all operations work."""
    for at in mounted:
        path = path.replace(os.fsencode(at) + b"/", os.fsencode(at) + b".backing/")
    return path


def mount(at, r):
    """faultfs without some operations; what it shows is in at.backing."""
    unmount(at)
    os.makedirs(at, exist_ok=True), os.makedirs(at + ".backing", exist_ok=True)
    lacks = ["%s:%s" % (o, r.choice(ERRNOS)) for o in r.sample(LACKS, r.choice([0, 1, 1, 1, 2, 4]))]
    options = ["attr_timeout=0", "entry_timeout=0", "xattrs"] + ["fault=" + l for l in lacks] + r.choice([[], [], ["direct_io"], ["sequential"], ["writeback"], ["modeless"]])
    if "modeless" in options:
        options.remove("xattrs")  # an ACL would contradict the mode
    mounted[at] = subprocess.Popen([FAULTFS, at + ".backing", at, "-f", "-o", ",".join(options)], stderr=subprocess.DEVNULL)
    lacking[at] = [o for o in options[2:] if o != "xattrs"]
    while not os.path.ismount(at):
        if mounted[at].poll() is not None:
            sys.exit("%s: FUSE does not mount" % NAME)
        time.sleep(.005)


def unmount(at):
    if at in mounted:
        subprocess.run(["umount", "--lazy", at], check=False)
        mounted[at].terminate()
        mounted.pop(at).wait()


def main():
    dirs, tried = sys.argv[7:], 0
    fuse = [d for d in dirs if os.path.basename(d) == "fuse"]
    global SEED
    SEED, _, only = SEED.partition(":")
    signal.signal(signal.SIGINT, lambda *_: stop.append(1))
    end = time.monotonic() + float(os.environ.get("RANDOM_SECONDS", "1e9"))
    for number in range(int(COUNT)) if not only else range(int(only) + 1):
        if stop or time.monotonic() > end:
            break
        for at in fuse if number % 8 == 0 and FAULTFS else []:
            mount(at, random.Random("%s:%d" % (SEED, number)))
        if only and number != int(only):
            continue
        case = Case(number, dirs)
        case.prepare()
        case.check()
        tried += 1
        if not only:
            case.clean()
    for at in list(mounted):
        unmount(at)
    print("%s: %s" % (NAME, ", ".join("%s %d" % c for c in sorted(counts.items()))))
    print("%s: %d tried, %s" % (NAME, tried, ", ".join("%d %s" % (n, k) for k, n in failed.items())))
    sys.exit(1 if any(failed.values()) else 0 if tried else 77)


main()
