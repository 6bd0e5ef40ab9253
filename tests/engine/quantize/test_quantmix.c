/* SPDX-License-Identifier: MIT
 *
 * test_quantmix.c - which tensor gets which format, and what a whole file weighs
 */
#include "tests/support/test.h"

#include "engine/quantize/quantmix.h"

static enum kern_format format_of(enum quantmix mix, const char *name, int layer,
                                  int n_layers, uint64_t row)
{
    const struct quantmix_tensor t = {.name = name,
                                      .layer = layer,
                                      .n_layers = n_layers,
                                      .n_heads = 32,
                                      .n_kv_heads = 4,
                                      .n_dims = 2,
                                      .row_elems = row};

    return quantmix_format(mix, &t);
}

static void names_and_file_types_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < QUANTMIX_N; i++) {
        const enum quantmix mix = (enum quantmix)i;

        assert_int_equal(quantmix_by_name(quantmix_name(mix)), mix);
        assert_int_equal(quantmix_by_file_type(quantmix_file_type(mix)), mix);
    }
    assert_int_equal(quantmix_by_name("q4_k_m"), QUANTMIX_Q4_K_M);
    assert_int_equal(quantmix_by_name("Q4_K"), QUANTMIX_N);
    assert_int_equal(quantmix_by_name(""), QUANTMIX_N);
    assert_int_equal(quantmix_by_file_type(15), QUANTMIX_Q4_K_M);
    assert_int_equal(quantmix_by_file_type(3), QUANTMIX_Q4_1);
    assert_int_equal(quantmix_by_file_type(4), QUANTMIX_N);
}

/* 32 layers: 0..3 and 28..31 get more bits, and 6, 9, ... 27 in between. */
static void q4_k_m_gives_more_bits_to_some_layers(void **state)
{
    (void)state;
    for (int i = 0; i < 32; i++) {
        const int more = i < 4 || i >= 28 || (i - 4) % 3 == 2;
        const enum kern_format want = more ? KERN_FMT_q6_K : KERN_FMT_q4_K;
        char name[40];

        snprintf(name, sizeof name, "blk.%d.attn_v.weight", i);
        assert_int_equal(format_of(QUANTMIX_Q4_K_M, name, i, 32, 4096), want);
        snprintf(name, sizeof name, "blk.%d.ffn_down.weight", i);
        assert_int_equal(format_of(QUANTMIX_Q4_K_M, name, i, 32, 14336), want);
        snprintf(name, sizeof name, "blk.%d.attn_k.weight", i);
        assert_int_equal(format_of(QUANTMIX_Q4_K_M, name, i, 32, 4096), KERN_FMT_q4_K);
    }
}

static void q4_k_s_raises_the_first_layers_only(void **state)
{
    const char *v = "blk.3.attn_v.weight", *down = "blk.3.ffn_down.weight";

    (void)state;
    assert_int_equal(format_of(QUANTMIX_Q4_K_S, v, 3, 48, 4096), KERN_FMT_q5_K);
    assert_int_equal(format_of(QUANTMIX_Q4_K_S, v, 4, 48, 4096), KERN_FMT_q4_K);
    assert_int_equal(format_of(QUANTMIX_Q4_K_S, down, 5, 48, 11008), KERN_FMT_q5_K);
    assert_int_equal(format_of(QUANTMIX_Q4_K_S, down, 6, 48, 11008), KERN_FMT_q4_K);
}

