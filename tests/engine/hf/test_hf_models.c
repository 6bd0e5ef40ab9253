/* SPDX-License-Identifier: MIT
 *
 * test_hf_models.c - models and decoders of a tokenizer.json that no model of GGUF
 * stands for: ids and texts as Hugging Face's tokenizers 0.23 make them
 */
#include "tests/support/hf_vocab.h"

/* A tokenizer.json with ' for ", and texts with their ids and what these become. */
static const struct {
    const char *json;
    struct {
        const char *text, *ids, *back;
    } texts[5];
} rows[] = {
    {"{'model':{'type':'WordPiece','unk_token':'[UNK]','continuing_subword_prefix'"
     ":'##','max_input_chars_per_word':9,'vocab':{'[UNK]':0,'un':1,'##aff':2,'##ab"
     "le':3,'##a':4,'aff':5,'able':6,',':7,'.':8,'a':9,'##b':10,'don':11,'t':12,'d"
     "o':13,'not':14,'##!':15,'n':16,'\u4e2d':17}},'pre_tokenizer':{'type':'BertPr"
     "eTokenizer'},'normalizer':{'type':'BertNormalizer','clean_text':true,'handle"
     "_chinese_chars':true,'strip_accents':null,'lowercase':true},'decoder':{'type"
     "':'WordPiece','prefix':'##','cleanup':true}}",
     {{"Unaffable, \u00c4b.", "1 2 3 7 9 10 8", "unaffable, ab."},
      {"unaffablea", "0", "[UNK]"},
      {"unaffx \u4e2da", "0 17 9", "[UNK] \u4e2d a"},
      {"ab!", "9 10 0", "ab [UNK]"},
      {"do not", "13 14", "do not"}}},
    {"{'model':{'type':'WordLevel','unk_token':'[UNK]','vocab':{'[UNK]':0,'hello':"
     "1,'world':2,',':3,'a b':4}},'pre_tokenizer':{'type':'Whitespace'}}",
     {{"hello world, ,hello", "1 2 3 3 1", "hello world , , hello"},
      {"Hello a b", "0 0 0", "[UNK] [UNK] [UNK]"},
      {"", "", ""}}},
    {"{'model':{'type':'BPE','unk_token':'<unk>','end_of_word_suffix':'</w>','fuse"
     "_unk':false,'byte_fallback':false,'vocab':{'<unk>':0,'a':1,'b':2,'a</w>':3,'"
     "b</w>':4,'ab</w>':5,'aab</w>':6,'ba':7},'merges':['a b</w>','a ab</w>','b a'"
     "]},'pre_tokenizer':{'type':'WhitespaceSplit'},'decoder':{'type':'BPEDecoder'"
     ",'suffix':'</w>'}}",
     {{"aab ab a", "6 5 3", "aab ab a"},
      {"abab xb ax", "1 2 5 0 4 1 0", "abab <unk>b a<unk>"},
      {"xxa", "0 0 3", "<unk><unk>a"}}},
    {"{'model':{'type':'BPE','unk_token':'<unk>','continuing_subword_prefix':'##',"
     "'fuse_unk':true,'vocab':{'<unk>':0,'a':1,'##a':2,'##b':3,'ab':4,'##ba':5,'ab"
     "a':6},'merges':[['a','##b'],['##b','##a'],['ab','##a']]},'pre_tokenizer':{'t"
     "ype':'WhitespaceSplit'}}",
     {{"aba ab", "6 4", "aba ab"},
      {"xya baa", "0 2 0 2 2", "<unk> ##a <unk> ##a ##a"},
      {"abba", "4 5", "ab ##ba"}}},
    {"{'model':{'type':'BPE','unk_token':null,'vocab':{'a':0,' ':1,'b':2,'a ':3,'a"
     " b':4,' b':5},'merges':[['a',' '],[' ','b'],['a ','b']]}}",
     {{"a b", "4", "a b"}, {"axb a", "0 2 1 0", "a b   a"}, {" b", "5", " b"}}},
    {"{'model':{'type':'BPE','unk_token':'<unk>','byte_fallback':true,'ignore_merg"
     "es':true,'vocab':{'<unk>':0,'a':1,'b':2,'ab':3,'aab':4,'<0xC3>':5,'<0xA9>':6"
     "},'merges':[['a','b']]},'pre_tokenizer':{'type':'Digits','individual_digits'"
     ":true},'decoder':{'type':'Sequence','decoders':[{'type':'ByteFallback'},{'ty"
     "pe':'Fuse'}]}}",
     {{"aab", "4", "aab"},
      {"aaab\u00e9", "1 1 3 5 6", "aaab\u00e9"},
      {"\u00e8", "0", "<unk>"}}},
    {"{'model':{'type':'Unigram','unk_id':0,'byte_fallback':false,'vocab':[['<unk>"
     "',0.0],['\u2581',-3.0],['a',-2.0],['\u2581a',-4.0],['b',-2.5],['ab',-3.25],["
     "'<0xC3>',0.0],['<0xA9>',0.0]]},'pre_tokenizer':{'type':'Sequence','pretokeni"
     "zers':[{'type':'WhitespaceSplit'},{'type':'Metaspace','replacement':'\u2581'"
     ",'prepend_scheme':'always','split':true}]},'decoder':{'type':'Metaspace','re"
     "placement':'\u2581','prepend_scheme':'always','split':true}}",
     {{"ab  a", "1 5 3", "ab a"},
      {"b\u00e9", "1 4 0", "b<unk>"},
      {"aab", "3 5", "aab"}}},
    {"{'model':{'type':'Unigram','unk_id':0,'vocab':[['<unk>',0.0],[' ',-3.0],['a'"
     ",-2.0],[' a',-4.0]]}}",
     {{" a", "3", " a"}, {"a a", "2 3", "a  a"}}},
};

