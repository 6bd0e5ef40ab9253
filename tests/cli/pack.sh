#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench pack: whatever can be opened becomes a packed file, which is the same model to
# every command; what is damaged or was made for other kernels is named.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
stories=$SRC/tests/data/models/stories260K-f32.gguf
llama=$SRC/tests/data/models/llama.gguf

"$BENCH" synth nano Q4_K_M -o nano.gguf >out
code=0
"$BENCH" pack nano.gguf -o nano.packed.gguf --verify >out 2>err || code=$?
[ $code != 3 ] || skip "this CPU has no kernels for panels"
[ $code = 0 ] || fail "$(cat err)"

# ---- what is printed
sed -E 's/[0-9.]+ s$/T s/' out >shown
cat >want <<'END'
nano.packed.gguf: 2.23 MiB, 29 of 39 tensors in panels (2.01 MiB), in T s
nano.packed.gguf: all checksums match, 39 tensors in 2.23 MiB, in T s
END
diff want shown || fail "other words"
"$BENCH" pack --verify nano.packed.gguf >out
[ "$(wc -l <out)" = 1 ] && grep -q "all checksums match" out || fail "$(cat out)"
"$BENCH" gguf nano.packed.gguf >out
grep -q "^  packed file          layout 1, 29 tensors in panels$" out || fail "$(cat out)"
grep -qE "^  output.weight  .* q6_K .* 215040  in panels$" out || fail "$(cat out)"
grep -qE "^  token_embd.weight  .* q4_K .* 147456$" out || fail "$(cat out)"
"$BENCH" gguf nano.packed.gguf --json >packed.json
"$BENCH" gguf nano.gguf --json >plain.json
python3 - <<'PY' || fail "the JSON is odd"
import json
packed, plain = json.load(open("packed.json")), json.load(open("plain.json"))
assert packed["packed"] and not plain["packed"]
assert packed["types"] == plain["types"] and packed["alignment"] == 4096
for key, value in plain["metadata"].items():
    assert packed["metadata"][key] == value, key
own = set(packed["metadata"]) - set(plain["metadata"])
assert own == {"general.alignment", "slmbench.layout_version", "slmbench.head_checksum",
               "slmbench.tensor_checksums"}, own
assert sum(t["in_panels"] for t in packed["tensors"]) == 29
assert all(t["offset"] % 4096 == 0 for t in packed["tensors"])
PY

# ---- the same model, however it is held
# same_model MODEL FILE: bit for bit the logits of MODEL when that is packed
same_model() {
    "$BENCH" logits -m "$1" --weights packed --tokens 1,5-20 -o want.f32 >out
    for weights in packed mmap auto; do
        "$BENCH" logits -m "$2" --weights $weights --tokens 1,5-20 -o have.f32 >out 2>err ||
            fail "$2, $weights: $(cat err)"
        cmp want.f32 have.f32 || fail "$2, $weights: not the model $1"
    done
}
same_model nano.gguf nano.packed.gguf
same_model nano.packed.gguf nano.packed.gguf
"$BENCH" pack nano:Q6_K -o shape.gguf >out 2>err || fail "$(cat err)"
same_model nano:Q6_K shape.gguf
python3 "$SRC/tests/support/models/split_gguf.py" nano.gguf sh 3
"$BENCH" pack sh-00002-of-00003.gguf -o whole.gguf >out
cmp nano.packed.gguf whole.gguf || fail "a split model is packed to another file"
python3 "$SRC/tests/support/models/make_hf_folder.py" "$llama" folder --type F16
for model in folder folder:Q8_0 "$llama" "$stories:Q4_0"; do
    "$BENCH" pack "$model" -o some.gguf --verify -t 3 >out 2>err || fail "$model: $(cat err)"
    same_model "$model" some.gguf
done

# ---- commands that read rows find those of the original
"$BENCH" gguf nano.packed.gguf --rmse nano.gguf --tensors >out
! tail -n +2 out | grep -Ev '^$|as it was$' || fail "rows are others"
for tensor in output.weight blk.2.ffn_down.weight token_embd.weight blk.0.attn_norm.weight; do
    "$BENCH" gguf nano.gguf --tensor $tensor -o a.f32 >out
    "$BENCH" gguf nano.packed.gguf --tensor $tensor -o b.f32 >out
    cmp a.f32 b.f32 || fail "other values of $tensor"
done
"$BENCH" quantize nano.gguf a.gguf Q8_0 >out 2>err
"$BENCH" quantize nano.packed.gguf b.gguf Q8_0 >out 2>err || fail "$(cat err)"
"$BENCH" gguf b.gguf --rmse a.gguf --tensors >out
! tail -n +2 out | grep -Ev '^$|as it was$' || fail "quantised to others"
"$BENCH" gguf b.gguf --json >b.json
! grep -qE "slmbench.(layout|head|tensor)" b.json || fail "a quantised file says that it is packed"
"$BENCH" pack "$stories" -o tales.gguf >out
"$BENCH" generate -m "$stories" -p "Once upon a time" --temp 0 -n 20 >want 2>err
"$BENCH" generate -m tales.gguf -p "Once upon a time" --temp 0 -n 20 >have 2>err
cmp want have || fail "another tale: $(cat have)"
"$BENCH" decode -m nano.packed.gguf -t 1 --ctx 32 -n 2 --all >out || fail "$(cat out)"
grep -qE '^residency +packed$' out || fail "$(cat out)"

