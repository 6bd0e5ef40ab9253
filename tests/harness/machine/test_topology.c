/* SPDX-License-Identifier: MIT
 *
 * test_topology.c - machines as recorded trees, and the one the test runs on
 */
#include "tests/support/tree.h"

#include <sched.h>

#include "harness/machine/topology.h"
#include "harness/machine/topology_internal.h"
#include "kernels/units.h"
#include "kernels/isa.h"

#define BIT(isa) (1u << KERN_ISA_##isa)
#define GIB      (UINT64_C(1) << 30)

static struct topology topo;

static void read_machine(const char *name)
{
    struct err err = ERR_INIT;
    char root[64];

    tree_machine(root, name);
    memset(&topo, 0xa5, sizeof topo); /* every field must be written */
    assert_int_equal(topology_read(&topo, root, &err), ST_OK);
    tree_remove(root);
}

static const struct topo_cache *cache(int level, const char *type)
{
    for (int i = 0; i < topo.n_caches; i++) {
        if (topo.cache[i].level == level && !strcmp(topo.cache[i].type, type))
            return &topo.cache[i];
    }
    fail_msg("no L%d %s cache", level, type);
    return NULL;
}

/* Is there advice that begins so? */
static bool advises(const char *begin)
{
    struct topo_advice advice[TOPO_MAX_ADVICE];
    const int n = topology_advice(&topo, advice);

    for (int i = 0; i < n; i++) {
        if (!strncmp(advice[i].text, begin, strlen(begin)))
            return true;
    }
    return false;
}

static void smt_laptop(void **state)
{
    (void)state;
    read_machine("smt-laptop");
    assert_string_equal(topo.cpu_model, "Intel(R) Core(TM) i7-8565U CPU @ 1.80GHz");
    assert_string_equal(topo.cpu_vendor, "GenuineIntel");
    assert_string_equal(topo.hypervisor, "");
    assert_int_equal(topo.isa_mask, BIT(scalar) | BIT(avx2));
    assert_string_equal(topo.isa_missing[KERN_ISA_avxvnni], "lacks avx_vnni");
    assert_string_equal(topo.isa_missing[KERN_ISA_avx2], "");
    assert_int_equal(topo.n_cpus, 8);
    assert_int_equal(topo.n_cores, 4);
    assert_int_equal(topo.n_packages, 1);
    assert_int_equal(topo.smt, TOPO_SMT_SHOWN);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(topo.cpu[i].os_id, i);
        assert_int_equal(topo.cpu[i].core, i % 4);
        assert_int_equal(topo.cpu[i].sibling, i / 4);
        assert_true(topo.cpu[i].allowed);
    }
    assert_int_equal(cache(1, "data")->bytes, 32 * 1024);
    assert_int_equal(cache(1, "data")->n_instances, 4);
    assert_int_equal(cache(1, "instruction")->n_instances, 4);
    assert_int_equal(cache(3, "unified")->line_bytes, 64);
    assert_int_equal(topo.llc_bytes, 8192 * 1024);
    assert_int_equal(topo.cgroup_version, 2);
    assert_int_equal(topo.mem_limit, 0);
    assert_true(topo.quota_cpus == 0);
    assert_int_equal(topo.swap_total, 2097148 * UINT64_C(1024));
    assert_string_equal(topo.thp, "madvise");
    assert_string_equal(topo.kernel, "6.1.0-18-amd64");
    assert_int_equal(topo.threads_default, 4);
    assert_string_equal(topo.threads_why,
                        "4: 4 physical cores, no quota, 8 allowed CPUs");
    assert_true(advises("Swap:"));
    assert_true(advises("Hyperthreads: 4 of"));
}

