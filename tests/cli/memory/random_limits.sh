#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Random points - memory limit, context, quantisation - with weights as `auto` chooses: a
# point runs or is planned not to fit, and none is killed for memory. Every fifth is a
# program that generates while its limit is lowered: it goes on.
#
# Minutes long: SLM_TEST_LONG=1 runs it, or by hand, with another seed, or a shape, limits
# in MiB, and the number of points (some hours and 10 GB of disk for this one):
#
#     BENCH=$PWD/build/release/bench SRC=$PWD WORK=/tmp/limits \
#         bash tests/cli/memory/random_limits.sh [SEED [yi-1.5-9b 3072 9216 [50]]]
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache SLMBENCH_LOCK=none SLMBENCH_PROGRESS=none
[ "${SLM_TEST_LONG:-}" = 1 ] || [ $# -gt 0 ] || skip "minutes long: SLM_TEST_LONG=1 runs it"

seed=${1:-$(($(date +%s) % 1000000))}
shape=${2:-$WORK/deep.yaml}
low=${3:-96} high=${4:-512} # MiB
points=${5:-50}
quants=(Q4_0 Q4_K_M Q5_K_M Q6_K Q8_0)
other_programs=256 # MiB that generate leaves them
echo "seed $seed: $points points of $(basename "$shape"), $low to $high MiB"

# 24 layers, 170 MB as Q4_K_M
cat >deep.yaml <<'EOF'
arch: llama
n_layers: 24
n_embd: 1024
n_ff: 2816
n_heads: 16
n_kv_heads: 4
head_dim: 64
n_vocab: 8192
n_ctx_train: 2048
rope_base: 10000
norm_eps: 1e-5
EOF

# draw N: a number below N, 2^23 at most, in $drawn; the same after the same seed
state=$((seed & 0x7fffffff))
draw() {
    state=$(((state * 1103515245 + 12345) & 0x7fffffff))
    drawn=$(((state >> 8) % $1))
}

field() { awk -v name="$1" '$1 == name { print $2 }' row; }

# ---- a group to lower the limit of
memory_group limits || skip "no memory group can be made here"
trap 'rmdir "$box"' EXIT

# Bytes of the group that are no cached file.
held() {
    local used cached
    used=$(cat "$box"/memory.current "$box"/memory.usage_in_bytes 2>/dev/null | head -n 1)
    cached=$(awk '/^(in)?active_file / { n += $2 } END { print n + 0 }' "$box/memory.stat")
    echo $((used - cached))
}

n_killed() { cat "$box"/memory.events "$box"/memory.oom_control 2>/dev/null | awk '$1 == "oom_kill" { print $2 }'; }

# lower PID TARGET: as whoever takes memory away step by step: never below what is held,
# which is at its least while layers are given back to be streamed. Until TARGET, or
# nothing more is given for a while.
lower() {
    local pid=$1 target=$2 most now to least idle=0
    least=$(cat "$limit")
    while [ "$least" -gt "$target" ] && [ $idle -lt 10 ] && kill -0 "$pid" 2>/dev/null; do
        most=0
        for _ in 1 2 3 4 5 6; do
            now=$(held)
            [ "$now" -le "$most" ] || most=$now
            sleep 0.2
        done
        to=$((most + (8 << 20)))
        [ $to -gt "$target" ] || to=$target
        idle=$((idle + 1))
        if [ $to -lt "$least" ] && echo $to 2>/dev/null >"$limit"; then
            [ $((least - to)) -lt $((1 << 20)) ] || idle=0
            least=$to
        fi
    done
}

# wait_for SECONDS BYTES PID: until more than so many have been printed
wait_for() {
    for _ in $(seq $(($1 * 5))); do
        [ "$(wc -c <out)" -le "$2" ] || return 0
        kill -0 "$3" 2>/dev/null || return 1
        sleep 0.2
    done
    return 1
}

# ---- points
n_streamed=0 n_lowered=0 n_given_back=0
measure() { # MIB CTX
    local code=0 status
    "$BENCH" decode -m model.gguf --ctx "$2" -n 8 --budget 2 --mem "$1M" --all >row 2>err || code=$?
    [ $code != 3 ] || skip "$(cat err)"
    status=$(field status)
    [ $code -le 1 ] || fail "$what: exit $code: $(cat err row)"
    case $status in
    ok | partial) ;;
    no_fit)
        echo "$what: does not fit"
        return
        ;;
    *) fail "$what: $status: $(cat row err)" ;;
    esac
    [ "$(field mem_peak_bytes)" -le $(($1 << 20)) ] || fail "$what: more than the limit was used: $(cat row)"
    [ "$(field n_streamed)" = "" ] || [ "$(field n_streamed)" = 0 ] || n_streamed=$((n_streamed + 1))
    echo "$what: $(field residency), $(field n_streamed) streamed, $(field tok_per_s) tok/s"
}

