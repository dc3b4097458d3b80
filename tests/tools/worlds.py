# SPDX-License-Identifier: MIT
"""The scenarios of exchange.py: what root copies and where to, what the user exchanges, and what
must hold afterwards."""
import hashlib
import os
import platform
import shutil
import signal
import stat
import tempfile

import stops

USER = 65534
SECRET, SOURCE = b"SECRET", b"SOURCE"  # of root's files; of what is copied
TRIES = 30  # seconds that no copy takes

# KIND -> what makes the thing beside the name, as its owner.
KINDS = {
    "file": lambda at: write(at, b"HIS", 0o755),
    "dir": lambda at: (os.mkdir(at), os.chmod(at, 0o777), write(at + "/his", b"HIS", 0o644)),
    "link": lambda at: (write(at + "-other", b"HIS", 0o755), os.link(at + "-other", at)),
    "symlink-file": lambda at: os.symlink(os.path.join(outside_of(at), "secret"), at),
    "symlink-dir": lambda at: os.symlink(outside_of(at), at),
    "root-file": lambda at: write(at, SECRET, 0o600),
    "root-dir": lambda at: (os.mkdir(at, 0o700), write(at + "/s", SECRET, 0o644)),
    "root-empty": lambda at: os.mkdir(at, 0o700),
    "root-fifo": lambda at: os.mkfifo(at, 0o600),
    "nothing": lambda at: None,
}
PROP, AWAY = ".x-prop", ".x-away"

# SCENARIO -> (the function that makes SRC and DST, the commands). {s} is SRC, {h} the user's
# directory.
TREE = "-a -j1 {s}/tree {h}/dst"
SCENARIOS = {
    "new": ("new", [TREE]),
    "merge": ("merge", ["-a -j1 -T {s}/tree {t}/dst"]),
    "merge-named": ("merge", ["-a -j1 -T {s}/tree {t}/dst"]),  # without O_TMPFILE
    "mirror": ("mirror", ["-q --mirror --exclude=.x-* -j1 {s}/tree {t}/dst"]),
    "resume-new": ("new", ["--resume " + TREE]),
    "resume": ("part", ["--resume " + TREE]),
    "shard-tree": ("new", ["--shard=0/2 " + TREE, "--shard=1/2 " + TREE]),
    "file-new": ("new", ["-p {s}/file {h}/f"]),
    "file-old": ("old", ["-p {s}/file {h}/f"]),
    "file-named": ("old", ["-p {s}/file {h}/f"]),  # without O_TMPFILE
    "file-resume": ("old", ["-p --resume {s}/file {h}/f"]),
    "file-inplace": ("old", ["--inplace {s}/file {h}/f"]),
    "shard-file": ("new", ["-p --shard=0/2 {s}/file {h}/f", "-p --shard=1/2 {s}/file {h}/f"]),
    "singles": ("new", ["-a -j1 {s}/tree/sub/p {s}/tree/sub/l {s}/tree/a/f {s}/tree/z/k {h}"]),
}


def is_possible(scenario):
    return not scenario.endswith("-named") or platform.machine() == "x86_64"


def write(path, data, mode):
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


def outside_of(at):
    """Root's private directory, beside the user's: see World."""
    while not os.path.isdir(os.path.join(at, "outside")):
        at = os.path.dirname(at)
    return os.path.join(at, "outside")


