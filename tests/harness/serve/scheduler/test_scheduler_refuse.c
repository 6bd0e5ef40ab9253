/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_refuse.c - who finds no place, when one is expected, and what a
 * scheduler makes of the model that it gets
 */
#include "tests/harness/serve/scheduler/served_story.h"

#include "engine/base/clock.h"
#include "harness/serve/scheduler/scheduler_impl.h"

/* ---- places ---------------------------------------------------------------------- */

/* Seconds until there is a place for one more of a client; 0: there was one, and *c has
 * it. */
static double ask(struct scheduler *s, uint64_t client, struct completion **c)
{
    static const int32_t prompt[] = {300, 301};
    struct completion_params p = served_params(prompt, 2, 3);
    struct err err = ERR_INIT;
    double retry_s = 0;
    bool full;

    p.client = client;
    if (!scheduler_submit(s, &p, c, &full, &retry_s, &err))
        return 0;
    assert_int_equal(err.code, ST_UNSUPPORTED);
    assert_true(full && retry_s > 0);
    return retry_s;
}

/* As many requests as one client likes do not fill the queue for the others. */
static void others_find_a_place(void **state)
{
    struct scheduler *s = served_scheduler(&model, 16, false);
    struct completion *c[24], *none = NULL;
    int n = 0;

    (void)state;
    assert_int_equal(scheduler_max_running(s), 17); /* three run, 14 of 16 wait */
    while (n < 24 && !(ask(s, 1, &c[n]) > 0))
        n++;
    assert_int_equal(n, 17);
    assert_false(ask(s, 2, &c[n++]) > 0);
    assert_true(ask(s, 2, &none) > 0); /* one of the second client waits */
    assert_false(ask(s, 3, &c[n++]) > 0);
    assert_true(ask(s, 4, &none) > 0); /* now it is full */
    for (int i = 0; i < 3; i++)
        completion_close(c[i]);
    assert_false(ask(s, 1, &c[0]) > 0);
    assert_true(ask(s, 1, &none) > 0);
    assert_false(ask(s, 4, &c[1]) > 0);
    assert_null(none);
    served_run(s);
    for (int i = 0; i < n; i++)
        if (i != 2) {
            assert_int_equal(text_of(c[i])->n, 3);
            completion_close(c[i]);
        }
    scheduler_close(s);
}

/* What is said of the next place: a mean, or what the one that ends first still needs,
 * or a second. */
static void look_for_a_place(void *arg)
{
    struct scheduler *s = arg;
    struct completion *none = NULL;

    if (s->stats.n_steps > 0)
        return;
    assert_int_equal(s->stats.n_running, 3);
    s->mean_s = 6;
    assert_true(fabs(ask(s, 1, &none) - 2) < 1e-9);
    s->mean_s = 0;
    s->soonest_s = 0.25;
    assert_true(fabs(ask(s, 1, &none) - 0.25) < 1e-9);
    s->soonest_s = 0;
    assert_true(fabs(ask(s, 1, &none) - 1) < 1e-9);
    scheduler_stop(s, true);
}

static void when_a_place_is_expected(void **state)
{
    struct scheduler *s = served_scheduler(&model, 0, false);
    struct completion *c[3], *none = NULL;
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_false(ask(s, 1, &c[i]) > 0);
    s->mean_s = 6; /* of none of them: nothing runs yet */
    assert_true(fabs(ask(s, 1, &none) - 1) < 1e-9);
    slm_set_eval_hook(model.m, look_for_a_place, s);
    assert_int_equal(scheduler_run(s, &err), ST_OK);
    slm_set_eval_hook(model.m, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(text_of(c[i])->n, 3);
        completion_close(c[i]);
    }
    scheduler_close(s);
}

/* The first client has its part of the queue, two others have the rest of it: it waits
 * for three that end, somebody else for one. */
static void request_for_two_clients(void *arg)
{
    struct scheduler *s = arg;
    struct completion *none = NULL;

    if (s->stats.n_steps > 0)
        return;
    assert_int_equal(s->n_waiting, 16);
    s->mean_s = 6;
    assert_true(fabs(ask(s, 1, &none) - 6) < 1e-9);
    assert_true(fabs(ask(s, 4, &none) - 2) < 1e-9);
    scheduler_stop(s, true);
}

static void whose_place_is_expected(void **state)
{
    struct scheduler *s = served_scheduler(&model, 16, false);
    struct completion *c[19];
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < 19; i++)
        assert_false(ask(s, i < 17 ? 1 : (uint64_t)(i - 15), &c[i]) > 0);
    slm_set_eval_hook(model.m, request_for_two_clients, s);
    assert_int_equal(scheduler_run(s, &err), ST_OK);
    slm_set_eval_hook(model.m, NULL, NULL);
    for (int i = 0; i < 19; i++)
        completion_close(c[i]);
    scheduler_close(s);
}

