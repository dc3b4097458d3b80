#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# random_walk.py NAME FCOPY N SEED DIR…: N random walks, each of two to five commands on one DST in one of the directories, while
# SRC and DST change in between. A command may run beside another one, or fail at one of its system calls; or it is killed there,
# SRC is changed or replaced, a file appears in DST, or another command runs. Some go over HTTP (walk_http.py), or are run by shards
# (walk_shards.py); with FAULTFS, some DST are on storage that keeps less (walk_storage.py). walk_oracle.py says what DST must be.
# Prints each failure with the commands that led to it and, at the end, the line that the long proofs share. Eight walks at once,
# for most of the time each waits. SEED:I repeats the Ith walk alone, and prints its commands.
import collections, errno, multiprocessing, os, random, re, shutil, signal, stat, subprocess, sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stops
from walk_http import Http
from walk_oracle import below, Command, Expected, Step, inodes, left, put_aside, snapshot
from walk_shards import Shards
from walk_storage import KINDS, Storage

NAMES = "abcdef"
SIZES = [0, 1, 100, 4096, 5000, 70000, 300000]
CALLS = {"openat": 40, "write,pwrite64,copy_file_range": 12, "renameat2": 5, "renameat": 8, "linkat": 8, "unlinkat": 8, "mkdirat": 6,
         "close": 60, "fchmod": 8, "utimensat": 10, "fsync,fdatasync,syncfs": 4, "symlinkat,mknodat": 4, "getdents64": 8,
         "flock": 4, "newfstatat,fstat,statx": 60, "fchown,fchownat": 6, "all": 400}
ERRNOS = ["EIO", "ENOSPC", "EDQUOT", "EACCES", "EPERM", "ENOMEM", "EMFILE"]
TREE = [["-aT"], ["-aT"], ["--mirror", "--max-delete=1000"], ["--mirror", "--max-delete=1000"], ["--mirror"], ["-aT", "-b"],
        ["-aT", "--backup=numbered"], ["-aT", "--resume"], ["-aT", "--resume"], ["-aT", "-u"], ["-aT", "-n"],
        ["-aT", "--update=changed"], ["-rT"], ["-rT", "-f"], ["-aT", "--fsync"], ["-aT", "--verify"], ["-aT", "-b", "-u"]]
FILE = [[], [], ["-p"], ["-b"], ["-p", "--backup=numbered"], ["--resume"], ["-p", "--resume"], ["-n"], ["-u"], ["-f"],
        ["--fsync"], ["--verify"], ["-p", "--mirror"]]
OUTCOMES = ["lost", "wrong", "hung", "crashed", "other"]
AT_ONCE = 8
failed, counts = collections.Counter(), collections.Counter()  # of the present walk


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


