/* SPDX-License-Identifier: MIT
 *
 * test_hf_folder.c - which folders are models, which tensor is which, and which of its
 * rows is where
 */
#include "tests/engine/hf/hf_folder.h"

#include "engine/hf/hf_tensors_impl.h"

static const char config[] =
    "{'model_type':'llama','num_hidden_layers':1,'hidden_size':4,'intermediate_size':8,"
    "'num_attention_heads':2,'max_position_embeddings':64}";

static void names_of_folders(void **state)
{
    static const struct {
        const char *dir, *name;
    } cases[] = {
        {"/models/llama", "llama"},
        {"models/llama//", "llama"},
        {"llama", "llama"},
        {"/", ""},
        {"/hub/models--org--name/snapshots/0123", "name"},
        {"models--org--my-model/snapshots/0123/", "my-model"},
        {"models--name/snapshots/0123", "name"},
        {"/mine/snapshots/0123", "0123"},
        {"/my-own-folder/snapshots/0123", "0123"},
        {"/models--org--name/snapshot-/0123", "0123"},
        {"/models--org--name/other/0123", "0123"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t len;
        const char *name = hf_folder_name(cases[i].dir, &len);

        if (len != strlen(cases[i].name) || memcmp(name, cases[i].name, len) != 0)
            fail_msg("%s: '%.*s'", cases[i].dir, (int)len, name);
    }
}

static void what_is_no_model_is_named(void **state)
{
    static const struct {
        const char *file, *text, *message;
    } cases[] = {
        {"/notes.txt", "", "is a directory without a config.json"},
        {"/adapter_config.json", "{}", "holds an adapter (adapter_config.json)"},
        {"/snapshots/0123/x", "", "is a cache of the Hub; the model's folder is one"},
        {"/refs/main", "0123abcd\n", "/snapshots/0123abcd"},
        {"/model.safetensors", "", "is a directory without a config.json"},
    };
    char root[64], file[80];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct gguf *g;

        tree_new(root);
        tree_put(root, cases[i].file, cases[i].text);
        if (!strncmp(cases[i].file, "/refs", 5))
            tree_mkdir(root, "/snapshots");
        assert_refused(hf_open(&g, root, &err), &err, ST_USAGE, cases[i].message,
                       cases[i].file);
        assert_true(hf_is_folder(root));
        snprintf(file, sizeof file, "%s%s", root, cases[i].file);
        assert_false(hf_is_folder(file));
        tree_remove(root);
        assert_false(hf_is_folder(root));
    }
}

/* A link to itself is not a folder without a model. */
static void a_config_that_cannot_be_looked_up(void **state)
{
    char root[64], file[80];
    struct err err = ERR_INIT;
    struct gguf *g;

    (void)state;
    tree_new(root);
    snprintf(file, sizeof file, "%s/config.json", root);
    assert_int_equal(symlink("config.json", file), 0);
    assert_refused(hf_check_folder(root, &err), &err, ST_IO, "cannot find out", file);
    err_clear(&err);
    assert_refused(hf_open(&g, root, &err), &err, ST_IO, "cannot find out", file);
    tree_remove(root);
}

/* ---- a model's parts ------------------------------------------------------------- */

static const struct folder_tensor embedding = {"model.embed_tokens.weight", "[6,4]"};

/* A folder with the files, and two with tensors. */
struct folder {
    const char *files[4][2];
    struct folder_tensor tensors[2], dense; /* names NULL: none */
};

static enum status open_folder(struct gguf **g, const struct folder *f, struct err *err)
{
    char root[64];
    size_t n = 0;

    tree_new(root);
    folder_put(root, "/config.json", config);
    for (size_t i = 0; i < 4 && f->files[i][0]; i++)
        folder_put(root, f->files[i][0], f->files[i][1]);
    while (n < 2 && f->tensors[n].name)
        n++;
    if (n)
        folder_put_tensors(root, "/model.safetensors", f->tensors, n);
    if (f->dense.name)
        folder_put_tensors(root, "/2_Dense/model.safetensors", &f->dense, 1);
    const enum status st = hf_open(g, root, err);

    tree_remove(root);
    return st;
}

#define GEMMA                                                                   \
    "{'model_type':'gemma3_text','use_bidirectional_attention':true,"           \
    "'num_hidden_layers':1,'hidden_size':4,'intermediate_size':8,'head_dim':4," \
    "'num_attention_heads':2,'num_key_value_heads':1,'max_position_embeddings':64}"
#define MODULES "[{'type':'x.models.Dense','path':'2_Dense'}]"
#define DENSE                                                               \
    "{'in_features':4,'out_features':2,'bias':false,'activation_function':" \
    "'torch.nn.modules.linear.Identity'}"

