/* SPDX-License-Identifier: MIT
 *
 * test_placement.c - which CPUs threads are given on recorded machines
 */
#include "tests/support/tree.h"

#include "harness/machine/topology.h"

static struct topology topo;

static void read_machine(const char *name)
{
    struct err err = ERR_INIT;
    char root[64];

    tree_machine(root, name);
    assert_int_equal(topology_read(&topo, root, &err), ST_OK);
    tree_remove(root);
}

static void expect(enum placement p, int n, const int *wanted)
{
    struct err err = ERR_INIT;
    int cpus[64];

    assert_int_equal(placement_cpus(&topo, p, n, cpus, &err), ST_OK);
    for (int i = 0; i < n; i++)
        assert_int_equal(cpus[i], wanted[i]);
}

static void laptop(void **state)
{
    (void)state;
    read_machine("smt-laptop");
    expect(PLACEMENT_SPREAD, 8, (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
    expect(PLACEMENT_COMPACT, 8, (const int[]){0, 4, 1, 5, 2, 6, 3, 7});
    expect(PLACEMENT_SMT, 3, (const int[]){0, 4, 1});
    expect(PLACEMENT_SPREAD, 10,
           (const int[]){0, 1, 2, 3, 4, 5, 6, 7, 0, 1}); /* wraps */
    expect(PLACEMENT_NONE, 2, (const int[]){-1, -1});
}

/* A list is in the order given, one CPU for each of the larger count. */
static void explicit_lists(void **state)
{
    static const struct {
        const char *text;
        int n_threads, n_threads_prefill;
        const char *message; /* NULL: fine, with 4 CPUs */
    } tries[] = {
        {"5,0-1,4", 0, 0, NULL},
        {"5,0-1,4", 4, 0, NULL},
        {"5,0-1,4", 2, 4, NULL},
        {"5,0-1,4", 0, 3, NULL},
        {"5,0-1,4", 2, 0, "names 4 CPUs for 2 threads"},
        {"5,0-1,4", 2, 3, "names 4 CPUs for 3 threads"},
        {"5,0-1,4", 0, 6, "names 4 CPUs for 6 threads"},
        {"0", 1, 2, "names 1 CPU for 2 threads"},
        {"0-1023", 0, 0, "may not run on CPU 8"},
        {"0-1024", 0, 0, "names 1025 CPUs for 1024 threads"},
        {"8", 1, 0, "may not run on CPU 8"},
        {"spread", 0, 0, "--cpus"},
    };

    (void)state;
    read_machine("smt-laptop");
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        int cpus[TOPO_MAX_CPUS], n = tries[i].n_threads;
        struct err err = ERR_INIT;
        const enum status st = placement_parse_cpus(
            tries[i].text, &topo, &n, tries[i].n_threads_prefill, cpus, &err);

        assert_int_equal(st, tries[i].message ? ST_USAGE : ST_OK);
        if (tries[i].message) {
            if (!strstr(err.msg, tries[i].message))
                fail_msg("'%s' says: %s", tries[i].text, err.msg);
            assert_int_equal(n, tries[i].n_threads);
            continue;
        }
        assert_int_equal(n, tries[i].n_threads ? tries[i].n_threads : 4);
        assert_int_equal(cpus[0], 5);
        assert_int_equal(cpus[1], 0);
        assert_int_equal(cpus[2], 1);
        assert_int_equal(cpus[3], 4);
    }
}

static void two_sockets(void **state)
{
    (void)state;
    read_machine("two-socket");
    expect(PLACEMENT_SPREAD, 6, (const int[]){0, 8, 1, 9, 2, 10});
    expect(PLACEMENT_COMPACT, 6, (const int[]){0, 16, 1, 17, 2, 18});
    int cpus[64];
    struct err err = ERR_INIT;
    assert_int_equal(placement_cpus(&topo, PLACEMENT_SPREAD, 32, cpus, &err), ST_OK);
    for (int i = 0; i < 32; i++) {
        assert_int_equal(cpus[i] >= 16, i >= 16);           /* first all cores once */
        assert_int_equal(topo.cpu[cpus[i]].package, i % 2); /* sockets in turn */
    }
}

/* The first sibling of core 1 is forbidden: the second is then its first. */
static void forbidden_cpus(void **state)
{
    struct err err = ERR_INIT;
    int cpu;

    (void)state;
    read_machine("smt-laptop");
    topo.cpu[1].allowed = topo.cpu[2].allowed = topo.cpu[6].allowed = false;
    expect(PLACEMENT_SPREAD, 5, (const int[]){0, 5, 3, 4, 7});
    expect(PLACEMENT_COMPACT, 5, (const int[]){0, 4, 5, 3, 7});
    expect(PLACEMENT_SMT, 5, (const int[]){0, 4, 3, 7, 5}); /* pairs first */
    for (int i = 0; i < 8; i++)
        topo.cpu[i].allowed = i < 4;
    assert_int_equal(placement_cpus(&topo, PLACEMENT_SMT, 1, &cpu, &err),
                     ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "affinity mask"));
    err_clear(&err);
    for (int i = 0; i < 8; i++)
        topo.cpu[i].allowed = false;
    assert_int_equal(placement_cpus(&topo, PLACEMENT_SPREAD, 1, &cpu, &err),
                     ST_UNSUPPORTED);
}

