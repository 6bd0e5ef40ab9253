/* SPDX-License-Identifier: MIT
 *
 * test_hf_kinds.c - config.json of every kind of model: what it becomes, and that each
 * member of a wrong type is refused by its name
 */
#include "tests/engine/hf/hf_folder.h"

/* Members of most kinds. */
static const char common[] =
    "{'num_hidden_layers':4,'hidden_size':16,'intermediate_size':32,"
    "'num_attention_heads':4,'num_key_value_heads':2,'head_dim':8,"
    "'max_position_embeddings':64,'rope_theta':5000}";

#define ROUTED "'num_experts':8,'num_experts_per_tok':2,'moe_intermediate_size':24"
#define GROUPS \
    "'n_group':2,'topk_group':1,'routed_scaling_factor':2.5,'norm_topk_prob':true"
#define LATENT                                                                    \
    "'q_lora_rank':8,'kv_lora_rank':8,'qk_nope_head_dim':4,'qk_rope_head_dim':4," \
    "'v_head_dim':4,'rms_norm_eps':1e-5,'attention_bias':false"
#define DELTA                                                                         \
    "'linear_num_key_heads':2,'linear_num_value_heads':4,'linear_key_head_dim':8,"    \
    "'linear_value_head_dim':8,'linear_conv_kernel_dim':4,'full_attention_interval':" \
    "4,'attention_bias':false,'attn_output_gate':true,'rms_norm_eps':1e-5"
#define MAMBA                                                                   \
    "'mamba_n_heads':4,'mamba_d_head':8,'mamba_n_groups':1,'mamba_d_state':16," \
    "'mamba_d_conv':4,'mamba_conv_bias':true,'mamba_proj_bias':false"
#define SCALES                                                                    \
    "'embedding_multiplier':2,'residual_multiplier':2,'attention_multiplier':2,'" \
    "logits_scaling':2"
#define LFM2                                                                          \
    "'conv_bias':false,'conv_L_cache':3,'norm_eps':1e-5,'layer_types':['conv','full_" \
    "attention','conv','conv']"
#define GEMMA4                                                                         \
    "'global_head_dim':16,'attention_k_eq_v':true,'num_global_key_value_heads':1,"     \
    "'hidden_activation':'gelu_pytorch_tanh','attention_bias':false,'sliding_window':" \
    "32,'rope_local_base_freq':10000,"                                                 \
    "'num_kv_shared_layers':1,'final_logit_softcapping':30,'use_double_wide_mlp':"     \
    "true,"                                                                            \
    "'enable_moe_block':true,'num_experts':8,'top_k_experts':2,'moe_intermediate_"     \
    "size':8,'hidden_size_per_layer_input':4"

/* Members that a kind reads in addition to, or instead of, the common ones; key and
 * value: a pair. */
