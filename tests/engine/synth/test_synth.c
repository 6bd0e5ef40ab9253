/* SPDX-License-Identifier: MIT
 *
 * test_synth.c - synthetic models: whole GGUF files, right types, equal bytes
 */
#include "tests/support/synth_image.h"

#include <fcntl.h>
#include <math.h>

#include "engine/engine.h"
#include "engine/gguf/gguf.h"
#include "engine/synth/synth_parts.h"

static uint64_t hash(const uint8_t *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* ---- structure ------------------------------------------------------------------- */

static void every_mix_is_a_whole_gguf_file(void **state)
{
    (void)state;
    for (int mix = 0; mix < QUANTMIX_N; mix += (int)test_thin()) {
        struct synth_image m;
        uint64_t ftype = 99, params = 0;

        m = synth_image_make(&tiny, (enum quantmix)mix, 1);
        assert_int_equal(gguf_version(m.g), 3);
        assert_int_equal(gguf_n_tensors(m.g), 4 * 9 + 3);
        assert_true(gguf_get_u64(m.g, "general.file_type", &ftype));
        assert_int_equal(ftype, quantmix_file_type((enum quantmix)mix));
        for (size_t i = 0; i < gguf_n_tensors(m.g); i++) {
            const struct gguf_tensor *t = gguf_tensor_at(m.g, i);

            assert_int_equal(t->offset % GGUF_PUT_ALIGNMENT, 0);
            params += t->n_elems;
        }
        assert_int_equal(params, synth_plan_params(m.plan));
        synth_image_drop(&m);
    }
}

/* Without a file, and of shapes whose mixes put tensors into other formats. */
static void sizes_are_those_of_the_plans(void **state)
{
    struct synth_shape shapes[] = {tiny, tiny, tiny};

    (void)state;
    shapes[1].n_embd = 160;
    shapes[1].tied_output = true;
    snprintf(shapes[2].arch, sizeof shapes[2].arch, "qwen3moe");
    shapes[2].n_experts = 8;
    shapes[2].n_experts_used = 2;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        uint64_t bytes[QUANTMIX_N] = {0}, n_params = 0;
        struct err err = ERR_INIT;

        if (synth_file_sizes(&shapes[i], bytes, &n_params, &err))
            fail_msg("%s", err.msg);
        for (int mix = 0; mix < QUANTMIX_N; mix++) {
            struct synth_plan *plan;

            if (synth_plan_make(&plan, &shapes[i], (enum quantmix)mix, 7, &err))
                fail_msg("%s", err.msg);
            assert_int_equal(bytes[mix], synth_plan_bytes(plan));
            assert_int_equal(n_params, synth_plan_params(plan));
            synth_plan_free(plan);
        }
        shapes[i].n_heads = 3;
        assert_int_equal(synth_file_sizes(&shapes[i], bytes, &n_params, &err),
                         ST_USAGE);
    }
}

static void assert_tensor(const struct synth_image *m, const char *name,
                          enum kern_format fmt, uint64_t ne0, uint64_t ne1)
{
    const struct gguf_tensor *t = gguf_tensor_find(m->g, name);

    assert_non_null(t);
    assert_int_equal(t->fmt, fmt);
    assert_int_equal(t->ne[0], ne0);
    assert_int_equal(t->ne[1], ne1);
}

static void tensors_have_the_shapes_and_types_of_the_mix(void **state)
{
    struct synth_image m;

    (void)state;
    m = synth_image_make(&tiny, QUANTMIX_Q4_K_M, 1);
    assert_tensor(&m, "token_embd.weight", KERN_FMT_q4_K, 256, 512);
    assert_tensor(&m, "output.weight", KERN_FMT_q6_K, 256, 512);
    assert_tensor(&m, "output_norm.weight", KERN_FMT_f32, 256, 1);
    assert_tensor(&m, "blk.0.attn_norm.weight", KERN_FMT_f32, 256, 1);
    assert_tensor(&m, "blk.0.attn_q.weight", KERN_FMT_q4_K, 256, 256);
    assert_tensor(&m, "blk.0.attn_k.weight", KERN_FMT_q4_K, 256, 128);
    assert_tensor(&m, "blk.0.attn_v.weight", KERN_FMT_q4_K, 256, 128);
    assert_tensor(&m, "blk.2.attn_v.weight", KERN_FMT_q6_K, 256, 128);
    assert_tensor(&m, "blk.2.attn_output.weight", KERN_FMT_q4_K, 256, 256);
    assert_tensor(&m, "blk.2.ffn_norm.weight", KERN_FMT_f32, 256, 1);
    assert_tensor(&m, "blk.2.ffn_gate.weight", KERN_FMT_q4_K, 256, 512);
    assert_tensor(&m, "blk.2.ffn_up.weight", KERN_FMT_q4_K, 256, 512);
    assert_tensor(&m, "blk.2.ffn_down.weight", KERN_FMT_q6_K, 512, 256);
    synth_image_drop(&m);
}