/* One layer of 16 with every part, for the mixes of three bits and less. */
static void low_bit_mixes_raise_what_hurts(void **state)
{
    static const struct {
        enum quantmix mix;
        int layer;
        enum kern_format q, v, output, up, down;
    } cases[] = {
        {QUANTMIX_Q2_K, 8, KERN_FMT_q2_K, KERN_FMT_q4_K, KERN_FMT_q3_K, KERN_FMT_q2_K,
         KERN_FMT_q3_K},
        {QUANTMIX_Q3_K_M, 0, KERN_FMT_q3_K, KERN_FMT_q5_K, KERN_FMT_q4_K, KERN_FMT_q3_K,
         KERN_FMT_q5_K},
        {QUANTMIX_Q3_K_M, 8, KERN_FMT_q3_K, KERN_FMT_q4_K, KERN_FMT_q4_K, KERN_FMT_q3_K,
         KERN_FMT_q4_K},
        {QUANTMIX_IQ1_S, 1, KERN_FMT_iq1_s, KERN_FMT_q4_K, KERN_FMT_iq2_xxs,
         KERN_FMT_iq1_s, KERN_FMT_q2_K},
        {QUANTMIX_IQ2_S, 8, KERN_FMT_iq2_xs, KERN_FMT_q4_K, KERN_FMT_iq3_s,
         KERN_FMT_iq2_xs, KERN_FMT_iq2_xs},
        {QUANTMIX_IQ3_XXS, 8, KERN_FMT_iq2_s, KERN_FMT_q4_K, KERN_FMT_iq3_s,
         KERN_FMT_iq3_xxs, KERN_FMT_q3_K},
        {QUANTMIX_IQ3_XS, 1, KERN_FMT_iq3_xxs, KERN_FMT_q4_K, KERN_FMT_iq3_s,
         KERN_FMT_iq3_s, KERN_FMT_iq3_s},
        {QUANTMIX_IQ3_XS, 13, KERN_FMT_iq3_xxs, KERN_FMT_q4_K, KERN_FMT_iq3_s,
         KERN_FMT_iq3_xxs, KERN_FMT_iq3_s},
        {QUANTMIX_IQ4_XS, 1, KERN_FMT_iq4_xs, KERN_FMT_q5_K, KERN_FMT_iq4_xs,
         KERN_FMT_iq4_xs, KERN_FMT_q5_K},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const enum quantmix mix = cases[i].mix;
        const int l = cases[i].layer;
        struct quantmix_tensor v = {.name = "blk.0.attn_v.weight",
                                    .layer = 15,
                                    .n_layers = 16,
                                    .n_heads = 32,
                                    .n_kv_heads = 16,
                                    .n_dims = 2,
                                    .row_elems = 2048};

        assert_int_equal(format_of(mix, "blk.0.attn_q.weight", l, 16, 2048),
                         cases[i].q);
        assert_int_equal(format_of(mix, "blk.0.attn_v.weight", l, 16, 2048),
                         cases[i].v);
        assert_int_equal(format_of(mix, "blk.0.attn_output.weight", l, 16, 2048),
                         cases[i].output);
        assert_int_equal(format_of(mix, "blk.0.ffn_up.weight", l, 16, 2048),
                         cases[i].up);
        assert_int_equal(format_of(mix, "blk.0.ffn_down.weight", l, 16, 2048),
                         cases[i].down);
        /* heads that hardly share: attn_v is large, and gets less */
        if (mix == QUANTMIX_Q2_K)
            assert_int_equal(quantmix_format(mix, &v), KERN_FMT_q3_K);
        if (mix == QUANTMIX_IQ1_S)
            assert_int_equal(quantmix_format(mix, &v), KERN_FMT_q2_K);
        if (mix == QUANTMIX_IQ4_XS)
            assert_int_equal(quantmix_format(mix, &v), KERN_FMT_iq4_xs);
    }
}

