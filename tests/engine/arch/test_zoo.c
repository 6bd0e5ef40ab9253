/* SPDX-License-Identifier: MIT
 *
 * test_zoo.c - tiny models of many architectures with exact logits, in every way that a
 * model can be run
 *
 * An index lists the models, their tokens and the error that quantised activations make
 * in the reference engine. A few are in tests/data/models/zoo, one for each kind of
 * mechanism; all are in ../shared, where that exists.
 */
#include "engine/arch/arch.h"
#include "engine/engine.h"
#include "engine/gguf/census.h"
#include "tests/support/nmse.h"
#include "tests/support/test.h"

enum { N_TOKENS = 40 };

static const char shared[] = SLM_SOURCE_DIR "/../shared/golden/models/zoo/";

struct entry {
    char path[512], name[64];
    int32_t tokens[N_TOKENS];
    size_t n_vocab;
    float *exact;
    double bound;
};

/* ---- the index ------------------------------------------------------------------- */

/* The fields of a line up to the notes: file, architecture, n_tokens, n_vocab, tokens,
 * exact_logits_file, nmse_reference_engine. */
static void read_entry(struct entry *e, const char *dir, char *line, char *arch)
{
    char exact[64], *field[7] = {line};
    char path[512];
    double nmse;
    size_t bytes;

    for (int i = 1; i < 7; i++) {
        field[i] = strchr(field[i - 1], ',');
        assert_non_null(field[i]);
        *field[i]++ = '\0';
    }
    snprintf(arch, 64, "%s", field[1]);
    snprintf(e->name, sizeof e->name, "%s", field[0]);
    snprintf(e->path, sizeof e->path, "%s%s", dir, field[0]);
    assert_int_equal(atoi(field[2]), N_TOKENS);
    e->n_vocab = (size_t)atoi(field[3]);
    for (int i = 0; i < N_TOKENS; i++)
        e->tokens[i] = (int32_t)strtol(field[4], &field[4], 10);
    snprintf(exact, sizeof exact, "%s", field[5]);
    nmse = strtod(field[6], NULL);
    /* A choice of experts that is all but a draw may fall the other way. */
    e->bound = 1.2 * nmse * (strstr(e->name, "moe") ? 2 : 1);
    snprintf(path, sizeof path, "%s%s", dir, exact);
    e->exact = test_read_file(path, &bytes);
    assert_int_equal(bytes, N_TOKENS * e->n_vocab * sizeof(float));
}

typedef void check_fn(const struct entry *e);

/* Call check for all models of an index whose architecture is known. */
static int for_each(const char *dir, check_fn *check)
{
    char path[512], line[4096], arch[64];
    int n = 0;

    snprintf(path, sizeof path, "%sarchitectures.csv", dir);
    FILE *f = fopen(path, "r");

    if (!f)
        return -1;
    assert_non_null(fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        struct entry e = {.n_vocab = 0};
        const char *name = strchr(line, ',') + 1;

        if (!arch_by_name(name, strcspn(name, ",")))
            continue;
        read_entry(&e, dir, line, arch);
        check(&e);
        free(e.exact);
        n++;
    }
    fclose(f);
    return n;
}

static void check_all(check_fn *check)
{
    assert_true(for_each(TEST_DATA "models/zoo/", check) >= 5);
    if (for_each(shared, check) < 0)
        print_message("only the models of tests/data: no %sarchitectures.csv\n",
                      shared);
}

/* ---- ways to run a model --------------------------------------------------------- */

static struct slm_params params_of(const struct entry *e, int n_threads)
{
    struct slm_params p = slm_params_default();

    p.path = e->path;
    p.residency = WEIGHTS_PACKED;
    p.n_threads = n_threads;
    p.n_ctx = N_TOKENS;
    return p;
}

