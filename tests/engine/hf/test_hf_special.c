/* SPDX-License-Identifier: MIT
 *
 * test_hf_special.c - the files next to a tokenizer.json: tokens that begin and end a
 * text, and chat templates
 */
#include "tests/engine/hf/hf_folder.h"

#define CONFIG     "/tokenizer_config.json"
#define MAP        "/special_tokens_map.json"
#define GENERATION "/generation_config.json"
#define MODEL      "/config.json"
#define TOKENIZER  "/tokenizer.json"
#define JINJA      "/chat_template.jinja"
#define NAMED      "/additional_chat_templates/"

/* Six words, <s> is 2 and </s> is 3; more: members in addition. */
#define WORDS(more)                                                                \
    "{" more "'model':{'type':'WordLevel','unk_token':'[UNK]','vocab':{'[UNK]':0," \
    "'a':1,'<s>':2,'</s>':3,'<e>':4,'<f>':5}}}"
#define PROCESSOR(type, rest) "'post_processor':{'type':'" type "'," rest "},"
#define SPECIAL(text)         "{'SpecialToken':{'id':'" text "','type_id':0}}"
#define SEQUENCE              "{'Sequence':{'id':'A','type_id':0}}"
#define SINGLE(parts)         PROCESSOR("TemplateProcessing", "'single':[" parts "]")

/* Files of a folder in addition to, or instead of, WORDS(""). */
struct folder {
    const char *files[3][2];
};

static enum status read_folder(const struct folder *f, int64_t n_vocab,
                               struct gguf_kvs *k, struct err *err)
{
    char root[64];

    tree_new(root);
    folder_put(root, TOKENIZER, WORDS(""));
    for (size_t i = 0; i < 3 && f->files[i][0]; i++) {
        const size_t len = strlen(f->files[i][0]);

        if (f->files[i][0][len - 1] == '/')
            tree_mkdir(root, f->files[i][0]);
        else
            folder_put(root, f->files[i][0], f->files[i][1]);
    }
    *k = (struct gguf_kvs){.n = 0};
    const enum status st = hf_tokenizer_put(k, root, n_vocab, err);

    if (st)
        free(k->bytes.data);
    tree_remove(root);
    return st;
}

#define BOS      "tokenizer.ggml.bos_token_id"
#define EOS      "tokenizer.ggml.eos_token_id"
#define EOT      "tokenizer.ggml.eot_token_id"
#define EOM      "tokenizer.ggml.eom_token_id"
#define ADD_BOS  "tokenizer.ggml.add_bos_token"
#define ADD_EOS  "tokenizer.ggml.add_eos_token"
#define TEMPLATE "tokenizer.chat_template"
#define NONE     "4294967295"