# ---- levels without panels
"$BENCH" topo --json >topo.json
all=$(python3 -c '
import json
levels = json.load(open("topo.json"))["cpu"]["isa"].items()
print(",".join(name for name, l in levels if l["usable"] and name != "scalar"))')
for weights in packed mmap; do
    refused 3 "at the ISA levels in use" logits -m nano.packed.gguf --weights $weights \
        --isa-disable "$all" --tokens 1 -o x.f32
done
refused 3 "cannot be packed: there are no kernels for panels of" pack nano.gguf -o x.gguf \
    --isa-disable "$all"
[ ! -e x.gguf ] && [ ! -e x.f32 ] || fail "a file was left"

# ---- damage
# flipped FILE AT: a copy with one bit of a byte changed
flipped() {
    python3 - "$1" "$2" bad.gguf <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2])] ^= 16
open(sys.argv[3], "wb").write(data)
PY
}
offset_of() {
    python3 -c '
import json, sys
print(next(t["offset"] for t in json.load(open("packed.json"))["tensors"]
           if t["name"] == sys.argv[1]))' "$1"
}
flipped nano.packed.gguf $(($(offset_of blk.1.attn_q.weight) + 1000))
refused 1 "bad.gguf is damaged: the tensor blk.1.attn_q.weight does not match its checksum" \
    pack --verify bad.gguf
flipped nano.packed.gguf "$(grep -abo 'random weights' nano.packed.gguf | head -1 | cut -d: -f1)"
refused 1 "bad.gguf is damaged: its metadata does not match its checksum" pack --verify bad.gguf
head -c 1000000 nano.packed.gguf >bad.gguf
refused 2 "the file is cut short or damaged" pack --verify bad.gguf
python3 - <<'PY'
data = bytearray(open("nano.packed.gguf", "rb").read())
at = data.index(b"slmbench.layout_version") + len(b"slmbench.layout_version") + 4
data[at] = 7
open("bad.gguf", "wb").write(data)
PY
why="bad.gguf: a packed file with layout version 7, and this program reads 1; run"
refused 2 "$why" pack --verify bad.gguf
refused 2 "$why" generate -m bad.gguf -p x -n 1
refused 2 "$why" gguf bad.gguf

# ---- what is refused, and leaves no file
refused 2 "name one model" pack
refused 2 "name one model" pack a.gguf b.gguf -o c.gguf
refused 2 "pack needs -o FILE" pack nano.gguf
refused 2 "nano.gguf is no packed file, so it has no checksums" pack --verify nano.gguf
refused 2 "would replace" pack nano.gguf -o ./nano.gguf
refused 2 "cannot open missing.gguf" pack missing.gguf -o no.gguf
refused 2 "its tensor token_embd.weight is q4_K already" pack nano.packed.gguf:Q8_0 -o no.gguf
mkdir is-dir
refused 2 "is-dir is not a regular file" pack nano.gguf -o is-dir
[ ! -e no.gguf ] && [ -z "$(find . -name '*.part')" ] || fail "a file was left"

# ---- stopped: no part stays, and an older file does
sed 's/^n_layers:.*/n_layers: 4/' "$SRC/configs/models/tinyllama-1.1b.yaml" >large.yaml
"$BENCH" synth ./large.yaml Q8_0 -o big.gguf >out 2>err || fail "$(cat err)"
echo old >no.gguf
for signal in TERM KILL; do
    code=0
    "$BENCH" pack big.gguf -o no.gguf >out 2>err &
    pid=$!
    for _ in $(seq 3000); do
        [ ! -s no.gguf.part ] || break
        sleep 0.01
    done
    kill -$signal $pid 2>/dev/null || true
    wait $pid || code=$?
    [ $code != 0 ] || continue # it was quicker
    [ "$(cat no.gguf)" = old ] || fail "SIG$signal: the old file is gone"
    [ $signal = KILL ] || [ $code = 130 ] || fail "SIG$signal: exit code $code"
    [ $signal = KILL ] || [ ! -e no.gguf.part ] || fail "SIG$signal left a part"
done
"$BENCH" pack nano.gguf -o no.gguf >out # takes over the part
[ ! -e no.gguf.part ] || fail "a part was left"

# ---- a full disk, where this user may mount one
mkdir small
if mount -t tmpfs -o size=20m tmpfs small 2>/dev/null; then
    trap 'umount small' EXIT
    refused 3 "GB are free there" pack big.gguf -o small/no.gguf
    [ -z "$(ls small)" ] || fail "a full disk keeps a part: $(ls small)"
    umount small
    trap - EXIT
fi
rm -rf "$WORK"
