/* SPDX-License-Identifier: MIT
 *
 * test_tokenizer_bpe.c - byte-level vocabularies: merges by rank in a hand-made one,
 * random text there and back, published vectors where they are at hand, and hostile
 * metadata
 */
#include "tests/support/tokenizer_check.h"

#include "engine/base/utf8.h"

/* ---- a small vocabulary ---------------------------------------------------------- */

/* Merges by rank; each result is a token, from id 256 on, unless it is there. */
static const char *const merges[][2] = {
    {"b", "b"},       /* bb: 256 */
    {"a", "b"},       /* ab: 257 */
    {"b", "a"},       /* ba: 258 */
    {"ab", "a"},      /* aba: 259 */
    {" ", "a"},       /* " a": 260 */
    {"\xc3", "\xa9"}, /* U+00E9: 261 */
    {"\xf0", "\x9f"}, /* half a character: 262 */
    {"<", "c"},       /* 263 */
    {"<c", ">"},      /* 264: a control token by its text, which no text becomes */
    {" ", " "},       /* 265 */
};
enum { N_MERGES = sizeof merges / sizeof *merges, N_JOINED = 256 + N_MERGES };

/* Behind those: no merge makes them. */
static const struct {
    const char *text;
    int type;
} others[] = {
    {"whole", 1},         /* 266 */
    {"<|endoftext|>", 3}, /* 267 */
    {"  \xc3\xa9<u>", 4}, /* 268: user-defined, spelt as it is */
    {"\xe4\xb8\x80", 1},  /* 269: normal, but not in the alphabet */
    {"<0x41>", 1},        /* 270: no byte here */
};
enum { N_VOCAB = N_JOINED + sizeof others / sizeof *others };

/* Ids of bytes are mixed up, so that no id is its byte by chance. */
static int byte_id(unsigned char byte)
{
    return (byte * 7 + 3) % 256;
}

/* bytes[len] in GPT-2's alphabet: printable ones of Latin-1 as they are, the others
 * counted up from U+0100. */
static void spell(char *out, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned c = 0, next = 256;

        for (unsigned b = 0; b < 256; b++) {
            const bool shows = (b >= '!' && b <= '~') || (b >= 0xa1 && b != 0xad);
            const unsigned as = shows ? b : next++;

            if (b == (unsigned char)bytes[i])
                c = as;
        }
        if (c >= 0x80)
            *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    }
    *out = '\0';
}

struct options {
    const char *pre;   /* NULL: no such key */
    const char *merge; /* instead of the first one */
    const char *token; /* instead of token 266 */
    int no_merges;     /* 1: no such key, 2: numbers */
    int add_bos;       /* -1: no such key */
};

static void put_tokens(struct build *b, const struct options *o)
{
    char bytes[16], spelt[64];

    put_key(b, "tokenizer.ggml.tokens", GGUF_ARRAY);
    put_u32(b, GGUF_STRING);
    put_u64(b, N_VOCAB);
    for (int id = 0; id < N_VOCAB; id++) {
        if (id >= N_JOINED) {
            put_str(b, id == 266 && o->token ? o->token : others[id - N_JOINED].text);
            continue;
        }
        for (unsigned byte = 0; id < 256 && byte < 256; byte++) {
            if (byte_id((unsigned char)byte) == id)
                bytes[0] = (char)byte;
        }
        if (id >= 256)
            sprintf(bytes, "%s%s", merges[id - 256][0], merges[id - 256][1]);
        spell(spelt, bytes, id < 256 ? 1 : strlen(bytes));
        put_str(b, spelt);
    }
    put_key(b, "tokenizer.ggml.token_type", GGUF_ARRAY);
    put_u32(b, GGUF_I32);
    put_u64(b, N_VOCAB);
    for (int id = 0; id < N_VOCAB; id++)
        put_u32(b, (uint32_t)(id == 264       ? 3
                              : id < N_JOINED ? 1
                                              : others[id - N_JOINED].type));
}

static void put_merges(struct build *b, const struct options *o)
{
    char left[64], right[64], line[160];

    put_key(b, "tokenizer.ggml.merges", GGUF_ARRAY);
    put_u32(b, o->no_merges == 2 ? GGUF_U32 : GGUF_STRING);
    put_u64(b, N_MERGES);
    for (int i = 0; i < N_MERGES; i++) {
        const char *const *m = merges[i];

        spell(left, m[0], strlen(m[0]));
        spell(right, m[1], strlen(m[1]));
        sprintf(line, "%s %s", left, right);
        if (o->no_merges == 2)
            put_u32(b, 0);
        else
            put_str(b, i == 0 && o->merge ? o->merge : line);
    }
}

static struct build vocab(const struct options *o)
{
    struct build b = build_new();