static void assert_u64(const struct synth_image *m, const char *key, uint64_t want)
{
    uint64_t v = ~want;

    assert_true(gguf_get_u64(m->g, key, &v));
    assert_int_equal(v, want);
}

static void metadata_tells_the_shape(void **state)
{
    struct gguf_str s;
    struct synth_image m;
    double d = 0;

    (void)state;
    m = synth_image_make(&tiny, QUANTMIX_Q8_0, 77);
    assert_true(gguf_get_str(m.g, "general.architecture", &s));
    assert_int_equal(s.len, 5);
    assert_memory_equal(s.data, "llama", 5);
    assert_true(gguf_get_str(m.g, "general.name", &s));
    assert_memory_equal(s.data, "tiny", 4);
    assert_u64(&m, "slmbench.seed", 77);
    assert_u64(&m, "llama.block_count", 4);
    assert_u64(&m, "llama.context_length", 1024);
    assert_u64(&m, "llama.embedding_length", 256);
    assert_u64(&m, "llama.feed_forward_length", 512);
    assert_u64(&m, "llama.attention.head_count", 4);
    assert_u64(&m, "llama.attention.head_count_kv", 2);
    assert_u64(&m, "llama.rope.dimension_count", 64);
    assert_u64(&m, "llama.vocab_size", 512);
    assert_true(gguf_get_f64(m.g, "llama.rope.freq_base", &d));
    assert_true(d == 10000);
    assert_true(gguf_get_f64(m.g, "llama.attention.layer_norm_rms_epsilon", &d));
    assert_true((float)d == 1e-5F);
    synth_image_drop(&m);
}

static void tied_output_and_rope_freqs(void **state)
{
    struct synth_shape s = tiny;
    struct synth_image m;
    float freqs[32];

    (void)state;
    s.tied_output = 1;
    s.rope_freqs = 1;
    s.rope_base = 500000;
    m = synth_image_make(&s, QUANTMIX_Q4_K_M, 1);
    assert_null(gguf_tensor_find(m.g, "output.weight"));
    assert_tensor(&m, "token_embd.weight", KERN_FMT_q6_K, 256, 512);
    assert_tensor(&m, "rope_freqs.weight", KERN_FMT_f32, 32, 1);
    memcpy(freqs, gguf_tensor_data(m.g, gguf_tensor_find(m.g, "rope_freqs.weight")),
           sizeof freqs);
    assert_true(freqs[0] == 1 && freqs[31] == 8);
    for (int i = 1; i < 32; i++)
        assert_true(freqs[i] >= freqs[i - 1]);
    synth_image_drop(&m);
}

/* Rows that neither 256 nor 32 divides, and tensors that end inside a unit. */
static void odd_sizes_fall_back(void **state)
{
    struct synth_shape s = tiny;
    struct synth_image m;

    (void)state;
    s.n_embd = 96;
    s.n_ff = 200;
    s.n_heads = s.n_kv_heads = 3;
    s.head_dim = 34;
    s.n_vocab = 301;
    m = synth_image_make(&s, QUANTMIX_Q4_K_M, 1);
    assert_tensor(&m, "token_embd.weight", KERN_FMT_q5_0, 96, 301);
    assert_tensor(&m, "blk.1.attn_output.weight", KERN_FMT_f16, 102, 96);
    assert_tensor(&m, "blk.1.ffn_down.weight", KERN_FMT_f16, 200, 96);
    synth_image_drop(&m);
    m = synth_image_make(&s, QUANTMIX_BF16, 1);
    synth_image_drop(&m);
}

