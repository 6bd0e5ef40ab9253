/* SPDX-License-Identifier: MIT
 *
 * test_tokenizer_vocab.c - pairs of a vocabulary, each in every wrong form: refused in
 * a sentence; and what right ones do with a text
 */
#include "tests/support/tokenizer_check.h"

#include <jansson.h>

#include "engine/gguf/gguf_put.h"
#include "engine/tokenizer/tokenizer_impl.h"

/* Pairs as JSON with ' for ", "KEY:TYPE" for numbers; a row's replace those of its
 * kind, null removes one. */
#define M           "tokenizer.ggml."
#define TYPES(list) "'" M "token_type:i32':[" list "]"

static const char llama[] =
    "{'" M "model':'llama','" M "tokens':['<unk>','<s>','</s>','a','b','ab','<0x41>'],"
    "'" M "scores:f32':[0,0,0,-1,-2,-3,0],'" M
    "add_space_prefix':false," TYPES("2,3,3,1,1,1,6") "}";
static const char gpt2[] = "{'" M "model':'gpt2','" M "pre':'llama-bpe','" M
                           "tokens':['a','b','ab','c','bc'],'" M
                           "merges':['a b','b c'],'" M "add_bos_token':false}";
/* the same as this project has them */
static const char own[] =
    "{'" M "model':'" TOKENIZER_BPE "','" M
    "tokens':['a','b','ab','c','##','#b'],'" TOKENIZER_KEY_STEPS
    "':'{\\\"type\\\":\\\"Sequence\\\",\\\"pretokenizers\\\":[]}','" TOKENIZER_KEY_PAIRS
    ":u32':[0,1]}";
static const char t5[] =
    "{'" M "model':'t5','" M "tokens':['<unk>','a','\xe2\x96\x81'],'" M
    "scores:f32':[0,-1,-2],'" M "unknown_token_id:u32':0,'" M
    "add_space_prefix':false,'" M "add_eos_token':false," TYPES("2,1,1") "}";
static const char bert[] =
    "{'" M "model':'bert','" M "tokens':['[UNK]','[CLS]','[SEP]','\xe2\x96\x81"
    "a']}";

static uint32_t type_called(const char *name)
{
    static const char *const names[] = {"u8",  "i8",  "u16",  "i16", "u32",
                                        "i32", "f32", "bool", "str", "list",
                                        "u64", "i64", "f64"};
    uint32_t i = 0;

    while (strcmp(names[i], name) != 0)
        i++;
    return i;
}

static void put_value(struct gguf_bytes *b, uint32_t type, const json_t *v)
{
    static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    const double real = json_number_value(v);
    const float narrow = (float)real;
    const int64_t whole = json_is_boolean(v) ? json_is_true(v) : json_integer_value(v);

    if (type == GGUF_STRING) {
        const uint64_t len = json_string_length(v);

        gguf_put(b, &len, 8);
        gguf_put(b, json_string_value(v), len);
    } else if (type == GGUF_F32) {
        gguf_put_f32(b, narrow);
    } else {
        gguf_put(b, type == GGUF_F64 ? (const void *)&real : &whole, bytes[type]);
    }
}

static void put_pair(struct gguf_kvs *k, const char *key, const json_t *v)
{
    const char *colon = strchr(key, ':');
    char name[80];
    const json_t *one = json_is_array(v) ? json_array_get(v, 0) : v;
    const uint32_t type = colon                  ? type_called(colon + 1)
                          : json_is_boolean(one) ? GGUF_BOOL
                                                 : GGUF_STRING;

    snprintf(name, sizeof name, "%.*s", (int)(colon ? colon - key : 79), key);
    if (json_is_array(v)) {
        gguf_kv_array(k, name, type, json_array_size(v));
        for (size_t i = 0; i < json_array_size(v); i++)
            put_value(&k->bytes, type, json_array_get(v, i));
        return;
    }
    gguf_put_str(&k->bytes, name);
    gguf_put_u32(&k->bytes, type);
    put_value(&k->bytes, type, v);
    k->n++;
}

