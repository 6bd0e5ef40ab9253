#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# same_charts.py - a chart that we drew, compared with gnuplot's SVG of the same chart
#
# usage: same_charts.py OURS.svg GNUPLOTS.svg
# Both have the same size and the same texts, with the same anchors, and each text is
# within FAR of its place in the other; the most distant one is printed. No text of ours
# leaves the picture or lies upon another.
import math
import re
import sys
import xml.etree.ElementTree as tree

from text_boxes import faults_of

FAR = 3.0  # units of a picture that is 1200 wide
SVG = "{http://www.w3.org/2000/svg}"


def size_of(root):
    return [float(v) for v in root.get("viewBox").split()[2:]]


def place_of(element):
    """Where it stands, after a translation and a rotation."""
    how = element.get("transform") or ""
    move = re.search(r"translate\(([-\d.]+),\s*([-\d.]+)\)", how)
    turn = re.search(r"rotate\(([-\d.]+)", how)
    angle = math.radians(float(turn.group(1))) if turn else 0.0
    x, y = (float(v) for v in move.groups()) if move else (0.0, 0.0)
    own = [float(element.get(k) or 0) for k in "xy"]
    return (x + own[0] * math.cos(angle) - own[1] * math.sin(angle),
            y + own[0] * math.sin(angle) + own[1] * math.cos(angle))


def texts_of(root):
    found = []
    for parent in root.iter():
        for text in parent.findall(SVG + "text"):
            content = " ".join("".join(text.itertext()).split())
            at = text if text.get("font-size") else parent  # gnuplot's groups have it
            if content:
                found.append((content, at.get("text-anchor"), place_of(at)))
    return found


ours = tree.parse(sys.argv[1]).getroot()
with open(sys.argv[2], encoding="utf-8") as f:  # gnuplot is given a blank in "]]>"
    theirs = tree.fromstring(f.read().replace("]] >", "]]&gt;").encode())
failures = []
if any(abs(a - b) > 1 for a, b in zip(size_of(ours), size_of(theirs))):
    failures.append("sizes: %s and gnuplot's %s" % (size_of(ours), size_of(theirs)))
failures += faults_of(ours)
left = texts_of(theirs)
worst = (0, "")
for content, anchor, (x, y) in texts_of(ours):
    same = [t for t in left if t[:2] == (content, anchor)]
    if not same:
        failures.append("gnuplot has no \"%s\", %s" % (content, anchor))
        continue
    nearest = min(same, key=lambda t: abs(t[2][0] - x) + abs(t[2][1] - y))
    left.remove(nearest)
    far = max(abs(nearest[2][0] - x), abs(nearest[2][1] - y))
    worst = max(worst, (far, content))
    if far > FAR:
        failures.append("\"%s\" is at %.0f,%.0f and gnuplot's at %.0f,%.0f"
                        % (content, x, y, *nearest[2]))
failures += ["there is no \"%s\", %s" % t[:2] for t in left]
print("%s: %d texts, at most %.1f away (\"%s\")"
      % (sys.argv[1], len(texts_of(ours)), *worst))
if failures:
    sys.exit("%s: %s" % (sys.argv[1], "; ".join(failures[:12])))
