/* SPDX-License-Identifier: MIT
 *
 * test_embed.c - vectors of texts of any length against an encoder in double precision,
 * which knows nothing of passes, blocks and threads
 */
#include "engine/engine.h"
#include "tests/support/reference.h"
#include "tests/support/tiny_model.h"

enum {
    N_EMBD = 32,
    N_HEADS = 4,
    N_KV = 2,
    HEAD = 16,
    N_FF = 48,
    N_VOCAB = 50,
    N_CTX = 640,
    N_DENSE = 80,
    MAX_TEXTS = 8,
};

struct kind {
    struct traits t;
    int n_layers;
    bool sums, places, dense; /* norms of sums, learned positions, matrices behind */
};

static const struct kind KINDS[] = {
    {.t = {.arch = "bert", .layernorm = true, .act = R_GELU, .unrotated = -1},
     .n_layers = 2,
     .sums = true,
     .places = true},
    {.t = {.arch = "nomic-bert", .layernorm = true, .act = R_SILU},
     .n_layers = 2,
     .sums = true},
    {.t = {.arch = "gemma-embedding",
           .act = R_GELU,
           .scaled = true,
           .window = 9,
           .period = 6,
           .window_base = 10000},
     .n_layers = 7,
     .dense = true},
    /* a window that is even, and longer than a block of attention */
    {.t = {.arch = "gemma-embedding",
           .act = R_GELU,
           .scaled = true,
           .window = 530,
           .period = 6,
           .window_base = 10000},
     .n_layers = 7},
};

enum { N_KINDS = sizeof KINDS / sizeof KINDS[0] };

static const int lengths[MAX_TEXTS] = {1, 2, 15, 16, 17, 40, 300, 601};

/* ---- models ---------------------------------------------------------------------- */

static void put_norm(struct tiny *t, const struct kind *k, int layer, const char *name,
                     uint64_t n)
{
    char full[96], at[24] = "";

    if (layer >= 0)
        snprintf(at, sizeof at, "blk.%d.", layer);
    snprintf(full, sizeof full, "%s%s.weight", at, name);
    tiny_random(t, full, KERN_FMT_f32, n, 0, 0, 1.0f, 0.3f);
    snprintf(full, sizeof full, "%s%s.bias", at, name);
    if (k->t.layernorm)
        tiny_random(t, full, KERN_FMT_f32, n, 0, 0, 0.0f, 0.3f);
}

static void put_layer(struct tiny *t, const struct kind *k, int l)
{
    const float spread = 0.3f;

    if (!k->sums)
        put_norm(t, k, l, "attn_norm", N_EMBD);
    tiny_layer(t, l, "attn_q.weight", KERN_FMT_f32, N_EMBD, N_HEADS * HEAD, 0, 0,
               spread);
    tiny_layer(t, l, "attn_k.weight", KERN_FMT_f32, N_EMBD, N_KV * HEAD, 0, 0, spread);
    tiny_layer(t, l, "attn_v.weight", KERN_FMT_f32, N_EMBD, N_KV * HEAD, 0, 0, spread);
    tiny_layer(t, l, "attn_output.weight", KERN_FMT_f32, N_HEADS * HEAD, N_EMBD, 0, 0,
               spread);
    if (k->sums) {
        put_norm(t, k, l, "attn_output_norm", N_EMBD);
        put_norm(t, k, l, "layer_output_norm", N_EMBD);
    } else {
        put_norm(t, k, l, "attn_q_norm", HEAD);
        put_norm(t, k, l, "attn_k_norm", HEAD);
        put_norm(t, k, l, "post_attention_norm", N_EMBD);
        put_norm(t, k, l, "ffn_norm", N_EMBD);
        put_norm(t, k, l, "post_ffw_norm", N_EMBD);
    }
    if (!k->places)
        tiny_layer(t, l, "ffn_gate.weight", KERN_FMT_f32, N_EMBD, N_FF, 0, 0, spread);
    tiny_layer(t, l, "ffn_up.weight", KERN_FMT_f32, N_EMBD, N_FF, 0, 0, spread);
    tiny_layer(t, l, "ffn_down.weight", KERN_FMT_f32, N_FF, N_EMBD, 0, 0, spread);
}

