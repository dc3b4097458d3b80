#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""foretold.py FCOPY N SEED DIRECTORY: N random command lines for random trees. For each, --dry-run must change nothing, list
what the run then lists, and have its exit status. SEED:I is the Ith command line alone.

N = table: each type over each type by a row of options. The dry run must have the exit status of the run, change nothing, and
name something if the run changes something."""
import itertools, json, os, random, shutil, subprocess, sys

OLD, SRC, NEW = 1546300800, 1577836800, 1609459200
NAMES = ["a", "b", "c", "d", "e"]
ALONE = ["", "-n", "-u", "--update=none", "--update=none-fail", "--update=changed", "--mirror", "-aT --delete", "-b",
         "--backup=numbered", "--remove-destination", "-l", "-s", "--attributes-only", "--inplace", "--inplace=auto", "--checksum --update=changed",
         "-b -u", "-l -b", "-s --remove-destination", "--mirror --exclude=b", "--keep-going"]
WITH = ["-a", "-p", "-f", "-L", "-P", "-d", "--hard-links", "--preserve=mode", "--exclude=c", "--modify-window=1"]


def fill(r, path, depth, links):
    """Random entries in the directory, of which some are names of the files in links."""
    for name in r.sample(NAMES, r.randint(0, len(NAMES))):
        p = os.path.join(path, name)
        kind = r.choice(["file"] * 5 + ["symlink", "dangling", "fifo", "link", "directory", "directory", "loop"])
        if kind == "file" or (kind == "link" and not links):
            with open(p, "w") as f:
                f.write(r.choice(["", "x", "same", "other", "longer than that"]))
            os.chmod(p, r.choice([0o644, 0o600, 0o444, 0o755]))
            t = r.choice([OLD, SRC, NEW])
            os.utime(p, (t, t))
            links.append(p)
        elif kind == "link":
            os.link(r.choice(links), p)
        elif kind == "fifo":
            os.mkfifo(p)
        elif kind == "directory" and depth > 0:
            os.mkdir(p)
            fill(r, p, depth - 1, links)
            os.chmod(p, r.choice([0o755, 0o755, 0o700]))
        else:
            os.symlink(r.choice({"dangling": ["nowhere"], "loop": [name]}.get(kind, NAMES)), p)


def state(root):
    out = []
    for path, directories, files in os.walk(root):
        for name in directories + files + ["."]:
            p = os.path.join(path, name)
            st = os.lstat(p)
            text = os.readlink(p) if os.path.islink(p) else ""
            if os.path.isfile(p) and not text:
                with open(p, "rb") as f:
                    text = f.read()
            out.append((p, st.st_mode, st.st_ino, st.st_nlink, st.st_mtime_ns, text))
    return sorted(out, key=lambda e: e[0])


def command(r):
    """Options and operands; SRC is s, DST is d, both directories."""
    words = r.choice(ALONE).split() + r.sample(WITH, r.choice([0, 0, 1, 1, 2]))
    kind = r.choice(["tree", "tree", "tree", "new", "one", "several"])
    if kind == "tree":
        return words + ["-r", "-T", "s", "d"]
    if kind == "new":
        return words + ["-r", "-T", "s", "new"]
    words = [w for w in words if w not in ("-aT",)]
    if kind == "one":
        return words + ["-r", "s/" + r.choice(NAMES), "d/" + r.choice(NAMES)]
    return words + ["-r"] + ["s/" + n for n in r.sample(NAMES, 3)] + ["d"]


def run(fcopy, words):
    """The exit status, and each entry that is not left alone: (path in DST, what becomes of it)."""
    try:
        p = subprocess.run([fcopy, "-j1", "--json=lines"] + words, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "hangs", [], ""
    entries = set()
    for line in p.stdout.splitlines():
        e = json.loads(line)
        if e.get("entry") and e["action"] not in ("unchanged", "excluded"):
            entries.add((str(e["dst"]), e["action"]))
    return p.returncode, sorted(entries), p.stderr


def made_later():
    """Symlinks of DST that dangle, and whose target is an entry of SRC: the run may make that before or after it comes to the symlink."""
    links = [os.path.join(path, name) for path, directories, files in os.walk("d") for name in directories + files]
    return {p for p in links if os.path.islink(p) and not os.path.exists(p) and
            os.path.lexists(os.path.join("s", os.path.relpath(os.path.dirname(p), "d"), os.readlink(p)))}


def links_of_dst():
    """Of each file of DST, all its names."""
    names = {}
    for path, _, files in os.walk("d"):
        for name in files:
            p = os.path.join(path, name)
            names.setdefault(os.lstat(p).st_ino, set()).add(p)
    return {p: group for group in names.values() for p in group}


def last_links(links, foretold, done):
    """Names of DST that the dry run reports as failed because of other hard links, all of which the run has replaced."""
    copied = {p for p, action in done if action == "copied"}
    return {p for p, action in foretold if action == "failed" and len(links.get(p, ())) > 1 and links[p] <= copied}


def fixture(source, destination):
    """s/x and d/x of these types; t/file is where symlinks lead."""
    for name in "s", "d", "t":
        shutil.rmtree(name, ignore_errors=True)
        os.mkdir(name)
    with open("t/file", "w") as f:
        f.write("target\n")
    for side, kind in ("s", source), ("d", destination):
        x = side + "/x"
        if kind in ("file", "two"):
            with open(x, "w") as f:
                f.write(side + "\n")
        if kind == "two":
            os.link(x, side + "/other")
        elif kind == "symlink":
            os.symlink("../t/file", x)
        elif kind == "fifo":
            os.mkfifo(x)
        elif kind == "dir":
            os.makedirs(x + "/in")
        elif kind == "itself":
            os.link("s/x", x, follow_symlinks=False)


def foretells(fcopy, words):
    """Returns what is wrong with the dry run of a command line, or None."""
    def run(*command):
        return subprocess.run([fcopy, *command], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    before = state(".")
    dry = run("--dry-run", *words)
    if state(".") != before:
        return "changed by the dry run"
    real = run(*words)
    if dry.returncode != real.returncode:
        return "exit status %d, then %d: %s" % (dry.returncode, real.returncode, real.stderr)
    # Of a directory, a file that came and went changes the time.
    names = [[e[:2] if e[1] & 0o170000 == 0o040000 else e for e in entries] for entries in (before, state("."))]
    return "not foretold" if names[0] != names[1] and "would" not in dry.stdout else None


def table(fcopy):
    wrong = tried = 0
    options = ["", "-s", "-sf", "--attributes-only -p", "--inplace", "-aT --delete"]
    rows = [(src, dst, ["-rT", *o.split(), "s", "d"])
            for src, dst, o in itertools.product(["file", "symlink", "fifo"], ["absent", "two", "symlink", "itself"], options)]
    rows += [(src, dst, words[1:-2] + ["s/x", "d/x"]) for src, dst, words in rows if src != "fifo" and "-aT" not in words]
    rows += [("file", dst, ["s/x", "d/x", *o.split()])  # MODE is no third SRC
             for dst, o in itertools.product(["absent", "two", "dir"], ["1", "direct -f"])]
    for src, dst, words in rows:
        fixture(src, dst)
        why = foretells(fcopy, words)
        tried += 1
        if why:
            wrong += 1
            print("%s over %s: fcopy %s: %s" % (src, dst, " ".join(words), why))
    print("%d command lines, %d not foretold" % (tried, wrong))
    sys.exit(wrong > 0)


def main():
    if sys.argv[2] == "table":
        os.makedirs(sys.argv[4], exist_ok=True)
        fcopy = os.path.abspath(sys.argv[1])
        os.chdir(sys.argv[4])
        table(fcopy)
    fcopy, n, seed, work = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    seed, _, only = seed.partition(":")
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    wrong = listed = 0
    for i in range(n) if not only else [int(only)]:
        r = random.Random("%s:%d" % (seed, i))
        shutil.rmtree("t", ignore_errors=True)
        os.makedirs("t/s")
        os.mkdir("t/d")
        os.chdir("t")
        links = []
        fill(r, "s", 2, links)
        fill(r, "d", 2, links if r.random() < 0.2 else [])
        words = command(r)
        before = state(".")
        later, links = made_later(), links_of_dst()
        status, foretold, said = run(fcopy, ["--dry-run"] + words)
        changed = state(".") != before
        real, done, errors = run(fcopy, words)
        os.chdir("..")
        listed += len(done)
        differ = {os.path.normpath(p) for p, _ in set(foretold) ^ set(done)}
        later |= last_links(links, foretold, done)
        if changed or ((status != real or differ) and not (differ and differ <= later)):
            wrong += 1
            print("%s:%d: fcopy %s" % (seed, i, " ".join(words)))
            print("  changed by the dry run\n" if changed else "", end="")
            print("  exit status %s, then %s\n" % (status, real) if status != real else "", end="")
            print("  only foretold: %s\n  only done: %s" % (sorted(set(foretold) - set(done)), sorted(set(done) - set(foretold))))
            print("  dry run: %s\n  run: %s" % (said.strip().replace("\n", "; ")[:300], errors.strip().replace("\n", "; ")[:300]))
    print("%d command lines, %d entries listed, %d not foretold" % (n, listed, wrong))
    sys.exit(wrong > 0 or (listed == 0 and not only))


main()
