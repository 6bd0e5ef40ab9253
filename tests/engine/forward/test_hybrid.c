/* SPDX-License-Identifier: MIT
 *
 * test_hybrid.c - recurrent layers of each mechanism, between or next to those that
 * attend, against the equations in double precision
 *
 * Sequences are also cut back, to everywhere around the places where the engine keeps
 * its states.
 */
#include "engine/engine_impl.h"
#include "engine/gguf/census.h"
#include "engine/speculate/speculate.h"
#include "tests/engine/forward/hybrid_reference.h"
#include "tests/support/nmse.h"

struct fixture {
    enum hybrid kind;
    void *image;
    size_t bytes;
    int32_t tokens[N_TOKENS];
    float exact[N_TOKENS][N_VOCAB];
};

static void fixture_open(struct fixture *x, enum hybrid kind)
{
    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    uint64_t rng = 4;

    x->kind = kind;
    x->image = make_model(kind, &x->bytes);
    assert_int_equal(gguf_parse(&g, x->image, x->bytes, "hybrid", &err), ST_OK);
    for (int i = 0; i < N_TOKENS; i++) {
        x->tokens[i] = (int32_t)(test_random(&rng) % N_VOCAB);
        reference_step(g, kind, x->tokens[i], i, x->exact[i]);
    }
    gguf_close(g);
}

static struct slm *open_model(const struct fixture *x, int n_threads, int n_batch)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    p.image = x->image;
    p.image_bytes = x->bytes;
    p.n_threads = n_threads;
    p.n_batch = n_batch;
    if (slm_open(&m, &p, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* The same from a file, with as many layers streamed as possible. */
static struct slm *open_streamed(const struct fixture *x, char *path, int n_sequences)
{
    const int fd = mkstemp(path);
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm_info info;
    struct gguf *g = NULL;
    struct slm *m = NULL;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, x->image, x->bytes), x->bytes);
    close(fd);
    p.path = path;
    p.n_threads = 2;
    p.n_batch = 7;
    p.n_sequences = n_sequences;
    if (gguf_open(&g, path, &err) || slm_plan(&info, g, &p, &err))
        fail_msg("%s", err.msg);
    gguf_close(g);
    p.residency = WEIGHTS_STREAM;
    p.memory_bytes = info.kv_bytes + info.scratch_bytes + info.stream_min_bytes;
    if (slm_open(&m, &p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    assert_true(slm_info(m)->n_streamed > 0);
    return m;
}

/* Tokens from the end of the sequence to `to`, n at a time; each one's logits. Keys in
 * half precision that no norm bounds cost more. */
static void check_to(struct slm *m, const struct fixture *x, int to, int n)
{
    const double bound = x->kind == HYBRID_FALCON_H1 ? 4e-6 : 1e-6;
    struct err err = ERR_INIT;

    for (int at = slm_n_past(m); at < to; at += n) {
        const int batch = to - at < n ? to - at : n;

        if (slm_eval(m, x->tokens + at, (size_t)batch, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (int j = 0; j < batch; j++) {
            const double off =
                nmse(slm_logits(m, (size_t)j), x->exact[at + j], N_VOCAB);

            if (!(off <= bound))
                fail_msg("%s, position %d, %d at a time: NMSE %g",
                         hybrid_names[x->kind], at + j, n, off);
        }
    }
}

static void check_model(enum hybrid kind)
{
    static const struct {
        int n_threads, n_batch;
    } ways[] = {{1, 1}, {1, N_TOKENS}, {2, 2}, {3, 7}, {4, 1}, {2, 16}};
    static struct fixture x;

    fixture_open(&x, kind);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct slm *m = open_model(&x, ways[w].n_threads, ways[w].n_batch);

        check_to(m, &x, N_TOKENS, ways[w].n_batch);
        slm_close(m);
    }
    free(x.image);
}

static void test_ways(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_HYBRIDS; kind++)
        check_model((enum hybrid)kind);
}

/* Cut back: into a batch, to its beginning, into the answer, to the prompt's end, and
 * to nothing; also twice, and without going on in between. */
static void check_truncate(enum hybrid kind)
{
    static const int ends[] = {30, 29, 26, 20, 21, 13, 12, 1, 0};
    static struct fixture x;

    fixture_open(&x, kind);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct slm *m = open_model(&x, 2, 13);

        check_to(m, &x, 20, 13);
        check_to(m, &x, 25, 1);
        check_to(m, &x, 30, 5);
        slm_truncate(m, ends[i]);
        check_to(m, &x, ends[i] + 3, 1);
        slm_truncate(m, ends[i] / 2);
        slm_truncate(m, ends[i] / 3);
        check_to(m, &x, N_TOKENS, 13);
        slm_close(m);
    }
    free(x.image);
}

static void test_truncate(void **state)
{
    static const enum hybrid kinds[] = {HYBRID_QWEN35, HYBRID_LFM2, HYBRID_MAMBA2,
                                        HYBRID_FALCON_H1};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        check_truncate(kinds[i]);
}

/* Whether the states are those that were kept. */
static bool states_are_the_copy(const struct slm *m)
{
    return !memcmp(kvcache_state(&m->kv, 0, 0),
                   kvcache_state(&m->kv, 0, m->kv.shape.n_states),
                   slm_info(m)->state_bytes);
}

/* Going back to where states were kept, or to nothing, is done with by the time that
 * the next token is computed; from elsewhere tokens run again before it. */
static void test_states_return_at_once(void **state)
{
    static struct fixture x;

    (void)state;
    fixture_open(&x, HYBRID_QWEN35);
    struct slm *m = open_model(&x, 1, 8);
    const struct rewind *r = &m->seqs[0].rewind;

    check_to(m, &x, 10, 5);
    check_to(m, &x, 11, 1);
    assert_false(states_are_the_copy(m));
    slm_truncate(m, 10);
    assert_int_equal(r->at, 10);
    assert_true(states_are_the_copy(m));
    check_to(m, &x, 14, 1);
    slm_truncate(m, 12);
    assert_int_equal(r->at, 14);
    check_to(m, &x, 15, 1);
    slm_truncate(m, 0);
    assert_int_equal(r->at, 0);
    for (size_t i = 0; i < slm_info(m)->state_bytes / sizeof(float); i++)
        assert_true(!(fabsf(kvcache_state(&m->kv, 0, 0)[i]) > 0));
    check_to(m, &x, N_TOKENS, 8);
    slm_close(m);
    free(x.image);
}

/* Tokens that run again are part of the next pass, which copies the states behind them:
 * going back over and over costs no pass, and never more than the last pass' tokens. */
static void check_again(enum hybrid kind)
{
    enum { WIDTH = 5, KEPT = 2 };
    static struct slm_profile profile;
    static struct fixture x;
    struct err err = ERR_INIT;

    fixture_open(&x, kind);
    struct slm *m = open_model(&x, 2, 13);

    check_to(m, &x, 10, 5);
    assert_int_equal(slm_profile_start(m, &err), ST_OK);
    for (int at = 10, n = 1; at + WIDTH <= N_TOKENS; at += KEPT, n++) {
        check_to(m, &x, at + WIDTH, WIDTH);
        slm_profile_read(m, &profile);
        assert_int_equal(profile.n_passes, n);
        assert_int_equal(m->seqs[0].rewind.saved_at, at);
        slm_truncate(m, at + KEPT);
    }
    /* more than a pass has room for runs before it */
    slm_truncate(m, 0);
    check_to(m, &x, 10, 5);
    check_to(m, &x, 22, 12);
    slm_truncate(m, 20);
    check_to(m, &x, 25, 5);
    slm_close(m);
    free(x.image);
}

static void test_again_in_one_pass(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_HYBRIDS; kind++)
        check_again((enum hybrid)kind);
}

