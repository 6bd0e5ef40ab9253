# SPDX-License-Identifier: MIT
#
# bench load of bench serve, started by it: prompts and outputs are as long as asked for,
# and what is sent to find out how long words are fits a short context, too.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
"$BENCH" load http://127.0.0.1:1 >out 2>err || true
! grep -q "built without libcurl" err || skip "no libcurl"

"$BENCH" load --launch "here=$BENCH serve -m $SRC/tests/data/models/stories260K-f32.gguf \
    --port {port} --sequences 2 --ctx 200" --launch "drafts=$BENCH serve \
    -m $SRC/tests/data/models/stories260K-f32.gguf --port {port} --sequences 2 --ctx 200 \
    --speculate lookup" --completions --ignore-eos --prompt 60 \
    --output 12 --users 1,2 --requests 6 --level-time 5 --max-late 1000 -o dir >out 2>err ||
    fail "$(cat err)"
grep -q "users" out || fail "no answer: $(cat out)"
python3 - dir/sweep.csv <<'END' || fail "rows: $(cat dir/sweep.csv)"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert {r["n_users"] for r in rows} == {"1", "2"}, rows
assert {r["engine"] for r in rows} == {"here", "drafts"}, rows
for r in rows:
    assert r["status"] == "ok" and int(r["n_failed"]) == 0, r
    assert abs(float(r["prompt_tokens"]) - 60) < 10, r["prompt_tokens"]
    assert float(r["output_tokens"]) == 12, r["output_tokens"]
END