/* Three answers of 30, 10 and 20 tokens, begun in one step: which of them ends first is
 * known after each. */
struct remaining {
    struct scheduler *s;
    double busy_s;
};

static void check_soonest(void *arg)
{
    struct remaining *r = arg;
    const int n = (int)r->s->stats.n_steps;
    const double step_s = r->s->stats.busy_s - r->busy_s;
    const int left = n < 10 ? 10 - n : n < 20 ? 20 - n : 30 - n;

    if (n > 0 && !(fabs(r->s->soonest_s - left * step_s) < 1e-9))
        fail_msg("after step %d: %g s, not %d steps of %g s", n, r->s->soonest_s, left,
                 step_s);
    r->busy_s = r->s->stats.busy_s;
}

static void which_ends_first(void **state)
{
    static const int n_answer[] = {30, 10, 20};
    struct remaining r = {.s = served_scheduler(&model, 0, false)};
    struct completion *c[3];
    int32_t prompts[3][4];

    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct completion_params p = served_params(prompts[i], 4, n_answer[i]);

        served_prompt(prompts[i], 4, (uint64_t)i);
        c[i] = served_submit(r.s, &p);
    }
    slm_set_eval_hook(model.m, check_soonest, &r);
    served_run(r.s);
    slm_set_eval_hook(model.m, NULL, NULL);
    assert_int_equal(r.s->stats.n_steps, 30);
    for (int i = 0; i < 3; i++)
        completion_close(c[i]);
    scheduler_close(r.s);
}

/* Answers of one and of two tokens, each of which began eight seconds before the step
 * that ends it. */
struct past {
    struct scheduler *s;
    uint64_t set_ns;
};

static double since_s(uint64_t ns)
{
    return (double)(clock_ns() - ns) * 1e-9;
}

static void set_past(void *arg)
{
    struct past *p = arg;
    const bool first = p->s->stats.n_steps == 0;
    struct completion *c = p->s->running[first ? 0 : 1];

    if (!first) /* the first one that ends is the mean */
        assert_true(p->s->mean_s >= 8 && p->s->mean_s <= 8 + since_s(p->set_ns));
    p->s->mean_s = first ? 0 : 16;
    p->set_ns = clock_ns();
    c->admitted_ns = p->set_ns - UINT64_C(8000000000);
}

static void how_long_they_take(void **state)
{
    struct past p = {.s = served_scheduler(&model, 0, false)};
    const int32_t prompt[] = {300};
    struct completion *c[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct completion_params params = served_params(prompt, 1, 1 + i);

        c[i] = served_submit(p.s, &params);
    }
    slm_set_eval_hook(model.m, set_past, &p);
    served_run(p.s);
    slm_set_eval_hook(model.m, NULL, NULL);
    /* the second one counts an eighth: 16 + (8 - 16) / 8 */
    assert_true(p.s->mean_s >= 15 && p.s->mean_s <= 15 + since_s(p.set_ns) / 8);
    for (int i = 0; i < 2; i++)
        completion_close(c[i]);
    scheduler_close(p.s);
}

/* ---- the model ------------------------------------------------------------------- */

static void refuses(const struct scheduler_params *params, const char *word)
{
    struct scheduler *s = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(scheduler_open(&s, params, &err), ST_USAGE);
    assert_null(s);
    if (!strstr(err.msg, word))
        fail_msg("%s does not say %s", err.msg, word);
}

static void models_that_do_not_fit(void **state)
{
    struct scheduler_params p = {.m = model.m, .tok = model.tok};
    struct slm_params few = synth_image_params(&model.image, 1, N_CTX, 64);

    (void)state;
    p.n_queue = -1;
    refuses(&p, "queue of -1");
    p.n_queue = 0;
    p.max_itl_s = -1;
    refuses(&p, "at most -1 s");
    p.max_itl_s = NAN;
    refuses(&p, "at most nan s");
    p.max_itl_s = 0;
    few.n_sequences = 3;
    few.n_logits = 2;
    p.m = open_model(&few);
    refuses(&p, "opened for 64 and 2");
    slm_close(p.m);
    few.n_logits = 0;
    few.n_batch = 2;
    p.m = open_model(&few);
    refuses(&p, "opened for 2 and 2");
    slm_close(p.m);
}

/* With a window of the KV cache a sequence goes round in its pages, and has no end;
 * where there are fewer than it would take, it ends with them. */
