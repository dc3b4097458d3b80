# SPDX-License-Identifier: MIT
"""The functions that cases/*.py call: contenders (named commands) and cases (what is measured)."""
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
RIVALS = Path(os.environ.get("RIVALS_DIR", ROOT / "build/rivals")) / "bin"
FCOPY = Path(os.environ.get("FCOPY", ROOT / "fcopy")).resolve()

COMMANDS = {}  # contender: command template; "" means measured by the harness itself
CASES = {}     # name: Case, in the order of the files

def size(text):
    """Bytes of 4K, 7M or 1G."""
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1].upper())
    try:
        return int(text[:-1]) << unit if unit else int(text)
    except ValueError:
        sys.exit(f"bench.sh: invalid size '{text}'; try 64M or 1G")

SIZE = size(os.environ.get("SIZE", "1G"))       # of the large files
FILES = int(os.environ.get("FILES", "12000"))  # in the tree `many`; the others follow from it

@dataclass
class Case:
    name: str
    title: str
    group: str
    contenders: list
    base: str              # the command whose time is the denominator of the published ratios
    bars: list             # (contender, metric, limit, rival, class): see bar()
    sets: str = "readme"   # "quick", "readme", "long"; the set `all` has every case
    size: int = SIZE
    rounds: int = 20       # fixed beforehand; fewer for very long cases
    source: str = "random"  # random, allocated (by fallocate); or a tree: many, flat, late, large, middle, medium
    dest: str = "new"      # new, old (an existing file or tree), none (a socket)
    fs: str = "here"       # here (DIR, or FS), ext4, xfs, btrfs, tmpfs
    cache: str = "warm"    # warm, cold
    latency: int = 0       # microseconds that the slow storage takes for each request
    rate: int = 0          # bytes per second that it reads or writes
    writes: bool = False   # the slow storage holds the copy, not the source
    memory: int = 0        # bytes of the memory cgroup that each command gets; 0: none
    peaks: dict = field(default_factory=dict)  # ... contender: its highest use, in bytes
    load: int = 0          # busy loops per CPU during the case
    copies: int = 1        # files made by one command
    needs: str = ""        # a word that `fcopy --help` must contain
    serve: dict = field(default_factory=dict)  # contender (or *): command that listens on {port}
    served: bool = False   # the CPU time is that of the server, not of its client

    @property
    def tree(self):
        return self.source in ("many", "flat", "late", "large", "middle", "medium")

    @property
    def small(self):
        """A tree of small files: each round gets a new file system."""
        return self.source in ("many", "flat", "late")

    @property
    def footprint(self):
        """Bytes of memory that one command takes, at most."""
        kinds = {"many": FILES * 24576, "flat": FILES * 50000, "late": FILES * 4096, "large": 5 * SIZE, "middle": 2 * SIZE, "medium": 10 * SIZE}
        return (8 << 20) + kinds.get(self.source, self.size * self.copies)

    @property
    def setting(self):
        """The environment of the case in one line."""
        what = f"{self.source} tree" if self.tree else f"{self.source}, {human(self.size)}"
        words = {"new": "to a new name", "old": "onto an existing one", "none": "to a socket on loopback"}
        load = f", {self.load} busy loop(s) per CPU" if self.load else f", {human(self.memory)} of memory" if self.memory else ""
        return f"{self.fs}, {what}, {self.cache}, {f'{self.latency / 1000:g} ms a request, ' if self.latency else ''}{f'{self.rate / 1e6:g} MB/s, ' if self.rate else ''}{words[self.dest]}{load}, {self.rounds} rounds"

def human(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:g} {unit}"
        count /= 1024

def contender(name, command):
    COMMANDS[name] = command

def bar(text):
    """CONTENDER METRIC LIMIT RIVAL [fast]: METRIC (wall, cpu) of CONTENDER ≤ LIMIT × that of RIVAL.

    RIVAL "best" is the fastest single mode, or number of threads, of the case. "fast": only judged where memory is fast (memcpy of 1 GiB in at most 0.10 s)."""
    who, metric, limit, rival, *kind = text.split()
    return {"contender": who, "metric": metric, "limit": float(limit), "rival": rival, "class": "".join(kind)}

def case(name, title, contenders, bars="", base="", **fields):
    """The first command is the base, unless base= names another. Semicolons separate the targets (bars)."""
    who = contenders.split()
    fields.setdefault("group", name.split("-")[0])
    CASES[name] = Case(name=name, title=title, contenders=who, base=base or who[0],
                       bars=[bar(text) for text in bars.split(";") if text.strip()], **fields)

def modes():
    """The single modes of this program, from its own table: ["1:readwrite", …]."""
    if not FCOPY.exists():
        return []
    lines = subprocess.run([FCOPY, "--list"], capture_output=True, text=True).stdout.splitlines()
    return [f"{line.split()[0]}:{line.split()[1]}" for line in lines if line.split()[0] in "12345678"]

def load():
    """Reads cases/*.py; returns CASES."""
    words = {"contender": contender, "case": case, "modes": modes, "size": size, "SIZE": SIZE}
    for path in sorted((BENCH / "cases").glob("*.py")):
        exec(compile(path.read_text(), path, "exec"), dict(words))
    return CASES
