/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_checkpoints.c - conversations with models that continue a text from
 * checkpoints: turns, answers that are requested again or cancelled, prompts that come
 * together, sequences that are dropped
 */
#include "tests/harness/serve/scheduler/served_check.h"
#include "tests/support/models/kept_shapes.h"

enum { N_CTX = 1300, TAIL = 16 /* of a prompt, before which a checkpoint is */ };

static void open_kind(struct served *d, enum kept_shape kind, int n_sequences,
                      int n_pages, int n_checkpoints)
{
    struct synth_shape shape = kept_shape(kind);

    shape.n_vocab = SERVED_VOCAB;
    shape.n_ctx_train = SERVED_MAX;
    served_checkpoints = n_checkpoints;
    served_open(d, &shape, n_sequences, N_CTX, n_pages);
}

/* ---- one request after the other ------------------------------------------------- */

struct request {
    int n_known;  /* of the text so far, with which the prompt begins */
    int n_prompt; /* with other tokens behind them */
    int n_answer;
    int n_cached; /* what is to be known of the prompt */
    int n_steps;  /* after as many it is cancelled; 0: it is not */
};

struct talk {
    struct served d;
    struct scheduler *s;
    struct completion *c;
    int n_steps, cancel_at;
    int32_t tokens[N_CTX];
    int n; /* of one that is cancelled */
};

static void before_step(void *arg)
{
    struct talk *talk = arg;

    struct completion_piece piece;

    served_check_step(&talk->d, talk->s);
    if (!talk->cancel_at || !talk->c)
        return;
    while (completion_read(talk->c, &piece))
        talk->tokens[talk->n++] = piece.token;
    if (++talk->n_steps != talk->cancel_at)
        return;
    completion_close(talk->c);
    talk->c = NULL;
}

/* The tokens so far become those of the request and its answer. */
static void make_request(struct talk *talk, const struct request *r, int i)
{
    static struct served_text t;
    struct scheduler_stats stats;
    struct completion_params p = served_params(talk->tokens, r->n_prompt, r->n_answer);

    served_prompt(talk->tokens + r->n_known, r->n_prompt - r->n_known, 7 + (uint64_t)i);
    talk->s = served_scheduler(&talk->d, 4, true);
    talk->n_steps = 0;
    talk->n = r->n_prompt;
    talk->cancel_at = r->n_steps;
    talk->c = served_submit(talk->s, &p);
    slm_set_eval_hook(talk->d.m, before_step, talk);
    served_run(talk->s);
    slm_set_eval_hook(talk->d.m, NULL, NULL);
    scheduler_read_stats(talk->s, &stats);
    if ((int)stats.n_cached != r->n_cached)
        fail_msg("%s, request %d: %d of %d tokens were cached, not %d",
                 slm_info(talk->d.m)->arch, i, (int)stats.n_cached, r->n_prompt,
                 r->n_cached);
    if (talk->c) {
        served_read(talk->c, &t);
        assert_int_equal(t.n, r->n_answer);
        served_check_greedy(&talk->d, talk->tokens, r->n_prompt, &t);
        memcpy(talk->tokens + r->n_prompt, t.tokens,
               (size_t)t.n * sizeof *talk->tokens);
        completion_close(talk->c);
    }
    scheduler_close(talk->s);
}

static void check_requests(const struct request *r, int n, int n_checkpoints)
{
    for (int kind = 0; kind < N_KEPT_SHAPES; kind++) {
        struct talk talk = {.s = NULL};

        open_kind(&talk.d, (enum kept_shape)kind, 2, 0, n_checkpoints);
        for (int i = 0; i < n; i++)
            make_request(&talk, &r[i], i);
        assert_true(slm_prefix_checkpoints(talk.d.m) > 0);
        served_check_idle(&talk.d);
        served_close(&talk.d);
    }
}

/* A turn computes its own tokens, and the last one generated, which nobody had needed.
 */
static void turns_compute_what_is_new(void **state)
{
    static const struct request requests[] = {
        {0, 300, 50, 0, 0}, {350, 370, 50, 349, 0}, {420, 440, 50, 419, 0}};

    (void)state;
    check_requests(requests, 3, 8);
    check_requests(requests, 3, 1); /* one is enough */
}

/* Another answer, or another end of the question, begins at the last place that they
 * have in common, where a checkpoint is kept once a prompt has parted there. A template
 * may write the question's end and the answer otherwise later. */
