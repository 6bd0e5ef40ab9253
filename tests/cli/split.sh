#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A model in several GGUF files is the model, whichever part is named; a part that is
# missing, or another, is named.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
model=$SRC/tests/data/models/shakespeare3M-f16.gguf
split() { python3 "$SRC/tests/support/models/split_gguf.py" "$@"; }

"$BENCH" logits -m "$model" --weights packed --tokens 1,5,300,77,12 -o want.f32 >out
split "$model" sh 4
split "$model" alone 3 --metadata-alone
for part in sh-00001-of-00004 sh-00003-of-00004 alone-00001-of-00003 alone-00002-of-00003; do
    "$BENCH" logits -m $part.gguf --tokens 1,5,300,77,12 -t 2 -o have.f32 >out 2>err ||
        fail "$part: $(cat err)"
    cmp want.f32 have.f32 || fail "$part is another model"
done

# quantised while loaded, described, and put together again
"$BENCH" logits -m "$model:Q4_K_M" --tokens 1,5,300 -o want.f32 >out
"$BENCH" logits -m sh-00001-of-00004.gguf:Q4_K_M --tokens 1,5,300 -o have.f32 >out
cmp want.f32 have.f32 || fail "quantised: another model"
"$BENCH" gguf "$model" --json >want.json
"$BENCH" quantize sh-00001-of-00004.gguf whole.gguf F16 >out
for file in sh-00002-of-00004.gguf whole.gguf; do
    "$BENCH" gguf $file --json >have.json
    python3 - <<'PY' || fail "$file: $(cat have.json)"
import json
want, have = json.load(open("want.json")), json.load(open("have.json"))
have["metadata"].pop("general.quantization_version", None)
want["metadata"].pop("general.quantization_version", None)
assert want["metadata"] == have["metadata"], have["metadata"]
assert want["bytes_per_token"] == have["bytes_per_token"]
PY
done
"$BENCH" gguf whole.gguf --rmse "$model" >out
! grep -v 'as it was$' out || fail "weights have changed"

# a point: the name is the model's, its bytes those of all parts, and all leave the cache
"$BENCH" decode -m sh-00001-of-00004.gguf -t 1 --ctx 32 -n 2 --all >out || fail "$(cat out)"
grep -qE '^model +sh$' out && grep -qE '^residency +packed$' out || fail "$(cat out)"
bytes=$(awk '$1 == "file_bytes" { print $2 }' out)
[ "$bytes" -gt 6800000 ] || fail "file_bytes $bytes"

refused 2 'so they cannot be mapped' logits -m sh-00001-of-00004.gguf --weights mmap --tokens 1 -o x
cp sh-00002-of-00004.gguf other.gguf
refused 2 'but its name is not that of a part' gguf other.gguf
cp sh-00002-of-00004.gguf sh-00003-of-00004.gguf
refused 2 'has the header of part 2 of 4 of a model, but its name is that of part 3 of 4' \
    gguf sh-00001-of-00004.gguf
rm sh-00003-of-00004.gguf
refused 2 'cannot open sh-00003-of-00004.gguf: No such file' gguf sh-00001-of-00004.gguf
split "$model" two 2
split "$SRC/tests/data/models/stories260K-f32.gguf" tales 2
cp tales-00002-of-00002.gguf two-00002-of-00002.gguf
refused 2 'two-00001-of-00002.gguf promises 39 tensors in 2 files, and they have 43' \
    gguf two-00001-of-00002.gguf
