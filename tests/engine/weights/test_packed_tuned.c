/* SPDX-License-Identifier: MIT
 *
 * test_packed_tuned.c - packed weights however they are tuned: the same logits; what is
 * measured, and what where nothing can be
 */
#include "tests/support/nmse.h"
#include "tests/support/packed_logits.h"

#include <sys/resource.h>

#include "engine/arch/arch.h"
#include "engine/engine.h"

/* Choice i: of levels and nothing else, or of levels and all else. */
static struct slm_tuning choice_of_levels(int i)
{
    struct slm_tuning tuning = slm_tuning_default();

    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        tuning.isa_mask[fmt] = i % 4 == 0 ? 0 : (2u << i % KERN_N_ISA) - 1;
        tuning.isa_mask_prefill[fmt] =
            i % 5 == 0 ? 0 : (2u << (i + 3) % KERN_N_ISA) - 1;
    }
    return tuning;
}

static struct slm_tuning choice_of_all(int i)
{
    struct slm_tuning tuning = choice_of_levels(i);

    tuning.chunks_decode = 1 + 7 * i;
    tuning.chunks_prefill = i == 3 ? TUNING_MAX_CHUNKS : 1 + i;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        tuning.prefetch[fmt] = (struct kern_prefetch){
            i % 3 == 0 ? 0 : 64u << i, (enum kern_prefetch_hint)(i % KERN_N_PREFETCH),
            i % 4 == 0 ? 0 : 1u << i % 3};
    return tuning;
}

static float *logits_tuned(struct slm *m, int n_threads, int n_prefill,
                           const struct slm_tuning *tuning)
{
    struct err err = ERR_INIT;

    if (slm_tune(m, n_threads, n_prefill, tuning, &err))
        fail_msg("%s", err.msg);
    slm_truncate(m, 0);
    return logits_of(m);
}

/* Whatever is tuned, the model says what it says at the same levels untuned. Levels
 * add up in different orders, which turns the rounding of single activations: how far
 * that may go is held to the exact logits, in test_engine. */
static void same_logits_however_tuned(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct slm_tuning tuning = slm_tuning_default();
    struct err err = ERR_INIT;
    struct slm *m;
    size_t n;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    m = open_model(path, WEIGHTS_PACKED, 3, isa_usable());
    n = N_TOKENS * (size_t)slm_info(m)->n_vocab;
    for (int i = 0; i < 12; i++) {
        const struct slm_tuning levels = choice_of_levels(i), all = choice_of_all(i);
        float *want = logits_tuned(m, 3, 3, &levels), *have;

        have = logits_tuned(m, 1 + i % 3, (i + 1) % 4, &all);
        if (!(nmse(have, want, n) <= 1e-5))
            fail_msg("choice %d: NMSE %g", i, nmse(have, want, n));
        free(have);
        free(want);
    }

    tuning.chunks_decode = 0;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    err_clear(&err);
    tuning = slm_tuning_default();
    tuning.prefetch[KERN_FMT_q4_K].distance = TUNING_MAX_DISTANCE + 1;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "q4_K"));
    err_clear(&err);
    tuning = slm_tuning_default();
    tuning.prefetch[KERN_FMT_q6_K].hint = KERN_N_PREFETCH;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "q6_K"));
    err_clear(&err);
    tuning = slm_tuning_default();
    tuning.prefetch[KERN_FMT_q4_0].n_panels = KERN_MAX_INTERLEAVED + 1;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "q4_0"));
    err_clear(&err);
    tuning = slm_tuning_default();
    assert_int_equal(slm_tune(m, 4, 0, &tuning, &err), ST_USAGE);
    err_clear(&err);
    tuning.n_batch = slm_info(m)->n_batch + 1;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    slm_close(m);
    unlink(path);
}

/* Measuring leaves the sequence, its logits and all other choices alone. To the test's
 * cache of one byte every model is cold. */