static void edits_compute_what_is_new(void **state)
{
    static const struct request requests[] = {
        {0, 300, 40, 0, 0},
        {300, 300, 40, 300 - TAIL, 0}, /* again */
        {200, 300, 40, 0, 0},          /* nothing is kept in between, */
        {200, 280, 40, 200, 0},        /* but where it parted, once it has */
        {280 - 3, 360, 40, 280 - TAIL, 0},
    };

    (void)state;
    check_requests(requests, 5, 12);
}

/* Checkpoints are kept within long prompts and long answers. */
static void long_texts_are_kept_in_parts(void **state)
{
    static const struct request requests[] = {
        {0, 800, 150, 0, 0},   {600, 700, 5, 512, 0}, {0, 450, 200, 0, 0},
        {530, 600, 5, 512, 0}, {0, 1200, 5, 0, 0},    {600, 700, 5, 512, 0},
    };

    (void)state;
    for (int i = 0; i < 6; i += 2)
        check_requests(requests + i, 2, 12);
}

/* What was computed of an answer whose client has left is kept: five steps compute the
 * prompt, and the last one gives a token; 60 more give a token each. */
static void cancelled_answers_are_continued(void **state)
{
    static const struct request requests[] = {{0, 300, 200, 0, 5 + 60},
                                              {360, 400, 20, 360, 0}};

    (void)state;
    check_requests(requests, 2, 8);
}

/* ---- requests that come together ------------------------------------------------- */

static void check_together(enum kept_shape kind, int n_alike, int n_rest, int n_shared)
{
    enum { N = 4 };
    static struct served_text t;
    struct scheduler_stats stats;
    int32_t prompts[N][340];
    struct completion *c[N];
    struct served d;
    struct scheduler *s;

    open_kind(&d, kind, N, 0, 12);
    s = served_scheduler(&d, N, true);
    for (int i = 0; i < N; i++) {
        served_prompt(prompts[i], n_alike, 1);
        served_prompt(prompts[i] + n_alike, n_rest, 10 + (uint64_t)i);
        const struct completion_params p =
            served_params(prompts[i], n_alike + n_rest, 20);

        c[i] = served_submit(s, &p);
    }
    served_run(s);
    for (int i = 0; i < N; i++) {
        served_read(c[i], &t);
        if (t.usage.n_cached != (i ? n_shared : 0))
            fail_msg("%s: %d of %d tokens of prompt %d were cached",
                     slm_info(d.m)->arch, t.usage.n_cached, n_alike + n_rest, i);
        served_check_greedy(&d, prompts[i], n_alike + n_rest, &t);
        completion_close(c[i]);
    }
    scheduler_read_stats(s, &stats);
    assert_int_equal(stats.n_step_tokens,
                     N * (n_alike + n_rest + 19) - (N - 1) * n_shared);
    scheduler_close(s);
    served_check_idle(&d);
    served_close(&d);
}

/* Several answers to one prompt, and prompts that begin alike: that is computed once.
 */
static void alike_and_together(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KEPT_SHAPES; kind++) {
        check_together((enum kept_shape)kind, 300, 0, 300 - TAIL);
        check_together((enum kept_shape)kind, 250, 60, 250);
        check_together((enum kept_shape)kind, 20, 60, 0);
        /* the first prompt leaves room in its step, which nobody takes */
        check_together((enum kept_shape)kind, 40, 20, 40);
        check_together((enum kept_shape)kind, 32, 20, 32);
        check_together((enum kept_shape)kind, 31, 20, 0);
    }
}

struct watched {
    struct scheduler *s;
    int n_steps, n_parts; /* of the first */
};

static void watch_first(void *arg)
{
    struct watched *w = arg;

    if (w->n_steps++ == 0)
        w->n_parts = w->s->n_parts;
}

/* The second one of two equal prompts waits for the checkpoint that is TAIL tokens
 * before their end, but not if it is a few tokens behind what is known of both. */
