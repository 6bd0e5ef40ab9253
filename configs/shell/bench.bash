# Completion of `bench` in bash. The program itself knows the words: `bench complete`.
#
#     source <(bench files shell/bench.bash)
_bench() {
    local line=${COMP_LINE:0:COMP_POINT} program=${COMP_WORDS[0]/#\~\//$HOME/} words reply word broken
    read -ra words <<<"$line"
    [[ $line != *[[:space:]] ]] || words+=("")
    word=${words[${#words[@]} - 1]}
    mapfile -t reply < <("$program" complete "${words[@]:1}" 2>/dev/null)
    COMPREPLY=("${reply[@]:1}")
    COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
    case ${reply[0]} in
    files | model)
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null
        ;;
    folders)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        compopt -o filenames 2>/dev/null
        ;;
    esac
    # A shape may go on with ":QUANT".
    [[ ${reply[0]} != model || $word == *:* ]] || compopt -o nospace 2>/dev/null
    # bash replaces what follows the last of these signs alone.
    for broken in : =; do
        [[ $word != *$broken* || $COMP_WORDBREAKS != *$broken* ]] ||
            COMPREPLY=("${COMPREPLY[@]#"${word%"$broken"*}$broken"}")
    done
}
complete -F _bench bench
