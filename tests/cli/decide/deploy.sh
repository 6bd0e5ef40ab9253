#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench recommend --for: the command for each target from the rows of its own program,
# from others' where it was not measured; run by a shell and read as YAML with the name of
# a model that neither may take for anything else.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }

hostile="it's \$(touch pwned) \"a\": b & c.gguf"
mkdir models bin
"$BENCH" synth nano Q4_K_M -o "models/$hostile" >/dev/null
common=(--mem none --no-charts --no-probe --repeats 0 --launches 1 --max-launches 1 --threads 1
        --prefill none -n 8 --seed 3)
printf '#!/bin/sh\necho "100 tok/s"\n' >bin/llama
for p in llama-server bench taskset; do
    printf '#!/bin/bash\n{ echo "%s"; printf "%%s\\n" "$@"; env | grep LLAMA_ARG || true; } >>"$SAID"\n' $p >bin/$p
done
printf '\n[ "$1" = -c ] && shift 2 && exec "$@"\n' >>bin/taskset
chmod +x bin/*
export SAID=$WORK/said

# runs FILE: what the commands of it are given, in "said"
runs() {
    : >said
    PATH=$PWD/bin:$PATH bash "$1" || fail "$1: $(cat "$1")"
    [ ! -e pwned ] || fail "a name was run: $(cat "$1")"
}

# follows WORD VALUE: in "said"
follows() {
    grep -Fx -A 1 -- "$1" said | grep -qFx -- "$2" || fail "no $1 $2: $(cat said)"
}

# ---- not measured: carried over from slmbench
"$BENCH" sweep "${common[@]}" -m "models/$hostile" --ctx 64 --kv-type q8_0 -o ours >out 2>err ||
    fail "exit $?: $(cat err)"
for target in slmbench llama.cpp ollama docker k8s; do
    "$BENCH" recommend ours --for $target --mem 2G >$target || fail "$target"
    [ "$(wc -L <$target)" -lt 400 ] || fail "$target is wide: $(cat $target)"
    if [ $target = slmbench ]; then
        ! grep -q "carried over" $target || fail "ours is ours: $(cat $target)"
    else
        tr -d '\n#' <$target | grep -q "carried over from  *slmbench" || fail "$target: $(cat $target)"
    fi
done
runs llama.cpp
follows --model "$PWD/models/$hostile"
follows --threads 1
follows --threads-batch 1
follows --ctx-size 64
follows --parallel 1
follows --cache-type-k q8_0
follows --cache-type-v q8_0
grep -qx "LLAMA_ARG_FLASH_ATTN=1" said || fail "no flash attention for q8_0: $(cat said)"
cache=$(sed -n 's/^LLAMA_ARG_CACHE_RAM=//p' said | sort -u)
[ "$cache" -gt 100 ] && [ "$cache" -lt 1024 ] || fail "$cache MiB of prompts in 2 GiB"
runs slmbench
grep -qx serve said || fail "no server: $(cat said)"
follows -m "$PWD/models/$hostile"
follows --kv-type q8_0
follows --listen 127.0.0.1:8080
follows --sequences 1
follows --ctx 64
grep -q "^FROM .*/models/it's " ollama || fail "no model: $(cat ollama)"
grep -q "^PARAMETER num_ctx 64$" ollama || fail "no context: $(cat ollama)"
grep -q "OLLAMA_KV_CACHE_TYPE=q8_0" ollama || fail "no KV type: $(cat ollama)"
grep -q -- "--memory 2147483648 --memory-swap 2147483648" docker || fail "no limit: $(cat docker)"
sed -i 's/^docker run/bench/' docker
runs docker
follows --model "/models/$hostile"
follows --env "LLAMA_ARG_CACHE_RAM=$cache"
if python=$(python_with_yaml); then
    $python - "$PWD/models" "$hostile" "$cache" <<'EOF' || fail "manifest: $(cat k8s)"
