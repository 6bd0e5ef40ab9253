/* SPDX-License-Identifier: MIT
 *
 * test_synth_kinds.c - synthetic models whose layers are of two kinds: they have the
 * tensors of their kind, and run
 */
#include "tests/support/synth_image.h"

#include <math.h>

#include "engine/engine.h"
#include "engine/gguf/gguf.h"

/* Layers 2 and 5 see everything; 4 and 5 share keys and values. */
static const struct synth_shape small = {
    .name = "kinds",
    .arch = "gemma4",
    .n_layers = 6,
    .n_embd = 256,
    .n_ff = 320,
    .n_heads = 4,
    .n_kv_heads = 2,
    .head_dim = 64,
    .n_vocab = 512,
    .n_ctx_train = 1024,
    .rope_base = 1000000,
    .norm_eps = 1e-6F,
    .tied_output = true,
    .window = 48,
    .window_interval = 3,
    .n_kv_shared = 2,
    .n_per_layer = 32,
};

static void assert_rows(const struct synth_image *m, const char *name, uint64_t k,
                        uint64_t rows)
{
    const struct gguf_tensor *t = gguf_tensor_find(m->g, name);

    assert_non_null(t);
    assert_int_equal(t->ne[0], k);
    assert_int_equal(t->ne[1], rows);
}

static void run(const struct synth_image *m, struct slm_info *info)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *slm = NULL;
    int32_t tokens[200];
    double power = 0;

    for (int i = 0; i < 200; i++)
        tokens[i] = 5 + i * 7 % 500;
    p.image = m->data;
    p.image_bytes = m->bytes;
    p.n_ctx = 512;
    if (slm_open(&slm, &p, &err) || slm_eval(slm, tokens, 200, SLM_LOGITS_LAST, &err))
        fail_msg("%s", err.msg);
    *info = *slm_info(slm);
    for (int v = 0; v < info->n_vocab; v++)
        power += pow((double)slm_logits(slm, 0)[v], 2) / info->n_vocab;
    assert_true(power > 1 && power < 16); /* planned: 4 */
    slm_close(slm);
}

/* Layers of both kinds can keep the last positions only while these are no fewer than
 * the model's own window. */
static void check_kv_windows(const struct synth_image *m)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *slm = NULL;

    p.image = m->data;
    p.image_bytes = m->bytes;
    p.n_ctx = 128;
    p.kv_window = 47;
    assert_int_equal(slm_open(&slm, &p, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "choose at least 48"));
    err_clear(&err);
    p.kv_window = 48;
    assert_int_equal(slm_open(&slm, &p, &err), ST_OK);
    for (int i = 0; i < 3; i++) {
        const int32_t tokens[80] = {5};

        if (slm_eval(slm, tokens, 80, SLM_LOGITS_LAST, &err))
            fail_msg("%s", err.msg);
    }
    slm_close(slm);
}

static void heads_and_widths_of_their_own(void **state)
{
    struct synth_shape s = small;
    struct synth_image m;
    struct slm_info info;

    (void)state;
    s.window_head_dim = 32;
    s.n_window_kv_heads = 4;
    s.n_ff_kv_shared = 640;
    s.rope_freqs = true;
    s.n_rope_turning = 8;
    m = synth_image_make(&s, QUANTMIX_Q8_0, 1);
    assert_rows(&m, "per_layer_token_embd.weight", 6 * 32, 512);
    assert_rows(&m, "per_layer_model_proj.weight", 256, 6 * 32);
    assert_int_equal(gguf_tensor_find(m.g, "per_layer_model_proj.weight")->fmt,
                     KERN_FMT_bf16);
    assert_rows(&m, "blk.0.attn_q.weight", 256, 4 * 32);
    assert_rows(&m, "blk.0.attn_k.weight", 256, 4 * 32);
    assert_rows(&m, "blk.2.attn_q.weight", 256, 4 * 64);
    assert_rows(&m, "blk.2.attn_v.weight", 256, 2 * 64);
    assert_rows(&m, "blk.3.ffn_up.weight", 256, 320);
    assert_rows(&m, "blk.4.ffn_up.weight", 256, 640);
    assert_null(gguf_tensor_find(m.g, "blk.4.attn_k.weight"));
    assert_null(gguf_tensor_find(m.g, "blk.5.attn_v.weight"));
    assert_non_null(gguf_tensor_find(m.g, "blk.5.layer_output_scale.weight"));
    run(&m, &info);
    /* layers 0, 1, 3 with a window, 2 without; 4 and 5 read those of 3 and 2 */
    assert_int_equal(info.kv_pos_bytes, 3 * 4 * 64 * 2 + 2 * 128 * 2);
    assert_int_equal(info.kv_read_bytes, 4 * 4 * 64 * 2 + 2 * 2 * 128 * 2);
    assert_int_equal(info.kv_window_bytes, 4 * 4 * 64 * 2);
    assert_int_equal(info.n_window_layers, 4);
    check_kv_windows(&m);
    synth_image_drop(&m);
}

