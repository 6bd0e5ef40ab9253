#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A system call that fails: one sentence and an exit code, nothing lost, nothing left.
# A call of every kind in the quickest commands; with SLM_TEST_LONG=1 many calls in
# all commands. tests/faults/faults.py says what is promised.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
[ -x "${FAULT_RUNNER:-}" ] || skip "no fault_runner"

selection=(--positions 1 --commands decode,quantize,pack,history)
[ -z "${SLM_TEST_LONG:-}" ] || selection=(--positions 40)
# Whichever look at a file fails, the .part of a large file goes: all positions are few.
python3 "$SRC/tests/faults/faults.py" "$FAULT_RUNNER" "$BENCH" "$SRC" "$WORK/parts" \
    --positions 100 --commands pack,quantize --kinds stat --faults EIO
python3 "$SRC/tests/faults/faults.py" "$FAULT_RUNNER" "$BENCH" "$SRC" "$WORK/faults" "${selection[@]}"