import sys, yaml
m = yaml.safe_load(open("k8s"))
assert m["kind"] == "Deployment" and m["apiVersion"] == "apps/v1"
spec = m["spec"]["template"]["spec"]
assert m["spec"]["selector"]["matchLabels"] == m["spec"]["template"]["metadata"]["labels"]
c = spec["containers"][0]
args = dict(zip(c["args"][::2], c["args"][1::2]))
assert args["--model"].replace("$$", "$") == "/models/" + sys.argv[2], args  # $(x) is a variable
assert "$$(touch" in args["--model"]
assert args["--threads"] == "1" and args["--ctx-size"] == "64" and args["--cache-type-k"] == "q8_0"
assert spec["volumes"][0]["hostPath"]["path"] == sys.argv[1]
assert c["resources"]["limits"] == c["resources"]["requests"] == {"cpu": "1", "memory": "2147483648"}
assert {e["name"]: e["value"] for e in c["env"]}["LLAMA_ARG_CACHE_RAM"] == sys.argv[3]
import re
assert re.fullmatch("[a-z0-9]([a-z0-9-]*[a-z0-9])?", m["metadata"]["name"])
EOF
    # The schema that ci/fleet/check holds the Job to, which refuses what it is there to refuse.
    $python - "$SRC/ci/fleet/kubernetes/schema.json" <<'EOF' || fail "not by the schema: $(cat k8s)"
import json, sys, yaml
try:
    import jsonschema
except ImportError:
    print("the schema is not tested: no python3-jsonschema")
    sys.exit()
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
valid = jsonschema.Draft7Validator(schema).is_valid
m = yaml.safe_load(open("k8s"))
jsonschema.validate(m, schema, cls=jsonschema.Draft7Validator)
pod = "spec", "template", "spec"
for path, wrong in [(("apiVersion",), "v1"), (("kind",), "Job"), (("spec", "replicas"), "1"),
                    (("spec", "selector"), {}), (pod + ("restartPolicy",), "Never"),
                    (pod + ("containers", 0, "argz"), []), (pod + ("containers", 0, "args", 0), 3),
                    (pod + ("containers", 0, "ports", 0, "containerPort"), "8080"),
                    (pod + ("containers", 0, "resources", "limits", "cpu"), 1),
                    (pod + ("volumes", 0, "hostPath", "path"), "models")]:
    broken = json.loads(json.dumps(m))
    at = broken
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = wrong
    assert not valid(broken), f"{path}: {wrong} was accepted"
EOF
fi
"$BENCH" recommend ours --for llama.cpp --mem 40M >small || fail "small"
grep -q "LLAMA_ARG_CACHE_RAM=0" small || fail "prompts are kept in nothing: $(cat small)"

# ---- several users: slots, memory of all, and their speed where it was measured
cp "$SRC/tests/data/models/stories260K-f32.gguf" "models/a story's.gguf"
"$BENCH" sweep "${common[@]}" -m "models/a story's.gguf" --ctx 64 --sequences 1,4 -o many >out 2>err ||
    fail "exit $?: $(cat err)"
for target in slmbench llama.cpp ollama; do
    "$BENCH" recommend many --for $target --mem 2G --sequences 4 >$target || fail "$target for four"
    tr -d '\n' <$target | sed 's/#//g' |
        grep -qE " 4 sequences decoded (at least )?[0-9.]+ tok/s together there, [0-9.]+ each;" ||
        fail "$target for four: $(cat $target)"
done
runs slmbench
follows --sequences 4
follows --ctx 64
sed 's/^bench serve/exec "$BENCH" serve --port 0/' slmbench >real
export BENCH
bash real >served 2>err &
for _ in $(seq 200); do
    [ ! -s served ] && kill -0 $! 2>/dev/null || break
    sleep 0.05
done
grep -q "^Serves .*, 4 sequences of 64 positions, " served || fail "no server: $(cat real served err)"
kill $!
wait $! || fail "the server ended with $?: $(cat err)"
runs llama.cpp
follows --parallel 4
follows --ctx-size 256
grep -q OLLAMA_NUM_PARALLEL=4 ollama || fail "no slots: $(cat ollama)"
"$BENCH" recommend many --for slmbench --sequences 3 >three
tr -d '\n#' <three | grep -q "3 together were not  *measured" || fail "three: $(cat three)"
refused 2 "needs --for" recommend many --sequences 4

# Sequences of slmbench share what memory there is; slots of others need all of it.
mkdir short
python3 - <<'EOF' || fail "no table"
import csv
rows = list(csv.DictReader(open("many/sweep.csv")))
with open("short/sweep.csv", "w", newline="") as f:
    table = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
    table.writeheader()
    table.writerows({**r, "kv_bytes": 1 << 30} for r in rows)
EOF
"$BENCH" recommend short --for slmbench --mem 2G --sequences 4 >shared || fail "$(cat shared)"
tr -d '\n' <shared | sed 's/#//g' | tr -s ' ' | grep -q "need about 3.0.*: sequences share" ||
    fail "shared: $(cat shared)"
