#!/bin/bash
# SPDX-License-Identifier: MIT
#
# make.sh NAME DIR - lay out the /proc and /sys of a machine under DIR
#
# Only what hwloc and our own readers look at. The files are generated because a
# server has a thousand of them and says the same thing in each.
#
#   smt-laptop        4 cores with 2 hyperthreads, cgroup v2 without limits
#   two-socket        2 sockets x 8 cores x 2 hyperthreads, a NUMA node per socket
#   vm-hidden         2 vCPUs, no siblings shown, cgroup v1 without limits, memory
#                     plugged in after the start (the NUMA node shows less)
#   vm-v1-limits      4 vCPUs, cgroup v1: quota of 3 CPUs, memory limit further up,
#                     of which another container uses 1.5 GiB
#   container-1.5cpu  cgroup v2 namespace: 1.5 CPUs, 6 GiB, cpuset of 4 of 8 CPUs
#   offline-holes     CPUs 0 1 4 5 of 8, the others switched off; affinity 1,4-5
#   arm-guest         4 Neoverse N1 vCPUs
#   vm-smt            2 vCPUs that are the hyperthreads of 1 core, and shown as such
#   hybrid            4 P-cores with 2 hyperthreads, 4 E-cores, told apart by cpu_core and
#                     cpu_atom
#   memory-node       4 CPUs on a NUMA node, and a node that is memory alone (CXL)
#   big-little        Arm: 1 prime core, 3 big ones a little slower, 4 little ones
set -eu
name=$1 dir=$2

