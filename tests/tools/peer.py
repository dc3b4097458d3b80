#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The other end of a TCP connection, with the manners that a test asks for.

peer.py MANNER PORT [BYTES] connects to 127.0.0.1:PORT and says so on stdout; with PORT 0 it
listens, writes its port there, and takes one connection. It exits 0 when it did what its manner says.

  receive       reads to the end, prints the number of bytes, closes
  keep          reads to the end and keeps its own side open, for ten seconds
  deaf          ends its own side first, prints "deaf", reads to the end, prints the number
  slow          reads one byte a second, for a minute
  sips          reads BYTES a second in ten sips each, to the end, prints the number
  stuck         reads nothing, for a minute; its kernel takes little
  refuse        reads BYTES, then closes while more is on the way
  reset         reads BYTES, then resets
  send          sends BYTES, ends its side, waits for the close: prints "closed" or "reset"
  send-reset    sends BYTES, then resets
  send-stall    sends BYTES and then nothing, for ten seconds: prints "closed" or "reset"
  urgent        sends BYTES with urgent data in the middle, ends its side, waits for the close
  urgent-reset  the same, but resets at the end
  urgent-stall  the same, but sends nothing more and does not end its side, for ten seconds

The urgent byte (MSG_OOB) is not part of the stream that a receiver reads. Bytes that are sent are
0, 1, ... 250, 0, 1, ... for the urgent manners, and "x" for the others.
"""
import socket
import struct
import sys
import time


def connect(port, manner):
    if port:
        stream = socket.create_connection(("127.0.0.1", port))
        print("connected", flush=True)
        return stream
    with socket.create_server(("127.0.0.1", 0)) as server:
        if manner == "stuck":
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        print(server.getsockname()[1], flush=True)
        return server.accept()[0]


def read(stream, most=None):
    total = 0
    while most is None or total < most:
        piece = stream.recv(65536 if most is None else min(65536, most - total))
        if not piece:
            break
        total += len(piece)
    return total


def reset(stream):
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


def outcome(stream, seconds):
    stream.settimeout(seconds)
    try:
        return "closed" if stream.recv(1) == b"" else "answered"
    except ConnectionResetError:
        return "reset"


def slow(stream):
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(60):
        if not stream.recv(1):
            break
        time.sleep(1)


def sip(stream, rate):
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    total = 0
    while piece := stream.recv(rate // 10):
        total += len(piece)
        time.sleep(0.1)
    return total


def act(manner, stream, count):
    if manner == "deaf":
        stream.shutdown(socket.SHUT_WR)
        print("deaf", flush=True)
    if manner in ("receive", "keep", "deaf"):
        print(read(stream), flush=True)
    if manner in ("keep", "stuck"):
        time.sleep(60 if manner == "stuck" else 10)
    elif manner == "slow":
        slow(stream)
    elif manner == "sips":
        print(sip(stream, count), flush=True)
    elif manner in ("refuse", "reset"):
        read(stream, count)
        if manner == "reset":
            reset(stream)
    elif manner.startswith("urgent"):
        data = bytes(i % 251 for i in range(251)) * (count // 251 + 1)
        stream.sendall(data[:count // 2])
        stream.send(b"!", socket.MSG_OOB)
        stream.sendall(data[count // 2:count])
        if manner == "urgent-reset":
            reset(stream)
            return
        if manner == "urgent":
            stream.shutdown(socket.SHUT_WR)
        print(outcome(stream, 10), flush=True)
    elif manner.startswith("send"):
        stream.sendall(b"x" * count)
        if manner == "send-reset":
            reset(stream)
            return
        if manner == "send":
            stream.shutdown(socket.SHUT_WR)
        print(outcome(stream, 10), flush=True)


if __name__ == "__main__":
    with connect(int(sys.argv[2]), sys.argv[1]) as connection:
        act(sys.argv[1], connection, int(sys.argv[3]) if len(sys.argv) > 3 else 0)
