# SPDX-License-Identifier: MIT
"""Programs, commands made from templates, and their execution."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from case import BENCH, FCOPY, RIVALS, ROOT

CLASSES = ROOT / "build/bench/classes"
VERSION = {"java": "-version", "nginx": "-v", "ab": "-V", "darkhttpd": ""}  # darkhttpd would serve a directory of that name
LIMIT = 900  # seconds that one command may take

class Skip(Exception):
    """Why something is left out."""

def program(name):
    """The words that start this program; raises Skip."""
    fixed = {"fcopy": FCOPY, "uutils": RIVALS / "cp", "other": os.environ.get("OTHER", "OTHER=PROGRAM"),
             # A version manager's wrapper would be timed along with the interpreter.
             "python": sys.executable}
    built = RIVALS / name
    path = fixed.get(name) or (built if name != "cp" and built.exists() else shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin"))
    if not path or not os.access(path, os.X_OK):
        raise Skip(f"{path or name} is missing".replace(f"{ROOT}/", ""))
    if name == "java":
        if not CLASSES.exists():
            raise Skip("the Java programs are not compiled (bench/rivals/install.sh, or: mkdir -p build/bench/classes && javac -d build/bench/classes bench/rivals/*.java)")
        return f"{path} -cp {shlex.quote(str(CLASSES))}"
    return shlex.quote(str(path))

def expand(template, **values):
    """The command as an argument list; a shell only where the template needs one."""
    words = {"bench": BENCH, **values}
    line = re.sub(r"\{(\w+)\}", lambda m: shlex.quote(str(words[m[1]])) if m[1] in words else program(m[1]), template)
    return ["sh", "-c", line] if re.search(r"[<&;]", template) else shlex.split(line)

def show(template):
    """The command as a reader can repeat it."""
    names = {"src": "SRC", "dst": "DST", "port": "PORT", "name": "NAME", "dir": "DIR", "bench": "bench", "uutils": "uutils-cp",
             "python": "python3", "java": "java -cp build/bench/classes"}
    return re.sub(r"\{(\w+)\}", lambda m: names.get(m[1], m[1]), template)

def version(name):
    try:
        command = f"{program(name)} {VERSION.get(name, '--version')}"
    except Skip as why:
        return str(why)
    answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    return next((line for line in (answer.stdout + answer.stderr).splitlines() if re.search(r"\d", line)), "unknown").strip()

def start(argv, errors):
    """Starts a process in a group of its own; its standard error goes to the file `errors`."""
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    error = (os.POSIX_SPAWN_OPEN, 2, str(errors), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.posix_spawnp(argv[0], argv, os.environ, file_actions=(*null, error), setpgroup=0)

def stop(pid, how=signal.SIGTERM):
    """Ends a process group of ours; returns its resource usage."""
    os.killpg(pid, how)
    return os.wait4(pid, 0)[2]

def timed(argv, errors):
    """Runs a command; returns (wall-clock seconds, resource usage of it and its children). Raises Skip if it fails."""
    def expire(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, expire)
    begun = time.perf_counter()
    pid = start(argv, errors)
    signal.alarm(LIMIT)
    try:
        _, status, usage = os.wait4(pid, 0)
    except BaseException as why:
        stop(pid, signal.SIGKILL)
        raise Skip(f"still running after {LIMIT} s") if isinstance(why, TimeoutError) else why
    finally:
        signal.alarm(0)
    wall = time.perf_counter() - begun
    if status:
        complaint = errors.read_text(errors="replace").strip().splitlines()
        where = str(errors.parent) + "/"
        raise Skip(f"exit status {os.waitstatus_to_exitcode(status)}: {(complaint or ['no message'])[0].replace(where, '')}")
    return wall, usage
