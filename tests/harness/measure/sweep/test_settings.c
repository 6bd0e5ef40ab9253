/* SPDX-License-Identifier: MIT
 *
 * test_settings.c - the ranges of settings hold wherever a setting comes from
 *
 * Every member of a stored sweep, of what a measuring child is told and of a YAML file
 * gets every value of a list of bad and extreme ones. What is refused says which member
 * it is; what is taken goes through all that is computed of it, for the sanitizers.
 */
#include "tests/support/setting_values.h"
#include "tests/support/sweep_fixture.h"

#include <limits.h>

#include "harness/measure/worker/point/point_worker.h"
#include "harness/measure/sweep/sweep.h"
#include "harness/measure/worker/worker_open.h"

/* ---- a stored sweep -------------------------------------------------------------- */

static const struct member stored[] = {
    {"models", WORDS, ANY, "", false},
    {"threads", LIST, 1, TOPO_MAX_CPUS, "[1, 1024]", false},
    {"threads_prefill", LIST, 1, TOPO_MAX_CPUS, "[]", true},
    {"ctx", LIST, 0, 1 << 24, "[0, 16777216]", true},
    {"prefill", LIST, 1, 1 << 24, "[]", true},
    {"placements", WORDS, ANY, "", false},
    {"weights", WORDS, ANY, "", false},
    {"kv_type", WORDS, ANY, "", false},
    {"kv_window", LIST, 0, SLM_MAX_WINDOW, "[0, 16777216]", false},
    {"prefill_sums", WORDS, ANY, "", false},
    {"sequences", LIST, 1, SLM_MAX_SEQUENCES, "[1, 1024]", false},
    {"shared", LIST, 0, 1 << 24, "[0, 16777216]", false},
    {"chunk", LIST, 0, 1 << 14, "[0, 16384]", false},
    {"speculate", WORDS, ANY, "[]", true},
    {"mem_limit", ONE_OR_LIST, 0, 0x1p60, "0", false},
    {"cpus_quota", LIST, 0, 100 * TOPO_MAX_CPUS, "[0, 150]", false},
    {"tokens", WHOLE, 1, 1000000, "64", false},
    {"passes", WHOLE, 1, 1000000, "64", false},
    {"batch", WHOLE, 1, 65536, "64", false},
    {"ctx_prefill", YES_NO, ANY, "false", false},
    {"budget_s", REAL, 0.01, 86400, "0.01", false},
    {"load_budget_s", REAL, 0.01, 86400, "1", false},
    {"launches", WHOLE, 1, 1000, "3", true},
    {"max_launches", WHOLE, 1, 1000, "5", true},
    {"ci_pct", REAL, 0.01, 100, "2", true},
    {"repeats", WHOLE, 0, 100, "0", false},
    {"seed", WHOLE, ANY, "-1", false},
    {"keep_models", YES_NO, ANY, "true", false},
    {"ctx_usual", YES_NO, ANY, "true", true},
    {"cache_dir", WORD, ANY, "\"/tmp\"", true},
    {"engines", WORDS, ANY, "[]", true},
    {"isa_disabled", WHOLE, 0, (1 << KERN_N_ISA) - 1, "1", false},
};

/* All that is computed of a point before and while it travels. */
static void use_point(const struct point *p)
{
    char text[1024];
    struct point back;
    struct err err = ERR_INIT;
    json_t *object;

    point_id(p, text, sizeof text);
    point_command(p, text, sizeof text);
    assert_true(model_setup_threads(&p->setup) <=
                (int)(sizeof p->setup.cpus / sizeof p->setup.cpus[0]));
    assert_true(point_params(p, 0).n_ctx > 0);
    assert_true(point_depth(p) >= 0);
    object = point_json(p);
    assert_non_null(object);
    if (point_from_json(&back, object, &err))
        fail_msg("the child does not take what the sweep takes: %s", err.msg);
    json_decref(object);
}

