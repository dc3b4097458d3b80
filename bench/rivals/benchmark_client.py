#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""benchmark_client.py read-send|sendfile    fetches the file from server.py's port 8081 or 8082
benchmark_client.py HOST PORT             the same from anywhere
"""
import socket
import sys
import time

PORTS = {"read-send": 8081, "sendfile": 8082}


def fetch(host, port):
    room, total = bytearray(1 << 16), 0
    with socket.create_connection((host, port)) as server:
        while count := server.recv_into(room):
            total += count
    return total


def main():
    if len(sys.argv) == 3:
        where = sys.argv[1], int(sys.argv[2])
    elif len(sys.argv) == 2 and sys.argv[1] in PORTS:
        where = "127.0.0.1", PORTS[sys.argv[1]]
    else:
        sys.exit(__doc__)
    start = time.perf_counter()
    total = fetch(*where)
    print(f"Received: {total} bytes\nTime taken: {time.perf_counter() - start:.6f} seconds")


main()
