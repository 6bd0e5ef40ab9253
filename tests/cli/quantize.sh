#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench quantize: every type is made, loads, and stays near its source; what is wrong
# is said in one sentence, and OUT is complete or not there.
. "$SRC/tests/cli/lib.sh"

# refuses CODE TEXT ARGS...: quantize refuses these and leaves nothing behind
refuses() {
    local code=$1 text=$2
    shift 2
    refused "$code" "$text" quantize "$@"
    [ ! -e no.gguf ] && [ -z "$(find . -name '*.part')" ] || fail "'$*' left a file"
}

# near BOUND A B: whether the mean squared difference of two files of floats is at most this
# share of the mean square of B; prints it
near() {
    python3 -c '
import array, sys
a, b = (array.array("f", open(p, "rb").read()) for p in sys.argv[2:])
assert len(a) == len(b) > 0
nmse = sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)
print(nmse)
sys.exit(not nmse <= float(sys.argv[1]))' "$@"
}

"$BENCH" synth nano F16 -o f16.gguf >out
"$BENCH" logits -m f16.gguf --tokens 1,5-20 -o want.f32 >out

# ---- every type: made, loaded, near the source (bounds are about twice what is seen);
# ci/test takes every third
i=0
for pair in F32:0.0002 F16:0.0001 BF16:0.001 Q8_0:0.003 Q6_K:0.01 Q5_K_M:0.03 \
    Q5_K_S:0.03 Q5_0:0.04 Q5_1:0.03 Q4_K_M:0.1 Q4_K_S:0.1 Q4_0:0.12 Q4_1:0.1 IQ4_XS:0.12 \
    IQ4_NL:0.12 MXFP4:0.25 Q3_K_L:0.3 Q3_K_M:0.3 Q3_K_S:0.4 IQ3_M:0.4 IQ3_S:0.4 IQ3_XS:0.5 \
    IQ3_XXS:0.6 Q2_K:0.8 Q2_K_S:1.2 IQ2_M:1.2 IQ2_S:1.2 IQ2_XS:1.4 IQ2_XXS:1.6 \
    TQ2_0:2 TQ1_0:2 IQ1_M:2 IQ1_S:2 NVFP4:0.2 Q2_0:2 Q1_0:2; do
    is_full || [ $((i++ % 3)) = 0 ] || continue
    type=${pair%:*}
    "$BENCH" quantize f16.gguf q.gguf "$type" >out 2>err || fail "$type: $(cat err)"
    grep -q "^q.gguf: $type, .* bits per weight, in " out || fail "$type: $(cat out)"
    "$BENCH" logits -m q.gguf --tokens 1,5-20 -o have.f32 >out
    nmse=$(near "${pair#*:}" have.f32 want.f32) ||
        fail "$type: logits differ by $nmse, not ${pair#*:}"
done

# ---- metadata and alignment stay, threads change nothing
"$BENCH" quantize f16.gguf a.gguf Q4_K_M -t 1 >out
"$BENCH" quantize f16.gguf b.gguf q4_k_m -t 3 >out
cmp a.gguf b.gguf
"$BENCH" gguf a.gguf --json >a.json
"$BENCH" gguf f16.gguf --json >f16.json
python3 - <<'PY'
import json
a, f = json.load(open("a.json")), json.load(open("f16.json"))
a, f = a["metadata"], f["metadata"]
assert a["general.file_type"] == 15 and f["general.file_type"] == 1, a
assert a["general.quantization_version"] == 2
for key in f:
    assert key == "general.file_type" or a[key] == f[key], key
PY

# ---- errors of a file that is there are those that were measured while it was made
"$BENCH" quantize f16.gguf a.gguf Q4_K_M --rmse >made
"$BENCH" gguf a.gguf --rmse f16.gguf >there
python3 - <<'PY'
made = {l.split()[0]: l for l in open("made") if " RMSE " in l}
there = {l.split()[0]: l.split() for l in open("there") if "%" in l}
assert made.keys() == there.keys() and len(made) > 1, (made, there)
for fmt, line in made.items():
    rmse, share = line.split(" RMSE ")[1].split()[:2]
    assert abs(float(rmse.rstrip(",")) / float(there[fmt][-3]) - 1) < 1e-3, (line, there)
    assert abs(float(share) - float(there[fmt][-2])) < 1e-3, (line, there)
PY
"$BENCH" gguf a.gguf --rmse f16.gguf --tensors >out
grep -q '^blk.0.attn_q.weight  *q4_K  *f16  .* %$' out || fail "$(cat out)"
grep -q '^output_norm.weight  *f32  *f32  *as it was$' out || fail "$(cat out)"

