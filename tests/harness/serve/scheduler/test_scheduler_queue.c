/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_queue.c - who is next, and what is refused
 */
#include "tests/harness/serve/scheduler/served_check.h"
#include "tests/harness/serve/scheduler/served_story.h"

#include "engine/base/clock.h"

/* ---- who is next ----------------------------------------------------------------- */

static void clients_in_turn(void **state)
{
    const uint64_t clients[8] = {1, 1, 1, 1, 1, 2, 2, 3};
    const int expected[8] = {0, 5, 7, 1, 6, 2, 3, 4};
    struct served one;
    struct story story = {.stop_at = 0};
    struct reader readers[8];
    struct completion_params p;
    int32_t prompt[30];

    (void)state;
    served_open(&one, &SERVED_PLAIN, 1, N_CTX, 0);
    story.s = served_scheduler(&one, 8, false);
    served_prompt(prompt, 30, 1);
    p = served_params(prompt, 30, 5);
    for (int i = 0; i < 8; i++) {
        readers[i] = (struct reader){&story, i, false};
        p.wake = wake;
        p.arg = &readers[i];
        p.client = clients[i];
        story.c[i] = served_submit(story.s, &p);
    }
    served_run(story.s);
    assert_int_equal(story.n_over, 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(story.order[i], expected[i]);
    scheduler_close(story.s);
    for (int i = 0; i < 8; i++)
        completion_close(story.c[i]);
    served_close(&one);
}

/* Who has a short prompt is not kept up by the long one of another client, but waits
 * for his own. */
static void short_prompts_beside_long_ones(void **state)
{
    const int n_prompt[3] = {350, 50, 60};
    const uint64_t clients[2][3] = {{1, 2, 3}, {1, 1, 2}};
    const int expected[2][3] = {{1, 2, 0}, {2, 0, 1}};
    int32_t prompts[3][350];

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct story story = {.s = served_scheduler(&model, 8, false)};
        struct reader readers[3];

        for (int i = 0; i < 3; i++) {
            struct completion_params p = served_params(prompts[i], n_prompt[i], 1);

            served_prompt(prompts[i], n_prompt[i], (uint64_t)i);
            readers[i] = (struct reader){&story, i, false};
            p.wake = wake;
            p.arg = &readers[i];
            p.client = clients[k][i];
            story.c[i] = served_submit(story.s, &p);
        }
        served_run(story.s);
        assert_int_equal(story.n_over, 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(story.order[i], expected[k][i]);
        scheduler_close(story.s);
        for (int i = 0; i < 3; i++)
            completion_close(story.c[i]);
    }
}

/* Under a limit that no step keeps, a prompt comes in the smallest chunks, and who
 * decodes gets a token with each of them. */
static void prompts_in_chunks(void **state)
{
    const struct scheduler_params params = {
        .m = model.m, .tok = model.tok, .n_queue = 4, .max_itl_s = 1e-9};
    struct scheduler *s = NULL;
    struct scheduler_stats stats;
    int32_t prompt[240];
    struct completion_params p = served_params(prompt, 4, 10);
    struct completion *decodes, *prompts;
    struct err err = ERR_INIT;

    (void)state;
    served_prompt(prompt, 240, 8);
    assert_int_equal(scheduler_open(&s, &params, &err), ST_OK);
    decodes = served_submit(s, &p);
    p.n_prompt = 240;
    p.max_tokens = 1;
    prompts = served_submit(s, &p);
    served_run(s);
    scheduler_read_stats(s, &stats);
    /* the first step has nobody that decodes: 64 tokens of both; then nine have 8 of
     * the prompt each, and 108 are left for two more */
    assert_int_equal(stats.n_steps, 12);
    assert_int_equal(text_of(decodes)->n, 10);
    served_check_greedy(&model, prompt, 240, text_of(prompts));
    scheduler_close(s);
    completion_close(decodes);
    completion_close(prompts);
}

/* Steps of made-up times, a millisecond a token: whoever asks for it, together prompts
 * get what the limit allows. */
struct made_up {
    struct scheduler *s;
    struct step_cost cost;
    int n_limited;
    bool was_limited;
};

static void within_the_limit(void *arg)
{
    struct made_up *m = arg;
    double work = 0;

    served_check_step(&model, m->s);
    for (int i = 0; i < m->s->n_parts; i++)
        work += step_cost_work(m->s->depth_cost, m->s->parts[i].n,
                               m->s->part_of[i]->n_done);
    if (m->s->limited && m->n_limited < 12) {
        m->n_limited++;
        if (!(work > 34 && work < 37))
            fail_msg("step %d under the limit: %g ms", m->n_limited, work);
    }
    assert_int_equal(m->s->cost.n_ratios, m->was_limited);
    m->was_limited = m->s->limited;
    /* the time that this step takes is one of seven, of which the median counts */
    m->s->cost = m->cost;
}

static void prompts_share_the_limit(void **state)
{
    struct made_up m = {.s = served_scheduler(&model, 4, false)};
    int32_t prompts[3][300];
    struct completion *c[3];

    (void)state;
    for (int work = 1; work < 1 << 10; work *= 2)
        for (int i = 0; i < STEP_COST_LAST; i++) {
            step_cost_add(&m.cost, work, work * 1e-3);
            step_cost_add(&m.cost, work * 1.5, work * 1.5e-3);
        }
    m.s->cost = m.cost;
    m.s->params.max_itl_s = 0.040; /* of which 0.9 are aimed at */
    for (int i = 0; i < 3; i++) {
        struct completion_params p =
            served_params(prompts[i], i ? 300 : 3, i ? 2 : 100);

        served_prompt(prompts[i], 300, (uint64_t)i);
        p.client = (uint64_t)i;
        c[i] = served_submit(m.s, &p);
    }
    slm_set_eval_hook(model.m, within_the_limit, &m);
    served_run(m.s);
    slm_set_eval_hook(model.m, NULL, NULL);
    assert_int_equal(m.n_limited, 12);
    scheduler_close(m.s);
    for (int i = 0; i < 3; i++)
        completion_close(c[i]);
}

/* Notes in which step a request ended. */
struct ending {
    struct scheduler *s;
    struct completion *c;
    int step;
};

static void note_step(void *arg)
{
    struct ending *e = arg;
    struct completion_piece piece;
    struct scheduler_stats stats;

    while (completion_read(e->c, &piece))
        ;
    scheduler_read_stats(e->s, &stats);
    if (completion_end(e->c) != COMPLETION_RUNS)
        e->step = (int)stats.n_steps;
}

/* Of clients for whom as much was computed, the shorter prompt is first; then it is the
 * other one's turn, however much is left. */
static void whose_prompt_is_next(void **state)
{
    static const struct {
        int n_prompt[2], step[2];
    } cases[] = {
        {{100, 20}, {2, 1}}, /* 20 + 44, 56 */
        /* 64 each in turn, the shorter one first: 200 = 3 x 64 + 8 in the 7th step */
        {{300, 200}, {8, 7}},
        {{30, 30}, {1, 1}},
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct scheduler *s = served_scheduler(&model, 4, false);
        int32_t prompts[2][300];
        struct ending ends[2];

        for (int i = 0; i < 2; i++) {
            struct completion_params p =
                served_params(prompts[i], cases[k].n_prompt[i], 1);

            served_prompt(prompts[i], 300, (uint64_t)i);
            ends[i] = (struct ending){.s = s};
            p.client = (uint64_t)i;
            p.wake = note_step;
            p.arg = &ends[i];
            ends[i].c = served_submit(s, &p);
        }
        served_run(s);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(ends[i].step, cases[k].step[i]);
            completion_close(ends[i].c);
        }
        scheduler_close(s);
    }
}

