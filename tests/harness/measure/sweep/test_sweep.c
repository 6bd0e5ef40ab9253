/* SPDX-License-Identifier: MIT
 *
 * test_sweep.c - configuration, and a directory that survives its writer
 */
#include "tests/support/sweep_fixture.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "harness/measure/sweep/sweep.h"

/* The disk, as the sweep sees it. */
static uint64_t free_bytes = UINT64_MAX;

int statvfs(const char *restrict path, struct statvfs *restrict st)
{
    (void)path;
    memset(st, 0, sizeof *st);
    st->f_frsize = 1;
    st->f_bavail = free_bytes;
    return 0;
}

static char *get(const char *path)
{
    char *text = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    if (getdelim(&text, &cap, '\0', f) < 0)
        text[0] = '\0';
    fclose(f);
    return text;
}

/* ---- configuration --------------------------------------------------------------- */

static void shipped_configs_load(void **state)
{
    static const char *const names[] = {"default", "quick", "quick.yaml"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct sweep_settings s;
        struct err err = ERR_INIT;

        assert_int_equal(sweep_settings_init(&s, topo, &err), ST_OK);
        if (sweep_config_load(&s, names[i], topo, &err))
            fail_msg("%s", err.msg);
        assert_true(s.n_models > 0 && s.list[SETTING_threads].n > 0);
        assert_true(i > 0 || (s.n_mem_limits == 1 && s.mem_limits[0] == 0));
        sweep_settings_free(&s);
    }
}

static void values_arrive(void **state)
{
    struct sweep_settings s;
    struct err err = ERR_INIT;

    (void)state;
    if (load(&s,
             "models: [a:Q4_0, 'b c.gguf']\n"
             "threads: [1, 2-4]\n"
             "ctx: [none]\n"
             "prefill: [7]\n"
             "placement: [compact, none]\n"
             "weights: [packed, mmap]\n"
             "kv_type: [q8_0, f16]\n"
             "speculate: [copy, free]\n"
             "mem: 512M\ntokens: 9\npasses: 8\nbatch: 7\nctx_fill: prefill\n"
             "budget: 1.5\ntimeout: 30\nrepeats: 3\nseed: 18446744073709551615\n"
             "launches: 4\nmax_launches: 7\nci: 1.5%\n"
             "keep_models: true\n",
             &err))
        fail_msg("%s", err.msg);
    assert_int_equal(s.n_models, 2);
    assert_string_equal(s.models[1], "b c.gguf");
    assert_int_equal(s.list[SETTING_threads].n, 4);
    assert_int_equal(s.list[SETTING_threads].v[3], 4);
    assert_int_equal(s.list[SETTING_ctx].n, 0);
    assert_int_equal(s.list[SETTING_prefill].v[0], 7);
    assert_int_equal(s.list[SETTING_placement].n, 2);
    assert_int_equal(s.list[SETTING_placement].v[0], PLACEMENT_COMPACT);
    assert_int_equal(s.list[SETTING_weights].n, 2);
    assert_int_equal(s.list[SETTING_weights].v[0], WEIGHTS_PACKED);
    assert_int_equal(s.list[SETTING_weights].v[1], WEIGHTS_MMAP);
    assert_int_equal(s.n_texts, 2);
    assert_string_equal(s.texts[1], "free");
    assert_int_equal(s.list[SETTING_kv_type].n, 2);
    assert_int_equal(s.list[SETTING_kv_type].v[0], KERN_KV_q8_0);
    assert_int_equal(s.list[SETTING_kv_type].v[1], KERN_KV_f16);
    assert_true(s.n_mem_limits == 1 && s.mem_limits[0] == 512 << 20);
    assert_int_equal(s.base.n_tokens, 9);
    assert_int_equal(s.n_passes, 8);
    assert_int_equal(s.base.setup.n_batch, 7);
    assert_true(s.base.ctx_prefill && s.keep_models);
    assert_true(s.base.budget_s == 1.5 && s.base.load_budget_s == 30);
    assert_int_equal(s.n_repeats, 3);
    assert_int_equal(s.n_launches, 4);
    assert_int_equal(s.max_launches, 7);
    assert_float_equal(s.ci_pct, 1.5, 0);
    assert_true(s.base.setup.seed == UINT64_MAX);
    sweep_settings_free(&s);
}

