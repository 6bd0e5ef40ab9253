/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_preempt.c - random requests of several clients where pages run out:
 * whoever is dropped, cancelled, or begins like another, every text is what it is alone
 *
 * All of it happens in the scheduler's thread, between steps, so that a run is the same
 * each time.
 */
#include "tests/harness/serve/scheduler/served_check.h"

enum { N_CLIENTS = 4, N_CTX = 1000, MAX_PROMPT = 250, N_FAMILIES = 3, N_REQUESTS = 40 };

struct request {
    struct crowd *crowd;
    struct completion_params p;
    int32_t prompt[MAX_PROMPT];
    int32_t tokens[N_CTX]; /* that were read */
    int n, n_preempted, n_charged, n_cached;
    struct completion *c;
    bool over, closed, runs; /* runs: in the step before */
};

struct crowd {
    struct served d;
    struct scheduler *s;
    struct request *requests;
    int n, n_steps, admitted_at; /* the step in which somebody was admitted last */
    int n_dropped, n_closed, n_dropped_closed;
    uint64_t random;
};

static int below(struct crowd *k, int n)
{
    return (int)(test_random(&k->random) % (uint64_t)n);
}

static void wake(void *arg);

static void submit(struct crowd *k)
{
    struct request *r = &k->requests[k->n++];
    const int n_alike = below(k, 150), n_own = 1 + below(k, 80);
    const uint64_t family = (uint64_t)below(k, N_FAMILIES);

    served_prompt(r->prompt, n_alike, family);
    served_prompt(r->prompt + n_alike, n_own, (uint64_t)k->n + 100);
    r->crowd = k;
    r->p = served_params(r->prompt, n_alike + n_own,
                         below(k, 4) ? 300 + below(k, 300) : 1 + below(k, 40));
    r->p.client = (uint64_t)below(k, N_CLIENTS);
    r->p.wake = wake;
    r->p.arg = r;
    if (below(k, 2)) {
        r->p.sampling.temperature = 1;
        r->p.sampling.seed = (uint64_t)k->n;
        r->p.sampling.repeat_penalty = 1.2F;
        r->p.sampling.repeat_window = 64;
    }
    r->c = served_submit(k->s, &r->p);
    if (k->n == N_REQUESTS)
        scheduler_stop(k->s, true);
}

static int n_live(const struct crowd *k)
{
    int n = 0;

    for (int i = 0; i < k->n; i++)
        n += !k->requests[i].over && !k->requests[i].closed;
    return n;
}

static void read_all(struct request *r)
{
    struct completion_piece piece;

    while (completion_read(r->c, &piece))
        r->tokens[r->n++] = piece.token;
    assert_true(r->n <= r->p.max_tokens);
    r->over = completion_end(r->c) != COMPLETION_RUNS;
}

static void wake(void *arg)
{
    struct request *r = arg;

    assert_false(r->closed);
    read_all(r);
    if (n_live(r->crowd) == 0 && r->crowd->n < N_REQUESTS)
        submit(r->crowd);
}

/* One of those that live goes, but not the last ones: nobody would submit any more.
 * Every other time it is one that was dropped, if there is one. */
static void close_one(struct crowd *k)
{
    struct request *r = &k->requests[below(k, k->n)];

    for (int i = below(k, 2) ? 0 : k->n; i < k->n; i++)
        if (!k->requests[i].over && !k->requests[i].closed &&
            k->requests[i].c->seq < 0 && k->requests[i].c->admitted_ns)
            r = &k->requests[i];
    if (r->over || r->closed || n_live(k) < 3)
        return;
    k->n_closed++;
    k->n_dropped_closed += r->c->seq < 0 && r->c->admitted_ns;
    r->closed = true;
    completion_close(r->c);
}

/* Nothing is charged twice; what of a prompt was cached is settled when the first token
 * has been said, whatever is computed again later. */
static void check_charges(struct request *r, int n_cached)
{
    assert_true(r->c->n_charged >= r->n_charged);
    assert_true(r->n ? n_cached == r->n_cached : n_cached >= r->n_cached);
    r->n_charged = r->c->n_charged;
    r->n_cached = n_cached;
}

/* Who was admitted had pages for its prompt and a page of its answer, and so had all
 * that ran: nobody is dropped before one of them has filled another page. */
