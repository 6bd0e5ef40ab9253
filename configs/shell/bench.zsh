#compdef bench
# Completion of `bench` in zsh. The program itself knows the words: `bench complete`.
# Save this as _bench in a folder of $fpath:
#
#     bench files shell/bench.zsh > ~/.zfunc/_bench
_bench() {
    local -a reply offered
    local line kind
    reply=("${(@f)$(${(Q)~words[1]} complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    kind=$reply[1]
    for line in "${(@)reply[2,-1]}"; do
        offered+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    case $kind in
    folders) _files -/ ;;
    files | model) _files ;;
    esac
    if (( $#offered )); then
        if [[ $kind == model ]]; then
            _describe -t words word offered -S ''
        else
            _describe -t words word offered
        fi
    fi
}
[[ $funcstack[1] != _bench ]] || _bench "$@"
(( ! $+functions[compdef] )) || compdef _bench bench