static enum status take_stored(const json_t *object, struct err *err)
{
    struct sweep_settings s;
    struct sweep_plan plan;
    struct err why = ERR_INIT;
    const enum status st = sweep_settings_from_json(&s, object, err);

    if (st)
        return st;
    if (sweep_plan_make(&plan, &s, &why) == ST_OK) {
        for (size_t i = 0; i < plan.n_points; i++)
            use_point(&plan.points[i]);
        sweep_plan_free(&plan);
    }
    sweep_settings_free(&s);
    return ST_OK;
}

static json_t *stored_sweep(void)
{
    struct sweep_settings s;
    struct err err = ERR_INIT;
    const char *const model = "nano:Q4_0";

    assert_int_equal(sweep_settings_init(&s, topo, &err), ST_OK);
    assert_int_equal(sweep_set_models(&s, &model, 1, "models", &err), ST_OK);
    s.base.setup.seed = 5;
    strcpy(s.cache_dir, work);
    json_t *object = sweep_settings_json(&s);
    sweep_settings_free(&s);
    assert_non_null(object);
    return object;
}

static void stored_settings_are_checked(void **state)
{
    json_t *base = stored_sweep();
    const char *key;
    json_t *value;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(take_stored(base, &err), ST_OK);
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++)
        check_all(base, &stored[i], take_stored);
    json_object_foreach(base, key, value)
    {
        bool listed = false;

        for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++)
            listed |= !strcmp(stored[i].key, key);
        if (!listed)
            fail_msg("no value of the stored setting '%s' is tried", key);
    }
    json_decref(base);
}

/* A sweep of more points than anyone measures, each setting by itself in range. */
static void a_plan_has_a_limit(void **state)
{
    struct sweep_settings s;
    struct sweep_plan plan;
    struct err err = ERR_INIT;
    const char *const model = "nano:Q4_0";

    (void)state;
    assert_int_equal(sweep_settings_init(&s, topo, &err), ST_OK);
    assert_int_equal(sweep_set_models(&s, &model, 1, "models", &err), ST_OK);
    assert_int_equal(sweep_set(&s, SETTING_threads, "1-1024", topo, "threads", &err),
                     ST_OK);
    assert_int_equal(sweep_plan_make(&plan, &s, &err), ST_OK);
    assert_int_equal(plan.n_points, 1024 * 4);
    sweep_plan_free(&plan);
    assert_int_equal(sweep_set(&s, SETTING_threads_prefill, "1-1024", topo, "p", &err),
                     ST_OK);
    assert_int_equal(sweep_set(&s, SETTING_placement, "spread,compact,smt,none", topo,
                               "placement", &err),
                     ST_OK);
    assert_int_equal(sweep_plan_make(&plan, &s, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "10000"));
    sweep_settings_free(&s);
}

/* ---- what a child is told -------------------------------------------------------- */