# ---- a matrix with a scale of its own: made with NVFP4, in the weights of what is made of it
"$BENCH" quantize f16.gguf nv.gguf NVFP4 --rmse >made
"$BENCH" gguf nv.gguf --tensors >out
grep -q '^  blk.0.attn_q.scale  *f32  *1 ' out || fail "$(cat out)"
grep -q '^  token_embd.scale' out && fail "$(cat out)"
"$BENCH" gguf nv.gguf --rmse f16.gguf >there
python3 - <<'PY'
made = [l for l in open("made") if l.split()[0] == "nvfp4"][0]
there = [l.split() for l in open("there") if l.split()[0] == "nvfp4"][0]
share = float(made.split(" RMSE ")[1].split()[1])
assert share < 12 and abs(share - float(there[-2])) < 1e-3, (made, there)
PY
"$BENCH" quantize nv.gguf of-nv.gguf Q8_0 >out 2>err
"$BENCH" gguf of-nv.gguf --tensors >out
grep -q 'attn_q.scale' out && fail "$(cat out)"
"$BENCH" gguf of-nv.gguf --rmse nv.gguf >out
python3 -c 'import sys; r = [l.split() for l in open("out") if l.split()[0] == "q8_0"][0]
sys.exit(not float(r[-2]) < 1)' || fail "$(cat out)"

# ---- the older layout of Q2_0: read, said, and written in today's
"$BENCH" quantize f16.gguf q2.gguf Q2_0 >out
python3 - <<'PY'
import struct
with open("q2.gguf", "rb") as f:
    b = f.read()
at = 8
def take(form):
    global at
    v = struct.unpack_from("<" + form, b, at)
    at += struct.calcsize("<" + form)
    return v[0]
def text():
    global at
    n = take("Q")
    at += n
    return b[at - n:at]
SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
def value(kind):
    if kind == 8:
        return text()
    if kind == 9:
        kind, n = take("I"), take("Q")
        return [value(kind) for _ in range(n)]
    return take(SIZES[kind])
n_tensors, n_kvs = take("Q"), take("Q")
for _ in range(n_kvs):
    text()
    value(take("I"))
head, tensors = bytearray(b[:at]), []
for _ in range(n_tensors):
    name, ne = text(), [take("Q") for _ in range(take("I"))]
    tensors.append((name, ne, take("I"), take("Q")))
