/* SPDX-License-Identifier: MIT
 *
 * test_scheduler.c - completions of several users are what each is alone; how they end
 */
#include "tests/harness/serve/scheduler/served_story.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N_USERS = 7 };

/* ---- texts ----------------------------------------------------------------------- */

static void everybody_as_alone(void **state)
{
    struct scheduler *s = served_scheduler(&model, N_USERS, false);
    int32_t prompts[N_USERS][150];
    struct completion *c[N_USERS];
    struct scheduler_stats stats;

    (void)state;
    for (int i = 0; i < N_USERS; i++) {
        struct completion_params p = served_params(prompts[i], 1 + 23 * i, 10 + 7 * i);

        served_prompt(prompts[i], 1 + 23 * i, (uint64_t)i);
        p.client = (uint64_t)i % 3;
        c[i] = served_submit(s, &p);
        assert_int_equal(completion_end(c[i]), COMPLETION_RUNS);
    }
    served_run(s);
    for (int i = 0; i < N_USERS; i++) {
        struct served_text *t = text_of(c[i]);

        assert_int_equal(t->end, COMPLETION_LENGTH);
        assert_int_equal(t->n, 10 + 7 * i);
        assert_int_equal(t->usage.n_prompt, 1 + 23 * i);
        assert_int_equal(t->usage.n_cached + t->usage.n_preempted, 0);
        assert_true(t->usage.prefill_s > 0 && t->usage.decode_s > 0);
        served_check_greedy(&model, prompts[i], 1 + 23 * i, t);
    }
    scheduler_read_stats(s, &stats);
    assert_int_equal(stats.n_completed, N_USERS);
    assert_int_equal(stats.n_requests, N_USERS);
    assert_int_equal(stats.n_running + stats.n_waiting, 0);
    assert_int_equal(stats.n_generated, 10 * 7 + 7 * 21);
    assert_int_equal(stats.n_prompt, 7 + 23 * 21);
    /* all but the last token of each text */
    assert_int_equal(stats.n_step_tokens, stats.n_prompt + stats.n_generated - N_USERS);
    assert_true(stats.busy_s > 0);
    scheduler_close(s);
    for (int i = 0; i < N_USERS; i++)
        completion_close(c[i]);
    served_check_idle(&model);
}

/* Of a large vocabulary tokens are drawn by all threads. */
static void drawn_by_many_threads(void **state)
{
    struct synth_shape shape = SERVED_PLAIN;
    struct served d;
    struct scheduler *s;
    int32_t prompt[12];
    struct completion *c[8];

    (void)state;
    shape.n_vocab = 40000;
    served_open(&d, &shape, 4, 64, 0);
    s = served_scheduler(&d, 8, false);
    served_prompt(prompt, 12, 5);
    for (int i = 0; i < 8; i++) {
        struct completion_params p = served_params(prompt, 5 + i, 6);

        p.n_logprobs = i - 1;
        p.sampling.temperature = (float)(i % 2);
        p.presence_penalty = i % 2 ? 1 : 0;
        c[i] = served_submit(s, &p);
    }
    served_run(s);
    for (int i = 0; i < 8; i++) {
        struct served_text *t = text_of(c[i]);

        assert_int_equal(t->n, 6);
        if (i % 2 == 0)
            served_check_greedy(&d, prompt, 5 + i, t);
        completion_close(c[i]);
    }
    scheduler_close(s);
    served_check_idle(&d);
    served_close(&d);
}

/* The token of " ba". */
static int32_t word_ba(void)
{
    struct err err = ERR_INIT;
    int32_t *ids = NULL, id;
    size_t n;

    assert_int_equal(tokenizer_encode(model.tok, "ba", 2, false, false, &ids, &n, &err),
                     ST_OK);
    assert_int_equal(n, 1); /* a word with its blank */
    id = ids[0];
    free(ids);
    return id;
}

