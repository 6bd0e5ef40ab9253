#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# page_check.py - pages of `bench report` in headless Chromium
#
# usage: page_check.py CHROMIUM SCREENSHOTS PAGE...
# Prints a line "PAGE: what is wrong" for each fault, or "PAGE: as it should be"; ends with
# 1 if there was a fault. One browser shows all pages, one after the other, since starting
# it takes longer than a page.
# Checked: nothing is said on the console
# (a style or script that the page's policy refuses would be), nothing is requested but
# the page, no dialog opens; no page is wider than a phone; tables sort by figures and by
# texts, both ways, figures that are missing last; rows are filtered; a row's columns are
# those of its launches. Writes desktop.png, phone.png and dark.png of the last page into
# SCREENSHOTS.
import json
import os
import signal
import sys
import tempfile

from browser import SECONDS, Browser, screen, shoot

chromium, shots, pages = sys.argv[1], sys.argv[2], sys.argv[3:]


def fail(what):
    failures.append(what)
    print("%s: %s" % (page, what), flush=True)


def check_width(b, what):
    wide = b.run("document.documentElement.scrollWidth")
    seen = b.run("document.documentElement.clientWidth")
    if wide > seen:
        fail("%s: the page is %d pixels wide, its window %d" % (what, wide, seen))


# Sort keys of a column as the page shows them, from top to bottom.
KEYS = """(function (t, c) {
  return Array.from(t.tBodies[0].rows).filter(r => !r.classList.contains("detail"))
    .map(r => r.cells[c].dataset.v === undefined ? r.cells[c].textContent
              : r.cells[c].dataset.v === "" ? null : Number(r.cells[c].dataset.v));
})(document.querySelectorAll("table.rows")[%d], %d)"""
PRESS = 'document.querySelectorAll("table.rows")[%d].tHead.rows[0].cells[%d].firstChild.click()'


def check_sorting(b):
    n_sorted = 0
    for table in range(b.run('document.querySelectorAll("table.rows").length')):
        cells = 'document.querySelectorAll("table.rows")[%d].tHead.rows[0].cells' % table
        before = sorted(map(str, b.run(KEYS % (table, 0))))
        for column in range(b.run(cells + ".length")):
            for _ in range(2):
                b.run(PRESS % (table, column))
                way = b.run(cells + '[%d].getAttribute("aria-sort")' % column)
                keys = b.run(KEYS % (table, column))
                known = [k for k in keys if k is not None]
                if keys[:len(known)] != known:
                    fail("table %d, column %d: missing figures are not last" % (table, column))
                if all(isinstance(k, (int, float)) for k in known) and \
                        known != sorted(known, reverse=way == "descending"):
                    fail("table %d, column %d is not %s: %s" % (table, column, way, known))
                n_sorted += 1
            ways = b.run("Array.from(%s).filter(c => c.hasAttribute('aria-sort')).length" % cells)
            if ways != 1:
                fail("%d columns say that they are sorted" % ways)
        if sorted(map(str, b.run(KEYS % (table, 0)))) != before:
            fail("table %d lost rows by sorting" % table)
    if not n_sorted:
        fail("no table was sorted")


def check_details(b):
    b.run('document.querySelector("table.rows td button").click()')
    shown = b.run("""(function () {
      var d = document.querySelector("tr.detail.open"), t = d && d.querySelector("table");
      return t && {height: d.offsetHeight, heads: t.tHead.rows[0].cells.length,
                   point: Array.from(t.tBodies[0].rows).filter(r => r.cells[0].textContent ===
                          "point").map(r => r.cells[2].textContent)[0],
                   command: d.querySelector(".command") && d.querySelector(".command").textContent};
    })()""")
    if not shown or not shown["height"] or shown["heads"] < 3 or not shown["point"]:
        fail("a row does not show its columns: %s" % shown)
    b.run('document.querySelector("table.rows td button").click()')
    if b.run('document.querySelectorAll("tr.detail.open").length'):
        fail("the columns of a row do not close")


def check_filter(b):
    def shown():
        return b.run("""Array.from(document.querySelector("#table0").tBodies[0].rows)
            .filter(r => !r.classList.contains("detail") && r.offsetHeight > 0).length""")

    def only(text):
        b.run("""(function (i) { i.value = %s; i.dispatchEvent(new Event("input",
                 {bubbles: true})); })(document.querySelector("[data-table=table0]"))"""
              % json.dumps(text))

    everything = shown()
    words = b.run('document.querySelector("#table0").tBodies[0].rows[0].cells[1].textContent')
    only(words.upper())
    if not 0 < shown() <= everything:
        fail("filter: %d of %d rows have '%s'" % (shown(), everything, words))
    only("no such words")
    if shown():
        fail("filter: rows that have not the words are shown")
    only("")
    if shown() != everything:
        fail("filter: rows do not come back")


def check_events(b):
    requests = []
    for e in b.events:
        method, params = e.get("method"), e.get("params", {})
        if e.get("sessionId") != b.session:
            continue  # of the page before
        if method == "Runtime.exceptionThrown":
            fail("exception: %s" % params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled":
            fail("console: %s" % params["args"])
        elif method == "Log.entryAdded":
            fail("log: %s" % params["entry"])
        elif method == "Page.javascriptDialogOpening":
            fail("a dialog: %s" % params)
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if url != "file://" + os.path.abspath(page) and not url.startswith("data:"):
                fail("a request: %s" % url)
            requests.append(url)
    if not requests:
        fail("not even the page was requested")


def check_page(b):
    screen(b, 1280, 900, False)
    b.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    b.send("Page.navigate", url="file://" + os.path.abspath(page))
    b.wait_for("Page.loadEventFired")
    check_width(b, "desktop")
    shoot(b, os.path.join(shots, "desktop.png"))
    light = b.run("getComputedStyle(document.body).backgroundColor")
    screen(b, 390, 844, True)
    check_width(b, "phone")
    shoot(b, os.path.join(shots, "phone.png"))
    b.run('document.querySelector("table.rows td button").click()')
    check_width(b, "phone, columns of a row shown")
    b.run('document.querySelector("table.rows td button").click()')
    screen(b, 1280, 900, False)
    b.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    if b.run("getComputedStyle(document.body).backgroundColor") == light:
        fail("the page is not dark where the reader's system is")
    check_details(b)
    b.run('document.querySelector("table.rows td button").click()')
    shoot(b, os.path.join(shots, "dark.png"))
    b.run('document.querySelector("table.rows td button").click()')
    check_sorting(b)
    check_filter(b)
    check_events(b)


failures, page = [], ""
with tempfile.TemporaryDirectory() as profile:
    b = Browser(chromium, profile)
    for page in pages:
        signal.alarm(5 * SECONDS)  # a dialog waits for an answer
        n_before = len(failures)
        b.open()
        check_page(b)
        b.close()
        if len(failures) == n_before:
            print("%s: as it should be" % page, flush=True)
    b.end()
sys.exit(1 if failures else 0)
