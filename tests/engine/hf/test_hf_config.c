/* SPDX-License-Identifier: MIT
 *
 * test_hf_config.c - config.json: the pairs that members become, and the sentences that
 * refuse them
 */
#include "tests/engine/hf/hf_folder.h"

/* A small Llama; members of a row replace its own, null removes one. */
static const char base[] =
    "{'model_type':'llama','num_hidden_layers':1,'hidden_size':8,'intermediate_size':8,"
    "'num_attention_heads':2,'max_position_embeddings':64}";

struct loaded {
    struct hf_config c;
    struct gguf *g; /* its pairs */
    void *image;
};

static enum status load(struct loaded *l, const char *members, struct err *err)
{
    struct gguf_kvs kvs = {.n = 0};
    json_t *file = json_quoted(base), *more = json_quoted(members);
    char root[64], *text;

    json_object_update(file, more);
    json_decref(more);
    tree_new(root);
    text = json_dumps(file, 0);
    tree_put(root, "/config.json", text);
    free(text);
    json_decref(file);
    const enum status st = hf_config_load(&l->c, root, &kvs, err);

    l->g = NULL;
    l->image = NULL;
    if (st) {
        free(kvs.bytes.data);
    } else {
        l->g = gguf_of_kvs(&l->image, &kvs, err);
        assert_non_null(l->g);
    }
    tree_remove(root);
    return st;
}

static void unload(struct loaded *l)
{
    hf_config_free(&l->c);
    gguf_close(l->g);
    free(l->image);
}

static void assert_vector(const struct hf_vector *v, const char *want, const char *what)
{
    char have[200] = "";

    for (size_t i = 0, used = 0; i < v->n && v->v; i++)
        used += (size_t)snprintf(have + used, sizeof have - used, "%s%g", i ? " " : "",
                                 (double)v->v[i]);
    if (strcmp(have, want) != 0)
        fail_msg("%s: factors '%s', not '%s'", what, have, want);
}