/* The text of tokens is that of the tokenizer. */
static void blanks_at_the_beginning(void **state)
{
    struct scheduler *s = served_scheduler(&model, 4, false);
    const int32_t prompt[] = {1, 300};
    struct completion_bias bias = {word_ba(), 100};
    struct completion_params p = served_params(prompt, 2, 3);
    struct completion *goes_on, *begins;

    (void)state;
    p.biases = &bias;
    p.n_biases = 1;
    goes_on = served_submit(s, &p);
    p.begins_text = true;
    begins = served_submit(s, &p);
    served_run(s);
    assert_string_equal(text_of(goes_on)->text, " ba ba ba");
    assert_string_equal(text_of(begins)->text, "ba ba ba");
    scheduler_close(s);
    completion_close(goes_on);
    completion_close(begins);
}

/* Each token says where its text begins, also while that is held back because it may
 * begin a stop string. */
static void where_tokens_begin(void **state)
{
    struct scheduler *s = served_scheduler(&model, 4, false);
    const int32_t prompt[] = {1, 300};
    const char *stop = "a ba bx";
    struct completion_bias bias = {word_ba(), 100};
    struct completion_params p = served_params(prompt, 2, 5);
    struct completion *c[2];

    (void)state;
    p.biases = &bias;
    p.n_biases = 1;
    c[0] = served_submit(s, &p);
    p.stops = &stop;
    p.n_stops = 1;
    c[1] = served_submit(s, &p);
    served_run(s);
    for (int k = 0; k < 2; k++) {
        struct completion_piece piece;
        size_t given = 0;

        for (size_t i = 0; i < 5; i++) {
            assert_true(completion_read(c[k], &piece));
            assert_int_equal(piece.begins, 3 * i); /* " ba" */
            assert_true(k == 0 || i == 0 ? given == 3 * i : given < 3 * i);
            given += piece.len;
        }
        completion_close(c[k]);
    }
    scheduler_close(s);
}

/* The same logits as the model with one sequence, and what is made of them. */
static void log_probabilities(void **state)
{
    struct scheduler *s = served_scheduler(&model, 4, false);
    int32_t prompt[20];
    struct completion_params p = served_params(prompt, 20, 8);
    struct completion_piece piece;
    struct completion *c;
    struct err err = ERR_INIT;
    int32_t last = -1;

    (void)state;
    served_prompt(prompt, 20, 11);
    p.n_logprobs = 5;
    p.sampling.temperature = 1.5F;
    p.sampling.seed = 4;
    c = served_submit(s, &p);
    served_run(s);
    slm_truncate(model.alone, 0);
    for (int i = 0; completion_read(c, &piece); i++) {
        const float *logits;
        double all = 0;

        if (i == 0)
            assert_int_equal(slm_eval(model.alone, prompt, 20, SLM_LOGITS_LAST, &err),
                             ST_OK);
        else
            assert_int_equal(slm_eval(model.alone, &last, 1, SLM_LOGITS_LAST, &err),
                             ST_OK);
        last = piece.token;
        logits = slm_logits(model.alone, 0);
        for (int id = 0; id < SERVED_VOCAB; id++)
            all += exp((double)logits[id]);
        assert_float_equal(piece.logprob, (double)logits[last] - log(all), 1e-3);
        assert_int_equal(piece.n_top, 5);
        for (int k = 0; k < 5; k++) {
            int n_better = 0;

            assert_float_equal(piece.top[k].logprob,
                               (double)logits[piece.top[k].token] - log(all), 1e-3);
            for (int id = 0; id < SERVED_VOCAB; id++)
                n_better += logits[id] > logits[piece.top[k].token] + 1e-3F;
            assert_true(n_better <= k);
            assert_true(k == 0 || piece.top[k].logprob <= piece.top[k - 1].logprob);
        }
    }
    scheduler_close(s);
    completion_close(c);
}

/* What the last few tokens before token i, those of the prompt with them, have less. */
static void repeat(const struct completion_params *p, const struct served_text *t,
                   int i, float *logits)
{
    bool seen[SERVED_VOCAB] = {false};

    for (int k = 1; k <= p->sampling.repeat_window; k++) {
        const int at = i - k + (int)p->n_prompt;
        const int32_t id = at < 0                  ? -1
                           : at < (int)p->n_prompt ? p->prompt[at]
                                                   : t->tokens[i - k];

        if (id < 0 || seen[id])
            continue;
        seen[id] = true;
        logits[id] = logits[id] > 0 ? logits[id] / p->sampling.repeat_penalty
                                    : logits[id] * p->sampling.repeat_penalty;
    }
}