static void output_is_finer_than_the_rest(void **state)
{
    static const struct {
        enum quantmix mix;
        enum kern_format output, embd;
    } cases[] = {
        {QUANTMIX_F32, KERN_FMT_f32, KERN_FMT_f32},
        {QUANTMIX_F16, KERN_FMT_f16, KERN_FMT_f16},
        {QUANTMIX_BF16, KERN_FMT_bf16, KERN_FMT_bf16},
        {QUANTMIX_Q4_0, KERN_FMT_q6_K, KERN_FMT_q4_0},
        {QUANTMIX_Q8_0, KERN_FMT_q8_0, KERN_FMT_q8_0},
        {QUANTMIX_Q4_K_S, KERN_FMT_q6_K, KERN_FMT_q4_K},
        {QUANTMIX_Q5_K_M, KERN_FMT_q6_K, KERN_FMT_q5_K},
        {QUANTMIX_Q6_K, KERN_FMT_q6_K, KERN_FMT_q6_K},
        {QUANTMIX_IQ1_M, KERN_FMT_q5_K, KERN_FMT_q2_K},
        {QUANTMIX_IQ2_S, KERN_FMT_q5_K, KERN_FMT_iq3_s},
        {QUANTMIX_IQ4_XS, KERN_FMT_q6_K, KERN_FMT_iq4_xs},
        {QUANTMIX_TQ2_0, KERN_FMT_q6_K, KERN_FMT_q4_K},
        {QUANTMIX_MXFP4, KERN_FMT_q6_K, KERN_FMT_mxfp4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct quantmix_tensor embd = {.name = "token_embd.weight",
                                       .layer = -1,
                                       .n_layers = 16,
                                       .n_heads = 32,
                                       .n_kv_heads = 8,
                                       .n_dims = 2,
                                       .row_elems = 2048};

        assert_int_equal(format_of(cases[i].mix, "output.weight", -1, 16, 2048),
                         cases[i].output);
        assert_int_equal(quantmix_format(cases[i].mix, &embd), cases[i].embd);
        embd.tied_output = 1;
        assert_int_equal(quantmix_format(cases[i].mix, &embd), cases[i].output);
    }
}

static void other_special_tensors(void **state)
{
    struct quantmix_tensor norm = {.name = "blk.0.attn_norm.weight",
                                   .n_layers = 48,
                                   .n_heads = 32,
                                   .n_kv_heads = 4,
                                   .n_dims = 1,
                                   .row_elems = 4096};
    struct quantmix_tensor v70 = {.name = "blk.20.attn_v.weight",
                                  .layer = 20,
                                  .n_layers = 80,
                                  .n_heads = 64,
                                  .n_kv_heads = 8,
                                  .n_dims = 2,
                                  .row_elems = 8192};
    const char *router = "blk.1.ffn_gate_inp.weight", *qkv = "blk.9.attn_qkv.weight";

    (void)state;
    assert_int_equal(quantmix_format(QUANTMIX_F16, &norm), KERN_FMT_f32);
    assert_int_equal(format_of(QUANTMIX_Q6_K, router, 1, 32, 4096), KERN_FMT_f32);
    assert_int_equal(format_of(QUANTMIX_Q4_K_M, qkv, 9, 32, 3072), KERN_FMT_q5_K);
    assert_int_equal(format_of(QUANTMIX_Q5_K_M, qkv, 9, 32, 3072), KERN_FMT_q6_K);
    assert_int_equal(format_of(QUANTMIX_Q4_K_S, qkv, 9, 32, 3072), KERN_FMT_q4_K);
    assert_int_equal(quantmix_format(QUANTMIX_Q4_K_M, &v70), KERN_FMT_q5_K);
    assert_int_equal(quantmix_format(QUANTMIX_Q4_0, &v70), KERN_FMT_q4_0);
    v70.n_heads = v70.n_kv_heads = 64;
    assert_int_equal(quantmix_format(QUANTMIX_Q4_K_M, &v70), KERN_FMT_q4_K);
}

static enum kern_format with(enum quantmix mix, const char *name, int layer,
                             int n_experts, int has_importance)
{
    const struct quantmix_tensor t = {.name = name,
                                      .layer = layer,
                                      .n_layers = 32,
                                      .n_heads = 32,
                                      .n_kv_heads = 32,
                                      .n_dims = 2,
                                      .row_elems = 4096,
                                      .n_experts = n_experts,
                                      .has_importance = has_importance};

    return quantmix_format(mix, &t);
}

/* What an importance matrix changes: less needs to be protected. */
static void importance_changes_the_mix(void **state)
{
    const char *down = "blk.1.ffn_down.weight", *v = "blk.9.attn_v.weight";

    (void)state;
    assert_int_equal(with(QUANTMIX_IQ4_XS, down, 1, 0, 0), KERN_FMT_q5_K);
    assert_int_equal(with(QUANTMIX_IQ4_XS, down, 1, 0, 1), KERN_FMT_iq4_xs);
    assert_int_equal(with(QUANTMIX_Q4_0, down, 1, 0, 0), KERN_FMT_q4_0);
    assert_int_equal(with(QUANTMIX_Q4_0, down, 1, 0, 1), KERN_FMT_q4_1);
    assert_int_equal(with(QUANTMIX_Q5_0, down, 1, 0, 1), KERN_FMT_q5_1);
    assert_int_equal(with(QUANTMIX_Q5_0, down, 4, 0, 1), KERN_FMT_q5_0);
    assert_int_equal(with(QUANTMIX_IQ3_XXS, v, 9, 0, 0), KERN_FMT_iq3_s);
    assert_int_equal(with(QUANTMIX_IQ3_XXS, v, 9, 0, 1), KERN_FMT_iq3_xxs);
    assert_int_equal(with(QUANTMIX_IQ3_XXS, down, 1, 0, 0), KERN_FMT_q4_K);
    assert_int_equal(with(QUANTMIX_IQ3_XXS, down, 1, 0, 1), KERN_FMT_iq3_xxs);
    assert_true(quantmix_wants_importance(QUANTMIX_IQ1_S));
    assert_false(quantmix_wants_importance(QUANTMIX_Q4_K_M));
}

/* Mixtral's attention is small beside its eight experts. */
static void eight_experts_raise_attention(void **state)
{
    const char *v = "blk.9.attn_v.weight", *k = "blk.9.attn_k.weight";
    const char *out = "blk.9.attn_output.weight", *down = "blk.9.ffn_down_exps.weight";

    (void)state;
    assert_int_equal(with(QUANTMIX_Q4_K_M, v, 9, 8, 0), KERN_FMT_q8_0);
    assert_int_equal(with(QUANTMIX_Q4_K_M, k, 9, 8, 0), KERN_FMT_q8_0);
    assert_int_equal(with(QUANTMIX_Q4_K_M, out, 9, 8, 0), KERN_FMT_q5_K);
    assert_int_equal(with(QUANTMIX_Q4_K_M, down, 9, 8, 0), KERN_FMT_q6_K);
    assert_int_equal(with(QUANTMIX_Q5_K_M, out, 9, 8, 0), KERN_FMT_q5_K);
    assert_int_equal(with(QUANTMIX_Q3_K_L, out, 9, 8, 0), KERN_FMT_q3_K);
    assert_int_equal(with(QUANTMIX_IQ2_XS, v, 9, 8, 0), KERN_FMT_q4_K);
    assert_int_equal(with(QUANTMIX_IQ2_XS, k, 9, 8, 0), KERN_FMT_q4_K);
    assert_int_equal(with(QUANTMIX_IQ2_XS, out, 9, 8, 0), KERN_FMT_q5_K);
    assert_int_equal(with(QUANTMIX_IQ2_XS, v, 9, 60, 0), KERN_FMT_q4_K);
    assert_int_equal(with(QUANTMIX_Q4_K_M, k, 9, 60, 0), KERN_FMT_q4_K);
    assert_int_equal(with(QUANTMIX_F16, v, 9, 8, 0), KERN_FMT_f16);
}

static void small_and_exact_tensors_are_kept(void **state)
{
    static const char *const names[] = {
        "blk.0.attn_norm.weight",    "blk.0.attn_q_norm.weight",
        "blk.0.ffn_gate_inp.weight", "blk.0.ssm_conv1d.weight",
        "position_embd.weight",      "blk.0.attn_qkv.bias",
        "rope_freqs.weight"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(with(QUANTMIX_Q4_K_M, names[i], 0, 0, 0), KERN_FMT_f32);
    assert_int_equal(quantmix_by_base(KERN_FMT_iq2_s), QUANTMIX_IQ2_M);
    assert_int_equal(quantmix_base(QUANTMIX_Q4_K_M), KERN_FMT_q4_K);
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        assert_int_not_equal(quantmix_by_base((enum kern_format)fmt), QUANTMIX_N);
}

static void rows_that_the_block_does_not_divide(void **state)
{
    const char *q = "blk.0.attn_q.weight";

    (void)state;
    assert_int_equal(format_of(QUANTMIX_Q4_K_M, q, 0, 22, 5632), KERN_FMT_q4_K);
    assert_int_equal(format_of(QUANTMIX_Q4_K_M, q, 0, 22, 5632 + 32), KERN_FMT_q5_0);
    assert_int_equal(format_of(QUANTMIX_Q5_K_S, q, 0, 22, 288), KERN_FMT_q5_1);
    assert_int_equal(format_of(QUANTMIX_Q6_K, q, 0, 22, 288), KERN_FMT_q8_0);
    assert_int_equal(format_of(QUANTMIX_IQ4_XS, q, 0, 22, 288), KERN_FMT_iq4_nl);
    assert_int_equal(format_of(QUANTMIX_Q2_K, q, 0, 22, 288), KERN_FMT_iq4_nl);
    assert_int_equal(format_of(QUANTMIX_TQ1_0, q, 0, 22, 288), KERN_FMT_q4_0);
    assert_int_equal(format_of(QUANTMIX_IQ4_XS, q, 0, 22, 72), KERN_FMT_f16);
    assert_int_equal(format_of(QUANTMIX_Q4_0, q, 0, 22, 288), KERN_FMT_q4_0);
    assert_int_equal(format_of(QUANTMIX_Q4_0, q, 0, 22, 72), KERN_FMT_f16);
    assert_int_equal(format_of(QUANTMIX_F32, q, 0, 22, 7), KERN_FMT_f32);
    assert_int_equal(format_of(QUANTMIX_Q4_0, "output.weight", -1, 22, 288),
                     KERN_FMT_q8_0);
    assert_int_equal(format_of(QUANTMIX_IQ2_XS, "output.weight", -1, 22, 288),
                     KERN_FMT_q8_0);
    assert_int_equal(format_of(QUANTMIX_Q4_0, "output.weight", -1, 22, 72),
                     KERN_FMT_f16);
}

/* Sum of all matrices of Yi-1.5-9B, in bytes. */
static double yi_bytes(enum quantmix mix)
{
    static const struct {
        const char *part;
        uint64_t row, rows;
    } parts[] = {
        {"attn_q", 4096, 4096},      {"attn_k", 4096, 512},     {"attn_v", 4096, 512},
        {"attn_output", 4096, 4096}, {"ffn_gate", 4096, 11008}, {"ffn_up", 4096, 11008},
        {"ffn_down", 11008, 4096},
    };
    double sum = 0;

    for (int l = 0; l < 48; l++) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            char name[48];

            snprintf(name, sizeof name, "blk.%d.%s.weight", l, parts[i].part);
            const enum kern_format f = format_of(mix, name, l, 48, parts[i].row);
            sum += (double)kern_format_bytes(f, parts[i].row * parts[i].rows);
        }
    }
    sum += (double)kern_format_bytes(format_of(mix, "token_embd.weight", -1, 48, 4096),
                                     4096 * 64000ull);
    sum += (double)kern_format_bytes(format_of(mix, "output.weight", -1, 48, 4096),
                                     4096 * 64000ull);
    return sum;
}

