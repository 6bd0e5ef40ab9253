#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Where the program finds its files: in the source tree from the build tree, and only
# there; elsewhere in ../share/slmbench beside it
. "$SRC/tests/cli/lib.sh"

"$BENCH" synth --list >list
grep -q '^yi-1.5-9b ' list || fail "the build tree has no shapes: $(cat list)"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/bin"
cp "$BENCH" "$place/bin/bench"
BENCH=$place/bin/bench
refused 2 "share/slmbench/models has no shapes" synth yi-1.5-9b Q4_0 -o x.gguf
refused 2 "cannot open the configuration quick" sweep -c quick --dry-run

mkdir -p "$place/share/slmbench"
cp -r "$SRC/configs/sweeps" "$SRC/configs/texts" "$SRC/plots" "$place/share/slmbench"
mkdir "$place/share/slmbench/models"
cp "$SRC/configs/models/nano.yaml" "$place/share/slmbench/models/mine.yaml"
"$BENCH" synth --list >list
grep -q '^mine ' list || fail "the installed shape is missing: $(cat list)"
! grep -q '^yi-1.5-9b ' list || fail "shapes of the source tree: $(cat list)"
"$BENCH" synth mine Q4_0 -o mine.gguf >/dev/null
"$BENCH" sweep -c quick -m mine.gguf --mem none --dry-run >plan 2>err ||
    fail "the installed sweep is not found: $(cat err)"

# A variable of the environment replaces the directory of shapes.
SLMBENCH_SHAPES=$SRC/configs/models "$BENCH" synth --list >list
grep -q '^yi-1.5-9b ' list || fail "SLMBENCH_SHAPES is ignored: $(cat list)"
