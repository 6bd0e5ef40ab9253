#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Files that come with the program: from the source tree in the build tree, and only there;
# elsewhere inside the program, which so runs alone, even where no directory can be
# written; files of the user, beside the program and installed come first, in this order,
# but none from a folder that others may write into.
. "$SRC/tests/cli/lib.sh"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME=$place/home XDG_CONFIG_HOME=
mkdir -p "$place/bin" "$HOME"

# comes_from NAME WHERE: the place that `bench files` tells for a file
comes_from() {
    local got
    got=$("$BENCH" files | awk -v name="$1" '$1 == name { print $2 }')
    [ "$got" = "$2" ] || fail "$1 comes from '$got', not from '$2'"
}

comes_from models/yi-1.5-9b.yaml "$SRC/configs/models/yi-1.5-9b.yaml"
comes_from sweeps/default.yaml "$SRC/configs/sweeps/default.yaml"

# ---- alone: what is inside is what the source tree has
cp "$BENCH" "$place/bin/bench"
BENCH=$place/bin/bench
"$BENCH" files >list
[ -s list ] || fail "nothing is inside"
! awk '$2 != "inside"' list | grep . || fail "not inside: $(cat list)"
for kind in models sweeps gates texts shell plots; do
    folder=$SRC/configs/$kind
    [ $kind != plots ] || folder=$SRC/plots
    for file in "$folder"/*; do
        "$BENCH" files "$kind/${file##*/}" >got || fail "no $kind/${file##*/} inside"
        cmp got "$file" || fail "$kind/${file##*/} inside is another file"
    done
done
for no in models/none.yaml none/nano.yaml models models/ /etc/passwd models/../x ../x; do
    refused 2 "there is no file '$no'" files "$no"
done

# It works alone: shapes by name, in messages and in estimates, sweeps, gates, texts.
refused 2 "did you mean 'tinyllama-1.1b'" synth tinylama-1.1b Q4_0 -o x.gguf
refused 2 "in configs/sweeps such as quick" sweep -c none --dry-run
refused 2 "the program: copy, free" sweep -m nano:Q4_0 --speculate nothing --dry-run
"$BENCH" sweep -c default --mem none --dry-run >plan 2>err || fail "default: $(cat err)"
grep -q yi-1.5-9b:Q6_K plan || fail "not the sweep inside: $(cat plan)"
mkdir empty
"$BENCH" sweep -c quick --speculate copy --launches 1 --max-launches 1 --no-probe -o swept \
    --cache-dir cache >out 2>err || fail "sweep: $(cat err)"
[ "$(wc -l <swept/sweep.csv)" -gt 4 ] || fail "rows are missing: $(cat swept/sweep.csv)"
! grep -q '^speculate.*failed' swept/sweep.csv || fail "the text inside: $(cat swept/sweep.csv)"

# Charts are drawn with the style inside; without gnuplot as SVG, with a hint.
if command -v gnuplot >/dev/null; then
    "$BENCH" plot swept >out 2>err || fail "plot: $(cat err)"
    ls swept/*.svg >/dev/null || fail "no chart: $(ls swept)"
    [ ! -s err ] || fail "a hint where there is gnuplot: $(cat err)"
fi
draws_alone swept "$BENCH" plot swept
grep -q "copy swept to a machine with gnuplot and run \`gnuplot .*\.gp\` there" err ||
    fail "no hint: $(cat err)"
draws_alone bare "$BENCH" sweep -c quick --launches 1 --max-launches 1 --no-probe -t 1 -o bare \
    --cache-dir cache
[ -s bare/sweep.csv ] || fail "no table without gnuplot"
printf '#!/bin/sh\n' >empty/apt-get
chmod +x empty/apt-get
PATH=$PWD/empty "$BENCH" plot swept >out 2>err || fail "plot: $(cat err)"
grep -q "install it (apt-get install gnuplot-nox) and run \`bench plot swept\`" err ||
    fail "no hint of apt: $(cat err)"

# ---- before what is inside: installed, beside the program, the user's, and two variables
own() { # FOLDER NAME: a shape of that name
    mkdir -p "$1/models"
    cp "$SRC/configs/models/nano.yaml" "$1/models/$2.yaml"
}
own "$place/share/slmbench" mine
own "$place/share/slmbench" nano
comes_from models/nano.yaml "$place/bin/../share/slmbench/models/nano.yaml"
comes_from models/phi-2.yaml inside
comes_from models/mine.yaml "$place/bin/../share/slmbench/models/mine.yaml"
[ "$("$BENCH" files | grep -c '^models/nano.yaml ')" = 1 ] || fail "a shape is listed twice"
own "$place/bin/slmbench" nano
comes_from models/nano.yaml "$place/bin/slmbench/models/nano.yaml"
own "$HOME/.config/slmbench" nano
comes_from models/nano.yaml "$HOME/.config/slmbench/models/nano.yaml"
own "$place/config/slmbench" nano
XDG_CONFIG_HOME=$place/config comes_from models/nano.yaml "$place/config/slmbench/models/nano.yaml"
"$BENCH" decode -m mine:Q4_0 -t 1 -n 2 --cache-dir cache >out 2>err ||
    fail "a worker does not find the installed shape: $(cat err)"

chmod o+w "$HOME/.config/slmbench/models"
comes_from models/nano.yaml "$place/bin/slmbench/models/nano.yaml"
if [ "$(id -u)" = 0 ]; then
    chown 1234 "$place/bin/slmbench/models"
    comes_from models/nano.yaml "$place/bin/../share/slmbench/models/nano.yaml"
fi

own "$place/only" single
mv "$place/only/models" "$place/shapes"
SLMBENCH_SHAPES=$place/shapes "$BENCH" synth --list >list
[ "$(grep -c '^[a-z].* [BM] ' list)" = 1 ] && grep -q '^single ' list ||
    fail "SLMBENCH_SHAPES replaces nothing: $(cat list)"
SLMBENCH_SHAPES=$place/bin refused 2 "SLMBENCH_SHAPES names has no" synth nano Q4_0 -o x.gguf
SLMBENCH_PLOTS=$place/bin "$BENCH" plot swept >out 2>err && fail "no style was missed"
grep -q "no style.gp of charts" err || fail "$(cat err)"