static void two_socket(void **state)
{
    (void)state;
    read_machine("two-socket");
    assert_int_equal(topo.n_cpus, 32);
    assert_int_equal(topo.n_cores, 16);
    assert_int_equal(topo.n_packages, 2);
    assert_int_equal(topo.n_nodes, 2);
    assert_int_equal(topo.cpu[7].package, 0);
    assert_int_equal(topo.cpu[8].package, 1);
    assert_int_equal(topo.cpu[8].node, 1);
    assert_int_equal(topo.cpu[24].core, topo.cpu[8].core);
    assert_int_equal(topo.cpu[24].sibling, 1);
    assert_int_not_equal(topo.cpu[0].llc, topo.cpu[8].llc);
    assert_int_equal(topo.cpu[0].llc, topo.cpu[23].llc);
    assert_int_equal(topo.llc_bytes, 2 * 22528 * 1024);
    assert_int_equal(topo.isa_mask,
                     BIT(scalar) | BIT(avx2) | BIT(avx512) | BIT(avx512vnni));
    assert_int_equal(topo.huge_2m_total, 1024);
    assert_int_equal(topo.huge_2m_free, 1000);
    assert_string_equal(topo.thp, "always");
    assert_int_equal(topo.mem_hwloc, (131891456 + 132116480) * UINT64_C(1024));
    assert_int_equal(topo.threads_default, 16);
    assert_true(advises("NUMA: memory is split over 2 nodes"));
    assert_false(advises("NUMA: no CPU"));
    for (int i = 0; i < topo.n_cpus; i++)
        topo.cpu[i].allowed = topo.cpu[i].package == 1;
    assert_true(advises("NUMA: no CPU of this process is on 1 of the 2 nodes"));
    assert_false(advises("NUMA: memory is split"));
}

/* Threads cannot be spread over a node that has no CPU. */
static void node_of_memory_alone(void **state)
{
    (void)state;
    read_machine("memory-node");
    assert_int_equal(topo.n_nodes, 2);
    for (int i = 0; i < topo.n_cpus; i++)
        assert_int_equal(topo.cpu[i].node, 0);
    assert_int_equal(topo.mem_hwloc, (16000000 + 64000000) * UINT64_C(1024));
    assert_true(advises("NUMA: no CPU of this process is on 1 of the 2 nodes"));
    assert_false(advises("NUMA: memory is split"));
}

static void vm_with_hidden_topology(void **state)
{
    (void)state;
    read_machine("vm-hidden");
    assert_int_equal(topo.smt, TOPO_SMT_HIDDEN);
    assert_string_equal(topo.cpu_model, "AMD EPYC"); /* recorded with blanks */
    assert_string_equal(topo.hypervisor, "kvm");
    assert_int_equal(topo.cgroup_version, 1);
    assert_int_equal(topo.mem_limit, 0);
    /* memory plugged in later: the kernel's figure counts */
    assert_int_equal(topo.mem_total, 24684084 * UINT64_C(1024));
    assert_int_equal(topo.mem_hwloc, 5990604 * UINT64_C(1024));
    assert_float_equal(topo.steal_share, 3000.0 / 103000.0, 1e-9);
    assert_int_equal(topo.threads_default, 2);
    assert_true(advises("Memory: the NUMA nodes"));
    assert_true(advises("Steal: 2.9 %"));
    assert_true(advises("Hyperthreads: this virtual machine"));
}

static void vm_with_v1_limits(void **state)
{
    (void)state;
    read_machine("vm-v1-limits");
    assert_float_equal(topo.quota_cpus, 3, 1e-12);
    assert_int_equal(topo.cgroup_version, 1);
    assert_int_equal(topo.mem_limit, 4 * GIB); /* the group's own would allow 8 */
    assert_string_equal(topo.mem_limit_source,
                        "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes");
    assert_int_equal(topo.mem_left, 4 * GIB - GIB / 2 * 3); /* the neighbour's */
    assert_int_equal(topology_usable_bytes(&topo, 0), topo.mem_left);
    assert_int_equal(topology_usable_bytes(&topo, GIB), GIB);
    assert_int_equal(topology_usable_bytes(&topo, 3 * GIB), topo.mem_left);
    assert_true(topology_model_bytes(&topo, 0) < topo.mem_left);
    assert_true(advises("Models: weights and KV cache of up to 2.41 GiB together fit "
                        "into the 2.50 GiB that the memory limit leaves."));
    assert_int_equal(topo.threads_default, 3);
}

