#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""exchange.py [--list] [--only FILE] [--expected FILE] FCOPY [SCENARIO…]

Root copies into directories of another user, who exchanges a name between two system calls of
fcopy. A combination is "SCENARIO CALL MOMENT NAME NTH KIND": just before (enter) or after (exit)
the NTH call on this name, NAME becomes a thing of this KIND. Each run of fcopy is one combination.
Afterwards: no inode that fcopy did not make has changed, the user can read nothing of root's,
nothing was put into his new directories, and exit 0 means that the copy is right.

An exchange before fcopy's first look at a name is the same as if the name had led there from the
start: if the latter has the same result, the combination is reported as "given" and not as failed.

--only FILE: only combinations that match a pattern in FILE, and each pattern must have a match.
--expected FILE: those that match one of these may fail. Exits 1 if another one failed, or if an
exchange did not happen. Needs root; see worlds.py for the scenarios."""
import argparse
import fnmatch
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stops
import worlds

MAKES = ("mkdirat", "mknodat", "linkat", "symlinkat", "renameat", "renameat2", "openat", "mkdir",
         "mknod", "link", "symlink", "rename", "open")


def plain(name):
    """A drawn name is another one in each run."""
    return re.sub(r"\.fcopy-[0-9A-Za-z]{8,}", ".fcopy-*", name)


class Watch:
    """Counts the stops of one copy, and exchanges a name at one of them."""

    def __init__(self, world, combination=None):
        self.world, self.combination = world, combination
        self.seen, self.made, self.list = {}, {}, []
        self.window = None  # what happened there

    def __call__(self, call, moment):
        for path in call.paths():
            victim = self.world.victim(path)
            if victim is None:
                continue
            name = plain(os.path.relpath(victim, self.world.top))
            key = (call.name, moment, name)
            nth = self.seen[key] = self.seen.get(key, 0) + 1
            if victim != path and nth > 1:
                continue  # an ancestor is exchanged once for each call
            stop = "%s %s %s %d" % (key + (nth,))
            if moment == "exit" and victim == path and call.result >= 0 and call.name in MAKES:
                self.made.setdefault(name, len(self.list))
            self.list.append((stop, name))
            if self.combination and self.combination.stop == stop and not self.window:
                self.window = self.world.exchange(victim, self.combination.kind)


class Combination:
    def __init__(self, scenario, stop, kind):
        self.scenario, self.stop, self.kind = scenario, stop, kind
        self.name = stop.split(" ")[2]

    def __str__(self):
        return " ".join((self.scenario, self.stop, self.kind))


def find_combinations(fcopy, scenario):
    """Copies once without an exchange. Returns the combinations, and those before the first look."""
    with worlds.World(fcopy, scenario) as world:
        watch = Watch(world)
        status = world.copy(watch)
        faults = world.faults(status)
    if status != 0 or faults:
        sys.exit("exchange: %s fails without an exchange: %s %s" % (scenario, status, faults))
    found, early = [], set()
    for at, (stop, name) in enumerate(watch.list):
        for kind in worlds.KINDS:
            combination = Combination(scenario, stop, kind)
            found.append(combination)
            if at < watch.made.get(name, len(watch.list)) and "fcopy" not in name:
                early.add(str(combination))
    return found, early


def find_again(fcopy, scenario, patterns):
    """Copies up to five times, until each pattern of the scenario matches: which thread makes a call varies."""
    wanted = [p for p in patterns.all if p.split(" ")[0] == scenario]
    for _ in range(5):
        found, early = find_combinations(fcopy, scenario)
        if all(fnmatch.filter(map(str, found), p) for p in wanted):
            break
    return found, early


def is_given(fcopy, combination):
    """Has the copy faults as well if the exchange was made before it started?"""
    with worlds.World(fcopy, combination.scenario) as world:
        world.prepare(combination.name, combination.kind)
        world.note()
        world.exchange(os.path.join(world.top, combination.name), combination.kind)
        return bool(world.faults(world.copy(lambda call, moment: None)))


def try_combination(fcopy, combination, early):
    """Returns (verdict, text): pass, FAIL, given, missed (no exchange), or absent (NAME did not
    exist, and was to be removed)."""
    with worlds.World(fcopy, combination.scenario) as world:
        world.prepare(combination.name, combination.kind)
        watch = Watch(world, combination)
        status = world.copy(watch)
        if not watch.window:
            return "missed", "exit %s" % status
        if watch.window == "absent":
            return "absent", "nothing to remove"
        faults = world.faults(status)
        text = "%s; exit %s%s" % (watch.window, status, world.last_line())
    if not faults:
        return "pass", text
    given = str(combination) in early and is_given(fcopy, combination)
    return "given" if given else "FAIL", text + "; " + "; ".join(faults)


def try_again(fcopy, combination, early):
    """A copy by shards does not make the same calls each time."""
    for _ in range(5):
        verdict, text = try_combination(fcopy, combination, early)
        if verdict != "missed":
            break
    return verdict, text


class Patterns:
    def __init__(self, path):
        self.left, self.all = set(), []
        if path:
            with open(path, encoding="utf-8") as f:
                self.all = [line.strip() for line in f if line.strip() and line[0] != "#"]
        self.left = set(self.all)

    def match(self, key):
        found = [p for p in self.all if fnmatch.fnmatchcase(key, p)]
        self.left.difference_update(found)
        return bool(found)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--expected")
    parser.add_argument("fcopy")
    parser.add_argument("scenario", nargs="*")
    args = parser.parse_args()
    fcopy = os.path.realpath(args.fcopy)
    expected, only = Patterns(args.expected), Patterns(args.only)
    chosen = args.scenario or [s for s in worlds.SCENARIOS
                               if not args.only or any(o.split(" ")[0] == s for o in only.all)]
    count = dict.fromkeys(("pass", "FAIL", "given", "missed", "absent", "expected"), 0)
    for scenario in chosen:
        if not worlds.is_possible(scenario):
            print("left out %s: needs x86-64" % scenario)
            continue
        combinations, early = find_again(fcopy, scenario, only)
        for combination in combinations:
            key = str(combination)
            if args.only and not only.match(key):
                continue
            if args.list:
                print(key)
                continue
            verdict, text = try_again(fcopy, combination, early)
            if verdict == "FAIL" and expected.match(key):
                verdict = "expected"
            count[verdict] += 1
            print("%s: %s: %s" % (verdict, key, text), flush=True)
    for pattern in sorted(only.left):
        print("FAIL: no combination matches %s" % pattern)
    if args.list:
        return 0
    tried = sum(count.values()) - count["missed"] - count["absent"]
    print("exchanges: %d in the window: %d pass, %d FAIL, %d expected, %d given; %d missed, %d absent"
          % (tried, count["pass"], count["FAIL"], count["expected"], count["given"],
             count["missed"], count["absent"]))
    return 1 if count["FAIL"] or count["missed"] or only.left or not tried else 0


if __name__ == "__main__":
    if os.geteuid() != 0 or stops.CALLS is None:
        sys.exit("exchange: needs root, and x86-64 or arm64")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