static const struct {
    const char *type, *members, *key, *value;
} kinds[] = {
    {"llama", "{'hidden_act':'silu','rms_norm_eps':1e-5}", "llama.block_count",
     "(none)"},
    {"smollm3", "{'use_sliding_window':false,'hidden_act':'silu','rms_norm_eps':1e-5}",
     "smollm3.feed_forward_length", "32"},
    {"granite", "{" SCALES "}", "granite.logit_scale", "2"},
    {"granitemoe",
     "{" SCALES ",'num_local_experts':8,'num_experts_per_tok':2,"
     "'shared_intermediate_size':8}",
     "granitemoe.expert_shared_feed_forward_length", "8"},
    {"granitemoeshared", "{'num_local_experts':8,'num_experts_per_tok':2}",
     "granitemoe.expert_count", "8"},
    {"minicpm", "{'scale_emb':2,'scale_depth':4,'dim_model_base':8}",
     "minicpm.residual_scale", "2"},
    {"arcee", "{'hidden_act':'relu2','rms_norm_eps':1e-5}", "arcee.rope.freq_base",
     "5000"},
    {"ministral3", "{'hidden_act':'silu'}", "mistral3.embedding_length", "16"},
    {"ministral3", "{'rope_parameters':{'llama_4_scaling_beta':0.5}}",
     "mistral3.attention.temperature_scale", "0.5"},
    {"ernie4_5", "{'rms_norm_eps':1e-5}", "ernie4_5.rope.dimension_count", "8"},
    {"ernie4_5_moe",
     "{'moe_num_experts':8,'moe_k':2,'moe_intermediate_size':24,'moe_layer_interval':1,"
     "'moe_num_shared_experts':2,'moe_layer_start_index':1}",
     "ernie4_5-moe.expert_shared_feed_forward_length", "48"},
    {"seed_oss", "{'hidden_act':'silu'}", "seed_oss.attention.head_count", "4"},
    {"hunyuan_v1_dense", "{'use_qk_norm':true}", "hunyuan-dense.context_length", "64"},
    {"olmo2", "{'attention_bias':false}", "olmo2.attention.key_length", "8"},
    {"olmo3", "{'attention_bias':false,'sliding_window':16}",
     "olmo2.attention.sliding_window", "16"},
    {"olmoe", "{'norm_topk_prob':false,'num_experts':8,'num_experts_per_tok':2}",
     "olmoe.expert_feed_forward_length", "32"},
    {"exaone4", "{'sliding_window':16}", "exaone4.attention.sliding_window", "16"},
    {"exaone4", "{'sliding_window':null}", "exaone4.attention.sliding_window",
     "(none)"},
    {"cohere", "{'layer_norm_eps':1e-5,'logit_scale':2,'hidden_act':'silu'}",
     "command-r.logit_scale", "2"},
    {"cohere2", "{'layer_norm_eps':1e-5,'logit_scale':2,'sliding_window':16}",
     "cohere2.attention.sliding_window", "16"},
    {"starcoder2",
     "{'use_bias':true,'norm_epsilon':1e-5,'hidden_act':"
     "'gelu_pytorch_tanh'}",
     "starcoder2.attention.layer_norm_epsilon", "1e-05"},
    {"nemotron", "{'norm_eps':1e-5,'hidden_act':'relu2'}",
     "nemotron.rope.dimension_count", "4"},
    {"phimoe", "{'num_local_experts':8,'num_experts_per_tok':2}",
     "phimoe.expert_used_count", "2"},
    {"phimoe",
     "{'num_local_experts':8,'num_experts_per_tok':2,'rope_scaling':{"
     "'original_max_position_embeddings':32}}",
     "phimoe.rope.scaling.original_context_length", "32"},
    {"bailing_moe_v2",
     "{'score_function':'sigmoid','use_qk_norm':true," ROUTED "," GROUPS
     ",'num_shared_experts':2,'first_k_dense_replace':1}",
     "bailingmoe2.expert_shared_feed_forward_length", "48"},
    {"deepseek_v2", "{" LATENT "}", "deepseek2.attention.key_length", "12"},
    {"deepseek_v2",
     "{" LATENT ",'n_routed_experts':8,'num_experts_per_tok':2,"
     "'moe_intermediate_size':24,'n_shared_experts':1,'moe_layer_freq':1,"
     "'scoring_func':'softmax'," GROUPS ",'first_k_dense_replace':1}",
     "deepseek2.expert_gating_func", "1"},
    {"deepseek_v3",
     "{" LATENT ",'n_routed_experts':8,'num_experts_per_tok':2,"
     "'moe_intermediate_size':24,'n_shared_experts':1}",
     "deepseek2.expert_gating_func", "2"},
    {"deepseek_v3",
     "{" LATENT ",'rope_scaling':{'type':'yarn','factor':2,'mscale':1,"
     "'mscale_all_dim':1}}",
     "deepseek2.rope.scaling.yarn_log_multiplier", "0.1"},
    {"minicpm3", "{" LATENT ",'scale_emb':12,'scale_depth':1.4,'dim_model_base':256}",
     "minicpm3.attention.key_length", "8"},
    {"smallthinker",
     "{'norm_topk_prob':true,'moe_num_primary_experts':8,"
     "'moe_num_active_primary_experts':2,'moe_ffn_hidden_size':24,"
     "'moe_primary_router_apply_softmax':true,'sliding_window_size':16,"
     "'sliding_window_layout':[0,1,1,1],'rope_layout':[0,1,1,1]}",
     "smallthinker.attention.sliding_window", "16"},
    {"smallthinker",
     "{'moe_num_primary_experts':8,'moe_num_active_primary_experts':2,"
     "'moe_ffn_hidden_size':24,'sliding_window_layout':[0,0],'rope_layout':[1,1]}",
     "smallthinker.expert_gating_func", "2"},
    {"mistral", "{'sliding_window':16}", "llama.attention.sliding_window", "16"},
    {"mixtral", "{'sliding_window':16,'num_local_experts':8,'num_experts_per_tok':2}",
     "llama.expert_count", "8"},
    {"qwen2", "{'hidden_act':'silu','use_sliding_window':false}",
     "qwen2.feed_forward_length", "32"},
    {"qwen2_moe",
     "{'norm_topk_prob':false,'decoder_sparse_step':1," ROUTED
     ",'shared_expert_intermediate_size':40}",
     "qwen2moe.expert_shared_feed_forward_length", "40"},
    {"qwen3", "{'rms_norm_eps':1e-5}", "qwen3.attention.layer_norm_rms_epsilon",
     "1e-05"},
    {"qwen3_moe", "{'norm_topk_prob':true," ROUTED "}", "qwen3moe.expert_used_count",
     "2"},
    {"qwen2_vl",
     "{'use_sliding_window':false,'rope_scaling':{'mrope_section':[2,1,1]}}",
     "qwen2vl.rope.dimension_sections", "2 1 1 0"},
    {"qwen2_5_vl", "{'rms_norm_eps':1e-5}", "qwen2vl.rope.dimension_sections",
     "2 1 1 0"},
    {"qwen3_vl", "{'rope_parameters':{'mrope_section':[1,2,1]}}",
     "qwen3vl.rope.dimension_sections", "1 2 1 0"},
    {"qwen3_5", "{" DELTA ",'hidden_act':'silu'}", "qwen35.ssm.inner_size", "32"},
    {"qwen3_5_text",
     "{" DELTA ",'layer_types':['linear_attention',"
     "'linear_attention','linear_attention','full_attention']}",
     "qwen35.full_attention_interval", "4"},
    {"qwen3_5_moe",
     "{" DELTA "," ROUTED ",'norm_topk_prob':true,"
     "'shared_expert_intermediate_size':40}",
     "qwen35moe.expert_feed_forward_length", "24"},
    {"qwen3_next",
     "{" DELTA "," ROUTED ",'decoder_sparse_step':1,"
     "'shared_expert_intermediate_size':40}",
     "qwen3next.ssm.group_count", "2"},
    {"gemma", "{'hidden_activation':'gelu_pytorch_tanh','rms_norm_eps':1e-5}",
     "gemma.context_length", "64"},
    {"gemma2",
     "{'hidden_activation':'gelu_pytorch_tanh','query_pre_attn_scalar':16,"
     "'sliding_window':32,'attn_logit_softcapping':40,'final_logit_softcapping':20,"
     "'use_bidirectional_attention':false}",
     "gemma2.attention.scale", "0.25"},
    {"gemma3_text",
     "{'sliding_window_pattern':6,'rope_local_base_freq':20000,'sliding_window':32,"
     "'query_pre_attn_scalar':8}",
     "gemma3.rope.freq_base_swa", "20000"},
    {"gemma3n_text",
     "{'sliding_window':32,'num_kv_shared_layers':1,'final_logit_softcapping':20,"
     "'hidden_size_per_layer_input':4,'altup_num_inputs':4,'altup_active_idx':0,"
     "'activation_sparsity_pattern':[0,0,0.5,0],'intermediate_size':[8,8,8,16]}",
     "gemma3n.feed_forward_length", "8 8 8 16"},
    {"gemma3n", "{'num_hidden_layers':16,'num_kv_shared_layers':2}",
     "gemma3n.attention.sliding_window_pattern",
     "true true true true false true true true true false true true true true false "
     "false"},
    {"gemma4", "{" GEMMA4 "}", "gemma4.feed_forward_length", "32 32 32 64"},
    {"gemma4_text",
     "{'num_kv_shared_layers':0,'layer_types':['full_attention','sliding_attention',"
     "'sliding_attention','full_attention'],'rope_parameters':{'full_attention':{"
     "'rope_type':'proportional','partial_rotary_factor':0.25}}}",
     "gemma4.attention.sliding_window_pattern", "false true true false"},
    {"phi", "{'hidden_act':'gelu_new','qk_layernorm':false,'layer_norm_eps':1e-5}",
     "phi2.attention.layer_norm_epsilon", "1e-05"},
    {"phi3",
     "{'sliding_window':16,'original_max_position_embeddings':32,'hidden_act':"
     "'silu'}",
     "phi3.rope.scaling.original_context_length", "32"},
    {"phi3", "{'rms_norm_eps':1e-5}", "phi3.rope.scaling.original_context_length",
     "64"},
    {"stablelm", "{'rope_pct':0.5,'use_parallel_residual':true,'norm_eps':1e-5}",
     "stablelm.use_parallel_residual", "true"},
    {"stablelm", "{'layer_norm_eps':1e-6}", "stablelm.attention.layer_norm_epsilon",
     "1e-06"},
    {"glm", "{'rms_norm_eps':1e-5,'hidden_act':'silu'}", "chatglm.rope.dimension_count",
     "4"},
    {"glm4", "{'rms_norm_eps':1e-5}", "glm4.rope.dimension_count", "4"},
    {"chatglm",
     "{'rmsnorm':true,'original_rope':true,'num_layers':4,'seq_length':64,"
     "'kv_channels':8,'multi_query_group_num':2,'ffn_hidden_size':32,'rope_ratio':2,"
     "'layernorm_epsilon':1e-5}",
     "chatglm.attention.head_count_kv", "2"},
    {"lfm2",
     "{" LFM2 ",'block_ff_dim':96,'block_multiple_of':16,"
     "'block_ffn_dim_multiplier':1.5,'block_auto_adjust_ff_dim':true}",
     "lfm2.feed_forward_length", "96"},
    {"lfm2", "{" LFM2 ",'block_auto_adjust_ff_dim':false}", "lfm2.feed_forward_length",
     "32"},
    {"lfm2_moe",
     "{" LFM2 "," ROUTED ",'norm_topk_prob':true,'num_dense_layers':1,"
     "'routed_scaling_factor':2}",
     "lfm2moe.leading_dense_block_count", "1"},
    {"granitemoehybrid",
     "{" MAMBA "," SCALES ",'layer_types':['mamba','attention','mamba','mamba'],"
     "'position_embedding_type':'nope','normalization_function':'rmsnorm',"
     "'attention_bias':false,'rms_norm_eps':1e-5,'shared_intermediate_size':8,"
     "'num_local_experts':8,'num_experts_per_tok':2}",
     "granitehybrid.attention.head_count_kv", "0 2 0 0"},
    {"granitemoehybrid",
     "{" MAMBA ",'layer_types':['mamba','mamba','mamba','attention'],"
     "'shared_intermediate_size':8}",
     "granitehybrid.feed_forward_length", "8"},
    {"bert",
     "{'hidden_act':'gelu','position_embedding_type':'absolute',"
     "'layer_norm_eps':1e-5,'type_vocab_size':3}",
     "tokenizer.ggml.token_type_count", "3"},
    {"bert", "{'hidden_act':'gelu_new'}", "bert.attention.causal", "false"},
    {"roberta", "{'pad_token_id':1,'hidden_act':'gelu_pytorch_tanh'}",
     "bert.context_length", "62"},
    {"xlm-roberta", "{'type_vocab_size':1}", "bert.context_length", "62"},
    {"camembert", "{'pad_token_id':0}", "bert.context_length", "63"},
    {"nomic_bert",
     "{'activation_function':'swiglu','prenorm':false,'causal':false,"
     "'parallel_block':false,'rotary_emb_interleaved':false,'use_rms_norm':false,"
     "'rotary_emb_fraction':1,'n_layer':4,'n_embd':16,'n_head':4,"
     "'max_trained_positions':64,'n_inner':32,'rotary_emb_base':1000,"
     "'layer_norm_epsilon':1e-5,'type_vocab_size':2}",
     "nomic-bert.rope.freq_base", "1000"},
    {"bitnet", "{'attention_bias':false,'rms_norm_eps':1e-5}",
     "bitnet.embedding_length", "16"},
    {"gpt_oss",
     "{'attention_bias':true,'swiglu_limit':7,'num_local_experts':8,"
     "'num_experts_per_tok':2,'sliding_window':16,'layer_types':['sliding_attention',"
     "'full_attention','sliding_attention','full_attention']}",
     "gpt-oss.attention.sliding_window", "16"},
    {"gpt_oss",
     "{'num_local_experts':8,'num_experts_per_tok':2,"
     "'quantization_config':{'quant_method':'mxfp4'}}",
     "gpt-oss.attention.sliding_window", "128"},
    {"apertus", "{'attention_bias':false,'hidden_act':'xielu'}",
     "apertus.feed_forward_length", "32"},
    {"glm4_moe",
     "{'n_routed_experts':8,'num_experts_per_tok':2,'moe_intermediate_size':24,"
     "'n_shared_experts':2,'first_k_dense_replace':1," GROUPS "}",
     "glm4moe.expert_group_count", "2"},
    {"gpt2",
     "{'activation_function':'gelu_new','scale_attn_weights':true,"
     "'scale_attn_by_inverse_layer_idx':false,'n_layer':4,'n_embd':16,'n_head':4,"
     "'n_positions':64,'n_inner':null,'layer_norm_epsilon':1e-5}",
     "gpt2.feed_forward_length", "64"},
    {"gpt_neox",
     "{'hidden_act':'gelu','rotary_pct':0.5,'rotary_emb_base':1000,"
     "'use_parallel_residual':false,'layer_norm_eps':1e-5,'rope_theta':null}",
     "gptneox.rope.freq_base", "1000"},
    {"falcon",
     "{'alibi':false,'parallel_attn':true,'bias':false,'activation':'gelu',"
     "'new_decoder_architecture':true,'multi_query':true,'n_head_kv':2,"
     "'num_kv_heads':2,'ffn_hidden_size':32,'layer_norm_epsilon':1e-5}",
     "falcon.attention.head_count_kv", "2"},
    {"falcon", "{'n_layer':4,'n_head':4,'num_key_value_heads':null}",
     "falcon.attention.head_count_kv", "1"},
    {"falcon", "{'multi_query':false,'num_key_value_heads':null}",
     "falcon.attention.head_count_kv", "4"},
    {"internlm2", "{'bias':false,'rms_norm_eps':1e-5}", "internlm2.context_length",
     "64"},
    {"mamba2",
     "{'hidden_act':'silu','rms_norm':true,'num_heads':4,'n_groups':1,'state_size':16,"
     "'conv_kernel':4,'use_conv_bias':true,'use_bias':false,'layer_norm_epsilon':1e-5}",
     "mamba2.ssm.inner_size", "32"},
    {"falcon_h1",
     "{" MAMBA ",'attention_bias':false,'mlp_bias':false,'projectors_bias':false,"
     "'mamba_norm_before_gate':false,'embedding_multiplier':2,'lm_head_multiplier':3,"
     "'attention_in_multiplier':1,'attention_out_multiplier':1,'key_multiplier':1,"
     "'ssm_in_multiplier':1,'ssm_out_multiplier':1,'rms_norm_eps':1e-5,"
     "'mlp_multipliers':[1,2]}",
     "falcon-h1.ssm.state_size", "16"},
    {"smollm3", "{'tie_word_embeddings':false,'no_rope_layers':[1,1,1]}",
     "smollm3.context_length", "64"},
    {"mistral", "{'sliding_window':128}", "llama.attention.sliding_window", "(none)"},
    {"gemma2", "{'tie_word_embeddings':true,'rms_norm_eps':1e-5}",
     "gemma2.attn_logit_softcapping", "50"},
    {"gemma3_text", "{'rope_parameters':{'sliding_attention':{'rope_theta':20000}}}",
     "gemma3.rope.freq_base_swa", "20000"},
    {"gemma4", "{'tie_word_embeddings':true,'rms_norm_eps':1e-5}",
     "gemma4.final_logit_softcapping", "30"},
    {"minicpm3", "{" LATENT ",'tie_word_embeddings':true,'hidden_act':'silu'}",
     "minicpm3.attention.q_lora_rank", "8"},
    {"deepseek_v3", "{" LATENT ",'rope_parameters':{'mscale':1,'mscale_all_dim':1}}",
     "deepseek2.rope.scaling.yarn_log_multiplier", "0.1"},
    {"lfm2", "{'full_attn_idxs':[1,3]}", "lfm2.attention.head_count_kv", "0 2 0 2"},
    {"gpt2",
     "{'activation_function':'gelu_fast','tie_word_embeddings':false,'n_layer':4,"
     "'n_embd':16,'n_head':4,'n_inner':32}",
     "gpt2.feed_forward_length", "32"},
    {"gpt_neox", "{'hidden_act':'gelu_pytorch_tanh'}", "gptneox.rope.freq_base",
     "5000"},
    {"stablelm", "{'hidden_act':'silu'}", "stablelm.use_parallel_residual", "false"},
    {"granitemoehybrid", "{'hidden_act':'silu','full_attn_idxs':[]}",
     "granitehybrid.feed_forward_length", "1024"},
    {"falcon_h1",
     "{" MAMBA ",'hidden_act':'silu','tie_word_embeddings':true,"
     "'embedding_multiplier':2,'lm_head_multiplier':2}",
     "falcon-h1.ssm.inner_size", "32"},
    {"nemotron_h",
     "{'hybrid_override_pattern':'M-*-','mlp_hidden_act':'relu2','attention_bias':"
     "false,'mlp_bias':false,'attention_head_dim':8,'mamba_num_heads':4,"
     "'mamba_head_dim':8,'n_groups':1,'ssm_state_size':16,'conv_kernel':4,"
     "'use_conv_bias':true,'use_bias':false,'norm_eps':1e-5}",
     "nemotron_h.feed_forward_length", "0 32 0 32"},
    {"nemotron_h",
     "{'hybrid_override_pattern':'ME*E','layer_norm_epsilon':1e-5,'n_routed_experts':"
     "8,'num_experts_per_tok':2,'moe_intermediate_size':24,"
     "'moe_shared_expert_intermediate_size':16," GROUPS "}",
     "nemotron_h_moe.attention.head_count_kv", "0 0 2 0"},
};