static void container_with_a_quota(void **state)
{
    char units[UNITS_TEXT_MAX];

    (void)state;
    read_machine("container-1.5cpu");
    assert_int_equal(topo.n_cpus, 8);
    assert_int_equal(topo.n_allowed, 4);
    assert_int_equal(topo.n_allowed_cores, 2);
    assert_false(topo.cpu[4].allowed);
    assert_float_equal(topo.quota_cpus, 1.5, 1e-12);
    assert_string_equal(topo.quota_source, "/sys/fs/cgroup/cpu.max");
    assert_int_equal(topo.mem_limit, 6 * GIB);
    assert_string_equal(topo.mem_limit_source, "/sys/fs/cgroup/memory.max");
    assert_string_equal(topo.hypervisor, "nitro");
    assert_true(topo.isa_mask & BIT(avxvnni));
    assert_string_equal(units_text(topo.unused_units, units, sizeof units),
                        "AVX512-FP16");
    assert_int_equal(topo.threads_default, 1);
    assert_string_equal(topo.threads_why,
                        "1: 2 physical cores, a quota of 1.5 CPUs, 4 allowed CPUs");
    assert_true(advises("Quota: 1.5 is not a whole number"));
    assert_true(advises("Huge pages: switched off"));
    assert_true(topology_model_bytes(&topo, 0) < 6 * GIB);
    assert_true(topology_model_bytes(&topo, 0) > 5 * GIB);
    assert_int_equal(topology_usable_bytes(&topo, 0), 6 * GIB);
}

static void offline_cpus_and_holes(void **state)
{
    static const int ids[] = {0, 1, 4, 5};

    (void)state;
    read_machine("offline-holes");
    assert_int_equal(topo.n_cpus, 4);
    assert_int_equal(topo.n_offline, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(topo.cpu[i].os_id, ids[i]);
        assert_int_equal(topo.cpu[i].core, i);
        assert_int_equal(topo.cpu[i].allowed, i > 0);
    }
    assert_int_equal(topo.n_allowed, 3);
    assert_int_equal(topo.smt, TOPO_SMT_NONE);
    assert_int_equal(topo.threads_default, 3);
    assert_true(advises("CPUs: 4 are switched off"));
}

static void arm_guest(void **state)
{
    (void)state;
    read_machine("arm-guest");
    assert_string_equal(topo.cpu_model, "Arm Neoverse N1");
    assert_int_equal(topo.isa_mask, BIT(scalar) | BIT(neon));
    assert_string_equal(topo.isa_missing[KERN_ISA_neon_i8mm], "lacks i8mm");
    assert_string_equal(topo.isa_missing[KERN_ISA_avx2], "for x86 only");
    assert_int_equal(topo.smt, TOPO_SMT_NONE); /* a guest, but Arm has no SMT to hide */
    assert_int_equal(topo.threads_default, 4);
}

