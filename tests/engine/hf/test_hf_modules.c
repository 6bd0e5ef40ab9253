/* SPDX-License-Identifier: MIT
 *
 * test_hf_modules.c - modules of sentence-transformers: pooling, and matrices behind it
 */
#include "tests/engine/hf/hf_folder.h"

static const char gemma[] =
    "{'model_type':'gemma3_text','use_bidirectional_attention':true,"
    "'num_hidden_layers':1,'hidden_size':4,'intermediate_size':8,'head_dim':4,"
    "'num_attention_heads':2,'num_key_value_heads':1,'max_position_embeddings':64}";
static const char bert[] =
    "{'model_type':'bert','num_hidden_layers':1,'hidden_size':4,'intermediate_size':8,"
    "'num_attention_heads':2,'max_position_embeddings':64}";

#define LIST               "/modules.json"
#define POOLING            "/1_Pooling/config.json"
#define DENSE_2            "/2_Dense/config.json"
#define DENSE_3            "/3_Dense/config.json"
#define MODULE(type, path) "{'type':'" type "','path':'" path "'}"
#define POOL               MODULE("sentence_transformers.models.Pooling", "1_Pooling")
#define DENSE(n)           MODULE("sentence_transformers.models.Dense", n "_Dense")
#define MATRIX(more)       "{'in_features':4,'out_features':2," more "}"
#define IDENTITY           "'activation_function':'torch.nn.modules.linear.Identity'"

/* A file without a text is a link to itself. */
struct folder {
    const char *config, *files[4][2];
};

/* What the folder's modules add to the pairs; *g NULL on failure. */
static enum status read_modules(const struct folder *f, struct gguf **g, void **image,
                                struct err *err)
{
    struct gguf_kvs kvs = {.n = 0};
    struct hf_config c;
    char root[64];
    enum status st;

    tree_new(root);
    folder_put(root, "/config.json", f->config);
    for (size_t i = 0; i < 4 && f->files[i][0]; i++) {
        const char *const name = f->files[i][0], *const text = f->files[i][1];
        char path[128];

        snprintf(path, sizeof path, "%s%s", root, name);
        if (text)
            folder_put(root, name, text);
        else
            assert_int_equal(symlink(name + 1, path), 0);
    }
    st = hf_config_load(&c, root, &kvs, err);
    assert_int_equal(st, ST_OK);
    st = hf_put_modules(&c, root, err);
    hf_config_free(&c);
    tree_remove(root);
    *g = NULL;
    if (st)
        free(kvs.bytes.data);
    else
        *g = gguf_of_kvs(image, &kvs, err);
    return st;
}