static const struct {
    struct folder f;
    const char *key, *value;
} pairs[] = {
    /* names before numbers, tokenizer_config.json before special_tokens_map.json, and
     * generation_config.json before config.json */
    {{{{NULL}}}, BOS, NONE},
    {{{{CONFIG, "{'bos_token':'<s>'}"}}}, BOS, "2"},
    {{{{CONFIG, "{'bos_token':{'content':'<e>'}}"}, {MAP, "{'bos_token':'<s>'}"}}},
     BOS,
     "4"},
    {{{{CONFIG, "{'bos_token':'<none>'}"}, {MAP, "{'bos_token':'<s>'}"}}}, BOS, "2"},
    {{{{MAP, "{'bos_token':'<s>'}"}, {GENERATION, "{'bos_token_id':4}"}}}, BOS, "2"},
    {{{{GENERATION, "{'bos_token_id':4}"}, {MODEL, "{'bos_token_id':5}"}}}, BOS, "4"},
    {{{{GENERATION, "{'bos_token_id':[5,4]}"}}}, BOS, "5"},
    {{{{GENERATION, "{'bos_token_id':-1}"}, {MODEL, "{'bos_token_id':5}"}}}, BOS, "5"},
    {{{{GENERATION, "{'bos_token_id':6}"}}}, BOS, NONE},
    {{{{GENERATION, "{'bos_token_id':'<s>'}"}}}, BOS, NONE},
    {{{{MODEL, "{'text_config':{'bos_token_id':5}}"}}}, BOS, "5"},
    {{{{CONFIG, "{'pad_token':'<f>'}"}}}, "tokenizer.ggml.padding_token_id", "5"},
    {{{{NULL}}}, "tokenizer.ggml.unknown_token_id", "0"},

    /* several ends: two more have keys of their own in GGUF, further ones a list */
    {{{{GENERATION, "{'eos_token_id':[3,4,5]}"}}}, EOS, "3"},
    {{{{GENERATION, "{'eos_token_id':[3,4,5]}"}}}, EOT, "4"},
    {{{{GENERATION, "{'eos_token_id':[3,4,5]}"}}}, EOM, "5"},
    {{{{GENERATION, "{'eos_token_id':[3,4,5]}"}}}, TOKENIZER_KEY_ENDS, "(none)"},
    {{{{GENERATION, "{'eos_token_id':[3,4,4,5,1,99]}"}}},
     TOKENIZER_KEY_ENDS,
     "3 4 5 1"},
    {{{{GENERATION, "{'eos_token_id':[4,3]}"}, {CONFIG, "{'eos_token':'</s>'}"}}},
     EOS,
     "3"},
    {{{{GENERATION, "{'eos_token_id':[4,3]}"}, {CONFIG, "{'eos_token':'</s>'}"}}},
     EOT,
     "4"},

    /* the tokens around a text: one on each side, more belong to chats */
    {{{{NULL}}}, ADD_BOS, "false"},
    {{{{TOKENIZER, WORDS(SINGLE(SPECIAL("<s>") "," SEQUENCE))}}}, ADD_BOS, "true"},
    {{{{TOKENIZER, WORDS(SINGLE(SPECIAL("<s>") "," SEQUENCE))}}}, BOS, "2"},
    {{{{TOKENIZER, WORDS(SINGLE(SPECIAL("<s>") "," SEQUENCE))}}}, ADD_EOS, "false"},
    {{{{TOKENIZER, WORDS(SINGLE(SEQUENCE "," SPECIAL("</s>")))}}}, ADD_EOS, "true"},
    {{{{TOKENIZER, WORDS(SINGLE(SEQUENCE "," SPECIAL("</s>")))}}}, EOS, "3"},
    {{{{TOKENIZER, WORDS(SINGLE(SEQUENCE "," SPECIAL("</s>")))}}}, ADD_BOS, "false"},
    {{{{TOKENIZER, WORDS(SINGLE(SPECIAL("<s>") "," SPECIAL("<e>") "," SEQUENCE))}}},
     ADD_BOS,
     "false"},
    {{{{TOKENIZER, WORDS(SINGLE(SPECIAL("<none>") "," SEQUENCE))}}}, ADD_BOS, "false"},
    {{{{TOKENIZER, WORDS(SINGLE("{}," SEQUENCE "," SPECIAL("<none>")))}}},
     ADD_EOS,
     "false"},
    {{{{TOKENIZER,
        WORDS(PROCESSOR("BertProcessing", "'cls':['<s>',2],'sep':['</s>',3]"))}}},
     ADD_BOS,
     "true"},
    {{{{TOKENIZER,
        WORDS(PROCESSOR("RobertaProcessing", "'cls':['<s>',2],'sep':['</s>',3]"))}}},
     EOS,
     "3"},
    {{{{TOKENIZER, WORDS(PROCESSOR("RobertaProcessing", "'cls':['<s>',2]"))}}},
     ADD_BOS,
     "false"},
    {{{{TOKENIZER, WORDS(PROCESSOR("RobertaProcessing", "'sep':['</s>',3]"))}}},
     ADD_EOS,
     "false"},
    {{{{TOKENIZER,
        WORDS(PROCESSOR("Sequence", "'processors':[{'type':'ByteLevel'},"
                                    "{'type':'TemplateProcessing','single':"
                                    "[" SPECIAL("<e>") "," SEQUENCE "]}]"))}}},
     BOS,
     "4"},
    {{{{TOKENIZER, WORDS("'post_processor':{},")}}}, ADD_BOS, "false"},
    {{{{TOKENIZER, WORDS(SINGLE(SPECIAL("<s>") "," SEQUENCE))},
       {CONFIG, "{'add_bos_token':false}"}}},
     ADD_BOS,
     "false"},
    {{{{CONFIG, "{'bos_token':'<s>','add_bos_token':true}"}}}, ADD_BOS, "true"},
    {{{{CONFIG, "{'add_bos_token':true}"}}}, ADD_BOS, "false"},
    {{{{CONFIG, "{'eos_token':'</s>','add_eos_token':true}"}}}, ADD_EOS, "true"},
    {{{{CONFIG, "{'add_eos_token':true}"}}}, ADD_EOS, "false"},

    /* chat templates */
    {{{{NULL}}}, TEMPLATE, "(none)"},
    {{{{CONFIG, "{'chat_template':'A'}"}}}, TEMPLATE, "A"},
    {{{{CONFIG, "{'chat_template':{'name':'x'}}"}}}, TEMPLATE, "(none)"},
    {{{{"/chat_template.json", "{'chat_template':'P'}"}}}, TEMPLATE, "P"},
    {{{{CONFIG, "{'chat_template':'A'}"},
       {"/chat_template.json", "{'chat_template':"
                               "'P'}"}}},
     TEMPLATE,
     "A"},
    {{{{CONFIG, "{'chat_template':'A'}"}, {JINJA, "F"}}}, TEMPLATE, "F"},
    {{{{CONFIG,
        "{'chat_template':[{'name':'default','template':'A'},{'name':'tool use',"
        "'template':'B'},{'name':'Zz-9','template':'C'},{'name':'tool_use',"
        "'template':'D'},{'name':'','template':'E'},{'name':'x'},{'template':'y'"
        "},1]}"}}},
     TEMPLATE,
     "A"},
    {{{{CONFIG,
        "{'chat_template':[{'name':'tool use','template':'B'},{'name':'Zz-9',"
        "'template':'C'},{'name':'tool_use','template':'D'},{'name':'','template'"
        ":'E'},{'name':'x'},{'template':'y'},1]}"}}},
     "tokenizer.chat_templates",
     "tool_use Zz_9"},
    {{{{CONFIG,
        "{'chat_template':[{'name':'tool use','template':'B'},{'name':'tool_use'"
        ",'template':'D'}]}"}}},
     TEMPLATE ".tool_use",
     "D"},
    {{{{CONFIG, "{'chat_template':[{'name':'a[{:@`','template':'B'}]}"}}},
     "tokenizer.chat_templates",
     "a_____"},
    {{{{CONFIG, "{'chat_template':[{'name':'"
                "1234567890123456789012345678901234567890123456789012345678901234567890"
                "','template':'B'}]}"}}},
     "tokenizer.chat_templates",
     "123456789012345678901234567890123456789012345678901234567890123"},
    {{{{NAMED "b.jinja", "B"}, {NAMED ".h.jinja", "H"}, {NAMED "notes.txt", "X"}}},
     "tokenizer.chat_templates",
     "b"},
    {{{{NAMED "b.jinja", "B"}, {NAMED "a.jinja", "A"}, {NAMED "jinja", "X"}}},
     "tokenizer.chat_templates",
     "a b"},
    {{{{NAMED "b.jinja", "B"}, {CONFIG, "{'chat_template':'A'}"}}}, TEMPLATE, "A"},
    {{{{NAMED "b.jinja", "B"}, {CONFIG, "{'chat_template':'A'}"}}}, TEMPLATE ".b", "B"},
    {{{{CONFIG, "{'bos_token':'<B>','eos_token':'<E>','chat_template':'A'}"}}},
     TOKENIZER_KEY_CHAT_BOS,
     "<B>"},
    {{{{CONFIG,
        "{'bos_token':'<B>','eos_token':{'content':'<E>'},'chat_template':'A'}"}}},
     TOKENIZER_KEY_CHAT_EOS,
     "<E>"},
    {{{{CONFIG, "{'bos_token':'<s>','chat_template':'A'}"}}},
     TOKENIZER_KEY_CHAT_BOS,
     "(none)"},
    {{{{CONFIG, "{'bos_token':'<B>','eos_token':'<E>'}"}}},
     TOKENIZER_KEY_CHAT_BOS,
     "(none)"},
};