/* Other tokens than before, after going back. */
static void test_another_turn(void **state)
{
    static struct fixture x;
    const int32_t other[3] = {1, 2, 3};
    struct err err = ERR_INIT;

    (void)state;
    fixture_open(&x, HYBRID_QWEN35);
    struct slm *m = open_model(&x, 1, 8);

    check_to(m, &x, 10, 8);
    assert_int_equal(slm_eval(m, other, 3, SLM_LOGITS_LAST, &err), ST_OK);
    assert_int_equal(slm_eval(m, other, 1, SLM_LOGITS_LAST, &err), ST_OK);
    slm_truncate(m, 10);
    check_to(m, &x, 20, 1);
    slm_close(m);
    free(x.image);
}

/* With a window of the KV cache the layers that attend forget, and states do not: with
 * one that holds all, logits are the reference's; with less, those of passes of one
 * token, far beyond the context and after going back as far as that goes. */
static void test_kv_window(void **state)
{
    enum { WINDOW = 7, SINKS = 2, SHORT_CTX = 20 };
    static struct fixture x;
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    (void)state;
    fixture_open(&x, HYBRID_QWEN35);
    p.image = x.image;
    p.image_bytes = x.bytes;
    p.n_threads = 2;
    p.n_ctx = SHORT_CTX;
    p.n_batch = p.n_back = 13;
    p.kv_window = N_TOKENS;
    for (int n = 1; n <= 13; n += 6) {
        assert_int_equal(slm_open(&m, &p, &err), ST_OK);
        check_to(m, &x, N_TOKENS, n);
        slm_close(m);
    }

    p.kv_window = WINDOW;
    p.n_sinks = SINKS;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    check_to(m, &x, WINDOW + SINKS, 1);
    for (int i = WINDOW + SINKS; i < N_TOKENS; i++) {
        double error = 0;

        assert_int_equal(slm_eval(m, &x.tokens[i], 1, SLM_LOGITS_LAST, &err), ST_OK);
        for (int k = 0; k < N_VOCAB; k++)
            error += fabs((double)slm_logits(m, 0)[k] - (double)x.exact[i][k]);
        assert_true(error > 1e-3); /* something is forgotten */
        memcpy(x.exact[i], slm_logits(m, 0), sizeof x.exact[i]);
    }
    slm_close(m);
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    check_to(m, &x, 31, 13);
    check_to(m, &x, 34, 3);
    assert_int_equal(slm_min_past(m), 31);
    slm_truncate(m, 32);
    check_to(m, &x, 36, 1);
    slm_truncate(m, slm_min_past(m));
    check_to(m, &x, N_TOKENS, 5);
    slm_truncate(m, 0);
    check_to(m, &x, N_TOKENS, 13);
    slm_close(m);
    free(x.image);
}