class Walk(Http, Shards):
    def __init__(self, fcopy, number, seed, home):
        self.fcopy, self.number, self.seed = fcopy, number, seed
        self.r = random.Random("%s:%d" % (seed, number))
        self.home = os.path.join(home, "walk%d" % os.getpid())
        less = self.r.random() < .3 and os.environ.get("FAULTFS")
        self.area = self.home + "/m" if less else self.home
        self.at = self.area + "/at"
        self.src, self.dst = self.home + "/s", self.at + "/d"
        self.clock = 10**18  # each change has a time of its own
        self.log, self.snapshots, self.edited, self.found = [], {}, False, []
        self.tree = self.r.random() < .75
        self.storage = Storage(self.area, self.home + "/backing", self.r.choice(KINDS)) if less else Storage()
        os.makedirs(self.at)

    # What SRC and DST are, and become between two commands.

    def tick(self, path):
        self.clock += self.r.choice([1, 10**9, 10**9, 3600 * 10**9]) + self.storage.unit
        ns = self.clock - (self.r.random() < .3) * 10**15
        ns += self.clock % 1000  # two files never have one time by chance
        os.utime(path, ns=(ns, ns), follow_symlinks=False)

    def write(self, path, size=None):
        with open(path, "wb") as f:
            f.write(self.r.randbytes(size or self.r.choice(SIZES)))
        os.chmod(path, self.r.choice([0o644, 0o600, 0o755, 0o440]))
        if below(path, self.src) and self.r.random() < .2:
            self.mark(path)
        self.tick(path)

    def mark(self, path):
        """Some files of SRC have another owner, and an attribute."""
        if os.getuid() == 0:
            os.chown(path, 5, 6)
        try:
            os.setxattr(path, "user.walk", self.r.randbytes(4))
        except OSError:
            pass  # this file system has none

    def make(self, path, top):
        try:
            self.make_any(path, top)
        except PermissionError:  # the storage of DST lacks it
            self.write(path)

    def make_any(self, path, top):
        kind = self.r.choice(["file"] * 8 + ["directory"] * 4 + ["symlink", "fifo", "link", "link"])
        if kind == "directory":
            os.mkdir(path, 0o755)
            os.chmod(path, self.r.choice([0o755, 0o700, 0o750]))
        elif kind == "symlink":
            os.symlink(self.r.choice(["nowhere", "none"]), path)
        elif kind == "fifo":
            os.mkfifo(path, 0o600)
        elif kind == "link" and self.paths(top, stat.S_IFREG):
            os.link(self.r.choice(self.paths(top, stat.S_IFREG)), path)
            return
        else:
            self.write(path)
        self.tick(path)

    @staticmethod
    def paths(top, kind=None):
        found = snapshot(top) or {}
        return sorted(os.path.join(top, p) for p, e in found.items() if p and (kind is None or e.kind == kind))

    def add(self, top):
        at = self.r.choice([top] + self.paths(top, stat.S_IFDIR))
        name = self.r.choice(NAMES) + self.r.choice([""] * 14 + ["~"])
        path = os.path.join(at, name)
        if not os.path.lexists(path):
            self.make(path, top)

    def change(self, top, new=False):
        """One change of a tree. new: a file that is written is another inode."""
        paths = self.paths(top)
        how = self.r.choice(["add", "add", "remove", "write", "write", "touch", "mode", "type", "rename"])
        path = self.r.choice(paths) if paths else None
        if how == "add" or not path:
            self.add(top)
            return
        if how == "remove":
            remove(path)
        elif how == "write" and os.path.isfile(path) and not os.path.islink(path):
            if new or self.r.random() < .5:
                remove(path)  # another inode
            self.write(path)
        elif how == "touch":
            self.tick(path)
        elif how == "mode" and not os.path.islink(path):
            os.chmod(path, 0o700 if os.path.isdir(path) else self.r.choice([0o600, 0o644]))
        elif how == "type":
            remove(path)
            self.make(path, top)
        elif how == "rename" and not os.path.lexists(path[:-1] + "g"):
            try:
                os.rename(path, path[:-1] + "g")
            except OSError as e:  # the storage of DST cannot rename directories
                if e.errno != errno.ENOSYS:
                    raise

    def make_source(self):
        remove(self.src)
        if not self.tree:
            self.write(self.src)
            return
        os.mkdir(self.src)
        for _ in range(self.r.choice([0, 3, 6, 12])):
            self.add(self.src)
        self.tick(self.src)

    def between(self):
        """SRC changes or is replaced as a whole, the user works in DST, an earlier copy is kept."""
        what = self.r.random()
        if what < .3:
            return
        if what < .4:
            if self.r.random() < .5:
                remove(self.home + "/old")
                os.rename(self.src, self.home + "/old")
            self.make_source()
            self.log.append("# SRC is replaced")
        elif not self.tree:
            at = self.src if self.r.random() < .6 else self.dst
            self.write(at)
            self.log.append("# %s is written" % os.path.basename(at))
        else:
            at = self.src if what < .8 or not os.path.isdir(self.dst) else self.dst
            self.edited = self.edited or at == self.dst
            for _ in range(self.r.choice([1, 2, 5])):
                self.change(at)
            self.log.append("# %s changes" % os.path.basename(at))
        if self.tree and self.r.random() < .2 and os.path.isdir(self.dst) and len(self.snapshots) < 2:
            at = "%s/snapshot%d" % (self.area, len(self.snapshots))
            subprocess.run(["cp", "-al" if self.r.random() < .3 else "-a", self.dst, at], check=not self.storage.at, stderr=subprocess.DEVNULL)
            if not os.path.isdir(at):
                return
            self.snapshots[at] = None
            self.log.append("# DST is kept as %s" % os.path.basename(at))
        for at in self.snapshots:  # the user may have written to another name of a file
            self.snapshots[at] = snapshot(at)

    # Commands.

    def draw_words(self):
        words = list(self.r.choice(TREE if self.tree else FILE))
        if self.snapshots and self.r.random() < .4 and words[0] in ("-aT", "--mirror") and "--resume" not in words:
            words.append("--link-dest=" + self.r.choice(sorted(self.snapshots)))
        return words

    def draw_fault(self):
        """What strace does to the command."""
        calls = self.r.choice(sorted(CALLS))
        n = self.r.randint(1, CALLS[calls])
        what = "signal=KILL" if self.r.random() < .5 or calls == "all" else "error=" + self.r.choice(ERRNOS)
        return ["-e", "trace=" + calls, "-e", "inject=%s:%s:when=%d" % (calls, what, n)]

    def start(self, words, fault):
        trace = ["strace", "-f", "-qq", "-o", self.home + "/trace", "-e", "signal=none"] + fault if fault else []
        command = trace + [self.fcopy] + (["-j1"] if fault and self.tree else []) + words
        self.log.append(" ".join(command))
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def ended(self, status, err):
        """The status as a shell has it, and what was printed."""
        self.log.append("# status %d: %s" % (status, " / ".join(err.splitlines()[:3])))
        return (status if status >= 0 else 128 - status), err

    def wait(self, process):
        try:
            _, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail("hung", "no end within a minute")
            return 124, ""
        return self.ended(process.returncode, err.decode(errors="replace"))

    def run_stopped(self, words, step):
        """Runs the command, and does something else at one of its calls that take a name. Returns what was done."""
        at, seen, done = self.r.choice([self.r.randrange(12), self.r.randrange(60), self.r.randrange(200)]), [], []
        moment = self.r.choice(["kill", "kill", "second", "change", "replace", "appear", "appear"])

        def on_stop(call, when):
            seen.append(call)
            if len(seen) != at + 1:
                return
            done.append(moment)
            self.log.append("# at stop %d (%s %s): %s" % (at, when, call.name, moment))
            getattr(self, "do_" + moment)(call, step)

        output = self.home + "/output"
        remove(output)
        command = [self.fcopy] + (["-j1"] if self.tree else []) + words + [self.src, self.dst]
        self.log.append(" ".join(command))
        status = stops.run(command, on_stop, "/", output)
        with open(output, errors="replace") as f:
            step.ended.append(self.ended(status, f.read()))
        return done[0] if done else None

    def do_kill(self, call, _):
        os.kill(call.pid, signal.SIGKILL)

    def do_second(self, _, step):
        """Another command, from its begin to its end."""
        words = self.draw_words()
        process = self.start(words + [self.src, self.dst], None)
        try:
            err = process.communicate(timeout=5)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:  # it waits for the first one
            process.kill()
            process.communicate()
            counts["waited"] += 1
            err = ""
        step.commands.append(Command(words, self.tree))
        step.backs_up = any(c.backup for c in step.commands)
        step.ended.append(self.ended(process.returncode, err))

    def do_change(self, _, step):
        """SRC changes. No file is written in place: a mixture of old and new bytes would be right."""
        for _ in range(self.r.choice([1, 2, 5]) if self.tree else 0):
            self.change(self.src, True)
        if not self.tree:
            remove(self.src)
            self.write(self.src)
        step.sources.append(self.see()[1])

    def do_replace(self, _, step):
        remove(self.home + "/old")
        os.rename(self.src, self.home + "/old")
        self.make_source()
        step.exchanged = True
        step.sources.append(self.see()[1])

    def do_appear(self, _, step):
        """The user makes a file in DST."""
        path = self.dst
        if self.tree:
            path = self.r.choice([self.dst] + self.paths(self.dst, stat.S_IFDIR)) + "/" + self.r.choice(NAMES)
        if not os.path.isdir(os.path.dirname(path)) or os.path.lexists(path):
            return
        self.write(path)
        self.clock += 10**18
        os.utime(path, ns=(self.clock, self.clock))  # newer than SRC
        self.clock -= 10**18
        name = os.path.relpath(path, self.dst if self.tree else self.at)
        if name in step.before:
            step.moved[name] = step.before[name]
        step.before[name] = self.see()[0][name]
        step.touched.add(name)

    # What must be true afterwards.

    def fail(self, kind, text):
        failed[kind] += 1
        self.found.append("walk: FAILED (%s): %s:%d: %s" % (kind, self.seed, self.number, text))

    def see(self):
        """The snapshots of DST and SRC, and what fcopy has left."""
        dst, src = snapshot(self.dst), snapshot(self.src)
        if not self.tree:
            dst = {p: e for p, e in snapshot(self.at).items() if p}
            src = {"d": src[""]}
        src = {path: self.storage.keep(e) for path, e in src.items()}
        return dst, src, left(self.at)

    def step(self):
        before, src, leftovers = self.see()
        aside = put_aside(self.at, self.dst)
        what = self.r.random()
        if what < .1:
            return self.clean(before, src)
        if what > (.9 if self.tree else .7):
            return self.http()
        if what > (.8 if self.tree else .55) or self.job and what > .6:
            return self.shards()
        words, kind, fault = self.draw_words(), "plain", None
        step = Step([Command(words, self.tree)], before, src)
        step.aside, step.receipt = aside, self.has_receipt()
        step.old_inodes = inodes(self.at, leftovers)
        if what < .2:
            step.commands.append(Command(self.draw_words(), self.tree))
            step.backs_up = any(c.backup for c in step.commands)
            running = [self.start(c.words + [self.src, self.dst], None) for c in step.commands]
            step.ended, kind = [self.wait(p) for p in running], "two"
        elif what < .45 and stops.CALLS:
            kind = self.run_stopped(words, step) or kind
        else:
            fault = self.draw_fault() if what < .75 else None
            step.ended = [self.wait(self.start(words + [self.src, self.dst], fault))]
            kind = "fault" if fault else kind
            step.silenced = bool(fault) and self.silenced()
        if -signal.SIGKILL in [s for s, _ in step.ended] or kind != "second" and 137 in [s for s, _ in step.ended]:
            kind = "kill"
        for status, _ in step.ended:
            self.count(kind, status)
        self.judge(step, kind, before, leftovers)
        return None

    def count(self, kind, status):
        counts["%s %s" % (kind, status)] += 1

    def silenced(self):
        """Did the injected call write to standard error?"""
        with open(self.home + "/trace", errors="replace") as f:
            return any(re.search(r"\bwrite\(2, .*INJECTED", line) for line in f)

    def clean(self, before, src):
        """Everything that is not in use goes, apart from temporary files, which have no lock."""
        status, _ = self.wait(self.start(["--clean", self.at, "-f"], None))
        counts["clean"] += 1
        there = os.listdir(self.at)
        kept = [n for n in there if n.endswith(".fcopy-part") or n.startswith(".fcopy-") and os.path.isdir(os.path.join(self.at, n))]
        if status != 0 or kept and not (self.job and self.job.began and kept == ["d.fcopy-part"]):
            self.fail("other", "--clean: status %d, and there is %s" % (status, kept))
        if self.see()[:2] != (before, src):
            self.fail("lost", "--clean changed DST or SRC")

    def judge(self, step, kind, before, leftovers):
        after, src_after, now = self.see()
        step.after = after or {}
        text = "".join(err for _, err in step.ended)
        for status, err in step.ended:
            if status not in (0, 1, 2, 137) and not (status == 127 and kind == "fault"):  # the loader failed
                self.fail("crashed", "status %d: %s" % (status, err))
        if src_after != (step.seen or step.sources[-1]):
            self.fail("lost", "SRC changed")
        for at, want in self.snapshots.items():
            if {p: e[:6] for p, e in want.items()} != {p: e[:6] for p, e in (snapshot(at) or {}).items()}:
                self.fail("lost", "%s changed" % at)
        step.torn = kind == "kill" and before is None and "renamedir" in (self.storage.options or "")
        # A mirror flushes, and removes its marker, when it has removed everything else.
        failed_entries = all(status in (1, 2) for status, _ in step.ended) and \
            not any(w in text for w in ("sync", "unlinkat", "remove", "rmdir", ".fcopy-mirror"))
        for what in step.losses(failed_entries)[:3]:
            self.fail("lost", what)
        if kind == "kill":
            return
        self.judge_left(step, text, leftovers, now)
        if kind in ("plain", "fault"):
            self.judge_one(step, step.ended[0][0], text, kind == "fault", before, leftovers)
        elif all(c.update in (None, "changed") for c in step.commands) and all(s == 0 for s, _ in step.ended) and \
                not (self.edited and "d.fcopy-part" in leftovers):
            for what in step.differences()[:3]:
                self.fail("wrong", "%s: status 0, but %s" % (kind, what))
        self.edited = False

    def judge_left(self, step, text, leftovers, now):
        """After an end by itself: everything of fcopy's own that was not there is named, unless a message could not be written."""
        if step.silenced:
            return
        statuses = [s for s, _ in step.ended]
        for path in sorted(now - leftovers):
            if os.path.basename(path) == ".fcopy-mirror" and any(statuses):
                continue  # the next mirror needs it
            if inodes(self.at, [path]) & step.old_inodes:
                continue  # a killed copy has left it: what could not be removed has another drawn name
            if os.path.basename(path) not in text and "removal of the hidden files that showed what can be renamed" not in text:
                self.fail("other", "%s was left, and no message names it: %s" % (path, text.strip()))
        if self.tree and not step.existed and not step.touched and step.after and 0 not in statuses and \
                not any(word in text for word in ("committed despite", "incomplete", "syncfs", "fsync", "not atomic")):
            self.fail("other", "DST is there after a failure, and no message says it: %s" % text.strip())

    def judge_one(self, step, status, text, fault, before, leftovers):
        command, src = step.commands[0], step.sources[0]
        kept = {os.path.relpath(p, "d") for p in leftovers if p.startswith("d/") and not p.endswith("/.fcopy-mirror")}
        expected = Expected(command, before, src, kept, self.storage)
        part = "d.fcopy-part" in leftovers and not step.receipt
        if command.resume and before is None and "renamedir" in (self.storage.options or ""):
            expected.fails.append("")  # refused there
        certain = expected.certain and not fault and not part and not (command.resume and before is not None)
        if certain and (status != 0) != bool(expected.fails):
            self.fail("other", "status %d, expected failures %s: %s" % (status, expected.fails, text.strip()))
        if status != 0 or not expected.certain:
            return
        if expected.fails:
            if not fault:
                self.fail("wrong", "status 0, although these should fail: %s" % expected.fails)
            return
        if command.resume and command.tree and before is not None:
            if self.edited and part:
                return  # the copy was complete, and is in use
            expected.result, expected.copied = {**before, **src}, set(src)
        expected.told_links = "copied and not linked: " in text or command.resume and "is the complete copy, but lacks hard links" in text
        told = "warning" in text or "not compared, because DST cannot store them" in text  # the fault may hit the probe of it
        for what in expected.differences(step.after, fault and told)[:3]:
            self.fail("wrong", "status 0, but %s (%s)" % (what, text.strip()[:200]))

    def walk(self):
        try:
            if self.storage.at:
                self.log.append("# m is faultfs -o " + self.storage.options)
            self.make_source()
            for _ in range(self.r.randint(2, 5)):
                self.step()
                if self.found:
                    break
                self.between()
                self.abort_job()
        finally:
            self.storage.end()
        remove(self.home)