/* A configuration of a type: its members take the place of common ones. */
static json_t *merged(const char *type, const char *members)
{
    json_t *file = json_quoted(common), *own = json_quoted(members);

    json_object_update(file, own);
    json_object_set_new(file, "model_type", json_string(type));
    json_decref(own);
    return file;
}

/* Reads the configuration in the folder; *g: its pairs, or NULL where a refusal is
 * looked for. */
static enum status load(const char *root, const json_t *file, struct gguf **g,
                        void **image, struct err *err)
{
    struct gguf_kvs kvs = {.n = 0};
    char *text = json_dumps(file, 0), path[80];
    struct hf_config c;

    tree_put(root, "/config.json", text);
    free(text);
    const enum status st = hf_config_load(&c, root, &kvs, err);

    snprintf(path, sizeof path, "%s/config.json", root);
    unlink(path); /* a file that is replaced would be written to the disk at once */
    hf_config_free(&c);
    if (st || !g)
        free(kvs.bytes.data);
    else
        *g = gguf_of_kvs(image, &kvs, err);
    return st;
}

static void kinds_are_read(void **state)
{
    char root[64];

    (void)state;
    tree_new(root);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct err err = ERR_INIT;
        json_t *file = merged(kinds[i].type, kinds[i].members);
        struct gguf *g;
        void *image;

        if (load(root, file, &g, &image, &err))
            fail_msg("%s, %s: %s", kinds[i].type, kinds[i].members, err.msg);
        assert_pair(g, kinds[i].key, kinds[i].value, kinds[i].members);
        gguf_close(g);
        free(image);
        json_decref(file);
    }
    tree_remove(root);
}

