# SPDX-License-Identifier: MIT
"""A run: loads it, compares it with the targets, prints it."""
import csv
import json
import sys
from pathlib import Path

import stats

class Run:
    """samples.csv and circumstances.json of a directory."""

    def __init__(self, directory):
        about = json.loads((directory / "circumstances.json").read_text(encoding="utf-8"))
        self.facts, self.fast, self.cases, self.left_out = (about[key] for key in ("facts", "fast", "cases", "left_out"))
        self.samples, self.count, self.disturbed = {}, 0, 0
        with open(directory / "samples.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                own = self.samples.setdefault((row["case"], row["contender"]), {"wall": {}, "cpu": {}})
                turn = int(row["round"])
                own["wall"][turn] = float(row["wall_s"])
                own["cpu"][turn] = float(row["user_s"]) + float(row["sys_s"])
                self.count += 1
                self.disturbed += bool(row["disturbed"])

    def measured(self, name):
        """The commands of a case that have samples, in order."""
        return [who for who in self.cases.get(name, {"contenders": ()})["contenders"] if (name, who) in self.samples]

    def value(self, name, who, metric="wall"):
        return stats.median(self.samples[name, who][metric].values())

    def ratio(self, name, who, rival, metric="wall"):
        """(ratio, low, high), or None; the rival "best" is the fastest single mode or number of threads."""
        rivals = [mode for mode in self.measured(name) if mode[0].isdigit() or "_-j" in mode] if rival == "best" else [rival]
        if any((name, each) not in self.samples for each in [who, *rivals]) or not rivals:
            return None
        return stats.ratio(self.samples[name, who][metric], [self.samples[name, each][metric] for each in rivals])

    def judge(self, name, bar):
        """(what was measured, verdict)."""
        who, limit = bar["contender"], bar["limit"]
        if bar["class"] == "fast" and not self.fast:
            return "–", "not judged: slow memory"
        answer = self.ratio(name, who, bar["rival"], bar["metric"])
        return (interval(answer), stats.verdict(answer, limit)) if answer else ("–", "not measured")

    def bars(self):
        """(case, target as text, measured, verdict) of all targets."""
        for name, about in self.cases.items():
            for bar in about["bars"]:
                limit = f"≤ {bar['limit']:g} × {label(bar['rival'])}"
                kind = " (fast memory)" if bar["class"] else ""
                yield (name, f"{label(bar['contender'])}: {bar['metric']} {limit}{kind}", *self.judge(name, bar))

    def rows(self, name):
        """(command, time, CPU time, ratio to the base) of a case."""
        base = self.cases[name]["base"]
        for who in self.measured(name):
            answer = self.ratio(name, who, base)
            yield (label(who), duration(self.value(name, who)), duration(self.value(name, who, "cpu")),
                   "1" if who == base else interval(answer) if answer else "–")

    def verdicts(self):
        found = [verdict for *_, verdict in self.bars()]
        return ", ".join(f"{found.count(word)} {word}" for word in ("met", "missed", "inconclusive")) + \
            f", {sum(word.startswith('not') for word in found)} not measured or not judged"

def label(who):
    """A command's name as it is printed."""
    return who.replace("_-", " -").split(":")[-1]

def duration(value):
    return f"{value * 1000:.2f} ms" if value < 0.1 else f"{value:.3f} s"

def interval(answer):
    point, low, high = answer
    return f"{point:.2f}" + (f" [{low:.2f}–{high:.2f}]" if low is not None else "")

def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])

def summary(directory):
    """One page: the machine, a line for each case, the targets that were not met."""
    run = Run(directory)
    for name in ("machine", "memcpy of 1 GiB", "floor, 1 GiB", "device", "load at the start", "steal time", "duration"):
        print(f"{name:18} {run.facts.get(name, '–')}")
    print(f"{'samples':18} {run.count}, {run.disturbed} flagged as disturbed (and kept)\n")
    for name, about in run.cases.items():
        others = [who for who in run.measured(name) if who != about["base"]]
        ours = next((who for who in others if who.startswith(("fcopy", "sendfile"))), others[0] if others else None)
        answer = run.ratio(name, ours, about["base"]) if ours else None
        print(f"{name:18} " + (f"{label(ours)} / {label(about['base'])}: {interval(answer)}" if answer else "–"))
    print(f"\nbars: {run.verdicts()}")
    for name, bar, measured, verdict in run.bars():
        if verdict in ("missed", "inconclusive"):
            print(f"{verdict:13} {name}: {bar}: {measured}")
    for why in dict.fromkeys(gone["why"] for gone in run.left_out):
        names = dict.fromkeys(gone["case"] if gone["contender"] == "*" else label(gone["contender"])
                              for gone in run.left_out if gone["why"] == why)
        print(f"left out: {', '.join(names)}: {why}")
    print(f"all rows: bench/bench.sh show {directory}")

def show(directory):
    """Everything that a run says, as Markdown."""
    run = Run(directory)
    print(table(("environment", ""), run.facts.items()))
    for name, about in run.cases.items():
        print(f"\n## {name}: {about['title']}\n\n{about['setting']}\n")
        print(table(("command", "time", "CPU time", f"× {label(about['base'])}"), run.rows(name)))
        print("\n" + "\n".join(f"- {label(who)}: `{command}`" + (f", {about['peaks'][who] >> 20} MiB at most" if about.get("peaks", {}).get(who) else "") for who, command in about["contenders"].items()))
    print("\n## Targets\n\n" + table(("case", "target", "measured", "verdict"), run.bars()))
    print("\n## Left out\n\n" + table(("case", "command", "reason"), (gone.values() for gone in run.left_out)))

def pairs(first, second):
    """(case, command, ratio in the first run, in the second) of the files of 1 GiB that both runs have."""
    for name, about in first.cases.items():
        for who in first.measured(name) if about["size"] == 1 << 30 and name in second.cases else ():
            answers = [run.ratio(name, who, about["base"]) for run in (first, second)]
            if who != about["base"] and all(answers):
                yield name, who, answers[0][0], answers[1][0]

def agreement(first, second):
    """(sentence, whether 60 % of the ratios agree within 5 %, and 90 % within 10 %)."""
    apart = [abs(b / a - 1) for *_, a, b in pairs(first, second)]
    near, far = (sum(change <= limit for change in apart) for limit in (0.05, 0.10))
    return (f"{near} of {len(apart)} ratios of 1 GiB agree within 5 %, {far} within 10 %.",
            bool(apart) and near >= 0.6 * len(apart) and far >= 0.9 * len(apart))

def agree(first, second):
    """Exit 1 unless the runs agree."""
    runs = Run(first), Run(second)
    rows = [(name, label(who), f"{a:.3f}", f"{b:.3f}", f"{b / a - 1:+.1%}") for name, who, a, b in pairs(*runs)]
    sentence, enough = agreement(*runs)
    print(table(("case", "command", "first", "second", "change"), rows) + "\n" + sentence)
    sys.exit(0 if enough else 1)
