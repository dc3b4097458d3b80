#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py: measures cases; bench.sh documents the command line."""
import csv
import fnmatch
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import case
import lab as laboratory
import machine
import report
import tools
from tools import Skip

SETS = {"quick": 10, "readme": 20, "all": 20}  # rounds at most
COLUMNS = ("case", "contender", "round", "wall_s", "user_s", "sys_s", "disturbed")

def say(text):
    print(text, file=sys.stderr, flush=True)

def select(words):
    """The cases that these sets, names, groups or patterns mean."""
    chosen = {}
    for word in words:
        found = {name: each for name, each in case.CASES.items()
                 if word == "all" or word in each.sets.split() or word == each.group or fnmatch.fnmatch(name, word)}
        if not found:
            sys.exit(f"bench.sh: no set, case, group or pattern: {word} (try --list)")
        chosen |= found
    return chosen

def settle_rounds(cases, words):
    """Fixes the rounds and leaves out what is larger than a given SIZE. Nothing changes them later."""
    most = min([SETS[word] for word in words if word in SETS], default=20)
    for each in cases.values():
        each.rounds = int(os.environ.get("ROUNDS", min(each.rounds, most)))
    kept = {name: each for name, each in cases.items() if "SIZE" not in os.environ or each.size <= max(case.SIZE, 1 << 20)}
    if len(kept) < len(cases):
        say(f"left out, larger than SIZE: {' '.join(cases.keys() - kept.keys())}")
    return kept

def seconds(each):
    """A guess, for the announcement."""
    once = 0.6 if each.tree else 0.02 + each.size * each.copies / 2.5e9 * (1 if each.dest == "none" else 2.3)
    return each.rounds * (len(each.contenders) * once * (1 + each.load) * (3 if each.cache == "cold" else 1) + 3 * each.tree)