/* key: the pair's, or the number of a vector of factors. */
static const struct {
    const char *members, *key, *value;
} pairs[] = {
    {"{}", "general.architecture", "llama"},
    {"{}", "llama.attention.head_count_kv", "2"},
    {"{}", "llama.rope.dimension_count", "4"},
    {"{'head_dim':6,'partial_rotary_factor':0.5}", "llama.rope.dimension_count", "3"},
    {"{'rope_parameters':{'partial_rotary_factor':0.5}}", "llama.rope.dimension_count",
     "2"},
    {"{'hidden_act':'silu'}", "llama.embedding_length", "8"},
    {"{'architectures':['LlamaForCausalLM']}", "general.architecture", "llama"},
    {"{'architectures':['LlamaWithAHeadForTextsAndMore']}", "general.architecture",
     "llama"},
    {"{'architectures':['BitnetForCausalLM']}", "general.architecture", "bitnet"},
    {"{'model_type':'llava','text_config':{'model_type':'llama','num_hidden_layers':1,"
     "'hidden_size':16,'intermediate_size':8,'num_attention_heads':2,"
     "'max_position_embeddings':64}}",
     "llama.embedding_length", "16"},
    {"{'model_type':'gemma3','head_dim':8,'num_key_value_heads':1}",
     "general.architecture", "gemma3"},
    {"{'model_type':'gemma3','head_dim':8,'use_bidirectional_attention':true}",
     "general.architecture", "gemma-embedding"},
    {"{'model_type':'lfm2','layer_types':['conv']}", "lfm2.attention.head_count_kv",
     "0"},
    {"{'model_type':'lfm2','full_attn_idxs':[0]}", "lfm2.attention.head_count_kv", "2"},
    {"{'rope_theta':500}", "llama.rope.freq_base", "500"},
    {"{'rope_parameters':{'rope_theta':600}}", "llama.rope.freq_base", "600"},
    {"{'rope_parameters':{'full_attention':{'rope_theta':700},'rope_theta':600}}",
     "llama.rope.freq_base", "700"},
    {"{}", "llama.rope.freq_base", "10000"},
    /* the base of Hunyuan's dynamic scaling */
    {"{'rope_scaling':{'type':'dynamic','alpha':2}}", "llama.rope.freq_base", "40000"},
    {"{'rope_scaling':{'type':'default','alpha':2}}", "llama.rope.freq_base", "10000"},
    {"{'rope_scaling':{'alpha':2}}", "llama.rope.freq_base", "10000"},
    {"{'head_dim':2,'rope_scaling':{'type':'dynamic','alpha':2}}",
     "llama.rope.freq_base", "10000"},
    {"{'rope_scaling':{'rope_type':'default'}}", "llama.rope.scaling.type", "(none)"},
    {"{'rope_scaling':{'rope_type':'mrope'}}", "llama.rope.scaling.type", "(none)"},
    {"{'rope_scaling':{'rope_type':'dynamic','factor':2}}", "llama.rope.scaling.type",
     "(none)"},
    {"{'rope_scaling':{'type':'linear','factor':4}}", "llama.rope.scaling.type",
     "linear"},
    {"{'rope_scaling':{'type':'linear','factor':4}}", "llama.rope.scaling.factor", "4"},
    /* pairs turn 64 and 0.64 times in 2 pi positions */
    {"{'rope_scaling':{'rope_type':'llama3','factor':8}}", "0", "1 8"},
    {"{'rope_scaling':{'rope_type':'proportional','partial_rotary_factor':0.5}}", "0",
     "1 1e+30"},
    {"{'rope_scaling':{'type':'yarn','factor':4}}", "llama.rope.scaling.type", "yarn"},
    {"{'rope_scaling':{'type':'yarn','factor':4}}", "llama.rope.scaling.factor", "4"},
    {"{'rope_scaling':{'type':'yarn','factor':4}}",
     "llama.rope.scaling.original_context_length", "64"},
    {"{'original_max_position_embeddings':32,'rope_scaling':{'type':'yarn'}}",
     "llama.rope.scaling.original_context_length", "32"},
    {"{'original_max_position_embeddings':32,'rope_scaling':{'type':'yarn',"
     "'original_max_position_embeddings':16}}",
     "llama.rope.scaling.original_context_length", "16"},
    {"{'rope_scaling':{'type':'yarn','beta_fast':30}}",
     "llama.rope.scaling.yarn_beta_fast", "30"},
    {"{'rope_scaling':{'type':'yarn','beta_slow':2}}",
     "llama.rope.scaling.yarn_beta_slow", "2"},
    {"{'rope_scaling':{'type':'yarn'}}", "llama.rope.scaling.yarn_truncate", "(none)"},
    {"{'rope_scaling':{'type':'yarn','truncate':false}}",
     "llama.rope.scaling.yarn_truncate", "false"},
    /* e^10 times as long: the paper's factor is 2 */
    {"{'rope_scaling':{'type':'yarn','factor':22026.465794806718}}",
     "llama.rope.scaling.attn_factor", "1"},
    {"{'rope_scaling':{'type':'yarn','factor':22026.465794806718,'attention_factor':"
     "5}}",
     "llama.rope.scaling.attn_factor", "2.5"},
    {"{'rope_scaling':{'type':'yarn','factor':22026.465794806718,'mscale':2,"
     "'mscale_all_dim':1}}",
     "llama.rope.scaling.attn_factor", "0.75"},
    {"{'rope_scaling':{'type':'yarn','factor':22026.465794806718,'mscale':2}}",
     "llama.rope.scaling.attn_factor", "1"},
    {"{'rope_scaling':{'type':'yarn','factor':1}}", "llama.rope.scaling.attn_factor",
     "1"},
    {"{'rope_scaling':{'type':'longrope','long_factor':[1,2],'short_factor':[1,1.5]}}",
     "0", "1 2"},
    {"{'rope_scaling':{'type':'su','long_factor':[1,2],'short_factor':[1,1.5]}}", "1",
     "1 1.5"},
    {"{'rope_scaling':{'type':'longrope','long_factor':[1,2],'short_factor':[1,1]}}",
     "llama.rope.scaling.attn_factor", "1"},
    /* sqrt(1 + log 4 / log 16) */
    {"{'rope_scaling':{'type':'longrope','long_factor':[1,2],'short_factor':[1,1],"
     "'original_max_position_embeddings':16}}",
     "llama.rope.scaling.attn_factor", "1.22474"},
    {"{'rope_scaling':{'type':'longrope','long_factor':[1,2],'short_factor':[1,1],"
     "'original_max_position_embeddings':1}}",
     "llama.rope.scaling.attn_factor", "1"},
    {"{'rope_scaling':{'type':'longrope','long_factor':[1,2],'short_factor':[1,1],"
     "'attention_factor':3}}",
     "llama.rope.scaling.attn_factor", "3"},
};