/* A cache filled without tokens can be returned to, and layers without keys take no
 * room in it. */
static void test_synthetic(void **state)
{
    static struct fixture x;
    struct err err = ERR_INIT;

    (void)state;
    fixture_open(&x, HYBRID_QWEN35);
    struct slm *m = open_model(&x, 2, 8);
    const struct slm_info *info = slm_info(m);

    assert_int_equal(info->n_recurrent, 3);
    assert_int_equal(info->kv_pos_bytes, 2 * N_KV * (HEAD_DIM + 16) * 2);
    assert_int_equal(info->state_bytes, 3 * 4 * ((N_CONV - 1) * CHANNELS + VALUES * D));
    assert_int_equal(slm_fill_synthetic(m, 20, 1, &err), ST_OK);
    assert_int_equal(slm_eval(m, x.tokens, 1, SLM_LOGITS_LAST, &err), ST_OK);
    const float first = slm_logits(m, 0)[0];

    slm_truncate(m, 20);
    assert_int_equal(slm_eval(m, x.tokens, 1, SLM_LOGITS_LAST, &err), ST_OK);
    assert_true(slm_logits(m, 0)[0] == first);
    slm_close(m);
    free(x.image);
}

/* The layer that predicts a further token lies in the file, and no token reads it:
 * asked of the model, or summed over the file's tensors. */
static void test_token_bytes(void **state)
{
    const struct slm_params p = slm_params_default();

    (void)state;
    for (int kind = 0; kind < N_HYBRIDS; kind++) {
        struct err err = ERR_INIT;
        struct slm_info info;
        struct census census;
        struct gguf *g = NULL;
        size_t n;
        void *image = make_model((enum hybrid)kind, &n);

        assert_int_equal(gguf_parse(&g, image, n, "hybrid", &err), ST_OK);
        assert_int_equal(slm_plan(&info, g, &p, &err), ST_OK);
        census_take(&census, g);
        assert_int_equal(census.unread_bytes,
                         is_delta((enum hybrid)kind) ? N_EMBD * sizeof(float) : 0);
        assert_int_equal(info.weight_token_bytes, census.token_bytes);
        gguf_close(g);
        free(image);
    }
}

/* Rejected tokens are removed, from states too: the text is that of plain decoding,
 * with a rejected draft before every other token. */