static const struct member told[] = {
    {"kind", WHOLE, POINT_DECODE, POINT_SPECULATE, "0", false},
    {"model", WORD, ANY, "\"word\"", true},
    {"path", WORD, ANY, "\"word\"", true},
    {"residency", WHOLE, WEIGHTS_AUTO, WEIGHTS_MEMORY, "0", false},
    {"n_threads", WHOLE, 1, TOPO_MAX_CPUS, "1", false},
    {"n_threads_prefill", WHOLE, 0, TOPO_MAX_CPUS, "0", false},
    {"placement", WHOLE, PLACEMENT_SPREAD, PLACEMENT_NONE, "0", false},
    {"ctx", WHOLE, 0, 1 << 24, "0", false},
    {"ctx_prefill", YES_NO, ANY, "true", false},
    {"n_prompt", WHOLE, 0, 1 << 24, "0", false},
    {"n_answer", WHOLE, 0, 1 << 24, "0", false},
    {"n_tokens", WHOLE, 1, 1000000, "1", false},
    {"n_batch", WHOLE, 1, 65536, "1", false},
    {"budget_s", REAL, 0.01, 86400, "10", false},
    {"load_budget_s", REAL, 0.01, 86400, "10", false},
    {"mem_limit", WHOLE, 0, 0x1p60, "0", false},
    {"quota_hundredths", WHOLE, 0, 100 * TOPO_MAX_CPUS, "0", false},
    {"seed", WHOLE, ANY, "1", false},
    {"isa_disabled", WHOLE, 0, (1 << KERN_N_ISA) - 1, "0", false},
    {"force", YES_NO, ANY, "true", false},
    {"profile", YES_NO, ANY, "true", false},
    {"kv_type", WHOLE, 0, KERN_N_KV - 1, "0", false},
    {"kv_window", WHOLE, 0, SLM_MAX_WINDOW, "0", false},
    {"prefill_sums", WHOLE, 0, SLM_N_SUMS - 1, "0", false},
    {"n_sequences", WHOLE, 1, SLM_MAX_SEQUENCES, "1", false},
    {"n_shared", WHOLE, 0, 1 << 24, "0", false},
    {"n_chunk", WHOLE, 0, 1 << 14, "0", false},
    {"mtp", YES_NO, ANY, "false", false},
    {"accept_hundredths", WHOLE, 0, 100, "0", false},
    {"text", WORD, ANY, "\"word\"", true},
};

static enum status take_announced(const json_t *object, struct err *err)
{
    struct point p;
    const enum status st = point_from_json(&p, object, err);

    if (st == ST_OK && p.kind != POINT_PREFILL)
        assert_true(point_params(&p, 0).n_ctx > point_depth(&p));
    if (st == ST_OK)
        assert_true(model_setup_threads(&p.setup) <=
                    (int)(sizeof p.setup.cpus / sizeof p.setup.cpus[0]));
    return st;
}

static void what_a_child_is_told_is_checked(void **state)
{
    struct point p;
    json_t *base;

    (void)state;
    point_init(&p);
    strcpy(p.setup.model.text, "nano:Q4_0");
    strcpy(p.setup.model.path, "/x");
    base = point_json(&p);
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        check_all(base, &told[i], take_announced);
    json_decref(base);
}

/* CPUs, one for each thread. */
static void cpus_of_a_child_are_checked(void **state)
{
    static const char *const bad[] = {
        "[]",      "[1, 2]", "[-1]", "[2147483647]", "[4294967296]", "[1.5]",
        "[\"1\"]", "[null]", "3",    "null",         "[[1]]"};
    struct point p;
    struct err err = ERR_INIT;
    json_t *base;

    (void)state;
    point_init(&p);
    p.setup.explicit_cpus = true;
    base = point_json(&p);
    assert_int_equal(take_announced(base, &err), ST_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        err_clear(&err);
        json_object_set_new(base, "cpus", value_of(bad[i]));
        if (take_announced(base, &err) != ST_USAGE || !strstr(err.msg, "CPU"))
            fail_msg("the CPUs %s were taken, or say: %s", bad[i], err.msg);
    }
    json_object_set_new(base, "cpus", long_list("1"));
    err_clear(&err);
    assert_int_equal(take_announced(base, &err), ST_USAGE);
    json_decref(base);
}

/* ---- a turn ---------------------------------------------------------------------- */

static enum status take_turn(const json_t *object, struct err *err)
{
    struct worker_open o;
    const enum status st = worker_open_from_json(&o, object, err);

    if (st == ST_OK) {
        assert_true(worker_n_ctx(&o) > 0);
        assert_true(worker_n_threads(&o) <= TOPO_MAX_CPUS);
    }
    return st;
}

