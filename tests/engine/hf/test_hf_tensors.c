/* SPDX-License-Identifier: MIT
 *
 * test_hf_tensors.c - tensors of a folder as those of a GGUF file: shapes, the order of
 * rows, values; and what does not fit
 */
#include "tests/engine/hf/hf_folder.h"

/* Two layers and heads; one head of keys. */
#define CONFIG(type, more)                                                   \
    "{'model_type':'" type "','num_hidden_layers':2,'hidden_size':8,"        \
    "'intermediate_size':8,'num_attention_heads':2,'num_key_value_heads':1," \
    "'head_dim':4,'max_position_embeddings':64" more "}"
#define LLAMA CONFIG("llama", "")
#define DELTA                                                                    \
    ",'linear_num_key_heads':2,'linear_num_value_heads':4,'linear_key_head_dim'" \
    ":1,'linear_value_head_dim':1"
#define EXPERTS                                                           \
    ",'num_experts':2,'num_experts_per_tok':1,'moe_intermediate_size':2," \
    "'shared_expert_intermediate_size':2"
#define LATENT                                                                    \
    CONFIG("deepseek_v2", ",'kv_lora_rank':2,'qk_nope_head_dim':2,'qk_rope_head_" \
                          "dim':2,'v_head_dim':1")
#define MAMBA2                                                                    \
    "{'model_type':'mamba2','num_hidden_layers':2,'hidden_size':8,'num_heads':2," \
    "'head_dim':2,'n_groups':2,'state_size':2}"
#define GPT2    "{'model_type':'gpt2','n_layer':2,'n_embd':8,'n_head':2,'n_positions':64}"
#define GPT_OSS CONFIG("gpt_oss", ",'num_local_experts':2,'num_experts_per_tok':1")
#define FALCON_H1                                                                 \
    CONFIG("falcon_h1", ",'mamba_n_heads':2,'mamba_d_head':1,'mamba_n_groups':1," \
                        "'mamba_d_state':1,'embedding_multiplier':2,"             \
                        "'ssm_in_multiplier':2,'ssm_multipliers':[1,2,3,4,5]")
#define L "model.layers.0."

static enum status open_tensors(struct gguf **g, const char *config,
                                const struct folder_tensor *t, struct err *err)
{
    char root[64];
    size_t n = 0;

    tree_new(root);
    folder_put(root, "/config.json", config);
    while (n < 3 && t[n].name)
        n++;
    folder_put_tensors(root, "/model.safetensors", t, n);
    const enum status st = hf_open(g, root, err);

    tree_remove(root); /* its files are open */
    return st;
}