static json_t *quoted(const char *text)
{
    char *json = strdup(text);
    json_error_t why;

    for (char *at = json; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *v = json_loads(json, JSON_ALLOW_NUL, &why);

    if (!v)
        fail_msg("%s: %s", why.text, text);
    free(json);
    return v;
}

/* A GGUF image of the pairs of base and row, 64-byte aligned. */
static unsigned char *make(const char *base, const char *row, size_t *n)
{
    json_t *all = quoted(base), *more = quoted(row), *v;
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes head = {.n = 0};
    const char *key;

    json_object_foreach(more, key, v)
    {
        char name[80];
        const char *old;
        void *next;
        json_t *value;

        /* whatever its type there */
        snprintf(name, sizeof name, "%.*s", (int)strcspn(key, ":"), key);
        json_object_foreach_safe(all, next, old, value)
        {
            if (!strncmp(old, name, strlen(name)) && strchr(":", old[strlen(name)]))
                json_object_del(all, old);
        }
        if (!json_is_null(v))
            json_object_set(all, key, v);
    }
    json_object_foreach(all, key, v) put_pair(&k, key, v);
    gguf_put_head(&head, 0, &k);
    gguf_put_padding(&head);
    unsigned char *image = aligned_alloc(64, (head.n + 63) / 64 * 64);

    memcpy(image, head.data, *n = head.n);
    free(head.data);
    free(k.bytes.data);
    json_decref(all);
    json_decref(more);
    return image;
}

static struct tokenizer *open_row(const char *base, const char *row, struct err *err)
{
    struct tokenizer *t = NULL;
    struct gguf *g;
    size_t n;
    unsigned char *image = make(base, row, &n);

    if (gguf_parse(&g, image, n, "vocab", err))
        fail_msg("%s: %s", row, err->msg);
    if (tokenizer_open(&t, g, err))
        assert_null(t);
    gguf_close(g);
    free(image);
    return t;
}

#define STEPS(json) "{'" TOKENIZER_KEY_STEPS "':'" json "'}"
#define NESTED      "{\\\"type\\\":\\\"Sequence\\\",\\\"pretokenizers\\\":["

static const struct {
    const char *base, *row;
    enum status st;
    const char *message;
} refusals[] = {
    {llama, "{'" M "tokens':null}", ST_INPUT, "tokens is not a list of strings"},
    {llama, "{'" M "tokens':'a'}", ST_INPUT, "tokens is not a list of strings"},
    {llama, "{'" M "tokens:i32':[1]}", ST_INPUT, "tokens is not a list of strings"},
    {llama, "{'" M "tokens':[]}", ST_INPUT, "tokens is not a list of strings"},
    {llama, "{'" M "scores:f32':1}", ST_INPUT, "scores has 1 entries for 7 tokens"},
    {llama, "{'" M "scores':['','','','','','','']}", ST_INPUT,
     "the score of token 0 is not a number"},
    {llama, "{" TYPES("2,3,3,1,1,1,7") "}", ST_INPUT,
     "the type of token 6 is not a number from 0 to 6"},
    {llama, "{" TYPES("2,3,3,1,1,6,6") "}", ST_INPUT, "token 5 is typed as a byte"},
    {llama,
     "{'" M "tokens':['a','b','c','d','e','<0x\\u00001>','<0x41>']," TYPES(
         "1,1,1,1,1,6,6") "}",
     ST_INPUT, "token 5 is typed as a byte"},
    {llama,
     "{'" M "tokens':['a','b','c','d','e','<0x1\\u0000>','<0x41>']," TYPES(
         "1,1,1,1,1,6,6") "}",
     ST_INPUT, "token 5 is typed as a byte"},
    {llama, "{'" M "bos_token_id:u32':[1]}", ST_INPUT,
     "bos_token_id is not a token id"},
    {llama, "{'" M "bos_token_id':'1'}", ST_INPUT, "bos_token_id is not a token id"},
    {llama, "{'" M "bos_token_id:i32':-2}", ST_INPUT,
     "bos_token_id is -2, outside the vocabulary of 7 tokens"},
    {llama, "{'" M "eos_token_id:u32':7}", ST_INPUT, "eos_token_id is 7, outside"},
    {llama, "{'" M "unknown_token_id:u32':7}", ST_INPUT, "unknown_token_id is 7"},
    {llama, "{'" M "eot_token_id:u32':7}", ST_INPUT, "eot_token_id is 7"},
    {llama, "{'" M "eom_token_id:u32':7}", ST_INPUT, "eom_token_id is 7"},
    {bert, "{'" M "cls_token_id:u32':4}", ST_INPUT, "cls_token_id is 4"},
    {bert, "{'" M "seperator_token_id:u32':4}", ST_INPUT, "seperator_token_id is 4"},
    {llama, "{'" TOKENIZER_KEY_ENDS ":u32':3}", ST_INPUT, "end_ids is not a list"},
    {llama, "{'" TOKENIZER_KEY_ENDS ":u32':[3,7]}", ST_INPUT,
     "entry 1 of slmbench.tokenizer.end_ids is not one of the 7 token ids"},
    {llama, "{'" TOKENIZER_KEY_ENDS "':['a']}", ST_INPUT, "entry 0 of slmbench"},
    {llama, "{'" TOKENIZER_KEY_FLAGS ":u8':[1]}", ST_INPUT,
     "token_flags has 1 entries for 7 tokens"},
    {llama, "{'" TOKENIZER_KEY_FLAGS ":u32':[1,0,0,0,0,0,0]}", ST_INPUT,
     "token_flags is not a list of bytes"},
    {llama, "{'" TOKENIZER_KEY_STRIPS ":u8':[1,0,0,0,0,0,0]}", ST_INPUT,
     "strips is not a list of booleans"},
    {t5, "{'" M "precompiled_charsmap:u8':1}", ST_INPUT, "is not a list of bytes"},
    {t5, "{'" M "precompiled_charsmap:i32':[1]}", ST_INPUT, "is not a list of bytes"},
    {t5, "{'" M "precompiled_charsmap:i8':[1]}", ST_INPUT, "of 1 bytes is cut short"},
    {t5, "{'" M "precompiled_charsmap:u8':[1,2]}", ST_INPUT, "of 2 bytes is cut short"},
    {gpt2, "{'" M "merges':null}", ST_INPUT, "merges, which its tokenizer needs, is"},
    {gpt2, "{'" M "merges':'a b'}", ST_INPUT, "merges, which its tokenizer needs, is"},
    {gpt2, "{'" M "merges:i32':[1]}", ST_INPUT, "is not a list of strings"},
    {gpt2, "{'" TOKENIZER_KEY_PATTERNS "':'a'}", ST_INPUT,
     "is not a list of at most 6 strings"},
    {gpt2, "{'" TOKENIZER_KEY_PATTERNS ":u8':[1]}", ST_INPUT,
     "is not a list of at most 6 strings"},
    {gpt2, "{'" TOKENIZER_KEY_PATTERNS "':['a','a','a','a','a','a','a']}", ST_INPUT,
     "is not a list of at most 6 strings"},
    {gpt2, "{'" TOKENIZER_KEY_PATTERNS "':['(']}", ST_INPUT, "is wrong at byte 1"},
    {own, "{'" TOKENIZER_KEY_PAIRS ":u32':null}", ST_INPUT, "is missing"},
    {own, "{'" TOKENIZER_KEY_PAIRS ":u32':1}", ST_INPUT, "is not a list of token ids"},
    {own, "{'" TOKENIZER_KEY_PAIRS "':['a','b']}", ST_INPUT,
     "merge 0 of slmbench.tokenizer.merge_ids is not two of the 6 token ids"},
    {own, "{'" TOKENIZER_KEY_PAIRS ":i32':[0,-1]}", ST_INPUT, "is not two of the 6"},
    {own, "{'" TOKENIZER_KEY_PAIRS ":u32':[0,1,6,1]}", ST_INPUT, "merge 1 of slmbench"},
    {own, "{'" TOKENIZER_KEY_PAIRS ":u32':[0,6]}", ST_INPUT, "merge 0 of slmbench"},
    {own, "{'" TOKENIZER_KEY_PAIRS ":u32':[1,0]}", ST_INPUT, "needs the token 'ba'"},
    {own,
     "{'" TOKENIZER_KEY_SUBWORD "':'"
     "12345678901234567890123456789012345678901234567890123456789012345'}",
     ST_INPUT, "subword_prefix has 65 bytes; the limit is 64"},
    {own,
     "{'" TOKENIZER_KEY_SUFFIX "':'"
     "12345678901234567890123456789012345678901234567890123456789012345'}",
     ST_INPUT, "word_suffix has 65 bytes; the limit is 64"},
    {own, STEPS("{}"), ST_UNSUPPORTED, "the pre_tokenizer '(none)'"},
    {own, STEPS("{"), ST_INPUT, "vocab"},
    {own,
     STEPS(NESTED NESTED NESTED NESTED NESTED NESTED NESTED NESTED NESTED NESTED
           "]}]}]}]}]}]}]}]}]}]}"),
     ST_UNSUPPORTED, "the pre_tokenizer 'Sequence'"},
    {own, STEPS("{\\\"type\\\":\\\"Punctuation\\\",\\\"behavior\\\":1}"),
     ST_UNSUPPORTED, "the pre_tokenizer 'Punctuation'"},
    {own, STEPS("{\\\"type\\\":\\\"FixedLength\\\",\\\"length\\\":1.5}"),
     ST_UNSUPPORTED, "the pre_tokenizer 'FixedLength'"},
    {own,
     STEPS("{\\\"type\\\":\\\"Split\\\",\\\"pattern\\\":{\\\"String\\\":"
           "\\\"\\\"},\\\"behavior\\\":\\\"Isolated\\\"}"),
     ST_UNSUPPORTED, "the pre_tokenizer 'Split'"},
};

static void wrong_pairs_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct err err = ERR_INIT;

        assert_null(open_row(refusals[i].base, refusals[i].row, &err));
        if (err.code != refusals[i].st || !strstr(err.msg, refusals[i].message))
            fail_msg("%s: %d '%s', not '%s'", refusals[i].row, (int)err.code, err.msg,
                     refusals[i].message);
    }
}

