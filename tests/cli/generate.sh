# SPDX-License-Identifier: MIT
# bench generate: the story word for word, seeds, streams and refusals
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
story="Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball."

for threads in 1 2 5; do
    "$BENCH" generate -m "$model" -n 100 -t $threads >story.txt 2>speed.txt
    [ "$(head -c ${#story} story.txt)" = "$story" ] ||
        fail "another story with $threads threads: $(cat story.txt)"
    grep -q "^first token after .* s, including .* s of loading; prefill 1 token at .* tok/s, decode 99 tokens at .* tok/s, $threads thread" \
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

# --min-p 1 leaves the most likely token only, at any temperature.
"$BENCH" generate -m "$model" -n 60 >greedy.txt 2>/dev/null
"$BENCH" generate -m "$model" -n 60 --temp 5 --min-p 1 >1.txt 2>/dev/null
cmp -s greedy.txt 1.txt || fail "--min-p 1 is not greedy: $(cat 1.txt)"

# A penalty on what was said, in the prompt too; none without a window.
"$BENCH" generate -m "$model" -n 60 --repeat-penalty 5 >1.txt 2>/dev/null
cmp -s greedy.txt 1.txt && fail "a repetition penalty changes nothing"
"$BENCH" generate -m "$model" -n 60 --repeat-penalty 5 --repeat-window 0 >1.txt 2>/dev/null
cmp -s greedy.txt 1.txt || fail "a window of 0 tokens penalises"
"$BENCH" generate -m "$model" -p "Lily saw a" -n 1 >1.txt 2>/dev/null
word=$(cat 1.txt)
"$BENCH" generate -m "$model" -p "Lily saw a$word, Lily saw a" -n 1 >1.txt 2>/dev/null
"$BENCH" generate -m "$model" -p "Lily saw a$word, Lily saw a" -n 1 \
    --repeat-penalty 50 >2.txt 2>/dev/null
cmp -s 1.txt 2.txt && fail "the prompt is not penalised: $(cat 1.txt)"

# With a window of the KV cache the text goes on behind the context, and is the same as
# without one until the window is full.
"$BENCH" generate -m "$model" -n 90 >whole.txt 2>/dev/null
"$BENCH" generate -m "$model" -n 90 --ctx 20 --kv-window 120 >windowed.txt 2>speed.txt
cmp -s whole.txt windowed.txt || fail "a window that holds all: $(cat windowed.txt)"
"$BENCH" generate -m "$model" -n 400 --ctx 20 --kv-window 30 >windowed.txt 2>speed.txt
grep -q "decode 399 tokens" speed.txt || fail "with a window: $(cat speed.txt)"
"$BENCH" generate -m "$model" -n 400 --ctx 20 --kv-window 30 --draft "$model" >drafts.txt 2>/dev/null
cmp -s windowed.txt drafts.txt || fail "drafts change a windowed text: $(cat drafts.txt)"

# A context that ends before the text does is said, and no error.
"$BENCH" generate -m "$model" -n 100 --ctx 20 >short.txt 2>speed.txt
grep -q "context of 20 positions is full" speed.txt || fail "$(cat speed.txt)"

# Speculation changes how the text is made, and not the text: greedy and drawn, looked
# up and drafted. Drafts of the same model are all accepted.
copy="To be or not to be, that is the question. To be or not to be, that is"
big=$SRC/tests/data/models/shakespeare3M-f16.gguf
for draw in "--temp 0" "--temp 0.9 --top-p 0.9 --seed 4 --repeat-penalty 1.1"; do
    "$BENCH" generate -m "$big" -p "$copy" -n 100 $draw >plain.txt 2>/dev/null
    for how in "--speculate lookup" "--draft $big" "--draft $model"; do
        "$BENCH" generate -m "$big" -p "$copy" -n 100 $draw $how >text 2>speed.txt
        cmp -s plain.txt text || fail "$draw $how: $(cat text), not: $(cat plain.txt)"
        grep -q "^speculative decoding: 99 tokens in" speed.txt || fail "$how: $(cat speed.txt)"
    done
done
"$BENCH" generate -m "$big" -p "$copy" -n 100 --draft "$big" 2>&1 >/dev/null |
    sed -n 's/.*, \([0-9]*\) of \([0-9]*\) draft tokens.*/\1 \2/p' >guessed.txt
read -r right guessed <guessed.txt
[ "$right" = "$guessed" ] || fail "of $guessed draft tokens of the same model $right were accepted"
refused 2 "exclude each other" generate -m "$model" -p a -n 1 --draft "$model" --speculate lookup
refused 2 "drafts are off, lookup or mtp, not" generate -m "$model" -p a -n 1 --speculate yes
# ---- by its own layer that predicts further tokens: the same text, and what came of it
mtp=$SRC/tests/data/models/zoo/qwen35-mtp.gguf
for how in packed mmap stream; do
    "$BENCH" generate -m "$mtp" --weights $how -p "What is the" -n 40 >want.txt 2>err || fail "$(cat err)"
    "$BENCH" generate -m "$mtp" --weights $how -p "What is the" -n 40 --speculate mtp >got.txt 2>err ||
        fail "$(cat err)"
    cmp want.txt got.txt || fail "$how: mtp makes another text"
