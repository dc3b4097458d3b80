# SPDX-License-Identifier: MIT
"""The oracle of random_walk.py: what DST must be after a command, and what the command may have changed.

A snapshot is {path: Entry} of a tree; the tree itself has the path "". If DST is a file, the paths are names in its directory, and
SRC has its name. Names that fcopy makes for itself are not in a snapshot: left() lists them."""
import collections
import hashlib
import os
import re
import stat

Entry = collections.namedtuple("Entry", "kind data size mode owner time inode links xattrs", defaults=[()])
OURS = re.compile(r"^\.fcopy-|\.fcopy-part$")
BACKUP = re.compile(r"^(.+?)(?:~|\.~[0-9]+~)$", re.DOTALL)


def entry(path):
    st = os.lstat(path)
    kind, data = stat.S_IFMT(st.st_mode), None
    if kind == stat.S_IFREG:
        with open(path, "rb") as f:
            data = hashlib.sha1(f.read()).hexdigest()
    elif kind == stat.S_IFLNK:
        data = os.readlink(path)
    return Entry(kind, data, st.st_size, st.st_mode & 0o7777, (st.st_uid, st.st_gid), st.st_mtime_ns, (st.st_dev, st.st_ino),
                 st.st_nlink, attributes(path))


def attributes(path):
    try:
        names = sorted(n for n in os.listxattr(path, follow_symlinks=False) if n.startswith("user."))
        return tuple((n, os.getxattr(path, n, follow_symlinks=False)) for n in names)
    except OSError:
        return ()  # the file system has none


def snapshot(top):
    """None if there is nothing."""
    if not os.path.lexists(top):
        return None
    seen = {"": entry(top)}
    for at, directories, files in os.walk(top) if is_directory(seen[""]) else ():
        directories[:] = [n for n in directories if not OURS.search(n)]
        for name in directories + [n for n in files if not OURS.search(n)]:
            path = os.path.join(at, name)
            seen[os.path.relpath(path, top)] = entry(path)
    return seen


def left(home):
    """The paths below home that fcopy made for itself, and nothing below these."""
    found = set()
    for at, directories, files in os.walk(home):
        found.update(os.path.relpath(os.path.join(at, n), home) for n in directories + files if OURS.search(n))
        directories[:] = [n for n in directories if not OURS.search(n)]
    return found


def inodes(home, paths):
    return {(st.st_dev, st.st_ino) for st in (os.lstat(os.path.join(home, path)) for path in paths)}


def put_aside(home, dst):
    """What a killed mirror was replacing: {path below dst: Entry}. The next mirror may rename it back."""
    found = {}
    for path in left(home):
        old = os.path.join(home, path, "old")
        for name in os.listdir(old) if os.path.basename(path).startswith(".fcopy-") and os.path.isdir(old) else ():
            at = os.path.relpath(os.path.join(home, os.path.dirname(path), name), dst)
            found.update((os.path.normpath(os.path.join(at, p)), e) for p, e in snapshot(os.path.join(old, name)).items())
    return found


def is_directory(e):
    return e is not None and e.kind == stat.S_IFDIR


def is_file(e):
    return e is not None and e.kind == stat.S_IFREG


def same(a, b, attributes=False):
    """Has b the type, the bytes and the target of a, and the attributes that -a copies?"""
    if a is None or b is None or (a.kind, a.data) != (b.kind, b.data):
        return False
    return not attributes or (a.time, a.owner) == (b.time, b.owner) and (a.kind == stat.S_IFLNK or a.mode in (b.mode, None))


def backed_up(path):
    """The path of which this could be the backup, or None."""
    original = BACKUP.match(os.path.basename(path))
    return os.path.join(os.path.dirname(path), original[1]) if original else None


def is_backup_name(path, of):
    while path and path != of:
        path = backed_up(path)
    return path == of


def is_backup(path, now, before):
    """Is this what had the name before, or its backup?"""
    original = backed_up(path)
    return original is not None and (same(before.get(original), now) or is_backup(original, now, before))