/* File sizes of this model in GB, rounded to 0.01; vocabulary and norms, a few
 * MB, are left out here. */
static void whole_files_weigh_what_published_ones_do(void **state)
{
    static const struct {
        enum quantmix mix;
        double gb;
    } cases[] = {
        {QUANTMIX_Q4_0, 5.04},
        {QUANTMIX_Q4_K_M, 5.33},
        {QUANTMIX_Q6_K, 7.24},
        {QUANTMIX_Q8_0, 9.38},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_float_equal(yi_bytes(cases[i].mix) * 1e-9, cases[i].gb, 0.008);
}

/* The matrix of keys and values of latent attention counts as that of values. */
static void keys_and_values_in_one(void **state)
{
    struct quantmix_tensor t = {.name = "blk.0.attn_kv_b.weight",
                                .n_layers = 24,
                                .n_heads = 16,
                                .n_kv_heads = 16,
                                .n_dims = 2,
                                .row_elems = 512};

    (void)state;
    assert_int_equal(quantmix_format(QUANTMIX_Q4_K_M, &t), KERN_FMT_q6_K);
    assert_int_equal(quantmix_format(QUANTMIX_Q3_K_M, &t), KERN_FMT_q5_K);
    t.name = "blk.0.attn_v_b.weight";
    assert_int_equal(quantmix_format(QUANTMIX_Q4_K_M, &t), KERN_FMT_q4_K);
    t.name = "blk.0.attn_k_b.weight";
    t.row_elems = 128;
    assert_int_equal(quantmix_format(QUANTMIX_Q4_K_M, &t), KERN_FMT_q5_0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_file_types_round_trip),
        cmocka_unit_test(q4_k_m_gives_more_bits_to_some_layers),
        cmocka_unit_test(q4_k_s_raises_the_first_layers_only),
        cmocka_unit_test(low_bit_mixes_raise_what_hurts),
        cmocka_unit_test(output_is_finer_than_the_rest),
        cmocka_unit_test(other_special_tensors),
        cmocka_unit_test(importance_changes_the_mix),
        cmocka_unit_test(eight_experts_raise_attention),
        cmocka_unit_test(small_and_exact_tensors_are_kept),
        cmocka_unit_test(rows_that_the_block_does_not_divide),
        cmocka_unit_test(keys_and_values_in_one),
        cmocka_unit_test(whole_files_weigh_what_published_ones_do),
    };

    return cmocka_run_group_tests_name("quantmix", tests, NULL, NULL);
}
