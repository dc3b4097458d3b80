# SPDX-License-Identifier: MIT
"""From the runner's notes (tab separated, one fact a line) to results, and the bars judged."""
import csv
import json
from pathlib import Path
from statistics import median

import stats

WIDE = 0.05  # a ratio known to ± 5 % is known well enough
NOTES = ("facts.tsv", "cases.tsv", "proofs.tsv", "runs.tsv", "again.tsv", "left.tsv")
CSV_COLUMNS = ("case", "contender", "round", "wall_s", "user_s", "sys_s", "given_back_kib")


def lines(directory, name):
    path = Path(directory, name)
    if path.exists():
        with path.open(newline="") as file:
            yield from csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def read_cases(directory):
    cases = {}
    for name, field, value in lines(directory, "cases.tsv"):
        case = cases.setdefault(name, {"name": name, "bars": [], "contenders": {}, "left_out": []})
        if field == "bar":
            metric, who, rival, limit = value.split()
            case["bars"].append({"metric": metric, "contender": who, "rival": rival, "limit": float(limit)})
        elif field in ("size", "rounds", "volume", "memory"):
            case[field] = int(value) if value else None
        else:
            case[field] = value
    for name, who, rss, maps, blocks, command in lines(directory, "proofs.tsv"):
        cases[name]["contenders"][who] = {
            "command": command, "rss": int(rss) / 1024 if rss else None,
            "maps": int(maps) if maps else None, "blocks": int(blocks) if blocks else None,
            "wall": {}, "user": {}, "sys": {}, "given": {}}
    for name, who, turn, *values in lines(directory, "runs.tsv"):
        runs = cases[name]["contenders"][who]
        for metric, value in zip(("wall", "user", "sys", "given"), values):
            runs[metric][int(turn)] = float(value)
    for name, who, why in lines(directory, "left.tsv"):
        cases[name]["left_out"].append({"contender": who, "why": why})
    return list(cases.values())


def cpu(runs):
    return {turn: runs["user"][turn] + runs["sys"][turn] for turn in runs["user"]}


def seconds(runs, metric):
    return cpu(runs) if metric == "cpu" else runs["wall"]


def judge_bar(case, bar):
    """Adds measured and met (None: not measured) to a bar."""
    ours, theirs = (case["contenders"].get(bar[who]) for who in ("contender", "rival"))
    bar["measured"] = bar["met"] = None
    if bar["metric"] in ("rss", "maps", "blocks"):
        bar["measured"] = ours and ours[bar["metric"]]
    elif ours and theirs:
        answer = stats.ratio(seconds(ours, bar["metric"]), seconds(theirs, bar["metric"]))
        if answer:
            bar["ratio"] = answer
            bar["measured"] = answer["low"] if bar["metric"] == "wall-low" else answer["median"]
    if bar["measured"] is not None:
        bar["met"] = bar["measured"] <= bar["limit"]
        bar["sure"] = "ratio" not in bar or bar["metric"] == "wall-low" or clear(bar["ratio"], bar["limit"])


def judge(case):
    runs = case["contenders"]
    case["baseline"] = next((who for who in case["with"].split() if who in runs and runs[who]["wall"]), None)
    for who, own in runs.items():
        if own["wall"]:
            summarise(case, own)
    for bar in case["bars"]:
        judge_bar(case, bar)


def summarise(case, own):
    base = case["contenders"][case["baseline"]]
    totals = dict(own, cpu=cpu(own))
    for metric in ("wall", "user", "sys", "cpu"):
        values = list(totals[metric].values())
        own["median_" + metric], own["min_" + metric] = median(values), min(values)
    own["gib_s"] = case["size"] * (case["volume"] or 1) / 2**30 / own["median_wall"]
    own["ratio"] = stats.ratio(own["wall"], base["wall"])
    own["ratio_cpu"] = stats.ratio(cpu(own), cpu(base))


def is_wide(case):
    """Must it be measured again?  A bar clearly met or missed needs no more rounds; too few for an interval
    were asked for as they are."""
    if case["rounds"] < stats.FEWEST:
        return False
    for bar in case["bars"]:
        answer = bar.get("ratio")
        if answer and stats.width(answer) > WIDE and not clear(answer, bar["limit"]):
            return True
    if case["bars"]:
        return False
    return any(stats.width(own["ratio"]) > WIDE for who, own in case["contenders"].items()
               if who != case["baseline"] and own["wall"])


def clear(answer, limit):
    return answer["low"] is not None and (answer["high"] <= limit or answer["low"] > limit)


def load(directory):
    """What `write` left in a results directory."""
    return json.loads(Path(directory, "results.json").read_text())


def read(directory):
    """The notes of a run that is under way or just over."""
    cases = read_cases(directory)
    for case in cases:
        judge(case)
    return {"circumstances": {key: value for key, value in lines(directory, "facts.tsv")}, "cases": cases}


def write(results, directory):
    text = json.dumps(results, indent=1, ensure_ascii=False)
    Path(directory, "results.json").write_text(text + "\n")
    with Path(directory, "results.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(CSV_COLUMNS)
        for case in results["cases"]:
            for who, runs in case["contenders"].items():
                for turn, wall in runs["wall"].items():
                    table.writerow([case["name"], who, turn, wall, runs["user"][turn], runs["sys"][turn],
                                    runs["given"].get(turn, "")])
