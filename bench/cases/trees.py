# SPDX-License-Identifier: MIT
# Trees, each round on a new file system. `many`: FILES files (12,000, 190 MB) in FILES/20 directories; `flat`: one
# directory of FILES × 25/3 files of 1 KiB; `large`: 20 files of SIZE/4; `middle`: 200 files of SIZE/100.

def tree(name, title, who, **fields):
    case(f"tree-{name}", title, who, group="trees", **fields)

fast = "fcopy_-r wall 1.03 cpz; fcopy_-r wall 0.95 fcp; fcopy_-r wall 0.85 cp_-r"
tree("ext4", "many small files", "cp_-r fcopy_-r fcp cpz rcp xcp_-r uutils_-r", source="many", fs="ext4", sets="quick readme",
     bars="fcopy_-r wall 0.80 fcp; fcopy_-r wall 0.90 cpz; fcopy_-r wall 0.60 cp_-r; fcopy_-r cpu 1.1 cp_-r")
tree("ext4-a", "the same with all metadata", "cp_-a fcopy_-a rsync_-a", source="many", fs="ext4", rounds=8, bars="fcopy_-a wall 0.75 cp_-a")
tree("xfs", "the same on XFS", "cp_-r fcopy_-r fcp cpz", source="many", fs="xfs", rounds=14, bars=fast)
tree("btrfs", "the same on btrfs", "cp_-r fcopy_-r fcp cpz rcp", source="many", fs="btrfs", rounds=12,
     bars="fcopy_-r wall 1.03 cp_-r; fcopy_-r wall 1.03 fcp; fcopy_-r wall 1.03 cpz; fcopy_-r wall 1.03 rcp")
tree("tmpfs", "the same in memory", "cp_-r fcopy_-r fcp cpz", source="many", fs="tmpfs", bars=fast)
tree("flat", "one directory", "cp_-r fcopy_-r fcp cpz", source="flat", fs="ext4", rounds=5, bars="fcopy_-r wall 0.85 cp_-r")
tree("large", "large files", "fcopy_each fcopy_-r cp_-r", source="large", fs="ext4", rounds=6, base="cp_-r",
     bars="fcopy_-r wall 1.0 fcopy_each; fcopy_-r wall 1.0 cp_-r")
tree("cold", "many small files, cold cache", "cp_-r fcopy_-r fcp cpz", source="many", fs="ext4", cache="cold", rounds=6,
     bars="fcopy_-r wall 0.8 cp_-r")
for suffix, fs in ("", "ext4"), ("-here", "here"):
    tree("merge" + suffix, "many small files onto a copy", "cp_-r fcopy_-r", source="many", fs=fs, dest="old", rounds=10, bars="fcopy_-r wall 0.9 cp_-r")
tree("busy", "many small files, a busy machine", "cp_-r fcopy_-r", source="many", fs="ext4", load=1, rounds=10, bars="fcopy_-r wall 1.0 cp_-r")
# The number of threads that fcopy chooses against numbers that a user could choose, and the fastest other tools.
for fs in "ext4", "xfs", "tmpfs":
    tree(f"threads-{fs}", "many small files, by threads", "cpz fcopy_-r fcopy_-r_-j2 fcopy_-r_-j4 fcopy_-r_-j8 fcp syq", source="many", fs=fs, sets="long",
         rounds=16, bars="fcopy_-r wall 1.00 cpz; fcopy_-r cpu 1.00 cpz; fcopy_-r wall 1.05 best")
    tree(f"middle-{fs}", "200 files of 10 MiB, by threads", "cpz fcopy_-r fcopy_-r_-j2 fcopy_-r_-j4 fcp syq", source="middle", fs=fs, sets="long",
         rounds=8, bars="fcopy_-r wall 1.00 cpz; fcopy_-r wall 1.05 best")
tree("threads-cold", "many small files, cold cache, by threads", "cp_-r fcopy_-r fcopy_-r_-j8 fcopy_-r_-j16 fcopy_-r_-j32 cpz fcp syq", source="many", fs="ext4", cache="cold", sets="long", rounds=6, bars="fcopy_-r wall 1.05 best")
