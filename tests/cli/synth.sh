#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench synth: a file is made, equal seeds give equal bytes, and whatever is
# wrong is said in one sentence that leaves no half-made file behind.
. "$SRC/tests/cli/lib.sh"

# ---- files
"$BENCH" synth nano Q4_K_M -o a.gguf >out
grep -qF "a.gguf: nano Q4_K_M, 3.7 M parameters, 2.3 MB" out || fail "odd: $(cat out)"
[ "$(tail -n 1 out)" = "measure it: bench decode -m a.gguf" ] || fail "no next step: $(cat out)"
"$BENCH" synth "$SRC/configs/models/nano.yaml" q4_k_m -o b.gguf >out
cmp a.gguf b.gguf
"$BENCH" synth nano:Q4_K_M -o b.gguf >out # as -m takes it
cmp a.gguf b.gguf
refused 2 "synth needs SHAPE:QUANT" synth nano -o b.gguf
"$BENCH" synth nano Q4_K_M --seed 2 -o b.gguf >out # over an older file
! cmp -s a.gguf b.gguf || fail "the seed changes nothing"
[ "$(head -c 4 a.gguf)" = GGUF ] || fail "no GGUF magic"
[ -z "$(find . -name '*.part')" ] || fail "a part was left"

# ---- routers: the shape says how popular experts are, the option overrides it
cat >routed.yaml <<'END'
arch: qwen3moe
n_layers: 1
n_embd: 1024
n_ff: 32
n_experts: 16
n_experts_used: 2
n_heads: 4
n_kv_heads: 2
head_dim: 64
n_vocab: 512
n_ctx_train: 512
rope_base: 10000
norm_eps: 1e-6
END
"$BENCH" synth ./routed.yaml Q8_0 -o usual.gguf >out
"$BENCH" synth ./routed.yaml Q8_0 -o given.gguf --router-skew 0.7 >out
cmp usual.gguf given.gguf
"$BENCH" synth ./routed.yaml Q8_0 -o even.gguf --router-skew 0 >out
! cmp -s usual.gguf even.gguf || fail "a skew changes nothing"
[ "$(stat -c %s even.gguf)" -le "$(stat -c %s usual.gguf)" ] || fail "an even router is larger"
! grep -q router_skew even.gguf || fail "no skew, and it is said"
grep -q router_skew usual.gguf || fail "the skew is not said"
{ cat routed.yaml; echo "router_skew: 0"; } >even.yaml
mkdir same && cp even.yaml same/routed.yaml
"$BENCH" synth same/routed.yaml Q8_0 -o other.gguf >out
cmp even.gguf other.gguf
refused 2 "can have no skew" synth nano Q8_0 -o c.gguf --router-skew 1
refused 2 "router-skew" synth ./routed.yaml Q8_0 -o c.gguf --router-skew 5

# ---- list
"$BENCH" synth --list >out
grep -q '^yi-1.5-9b  *8.83 B .* 5.33 ' out || fail "the list lacks yi-1.5-9b: $(cat out)"
"$BENCH" synth --list --json | python3 -c '
import json, sys
shapes = {s["name"]: s for s in json.load(sys.stdin)["shapes"]}
assert shapes["yi-1.5-9b"]["n_params"] == 8829407232
assert len(shapes["nano"]["file_bytes"]) == 36
assert shapes["nano"]["file_bytes"]["Q4_K_M"] == int(sys.argv[1])
' "$(stat -c %s a.gguf)"

# ---- refusals
refused 2 "did you mean 'yi-1.5-9b'?" synth yi-1.5-9 Q4_K_M -o c.gguf
refused 2 "near it: gpt-oss-20b, gpt2" synth gpt-5 Q4_K_M -o c.gguf
refused 2 "did you mean Q4_K_M?" synth nano q4_km -o c.gguf
refused 2 "F32, F16, BF16, Q4_0" synth nano best -o c.gguf
refused 2 "-o FILE" synth nano Q4_K_M
refused 2 "1 argument was given" synth nano -o c.gguf
refused 2 "--json requires --list" synth nano Q4_0 -o c.gguf --json
refused 2 "no-such-dir/c.gguf" synth nano Q4_0 -o no-such-dir/c.gguf
refused 2 "is not a regular file" synth nano Q4_0 -o .
touch plain
refused 2 "plain/c.gguf" synth nano Q4_0 -o plain/c.gguf
sed 's/n_ff:.*/n_ff: many/' "$SRC/configs/models/nano.yaml" >odd.yaml
refused 2 "odd.yaml: n_ff: 'many' is not a whole number" synth ./odd.yaml Q4_0 -o c.gguf
sed 's/n_layers:.*/n_layers: 4096/; s/n_embd:.*/n_embd: 262144/; s/n_ff:.*/n_ff: 1048576/' \
    "$SRC/configs/models/nano.yaml" >huge.yaml
refused 3 "GB are free there" synth ./huge.yaml F32 -o c.gguf
[ ! -e c.gguf ] || fail "a refused command made a file"
[ -z "$(find . -name '*.part')" ] || fail "a refused command left a part"

# ---- interrupted while it works
if [ "$(df --output=avail -B1M . | tail -1)" -gt 1000 ]; then
    code=0
    "$BENCH" synth tinyllama-1.1b Q4_K_M -o big.gguf >out 2>err &
    pid=$!
    for _ in $(seq 1000); do
        [ ! -e big.gguf.part ] || break
        sleep 0.01
    done
    kill -TERM $pid
    wait $pid || code=$?
    [ $code = 130 ] || fail "an interrupted run ended with $code: $(cat err)"
    [ ! -e big.gguf.part ] && [ ! -e big.gguf ] || fail "an interrupted run left a file"
fi
rm -rf "$WORK"