static struct slm *open_model(const struct slm_params *p)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (slm_open(&m, p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Logits of n tokens from `at` on must be within bound of the exact ones together. */
static void compare(const struct entry *e, const float *have, int at, int n,
                    double bound, const char *way)
{
    const double off =
        nmse(have, e->exact + (size_t)at * e->n_vocab, (size_t)n * e->n_vocab);

    if (!(off <= bound))
        fail_msg("%s, %s: NMSE %g > %g", e->name, way, off, bound);
}

/* All tokens, step at a time. */
static void run(const struct entry *e, const struct slm_params *p, size_t step,
                double bound, const char *way)
{
    struct slm *m = open_model(p);
    float *have = malloc(N_TOKENS * e->n_vocab * sizeof *have);
    struct err err = ERR_INIT;

    assert_non_null(have);
    for (size_t done = 0; done < N_TOKENS; done += step) {
        const size_t n = N_TOKENS - done < step ? N_TOKENS - done : step;

        if (slm_eval(m, e->tokens + done, n, SLM_LOGITS_ALL, &err))
            fail_msg("%s, %s: %s", e->name, way, err.msg);
        for (size_t i = 0; i < n; i++)
            memcpy(have + (done + i) * e->n_vocab, slm_logits(m, i),
                   e->n_vocab * sizeof *have);
    }
    compare(e, have, 0, N_TOKENS, bound, way);
    free(have);
    slm_close(m);
}

static void check_residencies(const struct entry *e)
{
    struct slm_params p = params_of(e, 1);

    run(e, &p, 64, e->bound, "packed");
    p.n_threads = 2;
    run(e, &p, 1, e->bound, "packed, token by token");
    p.n_threads = 3;
    p.residency = WEIGHTS_MMAP;
    run(e, &p, 7, e->bound, "mapped");
}

/* What a token reads is what the file's tensors say. */
static void check_token_bytes(const struct entry *e)
{
    const struct slm_params p = params_of(e, 1);
    struct err err = ERR_INIT;
    struct census census;
    struct slm_info info;
    struct gguf *g;

    if (gguf_open(&g, p.path, &err) || slm_plan(&info, g, &p, &err))
        fail_msg("%s", err.msg);
    census_take(&census, g);
    gguf_close(g);
    if (info.weight_token_bytes != census.token_bytes)
        fail_msg("%s: %llu bytes per token, by the tensors %llu", e->name,
                 (unsigned long long)info.weight_token_bytes,
                 (unsigned long long)census.token_bytes);
}

/* With room for half of what need not stay in memory, where anything need not. */
static void check_streamed(const struct entry *e)
{
    struct slm_params p = params_of(e, 2);
    struct slm_info info;
    struct err err = ERR_INIT;
    struct gguf *g;

    p.n_batch = 9;
    if (gguf_open(&g, p.path, &err) || slm_plan(&info, g, &p, &err))
        fail_msg("%s", err.msg);
    gguf_close(g);
    if (!info.stream_min_bytes || info.stream_min_bytes >= info.weight_bytes)
        return;
    p.residency = WEIGHTS_STREAM;
    p.memory_bytes = info.kv_bytes + info.scratch_bytes +
                     (info.stream_min_bytes + info.weight_bytes) / 2;
    run(e, &p, 9, e->bound, "streamed");
    run(e, &p, 1, e->bound, "streamed, token by token");
}

/* Rounded keys and values cost more than rounded activations. */
static void check_kv_types(const struct entry *e)
{
    struct slm_params p = params_of(e, 2);

    p.kv_type = KERN_KV_bf16;
    run(e, &p, 7, 2 * e->bound + 1e-4, "BF16 keys");
    p.kv_type = KERN_KV_q8_0;
    run(e, &p, 7, 2 * e->bound + 2e-4, "Q8_0 keys");
}

/* Two sequences with the same text, one ahead of the other, in one batch. */
static void check_sequences(const struct entry *e)
{
    struct slm_params p = params_of(e, 2);
    float *have = malloc(2 * N_TOKENS * e->n_vocab * sizeof *have);
    struct err err = ERR_INIT;

    p.n_sequences = 3;
    struct slm *m = open_model(&p);

    assert_non_null(have);
    for (int done[2] = {0, 0}; done[0] < N_TOKENS || done[1] < N_TOKENS;) {
        static const int steps[2] = {5, 3};
        struct slm_part parts[2];
        int of[2], n_parts = 0;

        for (int i = 0; i < 2; i++) {
            const int left = N_TOKENS - done[i], n = left < steps[i] ? left : steps[i];

            if (n == 0)
                continue;
            of[n_parts] = i;
            parts[n_parts++] =
                (struct slm_part){2 * i, e->tokens + done[i], n, SLM_LOGITS_ALL};
        }
        if (slm_batch(m, parts, n_parts, &err))
            fail_msg("%s, sequences: %s", e->name, err.msg);
        for (int k = 0; k < n_parts; k++)
            for (int i = 0; i < parts[k].n; i++)
                memcpy(have + (size_t)(of[k] * N_TOKENS + done[of[k]]++) * e->n_vocab,
                       slm_batch_logits(m, k, (size_t)i), e->n_vocab * sizeof *have);
    }
    compare(e, have, 0, N_TOKENS, e->bound, "first sequence");
    compare(e, have + N_TOKENS * e->n_vocab, 0, N_TOKENS, e->bound, "second sequence");
    free(have);
    slm_close(m);
}

/* Tokens that are computed, cut off and computed again. */
static void check_going_back(const struct entry *e)
{
    const struct slm_params p = params_of(e, 2);
    struct slm *m = open_model(&p);
    struct err err = ERR_INIT;

    if (slm_eval(m, e->tokens, 30, SLM_LOGITS_LAST, &err))
        fail_msg("%s", err.msg);
    slm_truncate(m, 17);
    if (slm_eval(m, e->tokens + 17, N_TOKENS - 17, SLM_LOGITS_ALL, &err))
        fail_msg("%s", err.msg);

    float *have = malloc((N_TOKENS - 17) * e->n_vocab * sizeof *have);

    assert_non_null(have);
    for (size_t i = 0; i < N_TOKENS - 17; i++)
        memcpy(have + i * e->n_vocab, slm_logits(m, i), e->n_vocab * sizeof *have);
    /* of a part of the tokens: no average of all */
    compare(e, have, 17, N_TOKENS - 17, 1.5 * e->bound, "after going back");
    free(have);
    slm_close(m);
}

/* Tokens from .. to-1 of a sequence, the logits from token `at` on to out. */
static void eval_part(struct slm *m, const struct entry *e, int seq, int from, int to,
                      int at, float *out)
{
    const struct slm_part part = {seq, e->tokens + from, to - from, SLM_LOGITS_ALL};
    struct err err = ERR_INIT;

    if (slm_batch(m, &part, 1, &err))
        fail_msg("%s, with checkpoints: %s", e->name, err.msg);
    for (int i = at; i < to; i++)
        memcpy(out + (size_t)(i - at) * e->n_vocab,
               slm_batch_logits(m, 0, (size_t)(i - from)), e->n_vocab * sizeof *out);
}

/* A second sequence continues where the first one passed, within a pass, as near to the
 * exact logits; or where a pass of it ended, and then gives the bits that the first one
 * gives behind that. */
static void check_checkpoints(const struct entry *e)
{
    enum { AT = 33 };
    const size_t n = (size_t)(N_TOKENS - AT) * e->n_vocab;
    struct slm_params p = params_of(e, 2);
    float *first = malloc(n * sizeof *first), *second = malloc(n * sizeof *second);

    p.n_sequences = 4; /* pages that are kept, too */
    p.n_checkpoints = 4;
    assert_true(first && second);
    for (int whole = 0; whole < 2; whole++) {
        struct slm *m = open_model(&p);

        if (slm_info(m)->n_checkpoints == 0) {
            slm_close(m);
            break;
        }
        slm_prefix_mark(m, 0, AT, SLM_MARK_END);
        eval_part(m, e, 0, 0, whole ? N_TOKENS : AT, whole ? AT : N_TOKENS, first);
        assert_int_equal(slm_prefix_take(m, 1, e->tokens, N_TOKENS), AT);
        eval_part(m, e, 1, AT, N_TOKENS, AT, second);
        if (whole) { /* of a part of the tokens: no average of all */
            const double off = nmse(first, e->exact + (size_t)AT * e->n_vocab, n);
            const double bound = off > e->bound ? off : e->bound;

            compare(e, second, AT, N_TOKENS - AT, 1.5 * bound, "behind a checkpoint");
        } else {
            eval_part(m, e, 0, AT, N_TOKENS, AT, first);
            assert_memory_equal(first, second, n * sizeof *first);
        }
        slm_close(m);
    }
    free(first);
    free(second);
}

/* ---- the tests ------------------------------------------------------------------- */

static void all_residencies(void **state)
{
    (void)state;
    check_all(check_residencies);
}

static void token_bytes(void **state)
{
    (void)state;
    check_all(check_token_bytes);
}

static void streamed(void **state)
{
    (void)state;
    check_all(check_streamed);
}

static void kv_types(void **state)
{
    (void)state;
    check_all(check_kv_types);
}

static void several_sequences(void **state)
{
    (void)state;
    check_all(check_sequences);
}

static void going_back(void **state)
{
    (void)state;
    check_all(check_going_back);
}

static void checkpoints(void **state)
{
    (void)state;
    check_all(check_checkpoints);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_residencies),   cmocka_unit_test(token_bytes),
        cmocka_unit_test(streamed),          cmocka_unit_test(kv_types),
        cmocka_unit_test(several_sequences), cmocka_unit_test(going_back),
        cmocka_unit_test(checkpoints),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
