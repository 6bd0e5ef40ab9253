/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_pages.c - too few pages for all, what is kept for the next request,
 * and steps that fail
 */
#include "tests/harness/serve/scheduler/served_model.h"

#include <fcntl.h>

#define STORIES TEST_DATA "models/stories260K-f32.gguf"

static struct served_text *text_of(struct completion *c)
{
    static struct served_text t;

    served_read(c, &t);
    return &t;
}

/* ---- too few pages --------------------------------------------------------------- */

/* Under a sanitizer every access is checked, and takes long. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { N_USERS = 4, N_CTX = 1000 };
#else
enum { N_USERS = 6, N_CTX = 1000 };
#endif

static struct completion_params user(const int32_t *prompt, int i)
{
    struct completion_params p = served_params(prompt, 100 + 40 * i, 500 - 30 * i);

    p.sampling.temperature = i % 2 ? 1.0F : 0.0F;
    p.sampling.seed = (uint64_t)i;
    p.frequency_penalty = i % 3 ? 0.5F : 0.0F;
    p.sampling.repeat_penalty = i % 3 == 2 ? 1.3F : 1.0F;
    p.sampling.repeat_window = 64;
    p.client = (uint64_t)i;
    return p;
}

/* The texts of all users with so many pages; returns how often one was dropped. */
static int run_users(int n_pages, bool keeps, struct served_text *texts)
{
    struct completion *c[N_USERS];
    struct served d;
    struct scheduler *s;
    int n_dropped = 0;

    served_open(&d, &SERVED_PLAIN, 4, N_CTX, n_pages);
    s = served_scheduler(&d, N_USERS, keeps);
    for (int i = 0; i < N_USERS; i++) {
        int32_t prompt[300];
        const struct completion_params p = user(prompt, i);

        served_prompt(prompt, 300, (uint64_t)i);
        c[i] = served_submit(s, &p);
    }
    served_run(s);
    for (int i = 0; i < N_USERS; i++) {
        served_read(c[i], &texts[i]);
        assert_int_equal(texts[i].end, COMPLETION_LENGTH);
        assert_int_equal(texts[i].n, 500 - 30 * i);
        assert_int_equal(texts[i].usage.n_cached, 0);
        n_dropped += texts[i].usage.n_preempted;
        assert_true(i > 0 || n_dropped == 0); /* who came first is never dropped */
        completion_close(c[i]);
    }
    scheduler_close(s);
    served_check_idle(&d);
    served_close(&d);
    return n_dropped;
}

/* Whoever is dropped goes on where it was, with the same random numbers and penalties.
 */
static void dropped_and_computed_again(void **state)
{
    struct served_text *with = calloc(N_USERS, sizeof *with);
    struct served_text *without = calloc(N_USERS, sizeof *without);

    (void)state;
    assert_true(with && without);
    assert_int_equal(run_users(0, false, without), 0);
    for (int keeps = 0; keeps < 2; keeps++) {
        assert_true(run_users(4 + keeps, keeps, with) > 0);
        for (int i = 0; i < N_USERS; i++) {
            assert_memory_equal(with[i].tokens, without[i].tokens,
                                (size_t)without[i].n * sizeof *without[i].tokens);
            assert_int_equal(with[i].len, without[i].len);
            assert_memory_equal(with[i].text, without[i].text, with[i].len);
        }
    }
    free(with);
    free(without);
}

/* It may have as many tokens as there are pages for it alone. */
static void one_fills_all_pages(void **state)
{
    struct served d;
    struct scheduler *s;
    int32_t prompt[600] = {0};
    struct completion_params p = served_params(prompt, 300, 0);
    struct completion *c[3], *none = NULL;
    struct err err = ERR_INIT;
    double retry_s;
    bool full;

    (void)state;
    served_open(&d, &SERVED_PLAIN, 2, N_CTX, 2);
    s = served_scheduler(&d, 4, true);
    served_prompt(prompt, 600, 1);
    for (int i = 0; i < 3; i++)
        c[i] = served_submit(s, &p);
    p.n_prompt = 513;
    assert_int_equal(scheduler_submit(s, &p, &none, &full, &retry_s, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "room for 512"));
    served_run(s);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(text_of(c[i])->n, 213);
        completion_close(c[i]);
    }
    scheduler_close(s);
    served_check_idle(&d);
    served_close(&d);
}