static void put_keys(struct tiny *t, const struct kind *k)
{
    tiny_key_u32(t, ".block_count", (uint32_t)k->n_layers);
    tiny_key_u32(t, ".embedding_length", N_EMBD);
    tiny_key_u32(t, ".feed_forward_length", N_FF);
    tiny_key_u32(t, ".context_length", N_CTX);
    tiny_key_u32(t, ".attention.head_count", N_HEADS);
    tiny_key_u32(t, ".attention.head_count_kv", N_KV);
    tiny_key_u32(t, ".attention.key_length", HEAD);
    tiny_key_u32(t, ".attention.value_length", HEAD);
    tiny_key_f32(t, ".rope.freq_base", 1000);
    tiny_key_f32(t, ".rope.freq_base_swa", 10000);
    tiny_key_f32(t, ".attention.layer_norm_epsilon", 1e-5f);
    tiny_key_f32(t, ".attention.layer_norm_rms_epsilon", 1e-5f);
    tiny_key_u32(t, ".pooling_type", 1);
    if (k->t.window)
        tiny_key_u32(t, ".attention.sliding_window", (uint32_t)k->t.window);
    if (k->dense)
        tiny_key_u32(t, ".dense_2_feat_out", N_DENSE);
    if (k->dense)
        tiny_key_u32(t, ".dense_3_feat_out", N_EMBD / 2);
}

static void *make_model(const struct kind *k, size_t *bytes)
{
    struct tiny t;

    tiny_new(&t, k->t.arch);
    put_keys(&t, k);
    tiny_random(&t, "token_embd.weight", KERN_FMT_f32, N_EMBD, N_VOCAB, 0, 0, 1);
    if (k->sums) {
        tiny_random(&t, "token_types.weight", KERN_FMT_f32, N_EMBD, 2, 0, 0, 1);
        put_norm(&t, k, -1, "token_embd_norm", N_EMBD);
    } else {
        put_norm(&t, k, -1, "output_norm", N_EMBD);
    }
    if (k->places)
        tiny_random(&t, "position_embd.weight", KERN_FMT_f32, N_EMBD, N_CTX, 0, 0, 1);
    if (k->dense) {
        tiny_random(&t, "dense_2.weight", KERN_FMT_f32, N_EMBD, N_DENSE, 0, 0, 1);
        tiny_random(&t, "dense_3.weight", KERN_FMT_f32, N_DENSE, N_EMBD / 2, 0, 0, 1);
    }
    for (int l = 0; l < k->n_layers; l++)
        put_layer(&t, k, l);
    return tiny_image(&t, bytes);
}

/* ---- the encoder ----------------------------------------------------------------- */

/* What all tokens' queries see of a layer, to out [n][n_heads * dim]. */
static void see(struct reference *r, int l, const double *in, int n, double *out)
{
    const int n_q = r->n_heads * r->dim, n_kv = r->n_kv * r->dim;
    double *q = malloc((size_t)(n * n_q) * sizeof *q);
    static double s[N_CTX];

    assert_non_null(q);
    for (int p = 0; p < n; p++) {
        part_of(r, q + p * n_q, in + p * r->d, l, "attn_qkv", "attn_q", 0, n_q, r->d);
        part_of(r, r->k + p * n_kv, in + p * r->d, l, "attn_qkv", "attn_k", n_q, n_kv,
                r->d);
        part_of(r, r->v + p * n_kv, in + p * r->d, l, "attn_qkv", "attn_v", n_q + n_kv,
                n_kv, r->d);
        turn_heads(r, q + p * n_q, r->n_heads, l, "attn_q_norm.weight", p);
        turn_heads(r, r->k + p * n_kv, r->n_kv, l, "attn_k_norm.weight", p);
    }
    for (int p = 0; p < n; p++) {
        const int reach = has_window(r, l) ? r->t.window / 2 : n;
        const int first = p > reach ? p - reach : 0;
        const int end = p + reach + 1 < n ? p + reach + 1 : n;

        for (int h = 0; h < r->n_heads; h++) {
            const int at = first * n_kv + h / (r->n_heads / r->n_kv) * r->dim;
            const double *query = q + p * n_q + h * r->dim;

            attend(out + p * n_q + h * r->dim, query, query, r->k + at, r->v + at, 0, 0,
                   end - first, n_kv, r->dim, 1 / sqrt(r->dim), 0, -INFINITY, s);
        }
    }
    free(q);
}

