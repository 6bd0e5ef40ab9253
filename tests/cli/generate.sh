# SPDX-License-Identifier: MIT
# bench generate: the story word for word, seeds, streams and refusals
set -eu
rm -rf "$WORK" && mkdir -p "$WORK" && cd "$WORK"
model=$SRC/tests/data/models/stories260K-f32.gguf
story="Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball."

fail() { echo "generate: $*" >&2; exit 1; }
refuse() { # refuse CODE WORD ARGS...
    code=$1 word=$2
    shift 2
    set +e
    "$BENCH" generate "$@" >out.txt 2>err.txt
    got=$?
    set -e
    [ "$got" = "$code" ] || fail "exit $got, $code expected: $*"
    grep -q -- "$word" err.txt || fail "no \"$word\" in: $(cat err.txt)"
}

for threads in 1 2 5; do
    "$BENCH" generate -m "$model" -n 100 -t $threads >story.txt 2>speed.txt
    [ "$(head -c ${#story} story.txt)" = "$story" ] ||
        fail "another story with $threads threads: $(cat story.txt)"
    grep -q "^first token after .* s, of which loading took .* s; prefill 1 token at .* tok/s, decode 99 tokens at .* tok/s, $threads thread" \
        speed.txt || fail "speed: $(cat speed.txt)"
done

# A prompt is continued, not repeated; the text ends in one newline.
"$BENCH" generate -m "$model" -p "Once upon a" -n 4 >more.txt 2>/dev/null
[ "$(cat more.txt)" = " time, there was" ] || fail "continuation: $(cat more.txt)"

# Equal seeds, equal text; other seeds, another.
for run in 1:7 2:7 3:8; do
    "$BENCH" generate -m "$model" -n 60 --temp 1.2 --top-k 50 --top-p 0.95 \
        --seed ${run#*:} >${run%:*}.txt 2>/dev/null
done
cmp -s 1.txt 2.txt || fail "equal seeds, different texts"
cmp -s 1.txt 3.txt && fail "different seeds, equal texts"

# A context that ends before the text does is said, and no error.
"$BENCH" generate -m "$model" -n 100 --ctx 20 >short.txt 2>speed.txt
grep -q "context of 20 positions is full" speed.txt || fail "$(cat speed.txt)"

"$BENCH" generate --help | grep -q -- --temp
refuse 2 "which model" -p x
refuse 2 "argument" -m "$model" hello
refuse 2 "temp" -m "$model" --temp -1
refuse 2 "top-p" -m "$model" --top-p 0
refuse 2 "no-such" -m no-such.gguf
refuse 2 "GGUF" -m "$SRC/LICENSE"
refuse 2 "names 1 CPU for 2 threads" -m "$model" --cpus 0 -t 1 --threads-prefill 2
refuse 2 "exclude" -m "$model" --cpus 0 --placement none
refuse 2 "may not run on CPU 1000000" -m "$model" --cpus 1000000
refuse 2 "placement" -m "$model" --placement everywhere
refuse 2 "context" -m "$model" -p "a long prompt for a short context" --ctx 3

# A tokenizer with more tokens than the model has embeddings: 512 of 500 = 0x01f4.
# n_dims u32 and ne[0] u64 follow the tensor's name, then comes ne[1].
cp "$model" few.gguf
name=token_embd.weight
name_at=$(LC_ALL=C grep -abo $name few.gguf | cut -d: -f1)
printf '\364\001' |
    dd of=few.gguf bs=1 seek=$((name_at + ${#name} + 12)) conv=notrunc 2>dd.txt
refuse 2 "knows 500 of them" -m few.gguf -p x