def run(arguments):
    """One walk, in a process that may have done others. Returns what failed, what was run, and the text to print of it; None if the
    time is over."""
    seed, number, home, fcopy, only, end = arguments
    if time.monotonic() > end:
        return None
    failed.clear()
    counts.clear()
    walk = Walk(fcopy, number, seed, home)
    walk.walk()
    lines = walk.found + ["    " + line for line in walk.log if walk.found or only]
    return failed, counts, "".join(line.replace(walk.home + "/", "") + "\n" for line in lines)


def main():
    name, fcopy, count, seed = sys.argv[1:5]
    homes, tried, all_failed, all_counts = sys.argv[5:], 0, collections.Counter(), collections.Counter()
    seed, _, only = seed.partition(":")
    os.umask(0o022)
    end = time.monotonic() + float(os.environ.get("RANDOM_SECONDS", "1e9"))
    numbers = [int(only)] if only else range(int(count))
    with multiprocessing.Pool(AT_ONCE) as pool:
        walks = ((seed, number, homes[number % len(homes)], fcopy, bool(only), end) for number in numbers)
        for one_failed, one_counts, text in filter(None, pool.imap_unordered(run, walks)):
            tried += 1
            all_failed += one_failed
            all_counts += one_counts
            print(text, end="", flush=True)
    print("%s: %s" % (name, ", ".join("%s %d" % c for c in sorted(all_counts.items()))))
    print("%s: %d tried, %s" % (name, tried, ", ".join("%d %s" % (all_failed[k], k) for k in OUTCOMES)))
    sys.exit(1 if all_failed else 0 if tried else 77)


main()