/* ---- what is kept ---------------------------------------------------------------- */

/* Submits the next turn when the first one is over; in the scheduler's thread. */
struct talk {
    struct scheduler *s;
    struct completion *c;
    int32_t tokens[N_CTX];
    int n, turn;
    bool computes_all;
    int n_cached[3], n_prompt[3];
    struct completion *over[3]; /* one cannot be closed by its own wake() */
};

static void next_turn(void *arg)
{
    struct talk *talk = arg;
    struct completion_piece piece;
    struct completion_usage usage;

    while (completion_read(talk->c, &piece))
        talk->tokens[talk->n++] = piece.token;
    if (completion_end(talk->c) == COMPLETION_RUNS || talk->turn == 3)
        return;
    completion_read_usage(talk->c, &usage);
    talk->n_cached[talk->turn] = usage.n_cached;
    talk->n_prompt[talk->turn] = usage.n_prompt;
    talk->over[talk->turn] = talk->c;
    if (++talk->turn == 3) {
        scheduler_stop(talk->s, true);
        return;
    }
    served_prompt(talk->tokens + talk->n, 20, (uint64_t)talk->n);
    talk->n += 20;
    struct completion_params p = served_params(talk->tokens, talk->n, 50);

    p.computes_all = talk->computes_all;
    p.wake = next_turn;
    p.arg = talk;
    talk->c = served_submit(talk->s, &p);
}

