/* SPDX-License-Identifier: MIT
 *
 * test_hf_pairs.c - tokenizer.json: which kind of vocabulary it becomes in GGUF, with
 * which pairs, and what is refused
 */
#include "tests/engine/hf/hf_folder.h"

#include "engine/tokenizer/tokenizer_impl.h"

#define KIND     "tokenizer.ggml.model"
#define TYPES    "tokenizer.ggml.token_type"
#define UNKNOWN  "tokenizer.ggml.unknown_token_id"
#define NONE     "4294967295"
#define BLANK    "\xe2\x96\x81"
#define BYTES    "'pre_tokenizer':{'type':'ByteLevel'},"
#define STEPS(s) "'pre_tokenizer':{'type':'Sequence','pretokenizers':[" s "]},"
#define SPLITS(pattern, behavior, invert)                                 \
    STEPS("{'type':'Split','pattern':{" pattern "},'behavior':'" behavior \
          "','invert':" invert "},{'type':'ByteLevel','use_regex':false}")
#define REPLACE \
    "'normalizer':{'type':'Replace','pattern':{'String':' '},'content':'" BLANK "'},"
#define META(rest) \
    "'pre_tokenizer':{'type':'Metaspace','replacement':'" BLANK "'" rest "},"
#define ABAB "'vocab':{'a':0,'b':1,'ab':2},'merges':["
#define MERGES(root, model, merges) \
    "{" root "'model':{'type':'BPE'," model ABAB merges "]}}"
/* Merges of a token that is in the vocabulary, with a blank in front or behind. */
#define BLANKS(root, model, merges)                                                 \
    "{" root "'model':{'type':'BPE','byte_fallback':true," model                    \
    "'vocab':{'a':0,'" BLANK "':1,'" BLANK "a':2,'a" BLANK "':3},'merges':[" merges \
    "]}}"
#define SCORED(rest, score)                                                           \
    "{" META("") "'model':{'type':'Unigram'," rest "'vocab':[['<unk>',0],['a'," score \
                 "]]}}"
#define PIECES(rest)                                                                  \
    "{'pre_tokenizer':{'type':'BertPreTokenizer'},'added_tokens':[{'id':7,'content':" \
    "'<x>','special':true}],'normalizer':{'type':'BertNormalizer'},'model':{'type':"  \
    "'WordPiece','unk_token':'[UNK]'," rest "'vocab':{'[UNK]':0,'[CLS]':1,'un':2,"    \
    "'##aff':3,'#':4,'[':5,'##':6,'[x':8,'x#':10}}}"
#define BERT             "'continuing_subword_prefix':'##',"
#define STEP(type, rest) "{'type':'" type "'" rest "},"
#define SIX            \
    STEP("Digits", "") \
    STEP("Digits", "") \
    STEP("Digits", "") STEP("Digits", "") STEP("Digits", "") STEP("Digits", "")