static void windows_have_no_end(void **state)
{
    struct slm_params p = synth_image_params(&model.image, 2, SLM_PAGE, 64);
    struct served windows = model; /* its vocabulary */
    struct completion_params asked;
    struct completion *c;
    struct scheduler *s;
    int32_t prompt[20];

    (void)state;
    served_prompt(prompt, 20, 3);
    asked = served_params(prompt, 20, 600);
    p.n_sequences = 2;
    p.kv_window = 100;
    p.n_back = 64;
    windows.m = open_model(&p);
    assert_int_equal(slm_info(windows.m)->n_seq_pages, 1);
    s = served_scheduler(&windows, 4, true);
    c = served_submit(s, &asked);
    served_run(s);
    assert_int_equal(text_of(c)->n, 600);
    completion_close(c);
    scheduler_close(s);
    slm_close(windows.m);

    p.kv_window = 300;
    p.n_pool = SLM_PAGE;
    windows.m = open_model(&p);
    assert_int_equal(slm_info(windows.m)->n_seq_pages, 2);
    s = served_scheduler(&windows, 4, true);
    assert_int_equal(s->max_positions, SLM_PAGE);
    scheduler_close(s);
    slm_close(windows.m);
}

/* A token's attention at one position costs two products with each head's vector in
 * each layer, as a share of all matrices; nothing where a window bounds it. */
static void what_depth_costs(void **state)
{
    const struct slm_info *info = slm_info(model.m);
    struct slm_params p = synth_image_params(&model.image, 2, SLM_PAGE, 64);
    struct served windows = model;
    struct scheduler *s = served_scheduler(&model, 4, false);

    (void)state;
    assert_float_equal(s->depth_cost,
                       2.0 * info->n_layers * info->n_heads * info->head_dim /
                           (double)info->weight_token_macs,
                       1e-12);
    assert_true(s->depth_cost > 0);
    scheduler_close(s);
    p.n_sequences = 2;
    p.kv_window = 100;
    p.n_back = 64;
    windows.m = open_model(&p);
    s = served_scheduler(&windows, 4, false);
    assert_float_equal(s->depth_cost, 0, 0);
    scheduler_close(s);
    slm_close(windows.m);
}

/* Steps are as long as the model was tuned for, but have a token of everybody. */
static void tuned_batches(void **state)
{
    static const struct {
        int n_batch, n_requests, n_prompt, n_answer, n_steps;
    } cases[] = {{0, 1, 64, 1, 1}, {16, 1, 64, 1, 4}, {1, 3, 1, 5, 5}};
    struct err err = ERR_INIT;
    struct slm_tuning tuning;
    int32_t prompt[64];

    (void)state;
    served_prompt(prompt, 64, 3);
    slm_get_tuning(model.m, &tuning);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct completion_params p =
            served_params(prompt, cases[k].n_prompt, cases[k].n_answer);
        struct completion *c[3];
        struct scheduler *s;

        tuning.n_batch = cases[k].n_batch;
        assert_int_equal(slm_tune(model.m, 2, 0, &tuning, &err), ST_OK);
        s = served_scheduler(&model, 4, false);
        for (int i = 0; i < cases[k].n_requests; i++)
            c[i] = served_submit(s, &p);
        served_run(s);
        assert_int_equal(s->stats.n_steps, cases[k].n_steps);
        for (int i = 0; i < cases[k].n_requests; i++) {
            served_check_greedy(&model, prompt, cases[k].n_prompt, text_of(c[i]));
            completion_close(c[i]);
        }
        scheduler_close(s);
    }
    tuning.n_batch = 0;
    assert_int_equal(slm_tune(model.m, 2, 0, &tuning, &err), ST_OK);
}

/* ---- the end --------------------------------------------------------------------- */

/* Who was told that everything is cancelled cannot be told otherwise. */
static void cancelled_for_good(void **state)
{
    struct scheduler *s = served_scheduler(&model, 4, false);
    struct completion *c = NULL;

    (void)state;
    assert_false(ask(s, 1, &c) > 0);
    scheduler_stop(s, false);
    served_run(s); /* stops again, and lets it finish */
    assert_int_equal(completion_end(c), COMPLETION_ABORTED);
    completion_close(c);
    scheduler_close(s);
}

/* Who has left before his turn costs nothing. */
static void closed_while_it_waits(void **state)
{
    struct scheduler *s = served_scheduler(&model, 4, false);
    struct completion *c = NULL;

    (void)state;
    assert_false(ask(s, 1, &c) > 0);
    completion_close(c);
    served_run(s);
    assert_int_equal(s->stats.n_cancelled, 1);
    assert_int_equal(s->stats.n_prompt, 0);
    assert_int_equal(s->stats.n_steps, 0);
    scheduler_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_find_a_place),
        cmocka_unit_test(when_a_place_is_expected),
        cmocka_unit_test(whose_place_is_expected),
        cmocka_unit_test(which_ends_first),
        cmocka_unit_test(how_long_they_take),
        cmocka_unit_test(models_that_do_not_fit),
        cmocka_unit_test(windows_have_no_end),
        cmocka_unit_test(what_depth_costs),
        cmocka_unit_test(tuned_batches),
        cmocka_unit_test(cancelled_for_good),
        cmocka_unit_test(closed_while_it_waits),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