/* ---- what is refused ------------------------------------------------------------- */

static void full_queue(void **state)
{
    struct scheduler *s = served_scheduler(&model, 2, false);
    const int32_t prompt[] = {300, 301};
    const struct completion_params p = served_params(prompt, 2, 5);
    struct completion *c[5], *more = NULL;
    struct scheduler_stats stats;
    struct err err = ERR_INIT;
    double retry_s = 0;
    bool full = false;

    (void)state;
    for (int i = 0; i < 5; i++) /* three sequences, and two that wait */
        c[i] = served_submit(s, &p);
    assert_int_equal(scheduler_submit(s, &p, &more, &full, &retry_s, &err),
                     ST_UNSUPPORTED);
    assert_true(full && retry_s > 0);
    assert_null(more);
    completion_close(c[1]); /* one gives its place up */
    c[1] = served_submit(s, &p);
    scheduler_stop(s, true);
    err_clear(&err);
    assert_int_equal(scheduler_submit(s, &p, &more, &full, &retry_s, &err),
                     ST_UNSUPPORTED);
    assert_true(full);
    assert_non_null(strstr(err.msg, "stops"));
    served_run(s);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(text_of(c[i])->n, 5);
        completion_close(c[i]);
    }
    scheduler_read_stats(s, &stats);
    assert_int_equal(stats.n_refused, 2);
    scheduler_close(s);
}