/* ---- the weights ----------------------------------------------------------------- */

static void assert_spread(const struct synth_image *m, const char *name, double mean,
                          double sigma)
{
    const struct gguf_tensor *t = gguf_tensor_find(m->g, name);
    const struct kern_row *row =
        kern_best(KERN_OP_dequantize, (int)t->fmt, 1u << KERN_ISA_scalar);
    float *w = malloc(t->n_elems * sizeof *w);
    double sum = 0, squares = 0;

    assert_non_null(w);
    row->fn.dequantize(gguf_tensor_data(m->g, t), w, t->n_elems);
    for (uint64_t i = 0; i < t->n_elems; i++) {
        assert_true(isfinite(w[i]));
        sum += (double)w[i];
        squares += ((double)w[i] - mean) * ((double)w[i] - mean);
    }
    const double n = (double)t->n_elems;
    assert_true(fabs(sum / n - mean) < 6 * sigma / sqrt(n) + 0.02 * sigma);
    assert_true(fabs(sqrt(squares / n) - sigma) < 0.2 * sigma);
    free(w);
}

static void weights_spread_as_planned(void **state)
{
    static const enum quantmix mixes[] = {QUANTMIX_F32,    QUANTMIX_BF16,
                                          QUANTMIX_Q4_0,   QUANTMIX_Q4_K_M,
                                          QUANTMIX_Q5_K_M, QUANTMIX_Q6_K};

    (void)state;
    for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++) {
        struct synth_image m;

        m = synth_image_make(&tiny, mixes[i], 3);
        assert_spread(&m, "token_embd.weight", 0, 1);
        assert_spread(&m, "output.weight", 0, 2.0 / 16);
        assert_spread(&m, "blk.0.attn_norm.weight", 1, 0.05);
        assert_spread(&m, "blk.3.attn_v.weight", 0, 1.0 / 16);
        assert_spread(&m, "blk.3.attn_output.weight", 0, 1.0 / 16 / sqrt(8));
        assert_spread(&m, "blk.1.ffn_down.weight", 0, 1.68 / sqrt(512 * 8));
        synth_image_drop(&m);
    }
}

/* The constant pins generator, header and layout; it changes only when the
 * files are meant to change. F32, so that no quantiser is in it. */
static void equal_seeds_give_equal_bytes(void **state)
{
    struct synth_image a, b, c;

    (void)state;
    a = synth_image_make(&tiny, QUANTMIX_F32, 1);
    assert_int_equal(hash(a.data, a.bytes), 0xa91522ef6e123u);
    synth_image_drop(&a);
    a = synth_image_make(&tiny, QUANTMIX_Q4_K_M, 1);
    b = synth_image_make(&tiny, QUANTMIX_Q4_K_M, 1);
    c = synth_image_make(&tiny, QUANTMIX_Q4_K_M, 2);
    assert_int_equal(a.bytes, b.bytes);
    assert_memory_equal(a.data, b.data, a.bytes);
    assert_int_equal(a.bytes, c.bytes);
    assert_memory_not_equal(gguf_tensor_data(a.g, gguf_tensor_at(a.g, 5)),
                            gguf_tensor_data(c.g, gguf_tensor_at(c.g, 5)), 4096);
    synth_image_drop(&a);
    synth_image_drop(&b);
    synth_image_drop(&c);
}

static void pieces_of_any_size_give_the_same_image(void **state)
{
    static const size_t steps[] = {1, 7, 31, 4096, 100003};
    struct err err = ERR_INIT;
    struct synth_image m;
    uint8_t buf[100003];

    (void)state;
    m = synth_image_make(&tiny, QUANTMIX_Q4_K_S, 1);
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        struct synth_stream *s;

        assert_int_equal(synth_stream_open(&s, m.plan, &err), ST_OK);
        for (size_t at = 0; at < m.bytes;) {
            const size_t n = steps[k] < m.bytes - at ? steps[k] : m.bytes - at;

            synth_stream_read(s, buf, n);
            assert_memory_equal(buf, m.data + at, n);
            at += n;
        }
        synth_stream_close(s);
    }
    synth_image_drop(&m);
}

/* ---- the vocabulary -------------------------------------------------------------- */

