/* SPDX-License-Identifier: MIT
 *
 * test_speculate.c - the text with drafts is the text without: looked up, drafted by
 * the same model and by another one, greedy and drawn
 */
#include <math.h>

#include "engine/speculate/speculate.h"
#include "tests/support/tokenizer_check.h"

#define STORIES     TEST_DATA "models/stories260K-f32.gguf"
#define SHAKESPEARE TEST_DATA "models/shakespeare3M-f16.gguf"

enum { N_TEXT = 120, N_CTX = 256 };

static struct slm *open_windowed(const char *path, int n_ctx, int kv_window)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    p.path = path;
    p.n_ctx = n_ctx;
    p.kv_window = kv_window;
    p.n_logits = SPECULATE_MAX + 1;
    if (slm_open(&m, &p, &err))
        fail_msg("%s", err.msg);
    return m;
}

static struct slm *open_model(const char *path, int n_ctx)
{
    return open_windowed(path, n_ctx, 0);
}

struct fixture {
    struct slm *m;
    struct tokenizer *tok;
    int32_t *prompt;
    size_t n_prompt;
};

static void open_fixture(struct fixture *b, const char *text)
{
    struct err err = ERR_INIT;

    b->m = open_model(SHAKESPEARE, N_CTX);
    b->tok = open_file(SHAKESPEARE);
    assert_int_equal(tokenizer_encode(b->tok, text, strlen(text), true, false,
                                      &b->prompt, &b->n_prompt, &err),
                     ST_OK);
}

static void close_fixture(struct fixture *b)
{
    free(b->prompt);
    tokenizer_close(b->tok);
    slm_close(b->m);
}

/* The sampler behind the prompt, and the first token it draws. */
static struct sampler *begin(struct fixture *b, const struct sampler_params *sampling,
                             int32_t *first)
{
    struct err err = ERR_INIT;
    struct sampler *s;

    assert_int_equal(sampler_open(&s, sampling, tokenizer_n_vocab(b->tok), &err),
                     ST_OK);
    slm_truncate(b->m, 0);
    assert_int_equal(slm_eval(b->m, b->prompt, b->n_prompt, SLM_LOGITS_LAST, &err),
                     ST_OK);
    for (size_t i = 0; i < b->n_prompt; i++)
        sampler_accept(s, b->prompt[i]);
    *first = sampler_next(s, slm_logits(b->m, 0));
    sampler_accept(s, *first);
    return s;
}

static void decode_plainly(struct fixture *b, const struct sampler_params *sampling,
                           int32_t *text, int n)
{
    struct err err = ERR_INIT;
    struct sampler *s = begin(b, sampling, text);

    for (int i = 1; i < n; i++) {
        assert_int_equal(slm_eval(b->m, &text[i - 1], 1, SLM_LOGITS_LAST, &err), ST_OK);
        text[i] = sampler_next(s, slm_logits(b->m, 0));
        sampler_accept(s, text[i]);
    }
    sampler_close(s);
}

static struct speculate_stats decode_speculating(struct fixture *b,
                                                 const struct sampler_params *sampling,
                                                 struct speculate_params how,
                                                 int32_t *text, int n)
{
    struct speculate_stats stats;
    struct err err = ERR_INIT;
    struct speculator *sp;
    int32_t out[SPECULATE_MAX + 1];
    struct sampler *s = begin(b, sampling, text);

    how.sampling = sampling;
    how.draft_tok = b->tok;
    assert_int_equal(speculate_open(&sp, b->m, s, b->tok, &how, &err), ST_OK);
    assert_int_equal(speculate_begin(sp, b->prompt, b->n_prompt, &err), ST_OK);
    for (int i = 1, got; i < n; i += got) {
        const int n_past = slm_n_past(b->m);

        assert_int_equal(speculate_next(sp, text[i - 1], n - i, out, &got, &err),
                         ST_OK);
        assert_true(got >= 1 && got <= n - i);
        assert_int_equal(slm_n_past(b->m), n_past + got); /* all but the last, and id */
        memcpy(text + i, out, (size_t)got * sizeof *out);
    }
    speculate_read_stats(sp, &stats);
    assert_int_equal(stats.n_tokens, n - 1);
    assert_true(stats.n_accepted <= stats.n_drafted);
    assert_int_equal(stats.n_tokens, stats.n_passes + stats.n_accepted);
    speculate_close(sp);
    sampler_close(s);
    return stats;
}

static const struct sampler_params greedy = {.top_p = 1.0f};
static const struct sampler_params drawn = {.temperature = 1.0f,
                                            .top_p = 0.9f,
                                            .top_k = 100,
                                            .repeat_penalty = 1.1f,
                                            .repeat_window = 20,
                                            .seed = 3};

static const char copied[] = "The king is dead. Long live the king! The king is dead. "
                             "Long live the";

