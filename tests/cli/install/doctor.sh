#!/bin/bash
# SPDX-License-Identifier: MIT
#
# doctor.sh - `bench doctor` on recorded machines and on this one: what it finds, the
# command that mends it, JSON, exit codes
. "$SRC/tests/cli/lib.sh"
make() { bash "$SRC/tests/data/topo/make.sh" "$1" "$1"; }

# doctor CODE ARGUMENTS...: into out
doctor() {
    local want=$1 code=0
    shift
    "$BENCH" doctor "$@" >out 2>err || code=$?
    [ $code = "$want" ] || fail "doctor $*: exit code $code, not $want: $(cat out err)"
    ! grep -v '/' out | grep -E '.{80}' || fail "doctor $*: a line of more than 79 columns"
}
# has STATE NAME TEXT: such a check in out
has() {
    awk -v state="$1" -v name="$2" '/^[a-z]/ { on = index($0, state "  ") == 1 && index($0, name) == 9 } on' out |
        tr -s ' \n' ' ' | grep -qF -- "$3" || fail "no '$1 $2 ... $3': $(cat out)"
}

# A machine without drawbacks but for what a test makes of it: a file for each. A group of
# its own is this process's, which may make others in it.
make smt-laptop
group=smt-laptop/sys/fs/cgroup$(sed -n 's/^0:://p' smt-laptop/proc/self/cgroup)
doctor 4 --root smt-laptop
has partly "Memory limits" "systemd-run --user --scope -p Delegate=yes"
[ "$(tr -s ' \n' ' ' <out | grep -o "systemd-run --user" | wc -l)" = 2 ] || fail "a command is printed twice: $(cat out)"
touch "$group/cgroup.procs"
echo memory cpu | tee "$group/cgroup.controllers" >"$group/cgroup.subtree_control"
cpufreq=smt-laptop/sys/devices/system/cpu/cpu0/cpufreq
mkdir -p $cpufreq
echo performance >$cpufreq/scaling_governor
doctor 0 --root smt-laptop
has fine Frequency "the governor is 'performance'"
has fine ISA "kernels for avx2 run. Not here: avxvnni, avx512, "
has fine "Memory limits" "can limit memory"
has fine "CPU quotas" "can limit CPU time"
has note Energy "no energy counters"
grep -q '^All [0-9]* checks are fine' out || fail "no verdict: $(cat out)"
! grep -qE '^[a-z]+ +(Fence|Disk|Quiet)' out || fail "a record has no disk: $(cat out)"

# the group above has the CPU controller, and does not pass it on
echo memory cpu >"${group%/*}/cgroup.controllers"
echo memory | tee "$group/cgroup.controllers" >"$group/cgroup.subtree_control"
doctor 4 --root smt-laptop
has fine "Memory limits" "can limit memory"
has partly "CPU quotas" "which is not given the CPU controller"
has partly "CPU quotas" "systemd-run --scope -p Delegate=yes"
echo memory cpu | tee "$group/cgroup.controllers" >"$group/cgroup.subtree_control"

echo powersave >$cpufreq/scaling_governor
echo docker >smt-laptop/.dockerenv
doctor 4 --root smt-laptop
has partly Frequency "the governor is 'powersave'"
has partly Frequency "to mend it: echo performance | sudo tee"
has note Container "this is a container (docker)"
grep -q '^1 of [0-9]* checks' out || fail "no verdict: $(cat out)"

mkdir -p smt-laptop/sys/class/powercap/intel-rapl:0
echo package-0 >smt-laptop/sys/class/powercap/intel-rapl:0/name
doctor 4 --root smt-laptop
has note Energy "to mend it: sudo chmod a+r /sys/class/powercap/"
echo 1000 | tee smt-laptop/sys/class/powercap/intel-rapl:0/{energy_uj,max_energy_range_uj} >energy
doctor 4 --root smt-laptop
has fine Energy "1 counter can be read"

make container-1.5cpu
doctor 4 --root container-1.5cpu
has partly Quota "1.5 is not a whole number of CPUs"
has partly "Huge pages" "echo madvise | sudo tee"
[ "$(grep -c madvise out)" = 1 ] || fail "the command stands there twice: $(cat out)"
has note "CPU quotas" "no group can be made here; the quota that is in force, 1.5 CPUs, holds for every point"
# a quota in force of less than one CPU is no drawback of the quotas that can be set
group=container-1.5cpu/sys/fs/cgroup
touch "$group/cgroup.procs"
echo "50000 100000" >"$group/cpu.max"
echo memory cpu | tee "$group/cgroup.controllers" >"$group/cgroup.subtree_control"
doctor 4 --root container-1.5cpu
has fine "CPU quotas" "can limit CPU time"
make container-1.5cpu

# ---- JSON
command -v python3 >/dev/null || skip "JSON: no python3"
"$BENCH" doctor --root container-1.5cpu --json >json || [ $? = 4 ] || fail "JSON"
python3 - <<'END' || fail "$(cat json)"
import json
d = json.load(open("json"))
assert d["verdict"] == "partly" and len(d["checks"]) > 8 and d["fence"] is None
for c in d["checks"]:
    assert set(c) == {"name", "state", "found", "mend"} and c["found"] and c["state"] in ("fine", "note", "partly")
pages = [c for c in d["checks"] if c["name"] == "Huge pages"]
assert pages[0]["mend"].startswith("echo madvise"), pages
END

# ---- this machine, whatever it is
code=0
SLMBENCH_LOCK=none "$BENCH" doctor --disk . >out 2>err || code=$?
[ $code = 0 ] || [ $code = 4 ] || fail "here: exit code $code: $(cat err)"
for name in Threads ISA "Memory limits" "CPU quotas" Fence "System calls" "Disk room" "Disk speed" Charts Servers Kernels Quiet; do
    grep -qE "^(fine|note|partly) +$name " out || fail "no check of $name: $(cat out)"
done
awk '/^[a-z]/ { on = $1 == "fine" && /^fine +(Fence|System calls) / } on' out >fence
[ "$(wc -l <fence)" -le 4 ] || fail "the fence takes more lines: $(cat fence)"
SLMBENCH_LOCK=none "$BENCH" doctor --disk . --json >json || [ $? = 4 ] || fail "JSON here"
python3 - <<'END' || fail "$(cat json)"
import json, os
f = json.load(open("json"))["fence"]
n = f["system_calls"]
assert f["no_new_privs"] and not f["capabilities"], f
assert f["uid"] == os.getuid() or os.getuid() == 0, f
if f["seccomp"] and n["reader"]:
    assert 100 < n["reader"] < n["server"] < n["command"] < (n["kernel"] or 1000), n
    assert not f["terminal"] and f["io_uring"] in ("none", "reads"), f
END
! compgen -G '.slmbench-probe*' || fail "the disk probe left a file"
PATH=/nowhere "$BENCH" doctor --disk nowhere >out 2>err || [ $? = 4 ] || fail "$(cat err)"
has note Charts "to mend it: sudo apt-get install gnuplot-nox"
has partly "Disk speed" "nowhere cannot be probed"

refused 2 "proc/cpuinfo" doctor --root "$WORK/nowhere"
refused 2 "unexpected argument 'extra'" doctor extra
