/* SPDX-License-Identifier: MIT
 *
 * test_tune.c - tuning an invented machine: what it chooses, and that it keeps its
 * budget
 */
#include "tests/support/tune_machine.h"

/* ---- what it chooses ------------------------------------------------------------ */

static void the_best_is_chosen(void **state)
{
    struct fixture *f = *state;
    const struct kern_row *best =
        kern_best(KERN_OP_gemv_x16, KERN_FMT_q6_K, isa_usable());
    const bool has_avx2 = isa_usable() >> KERN_ISA_avx2 & 1 && best &&
                          best->isa > KERN_ISA_avx2; /* below the best */
    int n_right = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct invented v = {.noise = 0.02, .effect = 1, .open_s = 0.2, .seed = seed};
        struct err err = ERR_INIT;
        const struct tune_setup *s = &f->r.chosen;

        f->p.seed = seed;
        assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
        assert_true(v.clock <= f->p.budget_s);
        n_right += s->n_threads == 3 && s->n_threads_prefill == 4;
        n_right += s->tuning.chunks_decode == 4;
        n_right += s->tuning.prefetch[KERN_FMT_q4_K].distance == 8192;
        n_right += s->tuning.prefetch[KERN_FMT_q6_K].distance == 0; /* a tie */
        n_right += !has_avx2 ||
                   s->tuning.isa_mask[KERN_FMT_q6_K] == tune_level_mask(KERN_ISA_avx2);
        n_right += s->tuning.n_batch == 256;
        n_right += s->residency == WEIGHTS_PACKED;
        assert_true(f->r.decode.changed && f->r.decode.kept);
        assert_true(f->r.decode.ratio.ratio > 1.2);
        assert_true(f->r.prefill.changed && f->r.prefill.kept);
    }
    assert_true(n_right >= 7 * 20 * 9 / 10);
}

/* Only there is no weight prefetched. */
static void weights_are_mapped_where_that_is_faster(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.noise = 0.02, .effect = 1, .open_s = 0.2, .seed = 2};
    struct err err = ERR_INIT;

    f->p.space.can_map = true;
    assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
    assert_int_equal(f->r.chosen.residency, WEIGHTS_MMAP);
    assert_int_equal(v.opened, tune_get(&f->r.chosen, TUNE_WEIGHTS, KERN_N_FMT));
    assert_int_equal(tune_find(&f->r, TUNE_PREFETCH, KERN_FMT_q4_K)->n, 1);
}

/* Where nothing matters a setting is turned for nothing in at most one of twenty
 * sequential comparisons, and what is turned has to win once more: the profile is the
 * default. */
static void equal_settings_stay_the_default(void **state)
{
    struct fixture *f = *state;
    int n_decode = 0, n_prefill = 0, n_weights = 0;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct invented v = {.noise = 0.05, .open_s = 0.2, .seed = seed};
        struct tune_setup s;
        struct err err = ERR_INIT;

        f->p.seed = seed;
        assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
        s = f->r.chosen;
        n_weights += tune_get(&s, TUNE_WEIGHTS, KERN_N_FMT) !=
                     tune_get(&f->p.base, TUNE_WEIGHTS, KERN_N_FMT);
        n_decode += f->r.decode.kept;
        n_prefill += f->r.prefill.kept;
    }
    assert_true(n_weights <= 6 && n_decode <= 4 && n_prefill <= 4);
}

/* Prefill that a choice for decoding spoils takes it back, and no other. */
static enum status spoiled_prefill(void *arg, const struct tune_setup *s, int n_tokens,
                                   struct tune_sample *out, struct err *err)
{
    struct invented *v = arg;
    const enum status st = invented_prefill(arg, s, n_tokens, out, err);

    out->seconds *= s->tuning.prefetch[KERN_FMT_q4_K].distance == 8192 ? 2 : 1;
    v->clock += out->seconds / 2;
    return st;
}

static void a_spoiled_phase_takes_one_choice_back(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.noise = 0.01, .effect = 1, .open_s = 0.2, .seed = 5};
    const struct tune_machine m = {.arg = &v,
                                   .open = invented_open,
                                   .decode = invented_decode,
                                   .prefill = spoiled_prefill,
                                   .now = invented_now};
    struct err err = ERR_INIT;

    f->p.seed = 4;
    assert_int_equal(tune_run(&f->r, &f->p, &m, &err), ST_OK);
    assert_true(tune_find(&f->r, TUNE_PREFETCH, KERN_FMT_q4_K)->taken_back);
    assert_int_equal(f->r.chosen.tuning.prefetch[KERN_FMT_q4_K].distance, 0);
    assert_true(f->r.decode.kept && f->r.decode.n_taken_back == 1);
    assert_true(f->r.decode.ratio.ratio > 1.2);
    assert_int_equal(f->r.chosen.n_threads, 3);
    assert_true(f->r.prefill.kept && f->r.prefill.ratio.ratio > 1.2);
    assert_int_equal(f->r.chosen.n_threads_prefill, 4);
    assert_int_equal(f->r.chosen.tuning.n_batch, 256);
}

static void a_budget_is_kept(void **state)
{
    struct fixture *f = *state;

    for (double budget = 1; budget <= 64; budget *= 4) {
        struct invented v = {.noise = 0.02, .effect = 1, .open_s = 0.2, .seed = 3};
        struct err err = ERR_INIT;
        const struct tune_outcome *weights;

        f->p.budget_s = budget;
        assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
        /* The last comparison needs 8 rounds of both phases, whatever is left. */
        assert_true(v.clock <= budget + 16 * (0.01 + 0.064) * 1.5 + 0.5);
        weights = tune_find(&f->r, TUNE_WEIGHTS, KERN_N_FMT);
        assert_non_null(weights);
        if (budget < 5) {
            assert_int_equal(weights->state, SEQUENTIAL_CUT);
            assert_non_null(strstr(weights->note, "--budget"));
        }
    }
}

static void an_interruption_ends_it(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.noise = 0.02, .open_s = 0.2, .seed = 3, .stop_after = 100};
    struct err err = ERR_INIT;

    assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_INTERRUPTED);
    assert_in_range(v.n_samples, 100, 110);
}

/* All combinations contain the best of them; what is found setting by setting is as
 * fast. */
static void exhaustive_search_agrees(void **state)
{
    struct fixture *f = *state;
    struct invented v = {.noise = 0.005, .effect = 1, .open_s = 0.2, .seed = 8};
    struct err err = ERR_INIT;
    FILE *null = fopen("/dev/null", "w");
    json_t *json;

    f->p.exhaustive = true;
    assert_int_equal(tune(&f->r, &f->p, &v, &err), ST_OK);
    assert_true(f->r.exhaustive.n_combinations >= 4 * 7 * 7);
    assert_int_equal(f->r.exhaustive.best.n_threads, 3);
    assert_true(f->r.exhaustive.ratio.hi < 1.02);
    tune_print(null, &f->r, true);
    fclose(null);
    json = tune_json(&f->r);
    assert_int_equal(json_array_size(json_object_get(json, "knobs")), f->r.n);
    assert_non_null(json_object_get(json, "exhaustive"));
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_is_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_are_mapped_where_that_is_faster, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(equal_settings_stay_the_default, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_spoiled_phase_takes_one_choice_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_budget_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interruption_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(exhaustive_search_agrees, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
