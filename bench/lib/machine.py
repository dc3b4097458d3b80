# SPDX-License-Identifier: MIT
"""The machine's own numbers, and the counters that show a disturbed sample."""
import ctypes
import mmap
import os
import platform
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path

import stats
import tools
from case import FCOPY, ROOT

GIB, MIB = 1 << 30, 1 << 20
HOT = 256 << 10
FAST = 0.10  # seconds for memcpy of 1 GiB: at most this is the class "fast"
TICK = 1 / os.sysconf("SC_CLK_TCK")
REPORTED = Path("/sys/module/page_reporting/parameters/reported_kib")  # memory given back to the host; not every kernel has it

def counters():
    """Seconds of CPU time used and stolen, memory stalls, KiB given back to the host."""
    user, nice, system, _, _, irq, soft, steal = (int(x) for x in Path("/proc/stat").read_text().split()[1:9])
    stalls = sum(int(line.split()[1]) for line in Path("/proc/vmstat").read_text().splitlines()
                 if line.startswith(("allocstall", "compact_stall")))
    given = int(REPORTED.read_text()) if REPORTED.exists() else 0
    return (user + nice + system + irq + soft) * TICK, steal * TICK, stalls, given

def flags(before, after, wall, cpu):
    """What disturbed a sample. The sample is kept.

    steal: the host took CPU time. memory: memory went back to the host, or an allocation stalled. others: other
    processes used CPU time. Differences of two ticks are rounding."""
    used, stolen, stalls, given = (b - a for a, b in zip(before, after))
    found = {"steal": stolen > 2 * TICK and stolen > 0.02 * wall, "memory": stalls > 0 or given > 0,
             "others": used - cpu > 3 * TICK + 0.1 * wall}
    return " ".join(name for name, true in found.items() if true)

def touch(count):
    """Touches and frees memory: what a virtual machine gave back to its host is slow at the first touch."""
    with mmap.mmap(-1, count) as area:
        ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(area)), 1, count)

def memcpy(count=GIB, times=7):
    """Seconds for a memcpy of 1 GiB in memory that was touched before."""
    source, target = mmap.mmap(-1, count), mmap.mmap(-1, count)
    at = [ctypes.addressof(ctypes.c_char.from_buffer(area)) for area in (source, target)]
    for where in at:
        ctypes.memset(where, 1, count)
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        ctypes.memmove(at[1], at[0], count)
        taken.append(time.perf_counter() - begun)
    return stats.median(taken)

def floor(path, count):
    """Writes one hot buffer of 256 KiB into a preallocated file; returns (wall-clock, CPU) seconds."""
    block = os.urandom(HOT)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        begun, cpu = time.perf_counter(), time.process_time()
        os.posix_fallocate(fd, 0, count)
        for at in range(0, count, HOT):
            os.write(fd, block[:count - at])
        return time.perf_counter() - begun, time.process_time() - cpu
    finally:
        os.close(fd)

def device(path):
    """Speeds of direct writes to a file and of direct reads from it, as dd(1) reports them."""
    write = output("dd", "if=/dev/zero", f"of={path}", "bs=16M", "count=32", "oflag=direct", "conv=fsync")
    read = output("dd", f"if={path}", "of=/dev/null", "bs=16M", "iflag=direct")
    path.unlink()
    return f"write {write.split(', ')[-1]}, read {read.split(', ')[-1]}"

def output(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "LC_ALL": "C"})
    return (done.stdout or done.stderr).strip()

def cpu_model():
    info = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} × {model}" + (", virtual machine" if " hypervisor" in info else "")

def revision():
    changed = output("git", "status", "--porcelain", "--untracked-files=no", "--", "src", "include", "fcopy.c", "bench/lib",
                     "bench/cases")
    return (output("git", "rev-parse", "--short=12", "HEAD") or "unknown") + (" + changes" if changed else "")

def circumstances(lab, command, used):
    """What must be known to believe a figure, as (name, text) pairs, and whether memory is fast."""
    probe = lab.place("here") / "probe"
    copy = memcpy()
    floors = []
    for _ in range(5):
        floors.append(floor(probe, GIB)[0])
        probe.unlink()
    empty = [tools.timed(["true"], lab.errors)[0] for _ in range(200)]
    facts = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "revision": revision(),
        "program": f"{tools.version('fcopy')}, sha256 {output('sha256sum', FCOPY)[:16]}",
        "machine": f"{cpu_model()}, {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / GIB:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": output("findmnt", "-no", "FSTYPE,OPTIONS", "--target", lab.place("here")),
        "memcpy of 1 GiB": f"{copy:.3f} s ({'fast' if copy <= FAST else 'slow'} memory)",
        "floor, 1 GiB": f"{stats.median(floors):.3f} s",
        "empty process": f"{stats.median(empty) * 1000:.2f} ms",
        "device": device(probe),
        "load at the start": " ".join(Path("/proc/loadavg").read_text().split()[:3]),
    }
    facts["versions"] = "; ".join(f"{name}: {tools.version(name)}" for name in sorted(used))
    return facts, copy <= FAST
