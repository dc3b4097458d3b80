# SPDX-License-Identifier: MIT
"""Copies over HTTP for random_walk.py: one fcopy serves a file, a client reads it and uploads it to another one, which writes DST.
Clients and servers are killed, calls fail, and SRC changes; then the client goes on with the bytes that it lacks."""
import hashlib
import os
import re
import signal
import socket
import stat
import subprocess
import time
from walk_oracle import Command, Entry, Step, inodes, is_file

UPLOAD = [[], [], ["-f"], ["-n"], ["--fsync"], ["--verify"], ["--inplace=auto"], ["--strict", "--size=%d"], ["--strict", "--size=1"]]
NETWORK = {"accept4,accept": 3, "recvfrom,recvmsg,read": 30, "sendto,sendmsg,sendfile,splice": 6, "shutdown,setsockopt,listen": 6,
           "poll,ppoll": 8}
SECONDS = 30  # that nothing takes


class Server:
    """A command that listens. port is None if it has ended first."""

    def __init__(self, walk, words, fault):
        self.walk, self.err_path = walk, walk.home + "/server"
        self.traced = bool(fault)
        trace = ["strace", "-D", "-f", "-q", "-o", walk.home + "/trace", "-e", "signal=none"] + fault if fault else []
        command = trace + [walk.fcopy] + words
        walk.log.append(" ".join(command))
        with open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        self.port, end = None, time.monotonic() + SECONDS
        while not self.port and time.monotonic() < end:
            over = self.process.poll() is not None
            found = re.search(r"(?m)^fcopy: .* on [^ ]*:([0-9]+)( .*)?$", self.err())
            self.port = int(found[1]) if found else None
            if over:
                break
            time.sleep(.002)

    def err(self):
        with open(self.err_path, errors="replace") as f:
            return f.read()

    def gone(self):
        return self.process.poll() is not None

    def end(self, sig=None):
        """The status, and what was printed. sig: it does not end by itself."""
        if sig:
            self.process.send_signal(sig)
        try:
            status = self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.walk.fail("hung", "a server did not end within %d s" % SECONDS)
            status = 124
        end = time.monotonic() + 5
        while self.traced and time.monotonic() < end:  # until strace has written its last line
            with open(self.walk.home + "/trace", errors="replace") as f:
                if re.search(r"(?m)^%d +\+\+\+ " % self.process.pid, f.read()):
                    break
            time.sleep(.002)
        return self.walk.ended(status, self.err())


def exchange(port, request, meanwhile=None, stop=None):
    """Sends a request; returns the status, the fields and the body of the response, as far as they come. stop: how many bytes of the
    body to read. meanwhile: called after these, and the rest is read; otherwise the client is killed then."""
    answer, s = b"", None
    try:
        s = socket.create_connection(("127.0.0.1", port), SECONDS)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)  # most bytes are not yet sent then
        request(s) if callable(request) else s.sendall(request)
        while True:
            head, end, body = answer.partition(b"\r\n\r\n")
            if stop is not None and end and len(body) >= stop:
                if not meanwhile:
                    break
                meanwhile()
                stop = None
            left = stop - len(body) if end and stop is not None else 65536
            piece = s.recv(max(left, 1))
            if not piece:
                break
            answer += piece
    except OSError as e:
        if isinstance(e, TimeoutError):
            return "timeout", {}, b""
    finally:
        if s:
            s.close()
    head, end, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if not end or not re.match(r"HTTP/1\.1 [0-9]{3} ", lines[0]):
        return None, {}, b""
    return int(lines[0][9:12]), dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line), body