/* A quota of less than one CPU still needs a thread; 199999 us in 100 ms are two. */
/* More threads than CPUs, or than a quota lets run, are worth a sentence. */
static void doubts_too_many_threads(void **state)
{
    const int twice[3] = {0, 1, 0};
    char text[200] = "";

    (void)state;
    read_machine("smt-laptop");
    assert_false(topology_doubts_threads(&topo, 8, NULL, text, sizeof text));
    assert_false(topology_doubts_threads(&topo, 2, twice, text, sizeof text));
    assert_string_equal(text, "");
    assert_true(topology_doubts_threads(&topo, 3, twice, text, sizeof text));
    assert_string_equal(text,
                        "3 threads share 2 CPUs: they run alternately, which costs "
                        "speed; `bench topo` recommends 4");
    assert_true(topology_doubts_threads(&topo, 99, NULL, text, sizeof text));
    assert_non_null(strstr(text, "99 threads share 8 CPUs"));
    read_machine("container-1.5cpu");
    assert_false(topology_doubts_threads(&topo, 1, NULL, text, sizeof text));
    assert_true(topology_doubts_threads(&topo, 3, NULL, text, sizeof text));
    assert_non_null(strstr(text, "3 threads under a quota of 1.5 CPUs"));
    assert_true(topology_doubts_threads(&topo, 2, NULL, text, sizeof text));
    assert_string_equal(text,
                        "2 threads under a quota of 1.5 CPUs are all stopped for 25 % "
                        "of the time; `bench topo` recommends 1");
    topo.quota_cpus = 0.5; /* nothing better to recommend */
    assert_true(topology_doubts_threads(&topo, 1, NULL, text, sizeof text));
    assert_string_equal(text, "1 thread under a quota of 0.5 CPUs is stopped for 50 % "
                              "of the time");
    topo.quota_cpus = 1.99999; /* as good as two */
    assert_false(topology_doubts_threads(&topo, 2, NULL, text, sizeof text));
}

static void small_and_odd_quotas(void **state)
{
    static const struct {
        const char *max;
        int threads;
    } cases[] = {{"20000 100000", 1}, {"199999 100000", 2}, {"800000 100000", 4}};
    struct err err = ERR_INIT;
    char root[64];

    (void)state;
    tree_machine(root, "smt-laptop");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tree_put(root, "/sys/fs/cgroup/user.slice/cpu.max", cases[i].max);
        assert_int_equal(topology_read(&topo, root, &err), ST_OK);
        assert_int_equal(topo.threads_default, cases[i].threads);
    }
    tree_put(root, "/sys/fs/cgroup/user.slice/cpu.max", cases[0].max);
    assert_int_equal(topology_read(&topo, root, &err), ST_OK);
    assert_true(advises("Quota: with 0.2 CPUs"));
    tree_remove(root);
}

static void names_what_a_tree_lacks(void **state)
{
    struct err err = ERR_INIT;
    char root[64];

    (void)state;
    tree_new(root);
    memset(&topo, 0xa5, sizeof topo);
    assert_int_equal(topology_read(&topo, root, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "/proc/cpuinfo"));
    assert_int_equal((unsigned char)topo.cpu_model[0], 0xa5); /* untouched */
    err_clear(&err);
    tree_put(root, "/proc/cpuinfo", "processor\t: 0\n");
    assert_int_equal(topology_read(&topo, root, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "/sys/devices/system/cpu/online"));
    err_clear(&err);
    tree_remove(root);
    tree_machine(root, "smt-laptop");
    tree_put(root, "/proc/meminfo", "nothing\n");
    assert_int_equal(topology_read(&topo, root, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "MemTotal"));
    err_clear(&err);
    assert_int_equal(topology_read(&topo, "/nowhere", &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "/nowhere/proc/cpuinfo"));
    tree_remove(root);
}

static void restores_the_environment(void **state)
{
    (void)state;
    setenv("HWLOC_FSROOT", "/mine", 1);
    unsetenv("HWLOC_THISSYSTEM");
    read_machine("vm-hidden");
    assert_string_equal(getenv("HWLOC_FSROOT"), "/mine");
    assert_null(getenv("HWLOC_THISSYSTEM"));
    unsetenv("HWLOC_FSROOT");
}

/* One socket after the other, and of each the first hyperthreads first. */
static const char two_sockets[] =
    "processor\t: 0\nphysical id\t: 0\ncore id\t\t: 0\nflags\t\t: fpu\n\n"
    "processor\t: 1\nphysical id\t: 1\ncore id\t\t: 0\n\n"
    "processor\t: 4\nphysical id\t: 0\ncore id\t\t: 0\n\n"
    "processor\t: 5\nphysical id\t: 1\ncore id\t\t: 3\n\n";

