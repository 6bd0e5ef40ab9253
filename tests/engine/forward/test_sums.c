/* SPDX-License-Identifier: MIT
 *
 * test_sums.c - int8 sums in prefill: what they change, and what they do not
 *
 * A K-quant, whose columns have one scale per 256 anyway, and a format of blocks of 32,
 * whose columns are prepared in a second layout.
 */
#include "engine/engine.h"
#include "tests/support/nmse.h"
#include "tests/support/test.h"

#define MODEL TEST_DATA "models/shakespeare3M-f16.gguf"

enum { N_TOKENS = 72, MAX_VOCAB = 65536 };

static const char *const quants[] = {"Q4_K_M", "Q4_0"};

static bool has_int8(uint32_t isa_mask)
{
    return kern_best(KERN_OP_gemm_x16_int8, KERN_FMT_q4_0, isa_mask) != NULL;
}

static struct slm_params params_of(const char *quant, enum slm_sums sums)
{
    struct slm_params p = slm_params_default();

    p.path = MODEL;
    p.quant = quant;
    p.residency = WEIGHTS_PACKED;
    p.n_ctx = 80;
    p.n_threads = 2;
    p.prefill_sums = sums;
    return p;
}

/* The last logits after n_first tokens in one pass, the others up to N_TOKENS one by
 * one. */
static size_t logits_of(const char *quant, enum slm_sums sums, size_t n_first,
                        float *logits)
{
    const struct slm_params p = params_of(quant, sums);
    int32_t tokens[N_TOKENS];
    struct err err = ERR_INIT;
    struct slm *m;

    if (slm_open(&m, &p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
    assert_true(n_vocab <= MAX_VOCAB);
    for (size_t i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)(i * 37 % n_vocab);
    if (slm_eval(m, tokens, n_first, SLM_LOGITS_LAST, &err))
        fail_msg("%s", err.msg);
    for (size_t i = n_first; i < N_TOKENS; i++)
        if (slm_eval(m, tokens + i, 1, SLM_LOGITS_LAST, &err))
            fail_msg("%s", err.msg);
    memcpy(logits, slm_logits(m, 0), n_vocab * sizeof *logits);
    slm_close(m);
    return n_vocab;
}

static void many_tokens_are_less_exact(void **state)
{
    static float exact[MAX_VOCAB], int8[MAX_VOCAB];

    (void)state;
    if (!has_int8(isa_usable()))
        skip();
    for (size_t i = 0; i < 2; i++) {
        const size_t n = logits_of(quants[i], SLM_SUMS_EXACT, N_TOKENS, exact);
        double e;

        logits_of(quants[i], SLM_SUMS_INT8, N_TOKENS, int8);
        e = nmse(int8, exact, n);
        if (!(e > 1e-9 && e < 1e-2))
            fail_msg("%s: int8 sums change the logits by %g", quants[i], e);
        logits_of(quants[i], SLM_SUMS_EXACT, SUMS_INT8_COLUMNS - 1, exact);
        logits_of(quants[i], SLM_SUMS_INT8, SUMS_INT8_COLUMNS - 1, int8);
        assert_memory_equal(int8, exact, n * sizeof *exact);
    }
}

static void both_layouts_are_counted(void **state)
{
    uint64_t bytes[2][SLM_N_SUMS];

    (void)state;
    if (!has_int8(isa_usable()))
        skip();
    for (size_t i = 0; i < 2; i++)
        for (int sums = 0; sums < SLM_N_SUMS; sums++) {
            const struct slm_params p = params_of(quants[i], (enum slm_sums)sums);
            struct err err = ERR_INIT;
            struct slm *m;

            if (slm_open(&m, &p, &err))
                fail_msg("%s", err.msg);
            bytes[i][sums] = slm_info(m)->scratch_bytes;
            slm_close(m);
        }
    /* 80 columns of 256 values and their scales, shared and of each thread */
    assert_true(bytes[1][SLM_SUMS_INT8] > bytes[1][SLM_SUMS_EXACT] + (64 << 8));
    assert_true(bytes[0][SLM_SUMS_INT8] == bytes[0][SLM_SUMS_EXACT]);
}

static void levels_without_it_are_refused(void **state)
{
    struct slm_params p = params_of("Q4_0", SLM_SUMS_INT8);
    struct err err = ERR_INIT;
    struct slm *m;

    (void)state;
    p.isa_mask &= ~(1u << KERN_ISA_avxvnni | 1u << KERN_ISA_avx512vnni);
    assert_false(has_int8(p.isa_mask));
    assert_int_equal(slm_open(&m, &p, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "VNNI"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_tokens_are_less_exact),
        cmocka_unit_test(both_layouts_are_counted),
        cmocka_unit_test(levels_without_it_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
