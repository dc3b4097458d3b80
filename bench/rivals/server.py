#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""server.py FILE                            serves FILE: port 8081 by read + send, port 8082 by sendfile
server.py FILE PORT read-send|sendfile    serves it at one port of your choice
"""
import socket
import sys
import threading

BUFFER = 4096


def read_send(client, file):
    while piece := file.read(BUFFER):
        client.sendall(piece)


def sendfile(client, file):
    client.sendfile(file)


METHODS = {"read-send": read_send, "sendfile": sendfile}


def serve_client(client, name, method):
    with client, open(name, "rb", buffering=0) as file:
        try:
            method(client, file)
        except (BrokenPipeError, ConnectionResetError):
            pass


def serve(name, port, method):
    with socket.create_server(("127.0.0.1", port)) as server:
        while True:
            client, _ = server.accept()
            threading.Thread(target=serve_client, args=(client, name, method), daemon=True).start()


def main():
    if len(sys.argv) == 4:
        serve(sys.argv[1], int(sys.argv[2]), METHODS[sys.argv[3]])
    elif len(sys.argv) == 2:
        threading.Thread(target=serve, args=(sys.argv[1], 8081, read_send), daemon=True).start()
        serve(sys.argv[1], 8082, sendfile)
    else:
        sys.exit(__doc__)


try:
    main()
except KeyboardInterrupt:
    pass