/* A list in place of any member that the kind reads is refused by the member's name,
 * and so is one that is needed where it is missing. */
static void wrong_members_are_named(void **state)
{
    char root[64];

    (void)state;
    tree_new(root);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        json_t *whole = merged(kinds[i].type, kinds[i].members),
               *own = json_quoted(kinds[i].members), *v;
        const char *key;

        json_object_foreach(whole, key, v)
        {
            const bool is_own = json_object_get(own, key) && !json_is_object(v);

            if (json_is_null(v) || json_is_array(v)) /* lists have rules of their own */
                continue;
            for (int missing = 0; missing < 2; missing++) {
                json_t *file = json_copy(whole);
                struct err err = ERR_INIT;

                json_object_set_new(file, key, missing ? json_null() : json_array());
                const enum status st = load(root, file, NULL, NULL, &err);

                if (is_own && !missing && !st)
                    fail_msg("%s: %s may be a list", kinds[i].type, key);
                /* where it is missing, another member may not fit to its default */
                if (st && (!missing || strstr(err.msg, "lacks")) &&
                    !strstr(err.msg, key))
                    fail_msg("%s, %s: %s", kinds[i].type, key, err.msg);
                json_decref(file);
            }
        }
        json_decref(whole);
        json_decref(own);
    }
    tree_remove(root);
}