def as_user(function):
    """Runs it in a process of the user. Returns its exit status: 0 if nothing was raised."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
            status = function() or 0
        except OSError:
            pass
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def own(path, *names):
    for name in names:
        os.chown(os.path.join(path, name), USER, USER, follow_symlinks=False)


def make_source(top):
    os.mkdir(top, 0o700)
    write(top + "/file", SOURCE * 300000, 0o600)
    tree = top + "/tree"
    for name in ("", "/a", "/m", "/z", "/sub", "/sub/new", "/sub/new/deep", "/sub/old"):
        os.mkdir(tree + name, 0o755)
    os.chmod(tree + "/m", 0o700)
    for name in ("a/f", "sub/n", "sub/r", "sub/new/g", "sub/new/deep/e", "sub/old/h"):
        write(os.path.join(tree, name), SOURCE + name.encode(), 0o600)
    os.link(tree + "/a/f", tree + "/m/f")
    os.link(tree + "/a/f", tree + "/z/k")
    for name in ("sub/p", "sub/new/q"):
        os.mkfifo(os.path.join(tree, name))
        os.chmod(os.path.join(tree, name), 0o4755)
    os.mknod(tree + "/sub/c", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.symlink("nowhere", tree + "/sub/l")
    os.symlink("nowhere", tree + "/sub/lo")
    own(tree, "a", "z", "sub", "sub/new", "sub/old", "sub/l", "sub/lo")


def make_merged(top):
    for name in ("", "/a", "/m", "/z", "/sub", "/sub/old"):
        os.mkdir(top + name, 0o755)
    os.chmod(top + "/m", 0o700)
    write(top + "/sub/r", b"OLD", 0o600)
    os.symlink("old", top + "/sub/lo")
    own(top, "a", "z", "sub", "sub/old", "sub/lo")


class World:
    """A directory: src is root's, home and what is in dst the user's, outside is private to root."""

    def __init__(self, fcopy, scenario):
        self.fcopy, self.scenario = fcopy, scenario
        self.setup, self.commands = SCENARIOS[scenario]
        self.victim_path = self.victim_old = None
        self.before = {}

    def __enter__(self):
        self.top = tempfile.mkdtemp(prefix="exchange.", dir=os.environ.get("FCOPY_EXCHANGE_DIR"))
        os.chmod(self.top, 0o755)
        self.src, self.home = self.top + "/src", self.top + "/home"
        merges = self.setup in ("merge", "mirror")
        self.dst = self.top + "/dst" if merges else self.home + "/dst"
        self.output = self.top + "/output"
        os.mkdir(self.top + "/outside", 0o700)
        write(self.top + "/outside/secret", SECRET, 0o600)
        make_source(self.src)
        os.mkdir(self.home, 0o755)
        own(self.top, "home")
        if merges:
            make_merged(self.dst)
        if self.setup == "mirror":
            self._mirror()
        elif self.setup == "old":
            write(self.home + "/f", b"OLD", 0o600)
        elif self.setup == "part":
            self._leave_part()
        return self

    def __exit__(self, *_):
        for fd, *_ in self.before.values():
            os.close(fd)
        shutil.rmtree(self.top)

    def _mirror(self):
        """Unchanged entries, some with other attributes, and more entries than the source has."""
        self._run(self.commands[0], lambda call, moment: None)
        sub = self.dst + "/sub"
        os.chmod(sub + "/n", 0o640)
        os.chmod(sub + "/p", 0o600)
        os.rename(sub + "/c", sub + "/x")
        os.makedirs(sub + "/new/xd/y")
        write(sub + "/new/xd/y/z", b"HIS", 0o644)
        own(sub, "x", "new/xd", "new/xd/y", "new/xd/y/z")

    def _leave_part(self):
        created = []

        def kill(call, moment):
            creates = call.name == "openat" and call.args[2] & os.O_CREAT
            if moment == "exit" and (creates or call.name == "linkat"):
                created.append(call)
                if len(created) == 5:
                    os.kill(call.pid, signal.SIGKILL)

        if self._run(self.commands[0], kill) != -signal.SIGKILL:
            raise RuntimeError("the copy that was to be killed has ended")

    def _run(self, command, on_stop):
        words = command.format(s=self.src, h=self.home, t=self.top).split()
        named = self.scenario.endswith("-named")
        return stops.run([self.fcopy] + words, on_stop, "/", self.output, not named, TRIES)

    def victim(self, path):
        """The innermost component of the path that the user could exchange, or None."""
        if not path.startswith((self.home + "/", self.dst + "/")):
            return None
        found, at = None, self.top
        for name in os.path.relpath(path, self.top).split("/"):
            try:
                st = os.stat(at, follow_symlinks=False)
            except OSError:
                return found
            his = st.st_uid == USER
            if not stat.S_ISDIR(st.st_mode) or not st.st_mode & (0o100 if his else 0o001):
                return found
            at = os.path.join(at, name)
            if his and st.st_mode & 0o200 and name not in (PROP, AWAY):
                found = at
        return found

    def prepare(self, name, kind):
        """Makes the thing beside the name, as root or as the user."""
        at = os.path.join(self.top, os.path.dirname(name), PROP)
        root = kind.startswith("root-")
        if root:
            KINDS[kind](at)
        elif as_user(lambda: KINDS[kind](at) and 0) != 0:
            raise RuntimeError("%s could not be made" % at)

    def exchange(self, victim, kind):
        """The user exchanges the name now. Returns what was done, or None if it failed."""
        directory = os.path.dirname(victim)
        prop, away = os.path.join(directory, PROP), os.path.join(directory, AWAY)
        there = os.path.lexists(victim)
        if kind == "nothing" and not there:
            return "absent"
        new = os.lstat(prop).st_ino if kind != "nothing" else None

        def rename():
            if there:
                os.rename(victim, away)
            if new:
                os.rename(prop, victim)

        if as_user(rename) != 0:
            return None
        now = os.lstat(victim).st_ino if os.path.lexists(victim) else None
        if now != new:
            return None
        self.victim_path, self.victim_old = victim, away if there else None
        return "inode %s became %s" % (os.lstat(away).st_ino if there else "none", new or "none")

    def copy(self, on_stop):
        """Runs the commands. Returns the last exit status, or the first that is not 0."""
        if not self.before:
            self.note()
        status = 0
        for command in self.commands:
            status = self._run(command, on_stop)
            if status != 0:
                break
        return status

    def last_line(self):
        with open(self.output, "rb") as f:
            lines = f.read().decode(errors="replace").replace(self.top + "/", "").splitlines()
        return " (%s)" % lines[0] if lines else ""

    def _state(self, fd):
        """Everything of an inode that fcopy could change."""
        at = "/proc/self/fd/%d" % fd
        st = os.fstat(fd)
        state = {"owner": (st.st_uid, st.st_gid), "mode": oct(st.st_mode)}
        try:
            state["attributes"] = {n: os.getxattr(at, n) for n in os.listxattr(at)}
        except OSError:
            pass
        if stat.S_ISREG(st.st_mode):
            with open(at, "rb") as f:
                state["content"] = hashlib.sha1(f.read()).hexdigest()
        elif stat.S_ISDIR(st.st_mode):
            state["entries"] = sorted(os.listdir(at + "/"))
        return state, st.st_nlink

    def note(self):
        """Remembers, and holds open, each inode that exists before the copy."""
        part = self.dst + ".fcopy-part"  # fcopy made it
        for at, directories, files in os.walk(self.top):
            if at == part or at.startswith((part + "/", self.top + "/output")):
                continue
            for name in [""] + directories + files:
                path = os.path.join(at, name) if name else at
                if path == self.output or path.startswith(part):
                    continue
                fd = os.open(path, os.O_PATH | os.O_NOFOLLOW)
                state, links = self._state(fd)
                st = os.fstat(fd)
                if (st.st_dev, st.st_ino) in self.before:
                    os.close(fd)
                    continue
                # The copy and the exchange change what is in these, and --inplace writes a file.
                copied = at == self.top or path == self.home or path == self.dst or \
                    path.startswith(self.dst + "/")
                if copied and os.path.basename(path) != PROP and PROP + "/" not in path:
                    state.pop("entries", None)
                    if self.setup == "mirror":  # corrects the attributes of its copies
                        state.pop("mode")
                if self.scenario == "file-inplace" and path == self.home + "/f":
                    state.pop("content", None)
                self.before[st.st_dev, st.st_ino] = (fd, path, state, links)

    def faults(self, status):
        """What must not have happened; empty if all is well."""
        found = []
        if status not in (0, 1):
            found.append("exit status %d" % status)
        for fd, path, state, links in self.before.values():
            now, now_links = self._state(fd)
            name = os.path.relpath(path, self.top)
            for what, value in state.items():
                if now.get(what) != value:
                    found.append("%s of %s changed to %s" % (what, name, now.get(what)))
            if now_links > links and "entries" not in now:
                found.append("%s got another link" % name)
        found += self._readable()
        if status == 0:
            found += self._differences()
        return found

    def _readable(self):
        """What the user can read and should not."""
        log = self.top + "/readable"

        def look():
            with open(log, "w", encoding="utf-8") as out:
                for at, _, files in os.walk(self.top):
                    for name in files:
                        path = os.path.join(at, name)
                        try:
                            if not stat.S_ISREG(os.lstat(path).st_mode):
                                continue
                            with open(path, "rb") as f:
                                data = f.read(64)
                        except OSError:
                            continue
                        if SECRET in data or SOURCE in data:
                            out.write("the user can read %s\n" % os.path.relpath(path, self.top))

        write(log, b"", 0o600)
        os.chown(log, USER, USER)
        if as_user(look) != 0:
            raise RuntimeError("the user cannot look")
        with open(log, encoding="utf-8") as f:
            return f.read().splitlines()

    def _differences(self):
        if self.scenario.startswith(("file", "shard-file")):
            pairs = [("file", self.home + "/f")]
        elif self.scenario == "singles":
            pairs = [("tree/sub/p", self.home + "/p"), ("tree/sub/l", self.home + "/l"),
                     ("tree/a/f", self.home + "/f"), ("tree/z/k", self.home + "/k")]
        else:
            pairs = [("tree", self.dst)]
        return ["exit 0, but %s" % d for src, dst in pairs
                for d in self._compare(os.path.join(self.src, src), dst)]

    def _compare(self, src, dst):
        """The differences. What the user has exchanged after it was complete is no difference."""
        found = self._compare_one(src, dst)
        if found and dst == self.victim_path and self.victim_old:
            found = self._compare_one(src, self.victim_old)
        return found

    def _compare_one(self, src, dst):
        name = os.path.relpath(dst, self.top)
        try:
            a, b = os.lstat(src), os.lstat(dst)
        except FileNotFoundError:
            return ["%s is missing" % name]
        if (a.st_mode, a.st_uid, a.st_gid, a.st_rdev) != (b.st_mode, b.st_uid, b.st_gid, b.st_rdev):
            return ["%s has other attributes" % name]
        # An exchange can leave two copies where the source has two names.
        if not self.victim_path and self.scenario != "singles" and a.st_nlink != b.st_nlink and \
                not stat.S_ISDIR(a.st_mode):
            return ["%s has other links" % name]
        if stat.S_ISLNK(a.st_mode) and os.readlink(src) != os.readlink(dst):
            return ["%s has another target" % name]
        if stat.S_ISREG(a.st_mode):
            with open(src, "rb") as f, open(dst, "rb") as g:
                return [] if f.read() == g.read() else ["%s has other bytes" % name]
        if not stat.S_ISDIR(a.st_mode):
            return []
        return [d for entry in sorted(os.listdir(src))
                for d in self._compare(os.path.join(src, entry), os.path.join(dst, entry))]
