# SPDX-License-Identifier: MIT
"""Runs a program under ptrace(2) and stops it before and after each system call that takes a name
in a directory. While it is stopped, the caller may change the directory: the change falls between
two calls of the program for certain. Needs PTRACE_GET_SYSCALL_INFO (Linux 5.3)."""
import ctypes
import os
import platform
import signal
import struct

TRACEME, SYSCALL, POKEUSER, SETOPTIONS, GET_SYSCALL_INFO = 0, 24, 6, 0x4200, 0x420E
# TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, TRACEEXEC, EXITKILL
OPTIONS = 0x01 | 0x02 | 0x04 | 0x08 | 0x10 | 0x100000
WALL = 0x40000000
ENTER, EXIT = 1, 2
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
O_TMPFILE = 0o20000000

# Number -> name, and the arguments that are (directory, name).
_AT1, _AT2, _OLD1, _OLD2 = [(0, 1)], [(0, 1), (2, 3)], [(None, 0)], [(None, 0), (None, 1)]
_TABLES = {
    "x86_64": {
        257: ("openat", _AT1), 258: ("mkdirat", _AT1), 259: ("mknodat", _AT1),
        263: ("unlinkat", _AT1), 264: ("renameat", _AT2), 265: ("linkat", _AT2),
        266: ("symlinkat", [(1, 2)]), 316: ("renameat2", _AT2), 437: ("openat2", _AT1),
        2: ("open", _OLD1), 83: ("mkdir", _OLD1), 133: ("mknod", _OLD1), 87: ("unlink", _OLD1),
        84: ("rmdir", _OLD1), 82: ("rename", _OLD2), 86: ("link", _OLD2),
        88: ("symlink", [(None, 1)]),
    },
    "aarch64": {
        56: ("openat", _AT1), 34: ("mkdirat", _AT1), 33: ("mknodat", _AT1),
        35: ("unlinkat", _AT1), 38: ("renameat", _AT2), 37: ("linkat", _AT2),
        36: ("symlinkat", [(1, 2)]), 276: ("renameat2", _AT2), 437: ("openat2", _AT1),
    },
}
CALLS = _TABLES.get(platform.machine())

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request, pid, address=0, data=0):
    if _libc.ptrace(request, pid, address, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace %#x" % request)


class Call:
    """A system call of one thread: its name, its arguments, and after it its result."""

    def __init__(self, pid, number, args):
        self.pid, self.args, self.result = pid, args, None
        self.name, self.operands = CALLS[number]

    def _string(self, address):
        with open("/proc/%d/mem" % self.pid, "rb", buffering=0) as memory:
            text = b""
            while address and b"\0" not in text and len(text) < 4096:
                memory.seek(address + len(text))
                text += memory.read(4096 - (address + len(text)) % 4096)
        return os.fsdecode(text.split(b"\0")[0])

    def paths(self):
        """The absolute paths of its names; none for a descriptor alone (AT_EMPTY_PATH)."""
        found = []
        for at, name in self.operands:
            directory = ctypes.c_int(self.args[at] if at is not None else AT_FDCWD).value
            text = self._string(self.args[name])
            if not text or text == ".":
                continue
            where = "cwd" if directory == AT_FDCWD else "fd/%d" % directory
            try:
                top = os.readlink("/proc/%d/%s" % (self.pid, where))
            except OSError:
                continue
            found.append(os.path.normpath(os.path.join(top, text)))
        return found

    def lacks_tmpfile(self):
        return self.name == "openat" and self.args[2] & O_TMPFILE == O_TMPFILE


def _start(argv, cwd, output):
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(fd, 1)
            os.dup2(fd, 2)
            os.close(fd)
            _ptrace(TRACEME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.execv(argv[0], argv)
        finally:
            os._exit(127)
    os.waitpid(pid, 0)
    _ptrace(SETOPTIONS, pid, 0, OPTIONS)
    _ptrace(SYSCALL, pid)
    return pid


def _stopped(pid, pending, on_stop, tmpfile):
    """One stop at a system call: asks the kernel which, and reports it."""
    info = ctypes.create_string_buffer(88)
    _ptrace(GET_SYSCALL_INFO, pid, len(info), ctypes.addressof(info))
    if info.raw[0] == ENTER:
        number, *args = struct.unpack_from("<7Q", info.raw, 24)
        pending[pid] = Call(pid, number, args) if number in CALLS else None
        if not tmpfile and pending[pid] and pending[pid].lacks_tmpfile():
            # The number of no system call, in orig_rax: the kernel returns ENOSYS.
            _ptrace(POKEUSER, pid, 15 * 8, 0xFFFFFFFFFFFFFFFF)
            pending[pid] = None
        if pending[pid]:
            on_stop(pending[pid], "enter")
    elif info.raw[0] == EXIT and pending.get(pid):
        call, pending[pid] = pending[pid], None
        call.result = struct.unpack_from("<q", info.raw, 24)[0]
        on_stop(call, "exit")


def run(argv, on_stop, cwd, output, tmpfile=True, seconds=60):
    """Runs argv; on_stop(call, "enter" or "exit") at each call of CALLS. Its output is appended to
    a file. tmpfile=False: O_TMPFILE fails as on a file system without it (x86-64 only). Returns the
    exit status, or minus the signal: SIGKILL after so many seconds."""
    main = _start(argv, cwd, output)
    pending = {}
    signal.signal(signal.SIGALRM, lambda *_: os.kill(main, signal.SIGKILL))
    signal.alarm(seconds)
    while True:
        pid, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            if pid == main:
                signal.alarm(0)
                return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            continue
        sig, event = os.WSTOPSIG(status), status >> 16
        deliver = 0
        if sig == signal.SIGTRAP | 0x80:
            try:
                _stopped(pid, pending, on_stop, tmpfile)
            except ProcessLookupError:
                pass  # killed after so many seconds
        elif event == 0 and sig not in (signal.SIGSTOP, signal.SIGTRAP):
            deliver = sig
        try:
            _ptrace(SYSCALL, pid, 0, deliver)
        except ProcessLookupError:
            pass  # on_stop has killed it