static int compare_str(const void *a, const void *b)
{
    const struct gguf_str *x = a, *y = b;
    const size_t n = x->len < y->len ? x->len : y->len;
    const int c = memcmp(x->data, y->data, n);

    return c ? c : (x->len > y->len) - (x->len < y->len);
}

static void check_vocabulary(uint32_t n_vocab)
{
    struct synth_shape s = tiny;
    struct synth_image m;
    int64_t type;

    s.n_vocab = n_vocab;
    s.n_layers = 1;
    s.n_embd = 32;
    m = synth_image_make(&s, QUANTMIX_Q8_0, 1);
    const struct gguf_kv *tokens = gguf_kv_find(m.g, "tokenizer.ggml.tokens");
    const struct gguf_kv *scores = gguf_kv_find(m.g, "tokenizer.ggml.scores");
    const struct gguf_kv *types = gguf_kv_find(m.g, "tokenizer.ggml.token_type");
    struct gguf_str *all = calloc(n_vocab, sizeof *all);

    assert_non_null(all);
    assert_int_equal(tokens->n, n_vocab);
    assert_int_equal(scores->n, n_vocab);
    assert_int_equal(types->n, n_vocab);
    for (uint32_t i = 0; i < n_vocab; i++) {
        assert_true(gguf_elem_str(m.g, tokens, i, &all[i]));
        assert_true(gguf_elem_i64(types, i, &type));
        assert_int_equal(type, i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1);
    }
    assert_memory_equal(all[3 + 0x41].data, "<0x41>", 6);
    assert_memory_equal(all[259].data, "\xe2\x96\x81", 3);
    assert_memory_equal(all[260].data, "!", 1);
    qsort(all, n_vocab, sizeof *all, compare_str);
    for (uint32_t i = 1; i < n_vocab; i++)
        assert_true(compare_str(&all[i - 1], &all[i]) < 0);
    free(all);
    synth_image_drop(&m);
}

static void vocabularies_of_any_size_have_unique_pieces(void **state)
{
    (void)state;
    check_vocabulary(SYNTH_MIN_VOCAB);
    check_vocabulary(355);
    check_vocabulary(1024);
    check_vocabulary(64000);
    check_vocabulary(128256);
}

/* ---- refusals -------------------------------------------------------------------- */

/* A token reads the experts it takes, and the model runs. */
static void experts_are_matrices_one_after_another(void **state)
{
    static const char *const archs[] = {"llama", "qwen2moe", "qwen3moe"};

    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        struct synth_shape s = tiny;
        struct slm_params p = slm_params_default();
        struct err err = ERR_INIT;
        const int32_t tokens[3] = {5, 6, 7};
        struct slm *slm = NULL;
        struct synth_image m;

        strcpy(s.arch, archs[i]);
        s.n_experts = 6;
        s.n_experts_used = 2;
        s.n_ff_shared = i == 1 ? 160 : 0;
        m = synth_image_make(&s, QUANTMIX_Q8_0, 1);
        const struct gguf_tensor *t = gguf_tensor_find(m.g, "blk.0.ffn_up_exps.weight");

        assert_true(t && t->ne[0] == s.n_embd && t->ne[1] == s.n_ff && t->ne[2] == 6);
        p.image = m.data;
        p.image_bytes = m.bytes;
        if (slm_open(&slm, &p, &err) || slm_eval(slm, tokens, 3, SLM_LOGITS_LAST, &err))
            fail_msg("%s", err.msg);
        assert_true(isfinite(slm_logits(slm, 0)[0]));
        slm_close(slm);
        synth_image_drop(&m);
    }
}

static const struct synth_shape hybrid = {
    .name = "hybrid",
    .arch = "qwen35",
    .n_layers = 5,
    .n_embd = 256,
    .n_ff = 512,
    .n_heads = 4,
    .n_kv_heads = 2,
    .head_dim = 64,
    .n_rot = 16,
    .n_vocab = 512,
    .n_ctx_train = 1024,
    .rope_base = 10000,
    .norm_eps = 1e-6F,
    .full_attention_interval = 2,
    .n_delta_k_heads = 2,
    .n_delta_v_heads = 6,
    .delta_head_dim = 32,
    .n_delta_conv = 4,
};

/* Layers have the tensors of their kind, and the model runs; its states neither grow
 * nor vanish. */
