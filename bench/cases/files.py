# SPDX-License-Identifier: MIT
# One file.

all_modes = " ".join(mode for mode in modes() if not mode.startswith("8"))

case("modes", "each mechanism, random bytes", f"cp fcopy floor {all_modes} readwrite-1M", sets="quick readme", bars="""
    fcopy wall 0.55 cp fast; fcopy wall 1.3 floor; fcopy wall 1.2 best;
    2:sendfile cpu 0.40 1:readwrite; 3:splice cpu 0.40 1:readwrite; 4:copy_file_range cpu 0.40 1:readwrite;
    3:splice wall 1.00 2:sendfile; 4:copy_file_range wall 1.05 cp""")

case("buffers", "equal buffers: two copies of each byte, and one", "cp readwrite-64K splice-64K readwrite-1M splice-1M threads-1")
case("modes-cold", "each mechanism, cold cache", f"cp fcopy {all_modes}", cache="cold", rounds=12)

case("allocated", "the file of the works behind this project: made by fallocate, then read",
     "1:readwrite 2:sendfile fcopy cp java-streams java-transfer", source="allocated", rounds=12, bars="2:sendfile cpu 0.50 1:readwrite")

case("rivals", "other tools that copy files", "cp fcopy uutils xcp fcp cpz rcp rsync", sets="quick readme", bars="""
    fcopy wall 0.55 cp fast; fcopy wall 0.65 uutils fast; fcopy wall 0.55 xcp fast; fcopy wall 1.00 cp""")

case("replace", "onto an existing file", "cp fcopy uutils 3:splice", dest="old", rounds=16, bars="fcopy wall 1.00 cp; fcopy wall 1.2 best")

for text, rounds in ("1", 20), ("64K", 20), ("1M", 20), ("16M", 20), ("64M", 20), ("256M", 20), \
        ("1G", 12), ("4G", 7), ("8G", 9):
    case(f"size-{text}", "by size", "cp fcopy 3:splice 7:parallel" + ("" if text in ("4G", "8G") else " 1:readwrite 2:sendfile"), group="sizes",
         rounds=rounds, size=size(text), sets="long" if text in ("4G", "8G") else "readme", bars="fcopy wall 1.03 cp; fcopy wall 1.2 best")

for fs in "xfs", "btrfs", "tmpfs":
    case(f"fs-{fs}", "a clone where the file system has them", "cp fcopy", fs=fs, rounds=16, bars="fcopy wall 1.03 cp")
for fs in "xfs", "btrfs":
    case(f"fs-{fs}-physical", "a physical copy where a clone is possible", "cp-physical fcopy-physical", fs=fs,
         bars="fcopy-physical wall 1.03 cp-physical; fcopy-physical cpu 1.03 cp-physical")

# All of these wait for the device, whose speed varies: compare them only with each other.
case("durable", "cold cache, on the disk at the end", "cp-sync fsync verify fsync-direct", cache="cold", rounds=12,
     bars="fsync wall 1.05 cp-sync; fsync-direct cpu 0.15 cp-sync")
case("price", "fcopy with less safety", "inplace fcopy cp", bars="fcopy wall 1.05 inplace")
case("price-4K", "a small file, with less and with more safety", "inplace fcopy fsync verify cp", size=4096,
     bars="fcopy wall 1.15 inplace; fcopy wall 1.03 cp")

# A busy machine.
for loops in 1, 2:
    for suffix, length in ("", SIZE // 4), ("-large", SIZE):
        case(f"busy{loops}{suffix}", "a busy machine", "cp fcopy", group="load", size=length, load=loops,
             sets="long" if suffix else "readme", bars="fcopy wall 0.9 cp; fcopy cpu 0.95 cp")
case("four", "four copies at once", "cp fcopy", group="load", size=SIZE // 4, copies=4, bars="fcopy wall 0.9 cp")

case("threads", "mode 7 by number of threads", "threads-1 threads-2 threads-4 threads-8", rounds=16)
case("revisions", "this revision against another one (OTHER=PROGRAM)", "other fcopy", sets="long", bars="fcopy wall 1.02 other")