static void test_drafts(void **state)
{
    enum { N = 12 };
    const struct speculate_params how = {.always = true};
    const struct sampler_params greedy = sampler_params_default();
    int32_t plain[N], out[SPECULATE_MAX + 1], id = 0;
    struct speculate_stats stats;
    struct err err = ERR_INIT;
    struct speculator *sp;
    struct sampler *s;
    struct fixture x;
    int32_t prompt[4 * N];

    (void)state;
    fixture_open(&x, HYBRID_QWEN35);
    struct slm *m = open_model(&x, 1, 8);
    assert_int_equal(sampler_open(&s, &greedy, N_VOCAB, &err), ST_OK);
    assert_int_equal(slm_eval(m, x.tokens, 5, SLM_LOGITS_LAST, &err), ST_OK);
    for (int i = 0; i < N; i++) {
        plain[i] = sampler_next(s, slm_logits(m, 0));
        assert_int_equal(slm_eval(m, &plain[i], 1, SLM_LOGITS_LAST, &err), ST_OK);
    }
    /* Each pair of tokens stood before already, and something else behind it. */
    for (int i = 0; i + 1 < N; i++) {
        prompt[4 * i] = plain[i];
        prompt[4 * i + 1] = plain[i + 1];
        prompt[4 * i + 2] =
            i % 2 || i + 2 >= N ? (plain[i] + 7) % N_VOCAB : plain[i + 2];
        prompt[4 * i + 3] = 0;
    }
    slm_truncate(m, 0);
    assert_int_equal(slm_eval(m, x.tokens, 5, SLM_LOGITS_LAST, &err), ST_OK);
    assert_int_equal(speculate_open(&sp, m, s, NULL, &how, &err), ST_OK);
    assert_int_equal(speculate_begin(sp, prompt, 4 * (N - 1), &err), ST_OK);
    id = sampler_next(s, slm_logits(m, 0));
    assert_int_equal(id, plain[0]);
    for (int at = 1, got; at < N; at += got) {
        assert_int_equal(speculate_next(sp, id, N - at, out, &got, &err), ST_OK);
        assert_memory_equal(out, plain + at, (size_t)got * sizeof *out);
        id = out[got - 1];
    }
    speculate_read_stats(sp, &stats);
    assert_true(stats.n_accepted < stats.n_drafted);
    speculate_close(sp);
    sampler_close(s);
    slm_close(m);
    free(x.image);
}

/* Going back runs tokens again from where states were kept, before the next pass or as
 * part of it. */
static void test_streamed(void **state)
{
    static struct fixture x;

    (void)state;
    for (int kind = 0; kind < N_HYBRIDS; kind++) {
        char path[] = "/tmp/test_hybrid.XXXXXX";

        fixture_open(&x, (enum hybrid)kind);
        struct slm *m = open_streamed(&x, path, 1);

        check_to(m, &x, 20, 7);
        check_to(m, &x, 30, 1);
        slm_truncate(m, 11);
        check_to(m, &x, 25, 3);
        slm_truncate(m, 24);
        check_to(m, &x, N_TOKENS, 1);
        slm_close(m);
        unlink(path);
        free(x.image);
    }
}

static size_t taken_pages(const struct slm *m)
{
    size_t n_pages, n_free;

    slm_pages(m, &n_pages, &n_free);
    return n_pages - n_free;
}

/* Until the places of what is streamed are full, if the reader is not very slow. */
static void let_read_ahead(const struct slm *m)
{
    struct slm_stream s = {.bytes_read = 0};
    uint64_t before;

    do {
        before = s.bytes_read;
        usleep(5000);
        assert_true(slm_stream_read(m, &s));
    } while (s.bytes_read != before || before == 0);
}

/* Sequences have no other pages than before; and where tokens that had to run again
 * could not, nothing is computed behind them. */
static void test_failures(void **state)
{
    static struct slm_profile profile;
    static struct fixture x;

    (void)state;
    fixture_open(&x, HYBRID_QWEN35);
    for (int together = 0; together < 2; together++) {
        char path[] = "/tmp/test_hybrid.XXXXXX";
        struct slm *m = open_streamed(&x, path, 2);
        const struct slm_part parts[] = {{0, x.tokens, 1, SLM_LOGITS_LAST},
                                         {1, x.tokens, 1, SLM_LOGITS_LAST}};
        struct err err = ERR_INIT;

        if (together) {
            check_to(m, &x, 20, 7);
            slm_truncate(m, 18); /* states were kept at 14 */
        }
        assert_int_equal(taken_pages(m), together);
        let_read_ahead(m);
        assert_int_equal(truncate(path, (off_t)(x.bytes / 2)), 0);
        assert_int_equal(slm_profile_start(m, &err), ST_OK);
        assert_int_equal(together ? slm_batch(m, parts, 2, &err)
                                  : slm_eval(m, x.tokens, 5, SLM_LOGITS_LAST, &err),
                         ST_IO);
        slm_profile_read(m, &profile);
        assert_true(profile.n_passes <= 1);
        assert_int_equal(slm_seq_n_past(m, 0), together ? 18 : 0);
        assert_int_equal(slm_seq_n_past(m, 1), 0);
        assert_int_equal(taken_pages(m), together);
        slm_close(m);
        unlink(path);
    }
    free(x.image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_states_return_at_once),
        cmocka_unit_test(test_again_in_one_pass),
        cmocka_unit_test(test_another_turn),
        cmocka_unit_test(test_kv_window),
        cmocka_unit_test(test_synthetic),
        cmocka_unit_test(test_token_bytes),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_streamed),
        cmocka_unit_test(test_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
