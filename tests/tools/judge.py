# SPDX-License-Identifier: MIT
"""What must hold after a run of exchange.py."""
import hashlib
import os
import stat

USER = 65534
SECRET, SOURCE = b"SECRET", b"SOURCE"  # of root's files; of what is copied
PROP, AWAY = ".x-prop", ".x-away"


def write(path, data, mode):
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


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


class Judge:
    """Of a world: note() remembers what there is before the copy, faults() looks afterwards."""

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
        made = (self.dst + ".fcopy-part", self.home + "/.fcopy-", self.output)  # by fcopy
        for at, directories, files in os.walk(self.top):
            for name in [""] + directories + files:
                path = os.path.join(at, name) if name else at
                if path.startswith(made):
                    continue
                fd = os.open(path, os.O_PATH | os.O_NOFOLLOW)
                state, links = self._state(fd)
                st = os.fstat(fd)
                if (st.st_dev, st.st_ino) in self.before:
                    os.close(fd)
                    continue
                # The copy and the exchange change what is in these, and --inplace writes a file.
                copied = at == self.top or path == self.home or path == self.dst or \
                    path.startswith((self.dst + "/", self.home + "/earlier"))
                if copied and os.path.basename(path) != PROP and PROP + "/" not in path:
                    state.pop("entries", None)
                    if self.setup.startswith("mirror"):  # corrects the attributes of its copies
                        state.pop("mode")
                if path == {"file-inplace": self.home + "/f",
                            "merge-inplace": self.dst + "/sub/r"}.get(self.scenario):
                    state.pop("content", None)
                self.before[st.st_dev, st.st_ino] = (fd, path, state, links)

    def faults(self, status):
        """What must not have happened; empty if all is well."""
        found = []
        if status not in (0, 1, 2):  # 2: refused, as a DST that exists and should be new
            found.append("exit status %d" % status)
        for fd, path, state, links in self.before.values():
            now, now_links = self._state(fd)
            name = os.path.relpath(path, self.top)
            for what, value in state.items():
                if now.get(what) != value:
                    found.append("%s of %s changed to %s" % (what, name, now.get(what)))
            if now_links > links and "entries" not in now and not self._is_copy(fd, now_links) and \
                    not self._is_backup(fd, path, now_links - links):
                found.append("%s got another link" % name)
        found += self._readable()
        if status == 0:
            found += self._differences()
        return found

    def _is_backup(self, fd, path, more):
        """With -b, what had a name in DST gets one other name beside it, and no more, which the
        user may have taken away."""
        if not any(" -b " in command for command in self.commands) or more != 1:
            return False
        for backup in (path + "~", os.path.join(os.path.dirname(path), AWAY)):
            try:
                if os.path.samestat(os.lstat(backup), os.fstat(fd)):
                    return True
            except OSError:
                pass
        return False

    def _is_copy(self, fd, links):
        """Of a mirror: has this inode exactly the names that it has in the source, and perhaps the
        one that the user took away? Of --link-dest: is it of the earlier copy?"""
        if self.setup == "earlier":
            with open("/proc/self/fd/%d" % fd, "rb") as f:
                return f.read().startswith(SOURCE)
        st = os.fstat(fd)
        source, names = None, 0
        for at, _, files in os.walk(self.dst):
            for name in files:
                path = os.path.join(at, name)
                if not os.path.samestat(os.lstat(path), st):
                    continue
                names += 1
                if name == AWAY:
                    continue
                try:
                    same = os.lstat(os.path.join(self.src, "tree", os.path.relpath(path, self.dst)))
                except OSError:
                    return False
                if source and not os.path.samestat(same, source):
                    return False
                source = same
        return self.setup.startswith("mirror") and source is not None and names == links

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
        if self.scenario.startswith(("file-", "shard-file")):
            pairs = [("file", self.home + "/f")]
        elif self.scenario == "singles":
            pairs = [("tree/sub/p", self.home + "/p"), ("tree/sub/l", self.home + "/l"),
                     ("tree/a/f", self.home + "/f"), ("tree/z/k", self.home + "/k")]
        elif self.scenario == "clean":
            return [] if self.victim_path else ["exit 0, but %s is left" % name
                                                for name in os.listdir(self.home)]
        elif self.scenario == "files-from" and self.victim_path:
            return []  # the list says what is copied
        elif self.scenario == "into":
            pairs = [("tree/" + name, os.path.join(self.dst, name))
                     for name in ("a", "m", "sub", "z")]
        elif self.scenario.startswith("parents"):
            words = [w for w in self.commands[0].split() if w.startswith("tree/")]
            pairs = [(word, os.path.join(self.home, word)) for word in words]
        else:
            pairs = [("tree", self.dst)]
        return ["exit 0, but %s" % d for src, dst in pairs
                for d in self._compare(os.path.join(self.src, src), dst)]

    def _compare(self, src, dst):
        """The differences. What the user has exchanged after it was complete is no difference."""
        found = self._compare_one(src, dst)
        at = self.victim_path
        if found and self.victim_old and (dst == at or dst.startswith(at + "/")):
            found = self._compare_one(src, self.victim_old + dst[len(at):])
        return found

    def _compare_one(self, src, dst):
        name = os.path.relpath(dst, self.top)
        try:
            a, b = os.lstat(src), os.lstat(dst)
        except (FileNotFoundError, NotADirectoryError):
            return ["%s is missing" % name]
        if (a.st_mode, a.st_uid, a.st_gid, a.st_rdev) != (b.st_mode, b.st_uid, b.st_gid, b.st_rdev):
            return ["%s has other attributes" % name]
        # An exchange can leave two copies where the source has two names. These copy only one name,
        # or link it to an earlier copy.
        partial = self.scenario.startswith(("singles", "into", "parents", "link-dest"))
        if not self.victim_path and not partial and a.st_nlink != b.st_nlink and \
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
