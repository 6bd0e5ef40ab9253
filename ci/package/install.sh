#!/bin/sh
# install.sh - the static program of a release, into a folder of yours
#
# usage: curl -fsSL @URL@/install.sh | sh
#        curl -fsSL @URL@/install.sh | sh -s -- [--prefix DIR] [--url URL]
#
# Downloads SHA256SUMS and the program for this CPU, compares their sums, and installs
# DIR/bin/bench with its manual pages and completion (DIR: ~/.local, for root /usr/local).
# Nothing is installed where a sum differs. ci/package/release puts the address of a
# release in place of the two signs around URL.
set -eu

main() {
    url=@URL@
    prefix=${HOME:-}/.local
    [ "$(id -u)" != 0 ] || prefix=/usr/local
    while [ $# -gt 0 ]; do
        case $1 in
        --prefix | --url)
            [ $# -ge 2 ] || die 2 "$1 needs a value"
            case $1 in --prefix) prefix=$2 ;; --url) url=$2 ;; esac
            shift 2
            ;;
        -h | --help)
            echo "usage: install.sh [--prefix DIR] [--url URL]"
            exit
            ;;
        *) die 2 "no option is called '$1'; --prefix DIR and --url URL are" ;;
        esac
    done
    case $prefix in /?*) ;; *) die 2 "'$prefix' is no absolute folder; name one with --prefix" ;; esac
    case $url in http://* | https://*) ;; *) die 2 "'$url' is no address; name one with --url" ;; esac
    [ "$(uname -s)" = Linux ] || die 3 "bench runs on Linux only, and this is $(uname -s)"
    case $(uname -m) in
    x86_64 | amd64) name="bench-x86_64" ;;
    aarch64 | arm64) name="bench-aarch64" ;;
    *) die 3 "there is no program for a CPU of type $(uname -m); build it from the sources" ;;
    esac
    command -v sha256sum >/dev/null || die 3 "sha256sum is missing (package coreutils)"

    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
    download SHA256SUMS
    download "$name"
    # The one line of this program, whose name has nothing around it.
    grep -E "^[0-9a-f]{64} [ *]$name\$" "$work/SHA256SUMS" >"$work/sum" ||
        die 1 "$url/SHA256SUMS has no sum of $name"
    (cd "$work" && sha256sum -c sum >/dev/null 2>&1) ||
        die 1 "the SHA-256 of $name is not the one in SHA256SUMS: nothing was installed"
    chmod 755 "$work/$name"
    "$work/$name" --version >/dev/null || die 1 "$name does not run here: nothing was installed"
    install_all "$work/$name"
}

die() { # CODE MESSAGE...
    code=$1
    shift
    echo "install.sh: $*" >&2
    exit "$code"
}

download() {
    if command -v curl >/dev/null; then
        curl -fsSL --retry 2 -o "$work/$1" "$url/$1"
    elif command -v wget >/dev/null; then
        wget -q -O "$work/$1" "$url/$1"
    else
        die 3 "curl or wget is needed"
    fi || die 1 "$url/$1 cannot be downloaded"
}

# Only a whole program gets the name.
install_all() {
    share=$prefix/share
    mkdir -p "$prefix/bin" "$share/man/man1" "$share/bash-completion/completions" \
        "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
    cp "$1" "$prefix/bin/.bench.part"
    mv "$prefix/bin/.bench.part" "$prefix/bin/bench"
    bench=$prefix/bin/bench
    "$bench" man -o "$share/man/man1"
    "$bench" files shell/bench.bash >"$share/bash-completion/completions/bench"
    "$bench" files shell/bench.zsh >"$share/zsh/site-functions/_bench"
    "$bench" files shell/bench.fish >"$share/fish/vendor_completions.d/bench.fish"
    echo "installed $bench: $("$bench" --version)"
    case :$PATH: in
    *:"$prefix/bin":*) echo "next: bench doctor" ;;
    *) echo "next: $bench doctor; $prefix/bin is not in PATH yet" ;;
    esac
}

main "$@" # the last line: a download that was cut runs nothing