/* Each token has the largest logit, less what the tokens before it cost. */
static void check_penalised(const struct completion_params *p,
                            const struct served_text *t)
{
    int n[SERVED_VOCAB] = {0};
    struct err err = ERR_INIT;

    slm_truncate(model.alone, 0);
    for (int i = 0; i < t->n; i++) {
        float changed[SERVED_VOCAB], best = -INFINITY;

        assert_int_equal(slm_eval(model.alone, i ? &t->tokens[i - 1] : p->prompt,
                                  i ? 1 : p->n_prompt, SLM_LOGITS_LAST, &err),
                         ST_OK);
        memcpy(changed, slm_logits(model.alone, 0), sizeof changed);
        for (int k = 0; k < p->n_biases; k++)
            changed[p->biases[k].id] += p->biases[k].bias;
        repeat(p, t, i, changed);
        for (int id = 0; id < SERVED_VOCAB; id++) {
            if (n[id])
                changed[id] -=
                    p->presence_penalty + (float)n[id] * p->frequency_penalty;
            best = changed[id] > best ? changed[id] : best;
        }
        assert_true(best - changed[t->tokens[i]] < 0.02F);
        n[t->tokens[i]]++;
    }
}

static void penalties_and_biases(void **state)
{
    struct scheduler *s = served_scheduler(&model, 8, false);
    const int32_t prompt[] = {300};
    const struct completion_bias few[] = {{310, 20}, {311, 20}, {312, 20}, {313, -20}};
    struct completion_params p[6];
    struct completion *c[6];

    (void)state;
    for (int i = 0; i < 6; i++) {
        p[i] = served_params(prompt, 1, 40);
        p[i].presence_penalty = i == 1 || i == 4 ? 1.5F : 0;
        p[i].frequency_penalty = i == 2 ? 0.7F : i == 4 ? -0.3F : 0;
        p[i].biases = few;
        p[i].n_biases = i == 3 || i == 4 ? 4 : 0;
        if (i == 5) {
            p[i].sampling.repeat_penalty = 1.5F;
            p[i].sampling.repeat_window = 12;
        }
        c[i] = served_submit(s, &p[i]);
    }
    served_run(s);
    for (int i = 0; i < 6; i++) {
        struct served_text *t = text_of(c[i]);

        assert_int_equal(t->n, 40);
        check_penalised(&p[i], t);
        for (int k = 0; p[i].n_biases && k < 40; k++)
            assert_in_range(t->tokens[k], 310, 312);
        completion_close(c[i]);
    }
    scheduler_close(s);
}

/* ---- how they end ---------------------------------------------------------------- */

static void ends(void **state)
{
    struct scheduler *s = served_scheduler(&model, 8, false);
    const struct completion_bias end = {tokenizer_eos(model.tok), 1000};
    const struct completion_bias word = {word_ba(), 1000};
    const char *stop = "a b";
    int32_t prompt[N_CTX];
    struct completion *at_end, *ignores, *at_stop, *full;
    struct completion_params p = served_params(prompt, 9, 6);
    struct served_text *t;

    (void)state;
    served_prompt(prompt, N_CTX, 2);
    p.biases = &end;
    p.n_biases = 1;
    ignores = served_submit(s, &p);
    p.ignore_end = false;
    at_end = served_submit(s, &p);
    p.biases = &word;
    p.stops = &stop;
    p.n_stops = 1;
    at_stop = served_submit(s, &p);
    p.n_prompt = N_CTX - 10;
    p.n_stops = 0;
    p.max_tokens = 0;
    full = served_submit(s, &p);
    served_run(s);
    t = text_of(ignores);
    assert_int_equal(t->end, COMPLETION_LENGTH);
    assert_int_equal(t->n, 6);
    assert_int_equal(t->len, 0);
    t = text_of(at_end);
    assert_int_equal(t->end, COMPLETION_STOP);
    assert_int_equal(t->n, 1);
    assert_int_equal(t->tokens[0], end.id);
    t = text_of(at_stop);
    assert_int_equal(t->end, COMPLETION_STOP);
    assert_string_equal(t->text, " b");
    assert_int_equal(t->n, 2);
    t = text_of(full);
    assert_int_equal(t->end, COMPLETION_LENGTH);
    assert_int_equal(t->n, 11); /* the last one takes no position */
    scheduler_close(s);
    completion_close(ignores);
    completion_close(at_end);
    completion_close(at_stop);
    completion_close(full);
    served_check_idle(&model);
}

