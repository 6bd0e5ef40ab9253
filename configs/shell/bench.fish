# Completion of `bench` in fish. The program itself knows the words: `bench complete`.
#
#     bench files shell/bench.fish > ~/.config/fish/completions/bench.fish
function __bench_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l reply ($words[1] complete $words[2..-1] "$current" 2>/dev/null)
    switch "$reply[1]"
        case files model
            __fish_complete_path "$current"
        case folders
            __fish_complete_directories "$current" ""
    end
    test (count $reply) -lt 2; or printf '%s\n' $reply[2..-1]
end
complete -c bench -f -a '(__bench_complete)'
