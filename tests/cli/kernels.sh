#!/bin/bash
# SPDX-License-Identifier: MIT
#
# kernels.sh - `bench kernels`: a short run, its files, comparing, wrong input
. "$SRC/tests/cli/lib.sh"
unset SLMBENCH_PROBE # cold weights are as many as a pass reads

[ -x "$(dirname "$BENCH")/bench_kernels" ] || { echo "no google-benchmark"; exit 77; }
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }

# ---- what would run
"$BENCH" kernels --list --formats q4_0,F16 --all-isa --columns 2,512 -t 1,2 >list
grep -qx "gemv/q4_0/scalar/rows:112/cols:4096/hot" list || fail "no hot row: $(cat list)"
grep -qx "gemv/f16/scalar/rows:4096/cols:4096/cold/threads:2" list || fail "no threads"
grep -qx "gemm/q4_0/scalar/rows:4096/cols:4096/n_x:2/cold" list || fail "no few columns"
grep -q "^roof/read/.*/threads:2$" list || fail "no roof for two threads"
grep -qx "roof/int8/scalar" list && grep -qx "roof/f32/scalar" list || fail "no peaks"
! grep -q "q8_0" list || fail "a format that was not asked for"
"$BENCH" kernels --list --formats q4_0 --all-isa --isa-disable avx2 >list
for isa in avx2 avx512vnni; do
    case $(uname -m) in
    x86_64) grep -q "^gemv/q4_0/$isa/.*/hot  skipped: ." list ||
        fail "$isa is not skipped with a reason: $(cat list)" ;;
    *) grep -q "^gemv/q4_0/$isa/.*/hot  skipped: for x86 only" list || fail "$isa" ;;
    esac
done
! grep "^gemv/q4_0/avx2" list | grep -vq skipped || fail "runs what is disabled"
"$BENCH" kernels --list --ops gemm --formats q4_0 --isa scalar --columns 2048 |
    grep -qx "gemm/q4_0/scalar/rows:256/cols:4096/n_x:2048/cold" || fail "no 2048 columns"
# one column of the same row, to compare few columns with
[ "$("$BENCH" kernels --list --ops gemm --formats q4_0 --isa scalar --columns 4 | grep -c .)" = 3 ] ||
    fail "gemm with 4 columns is not three rows"

# ---- a run
"$BENCH" kernels --quick --repetitions 6 --min-time 0.0005 --formats q4_0 --isa scalar \
    --weights hot -o one >out 2>err || fail "exit $?: $(cat err)"
[ ! -s err ] || fail "complains: $(cat err)"
grep -q "^Level: scalar" out && grep -q "gemv hot" out || fail "no table: $(cat out)"
grep -qE "^  q4_0 +[0-9.]+ +[0-9.]+x" out || fail "no figure: $(cat out)"
grep -qE "^  int8  scalar +1 thread +[0-9.]+" out || fail "no roof: $(cat out)"
! grep -q '.\{101\}' out || fail "wider than 100 columns"
python3 - <<'PY' || fail "one/ is not what it should be"
import csv, json
rows = list(csv.DictReader(open("one/kernels.csv", newline="")))
assert [r["status"] for r in rows] == ["ok"] * 3, rows
r = rows[0]
assert r["name"] == "gemv/q4_0/scalar/rows:112/cols:4096/hot", r
assert r["n_repetitions"] == "6" and float(r["ns"]) > 0
assert float(r["ns_lo"]) <= float(r["ns"]) <= float(r["ns_hi"])
assert float(r["gops"]) > 0 and float(r["of_peak"]) > 0 and float(r["of_read_roof"]) > 0
assert "--ops gemv --isa scalar --formats q4_0 --weights hot" in r["command"]
names = {r["name"].split("/")[1] for r in rows if r["op"] == "roof"}
assert names == {"read", "int8"}, names
j = json.load(open("one/kernels.json"))
assert len([b for b in j["benchmarks"] if b["run_type"] == "iteration"]) == 18
assert j["context"]["cpu_model"] and j["context"]["slmbench_version"]
PY
if command -v gnuplot >/dev/null; then
    [ -s one/kernels_roofline.svg ] && [ -s one/kernels_roofline.png ] || fail "no chart"
    draws_again one kernels_roofline
fi