static void encode_layer(struct reference *r, int l, double *x, int n)
{
    const int d = r->d, n_q = r->n_heads * r->dim;
    double *in = malloc((size_t)(n * d) * sizeof *in);
    double *seen = malloc((size_t)(n * n_q) * sizeof *seen);
    double y[4096];

    assert_true(in && seen);
    for (int p = 0; p < n; p++)
        norm_by_name(r, in + p * d, x + p * d, l, "attn_norm", d);
    see(r, l, in, n, seen);
    for (int p = 0; p < n; p++) {
        double *stream = x + p * d;

        matmul(y, tensor(r->g, l, "attn_output.weight"), NULL, seen + p * n_q, d, n_q);
        norm_by_name(r, y, y, l, "post_attention_norm", d);
        add_block(r, stream, y);
        norm_by_name(r, stream, stream, l, "attn_output_norm", d);
        norm_by_name(r, in, stream, l, "ffn_norm", d);
        feed_forward(r, l, "", 0, in, y);
        norm_by_name(r, y, y, l, "post_ffw_norm", d);
        add_block(r, stream, y);
        norm_by_name(r, stream, stream, l, "layer_output_norm", d);
    }
    free(seen);
    free(in);
}

/* The state of each token, [n][n_embd]. */
static double *encode(struct reference *r, const int32_t *tokens, int n)
{
    const float *embd = tensor(r->g, -1, "token_embd.weight");
    const float *places = tensor(r->g, -1, "position_embd.weight");
    const float *types = tensor(r->g, -1, "token_types.weight");
    const int d = r->d;
    double *x = malloc((size_t)(n * d) * sizeof *x);

    assert_non_null(x);
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < d; i++)
            x[p * d + i] =
                (double)embd[tokens[p] * d + i] * (r->t.scaled ? sqrt(d) : 1) +
                (places ? (double)places[p * d + i] : 0) +
                (types ? (double)types[i] : 0);
        norm_by_name(r, x + p * d, x + p * d, -1, "token_embd_norm", d);
    }
    for (int l = 0; l < r->n_layers; l++)
        encode_layer(r, l, x, n);
    for (int p = 0; p < n; p++)
        norm_by_name(r, x + p * d, x + p * d, -1, "output_norm", d);
    return x;
}

/* The vector of a text from its tokens' states; its length. */
static int pool(const struct reference *r, const double *x, int n,
                enum slm_pooling pooling, float *out)
{
    double pooled[N_EMBD] = {0}, first[N_DENSE], last[N_DENSE];
    const float *dense = tensor(r->g, -1, "dense_2.weight");
    const int at = pooling == SLM_POOLING_LAST ? n - 1 : 0;
    int n_out = N_EMBD;

    for (int i = 0; i < N_EMBD; i++)
        for (int p = 0; p < n; p++)
            pooled[i] += pooling == SLM_POOLING_MEAN ? x[p * N_EMBD + i] / n
                         : p == at                   ? x[p * N_EMBD + i]
                                                     : 0;
    memcpy(last, pooled, sizeof pooled);
    if (dense) {
        n_out = N_EMBD / 2;
        matmul(first, dense, NULL, pooled, N_DENSE, N_EMBD);
        matmul(last, tensor(r->g, -1, "dense_3.weight"), NULL, first, n_out, N_DENSE);
    }
    for (int i = 0; i < n_out; i++)
        out[i] = (float)last[i];
    return n_out;
}

/* ---- tests ----------------------------------------------------------------------- */

