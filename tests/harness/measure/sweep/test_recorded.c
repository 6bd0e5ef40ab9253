/* SPDX-License-Identifier: MIT
 *
 * test_recorded.c - what earlier versions have written still means the same
 *
 * Identities, commands and orders of points stand in results, and settings of sweeps in
 * machine.json: recorded ones are held against what the program makes of them now.
 */
#include "tests/support/test.h"

#include "harness/rows/point/point.h"
#include "harness/measure/sweep/sweep.h"

#define GIB (UINT64_C(1) << 30)

/* ---- points ---------------------------------------------------------------------- */

/* clang-format off */
static const struct recorded {
    struct point p;
    const char *id, *command;
} recorded[] = {
#include "tests/harness/measure/sweep/recorded_points.def"
};
/* clang-format on */

/* What a row leaves out is as point_init() has it. */
static struct point whole(const struct recorded *r)
{
    struct point p, out = r->p;

    point_init(&p);
    if (!*out.setup.model.text) {
        strcpy(out.setup.model.text, "nano:Q4_K_M");
        strcpy(out.setup.model.name, "nano");
        strcpy(out.setup.model.path, "/cache/nano-Q4_K_M.gguf");
        out.setup.model.synthetic = true;
        out.setup.model.mix = QUANTMIX_Q4_K_M;
    }
    out.setup.n_threads = out.setup.n_threads ? out.setup.n_threads : p.setup.n_threads;
    out.n_sequences = out.n_sequences ? out.n_sequences : p.n_sequences;
    out.n_tokens = out.n_tokens ? out.n_tokens : p.n_tokens;
    out.setup.n_batch = out.setup.n_batch ? out.setup.n_batch : p.setup.n_batch;
    out.budget_s = out.budget_s > 0 ? out.budget_s : p.budget_s;
    out.load_budget_s = p.load_budget_s;
    out.setup.seed = out.setup.seed ? out.setup.seed : p.setup.seed;
    return out;
}

static void points_are_named_as_ever(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof recorded / sizeof recorded[0]; i++) {
        const struct point p = whole(&recorded[i]);
        char id[96], command[400];

        point_id(&p, id, sizeof id);
        point_command(&p, command, sizeof command);
        if (strcmp(id, recorded[i].id) || strcmp(command, recorded[i].command))
            fail_msg("point %zu is now\n\"%s\",\n\"%s\"", i, id, command);
    }
}

/* All that names a point reaches the child that measures it. */
static void points_travel_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof recorded / sizeof recorded[0]; i++) {
        const struct point p = whole(&recorded[i]);
        json_t *object = point_json(&p);
        struct err err = ERR_INIT;
        struct point back;

        if (point_from_json(&back, object, &err))
            fail_msg("point %zu: %s", i, err.msg);
        json_decref(object);
        assert_int_equal(back.kind, p.kind);
        assert_int_equal(back.setup.residency, p.setup.residency);
        assert_int_equal(back.setup.n_threads, p.setup.n_threads);
        assert_int_equal(back.setup.n_threads_prefill, p.setup.n_threads_prefill);
        assert_int_equal(back.setup.placement, p.setup.placement);
        assert_int_equal(back.setup.explicit_cpus, p.setup.explicit_cpus);
        for (int k = 0; p.setup.explicit_cpus && k < model_setup_threads(&p.setup); k++)
            assert_int_equal(back.setup.cpus[k], p.setup.cpus[k]);
        assert_int_equal(back.ctx, p.ctx);
        assert_int_equal(back.ctx_prefill, p.ctx_prefill);
        assert_int_equal(back.setup.kv_type, p.setup.kv_type);
        assert_int_equal(back.setup.kv_window, p.setup.kv_window);
        assert_int_equal(back.setup.prefill_sums, p.setup.prefill_sums);
        assert_int_equal(back.n_sequences, p.n_sequences);
        assert_int_equal(back.n_shared, p.n_shared);
        assert_int_equal(back.n_chunk, p.n_chunk);
        assert_int_equal(back.n_prompt, p.n_prompt);
        assert_int_equal(back.n_answer, p.n_answer);
        assert_string_equal(back.text, p.text);
        assert_int_equal(back.n_tokens, p.n_tokens);
        assert_int_equal(back.setup.n_batch, p.setup.n_batch);
        assert_true(back.budget_s == p.budget_s);
        assert_true(back.load_budget_s == p.load_budget_s);
        assert_int_equal(back.setup.quota_hundredths, p.setup.quota_hundredths);
        assert_true(back.setup.mem_limit == p.setup.mem_limit &&
                    back.setup.seed == p.setup.seed);
        assert_int_equal(back.setup.isa_disabled, p.setup.isa_disabled);
        assert_int_equal(back.force, p.force);
        assert_int_equal(back.profile, p.profile);
    }
}

/* ---- sweeps ---------------------------------------------------------------------- */

/* As this version writes it, and as one from before there was a choice of weights, of
 * types of KV cache and of texts. */
