/* SPDX-License-Identifier: MIT
 *
 * test_scheduler.c - completions of several users are what each is alone; how they end;
 * who is next; what is refused
 */
#include "tests/support/served_model.h"

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/clock.h"

enum { N_USERS = 7, N_CTX = 400 };

static struct served model;

static int open_all(void **state)
{
    (void)state;
    served_open(&model, &SERVED_PLAIN, 3, N_CTX, 0);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    served_close(&model);
    return 0;
}

static struct served_text *text_of(struct completion *c)
{
    static struct served_text t;

    served_read(c, &t);
    return &t;
}

/* ---- texts ------------------------------------------------------------------------
 */

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
    assert_true(stats.busy_s >= stats.batch_s && stats.batch_s > 0);
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

/* The text of tokens is that of the tokenizer. */
static void blanks_at_the_beginning(void **state)
{
    struct scheduler *s = served_scheduler(&model, 4, false);
    const int32_t prompt[] = {1, 300};
    struct completion_bias bias = {0, 100};
    struct completion_params p = served_params(prompt, 2, 3);
    struct completion *goes_on, *begins;
    struct err err = ERR_INIT;
    int32_t *ids = NULL;
    size_t n;

    (void)state;
    assert_int_equal(tokenizer_encode(model.tok, "ba", 2, false, false, &ids, &n, &err),
                     ST_OK);
    assert_int_equal(n, 1); /* a word with its blank */
    bias.id = ids[0];
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
    free(ids);
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

/* ---- how they end -----------------------------------------------------------------
 */

static void ends(void **state)
{
    struct scheduler *s = served_scheduler(&model, 8, false);
    const struct completion_bias end = {tokenizer_eos(model.tok), 1000};
    struct completion_bias word = {0, 1000};
    const char *stop = "a b";
    int32_t prompt[N_CTX], *ids = NULL;
    struct completion *at_end, *ignores, *at_stop, *full;
    struct completion_params p = served_params(prompt, 9, 6);
    struct served_text *t;
    struct err err = ERR_INIT;
    size_t n;

    (void)state;
    served_prompt(prompt, N_CTX, 2);
    assert_int_equal(tokenizer_encode(model.tok, "ba", 2, false, false, &ids, &n, &err),
                     ST_OK);
    word.id = ids[0];
    free(ids);
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

struct story {
    struct scheduler *s;
    struct completion *c[8];
    int order[8], n_over, n_wakes;
    int stop_at; /* wakes; 0: never */
    bool closes;
};

struct reader {
    struct story *story;
    int i;
    bool over;
};

/* In the scheduler's thread. */
static void wake(void *arg)
{
    struct reader *r = arg;
    struct story *story = r->story;
    struct completion_piece piece;

    while (completion_read(story->c[r->i], &piece))
        ;
    if (!r->over && completion_end(story->c[r->i]) != COMPLETION_RUNS) {
        r->over = true;
        story->order[story->n_over++] = r->i;
    }
    if (++story->n_wakes == story->stop_at && story->closes) {
        for (int i = 0; i < 8; i++)
            if (i != r->i) {
                completion_close(story->c[i]);
                story->c[i] = NULL;
            }
    } else if (story->n_wakes == story->stop_at) {
        scheduler_stop(story->s, false);
    }
}

/* Eight requests of 40 tokens, three at a time. */
static void begin_story(struct story *story, struct reader *readers,
                        const int32_t *prompt, struct scheduler *s)
{
    struct completion_params p = served_params(prompt, 30, 40);

    story->s = s;
    for (int i = 0; i < 8; i++) {
        readers[i] = (struct reader){story, i, false};
        p.wake = wake;
        p.arg = &readers[i];
        story->c[i] = served_submit(s, &p);
    }
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

/* ---- who is next ------------------------------------------------------------------
 */

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

/* ---- what is refused --------------------------------------------------------------
 */

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
        cmocka_unit_test(everybody_as_alone),
        cmocka_unit_test(drawn_by_many_threads),
        cmocka_unit_test(blanks_at_the_beginning),
        cmocka_unit_test(log_probabilities),
        cmocka_unit_test(penalties_and_biases),
        cmocka_unit_test(ends),
        cmocka_unit_test(stops_at_once),
        cmocka_unit_test(closed_while_they_run),
        cmocka_unit_test(closed_while_it_is_woken),
        cmocka_unit_test(never_run),
        cmocka_unit_test(clients_in_turn),
        cmocka_unit_test(short_prompts_beside_long_ones),
        cmocka_unit_test(prompts_in_chunks),
        cmocka_unit_test(full_queue),
        cmocka_unit_test(when_to_try_again),
        cmocka_unit_test(wrong_parameters),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