static void members_become_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct err err = ERR_INIT;
        struct loaded l;

        if (load(&l, pairs[i].members, &err))
            fail_msg("%s: %s", pairs[i].members, err.msg);
        if (strlen(pairs[i].key) == 1)
            assert_vector(&l.c.vectors[pairs[i].key[0] - '0'], pairs[i].value,
                          pairs[i].members);
        else
            assert_pair(l.g, pairs[i].key, pairs[i].value, pairs[i].members);
        unload(&l);
    }
}

static const struct {
    const char *members;
    enum status st;
    const char *message;
} refusals[] = {
    {"{'model_type':null}", ST_INPUT, "has no model_type; is it a language model's?"},
    {"{'model_type':1}", ST_INPUT, "has no model_type"},
    {"{'model_type':'warp'}", ST_UNSUPPORTED,
     "model_type 'warp' is not supported; supported are: llama, smollm3, "},
    {"{'model_type':'warp'}", ST_UNSUPPORTED, ", nemotron_h, qwen3_next"},
    {"{'model_type':'llava','text_config':{'model_type':'warp'}}", ST_UNSUPPORTED,
     "model_type 'llava' is not supported"},
    {"{'model_type':'bitnet','architectures':['BitNetForCausalLM']}", ST_UNSUPPORTED,
     "architectures names BitNetForCausalLM"},
    {"{'architectures':['LlamaForSequenceClassification']}", ST_UNSUPPORTED,
     "LlamaForSequenceClassification scores texts"},
    {"{'quantization_config':{}}", ST_UNSUPPORTED,
     "quantised already (quantization_config: unknown)"},
    {"{'quantization_config':{'quant_method':'gptq'}}", ST_UNSUPPORTED,
     "quantised already (quantization_config: gptq)"},
    {"{'quantization_config':{'quant_method':'mxfp4'}}", ST_UNSUPPORTED,
     "quantised already (quantization_config: mxfp4)"},
    {"{'tie_word_embeddings':1}", ST_INPUT,
     "tie_word_embeddings is neither true nor false"},
    {"{'hidden_act':'gelu'}", ST_UNSUPPORTED, "hidden_act is 'gelu'; "},
    {"{'hidden_act':1}", ST_UNSUPPORTED, "hidden_act is 'no text'"},
    {"{'model_type':'qwen3','use_sliding_window':true}", ST_UNSUPPORTED,
     "use_sliding_window is true; "},
    {"{'model_type':'chatglm','rmsnorm':false}", ST_UNSUPPORTED, "rmsnorm is false; "},
    {"{'model_type':'chatglm','rmsnorm':1}", ST_INPUT,
     "rmsnorm is neither true nor false"},
    {"{'num_hidden_layers':null}", ST_INPUT, "lacks num_hidden_layers"},
    {"{'num_hidden_layers':0}", ST_INPUT,
     "num_hidden_layers is 0, and whole numbers from 1 to 4096 are possible"},
    {"{'num_hidden_layers':4097}", ST_INPUT, "num_hidden_layers is 4097"},
    {"{'hidden_size':0}", ST_INPUT, "hidden_size is 0"},
    {"{'hidden_size':1.5}", ST_INPUT, "hidden_size is 1.5"},
    {"{'num_attention_heads':0}", ST_INPUT, "num_attention_heads is 0"},
    {"{'max_position_embeddings':null}", ST_INPUT, "lacks max_position_embeddings"},
    {"{'num_key_value_heads':-1}", ST_INPUT, "num_key_value_heads is -1"},
    {"{'head_dim':65537}", ST_INPUT, "head_dim is 65537"},
    {"{'partial_rotary_factor':2}", ST_INPUT,
     "partial_rotary_factor is 2, and numbers from 0.001 to 1 are possible"},
    {"{'rope_parameters':{'partial_rotary_factor':2}}", ST_INPUT,
     "partial_rotary_factor is 2"},
    {"{'intermediate_size':null}", ST_INPUT, "lacks intermediate_size"},
    {"{'rms_norm_eps':2}", ST_INPUT, "rms_norm_eps is 2"},
    {"{'model_type':'lfm2','layer_types':['mamba']}", ST_UNSUPPORTED,
     "layer_types[0] is neither attention nor conv"},
    {"{'model_type':'lfm2','layer_types':['conv'],'hidden_size':0}", ST_INPUT,
     "hidden_size is 0"},
    {"{'rope_theta':0}", ST_INPUT, "rope_theta is 0"},
    {"{'rope_scaling':[]}", ST_INPUT, "rope_scaling is not an object"},
    {"{'rope_parameters':{'rope_theta':'big'}}", ST_INPUT, "rope_theta is \"big\""},
    {"{'rope_scaling':{'factor':0}}", ST_INPUT, "factor is 0"},
    {"{'original_max_position_embeddings':0}", ST_INPUT,
     "original_max_position_embeddings is 0"},
    {"{'rope_scaling':{'original_max_position_embeddings':0}}", ST_INPUT,
     "original_max_position_embeddings is 0"},
    {"{'rope_scaling':{'alpha':0}}", ST_INPUT, "alpha is 0"},
    {"{'rope_scaling':{'type':'warp'}}", ST_UNSUPPORTED,
     "positions are scaled by 'warp'; supported are: default, linear"},
    {"{'rope_scaling':{'type':'llama3','low_freq_factor':0}}", ST_INPUT,
     "low_freq_factor is 0"},
    {"{'rope_scaling':{'type':'llama3','high_freq_factor':0}}", ST_INPUT,
     "high_freq_factor is 0"},
    {"{'rope_scaling':{'type':'llama3','low_freq_factor':4}}", ST_INPUT,
     "high_freq_factor 4 is not above low_freq_factor 4"},
    {"{'rope_scaling':{'type':'proportional','partial_rotary_factor':2}}", ST_INPUT,
     "partial_rotary_factor is 2"},
    {"{'rope_scaling':{'type':'yarn','truncate':0}}", ST_INPUT,
     "truncate is neither true nor false"},
    {"{'rope_scaling':{'type':'yarn','attention_factor':0}}", ST_INPUT,
     "attention_factor is 0"},
    {"{'rope_scaling':{'type':'yarn','mscale':-1}}", ST_INPUT, "mscale is -1"},
    {"{'rope_scaling':{'type':'yarn','mscale_all_dim':-1}}", ST_INPUT,
     "mscale_all_dim is -1"},
    {"{'rope_scaling':{'type':'yarn','beta_fast':0}}", ST_INPUT, "beta_fast is 0"},
    {"{'rope_scaling':{'type':'yarn','beta_slow':0}}", ST_INPUT, "beta_slow is 0"},
    {"{'rope_scaling':{'type':'longrope'}}", ST_INPUT,
     "long_factor has 0 factors, and 2 pairs of a head are rotated"},
    {"{'rope_scaling':{'type':'longrope','long_factor':[1,0]}}", ST_INPUT,
     "factor 1 of long_factor is 0"},
    {"{'rope_scaling':{'type':'longrope','long_factor':[1,1e9]}}", ST_INPUT,
     "factor 1 of long_factor is 1e+09"},
    {"{'rope_scaling':{'type':'longrope','long_factor':[1,1],'short_factor':[1]}}",
     ST_INPUT, "short_factor has 1 factors"},
    {"{'rope_scaling':{'type':'longrope','attention_factor':0}}", ST_INPUT,
     "attention_factor is 0"},
};

static void what_cannot_be_computed_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct err err = ERR_INIT;
        struct loaded l;
        const enum status st = load(&l, refusals[i].members, &err);

        assert_refused(st, &err, refusals[i].st, refusals[i].message,
                       refusals[i].members);
        unload(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_become_pairs),
        cmocka_unit_test(what_cannot_be_computed_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
