# SPDX-License-Identifier: MIT
# Storage that answers late: tests/tools/faultfs.c delays each request. Trees have FILES/6 (2,000) files. `bench.sh waiting` runs only these.

for name, latency in ("0.2", 200), ("2", 2000), ("20", 20000):
    case(f"waiting-tree-{name}ms", f"small files, {name} ms a request", "cp_-r fcopy_-r rsync_-a cpz fcp syq",
         source="late", fs="ext4", latency=latency, cache="cold", sets="readme" if latency < 20000 else "long",
         rounds=5 if latency < 20000 else 2,
         bars=f"fcopy_-r wall {0.15 if latency < 20000 else 0.10} cp_-r" if latency > 200 else "")
    case(f"waiting-threads-{name}ms", f"small files, {name} ms a request, by threads", "fcopy_-r fcopy_-r_-j8 fcopy_-r_-j16 fcopy_-r_-j32 fcopy_-r_-j64 cpz fcp syq",
         source="late", fs="ext4", latency=latency, cache="cold", sets="long", rounds=5 if latency < 20000 else 2, bars="fcopy_-r wall 1.05 best")
    case(f"waiting-file-{name}ms", f"one file, {name} ms a request", "cp fcopy", size=64 << 20, latency=latency, cache="cold",
         sets="readme" if latency < 20000 else "long", rounds=5, bars="fcopy wall 0.6 cp" if latency == 2000 else "")
    case(f"waiting-write-{name}ms", f"small files written, {name} ms a request", "cp_-r fcopy_-r rsync_-a cpz fcp syq", source="late",
         fs="ext4", latency=latency, writes=True, sets="readme" if latency == 200 else "long", rounds=3 if latency < 20000 else 1)
case("waiting-rate", "one file to a device of 100 MB/s", "cp-sync fsync", size=256 << 20, rate=100_000_000, writes=True, rounds=3, bars="fsync wall 1.1 cp-sync")
for memory in 0, 64 << 20:
    case("waiting-medium" + ("-64M" if memory else ""), "1,000 files of SIZE/100", "cp_-r fcopy_-r cpz fcp syq", source="medium", fs="ext4", memory=memory, sets="long", rounds=3)