/* ---- members that must fit each other -------------------------------------------- */

static const struct {
    const char *type, *members;
    enum status st;
    const char *message;
} refusals[] = {
    {"qwen3_5", "{" DELTA ",'layer_types':['full_attention']}", ST_UNSUPPORTED,
     "layer_types[0] is not linear_attention"},
    {"qwen3_5", "{" DELTA ",'layer_types':[1]}", ST_UNSUPPORTED, "layer_types[0] is"},
    {"qwen3_5",
     "{'linear_num_key_heads':2,'linear_num_value_heads':4,'linear_key_head_dim':8,"
     "'linear_value_head_dim':16}",
     ST_UNSUPPORTED, "linear_value_head_dim and linear_key_head_dim differ"},
    {"qwen3_5",
     "{'linear_num_key_heads':2,'linear_num_value_heads':3,'linear_key_head_dim':8,"
     "'linear_value_head_dim':8}",
     ST_INPUT, "3 value heads cannot share 2 key heads evenly"},
    {"qwen2_vl", "{'rope_scaling':{'mrope_section':[2,2]}}", ST_INPUT,
     "mrope_section is not three counts of 4 pairs together"},
    {"qwen2_vl", "{'rope_scaling':{'mrope_section':[2,1,-1]}}", ST_INPUT,
     "mrope_section is not three counts"},
    {"qwen3_moe", "{" ROUTED ",'mlp_only_layers':[1]}", ST_UNSUPPORTED,
     "mlp_only_layers names layers without experts"},
    {"qwen3_next", "{" DELTA "," ROUTED ",'mlp_only_layers':[1]}", ST_UNSUPPORTED,
     "mlp_only_layers names layers without experts"},
    {"qwen3_moe", "{'num_experts':8,'num_experts_per_tok':9,'moe_intermediate_size':1}",
     ST_INPUT, "num_experts_per_tok is 9, and whole numbers from 1 to 8"},
    {"smollm3", "{'no_rope_layers':[1,1,1,1]}", ST_UNSUPPORTED,
     "no_rope_layers lets all layers rotate"},
    {"smollm3", "{'no_rope_layers':[0,1,1,1]}", ST_UNSUPPORTED,
     "no_rope_layers is 0 in other layers than 3, 7 and so on"},
    {"olmoe", "{'clip_qkv':5}", ST_UNSUPPORTED, "clip_qkv is not supported"},
    {"smallthinker", "{'sliding_window_layout':[0,1,1,1],'rope_layout':[1,1,1,1]}",
     ST_UNSUPPORTED, "layers that rotate and layers with a window are not the same"},
    {"smallthinker", "{'sliding_window_layout':[1,1],'rope_layout':[0,1]}",
     ST_UNSUPPORTED, "layers that rotate and layers with a window are not the same"},
    {"smallthinker", "{'sliding_window_layout':[1,0]}", ST_UNSUPPORTED,
     "sliding_window_layout is 0 in other layers than 0, 4"},
    {"smallthinker", "{'rope_layout':[1,0]}", ST_UNSUPPORTED,
     "rope_layout is 0 in other layers than 0, 4"},
    {"deepseek_v2",
     "{" LATENT ",'n_routed_experts':8,'num_experts_per_tok':2,"
     "'moe_intermediate_size':24,'n_group':2,'topk_method':'group_limited_greedy'}",
     ST_UNSUPPORTED, "topk_method 'group_limited_greedy' with 2 groups"},
    {"deepseek_v2", "{" LATENT ",'n_routed_experts':8,'scoring_func':'top'}",
     ST_UNSUPPORTED, "scoring_func is 'top'"},
    {"deepseek_v3", "{" LATENT ",'rope_scaling':{'mscale':1,'mscale_all_dim':0.5}}",
     ST_UNSUPPORTED, "mscale is 1 and mscale_all_dim 0.5"},
    {"minicpm3", "{" LATENT ",'scale_emb':2}", ST_UNSUPPORTED, "scale_emb is 2; "},
    {"roberta", "{'max_position_embeddings':2}", ST_INPUT,
     "of 2 positions, max_position_embeddings, the first 2 are no text's"},
    {"bert", "{'hidden_act':'relu'}", ST_UNSUPPORTED, "hidden_act is 'relu'; "},
    {"granitemoehybrid",
     "{'layer_types':['mamba','mamba','mamba','mamba'],'mamba_n_heads':4096,"
     "'mamba_d_head':65536}",
     ST_INPUT, "4096 heads of 65536 are no model's"},
    {"granitemoehybrid", "{}", ST_INPUT, "has no layer_types"},
    {"lfm2", "{'layer_types':['conv',1,'conv','conv']}", ST_UNSUPPORTED,
     "layer_types[1] is neither attention nor conv"},
    {"falcon_h1", "{" MAMBA ",'tie_word_embeddings':true,'lm_head_multiplier':3}",
     ST_UNSUPPORTED, "the output is the embedding, and their multipliers differ"},
    {"nemotron_h", "{}", ST_UNSUPPORTED,
     "hybrid_override_pattern is not made of M, -, * and E"},
    {"nemotron_h", "{'hybrid_override_pattern':'MXM'}", ST_UNSUPPORTED,
     "hybrid_override_pattern is not made of M, -, * and E"},
    {"nemotron_h", "{'hybrid_override_pattern':'M-ME'}", ST_UNSUPPORTED,
     "hybrid_override_pattern has layers with and without experts"},
    {"nemotron_h", "{'hybrid_override_pattern':'M-*'}", ST_INPUT,
     "hybrid_override_pattern has 3 layers and num_hidden_layers is 4"},
    {"gpt_oss", "{'layer_types':['full_attention']}", ST_UNSUPPORTED,
     "layer_types[0] is not sliding_attention"},
    {"gemma3", "{'layer_types':['full_attention']}", ST_UNSUPPORTED,
     "layer_types[0] is not sliding_attention"},
    {"gemma3", "{'rope_parameters':{'sliding_attention':{'rope_theta':0}}}", ST_INPUT,
     "rope_theta is 0"},
    {"deepseek_v3", "{" LATENT ",'rope_scaling':{'mscale':-1}}", ST_INPUT,
     "mscale is -1"},
    {"deepseek_v3", "{" LATENT ",'rope_scaling':{'mscale_all_dim':-1}}", ST_INPUT,
     "mscale_all_dim is -1"},
    {"gemma3n", "{'num_kv_shared_layers':0,'intermediate_size':[8,8,8,99999999]}",
     ST_INPUT, "intermediate_size is neither a number nor a list"},
    {"gemma3n", "{'num_kv_shared_layers':0,'activation_sparsity_pattern':[0,0,0,-1]}",
     ST_INPUT, "activation_sparsity_pattern is no list of shares below 1"},
    {"gemma2", "{'layer_types':['full_attention']}", ST_UNSUPPORTED,
     "layer_types[0] is not sliding_attention"},
    {"gemma4", "{'num_kv_shared_layers':4}", ST_INPUT, "num_kv_shared_layers is 4"},
    {"gemma4", "{'layer_types':['x']}", ST_UNSUPPORTED,
     "layer_types[0] is neither sliding_attention nor full_attention"},
    {"gemma4", "{'layer_types':['full_attention']}", ST_UNSUPPORTED,
     "layer_types[1] is neither sliding_attention nor full_attention"},
    {"gemma3n", "{'num_kv_shared_layers':0,'activation_sparsity_pattern':[0,0,0,1]}",
     ST_INPUT, "activation_sparsity_pattern is no list of shares below 1"},
    {"gemma3n", "{'num_kv_shared_layers':0,'activation_sparsity_pattern':[0]}",
     ST_INPUT, "activation_sparsity_pattern is no list of shares below 1"},
    {"gemma3n", "{'num_kv_shared_layers':0,'intermediate_size':[8,8,8,0]}", ST_INPUT,
     "intermediate_size is neither a number nor a list"},
    {"gemma3n", "{'num_kv_shared_layers':0,'intermediate_size':[8]}", ST_INPUT,
     "intermediate_size is neither a number nor a list"},
};

static void members_must_fit(void **state)
{
    char root[64];

    (void)state;
    tree_new(root);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct err err = ERR_INIT;
        json_t *file = merged(refusals[i].type, refusals[i].members);

        assert_refused(load(root, file, NULL, NULL, &err), &err, refusals[i].st,
                       refusals[i].message, refusals[i].members);
        json_decref(file);
    }
    tree_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_read),
        cmocka_unit_test(wrong_members_are_named),
        cmocka_unit_test(members_must_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
