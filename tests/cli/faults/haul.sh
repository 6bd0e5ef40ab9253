#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Long work grows nothing: decoding, serving, opening and closing models. A moment of
# each; with SLM_TEST_LONG=1 SLM_TEST_HAUL minutes (60) of decoding and of serving, and a
# sweep of as many launches as one of 12 hours makes. With a sanitizer, whose memory would
# be counted, servers alone, for 20 minutes.
# tests/faults/haul.py lists what is compared.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
[ -z "${SANITIZE:-}" ] || is_full || skip "with a sanitizer SLM_TEST_LONG=1 runs it"

selection=(--minutes 0.005 --opens 40 --parts judge,open,decode,serve,states)
! is_full || selection=(--minutes "${SLM_TEST_HAUL:-60}")
[ -z "${SANITIZE:-}" ] || selection=(--minutes "${SLM_TEST_HAUL:-20}" --parts serve,pages,windows,states)
python3 "$SRC/tests/faults/haul.py" "$BENCH" "$HAUL" "$SRC" "$WORK/haul" "${selection[@]}"