static const struct {
    const char *config;
    struct folder_tensor tensors[3];
    const char *name, *shape, *values; /* of the GGUF file */
} cases[] = {
    {LLAMA, {{"model.norm.weight", "[3]"}}, "output_norm.weight", "3", "0 1 2"},
    {LLAMA,
     {{L "self_attn.q_proj.weight", "[8,1]"}},
     "blk.0.attn_q.weight",
     "1 8",
     "0 2 1 3 4 6 5 7"},
    {LLAMA,
     {{L "self_attn.q_proj.bias", "[8]"}},
     "blk.0.attn_q.bias",
     "8",
     "0 2 1 3 4 6 5 7"},
    {LLAMA,
     {{L "self_attn.k_proj.weight", "[4,2]"}},
     "blk.0.attn_k.weight",
     "2 4",
     "0 1 4 5 2 3 6 7"},
    {LLAMA,
     {{"lm_head.weight", "[2,2]"}, {"model.embed_tokens.weight", "[2,2]"}},
     "output.weight",
     "2 2",
     "0 1 2 3"},
    {CONFIG("llama", ",'rope_scaling':{'type':'llama3','factor':8}"),
     {{"model.norm.weight", "[3]"}},
     "rope_freqs.weight",
     "2",
     "1 8"},
    {CONFIG("gemma2", ""),
     {{"model.norm.weight", "[3]"}},
     "output_norm.weight",
     "3",
     "1 2 3"},
    {CONFIG("mixtral", ",'num_local_experts':2,'num_experts_per_tok':1"),
     {{L "block_sparse_moe.experts.1.w1.weight", "[1,2]"},
      {L "block_sparse_moe.experts.0.w1.weight", "[1,2]"}},
     "blk.0.ffn_gate_exps.weight",
     "2 1 2",
     "0 1 0 1"},
    {CONFIG("qwen2_moe", EXPERTS),
     {{L "mlp.shared_expert_gate.weight", "[1,3]"}},
     "blk.0.ffn_gate_inp_shexp.weight",
     "3",
     "0 1 2"},
    {CONFIG("qwen3_5_moe", DELTA EXPERTS),
     {{L "mlp.experts.gate_up_proj", "[2,2,1]"}},
     "blk.0.ffn_gate_exps.weight",
     "1 1 2",
     "0 2"},
    {CONFIG("qwen3_5_moe", DELTA EXPERTS),
     {{L "mlp.experts.gate_up_proj", "[2,2,1]"}},
     "blk.0.ffn_up_exps.weight",
     "1 1 2",
     "1 3"},
    {CONFIG("qwen3_5_moe", DELTA EXPERTS),
     {{L "mlp.experts.down_proj", "[2,1,2]"}},
     "blk.0.ffn_down_exps.weight",
     "2 1 2",
     "0 1 2 3"},
    /* heads of values 0 1 share keys 0, and 2 3 keys 1: those with one key apart */
    {CONFIG("qwen3_5", DELTA),
     {{L "linear_attn.in_proj_qkv.weight", "[8,1]"}},
     "blk.0.attn_qkv.weight",
     "1 8",
     "0 1 2 3 4 6 5 7"},
    {CONFIG("qwen3_5", DELTA),
     {{L "linear_attn.out_proj.weight", "[2,4]"}},
     "blk.0.ssm_out.weight",
     "4 2",
     "0 2 1 3 4 6 5 7"},
    {CONFIG("qwen3_5", DELTA),
     {{L "linear_attn.A_log", "[4]"}},
     "blk.0.ssm_a",
     "4",
     "-1 -7.38906 -2.71828 -20.0855"},
    {CONFIG("qwen3_5", DELTA),
     {{L "linear_attn.conv1d.weight", "[8,1,1]"}},
     "blk.0.ssm_conv1d.weight",
     "1 8",
     "0 1 2 3 4 6 5 7"},
    {CONFIG("internlm2", ""),
     {{L "attention.wqkv.weight", "[16,1]"}},
     "blk.0.attn_q.weight",
     "1 8",
     "0 2 1 3 4 6 5 7"},
    {CONFIG("internlm2", ""),
     {{L "attention.wqkv.weight", "[16,1]"}},
     "blk.0.attn_v.weight",
     "1 4",
     "12 13 14 15"},
    {LATENT,
     {{L "self_attn.kv_b_proj.weight", "[6,2]"}},
     "blk.0.attn_k_b.weight",
     "2 2 2",
     "0 2 1 3 6 8 7 9"},
    {LATENT,
     {{L "self_attn.kv_b_proj.weight", "[6,2]"}},
     "blk.0.attn_v_b.weight",
     "2 1 2",
     "4 5 10 11"},
    {GPT2,
     {{"h.0.attn.c_attn.weight", "[2,3]"}},
     "blk.0.attn_qkv.weight",
     "2 3",
     "0 3 1 4 2 5"},
    {GPT_OSS,
     {{L "mlp.experts.gate_up_proj_bias", "[2,2]"}},
     "blk.0.ffn_gate_exps.bias",
     "1 2",
     "0 2"},
    {GPT_OSS,
     {{L "mlp.experts.gate_up_proj_bias", "[2,2]"}},
     "blk.0.ffn_up_exps.bias",
     "1 2",
     "1 3"},
    {GPT_OSS,
     {{L "mlp.experts.gate_up_proj", "[2,2,2]"}},
     "blk.0.ffn_gate_exps.weight",
     "2 1 2",
     "0 2 4 6"},
    {GPT_OSS,
     {{L "mlp.experts.gate_up_proj", "[2,2,2]"}},
     "blk.0.ffn_up_exps.weight",
     "2 1 2",
     "1 3 5 7"},
    {GPT_OSS,
     {{L "mlp.experts.down_proj", "[2,2,1]"}},
     "blk.0.ffn_down_exps.weight",
     "2 1 2",
     "0 1 2 3"},
    {MAMBA2,
     {{"backbone.layers.0.mixer.A_log", "[2]"}},
     "blk.0.ssm_a",
     "1 2",
     "-1 -2.71828"},
    {MAMBA2,
     {{"backbone.layers.0.mixer.norm.weight", "[4]"}},
     "blk.0.ssm_norm.weight",
     "2 2",
     "0 1 2 3"},
    {MAMBA2,
     {{"backbone.layers.0.mixer.conv1d.weight", "[4,1,2]"}},
     "blk.0.ssm_conv1d.weight",
     "2 4",
     "0 1 2 3 4 5 6 7"},
    {FALCON_H1,
     {{"model.embed_tokens.weight", "[2,2]"}},
     "token_embd.weight",
     "2 2",
     "0 2 4 6"},
    {FALCON_H1,
     {{L "mamba.in_proj.weight", "[8,1]"}},
     "blk.0.ssm_in.weight",
     "1 8",
     "0 2 8 12 24 40 60 70"},
    {CONFIG("roberta", ""),
     {{"embeddings.position_embeddings.weight", "[4,1]"}},
     "position_embd.weight",
     "1 2",
     "2 3"},
    {CONFIG("bitnet", ""),
     {{L "mlp.up_proj.weight", "[2,2]"}},
     "blk.0.ffn_up.weight",
     "2 2",
     "0 1.5 1.5 1.5"},
};

