#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# language.py - plain English: habits that are counted, and whose counts may only fall
#
# usage: language.py [--lower | --texts FILE...]
# Counts each habit below in each part of the tree and compares the counts with the
# limits in tests/language.txt. More than a limit fails, and the new lines are printed.
# Fewer fails too, so that no limit stays too high: --lower writes the lower counts.
# With --texts each habit in the files fails: cli/help.sh checks every --help.
import collections
import os
import re
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
LIMITS = "tests/language.txt"

# Habit, pattern, what to write instead. A space in a pattern also matches a line break
# with what begins the next line of a comment or string.
HABITS = [
    ("of", r"""\bOf [a-z0-9'"`]|[;:] of [a-z]|[,(={]\s*"of [a-z]""",
     '"For X, ...", "X\'s ...", "Each X ..."'),
    ("so-many", r"\b[Ss]o (?:many|much)\b", "the name (N, limit), or nothing"),
    ("none", r"\b(?:that|which|who|where|what|if|there|such) (?:is|are|was|were) none\b",
     'name the thing again: "invalid lines are skipped"'),
    ("the-same", r"\bThe same (?:by|on|of|for|with|without|in)\b", "name the thing again"),
    ("people", r"\b(?:says?|saying|said|unsaid|hears?|heard|hearing|tells?|telling|told|untold|"
     r"asks?|asked|asking|complain\w*|last words)\b",
     "programs print, report, send, receive, read, request"),
    ("people-names", r"(?<![A-Za-z0-9])(?:says?|said|unsaid|hears?|heard|tells?|told|asks?|asked|complaints?)_\w|"
     r"_(?:says?|said|unsaid|hears?|heard|tells?|told|asks?|asked|complaints?)\b|SAID",
     "the same verbs in names: print_, report_, read_, shown"),
    ("most-names", r"(?<![A-Za-z0-9])(?:most|MOST|least|LEAST)_\w|_(?:most|MOST|least|LEAST)\b", "max_ and min_"),
    ("beside", r"\b[Bb]eside\b", "next to, in addition to, while, compared with"),
    ("old-words", r"\b(?:anew|[Ll]ikewise|[Mm]eanwhile|be it|as long as|go(?:es)? on|going on|whom)\b",
     "again, also, while, even if, continue, who"),
    ("of-which", r"\b(?:of which|of whose|[Ww]hat of|in whose|by whose|with whose|whose is)\b",
     "two sentences, or the name"),
    ("phrases", r"\b(?:that (?:it|they) carr(?:y|ies)|read along|stands? twice)\b",
     "can serve, read the answer as it is streamed, occurs twice"),
]
PARTS = {"kernels": "kernels", "engine": "engine", "harness": "harness", "docs": "docs", "tests": "tests"}
LEFT_OUT = ("build", ".git", "tests/data", "tests/fuzz/seeds", "results/examples", "configs/texts")
ENDINGS = (".c", ".h", ".cc", ".def", ".md", ".sh", ".py", ".mjs", ".yaml", ".yml", ".cmake", ".js",
           ".css", ".gp", "CMakeLists.txt")


def files():
    """Every file that people write, with the part of the tree that counts it."""
    for folder, folders, names in os.walk("."):
        folder = os.path.normpath(folder)
        folders[:] = [f for f in folders if os.path.normpath(f"{folder}/{f}") not in LEFT_OUT]
        for name in names:
            path = os.path.normpath(f"{folder}/{name}")
            script = path.startswith(("ci/", ".ci/")) and "." not in name
            if (name.endswith(ENDINGS) or script) and path != "tests/language.py":
                part = "docs" if name.endswith(".md") else PARTS.get(path.split("/")[0], "other")
                yield part, path


def find(files):
    """{(habit, part): [(path, first line, last line, text)]} of (part, path)"""
    found = collections.defaultdict(list)
    patterns = [(h, re.compile(p.replace(" ", r"(?:[ \t]|\"?\n[ \t]*(?:\*|//|\#|\")?[ \t]*)+")))
                for h, p, _ in HABITS]
    for part, path in files:
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        lines = text.splitlines()
        for habit, pattern in patterns:
            for m in pattern.finditer(text):
                first = text.count("\n", 0, m.start()) + 1
                last = first + m.group().count("\n")
                found[habit, part].append((path, first, last, lines[first - 1].strip()))
    return found


def added_lines(limit):
    """{path: lines added since that line of the limits was written}, None without git"""
    def git(*args):
        return subprocess.run(["git", *args], capture_output=True, text=True, errors="replace")
    commit = git("log", "-1", "--format=%H", "-S", limit, "--", LIMITS).stdout.strip()
    diff = git("diff", "-U0", commit) if commit else None
    if diff is None or diff.returncode != 0:
        return None
    added, path = collections.defaultdict(set), None
    for line in diff.stdout.splitlines():
        if line.startswith("+++ "):
            path = line[6:]
        elif m := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            added[path] |= set(range(int(m[1]), int(m[1]) + int(m[2] or 1)))
    return added


def print_new(hits, limit):
    added = added_lines(limit)
    new = [h for h in hits if added and added[h[0]] & set(range(h[1], h[2] + 1))]
    for path, line, _, text in new[:40]:
        print(f"  {path}:{line}: {text}")
    if not new:
        for path, n in collections.Counter(h[0] for h in hits).most_common(10):
            print(f"  {path}: {n}")


if "--texts" in sys.argv:
    hits = find(("", path) for path in sys.argv[2:])
    for (habit, _), places in hits.items():
        for path, line, _, text in places:
            print(f"{habit}: {os.path.basename(path)}:{line}: {text}")
    sys.exit(bool(hits))
limits = {}
for line in open(LIMITS, encoding="utf-8"):
    habit, part, limit = line.split()
    limits[habit, part] = int(limit)
found = find(sorted(files()))
if "--list" in sys.argv:  # every place: --list HABIT [PATH]
    start = (sys.argv + [""])[3]
    for (habit, part), hits in found.items():
        for path, line, _, text in hits:
            if habit == sys.argv[2] and path.startswith(start):
                print(f"{path}:{line}: {text}")
    sys.exit(0)
if "--lower" in sys.argv:
    with open(LIMITS, "w", encoding="utf-8") as f:
        for key, limit in limits.items():
            f.write(f"{key[0]} {key[1]} {min(limit, len(found[key]))}\n")
    sys.exit(0)
failed = False
for habit, _, instead in HABITS:
    for part in [*PARTS, "other"]:
        hits, limit = found[habit, part], limits.get((habit, part), 0)
        if len(hits) > limit:
            failed = True
            print(f"{habit} in {part}: {len(hits)}, the limit is {limit}. Write instead: {instead}")
            print_new(hits, f"{habit} {part} {limit}\n")
        elif len(hits) < limit:
            failed = True
            print(f"{habit} in {part}: {len(hits)}, fewer than the limit of {limit}: "
                  "run tests/language.py --lower and commit tests/language.txt")
sys.exit(failed)
