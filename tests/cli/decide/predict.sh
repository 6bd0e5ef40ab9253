#!/bin/bash
# SPDX-License-Identifier: MIT
#
# predict.sh - `bench predict`: tables, claims and the check against stored sweeps
. "$SRC/tests/cli/lib.sh"
examples=("$SRC"/results/examples/*2vcpu*)

# A machine that is not there: every line, and no figure beyond its memory.
"$BENCH" predict -m yi-1.5-9b --all --gbps 38 --gops 700 --mem 6G --disk-gbps 1 > all
grep -q "^yi-1.5-9b on a machine that reads 38 GB/s: 6.00 GiB of memory" all ||
    fail "the machine: $(head -2 all)"
for quant in Q4_0 Q4_K_M IQ2_XXS TQ1_0 Q8_0 F32; do
    [ "$(grep -cE "^$quant +[0-9]" all)" = 2 ] || fail "lines of $quant: $(cat all)"
done
awk 'length > 79 { print; bad = 1 } END { exit bad }' all || fail "wider than 79 columns"
grep -qE "^Q4_0 .* f16 .*\)c .*\)c$" all || fail "Q4_0 is not calibrated: $(cat all)"
grep -qE "^IQ2_XXS .*\)e .*\)e$" all || fail "IQ2_XXS is not estimated: $(cat all)"
grep -qE "^Q6_K .*\)se .*\)se$" all || fail "Q6_K is not streamed: $(cat all)"

# Six usual quantisations and a sentence; several models, each with its own.
"$BENCH" predict -m yi-1.5-9b --gbps 38 --gops 700 --mem 6G --disk-gbps 1 > usual
[ "$(sed -n '/^quant/,/^$/p' usual | grep -c "^Q")" = 6 ] || fail "not six: $(cat usual)"
tr '\n' ' ' < usual | grep -qE "Q4_K_M is the largest of these that fits into memory with a context of 4096. Q4_K_M decodes about [0-9.]+ tok/s at depth 4096 and reads a prompt of 512 tokens in [0-9.]+ s\." ||
    fail "no sentence: $(cat usual)"
"$BENCH" predict -m qwen3-4b -m llama-3.2-1b:Q4_0 --gbps 38 --gops 700 --mem 6G > two
grep -q "^qwen3-4b on" two && grep -q "^llama-3.2-1b on" two || fail "two models: $(cat two)"
"$BENCH" predict -m qwen3-4b -m llama-3.2-1b:Q4_0 --gbps 38 --mem 6G --csv > two.csv
[ "$(grep -c ^model, two.csv)" = 1 ] && [ "$(wc -l < two.csv)" = 15 ] || fail "two in a table: $(cat two.csv)"
"$BENCH" predict -m qwen3-4b -m llama-3.2-1b:Q4_0 --gbps 38 --mem 6G --json | python3 -c '
import json, sys
assert [m["points"][0]["model"] for m in json.load(sys.stdin)["models"]] == ["qwen3-4b", "llama-3.2-1b"]' ||
    fail "two as JSON"

# By hand: Q4_0's bytes of a token and the mean of the shares that two machines reached.
"$BENCH" predict -m yi-1.5-9b --quant Q4_0 --kv-type f16 --ctx 0 --gbps 38 --gops 700 \
    --mem 8G --json > one.json
python3 - one.json "$SRC/configs/shares.yaml" << 'END' || fail "the figures: $(cat one.json)"
import json, math, re, sys
answer = json.load(open(sys.argv[1]))
point, = answer["points"]
shares = [float(m) for m in re.findall(
    r"kind: decode, format: q4_0, threads: 2, .* median: ([0-9.]+)", open(sys.argv[2]).read())]
assert len(shares) == 2, shares
expected = 38e9 * math.sqrt(shares[0] * shares[1]) / point["bytes_per_token"]
assert abs(point["tok_per_s"]["mid"] / expected - 1) < 1e-3, expected
assert point["tok_per_s"]["lo"] < expected < point["tok_per_s"]["hi"]
assert point["label"] == "calibrated" and point["verdict"] == "fits"
assert point["max_ctx"] == 4096
assert point["ttft_s"]["lo"] < point["ttft_s"]["mid"] < point["ttft_s"]["hi"]
END

# One planner: the same bytes and verdict as `bench plan`.
"$BENCH" plan -m yi-1.5-9b:Q6_K --mem 6G --ctx 4096 \
    --machine "$SRC/results/examples/zen5-2vcpu/machine.json" --json > plan.json
"$BENCH" predict -m yi-1.5-9b:Q6_K --mem 6G --ctx 4096 --kv-type f16 \
    --machine "$SRC/results/examples/zen5-2vcpu/machine.json" --json > predict.json
python3 - plan.json predict.json << 'END' || fail "plan and predict differ"
import json, sys
plan, predict = (json.load(open(f)) for f in sys.argv[1:])
point, = predict["points"]
assert plan["verdict"] == point["verdict"] == "streams"
assert plan["disk"]["streamed_bytes"] == point["streamed_bytes"]
END

# What a sweep has measured is not predicted.
"$BENCH" predict -m yi-1.5-9b:Q4_0 --mem 6G --kv-type f16 \
    --machine "$SRC/results/examples/granite-rapids-2vcpu/machine.json" > measured
grep -qE "^Q4_0 .*\)m .*\)m$" measured || fail "not measured: $(cat measured)"
grep -q "^m: measured on this machine" measured || fail "no legend: $(cat measured)"

# A data sheet, a file, and CSV.
"$BENCH" predict -m qwen3-4b --quant Q4_K_M,q8_0 --kv-type f16,q8_0 --cpu "ryzen 5900x" --mem 16G --csv > sheet.csv
[ "$(wc -l < sheet.csv)" = 9 ] || fail "not 2 x 2 x 2 lines: $(cat sheet.csv)"
head -1 sheet.csv | grep -q "^model,quant,kv_type,ctx,file_bytes," || fail "no header"
grep -q '^"qwen3-4b",Q8_0,q8_0,4096,.*,fits,.*,estimated,' sheet.csv || fail "$(cat sheet.csv)"
"$BENCH" predict -m "$SRC/tests/data/models/llama.gguf" --ctx 0 --gbps 10 --mem 1G > small
grep -q "^llama on a machine" small || fail "a file: $(cat small)"

# Claims.
claim() { # CODE TEXT CLAIM [OPTION...]
    local code=$1 text=$2 got=0
    shift 2
    "$BENCH" predict --claim "$@" > claim 2> err || got=$?
    [ "$got" = "$code" ] || fail "'$*' ended with $got, not $code: $(cat claim err)"
    tr '\n' ' ' < claim | grep -qF "$text" || fail "'$*' does not say '$text': $(cat claim)"
}
claim 1 "impossible: needs 150 GB/s of 51 (36.7 tok/s times 4.1 GB; AMD Ryzen 9 5900X" \
    "36.7 tok/s, llama-2-7b, 4.1 GB, ryzen 5900x"
claim 0 "plausible: needs 35 GB/s of 51" "8.5 tok/s, llama-2-7b, 4.1 GB, ryzen 5900x"
claim 0 "plausible, and slow" "2 tok/s, llama-2-7b:Q4_0, ryzen 5900x"
claim 1 "implausible: needs" "12.2 tok/s, llama-2-7b, 4.1 GB, ryzen 5900x"
claim 1 "impossible: needs 50 GB/s of 38" "10 tok/s, 5 GB" --gbps 38
claim 1 "impossible: needs 187 GB/s of 51 (36.7 tok/s times 5.1 GB" "36,7 tok/s, 5,1 GB, 51 GB/s"
claim 1 "impossible: needs" "5 tok/s, llama-2-7b:Q4_0, 51 Gb/s"
# A mixture of experts reads a part of its file for a token.
claim 0 "plausible" "12 tok/s, qwen3-30b-a3b, 18 GB, 51 GB/s"
grep -q "needs 216 GB/s" claim && fail "the whole file: $(cat claim)"
for what in "36.7 tok/s, llama-2-7b, 4.1 MB, ryzen 5900x" "5 tok/s, llama-2-7b:Q4_0, 13 GB, 51 GB/s" \
    "5 tok/s, llama-2-7b:Q4_0, 51 GB/s, no such cpu" "5 tok/s, 4 GB, 51 MT/s"; do
    code=0
    "$BENCH" predict --claim "$what" >claim 2>err || code=$?
    [ "$code" = 2 ] && [ "$(wc -l <err)" = 1 ] && [ ! -s claim ] || fail "'$what': $code, $(cat err)"
done
"$BENCH" predict --claim "36.7 tok/s, 4.1 GB, 51 GB/s" --json > claim.json && fail "possible"
grep -q '"verdict": "impossible"' claim.json || fail "$(cat claim.json)"

# Predictions of rows that were measured, without their machines.
"$BENCH" predict --check "${examples[@]}" > check || fail "the check failed: $(cat check)"
grep -q "^Decoding: as promised" check || fail "$(cat check)"
[ "$(grep -c "^zen5-2vcpu " check)" = 2 ] || fail "no lines of a sweep: $(cat check)"
"$BENCH" predict --check "${examples[@]}" --csv > check.csv
python3 - check.csv << 'END' || fail "the table of the check"
import csv, statistics, sys
rows = [r for r in csv.DictReader(open(sys.argv[1])) if r["kind"].startswith("decode")]
assert len(rows) > 100
assert statistics.median(abs(float(r["predicted"]) / float(r["tok_per_s"]) - 1) for r in rows) <= 0.1
inside = [float(r["predicted_lo"]) <= float(r["tok_per_s"]) <= float(r["predicted_hi"]) for r in rows]
assert sum(inside) / len(inside) >= 0.9
# each machine by the others: prompts, and what is streamed
rows = list(csv.DictReader(open(sys.argv[1])))
for sweep in {r["sweep"] for r in rows}:
    of = [abs(float(r["error"])) for r in rows if r["sweep"] == sweep and r["kind"] == "prefill"]
    assert statistics.median(of) <= 0.15, (sweep, statistics.median(of))
xeon = [r for r in rows if r["sweep"] == "xeon-480mib-2vcpu" and r["kind"].startswith("decode")]
assert any("Q6_K" in r["point"] for r in xeon)
assert statistics.median(abs(float(r["error"])) for r in xeon) <= 0.08
assert sum(r["inside"] == "1" for r in xeon) >= 0.9 * len(xeon)
END
# A disk that was probed once: four launches of the sweep that followed read 0.98 to 1.68.
"$BENCH" plan -m yi-1.5-9b:Q6_K --mem 6G --ctx 4096 \
    --machine "$SRC/results/examples/xeon-480mib-2vcpu/machine.json" --json > plan.json
python3 - plan.json << 'END' || fail "the range of a disk: $(cat plan.json)"
import json, sys
p = json.load(open(sys.argv[1]))["prediction"]
assert p["tok_per_s_lo"] <= 0.98 and 1.68 <= p["tok_per_s_hi"], p
END
# Launches that probed it give the range: narrower than that of one probe.
"$BENCH" predict -m yi-1.5-9b:Q8_0 --mem 6G --ctx 0 --kv-type f16 --json \
    --machine "$SRC/results/examples/xeon-480mib-2vcpu/machine.json" > own.json
python3 - own.json << 'END' || fail "the range of a disk: $(cat own.json)"
import json, sys
t = json.load(open(sys.argv[1]))["points"][0]["tok_per_s"]
assert 0.4 < t["lo"] / t["mid"] < 0.6 and 1.3 < t["hi"] / t["mid"] < 1.9, t
END
"$BENCH" predict --check "${examples[@]}" --json | grep -q '"holds": true' || fail "JSON"

# A sweep twice as fast as its roof allows fails the check.
"$BENCH" predict --check "$SRC/results/examples/zen5-2vcpu" --shares "$SRC/configs/shares.yaml" > again
mkdir wrong
cp "$SRC/results/examples/zen5-2vcpu/machine.json" wrong
python3 - "$SRC/results/examples/zen5-2vcpu/sweep.csv" > wrong/sweep.csv << 'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
out = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
out.writeheader()
for r in rows:
    if r["roof_gbps"]:
        r["roof_gbps"] = 2 * float(r["roof_gbps"])
    out.writerow(r)
END
if "$BENCH" predict --check wrong > wrong.txt; then fail "a wrong sweep: $(cat wrong.txt)"; fi
grep -q "^Decoding: NOT as promised" wrong.txt || fail "$(cat wrong.txt)"

refused 2 "name a model" predict
refused 2 "like gpt-oss-20b:Q4_K_M" predict -m gpt-5 --gbps 38 --mem 8G
refused 2 "give the memory of the machine" predict -m qwen3-4b --gbps 38
refused 2 "each name a machine" predict -m qwen3-4b --gbps 38 --cpu epyc --mem 8G
refused 2 "may be any of" predict -m qwen3-4b --cpu epyc --mem 8G
refused 2 "is not known" predict -m qwen3-4b --cpu 9654 -t 4 --mem 8G
refused 2 "give one of --model" predict -m qwen3-4b --claim "3 tok/s, 4 GB"
refused 2 "unexpected argument 'x'" predict x -m qwen3-4b
refused 2 "name directories" predict --check
refused 2 "cannot read nowhere" predict --check nowhere
refused 2 "is given by --cpu NAME or --gbps X" predict -m nano:Q4_0 --machine "AMD EPYC 9654"
refused 2 "Q4_9" predict -m qwen3-4b --quant Q4_9 --gbps 38 --mem 8G