static struct tokenizer *open_row(const char *json)
{
    struct err err = ERR_INIT;
    struct tokenizer *t = open_json(json_quoted(json), &err);

    if (!t)
        fail_msg("%s: %s", json, err.msg);
    return t;
}

/* The text of ids as a caller prints it; a decoder of words leaves a blank at the end.
 */
static void check_back(const struct tokenizer *t, const int32_t *ids, size_t n,
                       const char *want)
{
    char got[200], *at = got;
    const size_t len = strlen(want);

    for (size_t i = 0; i < n; i++)
        at += tokenizer_piece(t, ids[i], at, sizeof got - 1 - (size_t)(at - got));
    *at = '\0';
    at = got + (tokenizer_adds_space(t) && *got == ' ');
    if (strncmp(at, want, len) != 0 || at[len + strspn(at + len, " ")])
        fail_msg("'%s' instead of '%s'", at, want);
}

static void ids_and_back(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct tokenizer *t = open_row(rows[r].json);

        for (int i = 0; i < 5 && rows[r].texts[i].text; i++) {
            const char *text = rows[r].texts[i].text;
            struct err err = ERR_INIT;
            int32_t *ids;
            size_t n;

            expect_ids(t, text, strlen(text), false, false, rows[r].texts[i].ids);
            assert_int_equal(
                tokenizer_encode(t, text, strlen(text), false, false, &ids, &n, &err),
                ST_OK);
            /* unknown tokens have no text here */
            if (!strstr(rows[r].texts[i].back, "unk>") &&
                !strstr(rows[r].texts[i].back, "[UNK]"))
                check_back(t, ids, n, rows[r].texts[i].back);
            free(ids);
        }
        tokenizer_close(t);
    }
}

/* Long words take time in proportion to their length, whatever the limit of the file.
 */
static void long_words(void **state)
{
    enum { N = 1 << 20 };
    struct tokenizer *t = open_row(
        "{'model':{'type':'WordPiece','unk_token':'u','max_input_chars_per_word':"
        "4000000000,'vocab':{'u':0,'a':1,'##a':2,'##aaaaaaaaab':3}}}");
    struct err err = ERR_INIT;
    char *text = malloc(N);
    int32_t *ids;
    size_t n;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', N);
    assert_int_equal(tokenizer_encode(t, text, N, false, false, &ids, &n, &err), ST_OK);
    assert_int_equal(n, N);
    free(ids);
    text[N - 1] = 'x';
    assert_int_equal(tokenizer_encode(t, text, N, false, false, &ids, &n, &err), ST_OK);
    assert_int_equal(n, 1);
    free(ids);
    free(text);
    tokenizer_close(t);
}

