/* SPDX-License-Identifier: MIT
 *
 * test_cores.c - which CPUs share a core: verdicts of made-up rounds, machines that
 * are simulated, and recorded ones that the answer is put into
 */
#include "tests/support/tree.h"

#include <math.h>

#include "harness/machine/cores.h"

static uint64_t random_state = 1;

/* Uniform in [0, 1). */
static double uniform(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) / (double)(UINT64_C(1) << 53);
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

/* ---- verdicts -------------------------------------------------------------------- */

static struct cores_pair judge(double mean, double sigma, int n)
{
    struct cores_pair p = {.cpu = {0, 1}};
    double ratio[CORES_ROUNDS];

    for (int i = 0; i < n; i++)
        ratio[i] = mean + sigma * normal();
    cores_judge(&p, ratio, n, 1);
    return p;
}

static void clear_cases(void **state)
{
    struct cores_pair p = judge(1.97, 0.02, CORES_ROUNDS);

    (void)state;
    assert_int_equal(p.verdict, CORES_TWO);
    assert_true(p.sure > 0.999 && p.sure < 1);
    assert_true(p.lo <= p.ratio && p.ratio <= p.hi);
    assert_float_equal(p.ratio, 1.97, 0.03);
    assert_true(p.hi - p.lo < 0.1);

    p = judge(1.08, 0.05, CORES_ROUNDS);
    assert_int_equal(p.verdict, CORES_ONE);
    assert_true(p.sure > 0.999 && p.sure < 1);
}

/* Few rounds, a ratio between the two, or rounds that contradict each other: no
 * verdict, and no certainty. */
static void unclear_cases(void **state)
{
    struct cores_pair p = judge(1.97, 0.02, CORES_MIN_ROUNDS - 1);
    double ratio[CORES_ROUNDS];

    (void)state;
    assert_int_equal(p.verdict, CORES_UNDECIDED);
    p = judge(1.5, 0.01, CORES_ROUNDS);
    assert_int_equal(p.verdict, CORES_UNDECIDED);
    assert_true(p.sure < 0.01);
    for (int i = 0; i < CORES_ROUNDS; i++) /* a vCPU that the hypervisor moved */
        ratio[i] = i % 2 ? 1.95 : 1.05;
    cores_judge(&p, ratio, CORES_ROUNDS, 1);
    assert_int_equal(p.verdict, CORES_UNDECIDED);
    assert_true(p.sure < 0.9);
    cores_judge(&p, ratio, 0, 1);
    assert_int_equal(p.verdict, CORES_UNDECIDED);
    assert_int_equal(p.n_rounds, 0);
    assert_true(isnan(p.ratio) && p.sure == 0);
}

/* A third of the rounds hit by something nobody saw does not turn the median. */
static void outliers(void **state)
{
    struct cores_pair p;
    double ratio[CORES_ROUNDS];

    (void)state;
    for (int i = 0; i < CORES_ROUNDS; i++)
        ratio[i] = i % 4 == 0 ? 1.1 : 1.96 + 0.02 * normal();
    cores_judge(&p, ratio, CORES_ROUNDS, 1);
    assert_int_equal(p.verdict, CORES_TWO);
}

/* Of many experiments on the border of "two" hardly one says "one"; the interval
 * holds the true median about as often as it says. */
static void intervals_cover(void **state)
{
    int n_covered = 0, n_one = 0;

    (void)state;
    for (int i = 0; i < 400; i++) {
        const struct cores_pair p = judge(1.6, 0.1, CORES_ROUNDS);

        n_covered += p.lo <= 1.6 && 1.6 <= p.hi;
        n_one += p.verdict == CORES_ONE;
    }
    assert_int_equal(n_one, 0);
    if (n_covered < 360 || n_covered > 398)
        fail_msg("%d of 400 intervals hold the median", n_covered);
}

/* ---- simulated machines ---------------------------------------------------------- */

struct machine {
    int core[64];      /* by CPU number */
    double clock_drop; /* speed lost with every further core at work */
    double smt;        /* what a hyperthread does next to a busy sibling */
    int n_undisturbed; /* rounds a test gets */
    int n_tests;
};

