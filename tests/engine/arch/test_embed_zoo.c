/* SPDX-License-Identifier: MIT
 *
 * test_embed_zoo.c - tiny embedding models with exact vectors, in every way that a
 * model can be run
 *
 * The index is as test_zoo.c's. A few models are in tests/data/models/zoo, all are in
 * ../shared, where that exists.
 */
#include "engine/engine.h"
#include "engine/gguf/census.h"
#include "tests/support/nmse.h"
#include "tests/support/test.h"

enum { N_TOKENS = 40, N_TEXTS = 5 };

static const char shared[] = SLM_SOURCE_DIR "/../shared/golden/models/zoo/";

struct entry {
    char path[512], name[64];
    int32_t tokens[N_TOKENS];
    size_t n_embd;
    float *exact;
    double bound;
};

/* file, architecture, n_tokens, n_embd, tokens, exact_embedding_file,
 * nmse_reference_engine. */
static void read_entry(struct entry *e, const char *dir, char *line)
{
    char exact[64], path[512], *field[7] = {line};
    size_t bytes;

    for (int i = 1; i < 7; i++) {
        field[i] = strchr(field[i - 1], ',');
        assert_non_null(field[i]);
        *field[i]++ = '\0';
    }
    snprintf(e->name, sizeof e->name, "%s", field[0]);
    snprintf(e->path, sizeof e->path, "%s%s", dir, field[0]);
    assert_int_equal(atoi(field[2]), N_TOKENS);
    e->n_embd = (size_t)atoi(field[3]);
    for (int i = 0; i < N_TOKENS; i++)
        e->tokens[i] = (int32_t)strtol(field[4], &field[4], 10);
    snprintf(exact, sizeof exact, "%s", field[5]);
    /* single vectors are few numbers */
    e->bound = 3 * strtod(field[6], NULL);
    snprintf(path, sizeof path, "%s%s", dir, exact);
    e->exact = test_read_file(path, &bytes);
    assert_int_equal(bytes, e->n_embd * sizeof(float));
}

typedef void check_fn(const struct entry *e);

static int for_each(const char *dir, check_fn *check)
{
    char path[512], line[4096];
    int n = 0;

    snprintf(path, sizeof path, "%sembeddings.csv", dir);
    FILE *f = fopen(path, "r");

    if (!f)
        return -1;
    assert_non_null(fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        struct entry e = {.n_embd = 0};

        read_entry(&e, dir, line);
        check(&e);
        free(e.exact);
        n++;
    }
    fclose(f);
    return n;
}

static void check_all(check_fn *check)
{
    assert_int_equal(for_each(TEST_DATA "models/zoo/", check), 3);
    if (for_each(shared, check) < 0)
        print_message("only the models of tests/data: no %sembeddings.csv\n", shared);
}

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

static void embed(struct slm *m, const struct slm_text *texts, int n)
{
    struct err err = ERR_INIT;

    if (slm_embed(m, texts, n, slm_info(m)->pooling, &err))
        fail_msg("%s", err.msg);
    assert_true(slm_info(m)->has_pooling);
}

static void run(const struct entry *e, const struct slm_params *p, double bound,
                const char *way)
{
    struct slm *m = open_model(p);

    assert_int_equal(slm_info(m)->n_vector, e->n_embd);
    for (int again = 0; again < 2; again++) {
        embed(m, &(struct slm_text){e->tokens, N_TOKENS}, 1);
        const double off = nmse(slm_vector(m, 0), e->exact, e->n_embd);

        if (!(off <= bound))
            fail_msg("%s, %s: NMSE %g > %g", e->name, way, off, bound);
    }
    slm_close(m);
}

static void check_residencies(const struct entry *e)
{
    struct slm_params p = params_of(e, 1);
    struct slm_info info;
    struct err err = ERR_INIT;
    struct gguf *g;

    run(e, &p, e->bound, "packed");
    p.n_threads = 3;
    p.residency = WEIGHTS_MMAP;
    run(e, &p, e->bound, "mapped");
    if (gguf_open(&g, p.path, &err) || slm_plan(&info, g, &p, &err))
        fail_msg("%s", err.msg);
    gguf_close(g);
    p.residency = WEIGHTS_STREAM;
    p.memory_bytes = info.kv_bytes + info.scratch_bytes +
                     (info.stream_min_bytes + info.weight_bytes) / 2;
    run(e, &p, e->bound, "streamed");
}

static void check_kv_types(const struct entry *e)
{
    struct slm_params p = params_of(e, 2);

    p.kv_type = KERN_KV_bf16;
    run(e, &p, e->bound + 1e-4, "BF16 keys");
    p.kv_type = KERN_KV_q8_0;
    run(e, &p, e->bound + 2e-4, "Q8_0 keys");
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
    assert_int_equal(census.is_encoder, info.is_encoder);
    if (info.weight_token_bytes != census.token_bytes)
        fail_msg("%s: %llu bytes per token, by the tensors %llu", e->name,
                 (unsigned long long)info.weight_token_bytes,
                 (unsigned long long)census.token_bytes);
}

/* A text's vector is the same whatever else is in the pass, or was in the last one. */
static void check_neighbours(const struct entry *e)
{
    static const int n[N_TEXTS] = {3, 40, 1, 17, 29};
    struct slm_params p = params_of(e, 2);
    struct slm_text texts[N_TEXTS];
    float *alone = malloc(N_TEXTS * e->n_embd * sizeof *alone);

    assert_non_null(alone);
    p.n_sequences = N_TEXTS;
    struct slm *m = open_model(&p);

    for (int i = 0; i < N_TEXTS; i++) {
        texts[i] = (struct slm_text){e->tokens + (i == 1 ? 0 : i), n[i]};
        embed(m, &texts[i], 1);
        memcpy(alone + (size_t)i * e->n_embd, slm_vector(m, 0),
               e->n_embd * sizeof *alone);
    }
    embed(m, texts, N_TEXTS);
    for (int i = 0; i < N_TEXTS; i++) {
        const double off =
            nmse(slm_vector(m, (size_t)i), alone + (size_t)i * e->n_embd, e->n_embd);

        if (!(off < 1e-4)) /* of activations that are rounded to another step */
            fail_msg("%s, text %d of several: NMSE %g", e->name, i, off);
    }
    free(alone);
    slm_close(m);
}

static void all_residencies(void **state)
{
    (void)state;
    check_all(check_residencies);
}

static void kv_types(void **state)
{
    (void)state;
    check_all(check_kv_types);
}

static void neighbours(void **state)
{
    (void)state;
    check_all(check_neighbours);
}

static void token_bytes(void **state)
{
    (void)state;
    check_all(check_token_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_residencies),
        cmocka_unit_test(kv_types),
        cmocka_unit_test(neighbours),
        cmocka_unit_test(token_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