static void folders_are_opened(void **state)
{
    const struct folder whole = {.tensors = {embedding}};
    const struct folder dense = {.files = {{"/config.json", GEMMA},
                                           {"/modules.json", MODULES},
                                           {"/2_Dense/config.json", DENSE}},
                                 .tensors = {embedding},
                                 .dense = {"linear.weight", "[2,4]"}};
    struct err err = ERR_INIT;
    struct gguf *g;
    float row[4];

    (void)state;
    if (open_folder(&g, &whole, &err))
        fail_msg("%s", err.msg);
    assert_true(gguf_is_assembled(g));
    assert_pair(g, "llama.vocab_size", "6", "a whole folder");
    assert_pair(g, "llama.block_count", "1", "a whole folder");
    assert_int_equal(gguf_n_tensors(g), 1);
    assert_int_equal(gguf_read_rows(g, gguf_tensor_find(g, "token_embd.weight"), 5, 1,
                                    false, row, &err),
                     ST_OK);
    assert_float_equal(row[3], 23.0, 0.0);
    gguf_close(g);

    if (open_folder(&g, &dense, &err))
        fail_msg("%s", err.msg);
    assert_pair(g, "gemma-embedding.dense_2_feat_out", "2",
                "a matrix behind a pooling");
    const struct gguf_tensor *t = gguf_tensor_find(g, "dense_2.weight");

    assert_non_null(t);
    assert_int_equal(t->ne[0], 4);
    assert_int_equal(gguf_read_rows(g, t, 1, 1, false, row, &err), ST_OK);
    assert_float_equal(row[0], 4.0, 0.0);
    gguf_close(g);
}

static void parts_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        struct folder f;
        enum status st;
        const char *message;
    } cases[] = {
        {{.files = {{"/config.json", "{'model_type':'llama'}"}}},
         ST_INPUT,
         "lacks num_hidden_layers"},
        {{.files = {{NULL}}},
         ST_INPUT,
         "has neither model.safetensors nor model.safetensors.index.json"},
        {{.files = {{"/pytorch_model.bin", ""}}},
         ST_INPUT,
         "has weights in pytorch_model.bin, a format that runs code"},
        {{.files = {{"/pytorch_model.bin.index.json", "{}"}}},
         ST_INPUT,
         "has weights in pytorch_model.bin"},
        {{.files = {{"/modules.json", "{}"}}},
         ST_INPUT,
         "modules.json is no list of up to 16 modules"},
        {{.files = {{"/tokenizer.json", "{'model':{}}"}},
          .tensors = {{"model.embed_tokens.weight", "[6,4]"}}},
         ST_UNSUPPORTED,
         "a tokenizer of the type '(none)' is not supported"},
        {{.tensors = {{"model.other.weight", "[6,4]"}}},
         ST_UNSUPPORTED,
         "model.other.weight"},
        {{.files = {{"/config.json", GEMMA},
                    {"/modules.json", MODULES},
                    {"/2_Dense/config.json", DENSE}},
          .tensors = {{"model.embed_tokens.weight", "[6,4]"}}},
         ST_IO,
         "cannot open "},
        {{.files = {{"/config.json",
                     "{'model_type':'qwen3_5','num_hidden_layers':1,'hidden_size':4,"
                     "'intermediate_size':8,'head_dim':8,'num_attention_heads':2,"
                     "'max_position_embeddings':64,'linear_num_key_heads':1,"
                     "'linear_num_value_heads':1,'linear_key_head_dim':2,"
                     "'linear_value_head_dim':2}"}},
          .tensors = {{"model.layers.17.x", "[4]"}}},
         ST_INPUT,
         "has 1 layers, behind which at most 16 predict further tokens; the tensor "
         "'model.layers.17.x' is of none of them"},
        {{.files = {{"/config.json",
                     "{'model_type':'apertus','num_hidden_layers':1,'hidden_size':4,"
                     "'intermediate_size':8,'num_attention_heads':2,'hidden_act':"
                     "'xielu','max_position_embeddings':64}"}},
          .tensors = {{"model.embed_tokens.weight", "[6,4]"}}},
         ST_INPUT,
         "layer 0 has no mlp.act_fn.alpha_p"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct gguf *g;

        assert_refused(open_folder(&g, &cases[i].f, &err), &err, cases[i].st,
                       cases[i].message, cases[i].message);
    }
}

/* ---- names of tensors ------------------------------------------------------------ */