static void same_logits_after_measuring(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct slm_tuning before = slm_tuning_default(), after;
    struct err err = ERR_INIT;
    const int32_t token = 5;
    int n_measured = 0;
    struct slm *m;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    m = open_model(path, WEIGHTS_PACKED, 3, isa_usable());
    before.chunks_decode = 3;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) /* none of the candidates */
        before.prefetch[fmt] = (struct kern_prefetch){192, KERN_PREFETCH_T1, 1};
    for (int threads = 1; threads <= 3; threads++) {
        const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
        float *want, *have, *last = calloc(n_vocab, sizeof *last);

        assert_int_equal(slm_tune(m, threads, 0, &before, &err), ST_OK);
        slm_truncate(m, 0);
        want = logits_of(m);
        slm_truncate(m, N_TOKENS - 1);
        assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_OK);
        memcpy(last, slm_logits(m, 0), n_vocab * sizeof *last);
        assert_int_equal(slm_measure_prefetch(m, 0.05, 1, &err), ST_OK);
        assert_memory_equal(slm_logits(m, 0), last, n_vocab * sizeof *last);
        slm_truncate(m, N_TOKENS - 1);
        assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_OK);
        assert_memory_equal(slm_logits(m, 0), last, n_vocab * sizeof *last);
        slm_truncate(m, 0);
        have = logits_of(m);
        assert_memory_equal(have, want, N_TOKENS * n_vocab * sizeof *have);
        slm_get_tuning(m, &after);
        assert_int_equal(after.chunks_decode, 3);
        for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
            n_measured += slm_prefetches(m, (enum kern_format)fmt);
            if (!slm_prefetches(m, (enum kern_format)fmt))
                assert_int_equal(after.prefetch[fmt].distance, 192);
        }
        free(want);
        free(have);
        free(last);
    }
    assert_int_equal(n_measured > 0,
                     kern_best(KERN_OP_pack, KERN_FMT_q4_K, isa_usable()) != NULL);
    /* What caches hold stays as it is. */
    assert_int_equal(slm_tune(m, 1, 0, &before, &err), ST_OK);
    assert_int_equal(slm_measure_prefetch(m, 0.05, UINT64_MAX, &err), ST_OK);
    slm_get_tuning(m, &after);
    assert_memory_equal(after.prefetch, before.prefetch, sizeof after.prefetch);
    slm_close(m);
    unlink(path);
}

/* Rows in file order have no prefetch to measure; packed ones have to be there. */
static void nothing_to_measure(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    m = open_model(path, WEIGHTS_MMAP, 2, isa_usable());
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        assert_false(slm_prefetches(m, (enum kern_format)fmt));
    assert_int_equal(slm_measure_prefetch(m, 0.05, 1, &err), ST_OK);
    slm_close(m);
    p.path = path;
    p.residency = WEIGHTS_PACKED;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    if (!weights_ready(slm_weights(m)))
        assert_int_equal(slm_measure_prefetch(m, 0.05, 1, &err), ST_USAGE);
    slm_close(m);
    unlink(path);
}

/* Packed where weights, cache and scratch memory fit, to the byte. */
static void automatic(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m;
    uint64_t all;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    p.path = path;
    p.residency = WEIGHTS_AUTO;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    assert_int_equal(slm_info(m)->residency, WEIGHTS_PACKED);
    all =
        slm_info(m)->weight_bytes + slm_info(m)->kv_bytes + slm_info(m)->scratch_bytes;
    slm_close(m);
    for (int i = 0; i < 2; i++) {
        p.memory_bytes = all - (uint64_t)i;
        assert_int_equal(slm_open(&m, &p, &err), ST_OK);
        assert_int_equal(slm_info(m)->residency, i ? WEIGHTS_STREAM : WEIGHTS_PACKED);
        slm_close(m);
    }
    unlink(path);
}

/* No address space for a second mapping of the size. */
static void no_memory(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    const struct weights_params how = {.residency = WEIGHTS_PACKED,
                                       .isa_mask = isa_usable()};
    struct rlimit before, none;
    struct err err = ERR_INIT;
    struct weights *w = NULL;
    enum status st;
    struct gguf *g;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_F32);
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)1 << 20;
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    st = weights_open(&w, g, &how, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(st, ST_NO_MEMORY);
    assert_null(w);
    assert_non_null(strstr(err.msg, "weights"));
    gguf_close(g);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_logits_however_tuned),
        cmocka_unit_test(same_logits_after_measuring),
        cmocka_unit_test(nothing_to_measure),
        cmocka_unit_test(automatic),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
