#!/bin/sh
# SPDX-License-Identifier: MIT
#
# bench.sh SET|CASE|GROUP|PATTERN...   measures; ends with a summary of one page
# bench.sh --list                      all cases
# bench.sh show RUN                    all rows of a run, as Markdown
# bench.sh agree RUN RUN               how many ratios of 1 GiB agree within 5 and 10 %
#
# SET is quick (5 minutes), readme (an hour, half of it with ROUNDS=5: the figures of the READMEs), long, or all.
# RUN is a directory with samples.csv and circumstances.json. ^C ends a run and keeps what it has.
#
# Variables: DIR (where the files are made; build/bench), FS (ext4, xfs, btrfs, tmpfs: a loop image there
# instead), SIZE (of large files; 1G), FILES (in the tree `many`; 12000), ROUNDS (for all cases), OUT (the new
# run), SOURCE (a file to copy instead of random bytes), OTHER (the program of case `revisions`), FCOPY, RIVALS_DIR.
exec python3 -B "$(dirname "$(realpath "$0")")/lib/run.py" "$@"
