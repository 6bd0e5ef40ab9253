#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Results go into folders that others may have prepared: a link of a result's name is
# replaced or refused, never followed; a pipe of that name is no reason to wait; what is
# called gnuplot where the program happens to be started is not run.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
rows=$SRC/results/examples
example=$(ls -d "$rows"/*/ | head -1)
ln -s "$WORK/precious" probe.link && rm probe.link || skip "no symbolic links here"

# trap_in DIR NAME...: DIR holds links of those names to a file that must stay as it is
trap_in() {
    local dir=$1 name
    shift
    mkdir -p "$dir"
    echo precious >precious
    for name in "$@"; do ln -sf "$WORK/precious" "$dir/$name"; done
}

# is_whole WHAT: nothing was written through a link
is_whole() {
    [ "$(cat precious)" = precious ] || fail "$1 wrote through a link"
}

# is_file NAME...: results that are files of their own
is_file() {
    local name
    for name in "$@"; do
        [ -f "$name" ] && [ ! -L "$name" ] || fail "$name is no file of its own: $(ls -l "$name" 2>&1)"
    done
}

# Charts, with a gnuplot that says where it runs and writes what gnuplot writes.
mkdir tools
cat >tools/gnuplot <<'END'
#!/bin/sh
echo "$PWD" >>"$SLM_TEST_SAYS"
for form in svg png; do echo drawn >"${1%.gp}.$form"; done
END
chmod +x tools/gnuplot
export SLM_TEST_SAYS=$WORK/says
cp -r "$example" plot
chmod -R u+w plot
charts=$(cd plot && ls ./*.gp)
[ -n "$charts" ] || fail "the example has no charts"
for gp in $charts; do
    trap_in plot "$gp" "${gp%.gp}.csv" "${gp%.gp}.svg" "${gp%.gp}.png"
done
PATH=$WORK/tools:$PATH "$BENCH" plot plot >out 2>err || fail "plot: $(cat err)"
is_whole "bench plot"
[ -s says ] || fail "gnuplot did not run"
for gp in $charts; do is_file "plot/$gp" "plot/${gp%.gp}.csv" "plot/${gp%.gp}.svg" "plot/${gp%.gp}.png"; done
[ -z "$(find plot -name '.*' -mindepth 1)" ] || fail "left behind: $(ls -A plot)"
! grep -qx "$WORK/plot" says || fail "gnuplot drew where others may have put links"

# Neither the folder of the results nor the current one is searched for gnuplot.
mkdir here
printf '#!/bin/sh\ntouch %s/ran\n' "$WORK" >here/gnuplot
chmod +x here/gnuplot
cp here/gnuplot plot/gnuplot
for path in "" "." ":" "here" ".:/nowhere" "/nowhere::"; do
    (cd here && PATH=$path "$BENCH" plot ../plot >../out 2>../err) || true
    PATH=$path "$BENCH" plot plot >out 2>err || true
    [ ! -e ran ] || fail "PATH='$path': a gnuplot of the current folder ran"
    grep -q "gnuplot is not installed" err || fail "PATH='$path': $(cat err)"
done

# A sweep: its tables are appended to, so a link in their place is refused.
sweep() {
    timeout 100 "$BENCH" sweep -m "$model" --threads 1 --ctx 0 --prefill none -n 2 --budget 0.05 \
        --mem none --no-probe --no-charts --repeats 0 "$@" >out 2>err
}
for name in samples.csv .lock; do
    rm -rf s
    trap_in s $name
    code=0
    sweep -o s || code=$?
    [ $code = 2 ] || fail "sweep with a link $name ended with $code"
    grep -q "s/$name is a link" err || fail "sweep with a link $name: $(cat err)"
    is_whole "sweep"
done
rm -rf s
trap_in s machine.json quality.csv
sweep -o s || fail "sweep: $(cat err)"
is_whole "sweep"
is_file s/machine.json
for name in sweep.csv samples.csv; do
    cp -r s again
    trap_in again $name
    code=0
    timeout 60 "$BENCH" sweep --resume again --no-charts --no-probe >out 2>err || code=$?
    [ $code = 2 ] || fail "--resume with a link $name ended with $code: $(cat err)"
    is_whole "sweep --resume"
    rm -rf again
done

# Files that are named: what was there is replaced, whatever it led to.
trap_in o logits.f32 tensor.f32 history.json history.md history_series.csv profile.yaml
"$BENCH" logits -m "$model" --tokens 1,2 -o o/logits.f32 >out 2>err || fail "logits: $(cat err)"
"$BENCH" gguf "$model" --tensor output_norm.weight -o o/tensor.f32 >out 2>err || fail "gguf: $(cat err)"
is_whole "an extraction"
is_file o/logits.f32 o/tensor.f32
"$BENCH" history changes "$rows" -o o --no-charts >out 2>err || fail "history: $(cat err)"
is_whole "history"
is_file o/history.json o/history.md

# A pipe that somebody has left in the place of a result.
rm -f o/history.md
mkfifo o/history.md
timeout 60 "$BENCH" history changes "$rows" -o o --no-charts >out 2>err || fail "a pipe in the place of a page: $? $(cat err)"
is_file o/history.md

# What a user names may be standard output, a device, or a shell's pipe.
"$BENCH" logits -m "$model" --tokens 1 -o - >first || fail "logits -o -"
"$BENCH" logits -m "$model" --tokens 1 -o /dev/stdout >second || fail "logits -o /dev/stdout"
"$BENCH" logits -m "$model" --tokens 1 -o /dev/null || fail "logits -o /dev/null"
"$BENCH" logits -m "$model" --tokens 1 -o >(cat >third) || fail "logits -o >()"
[ -s first ] && cmp first second || fail "standard output is not what is written"
[ -c /dev/null ] || fail "/dev/null is no device any more"

# The kernels' JSON is written by another program, under the name that it is given.
trap_in k kernels.json .kernels.json.part kernels.csv
"$BENCH" kernels --formats q8_0 --ops gemv --weights hot --threads 1 --repetitions 1 --min-time 0.001 --no-charts \
    -o k >out 2>err || [ $? = 3 ] || grep -q bench_kernels err || fail "kernels: $(cat err)"
is_whole "kernels"
[ ! -s out ] || is_file k/kernels.json k/kernels.csv

# The research program's recordings and tables.
trap_in r trace.txt gate_simulation.csv gate_simulation.md
"$RESEARCH" record-trace r/trace.txt -m "$model" -t 1 -n 100 >out 2>err || fail "record-trace: $(cat err)"
is_whole "record-trace"
is_file r/trace.txt
