# SPDX-License-Identifier: MIT
# A file to a socket. IBM's table: read + send of 4 KiB against sendfile; the receiver discards what it reads.

discard = {"*": "{python} {bench}/lib/peer.py {port}"}

for text in "7M", "21M", "63M", "98M", "200M", "350M", "700M", "1G":
    case(f"socket-{text}", "read + send against sendfile", "read-send-4K sendfile splice" + (" read-send-8K" if text == "1G" else ""), group="sockets",
         size=size(text), dest="none", serve=discard, rounds=20 if text == "1G" else 10, sets="quick readme" if text == "1G" else "readme",
         bars="sendfile wall 0.38 read-send-4K; sendfile cpu 0.30 read-send-4K" if text == "1G" else "")

case("java", "the article's programs, Java at both ends", "java-read-send java-transferTo", group="sockets", dest="none",
     rounds=20, serve={"java-read-send": "{java} TraditionalServer {port}",
                                      "java-transferTo": "{java} TransferToServer {port}"})

case("course", "a file server with two ways, one client; CPU time of the server",
     "python-read-send python-sendfile-server fcopy-read-send fcopy-sendfile", group="sockets", dest="none", served=True,
     serve={
         "python-read-send": "{python} {bench}/rivals/server.py {src} {port} read-send",
         "python-sendfile-server": "{python} {bench}/rivals/server.py {src} {port} sendfile",
         "fcopy-read-send": "{fcopy} -k {src} tcp-listen:{port} 1",
         "fcopy-sendfile": "{fcopy} -k {src} tcp-listen:{port} 2"})

http = {
    "nginx": "{bench}/rivals/nginx.sh {nginx} {port} {dir}",
    "auto": "{fcopy} -k {src} http-listen:{port}",
    "readwrite-4K": "{fcopy} -k --buffer-size=4K {src} http-listen:{port} readwrite",
    "readwrite-1M": "{fcopy} -k --buffer-size=1M {src} http-listen:{port} readwrite",
    "sendfile": "{fcopy} -k {src} http-listen:{port} sendfile",
    "splice": "{fcopy} -k {src} http-listen:{port} splice",
    "darkhttpd": "{darkhttpd} {dir} --addr 127.0.0.1 --port {port}",
    "python": "{python} -m http.server --bind 127.0.0.1 --directory {dir} {port}"}

# ab counts requests; wrk would count seconds. Each request has a connection of its own.
for client, title, length in ("curl", "HTTP, a large file", "1G"), ("ab", "HTTP, 10,000 requests of a small file", "16K"):
    case(f"http-{length}", f"{title}; CPU time of the server", " ".join(f"{client}-{server}" for server in http), group="sockets",
         size=size(length), dest="none", served=True, rounds=10, serve={f"{client}-{server}": command for server, command in http.items()},
         bars=f"{client}-auto cpu 1.0 {client}-nginx" if length == "1G" else "")
