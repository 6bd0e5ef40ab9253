#!/bin/bash
# SPDX-License-Identifier: MIT
#
# kill -9 at random moments, and what comes after: nothing lost, nothing twice, nothing
# left. A few kills of the quickest commands; with SLM_TEST_LONG=1 SLM_TEST_KILLS of each
# of five commands (100), at moments drawn from SLM_TEST_SEED, which is the day's number
# otherwise: each night has others. tests/faults/kills.py lists the promises.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
python3 -c 'import sqlite3' 2>/dev/null || skip "no sqlite3 for python3"

selection=(--kills 4 --commands history,serve)
! is_full || selection=(--kills "${SLM_TEST_KILLS:-100}" --seed "${SLM_TEST_SEED:-$(date -u +%Y%m%d)}")
python3 "$SRC/tests/faults/kills.py" "$BENCH" "$SRC" "$WORK/kills" "${selection[@]}"
