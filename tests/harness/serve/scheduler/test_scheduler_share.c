/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_share.c - requests that begin alike and run together: what they have
 * in common is computed once
 */
#include "tests/harness/serve/scheduler/served_check.h"

enum { N_CTX = 1000 };

static struct served_text *text_of(struct completion *c)
{
    static struct served_text t;

    served_read(c, &t);
    return &t;
}

/* Prompts that come together are computed as far as they are alike only once, unless
 * that is a few tokens; nobody is kept up by one that goes on otherwise. */
static void check_alike(int n_alike, int n_rest, int n_shared, uint64_t most_steps)
{
    enum { N = 5 };
    int32_t prompts[N][340];
    struct completion *c[N];
    struct scheduler_stats stats;
    struct served d;
    struct scheduler *s;
    int n_cached = 0;

    served_open(&d, &SERVED_PLAIN, N, N_CTX, 0);
    for (int keeps = 0; keeps < 2; keeps++) {
        s = served_scheduler(&d, N, keeps);
        for (int i = 0; i < N; i++) {
            /* the last one is another one */
            served_prompt(prompts[i], n_alike, i == N - 1);
            served_prompt(prompts[i] + n_alike, n_rest, 10 + (uint64_t)i);
            const struct completion_params p =
                served_params(prompts[i], n_alike + n_rest, 20);

            c[i] = served_submit(s, &p);
        }
        served_run(s);
        for (int i = 0; i < N; i++) {
            struct served_text *t = text_of(c[i]);

            assert_int_equal(t->usage.n_cached,
                             keeps && i > 0 && i < N - 1 ? n_shared : 0);
            n_cached += t->usage.n_cached;
            served_check_greedy(&d, prompts[i], n_alike + n_rest, t);
            completion_close(c[i]);
        }
        scheduler_read_stats(s, &stats);
        assert_int_equal(stats.n_cached, n_cached);
        assert_int_equal(stats.n_step_tokens, N * (n_alike + n_rest + 19) - n_cached);
        assert_true(stats.n_steps <= most_steps);
        scheduler_close(s);
        served_check_idle(&d);
    }
    served_close(&d);
}

static void alike_and_together(void **state)
{
    (void)state;
    check_alike(300, 40, 300, UINT64_MAX); /* several steps */
    check_alike(40, 4, 40, UINT64_MAX);    /* some of them in one */
    check_alike(32, 4, 32, UINT64_MAX);
    check_alike(31, 4, 0, UINT64_MAX);
    check_alike(20, 4, 0, 2 + 19); /* 120 tokens: nobody waits for another one */
}

/* A prompt that begins with what is kept takes more from another one that runs: all of
 * it counts as cached, once. */
static void kept_and_taken_over(void **state)
{
    enum { N_KEPT = 100, N_ALIKE = 200, N_PROMPT = 220, N_ANSWER = 20 };
    int32_t prompts[2][N_PROMPT];
    struct completion *c[2];
    struct scheduler_stats stats;
    struct served d;
    struct scheduler *s;

    (void)state;
    served_open(&d, &SERVED_PLAIN, 2, N_CTX, 0);
    for (int i = 0; i < 2; i++) {
        served_prompt(prompts[i], N_ALIKE, 1);
        served_prompt(prompts[i] + N_ALIKE, N_PROMPT - N_ALIKE, 10 + (uint64_t)i);
    }
    for (int turn = 0; turn < 2; turn++) {
        const struct completion_params p[2] = {
            served_params(prompts[0], turn ? N_PROMPT : N_KEPT, turn ? N_ANSWER : 1),
            served_params(prompts[1], N_PROMPT, N_ANSWER)};

        s = served_scheduler(&d, 2, true);
        for (int i = 0; i <= turn; i++)
            c[i] = served_submit(s, &p[i]);
        served_run(s);
        for (int i = 0; i <= turn; i++) {
            assert_int_equal(text_of(c[i])->usage.n_cached, i      ? N_ALIKE
                                                            : turn ? N_KEPT
                                                                   : 0);
            completion_close(c[i]);
        }
        scheduler_read_stats(s, &stats);
        scheduler_close(s);
    }
    assert_int_equal(stats.n_cached, N_KEPT + N_ALIKE);
    assert_int_equal(stats.n_step_tokens,
                     2 * (N_PROMPT + N_ANSWER - 1) - N_KEPT - N_ALIKE);
    served_check_idle(&d);
    served_close(&d);
}

/* Prompts that part with their first token have nothing in common. */
static void parted_at_once(void **state)
{
    enum { N_PROMPT = 60 };
    int32_t prompts[2][N_PROMPT];
    struct completion *c[2];
    struct served d;
    struct scheduler *s;

    (void)state;
    served_open(&d, &SERVED_PLAIN, 2, N_CTX, 0);
    s = served_scheduler(&d, 2, true);
    for (int i = 0; i < 2; i++) {
        served_prompt(prompts[i], N_PROMPT, 1);
        prompts[i][0] += i;
        const struct completion_params p = served_params(prompts[i], N_PROMPT, 10);

        c[i] = served_submit(s, &p);
    }
    served_run(s);
    for (int i = 0; i < 2; i++) {
        struct served_text *t = text_of(c[i]);

        assert_int_equal(t->usage.n_cached, 0);
        served_check_greedy(&d, prompts[i], N_PROMPT, t);
        completion_close(c[i]);
    }
    scheduler_close(s);
    served_check_idle(&d);
    served_close(&d);
}

