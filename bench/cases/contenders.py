# SPDX-License-Identifier: MIT
# Who is measured: name and command. {fcopy}, {cp}, … are programs (lib/tools.py); {src}, {dst}, {port} are set for
# each run.

contender("fcopy", "{fcopy} {src} {dst}")
contender("floor", "")  # one hot buffer of 256 KiB written into a preallocated file: lib/machine.py
for mode in modes():
    contender(mode, "{fcopy} {src} {dst} " + mode[0])
for buffer in "64K", "1M":
    contender(f"readwrite-{buffer}", f"{{fcopy}} --buffer-size={buffer} {{src}} {{dst}} readwrite")
    contender(f"splice-{buffer}", f"{{fcopy}} --buffer-size={buffer} {{src}} {{dst}} splice")
contender("fcopy-physical", "{fcopy} --reflink=never {src} {dst}")
contender("other", "{other} {src} {dst}")  # another revision: OTHER=PROGRAM

# The same copy with less or more safety.
contender("inplace", "{fcopy} --inplace --preallocate=always {src} {dst}")
contender("fsync", "{fcopy} --fsync {src} {dst}")
contender("verify", "{fcopy} --verify {src} {dst}")
contender("fsync-direct", "{fcopy} --fsync {src} {dst} direct")
for threads in 1, 2, 4, 8:
    contender(f"threads-{threads}", f"{{fcopy}} -j {threads} {{src}} {{dst}} parallel")

# What a user could take instead.
contender("cp", "{cp} {src} {dst}")
contender("cp-physical", "{cp} --reflink=never {src} {dst}")
contender("cp-sync", "{cp} {src} {dst} && sync {dst}")
contender("uutils", "{uutils} {src} {dst}")
contender("xcp", "{xcp} --no-progress {src} {dst}")
contender("fcp", "{fcp} {src} {dst}")
contender("cpz", "{cpz} {src} {dst}")
contender("syq", "{syq} cp {src} --as {dst}")
contender("rcp", "{rcp} {src} {dst}")
contender("rsync", "{rsync} --whole-file {src} {dst}")
for way, number in ("streams", 1), ("transfer", 2):
    contender(f"java-{way}", f"{{java}} JioChannel {{src}} {{dst}} {number}")

# Trees.
for program, option in ("fcopy", "r"), ("fcopy", "a"), ("cp", "r"), ("cp", "a"):
    contender(f"{program}_-{option}", f"{{{program}}} -{option}T {{src}} {{dst}}")
for threads in 2, 4, 8, 16, 32, 64:
    contender(f"fcopy_-r_-j{threads}", f"{{fcopy}} -rT -j {threads} {{src}} {{dst}}")
contender("uutils_-r", "{uutils} -rT {src} {dst}")
contender("xcp_-r", "{xcp} --no-progress -r {src} {dst}")
contender("rsync_-a", "{rsync} -a --whole-file {src}/ {dst}")
contender("fcopy_each", "mkdir {dst}; for file in {src}/*; do {fcopy} $file {dst}/ || exit; done")

# Senders to a socket.
contender("read-send-4K", "{fcopy} --buffer-size=4K {src} tcp:127.0.0.1:{port} readwrite")
contender("read-send-8K", "{fcopy} {src} tcp:127.0.0.1:{port} readwrite")
contender("sendfile", "{fcopy} {src} tcp:127.0.0.1:{port} sendfile")
contender("splice", "{fcopy} {src} tcp:127.0.0.1:{port} splice")
contender("java-read-send", "{java} TraditionalClient 127.0.0.1 {port} {src}")
contender("java-transferTo", "{java} TransferToClient 127.0.0.1 {port} {src}")

# The course's client; who serves it is in cases/sockets.py.
for server in "python-read-send", "python-sendfile-server", "fcopy-read-send", "fcopy-sendfile":
    contender(server, "{python} {bench}/rivals/benchmark_client.py 127.0.0.1 {port}")

# Clients of HTTP; who serves them is in cases/sockets.py.
for server in "nginx", "darkhttpd", "python", "auto", "readwrite-4K", "readwrite-1M", "sendfile", "splice":
    contender(f"curl-{server}", "{curl} -sSf -o /dev/null http://127.0.0.1:{port}/{name}")
    contender(f"ab-{server}", "{ab} -q -n 10000 -c 4 http://127.0.0.1:{port}/{name}")
