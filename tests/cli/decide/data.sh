#!/bin/bash
# SPDX-License-Identifier: MIT
#
# data.sh - rows for other tools: files of metrics as Prometheus reads them, and the SQL of
# docs/data.md
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
zen=$SRC/results/examples/zen5-2vcpu

# ---- files of metrics: one sweep, several, users
check() { python3 "$SRC/tests/cli/decide/openmetrics.py" "$@" >checked 2>&1 || fail "$(cat checked)"; }
"$BENCH" rows "$zen" --format openmetrics -o one.prom
"$BENCH" rows "$SRC"/results/examples/*vcpu --format openmetrics >many.prom
"$BENCH" rows "$SRC/results/examples/zen5-users-9b" --format openmetrics >load.prom
check one.prom many.prom load.prom
grep -q '^slmbench_tokens_per_second{model="yi-1.5-9b",quant="Q4_0",kind="decode",threads="1",depth="0",point=' one.prom ||
    fail "no figure of a point: $(head -n 4 one.prom)"
grep -q '^slmbench_ttft_p90_seconds{.*users="2"' load.prom || fail "no users: $(cat load.prom)"

# A name that would end a label is escaped; one file, with a name of its own at the end.
head -n 1 "$zen/sweep.csv" >evil.csv
sed -n 2p "$zen/sweep.csv" | sed 's/yi-1\.5-9b/"a\\b""c}"/g' >>evil.csv
"$BENCH" rows evil.csv --format openmetrics >evil.prom
grep -qF 'model="a\\b\"c}"' evil.prom || fail "not escaped: $(head -n 4 evil.prom)"
check evil.prom
refused 2 "openmetrics has figures of its own" rows "$zen" --format openmetrics --launches
refused 2 "llama-bench-jsonl or openmetrics, not 'openmetric'" rows "$zen" --format openmetric

# ---- the SQL of docs/data.md gives rows
"$BENCH" history add results.db "$zen" "$SRC/results/examples/granite-rapids-2vcpu" >/dev/null
python3 - "$SRC/docs/data.md" results.db "$zen/sweep.csv" <<'END' || fail "a query of docs/data.md"
import csv, re, sqlite3, sys
page, database, table = sys.argv[1:]
history, memory = sqlite3.connect(database), sqlite3.connect(":memory:")
rows = list(csv.reader(open(table, newline="")))
names = ",".join(f'"{name}" TEXT' for name in rows[0])
memory.execute(f"CREATE TABLE sweep ({names})")
memory.executemany(f"INSERT INTO sweep VALUES ({','.join('?' * len(rows[0]))})", rows[1:])
queries = re.findall(r"(?ms)^```sql (history|csv)\n(.*?)^```", open(page).read())
assert len(queries) == 5, queries
for where, query in queries:
    found = (history if where == "history" else memory).execute(query).fetchall()
    assert found, query
    assert all(any(v is not None for v in row[1:]) for row in found), (query, found)
    print(found[0])
END