static enum status simulate(void *arg, const int *cpus, int n, double *share,
                            int *n_rounds, int *n_disturbed, struct err *err)
{
    struct machine *m = arg;

    (void)err;
    m->n_tests++;
    *n_rounds = m->n_undisturbed;
    *n_disturbed = 4;
    for (int r = 0; r < *n_rounds; r++)
        for (int i = 0; i < n; i++) {
            double s = 1 - m->clock_drop * (n - 1) + 0.01 * normal();

            for (int k = 0; k < n; k++)
                if (k != i && m->core[cpus[k]] == m->core[cpus[i]])
                    s *= m->smt;
            share[r * n + i] = s;
        }
    return ST_OK;
}

static struct cores_map map;

static void sort_n(struct machine *m, int n)
{
    struct err err = ERR_INIT;
    int cpus[64];

    for (int i = 0; i < n; i++)
        cpus[i] = i;
    m->n_tests = 0;
    assert_int_equal(cores_sort(&map, cpus, n, 60, simulate, m, &err), ST_OK);
    assert_int_equal(map.n_cpus, n);
}

static void expect_cores(const struct machine *m, int n)
{
    assert_true(map.complete);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            assert_true((map.core[i] == map.core[k]) == (m->core[i] == m->core[k]));
}

static void two_cpus(void **state)
{
    struct machine m = {.core = {0, 1}, .smt = 0.55, .n_undisturbed = CORES_ROUNDS};
    char text[200];

    (void)state;
    sort_n(&m, 2);
    expect_cores(&m, 2);
    assert_int_equal(map.n_cores, 2);
    assert_int_equal(m.n_tests, 1);
    assert_int_equal(map.pair[0].n_disturbed, 4);
    cores_pair_text(&map.pair[0], text, sizeof text);
    assert_non_null(
        strstr(text, "CPUs 0 and 1: two cores (confidence more than 99.9 %)"));

    m.core[1] = 0;
    sort_n(&m, 2);
    expect_cores(&m, 2);
    assert_int_equal(map.n_cores, 1);
    cores_pair_text(&map.pair[0], text, sizeof text);
    assert_non_null(strstr(text, "one core"));

    m.n_undisturbed = 3;
    sort_n(&m, 2);
    assert_false(map.complete);
    cores_pair_text(&map.pair[0], text, sizeof text);
    assert_string_equal(text,
                        "CPUs 0 and 1: undecided, only 3 of 7 rounds were undisturbed");
}

/* Siblings next to each other, half the list apart, in disorder, and none; clocks
 * that fall so far under load that the test of all at once cannot tell. */
static void many_cpus(void **state)
{
    struct machine m = {.smt = 0.55, .n_undisturbed = CORES_ROUNDS};

    (void)state;
    for (int i = 0; i < 16; i++)
        m.core[i] = i / 2;
    sort_n(&m, 16);
    expect_cores(&m, 16);
    assert_int_equal(map.n_cores, 8);
    assert_true(m.n_tests <= 9);
    for (int i = 0; i < 16; i++)
        m.core[i] = i % 8;
    sort_n(&m, 16);
    expect_cores(&m, 16);
    assert_true(m.n_tests <= 10);
    for (int i = 0; i < 16; i++)
        m.core[i] = i;
    sort_n(&m, 16);
    expect_cores(&m, 16);
    assert_int_equal(map.n_cores, 16);
    assert_int_equal(m.n_tests, 1);
    assert_int_equal(map.n_group, 16);

    static const int odd[8] = {0, 1, 2, 0, 3, 1, 2, 4};
    memcpy(m.core, odd, sizeof odd);
    sort_n(&m, 8);
    expect_cores(&m, 8);
    assert_int_equal(map.n_cores, 5);
    assert_int_equal(map.core[0], 0);
    assert_int_equal(map.core[7], 4); /* numbered by their first CPUs */

    for (int i = 0; i < 8; i++)
        m.core[i] = i;
    m.clock_drop = 0.05;
    sort_n(&m, 8);
    expect_cores(&m, 8);
    assert_int_equal(m.n_tests, 1 + 28);
}

/* Without time one pair is tried, and nothing is claimed. */
static void budget_ends_it(void **state)
{
    struct machine m = {.smt = 0.55, .n_undisturbed = CORES_ROUNDS, .clock_drop = 0.05};
    struct err err = ERR_INIT;
    int cpus[8];

    (void)state;
    for (int i = 0; i < 8; i++)
        cpus[i] = m.core[i] = i;
    assert_int_equal(cores_sort(&map, cpus, 8, 0, simulate, &m, &err), ST_OK);
    assert_false(map.complete);
    assert_int_equal(map.n_pairs, 1);
    assert_int_equal(cores_sort(&map, cpus, 1, 0, simulate, &m, &err), ST_USAGE);
}