struct fixture {
    struct kind kind;
    void *image;
    size_t bytes;
    int32_t tokens[MAX_TEXTS][N_CTX];
    struct slm_text texts[MAX_TEXTS];
    double *states[MAX_TEXTS]; /* by the reference */
    struct reference r;
    struct gguf *g;
};

static void setup(struct fixture *x, const struct kind *kind)
{
    struct err err = ERR_INIT;

    *x = (struct fixture){.kind = *kind};
    x->image = make_model(kind, &x->bytes);
    if (gguf_parse(&x->g, x->image, x->bytes, "tiny", &err))
        fail_msg("%s", err.msg);
    x->r = reference_open(x->g, &kind->t, N_CTX);
    for (int i = 0; i < MAX_TEXTS; i++) {
        for (int p = 0; p < lengths[i]; p++)
            x->tokens[i][p] = (p * 7 + p * p / 3 + i) % N_VOCAB;
        x->texts[i] = (struct slm_text){x->tokens[i], lengths[i]};
        x->states[i] = encode(&x->r, x->tokens[i], lengths[i]);
    }
}

static void teardown(struct fixture *x)
{
    for (int i = 0; i < MAX_TEXTS; i++)
        free(x->states[i]);
    reference_close(&x->r);
    forget_tensors();
    gguf_close(x->g);
    free(x->image);
}

static struct slm *open_model(const struct fixture *x, int n_threads)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    p.image = x->image;
    p.image_bytes = x->bytes;
    p.n_threads = n_threads;
    p.n_sequences = MAX_TEXTS;
    p.n_batch = 2000;
    if (slm_open(&m, &p, &err))
        fail_msg("%s", err.msg);
    return m;
}

static void embed(struct slm *m, const struct slm_text *texts, int n,
                  enum slm_pooling pooling)
{
    struct err err = ERR_INIT;

    if (slm_embed(m, texts, n, pooling, &err))
        fail_msg("%s", err.msg);
}

/* Rounding of keys and values to half precision is all that differs. */
static void compare(const struct fixture *x, const float *have, const float *exact,
                    int n, int text, enum slm_pooling pooling)
{
    const double e = nmse(have, exact, (size_t)n);

    if (!(e < 2e-6))
        fail_msg("%s, window %d, text of %d tokens, pooling %d: NMSE %g",
                 x->kind.t.arch, x->kind.t.window, lengths[text], (int)pooling, e);
}

static void check_all_texts(const struct fixture *x, struct slm *m)
{
    float exact[N_EMBD];

    for (int pooling = SLM_POOLING_MEAN; pooling <= SLM_POOLING_LAST; pooling++) {
        embed(m, x->texts, MAX_TEXTS, (enum slm_pooling)pooling);
        for (int i = 0; i < MAX_TEXTS; i++) {
            const int n =
                pool(&x->r, x->states[i], lengths[i], (enum slm_pooling)pooling, exact);

            assert_int_equal(n, slm_info(m)->n_vector);
            compare(x, slm_vector(m, (size_t)i), exact, n, i,
                    (enum slm_pooling)pooling);
        }
    }
}

/* Every token's vector, of texts one by one. */
static void check_tokens(const struct fixture *x, struct slm *m)
{
    for (int i = 0; i < MAX_TEXTS; i++) {
        embed(m, &x->texts[i], 1, SLM_POOLING_NONE);
        for (int p = 0; p < lengths[i]; p++) {
            float exact[N_EMBD];

            for (int k = 0; k < N_EMBD; k++)
                exact[k] = (float)x->states[i][p * N_EMBD + k];
            compare(x, slm_vector(m, (size_t)p), exact, N_EMBD, i, SLM_POOLING_NONE);
        }
    }
}

static void vectors(void **state)
{
    static struct fixture x;

    (void)state;
    for (int k = 0; k < N_KINDS; k++) {
        setup(&x, &KINDS[k]);
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            struct slm *m = open_model(&x, n_threads);

            assert_true(slm_info(m)->is_encoder);
            assert_int_equal(slm_info(m)->pooling, SLM_POOLING_MEAN);
            check_all_texts(&x, m);
            if (n_threads == 2)
                check_tokens(&x, m);
            slm_close(m);
        }
        teardown(&x);
    }
}