#define NORMALIZER(json) "'" TOKENIZER_KEY_NORMALIZER "':'" json "'"
#define LOWER            NORMALIZER("{\\\"type\\\":\\\"Lowercase\\\"}")
#define STRIP                                                         \
    NORMALIZER("{\\\"type\\\":\\\"Strip\\\",\\\"strip_left\\\":true," \
               "\\\"strip_right\\\":true}")

/* Ids of texts; special tokens are found in them but in those of gpt2. */
static const struct {
    const char *base, *row, *text, *ids;
} texts[] = {
    {llama, "{}", "ab", "1 5"},
    {llama, "{'" M "bos_token_id:i32':-1}", "ab", "5"},
    {llama, "{'" M "bos_token_id:u32':4294967295}", "ab", "5"},
    {llama, "{'" M "bos_token_id:u32':4}", "ab", "4 5"},
    {llama, "{'" M "precompiled_charsmap:u8':[1]}", "ab", "1 5"},
    {llama, "{'" M "remove_extra_whitespaces':true}", "ab", "1 5"},

    /* flags of tokens: a blank behind </s> vanishes */
    {llama, "{}", "</s> a", "1 2 0 0 0 3"},
    {llama, "{'" TOKENIZER_KEY_FLAGS ":u8':[0,0,1,0,0,0,0]}", "</s> a", "1 2 3"},
    {llama, "{'" TOKENIZER_KEY_STRIPS "':[false,false,true,false,false,false,false]}",
     "</s> a", "1 2 3"},
    {llama, "{'" TOKENIZER_KEY_STRIPS "':[true,true,false,true,true,true,true]}",
     "</s> a", "1 2 0 0 0 3"},

    /* a token for normalised texts that the normaliser itself would change is looked
     * for before */
    {llama,
     "{" LOWER ",'" TOKENIZER_KEY_FLAGS ":u8':[0,0,8,0,8,0,0],'" M
     "tokens':['<unk>','<s>','C','a','b','ab','<0x41>']," TYPES("2,3,4,1,4,1,6") "}",
     "aBCc", "1 3 4 2 0"},
    {llama,
     "{" STRIP ",'" TOKENIZER_KEY_FLAGS ":u8':[0,0,8,0,0,0,0],'" M
     "tokens':['<unk>','<s>',' C ','a','b','ab','<0x41>']," TYPES("2,3,4,1,1,1,6") "}",
     "a C b", "1 3 2 4"},
    {llama,
     "{" LOWER ",'" TOKENIZER_KEY_FLAGS ":u8':[0,0,8,0,0,0,0],'" M
     "tokens':['<unk>','<s>','c','a','b','ab','<0x41>']," TYPES("2,3,3,1,1,1,6") "}",
     "acC", "1 3 2 0"},

    /* of equal special tokens the first counts, and an empty one never */
    {llama,
     "{'" M
     "tokens':['<unk>','<s>','</s>','<x>','<x>','<x>','']," TYPES("2,3,3,4,4,4,4") "}",
     "<x><x>", "1 3 3"},
    {llama,
     "{'" M "tokens':['<unk>','<s>','</s>','<x>','<x>','<x>','']," TYPES(
         "2,3,3,3,4,4,4") ",'" TOKENIZER_KEY_ENDS ":u32':[5]}",
     "<x>", "1 3"},

    /* blanks of a unigram model */
    {t5, "{}", "a  a", "1 2 2 1"},
    {t5, "{'" M "remove_extra_whitespaces':true}", " a  a ", "1 2 1"},
    {t5, "{'" M "precompiled_charsmap:u8':[]}", "a  a", "1 2 2 1"},

    /* merges, and those whose whole no text becomes */
    {gpt2, "{}", "abc", "2 3"},
    {gpt2, "{" TYPES("1,1,3,1,1") "}", "abc", "0 4"},
    {gpt2, "{" TYPES("1,1,2,1,1") "}", "abc", "0 4"},
    {gpt2, "{" TYPES("1,1,5,1,1") "}", "abc", "0 4"},
    {gpt2, "{'" M "tokens':['a','b','ab','c','bc','']}", "abc", "2 3"},
    {gpt2, "{'" M "tokens':['a','b','ab','c','bc','abc']}", "abc", "5"},
    {gpt2, "{'" M "pre':'gpt-2','" M "tokens':['a','b','ab','c','bc','abc']}", "abc",
     "2 3"},
    {gpt2, "{'" TOKENIZER_KEY_PATTERNS "':['b']}", "abc", "0 1 3"},
    {own, "{}", "abab", "2 2"},
    {own, "{" TYPES("1,1,5,1,1,1") "}", "abab", "0 1 0 1"},
    {own, "{" TYPES("1,1,1,5,1,1") ",'" M "unknown_token_id:u32':4}", "abc", "2 4"},
    {own, "{'" TOKENIZER_KEY_PAIRS ":u32':[0,1,3]}", "abc", "2 3"},
    /* the prefix of the right one stays out: "a" and "#b" make "a" and "" */
    {own, "{'" TOKENIZER_KEY_SUBWORD "':'###','" TOKENIZER_KEY_PAIRS ":u32':[0,5]}",
     "a", "0"},
    {own, "{'" TOKENIZER_KEY_SUBWORD "':'#','" TOKENIZER_KEY_PAIRS ":u32':[0,5]}", "ab",
     "2"},
};

