# SPDX-License-Identifier: MIT
# The example program says the same as bench generate, and its errors in one line.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
"$EXAMPLE" "$model" "Once upon a" 40 >got.txt 2>err || fail "$(cat err)"
"$BENCH" generate -m "$model" -p "Once upon a" -n 40 >want.txt 2>/dev/null
[ "$(cat got.txt)" = "$(cat want.txt)" ] || fail "example: $(cat got.txt)"
code=0
"$EXAMPLE" no-such.gguf x 1 >got.txt 2>err || code=$?
[ $code = 2 ] && grep -q no-such.gguf err || fail "$code: $(cat err)"
code=0
"$EXAMPLE" >got.txt 2>err || code=$?
[ $code = 2 ] && grep -q "^usage" err || fail "$code: $(cat err)"
