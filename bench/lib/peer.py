#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The plain other end of a TCP stream.

peer.py discard HOST PORT SIZE                   read and forget, one client after another
peer.py send    HOST PORT FILE sendfile|read-send   connect as soon as somebody listens, send, wait for the close
peer.py fetch   HOST PORT CLIENTS SIZE [http]    CLIENTS at once read SIZE bytes each, to the end
"""
import selectors
import socket
import sys
import time

ROOM = 1 << 20


def dial(host, port):
    deadline = time.monotonic() + 10
    while True:
        try:
            return socket.create_connection((host, port))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.0005)


def drain(stream, how=0):
    room, total = bytearray(ROOM), 0
    while count := stream.recv_into(room, 0, how):
        total += count
    return total


def discard(host, port, size):
    with socket.create_server((host, int(port)), backlog=64) as server:
        while True:
            stream, _ = server.accept()
            with stream:
                try:
                    total = drain(stream, socket.MSG_TRUNC)
                except ConnectionResetError:
                    total = 0
                if total < int(size):
                    print(f"{total} of {size} bytes came", file=sys.stderr, flush=True)


def send(host, port, name, method):
    with dial(host, int(port)) as stream, open(name, "rb", buffering=0) as file:
        if method == "sendfile":
            stream.sendfile(file)
        else:
            while piece := file.read(4096):
                stream.sendall(piece)
        stream.shutdown(socket.SHUT_WR)
        drain(stream)


def fetch(host, port, clients, size, http=None):
    selector, room, total = selectors.DefaultSelector(), bytearray(ROOM), 0
    for _ in range(int(clients)):
        stream = dial(host, int(port))
        if http:
            stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
        selector.register(stream, selectors.EVENT_READ)
    while selector.get_map():
        for key, _ in selector.select():
            count = key.fileobj.recv_into(room)
            total += count
            if count == 0:
                selector.unregister(key.fileobj)
                key.fileobj.close()
    wanted = int(clients) * int(size)
    if total < wanted:
        sys.exit(f"{total} of {wanted} bytes came")


globals()[sys.argv[1]](*sys.argv[2:])