static void config_errors_name_file_and_key(void **state)
{
    static const struct {
        const char *yaml, *says;
    } bad[] = {
        {"tokenz: 3\n", "tokenz"},
        {"tokens: many\n", "tokens"},
        {"tokens: 0\n", "tokens"},
        {"mem: 6X\n", "mem"},
        {"threads: [0]\n", "threads"},
        {"threads: [none]\n", "threads"},
        {"ctx: []\n", "c.yaml"},
        {"ctx: [-1]\n", "ctx"},
        {"ctx: [1, x]\n", "ctx"},
        {"placement: [sideways]\n", "sideways"},
        {"placement: []\n", "c.yaml"},
        {"weights: [paper]\n", "paper"},
        {"weights: [memory]\n", "bench decode"},
        {"weights: [mmap, packed, auto, stream, mmap]\n", "weights"},
        {"mem: [4G, 6X]\n", "6X"},
        {"mem: 6G\nctx: 3\n", "line 2: here a list is expected"},
        {"mem: [6G]\nctx: 3\n", "line 2: here a list is expected"},
        {"ctx: 3\nmem: [6G]\n", "line 1: here a list is expected"},
        {"mem: 6G\ntokenz: 3\n", "tokenz"},
        {"tokenz: 3\nmem: 6G\n", "tokenz"},
        {"mem: 6G\ntokens: [3, 4]\n", "line 2: here a single value is expected"},
        {"mem: {a: 3}\n", "c.yaml"},
        {"mem: []\n", "c.yaml"},
        {"models: []\n", "c.yaml"},
        {"models: [nano:Q4_0, '']\n", "models: a name of 0 characters"},
        {"keep_models: perhaps\n", "perhaps"},
        {"ctx_fill: magic\n", "magic"},
        {"budget: -1\n", "budget"},
        {"budget: 1%\n", "budget"},
        {"launches: 0\n", "launches"},
        {"ci: 200%\n", "ci"},
        {"ci: '%'\n", "ci"},
        {"models: nano:Q4_0\n", "c.yaml"},
        {"models: [a\n", "c.yaml"},
        {"- a\n- b\n", "c.yaml"},
        {"models: [&x a, *x]\n", "c.yaml"},
        {"", "c.yaml"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct sweep_settings s;
        struct err err = ERR_INIT;

        if (status_exit_code(load(&s, bad[i].yaml, &err)) != 2)
            fail_msg("'%s' was accepted", bad[i].yaml);
        if (!strstr(err.msg, bad[i].says) ||
            (!strstr(err.msg, "c.yaml") && !strstr(err.msg, "placement")))
            fail_msg("'%s' says: %s", bad[i].yaml, err.msg);
        sweep_settings_free(&s);
    }
    struct sweep_settings s;
    struct err err = ERR_INIT;
    assert_int_equal(sweep_settings_init(&s, topo, &err), ST_OK);
    assert_int_equal(sweep_config_load(&s, "/nowhere/x.yaml", topo, &err), ST_IO);
    assert_non_null(strstr(err.msg, "/nowhere/x.yaml"));
    sweep_settings_free(&s);
}

static void settings_json_round_trip(void **state)
{
    struct sweep_settings in, out;
    struct err err = ERR_INIT;
    json_t *a, *b;

    (void)state;
    assert_int_equal(load(&in,
                          "models: [a:Q4_0, b:Q8_0]\nctx: [1, 5]\nseed: 77\n"
                          "placement: [smt]\nweights: [packed]\nmem: 1G\nbudget: 0.1\n",
                          &err),
                     ST_OK);
    strcpy(in.cache_dir, "/some/where");
    a = sweep_settings_json(&in);
    assert_non_null(a);
    assert_int_equal(sweep_settings_from_json(&out, a, &err), ST_OK);
    b = sweep_settings_json(&out);
    assert_true(json_equal(a, b));
    sweep_settings_free(&out);

    /* settings stored before there was a choice */
    json_object_del(b, "weights");
    assert_int_equal(sweep_settings_from_json(&out, b, &err), ST_OK);
    assert_int_equal(out.list[SETTING_weights].n, 1);
    assert_int_equal(out.list[SETTING_weights].v[0], WEIGHTS_MMAP);
    sweep_settings_free(&out);

    /* and before points were launched several times */
    json_object_del(b, "launches");
    json_object_del(b, "max_launches");
    json_object_del(b, "ci_pct");
    assert_int_equal(sweep_settings_from_json(&out, b, &err), ST_OK);
    assert_int_equal(out.n_launches, 1);
    assert_int_equal(out.max_launches, 1);
    assert_float_equal(out.ci_pct, 100, 0);
    sweep_settings_free(&out);

    static const char *const keys[] = {"models", "threads", "budget_s", "placements"};
    for (int i = 0; i < 4; i++) {
        json_t *broken = json_deep_copy(a);

        err_clear(&err);
        json_object_set_new(broken, keys[i],
                            i == 1 ? json_pack("[i]", -3) : json_null());
        assert_int_equal(sweep_settings_from_json(&out, broken, &err), ST_INPUT);
        json_decref(broken);
    }
    err_clear(&err);
    assert_int_equal(sweep_settings_from_json(&out, NULL, &err), ST_INPUT);
    json_decref(a);
    json_decref(b);
    sweep_settings_free(&in);
}

static void all_threads_are_thinned(void **state)
{
    struct sweep_settings s;
    struct err err = ERR_INIT;

    (void)state;
    topo->threads_default = 1;
    assert_int_equal(sweep_settings_init(&s, topo, &err), ST_OK);
    assert_int_equal(s.list[SETTING_threads].n, 1);
    topo->threads_default = 96;
    assert_int_equal(sweep_set(&s, SETTING_threads, "all", topo, "threads", &err),
                     ST_OK);
    assert_true(s.list[SETTING_threads].n < 20);
    assert_int_equal(s.list[SETTING_threads].v[0], 1);
    assert_int_equal(s.list[SETTING_threads].v[s.list[SETTING_threads].n - 1], 96);
    for (size_t i = 1; i < s.list[SETTING_threads].n; i++)
        assert_true(s.list[SETTING_threads].v[i] > s.list[SETTING_threads].v[i - 1]);
    assert_int_equal(s.list[SETTING_threads_prefill].n, 0);
    assert_int_equal(sweep_set(&s, SETTING_threads_prefill, "2,4", topo, "here", &err),
                     ST_OK);
    assert_int_equal(s.list[SETTING_threads_prefill].n, 2);
    assert_int_equal(sweep_set(&s, SETTING_threads_prefill, "none", topo, "here", &err),
                     ST_OK);
    assert_int_equal(s.list[SETTING_threads_prefill].n, 0);
    assert_int_equal(sweep_set(&s, SETTING_threads_prefill, "9999", topo, "here", &err),
                     ST_USAGE);
    assert_non_null(strstr(err.msg, "here: 9999 threads"));
    topo->threads_default = 4;
    sweep_settings_free(&s);
}

/* ---- disk ------------------------------------------------------------------------ */

static enum status capacity(struct sweep_settings *s, const struct sweep_plan *plan,
                            uint64_t available, bool *one_at_a_time)
{
    struct err err = ERR_INIT;

    free_bytes = available;
    *one_at_a_time = false;
    return sweep_check_capacity(s, plan, topo, one_at_a_time, &err);
}

static void a_small_disk_holds_one_model_at_a_time(void **state)
{
    const uint64_t spare = UINT64_C(64) << 20;
    struct sweep_settings s;
    struct sweep_plan plan;
    struct err err = ERR_INIT;
    uint64_t a, b;
    bool one;

    (void)state;
    assert_int_equal(load(&s, "models: [nano:Q4_0, nano:Q8_0]\nmem: none\n", &err),
                     ST_OK);
    snprintf(s.cache_dir, sizeof s.cache_dir, "%s/no-models", work);
    assert_int_equal(sweep_plan_make(&plan, &s, &err), ST_OK);
    assert_int_equal(modelref_bytes(&plan.points[0].setup.model, &a, &err), ST_OK);
    assert_int_equal(modelref_bytes(&plan.points[plan.first[1]].setup.model, &b, &err),
                     ST_OK);
    assert_true(a < b);

    assert_int_equal(capacity(&s, &plan, a + b + spare, &one), ST_OK);
    assert_false(one);
    assert_int_equal(capacity(&s, &plan, a + b + spare - 1, &one), ST_OK);
    assert_true(one);
    assert_int_equal(capacity(&s, &plan, b + spare, &one), ST_OK);
    assert_true(one);
    assert_int_equal(capacity(&s, &plan, b + spare - 1, &one), ST_NO_MEMORY);
    s.keep_models = true;
    assert_int_equal(capacity(&s, &plan, a + b + spare, &one), ST_OK);
    assert_int_equal(capacity(&s, &plan, a + b + spare - 1, &one), ST_NO_MEMORY);
    sweep_plan_free(&plan);
    sweep_settings_free(&s);
}

/* ---- directory ------------------------------------------------------------------- */

static void append_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "a");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* A writer that died in the middle of a line, with samples of a row that never
 * came: what was whole stays, the rest goes. */
