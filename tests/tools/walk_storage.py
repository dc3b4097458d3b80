# SPDX-License-Identifier: MIT
"""Storage that keeps less, for random_walk.py: DST is on tools/faultfs. What cannot be kept is taken away from what the oracle expects;
everything else stays as strict."""
import os
import stat
import subprocess
import time

# The options of faultfs, and what they take.
FAT = dict(unit=2 * 10**9, owner=False, mode=0o755, links=False, lacks={stat.S_IFLNK, stat.S_IFIFO})
KINDS = [
    ("steps=2", dict(unit=2 * 10**9)), ("steps=1", dict(unit=10**9)), ("grain=1000", dict(unit=1000)),
    ("grain=100,xattrs", dict(unit=100, xattrs=True)),
    ("xattrs,fault=chown:EPERM", dict(owner=False, xattrs=True)), ("fmode=755,dmode=755,fault=chown:EPERM", dict(owner=False, mode=0o755)),
    ("xattrs,fault=link:EPERM", dict(links=False, xattrs=True)), ("fault=symlink:EPERM", dict(lacks={stat.S_IFLNK})),
    ("fault=mknod:EPERM", dict(lacks={stat.S_IFIFO})), ("xattrs,sequential", dict(xattrs=True, shards=False)), ("norewind", {}), ("busy", {}),
    ("fault=renamedir:ENOSYS", dict(shards=False)),
    ("steps=2,fmode=755,dmode=755,fault=chown:EPERM,fault=link:EPERM,fault=symlink:EPERM,fault=mknod:EPERM", FAT),
]


class Storage:
    """Where DST is, and what that keeps."""
    unit, owner, mode, links, lacks, xattrs, shards, process = 1, True, None, True, frozenset(), True, True, None

    def __init__(self, at=None, backing=None, kind=None):
        self.at, self.options = at, kind and kind[0]
        if not at:
            return
        options, less = kind
        self.xattrs = False
        self.__dict__.update(less)
        os.makedirs(at)
        os.makedirs(backing)
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", os.environ["FAULTFS"], backing, at, "-f", "-o",
                                         "entry_timeout=0,attr_timeout=0," + options])
        end = time.monotonic() + 10
        while not os.path.ismount(at) and self.process.poll() is None and time.monotonic() < end:
            time.sleep(.002)
        if not os.path.ismount(at):
            raise OSError("faultfs does not mount")

    def end(self):
        end = time.monotonic() + 5
        while self.process and os.path.ismount(self.at):
            lazy = ["-z"] if time.monotonic() > end else []
            subprocess.run(["fusermount3", "-u", "-q"] + lazy + [self.at], stderr=subprocess.DEVNULL)
            if lazy:
                break
            time.sleep(.01)
        if self.process:
            self.process.kill()
            self.process.wait()

    def keep(self, e):
        """What can be kept of an entry of SRC. A mode of None may be any."""
        if not self.at:
            return e
        mode = e.mode if self.mode is None else self.mode if e.kind in (stat.S_IFREG, stat.S_IFDIR) else None
        return e._replace(time=e.time - e.time % self.unit, owner=e.owner if self.owner else (os.getuid(), os.getgid()), mode=mode,
                          xattrs=e.xattrs if self.xattrs else ())
