# SPDX-License-Identifier: MIT
"""The environment of a run: one temporary directory, file systems in loop images, sources, memory, load, peers."""
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import tools
from case import FILES, ROOT, SIZE
from tools import Skip

MKFS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"], "btrfs": ["mkfs.btrfs", "-q", "-f"]}
MIB = 1 << 20

def run(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Skip(f"{argv[0]}: {done.stdout.strip()}")
    return done.stdout.strip()

def write_random(path, count):
    block = os.urandom(min(64 * MIB, count))  # repeated: no tool that is measured looks for equal blocks
    with open(path, "wb") as file:
        for at in range(0, count, len(block)):
            file.write(block[:count - at])

def write_tree(top, kind):
    """The same names and sizes each time; random bytes."""
    block, lot = os.urandom(2 * MIB), random.Random(1)
    top.mkdir()
    if kind in ("large", "middle", "medium"):
        for i in range({"large": 20, "middle": 200, "medium": 1000}[kind]):
            write_random(top / f"file-{i}", SIZE // (4 if kind == "large" else 100))
        return
    count, each = (FILES, 20) if kind == "many" else (FILES // 6, 20) if kind == "late" else (FILES * 25 // 3, FILES * 25 // 3)
    for i in range(count):
        if i % each == 0:
            directory = top / f"dir-{i // each}"
            directory.mkdir()
        length = 1024 if kind == "flat" else min(int(lot.expovariate(1 / 15833)), MIB)
        at = lot.randrange(MIB)
        (directory / f"file-{i}").write_bytes(block[at:at + length])

def read_all(path):
    for file in path.rglob("*") if path.is_dir() else [path]:
        if file.is_file():
            with open(file, "rb") as data:
                while data.read(MIB):
                    pass

class Lab:
    def __init__(self, directory, fs):
        directory.mkdir(parents=True, exist_ok=True)
        self.top = Path(tempfile.mkdtemp(prefix="fcopy-bench.", dir=directory))
        self.errors = self.top / "errors"
        self.here = fs       # the file system that "here" means; "here": the directory's own
        self.mounts = {}     # file system: (mount point, loop device)
        self.made = None     # the source that exists
        self.slowed = None   # the mount point of slow()
        self.loops = []

    def close(self):
        self.unload()
        self.fast()
        for fs in list(self.mounts):
            self.unmount(fs)
        shutil.rmtree(self.top, ignore_errors=True)

    def place(self, fs):
        """A directory on this file system; mounts it if needed."""
        self.fast()
        fs = self.here if fs == "here" else fs
        if fs == "here":
            return self.top
        if fs not in self.mounts:
            self.mount(fs)
        return self.mounts[fs][0]

    def mount(self, fs):
        if fs not in (*MKFS, "tmpfs"):
            raise Skip(f"unknown file system '{fs}' (known: {', '.join(MKFS)}, tmpfs)")
        if os.geteuid():
            raise Skip(f"mounting {fs} needs root")
        at, image, device = self.top / f"mnt-{fs}", self.top / f"{fs}.img", None
        at.mkdir(exist_ok=True)
        if fs == "tmpfs":
            run("mount", "-t", "tmpfs", "-o", "size=90%", "fcopy-bench", at)
        else:
            if not shutil.which(MKFS[fs][0], path=os.environ["PATH"] + ":/usr/sbin"):
                raise Skip(f"{MKFS[fs][0]} is missing")
            run("truncate", "-s", str(max(24 * SIZE, 4 << 30)), image)
            run(*MKFS[fs], image)
            # Without direct I/O the pages of the image would be cached twice, and a cold cache would not be cold.
            device = run("losetup", "--find", "--show", "--direct-io=on", image)
            # Without this option a kernel thread initialises inode tables while we measure.
            run("mount", "-o", "noinit_itable" if fs == "ext4" else "defaults", device, at)
        self.mounts[fs] = at, device

    def unmount(self, fs):
        self.fast()
        at, device = self.mounts.pop(fs)
        if self.made and at in self.made.parents:
            self.made = None
        subprocess.run(["sh", "-c", 'mountpoint -q "$0" && xfs_io -xc shutdown "$0"', at], capture_output=True)  # drop dirty pages
        if subprocess.run(["umount", at], capture_output=True).returncode:
            run("umount", "--lazy", at)
        if device:
            run("losetup", "--detach", device)
            (self.top / f"{fs}.img").unlink()

    def source(self, case, place):
        """Makes the source of a case; of files, one is kept, since the next case often wants the same."""
        given = os.environ.get("SOURCE")
        if given and case.source == "random" and case.fs == "here":
            return Path(given).resolve()
        path = place / f"source-{case.source}-{case.size}"
        if self.made == path:
            return path
        if self.made and not self.made.is_dir():
            self.made.unlink(missing_ok=True)
        self.made = None
        need = case.size * (2 + case.copies)
        if shutil.disk_usage(place).free < need:
            raise Skip(f"no space: {need >> 20} MiB are needed")
        if case.tree:
            write_tree(path, case.source)
        elif case.source == "random":
            write_random(path, case.size)
        else:
            run("fallocate", "-l", str(case.size), path)
        os.sync()
        self.made = path
        return path

    def slow(self, source, case):
        """The source, on the slow storage of a case."""
        at, tools_dir = self.top / "slow", ROOT / "tests/tools"
        self.fast()
        at.mkdir(exist_ok=True)
        if not shutil.which("pkg-config"):
            raise Skip("pkg-config is missing")
        flags = run("pkg-config", "--cflags", "--libs", "fuse3").split()
        run("cc", "-O2", "-o", self.top / "faultfs", tools_dir / "faultfs.c", tools_dir / "faults.c", *flags)
        run(self.top / "faultfs", source.parent, at, "-o", f"latency={case.latency},rate={case.rate}", "-o", "max_threads=100")
        self.slowed = at
        return at / source.name

    def fast(self):
        """Ends what slow() began."""
        if self.slowed:
            run("umount" if os.geteuid() == 0 else "fusermount3", *([] if os.geteuid() == 0 else ["-u"]), self.slowed)
        self.slowed = None

    def cache(self, case, source):
        """Warm: the source is read. Cold: everything is dropped."""
        if case.cache == "cold":
            os.sync()
            Path("/proc/sys/vm/drop_caches").write_text("3")
        else:
            read_all(source)

    def load(self, loops):
        for _ in range(loops * os.cpu_count()):
            self.loops.append(tools.start(["sh", "-c", "while :; do :; done"], self.errors))

    def unload(self):
        while self.loops:
            tools.stop(self.loops.pop())

    def group(self, memory):
        """A memory cgroup with this limit, of version 2 or 1, and the file that has its peak."""
        top, limit, peak = Path("/sys/fs/cgroup"), "memory.max", "memory.peak"
        old = not (top / "cgroup.subtree_control").exists()
        if old:
            top, limit, peak = top / "memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"
        if not os.access(top, os.W_OK) or not old and "memory" not in (top / "cgroup.subtree_control").read_text():
            raise Skip("no memory cgroup can be made here")
        group = Path(tempfile.mkdtemp(prefix="fcopy-bench.", dir=top))
        (group / limit).write_text(str(memory))
        return group, group / peak

    def serve(self, argv, port):
        """Starts a server and waits until it listens; returns its process."""
        pid = tools.start(argv, self.top / "errors-server")
        wanted = f":{port:04X} "
        for _ in range(500):
            if any(wanted in line and " 0A " in line
                   for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}", encoding="ascii")):
                return pid
            time.sleep(0.01)
        tools.stop(pid)
        raise Skip("its server does not listen")

def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

def remove(path):
    """Removes a copy, and those that a command made beside it."""
    for each in path.parent.glob(path.name + "*"):
        shutil.rmtree(each) if each.is_dir() else each.unlink()

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, interrupt)
signal.signal(signal.SIGHUP, interrupt)