static void resume_repairs(void **state)
{
    double ms[] = {1.5, 2.5};
    const struct point_samples samples = {ms, 2, NULL};
    char path[256], csv[300], side[300];
    struct sweep_dir *dir, *other;
    struct err err = ERR_INIT;
    struct row row;
    size_t n;

    (void)state;
    snprintf(path, sizeof path, "%s/deep/er/dir", work);
    snprintf(csv, sizeof csv, "%s/sweep.csv", path);
    snprintf(side, sizeof side, "%s/samples.csv", path);
    assert_int_equal(sweep_dir_create(&dir, path, &err), ST_OK);
    make_row(&row, "p1", "ok", "valid");
    assert_int_equal(sweep_dir_append(dir, &row, &samples, &err), ST_OK);
    make_row(&row, "p,2", "ok", "valid");
    assert_int_equal(sweep_dir_append(dir, &row, &samples, &err), ST_OK);
    json_t *machine = json_pack("{s:i}", "x", 1);
    assert_int_equal(sweep_dir_write_machine(dir, machine, &err), ST_OK);
    json_decref(machine);

    /* one at a time, and never over an old one */
    assert_int_equal(sweep_dir_resume(&other, path, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "another sweep"));
    err_clear(&err);
    sweep_dir_close(dir);
    assert_int_equal(sweep_dir_create(&dir, path, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "--resume"));
    err_clear(&err);

    append_text(csv, "2025-01-01T00:00:00Z,p3,1,dec");
    append_text(side, "p3,1,0,7.0\np3,1,1,8.");
    if (sweep_dir_resume(&dir, path, &err))
        fail_msg("%s", err.msg);
    const struct row *rows = sweep_dir_rows(dir, &n);
    assert_int_equal(n, 2);
    assert_string_equal(rows[1].point, "p,2");
    machine = NULL;
    assert_int_equal(sweep_dir_read_machine(dir, &machine, &err), ST_OK);
    assert_int_equal(json_integer_value(json_object_get(machine, "x")), 1);
    json_decref(machine);
    make_row(&row, "p3", "ok", "valid");
    assert_int_equal(sweep_dir_append(dir, &row, &samples, &err), ST_OK);
    sweep_dir_close(dir);

    char *text = get(side);
    assert_string_equal(text, "point,attempt,index,ms\n"
                              "p1,1,0,1.500000\np1,1,1,2.500000\n"
                              "\"p,2\",1,0,1.500000\n\"p,2\",1,1,2.500000\n"
                              "p3,1,0,1.500000\np3,1,1,2.500000\n");
    free(text);
    assert_int_equal(sweep_dir_resume(&dir, path, &err), ST_OK);
    sweep_dir_rows(dir, &n);
    assert_int_equal(n, 3);
    sweep_dir_close(dir);
}

