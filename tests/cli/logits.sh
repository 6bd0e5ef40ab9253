# SPDX-License-Identifier: MIT
# bench logits: size and agreement of its output, and what it refuses
. "$SRC/tests/cli/lib.sh"
models=$SRC/tests/data/models

tokens=1,71,294,35,133
"$BENCH" logits -m "$models/llama.gguf" --tokens $tokens -o a.f32
[ "$(stat -c %s a.f32)" = $((5 * 320 * 4)) ] || fail "size $(stat -c %s a.f32)"

# The same as recorded, to 3 digits: mean error against the exact logits.
"$BENCH" logits -m "$models/llama.gguf" --tokens $tokens -o b.f32 -t 3 --batch 2
"$BENCH" logits -m "$models/llama.gguf" --tokens $tokens -o c.f32 -t 2 --weights packed
"$BENCH" logits -m "$models/llama.gguf" --tokens $tokens -o d.f32 --kv-type q8_0
! cmp -s a.f32 d.f32 || fail "the type of the KV cache changes nothing"
for file in a b c d; do
    od -An -v -t f4 -w4 $file.f32 >$file.txt
    od -An -v -t f4 -w4 -N 6400 "$models/llama.exact.f32" | paste - $file.txt |
        awk '{ e += ($1 - $2) ^ 2; p += $1 ^ 2 }
             END { if (!(e / p < 3e-4)) { print "NMSE " e / p; exit 1 } }' ||
        fail "logits differ from the recorded ones"
done

# A name for all levels of AMX: what is left are the logits of a CPU without.
"$BENCH" logits -m "$models/llama.gguf" --tokens $tokens -o e.f32 --isa-disable amx
"$BENCH" logits -m "$models/llama.gguf" --tokens $tokens -o f.f32 --isa-disable amx_int8,amx_bf16
cmp e.f32 f.f32
"$BENCH" topo --json >topo.json
grep -A1 '"amx_' topo.json | grep -q '"usable": true' || cmp e.f32 a.f32
"$BENCH" topo --json --isa-disable amx >topo.json
! grep -A1 '"amx_' topo.json | grep -q '"usable": true' || fail "amx is not off: $(cat topo.json)"

"$BENCH" logits --help | grep -q -- --tokens
refused 2 "name the model" logits --tokens 1 -o x.f32
refused 2 "name the tokens" logits -m "$models/llama.gguf" -o x.f32
refused 2 "name the output file" logits -m "$models/llama.gguf" --tokens 1
refused 2 "320" logits -m "$models/llama.gguf" --tokens 1,320 -o x.f32
refused 2 "f16, bf16, q8_0 or q4_0" logits -m "$models/llama.gguf" --tokens 1 -o x.f32 --kv-type q3
refused 2 "synthetic" logits -m "$models/llama.gguf" --tokens 1 -o x.f32 --weights memory
refused 2 "no-such" logits -m "$models/no-such.gguf" --tokens 1 -o x.f32
refused 2 "nowhere" logits -m "$models/llama.gguf" --tokens 1 -o nowhere/x.f32
refused 2 "argument" logits -m "$models/llama.gguf" --tokens 1 -o x.f32 more
[ ! -e x.f32 ] || fail "a refused run left a file"