static void modules_become_pairs(void **state)
{
    static const struct {
        struct folder f;
        const char *key, *value;
    } cases[] = {
        {{bert, {{NULL}}}, "bert.pooling_type", "(none)"},
        {{bert, {{LIST, "[]"}}}, "bert.pooling_type", "(none)"},
        {{bert,
          {{LIST, "[" MODULE("x.Transformer",
                             "") "," POOL "," MODULE("Normalize", "2_Normalize") "]"},
           {POOLING,
            "{'pooling_mode_mean_tokens':true,'pooling_mode_cls_token':false}"}}},
         "bert.pooling_type",
         "1"},
        {{bert, {{LIST, "[" POOL "]"}, {POOLING, "{'pooling_mode_cls_token':true}"}}},
         "bert.pooling_type",
         "2"},
        {{bert, {{LIST, "[" POOL "]"}, {POOLING, "{'pooling_mode_lasttoken':true}"}}},
         "bert.pooling_type",
         "3"},
        {{gemma,
          {{LIST, "[" DENSE("2") "," DENSE("3") "]"},
           {DENSE_2, MATRIX("'bias':false," IDENTITY)},
           {DENSE_3, MATRIX(IDENTITY)}}},
         "gemma-embedding.dense_3_feat_in",
         "4"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct gguf *g;
        void *image;

        if (read_modules(&cases[i].f, &g, &image, &err))
            fail_msg("%s: %s", cases[i].f.files[0][1], err.msg);
        assert_pair(g, cases[i].key, cases[i].value, cases[i].value);
        gguf_close(g);
        free(image);
    }
}

static void what_is_not_computed_is_refused(void **state)
{
    static const struct {
        struct folder f;
        enum status st;
        const char *message;
    } cases[] = {
        {{bert, {{LIST, NULL}}}, ST_IO, "cannot find out whether there is"},
        {{bert, {{LIST "/x", ""}}}, ST_INPUT, "modules.json is a folder"},
        {{bert, {{LIST, "["}}}, ST_INPUT, "modules.json is no JSON"},
        {{bert, {{LIST, "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"}}},
         ST_INPUT,
         "modules.json is no list of up to 16 modules"},
        {{bert, {{LIST, "[1]"}}}, ST_UNSUPPORTED, "the module '' of a bert model"},
        {{bert, {{LIST, "[" MODULE("x.LSTM", "1_LSTM") "]"}}},
         ST_UNSUPPORTED,
         "the module '1_LSTM' of a bert model is not supported"},
        {{bert, {{LIST, "[" MODULE("x.Pooling", "2_Pooling") "]"}}},
         ST_UNSUPPORTED,
         "the module '2_Pooling'"},
        {{bert, {{LIST, "[{'type':'x.Pooling'}]"}}}, ST_UNSUPPORTED, "the module ''"},
        {{bert, {{LIST, "[" DENSE("2") "]"}}}, ST_UNSUPPORTED, "the module '2_Dense'"},
        {{gemma, {{LIST, "[" DENSE("3") "]"}}}, ST_UNSUPPORTED, "the module '3_Dense'"},
        {{gemma,
          {{LIST, "[" DENSE("2") "," DENSE("3") "," DENSE("4") "]"},
           {DENSE_2, MATRIX(IDENTITY)},
           {DENSE_3, MATRIX(IDENTITY)}}},
         ST_UNSUPPORTED,
         "the module '4_Dense'"},
        {{bert, {{LIST, "[" POOL "]"}}}, ST_IO, "1_Pooling/config.json"},
        {{bert, {{LIST, "[" POOL "]"}, {POOLING, "{}"}}},
         ST_UNSUPPORTED,
         "one of mean, cls and lasttoken must be the pooling"},
        {{bert,
          {{LIST, "[" POOL "]"},
           {POOLING,
            "{'pooling_mode_mean_tokens':true,'pooling_mode_cls_token':true}"}}},
         ST_UNSUPPORTED,
         "one of mean, cls and lasttoken must be the pooling"},
        {{bert, {{LIST, "[" POOL "]"}, {POOLING, "{'pooling_mode_max_tokens':true}"}}},
         ST_UNSUPPORTED,
         "one of mean, cls and lasttoken must be the pooling"},
        {{bert, {{LIST, "[" POOL "]"}, {POOLING, "{'pooling_mode_cls_token':1}"}}},
         ST_INPUT,
         "pooling_mode_cls_token is neither true nor false"},
        {{gemma, {{LIST, "[" DENSE("2") "]"}}}, ST_IO, "2_Dense/config.json"},
        {{gemma, {{LIST, "[" DENSE("2") "]"}, {DENSE_2, "{'in_features':0}"}}},
         ST_INPUT,
         "in_features is 0"},
        {{gemma, {{LIST, "[" DENSE("2") "]"}, {DENSE_2, "{'out_features':0}"}}},
         ST_INPUT,
         "out_features is 0"},
        {{gemma, {{LIST, "[" DENSE("2") "]"}, {DENSE_2, MATRIX("'bias':0")}}},
         ST_INPUT,
         "bias is neither true nor false"},
        {{gemma,
          {{LIST, "[" DENSE("2") "]"}, {DENSE_2, MATRIX("'bias':true," IDENTITY)}}},
         ST_UNSUPPORTED,
         "must have sizes and no bias, and the activation function Identity"},
        {{gemma, {{LIST, "[" DENSE("2") "]"}, {DENSE_2, MATRIX("'bias':false")}}},
         ST_UNSUPPORTED,
         "must have sizes and no bias"},
        {{gemma,
          {{LIST, "[" DENSE("2") "]"},
           {DENSE_2, MATRIX("'activation_function':'Tanh'")}}},
         ST_UNSUPPORTED,
         "must have sizes and no bias"},
        {{gemma,
          {{LIST, "[" DENSE("2") "]"}, {DENSE_2, "{'in_features':4," IDENTITY "}"}}},
         ST_UNSUPPORTED,
         "must have sizes and no bias"},
        {{gemma,
          {{LIST, "[" DENSE("2") "]"}, {DENSE_2, "{'out_features':4," IDENTITY "}"}}},
         ST_UNSUPPORTED,
         "must have sizes and no bias"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct gguf *g;
        void *image;

        assert_refused(read_modules(&cases[i].f, &g, &image, &err), &err, cases[i].st,
                       cases[i].message, cases[i].f.files[0][1]);
        assert_null(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_become_pairs),
        cmocka_unit_test(what_is_not_computed_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