/* Fills the queue once it has seen some end; in the scheduler's thread. */
struct crowd {
    struct scheduler *s;
    struct completion_params p;
    struct completion *c[64];
    int n;
    double retry_s;
};

static void crowd_in(void *arg)
{
    struct crowd *crowd = arg;
    struct scheduler_stats stats;

    scheduler_read_stats(crowd->s, &stats);
    if (stats.n_completed < 4 || crowd->retry_s > 0)
        return;
    for (bool full = false; !full; crowd->n += !full) {
        struct err err = ERR_INIT;

        assert_true(crowd->n < 64);
        scheduler_submit(crowd->s, &crowd->p, &crowd->c[crowd->n], &full,
                         &crowd->retry_s, &err);
    }
    scheduler_stop(crowd->s, true);
}

/* A place is expected after what completions have taken so far, no more. */
static void when_to_try_again(void **state)
{
    const int32_t prompt[] = {300, 301};
    struct crowd crowd = {.s = served_scheduler(&model, 6, false)};
    const uint64_t begin_ns = clock_ns();
    struct err err = ERR_INIT;

    (void)state;
    crowd.p = served_params(prompt, 2, 5);
    crowd.p.wake = crowd_in;
    crowd.p.arg = &crowd;
    for (; crowd.n < 7; crowd.n++)
        crowd.c[crowd.n] = served_submit(crowd.s, &crowd.p);
    assert_int_equal(scheduler_run(crowd.s, &err), ST_OK);
    assert_true(crowd.retry_s > 0);
    assert_true(crowd.retry_s < (double)(clock_ns() - begin_ns) * 1e-9);
    scheduler_close(crowd.s);
    for (int i = 0; i < crowd.n; i++)
        completion_close(crowd.c[i]);
}

static void wrong_parameters(void **state)
{
    struct scheduler *s = served_scheduler(&model, 4, false);
    int32_t prompt[N_CTX + 1] = {1};
    const int32_t outside = SERVED_VOCAB;
    const struct completion_bias no_token = {-1, 0}, infinite = {0, INFINITY};
    const char *empty = "";
    const struct completion_params good = served_params(prompt, 3, 5);
    struct completion_params cases[10];
    const char *why[] = {"empty",     "context",    "vocabulary", "presence",
                         "frequency", "bias for",   "bias of",    "log-prob",
                         "stop",      "temperature"};

    (void)state;
    for (int i = 0; i < 10; i++)
        cases[i] = good;
    cases[0].n_prompt = 0;
    cases[1].n_prompt = N_CTX + 1;
    cases[2].prompt = &outside;
    cases[2].n_prompt = 1;
    cases[3].presence_penalty = 2.1F;
    cases[4].frequency_penalty = NAN;
    cases[5].biases = &no_token;
    cases[6].biases = &infinite;
    cases[5].n_biases = cases[6].n_biases = 1;
    cases[7].n_logprobs = 21;
    cases[8].stops = &empty;
    cases[8].n_stops = 1;
    cases[9].sampling.temperature = -1;
    for (int i = 0; i < 10; i++) {
        struct completion *c = NULL;
        struct err err = ERR_INIT;
        double retry_s;
        bool full = true;

        assert_int_equal(scheduler_submit(s, &cases[i], &c, &full, &retry_s, &err),
                         ST_USAGE);
        assert_false(full);
        assert_null(c);
        if (!strstr(err.msg, why[i]))
            fail_msg("%s does not say %s", err.msg, why[i]);
    }
    scheduler_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_in_turn),
        cmocka_unit_test(short_prompts_beside_long_ones),
        cmocka_unit_test(prompts_in_chunks),
        cmocka_unit_test(prompts_share_the_limit),
        cmocka_unit_test(whose_prompt_is_next),
        cmocka_unit_test(full_queue),
        cmocka_unit_test(when_to_try_again),
        cmocka_unit_test(wrong_parameters),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
