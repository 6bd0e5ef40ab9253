#!/bin/bash
# SPDX-License-Identifier: MIT
#
# result_sets.sh - commands that read rows take a database, a CSV and a folder of sweeps as
# they take the directory of a sweep
. "$SRC/tests/cli/lib.sh"
zen=$SRC/results/examples/zen5-2vcpu
granite=$SRC/results/examples/granite-rapids-2vcpu
mkdir sweep folder
cp "$zen/sweep.csv" "$zen/machine.json" sweep # without quality and samples, which only a directory has
cp -r sweep folder/zen
"$BENCH" recommend sweep >wanted
"$BENCH" recommend sweep --for slmbench >deployed

# One machine, once: nothing is chosen, nothing is reported.
"$BENCH" history add one.db sweep >/dev/null
cp sweep/sweep.csv rows.csv
for path in one.db rows.csv folder; do
    "$BENCH" recommend $path --max-threads 2 >got 2>err || fail "recommend $path: $(cat err)"
    [ ! -s err ] || fail "recommend $path reports: $(cat err)"
    diff wanted got || fail "recommend $path is not as of the directory"
done
"$BENCH" recommend one.db | cmp - wanted || fail "the database does not know its threads"
"$BENCH" recommend one.db --for slmbench | cmp - deployed || fail "another deployment"

# Several runs: the latest of each point; several machines: the one measured last.
"$BENCH" history add two.db "$granite" "$zen" >/dev/null
"$BENCH" recommend two.db >got 2>err || fail "two machines: $(cat err)"
grep -q "two.db: 2 runs of 2 machines; taken are the rows of vm (.*), of each point those of its latest run, the last of 2026-.*; .bench compare. shows all machines$" err ||
    fail "which machine: $(cat err)"
[ "$(wc -l <err)" = 1 ] || fail "not one line: $(cat err)"
sed 's/"utc": .*/"utc": "2027-01-01T00:00:00Z",/' sweep/machine.json >folder/zen/machine.json
"$BENCH" history add one.db folder >/dev/null
"$BENCH" recommend one.db 2>err | cmp - wanted || fail "the same rows again are something else"
grep -q "2 runs of 1 machine; .* the last of 2027-01-01T00:00:00Z$" err || fail "two runs: $(cat err)"

# Charts: into the directory of a sweep, or into that of -o.
"$BENCH" plot sweep >/dev/null 2>&1 || fail "plot"
"$BENCH" plot one.db -o 'a place' >out 2>err || fail "plot of a database: $(cat err)"
grep -qx "charts are in a place" out || fail "where the charts are: $(cat out)"
"$BENCH" plot rows.csv -o csv >/dev/null 2>&1 || fail "plot of a CSV"
for chart in decode_threads decode_context prefill memory; do
    cmp sweep/$chart.csv "a place/$chart.csv" || fail "$chart of a database is another one"
    cmp sweep/$chart.csv csv/$chart.csv || fail "$chart of a CSV is another one"
done
[ ! -e csv/token_run.svg ] || fail "a chart of samples that are not there"
refused 2 "so there is no place for its charts; name a folder with -o DIR" plot rows.csv
refused 2 "so there is no place for its charts; name a folder with -o DIR" plot folder
cp rows.csv memory.csv
refused 2 "memory.csv" plot memory.csv -o .
cmp rows.csv memory.csv || fail "a chart was written over the table"

# The page has a section for each machine.
"$BENCH" report two.db -o two.html >out 2>err || fail "report of a database: $(cat err)"
grep -qE '^two.html: [0-9]+ KiB, 2 machines$' out || fail "two machines: $(cat out)"
"$BENCH" report rows.csv -o csv.html >out 2>err || fail "report of a CSV: $(cat err)"
"$BENCH" report one.db -o one.html >out 2>err || fail "report: $(cat err)"
grep -q '<dt>Processor</dt><dd>AMD EPYC</dd>' one.html || fail "no processor: $(grep '<dt>' one.html)"
refused 2 "one.db" report one.db -o one.db

# A folder of sweeps is its machines, and predictions are checked on any of these.
"$BENCH" compare folder "$granite" --by speed >got || fail "compare: $(cat got)"
grep -q "^ 1 zen " got || fail "a folder's machine: $(cat got)"
"$BENCH" predict --check sweep --csv | cut -d, -f2- >wanted
"$BENCH" history add three.db sweep >/dev/null
"$BENCH" predict --check three.db --csv | cut -d, -f2- | sort | diff - <(sort wanted) ||
    fail "a database is predicted otherwise"

# What cannot be.
refused 2 "cannot read nowhere" recommend nowhere
mkdir none
refused 2 "no sweep.csv with rows is in none" recommend none
head -c 3000 one.db >cut.db
refused 2 "cut.db is not a complete database" recommend cut.db
refused 2 "is no table of results" plot "$SRC/LICENSE" -o charts
