#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Every type of quantisation on the whole text: as large as llama.cpp's files, and a
# divergence of at most 1.05 times that of its quantisations. Types that need an
# importance matrix only where the text for it is. Minutes of arithmetic, so only with
# SLM_TEST_LONG=1; prints both side by side.
. "$SRC/tests/cli/lib.sh"
[ "${SLM_TEST_LONG:-}" = 1 ] || { echo "a minute long: SLM_TEST_LONG=1 runs it"; exit 77; }
export SLMBENCH_CACHE=$WORK/cache
model=$SRC/tests/data/models/shakespeare3M-f16.gguf
figures=$SRC/tests/data/quality/shakespeare3M.csv

args=()
for type in $(grep ',$' "$figures" | cut -d, -f1); do
    args+=(-m "$model:$type")
done
text=${SLM_SHARED:-none}/text/shakespeare-calibration.txt
if [ -e "$text" ]; then
    "$BENCH" imatrix -m "$model" --text "$text" -o im.gguf --ctx 256 >out
    for type in $(grep ',yes$' "$figures" | cut -d, -f1); do
        "$BENCH" quantize "$model" "$type.gguf" "$type" --imatrix im.gguf >out
        args+=(-m "$type.gguf")
    done
fi
"$BENCH" quality "${args[@]}" --reference "$model" -o types >out || fail "exit $?"
python3 - "$figures" types/quality.csv <<'END' || fail "see above"
import csv, sys
theirs = {r["type"]: r for r in csv.DictReader(open(sys.argv[1]))}
ours = {r["quant"]: r for r in csv.DictReader(open(sys.argv[2]))}
bad = 0
print("%-7s %9s  %10s %10s  %9s %9s %6s  %7s %7s" % ("type", "bytes", "perplexity",
      "llama.cpp", "KL", "llama.cpp", "ratio", "top %", "theirs"))
for name, t in theirs.items():
    if t["imatrix"] and name not in ours:
        continue
    o = ours[name]
    ratio = float(o["kl_mean"]) / float(t["kl_mean"])
    # the header of a file may differ by a few fields
    wrong = ratio > 1.05 or abs(int(o["file_bytes"]) - int(t["file_bytes"])) > 256
    bad += wrong
    print("%-7s %9s  %10.4f %10.4f  %9.6f %9.6f %6.3f  %7.3f %7.3f%s" % (name,
          o["file_bytes"], float(o["perplexity"]), float(t["perplexity"]),
          float(o["kl_mean"]), float(t["kl_mean"]), ratio, float(o["top1_pct"]),
          float(t["top1_pct"]), "  <--" if wrong else ""))
sys.exit(bad > 0)
END
