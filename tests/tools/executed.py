#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# executed.py DIR ROOM…: prints FILE LINE of each line of src/ROOM that was executed, from the .gcda and .gcno files in DIR.
import glob, json, os, subprocess, sys

DIR, ROOMS = sys.argv[1], sys.argv[2:]
data = [f for room in ROOMS for f in glob.glob("src/%s/*.gcda" % room, root_dir=DIR)]
if data:
    out = subprocess.run(["gcov", "--json-format", "--stdout"] + data, cwd=DIR, check=True, capture_output=True, text=True).stdout
    for report in out.splitlines():
        for file in json.loads(report)["files"]:
            if file["file"].startswith("src/"):
                for line in file["lines"]:
                    if line["count"]:
                        print("%s %d" % (file["file"], line["line_number"]))