static void tensors_have_one_name(void **state)
{
    static const struct {
        const char *name, *plain;
    } cases[] = {
        {"bert.embeddings.x", "embeddings.x"},
        {"roberta.encoder.x", "encoder.x"},
        {"layers.0.x", "model.layers.0.x"},
        {"embed_tokens.weight", "model.embed_tokens.weight"},
        {"norm.weight", "model.norm.weight"},
        {"language_model.model.layers.1.x", "model.layers.1.x"},
        {"model.language_model.norm.weight", "model.norm.weight"},
        {"transformer.h.0.ln_1.weight", "h.0.ln_1.weight"},
        {"transformer.wte.weight", "wte.weight"},
        {"transformer.ln_f.bias", "ln_f.bias"},
        {"transformer.encoder.x", "transformer.encoder.x"},
        {"language_model.lm_head.weight", "lm_head.weight"},
        {"lm_head.weight", "lm_head.weight"},
    };
    char buf[128];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(hf_plain_name(cases[i].name, buf, sizeof buf),
                            cases[i].plain);
}

static void rows_of_lists_are_found(void **state)
{
    static const struct {
        const char *name;
        int nth;
        const char *gguf; /* NULL: none */
        unsigned part;
    } cases[] = {
        {"model.layers.3.self_attn.q_proj.weight", 0, "blk.3.attn_q.weight", 0},
        {"model.layers.3.self_attn.q_proj.weight", 1, NULL, 0},
        {"model.layers.12345.self_attn.q_proj.weight", 0, "blk.12345.attn_q.weight", 0},
        {"model.layers.123456.self_attn.q_proj.weight", 0, NULL, 0},
        {"model.layers.03.self_attn.q_proj.weight", 0, NULL, 0},
        {"model.layers.0.self_attn.q_proj.weight", 0, "blk.0.attn_q.weight", 0},
        {"model.layers.x.self_attn.q_proj.weight", 0, NULL, 0},
        {"model.layers.3.self_attn.q_proj.weights", 0, NULL, 0},
        {"model.layers.3.self_attn.q_proj", 0, NULL, 0},
        {"vision_tower.a.b", 0, "", 0},
        {"model.multi_modal_projector.x", 1, NULL, 0}, /* the last of its list */
        {"model.norm.weight", 0, "output_norm.weight", 0},
        {"model.layers.2.block_sparse_moe.experts.5.w1.weight", 0,
         "blk.2.ffn_gate_exps.weight", 5},
        {"model.layers.2.block_sparse_moe.experts.05.w1.weight", 0, NULL, 0},
        {"model.layers.1.mlp.experts.gate_up_proj_blocks", 0,
         "blk.1.ffn_gate_exps.weight", 0},
        {"model.layers.1.mlp.experts.gate_up_proj_blocks", 1,
         "blk.1.ffn_up_exps.weight", 0},
        {"model.layers.1.mlp.experts.gate_up_proj_blocks", 2, NULL, 0},
        {"model.layers.1.mlp.experts.gate_up_proj_scales", 0,
         "blk.1.ffn_gate_exps.weight", 1},
        {"model.layers.1.mlp.experts.gate_up_proj_scales", 1,
         "blk.1.ffn_up_exps.weight", 1},
        {"model.layers.1.mlp.experts.down_proj_blocks", 0, "blk.1.ffn_down_exps.weight",
         0},
        {"model.layers.1.mlp.experts.down_proj_scales", 0, "blk.1.ffn_down_exps.weight",
         1},
    };
    static const struct hf_name *const lists[] = {hf_names_mixtral, hf_names_gpt_oss,
                                                  hf_names_common, NULL};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[128] = "";
        unsigned part;
        const struct hf_name *n =
            hf_name_find(lists, cases[i].name, cases[i].nth, out, sizeof out, &part);

        if (!n != !cases[i].gguf ||
            (n && (strcmp(out, cases[i].gguf) || part != cases[i].part)))
            fail_msg("%s: '%s', part %u", cases[i].name, n ? out : "(none)", part);
    }
}

/* ---- rows of several matrices in one --------------------------------------------- */