def parents(path):
    while path:
        path = os.path.dirname(path)
        yield path


def below(path, top):
    return top == "" or path == top or path.startswith(top + "/")


class Command:
    """What is asked of fcopy, apart from SRC and DST."""

    def __init__(self, words, tree):
        self.words, self.tree = words, tree
        self.mirror = "--mirror" in words
        self.archive = self.mirror or "-aT" in words
        self.attributes = self.archive or "-p" in words
        self.resume = "--resume" in words
        self.force = "-f" in words
        self.empties = "--max-delete=1000" in words
        self.backup = "-b" in words or "--backup=numbered" in words
        self.link_dest = any(w.startswith("--link-dest") for w in words)
        self.update = "none" if "-n" in words else "older" if "-u" in words else \
            "changed" if self.mirror or "--update=changed" in words else None


class Expected:
    """What status 0 means. certain: the status must be 0 if fails is empty, and not 0 if it is not."""

    def __init__(self, command, before, src, kept, storage):
        self.storage, self.command, self.before, self.src, self.kept = storage, command, before or {}, src, kept
        self.certain, self.fails = True, []
        self.result = dict(self.before)  # path -> an entry of SRC, or an old one
        self.copied = set()  # paths that must have the attributes of SRC
        self.told_links = False  # a warning says that hard links are missing
        if src is None or is_directory(src.get("")) != command.tree:
            self.certain = False  # nothing to copy, or of another type
            return
        for path in sorted(src):
            if not any(p in self.fails for p in parents(path)):
                self._decide(path)
        if command.mirror and command.tree and not self.fails:
            self._delete()

    def _fail(self, path):
        self.fails.append(path)

    def _copy(self, path):
        if self.src[path].kind in self.storage.lacks:
            self._fail(path)
        self.result[path] = self.src[path]
        self.copied.add(path)

    def _remove(self, path):
        if any(below(k, path) for k in self.kept):
            self.certain = False  # it has a name of fcopy's own, and stays
        for p in [p for p in self.result if below(p, path)]:
            del self.result[p]

    def _decide(self, path):
        """One entry of SRC, whose directory in DST exists."""
        new, old, c = self.src[path], self.result.get(path), self.command
        if path in self.copied:
            self.certain = False
        if old is None:
            self._copy(path)
        elif is_directory(new) and is_directory(old):
            self._copy(path)
            if c.update in ("none", "older"):
                self.copied.discard(path)
        elif is_directory(new) or is_directory(old):
            if c.mirror and path:
                self._remove(path)
                self._copy(path)
            elif c.update in ("none", "older") and is_directory(new):
                self.certain = False
                self._fail(path)
            elif c.update == "none" or c.update == "older" and new.time <= old.time:
                pass
            else:
                self._fail(path)
        elif c.update == "none" or c.update == "older" and new.time <= old.time:
            if c.update == "older" and is_file(new) and old.kind == stat.S_IFLNK:
                self.certain = False  # cp(1) asks for the time of what the symlink leads to, and fails if it leads nowhere
        else:
            self._replace(path, new, old)

    def _replace(self, path, new, old):
        c = self.command
        if c.update == "older":
            self.certain = self.certain and old.links == 1
        if not c.archive and is_file(old) and old.links > 1 and not c.force and not c.backup:
            self._fail(path)
            self.certain = is_file(new) and self.certain  # others replace the name by a rename, and write to no file
        elif is_file(new) and not is_file(old) and not c.mirror and not c.backup:
            self._fail(path)  # a dangling symlink, or a FIFO
            self.certain = c.update is None
        else:
            if not is_file(new) and not c.archive or not c.mirror and c.update == "changed" and new.kind != old.kind:
                self.certain = False
            if c.backup and any(is_directory(e) and is_backup_name(p, path) for p, e in self.before.items()):
                self.certain = False  # no backup replaces a directory
            self._copy(path)

    def _delete(self):
        if len(self.src) == 1 and not self.command.empties and len(self.before) > 1:
            self.certain = False
            return
        for path in sorted(self.before, reverse=True):
            if path not in self.src and path in self.result:
                if any(below(k, path) for k in self.kept):
                    continue  # holds a name of fcopy's own
                del self.result[path]

    def differences(self, after, lenient):
        """After status 0. lenient: a warning said that something could not be kept."""
        after, found = after or {}, []
        for path in sorted(set(self.result) | set(after)):
            want, now = self.result.get(path), after.get(path)
            if want is None:
                if not self.command.backup or not is_backup(path, now, self.before):
                    found.append("%r should not exist" % path)
            elif now is None:
                found.append("%r is missing" % path)
            elif self.command.backup and path not in self.copied and is_backup(path, now, self.before):
                pass  # a simple backup replaces the one before
            elif not same(want, now):
                found.append("%r is not what it should be" % path)
            elif path in self.copied and self.command.attributes and not lenient and not same(want, now, True):
                found.append("%r has other attributes: %s, not %s" % (path, now, want))
            elif path in self.copied and self.command.archive and not lenient and want.xattrs != now.xattrs:
                found.append("%r has the extended attributes %s, not %s" % (path, now.xattrs, want.xattrs))
        return found + ([] if lenient or self.told_links or not self.storage.links else self._links(after))

    def _links(self, after):
        if not self.command.archive or self.command.update in ("none", "older"):
            return []
        names = {}
        for path in self.copied:
            if not is_directory(self.src[path]):
                names.setdefault(self.src[path].inode, []).append(path)
        return ["%r and %r are no hard links" % (group[0], p) for group in names.values() for p in group[1:]
                if p in after and group[0] in after and after[p].inode != after[group[0]].inode]


