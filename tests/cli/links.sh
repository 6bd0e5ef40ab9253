#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Results go into folders that others may have prepared: a link of a result's name is
# replaced or refused, never followed; a pipe of that name is no reason to wait; what is
# called gnuplot where the program happens to be started is not run. And no command writes
# onto what it reads.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
rows=$SRC/results/examples
example=$rows/granite-rapids-2vcpu
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
        --mem none --no-probe --no-charts --launches 1 --max-launches 1 --repeats 0 "$@" >out 2>err
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

# Neither is one cut that has a second name, is far too large, or is no table of a sweep.
for what in linked huge other; do
    cp -r s again
    cp again/sweep.csv kept.csv
    [ $what != linked ] || { printf 'an unfinished line' >>kept.csv && ln -f kept.csv again/sweep.csv; }
    [ $what != huge ] || truncate -s 1T again/sweep.csv
    [ $what != other ] || { printf 'x,y\n1,2' | tee kept.csv >again/sweep.csv; }
    sum=$(sha256sum <kept.csv)
    code=0
    timeout 60 "$BENCH" sweep --resume again --no-charts --no-probe >out 2>err || code=$?
    [ $code = 2 ] || fail "--resume of a table that is $what ended with $code: $(cat err)"
    [ "$(sha256sum <kept.csv)" = "$sum" ] || fail "--resume wrote to a table that is $what"
    [ $what != other ] || cmp kept.csv again/sweep.csv || fail "--resume cut a foreign table"
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

# ---- an output that is an input: found by device and inode, in all parts of a model and
# under the name that an output has until it is complete
mkdir inputs
cd inputs
stories=$SRC/tests/data/models/stories260K-f32.gguf
sums=$WORK.sums
state() { find . -type f ! -name out ! -name err -exec sha256sum {} + | sort; }
remember() { state >"$sums"; }

cp "$stories" m.gguf
chmod u+w m.gguf
ln -s m.gguf link.gguf
ln m.gguf hard.gguf
yes 'Once upon a time there was a model.' | head -n 200 >text.txt
cp m.gguf x.gguf.part
mkdir r
cp "$example/sweep.csv" r/history.csv
chmod -R u+w r
"$BENCH" history add db.sqlite "$example" >out 2>err || fail "history add: $(cat err)"
remember

# spared COMMAND...: refused in one sentence, and every file is as it was
spared() {
    refused 2 "would replace" "$@"
    state | cmp -s "$sums" - || fail "'$*' changed a file: $(state | diff "$sums" -)"
}

for out in m.gguf ./m.gguf link.gguf hard.gguf; do
    spared logits -m m.gguf --tokens 1,2 -o "$out"
    spared imatrix -m m.gguf --text text.txt -o "$out"
    spared gguf m.gguf --tensor output_norm.weight -o "$out"
    spared quantize m.gguf "$out" Q8_0
    spared pack m.gguf -o "$out"
done
spared imatrix -m m.gguf --text text.txt -o text.txt
spared quantize x.gguf.part x.gguf Q8_0
spared history changes db.sqlite --json db.sqlite --no-charts
spared history changes db.sqlite --markdown db.sqlite --no-charts
spared history changes r/history.csv -o r
spared history compare db.sqlite --rows r/history.csv --json r/history.csv
spared gate --b "$BENCH" -m m.gguf --json m.gguf --budget 10s
spared gate -m m.gguf --calibrate --json m.gguf --budget 10s
code=0
"$RESEARCH" record-trace m.gguf -m m.gguf -t 1 >out 2>err || code=$?
[ $code = 2 ] && grep -q "would replace" err || fail "record-trace onto its model: $code $(cat err)"
cmp -s m.gguf "$stories" || fail "record-trace destroyed its model"