static void files_become_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *const *what = pairs[i].f.files[0];
        struct err err = ERR_INIT;
        struct gguf_kvs k;
        void *image;

        if (read_folder(&pairs[i].f, 0, &k, &err))
            fail_msg("%s: %s", what[1], err.msg);
        struct gguf *g = gguf_of_kvs(&image, &k, &err);

        assert_non_null(g);
        assert_pair(g, pairs[i].key, pairs[i].value, what[0] ? what[1] : "nothing");
        gguf_close(g);
        free(image);
    }
}

#define N(name) "{'name':'" name "','template':'x'}"

static void what_is_not_understood_is_refused(void **state)
{
    static const struct {
        struct folder f;
        int64_t n_vocab;
        const char *message;
    } cases[] = {
        {{{{CONFIG, "{'add_bos_token':1}"}}}, 0, "add_bos_token is neither true nor"},
        {{{{CONFIG, "{'add_eos_token':'yes'}"}}}, 0, "add_eos_token is neither true"},
        {{{{CONFIG, "{"}}}, 0, "tokenizer_config.json"},
        {{{{MAP, "[]"}}}, 0, "special_tokens_map.json"},
        {{{{GENERATION, "{"}}}, 0, "generation_config.json"},
        {{{{MODEL, "{"}}}, 0, "config.json"},
        {{{{"/chat_template.json", "{"}}}, 0, "chat_template.json"},
        {{{{JINJA "/", NULL}}}, 0, "chat_template.jinja"},
        {{{{NAMED "a.jinja/", NULL}, {NAMED "b.jinja", "B"}}}, 0, "a.jinja"},
        {{{{CONFIG,
            "{'chat_template':[" N("0") "," N("1") "," N("2") "," N("3") "," N("4") "," N("5") "," N("6") "," N("7") "," N(
                "8") "," N("9") "," N("a") "," N("b") "," N("c") "," N("d") "," N("e") "," N("f") "," N("g") "]}"}}},
         0,
         "has more than 15 chat templates by name"},
        {{{{NULL}}},
         65549,
         "has 6 tokens, and the model's vocabulary 65549; at most 65548 are possible"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct gguf_kvs k;

        assert_refused(read_folder(&cases[i].f, cases[i].n_vocab, &k, &err), &err,
                       ST_INPUT, cases[i].message, cases[i].message);
    }
}

/* A link to itself: what cannot be looked up is not absent, and a model without it
 * would be another one. */
static void files_that_cannot_be_looked_up(void **state)
{
    static const struct {
        const char *name, *message;
    } cases[] = {
        {TOKENIZER, "cannot find out whether there is"},
        {CONFIG, "cannot find out whether there is"},
        {MAP, "cannot find out whether there is"},
        {GENERATION, "cannot find out whether there is"},
        {MODEL, "cannot find out whether there is"},
        {JINJA, "cannot find out whether there is"},
        {"/additional_chat_templates", "cannot list"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct gguf_kvs k = {.n = 0};
        char root[64], path[128];

        tree_new(root);
        if (i)
            folder_put(root, TOKENIZER, WORDS(""));
        snprintf(path, sizeof path, "%s%s", root, cases[i].name);
        assert_int_equal(symlink(cases[i].name + 1, path), 0);
        const enum status st = hf_tokenizer_put(&k, root, 0, &err);

        free(k.bytes.data);
        assert_refused(st, &err, ST_IO, cases[i].message, cases[i].name);
        if (!strstr(err.msg, path))
            fail_msg("%s is not in '%s'", path, err.msg);
        tree_remove(root);
    }
}

/* Rows of an embedding without a token have a name, which is no other file's token. */
static void vocabularies_are_as_long_as_the_embedding(void **state)
{
    const struct folder f = {{{CONFIG, "{'bos_token':'[PAD6]'}"}}};
    struct err err = ERR_INIT;
    struct gguf_kvs k;
    void *image;

    (void)state;
    assert_int_equal(read_folder(&f, 9, &k, &err), ST_OK);
    struct gguf *g = gguf_of_kvs(&image, &k, &err);

    assert_pair(g, "tokenizer.ggml.tokens",
                "[UNK] a <s> </s> <e> <f> [PAD6] [PAD7] [PAD8]", "9 rows");
    assert_pair(g, "tokenizer.ggml.token_type", "2 1 1 1 1 1 5 5 5", "9 rows");
    assert_pair(g, BOS, NONE, "9 rows");
    gguf_close(g);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_become_pairs),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(files_that_cannot_be_looked_up),
        cmocka_unit_test(vocabularies_are_as_long_as_the_embedding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