static void refused(void **state)
{
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"{'model':{'type':'WordLevel','vocab':{'a':0}},'decoder':{'type':'CTC'}}",
         "the decoder 'CTC'"},
        {"{'model':{'type':'WordLevel','vocab':{'a':0}},'decoder':{'type':'Replace',"
         "'pattern':{'String':'a'},'content':'"
         "0123456789012345678901234567890123456789"
         "0123456789012345678901234567890123456789'}}",
         "many times as long"},
        {"{'model':{'type':'BPE','vocab':{'a':0},'merges':['a b']}}",
         "merge 0 needs a token"},
        {"{'model':{'type':'BPE','vocab':{'a':0},'merges':['a b c']}}",
         "merge 0 is not two tokens"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;

        assert_null(open_json(json_quoted(cases[i].json), &err));
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
}

/* GGUF's "bert": tokens that begin a word have U+2581 before them. */
static void bert_of_gguf(void **state)
{
    static const char *const tokens[] = {"[UNK]", "\u2581un", "able",        "\u2581,",
                                         "s",     "\u2581e",  "\u2581\u4e2d"};
    struct gguf_kvs k = {.n = 0};
    struct err err = ERR_INIT;

    (void)state;
    gguf_kv_str(&k, "general.architecture", "bert");
    gguf_kv_str(&k, "tokenizer.ggml.model", "bert");
    gguf_kv_u32(&k, "tokenizer.ggml.unknown_token_id", 0);
    gguf_kv_array(&k, "tokenizer.ggml.tokens", GGUF_STRING, 7);
    for (int i = 0; i < 7; i++)
        gguf_put_str(&k.bytes, tokens[i]);
    struct tokenizer *t = open_kvs(&k, &err);

    if (!t)
        fail_msg("%s", err.msg);
    IDS(t, "Unables, \u00c9s", "1 2 4 3 5 4");
    IDS(t, "\u4e2dun s able", "6 1 0 0");
    tokenizer_close(t);
}

/* A whole text has the tokens around it that the file names, by either name. */
static void whole_texts(void **state)
{
    static const char *const tokens[] = {"[UNK]", "[CLS]", "[SEP]", "\u2581a", "[EOS]"};
    static const struct {
        const char *eos;
        int adds_eos; /* -1: no key */
        size_t n;
        int32_t ids[3];
    } cases[] = {{NULL, -1, 3, {1, 3, 2}},
                 {"tokenizer.ggml.eos_token_id", -1, 3, {1, 3, 4}},
                 {NULL, false, 2, {1, 3}}};

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct gguf_kvs k = {.n = 0};
        struct err err = ERR_INIT;
        int32_t *ids = NULL;
        size_t n = 0;

        gguf_kv_str(&k, "general.architecture", "bert");
        gguf_kv_str(&k, "tokenizer.ggml.model", "bert");
        gguf_kv_u32(&k, "tokenizer.ggml.unknown_token_id", 0);
        gguf_kv_u32(&k, "tokenizer.ggml.cls_token_id", 1);
        gguf_kv_u32(&k, "tokenizer.ggml.seperator_token_id", 2);
        if (cases[c].eos)
            gguf_kv_u32(&k, cases[c].eos, 4);
        if (cases[c].adds_eos >= 0)
            gguf_kv_bool(&k, "tokenizer.ggml.add_eos_token", cases[c].adds_eos);
        gguf_kv_array(&k, "tokenizer.ggml.tokens", GGUF_STRING, 5);
        for (int i = 0; i < 5; i++)
            gguf_put_str(&k.bytes, tokens[i]);
        struct tokenizer *t = open_kvs(&k, &err);

        if (!t || tokenizer_encode_whole(t, "A", 1, TOKENIZER_ANY, &ids, &n, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(n, cases[c].n);
        assert_memory_equal(ids, cases[c].ids, n * sizeof *ids);
        assert_int_equal(tokenizer_adds_eos(t), n == 3);
        free(ids);
        tokenizer_close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_back), cmocka_unit_test(long_words),
        cmocka_unit_test(refused),      cmocka_unit_test(bert_of_gguf),
        cmocka_unit_test(whole_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