static void texts_become_ids(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct err err = ERR_INIT;
        struct tokenizer *t = open_row(texts[i].base, texts[i].row, &err);
        char got[200] = "";
        int32_t *ids;
        size_t n, used = 0;

        if (!t)
            fail_msg("%s: %s", texts[i].row, err.msg);
        if (tokenizer_encode(t, texts[i].text, strlen(texts[i].text), true,
                             texts[i].base != gpt2, &ids, &n, &err))
            fail_msg("%s: %s", texts[i].row, err.msg);
        for (size_t k = 0; k < n; k++)
            used += (size_t)snprintf(got + used, sizeof got - used, "%s%d",
                                     k ? " " : "", ids[k]);
        if (strcmp(got, texts[i].ids) != 0)
            fail_msg("%s: '%s' is %s, not %s", texts[i].row, texts[i].text, got,
                     texts[i].ids);
        for (size_t most = 0; most <= n + 1; most++)
            check_limit(t, texts[i].text, strlen(texts[i].text), texts[i].base != gpt2,
                        most, n);
        free(ids);
        tokenizer_close(t);
    }
}

/* A long text of any algorithm is not encoded to its end if its tokens are too many:
 * parts of it are known to have more, or it is left at the next part. */
static void long_texts_are_left(void **state)
{
    static const struct {
        const char *base, *row, *part;
        size_t most;
    } cases[] = {
        {llama, "{}", "ab", 9000},
        {llama, "{}", "ab a\xc3\xa9 ", 9000},
        {llama, "{'" M "tokens':['<unk>','<s>','</s>','a','b','aa','<0x41>']}", "a",
         1000},
        {llama,
         "{'" M "tokens':['<unk>','<s>','</s>','<x>','b','ab','<0x41>']," TYPES(
             "2,3,3,4,1,1,6") "}",
         "<x>", 9000},
        {gpt2, "{}", "abc", 1000},
        {gpt2, "{'" TOKENIZER_KEY_PATTERNS "':['b']}", "abc", 9000},
        {own, STEPS("{\\\"type\\\":\\\"FixedLength\\\",\\\"length\\\":7}"), "ab", 9000},
        {t5, "{'" TOKENIZER_KEY_CUTS ":bool':true}", "a b", 9000},
        {bert, "{}", "a ", 9000},
    };
    static char text[30000];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t n = strlen(cases[i].part);
        struct err err = ERR_INIT;
        struct tokenizer *t = open_row(cases[i].base, cases[i].row, &err);

        if (!t)
            fail_msg("%s: %s", cases[i].row, err.msg);
        for (size_t k = 0; k + n <= sizeof text; k += n)
            memcpy(text + k, cases[i].part, n);
        check_limit(t, text, sizeof text / n * n, false, cases[i].most, 10);
        tokenizer_close(t);
    }
}