static void plain_machine(const char *cpuinfo, const int *mine, int n_mine)
{
    memset(&topo, 0, sizeof topo);
    topology_read_plain(&topo, cpuinfo, mine, n_mine);
    topology_count_cores(&topo);
}

static void without_hwloc_cores_are_those_of_cpuinfo(void **state)
{
    static const int mine[] = {4, 5};

    (void)state;
    plain_machine(two_sockets, mine, 2);
    assert_int_equal(topo.n_cpus, 4);
    assert_int_equal(topo.n_packages, 2);
    assert_int_equal(topo.n_cores, 3);
    assert_int_equal(topo.n_nodes, 1);
    assert_int_equal(topo.cpu[2].os_id, 4);
    assert_int_equal(topo.cpu[2].core, topo.cpu[0].core);
    assert_int_equal(topo.cpu[2].sibling, 1);
    assert_int_equal(topo.cpu[3].package, 1);
    assert_int_not_equal(topo.cpu[3].core, topo.cpu[1].core);
    assert_int_equal(topo.smt, TOPO_SMT_SHOWN);
    assert_true(topo.mem_hwloc > 0);
    for (int i = 0; i < topo.n_caches; i++)
        assert_int_equal(topo.cache[i].n_instances,
                         topo.cache[i].level < 3 ? topo.n_cores : topo.n_packages);
}

/* A container that numbers its CPUs from 0 where the kernel does not; Arm, which tells
 * no cores; and nothing at all. */
static void without_hwloc_cpus_are_those_of_the_process(void **state)
{
    static const char arm[] = "processor\t: 0\nFeatures\t: fp\n\nprocessor\t: 1\n";
    static const int other[] = {6, 9}, two[] = {0, 1};

    (void)state;
    plain_machine(two_sockets, other, 2);
    assert_int_equal(topo.n_cpus, 2);
    assert_int_equal(topo.cpu[1].os_id, 9);
    assert_int_equal(topo.n_cores, 2);
    assert_int_equal(topo.n_packages, 1);
    plain_machine(arm, two, 2);
    assert_int_equal(topo.n_cores, 2);
    assert_int_equal(topo.n_packages, 1);
    plain_machine("", NULL, 0);
    assert_int_equal(topo.n_cpus, 1);
    assert_int_equal(topo.n_cores, 1);
}

static void json_has_the_same_facts(void **state)
{
    (void)state;
    read_machine("container-1.5cpu");
    json_t *j = topology_json(&topo);
    assert_non_null(j);
    json_t *cpu = json_object_get(j, "cpu"), *limits = json_object_get(j, "limits");
    assert_int_equal(json_integer_value(json_object_get(cpu, "cores")), 4);
    assert_int_equal(json_array_size(json_object_get(cpu, "list")), 8);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(cpu, "unused_units"), 0)),
        "AVX512-FP16");
    assert_float_equal(json_real_value(json_object_get(limits, "cpu_quota")), 1.5,
                       1e-12);
    assert_int_equal(json_integer_value(json_object_get(limits, "memory_bytes")),
                     6 * GIB);
    assert_int_equal(json_integer_value(json_object_get(j, "threads_default")), 1);
    json_decref(j);

    read_machine("smt-laptop");
    j = topology_json(&topo);
    limits = json_object_get(j, "limits");
    assert_true(json_is_null(json_object_get(limits, "cpu_quota")));
    assert_true(json_is_null(json_object_get(limits, "memory_bytes")));
    json_decref(j);
}