/* Three turns, the first of 400 tokens; *d is open afterwards. */
static void run_talk(struct talk *talk, struct served *d)
{
    struct completion_params p = served_params(talk->tokens, talk->n, 50);
    struct err err = ERR_INIT;

    served_open(d, &SERVED_PLAIN, 2, N_CTX, 0);
    talk->s = served_scheduler(d, 4, true);
    served_prompt(talk->tokens, talk->n, 3);
    p.computes_all = talk->computes_all;
    p.wake = next_turn;
    p.arg = talk;
    talk->c = served_submit(talk->s, &p);
    if (scheduler_run(talk->s, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(talk->turn, 3);
}

/* Every token is computed where that is requested, though the prompt is kept. */
static void turns_compute_all_where_requested(void **state)
{
    struct talk talk = {.n = 400, .computes_all = true};
    struct scheduler_stats stats;
    struct served d;

    (void)state;
    run_talk(&talk, &d);
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(talk.n_cached[turn], 0);
        completion_close(talk.over[turn]);
    }
    scheduler_read_stats(talk.s, &stats);
    assert_int_equal(stats.n_cached, 0);
    assert_int_equal(stats.n_step_tokens, 400 + 470 + 540 + 3 * 49);
    scheduler_close(talk.s);
    served_close(&d);
}

/* A turn computes its own tokens, and the last one generated, which nobody had needed.
 */
static void turns_compute_what_is_new(void **state)
{
    struct talk talk = {.n = 400};
    struct scheduler_stats stats;
    struct served d;
    struct err err = ERR_INIT;

    (void)state;
    run_talk(&talk, &d);
    assert_int_equal(talk.n_cached[0], 0);
    assert_int_equal(talk.n_prompt[1], 470);
    assert_int_equal(talk.n_cached[1], 449);
    assert_int_equal(talk.n_prompt[2], 540);
    assert_int_equal(talk.n_cached[2], 519);
    scheduler_read_stats(talk.s, &stats);
    assert_int_equal(stats.n_cached, 449 + 519);
    assert_int_equal(stats.n_step_tokens, 400 + 21 + 21 + 3 * 49);
    assert_true(stats.n_pages_kept > 0);
    /* a text that was not computed from the first token on is what it should be */
    slm_truncate(d.alone, 0);
    assert_int_equal(slm_eval(d.alone, talk.tokens, 1, SLM_LOGITS_LAST, &err), ST_OK);
    for (int turn = 1; turn < 3; turn++) {
        struct served_text t = {.n = 50};

        memcpy(t.tokens, talk.tokens + talk.n_prompt[turn], 50 * sizeof *t.tokens);
        served_check_greedy(&d, talk.tokens, talk.n_prompt[turn], &t);
    }
    for (int turn = 0; turn < 3; turn++)
        completion_close(talk.over[turn]);
    scheduler_close(talk.s);
    served_check_idle(&d);
    served_close(&d);
}

/* ---- models that keep nothing ---------------------------------------------------- */

static const struct synth_shape WINDOWS = {.name = "windows",
                                           .arch = "gemma3",
                                           .n_layers = 7,
                                           .n_embd = 64,
                                           .n_ff = 96,
                                           .n_heads = 4,
                                           .n_kv_heads = 2,
                                           .head_dim = 32,
                                           .n_vocab = SERVED_VOCAB,
                                           .n_ctx_train = SERVED_MAX,
                                           .window = 40,
                                           .tied_output = true,
                                           .rope_base = 10000,
                                           .norm_eps = 1e-5F},
                                STATES = {.name = "states",
                                          .arch = "qwen35",
                                          .n_layers = 4,
                                          .n_embd = 64,
                                          .n_ff = 96,
                                          .n_heads = 4,
                                          .n_kv_heads = 2,
                                          .head_dim = 32,
                                          .n_rot = 16,
                                          .n_vocab = SERVED_VOCAB,
                                          .n_ctx_train = SERVED_MAX,
                                          .rope_base = 10000,
                                          .norm_eps = 1e-5F,
                                          .full_attention_interval = 2,
                                          .n_delta_k_heads = 2,
                                          .n_delta_v_heads = 4,
                                          .delta_head_dim = 16,
                                          .n_delta_conv = 4};

static void check_keeps_nothing(const struct synth_shape *shape)
{
    int32_t prompt[200] = {0};
    struct completion_params p = served_params(prompt, 200, 150);
    struct completion *c[5];
    struct served d;
    struct scheduler *s;

    served_open(&d, shape, 3, N_CTX, 4);
    s = served_scheduler(&d, 5, true);
    served_prompt(prompt, 200, 6);
    for (int i = 0; i < 5; i++)
        c[i] = served_submit(s, &p);
    served_run(s);
    for (int i = 0; i < 5; i++) {
        struct served_text *t = text_of(c[i]);

        assert_int_equal(t->n, 150);
        assert_int_equal(t->usage.n_cached, 0);
        served_check_greedy(&d, prompt, 200, t);
        completion_close(c[i]);
    }
    scheduler_close(s);
    served_check_idle(&d);
    served_close(&d);
}

static void windows(void **state)
{
    (void)state;
    check_keeps_nothing(&WINDOWS);
}

static void states(void **state)
{
    (void)state;
    check_keeps_nothing(&STATES);
}

/* ---- steps that fail ------------------------------------------------------------- */

struct thief {
    struct served *d;
    int at, n; /* the step that has no room */
};

/* Just before a step takes its pages, somebody else takes them all. */
static void take_pages(void *arg)
{
    struct thief *thief = arg;
    const int seq = slm_info(thief->d->m)->n_sequences - 1;
    struct err err = ERR_INIT;

    if (++thief->n == thief->at)
        while (!slm_seq_fill_synthetic(thief->d->m, seq,
                                       slm_seq_n_past(thief->d->m, seq) + 256, 1, &err))
            ;
    else if (thief->n == thief->at + 1)
        slm_seq_truncate(thief->d->m, seq, 0);
}

/* Who was in the step has failed; who comes later is served. */
static void a_step_without_room(void **state)
{
    int32_t prompt[100] = {0};
    struct completion_params p = served_params(prompt, 100, 300);
    struct completion *c[4];
    struct scheduler_stats stats;
    struct served d;
    struct scheduler *s;
    struct thief thief = {&d, 159, 0}; /* of position 256 */

    (void)state;
    served_open(&d, &SERVED_PLAIN, 3, 768, 3);
    s = served_scheduler(&d, 4, false);
    served_prompt(prompt, 100, 6);
    c[0] = served_submit(s, &p);
    c[1] = NULL;
    slm_set_eval_hook(d.m, take_pages, &thief);
    served_run(s);
    assert_int_equal(text_of(c[0])->end, COMPLETION_FAILED);
    assert_non_null(strstr(completion_error(c[0]), "no room"));
    scheduler_read_stats(s, &stats);
    assert_int_equal(stats.n_failed, 1);
    completion_close(c[0]);
    scheduler_close(s);
    slm_seq_truncate(d.m, 2, 0);
    s = served_scheduler(&d, 4, false);
    c[0] = served_submit(s, &p);
    served_run(s);
    assert_int_equal(text_of(c[0])->end, COMPLETION_LENGTH);
    completion_close(c[0]);
    scheduler_close(s);
    served_check_idle(&d);
    served_close(&d);
}

struct shrinking {
    int fd, n;
};

static void shrink(void *arg)
{
    struct shrinking *file = arg;

    if (++file->n == 5)
        assert_int_equal(ftruncate(file->fd, 4096), 0);
}

/* Weights that can be read no more: nobody can be served. */
static void weights_are_gone(void **state)
{
    char path[] = "/tmp/test_scheduler.XXXXXX";
    struct shrinking file = {mkstemp(path), 0};
    struct slm_params params = slm_params_default();
    struct scheduler_params sp = {.n_queue = 4};
    const int32_t prompt[] = {1, 300, 301};
    struct completion_params p = served_params(prompt, 3, 50);
    struct tokenizer *tok = NULL;
    struct completion *c[3], *more = NULL;
    struct scheduler *s = NULL;
    struct err err = ERR_INIT;
    double retry_s;
    size_t n;
    bool full;
    void *data = test_read_file(STORIES, &n);

    (void)state;
    assert_true(file.fd >= 0);
    assert_int_equal(write(file.fd, data, n), (ssize_t)n);
    free(data);
    params.path = path;
    params.n_ctx = 128;
    params.n_sequences = 2;
    params.residency = WEIGHTS_MMAP;
    if (slm_open(&sp.m, &params, &err) || tokenizer_open(&tok, slm_gguf(sp.m), &err))
        fail_msg("%s", err.msg);
    sp.tok = tok;
    assert_int_equal(scheduler_open(&s, &sp, &err), ST_OK);
    for (int i = 0; i < 3; i++)
        c[i] = served_submit(s, &p);
    slm_set_eval_hook(sp.m, shrink, &file);
    assert_int_equal(scheduler_run(s, &err), ST_IO);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(text_of(c[i])->end, COMPLETION_FAILED);
        assert_non_null(strstr(completion_error(c[i]), "shorter"));
        completion_close(c[i]);
    }
    err_clear(&err);
    assert_int_equal(scheduler_submit(s, &p, &more, &full, &retry_s, &err),
                     ST_UNSUPPORTED);
    assert_true(full);
    scheduler_close(s);
    tokenizer_close(tok);
    slm_close(sp.m);
    close(file.fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropped_and_computed_again),
        cmocka_unit_test(one_fills_all_pages),
        cmocka_unit_test(turns_compute_all_where_requested),
        cmocka_unit_test(turns_compute_what_is_new),
        cmocka_unit_test(windows),
        cmocka_unit_test(states),
        cmocka_unit_test(a_step_without_room),
        cmocka_unit_test(weights_are_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