generate_with_less() { # MIB CTX TO_MIB
    local pid code=0 before said
    before=$(n_killed)
    echo $((($1 + other_programs) << 20)) >"$limit" # and none runs here
    : >out
    (
        echo "$BASHPID" >"$box/cgroup.procs"
        exec "$BENCH" generate -m model.gguf -p "1 2 3" --ctx "$2" -n $(($2 - 4))
    ) >out 2>err &
    pid=$!
    if wait_for 600 8 $pid; then
        lower $pid $(($3 << 20))
        said=$(wc -c <out)
        wait_for 600 $((said + 8)) $pid || ! kill -0 $pid 2>/dev/null || fail "$what: it does not go on: $(cat err)"
        kill -INT $pid 2>/dev/null || true
    fi
    wait $pid || code=$?
    [ "$(n_killed)" = "$before" ] || fail "$what: killed for memory: exit $code: $(cat err)"
    if [ $code = 2 ] || [ $code = 3 ] || [ $code = 1 ]; then
        grep -qi 'memory' err || fail "$what: exit $code: $(cat err)"
        echo "$what: does not fit"
        return
    fi
    [ $code = 130 ] || [ $code = 0 ] || fail "$what: exit $code: $(cat err)"
    n_lowered=$((n_lowered + 1))
    ! grep -q 'memory is lacking' err || n_given_back=$((n_given_back + 1))
    echo "$what: lowered to $(($(cat "$limit") >> 20)) MiB; $(grep -c 'memory is lacking' err || true) times weights were given back"
}

# All points are drawn first and taken by quantisation: one model is on the disk at a time.
case $shape in
*/*) most_ctx=1900 ;;
*) most_ctx=3900 ;;
esac
for ((i = 0; i < points; i++)); do
    draw ${#quants[@]} && quant=${quants[drawn]}
    draw $((high - low + 1)) && mib=$((low + drawn))
    draw 4 && part=$drawn # long contexts are the rarer ones
    draw $((most_ctx >> part)) && ctx=$drawn
    draw $((mib - low + 1)) && to=$((low + drawn))
    echo "$quant $mib $ctx $to $((i % 5 == 4))"
done >points
for quant in "${quants[@]}"; do
    grep "^$quant " points >these || continue
    "$BENCH" synth "$shape" "$quant" -o model.gguf >/dev/null
    sync model.gguf
    while read -r _ mib ctx to lowered <&3; do
        if [ "$lowered" = 1 ]; then
            what="seed $seed: $quant, context $((most_ctx + 100)), $mib MiB lowered to $to MiB"
            generate_with_less "$mib" $((most_ctx + 100)) "$to"
        else
            what="seed $seed: $quant, context $ctx, $mib MiB"
            measure "$mib" "$ctx"
        fi
    done 3<these
    rm model.gguf
done
echo "$n_streamed points were streamed; $n_lowered went on with less, $n_given_back of them gave weights back"
if [ "$points" -ge 50 ]; then
    [ $n_streamed -ge 3 ] || fail "seed $seed: only $n_streamed points were streamed"
    [ $n_given_back -ge 1 ] || fail "seed $seed: nobody gave weights back"
fi