    put_header(&b, 3, 0,
               4u + (o->pre != NULL) + (o->no_merges != 1) + (o->add_bos >= 0));
    put_kv_str(&b, "tokenizer.ggml.model", "gpt2");
    if (o->pre)
        put_kv_str(&b, "tokenizer.ggml.pre", o->pre);
    put_tokens(&b, o);
    if (o->no_merges != 1)
        put_merges(&b, o);
    put_kv_u32(&b, "tokenizer.ggml.bos_token_id", 267);
    if (o->add_bos >= 0) {
        put_key(&b, "tokenizer.ggml.add_bos_token", GGUF_BOOL);
        put_u8(&b, (uint8_t)o->add_bos);
    }
    return b;
}

static struct tokenizer *open_small(const char *pre)
{
    struct build b = vocab(&(struct options){.pre = pre, .add_bos = -1});
    struct tokenizer *t = open_image(&b);

    build_free(&b);
    return t;
}

/* want: ids, and 'c for the token of the byte c. */
static void expect(const struct tokenizer *t, const char *text, bool special,
                   const char *want)
{
    char ids[512];
    size_t n = 0;

    while (*want) {
        if (*want == '\'') {
            n += (size_t)sprintf(ids + n, "%d", byte_id((unsigned char)want[1]));
            want += 2;
        } else {
            ids[n++] = *want++;
        }
    }
    ids[n] = '\0';
    expect_ids(t, text, strlen(text), false, special, ids);
}

static void joins_by_rank(void **state)
{
    struct tokenizer *t = open_small("gpt-2");

    (void)state;
    expect(t, "", false, "");
    expect(t, "a", false, "'a");
    expect(t, "abba", false, "'a 256 'a");
    expect(t, "aba", false, "259");
    expect(t, "bab", false, "'b 257"); /* ab comes before ba, though it stands behind */
    expect(t, "bbb", false, "256 'b"); /* the leftmost of equals */
    expect(t, "a a", false, "'a 260");
    expect(t, "a ba", false, "'a '  258");
    expect(t, "   a", false, "265 260");
    expect(t, "\xc3\xa9\xff", false, "261 '\xff");
    expect(t, "\xf0\x9f\x98\x80", false, "262 '\x98 '\x80");
    expect(t, "whole", false, "'w 'h 'o 'l 'e");
    expect(t, "<0x41>", false, "'< '0 'x '4 '1 '>");
    expect(t, "\xe4\xb8\x80", false, "'\xe4 '\xb8 '\x80");
    expect_ids(t, "a\0b", 3, true, false, "267 170 3 177");
    tokenizer_close(t);

    /* Some tokenizers look a whole piece up first. */
    t = open_small("llama-bpe");
    expect(t, "whole wholes", false, "266 '  'w 'h 'o 'l 'e 's");
    tokenizer_close(t);
}

static void special_tokens(void **state)
{
    struct tokenizer *t = open_small("qwen2");

    (void)state;
    expect(t, "a<|endoftext|>", true, "'a 267");
    expect(t, "<|endoftext|>", false,
           "'< '| 'e 'n 'd 'o 'f 't 'e 'x 't '| '>"); /* plain text stays text */
    expect(t, "b  \xc3\xa9<u>b", false, "'b 268 'b");
    /* Merges would make the control token 264, but text must not become one. */
    expect(t, "<c>", false, "263 '>");
    expect(t, "<c>", true, "264");
    assert_true(tokenizer_is_end(t, 267));
    tokenizer_close(t);
}

static void rules_of_the_file(void **state)
{
    struct tokenizer *t = open_small("gpt-2");

    (void)state;
    assert_int_equal(tokenizer_bos(t), 267);
    assert_int_equal(tokenizer_eos(t), -1);
    assert_false(tokenizer_adds_space(t));
    assert_false(tokenizer_adds_bos(t));
    tokenizer_close(t);
    t = open_small("llama-bpe");
    assert_true(tokenizer_adds_bos(t));
    tokenizer_close(t);
    struct build b = vocab(&(struct options){.pre = "llama-bpe", .add_bos = 0});

    t = open_image(&b);
    assert_false(tokenizer_adds_bos(t));
    tokenizer_close(t);
    build_free(&b);
    t = open_small(NULL); /* as "default" */
    expect(t, "a'b", false, "'a '' 'b");
    tokenizer_close(t);
}

