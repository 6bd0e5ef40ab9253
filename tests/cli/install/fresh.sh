#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Systems with little in them, as containers, cron and ssh have: no locale or another one, no
# HOME, no TERM, settings of the user's own for gnuplot, no /sys, nothing that can be written
# but the folder of the results. Charts are the same, and what is not known is named.
. "$SRC/tests/cli/lib.sh"

bare=(env -i "PATH=$PATH" SLMBENCH_LOCK=none SLMBENCH_PROGRESS=none)
run() { # ENVIRONMENT... -- ARGUMENTS...: bench with nothing else in its environment
    local set=()
    while [ "$1" != -- ]; do
        set+=("$1")
        shift
    done
    shift
    "${bare[@]}" "${set[@]}" "$BENCH" "$@" >out 2>err </dev/null
}

# ---- charts
cp -r "$SRC/results/examples/zen5-2vcpu" swept
chmod -R u+w swept

# A gnuplot that tells its locale, and writes what gnuplot writes.
mkdir tools
cat >tools/gnuplot <<'END'
#!/bin/sh
locale charmap >"$SLM_TEST_SAYS" 2>&1
locale | grep '^LC_NUMERIC=' >>"$SLM_TEST_SAYS"
echo "term: ${GNUTERM:-}" >>"$SLM_TEST_SAYS"
for form in svg png; do echo drawn >"${1%.gp}.$form"; done
END
chmod +x tools/gnuplot
printf 'UTF-8\nLC_NUMERIC="C.UTF-8"\nterm: \n' >wanted
for locale in LANG= LC_ALL=C LC_ALL=POSIX LANG=de_DE.UTF-8 LC_ALL=de_DE.ISO-8859-1 LC_NUMERIC=de_DE.UTF-8; do
    cp -r swept faked
    PATH=$WORK/tools:$PATH run PATH="$WORK/tools:$PATH" SLM_TEST_SAYS="$WORK/says" "$locale" \
        GNUTERM=x11 -- plot faked || fail "$locale: $(cat err)"
    cmp wanted says || fail "$locale: gnuplot ran with $(cat says)"
    rm -r faked
done

# The real one, with and without settings of the user's: the same pictures.
if command -v gnuplot >/dev/null; then
    mkdir home
    printf "set decimalsign ','\nset border 0\nset grid\nset size 0.5\nset title 'mine'\n" >home/.gnuplot
    run LANG=C.UTF-8 -- plot swept || fail "$(cat err)"
    cp -r swept plain
    for environment in LANG=C LC_ALL=de_DE.UTF-8 HOME="$WORK/home" HOME=/nowhere; do
        run "$environment" -- plot swept || fail "$environment: $(cat err)"
        [ ! -s err ] || fail "$environment: $(cat err)"
        for svg in plain/*.svg; do
            cmp "$svg" "swept/${svg#plain/}" || fail "$environment draws another ${svg#plain/}"
        done
    done
fi

# ---- a measurement with an empty environment: no HOME, no PATH, no TERM
env -i SLMBENCH_LOCK=none "$BENCH" decode -m nano:Q4_0 -t 1 -n 4 --cache-dir "$WORK/cache" \
    >out 2>err </dev/null || fail "empty environment: $(cat err)"
code=0
env -i SLMBENCH_LOCK=none "$BENCH" quantize nano:Q8_0 x.gguf Q4_0 >out 2>err </dev/null || code=$?
[ "$code" != 0 ] && [ "$(wc -l <err)" = 1 ] || fail "empty environment, quantize: $code, $(cat err)"

# What needs no file works; what makes one ends with a sentence before it measures.
env -i "$BENCH" plan -m nano:Q4_0 --machine "$SRC/results/examples/zen5-2vcpu/machine.json" \
    >out 2>err || fail "empty environment, plan: $(cat err)"
env -i "$BENCH" predict -m nano:Q4_0 --gbps 38 --gops 700 --mem 8G >out 2>err ||
    fail "empty environment, predict: $(cat err)"
env -i SLMBENCH_LOCK=none "$BENCH" sweep -c quick -m nano:Q4_0 --dry-run >out 2>err ||
    fail "empty environment, sweep --dry-run: $(cat err)"
for what in "sweep -c quick -m nano:Q4_0 -o $WORK/no-home" "tokenize -m nano:Q4_0 x"; do
    code=0
    # shellcheck disable=SC2086 # words
    env -i SLMBENCH_LOCK=none "$BENCH" $what >out 2>err </dev/null || code=$?
    [ "$code" = 2 ] && grep -q 'no cache directory.*SLMBENCH_CACHE' err && [ ! -e "$WORK/no-home" ] ||
        fail "empty environment, $what: $code, $(cat err)"
done

# ---- machines that do not tell
# without WHAT COMMAND...: with nothing in the folders WHAT, in namespaces of its own
without() {
    local folders=$1
    shift
    # shellcheck disable=SC2016 # expanded inside
    unshare --mount --propagation private sh -c '
        for folder in $1; do mount -t tmpfs -o size=4k tmpfs "$folder" || exit 99; done
        shift
        exec "$@"' without "$folders" "$@" >out 2>err </dev/null
}
unset HWLOC_SYNTHETIC # a described machine is not read from /sys
if ! without /sys true; then
    echo "no namespaces to hide /sys in"
else
    "$BENCH" topo >shown
    for folders in /sys /sys/devices/system/cpu /sys/devices; do
        without $folders "$BENCH" topo || fail "without $folders: topo: $(cat err)"
        [ ! -s err ] || fail "without $folders: $(cat err)"
        grep -q '^  - Topology: .*/sys/devices/system/cpu' out || fail "no word of doubt: $(cat out)"
        # what the C library and /proc know, is known
        for label in model CPUs 'CPUs allowed'; do
            diff <(grep "^  $label  " shown) <(grep "^  $label  " out) ||
                fail "without $folders another '$label'"
        done
        grep -q '^  - Threads: use [1-9][0-9]*: .* presumed core' out || fail "$(cat out)"
        without $folders "$BENCH" topo --json || fail "without $folders: JSON: $(cat err)"
        without $folders "$BENCH" decode -m nano:Q4_0 -t 1 -n 4 --cache-dir "$WORK/cache" ||
            fail "without $folders: decode: $(cat err)"
        ! grep hwloc err || fail "hwloc printed something"
    done
    # Nothing can be written but here, and there are no /dev/shm and no pseudo terminals.
    export WORK
    # shellcheck disable=SC2016
    unshare --mount --propagation private sh -c '
        for folder in /dev/shm /dev/pts; do
            [ ! -d $folder ] || mount -t tmpfs -o ro,size=4k tmpfs $folder || exit 99
        done
        for folder in /tmp /run; do
            mount --bind $folder $folder && mount -o remount,bind,ro $folder || exit 99
        done
        mount --bind "$WORK" "$WORK" && mount -o remount,bind,rw "$WORK" || exit 99
        exec env -u SLMBENCH_LOCK -u TMPDIR "$BENCH" sweep -c quick --mem none -t 1 --launches 1 \
            --max-launches 1 --cache-dir "$WORK/cache" -o "$WORK/read-only"' >out 2>err </dev/null ||
        [ $? = 99 ] || fail "read-only /tmp: $(cat err)"
fi