start = (at + 31) // 32 * 32
ends = sorted(t[3] for t in tensors) + [len(b) - start]
data = b""
for name, ne, kind, offset in tensors:
    raw = b[start + offset:start + [e for e in ends if e > offset][0]]
    if kind == 42: # two blocks of 64 as one of 128, with the scale of the first
        n = 1
        for d in ne:
            n *= d
        raw = b"".join(raw[36 * i:36 * i + 18] + raw[36 * i + 20:36 * i + 36]
                       for i in range(n // 128))
    head += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(ne))
    head += struct.pack("<%dQ" % len(ne), *ne) + struct.pack("<IQ", kind, len(data))
    data += raw + bytes(-len(raw) % 32)
open("older.gguf", "wb").write(bytes(head) + bytes(-len(head) % 32) + data)
PY
"$BENCH" gguf older.gguf >out
grep -q 'q2_0_128 is the older layout of type 42' out || fail "$(cat out)"
"$BENCH" gguf q2.gguf >out
grep -q 'older layout' out && fail "$(cat out)"
"$BENCH" quantize older.gguf today.gguf Q2_0 >out 2>err
"$BENCH" gguf today.gguf --rmse older.gguf >out
grep -q '^q2_0 .*as it was' out || fail "$(cat out)"
"$BENCH" logits -m older.gguf --tokens 1,5-20 -o older.f32 >out
"$BENCH" logits -m today.gguf --tokens 1,5-20 -o today.f32 >out
nmse=$(near 1e-9 today.f32 older.f32) || fail "the layouts' logits differ by $nmse"

# ---- the plan, exceptions, errors of formats
"$BENCH" quantize f16.gguf Q4_K_M --dry-run >out
grep -q '^output.weight .* f16 *q6_K' out || fail "the plan is odd: $(cat out)"
grep -q '^blk.0.attn_norm.weight .* f32 *f32' out || fail "the plan is odd: $(cat out)"
"$BENCH" quantize f16.gguf Q4_K_M --dry-run --keep-output --tensor-type ffn_down=q8_0 \
    --tensor-type 'blk.[01].attn_q*=q5_K' >out
grep -q '^output.weight .* f16 *f16' out || fail "--keep-output: $(cat out)"
grep -q '^blk.2.ffn_down.weight .* f16 *q8_0' out || fail "--tensor-type: $(cat out)"
grep -q '^blk.1.attn_q.weight .* f16 *q5_K' out || fail "a glob: $(cat out)"
grep -q '^blk.2.attn_q.weight .* f16 *q4_K' out || fail "a glob: $(cat out)"
"$BENCH" quantize f16.gguf iq2_s --pure --dry-run >out 2>err
grep -q '^token_embd.weight .* f16 *iq2_s' out || fail "--pure: $(cat out)"
"$BENCH" quantize f16.gguf q.gguf Q4_K_M --rmse >out
grep -Eq 'q4_K .* RMSE 0\.[0-9]+, [5-8]\.[0-9]+ % of the weights' out || fail "--rmse: $(cat out)"

# ---- remarks
"$BENCH" quantize a.gguf q.gguf Q8_0 >out 2>err
grep -q 'quantised already are quantised again' err || fail "no remark: $(cat err)"
"$BENCH" quantize f16.gguf IQ1_S --dry-run >out 2>err
grep -q 'IQ1_S without an importance matrix' err || fail "no remark: $(cat err)"
"$BENCH" quantize "$SRC/tests/data/models/stories260K-f32.gguf" q.gguf Q4_K_M >out 2>err
grep -q 'no multiple of the block' err || fail "no remark about fallbacks: $(cat err)"
"$BENCH" logits -m q.gguf --tokens 1,5-20 -o have.f32 >out

# ---- refusals
refuses 2 "2 arguments were given" f16.gguf Q4_K_M
refuses 2 "there is no quantisation 'Q9'" f16.gguf no.gguf Q9
refuses 2 "would replace f16.gguf, which is read" f16.gguf f16.gguf Q4_0
refuses 2 "there is no format 'q9'" f16.gguf no.gguf Q4_0 --tensor-type ffn=q9
refuses 2 "matches the pattern 'nosuch'" f16.gguf no.gguf Q4_0 --tensor-type nosuch=q8_0
refuses 2 "matches the pattern 'blk.[0'" f16.gguf no.gguf Q4_0 --tensor-type 'blk.[0=q8_0'
refuses 2 "PATTERN=TYPE" f16.gguf no.gguf Q4_0 --tensor-type ffn
refuses 2 "nowhere/no.gguf" f16.gguf nowhere/no.gguf Q4_0
refuses 2 "missing.gguf" missing.gguf no.gguf Q4_0
refuses 2 "f16.gguf" f16.gguf no.gguf Q4_0 --imatrix f16.gguf
head -c 100000 f16.gguf >cut.gguf
refuses 2 "cut.gguf" cut.gguf no.gguf Q4_0
mkdir is-dir
refuses 2 "is not a regular file" f16.gguf is-dir Q4_0

# ---- an older OUT stays until the new one is there; killed and interrupted runs
sed 's/^n_layers:.*/n_layers: 4/' "$SRC/configs/models/tinyllama-1.1b.yaml" >large.yaml
"$BENCH" synth ./large.yaml F16 -o big.gguf >out 2>err || fail "$(cat err)"
echo old >no.gguf
for signal in TERM KILL; do
    code=0
    "$BENCH" quantize big.gguf no.gguf Q4_K_M >out 2>err &
    pid=$!
    for _ in $(seq 3000); do
        [ ! -s no.gguf.part ] || break
        sleep 0.01
    done
    kill -$signal $pid
    wait $pid || code=$?
    [ "$(cat no.gguf)" = old ] || fail "SIG$signal: the old file is gone"
    [ $signal = KILL ] || [ $code = 130 ] || fail "SIG$signal: exit code $code"
    [ $signal = KILL ] || [ ! -e no.gguf.part ] || fail "SIG$signal left a part"
done
"$BENCH" quantize f16.gguf no.gguf Q4_0 >out # takes over the part
[ ! -e no.gguf.part ] || fail "a part was left"
rm no.gguf

# ---- a full disk, where this user may mount one
mkdir small
if mount -t tmpfs -o size=20m tmpfs small 2>/dev/null; then
    trap 'umount small' EXIT
    refuses 3 "GB are free there" f16.gguf small/no.gguf F32
    [ -z "$(ls small)" ] || fail "a full disk keeps a part: $(ls small)"
    umount small
    trap - EXIT
fi
rm -rf "$WORK"