# Every part of a split model, and every file of a folder.
if command -v python3 >/dev/null; then
    python3 "$SRC/tests/support/models/split_gguf.py" "$SRC/tests/data/models/llama.gguf" sh 3
    python3 "$SRC/tests/support/models/make_hf_folder.py" "$SRC/tests/data/models/llama.gguf" folder --type F16
    remember
    for part in sh-*.gguf; do
        spared logits -m sh-00001-of-00003.gguf --tokens 1 -o "$part"
        spared quantize sh-00001-of-00003.gguf "$part" Q8_0
        spared pack sh-00001-of-00003.gguf -o "$part"
    done
    for file in folder/*; do
        spared logits -m folder --tokens 1 -o "$file"
        spared quantize folder "$file" Q8_0
        spared pack folder -o "$file"
    done
fi

# And what is no input is written.
"$BENCH" logits -m m.gguf --tokens 1 -o other >out 2>err || fail "$(cat err)"
[ -s other ] || fail "nothing was written"
rm -f "$sums"
cd ..

# ---- what root makes for somebody is theirs: files, folders on the way, databases
if [ "$(id -u)" = 0 ]; then
    mkdir theirs
    chown 1234:1234 theirs
    for_them() {
        SUDO_UID=1234 SUDO_GID=1234 timeout 100 "$BENCH" "$@" >out 2>err || fail "$*: $(cat err)"
    }
    for_them synth nano Q4_0 -o theirs/nano.gguf
    SLMBENCH_CACHE=theirs/cache/of/models for_them logits -m nano:Q8_0 --tokens 1 -o theirs/logits.f32
    for_them quantize "$model" theirs/stories.gguf Q8_0
    for_them pack "$model:Q8_0" -o theirs/packed.gguf
    for_them imatrix -m "$model" --text inputs/text.txt -o theirs/matrix.gguf
    for_them quality -m "$model:Q4_0" --reference "$model" --text inputs/text.txt --ctx 64 --chunks 2 \
        --cache-dir theirs/answers/of/models -o theirs/quality
    for_them history add theirs/history.db "$example"
    for_them sweep -m "$model" --threads 1 --ctx 0 --prefill none -n 2 --budget 0.05 --mem none --no-probe \
        --repeats 0 -o theirs/made/sweep
    [ -s theirs/made/sweep/sweep.csv ] || fail "no sweep was made"
    [ -d theirs/cache/of/models ] || fail "no model was made: $(find theirs)"
    others=$(find theirs ! -uid 1234 -o ! -gid 1234)
    [ -z "$others" ] || fail "root's, though made for another user: $others"
fi

# ---- a file that another user has put where root is going to write stays theirs alone;
# in their own folder root may add to theirs
if [ "$(id -u)" = 0 ]; then
    mkdir -m 1777 open
    cp "$example/sweep.csv" "$example/machine.json" open/
    "$BENCH" history add open/theirs.db "$example" >out 2>err || fail "history add: $(cat err)"
    "$BENCH" history add open/own.db "$example" >out 2>err || fail "history add: $(cat err)"
    for name in model.gguf.part packed.gguf.part matrix.gguf.part own.db-journal .choose.lock .lock samples.csv; do
        echo theirs >open/$name
    done
    chown 4321:4321 open/* open/.??*
    chown 0:0 open/own.db
    chmod a+rw open/*
    (cd open && sha256sum * .??*) >sums
    not_written() { # NAME COMMAND...
        refused 2 "open/$1 belongs to another user" "${@:2}"
        (cd open && sha256sum --quiet -c ../sums) >out 2>&1 || fail "'${*:2}' wrote to another user's file: $(cat out)"
        [ "$(cd open && ls -A | wc -l)" = "$(wc -l <sums)" ] || fail "'${*:2}' left files: $(ls -A open)"
    }
    not_written model.gguf.part quantize "$model" open/model.gguf F16
    not_written packed.gguf.part pack "$model" -o open/packed.gguf
    not_written matrix.gguf.part imatrix -m "$model" --text inputs/text.txt -o open/matrix.gguf
    not_written theirs.db history add open/theirs.db "$example"
    not_written own.db-journal history add open/own.db "$example"
    not_written .lock sweep --resume open --no-charts --no-probe
    code=0
    "$BENCH" choose -m "$model" --calibration inputs/text.txt --chunks 1 -o open >out 2>err || code=$?
    [ $code = 2 ] && grep -q "open/.choose.lock belongs to another user" err && [ "$(cat open/.choose.lock)" = theirs ] ||
        fail "choose with another user's lock: $code $(cat err)"
    chown 4321:4321 open
    chmod 755 open
    rm open/*.part open/.choose.lock open/*-journal
    "$BENCH" history add open/theirs.db "$SRC/results/examples/granite-rapids-2vcpu-busy" >out 2>err ||
        fail "history add in its user's folder: $(cat err)"
fi