/* ---- into a topology ------------------------------------------------------------- */

static struct topology topo;

static void read_hidden(void)
{
    struct err err = ERR_INIT;
    char root[64];

    tree_machine(root, "vm-v1-limits"); /* four CPUs */
    assert_int_equal(topology_read(&topo, root, &err), ST_OK);
    assert_int_equal(topo.smt, TOPO_SMT_HIDDEN);
    tree_remove(root);
}

static void siblings_are_applied(void **state)
{
    struct machine m = {
        .core = {0, 1, 0, 1}, .smt = 0.5, .n_undisturbed = CORES_ROUNDS};
    struct err err = ERR_INIT;
    int cpus[4];

    (void)state;
    read_hidden();
    topo.quota_cpus = 0;
    sort_n(&m, 4);
    cores_apply(&map, &topo);
    assert_int_equal(topo.smt, TOPO_SMT_SHOWN);
    assert_int_equal(topo.n_cores, 2);
    assert_int_equal(topo.n_allowed_cores, 2);
    assert_int_equal(topo.threads_default, 2);
    assert_int_equal(topo.cpu[2].sibling, 1);
    assert_non_null(strstr(topo.smt_measured, "4 CPUs on 2 cores"));
    assert_int_equal(placement_cpus(&topo, PLACEMENT_SPREAD, 4, cpus, &err), ST_OK);
    assert_int_equal(cpus[0], 0);
    assert_int_equal(cpus[1], 1);
    assert_int_equal(placement_cpus(&topo, PLACEMENT_SMT, 2, cpus, &err), ST_OK);
    assert_int_equal(cpus[0] + cpus[1], 2);
}

static void cores_are_applied(void **state)
{
    struct machine m = {
        .core = {0, 1, 2, 3}, .smt = 0.5, .n_undisturbed = CORES_ROUNDS};

    (void)state;
    read_hidden();
    sort_n(&m, 4);
    cores_apply(&map, &topo);
    assert_int_equal(topo.smt, TOPO_SMT_NONE);
    assert_int_equal(topo.n_cores, 4);
    assert_int_equal(topo.n_allowed_cores, 4);
}

/* Doubt changes nothing but the sentence. */
static void doubt_is_not_applied(void **state)
{
    struct machine m = {.core = {0, 0, 1, 1}, .smt = 0.75, .n_undisturbed = 10};
    struct topology *before = malloc(sizeof *before);

    (void)state;
    read_hidden();
    *before = topo;
    sort_n(&m, 4);
    assert_false(map.complete);
    cores_apply(&map, &topo);
    assert_int_equal(topo.smt, TOPO_SMT_HIDDEN);
    assert_memory_equal(before->cpu, topo.cpu, sizeof topo.cpu);
    assert_int_equal(before->threads_default, topo.threads_default);
    assert_non_null(strstr(topo.smt_measured, "undecided"));
    free(before);
}

/* The real thing: it ends, and what it says is consistent. What it says depends on
 * the machine. */
static void this_machine(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(topology_read(&topo, "", &err), ST_OK);
    if (topo.n_allowed < 2) {
        assert_int_equal(cores_measure(&map, &topo, 1, &err), ST_UNSUPPORTED);
        return;
    }
    if (topo.n_allowed > 8)
        skip();
    assert_int_equal(cores_measure(&map, &topo, 1, &err), ST_OK);
    assert_int_equal(map.n_cpus, topo.n_allowed);
    for (int i = 0; i < map.n_pairs; i++) {
        const struct cores_pair *p = &map.pair[i];

        assert_true(p->n_rounds <= CORES_ROUNDS);
        assert_true(p->n_rounds == CORES_ROUNDS || p->n_disturbed > 0);
        if (p->n_rounds)
            assert_true(p->lo <= p->ratio && p->ratio <= p->hi && p->ratio > 0);
    }
    json_t *json = cores_json(&map);
    assert_int_equal(json_array_size(json_object_get(json, "cpus")), map.n_cpus);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clear_cases),       cmocka_unit_test(unclear_cases),
        cmocka_unit_test(outliers),          cmocka_unit_test(intervals_cover),
        cmocka_unit_test(two_cpus),          cmocka_unit_test(many_cpus),
        cmocka_unit_test(budget_ends_it),    cmocka_unit_test(siblings_are_applied),
        cmocka_unit_test(cores_are_applied), cmocka_unit_test(doubt_is_not_applied),
        cmocka_unit_test(this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
