# SPDX-License-Identifier: MIT
#
# The workflow files are sound.
#
# What is checked without anything else: keys, jobs, expressions, pinned actions, that
# scripts are sound and know the options they use (workflows.py). Besides: actionlint
# and shellcheck where they are installed, and the schemas of SchemaStore and GitLab if
# SLM_SCHEMA_GITHUB and SLM_SCHEMA_GITLAB name those files.
. "${SRC:?}/tests/cli/lib.sh" || exit 1
python=$(python_with_yaml) || skip "no python3-yaml"
workflows() { "$python" "$SRC/tests/support/workflows.py" "$@"; }
github=("$SRC/.github/workflows/ci.yml" "$SRC/ci/github/gate.yml" "$SRC/ci/github/nightly.yml"
    "$SRC/.github/workflows/full.yml")
gitlab=("$SRC/ci/gitlab/gate.yml" "$SRC/ci/gitlab/nightly.yml" "$SRC/templates/gate.yml")

# ---- sound
workflows check "$BENCH" >out || fail "$(cat out)"
if command -v actionlint >/dev/null; then
    actionlint -config-file "$SRC/.github/actionlint.yaml" "${github[@]}" ||
        fail "actionlint complains"
fi
[ -z "${SLM_SCHEMA_GITHUB:-}" ] || workflows schema "$SLM_SCHEMA_GITHUB" "${github[@]}" ||
    fail "not GitHub's schema"
[ -z "${SLM_SCHEMA_GITLAB:-}" ] || workflows schema "$SLM_SCHEMA_GITLAB" "${gitlab[@]}" ||
    fail "not GitLab's schema"

# ---- what is not sound is found: breaks FILE SED-SCRIPT TEXT
mkdir -p broken/github broken/gitlab broken/templates
breaks() {
    local file=broken/$(basename "$(dirname "$1")")/broken.yml
    case $file in broken/workflows/*) file=broken/github/broken.yml ;; esac
    sed "$2" "$1" >$file
    ! cmp -s "$1" $file || fail "'$2' changes nothing in $1"
    ! workflows check "$BENCH" "$PWD/$file" >out || fail "'$2' in $1 goes unnoticed"
    grep -qF -- "$3" out || fail "'$2' in $1 is not called '$3': $(cat out)"
}
breaks "${github[0]}" 's/--informing/--informin/' "ci/gate has no option --informin"
breaks "${github[0]}" 's|\.ci/run|.ci/runs|' "there is no file .ci/runs"
breaks "${github[0]}" 's/github.event.before/git.event.before/' "unknown context 'git'"
breaks "${github[0]}" 's/"$BEFORE"/${{ github.head_ref }}/' "lets others write it"
breaks "${github[0]}" 's/contents: read/contents: write/' "permissions are to be"
breaks "${github[0]}" 's/@[0-9a-f]\{40\} # /@/' "is not pinned"
breaks "${github[0]}" 's/^    timeout-minutes.*//' "lacks 'timeout-minutes'"
breaks "${github[0]}" 's/^    runs-on/    needs: build\n    runs-on/' "needs the job 'build'"
breaks "${github[1]}" 's/inputs.against/inputs.other/' "there is no inputs.other"
breaks "${github[2]}" 's/steps.measure/steps.other/' "there is no steps.other"
breaks "${github[2]}" 's/bench sweep/bench sweeps/' "there is no \`bench sweeps\`"
breaks "${github[2]}" 's/^          fi$//' "syntax error"
breaks "${gitlab[0]}" 's/--budget/--budge/' "ci/gate has no option --budge"
breaks "${gitlab[0]}" 's/paths: \[gate\]/paths: [other]/' "is in no artifact"
breaks "${gitlab[1]}" 's/bench history changes/bench history change/' "there is no \`bench history change\`"
breaks "${gitlab[1]}" 's/history compare "$HISTORY" --rows/history compare "$HISTORY" --row/' "history compare has no option --row"
breaks "${gitlab[1]}" 's/resource_group/resource_groups/' "unknown key 'resource_groups'"
breaks "${gitlab[2]}" 's/--calibrate/--calibrates/' "gate has no option --calibrates"
breaks "${gitlab[2]}" 's/RUN: $.*/RUN: x/' "does not use its input 'run'"
mkdir action
sed 's/inputs.detect/inputs.detects/' "$SRC/action.yml" >action/action.yml
workflows check "$BENCH" "$PWD/action/action.yml" >out && fail "action.yml: a wrong input goes unnoticed"
grep -q "there is no inputs.detects" out && grep -q "'detect' is not described, or not used" out ||
    fail "a wrong input of action.yml: $(cat out)"
rm -rf "$WORK"
