#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""figures.py draw|check RESULTS FILE…: pictures and figures from the committed runs in RESULTS.

draw writes the pictures, and fills FILE… between <!-- figure:WHAT --> and <!-- end -->; check only reports
what differs. RESULTS/first is the run that is shown; a ratio of 1 GiB that differs from RESULTS/second by more
than 10 % is shown as a range."""
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import report
from case import BENCH, human, load
from report import Run, interval, label

# IBM's Table 1 (2008, Linux 2.6), milliseconds: read + send of 4 KiB, and transferTo.
IBM = {7: (156, 45), 21: (337, 128), 63: (843, 387), 98: (1320, 617), 200: (2124, 1150),
       350: (3631, 1762), 700: (13498, 4422), 1024: (18399, 8537)}
# What the README shows: (what, case, fcopy, cp).
MAIN = (("1 GiB, to a new name", "rivals", "fcopy", "cp"), ("1 GiB, replaces a file", "replace", "fcopy", "cp"),
        ("a new directory with 12,000 small files", "tree-ext4", "fcopy_-r", "cp_-r"),
        ("2,000 small files, not cached, on storage that answers after 2 ms", "waiting-tree-2ms", "fcopy_-r", "cp_-r"),
        ("a copy over an existing directory", "tree-merge", "fcopy_-r", "cp_-r"))
ORANGE, BLUE = "0xd55e00", "0x0083cc"
REGION = re.compile(r"(<!-- figure:([^>]*?) -->)(.*?)(<!-- end -->)", re.S)

class Figures:
    def __init__(self, results):
        self.first, self.run = Run(results / "first"), Run(results / "first")
        self.second = Run(results / "second") if (results / "second").exists() else None
        for name in [each for each in self.second.cases if each not in self.first.cases] if self.second else ():
            self.run.cases[name] = self.second.cases[name]
            self.run.samples.update({key: own for key, own in self.second.samples.items() if key[0] == name})

    def ratio(self, name, who, base, metric="wall"):
        """As text: with its interval; a range if the two runs differ."""
        answer = self.run.ratio(name, who, base, metric)
        if not answer:
            return "–"
        both = self.second and name in self.first.cases and name in self.second.cases
        other = self.second.ratio(name, who, base, metric) if both else None
        if other and self.run.cases[name]["size"] == 1 << 30 and abs(other[0] / answer[0] - 1) > 0.10:
            low, high = sorted((answer[0], other[0]))
            return f"{low:.2f} to {high:.2f}"
        return interval(answer)

    def headline(self):
        """The first row of speed()."""
        _, name, *who = MAIN[0]
        ours, base = (seconds(self.run.value(name, each)) for each in who)
        return f"**1 GiB in {ours}; `cp` needs {base}** (a cached file, copied to a new name, in {self.machine_kind()})."

    def machine_kind(self):
        machine = self.run.facts["machine"]
        return f"a {'virtual ' if 'virtual' in machine else ''}machine with {machine.split(' ×')[0]} CPUs"

    def speed(self):
        """Times and their quotient, without intervals."""
        rows = [(what, *map(seconds, times), "about as fast" if 0.95 < times[1] / times[0] < 1.05 else f"{times[1] / times[0]:.1f} times as fast") for what, name, *who in MAIN
                if self.run.ratio(name, *who) and (times := [self.run.value(name, each) for each in who])]
        system = re.match(r"(Linux \d+\.\d+).*?(\(.*?\) \S+?);", f"{self.run.facts['kernel']}{self.run.facts['versions']}")
        return report.table((f"{self.run.facts['file system'].split()[0]}, {system[1]}, {self.machine_kind()}; `SRC` in the page cache",
                             "fcopy", f"cp {system[2].split()[-1]}", "fcopy is"), rows)

    def table(self, name):
        """Fastest first: command, time, CPU time, ratio."""
        run = self.run
        if not run.measured(name):
            return self.missing(name)
        about, base = run.cases[name], run.cases[name]["base"]
        rows = [(self.called(name, who), in_seconds(run.value(name, who)),
                 in_seconds(run.value(name, who, "cpu")), "1" if who == base else self.ratio(name, who, base))
                for who in sorted(run.measured(name), key=lambda who: run.value(name, who))]
        setting = about["setting"].replace("here,", run.facts["file system"].split()[0] + ",")
        return report.table((setting, "time, s", "CPU time, s", f"time / {self.called(name, base)} [95 %]"), rows)

    def called(self, name, who):
        """A command in a table; in the cases of HTTP, the server."""
        if name.startswith("http-"):
            server = who.partition("-")[2]
            return server if server in ("nginx", "darkhttpd", "python") else f"**fcopy {server}**"
        return f"**{label(who)}**" if who.startswith("fcopy") else label(who)

    def missing(self, name):
        why = [gone["why"] for gone in self.run.left_out if gone["case"] == name]
        return f"Not in this run{': ' + why[0] if why else ''}."

    def lines(self, *names):
        """Cases in which fcopy met cp, one a line."""
        bases = {name: self.run.cases.get(name, {"base": "cp"})["base"] for name in names}
        pairs = [(name, base.replace("cp", "fcopy", 1), base) for name, base in bases.items()]
        rows = [(name, self.what(name), *(in_seconds(self.run.value(name, who)) for who in pair), self.ratio(name, *pair))
                if self.run.ratio(name, *pair) else (name, "–", "–", "–", "not measured") for name, *pair in pairs]
        return report.table(("case", "source", "fcopy, s", "cp, s", "time / cp [95 %]"), rows)

    def what(self, name):
        """What a case copies: the size of its file, or its tree."""
        about = self.run.cases[name]
        return human(about["size"]) if about["source"] in ("random", "allocated") else f"tree `{about['source']}`"

    def slower(self):
        """Of the cases that measure cp with the same options: where fcopy is slower, undecided, or not measured."""
        found = {name: self.run.ratio(name, ours, each.base) for name, each in load().items() if each.base.startswith("cp") and
                 (ours := each.base.replace("cp", "fcopy", 1)) in each.contenders}
        verdicts = {name: report.stats.verdict(answer, 1) if answer else "" for name, answer in found.items()}
        slower, undecided, missing = (", ".join(f"`{name}`" + (f" {interval(found[name])}" if word else "") for name, word in verdicts.items()
                                                if word == wanted) or "none" for wanted in ("missed", "inconclusive", ""))
        return f"Slower in: {slower}. Undecided: {undecided}. Measured: {sum(map(bool, found.values()))} cases. Not measured: {missing}."

    def scale(self):
        made = re.findall(r"(?:SIZE|FILES)=\S+", self.run.facts["command"])
        rounds = [re.search(r"ROUNDS=(\d+)|$", run.facts["command"])[1] for run in (self.first, self.second) if run]
        few = " ".join(f"The cases that only run {i} has were measured in {n} rounds." for i, n in enumerate(rounds, 1) if n)
        return f"**This is a reduced run ({' '.join(made)}): the layout is final, the figures are not.**" if made else few

    def bars(self):
        """The targets that were missed, and the cases with inconclusive ones."""
        found = {"missed": [], "inconclusive": []}
        for name, bar, measured, verdict in self.run.bars():
            text = f"`{name}` {bar}: {measured}" if verdict == "missed" else f"`{name}`"
            if text not in found.get(verdict, [text]):
                found[verdict].append(text)
        return self.run.verdicts() + ".\n\n" + "\n".join(f"- {verdict}: {'; '.join(bars) or 'none'}" for verdict, bars in found.items())

    def machine(self):
        """A table of the runs, and their other facts, of the second those that differ; circumstances.json has the versions."""
        own = ("memcpy of 1 GiB", "floor, 1 GiB", "empty process", "device", "steal time", "load at the start", "duration")
        runs = [run for run in (self.first, self.second) if run]
        text = report.table(("run", *own), [[str(i), *(run.facts.get(name, "–") for name in own)] for i, run in enumerate(runs, 1)])
        for i, run in enumerate(runs, 1):
            text += f"\n\n**Run {i}**: " + "; ".join(f"**{name}** {value}" for name, value in run.facts.items()
                                                  if name not in (*own, "percentile", "versions") and (i == 1 or value != self.run.facts.get(name)))
            text += f"; **samples** {run.count}, of which {run.disturbed} are flagged"
        return text

    def agreement(self):
        return report.agreement(self.first, self.second)[0] if self.second else "Only one run is committed: unknown."

    def ibm(self):
        rows = []
        for mib in (7, 350, 1024):
            name = "socket-1G" if mib == 1024 else f"socket-{mib}M"
            if self.run.measured(name):
                rows.append((str(mib), f"{IBM[mib][1] / IBM[mib][0]:.2f}", in_seconds(self.run.value(name, "read-send-4K")),
                             self.ratio(name, "sendfile", "read-send-4K")))
        return report.table(("MiB", "IBM: transferTo / read + send", "here: read + send, s", "here: sendfile / read + send"), rows)

    def figure(self, words):
        """What stands between the markers of <!-- figure:METHOD ARGUMENT… -->; tables get lines of their own."""
        method, *rest = words.split()
        text = getattr(self, method)(*rest)
        return f"\n{text}\n" if method in ("table", "lines", "bars", "machine", "ibm", "speed") else text

    def pictures(self):
        """{picture: (script, variables, data)} of what the run has."""
        found, run = {}, self.run
        for name in ("modes", "rivals"):
            if run.measured(name):
                base = run.cases[name]["base"]
                rows = [(label(who), run.value(name, who), run.value(name, who, "cpu"), ORANGE if who == "fcopy" else BLUE,
                         base if who == base else f"{self.ratio(name, who, base).split(' [')[0]} × {base}")
                        for who in sorted(run.measured(name), key=lambda who: run.value(name, who))]
                what = human(run.cases[name]["size"])
                found[name] = picture_of_bars(rows, f"Copying {what} of random bytes: wall-clock time, CPU time below it", "seconds")
        if self.run.measured("tree-ext4"):
            found["trees"] = self.trees()
        points = {who: [(self.run.cases[name]["size"], self.run.ratio(name, who, "cp")) for name in self.run.cases
                        if name.startswith("size-") and who in self.run.measured(name) and "cp" in self.run.measured(name)]
                  for who in ("fcopy", "3:splice", "7:parallel")}
        if len(points["fcopy"]) > 1:
            found["sizes"] = "sizes", {"heading": "Time by file size, whole process, relative to cp (band: 95 % interval)"}, \
                blocks({label(who): rows for who, rows in points.items()})
        sockets = {f"{who}, here": [(mib, self.run.ratio(name, who, "read-send-4K")) for mib, name in
                                    ((m, f"socket-{m}M" if m < 1024 else "socket-1G") for m in IBM) if self.run.measured(name)]
                   for who in ("sendfile", "splice")}
        if len(sockets["sendfile, here"]) > 1:
            sockets["transferTo, IBM 2008"] = [(mib, (b / a, b / a, b / a)) for mib, (a, b) in IBM.items()]
            found["sockets"] = "sockets", {"heading": "A file to a socket, relative to read + send (band: 95 % interval)"}, \
                blocks(sockets)
        return found

    def trees(self):
        run, name, base = self.run, "tree-ext4", "cp_-r"
        files = int(re.search(r"FILES=(\d+)|$", run.facts["command"])[1] or 12000)
        rows = [(label(who), files / run.value(name, who), "NaN", ORANGE if who.startswith("fcopy") else BLUE,
                 label(base) if who == base else f"{self.ratio(name, who, base).split(' [')[0]} ×")
                for who in sorted(run.measured(name), key=lambda who: run.value(name, who))]
        return picture_of_bars(rows, f"Copying a tree of {files:,} small files; at the bar: time relative to {label(base)}", "files per second")

def in_seconds(value):
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}"

def seconds(value):
    return f"{value:.3f} s" if value < 1 else f"{value:.2f} s"

def picture_of_bars(rows, heading, axis):
    return "bars", {"heading": heading, "axis": axis, "rows": len(rows), "longest": max(row[1] for row in rows)}, \
        "\n".join(f'"{name}" {length} {cpu} {colour} "{words}"' for name, length, cpu, colour, words in rows)

def blocks(lines):
    return "\n\n\n".join(f'"{name}"\n' + "\n".join(f"{x} {r[0]} {r[1] or r[0]} {r[2] or r[0]}" for x, r in sorted(rows))
                         for name, rows in lines.items())

def draw(name, picture, check):
    """Draws a picture, or reports whether the one that is there was drawn from the same data and script."""
    script, variables, data = picture
    text = data + repr(sorted(variables.items())) + "".join(
        (BENCH / "plots" / f"{part}.gp").read_text() for part in (script, "style"))
    mark = f"<!-- drawn from {hashlib.sha256(text.encode()).hexdigest()[:32]} -->\n"
    path = BENCH / f"{name}.svg"
    if check:
        return path.exists() and path.read_text().endswith(mark)
    values = "; ".join(f"{key}={value!r}" for key, value in variables.items())
    begin = f"$data << END\n{data}\nEND\nstyle='{BENCH}/plots/style.gp'; {values}\n"
    script = (BENCH / "plots" / f"{script}.gp").read_text()
    svg = subprocess.run(["gnuplot"], input=begin + script, capture_output=True, text=True, check=True)
    path.write_text(svg.stdout + mark)
    return True

def main(what, results, *names):
    figures, check, stale = Figures(Path(results)), what == "check", []
    for name, picture in figures.pictures().items():
        if not draw(name, picture, check):
            stale.append(f"bench/{name}.svg")
    for path in BENCH.glob("*.svg"):
        if path.stem not in (*figures.pictures(), "terminal"):  # of an earlier run
            stale.append(f"bench/{path.name}") if check else path.unlink()
    for path in map(Path, names):
        before = path.read_text(encoding="utf-8")
        after = REGION.sub(lambda m: f"{m[1]}{figures.figure(m[2])}{m[4]}", before)
        if after != before and check:
            stale.append(path.name if path.parent != BENCH else f"bench/{path.name}")
        elif after != before:
            path.write_text(after, encoding="utf-8")
    if stale:
        sys.exit("figures.sh: not what the committed run says: " + ", ".join(stale) + "; run make figures")

main(*sys.argv[1:])