static const struct {
    const char *json, *key, *value;
} pairs[] = {
    /* byte-level BPE */
    {MERGES(BYTES, "", "'a b'"), KIND, "gpt2"},
    {MERGES(BYTES, "", "['a','b']"), "tokenizer.ggml.merges", "a b"},
    {MERGES(BYTES, "", "'#version: 0.2','a b'"), "tokenizer.ggml.merges", "a b"},
    {MERGES(BYTES, "", "['a',' '],[' ','b'],['a','b']"), "tokenizer.ggml.merges",
     "a b"},
    {MERGES(BYTES, "'continuing_subword_prefix':'','end_of_word_suffix':'',", "'a b'"),
     KIND, "gpt2"},
    {MERGES(BYTES, "'continuing_subword_prefix':'##',", "'a b'"), KIND, TOKENIZER_BPE},
    {MERGES(BYTES, "'end_of_word_suffix':'</w>',", "'a b'"), KIND, TOKENIZER_BPE},
    {MERGES(BYTES, "'unk_token':'b',", "'a b'"), TYPES, "1 1 1"},
    {MERGES(BYTES, "'unk_token':'b',", "'a b'"), UNKNOWN, "1"},
    {"{" BYTES "'model':{'vocab':{'a':0,'':1,'b':2,'ab':3},'merges':['a b']}}", KIND,
     "gpt2"},
    {MERGES(SPLITS("'String':'x'", "Isolated", "false"), "", "'a b'"),
     TOKENIZER_KEY_PATTERNS, "\\Qx\\E"},
    {MERGES(SPLITS("'String':'\\\\E'", "Isolated", "false"), "", "'a b'"), KIND,
     TOKENIZER_BPE},
    {MERGES(SPLITS("'Regex':'x+'", "Removed", "true"), "", "'a b'"),
     TOKENIZER_KEY_PATTERNS, "x+"},
    {MERGES(SPLITS("'Regex':'x+'", "Removed", "false"), "", "'a b'"), KIND,
     TOKENIZER_BPE},
    {MERGES(SPLITS("'Regex':'x+'", "Isolated", "true"), "", "'a b'"), KIND,
     TOKENIZER_BPE},
    {MERGES(SPLITS("", "Isolated", "false"), "", "'a b'"), KIND, TOKENIZER_BPE},
    {MERGES(STEPS(STEP("Whitespace", "") "{'type':'ByteLevel'}"), "", "'a b'"), KIND,
     TOKENIZER_BPE},
    {MERGES(STEPS(SIX "{'type':'ByteLevel','use_regex':false}"), "", "'a b'"), KIND,
     "gpt2"},
    {MERGES(STEPS(SIX STEP("Digits", "") "{'type':'ByteLevel','use_regex':false}"), "",
            "'a b'"),
     KIND, TOKENIZER_BPE},

    /* BPE with blanks as characters */
    {BLANKS(REPLACE, "", "'" BLANK " a'"), KIND, "llama"},
    {BLANKS(REPLACE, "", "'" BLANK " a'"), "tokenizer.ggml.add_space_prefix", "false"},
    {BLANKS(REPLACE, "'ignore_merges':true,", "'" BLANK " a'"), KIND, TOKENIZER_BPE},
    {BLANKS("", "", "'" BLANK " a'"), KIND, TOKENIZER_BPE},
    {BLANKS(META(""), "", "'" BLANK " a'"), KIND, "llama"},
    {BLANKS(META(""), "", "'a " BLANK "'"), KIND, TOKENIZER_BPE},
    {BLANKS(META(",'split':false"), "", "'a " BLANK "'"), KIND, "llama"},
    {BLANKS(META(""), "", "['a',' '],'" BLANK " a'"), KIND, "llama"},
    {BLANKS(META(""), "", "'" BLANK " a'"), "tokenizer.ggml.add_space_prefix", "true"},
    {BLANKS(META(",'add_prefix_space':false"), "", "'" BLANK " a'"),
     "tokenizer.ggml.add_space_prefix", "false"},
    {BLANKS(META(",'prepend_scheme':'never'"), "", "'" BLANK " a'"),
     "tokenizer.ggml.add_space_prefix", "false"},
    {BLANKS(META(",'prepend_scheme':'first'"), "", "'" BLANK " a'"),
     TOKENIZER_KEY_SPACE_FIRST, "true"},
    {BLANKS("'pre_tokenizer':{'type':'Metaspace'},", "", "'" BLANK " a'"), KIND,
     TOKENIZER_BPE},
    {BLANKS(REPLACE "'pre_tokenizer':{'type':'Split','pattern':{'String':' '},"
                    "'behavior':'MergedWithPrevious'},",
            "", "'" BLANK " a'"),
     KIND, "llama"},
    {BLANKS(REPLACE "'pre_tokenizer':{'type':'Split','pattern':{'String':'x'},"
                    "'behavior':'MergedWithPrevious'},",
            "", "'" BLANK " a'"),
     KIND, TOKENIZER_BPE},
    {BLANKS("'pre_tokenizer':{'type':'Split','pattern':{'String':' '},'behavior':"
            "'MergedWithPrevious'},",
            "", "'" BLANK " a'"),
     KIND, TOKENIZER_BPE},
    {BLANKS(META("") "'normalizer':{'type':'Prepend','prepend':'x'},", "",
            "'" BLANK " a'"),
     TOKENIZER_KEY_NORMALIZER,
     "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"x\"}]"
     "}"},
    {BLANKS(META("") "'normalizer':{'type':'Replace','pattern':{'String':'y'},"
                     "'content':'" BLANK "'},",
            "", "'" BLANK " a'"),
     TOKENIZER_KEY_NORMALIZER,
     "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Replace\",\"pattern\":{"
     "\"String\":\"y\"},\"content\":\"" BLANK "\"}]}"},

    /* Unigram */
    {SCORED("", "-0.5"), KIND, "t5"},
    {SCORED("", "-0.5"), TOKENIZER_KEY_SCORES, "(none)"},
    {SCORED("", "-0.1"), TOKENIZER_KEY_SCORES, "0 -0.1"},
    {SCORED("", "-0.5"), UNKNOWN, NONE},
    {SCORED("'unk_id':1,", "-0.5"), UNKNOWN, "1"},
    {SCORED("'unk_id':-1,", "-0.5"), UNKNOWN, NONE},
    {SCORED("'unk_id':2,", "-0.5"), UNKNOWN, NONE},
    {SCORED("'unk_id':'<unk>',", "-0.5"), UNKNOWN, NONE},
    {"{'model':{'vocab':[['a',0]]}}", KIND, TOKENIZER_UNIGRAM},

    /* BERT, and what is not quite it */
    {PIECES(BERT), KIND, "bert"},
    {PIECES(BERT), "tokenizer.ggml.tokens",
     "[UNK] [CLS] " BLANK "un aff " BLANK "# " BLANK "[ " BLANK "## <x> " BLANK
     "[x [PAD9] " BLANK "x#"},
    {PIECES(BERT "'max_input_chars_per_word':100,"), KIND, "bert"},
    {PIECES(BERT "'max_input_chars_per_word':99,"), KIND, TOKENIZER_WORDPIECE},
    {PIECES(BERT "'max_input_chars_per_word':99,"), TOKENIZER_KEY_MAX_CHARS, "99"},
    {PIECES(BERT "'max_input_chars_per_word':-1,"), TOKENIZER_KEY_MAX_CHARS, "(none)"},
    {PIECES("'continuing_subword_prefix':'',"), KIND, TOKENIZER_WORDPIECE},
    {PIECES(""), KIND, TOKENIZER_WORDPIECE},
    {"{'model':{'type':'WordPiece'," BERT "'vocab':{'a':0}}}", KIND,
     TOKENIZER_WORDPIECE},
    {"{'pre_tokenizer':{'type':'Whitespace'},'model':{'type':'WordPiece'," BERT
     "'vocab':{'a':0}}}",
     KIND, TOKENIZER_WORDPIECE},
    {"{'pre_tokenizer':{'type':'BertPreTokenizer'},'normalizer':{'type':'NFC'},'model':"
     "{'type':'WordPiece'," BERT "'vocab':{'a':0}}}",
     KIND, TOKENIZER_WORDPIECE},
    {"{'pre_tokenizer':{'type':'BertPreTokenizer'},'normalizer':{'type':"
     "'BertNormalizer','strip_accents':false},'model':{'type':'WordPiece'," BERT
     "'vocab':{'a':0}}}",
     KIND, TOKENIZER_WORDPIECE},
    {"{'model':{'continuing_subword_prefix':'##','vocab':{'a':0}}}", KIND,
     TOKENIZER_WORDPIECE},

    /* this project's own */
    {"{'pre_tokenizer':{'type':'Whitespace'},'model':{" ABAB "'a b']}}", KIND,
     TOKENIZER_BPE},
    {"{'pre_tokenizer':{'type':'Whitespace'},'model':{" ABAB
     "'#version: 0.2','a b',['a','ab']]}}",
     TOKENIZER_KEY_PAIRS, "0 1 0 2"},
    {"{'model':{'type':'WordLevel','byte_fallback':true,'vocab':{'a':0}}}",
     TOKENIZER_KEY_BYTES, "true"},
    {MERGES("", "'byte_fallback':true,'end_of_word_suffix':'',", "'a b'"), KIND,
     TOKENIZER_BPE},
};

