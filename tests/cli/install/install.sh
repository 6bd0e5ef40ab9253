#!/bin/bash
# SPDX-License-Identifier: MIT
#
# install.sh - the install script of a release, from a server on this machine: right and
# wrong sums, programs that are missing; the formula and the sums of ci/package/release
. "$SRC/tests/cli/lib.sh"
for tool in python3 curl sha256sum git; do
    command -v $tool >/dev/null || skip "no $tool"
done
machine=$(uname -m)
[ "$machine" = x86_64 ] || [ "$machine" = aarch64 ] || skip "no release for $machine"
unset http_proxy https_proxy
export no_proxy=127.0.0.1

mkdir release
for name in x86_64 aarch64; do # a program that stands for the static one
    printf '#!/bin/sh\nexec %q "$@"\n' "$BENCH" >release/bench-$name
    chmod 755 release/bench-$name
done
python3 -u -m http.server --bind 127.0.0.1 --directory release 0 >served 2>log &
server=$!
trap 'kill $server 2>/dev/null' EXIT
for _ in $(seq 100); do
    port=$(sed -n 's/^Serving HTTP on 127.0.0.1 port \([0-9]*\) .*/\1/p' served)
    [ -z "$port" ] || break
    sleep 0.05
done
url=http://127.0.0.1:$port

# ---- what ci/package/release writes, but for what is inside the programs
mkdir -p tree/ci/package
cp "$SRC/CMakeLists.txt" tree/
cp "$SRC"/ci/package/{release,install.sh} tree/ci/package/
printf '#!/bin/sh\necho "{}"\n' >tree/ci/package/sbom
chmod +x tree/ci/package/sbom
tree/ci/package/release release "$url/" >out 2>&1 || fail "release: $(cat out)"
(cd release && sha256sum -c SHA256SUMS >/dev/null) || fail "sums: $(cat release/SHA256SUMS)"
[ "$(wc -l <release/SHA256SUMS)" = 6 ] || fail "not the sums of 6 files: $(cat release/SHA256SUMS)"
! grep -q '@URL@' release/install.sh || fail "an address is missing"
sum=$(sha256sum <release/bench-aarch64 | cut -d' ' -f1)
grep -qF "sha256 \"$sum\"" release/slmbench.rb || fail "formula: $(cat release/slmbench.rb)"
grep -qF "url \"$url/bench-aarch64\"" release/slmbench.rb || fail "formula: $(cat release/slmbench.rb)"
! command -v ruby >/dev/null || ruby -c release/slmbench.rb >/dev/null || fail "no Ruby"

# ---- as people run it
curl -fsS "$url/install.sh" | sh -s -- --prefix "$WORK/home" >out 2>err || fail "install: $(cat err)"
grep -q "^installed $WORK/home/bin/bench: bench [0-9]" out || fail "install: $(cat out)"
"$WORK/home/bin/bench" --version >/dev/null
for file in share/man/man1/bench-sweep.1 share/bash-completion/completions/bench \
    share/zsh/site-functions/_bench share/fish/vendor_completions.d/bench.fish; do
    [ -s "home/$file" ] || fail "no $file: $(find home)"
done

# ---- nothing is installed where something is wrong
# refuses CODE TEXT ARGUMENTS...
refuses() {
    local want=$1 text=$2 code=0
    shift 2
    rm -rf other
    sh release/install.sh --prefix "$WORK/other" "$@" >out 2>err </dev/null || code=$?
    [ $code = "$want" ] || fail "install.sh $*: exit code $code, not $want: $(cat out err)"
    grep -qF -- "$text" err || fail "install.sh $*: no '$text': $(cat err)"
    [ ! -e other ] || fail "install.sh $*: something is installed: $(find other)"
}
cp "release/bench-$machine" kept
echo "# changed" >>"release/bench-$machine"
refuses 1 "the SHA-256 of bench-$machine is not the one in SHA256SUMS"
cp kept "release/bench-$machine"
sed -i "/bench-$machine\$/d" release/SHA256SUMS
refuses 1 "has no sum of bench-$machine"
rm release/SHA256SUMS
refuses 1 "$url/SHA256SUMS cannot be downloaded"
refuses 2 "no option is called '--force'" --force
refuses 2 "is no address" --url ftp://x
sed '$d' release/install.sh >cut.sh # a download that was cut
sh cut.sh --prefix "$WORK/other" >out 2>&1 && [ ! -s out ] && [ ! -e other ] || fail "half a script runs"