static void what_a_turn_opens_is_checked(void **state)
{
    static const struct member opened[] = {
        {"n_batch", WHOLE, 1, 65536, "1", false},
        {"memory_bytes", WHOLE, 0, 0x1p60, "0", false},
        {"seed", WHOLE, ANY, "1", false},
        {"isa_disabled", WHOLE, 0, (1 << KERN_N_ISA) - 1, "0", false},
        {"n_loads", WHOLE, 1, WORKER_MAX_LOADS, "1", false},
        {"residency", WHOLE, WEIGHTS_AUTO, WEIGHTS_PACKED, "0", false},
        {"kv_type", WHOLE, 0, KERN_N_KV - 1, "0", false},
        {"model", WORD, ANY, "\"word\"", true},
        {"path", WORD, ANY, "\"word\"", true}};
    static const char *const steps[] = {"[[0, %s, 1, \"\"]]", "[[0, 1, %s, \"\"]]",
                                        "[[1, 1, %s, \"\"]]"};
    static const double range[3][2] = {{1, TOPO_MAX_CPUS}, {0, 1 << 24}, {1, 1 << 24}};
    const struct worker_open o = {.setup.n_batch = 1,
                                  .n_loads = 1,
                                  .n_steps = 1,
                                  .step = {{WORKER_DECODE, 1, 1, KERN_N_FMT}}};
    json_t *base = worker_open_json(&o);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(take_turn(base, &err), ST_OK);
    for (size_t i = 0; i < sizeof opened / sizeof opened[0]; i++)
        check_all(base, &opened[i], take_turn);
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            char text[80];
            json_t *v = value_of(numbers[i]);
            const double d = json_number_value(v);
            const bool right =
                json_is_integer(v) && d >= range[k][0] && d <= range[k][1];

            json_decref(v);
            snprintf(text, sizeof text, steps[k], numbers[i]);
            json_object_set_new(base, "steps", value_of(text));
            err_clear(&err);
            if ((take_turn(base, &err) == ST_OK) != right)
                fail_msg("the steps %s: %s", text, right ? err.msg : "taken");
        }
    json_decref(base);
}

/* ---- YAML ------------------------------------------------------------------------ */

static const struct member keys[] = {
    {"threads", LIST, 1, TOPO_MAX_CPUS, "", false},
    {"threads_prefill", LIST, 1, TOPO_MAX_CPUS, "", false},
    {"ctx", LIST, 0, 1 << 24, "", false},
    {"prefill", LIST, 1, 1 << 24, "", false},
    {"kv_window", LIST, 0, SLM_MAX_WINDOW, "", false},
    {"sequences", LIST, 1, SLM_MAX_SEQUENCES, "", false},
    {"shared", LIST, 0, 1 << 24, "", false},
    {"chunk", LIST, 0, 1 << 14, "", false},
    {"tokens", WHOLE, 1, 1000000, "", false},
    {"passes", WHOLE, 1, 1000000, "", false},
    {"batch", WHOLE, 1, 65536, "", false},
    {"repeats", WHOLE, 0, 100, "", false},
    {"budget", REAL, 0.01, 86400, "", false},
    {"timeout", REAL, 0.01, 86400, "", false}};

static enum status take_yaml(const char *text, struct err *err)
{
    struct sweep_settings s;
    const enum status st = load(&s, text, err);

    sweep_settings_free(&s);
    return st;
}

static void yaml_settings_are_checked(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            const bool list = keys[k].kind == LIST;
            char text[128];
            struct err err = ERR_INIT;
            json_t *v = value_of(numbers[i]);
            const bool right =
                (keys[k].kind == REAL || json_is_integer(v)) && in_range(&keys[k], v);

            json_decref(v);
            snprintf(text, sizeof text, list ? "%s: [%s]\n" : "%s: %s\n", keys[k].key,
                     numbers[i]);
            const enum status st = take_yaml(text, &err);
            if ((st == ST_OK) != right ||
                (st && (status_exit_code(st) != 2 || !strstr(err.msg, "c.yaml") ||
                        !strstr(err.msg, keys[k].key))))
                fail_msg("%s: %s", text, st ? err.msg : "was taken");
        }
}