static void tensors_become_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct gguf *g;
        char shape[40] = "", values[200] = "";

        if (open_tensors(&g, cases[i].config, cases[i].tensors, &err))
            fail_msg("%s: %s", cases[i].name, err.msg);
        const struct gguf_tensor *t = gguf_tensor_find(g, cases[i].name);

        if (!t || t->fmt != KERN_FMT_f32)
            fail_msg("no %s", cases[i].name);
        for (int d = 0, used = 0; d < t->n_dims; d++)
            used += sprintf(shape + used, "%s%d", d ? " " : "", (int)t->ne[d]);
        float *v = malloc(t->bytes);
        const uint64_t n_rows = t->n_elems / t->ne[0];

        /* all at once, and one row after another */
        for (int one = 0; one < 2; one++) {
            for (uint64_t r = 0, n = one ? 1 : n_rows; r < n_rows; r += n)
                if (gguf_read_rows(g, t, r, n, one, v + r * t->ne[0], &err))
                    fail_msg("%s: %s", cases[i].name, err.msg);
            for (uint64_t k = 0, used = 0; k < t->n_elems; k++)
                used +=
                    (size_t)sprintf(values + used, "%s%g", k ? " " : "", (double)v[k]);
            if (strcmp(shape, cases[i].shape) || strcmp(values, cases[i].values))
                fail_msg("%s, %s: [%s] %s", cases[i].config, cases[i].name, shape,
                         values);
        }
        free(v);
        gguf_close(g);
    }
}

/* Nibbles 0, 1, ... of 16 bytes, and a scale: low ones first in GGUF, neighbours in the
 * folder. */
static void blocks_of_mxfp4(void **state)
{
    static const struct folder_tensor t[3] = {
        {L "mlp.experts.down_proj_blocks", "U8[1,2,1,16]"},
        {L "mlp.experts.down_proj_scales", "U8[1,2,1]"}};
    struct err err = ERR_INIT;
    struct gguf *g;
    unsigned char rows[2 * 17];

    (void)state;
    if (open_tensors(&g, GPT_OSS, t, &err))
        fail_msg("%s", err.msg);
    const struct gguf_tensor *down = gguf_tensor_find(g, "blk.0.ffn_down_exps.weight");

    assert_int_equal(down->fmt, KERN_FMT_mxfp4);
    assert_int_equal(down->ne[0], 32);
    assert_int_equal(gguf_read_rows(g, down, 0, 2, true, rows, &err), ST_OK);
    assert_int_equal(rows[0], 0);
    assert_int_equal(rows[17], 1);
    /* element 2 is the low half of byte 1, element 18 that of byte 9 */
    assert_int_equal(rows[1 + 2], 1 | 9 << 4);
    /* element 3 is the high half of byte 17, which is 0x11, 19 that of byte 25 */
    assert_int_equal(rows[18 + 3], 1 | 1 << 4);
    gguf_close(g);
}