/* Every fixture has the same model and prompt, so there is one text without drafts for
 * each sampling. */
static struct speculate_stats check_same(struct fixture *b,
                                         const struct sampler_params *sampling,
                                         struct speculate_params how)
{
    static int32_t plain_texts[2][N_TEXT];
    static bool known[2];
    const int which = sampling == &drawn;
    int32_t *plain = plain_texts[which], text[N_TEXT];
    struct speculate_stats stats;

    if (!known[which])
        decode_plainly(b, sampling, plain, N_TEXT);
    known[which] = true;
    stats = decode_speculating(b, sampling, how, text, N_TEXT);
    assert_memory_equal(plain, text, sizeof text);
    return stats;
}

static void lookup_says_the_same(void **state)
{
    struct speculate_stats stats;
    struct fixture b;

    (void)state;
    open_fixture(&b, copied);
    for (int n = 1; n <= SPECULATE_MAX; n += 2) {
        const struct speculate_params how = {.n_max = n, .always = true};

        stats = check_same(&b, &greedy, how);
        assert_true(stats.n_accepted > 0 && stats.n_accepted < stats.n_drafted);
        check_same(&b, &drawn, how);
    }
    check_same(&b, &greedy, (struct speculate_params){.n_max = 0});
    close_fixture(&b);
}

static void drafts_say_the_same(void **state)
{
    struct speculate_params how = {.always = true};
    struct speculate_stats stats;
    struct fixture b;

    (void)state;
    open_fixture(&b, copied);
    how.draft = open_model(SHAKESPEARE, N_CTX);
    for (int i = 0; i < 2; i++) { /* the same model is always right, drawing too */
        stats = check_same(&b, i ? &drawn : &greedy, how);
        assert_int_equal(stats.n_accepted, stats.n_drafted);
        assert_true(stats.n_drafted > N_TEXT / 2);
    }
    slm_close(how.draft);
    how.draft = open_model(STORIES, N_CTX);
    for (int i = 0; i < 2; i++) {
        stats = check_same(&b, i ? &drawn : &greedy, how);
        assert_true(stats.n_accepted < stats.n_drafted);
    }
    how.always = false;
    check_same(&b, &greedy, how);
    slm_close(how.draft);
    close_fixture(&b);
}

/* A text that is given comes out with drafts as without, and its repetitions are
 * drafted. */
static void recites_a_given_text(void **state)
{
    const struct speculate_params how = {.always = true};
    struct speculate_stats stats;
    struct err err = ERR_INIT;
    int32_t given[N_TEXT], out[SPECULATE_MAX + 1];
    struct speculator *sp;
    struct sampler *s;
    struct fixture b;
    int n = 0;

    (void)state;
    open_fixture(&b, copied);
    for (int i = 0; i < N_TEXT; i++) /* the prompt again and again, with a slip in it */
        given[i] = i == 50 ? 7 : b.prompt[(size_t)i % b.n_prompt];
    assert_int_equal(sampler_open(&s, &greedy, tokenizer_n_vocab(b.tok), &err), ST_OK);
    assert_int_equal(slm_eval(b.m, b.prompt, b.n_prompt, SLM_LOGITS_LAST, &err), ST_OK);
    assert_int_equal(speculate_open(&sp, b.m, s, b.tok, &how, &err), ST_OK);
    assert_int_equal(speculate_begin(sp, b.prompt, b.n_prompt, &err), ST_OK);
    sampler_recite(s, given + 1, N_TEXT - 1);
    for (int got, last = given[0]; n + 1 < N_TEXT; n += got, last = given[n]) {
        assert_int_equal(speculate_next(sp, last, N_TEXT - 1 - n, out, &got, &err),
                         ST_OK);
        assert_memory_equal(out, given + 1 + n, (size_t)got * sizeof *out);
    }
    speculate_read_stats(sp, &stats);
    assert_int_equal(stats.n_tokens, N_TEXT - 1);
    assert_true(stats.n_accepted > 2 * N_TEXT / 3);
    speculate_close(sp);
    sampler_close(s);
    close_fixture(&b);
}

/* Over seeds, the second token of a text, for which there was a draft, comes as often
 * as the model says: chi-square against the probabilities themselves, of the five
 * tokens that top_k leaves. */
