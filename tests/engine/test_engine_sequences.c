/* SPDX-License-Identifier: MIT
 *
 * test_engine_sequences.c - tiny models with known logits: every one of several
 * sequences has them
 */
#include "engine/engine.h"
#include "tests/support/nmse.h"
#include "tests/support/test.h"

#define MODELS TEST_DATA "models/"

enum { N_TOKENS = 40, N_VOCAB = 320, N_SEQS = 5, FORKED = N_SEQS - 1 };

static const int32_t TOKENS[N_TOKENS] = {
    1,   71,  294, 35,  133, 63,  256, 233, 244, 197, 110, 51, 252, 17,
    202, 224, 314, 4,   231, 139, 120, 305, 55,  165, 18,  14, 16,  280,
    7,   198, 113, 219, 17,  273, 116, 227, 256, 286, 122, 179};

/* The bounds of test_engine.c. */
static const struct {
    const char *name;
    double bound;
} GOLDEN[] = {
    {"llama", 1.2 * 2.265e-4},
    {"llama-mqa", 1.2 * 2.207e-4},
    {"llama-moe", 2 * 1.2 * 2.912e-3},
    {"Q4_K_M", 1.2 * 3.020e-4},
};

static struct slm *open_model(const char *name, int n_threads)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    char path[512];

    snprintf(path, sizeof path, MODELS "%s.gguf", name);
    p.path = path;
    p.n_threads = n_threads;
    p.n_ctx = N_TOKENS;
    p.n_sequences = N_SEQS;
    if (slm_open(&m, &p, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Sequence 0 decodes token by token, the others are read in longer and longer chunks;
 * the last one begins as a copy of what 0 has at half of the text. */
static int tokens_of(int seq, int n_done)
{
    const int n = seq == FORKED ? 1 : 1 + 3 * seq;

    return n < N_TOKENS - n_done ? n : N_TOKENS - n_done;
}

/* logits [N_SEQS][N_TOKENS][N_VOCAB] */
static void eval_together(struct slm *m, float *logits)
{
    struct err err = ERR_INIT;
    bool works = true;

    while (works) {
        struct slm_part parts[N_SEQS];
        int n_parts = 0;

        if (slm_seq_n_past(m, 0) == N_TOKENS / 2 && !slm_seq_n_past(m, FORKED)) {
            slm_seq_fork(m, 0, FORKED);
            memcpy(logits + (size_t)FORKED * N_TOKENS * N_VOCAB, logits,
                   sizeof(float) * N_TOKENS / 2 * N_VOCAB);
        }
        for (int seq = 0; seq < N_SEQS; seq++) {
            const int n_past = slm_seq_n_past(m, seq), n = tokens_of(seq, n_past);

            if (n > 0 && (seq != FORKED || n_past > 0))
                parts[n_parts++] =
                    (struct slm_part){seq, TOKENS + n_past, n, SLM_LOGITS_ALL};
        }
        works = n_parts > 0;
        if (works && slm_batch(m, parts, n_parts, &err))
            fail_msg("%s", err.msg);
        for (int i = 0; i < n_parts; i++)
            for (int k = 0; k < parts[i].n; k++)
                memcpy(logits + ((size_t)parts[i].seq * N_TOKENS +
                                 (size_t)(parts[i].tokens - TOKENS + k)) *
                                    N_VOCAB,
                       slm_batch_logits(m, i, (size_t)k), sizeof(float) * N_VOCAB);
    }
}

static void golden_logits(void **state)
{
    static float logits[N_SEQS * N_TOKENS * N_VOCAB];

    (void)state;
    for (size_t g = 0; g < sizeof GOLDEN / sizeof *GOLDEN; g++) {
        char path[512];
        size_t bytes;

        snprintf(path, sizeof path, MODELS "%s.exact.f32", GOLDEN[g].name);
        float *exact = test_read_file(path, &bytes);
        assert_int_equal(bytes, sizeof logits / N_SEQS);
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            struct slm *m = open_model(GOLDEN[g].name, n_threads);

            memset(logits, 0, sizeof logits);
            eval_together(m, logits);
            for (int seq = 0; seq < N_SEQS; seq++) {
                const double e = nmse(logits + (size_t)seq * N_TOKENS * N_VOCAB, exact,
                                      N_TOKENS * N_VOCAB);

                if (!(e <= GOLDEN[g].bound))
                    fail_msg("%s, %d threads: sequence %d has NMSE %g > %g",
                             GOLDEN[g].name, n_threads, seq, e, GOLDEN[g].bound);
            }
            slm_close(m);
        }
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_logits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
