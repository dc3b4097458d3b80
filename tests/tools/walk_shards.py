# SPDX-License-Identifier: MIT
"""Copies by shards for random_walk.py: all shards of a job run at once, one of them is killed, or a call of it fails; SRC may change,
and the same commands run again. An unfinished job stays in the way of other commands, until a later step goes on with it, or the
user removes its part."""
import json
import os
import random
import shutil
import time
from walk_oracle import Command, Expected, Step, is_directory, same

TREE = [["-a"], ["-a"], ["-a", "-T"], ["-a", "--verify"], ["-r"]]
FILE = [[], [], ["-p"], ["-T"], ["--verify"]]


class Job:
    def __init__(self, number, words, count):
        self.words, self.count = words + ["--job=walk%d" % number], count
        self.sources = []  # SRC at each attempt
        self.began = self.committed = False  # began: a part is its own
        self.stated = Command(["-aT"] if "-a" in words else ["-p"] if "-p" in words else [], words[:1] in (["-a"], ["-r"]))


class Shards:
    """A part of Walk."""
    job, jobs = None, 0

    def part(self, *names):
        return os.path.join(self.at, "d.fcopy-part", *names)

    def has_receipt(self):
        """Is the part there, and that of a job that has committed?"""
        try:
            with open(self.part("journal"), "rb") as f:
                return b" commit " in f.read() and sorted(os.listdir(self.part())) == ["journal", "lock"]
        except FileNotFoundError:
            return False

    def abort_job(self):
        """The user may give up an unfinished job."""
        if self.job and self.r.random() < .4:
            shutil.rmtree(self.part(), ignore_errors=True)
            self.job = None
            self.log.append("# the user removes the part of the job")

    def shards(self):
        if self.tree and self.job is None and self.r.random() < .8 and os.path.isdir(self.dst):
            shutil.rmtree(self.dst)
            self.log.append("# the user removes DST")
        if not self.tree and self.job is None and self.r.random() < .5:
            self.write(self.src, self.r.choice([1500000, 4000001]))  # ranges begin at multiples of 1 MiB
            self.log.append("# SRC is large now")
        before, src, leftovers = self.see()
        if self.job is None:
            self.jobs += 1
            self.job = Job(self.jobs, self.r.choice(TREE if self.tree else FILE), self.r.choice([2, 3]))
        free = self.may_begin(before, src, leftovers)
        job, last = self.job, self.r.choice([0, 1, 1, 2])
        for attempt in range(last + 1):
            calm = attempt == last and self.r.random() < .8
            if self.attempt(job, before, src, free, calm) or self.found:
                break
            if attempt < last and self.r.random() < .3:
                self.between()
                src = self.see()[1]
                if self.see()[0] != before:
                    break  # DST has changed, too
        if self.has_receipt() or not os.path.isdir(self.part()):
            self.job = None

    def may_begin(self, before, src, leftovers):
        """Is nothing in the way of a new job? Of an unfinished one, its part may be there."""
        other = "d.fcopy-part" in leftovers and not self.has_receipt() and not self.job.began
        self.job.began = not other
        if not self.storage.shards or self.storage.mode or any(e.kind in self.storage.lacks for e in src.values()):
            return False
        if self.tree:
            return not other and before is None
        old = before.get("d")
        return not other and (old is None or old.links == 1)

    def run_shards(self, job, calm):
        """All at once. Returns the statuses, which of them say that they have committed, and the messages."""
        victim, fault, running = (None if calm else self.r.randrange(job.count)), None, []
        if victim is not None and self.r.random() < .7:
            fault = self.draw_fault()
        for i in range(job.count):
            words = job.words + ["--shard=%d/%d" % (i, job.count), "--json=%s/json%d" % (self.home, i), self.src, self.dst]
            running.append(self.start(words, fault if i == victim else None))
        if victim is not None and not fault:
            time.sleep(random.random() * .02)
            running[victim].kill()
            self.log.append("# shard %d is killed" % victim)
        ended, committed = [self.wait(p) for p in running], []
        for i, (status, _) in enumerate(ended):
            self.count("shard %s" % ("calm" if calm else "fault"), status)
            try:
                with open("%s/json%d" % (self.home, i)) as f:
                    committed.append(json.load(f).get("committed") is True)
                os.unlink(f.name)
            except (FileNotFoundError, ValueError):
                committed.append(False)
        return [s for s, _ in ended], committed, "".join(err for _, err in ended)

    def attempt(self, job, before, src, free, calm):
        """Runs every shard once; returns whether DST is complete."""
        job.sources.append(src)
        other_receipt, had_committed = self.has_receipt() and not job.committed, job.committed
        statuses, committed, text = self.run_shards(job, calm)
        after, src_after, left = self.see()
        step = Step([job.stated], before, job.sources[0])
        step.sources, step.after = job.sources, after or {}
        for what in step.losses(False)[:3]:
            self.fail("lost", "shards: " + what)
        if src_after != src:
            self.fail("lost", "SRC changed")
        for status in statuses:
            if status not in (0, 1, 2, 137, 127):
                self.fail("crashed", "a shard has status %d: %s" % (status, text))
        unchanged = all(s == src for s in job.sources)
        job.committed = self.has_receipt() and (any(committed) or not other_receipt or after != before)
        if had_committed and after != before:
            self.fail("lost", "shards have changed DST again after the commit")
        elif after != before or any(committed) and not had_committed:
            self.judge_commit(step, before, src, unchanged, after, not calm and "warning" in text)
        if calm and free and unchanged and not had_committed:
            if any(statuses) or not any(committed) or not self.has_receipt():
                self.fail("wrong", "shards end with %s, committed %s, receipt %s: %s" % (
                    statuses, committed, self.has_receipt(), text))
            elif self.r.random() < .3:
                status, err = self.wait(self.start(job.words + ["--shard=finish/%d" % job.count, self.src, self.dst], None))
                if status or self.see() != (after, src_after, left):
                    self.fail("other", "finish after the commit: status %d, %s" % (status, err))
        return job.committed

    def judge_commit(self, step, before, src, unchanged, after, warned):
        """DST is whole, and as SRC is now, or the commit would have been refused. unchanged: SRC has not changed since the job began.
        Otherwise entries may have appeared, which are not copied, and a chmod(2) is no change."""
        if self.tree and before is not None:
            self.fail("lost", "shards have changed a tree that existed")
        elif not unchanged:
            for path in sorted(set(src) | set(after or {})):
                now = (after or {}).get(path)
                if not same(src.get(path), now) and not (now is None and path not in step.sources[0]):
                    self.fail("wrong", "shards have committed, and %r is not as in SRC, which has changed during the job" % path)
        else:
            expected = Expected(step.commands[0], before, src, set(), self.storage)
            for what in expected.differences(after, warned)[:3]:
                self.fail("wrong", "shards: %s" % what)
            if step.commands[0].tree and not is_directory((after or {}).get("")):
                self.fail("wrong", "shards: DST is no directory")
