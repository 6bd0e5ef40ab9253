#!/bin/bash
# SPDX-License-Identifier: MIT
#
# rows.sh - `bench rows`: rows of recorded sweeps, and of a database, as Markdown, CSV,
# JSON Lines and llama-bench's JSON Lines
. "$SRC/tests/cli/lib.sh"
zen=$SRC/results/examples/zen5-2vcpu
granite=$SRC/results/examples/granite-rapids-2vcpu

# same NAME: compare the file NAME with the text on stdin
same() {
    cat >"$1.want"
    diff -u "$1.want" "$1" || fail "$1 is not as it should be"
}

# ---- Markdown: a line for each point
"$BENCH" rows "$zen" >markdown
head -4 markdown >start
same start <<'END'
| model | setting | point | threads | tok/s | 95 % interval | of roof | first token | memory | limited by | remark |
|:--|:--|:--|--:|--:|--:|--:|--:|--:|:--|:--|
| yi-1.5-9b | Q4\_0 packed | decode at 0 | 1 | 7.19 | 6.80 to 7.59 | 93 % |  | 4.71 GiB | memory |  |
| yi-1.5-9b | Q4\_0 packed | decode at 4096 | 1 | 6.19 | 5.81 to 6.59 | 92 % |  | 5.10 GiB | memory |  |
END
[ "$(wc -l <markdown)" = 20 ] || fail "not a line for each of 18 points: $(cat markdown)"

# ---- CSV: with all launches it is the table that the sweep wrote
"$BENCH" rows "$zen" --format csv --launches >launches
"$BENCH" rows launches --format csv --launches | cmp - launches ||
    fail "what was printed is not read back as it was"
[ "$(wc -l <launches)" = "$(wc -l <"$zen/sweep.csv")" ] || fail "rows are missing"
"$BENCH" rows "$zen" "$granite" --format csv --columns quant,n_threads,tok_per_s >few
head -2 few >start
same start <<'END'
source,quant,n_threads,tok_per_s
zen5-2vcpu,Q4_0,1,7.1864
END
grep -q '^granite-rapids-2vcpu,Q6_K,' few || fail "the second directory is missing"

# ---- JSON Lines, and of a database
"$BENCH" history add results.db "$zen" >/dev/null
"$BENCH" rows results.db --format jsonl --columns quant,kind,n_prompt,tok_per_s >lines
head -1 lines | sed 's/7\.186[0-9]*/7.186/' >start
same start <<'END'
{"quant":"Q4_0","kind":"decode","n_prompt":null,"tok_per_s":7.186}
END
[ "$(wc -l <lines)" = 18 ] || fail "the database has not 18 points: $(cat lines)"

# ---- llama-bench: a line for each point, whose launches are repetitions
"$BENCH" rows "$zen" --format llama-bench-jsonl >tests 2>err
grep -q '^bench: 1 row is left out' err || fail "nothing is said of what is left out"
if command -v python3 >/dev/null; then
    python3 - tests "$zen" <<'END' || fail "llama-bench's lines do not agree with the sweep"
import csv, json, math, statistics, sys
names = """build_commit build_number cpu_info gpu_info backends model_filename model_type
model_size model_n_params n_batch n_ubatch n_threads cpu_mask cpu_strict poll type_k type_v
n_gpu_layers split_mode main_gpu no_kv_offload flash_attn tensor_split use_mmap embeddings
n_prompt n_gen n_depth test_time avg_ns stddev_ns avg_ts stddev_ts samples_ns
samples_ts""".split()
lines = [json.loads(line) for line in open(sys.argv[1])]
rows = list(csv.DictReader(open(sys.argv[2] + "/sweep.csv")))
samples = {}
for s in csv.DictReader(open(sys.argv[2] + "/samples.csv")):
    samples.setdefault((s["point"], s["attempt"]), []).append(float(s["ms"]))
n = 0
for line in lines:
    assert list(line) == names, list(line)
    tokens = line["n_prompt"] + line["n_gen"]
    assert (line["n_prompt"] == 0) != (line["n_gen"] == 0)
    assert len(line["samples_ts"]) == len(line["samples_ns"])
    for ns, ts in zip(line["samples_ns"], line["samples_ts"]):
        assert math.isclose(ts, 1e9 * tokens / ns, rel_tol=1e-6)
    assert math.isclose(line["avg_ts"], statistics.mean(line["samples_ts"]), rel_tol=1e-6)
    assert math.isclose(line["avg_ns"], statistics.mean(line["samples_ns"]), rel_tol=1e-6)
    spread = statistics.stdev(line["samples_ts"]) if len(line["samples_ts"]) > 1 else 0
    assert math.isclose(line["stddev_ts"], spread, rel_tol=1e-5, abs_tol=1e-9)
    # the launches that it was made of: by a sum of their samples
    mine = [r for r in rows if r["quant"] in line["model_type"].split()[-1:]
            and int(r["n_threads"]) == line["n_threads"]
            and int(r["ctx"] or 0) == line["n_depth"]
            and (r["kind"] == "prefill") == (line["n_prompt"] > 0)]
    sums = []
    for r in mine:
        ms = samples[r["point"], r["attempt"]]
        sums += ms if r["kind"] == "prefill" else [sum(ms)]
    assert all(any(math.isclose(ns, 1e6 * s, rel_tol=1e-6) for s in sums)
               for ns in line["samples_ns"])
    assert line["cpu_mask"] == ("0x1" if line["n_threads"] == 1 else "0x3")
    n += 1
