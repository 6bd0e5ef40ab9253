/* SPDX-License-Identifier: MIT
 *
 * test_sweep_machine.c - a sweep on recorded machines: its thread counts, and where it
 * may go on
 */
#include "tests/support/tree.h"

#include "harness/machine/cores.h"
#include "harness/machine/probe.h"
#include "harness/measure/sweep/sweep.h"

static void read_machine(struct topology *t, const char *name)
{
    struct err err = ERR_INIT;
    char root[64];

    tree_machine(root, name);
    assert_int_equal(topology_read(t, root, &err), ST_OK);
    tree_remove(root);
}

/* ---- thread counts --------------------------------------------------------------- */

/* One more count where there are second hyperthreads that a quota lets run: all CPUs,
 * which placements put there last. For decode and prefill alike. */
static void all_threads_have_siblings_once(void **state)
{
    static const struct {
        const char *machine;
        int n, v[8];
    } cases[] = {
        {"vm-smt", 2, {1, 2}},           {"smt-laptop", 5, {1, 2, 3, 4, 8}},
        {"offline-holes", 3, {1, 2, 3}}, {"vm-hidden", 2, {1, 2}},
        {"container-1.5cpu", 1, {1}},
    };
    static const enum setting_id ids[] = {SETTING_threads, SETTING_threads_prefill};
    struct topology *t = calloc(1, sizeof *t);

    (void)state;
    assert_non_null(t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct sweep_settings s;
        int cpus[8];

        read_machine(t, cases[i].machine);
        assert_int_equal(sweep_settings_init(&s, t, &err), ST_OK);
        assert_int_equal(sweep_set(&s, SETTING_threads_prefill, "all", t, "here", &err),
                         ST_OK);
        for (int k = 0; k < 2; k++) {
            const struct int_list *list = &s.list[ids[k]];

            if (list->n != (size_t)cases[i].n)
                fail_msg("%s: %zu counts", cases[i].machine, list->n);
            assert_memory_equal(list->v, cases[i].v, list->n * sizeof(int));
        }
        const int n = cases[i].v[cases[i].n - 1];

        assert_int_equal(placement_cpus(t, PLACEMENT_SPREAD, n, cpus, &err), ST_OK);
        for (int a = 0; a < n; a++)
            for (int b = 0; b < a; b++)
                assert_int_not_equal(cpus[a], cpus[b]);
        sweep_settings_free(&s);
    }
    free(t);
}

/* Where a measurement finds the siblings that a virtual machine hides. */
static void all_threads_have_measured_siblings(void **state)
{
    const struct cores_map map = {.n_cpus = 2,
                                  .n_cores = 1,
                                  .cpu = {0, 1},
                                  .core = {0, 0},
                                  .complete = true,
                                  .n_pairs = 1};
    struct topology *t = calloc(1, sizeof *t);
    struct err err = ERR_INIT;
    struct sweep_settings s;

    (void)state;
    assert_non_null(t);
    read_machine(t, "vm-hidden");
    cores_apply(&map, t);
    assert_int_equal(t->threads_default, 1);
    assert_int_equal(sweep_settings_init(&s, t, &err), ST_OK);
    assert_int_equal(s.list[SETTING_threads].n, 2);
    assert_int_equal(s.list[SETTING_threads].v[1], 2);
    sweep_settings_free(&s);
    /* the quota is for the siblings, too */
    t->quota_cpus = 1.9;
    assert_int_equal(sweep_settings_init(&s, t, &err), ST_OK);
    assert_int_equal(s.list[SETTING_threads].n, 1);
    sweep_settings_free(&s);
    free(t);
}

/* ---- where a sweep may go on ----------------------------------------------------- */

static enum status may_go_on(const struct topology *then, const struct topology *now,
                             struct err *err)
{
    struct sweep_settings s;

    memset(&s, 0, sizeof s);
    point_init(&s.base);
    json_t *machine = sweep_machine_json(then, NULL, &s, 0, NULL);
    const enum status st = sweep_machine_check(machine, now, "there", err);

    json_decref(machine);
    return st;
}

static void a_sweep_goes_on_where_it_began(void **state)
{
    struct topology *then = calloc(1, sizeof *then), *now = calloc(1, sizeof *now);
    struct cores_map map = {.n_cpus = 2, .cpu = {0, 1}, .core = {0, 0}};
    struct err err = ERR_INIT;

    (void)state;
    assert_true(then && now);
    read_machine(then, "vm-hidden");
    read_machine(now, "vm-hidden");
    now->mem_available /= 2;
    now->steal_share = 0.3;
    assert_int_equal(may_go_on(then, now, &err), ST_OK);
    /* Which CPUs share a core is a measurement: another one may be undecided. */
    map.n_cores = map.n_pairs = 1;
    map.complete = true;
    cores_apply(&map, then);
    assert_int_equal(then->n_cores, 1);
    assert_int_equal(may_go_on(then, now, &err), ST_OK);
    now->quota_cpus = 1.5;
    assert_int_equal(may_go_on(then, now, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "its CPU quota is 'none', here '1.50 CPUs'"));
    err_clear(&err);
    now->quota_cpus = 0;
    now->n_allowed = 1;
    assert_int_equal(may_go_on(then, now, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "its CPU layout is"));
    err_clear(&err);
    read_machine(now, "smt-laptop");
    assert_int_equal(may_go_on(then, now, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "its CPU is 'AMD EPYC', here 'Intel"));
    free(then);
    free(now);
}

/* What was measured with, where another build or no machine at all is written there. */
static void a_sweep_goes_on_with_its_build(void **state)
{
    static const struct {
        const char *object, *key, *value; /* NULL: taken away */
        enum status st;
        const char *words;
    } cases[] = {
        {"versions", "bench", "0.0", ST_USAGE, "was measured by bench 0.0, this is"},
        {"versions", "bench", NULL, ST_USAGE, "was measured by bench unknown"},
        {"versions", "compiler", "tcc\x1b[31m", ST_USAGE,
         "by bench built by tcc\\x1b[31m, this is built by"},
        {"versions", "hwloc", "0.1", ST_OK, ""},
        {"topology", "cpu", NULL, ST_INPUT,
         "machine it was measured on; begin a new one"},
        {"topology", "memory", "much", ST_INPUT,
         "machine it was measured on; begin a new one"},
    };
    struct topology *t = calloc(1, sizeof *t);
    const struct probe_report probe = {.has_disk = false};
    char sweep[] = "sweep", model[] = "nano", *argv[] = {sweep, model};
    struct sweep_settings s;

    (void)state;
    assert_non_null(t);
    read_machine(t, "vm-smt");
    memset(&s, 0, sizeof s);
    point_init(&s.base);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *machine = sweep_machine_json(t, &probe, &s, 2, argv);
        json_t *object = json_object_get(machine, cases[i].object);
        struct err err = ERR_INIT;

        assert_int_equal(json_array_size(json_object_get(machine, "command")), 3);
        assert_true(json_is_object(json_object_get(machine, "probe")));
        if (cases[i].value)
            json_object_set_new(object, cases[i].key, json_string(cases[i].value));
        else
            json_object_del(object, cases[i].key);
        assert_int_equal(sweep_machine_check(machine, t, "there", &err), cases[i].st);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("'%s' lacks '%s'", err.msg, cases[i].words);
        json_decref(machine);
    }
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_threads_have_siblings_once),
        cmocka_unit_test(all_threads_have_measured_siblings),
        cmocka_unit_test(a_sweep_goes_on_where_it_began),
        cmocka_unit_test(a_sweep_goes_on_with_its_build),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
