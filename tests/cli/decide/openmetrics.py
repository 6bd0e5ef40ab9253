#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# openmetrics.py - is a file of metrics one that OpenMetrics and node_exporter accept?
#
# usage: openmetrics.py [--board GRAFANA.json] FILE...
# Each family has HELP and TYPE, and a UNIT that ends its name; its samples are together,
# no two have the same labels, labels are escaped, figures are numbers, the last line is
# "# EOF". With --board every metric that the board names is in one of the files, and every
# label of its legends is one of that metric.
import json
import re
import sys

LABELS = r'(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(?:,(?=[a-z])|(?=\})))*'
SAMPLE = re.compile(r"([a-z_][a-z0-9_]*)\{(" + LABELS + r")\} (-?[0-9.]+(?:e[+-]?[0-9]+)?)")
problems, labels_of = [], {}


def check(path):
    lines = open(path, encoding="utf-8", newline="\n").read().split("\n")
    if lines[-2:] != ["# EOF", ""]:
        problems.append(f"{path}: does not end with # EOF")
    family, typed, closed, seen = None, set(), set(), set()
    for number, line in enumerate(lines[:-2], 1):
        where = f"{path}:{number}: {line[:90]}"
        if line.startswith("# "):
            kind, name, rest = (line[2:].split(" ", 2) + [""])[:3]
            if kind == "HELP":
                closed |= {family}
                family = name
                if name in closed or not rest:
                    problems.append(f"{where}: begins again, or has no text")
            elif name != family or kind not in ("TYPE", "UNIT"):
                problems.append(f"{where}: out of place")
            elif kind == "TYPE":
                typed.add(name)
                if rest != "gauge":
                    problems.append(f"{where}: no gauge")
            elif not name.endswith("_" + rest):
                problems.append(f"{where}: the name does not end with the unit")
            continue
        m = SAMPLE.fullmatch(line)
        if not m:
            problems.append(f"{where}: no sample")
            continue
        if m[1] != family or family not in typed:
            problems.append(f"{where}: not below its head")
        if (m[1], m[2]) in seen:
            problems.append(f"{where}: twice")
        seen.add((m[1], m[2]))
        labels_of.setdefault(m[1], set()).update(re.findall(r'([a-z_]+)="', m[2]))
        if not m[1].startswith("slmbench_"):
            problems.append(f"{where}: another name")
    if not seen:
        problems.append(f"{path}: has no sample")


def check_board(path):
    board = json.load(open(path, encoding="utf-8"))
    targets = [(p["title"], t) for p in board["panels"] for t in p["targets"]]
    variables = [("variable", {"expr": v["query"], "legendFormat": ""})
                 for v in board["templating"]["list"] if v["type"] == "query"]
    if len({p["id"] for p in board["panels"]}) != len(board["panels"]) or len(targets) < 10:
        problems.append(f"{path}: panels have one id, or are few")
    for title, target in targets + variables:
        names = set(re.findall(r"slmbench_[a-z0-9_]+", target["expr"]))
        if not names or names - set(labels_of):
            problems.append(f"{path}: {title}: no metric {names - set(labels_of) or target['expr']}")
        for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
            if label != "instance" and not all(label in labels_of.get(n, ()) for n in names):
                problems.append(f"{path}: {title}: {names} have no label {label}")


board = sys.argv[2] if sys.argv[1] == "--board" else None
for file in sys.argv[3 if board else 1:]:
    check(file)
if board:
    check_board(board)
print("\n".join(problems) or f"{len(labels_of)} metrics")
sys.exit(bool(problems))