def backups(path, tree):
    """What may be a backup of this path: PATH~, and PATH~~ if SRC has PATH~, whether that was copied or not."""
    return [e for p, e in tree.items() if p != path and is_backup_name(p, path)]


class Step:
    """What is known of one or two commands on one DST."""

    def __init__(self, commands, before, src):
        self.commands, self.before, self.sources = commands, dict(before or {}), [src]
        self.existed = before is not None
        self.exchanged = False  # SRC was replaced as a whole while a command ran
        self.touched = set()  # paths that the user made in DST while a command ran
        self.moved = {}  # what such a path had before: the command has moved it to its backup
        self.after, self.ended = {}, []
        self.backs_up = any(c.backup for c in commands)
        self.aside = {}  # what a killed mirror has put aside before
        self.old_inodes = set()  # what killed copies have left before
        self.silenced = False  # a message could not be written
        self.receipt = False  # the part is the receipt of a job that has committed, and in nobody's way
        self.seen = None  # SRC, if its bytes came by HTTP
        self.torn = False  # it was killed while it wrote a new tree where no directory can be renamed

    def whole(self, path, now):
        """Is it an entry of SRC?"""
        return any(same(src.get(path), now) for src in self.sources)

    def begun(self, path, now):
        """May it be the beginning of a file of SRC?"""
        return self.torn and is_file(now) and any(is_file(src.get(path)) and now.size <= src[path].size for src in self.sources)

    def old(self, path, now):
        """Is it what a backup would have?"""
        made = self.sources if len(self.commands) > 1 else []
        return self.backs_up and any(is_backup(path, now, tree) for tree in [self.before, self.moved] + made)

    def in_the_way(self, path):
        """Has SRC another type here, or above it?"""
        for p in [path] + list(parents(path)):
            for src in self.sources:
                if p in src and p in self.before and src[p].kind != self.before[p].kind:
                    return True
        return False

    def removable(self, path):
        """May a mirror remove this? Not if SRC has it all the time."""
        return self.in_the_way(path) or any(path not in src for src in self.sources)

    def may_be_gone(self, path, command, now):
        """May this command have removed or replaced this entry, or have put a backup there?"""
        old = self.before[path]
        if command.update == "none":
            return False
        if command.mirror and command.tree and any(is_directory(src.get("")) for src in self.sources):
            return now is not None or self.removable(path)
        for new in [src[path] for src in self.sources if path in src]:
            if not is_directory(new) and not is_directory(old) and (command.update != "older" or new.time > old.time):
                return True
        return command.backup and not re.search(r"\.~[0-9]+~$", path) and self.may_be_backup(path)

    def may_be_backup(self, path, but=None):
        """Is this the name of a simple backup, which replaces the one before? It has one more suffix for each shorter name that
        SRC or another backup has. Another command may have made what is backed up."""
        between, name = [], backed_up(path)
        while name:
            if name != but and (name in self.before or len(self.commands) > 1) and any(name in src for src in self.sources) and \
                    all(any(n in src for src in self.sources) or self.may_be_backup(n, name) for n in between):
                return True
            between.append(name)
            name = backed_up(name)
        return False

    def losses(self, failed):
        """What existed and is gone, and what is there that is no whole entry, whatever the status. failed: every command ended
        by itself because an entry failed, so that a mirror has removed nothing but what was in the way. If another tree got the
        name of SRC, the command has opened one of the two."""
        if not self.exchanged:
            return self._losses(failed)
        both, found = self.sources, []
        for src in both:
            self.sources = [src]
            found.append(self._losses(failed))
        self.sources = both
        return found[0] if found[1] else []

    def _losses(self, failed):
        found = []
        for path, old in self.before.items():
            now = self.after.get(path)
            if same(old, now):
                continue
            if now is not None and not self.whole(path, now) and not self.old(path, now):
                found.append("%r is neither old nor new: %s" % (path, now))
            elif not any(self.may_be_gone(path, c, now) for c in self.commands):
                found.append("%r was %s" % (path, "replaced" if now else "removed"))
            elif len(self.commands) == 1 and self.backs_up and not BACKUP.match(path) and \
                    not any(same(old, b) for b in backups(path, self.after)):
                found.append("%r has no backup" % path)
            elif now is None and failed and not self.in_the_way(path):
                found.append("%r was removed although the command failed" % path)
        for path, old in self.moved.items():
            if self.backs_up and not any(same(old, b) for b in backups(path, self.after)):
                found.append("%r, which was moved, has no backup" % path)
        for path, now in self.after.items():
            is_known = path in self.before or is_directory(now) and any(is_directory(src.get(path)) for src in self.sources)
            if not is_known and not self.whole(path, now) and not self.begun(path, now) and not self.old(path, now) and \
                    not same(self.aside.get(path), now):
                found.append("%r is not whole, or belongs to nobody: %s" % (path, now))
        return found

    def differences(self):
        """If every command ended with status 0, without an option to leave something alone: the bytes that are not those of SRC. If
        another tree got its name, all of DST is a copy of that one, or of the first one."""
        if self.exchanged:
            first, second = (list(self._differences(src)) for src in self.sources)
            return first if second else []
        return list(self._differences(self.sources[0]))

    def _differences(self, src):
        for path in src:
            now = self.after.get(path)
            if any(p in self.touched for p in [path] + list(parents(path))):
                continue
            if same(src[path], now) or not self.exchanged and self.changed(path) and (
                    now is None or self.whole(path, now) or self.old(path, now) or same(self.before.get(path), now)):
                continue
            yield "%r is not as in SRC" % path
        for path, now in self.after.items() if self.exchanged else ():
            if path not in src and path not in self.before and not self.old(path, now):
                yield "%r is of another tree" % path

    def changed(self, path):
        """Whether it is another inode now counts: btrfs lists no name that is newer than the descriptor of the directory."""
        first, last = self.sources[0], self.sources[-1]
        return any(not same(first.get(p), last.get(p)) or first[p].inode != last[p].inode for p in [path] + list(parents(path)))