# Everything is collected first: one mkdir for all, and no process per file.
declare -A made
declare -a paths texts
put() { # PATH TEXT
    made[$dir/${1%/*}]=1
    paths+=("$dir/$1")
    texts+=("$2")
}

write_all() {
    local i
    mkdir -p "${!made[@]}"
    for i in "${!paths[@]}"; do
        printf '%s\n' "${texts[i]}" >"${paths[i]}"
    done
}

mask() { # CPU... -> REPLY, the bit mask as the kernel prints it, up to 32 CPUs
    local bits=0 c
    for c; do bits=$((bits | 1 << c)); done
    printf -v REPLY '%08x' $bits
}

# cpu NUMBER CORE PACKAGE "SIBLINGS" "PACKAGE'S CPUS" "CPUS OF THE L3" L1 L2 L3
cpu() {
    local base=sys/devices/system/cpu/cpu$1 i=0 level type size cpus
    put $base/topology/core_id "$2"
    put $base/topology/physical_package_id "$3"
    mask $4
    put $base/topology/core_cpus $REPLY
    mask $5
    put $base/topology/package_cpus $REPLY
    while read -r level type size cpus; do
        mask $cpus
        put $base/cache/index$i/shared_cpu_map $REPLY
        put $base/cache/index$i/level "$level"
        put $base/cache/index$i/type "$type"
        put $base/cache/index$i/size "${size}K"
        put $base/cache/index$i/coherency_line_size 64
        i=$((i + 1))
    done <<EOF
1 Data $7 $4
1 Instruction $7 $4
2 Unified $8 $4
3 Unified $9 $6
EOF
}

# online LIST POSSIBLE
online() {
    put sys/devices/system/cpu/online "$1"
    put sys/devices/system/cpu/possible "$2"
    put sys/devices/system/cpu/present "$2"
}

# node NUMBER "CPUS" KB
node() {
    mask $2
    put sys/devices/system/node/node$1/cpumap $REPLY
    put sys/devices/system/node/node$1/meminfo "Node $1 MemTotal:       $3 kB"
}

# memory TOTAL_KB AVAILABLE_KB SWAP_KB THP HUGE_TOTAL HUGE_FREE
memory() {
    put proc/meminfo "MemTotal:       $1 kB
MemFree:        $2 kB
MemAvailable:   $2 kB
SwapTotal:      $3 kB
Hugepagesize:       2048 kB"
    local words=" always madvise never "
    words=${words/ $4 / [$4] }
    words=${words# }
    put sys/kernel/mm/transparent_hugepage/enabled "${words% }"
    put sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages "$5"
    put sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages "$6"
}

# cpuinfo "NUMBERS" VENDOR MODEL FLAGS
cpuinfo() {
    local text= c
    for c in $1; do
        text+="processor	: $c
vendor_id	: $2
model name	: $3
flags		: fpu sse2 $4

"
    done
    put proc/cpuinfo "$text"
}

# kernel RELEASE STEAL ALLOWED
kernel() {
    put proc/sys/kernel/osrelease "$1"
    put proc/version "Linux version $1 (builder@host) #1 SMP"
    put proc/stat "cpu  4000 0 1000 94000 500 0 500 $2 0 0"
    put proc/self/status "Name:	bench
Cpus_allowed_list:	$3"
}

# cgroup v2 at its usual place: OWN_PATH MOUNT_ROOT
cgroup_v2() {
    put proc/self/cgroup "0::$1"
    put proc/self/mountinfo "30 23 0:26 $2 /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
    put sys/fs/cgroup/cgroup.controllers "cpuset cpu io memory pids"
}

# cgroup v1, one mount per controller: OWN_PATH
cgroup_v1() {
    put proc/self/cgroup "4:memory:$1
3:cpuset:/
2:cpu,cpuacct:$1
0::/"
    put proc/self/mountinfo "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
    put sys/fs/cgroup/unified/cgroup.controllers ""
    put sys/fs/cgroup/memory/memory.limit_in_bytes 9223372036854771712
    put "sys/fs/cgroup/memory$1/memory.limit_in_bytes" 9223372036854771712
    put "sys/fs/cgroup/cpu,cpuacct$1/cpu.cfs_quota_us" -1
    put "sys/fs/cgroup/cpu,cpuacct$1/cpu.cfs_period_us" 100000
}

vnni="avx512f avx512dq avx512cd avx512bw avx512vl avx512_vnni"

case $name in
smt-laptop)
    for c in 0 1 2 3 4 5 6 7; do
        cpu $c $((c % 4)) 0 "$((c % 4)) $((c % 4 + 4))" "0 1 2 3 4 5 6 7" \
            "0 1 2 3 4 5 6 7" 32 256 8192
    done
    online 0-7 0-7
    put sys/devices/system/node/online 0
    node 0 "0 1 2 3 4 5 6 7" 16236580
    cpuinfo "0 1 2 3 4 5 6 7" GenuineIntel "Intel(R) Core(TM) i7-8565U CPU @ 1.80GHz" \
        "ht fma f16c avx avx2"
    memory 16236580 9876544 2097148 madvise 0 0
    kernel 6.1.0-18-amd64 0 0-7
    own=/user.slice/user-1000.slice/session-2.scope
    cgroup_v2 $own /
    put sys/fs/cgroup$own/memory.max max
    put sys/fs/cgroup$own/cpu.max "max 100000"
    ;;
two-socket)
    s0="0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23"
    s1="8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31"
    for c in $s0; do cpu $c $((c % 16)) 0 "$((c % 16)) $((c % 16 + 16))" "$s0" "$s0" 32 1024 22528; done
    for c in $s1; do cpu $c $((c % 16 - 8)) 1 "$((c % 16)) $((c % 16 + 16))" "$s1" "$s1" 32 1024 22528; done
    online 0-31 0-31
    put sys/devices/system/node/online 0-1
    node 0 "$s0" 131891456
    node 1 "$s1" 132116480
    cpuinfo "$(seq 0 31)" GenuineIntel "Intel(R) Xeon(R) Silver 4208 CPU @ 2.10GHz" \
        "ht fma f16c avx avx2 $vnni"
    memory 264007936 251658240 0 always 1024 1000
    kernel 5.15.0-91-generic 0 0-31
    cgroup_v2 /system.slice/ssh.service /
    put sys/fs/cgroup/system.slice/ssh.service/memory.max max
    ;;
vm-hidden)
    for c in 0 1; do cpu $c $c 0 "$c" "0 1" "0 1" 32 1024 32768; done
    online 0-1 0-1
    put sys/devices/system/node/online 0
    node 0 "0 1" 5990604
    cpuinfo "0 1" AuthenticAMD "AMD  EPYC            " "ht hypervisor fma f16c avx avx2 $vnni"
    put sys/class/dmi/id/sys_vendor QEMU
    memory 24684084 24331816 0 madvise 0 0
    kernel 6.12.8 3000 0-1
    cgroup_v1 /process_api/6b2c66b0
    ;;
vm-v1-limits)
    for c in 0 1 2 3; do cpu $c $c 0 "$c" "0 1 2 3" "0 1 2 3" 32 512 16384; done
    online 0-3 0-3
    put sys/devices/system/node/online 0
    node 0 "0 1 2 3" 16384000
    cpuinfo "0 1 2 3" GenuineIntel "Intel Xeon Processor (Cascadelake)" \
        "hypervisor fma f16c avx avx2 $vnni"
    memory 16384000 12000000 0 madvise 0 0
    kernel 4.19.0-25-amd64 0 0-3
    cgroup_v1 /docker/0123abcd
    put "sys/fs/cgroup/cpu,cpuacct/docker/0123abcd/cpu.cfs_quota_us" 300000
    put "sys/fs/cgroup/memory/docker/memory.limit_in_bytes" 4294967296
    put "sys/fs/cgroup/memory/docker/memory.usage_in_bytes" 3221225472
    put "sys/fs/cgroup/memory/docker/memory.stat" "total_rss 1572864000
total_active_file 1073741824
total_inactive_file 536870912"
    put "sys/fs/cgroup/memory/docker/0123abcd/memory.limit_in_bytes" 8589934592
    ;;
container-1.5cpu)
    for c in 0 1 2 3 4 5 6 7; do
        cpu $c $((c / 2)) 0 "$((c / 2 * 2)) $((c / 2 * 2 + 1))" "0 1 2 3 4 5 6 7" \
            "0 1 2 3 4 5 6 7" 48 2048 33792
    done
    online 0-7 0-7
    put sys/devices/system/node/online 0
    node 0 "0 1 2 3 4 5 6 7" 32505856
    cpuinfo "0 1 2 3 4 5 6 7" GenuineIntel "Intel(R) Xeon(R) Platinum 8488C" \
        "ht hypervisor fma f16c avx avx2 avx_vnni $vnni avx512_bf16 amx_bf16 avx512_fp16 amx_tile amx_int8"
    put sys/class/dmi/id/sys_vendor "Amazon EC2"
    memory 32505856 28000000 0 never 0 0
    kernel 6.1.119 100 0-3
    cgroup_v2 / /
    put sys/fs/cgroup/cgroup.type domain
    put sys/fs/cgroup/cpu.max "150000 100000"
    put sys/fs/cgroup/memory.max 6442450944
    put sys/fs/cgroup/cpuset.cpus.effective 0-3
    ;;
offline-holes)
    for c in 0 1 4 5; do cpu $c $c 0 "$c" "0 1 4 5" "0 1 4 5" 32 256 6144; done
    online 0-1,4-5 0-7
    for c in 2 3 6 7; do put sys/devices/system/cpu/cpu$c/online 0; done
    put sys/devices/system/node/online 0
    node 0 "0 1 4 5" 8000000
    cpuinfo "0 1 4 5" GenuineIntel "Intel(R) Xeon(R) CPU E3-1220 v3 @ 3.10GHz" \
        "fma f16c avx avx2"
    memory 8000000 7000000 0 madvise 0 0
    kernel 5.10.0-28-amd64 0 1,4-5
    cgroup_v2 / /
    ;;
arm-guest)
    for c in 0 1 2 3; do cpu $c $c 0 "$c" "0 1 2 3" "0 1 2 3" 64 1024 32768; done
    online 0-3 0-3
    put sys/devices/system/node/online 0
    node 0 "0 1 2 3" 16000000
    text=
    for c in 0 1 2 3; do
        text+="processor	: $c
Features	: fp asimd evtstrm aes crc32 atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp ssbs
CPU implementer	: 0x41
CPU architecture: 8
CPU part	: 0xd0c

"
    done
    put proc/cpuinfo "$text"
    put sys/class/dmi/id/sys_vendor "Amazon EC2"
    put sys/class/dmi/id/product_name m6g.xlarge
    memory 16000000 15000000 0 madvise 0 0
    kernel 6.1.0-arm64 0 0-3
    cgroup_v2 / /
    ;;
vm-smt)
    for c in 0 1; do cpu $c 0 0 "0 1" "0 1" "0 1" 32 1024 33792; done
    online 0-1 0-1
    put sys/devices/system/node/online 0
    node 0 "0 1" 8000000
    cpuinfo "0 1" GenuineIntel "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz" \
        "ht hypervisor fma f16c avx avx2 $vnni"
    put sys/class/dmi/id/sys_vendor "Amazon EC2"
    memory 8000000 7400000 0 madvise 0 0
    kernel 6.1.119 0 0-1
    cgroup_v2 / /
    ;;
hybrid)
    all="0 1 2 3 4 5 6 7 8 9 10 11"
    for c in 0 1 2 3 4 5 6 7; do cpu $c $((c / 2)) 0 "$((c / 2 * 2)) $((c / 2 * 2 + 1))" "$all" "$all" 48 1280 12288; done
    for c in 8 9 10 11; do cpu $c $((c - 4)) 0 "$c" "$all" "$all" 32 2048 12288; done
    for c in $all; do
        put sys/devices/system/cpu/cpu$c/cpufreq/cpuinfo_max_freq $((c < 2 ? 5200000 : c < 8 ? 5000000 : 3900000))
    done
    put sys/devices/cpu_core/cpus 0-7
    put sys/devices/cpu_atom/cpus 8-11
    online 0-11 0-11
    put sys/devices/system/node/online 0
    node 0 "$all" 16236580
    cpuinfo "$all" GenuineIntel "12th Gen Intel(R) Core(TM) i5-12450H" "ht fma f16c avx avx2 avx_vnni"
    memory 16236580 9876544 0 madvise 0 0
    kernel 6.1.0-18-amd64 0 0-11
    cgroup_v2 / /
    ;;
memory-node)
    all="0 1 2 3"
    for c in $all; do cpu $c $c 0 "$c" "$all" "$all" 32 1024 32768; done
    online 0-3 0-3
    put sys/devices/system/node/online 0-1
    node 0 "$all" 16000000
    node 1 "" 64000000
    cpuinfo "$all" GenuineIntel "Intel(R) Xeon(R) 6710E" "fma f16c avx avx2 avx_vnni"
    memory 80000000 79000000 0 madvise 0 0
    kernel 6.12.0-amd64 0 0-3
    cgroup_v2 / /
    ;;
big-little)
    for c in 0 1 2 3 4 5 6 7; do
        cpu $c $c 0 "$c" "0 1 2 3 4 5 6 7" "0 1 2 3 4 5 6 7" 64 512 8192
        put sys/devices/system/cpu/cpu$c/cpu_capacity $((c < 4 ? 250 : c < 7 ? 760 : 1024))
    done
    online 0-7 0-7
    put sys/devices/system/node/online 0
    node 0 "0 1 2 3 4 5 6 7" 8000000
    text=
    for c in 0 1 2 3 4 5 6 7; do
        text+="processor	: $c
Features	: fp asimd fphp asimdhp asimddp
CPU implementer	: 0x41

"
    done
    put proc/cpuinfo "$text"
    memory 8000000 7000000 0 madvise 0 0
    kernel 6.1.0-arm64 0 0-7
    cgroup_v2 / /
    ;;
*)
    echo "make.sh: no machine '$name'" >&2
    exit 2
    ;;
esac
write_all
