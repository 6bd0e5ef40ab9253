/* SPDX-License-Identifier: MIT
 *
 * test_completion_choice.c - one token from logits: each bit of a grammar's mask, ends
 * of chats, biases, penalties, log-probabilities
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/serve/scheduler/scheduler_impl.h"

enum { N = 100, WORDS = (N + 31) / 32 };

/* A completion that draws greedily, with a mask of no tokens. */
struct chooser {
    struct completion c;
    struct chat_ends ends;
    uint32_t mask[WORDS];
    float logits[N], scratch[N];
    struct completion_piece piece;
};

static void open_chooser(struct chooser *h, bool has_grammar)
{
    static int grammar; /* a state that nothing looks into */
    const struct sampler_params greedy = sampler_params_default();
    struct err err = ERR_INIT;

    memset(h, 0, sizeof *h);
    h->ends.own = -1;
    h->c.ends = &h->ends;
    h->c.mask.mask = h->mask;
    h->c.n_logprobs = -1;
    if (has_grammar)
        h->c.state = (struct grammar_state *)(void *)&grammar;
    assert_int_equal(sampler_open(&h->c.sampler, &greedy, N, &err), ST_OK);
    for (int i = 0; i < N; i++)
        h->logits[i] = (float)(i * 37 % N) / 10;
}

static void close_chooser(struct chooser *h)
{
    sampler_close(h->c.sampler);
    free(h->c.counts);
}

static void allow(struct chooser *h, int id)
{
    h->mask[id / 32] |= (uint32_t)1 << id % 32;
}

/* The token; whether the grammar allows one goes to *allowed. */
static int choose(struct chooser *h, bool *allowed)
{
    int32_t id = -1;

    *allowed = completion_choose(&h->c, h->logits, N, h->scratch, &id, &h->piece);
    assert_int_equal(h->piece.token, id);
    return id;
}

/* The one token that a mask allows is taken, however unlikely; two: the likelier. */
static void masks(void **state)
{
    bool allowed;

    (void)state;
    for (int id = 0; id < N; id++) {
        struct chooser h;

        open_chooser(&h, true);
        h.logits[id] = -50;
        allow(&h, id);
        assert_int_equal(choose(&h, &allowed), id);
        assert_true(allowed);
        h.logits[(id + 33) % N] = -49;
        allow(&h, (id + 33) % N);
        assert_int_equal(choose(&h, &allowed), (id + 33) % N);
        assert_true(allowed);
        close_chooser(&h);
    }
}

/* A mask without a token allows none, whatever is drawn. */
static void nothing_is_allowed(void **state)
{
    struct chooser h;
    bool allowed;

    (void)state;
    open_chooser(&h, true);
    choose(&h, &allowed);
    assert_false(allowed);
    close_chooser(&h);
    open_chooser(&h, false); /* without a grammar everything is */
    assert_int_equal(choose(&h, &allowed), 27);
    assert_true(allowed);
    close_chooser(&h);
}

/* A chat's ends may come where the vocabulary's own may; no other bit changes. */
static void ends_of_chats(void **state)
{
    static const int32_t ids[] = {0, 31, 32, 63, 64, 99};
    const int n = (int)(sizeof ids / sizeof *ids);

    (void)state;
    for (int own = -1; own < N; own += 11)
        for (int open = 0; open < 2; open++)
            for (int before = 0; before < 2; before++) {
                struct chooser h;
                bool allowed;

                open_chooser(&h, true);
                h.ends.own = own;
                h.ends.n = n;
                memcpy(h.ends.id, ids, sizeof ids);
                for (int id = 0; id < N; id++)
                    if (before ? id % 3 : id % 3 == 0)
                        allow(&h, id);
                if (own >= 0)
                    h.mask[own / 32] &= ~((uint32_t)1 << own % 32);
                if (own >= 0 && open)
                    allow(&h, own);
                choose(&h, &allowed);
                for (int id = 0; id < N; id++) {
                    const bool is = h.mask[id / 32] >> id % 32 & 1;
                    bool is_end = false, wanted = before ? id % 3 : id % 3 == 0;

                    for (int i = 0; i < n; i++)
                        is_end |= ids[i] == id;
                    if (id == own || is_end)
                        wanted = own >= 0 && open;
                    if (is != wanted)
                        fail_msg("own %d, open %d: token %d", own, open, id);
                }
                close_chooser(&h);
            }
}