static struct gguf *read_json(void **image, const char *json, struct err *err,
                              enum status *st)
{
    json_t *root = json_quoted(json);
    char *text = json_dumps(root, 0);
    struct gguf_kvs k = {.n = 0};

    gguf_kv_str(&k, "general.architecture", "llama");
    *st = hf_tokenizer_parse(&k, text, strlen(text), err);
    free(text);
    json_decref(root);
    if (*st) {
        free(k.bytes.data);
        return NULL;
    }
    return gguf_of_kvs(image, &k, err);
}

static void members_become_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct err err = ERR_INIT;
        enum status st;
        void *image;
        struct gguf *g = read_json(&image, pairs[i].json, &err, &st);

        if (!g)
            fail_msg("%s: %s", pairs[i].json, err.msg);
        assert_pair(g, pairs[i].key, pairs[i].value, pairs[i].json);
        gguf_close(g);
        free(image);
    }
}

static const struct {
    const char *json;
    enum status st;
    const char *message;
} refusals[] = {
    {MERGES(BYTES, "", "'a'"), ST_INPUT, "merge 0 is not two tokens without blanks"},
    {MERGES(BYTES, "", "'a b','ab '"), ST_INPUT, "merge 1 is not two tokens"},
    {MERGES(BYTES, "", "'a b c'"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES(BYTES, "", "1"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES(BYTES, "", "['a']"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES(BYTES, "", "[1,'b']"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES(BYTES, "", "['a','b','c']"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES(BYTES, "", "['','b']"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES(BYTES, "", "['','ab']"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES(BYTES, "", "'b a'"), ST_INPUT, "makes a token that is not in the"},
    {BLANKS(META(""), "", "'a'"), ST_INPUT, "merge 0 is not two tokens"},
    {"{" BYTES "'model':{'type':'BPE','vocab':{'a':0}}}", ST_INPUT,
     "has no model.merges"},
    {"{'model':{'type':'BPE','vocab':{'a':0}}}", ST_INPUT, "has no model.merges"},
    {"{" BYTES "'model':{'vocab':{'a':0}}}", ST_UNSUPPORTED, "the type '(none)'"},
    {MERGES("", "", "'a'"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES("", "", "'a b c'"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES("", "", "['a']"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES("", "", "['a','b','c']"), ST_INPUT, "merge 0 is not two tokens"},
    {MERGES("", "", "'a x'"), ST_INPUT,
     "merge 0 needs a token that is not in the vocabulary"},
    {MERGES("", "", "['x','b']"), ST_INPUT, "merge 0 needs a token"},
    {MERGES("", "'byte_fallback':true,'end_of_word_suffix':'</w>',", "'a b'"),
     ST_UNSUPPORTED, "byte_fallback with continuing_subword_prefix or"},
    {MERGES("", "'byte_fallback':true,'continuing_subword_prefix':'##',", "'a b'"),
     ST_UNSUPPORTED, "byte_fallback with continuing_subword_prefix or"},
    {"{'model':{'vocab':[[1,0]]}}", ST_INPUT,
     "entry 0 of model.vocab is not a token and its score"},
    {"{'model':{'vocab':[['a',0],['b','0']]}}", ST_INPUT,
     "entry 1 of model.vocab is not a token and its score"},
    {"{'model':{'vocab':[['a',0],['a']]}}", ST_INPUT, "entry 1 of model.vocab"},
    {"{'added_tokens':[{'content':'a','id':'0'}],'model':{'vocab':[['a',0]]}}",
     ST_INPUT, "entry 0 of added_tokens lacks its id"},
};

static void what_is_not_understood_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct err err = ERR_INIT;
        enum status st;
        void *image;

        assert_null(read_json(&image, refusals[i].json, &err, &st));
        assert_refused(st, &err, refusals[i].st, refusals[i].message, refusals[i].json);
    }
}

/* A merge or a pattern of several thousand bytes. */
static void long_texts_are_refused(void **state)
{
    static const struct {
        const char *before, *behind, *message;
    } cases[] = {
        {"{" BYTES "'model':{'type':'BPE'," ABAB "'a ", "']}}",
         "merge 0 is not two tokens"},
        {"{'added_tokens':[{'id':0,'content':'", "'}],'model':{'vocab':[['a',0]]}}",
         "two tokens have the number 0"},
    };
    static char json[12000], filler[9001];

    (void)state;
    memset(filler, 'b', sizeof filler - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        enum status st;
        void *image;

        snprintf(json, sizeof json, "%s%s%s", cases[i].before, filler, cases[i].behind);
        assert_null(read_json(&image, json, &err, &st));
        assert_refused(st, &err, ST_INPUT, cases[i].message, "9000 bytes");
    }
    /* A pattern too long for GGUF's kind, and a word too long for a mark. */
    struct err err = ERR_INIT;
    enum status st;
    void *image;
    struct gguf *g;
    const struct gguf_kv *kv;
    struct gguf_str s;

    filler[4096] = '\0';
    snprintf(json, sizeof json,
             "{'pre_tokenizer':{'type':'Sequence','pretokenizers':[{'type':'Split',"
             "'behavior':'Isolated','pattern':{'String':'%s'}},{'type':'ByteLevel'}]},"
             "'model':{'type':'BPE'," ABAB "'a b']}}",
             filler);
    g = read_json(&image, json, &err, &st);
    assert_pair(g, KIND, TOKENIZER_BPE, "a long pattern");
    gguf_close(g);
    free(image);
    filler[1100] = '\0';
    snprintf(json, sizeof json,
             "{'pre_tokenizer':{'type':'BertPreTokenizer'},'normalizer':{'type':"
             "'BertNormalizer'},'model':{'type':'WordPiece'," BERT "'vocab':{'%s':0}}}",
             filler);
    g = read_json(&image, json, &err, &st);
    assert_pair(g, KIND, "bert", "a long word");
    kv = gguf_kv_find(g, "tokenizer.ggml.tokens");
    assert_true(gguf_elem_str(g, kv, 0, &s) && s.len == 1100);
    gguf_close(g);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_become_pairs),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(long_texts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
