#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""vanishing.py MOUNTPOINT: a FUSE file system in memory, whose linkat(2) of a file that was opened with
O_TMPFILE succeeds, but whose file is removed with all its names when it is closed. It speaks the protocol of
/dev/fuse itself: libfuse 3.14 cannot answer FUSE_TMPFILE. Needs root, if only of a user namespace."""
import ctypes
import errno
import os
import stat
import struct
import sys
import time

LARGEST = 128 << 10  # bytes of a write


class Inode:
    def __init__(self, mode, uid=0, gid=0):
        self.mode, self.uid, self.gid = mode, uid, gid
        self.data, self.names, self.nlink = bytearray(), {}, 1
        self.atime = self.mtime = self.ctime = time.time_ns()


class Vanishing:
    def __init__(self, fd):
        self.fd = fd
        self.inodes = {1: Inode(stat.S_IFDIR | 0o755)}
        self.unnamed = {}  # handle of an O_TMPFILE: its inode
        self.last = 1

    def new(self, mode, uid, gid):
        self.last += 1
        self.inodes[self.last] = Inode(mode, uid, gid)
        return self.last

    def attr(self, number):
        i = self.inodes[number]
        size = len(i.data)
        times = i.atime, i.mtime, i.ctime
        return struct.pack("<6Q10I", number, size, (size + 511) // 512, *(t // 10**9 for t in times),
                           *(t % 10**9 for t in times), i.mode, i.nlink, i.uid, i.gid, 0, 4096, 0)

    def entry(self, number):
        """Nothing is cached: each look-up comes here."""
        return struct.pack("<4Q2I", number, 0, 0, 0, 0, 0) + self.attr(number)

    def named(self, directory, name):
        found = self.inodes[directory].names.get(name)
        if found is None:
            raise OSError(errno.ENOENT, "")
        return found

    def free(self, directory, name):
        if name in self.inodes[directory].names:
            raise OSError(errno.EEXIST, "")

    def add(self, directory, name, number):
        self.free(directory, name)
        self.inodes[directory].names[name] = number
        return self.entry(number)

    def drop(self, directory, name):
        number = self.named(directory, name)
        if self.inodes[number].names:
            raise OSError(errno.ENOTEMPTY, "")
        del self.inodes[directory].names[name]
        self.inodes[number].nlink -= 1
        return b""

    def rename(self, directory, to, flags, name, new):
        number = self.named(directory, name)
        if flags & 2:  # RENAME_EXCHANGE
            self.inodes[directory].names[name] = self.named(to, new)
        else:
            if flags & 1:  # RENAME_NOREPLACE
                self.free(to, new)
            elif new in self.inodes[to].names:
                self.drop(to, new)
            del self.inodes[directory].names[name]
        self.inodes[to].names[new] = number
        return b""

    def set(self, number, body):
        valid, _, _, size, _, atime, mtime, _, ansec, mnsec, _, mode, _, uid, gid, _ = struct.unpack_from(
            "<2I6Q8I", body)
        i, now = self.inodes[number], time.time_ns()
        if valid & 1:
            i.mode = mode
        if valid & 2:
            i.uid = uid
        if valid & 4:
            i.gid = gid
        if valid & 8:
            i.data = i.data[:size].ljust(size, b"\0")
            i.mtime = now
        if valid & 16:
            i.atime = now if valid & 128 else atime * 10**9 + ansec
        if valid & 32:
            i.mtime = now if valid & 256 else mtime * 10**9 + mnsec
        i.ctime = now
        return struct.pack("<Q2I", 0, 0, 0) + self.attr(number)

    def write(self, number, body):
        _, offset, size = struct.unpack_from("<2QI", body)
        i = self.inodes[number]
        if len(i.data) < offset:
            i.data = i.data.ljust(offset, b"\0")
        i.data[offset:offset + size] = body[40:40 + size]
        i.mtime = time.time_ns()
        return struct.pack("<2I", size, 0)

    def read(self, number, body):
        _, offset, size = struct.unpack_from("<2QI", body)
        return bytes(self.inodes[number].data[offset:offset + size])

    def list(self, number, body):
        _, offset, size = struct.unpack_from("<2QI", body)
        out = b""
        for at, (name, child) in enumerate(self.inodes[number].names.items(), 1):
            one = struct.pack("<2Q2I", child, at, len(name), self.inodes[child].mode >> 12) + name
            one += b"\0" * (-len(one) % 8)
            if at <= offset:
                continue
            if len(out) + len(one) > size:
                break
            out += one
        return out

    def release(self, body):
        handle, = struct.unpack_from("<Q", body)
        number = self.unnamed.pop(handle, None)
        for i in self.inodes.values() if number else ():
            i.names = {name: child for name, child in i.names.items() if child != number}
        return b""

    def answer(self, opcode, node, uid, gid, body):
        names = body.split(b"\0")
        if opcode == 1:  # LOOKUP
            return self.entry(self.named(node, names[0]))
        if opcode == 3:  # GETATTR
            return struct.pack("<Q2I", 0, 0, 0) + self.attr(node)
        if opcode == 4:  # SETATTR
            return self.set(node, body)
        if opcode in (9, 35, 51):  # MKDIR, CREATE, TMPFILE
            mode, = struct.unpack_from("<I", body, 0 if opcode == 9 else 4)
            made = self.new((stat.S_IFDIR if opcode == 9 else stat.S_IFREG) | mode & 0o7777, uid, gid)
            handle = struct.pack("<Q2I", made, 0, 0) if opcode != 9 else b""
            if opcode == 51:
                self.unnamed[made] = made
                self.inodes[made].nlink = 0
                return self.entry(made) + handle
            return self.add(node, body[8 if opcode == 9 else 16:].split(b"\0")[0], made) + handle
        if opcode in (10, 11):  # UNLINK, RMDIR
            return self.drop(node, names[0])
        if opcode == 12 or opcode == 45:  # RENAME, RENAME2
            to, flags = struct.unpack_from("<QI", body) if opcode == 45 else (*struct.unpack_from("<Q", body), 0)
            return self.rename(node, to, flags, *body[16 if opcode == 45 else 8:].split(b"\0")[:2])
        if opcode == 13:  # LINK
            old, = struct.unpack_from("<Q", body)
            self.free(node, body[8:-1])
            self.inodes[old].nlink += 1
            return self.add(node, body[8:-1], old)
        if opcode in (14, 27):  # OPEN, OPENDIR: the handles of O_TMPFILE are inode numbers
            return struct.pack("<Q2I", 0, 0, 0)
        if opcode == 15:
            return self.read(node, body)
        if opcode == 16:
            return self.write(node, body)
        if opcode == 17:  # STATFS
            return struct.pack("<5Q4I24x", 1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096, 0)
        if opcode == 18:
            return self.release(body)
        if opcode in (20, 25, 29, 30):  # FSYNC, FLUSH, RELEASEDIR, FSYNCDIR
            return b""
        if opcode == 26:  # INIT; BIG_WRITES
            major, minor, ahead = struct.unpack_from("<3I", body)
            return struct.pack("<4I2H2I2HI28x", major, min(minor, 38), ahead, 1 << 5, 12, 9, LARGEST, 1, 0, 0, 0)
        if opcode == 28:
            return self.list(node, body)
        raise OSError(errno.ENOSYS, "")

    def run(self):
        while True:
            try:
                request = os.read(self.fd, LARGEST + 4096)
            except OSError as e:
                if e.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return  # unmounted
            _, opcode, unique, node, uid, gid = struct.unpack_from("<2I2Q2I", request)
            if opcode in (2, 36, 42):  # FORGET, INTERRUPT, BATCH_FORGET: no answer
                continue
            error, out = 0, b""
            try:
                out = self.answer(opcode, node, uid, gid, request[40:])
            except OSError as e:
                error = -e.errno
            try:
                os.write(self.fd, struct.pack("<IiQ", 16 + len(out), error, unique) + out)
            except OSError as e:
                if e.errno != errno.ENOENT:  # the caller was interrupted
                    return


def main():
    fd = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    data = f"fd={fd},rootmode=40000,user_id={os.geteuid()},group_id={os.getegid()}".encode()
    if libc.mount(b"vanishing", sys.argv[1].encode(), b"fuse", 0, data) < 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    if os.fork() == 0:
        Vanishing(fd).run()
        os._exit(0)


main()