refused 1 "choose fewer --sequences" recommend short --for llama.cpp --mem 2G --sequences 4

# ---- what was measured under a CPU quota is deployed with it
mkdir quota
python3 - <<'EOF' || fail "no table"
import csv
rows = list(csv.DictReader(open("many/sweep.csv")))
with open("quota/sweep.csv", "w", newline="") as f:
    table = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
    table.writeheader()
    table.writerows({**r, "cpus_quota": "1.5"} for r in rows)
EOF
while read -r target text; do
    "$BENCH" recommend quota --cpus-quota 1.5 --for "$target" >limited || fail "$target: exit $?"
    tr -d '\n#' <limited | tr -s ' ' | grep -qF -- "$text" || fail "$target: no quota: $(cat limited)"
done <<'END'
docker --cpus 1.50
k8s cpu: "1500m"
slmbench CPUQuota=150%
llama.cpp CPUQuota=150%
ollama CPUQuota=150%
END

# ---- measured: its own rows, though ours are others
"$BENCH" sweep "${common[@]}" -m nano:Q4_K_M -m nano:Q8_0 --ctx 0,32 -o both \
    --engine "llama.cpp=bin/llama {model} {ctx} {n} =~ ([0-9.]+)" \
    --engine "ik_llama.cpp=bin/llama {model} {ctx} {n} =~ ([0-9.]+)" >out 2>err || fail "exit $?: $(cat err)"
python3 - <<'EOF' || fail "no table" # the others win, however fast this machine is; that has no roof
import csv
rows = list(csv.DictReader(open("both/sweep.csv")))
with open("both/sweep.csv", "w", newline="") as f:
    table = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
    table.writeheader()
    fast = {"validity": "valid", "roof_gbps": "", "roof_tok_per_s": "", "mbu": "",
            **dict.fromkeys(("tok_per_s", "tok_per_s_lo", "tok_per_s_hi"), "100000"),
            "lat_p50_ms": ""}
    table.writerows({**r, **fast} if r["engine"] else r for r in rows)
EOF
"$BENCH" recommend both --for llama.cpp --ctx 32 >measured || fail "measured"
tr -d '\n#' <measured | grep -q "100000 tok/s.* measured with  *llama.cpp" || fail "whose rows: $(cat measured)"
! grep -q "carried over" measured || fail "carried over: $(cat measured)"
grep -q "random weights" measured || fail "a shape is no file: $(cat measured)"
grep -q -- "--model nano-Q" measured || fail "no file: $(cat measured)"
"$BENCH" recommend both --for ollama --ctx 32 >ollama
tr -d '\n#' <ollama | grep -q "carried over from  *llama.cpp" || fail "ollama: $(cat ollama)"
grep -q "^FROM ./nano-Q" ollama || fail "ollama: $(cat ollama)"
"$BENCH" recommend both --for slmbench --ctx 32 >slmbench
tr -d '\n#' <slmbench | grep -q "measured with  *slmbench" || fail "slmbench: $(cat slmbench)"
grep -q "random weights" slmbench || fail "nobody asks random weights: $(cat slmbench)"
grep -q -- "-m nano-Q" slmbench || fail "no file: $(cat slmbench)"
"$BENCH" recommend both --for llama.cpp --engine ik_llama.cpp >ik
grep -q -- "--cache-ram [0-9]" ik || fail "ik has an option: $(cat ik)"
"$BENCH" recommend both --engine slmbench >only || fail "only ours"
! grep -q "of llama.cpp" only || fail "not only ours: $(cat only)"
"$BENCH" recommend both >all || fail "all"
grep -q "Recommended: nano.* of \(ik_\)\?llama.cpp" all || fail "not the fastest engine: $(cat all)"

# ---- what cannot be
refused 2 "targets are" recommend both --for moon
refused 2 "no row of none" recommend both --for llama.cpp --engine none
refused 2 "no row of none" recommend both --engine none
refused 2 "exclude each other" recommend both --for llama.cpp --json
mkdir "a,b"
mv "models/$hostile" "a,b/x.gguf"
"$BENCH" sweep "${common[@]}" -m a,b/x.gguf --ctx 0 -o comma >out 2>err || fail "$(cat err)"
refused 2 "docker cannot mount" recommend comma --for docker
rm -rf "$WORK"