static void what_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *config;
        struct folder_tensor tensors[3];
        enum status st;
        const char *message;
    } wrong[] = {
        {LLAMA,
         {{"model.other", "[1]"}},
         ST_UNSUPPORTED,
         "the tensor 'model.other' is no part of a llama model as known here"},
        {LLAMA,
         {{"norm.weight", "[1]"}, {"model.norm.weight", "[1]"}},
         ST_INPUT,
         "are the same tensor twice"},
        {LLAMA,
         {{"model.norm.weight", "[1,1,1]"}},
         ST_INPUT,
         "the tensor 'model.norm.weight' is neither a vector nor a matrix"},
        {LLAMA, {{"model.norm.weight", "[]"}}, ST_INPUT, "is neither a vector nor"},
        {LLAMA, {{"model.norm.weight", "[0]"}}, ST_INPUT, "is neither a vector nor"},
        {LLAMA,
         {{"model.norm.weight", "U8[2]"}},
         ST_UNSUPPORTED,
         "the tensor 'model.norm.weight' has the type U8; F32, F16 and BF16 can be"},
        {LLAMA,
         {{L "self_attn.q_proj.weight", "[6,1]"}},
         ST_INPUT,
         "blk.0.attn_q.weight has 6 rows, which 2 heads cannot share in pairs"},
        {CONFIG("llama", ",'partial_rotary_factor':0.5"),
         {{L "self_attn.q_proj.weight", "[8,1]"}},
         ST_UNSUPPORTED,
         "llama models with partly rotated heads are not supported"},
        {CONFIG("llama", ",'tie_word_embeddings':false"),
         {{"model.embed_tokens.weight", "[2,2]"}},
         ST_INPUT,
         "the output has weights of its own"},
        {CONFIG("mixtral", ",'num_local_experts':2,'num_experts_per_tok':1"),
         {{L "block_sparse_moe.experts.0.w1.weight", "[1,2]"},
          {L "block_sparse_moe.experts.2.w1.weight", "[1,2]"}},
         ST_INPUT,
         "is number 2 of a list of 2; one is missing"},
        {CONFIG("mixtral", ",'num_local_experts':2,'num_experts_per_tok':1"),
         {{L "block_sparse_moe.experts.0.w1.weight", "[1,2]"},
          {L "block_sparse_moe.experts.1.w1.weight", "[2,1]"}},
         ST_INPUT,
         "has another type or shape"},
        {CONFIG("qwen3_5_moe", DELTA EXPERTS),
         {{L "mlp.experts.gate_up_proj", "[2,3,1]"}},
         ST_INPUT,
         "is no stack of matrices of two halves"},
        {CONFIG("qwen3_5_moe", DELTA EXPERTS),
         {{L "mlp.experts.down_proj", "[2,3]"}},
         ST_INPUT,
         "is no stack of matrices"},
        {CONFIG("qwen3_5_moe", DELTA EXPERTS),
         {{L "mlp.experts.gate_up_proj", "[4]"}},
         ST_INPUT,
         "is no stack of matrices"},
        {CONFIG("qwen3_5", DELTA),
         {{L "linear_attn.in_proj_qkv.weight", "[4,1]"}},
         ST_INPUT,
         "attn_qkv.weight has 4 rows, which 4 heads cannot share"},
        {CONFIG("qwen3_5", DELTA),
         {{L "linear_attn.out_proj.weight", "[2,3]"}},
         ST_INPUT,
         "ssm_out.weight has 3 columns, which 4 heads cannot share"},
        {LATENT,
         {{L "self_attn.kv_b_proj.weight", "[5,2]"}},
         ST_INPUT,
         "comes from a matrix of 5 rows, and 2 heads have keys of 2 and values of 1"},
        {LATENT,
         {{L "self_attn.kv_b_proj.weight", "[6]"}},
         ST_INPUT,
         "comes from a matrix of 1 rows"},
        {CONFIG("internlm2", ""),
         {{L "attention.wqkv.weight", "[15,1]"}},
         ST_INPUT,
         "which groups of heads or pairs of rows cannot share"},
        {GPT2,
         {{"h.0.attn.c_attn.weight", "[6]"}},
         ST_INPUT,
         "is no matrix that can be transposed"},
        {GPT_OSS,
         {{L "mlp.experts.gate_up_proj", "[2,2,3]"}},
         ST_INPUT,
         "is no matrix that can be transposed"},
        {GPT_OSS,
         {{L "mlp.experts.down_proj_blocks", "U8[1,2,1,16]"}},
         ST_INPUT,
         "is no stack of MXFP4 blocks with a scale for each"},
        {GPT_OSS,
         {{L "mlp.experts.down_proj_blocks", "U8[1,2,1,8]"},
          {L "mlp.experts.down_proj_scales", "U8[1,2,1]"}},
         ST_INPUT,
         "is no stack of MXFP4 blocks with a scale for each"},
        {GPT_OSS,
         {{L "mlp.experts.down_proj_blocks", "U8[1,2,1,16]"},
          {L "mlp.experts.down_proj_scales", "U8[1,1,1]"}},
         ST_INPUT,
         "is no stack of MXFP4 blocks with a scale for each"},
        {GPT_OSS,
         {{L "mlp.experts.down_proj_blocks", "U8[2,1,16]"},
          {L "mlp.experts.down_proj_scales", "U8[2,1]"}},
         ST_INPUT,
         "is no stack of MXFP4 blocks with a scale for each"},
        {MAMBA2,
         {{"backbone.layers.0.mixer.norm.weight", "[3]"}},
         ST_INPUT,
         "blk.0.ssm_norm.weight has 3 elements, which 2 groups cannot share"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct err err = ERR_INIT;
        struct gguf *g = NULL;

        assert_refused(open_tensors(&g, wrong[i].config, wrong[i].tensors, &err), &err,
                       wrong[i].st, wrong[i].message, wrong[i].tensors[0].shape);
        assert_null(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_become_others),
        cmocka_unit_test(blocks_of_mxfp4),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
