#!/bin/bash
# SPDX-License-Identifier: MIT
#
# report.sh - `bench report`: the page of recorded sweeps and of one with hostile names,
# as text and in headless Chromium, where there is one
. "$SRC/tests/cli/lib.sh"
examples=$SRC/results/examples
command -v python3 >/dev/null || skip "no python3"

"$BENCH" report "$examples/zen5-2vcpu" "$examples/granite-rapids-2vcpu" -o two.html >out
grep -qE '^two.html: [0-9]+ KiB, 2 machines$' out || fail "nothing is said of the page: $(cat out)"
"$BENCH" report "$examples/zen5-2vcpu" -o one.html >/dev/null
"$BENCH" report "$examples/zen5-2vcpu" -o - | cmp - one.html || fail "a page twice is not the same"
[ "$(stat -c %s one.html)" -lt 200000 ] || fail "the page of one sweep has $(stat -c %s one.html) bytes"

# Names of others: in rows, in machine.json, of the directory, and as a title.
hostile='x"><img src=https:slm.invalid onerror=alert(1)>'
mkdir -p "$hostile"
python3 - "$examples/zen5-2vcpu" "$hostile" <<'END'
import csv, json, sys
source, to = sys.argv[1:]
evil = "</script><script>alert(1)</script><img src=https://slm.invalid/a.png onerror=alert(2)>'\"&"
rows = list(csv.DictReader(open(source + "/sweep.csv")))
for r in rows:
    r["point"] = r["point"].replace("yi-1.5-9b", "</td><script>alert(3)</script>")
    r.update(model=evil[:90], detail=evil, command="bench decode -m " + evil,
             validity="disturbed: " + evil[:80], placement="spread")
with open(to + "/sweep.csv", "w", newline="") as f:
    w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
    w.writeheader()
    w.writerows(rows)
with open(to + "/samples.csv", "w") as f:
    for line in open(source + "/samples.csv"):
        f.write(line.replace("yi-1.5-9b", "</td><script>alert(3)</script>"))
machine = json.load(open(source + "/machine.json"))
def spoil(v):
    if isinstance(v, dict):
        return {k + "<b>": spoil(x) for k, x in v.items()} | {k: spoil(x) for k, x in v.items()}
    if isinstance(v, list):
        return [spoil(x) for x in v]
    return evil if isinstance(v, str) else v
json.dump(spoil(machine), open(to + "/machine.json", "w"))
END
grep -q 'bench decode -m yi-1.5-9b:Q4_0 ' one.html || fail "no commands in the page"
mkdir shell
sed 's/bench decode -m/rm -rf --no-preserve-root; bench decode -m/' "$examples/zen5-2vcpu/sweep.csv" >shell/sweep.csv
"$BENCH" report shell -o - | grep -q 'rm -rf' && fail "a stored command is in the page as it was found"
"$BENCH" report "$hostile" --title "</title><script>alert(4)</script>" -o hostile.html >/dev/null

# Nothing in a page names anything outside it, and every element is one that we write.
python3 - one.html two.html hostile.html <<'END' || fail "a page is not as it should be"
import html.parser, re, sys
known = set("""html head meta link title style body header main nav section footer h1 h2 h3 p a b
small span div ul li dl dt dd details summary code table thead tbody tr th td button input figure
figcaption svg path rect text g script""".split())
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.scripts, self.open = [], []
    def handle_starttag(self, tag, attributes):
        assert tag in known, tag
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "style", "action"), (tag, name)
            assert name != "href" or value == "data:," or value.startswith("#m"), value
        if tag == "script":
            self.scripts.append(dict(attributes).get("type"))
        if tag not in ("meta", "link", "input", "path", "rect"):
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        assert tag in ("path", "rect"), tag
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
for name in sys.argv[1:]:
    page = Page()
    text = open(name, encoding="utf-8").read()
    page.feed(text)
    page.close()
    assert not page.open, page.open
    assert page.scripts.count(None) == 1, page.scripts
    assert set(page.scripts) == {None, "application/json"}, page.scripts
    assert not re.search("NaN|(?<![a-z])(nan|inf)(?![a-z])", text) and '"-0"' not in text, name
END

# A sweep with quality, streams or a single point is drawn as well; wishes are those of
# recommend.
"$BENCH" report "$SRC/tests/data/sweeps/yi-9b-6g" --min-tps 100 -o none.html >/dev/null
grep -q 'No recommendation' none.html || fail "a floor that nothing reaches"
{ head -1 "$examples/zen5-2vcpu/sweep.csv"; sed -n 20p "$examples/zen5-2vcpu/sweep.csv"; } >single.csv
mkdir single && mv single.csv single/sweep.csv
"$BENCH" report single -o single.html >/dev/null || fail "a single row makes no page"

# ---- the same charts of samples, for gnuplot
if command -v gnuplot >/dev/null; then
    cp -r "$examples/zen5-2vcpu" plotted
    "$BENCH" plot plotted >/dev/null || fail "the charts are not drawn"
    for chart in token_times token_run roof_share; do draws_again plotted $chart; done
    [ "$(grep -c '^0,' plotted/token_run.csv)" = "$(($(wc -l <plotted/samples.csv) - 1))" ] ||
        fail "not every sample is a dot"
    rm plotted/samples.csv
    "$BENCH" plot plotted >/dev/null
    [ ! -e plotted/token_times.svg ] || fail "a chart without samples is still there"
fi

refused 2 "report takes directories" report
refused 2 "there is no sweep.csv" report nowhere
refused 2 "sweep.csv" report single -o single/sweep.csv

# ---- in a browser
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "no chromium: ci/setup browser installs it"
check() {
    python3 "$SRC/tests/support/page_check.py" "$chromium" "$1" . >said 2>&1
}
for page in two.html hostile.html single.html; do
    check $page || fail "$page in a browser: $(cat said)"
done
for shot in desktop phone dark; do
    [ -s $shot.png ] || fail "no picture $shot.png"
done

# What the check is there for is found: a script that the page's policy does not know, a
# request, and a page that is too wide for a phone.
sed 's/"use strict";/"use strict" ;/' one.html >bad.html
! check bad.html && grep -q "Content Security Policy" said || fail "a changed script was run: $(cat said)"
sed 's|<main>|<main><img src="https://slm.invalid/a.png">|' one.html >bad.html
! check bad.html && grep -q "slm.invalid" said || fail "a request was not seen: $(cat said)"
sed 's|<main>|<main><svg width="700" height="9"></svg>|' one.html >bad.html
! check bad.html && grep -q "phone: the page is" said || fail "a wide page was not seen: $(cat said)"
