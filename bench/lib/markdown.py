# SPDX-License-Identifier: MIT
"""Results as Markdown."""

METRICS = {"wall": "wall", "cpu": "CPU", "wall-low": "wall, lower end", "rss": "peak RSS",
           "maps": "extents that differ", "blocks": "difference of st_blocks"}
SIGNS = {True: "met", False: "**missed**", None: "not measured"}


def table(heads, rows, left=1):
    """A table whose columns after the first `left` are aligned right."""
    lines = ["| " + " | ".join(heads) + " |",
             "|" + "|".join([" --- "] * left + [" ---: "] * (len(heads) - left)) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def size(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:g} {unit}"
        count /= 1024


def time(value):
    """Milliseconds below a tenth of a second, seconds above."""
    return f"{value * 1000:.2f} ms" if value < 0.1 else f"{value:.3f} s"


def ratio(answer):
    if answer is None:
        return "–"
    text = f"{answer['median']:.2f}"
    return text if answer["low"] is None else f"{text} [{answer['low']:.2f}, {answer['high']:.2f}]"


def setting(case):
    """The one line that says what was measured."""
    places = " → ".join(dict.fromkeys((case["src_fs"], case["dst_fs"])))
    words = {"new": "to a new file", "old": "onto an existing file", "empty": "into an empty file",
             "allocated": "onto an existing fallocate-made file", "none": ""}[case["dest"]]
    limit = f"{size(case['memory'])} of memory" if case.get("memory") else ""
    parts = (case["net"] or places, case["source"], size(case["size"]), case["cache"], words, limit)
    return ", ".join(part for part in parts if part)


def case_rows(case):
    for who in case["with"].split():
        own = case["contenders"].get(who)
        if not own or not own["wall"]:
            continue
        pairs = [f"{time(own['median_' + m])} ({time(own['min_' + m])})" for m in ("wall", "user", "sys")]
        rss = f"{own['rss']:.1f}" if own["rss"] else "–"
        yield [who, *pairs, f"{own['gib_s']:.2f}", ratio(own["ratio"]), ratio(own["ratio_cpu"]), rss]


def case_table(case):
    base = case["baseline"]
    heads = ("contender", "real: median (min)", "user", "sys", "GiB/s", f"× {base} [95 %]",
             "CPU × [95 %]", "RSS MiB")
    return table(heads, case_rows(case))


def case_text(case):
    text = [f"### {case['name']}: {case['title']}", "", f"{setting(case)}.", ""]
    if case["baseline"]:
        text += [case_table(case), ""]
    text += [f"Left out: {gone['contender']}: {gone['why']}." for gone in case["left_out"]]
    return "\n".join(text).rstrip()


def limit(bar):
    return f"≤ {bar['limit']:g}" + (f" × {bar['rival']}" if bar["rival"] != "-" else "")


def measured(bar):
    if bar.get("ratio"):
        return ratio(bar["ratio"])
    return "–" if bar["measured"] is None else f"{bar['measured']:.3g}"


def verdict(bar):
    doubt = "" if bar.get("sure", True) else " (the interval does not decide)"
    return SIGNS[bar["met"]] + doubt


def bar_rows(cases):
    for case in cases:
        for bar in case["bars"]:
            yield [case["name"], bar["contender"], METRICS[bar["metric"]], limit(bar), measured(bar),
                   verdict(bar)]


def bars(cases):
    return table(("case", "contender", "what", "bar", "measured [95 %]", ""), bar_rows(cases), left=4)


def rows_table(cases):
    """Cases of two contenders, a line each."""
    rows, pairs = [], {tuple(case["with"].split()[:2]) for case in cases}
    heads = pairs.pop() if len(pairs) == 1 else ("first", "second")
    for case in cases:
        base, other = case["with"].split()[:2]
        times = [case["contenders"].get(who, {}).get("median_wall") for who in (base, other)]
        answer = case["contenders"].get(other, {}).get("ratio")
        rows.append([case["name"], *("–" if t is None else time(t) for t in times), ratio(answer),
                     "; ".join(gone["why"] for gone in case["left_out"])])
    return table(("case", *heads, "ratio [95 %]", "left out"), rows)


def circumstances(facts):
    return table(("circumstance", ""), ([key, value] for key, value in facts.items()), left=2)


def page(results):
    cases = results["cases"]
    judged = [bar for case in cases for bar in case["bars"]]
    count = {met: sum(bar["met"] is met for bar in judged) for met in SIGNS}
    text = ["# Results", "", circumstances(results["circumstances"]), ""]
    if judged:
        text += ["## Bars", "", f"{count[True]} met, {count[False]} missed, {count[None]} not measured.", "",
                 bars(cases), ""]
    for group in dict.fromkeys(case["group"] for case in cases):
        own = [case for case in cases if case["group"] == group]
        rows = [case for case in own if case["layout"] == "row"]
        text += [f"## {group}", ""]
        text += [rows_table(rows), ""] if rows else []
        for case in own:
            text += [case_text(case), ""] if case not in rows else []
    return "\n".join(text).rstrip() + "\n"