static void check_drops(struct crowd *k)
{
    int n_dropped = 0;

    for (int i = 0; i < k->n; i++) {
        struct request *r = &k->requests[i];
        struct completion_usage usage;

        if (r->closed)
            continue;
        if (r->c->seq >= 0 && !r->runs)
            k->admitted_at = k->n_steps;
        r->runs = r->c->seq >= 0;
        completion_read_usage(r->c, &usage);
        n_dropped += usage.n_preempted > r->n_preempted;
        r->n_preempted = usage.n_preempted;
        check_charges(r, usage.n_cached);
    }
    assert_true(n_dropped == 0 || k->n_steps - k->admitted_at >= SLM_PAGE);
    k->n_dropped += n_dropped;
}

/* In each step. */
static void live(void *arg)
{
    struct crowd *k = arg;

    k->n_steps++;
    served_check_step(&k->d, k->s);
    check_drops(k);
    if (k->n < N_REQUESTS && (n_live(k) < 4 || (n_live(k) < 12 && !below(k, 20))))
        submit(k);
    if (!below(k, k->s->n_put_back ? 100 : 300))
        close_one(k);
}

/* What was said is what the model says with one sequence, and the same random numbers:
 * each token after those before it. It rounds otherwise, so that one draw of a hundred
 * thousand may fall on the other side of a boundary. */
static void check_alone(struct crowd *k, const struct request *r)
{
    const int32_t *at = r->prompt;
    struct sampler *sampler = NULL;
    struct err err = ERR_INIT;
    int n_other = 0;

    assert_int_equal(sampler_open(&sampler, &r->p.sampling, SERVED_VOCAB, &err), ST_OK);
    for (size_t i = 0; i < r->p.n_prompt; i++)
        sampler_accept(sampler, r->prompt[i]);
    slm_truncate(k->d.alone, 0);
    for (int i = 0; i < r->n; i++) {
        assert_int_equal(
            slm_eval(k->d.alone, at, i ? 1 : r->p.n_prompt, SLM_LOGITS_LAST, &err),
            ST_OK);
        n_other += sampler_next(sampler, slm_logits(k->d.alone, 0)) != r->tokens[i];
        sampler_accept(sampler, r->tokens[i]);
        at = &r->tokens[i];
    }
    assert_in_range(n_other, 0, 1);
    sampler_close(sampler);
}

static void check_crowd(int n_pages, bool keeps, uint64_t seed)
{
    struct crowd k = {.requests = calloc(N_REQUESTS, sizeof *k.requests),
                      .random = seed};
    struct scheduler_stats stats;
    struct err err = ERR_INIT;
    int n_over = 0;

    assert_non_null(k.requests);
    served_open(&k.d, &SERVED_PLAIN, 4, N_CTX, n_pages);
    k.s = served_scheduler(&k.d, N_REQUESTS, keeps);
    submit(&k);
    slm_set_eval_hook(k.d.m, live, &k);
    if (scheduler_run(k.s, &err))
        fail_msg("%s", err.msg);
    slm_set_eval_hook(k.d.m, NULL, NULL);
    scheduler_read_stats(k.s, &stats);
    assert_int_equal(k.n, N_REQUESTS);
    assert_int_equal(stats.n_requests, N_REQUESTS);
    assert_int_equal(stats.n_running + stats.n_waiting + (int)stats.n_failed, 0);
    assert_int_equal(stats.n_completed + stats.n_cancelled, N_REQUESTS);
    assert_int_equal(stats.n_pages_kept > 0, keeps);
    scheduler_close(k.s);
    served_check_idle(&k.d);
    for (int i = 0; i < N_REQUESTS; i++) {
        struct request *r = &k.requests[i];

        check_alone(&k, r);
        if (r->closed)
            continue;
        n_over++;
        assert_int_equal(completion_end(r->c), COMPLETION_LENGTH);
        assert_int_equal(r->n, r->p.max_tokens);
        completion_close(r->c);
    }
    print_message("%d pages: %d steps, %d dropped, %d closed, %d of them dropped "
                  "before, %d tokens cached\n",
                  n_pages, k.n_steps, (int)stats.n_preempted, k.n_closed,
                  k.n_dropped_closed, (int)stats.n_cached);
    assert_int_equal(n_over + k.n_closed, N_REQUESTS);
    assert_true(k.n_dropped >= 2);
    assert_true(k.n_closed >= 3 && k.n_dropped_closed >= 1);
    assert_int_equal(stats.n_cached > 0, keeps);
    free(k.requests);
    served_close(&k.d);
}

static void prefixes_are_kept(void **state)
{
    (void)state;
    check_crowd(5, true, 1);
}

static void nothing_is_kept(void **state)
{
    (void)state;
    check_crowd(4, false, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_kept),
        cmocka_unit_test(nothing_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
