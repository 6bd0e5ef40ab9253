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
    for chart in token_times token_run; do draws_again plotted $chart; done
    draws_alone plotted "$BENCH" plot plotted
    [ "$(grep -c '^0,' plotted/token_run.csv)" = "$(($(wc -l <plotted/samples.csv) - 1))" ] ||
        fail "not every sample is a dot"
    rm plotted/samples.csv
    "$BENCH" plot plotted >/dev/null
    [ ! -e plotted/token_times.svg ] || fail "a chart without samples is still there"
fi

# A launch that failed before its model was opened has no quantisation.
mkdir unopened
sed '2s/,yi-1.5-9b,Q6_K,/,yi-1.5-9b,,/' "$examples/zen5-2vcpu/sweep.csv" >unopened/sweep.csv
"$BENCH" report unopened "$examples/zen5-2vcpu" -o - | grep -q '<td class="name">yi-1.5-9b mmap, decode at 4096</td>' ||
    fail "a point without a quantisation has another name"

# ---- users of two servers on one machine, beside a sweep of another
mkdir users
python3 - users/sweep.csv <<'END'
import csv, sys
out = csv.DictWriter(open(sys.argv[1], "w", newline=""), """utc point attempt kind model engine status tok_per_s
    tok_per_s_lo tok_per_s_hi validity load_mode n_users prompt_lengths output_lengths prefix_tokens slo n_requests
    n_failed n_ttft_met n_tpot_met window_s ttft_p50_s ttft_p90_s ttft_p90_s_lo ttft_p90_s_hi tpot_p50_ms tpot_p90_ms
    e2e_p50_s slo_verdict in_flight little""".split())
out.writeheader()
for server, speeds, ttft, tpot in (("slmbench", (56, 82, 119, 151, 164, 153), (.26, .5, .89, 1.35, 1.9, 7.6), 18),
                                   ("llama-server", (40, 43, 45, 46, 44, 30), (.4, .9, 1.9, 4.2, 9, 19), 25)):
    for k, (speed, first) in enumerate(zip(speeds, ttft)):
        users, met = 2 ** k, 60 if first < 5 else 9
        out.writerow({
            "utc": "2027-01-01T00:00:0%dZ" % k, "point": "load/%s/m/p128/o64/u%d" % (server, users), "attempt": 1,
            "kind": "load", "model": "m", "engine": server, "status": "ok", "tok_per_s": speed,
            "tok_per_s_lo": .9 * speed, "tok_per_s_hi": 1.1 * speed, "validity": "valid", "load_mode": "closed",
            "n_users": users, "prompt_lengths": 128, "output_lengths": 64, "prefix_tokens": 0, "slo": "reading",
            "n_requests": 60, "n_failed": 0, "n_ttft_met": met, "n_tpot_met": 60, "window_s": 100,
            "ttft_p50_s": .8 * first, "ttft_p90_s": first, "ttft_p90_s_lo": .9 * first, "ttft_p90_s_hi": 1.2 * first,
            "tpot_p50_ms": tpot, "tpot_p90_ms": 1.2 * tpot * (1 + k), "e2e_p50_s": 3, "in_flight": users, "little": 1,
            "slo_verdict": "meets" if met == 60 else "misses"})
out.writerow({"utc": "2027-01-01T00:00:09Z", "point": "load/other/m/p128/o64/u1", "attempt": 1, "kind": "load",
              "model": "m", "engine": "other", "status": "partial", "tok_per_s": 2, "validity": "valid",
              "load_mode": "closed", "n_users": 1, "prompt_lengths": 128, "output_lengths": 64, "prefix_tokens": 0,
              "slo": "reading", "n_requests": 3, "n_failed": 0, "n_ttft_met": 0, "n_tpot_met": 0, "window_s": 100,
              "slo_verdict": "misses"})
END
"$BENCH" report users "$examples/zen5-2vcpu" -o users.html >/dev/null || fail "no page of users"
grep -q "prompts 128, answers 64 tokens</p>" users.html || fail "the page does not say what users asked"
[ "$(grep -c 'slmbench serves 16 users who read the stream, llama-server 8, other none; ' users.html)" = 2 ] ||
    fail "the users it serves are not in the overview and below: $(grep serves users.html)"
grep -q '<td class="doubt">partial: few requests</td>' users.html || fail "a step of few requests has no doubt"
! grep -q "The same points on all machines" users.html || fail "one sweep is side by side with nothing"
[ "$(grep -c '<h3>Throughput against the time' users.html)" = 2 ] || fail "two latencies are two pictures"

refused 2 "report takes directories" report
refused 2 "cannot read nowhere" report nowhere
refused 2 "sweep.csv" report single -o single/sweep.csv

# ---- in a browser
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "no chromium: ci/setup browser installs it"
# What the check is there for: a script that the page's policy does not know, a request, and
# a page that is too wide for a phone.
sed 's/"use strict";/"use strict" ;/' one.html >script.html
sed 's|<main>|<main><img src="https://slm.invalid/a.png">|' one.html >asks.html
sed 's|<main>|<main><svg width="700" height="9"></svg>|' one.html >wide.html
good=(two.html hostile.html users.html)
! is_full || good+=(single.html)
code=0
python3 "$SRC/tests/support/page_check.py" "$chromium" . script.html asks.html wide.html "${good[@]}" >said 2>&1 ||
    code=$?
[ $code = 1 ] || fail "the check of pages ended with $code: $(cat said)"
grep -q "^script.html: .*Content Security Policy" said || fail "a changed script was run: $(cat said)"
grep -q "^asks.html: .*slm.invalid" said || fail "a request was not seen: $(cat said)"
grep -q "^wide.html: phone: the page is" said || fail "a wide page was not seen: $(cat said)"
for page in "${good[@]}"; do
    grep -qx "$page: as it should be" said || fail "$page in a browser: $(cat said)"
done
for shot in desktop phone dark; do
    [ -s $shot.png ] || fail "no picture $shot.png"
done
