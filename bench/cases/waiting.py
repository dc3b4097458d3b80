# SPDX-License-Identifier: MIT
# Storage that answers late: tests/tools/faultfs.c delays each request. Trees have FILES/6 (2,000) files.

for name, latency in ("0.2", 200), ("2", 2000), ("20", 20000):
    case(f"waiting-tree-{name}ms", f"small files, {name} ms a request", "cp_-r fcopy_-r rsync_-a cpz fcp",
         source="late", fs="ext4", latency=latency, cache="cold", rounds=5 if latency < 20000 else 2,
         bars=f"fcopy_-r wall {0.15 if latency < 20000 else 0.10} cp_-r" if latency > 200 else "")
    case(f"waiting-file-{name}ms", f"one file, {name} ms a request", "cp fcopy", size=64 << 20, latency=latency, cache="cold",
         rounds=5, bars="fcopy wall 0.6 cp" if latency == 2000 else "")