static void pieces(void **state)
{
    struct tokenizer *t = open_small("gpt-2");
    char buf[16] = "#";

    (void)state;
    assert_int_equal(tokenizer_piece(t, 261, buf, 1), 2);
    assert_int_equal(buf[0], '#'); /* too small: nothing was written */
    assert_int_equal(tokenizer_piece(t, 261, buf, sizeof buf), 2);
    assert_memory_equal(buf, "\xc3\xa9", 2);
    assert_int_equal(tokenizer_piece(t, byte_id(0), buf, sizeof buf), 1);
    assert_int_equal(buf[0], 0);
    assert_int_equal(tokenizer_piece(t, 260, buf, sizeof buf), 2);
    assert_memory_equal(buf, " a", 2);
    assert_int_equal(tokenizer_piece(t, 268, buf, sizeof buf), 7);
    assert_memory_equal(buf, "  \xc3\xa9<u>", 7);
    assert_int_equal(tokenizer_piece(t, 269, buf, sizeof buf), 3);
    assert_memory_equal(buf, "\xe4\xb8\x80", 3);
    assert_int_equal(tokenizer_piece(t, 267, buf, sizeof buf), 0);
    tokenizer_close(t);
}

/* ---- there and back -------------------------------------------------------------- */

static size_t put_utf8(char *out, uint32_t c)
{
    const int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (int i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return (size_t)n;
}

/* Characters of all planes, of the scripts that have many words, of the vocabulary
 * above, blanks of all kinds, or bytes of any value. */
static size_t random_text(char *out, size_t n_chars, uint64_t *seed, bool *valid)
{
    static const uint32_t favourites[] = {
        ' ',    ' ', '\n',  '\r', '\t',  0x85,    0xa0,  0x180e, 0x2003,
        0x3000, 'a', 'b',   '<',  'c',   '>',     '\'',  's',    'L',
        '1',    '2', 0x664, 0xe9, 0x301, 0x1f600, 0x200d};
    static const struct {
        uint32_t first, n;
    } ranges[] = {{0x20, 0x5f},     {0x80, 0x780},     {0x900, 0x500},
                  {0x4e00, 0x5000}, {0xac00, 0x2ba0},  {0x1f000, 0x1000},
                  {0, 0xd800},      {0xe000, 0x102000}};
    const uint64_t mode = test_random(seed) % 11;
    size_t n = 0;

    *valid = mode != 10;
    for (size_t i = 0; i < n_chars; i++) {
        const uint64_t r = test_random(seed) >> 8;

        if (mode == 10)
            out[n++] = (char)r;
        else if (mode >= 8 || r % 8 == 0)
            n += put_utf8(out + n, favourites[(r >> 8) % 25]);
        else
            n += put_utf8(out + n,
                          ranges[mode].first + (uint32_t)((r >> 8) % ranges[mode].n));
    }
    return n;
}

/* Every text comes back byte by byte, and a stream never shows half a character of a
 * well-formed one. */
static void check_round_trip(const struct tokenizer *t, int n_rounds, uint64_t seed)
{
    enum { MAX_CHARS = 80 };
    char text[4 * MAX_CHARS], back[4 * MAX_CHARS + 4], buf[1024], out[sizeof buf + 4];

    for (int round = 0; round < n_rounds; round++) {
        bool valid;
        const size_t len =
            random_text(text, 1 + test_random(&seed) % MAX_CHARS, &seed, &valid);
        struct utf8_stream stream = {0};
        struct err err = ERR_INIT;
        int32_t *ids = NULL;
        size_t n = 0, used = 0;

        assert_int_equal(tokenizer_encode(t, text, len, false, false, &ids, &n, &err),
                         ST_OK);
        for (size_t i = 0; i < n; i++) {
            const size_t k = tokenizer_piece(t, ids[i], buf, sizeof buf);

            assert_true(k > 0 && k <= sizeof buf);
            const size_t shown = utf8_stream_push(&stream, buf, k, out);

            for (size_t at = 0; valid && at < shown;) {
                const int chars = utf8_char_len(out + at, shown - at);

                assert_true(chars > 0);
                at += (size_t)chars;
            }
            assert_true(used + shown <= sizeof back);
            memcpy(back + used, out, shown);
            used += shown;
        }
        used += utf8_stream_flush(&stream, back + used);
        assert_int_equal(used, len);
        assert_memory_equal(back, text, len);
        free(ids);
    }
}

static void round_trips(void **state)
{
    static const char *const pres[] = {
        "gpt-2",     "llama-bpe",    "dbrx",           "qwen2",       "qwen35",
        "starcoder", "deepseek-llm", "deepseek-coder", "deepseek-v3", "falcon",
        "tekken",    "gpt-4o",       "bailingmoe",     "seed-coder",  "bloom",
        "viking",    "default"};

    (void)state;
    for (size_t i = 0; i < sizeof pres / sizeof *pres; i++) {
        struct tokenizer *t = open_small(pres[i]);

        check_round_trip(t, 300, i + 1);
        tokenizer_close(t);
    }
}

static void check_published(const char *name)
{
    char path[512];

    check_vectors(name);
    published_path(path, sizeof path, name);
    struct tokenizer *t = open_file(path);

    check_round_trip(t, 3000, 5);
    tokenizer_close(t);
}

static void published_gpt_2(void **state)
{
    (void)state;
    check_published("gpt-2");
}

static void published_llama_bpe(void **state)
{
    (void)state;
    check_published("llama-bpe");
}

static void published_qwen2(void **state)
{
    (void)state;
    check_published("qwen2");
}

/* ---- hostile metadata ------------------------------------------------------------ */

static void refuses(struct options o, enum status want, const char *fragment)
{
    if (!o.pre)
        o.pre = "gpt-2";
    struct build b = vocab(&o);

    refuse_image(&b, want, fragment);
}

/* A token that occurs twice refuses no file; the last one counts. */
static void repeated_tokens(void **state)
{
    struct build once = vocab(&(struct options){.pre = "gpt-2", .add_bos = -1});
    struct build twice =
        vocab(&(struct options){.pre = "gpt-2", .token = "ab", .add_bos = -1});
    struct tokenizer *a = open_image(&once), *b = open_image(&twice);
    int32_t *x, *y;
    size_t n, m;

    (void)state;
    assert_int_equal(tokenizer_encode(a, "abab", 4, false, false, &x, &n, NULL), ST_OK);
    assert_int_equal(tokenizer_encode(b, "abab", 4, false, false, &y, &m, NULL), ST_OK);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(y[i], x[i] == 257 ? 266 : x[i]);
    free(x);
    free(y);
    tokenizer_close(a);
    tokenizer_close(b);
    build_free(&once);
    build_free(&twice);
}

static void wrong_metadata(void **state)
{
    (void)state;
    refuses((struct options){.no_merges = 1}, ST_INPUT,
            "merges, which its tokenizer "
            "needs, is missing");
    refuses((struct options){.no_merges = 2}, ST_INPUT, "is not a list of strings");
    refuses((struct options){.merge = "a zz"}, ST_INPUT,
            "merge 0 needs the token 'zz', which is not in the vocabulary");
    refuses((struct options){.merge = "a a"}, ST_INPUT, "needs the token 'aa'");
    refuses((struct options){.merge = "ab"}, ST_INPUT,
            "merge 0 is 'ab', not two tokens");
    refuses((struct options){.merge = ""}, ST_INPUT, "merge 0 is '', not two tokens");
    refuses((struct options){.merge = " a"}, ST_INPUT, "not two tokens");
    refuses((struct options){.merge = "a "}, ST_INPUT, "not two tokens");
    refuses((struct options){.pre = "nobody's"}, ST_UNSUPPORTED,
            "the pre-tokenizer 'nobody's' is not supported (known: gpt-2, llama-bpe,");
    refuses((struct options){.pre = ""}, ST_UNSUPPORTED, "the pre-tokenizer ''");
    refuses((struct options){.pre = "gpt-2 phi-2"}, ST_UNSUPPORTED, "known: gpt-2");
}

/* Files with a byte changed somewhere, and cut off anywhere, are refused with one
 * sentence or used without harm. */
static void damaged_files(void **state)
{
    struct build b = vocab(&(struct options){.pre = "llama-bpe", .add_bos = 1});
    struct build copy = build_new();
    uint64_t seed = 9;

    (void)state;
    for (size_t i = 0; i < 2 * b.n; i++) {
        const size_t len = i < b.n ? b.n : i - b.n;
        struct tokenizer *t;
        struct err err = ERR_INIT;
        struct gguf *g;
        int32_t *ids;
        size_t n;

        memcpy(copy.data, b.data, b.n);
        if (i < b.n)
            copy.data[i] = (unsigned char)(test_random(&seed) >> 16);
        if (gguf_parse(&g, copy.data, len, "damaged", &err) == ST_OK) {
            if (tokenizer_open(&t, g, &err) == ST_OK) {
                if (!tokenizer_encode(t, "abba <c> \xc3\xa9", 11, true, true, &ids, &n,
                                      &err))
                    free(ids);
                tokenizer_close(t);
            }
            gguf_close(g);
        }
        assert_true(err.code == ST_OK || (err.msg[0] && !strchr(err.msg, '\n')));
    }
    build_free(&b);
    build_free(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_by_rank),       cmocka_unit_test(special_tokens),
        cmocka_unit_test(rules_of_the_file),   cmocka_unit_test(pieces),
        cmocka_unit_test(round_trips),         cmocka_unit_test(published_gpt_2),
        cmocka_unit_test(published_llama_bpe), cmocka_unit_test(published_qwen2),
        cmocka_unit_test(repeated_tokens),     cmocka_unit_test(wrong_metadata),
        cmocka_unit_test(damaged_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