static void resume_of_nothing(void **state)
{
    const struct point_samples none = {NULL, 0, NULL};
    struct sweep_dir *dir, *other;
    struct err err = ERR_INIT;
    struct row row;
    char path[256], csv[300];

    (void)state;
    assert_int_equal(sweep_dir_resume(&dir, "/nowhere", &err), ST_USAGE);
    err_clear(&err);

    /* killed before the header was whole */
    snprintf(path, sizeof path, "%s/early", work);
    snprintf(csv, sizeof csv, "%s/sweep.csv", path);
    mkdir(path, 0755);
    snprintf(buf, sizeof buf, "%s/machine.json", path);
    put(buf, "{}");
    put(csv, "utc,poi");
    if (sweep_dir_resume(&dir, path, &err))
        fail_msg("%s", err.msg);
    sweep_dir_close(dir);

    /* killed before there was a machine.json: nothing to resume, and nothing in the way
     */
    unlink(buf);
    assert_int_equal(sweep_dir_create(&dir, path, &err), ST_OK);
    assert_int_equal(sweep_dir_resume(&other, path, &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(sweep_dir_create(&other, path, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "another sweep"));
    err_clear(&err);
    make_row(&row, "p1", "ok", "valid");
    assert_int_equal(sweep_dir_append(dir, &row, &none, &err), ST_OK);
    sweep_dir_close(dir);
    assert_int_equal(sweep_dir_create(&dir, path, &err), ST_USAGE); /* a row is kept */
    err_clear(&err);

    /* another version's columns */
    put(buf, "{}");
    put(csv, "utc,point\n2025,p1\n");
    assert_int_equal(sweep_dir_resume(&dir, path, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "columns"));
}

static void a_sweep_knows_what_it_has_made(void **state)
{
    struct sweep_dir *dir;
    struct err err = ERR_INIT;
    char path[256], mine[300], theirs[300], made[300];

    (void)state;
    snprintf(path, sizeof path, "%s/made", work);
    snprintf(mine, sizeof mine, "%s/mine.gguf", work);
    snprintf(theirs, sizeof theirs, "%s/theirs.gguf", work);
    assert_int_equal(sweep_dir_create(&dir, path, &err), ST_OK);
    assert_int_equal(sweep_dir_will_make(dir, mine, &err), ST_OK);
    assert_true(sweep_dir_has_made(dir, mine));
    assert_false(sweep_dir_has_made(dir, theirs));

    /* a run that was killed while it wrote a line */
    snprintf(made, sizeof made, "%s/.made", path);
    put(made, mine);
    assert_int_equal(sweep_dir_will_make(dir, mine, &err), ST_OK);
    assert_true(sweep_dir_has_made(dir, mine));
    put(made, work);
    assert_int_equal(sweep_dir_will_make(dir, mine, &err), ST_OK);
    assert_true(sweep_dir_has_made(dir, mine));
    sweep_dir_close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_configs_load),
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(config_errors_name_file_and_key),
        cmocka_unit_test(settings_json_round_trip),
        cmocka_unit_test(all_threads_are_thinned),
        cmocka_unit_test(a_small_disk_holds_one_model_at_a_time),
        cmocka_unit_test(resume_repairs),
        cmocka_unit_test(resume_of_nothing),
        cmocka_unit_test(a_sweep_knows_what_it_has_made),
    };

    return cmocka_run_group_tests(tests, sweep_begin, sweep_end);
}
