#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""peer.py PORT: a server that reads and forgets, one client after another."""
import socket
import sys

room = bytearray(1 << 20)
with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64) as server:
    while True:
        client, _ = server.accept()
        with client:
            while client.recv_into(room, 0, socket.MSG_TRUNC):  # MSG_TRUNC: nothing is copied
                pass