/* A causal model makes vectors, too: the last token's, times the embeddings, is what
 * its logits are. */
static void causal(void **state)
{
    static const struct kind gemma3 = {.t = {.arch = "gemma3",
                                             .act = R_GELU,
                                             .scaled = true,
                                             .window = 9,
                                             .period = 6,
                                             .window_base = 10000},
                                       .n_layers = 7};
    static struct fixture x;
    float logits[N_VOCAB], have[N_VOCAB];
    double vector[N_EMBD], product[N_VOCAB];

    (void)state;
    setup(&x, &gemma3);
    struct slm *m = open_model(&x, 2);

    assert_false(slm_info(m)->is_encoder);
    embed(m, x.texts, MAX_TEXTS, SLM_POOLING_LAST);
    for (int i = 0; i < MAX_TEXTS; i++) {
        x.r.n_pos = 0;
        for (int p = 0; p < lengths[i]; p++)
            reference_step(&x.r, x.tokens[i][p], p + 1 < lengths[i] ? NULL : logits);
        for (int k = 0; k < N_EMBD; k++)
            vector[k] = (double)slm_vector(m, (size_t)i)[k];
        matmul(product, tensor(x.g, -1, "token_embd.weight"), NULL, vector, N_VOCAB,
               N_EMBD);
        for (int k = 0; k < N_VOCAB; k++)
            have[k] = (float)product[k];
        compare(&x, have, logits, N_VOCAB, i, SLM_POOLING_LAST);
    }
    slm_close(m);
    teardown(&x);
}

static void expect(enum status have, enum status want, struct err *err,
                   const char *says)
{
    if (have != want || !strstr(err->msg, says))
        fail_msg("status %d, '%s', and %d, '%s' is expected", (int)have, err->msg,
                 (int)want, says);
    *err = (struct err)ERR_INIT;
}

static void refusals(void **state)
{
    static struct fixture x;
    static int32_t tokens[N_CTX + 1];
    const struct slm_text longer = {tokens, N_CTX + 1}, empty = {tokens, 0};
    const struct slm_part part = {0, tokens, 2, SLM_LOGITS_LAST};
    struct err err = ERR_INIT;

    (void)state;
    setup(&x, &KINDS[0]);
    struct slm *m = open_model(&x, 1);
    struct slm_text four[4];

    expect(slm_eval(m, tokens, 2, SLM_LOGITS_LAST, &err), ST_UNSUPPORTED, &err,
           "predicts no tokens");
    expect(slm_batch(m, &part, 1, &err), ST_UNSUPPORTED, &err, "predicts no tokens");
    expect(slm_embed(m, x.texts, MAX_TEXTS + 1, SLM_POOLING_MEAN, &err), ST_USAGE, &err,
           "opened for 8");
    expect(slm_embed(m, &longer, 1, SLM_POOLING_MEAN, &err), ST_USAGE, &err, "640");
    expect(slm_embed(m, &empty, 1, SLM_POOLING_MEAN, &err), ST_USAGE, &err,
           "no tokens");
    expect(slm_embed(m, x.texts, 1, SLM_POOLING_RANK, &err), ST_USAGE, &err,
           "pooling 4");
    for (int i = 0; i < 4; i++)
        four[i] = x.texts[MAX_TEXTS - 1];
    expect(slm_embed(m, four, 4, SLM_POOLING_MEAN, &err), ST_USAGE, &err,
           "2404 tokens");
    tokens[1] = N_VOCAB;
    const struct slm_text unknown = {tokens, 2};

    expect(slm_embed(m, &unknown, 1, SLM_POOLING_MEAN, &err), ST_USAGE, &err,
           "token 50");
    check_all_texts(&x, m);
    slm_close(m);

    struct slm_params p = slm_params_default();

    p.image = x.image;
    p.image_bytes = x.bytes;
    p.kv_window = 16;
    expect(slm_open(&m, &p, &err), ST_USAGE, &err, "no KV window");
    teardown(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(causal),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
