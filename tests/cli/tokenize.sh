#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench tokenize: text from everywhere, ids to standard output.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
text='Once upon a time, there was a little girl named Lily.'
ids='403 407 261 378 432 383 286 261 376 298 315 421 395 317 426'

# prints IDS ARGUMENTS...
prints() {
    local want=$1 got
    shift
    got=$("$BENCH" tokenize -m "$model" "$@")
    [ "$got" = "$want" ] || fail "tokenize $*: '$got', not '$want'"
}

printf %s "$text" >text
prints "$ids" "$text"
prints "$ids" -f text
printf %s "$text" | prints "$ids" -f -
prints "1 $ids" --bos "$text"
prints '' ''
prints '1 2' --bos --special '</s>'
prints '410 504 492 419 505' '</s>'
[ "$("$BENCH" tokenize -m "$model" --json --bos --special 'Hi</s>')" = \
    '{"n_tokens": 4, "ids": [1, 320, 417, 2], "tokens": ["<s>", "▁H", "i", "</s>"]}' ] ||
    fail "JSON"

refused 2 'with -m MODEL' tokenize "$text"
refused 2 'as an argument, or with -f' tokenize -m "$model"
refused 2 'not both' tokenize -m "$model" -f text "$text"
refused 2 'put quotes' tokenize -m "$model" two words
refused 2 'No such file' tokenize -m "$model" -f missing
refused 2 'Is a directory' tokenize -m "$model" -f "$WORK"
refused 2 'not a GGUF file' tokenize -m text x

# Published vectors, where they are at hand.
shared=${SLM_SHARED:-$SRC/../shared}
if [ -d "$shared/golden/tokenizers" ]; then
    # one of them through the program; the unit tests go through all
    mkdir vectors
    ln -s "$shared"/golden/tokenizers/ggml-vocab-phi-3.gguf* vectors/
    python3 "$shared/tools/check_tokenizers.py" "$BENCH" vectors
    model=$shared/golden/tokenizers/ggml-vocab-qwen2.gguf
    prints '151644 872 198' --special '<|im_start|>user
'
else
    echo "no published vocabularies at $shared: set SLM_SHARED to where they lie"
fi
