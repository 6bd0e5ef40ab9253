#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# picture_check.py - charts (SVG, PNG) and pages (HTML) as headless Chromium draws them
#
# usage: picture_check.py CHROMIUM SHOTS FILE...
# Each FILE but a PNG is drawn at 360, 768 and 1280 pixels, light and dark. Prints a line
# "FILE, WIDTH px, SCHEME: what is wrong" for each fault, or "FILE: as it should be"; ends
# with 1 if there was a fault. SHOTS receives pictures of the pages (- : none).
# Faults: in a PNG, anything drawn at its edge; in the others a page that scrolls sideways; a text outside its picture, its card or its table
# cell; two texts one upon the other; at 1280 px a table wider than its card; a table of
# speeds whose tok/s are off the screen; a text that its background hides.
import base64
import os
import signal
import sys
import tempfile

from browser import Browser, screen, shoot

chromium, shots, files = sys.argv[1], sys.argv[2], sys.argv[3:]
WIDTHS, SCHEMES = (360, 768, 1280), ("light", "dark")
SECONDS = 300

# Everything is measured in the pixels of the screen. A text is the four corners of each of
# its lines, since texts of charts may be turned; what is empty above and below its letters
# may be covered.
SCRIPT = r"""(function () {
  const faults = [], root = document.documentElement, isFile = root.tagName === "svg";
  const wide = root.clientWidth, RIM = 4;
  const short = t => "'" + t.trim().replace(/\s+/g, " ").slice(0, 40) + "'";

  function seen(e) {
    return e.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true});
  }

  // ---- where texts are
  const texts = [];
  for (const e of document.querySelectorAll("svg text")) {
    if (!e.textContent.trim() || !seen(e)) continue;
    const b = e.getBBox(), m = e.getScreenCTM(), cut = 0.18 * b.height;
    const at = (x, y) => [m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f];
    texts.push({e, text: e.textContent, owner: e.ownerSVGElement, scale: Math.hypot(m.a, m.b),
                v: [at(b.x, b.y + cut), at(b.x + b.width, b.y + cut),
                    at(b.x + b.width, b.y + b.height - cut), at(b.x, b.y + b.height - cut)]});
  }
  const walk = isFile ? null : document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; walk && (n = walk.nextNode());) {
    const e = n.parentElement;
    if (!n.textContent.trim() || e.closest("svg, script, style, title") || !seen(e)) continue;
    const range = document.createRange();
    range.selectNodeContents(n);
    for (const r of range.getClientRects()) {
      if (r.width < 1) continue;
      const cut = 0.2 * r.height;
      texts.push({e, text: n.textContent, owner: null, scale: 1,
                  v: [[r.left, r.top + cut], [r.right, r.top + cut],
                      [r.right, r.bottom - cut], [r.left, r.bottom - cut]]});
    }
  }
  for (const t of texts) {
    const x = t.v.map(p => p[0]), y = t.v.map(p => p[1]);
    t.box = {left: Math.min(...x), right: Math.max(...x), top: Math.min(...y), bottom: Math.max(...y)};
  }

  // ---- outside
  function outside(t, r, room) {
    return Math.max(r.left + room - t.box.left, t.box.right - r.right + room,
                    r.top + room - t.box.top, t.box.bottom - r.bottom + room);
  }
  for (const t of texts) {
    if (t.owner) {
      const r = t.owner.getBoundingClientRect(), b = t.owner.viewBox.baseVal;
      const card = t.owner.closest(".scroll") ? null : t.owner.closest(".card"); // it shows what is beyond
      const s = b.width ? Math.min(r.width / b.width, r.height / b.height) : 1;
      const x = r.left + (r.width - b.width * s) / 2, y = r.top + (r.height - b.height * s) / 2;
      const box = b.width ? {left: x, top: y, right: x + b.width * s, bottom: y + b.height * s} : r;
      const far = outside(t, card ? card.getBoundingClientRect() : box, RIM * s);
      if (far > 0) faults.push(short(t.text) + " is " + (far / s).toFixed(0) + " too near the edge of its picture, or beyond");
      continue;
    }
    const cell = t.e.closest("td, th, li, dd, dt, .card, .command");
    if (cell && outside(t, cell.getBoundingClientRect(), -1) > 0)
      faults.push(short(t.text) + " is outside its " + cell.tagName.toLowerCase());
  }

  // ---- one upon the other: no line between two convex shapes
  function apart(a, b) {
    for (const p of [a, b])
      for (let i = 0; i < 4; i++) {
        const q = p[(i + 1) % 4], n = [q[1] - p[i][1], p[i][0] - q[0]];
        const on = v => v.map(w => w[0] * n[0] + w[1] * n[1]), A = on(a), B = on(b);
        const gap = 0.5 * Math.hypot(n[0], n[1]);
        if (Math.max(...A) <= Math.min(...B) + gap || Math.max(...B) <= Math.min(...A) + gap) return true;
      }
    return false;
  }
  texts.sort((a, b) => a.box.left - b.box.left);
  for (let i = 0; i < texts.length; i++)
    for (let k = i + 1; k < texts.length && texts[k].box.left < texts[i].box.right; k++)
      if (texts[k].box.top < texts[i].box.bottom && texts[i].box.top < texts[k].box.bottom &&
          !apart(texts[i].v, texts[k].v))
        faults.push(short(texts[i].text) + " and " + short(texts[k].text) + " are one upon the other");

  // ---- colours: luminance of a text and of the nearest opaque colour behind it
  const paint = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas").getContext("2d");
  function light(color) {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = color;
    paint.fillRect(0, 0, 1, 1);
    const d = paint.getImageData(0, 0, 1, 1).data;
    if (d[3] < 250) return null;
    const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(d[0]) + 0.7152 * f(d[1]) + 0.0722 * f(d[2]);
  }
  const known = new Map();
  function behind(e) {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (!known.has(c)) known.set(c, light(c));
      if (known.get(c) !== null) return known.get(c);
    }
    return 1;
  }
  for (const t of texts) {
    if (isFile || (t.owner && t.e.classList.contains("paper"))) continue;
    const s = getComputedStyle(t.e), c = t.owner ? s.fill : s.color;
    if (!known.has(c)) known.set(c, light(c));
    const a = known.get(c), b = behind(t.e);
    if (a !== null && (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 3.5)
      faults.push(short(t.text) + " is hardly seen: " + c);
  }

  // ---- what the window shows
  if (!isFile && root.scrollWidth > wide)
    faults.push("the page is " + root.scrollWidth + " wide");
  for (const e of document.querySelectorAll(".scroll"))
    if (wide >= 1280 && e.scrollWidth > e.clientWidth)
      faults.push("a table of " + e.scrollWidth + " is in a card of " + e.clientWidth + ": " + short(e.textContent));
  for (const e of document.querySelectorAll("table")) {
    const head = Array.from(e.querySelectorAll("thead th")).find(h => h.textContent.trim() === "tok/s");
    const row = head && Array.from(e.tBodies[0].rows).find(r => r.offsetHeight > 0 && r.cells.length > 1);
    const cell = row && row.cells[head.cellIndex];
    if (cell && cell.getBoundingClientRect().right > wide)
      faults.push("tok/s end at " + cell.getBoundingClientRect().right.toFixed(0));
  }
  return faults;
})()"""


