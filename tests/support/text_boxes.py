# SPDX-License-Identifier: MIT
#
# text_boxes.py - where the texts of our SVG charts are, by the widths of their letters
#
# usage: text_boxes.py FILE.svg...
# Prints a line for each text that leaves its picture and for each two texts that lie one
# upon the other; ends with 1 if there was one. Turned texts are passed over: they need a
# browser (picture_check.py).
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"


def width_of(text, size):
    """About that of DejaVu Sans."""
    return size * sum(0.33 if c in " iljI.,:;'|!()[]-/·" else 0.4 if c in "frt" else
                      0.93 if c in "mwMW%@…" else 0.68 if c.isupper() else 0.6 for c in text)


def boxes_of(root):
    found = []
    for text in root.iter(SVG + "text"):
        content = "".join(text.itertext()).strip()
        if not content or "rotate" in (text.get("transform") or ""):
            continue
        size, x, y = (float(text.get(k)) for k in ("font-size", "x", "y"))
        width = width_of(content, size)
        left = x - {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")] * width
        found.append((content, left, left + width, y - 0.6 * size, y))
    return found


def faults_of(root):
    width = float(root.get("viewBox").split()[2])
    boxes = sorted(boxes_of(root), key=lambda b: b[1])
    for i, (content, left, right, top, bottom) in enumerate(boxes):
        if left < 2 or right > width - 2:
            yield "\"%s\" is from %.0f to %.0f" % (content, left, right)
        for other in boxes[i + 1:]:
            if other[1] > right - 1:
                break
            if other[3] < bottom and top < other[4]:
                yield "\"%s\" and \"%s\" are one upon the other" % (content, other[0])


if __name__ == "__main__":
    faults = [(name, fault) for name in sys.argv[1:]
              for fault in faults_of(tree.parse(name).getroot())]
    for fault in faults:
        print("%s: %s" % fault)
    sys.exit(1 if faults else 0)
