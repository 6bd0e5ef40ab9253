# SPDX-License-Identifier: MIT
# bench logits: size and agreement of its output, and what it refuses
set -eu
rm -rf "$WORK" && mkdir -p "$WORK" && cd "$WORK"
models=$SRC/tests/data/models

fail() { echo "logits: $*" >&2; exit 1; }
refuse() { # refuse CODE WORD ARGS...
    code=$1 word=$2
    shift 2
    set +e
    "$BENCH" logits "$@" >out.txt 2>err.txt
    got=$?
    set -e
    [ "$got" = "$code" ] || fail "exit $got, $code expected: $*"
    grep -q -- "$word" err.txt || fail "no \"$word\" in: $(cat err.txt)"
    [ "$(wc -l <err.txt)" -le 2 ] || fail "more than a sentence: $(cat err.txt)"
}

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

"$BENCH" logits --help | grep -q -- --tokens
refuse 2 "which model" --tokens 1 -o x.f32
refuse 2 "which tokens" -m "$models/llama.gguf" -o x.f32
refuse 2 "where" -m "$models/llama.gguf" --tokens 1
refuse 2 "320" -m "$models/llama.gguf" --tokens 1,320 -o x.f32
refuse 2 "f16, q8_0 or q4_0" -m "$models/llama.gguf" --tokens 1 -o x.f32 --kv-type q3
refuse 2 "synthetic" -m "$models/llama.gguf" --tokens 1 -o x.f32 --weights memory
refuse 2 "no-such" -m "$models/no-such.gguf" --tokens 1 -o x.f32
refuse 2 "nowhere" -m "$models/llama.gguf" --tokens 1 -o nowhere/x.f32
refuse 2 "argument" -m "$models/llama.gguf" --tokens 1 -o x.f32 more
[ ! -e x.f32 ] || fail "a refused run left a file"