static void layers_with_linear_attention(void **state)
{
    static const char *const archs[] = {"qwen35", "qwen35moe"};
    int32_t tokens[200];

    (void)state;
    for (int i = 0; i < 200; i++)
        tokens[i] = 5 + i * 7 % 500;
    for (size_t i = 0; i < 2; i++) {
        struct synth_shape s = hybrid;
        struct slm_params p = slm_params_default();
        struct err err = ERR_INIT;
        struct slm *slm = NULL;
        struct synth_image m;
        double power = 0;

        strcpy(s.arch, archs[i]);
        s.n_experts = i ? 6 : 0;
        s.n_experts_used = i ? 2 : 0;
        s.n_ff_shared = i ? 160 : 0;
        m = synth_image_make(&s, QUANTMIX_Q8_0, 1);
        assert_tensor(&m, "blk.0.attn_qkv.weight", KERN_FMT_q8_0, 256, 10 * 32);
        assert_tensor(&m, "blk.4.ssm_conv1d.weight", KERN_FMT_f32, 4, 10 * 32);
        assert_tensor(&m, "blk.2.ssm_out.weight", KERN_FMT_q8_0, 6 * 32, 256);
        assert_tensor(&m, "blk.1.attn_q.weight", KERN_FMT_q8_0, 256, 2 * 4 * 64);
        assert_null(gguf_tensor_find(m.g, "blk.1.ssm_a"));
        assert_null(gguf_tensor_find(m.g, "blk.2.attn_q.weight"));
        p.image = m.data;
        p.image_bytes = m.bytes;
        if (slm_open(&slm, &p, &err) ||
            slm_eval(slm, tokens, 200, SLM_LOGITS_LAST, &err))
            fail_msg("%s", err.msg);
        for (uint32_t v = 0; v < s.n_vocab; v++)
            power += pow((double)slm_logits(slm, 0)[v], 2) / s.n_vocab;
        assert_true(power > 1 && power < 16); /* planned: 4 */
        slm_close(slm);
        synth_image_drop(&m);
    }
}

