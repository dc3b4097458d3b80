#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A link that breaks: proxy.py MANNER PORT BYTES forwards one connection to 127.0.0.1:PORT, and after
BYTES of the client's either resets both sides ("reset") or forwards nothing more, in either
direction, for three seconds ("drop"). It writes the port that it listens on to stdout."""
import selectors
import socket
import struct
import sys
import time


def reset(stream):
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


def forward(client, server, most):
    """Until both sides have ended their stream: True; until `most` bytes have passed: False."""
    selector, ends, passed = selectors.DefaultSelector(), 0, 0
    selector.register(client, selectors.EVENT_READ, server)
    selector.register(server, selectors.EVENT_READ, client)
    while ends < 2:
        for key, _ in selector.select():
            room = most - passed if key.fileobj is client else 65536
            if room == 0:
                return False
            piece = key.fileobj.recv(min(room, 65536))
            if piece:
                key.data.sendall(piece)
            else:
                selector.unregister(key.fileobj)
                key.data.shutdown(socket.SHUT_WR)
                ends += 1
            if key.fileobj is client:
                passed += len(piece)
    return True


def main(manner, port, most):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        client = listener.accept()[0]
    server = socket.create_connection(("127.0.0.1", int(port)))
    try:
        if forward(client, server, int(most)):
            return
    except OSError:
        manner = "reset"
    if manner == "drop":
        time.sleep(3)
    reset(client)
    reset(server)


main(*sys.argv[1:])