assert n >= 18, n
END
fi

# ---- another program is the one that was built, by its version or else by its name
if command -v python3 >/dev/null; then
    mkdir peers
    python3 - "$zen" peers <<'END'
import csv, sys
for name in "sweep.csv", "samples.csv":
    rows = list(csv.DictReader(open(sys.argv[1] + "/" + name)))
    more = {"engine": "", "engine_version": ""} if name == "sweep.csv" else {}
    out = csv.DictWriter(open(sys.argv[2] + "/" + name, "w", newline=""), rows[0] | more)
    out.writeheader()
    for r in rows:
        if not r["point"].startswith("yi-1.5-9b:Q4_0/decode/t2/spread/ctx0/"):
            continue
        for engine, version in ("", ""), ("llama.cpp", "abc1234 (build 7)"), ("mine", ""):
            out.writerow(r | {"point": r["point"] + "/" + engine} |
                         ({"engine": engine, "engine_version": version} if more else {}))
END
    "$BENCH" rows peers --format llama-bench-jsonl >tests
    python3 - tests <<'END' || fail "programs: $(cat tests)"
import json, sys
builds = [(t["build_commit"], t["build_number"]) for t in map(json.loads, open(sys.argv[1]))]
assert sorted(set(builds)) == [("792f2ee1a2", 0), ("abc1234", 7), ("mine", 0)], builds
END
fi

# ---- steps of several sequences, or with a prompt beside them, are no tests
if command -v python3 >/dev/null; then
    mkdir alone steps
    python3 - "$zen" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/sweep.csv")))
for name, cells in ("alone", [("", "")]), ("steps", [("", ""), ("4", ""), ("", "32")]):
    out = csv.DictWriter(open(name + "/sweep.csv", "w", newline=""),
                         rows[0] | {"n_sequences": "", "n_chunk": ""})
    out.writeheader()
    for r in rows:
        for n, chunk in cells if r["kind"] == "decode" else []:
            out.writerow(r | {"point": f"{r['point']}/{n}/{chunk}", "n_sequences": n, "n_chunk": chunk})
END
    "$BENCH" rows alone --format llama-bench-jsonl >alone.jsonl 2>/dev/null
    "$BENCH" rows steps --format llama-bench-jsonl >tests 2>err
    [ -s tests ] && cmp alone.jsonl tests || fail "steps are tests: $(cat tests)"
    grep -q 'left out: .* of several sequences or of a prompt next to a sequence' err || fail "steps: $(cat err)"
fi

# ---- names of others
mkdir hostile
{
    head -1 "$zen/sweep.csv"
    sed -n 's/yi-1.5-9b/a|b<i>@me [x](y) `c`/g; 3p' "$zen/sweep.csv"
} >hostile/sweep.csv
"$BENCH" rows hostile >markdown
grep -qF '| a\|b&lt;i\>@<!-- -->me \[x\](y) \`c\` |' markdown ||
    fail "a name is no plain text: $(cat markdown)"
"$BENCH" rows hostile --format csv --columns model,kind >csv
same csv <<'END'
model,kind
a|b<i>@me [x](y) `c`,decode
END

# A stored command is a text of whoever wrote the row: what is printed is made again.
sed 's/bench decode -m/rm -rf --no-preserve-root; bench decode -m/' "$zen/sweep.csv" >hostile/sweep.csv
"$BENCH" rows hostile --launches --format csv --columns command >csv
! grep -q 'rm -rf' csv || fail "a stored command was printed as it was found"
"$BENCH" rows "$zen" --launches --format csv --columns command >csv
grep -q '^bench decode -m yi-1.5-9b:Q4_0 ' csv || fail "no commands: $(cat csv)"

# ---- what cannot be
refused 2 "rows takes directories" rows
refused 2 "cannot read nowhere" rows nowhere
refused 2 "did you mean tok_per_s?" rows "$zen" --columns tok_per_S
refused 2 "--columns: 'quant,' has an empty item" rows "$zen" --columns quant,
refused 2 "--columns: 'quant,,kind' has an empty item" rows "$zen" --columns quant,,kind
refused 2 "formats are markdown, csv, jsonl, llama-bench-jsonl or openmetrics" rows "$zen" -f xml
refused 2 "columns of its own" rows "$zen" -f llama-bench-jsonl --launches
cp "$zen/sweep.csv" hostile/
refused 2 "sweep.csv" rows hostile -o hostile/sweep.csv
cmp -s "$zen/sweep.csv" hostile/sweep.csv || fail "the sweep was overwritten"
"$BENCH" rows "$zen" -o page.md
[ "$(wc -l <page.md)" = 20 ] || fail "no file with the table"
