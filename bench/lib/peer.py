#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""peer.py discard PORT      a server that reads and forgets, one client after another
peer.py send PORT FILE    sends FILE by sendfile, and waits until the server closes
"""
import socket
import sys


def discard(port):
    room = bytearray(1 << 20)
    with socket.create_server(("127.0.0.1", int(port)), backlog=64) as server:
        while True:
            client, _ = server.accept()
            with client:
                while client.recv_into(room, 0, socket.MSG_TRUNC):  # MSG_TRUNC: nothing is copied
                    pass


def send(port, name):
    with socket.create_connection(("127.0.0.1", int(port))) as server, open(name, "rb", buffering=0) as file:
        server.sendfile(file)
        server.shutdown(socket.SHUT_WR)
        server.recv(1)


{"discard": discard, "send": send}[sys.argv[1]](*sys.argv[2:])