# Whether the outermost pixels of a PNG have the colour of its corner.
EDGE = """(async function () {
  const image = new Image();
  image.src = "data:image/png;base64,%s";
  await image.decode();
  const w = image.width, h = image.height, paint = document.createElement("canvas").getContext("2d");
  paint.canvas.width = w;
  paint.canvas.height = h;
  paint.drawImage(image, 0, 0);
  for (const [name, x, y, dx, dy] of [["left", 0, 0, 4, h], ["right", w - 4, 0, 4, h],
                                      ["upper", 0, 0, w, 4], ["lower", 0, h - 4, w, 4]])
    if (new Set(new Uint32Array(paint.getImageData(x, y, dx, dy).data.buffer)).size > 1)
      return [w + " x " + h + ": something is drawn at the " + name + " edge"];
  return [];
})()"""


def check_png(b, file):
    b.open()
    with open(file, "rb") as f:
        faults = b.run(EDGE % base64.b64encode(f.read()).decode())
    b.close()
    return faults


def check(b, file):
    faults = []
    b.open()
    b.send("Page.navigate", url="file://" + os.path.abspath(file))
    b.wait_for("Page.loadEventFired")
    for scheme in SCHEMES:
        b.send("Emulation.setEmulatedMedia",
              features=[{"name": "prefers-color-scheme", "value": scheme}])
        for width in WIDTHS:
            screen(b, width, 900, width < 500)
            for fault in b.run(SCRIPT):
                faults.append("%d px, %s: %s" % (width, scheme, fault))
            if shots != "-" and not file.endswith(".svg"):
                name = os.path.splitext(file)[0].replace("/", "+")
                shoot(b, os.path.join(shots, "%s-%d-%s.png" % (name, width, scheme)))
    b.close()
    return faults


n_faults = 0
with tempfile.TemporaryDirectory() as profile:
    b = Browser(chromium, profile)
    for file in files:
        signal.alarm(SECONDS)
        faults = check_png(b, file) if file.endswith(".png") else check(b, file)
        n_faults += len(faults)
        for fault in faults:
            print("%s, %s" % (file, fault), flush=True)
        if not faults:
            print("%s: as it should be" % file, flush=True)
    b.end()
sys.exit(1 if n_faults else 0)
