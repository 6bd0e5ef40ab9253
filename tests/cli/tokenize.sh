#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench tokenize: text from everywhere, ids to standard output.
set -eu
rm -rf "$WORK" && mkdir -p "$WORK" && cd "$WORK"
model=$SRC/tests/data/models/stories260K-f32.gguf
text='Once upon a time, there was a little girl named Lily.'
ids='403 407 261 378 432 383 286 261 376 298 315 421 395 317 426'

fail() { echo "FAIL: $*" >&2; exit 1; }

# prints IDS ARGUMENTS...
prints() {
    local want=$1 got
    shift
    got=$("$BENCH" tokenize -m "$model" "$@")
    [ "$got" = "$want" ] || fail "tokenize $*: '$got', not '$want'"
}

# refused CODE FRAGMENT ARGUMENTS...
refused() {
    local code=$1 fragment=$2 rc=0
    shift 2
    "$BENCH" tokenize "$@" >out 2>err </dev/null || rc=$?
    [ "$rc" = "$code" ] || fail "tokenize $*: exit code $rc, not $code: $(cat err)"
    [ "$(wc -l <err)" = 1 ] || fail "tokenize $*: not one line: $(cat err)"
    grep -qF -- "$fragment" err || fail "tokenize $*: no '$fragment' in: $(cat err)"
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

refused 2 'with -m FILE' "$text"
refused 2 'as an argument, or with -f' -m "$model"
refused 2 'not both' -m "$model" -f text "$text"
refused 2 'put quotes' -m "$model" two words
refused 2 'No such file' -m "$model" -f missing
refused 2 'Is a directory' -m "$model" -f "$WORK"
refused 2 'not a GGUF file' -m text x

# Published vectors, where they are at hand.
shared=${SLM_SHARED:-$SRC/../shared}
if [ -d "$shared/golden/tokenizers" ]; then
    python3 "$shared/tools/check_tokenizers.py" "$BENCH" "$shared/golden/tokenizers"
    model=$shared/golden/tokenizers/ggml-vocab-qwen2.gguf
    prints '151644 872 198' --special '<|im_start|>user
'
else
    echo "no published vocabularies at $shared: set SLM_SHARED to where they lie"
fi
