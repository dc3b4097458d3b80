#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""terminal.py [SIZE]: draws bench/terminal.svg, a terminal of 80 columns: copies of a file of SIZE (512M), and --benchmark."""
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from case import BENCH, FCOPY, size

COLUMNS, WIDTH, HEIGHT, SIZE, MARGIN = 80, 8.4, 19, 14, 16
STYLES = {"1": ' font-weight="bold"', "2": ' opacity="0.6"', "31": ' fill="#ff7b72"', "32": ' fill="#7ee787"',
          "33": ' fill="#e3b341"', "34": ' fill="#79c0ff"'}  # any other code resets
BLOCKS = {"█": 1.0, "░": 0.25}  # drawn, because fonts leave gaps between them
PROMPT = "\x1b[1;34m$\x1b[0m "

def screen(command, until=None):
    """What a terminal shows after a command, or as soon as it shows `until`, as lines."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("sh", ["sh", "-c", f"stty cols {COLUMNS}; exec {command}"], {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    text, lines = "", []
    while True:
        try:
            text += os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # EIO: the command ended
            break
        lines = [re.sub(r"\x1b\[(?:\?7[lh]|\d*[JK])", "", re.split(r"\r", line.rstrip("\r"))[-1]) for line in text.split("\n")]
        if until and re.search(until, lines[-1]):
            until, found = None, lines[-1:]
    os.waitpid(pid, 0)
    return found if "found" in locals() else lines

def shapes(line, y):
    """The SVG elements of a line, with its colours."""
    column, style = 0, ""
    for piece in re.findall(r"\x1b\[[0-9;]*m|█+|░+| +|[^█░ \x1b]+(?: [^█░ \x1b]+)*", line):
        x, width = MARGIN + column * WIDTH, len(piece) * WIDTH
        if piece[0] == "\x1b":
            codes = [STYLES.get(code, "") for code in piece[2:-1].split(";")]
            style = style + "".join(codes) if any(codes) else ""
            continue
        column += len(piece)
        if piece[0] in BLOCKS:
            yield f'<rect x="{x:.1f}" y="{y - SIZE + 2:.1f}" width="{width:.1f}" height="{SIZE}"{style} fill-opacity="{BLOCKS[piece[0]]}"/>'
        elif not piece.isspace():
            yield f'<text x="{x:.1f}" y="{y}" textLength="{width:.1f}"{style}>{escape(piece)}</text>'

def main(count="512M"):
    lines = []
    with tempfile.TemporaryDirectory(dir=BENCH.parent / "build") as work:
        os.chdir(work)
        os.environ["PATH"] = f"{FCOPY.parent}:{os.environ['PATH']}"
        Path("disk.img").write_bytes(os.urandom(size(count)))
        for command, until in ("fcopy --limit-rate=200M disk.img backup.img", r"\b6\d%"), \
                ("fcopy --stats --fsync disk.img new.img", None), ("fcopy --benchmark disk.img .", None):
            if not until:  # rehearsed: memory that a host took back is slow at its first touch
                subprocess.run(command, shell=True, capture_output=True, check=True)
                Path("new.img").unlink(missing_ok=True)
            lines += [PROMPT + command, *(line for line in screen(command, until) if line.strip()), ""]
        os.chdir(BENCH)
    width, height = COLUMNS * WIDTH + 2 * MARGIN, len(lines[:-1]) * HEIGHT + 2 * MARGIN
    drawn = "\n".join(shape for number, line in enumerate(lines) for shape in shapes(line, MARGIN + number * HEIGHT + SIZE))
    (BENCH / "terminal.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="ui-monospace, monospace" font-size="{SIZE}" fill="#c9d1d9" xml:space="preserve">\n'
        f'<title>fcopy on a terminal</title>\n<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n{drawn}\n</svg>\n',
        encoding="utf-8")

main(*sys.argv[1:])