static void lists_of_ends_count(void **state)
{
    struct err err = ERR_INIT;
    struct tokenizer *t = open_row(llama, "{'" TOKENIZER_KEY_ENDS ":u32':[3,5]}", &err);

    (void)state;
    for (int32_t id = 0; id < 7; id++)
        assert_int_equal(tokenizer_is_end(t, id), id == 2 || id == 3 || id == 5);
    tokenizer_close(t);
}

/* By their names, control tokens or not; where <|call|> ends turns, <|end|> ends
 * messages within one. */
static void names_of_ends_count(void **state)
{
    static const struct {
        const char *tokens, *row, *ends;
    } cases[] = {
        {"'<|end|>','<|call|>','<|eot_id|>'", TYPES("2,3,3,3,3,3,1"), "2 4 5"},
        {"'<|end|>','<|call|>','<|eot_id|>'", TYPES("2,3,3,1,1,1,1"), "2 4 5"},
        {"'<|end|>','<|call|>','<|eot_id|>'", TYPES("2,3,3,4,4,4,1"), "2 4 5"},
        {"'<|end|>','<|call|>','<|eot_id|>'", TYPES("2,3,3,3,5,3,1"), "2 3 5"},
        {"'<|end|>','<|calls|>','a'", TYPES("2,3,3,3,3,1,1"), "2 3"},
        {"'<|ends|>','<|call|>','a'", TYPES("2,3,3,3,3,1,1"), "2 4"},
        {"'<|end|>','<|call|>','a'",
         TYPES("2,3,3,3,3,1,1") ",'" TOKENIZER_KEY_ENDS ":u32':[5]", "2 4 5"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        char row[512], ends[64] = "";

        snprintf(row, sizeof row, "{'" M "tokens':['<unk>','<s>','</s>',%s,'b'],%s}",
                 cases[i].tokens, cases[i].row);
        struct tokenizer *t = open_row(llama, row, &err);

        if (!t)
            fail_msg("%s: %s", row, err.msg);
        for (int32_t id = 0; id < 7; id++)
            if (tokenizer_is_end(t, id))
                sprintf(ends + strlen(ends), "%s%d", *ends ? " " : "", (int)id);
        tokenizer_close(t);
        if (strcmp(ends, cases[i].ends) != 0)
            fail_msg("%s: %s, not %s", row, ends, cases[i].ends);
    }
}

/* A token, and a merge, longer than any text of one may be. */
static void long_texts_are_refused(void **state)
{
    static char row[200000], filler[140001];
    struct err err = ERR_INIT;

    (void)state;
    memset(filler, 'a', sizeof filler - 1);
    snprintf(row, sizeof row, "{'" M "tokens':['a','%.70000s']}", filler);
    assert_null(open_row(gpt2, row, &err));
    assert_int_equal(err.code, ST_INPUT);
    assert_non_null(strstr(err.msg, "token 1 has 70000 bytes; the limit is 65535"));
    err_clear(&err);
    snprintf(row, sizeof row, "{'" M "merges':['a %s']}", filler);
    assert_null(open_row(gpt2, row, &err));
    assert_int_equal(err.code, ST_INPUT);
    assert_non_null(strstr(err.msg, "not two tokens with a blank between them"));
}

/* The 32nd may be one that is three. */
static void steps_are_limited(void **state)
{
    static const char digits[] = "{\\\"type\\\":\\\"Digits\\\"},";
    static const char space[] =
        "{\\\"type\\\":\\\"Metaspace\\\",\\\"replacement\\\":\\\"_\\\"}]}'}";
    char row[4096] = "{'" TOKENIZER_KEY_STEPS "':'" NESTED;
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < 31; i++)
        strcat(row, digits);
    const size_t n = strlen(row);

    strcat(row, space);
    struct tokenizer *t = open_row(own, row, &err);

    if (!t)
        fail_msg("%s", err.msg);
    tokenizer_close(t);
    row[n] = '\0';
    strcat(row, digits);
    strcat(row, space);
    assert_null(open_row(own, row, &err));
    assert_int_equal(err.code, ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "the pre_tokenizer 'Metaspace'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_pairs_are_refused),
        cmocka_unit_test(texts_become_ids),
        cmocka_unit_test(long_texts_are_left),
        cmocka_unit_test(lists_of_ends_count),
        cmocka_unit_test(names_of_ends_count),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(steps_are_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