static void nobody_waits_for_little(void **state)
{
    enum { N_FIRST = 240, N_ANSWER = 21, N_KNOWN = N_FIRST + N_ANSWER - 1 };

    (void)state;
    for (int kind = 0; kind < N_KEPT_SHAPES; kind++)
        for (int waits = 0; waits < 2; waits++) {
            const struct request first = {0, N_FIRST, N_ANSWER, 0, 0};
            const int n = N_KNOWN + TAIL + (waits ? 32 : 31);
            struct talk talk = {.s = NULL};
            struct watched w = {.n_steps = 0};
            struct completion *c[2];

            open_kind(&talk.d, (enum kept_shape)kind, 2, 0, 12);
            make_request(&talk, &first, 0);
            served_prompt(talk.tokens + N_KNOWN + 1, n - N_KNOWN - 1, 9);
            const struct completion_params p = served_params(talk.tokens, n, 5);

            w.s = served_scheduler(&talk.d, 2, true);
            for (int i = 0; i < 2; i++)
                c[i] = served_submit(w.s, &p);
            slm_set_eval_hook(talk.d.m, watch_first, &w);
            served_run(w.s);
            slm_set_eval_hook(talk.d.m, NULL, NULL);
            assert_int_equal(w.n_parts, waits ? 1 : 2);
            for (int i = 0; i < 2; i++)
                completion_close(c[i]);
            scheduler_close(w.s);
            served_check_idle(&talk.d);
            served_close(&talk.d);
        }
}

/* ---- room ------------------------------------------------------------------------ */

/* More conversations than there are checkpoints, in turns: what is no longer kept is
 * computed, and nothing is lost. */
static void more_conversations_than_checkpoints(void **state)
{
    enum { N = 5, N_TURNS = 3, N_ANSWER = 20 };
    static struct served_text t;
    static int32_t tokens[N][N_CTX];

    (void)state;
    for (int kind = 0; kind < N_KEPT_SHAPES; kind++) {
        struct scheduler_stats stats;
        struct served d;
        int n[N] = {0}, n_cached = 0;

        open_kind(&d, (enum kept_shape)kind, 3, 0, 3);
        for (int turn = 0; turn < N_TURNS; turn++) {
            struct scheduler *s = served_scheduler(&d, N, true);
            struct completion *c[N];

            for (int i = 0; i < N; i++) {
                served_prompt(tokens[i] + n[i], 40 + 30 * i, (uint64_t)(turn * N + i));
                n[i] += 40 + 30 * i;
                const struct completion_params p =
                    served_params(tokens[i], n[i], N_ANSWER);

                c[i] = served_submit(s, &p);
            }
            served_run(s);
            for (int i = 0; i < N; i++) {
                served_read(c[i], &t);
                n_cached += t.usage.n_cached;
                served_check_greedy(&d, tokens[i], n[i], &t);
                memcpy(tokens[i] + n[i], t.tokens, (size_t)t.n * sizeof *t.tokens);
                n[i] += t.n;
                completion_close(c[i]);
            }
            scheduler_read_stats(s, &stats);
            assert_int_equal(stats.n_checkpoints, 3);
            assert_in_range(stats.n_checkpoints_kept, 1, 3);
            scheduler_close(s);
        }
        assert_true(n_cached > 0);
        served_check_idle(&d);
        served_close(&d);
    }
}

/* Where pages run out what is kept goes, and then the last one that came, which
 * continues later. */
static void fewer_pages_than_texts_take(void **state)
{
    enum { N = 3, N_PROMPT = 200, N_ANSWER = 330 };
    static struct served_text t;
    int32_t prompts[N][N_PROMPT];

    (void)state;
    for (int kind = 0; kind < N_KEPT_SHAPES; kind++) {
        struct scheduler_stats stats;
        struct completion *c[N];
        struct scheduler *s;
        struct served d;

        if (!kept_has_pages((enum kept_shape)kind))
            continue;
        open_kind(&d, (enum kept_shape)kind, N, 5, 4);
        s = served_scheduler(&d, N, true);
        for (int i = 0; i < N; i++) {
            served_prompt(prompts[i], N_PROMPT, 1 + (uint64_t)i);
            const struct completion_params p =
                served_params(prompts[i], N_PROMPT, N_ANSWER);

            c[i] = served_submit(s, &p);
        }
        served_run(s);
        for (int i = 0; i < N; i++) {
            served_read(c[i], &t);
            assert_int_equal(t.n, N_ANSWER);
            served_check_greedy(&d, prompts[i], N_PROMPT, &t);
            completion_close(c[i]);
        }
        scheduler_read_stats(s, &stats);
        assert_true(stats.n_preempted > 0);
        scheduler_close(s);
        served_check_idle(&d);
        served_close(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_compute_what_is_new),
        cmocka_unit_test(edits_compute_what_is_new),
        cmocka_unit_test(long_texts_are_kept_in_parts),
        cmocka_unit_test(cancelled_answers_are_continued),
        cmocka_unit_test(alike_and_together),
        cmocka_unit_test(nobody_waits_for_little),
        cmocka_unit_test(more_conversations_than_checkpoints),
        cmocka_unit_test(fewer_pages_than_texts_take),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
