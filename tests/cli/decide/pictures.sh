#!/bin/bash
# SPDX-License-Identifier: MIT
#
# pictures.sh - every chart and page of recorded sweeps, of long and of odd names: no text
# is cut or lies upon another. Here by the widths of letters; in ci/full as Chromium draws
# them at three widths, light and dark
. "$SRC/tests/cli/lib.sh"
examples=$SRC/results/examples
command -v python3 >/dev/null || skip "no python3"
boxes=$SRC/tests/support/text_boxes.py

# Sweeps of models with such names; some of their points failed.
python3 - "$examples/zen5-2vcpu" <<'END' || fail "no sweeps"
import csv, os, shutil, sys
source = sys.argv[1]
long = "Some-Distribution-Llama-3.2-3B-Instruct-abliterated-v2.1-GGUF-imatrix-of-a-friend"
for to, names in (("long", [long, "another-" + long]), ("wide", ["W" * 40, "MMMMMMMMMM-model-WWWW"]),
                  ("percent", ["top50%", "a%s_b", "100%d_n"]), ("signs", ["it's <b>&amp; {x}_y^z \\n", 'a"b'])):
    os.mkdir(to)
    with open(source + "/sweep.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    with open(to + "/sweep.csv", "w", newline="") as f:
        w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        w.writeheader()
        for name in names:
            for r in rows:
                failed = r["quant"] == "Q6_K" and r["ctx"] == "4096"
                w.writerow(r | {"point": r["point"].replace("yi-1.5-9b", name), "model": name,
                                "status": "oom" if failed else r["status"]})
    with open(source + "/samples.csv") as f, open(to + "/samples.csv", "w") as g:
        for line in f:
            g.write(line.replace("yi-1.5-9b", names[0]))
    shutil.copy(source + "/machine.json", to)
END
odd="long wide percent signs"

# What the check is there for.
for fault in 'x="1100" y="50" text-anchor="start" font-size="14">beyond the edge' \
    'x="6" y="50" text-anchor="middle" font-size="14">before it' \
    'x="60" y="50" text-anchor="start" font-size="14">above</text><text x="60" y="55" text-anchor="start" font-size="14">below'; do
    printf '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1160 90"><text %s</text></svg>\n' "$fault" >fault.svg
    ! python3 "$boxes" fault.svg >out || fail "this is not seen: $fault"
done
for folder in $odd; do
    PATH=/nowhere "$BENCH" plot $folder >/dev/null 2>err || fail "$folder is not drawn: $(cat err)"
done
python3 "$boxes" */*.svg >out || fail "texts of charts: $(cat out)"
for text in 'top50% Q4_0 packed' 'a%s_b Q4_K_M packed' '100%d_n Q6_K mmap'; do
    grep -qF ">$text<" percent/memory.svg || fail "no '$text' in the chart"
done
for svg in */*.svg; do
    grep -q '>measured 2026-11-23 by slmbench 0.1.0 (' "$svg" || fail "$svg has no date or no version"
done

# A page is called after what was measured, not after a directory; what is streamed is no
# row of what is mapped.
"$BENCH" report percent -o - | grep -q '<h1>3 models on AMD EPYC, 2 CPUs</h1>' || fail "the title of a page"
cp -r "$examples/zen5-2vcpu" mapped
mkdir streamed
sed 's/,mmap,/,stream,/' mapped/sweep.csv >streamed/sweep.csv
cp mapped/machine.json streamed/
"$BENCH" report mapped streamed -o both.html >/dev/null
for text in '>AMD EPYC, 2 CPUs (streamed)</a>' '<td class="name">yi-1.5-9b Q6_K mmap, decode at 0</td>' \
    '<td class="name">yi-1.5-9b Q6_K stream, decode at 0</td>'; do
    grep -qF "$text" both.html || fail "no $text in the page"
done
is_full || exit 0

# ---- in a browser, with gnuplot's charts where there is gnuplot
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "no chromium: ci/setup browser installs it"
for folder in "$examples"/*/ "$SRC/tests/data/sweeps/yi-9b-6g/"; do
    name=$(basename "$folder")
    [ -e "$folder/sweep.csv" ] || continue
    mkdir "$name"
    for file in sweep.csv samples.csv requests.csv machine.json; do
        [ ! -e "$folder/$file" ] || cp "$folder/$file" "$name/"
    done
done
for folder in */; do
    folder=${folder%/}
    "$BENCH" plot "$folder" >/dev/null 2>err || fail "$folder is not drawn: $(cat err)"
    "$BENCH" report "$folder" -o "page-$folder.html" >/dev/null || fail "no page of $folder"
done
"$BENCH" report zen5-2vcpu granite-rapids-2vcpu yi-9b-6g -o page-three.html >/dev/null
"$BENCH" report zen5-users-9b zen5-users-1.1b zen5-2vcpu -o page-servers.html >/dev/null
# Charts of other commands, of recorded results.
mkdir gate shots
cp "$SRC/tests/fuzz/seeds/gate_json/gate.json" gate/
"$BENCH" gate --report gate >/dev/null || fail "no chart of a gate"
"$BENCH" compare zen5-2vcpu granite-rapids-2vcpu --prices "$SRC/configs/prices.yaml" -o costs >/dev/null 2>&1 ||
    fail "no chart of costs"
"$BENCH" kernels --from "$SRC/tests/fuzz/seeds/kernel_results/kernels.json" -o kernels >/dev/null ||
    fail "no chart of kernels"
# Faults that it has to see: two texts, and a page that is too wide.
sed 's|<main>|<main><svg width="1300" height="9"></svg>|' page-three.html >wide.html
python3 "$SRC/tests/support/picture_check.py" "$chromium" - fault.svg wide.html >shown && fail "no fault is seen"
for text in "^fault.svg, 360 px, light: 'above' and 'below' are one upon the other" "^wide.html, 1280 px, dark: the page is"; do
    grep -q "$text" shown || fail "not seen: $text: $(cat shown)"
done
shopt -s nullglob # without gnuplot there is no PNG
python3 "$SRC/tests/support/picture_check.py" "$chromium" shots */*.svg */*.png page-*.html >shown 2>&1 ||
    fail "pictures: $(grep -v ": as it should be" shown | head -40)"
[ "$(grep -c ": as it should be" shown)" -gt 100 ] || fail "few pictures: $(cat shown)"