static const char *const sweeps[] = {
    "{\"models\": [\"nano:Q4_0\", \"nano:Q8_0\"], \"threads\": [1, 2],"
    " \"threads_prefill\": [3], \"ctx\": [0, 64], \"prefill\": [16],"
    " \"placements\": [\"compact\", \"none\"], \"weights\": [\"packed\", \"mmap\"],"
    " \"kv_type\": [\"q8_0\", \"f16\"], \"kv_window\": [0], \"prefill_sums\": "
    "[\"exact\"],"
    " \"sequences\": [1], \"shared\": [0], \"chunk\": [0],"
    " \"speculate\": [\"copy\"],"
    " \"mem_limit\": 1073741824, \"cpus_quota\": [0], \"tokens\": 9, \"passes\": 8, "
    "\"batch\": 7,"
    " \"ctx_prefill\": true, \"budget_s\": 1.5, \"load_budget_s\": 30.0,"
    " \"launches\": 4, \"max_launches\": 6, \"ci_pct\": 1.5,"
    " \"repeats\": 3, \"seed\": -1, \"keep_models\": true, \"ctx_usual\": true, "
    "\"cache_dir\": \"/models\","
    " \"isa_disabled\": 4, \"engines\": []}",
    "{\"models\": [\"nano:Q4_0\"], \"threads\": [1, 2], \"threads_prefill\": [],"
    " \"ctx\": [0, 64], \"prefill\": [16], \"placements\": [\"spread\"],"
    " \"mem_limit\": 0, \"tokens\": 64, \"passes\": 5, \"batch\": 512,"
    " \"ctx_prefill\": false, \"budget_s\": 10.0, \"load_budget_s\": 120.0,"
    " \"repeats\": 1, \"seed\": 5, \"keep_models\": false, \"cache_dir\": \"\","
    " \"isa_disabled\": 0}",
    "{\"models\": [\"nano:Q4_0\"], \"threads\": [1], \"threads_prefill\": [],"
    " \"ctx\": [4096], \"prefill\": [16], \"placements\": [\"spread\"],"
    " \"kv_window\": [0, 512, 2048],"
    " \"mem_limit\": 0, \"tokens\": 64, \"passes\": 5, \"batch\": 512,"
    " \"ctx_prefill\": false, \"budget_s\": 10.0, \"load_budget_s\": 120.0,"
    " \"repeats\": 1, \"seed\": 5, \"keep_models\": false, \"cache_dir\": \"\","
    " \"isa_disabled\": 0}",
};

static const char *const orders[] = {
#include "tests/harness/measure/sweep/recorded_orders.def"
};

/* Identity, and what of a point is not in it. */
static void describe(const struct point *p, char *buf, size_t cap)
{
    char id[96];

    point_id(p, id, sizeof id);
    snprintf(buf, cap, "%s n%d b%d %g/%g s%llu i%u", id, p->n_tokens, p->setup.n_batch,
             p->budget_s, p->load_budget_s, (unsigned long long)p->setup.seed,
             p->setup.isa_disabled);
}

static void stored_sweeps_mean_the_same(void **state)
{
    size_t at = 0;

    (void)state;
    for (size_t k = 0; k < sizeof sweeps / sizeof sweeps[0]; k++) {
        json_t *object = json_loads(sweeps[k], 0, NULL);
        struct sweep_settings s;
        struct sweep_plan plan;
        struct err err = ERR_INIT;

        if (sweep_settings_from_json(&s, object, &err) ||
            sweep_plan_make(&plan, &s, &err))
            fail_msg("%s", err.msg);
        for (size_t i = 0; i < plan.n_points; i++, at++) {
            char text[160];

            describe(&plan.points[i], text, sizeof text);
            if (at >= sizeof orders / sizeof orders[0] || strcmp(text, orders[at]))
                fail_msg("point %zu of sweep %zu is now %s", i, k, text);
        }
        sweep_plan_free(&plan);
        if (k == 0) {
            json_t *again = sweep_settings_json(&s);

            assert_true(json_equal(object, again));
            json_decref(again);
        }
        sweep_settings_free(&s);
        json_decref(object);
    }
}

/* Points that a profile of `bench tune` ran cannot be measured any more. */
static void tuned_sweeps_are_refused(void **state)
{
    json_t *object = json_loads(sweeps[0], 0, NULL);
    struct sweep_settings s;
    struct err err = ERR_INIT;

    (void)state;
    json_object_set_new(object, "tuned", json_string("")); /* as without a profile */
    assert_int_equal(sweep_settings_from_json(&s, object, &err), ST_OK);
    sweep_settings_free(&s);
    json_object_set_new(object, "tuned", json_string("auto"));
    assert_int_equal(sweep_settings_from_json(&s, object, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "bench tune"));
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_named_as_ever),
        cmocka_unit_test(points_travel_whole),
        cmocka_unit_test(stored_sweeps_mean_the_same),
        cmocka_unit_test(tuned_sweeps_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
