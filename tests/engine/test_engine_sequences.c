/* SPDX-License-Identifier: MIT
 *
 * test_engine_sequences.c - tiny models with known logits: every one of several
 * sequences has them
 */
#include "tests/support/golden.h"
#include "tests/support/nmse.h"

enum { N_SEQS = 5, FORKED = N_SEQS - 1 };

static struct slm *open_model(const char *name, int n_threads)
{
    struct slm_params p = slm_params_default();

    p.n_threads = n_threads;
    p.n_ctx = GOLDEN_TOKENS;
    p.n_sequences = N_SEQS;
    return golden_open(name, p);
}

/* Sequence 0 decodes token by token, the others are read in longer and longer chunks;
 * the last one begins as a copy of what 0 has at half of the text. */
static int tokens_of(int seq, int n_done)
{
    const int n = seq == FORKED ? 1 : 1 + 3 * seq;

    return n < GOLDEN_TOKENS - n_done ? n : GOLDEN_TOKENS - n_done;
}

/* logits [N_SEQS][GOLDEN_TOKENS][GOLDEN_VOCAB] */
static void eval_together(struct slm *m, float *logits)
{
    struct err err = ERR_INIT;
    bool works = true;

    while (works) {
        struct slm_part parts[N_SEQS];
        int n_parts = 0;

        if (slm_seq_n_past(m, 0) == GOLDEN_TOKENS / 2 && !slm_seq_n_past(m, FORKED)) {
            slm_seq_fork(m, 0, FORKED);
            memcpy(logits + (size_t)FORKED * GOLDEN_TOKENS * GOLDEN_VOCAB, logits,
                   sizeof(float) * GOLDEN_TOKENS / 2 * GOLDEN_VOCAB);
        }
        for (int seq = 0; seq < N_SEQS; seq++) {
            const int n_past = slm_seq_n_past(m, seq), n = tokens_of(seq, n_past);

            if (n > 0 && (seq != FORKED || n_past > 0))
                parts[n_parts++] =
                    (struct slm_part){seq, golden_tokens + n_past, n, SLM_LOGITS_ALL};
        }
        works = n_parts > 0;
        if (works && slm_batch(m, parts, n_parts, &err))
            fail_msg("%s", err.msg);
        for (int i = 0; i < n_parts; i++)
            for (int k = 0; k < parts[i].n; k++)
                memcpy(logits + ((size_t)parts[i].seq * GOLDEN_TOKENS +
                                 (size_t)(parts[i].tokens - golden_tokens + k)) *
                                    GOLDEN_VOCAB,
                       slm_batch_logits(m, i, (size_t)k), sizeof(float) * GOLDEN_VOCAB);
    }
}

static void test_golden_logits(void **state)
{
    static float logits[N_SEQS * GOLDEN_TOKENS * GOLDEN_VOCAB];

    (void)state;
    for (size_t g = 0; g < N_GOLDEN_LLAMAS; g++) {
        const struct golden *golden = &golden_llamas[g];
        float *exact = golden_logits(golden->name);

        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            struct slm *m = open_model(golden->name, n_threads);

            memset(logits, 0, sizeof logits);
            eval_together(m, logits);
            for (int seq = 0; seq < N_SEQS; seq++) {
                const double e =
                    nmse(logits + (size_t)seq * GOLDEN_TOKENS * GOLDEN_VOCAB, exact,
                         GOLDEN_TOKENS * GOLDEN_VOCAB);

                if (!(e <= golden->bound))
                    fail_msg("%s, %d threads: sequence %d has NMSE %g > %g",
                             golden->name, n_threads, seq, e, golden->bound);
            }
            slm_close(m);
        }
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_logits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