class Http:
    """A part of Walk."""

    def draw_http_fault(self):
        fault = self.draw_fault()
        if self.r.random() < .5:
            calls = self.r.choice(sorted(NETWORK))
            what = self.r.choice(["signal=KILL", "error=ECONNRESET", "error=EIO", "error=EINTR", "error=ENOMEM"])
            fault = ["-e", "trace=" + calls, "-e", "inject=%s:%s:when=%d" % (calls, what, self.r.randint(1, NETWORK[calls]))]
        return fault

    def rewrite(self, path):
        """SRC is written in place, or replaced by another file: a server has the old one open."""
        if self.r.random() < .5:
            os.unlink(path)
        with open(path, "wb") as f:
            f.write(self.r.randbytes(self.r.choice([1, 5000, 70000, 300000])))
        self.tick(path)
        self.log.append("# SRC is written while it is served")
        with open(path, "rb") as f:
            return f.read()

    def fetch(self, path):
        """The bytes of SRC, by one or several requests; None if they did not come. They are always those of one version."""
        with open(path, "rb") as f:
            versions = [f.read()]
        keep, mode = self.r.random() < .4, self.r.choice(["auto", "auto", "readwrite", "sendfile", "splice", "mmap"])
        words = (["-k"] if keep else []) + [path, "http-listen:0", mode]
        fault = self.draw_http_fault() if self.r.random() < .3 else None
        server, got, tag, whole, cuts = Server(self, words, fault), b"", None, False, 0
        while not whole and cuts < 8:
            if not server.port or server.gone():
                status, err = server.end(None if server.gone() else signal.SIGTERM)  # the line with the port was not written
                if not fault:
                    self.fail("wrong", "the server ended with status %d before the file was delivered: %s" % (status, err))
                    return None
                self.count("serve", status)
                fault, server = None, Server(self, words, None)  # continued: the same command again
                if not server.port:
                    self.fail("other", "the server does not start again: %s" % server.err())
                    return None
            stop, meanwhile = None, None
            if self.r.random() < .5:
                stop = self.r.randrange(len(versions[-1]) + 1)
                if self.r.random() < .4 and mode not in ("sendfile", "splice"):  # these send pages, not copies
                    meanwhile = lambda: versions.append(self.rewrite(path))
            ask = b"GET / HTTP/1.1\r\nHost: h\r\n"
            if got and tag:
                ask += b"Range: bytes=%d-\r\nIf-Range: %s\r\n" % (len(got), tag.encode("latin-1"))
            code, fields, body = exchange(server.port, ask + b"\r\n", meanwhile, stop)
            self.log.append("# GET from %d, stop at %s: %s, %d bytes" % (len(got) if tag else 0, stop, code, len(body)))
            cuts += 1
            if code == "timeout":
                self.fail("hung", "no answer to a GET")
                server.end(signal.SIGKILL)
                return None
            if code == 416 and any(len(v) == len(got) for v in versions):
                whole = got in versions
            elif code in (200, 206):
                got = body if code == 200 else got + body
                tag = fields.get("etag")
                whole = "content-length" in fields and len(body) == int(fields["content-length"])
            elif code is not None and not fault:
                self.fail("other", "GET: status %d" % code)
            if not whole and self.r.random() < .3:
                versions.append(self.rewrite(path))
        if whole and got not in versions:
            self.fail("wrong", "%d bytes came, which are those of no version of SRC" % len(got))
        last = whole and stop is None
        waits = keep or not last or fault and not self.ends(server)  # a delivery of which a call failed does not count
        status, err = server.end(signal.SIGTERM if waits else None)
        self.count("serve", status)
        wanted = (0,) if keep or last else (0, 143)
        if not fault and status not in wanted:
            self.fail("other", "the server ended with status %d, not %s: %s" % (status, wanted, err))
        return got if whole else None

    def pair(self):
        """A file of SRC, its place in DST, and the key of this in a snapshot; None if there is none."""
        if not self.tree:
            return self.src, self.dst, "d"
        found = []
        for path in self.paths(self.src, stat.S_IFREG):
            name = os.path.relpath(path, self.src)
            dst = os.path.join(self.dst, name)
            if os.path.isdir(os.path.dirname(dst)) and os.path.realpath(os.path.dirname(dst)) == os.path.dirname(dst) and (
                    not os.path.lexists(dst) or stat.S_IFMT(os.lstat(dst).st_mode) in (stat.S_IFREG, stat.S_IFLNK)):
                found.append((path, dst, name))
        return self.r.choice(found) if found else None

    def http(self):
        """One file over HTTP. The upload is judged like a copy whose SRC is what the client has sent."""
        pair = self.pair()
        if not pair:
            return
        path, dst, name = pair
        body = self.fetch(path)
        if body is None or self.found:
            return
        before, src, leftovers = self.see()
        words = [w % max(len(body), 1) if "%" in w else w for w in self.r.choice(UPLOAD)]
        step = Step([Command(words, False)], before, {name: Entry(stat.S_IFREG, hashlib.sha1(body).hexdigest(), len(body), 0o644,
                                                                  None, time.time_ns(), None, 1)})
        step.seen, step.old_inodes = src, inodes(self.at, leftovers)
        fault = self.draw_http_fault() if self.r.random() < .3 else None
        server = Server(self, words + ["http-listen:0", dst], fault)
        code, event, at = None, None, 0
        if server.port:
            code, event, at = self.upload(server, body, step)
        kind = "kill" if event == "kill" else "fault" if fault or event else "plain"
        wait = signal.SIGTERM if code is None and event not in ("kill", "term") and not self.ends(server) else None
        step.ended = [server.end(wait)]
        status = step.ended[0][0]
        step.silenced = bool(fault) and self.silenced()
        if status == 137:
            kind = "kill"
        if status == 143:
            step.ended = [(1, step.ended[0][1])]
        self.count("upload " + kind, status)
        self.judge_upload(step, name, code, event, fault, event == "close" and at == len(body))
        old = step.before.get(name)
        empty = not body and is_file(old) and old.size and "-f" not in words
        if kind == "plain" and not ("-n" in words and old) and ("--strict" in words and not body or "--size=1" in words and len(body) != 1 or empty):
            kind = "fault"  # the reason is the input
            if status == 0:
                self.fail("wrong", "status 0 for %d bytes with %s, DST had %d" % (len(body), words, old.size if old else 0))
        self.judge(step, kind, step.before if before or event == "appear" else before, leftovers)
        self.edited = self.edited or self.tree

    @staticmethod
    def ends(server):
        """Whether it ends by itself: a failed call may have cost the connection, not the server."""
        end = time.monotonic() + 2
        while not server.gone() and time.monotonic() < end:
            time.sleep(.005)
        return server.gone()

    def upload(self, server, body, step):
        """Returns the status of the response, what was done after a part of the body, and the length of this part."""
        event = self.r.choice([None] * 5 + ["close", "half-close", "kill", "term", "appear"])
        at = self.r.randrange(len(body) + 1)
        if event == "appear" and at == len(body):
            event = None  # it may be committed by then

        def send(s):
            s.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:at])
            if event == "close":
                raise ConnectionError
            if event == "half-close":
                s.shutdown(socket.SHUT_WR)
            elif event in ("kill", "term"):
                server.process.send_signal(signal.SIGKILL if event == "kill" else signal.SIGTERM)
                server.process.wait(SECONDS) if event == "kill" else None
            elif event == "appear" and not self.tree:
                self.do_appear(None, step)
            if event not in ("half-close", "term"):
                s.sendall(body[at:])

        if self.r.random() < .2 and exchange(server.port, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")[0] not in (405, None):
            self.fail("other", "a GET to a server that takes an upload was not refused")
        code = exchange(server.port, send)[0]
        self.log.append("# PUT of %d bytes%s: %s" % (len(body), ", %s after %d" % (event, at) if event else "", code))
        if code == "timeout":
            self.fail("hung", "no answer to a PUT")
            server.process.kill()
            return None, "kill", at
        return code, event if event != "half-close" or at < len(body) else None, at

    def judge_upload(self, step, name, code, event, fault, complete):
        """What the response promises, and what it denies. complete: a client was killed that had sent all bytes."""
        after, (status, text) = self.see()[0] or {}, step.ended[0]
        old, now = step.before.get(name), after.get(name)
        stored = now is not None and now.data == step.sources[0][name].data
        if code in (201, 204):
            if not stored:
                self.fail("wrong", "the response to the upload is %d, but %r has not its bytes" % (code, name))
            if event != "appear" and (code == 201) != (old is None):
                self.fail("other", "the response is %d, but %r was %s" % (code, name, "there" if old else "absent"))
        elif code is not None and not 400 <= code <= 599:
            self.fail("other", "the response to the upload is %d" % code)
        if not fault and event != "kill":
            skipped = "-n" in step.commands[0].words and (code is None and event is None or code == 409 and event == "appear")
            if (status == 0) != (code in (201, 204)) and not skipped and not complete:
                self.fail("other", "status %d, but the response is %s: %s" % (status, code, text))
            if status and now != old:
                self.fail("lost", "%r has changed, although the upload failed: %s" % (name, text))