static void experts_next_to_a_dense_part(void **state)
{
    struct synth_shape s = small;
    struct synth_image m;
    struct slm_info info;

    (void)state;
    s.n_kv_shared = s.n_per_layer = 0;
    s.keys_as_values = true;
    s.n_experts = 6;
    s.n_experts_used = 2;
    s.n_ff = 96;
    s.n_ff_shared = 160;
    m = synth_image_make(&s, QUANTMIX_Q8_0, 1);
    assert_rows(&m, "blk.1.ffn_gate_up_exps.weight", 256, 2 * 96);
    assert_rows(&m, "blk.1.ffn_up.weight", 256, 160);
    assert_rows(&m, "blk.1.attn_v.weight", 256, 2 * 64);
    assert_null(gguf_tensor_find(m.g, "blk.2.attn_v.weight"));
    assert_null(gguf_tensor_find(m.g, "per_layer_token_embd.weight"));
    run(&m, &info);
    assert_int_equal(info.n_experts_used, 2);
    synth_image_drop(&m);
}

static void several_streams(void **state)
{
    struct synth_shape s = small;
    struct synth_image m;
    struct slm_info info;

    (void)state;
    strcpy(s.arch, "gemma3n");
    s.n_streams = 4;
    s.n_low = 16;
    s.n_sparse = 2;
    m = synth_image_make(&s, QUANTMIX_Q8_0, 1);
    assert_int_equal(gguf_tensor_find(m.g, "altup_proj.weight")->ne[2], 3);
    assert_rows(&m, "blk.0.altup_predict_coef.weight", 4, 16);
    assert_rows(&m, "blk.0.laurel_r.weight", 16, 256);
    run(&m, &info);
    synth_image_drop(&m);
}

static void impossible_shapes(void **state)
{
    static const struct {
        const char *says;
        size_t field;
        uint32_t value;
    } cases[] = {
        {"window_interval is 0", offsetof(struct synth_shape, window_interval), 0},
        {"window is 0", offsetof(struct synth_shape, window), 0},
        {"n_kv_shared is 6", offsetof(struct synth_shape, n_kv_shared), 6},
        {"the first 2 layers", offsetof(struct synth_shape, n_kv_shared), 4},
        {"window_head_dim is 65", offsetof(struct synth_shape, window_head_dim), 65},
        {"window_head_dim 33 must be", offsetof(struct synth_shape, window_head_dim),
         33},
        {"n_window_kv_heads 3", offsetof(struct synth_shape, n_window_kv_heads), 3},
        {"n_streams is 4", offsetof(struct synth_shape, n_streams), 4},
        {"n_rope_turning is 8", offsetof(struct synth_shape, n_rope_turning), 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_shape s = small;
        struct synth_plan *plan = NULL;
        struct err err = ERR_INIT;

        memcpy((char *)&s + cases[i].field, &cases[i].value, sizeof cases[i].value);
        assert_int_equal(synth_plan_make(&plan, &s, QUANTMIX_Q4_0, 1, &err), ST_USAGE);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_and_widths_of_their_own),
        cmocka_unit_test(experts_next_to_a_dense_part),
        cmocka_unit_test(several_streams),
        cmocka_unit_test(impossible_shapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