/* Short convolutions, and Mamba-2 instead of attention and next to it: the same. */
static void layers_that_convolve(void **state)
{
    static const char *const archs[] = {"lfm2", "lfm2moe", "granitehybrid", "falcon-h1",
                                        "mamba2"};
    int32_t tokens[200];

    (void)state;
    for (int i = 0; i < 200; i++)
        tokens[i] = 5 + i * 7 % 500;
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        const bool has_states = i >= 2, lists = i < 3;
        struct synth_shape s = hybrid;
        struct slm_params p = slm_params_default();
        struct err err = ERR_INIT;
        struct slm *slm = NULL;
        struct synth_image m;
        double power = 0;

        strcpy(s.arch, archs[i]);
        s.full_attention_interval = s.n_delta_k_heads = s.n_delta_v_heads = 0;
        s.delta_head_dim = s.n_delta_conv = 0;
        s.n_conv = has_states ? 4 : 3;
        strcpy(s.attention_layers, lists ? "1 4" : "");
        s.n_ssm_groups = has_states ? 2 : 0;
        s.n_ssm_heads = has_states ? 6 : 0;
        s.ssm_head_dim = has_states ? 32 : 0;
        s.ssm_state_dim = has_states ? 16 : 0;
        s.n_experts = i == 1 ? 6 : 0;
        s.n_experts_used = i == 1 ? 2 : 0;
        m = synth_image_make(&s, QUANTMIX_Q8_0, 1);
        if (has_states)
            assert_tensor(&m, "blk.0.ssm_in.weight", KERN_FMT_q8_0, 256,
                          2 * 192 + 2 * 2 * 16 + 6);
        else
            assert_tensor(&m, "blk.0.shortconv.conv.weight", KERN_FMT_f32, 3, 256);
        assert_true(lists == !gguf_tensor_find(m.g, "blk.1.ssm_a") || !has_states);
        assert_true((i != 4) == (gguf_tensor_find(m.g, "blk.1.attn_q.weight") != NULL));
        p.image = m.data;
        p.image_bytes = m.bytes;
        if (slm_open(&slm, &p, &err) ||
            slm_eval(slm, tokens, 200, SLM_LOGITS_LAST, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(slm_info(slm)->n_recurrent, lists ? 3 : 5);
        for (uint32_t v = 0; v < s.n_vocab; v++)
            power += pow((double)slm_logits(slm, 0)[v], 2) / s.n_vocab;
        assert_true(power > 1 && power < 16); /* planned: 4 */
        slm_close(slm);
        synth_image_drop(&m);
    }
}

static void impossible_shapes_are_refused(void **state)
{
    static const struct {
        const char *says;
        size_t field;
        uint32_t value;
    } cases[] = {
        {"n_layers is 0, it must be 1..4096", offsetof(struct synth_shape, n_layers),
         0},
        {"n_embd is 0", offsetof(struct synth_shape, n_embd), 0},
        {"n_ff is 4294967295", offsetof(struct synth_shape, n_ff), UINT32_MAX},
        {"n_heads 4 is no multiple of n_kv_heads 3",
         offsetof(struct synth_shape, n_kv_heads), 3},
        {"n_kv_heads is 8", offsetof(struct synth_shape, n_kv_heads), 8},
        {"head_dim is 63", offsetof(struct synth_shape, head_dim), 63},
        {"n_vocab is 299", offsetof(struct synth_shape, n_vocab), SYNTH_MIN_VOCAB - 1},
        {"n_ctx_train is 0", offsetof(struct synth_shape, n_ctx_train), 0},
        {"n_experts_used is 0", offsetof(struct synth_shape, n_experts), 2},
        {"n_ff_shared is 5", offsetof(struct synth_shape, n_ff_shared), 5},
        {"n_delta_conv is 4", offsetof(struct synth_shape, n_delta_conv), 4},
        {"rope_base is 0", offsetof(struct synth_shape, rope_base), 0},
        {"norm_eps is nan", offsetof(struct synth_shape, norm_eps), 0x7fc00000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_shape s = tiny;
        struct synth_plan *plan = NULL;
        struct err err = ERR_INIT;

        memcpy((char *)&s + cases[i].field, &cases[i].value, sizeof cases[i].value);
        assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_0, 1, &err), ST_USAGE);
        assert_null(plan);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
    struct synth_shape s = tiny;
    struct synth_plan *plan = NULL;
    struct err err = ERR_INIT;
    strcpy(s.arch, "mamba");
    assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_0, 1, &err),
                     ST_UNSUPPORTED);
    err = (struct err)ERR_INIT;
    strcpy(s.arch, "qwen35");
    assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_0, 1, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "full_attention_interval is 0"));
    s = hybrid;
    s.n_delta_v_heads = 5;
    err = (struct err)ERR_INIT;
    assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_0, 1, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "n_delta_v_heads 5 is no multiple"));
    s = tiny;
    err = (struct err)ERR_INIT;
    strcpy(s.arch, "lfm2");
    assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_0, 1, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "attention_layers is ''"));
    strcpy(s.attention_layers, "0 1");
    err = (struct err)ERR_INIT;
    assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_0, 1, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "n_conv is 0"));
    strcpy(s.arch, "llama");
    err = (struct err)ERR_INIT;
    assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_0, 1, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "'llama' has no attention_layers"));
    s = tiny;
    err = (struct err)ERR_INIT;
    strcpy(s.arch, "qwen3moe");
    assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_0, 1, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "n_experts is missing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mix_is_a_whole_gguf_file),
        cmocka_unit_test(sizes_are_those_of_the_plans),
        cmocka_unit_test(tensors_have_the_shapes_and_types_of_the_mix),
        cmocka_unit_test(metadata_tells_the_shape),
        cmocka_unit_test(tied_output_and_rope_freqs),
        cmocka_unit_test(odd_sizes_fall_back),
        cmocka_unit_test(weights_spread_as_planned),
        cmocka_unit_test(equal_seeds_give_equal_bytes),
        cmocka_unit_test(pieces_of_any_size_give_the_same_image),
        cmocka_unit_test(vocabularies_of_any_size_have_unique_pieces),
        cmocka_unit_test(experts_are_matrices_one_after_another),
        cmocka_unit_test(layers_with_linear_attention),
        cmocka_unit_test(layers_that_convolve),
        cmocka_unit_test(impossible_shapes_are_refused),
    };

    return cmocka_run_group_tests_name("synth", tests, NULL, NULL);
}