struct late {
    struct scheduler *s;
    struct completion_params p;
    struct completion *c;
    int n_steps;
};

/* When all others generate. */
static void come_late(void *arg)
{
    struct late *late = arg;

    if (++late->n_steps != 6)
        return;
    late->c = served_submit(late->s, &late->p);
    scheduler_stop(late->s, true);
}

/* Of two that run the one that has more of it, though it is a little more. */
static void the_longest_is_taken_over(void **state)
{
    static const int n_alike[] = {40, 41, 100}, n_cached[] = {0, 40, 41};
    int32_t prompts[3][120];
    struct completion_params p[3];
    struct completion *c[3];
    struct late late = {.n_steps = 0};
    struct served d;
    struct err err = ERR_INIT;

    (void)state;
    served_open(&d, &SERVED_PLAIN, 3, N_CTX, 0);
    late.s = served_scheduler(&d, 3, true);
    for (int i = 0; i < 3; i++) {
        served_prompt(prompts[i], n_alike[i], 1);
        served_prompt(prompts[i] + n_alike[i], 20, 2 + (uint64_t)i);
        p[i] = served_params(prompts[i], n_alike[i] + 20, 30);
        if (i < 2)
            c[i] = served_submit(late.s, &p[i]);
    }
    late.p = p[2];
    slm_set_eval_hook(d.m, come_late, &late);
    if (scheduler_run(late.s, &err))
        fail_msg("%s", err.msg);
    slm_set_eval_hook(d.m, NULL, NULL);
    c[2] = late.c;
    for (int i = 0; i < 3; i++) {
        struct served_text *t = text_of(c[i]);

        assert_int_equal(t->usage.n_cached, n_cached[i]);
        served_check_greedy(&d, prompts[i], n_alike[i] + 20, t);
        completion_close(c[i]);
    }
    scheduler_close(late.s);
    served_check_idle(&d);
    served_close(&d);
}

struct watched {
    struct served d;
    struct scheduler *s;
    struct completion *c;
    int n_charged;
    bool comes_back; /* behind what another one has of its prompt */
};

static void watch(void *arg)
{
    struct watched *w = arg;

    served_check_step(&w->d, w->s);
    assert_true(w->c->n_charged >= w->n_charged);
    w->n_charged = w->c->n_charged;
    w->comes_back |= w->c->usage.n_preempted && w->c->n_done == 300;
}

/* Who was dropped goes on behind what another one has; it is charged for nothing again,
 * and what of its prompt was cached had been said before. */
static void what_was_dropped_is_taken_over(void **state)
{
    static const int n_prompt[] = {200, 300, 300}, n_answer[] = {600, 650, 600};
    struct watched w = {.n_charged = 0};
    int32_t prompts[2][300];
    struct completion *c[3];
    struct scheduler_stats stats;

    (void)state;
    served_open(&w.d, &SERVED_PLAIN, 3, N_CTX, 8);
    w.s = served_scheduler(&w.d, 3, true);
    for (int i = 0; i < 3; i++) {
        struct completion_params p =
            served_params(prompts[i > 0], n_prompt[i], n_answer[i]);

        served_prompt(prompts[i > 0], n_prompt[i], 5 + (i > 0));
        p.client = (uint64_t)i;
        p.sampling.temperature = i == 2 ? 1.0F : 0.0F;
        p.sampling.seed = 3;
        c[i] = served_submit(w.s, &p);
    }
    w.c = c[2];
    slm_set_eval_hook(w.d.m, watch, &w);
    served_run(w.s);
    slm_set_eval_hook(w.d.m, NULL, NULL);
    assert_true(w.comes_back);
    scheduler_read_stats(w.s, &stats);
    assert_int_equal(stats.n_preempted, 1);
    assert_int_equal(stats.n_cached, 299);
    for (int i = 0; i < 3; i++) {
        struct served_text *t = text_of(c[i]);

        assert_int_equal(t->n, n_answer[i]);
        assert_int_equal(t->usage.n_cached, i == 2 ? 299 : 0);
        assert_int_equal(t->usage.n_preempted, i == 2);
        completion_close(c[i]);
    }
    scheduler_close(w.s);
    served_check_idle(&w.d);
    served_close(&w.d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alike_and_together),
        cmocka_unit_test(kept_and_taken_over),
        cmocka_unit_test(parted_at_once),
        cmocka_unit_test(the_longest_is_taken_over),
        cmocka_unit_test(what_was_dropped_is_taken_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
