#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""terminal.py COLUMNS TITLE: what a terminal showed, with its colours, from stdin to SVG."""

import re
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, SIZE, MARGIN = 8.4, 19, 14, 16
COLOURS = {"32": "#7ee787", "34": "#79c0ff", "31": "#ff7b72", "33": "#e3b341"}
BLOCKS = {"█": 1.0, "░": 0.25}  # drawn, because fonts leave gaps between them


def runs(line):
    """The pieces of a line: text, colour, bold, dim."""
    colour, bold, dim = None, False, False
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line.rstrip("\n")):
        sgr = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if not sgr:
            yield from ((t, colour, bold, dim) for t in re.findall(r"█+|░+| +|[^█░ ]+(?: [^█░ ]+)*", piece))
            continue
        for code in (sgr[1] or "0").split(";"):
            if code in ("0", ""):
                colour, bold, dim = None, False, False
            bold |= code == "1"
            dim |= code == "2"
            if code == "22":
                bold = dim = False
            colour = None if code == "39" else COLOURS.get(code, colour)


def draw(line, y):
    column = 0
    for text, colour, bold, dim in runs(line):
        x, width = MARGIN + column * WIDTH, len(text) * WIDTH
        column += len(text)
        fill = f' fill="{colour}"' if colour else ""
        if text[0] in BLOCKS:
            opacity = BLOCKS[text[0]]
            yield (f'<rect x="{x:.1f}" y="{y - SIZE + 2:.1f}" width="{width:.1f}" height="{SIZE}"'
                   f'{fill} opacity="{opacity}"/>')
        elif not text.isspace():
            weight = ' font-weight="bold"' if bold else ""
            faint = ' opacity="0.6"' if dim else ""
            yield (f'<text x="{x:.1f}" y="{y}" textLength="{width:.1f}"{fill}{weight}{faint}>'
                   f"{escape(text)}</text>")


def main():
    columns, title = int(sys.argv[1]), sys.argv[2]
    lines = sys.stdin.read().rstrip("\n").split("\n")
    width = columns * WIDTH + 2 * MARGIN
    height = len(lines) * HEIGHT + 2 * MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
          f'viewBox="0 0 {width:.0f} {height}" font-family="ui-monospace, monospace" '
          f'font-size="{SIZE}" fill="#c9d1d9" xml:space="preserve">')
    print(f"<title>{escape(title)}</title>")
    print('<rect width="100%" height="100%" rx="8" fill="#0d1117"/>')
    for number, line in enumerate(lines):
        for shape in draw(line, MARGIN + number * HEIGHT + SIZE):
            print(shape)
    print("</svg>")


main()