/* What can be said of any machine, and agrees with the system's own answers. */
static void this_machine(void **state)
{
    struct err err = ERR_INIT;
    cpu_set_t set;

    (void)state;
    assert_int_equal(topology_read(&topo, "", &err), ST_OK);
    assert_int_equal(topo.n_cpus, sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(topo.n_cores >= 1 && topo.n_cores <= topo.n_cpus);
    assert_int_equal(topo.isa_mask, isa_usable());
    assert_true(topo.mem_available <= topo.mem_total);
    assert_true(topo.threads_default >= 1 && topo.threads_default <= topo.n_cpus);
    if (!sched_getaffinity(0, sizeof set, &set))
        assert_int_equal(topo.n_allowed, CPU_COUNT(&set));
}

static void follows_affinity(void **state)
{
    struct err err = ERR_INIT;
    cpu_set_t before, one;

    (void)state;
    if (sched_getaffinity(0, sizeof before, &before))
        skip();
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++) {
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(topology_read(&topo, "", &err), ST_OK);
    sched_setaffinity(0, sizeof before, &before);
    assert_int_equal(topo.n_allowed, 1);
    assert_int_equal(topo.threads_default, 1);
}

static void place(enum placement p, int n, const int *wanted)
{
    struct err err = ERR_INIT;
    int cpus[TOPO_MAX_CPUS];

    assert_int_equal(placement_cpus(&topo, p, n, cpus, &err), ST_OK);
    for (int i = 0; i < n; i++)
        assert_int_equal(cpus[i], wanted[i]);
}

static void performance_and_efficiency_cores(void **state)
{
    char text[256];

    (void)state;
    read_machine("hybrid");
    assert_int_equal(topo.n_kinds, 2);
    assert_int_equal(topo.n_fast_cores, 4);
    assert_int_equal(topo.n_allowed_cores, 8);
    assert_int_equal(topo.cpu[2].kind, 0); /* a little less than the fastest */
    assert_int_equal(topo.cpu[8].kind, 1);
    assert_int_equal(topo.threads_default, 4);
    assert_string_equal(topo.threads_why,
                        "4: 4 fast of 8 physical cores, no quota, 12 allowed CPUs");
    assert_true(advises("Cores: 4 fast"));
    topology_kinds_text(&topo, text, sizeof text);
    assert_string_equal(
        text, "4 fast (CPUs 0-7), 4 slower (CPUs 8-11: about 45 % of their speed)");
    place(PLACEMENT_SPREAD, 12, (int[]){0, 2, 4, 6, 8, 9, 10, 11, 1, 3, 5, 7});
    place(PLACEMENT_COMPACT, 10, (int[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

/* One core is the fastest, but three more are nearly as fast. */
static void big_and_little_cores(void **state)
{
    (void)state;
    read_machine("big-little");
    assert_int_equal(topo.n_kinds, 3);
    assert_int_equal(topo.n_fast_cores, 4);
    assert_int_equal(topo.threads_default, 4);
    place(PLACEMENT_SPREAD, 5, (int[]){7, 4, 5, 6, 0});
    read_machine("arm-guest");
    assert_int_equal(topo.n_kinds, 1);
    assert_int_equal(topo.n_fast_cores, 4);
    assert_false(advises("Cores:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(performance_and_efficiency_cores),
        cmocka_unit_test(big_and_little_cores),
        cmocka_unit_test(smt_laptop),
        cmocka_unit_test(two_socket),
        cmocka_unit_test(node_of_memory_alone),
        cmocka_unit_test(vm_with_hidden_topology),
        cmocka_unit_test(vm_with_v1_limits),
        cmocka_unit_test(container_with_a_quota),
        cmocka_unit_test(offline_cpus_and_holes),
        cmocka_unit_test(arm_guest),
        cmocka_unit_test(doubts_too_many_threads),
        cmocka_unit_test(small_and_odd_quotas),
        cmocka_unit_test(names_what_a_tree_lacks),
        cmocka_unit_test(restores_the_environment),
        cmocka_unit_test(without_hwloc_cores_are_those_of_cpuinfo),
        cmocka_unit_test(without_hwloc_cpus_are_those_of_the_process),
        cmocka_unit_test(json_has_the_same_facts),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(follows_affinity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