class Bench:
    """One case at a time: a proof of each command, then rounds A B C, C B A, …"""

    def __init__(self, lab, out):
        self.lab, self.out = lab, out
        self.file = open(out / "samples.csv", "w", newline="", encoding="utf-8")
        self.samples = csv.writer(self.file, lineterminator="\n")
        self.samples.writerow(COLUMNS)
        self.left = []

    def leave_out(self, each, who, why):
        say(f"  left out: {who}: {why}")
        self.left.append({"case": each.name, "contender": who, "why": why})

    def measure(self, each):
        say(f"{each.name}: {each.title} ({each.setting})")
        try:
            if each.needs and each.needs not in machine.output(case.FCOPY, "--help"):
                raise Skip(f"fcopy has no {each.needs}")
            if each.cache == "cold" and not os.access("/proc/sys/vm/drop_caches", os.W_OK):
                raise Skip("a cold cache needs root")
            self.prepare(each)
        except Skip as why:
            return self.leave_out(each, "*", str(why))
        able = [who for who in each.contenders if self.sample(each, who, 0)]
        if each.base not in able:
            return self.leave_out(each, "*", f"{each.base} is missing")
        self.lab.load(each.load)
        try:
            for turn in range(1, each.rounds + 1):
                if each.small:
                    self.prepare(each)
                elif each.cache == "warm":
                    self.lab.cache(each, self.source)
                first = turn % len(able) if able else 0
                for who in (able[first:] + able[:first])[::1 if turn % 2 else -1]:
                    if not self.sample(each, who, turn):
                        able.remove(who)
        finally:
            self.lab.unload()
            if each.tree and self.fs in self.lab.mounts:
                self.lab.unmount(self.fs)
            else:
                laboratory.remove(self.place / "copy-")

    def prepare(self, each):
        """The source. A tree has a file system of its own; see README.md for the reason."""
        self.fs = self.lab.here if each.fs == "here" else each.fs
        if each.tree and self.fs in self.lab.mounts:
            self.lab.unmount(self.fs)
        self.place = self.lab.place(each.fs)
        self.source = self.lab.source(each, self.place)
        if each.latency or each.rate:
            slow = self.lab.slow(self.source, each)
            self.place, self.source = (slow.parent, self.source) if each.writes else (self.place, slow)
        self.lab.cache(each, self.source)

    def sample(self, each, who, turn):
        """One run, timed. Round 0 is a proof: it must succeed and copy correctly, and is not recorded."""
        try:
            target = self.place / f"copy-{turn}-{each.contenders.index(who):02}"
            if each.dest == "old":
                self.command(each, "cp_-r" if each.tree else "cp", target)
                os.sync()
            if turn and not each.small and each.dest != "none" and each.cache == "warm":
                self.command(each, who, target)
                laboratory.remove(target) if each.dest == "new" else self.command(each, "cp", target)
            elif turn:
                machine.touch(each.footprint)
            if each.cache == "cold" and turn:
                self.lab.cache(each, self.source)
            before = machine.counters()
            wall, user, system = self.command(each, who, target)
            disturbed = machine.flags(before, machine.counters(), wall, user + system)
            self.prove(each, who, target, deeply=turn == 0)
            if not each.small:
                laboratory.remove(target)
        except Skip as why:
            laboratory.remove(target)
            self.leave_out(each, who, str(why) if turn == 0 else f"round {turn}: {why}")
            return False
        if turn:
            if each.load or each.serve:  # these are others by design
                disturbed = disturbed.replace("others", "").strip()
            self.samples.writerow([each.name, who, turn, f"{wall:.6f}", f"{user:.6f}", f"{system:.6f}", disturbed])
            self.file.flush()
        return True

    def command(self, each, who, target):
        """Runs a command; returns wall-clock, user and system seconds."""
        template = case.COMMANDS[who]
        if not template:
            wall, cpu = machine.floor(target, each.size)
            return wall, 0, cpu
        port = laboratory.free_port()
        names = {"src": self.source, "port": port, "name": self.source.name, "dir": self.source.parent}
        server = each.serve.get(who, each.serve.get("*"))
        group, peak = self.lab.group(each.memory) if each.memory else (None, None)
        pid = self.lab.serve(tools.expand(server, **names), port) if server else None
        try:
            if each.copies > 1:
                template = " & ".join(template.replace("{dst}", f"{{dst}}.{i}") for i in range(each.copies)) + " & wait"
            argv = tools.expand(template, dst=target, **names)
            if group:
                argv = ["sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', str(group), *argv]
            wall, usage = tools.timed(argv, self.lab.errors)
        finally:
            cost = tools.stop(pid) if pid else None
            if group:
                each.peaks[who] = max(each.peaks.get(who, 0), int(peak.read_text()))
                group.rmdir()
        if each.served:
            usage = cost
        return wall, usage.ru_utime, usage.ru_stime

    def prove(self, each, who, target, deeply):
        """The copies must be there and have the size of their source; deeply: its bytes too."""
        if each.dest == "none" or not case.COMMANDS[who]:
            return
        copies = [path for path in target.parent.glob(target.name + "*") if path.suffix != ".fcopy-part"]
        if len(copies) != each.copies or not each.tree and any(
                copy.stat().st_size != self.source.stat().st_size for copy in copies):
            raise Skip("its copy is missing or incomplete")
        for copy in copies if deeply else ():
            differ = ["diff", "-rq"] if each.tree else ["cmp"]
            if subprocess.run([*differ, self.source, copy], capture_output=True).returncode:
                raise Skip("its copy differs")

def programs(cases):
    """The programs that these cases run."""
    text = " ".join(case.COMMANDS[who] for each in cases.values() for who in each.contenders)
    text += " ".join(command for each in cases.values() for command in each.serve.values())
    return set(re.findall(r"\{(\w+)\}", text)) - {"src", "dst", "port", "name", "dir", "bench", "fcopy"}

def describe(each):
    """What a run must keep of a case, so that its figures can be drawn without the case's file."""
    commands = {who: tools.show(case.COMMANDS[who]) or "see lib/machine.py" for who in each.contenders}
    return {"title": each.title, "group": each.group, "setting": each.setting, "size": 0 if each.tree else each.size, "source": each.source,
            "rounds": each.rounds, "base": each.base, "contenders": commands, "bars": each.bars, "peaks": each.peaks}

def run(cases, words):
    directory = Path(os.environ.get("DIR", case.ROOT / "build/bench")).resolve()
    out = Path(os.environ.get("OUT", case.ROOT / "build/bench" / time.strftime("run-%Y%m%d-%H%M%S"))).resolve()
    out.mkdir(parents=True)
    say(f"{len(cases)} cases, about {sum(map(seconds, cases.values())) / 60:.0f} minutes; results: {out}")
    command = " ".join([f"{key}={os.environ[key]}" for key in ("FS", "SIZE", "ROUNDS", "FILES") if key in os.environ] +
                       ["bench/bench.sh", *words])
    lab = laboratory.Lab(directory, os.environ.get("FS", "here"))
    begun, start = time.time(), machine.counters()
    try:
        facts, fast = machine.circumstances(lab, command, programs(cases))
        bench, done = Bench(lab, out), {}
        try:
            for name, each in cases.items():
                done[name] = describe(each)
                bench.measure(each)
        except KeyboardInterrupt:
            facts["ended"] = f"by a signal, during {name}"
        used = time.time() - begun
        stolen = machine.counters()[1] - start[1]
        facts["duration"] = f"{used / 60:.1f} minutes"
        facts["steal time"] = f"{stolen / used / os.cpu_count():.2%} of the CPU time"
        with open(out / "circumstances.json", "w", encoding="utf-8") as file:
            text = json.dumps({"facts": facts, "fast": fast, "cases": done, "left_out": bench.left}, indent=1, ensure_ascii=False)
            file.write(re.sub(r"\n(?: {3,}|  (?=[}\]]))", " ", text) + "\n")  # a line for each fact and each case
        bench.file.close()
    except Skip as why:
        sys.exit(f"bench.sh: {why}")
    finally:
        lab.close()
    report.summary(out)

def main(words):
    case.load()
    if not words or words[0] == "--help":
        sys.exit("".join(line[2:] for line in list(open(f"{sys.path[0]}/../bench.sh"))[3:-1]).rstrip())
    if words[0] == "--list":
        for each in case.CASES.values():
            print(f"{each.name:18} {each.group:8} {each.sets:13} {each.setting}: {' '.join(each.contenders)}")
    elif words[0] in ("show", "agree"):
        getattr(report, words[0])(*map(Path, words[1:]))
    else:
        run(settle_rounds(select(words), words), words)

main(sys.argv[1:])