/* Two heads of keys unless a row has others. */
static const struct {
    enum hf_how how;
    int n_dims;
    uint64_t ne[3];
    bool flat;
    int n_heads, n_kv_heads, head_dim;
    const char *rows; /* of the folder, in the order of the GGUF file; NULL: refused */
} layouts[] = {
    {HF_AS_IS, 2, {8, 3, 1}, false, 4, 2, 2, ""},
    {HF_QKV, 2, {8, 16, 1}, false, 4, 2, 2, "0 1 2 3 8 9 10 11 4 5 12 13 6 7 14 15"},
    {HF_QKV, 1, {16, 1, 1}, true, 4, 2, 2, "0 1 2 3 8 9 10 11 4 5 12 13 6 7 14 15"},
    {HF_QKV, 2, {8, 15, 1}, false, 4, 2, 2, NULL},
    {HF_QKV, 2, {8, 16, 1}, false, 5, 2, 2, NULL},
    {HF_QKV, 2, {8, 16, 1}, false, 4, 2, 1, NULL},
    {HF_GROUP_Q, 2, {8, 16, 1}, false, 4, 2, 2, "0 1 2 3 8 9 10 11"},
    {HF_GROUP_K, 2, {8, 16, 1}, false, 4, 2, 2, "4 5 12 13"},
    {HF_GROUP_V, 2, {8, 16, 1}, false, 4, 2, 2, "6 7 14 15"},
    {HF_POSITIONS, 2, {4, 6, 1}, false, 4, 2, 2, "2 3 4 5"},
    {HF_POSITIONS, 2, {4, 2, 1}, false, 4, 2, 2, NULL},
    {HF_DELTA_QKV, 2, {4, 8, 1}, false, 4, 2, 2, "0 4 1 5 2 6"},
    {HF_DELTA_Z, 2, {4, 8, 1}, false, 4, 2, 2, "3 7"},
    {HF_DELTA_Z, 2, {4, 9, 1}, false, 4, 2, 2, NULL},
    {HF_EVEN, 2, {4, 6, 1}, false, 4, 2, 2, "0 2 4"},
    {HF_ODD, 2, {4, 6, 1}, false, 4, 2, 2, "1 3 5"},
    {HF_MX_EVEN, 3, {4, 2, 2}, false, 4, 2, 2, "0 2"},
    {HF_MX_ODD, 3, {4, 2, 2}, false, 4, 2, 2, "1 3"},
    {HF_ODD, 2, {4, 5, 1}, false, 4, 2, 2, NULL},
    {HF_EVEN, 2, {4, 2, 1}, true, 4, 2, 2, "0 2 4 6"}, /* biases of two experts */
    {HF_EVEN, 2, {3, 2, 1}, true, 4, 2, 2, NULL},
    {HF_BY_GROUP, 2, {4, 2, 1}, true, 4, 2, 2, ""},
};

static void rows_of_groups_are_parted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const struct hf_config c = {.n_heads = layouts[i].n_heads,
                                    .n_kv_heads = layouts[i].n_kv_heads,
                                    .head_dim = layouts[i].head_dim,
                                    .delta_k_heads = 2,
                                    .delta_v_heads = 2,
                                    .delta_dim = 1,
                                    .first_position = 2};
        struct hf_entry e = {
            .name = "blk.0.x",
            .how = layouts[i].how,
            .n_dims = layouts[i].n_dims,
            .ne = {layouts[i].ne[0], layouts[i].ne[1], layouts[i].ne[2], 1},
            .flat = layouts[i].flat};
        struct err err = ERR_INIT;
        const enum status st = hf_layout(&e, &c, "model", &err);
        char rows[200] = "";
        uint64_t n = 0;

        if (!layouts[i].rows) {
            assert_refused(st, &err, ST_INPUT,
                           "which groups of heads or pairs of rows cannot share",
                           "a layout");
            continue;
        }
        assert_int_equal(st, ST_OK);
        for (int k = 0; k < e.fields.n; k++)
            n += e.fields.n_groups * e.fields.field[k].n;
        for (uint64_t r = 0, used = 0; r < n; r++)
            used += (size_t)snprintf(rows + used, sizeof rows - used, "%s%d",
                                     r ? " " : "", (int)hf_field_row(&e.fields, r));
        if (strcmp(rows, layouts[i].rows) != 0)
            fail_msg("layout %d of row %zu: rows %s", (int)layouts[i].how, i, rows);
        if (!e.fields.n)
            assert_int_equal(hf_field_row(&e.fields, 3), 3);
        else if (layouts[i].flat)
            assert_int_equal(e.ne[0] * (e.n_dims == 1 ? 1 : layouts[i].ne[1]), n);
        else
            assert_int_equal(e.ne[1] * e.ne[2], n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_folders),
        cmocka_unit_test(what_is_no_model_is_named),
        cmocka_unit_test(a_config_that_cannot_be_looked_up),
        cmocka_unit_test(folders_are_opened),
        cmocka_unit_test(parts_that_do_not_fit_are_refused),
        cmocka_unit_test(tensors_have_one_name),
        cmocka_unit_test(rows_of_lists_are_found),
        cmocka_unit_test(rows_of_groups_are_parted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