/* Biases and penalties are added to the logits, and to nothing else. */
static void changed(void **state)
{
    struct completion_bias biases[] = {{5, 3}, {6, -2}, {5, 0.5F}};
    struct chooser h;
    struct err err = ERR_INIT;
    bool allowed;

    (void)state;
    open_chooser(&h, false);
    assert_int_equal(completion_count(&h.c, 9, &err), ST_OK);
    assert_int_equal(h.c.n_counts, 0); /* there is no penalty to count for */
    h.c.biases = biases;
    h.c.n_biases = 3;
    h.c.presence_penalty = 0.25F;
    h.c.frequency_penalty = 0.5F;
    for (int i = 0; i < 3; i++)
        assert_int_equal(completion_count(&h.c, 9, &err), ST_OK);
    assert_int_equal(completion_count(&h.c, 90, &err), ST_OK);
    assert_int_equal(h.c.n_counts, 2);
    choose(&h, &allowed);
    for (int i = 0; i < N; i++) {
        const float by = i == 5    ? 3.5F
                         : i == 6  ? -2
                         : i == 9  ? -0.25F - 3 * 0.5F
                         : i == 90 ? -0.25F - 0.5F
                                   : 0;

        assert_float_equal(h.scratch[i], h.logits[i] + by, 1e-5);
        assert_float_equal(h.logits[i], (float)(i * 37 % N) / 10, 0);
    }
    close_chooser(&h);
    for (int k = 0; k < 2;
         k++) { /* one of the penalties is enough, a negative one, too */
        open_chooser(&h, false);
        *(k ? &h.c.presence_penalty : &h.c.frequency_penalty) = -4;
        assert_int_equal(completion_count(&h.c, 3, &err), ST_OK);
        assert_int_equal(completion_count(&h.c, 3, &err), ST_OK);
        assert_int_equal(h.c.n_counts, 1);
        choose(&h, &allowed);
        assert_float_equal(h.scratch[3], h.logits[3] + (k ? 4 : 8), 1e-5);
        close_chooser(&h);
    }
}

/* They are the model's own distribution, whatever was chosen: in doubles, by sorting.
 */
static void check_logprobs(struct chooser *h, int n_top)
{
    double sum = 0;
    bool used[N] = {false}, allowed;
    int id;

    h->c.n_logprobs = n_top;
    for (int i = 0; i < N; i++)
        if (!isnan(h->logits[i]))
            sum += exp((double)h->logits[i]);
    id = choose(h, &allowed);
    assert_float_equal(h->piece.logprob, (double)h->logits[id] - log(sum), 1e-4);
    assert_int_equal(h->piece.n_top, n_top);
    for (int k = 0; k < n_top; k++) {
        int best = -1;
        double wanted;

        for (int i = 0; i < N; i++)
            if (!used[i] && !isnan(h->logits[i]) &&
                (best < 0 || h->logits[i] > h->logits[best]))
                best = i;
        used[best] = true;
        wanted = (double)h->logits[best] - log(sum);
        assert_int_equal(h->piece.top[k].token, best);
        assert_float_equal(h->piece.top[k].logprob, wanted > -9999 ? wanted : -9999,
                           1e-4);
    }
}

static void log_probabilities(void **state)
{
    struct completion_bias bias = {2, 100};
    struct chooser h;

    (void)state;
    for (int n_top = 0; n_top <= 20; n_top++) {
        open_chooser(&h, false);
        check_logprobs(&h, n_top);
        h.logits[27] = NAN;                          /* what was the likeliest */
        h.logits[4] = h.logits[5] = h.logits[6] = 8; /* equal ones: the lowest ids */
        h.logits[40] = -INFINITY;
        check_logprobs(&h, n_top);
        h.c.biases = &bias;
        h.c.n_biases = 1;
        check_logprobs(&h, n_top);
        assert_int_equal(h.piece.token, 2);
        close_chooser(&h);
    }
}

/* What the model rules out has a number, too; so has what only it allows. */
static void no_infinities(void **state)
{
    struct completion_bias bias = {2, 100};
    struct chooser h;
    bool allowed;

    (void)state;
    open_chooser(&h, false);
    for (int i = 0; i < N; i++)
        h.logits[i] = i == 8 ? 0 : -20000;
    h.c.n_logprobs = 2;
    assert_int_equal(choose(&h, &allowed), 8);
    assert_float_equal(h.piece.logprob, 0, 1e-9);
    assert_float_equal(h.piece.top[1].logprob, -9999, 0);
    h.c.biases = &bias;
    h.c.n_biases = 1;
    bias.bias = 30000;
    assert_int_equal(choose(&h, &allowed), 2);
    assert_float_equal(h.piece.logprob, -9999, 0);
    close_chooser(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(masks),
                                       cmocka_unit_test(nothing_is_allowed),
                                       cmocka_unit_test(ends_of_chats),
                                       cmocka_unit_test(changed),
                                       cmocka_unit_test(log_probabilities),
                                       cmocka_unit_test(no_infinities)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