done
grep -q '^speculative decoding: ' err || fail "$(cat err)"
grep -q '^acceptance by position: [0-9]* %.* times the speed of plain decoding' err || fail "$(cat err)"
refused 3 "no layer that predicts further tokens" generate -m "$model" --speculate mtp
refused 2 "--speculate" generate -m "$model" --speculate sometimes
refused 2 "another vocabulary" generate -m "$model" \
    --draft "$SRC/tests/data/models/llama.gguf"

"$BENCH" generate --help | grep -q -- --temp
refused 2 "name the model" generate -p x
refused 2 "argument" generate -m "$model" hello
refused 2 "temp" generate -m "$model" --temp -1
refused 2 "top-p" generate -m "$model" --top-p 0
refused 2 "min-p" generate -m "$model" --min-p 2
refused 2 "repeat-penalty" generate -m "$model" --repeat-penalty 0
refused 2 "repeat-window" generate -m "$model" --repeat-window -1
refused 2 "no-such" generate -m no-such.gguf
refused 2 "GGUF" generate -m "$SRC/LICENSE"
refused 2 "names 1 CPU for 2 threads" generate -m "$model" --cpus 0 -t 1 --threads-prefill 2
refused 2 "exclude" generate -m "$model" --cpus 0 --placement none
refused 2 "may not run on CPU 1000000" generate -m "$model" --cpus 1000000
refused 2 "placement" generate -m "$model" --placement everywhere
refused 2 "context" generate -m "$model" -p "a long prompt for a short context" --ctx 3

# A tokenizer with more tokens than the model has embeddings: 512 of 500 = 0x01f4.
# n_dims u32 and ne[0] u64 follow the tensor's name, then comes ne[1].
cp "$model" few.gguf
name=token_embd.weight
name_at=$(LC_ALL=C grep -abo $name few.gguf | cut -d: -f1)
printf '\364\001' |
    dd of=few.gguf bs=1 seek=$((name_at + ${#name} + 12)) conv=notrunc 2>dd.txt
refused 2 "knows 500 of them" generate -m few.gguf -p x

# A token of 2017 characters is printed whole: the first one of the story, "▁Once", made
# longer by a multiple of the alignment. Its length, a u64, stands in front of it.
once=$'\342\226\201Once'
at=$(LC_ALL=C grep -abo "$once" "$model" | head -1 | cut -d: -f1)
long=$(head -c 2016 /dev/zero | tr '\0' x)
{
    head -c $((at - 8)) "$model"
    printf '\347\007\0\0\0\0\0\0%s%s' "$once" "$long"
    tail -c +$((at + 7 + 1)) "$model"
} >long.gguf
"$BENCH" generate -m long.gguf -n 2 >text 2>/dev/null
[ "$(cat text)" = "Once$long upon" ] || fail "a long token: $(cut -c 1-80 text)"

# A model with rows of 256: its greedy continuation, as llama.cpp (build 4748) gives it.
cat >expected.txt <<'END'

And, if you shall be ready, and I shall be such
That is the rest of our rest, and then,
And shall be remember, and
END
"$BENCH" generate -m "$SRC/tests/data/models/shakespeare3M-f16.gguf" -p "ROMEO:" -n 64 \
    >romeo.txt 2>/dev/null
cmp romeo.txt expected.txt || fail "another continuation: $(cat romeo.txt)"

# ---- a terminal shows what would control it; a pipe gets the bytes
if command -v script >/dev/null && has_terminals; then
    python3 - "$model" <<'END' # the token "ve" becomes an escape and a bracket
import sys
m = open(sys.argv[1], "rb").read()
old, new = ((2).to_bytes(8, "little") + t for t in (b"ve", b"\x1b["))
assert m.count(old) == 1
open("escape.gguf", "wb").write(m.replace(old, new))
END
    "$BENCH" generate -m escape.gguf -p "I ha" -n 2 >raw 2>/dev/null
    grep -q $'\e\[' raw || fail "a pipe does not get the bytes: $(od -c raw)"
    script -qec "\"$BENCH\" generate -m escape.gguf -p \"I ha\" -n 2 2>/dev/null" \
        /dev/null >typed </dev/null || fail "no terminal: $(cat typed)"
    ! grep -q $'\e\[' typed || fail "the terminal was controlled: $(od -c typed)"
    grep -qF '\x1b[' typed || fail "not shown: $(od -c typed)"
fi

# ---- the example program says the same, and its errors in one line
"$EXAMPLE" "$model" "Once upon a" 40 >got.txt 2>err || fail "$(cat err)"
"$BENCH" generate -m "$model" -p "Once upon a" -n 40 >want.txt 2>/dev/null
[ "$(cat got.txt)" = "$(cat want.txt)" ] || fail "example: $(cat got.txt)"
code=0
"$EXAMPLE" no-such.gguf x 1 >got.txt 2>err || code=$?
[ $code = 2 ] && grep -q no-such.gguf err || fail "$code: $(cat err)"
code=0
"$EXAMPLE" >got.txt 2>err || code=$?
[ $code = 2 ] && grep -q "^usage" err || fail "$code: $(cat err)"