static void stops_at_once(void **state)
{
    struct story story = {.stop_at = 20};
    struct reader readers[8];
    struct scheduler *s = served_scheduler(&model, 8, true);
    struct scheduler_stats stats;
    int32_t prompt[30];
    struct err err = ERR_INIT;

    (void)state;
    served_prompt(prompt, 30, 1);
    begin_story(&story, readers, prompt, s);
    assert_int_equal(scheduler_run(s, &err), ST_OK);
    assert_int_equal(story.n_over, 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(completion_end(story.c[i]), COMPLETION_ABORTED);
    scheduler_read_stats(s, &stats);
    assert_int_equal(stats.n_cancelled, 8);
    assert_int_equal(stats.n_running + stats.n_waiting, 0);
    scheduler_close(s);
    for (int i = 0; i < 8; i++)
        completion_close(story.c[i]);
    served_check_idle(&model);
}

/* Those that run and those that wait are closed: one is left. */
static void closed_while_they_run(void **state)
{
    struct story story = {.stop_at = 20, .closes = true};
    struct reader readers[8];
    struct scheduler *s = served_scheduler(&model, 8, true);
    struct scheduler_stats stats;
    int32_t prompt[30];

    (void)state;
    served_prompt(prompt, 30, 1);
    begin_story(&story, readers, prompt, s);
    served_run(s);
    scheduler_read_stats(s, &stats);
    assert_int_equal(stats.n_completed, 1);
    assert_int_equal(stats.n_cancelled, 7);
    assert_int_equal(story.n_over, 1);
    scheduler_close(s);
    completion_close(story.c[story.order[0]]);
    served_check_idle(&model);
}

struct slow_reader {
    struct completion *c;
    atomic_bool began, ended;
    bool ended_first;
};

static void wake_slowly(void *arg)
{
    struct slow_reader *r = arg;

    atomic_store(&r->began, true);
    usleep(20000);
    atomic_store(&r->ended, true);
}

static void *close_while_woken(void *arg)
{
    struct slow_reader *r = arg;

    while (!atomic_load(&r->began))
        usleep(100);
    completion_close(r->c);
    r->ended_first = atomic_load(&r->ended);
    return NULL;
}

/* What wake() uses may be freed as soon as the completion is closed. */
static void closed_while_it_is_woken(void **state)
{
    struct scheduler *s = served_scheduler(&model, 8, true);
    const int32_t prompt[] = {300};
    struct completion_params p = served_params(prompt, 1, 100);
    struct slow_reader r = {.c = NULL};
    pthread_t thread;

    (void)state;
    p.wake = wake_slowly;
    p.arg = &r;
    r.c = served_submit(s, &p);
    assert_int_equal(pthread_create(&thread, NULL, close_while_woken, &r), 0);
    served_run(s);
    pthread_join(thread, NULL);
    assert_true(r.ended_first);
    scheduler_close(s);
    served_check_idle(&model);
}

static void never_run(void **state)
{
    struct scheduler *s = served_scheduler(&model, 8, true);
    const int32_t prompt[] = {300};
    const struct completion_params p = served_params(prompt, 1, 5);
    struct completion *c = served_submit(s, &p), *gone = served_submit(s, &p);

    (void)state;
    completion_close(gone);
    scheduler_close(s);
    assert_int_equal(completion_end(c), COMPLETION_ABORTED);
    completion_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_as_alone),
        cmocka_unit_test(drawn_by_many_threads),
        cmocka_unit_test(blanks_at_the_beginning),
        cmocka_unit_test(where_tokens_begin),
        cmocka_unit_test(log_probabilities),
        cmocka_unit_test(penalties_and_biases),
        cmocka_unit_test(ends),
        cmocka_unit_test(stops_at_once),
        cmocka_unit_test(closed_while_they_run),
        cmocka_unit_test(closed_while_it_is_woken),
        cmocka_unit_test(never_run),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