static void long_yaml_lists_are_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        struct err err = ERR_INIT;
        char *text = NULL;
        size_t len;
        FILE *f = open_memstream(&text, &len);

        fprintf(f, "%s: [1", keys[k].key);
        for (int i = 0; i < LONG_LIST; i++)
            fputs(", 1", f);
        fputs("]\n", f);
        fclose(f);
        assert_int_equal(status_exit_code(take_yaml(text, &err)), 2);
        free(text);

        char line[64];
        err_clear(&err);
        snprintf(line, sizeof line, "%s: [1-1000, 1-1000]\n", keys[k].key);
        assert_int_equal(status_exit_code(take_yaml(line, &err)), 2);
        assert_non_null(strstr(err.msg, keys[k].key));
    }
}

/* ---- the table ------------------------------------------------------------------- */

/* A row says all that its kind needs, and nothing that another says, too. */
static void rows_are_whole(void **state)
{
    unsigned orders = 0, letters[128] = {0};
    struct point p;
    int n_orders = 0;

    (void)state;
    for (enum setting_id id = 0; id < SETTING_N; id++) {
        const struct setting *s = setting_row(id);
        const bool is_flag = s->type == SETTING_TYPE_FLAG;
        const bool is_option = s->in & (SETTING_DECODE | SETTING_OPTION_SWEEP);

        assert_non_null(s->help);
        assert_true(is_option == (s->option != NULL));
        assert_true(!s->option || is_flag == !s->arg);
        assert_true((s->type == SETTING_TYPE_CHOICE) == (s->choices != NULL));
        assert_true(!s->choices || s->max + 1 == s->choices->n);
        assert_true(s->swept != SETTING_EACH || s->choices || id == SETTING_mem ||
                    s->type == SETTING_TYPE_COUNT ||
                    s->type == SETTING_TYPE_HUNDREDTHS);
        assert_true(s->type != SETTING_TYPE_REAL || s->unit);
        assert_true(s->shown == SETTING_HIDDEN || point_field(&p, id, NULL));
        assert_true(!s->id || (s->shown && !(orders & 1u << s->id_order)));
        assert_true(!s->letter || !letters[(int)s->letter]++);
        orders |= s->id ? 1u << s->id_order : 0;
        n_orders += s->id != NULL;
    }
    /* identities name them from the first place on, without a gap */
    assert_int_equal(orders, (1u << (n_orders + 1)) - 2);
}

/* What a point has at first is taken wherever it may come from, and is its default. */
static void defaults_are_taken(void **state)
{
    struct point p, q;
    struct err err = ERR_INIT;

    (void)state;
    point_init(&p);
    for (enum setting_id id = 0; id < SETTING_N; id++) {
        size_t size;
        char text[300];

        if (!point_field(&p, id, &size))
            continue;
        assert_true(setting_is_default(id, point_field(&p, id, NULL)));
        memset(&q, 1, sizeof q);
        json_t *value = setting_json(id, point_field(&p, id, NULL));
        if (setting_from_json(id, value, "here", point_field(&q, id, NULL), size, &err))
            fail_msg("%s", err.msg);
        json_decref(value);
        assert_true(setting_is_default(id, point_field(&q, id, NULL)));
        setting_text(id, point_field(&p, id, NULL), text, sizeof text);
        if (!(setting_row(id)->in & SETTING_DECODE) || !*text || !strcmp(text, "0"))
            continue;
        memset(&q, 1, sizeof q);
        if (setting_parse(id, text, "here", point_field(&q, id, NULL), size, &err))
            fail_msg("%s", err.msg);
        assert_true(setting_is_default(id, point_field(&q, id, NULL)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(defaults_are_taken),
        cmocka_unit_test(stored_settings_are_checked),
        cmocka_unit_test(a_plan_has_a_limit),
        cmocka_unit_test(what_a_child_is_told_is_checked),
        cmocka_unit_test(cpus_of_a_child_are_checked),
        cmocka_unit_test(what_a_turn_opens_is_checked),
        cmocka_unit_test(yaml_settings_are_checked),
        cmocka_unit_test(long_yaml_lists_are_refused),
    };

    return cmocka_run_group_tests(tests, sweep_begin, sweep_end);
}