# ---- ways of reading panels
if "$BENCH" kernels --list --formats q4_K --ops gemv_x16 >list 2>err; then
    "$BENCH" kernels --list --formats q4_K --threads 1 --prefetch T0-4096,off --panels 1,4 >list
    for way in T0-4096/panels:1 T0-4096/panels:4 off/panels:1 off/panels:4; do
        grep -q "^gemv_x16/q4_K/.*/cold/prefetch:$way$" list || fail "$way: $(cat list)"
    done
    [ "$(grep -vc ^roof/ list)" = 4 ] || fail "more ways than were asked for: $(cat list)"
    "$BENCH" kernels --list --formats q4_K --threads 1 --prefetch all >list
    [ "$(grep -vc ^roof/ list)" = 51 ] || fail "not all ways: $(cat list)"
    "$BENCH" kernels --quick --repetitions 1 --min-time 0.0005 --formats q4_K --threads 1 \
        --prefetch off,NTA-2048 --panels 1,2 -o ways >said 2>err || fail "ways: $(cat err)"
    for way in "off x1" "off x2" "NTA-2048 x1" "NTA-2048 x2"; do
        grep -qE "^  $way +[0-9.]+ +[0-9]+ %" said || fail "no line '$way': $(cat said)"
    done
    grep -q ",NTA-2048,2,ok,.*--prefetch NTA-2048 --panels 2$" ways/kernels.csv ||
        fail "$(cat ways/kernels.csv)"
    ! "$BENCH" kernels --list --prefetch T9-64 >said 2>err || fail "takes an unknown way"
    grep -q "T9-64" err || fail "$(cat err)"
    ! "$BENCH" kernels --list --panels 2 >said 2>err || fail "takes panels alone"
    grep -q -- "--prefetch" err || fail "$(cat err)"
fi

# ---- the chart of one kernel, and of more groups, levels and roofs than there are colours
for size in least most; do
    python3 - $size >$size.json <<'PY'
import json, sys
most = sys.argv[1] == "most"
rows = []
def add(name, ns, gbps, gops):
    rows.append({"name": name, "run_name": name, "run_type": "iteration", "real_time": ns,
                 "cpu_time": 1, "time_unit": "ns", "GB/s": gbps, "GOPS": gops})
levels = ("scalar", "avx2", "avx512", "avx512vnni") if most else ("avx2",)
formats = ("q4_0", "q8_0", "q4_K", "q6_K") if most else ("q4_K",)
for f in formats:
    for k, isa in enumerate(levels):
        for sizes in ("/hot", "/cold", "/cold/threads:2", "/n_x:2/cold", "/n_x:4/cold",
                      "/n_x:8/cold") if most else ("/cold",):
            for op in ("gemv", "gemv_x16") if most else ("gemv",):
                add(f"{op}/{f}/{isa}/rows:16/cols:4096{sizes}", 1000, 20 + k, 60 + 5 * k)
add("roof/read/avx2", 1000, 34, 0)
if most:
    add("roof/read/avx2/threads:2", 1000, 70, 0)
    for k, what in enumerate(("int8", "f32")):
        for i, isa in enumerate(levels):
            add(f"roof/{what}/{isa}", 1000, 0, 116 + k + i)
print(json.dumps({"context": {"cpu_model": "AMD EPYC 9R14         ", "num_cpus": 2},
                  "benchmarks": rows}))
PY
    draws_alone $size "$BENCH" kernels --from $size.json -o $size
    "$BENCH" kernels --from $size.json -o $size >said || fail "$size: $(cat said)"
    command -v gnuplot >/dev/null || continue
    grep -q "^subtitle_text = 'AMD EPYC 9R14, 2 CPUs'$" $size/kernels_roofline.gp || fail "$size"
    draws_again $size kernels_roofline
    python3 - $size <<'PY' || fail "the chart of $size"
import re, sys
most = sys.argv[1] == "most"
def texts(chart):
    svg = open(f"{sys.argv[1]}/{chart}.svg").read()
    return [(float(y), t) for y, t in re.findall(
        r"translate\([-\d.]+,([-\d.]+)\)[^>]*>\s*<text>([^<]*)", svg)]
names = sorted(y for y, t in texts("kernels_roofline") if " GOPS" in t)
assert len(names) == (8 if most else 0), texts("kernels_roofline")
for a, b in zip(names, names[1:]):
    assert b - a > 15, ("names of levels overlap", names)
PY
done
[ -z "$(find one -name '.*' -type f)" ] || fail "scratch files were left"

# ---- the command in the CSV measures that row
eval "$(python3 -c 'import csv; print(next(csv.DictReader(open("one/kernels.csv")))["command"])' |
    sed "s|^bench|'$BENCH'|") --list" | grep -qx "gemv/q4_0/scalar/rows:112/cols:4096/hot" ||
    fail "the command is for something else"

# ---- tables again, from the file
"$BENCH" kernels --from one/kernels.json -o two --no-charts >again
diff <(sed '/^Results/d' out) <(sed '/^Results/d' again) || fail "--from differs"
cmp one/kernels.csv two/kernels.csv || fail "--from gives another CSV"
# headings are whole: 16 columns are not the beginning of 128
sed 's|gemv/q4_0/scalar/rows:[0-9]*/cols:4096/hot|gemm_x16_int8/q4_0/avx512vnni/rows:256/cols:4096/n_x:2048/cold|' \
    one/kernels.json >wide.json