static void holes_in_the_numbering(void **state)
{
    (void)state;
    read_machine("offline-holes");
    expect(PLACEMENT_SPREAD, 3, (const int[]){1, 4, 5});
    expect(PLACEMENT_COMPACT, 4, (const int[]){1, 4, 5, 1});
}

/* Cores behind two last-level caches of one socket are used in turn. */
static void caches_in_turn(void **state)
{
    (void)state;
    read_machine("vm-v1-limits");
    topo.cpu[2].llc = topo.cpu[3].llc = 1;
    expect(PLACEMENT_SPREAD, 4, (const int[]){0, 2, 1, 3});
    expect(PLACEMENT_COMPACT, 4, (const int[]){0, 1, 2, 3});
}

static void smt_where_none_is_shown(void **state)
{
    struct err err = ERR_INIT;
    int cpu = 77;

    (void)state;
    read_machine("vm-hidden");
    assert_int_equal(placement_cpus(&topo, PLACEMENT_SMT, 1, &cpu, &err),
                     ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "virtual machine shows none"));
    assert_int_equal(cpu, 77);
    err_clear(&err);
    assert_int_equal(placement_cpus(&topo, PLACEMENT_SPREAD, 0, &cpu, &err), ST_USAGE);
}

/* As large as a machine may be; also a test that this ends soon. */
static void a_thousand_cpus(void **state)
{
    struct err err = ERR_INIT;
    static int cpus[TOPO_MAX_CPUS];

    (void)state;
    memset(&topo, 0, sizeof topo);
    topo.n_cpus = TOPO_MAX_CPUS;
    for (int i = 0; i < TOPO_MAX_CPUS; i++)
        topo.cpu[i] = (struct topo_cpu){
            .os_id = i,
            .core = i / 2,
            .llc = i / 16,
            .node = i / 128,
            .package = i / 512,
            .sibling = i % 2,
            .allowed = true,
        };
    assert_int_equal(placement_cpus(&topo, PLACEMENT_SPREAD, TOPO_MAX_CPUS, cpus, &err),
                     ST_OK);
    assert_int_equal(cpus[1], 512); /* the other socket */
    assert_int_equal(cpus[2], 128); /* another node of the first */
    assert_int_equal(cpus[8], 16);  /* another cache of the first node */
    assert_int_equal(cpus[512], 1); /* now the siblings */
}

static void names_both_ways(void **state)
{
    struct err err = ERR_INIT;
    enum placement p;

    (void)state;
    for (int i = PLACEMENT_SPREAD; i <= PLACEMENT_NONE; i++) {
        assert_int_equal(choice_parse(&choices_placement,
                                      placement_name((enum placement)i), "here", &p,
                                      &err),
                         ST_OK);
        assert_int_equal(p, i);
    }
    assert_int_equal(choice_parse(&choices_placement, "Spread", "here", &p, &err),
                     ST_USAGE);
    assert_non_null(strstr(err.msg, "compact"));
    assert_int_equal(p, PLACEMENT_NONE); /* untouched */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laptop),
        cmocka_unit_test(explicit_lists),
        cmocka_unit_test(two_sockets),
        cmocka_unit_test(forbidden_cpus),
        cmocka_unit_test(holes_in_the_numbering),
        cmocka_unit_test(caches_in_turn),
        cmocka_unit_test(smt_where_none_is_shown),
        cmocka_unit_test(a_thousand_cpus),
        cmocka_unit_test(names_both_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