static void draws_as_probable(void **state)
{
    enum { K = 5 };
    /* Only the unhurried build says how probable; the way there is the same. */
    const int n_seeds = test_thin() > 1 ? 100 : 600;
    struct speculate_params how = {.always = true};
    struct sampler_params sampling = {.temperature = 1.0f, .top_p = 1.0f, .top_k = K};
    double p[K], sum = 0, chi2 = 0;
    int32_t id[K], text[3];
    int seen[K] = {0}, n_seen = 0;
    struct err err = ERR_INIT;
    struct fixture b;

    (void)state;
    open_fixture(&b, copied);
    how.draft = open_model(STORIES, N_CTX);
    /* The likeliest first token, and what may follow it. */
    decode_plainly(&b, &greedy, text, 1);
    const int32_t first = text[0];

    assert_int_equal(slm_eval(b.m, &first, 1, SLM_LOGITS_LAST, &err), ST_OK);
    for (int k = 0; k < K; k++) {
        const float *logits = slm_logits(b.m, 0);
        int32_t best = -1;

        for (int32_t i = 0; i < tokenizer_n_vocab(b.tok); i++) {
            bool taken = false;

            for (int j = 0; j < k; j++)
                taken = taken || id[j] == i;
            if (!taken && (best < 0 || logits[i] > logits[best]))
                best = i;
        }
        id[k] = best;
        sum += p[k] = exp((double)logits[best] - (double)logits[id[0]]);
    }
    for (int seed = 0; seed < n_seeds; seed++) {
        sampling.seed = (uint64_t)seed * 7919;
        decode_speculating(&b, &sampling, how, text, 3);
        for (int k = 0; text[0] == first && k < K; k++)
            seen[k] += text[1] == id[k];
        n_seen += text[0] == first;
    }
    assert_true(n_seen > n_seeds / 6);
    for (int k = 0; k < K; k++) {
        const double expect = n_seen * p[k] / sum;

        chi2 += (seen[k] - expect) * (seen[k] - expect) / expect;
    }
    assert_true(chi2 < 18.5); /* 99.9 % of 4 degrees of freedom */
    slm_close(how.draft);
    close_fixture(&b);
}

/* A text without end: with a window of the KV cache it goes on far beyond a context,
 * whose tokens are all that drafts are made from. */
static void goes_on_without_end(void **state)
{
    enum { N = 250, CTX = 40, WINDOW = 30 };
    struct speculate_params how = {.always = true};
    int32_t plain[N], text[N];
    struct speculate_stats stats;
    struct speculator *sp = NULL;
    struct err err = ERR_INIT;
    struct sampler *s;
    struct fixture b;

    (void)state;
    open_fixture(&b, copied);
    slm_close(b.m);
    b.m = open_windowed(SHAKESPEARE, CTX, WINDOW);
    decode_plainly(&b, &greedy, plain, N);
    decode_speculating(&b, &greedy, how, text, N);
    assert_memory_equal(plain, text, sizeof text);
    for (int i = 0; i < 2; i++) { /* the same model is always right */
        how.draft = open_windowed(i ? STORIES : SHAKESPEARE, CTX, WINDOW);
        stats = decode_speculating(&b, &greedy, how, text, N);
        assert_memory_equal(plain, text, sizeof text);
        assert_true(stats.n_drafted > N / 2);
        assert_true(i || stats.n_accepted > stats.n_drafted * 9 / 10);
        slm_close(how.draft);
    }

    how.draft = open_model(STORIES, N_CTX);
    how.draft_tok = b.tok;
    assert_int_equal(sampler_open(&s, &greedy, tokenizer_n_vocab(b.tok), &err), ST_OK);
    assert_int_equal(speculate_open(&sp, b.m, s, b.tok, &how, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "has no end"));
    sampler_close(s);
    slm_close(how.draft);
    close_fixture(&b);
}

static void refuses_other_vocabularies(void **state)
{
    struct slm *other = open_model(TEST_DATA "models/llama.gguf", 64);
    struct speculate_params how = {.draft = other, .sampling = &greedy};
    struct speculator *sp = NULL;
    struct err err = ERR_INIT;
    struct sampler *s;
    struct fixture b;

    (void)state;
    open_fixture(&b, copied);
    how.draft_tok = b.tok;
    assert_int_equal(sampler_open(&s, &greedy, tokenizer_n_vocab(b.tok), &err), ST_OK);
    assert_int_equal(speculate_open(&sp, b.m, s, b.tok, &how, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "another vocabulary"));
    slm_close(other);
    other = how.draft = open_model(STORIES, 64); /* shorter than the model's context */
    err_clear(&err);
    assert_int_equal(speculate_open(&sp, b.m, s, b.tok, &how, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "64 positions"));
    how = (struct speculate_params){.n_max = SPECULATE_MAX + 1};
    err_clear(&err);
    assert_int_equal(speculate_open(&sp, b.m, s, b.tok, &how, &err), ST_USAGE);
    assert_null(sp);
    sampler_close(s);
    slm_close(other);
    close_fixture(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookup_says_the_same),
        cmocka_unit_test(drafts_say_the_same),
        cmocka_unit_test(recites_a_given_text),
        cmocka_unit_test(draws_as_probable),
        cmocka_unit_test(goes_on_without_end),
        cmocka_unit_test(refuses_other_vocabularies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
