# SPDX-License-Identifier: MIT
"""The scenarios of exchange.py: what root copies and where to, and what the user exchanges."""
import os
import platform
import shutil
import signal
import stat
import tempfile

import stops
from judge import AWAY, PROP, SECRET, SOURCE, USER, Judge, as_user, write

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

# SCENARIO -> (how SRC and DST are made, the commands). {s} is SRC and the working directory, {h} the
# user's directory, {t} the one above, in which no user but root can exchange names.
TREE = "-a -j1 {s}/tree {h}/dst"
SCENARIOS = {
    "new": ("new", [TREE]),
    "merge": ("merge", ["-a -j1 -T {s}/tree {t}/dst"]),
    "merge-named": ("merge", ["-a -j1 -T {s}/tree {t}/dst"]),  # without O_TMPFILE
    "backup": ("merge", ["-a -b -j1 -T {s}/tree {t}/dst"]),
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
    "new-inplace": ("new", ["--inplace " + TREE]),
    "merge-inplace": ("merge", ["--inplace -a -j1 -T {s}/tree {t}/dst"]),
    "mirror-his": ("mirror-his", ["-q --mirror --exclude=.x-* -j1 {s}/tree {h}/dst"]),
    "into": ("merge-his", ["-a -j1 -t {h}/dst {s}/tree/a {s}/tree/m {s}/tree/sub {s}/tree/z"]),
    "parents": ("new", ["-a -j1 --parents tree/sub/new {h}"]),
    "parents-some": ("tree", ["-r -j1 --parents tree/sub/new/g {h}"]),
    "parents-all": ("tree/sub", ["-a -j1 --parents tree/sub/new {h}"]),
    "sweep": ("hidden", [TREE]),
    "clean": ("hidden-part", ["--clean -f {h}"]),
    "link-dest": ("earlier", ["-a -j1 -T --link-dest={h}/earlier {s}/tree {t}/dst"]),
    "files-from": ("list", ["-a -j1 -T --files-from={h}/list {s}/tree {t}/dst"]),
    "log": ("outside", ["--log-file={h}/log -a -j1 -T {s}/tree {t}/dst"]),
    "json": ("outside", ["--json={h}/json -a -j1 -T {s}/tree {t}/dst"]),
    "singles": ("new", ["-a -j1 {s}/tree/sub/p {s}/tree/sub/l {s}/tree/a/f {s}/tree/z/k {h}"]),
}


def is_possible(scenario):
    return not scenario.endswith("-named") or platform.machine() == "x86_64"


def outside_of(at):
    """Root's private directory, beside the user's: see World."""
    while not os.path.isdir(os.path.join(at, "outside")):
        at = os.path.dirname(at)
    return os.path.join(at, "outside")


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


class World(Judge):
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
        merges = self.setup in ("merge", "mirror", "merge-his", "mirror-his")
        apart = self.setup in ("merge", "mirror", "earlier", "list", "outside")
        self.dst = (self.top if apart else self.home) + "/dst"
        if self.scenario.startswith("parents"):
            self.dst = self.home + "/tree"
        self.output = self.top + "/output"
        os.mkdir(self.top + "/outside", 0o700)
        write(self.top + "/outside/secret", SECRET, 0o600)
        make_source(self.src)
        os.mkdir(self.home, 0o755)
        own(self.top, "home")
        if merges:
            make_merged(self.dst)
        if self.setup.endswith("-his"):
            own(self.home, "dst")
        if self.setup.startswith("mirror"):
            self._mirror()
        elif self.setup == "old":
            write(self.home + "/f", b"OLD", 0o600)
        elif self.setup.startswith("tree"):
            os.makedirs(os.path.join(self.home, self.setup))
            own(self.home, "tree", self.setup)
        elif self.setup == "part":
            self._leave_part(self.commands[0])
        elif self.setup.startswith("hidden"):
            self._leave_part(TREE)
            if self.setup == "hidden-part":
                self._leave_part("--resume " + TREE)
        elif self.setup == "earlier":
            self._run("-a -T {s}/tree {h}/earlier", lambda call, moment: None)
            own(self.home, "earlier")
        elif self.setup == "list":
            tree = self.src + "/tree"
            names = [os.path.relpath(os.path.join(at, name), tree)
                     for at, directories, files in os.walk(tree) for name in directories + files]
            write(self.home + "/list", "\n".join(names).encode(), 0o644)
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

    def _leave_part(self, command):
        created = []

        def kill(call, moment):
            creates = call.name == "openat" and call.args[2] & os.O_CREAT
            if moment == "exit" and (creates or call.name == "linkat"):
                created.append(call)
                if len(created) == 5:
                    os.kill(call.pid, signal.SIGKILL)

        if self._run(command, kill) != -signal.SIGKILL:
            raise RuntimeError("the copy that was to be killed has ended")

    def _run(self, command, on_stop):
        words = command.format(s=self.src, h=self.home, t=self.top).split()
        named = self.scenario.endswith("-named")
        return stops.run([self.fcopy] + words, on_stop, self.src, self.output, not named, TRIES)

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