"$BENCH" kernels --from wide.json -o wide --no-charts >wide.txt || fail "wide: $(cat wide.txt)"
grep -qE "^ +gemm_x16_int8 2048$" wide.txt || fail "no whole heading: $(cat wide.txt)"

# ---- comparing
python3 - <<'PY'
import json
j = json.load(open("one/kernels.json"))
for b in j["benchmarks"]:
    b["real_time"] = 100 + 0.01 * b.get("repetition_index", 0)
json.dump(j, open("steady.json", "w"))
j["benchmarks"] = [b for b in j["benchmarks"] if b.get("repetition_index", 0) < 3]
json.dump(j, open("three.json", "w"))
PY
"$BENCH" kernels --compare steady.json steady.json >same || fail "differs from itself"
grep -q "^1 row: 0 slower, 0 faster, 1 unchanged, 0 undecided" same || fail "$(cat same)"
code=0
"$BENCH" kernels --compare three.json three.json >blind || code=$?
[ "$code" = 4 ] || fail "three repetitions: exit $code: $(cat blind)"
grep -q "^1 row: 0 slower, 0 faster, 0 unchanged, 1 undecided" blind || fail "$(cat blind)"
grep -q "too few repetitions" same && fail "four repetitions are enough for one row"
python3 - <<'PY'
import json
j = json.load(open("one/kernels.json"))
for b in j["benchmarks"]:
    if b["name"].startswith("gemv"):
        b["real_time"] *= 30
json.dump(j, open("slow.json", "w"))
PY
code=0
"$BENCH" kernels --compare one/kernels.json slow.json >worse || code=$?
[ "$code" = 1 ] || fail "slower by far: exit $code: $(cat worse)"
grep -qE "^  gemv/q4_0/scalar/rows:112/cols:4096/hot +-9" worse || fail "$(cat worse)"
"$BENCH" kernels --compare slow.json one/kernels.json >better || fail "faster is no failure"
grep -q "0 slower, 1 faster" better || fail "$(cat better)"
"$BENCH" kernels --compare slow.json one/kernels.json --json | python3 -c '
import json, sys
j = json.load(sys.stdin)
assert j["n_faster"] == 1 and j["n_slower"] == 0
r = [r for r in j["rows"] if r["verdict"] == "faster"][0]
assert r["speed"] > 5 and r["p"] < 0.05' || fail "--json"

# ---- Ctrl-C: what is finished is kept, nothing else is left
"$BENCH" kernels --repetitions 200 --min-time 0.01 --formats q4_0,q8_0 --isa scalar \
    --weights hot -o three --no-charts >out 2>err &
pid=$!
for _ in $(seq 600); do
    [ ! -d three ] || break
    sleep 0.05
done
sleep 0.5
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] || fail "interrupted: exit $code: $(cat err)"
grep -q interrupted err || fail "$(cat err)"
[ -z "$(find three -name '.*' -type f)" ] || fail "a part was left: $(ls -A three)"
[ ! -e three/kernels.json ] || python3 -m json.tool three/kernels.json >/dev/null ||
    fail "an interrupted run left broken JSON"

# ---- without bench_kernels
mkdir alone
cp "$BENCH" alone/bench
code=0
alone/bench kernels --quick --formats q4_0 -o four >out 2>err || code=$?
[ "$code" = 3 ] && grep -q "libbenchmark-dev" err && [ "$(wc -l <err)" = 1 ] ||
    fail "no bench_kernels: exit $code: $(cat err)"

# ---- what cannot be
refused 2 "did you mean" kernels --formats q4_L
refused 2 "'quux'" kernels --ops quux
refused 2 "attn_mix_keys, all" kernels --ops quux # to the last of them
refused 2 "'warm'" kernels --weights warm
refused 2 "--columns: 7" kernels --columns 7
refused 2 "'moon'" kernels --placement moon
refused 2 "contradict" kernels --isa avx2 --all-isa
refused 2 "two files" kernels --compare one/kernels.json
refused 2 "surplus" kernels surplus
refused 2 "nowhere.json" kernels --compare one/kernels.json nowhere.json
refused 2 "no JSON" kernels --from "$BENCH"
refused 2 "--json requires" kernels --json
head -c 300 one/kernels.json >cut.json
refused 2 "cut.json is no JSON" kernels --compare cut.json one/kernels.json
echo '{"benchmarks": [{"name": "x", "real_time": 3, "time_unit": "ns"}]}' >other.json
refused 2 "no row in common" kernels --compare one/kernels.json other.json
