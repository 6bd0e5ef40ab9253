/* SPDX-License-Identifier: MIT
 *
 * test_tokenizer.c - SentencePiece vocabularies: a hand-made one, the one of
 * stories260K, published vectors where they are at hand, and damaged metadata
 */
#include "tests/support/tokenizer_check.h"

#include <math.h>

#include "engine/base/utf8.h"

#define STORIES TEST_DATA "models/stories260K-f32.gguf"

struct entry {
    const char *text;
    float score;
    int type;
};

/* ids: 0 <unk>, 1 <s>, 2 </s>, 3 .. 258 bytes, then these. */
static const struct entry small[] = {
    {"\xe2\x96\x81", -1, 1}, /* 259 */
    {"a", -2, 1},            /* 260 */
    {"b", -3, 1},            /* 261 */
    {"ab", -4, 1},           /* 262 */
    {"ba", -4, 1},           /* 263: as good as ab, so the leftmost wins */
    {"aba", -6, 1},          /* 264 */
    {"bb", -0.5f, 1},        /* 265: better than both */
    {"<x>", 0, 4},           /* 266: user-defined */
    {"<x><y>", 0, 4},        /* 267: longer, same beginning */
    {"<end>", 0, 3},         /* 268: control */
    {"<|im_end|>", 0, 3},    /* 269 */
    {"\xe2\x96\x81"
     "a",
     -5, 1}, /* 270 */
};
enum { N_SMALL = 259 + sizeof small / sizeof small[0] };

struct options {
    int n_scores, n_types; /* 0: as many as tokens; -1: no such key */
    uint32_t bos;          /* 0: no such key */
    int add_space;         /* -1: no such key */
    float bad_score;       /* of token 5, if not 0 */
    float same_score;      /* of all plain tokens, if not 0 */
    const char *byte_text; /* instead of "<0x02>" */
    const char *model;
    const char *arch;          /* NULL: no such key */
    const char *const *merges; /* ended by NULL; NULL: no such key */
};

static struct entry entry_at(int id, char *buf, const struct options *o)
{
    static const struct entry first[] = {
        {"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}};

    if (id < 3)
        return first[id];
    if (id >= 259) {
        struct entry e = small[id - 259];

        if (e.type == 1 && (o->same_score < 0 || o->same_score > 0))
            e.score = o->same_score;
        return e;
    }
    sprintf(buf, "<0x%02X>", (unsigned)(id - 3));
    return (struct entry){id == 5 && o->byte_text ? o->byte_text : buf,
                          id == 5 ? o->bad_score : 0, 6};
}

static struct build vocab(const struct options *o)
{
    const int n_scores = o->n_scores ? o->n_scores : N_SMALL;
    const int n_types = o->n_types ? o->n_types : N_SMALL;
    const unsigned n_kvs = 2 + (n_scores > 0) + (n_types > 0) + (o->bos > 0) +
                           (o->add_space >= 0) + !!o->arch + !!o->merges;
    struct build b = build_new();
    char buf[16];

    put_header(&b, 3, 0, n_kvs);
    put_kv_str(&b, "tokenizer.ggml.model", o->model ? o->model : "llama");
    if (o->arch)
        put_kv_str(&b, "general.architecture", o->arch);
    put_key(&b, "tokenizer.ggml.tokens", GGUF_ARRAY);
    put_u32(&b, GGUF_STRING);
    put_u64(&b, N_SMALL);
    for (int id = 0; id < N_SMALL; id++)
        put_str(&b, entry_at(id, buf, o).text);
    if (n_scores > 0) {
        put_key(&b, "tokenizer.ggml.scores", GGUF_ARRAY);
        put_u32(&b, GGUF_F32);
        put_u64(&b, (uint64_t)n_scores);
        for (int id = 0; id < n_scores; id++)
            put_f32(&b, entry_at(id, buf, o).score);
    }
    if (n_types > 0) {
        put_key(&b, "tokenizer.ggml.token_type", GGUF_ARRAY);
        put_u32(&b, GGUF_I32);
        put_u64(&b, (uint64_t)n_types);
        for (int id = 0; id < n_types; id++)
            put_u32(&b, (uint32_t)entry_at(id, buf, o).type);
    }
    if (o->bos)
        put_kv_u32(&b, "tokenizer.ggml.bos_token_id", o->bos);
    if (o->merges) {
        uint64_t n = 0;

        while (o->merges[n])
            n++;
        put_key(&b, "tokenizer.ggml.merges", GGUF_ARRAY);
        put_u32(&b, GGUF_STRING);
        put_u64(&b, n);
        for (uint64_t i = 0; i < n; i++)
            put_str(&b, o->merges[i]);
    }
    if (o->add_space >= 0) {
        put_key(&b, "tokenizer.ggml.add_space_prefix", GGUF_BOOL);
        put_u8(&b, (uint8_t)o->add_space);
    }
    return b;
}

static const struct options plain = {.add_space = 0};
static const struct options spaced = {.add_space = -1};

static struct tokenizer *open_small(const struct options *o)
{
    struct build b = vocab(o);
    struct tokenizer *t = open_image(&b);

    build_free(&b); /* strings are copied */
    return t;
}

static void joins_by_score(void **state)
{
    struct tokenizer *t = open_small(&plain);

    (void)state;
    IDS(t, "", "");
    IDS(t, "a", "260");
    IDS(t, "ab", "262");
    IDS(t, "aba", "264");            /* ab, the leftmost of equals, then aba */
    IDS(t, "abba", "260 265 260");   /* bb first */
    IDS(t, "bab", "263 261");        /* ba before ab, though ab has the lower id */
    IDS(t, "ababab", "262 262 262"); /* equals from the left, before aba */
    IDS(t, "a b", "260 259 261");
    IDS(t, "\xc3\xa9", "198 172"); /* no token: its bytes, 3 + 0xc3, 3 + 0xa9 */
    IDS(t,
        "\xff"
        "a",
        "258 260");                /* not even a character */
    IDS(t, "\xe2\x96", "229 153"); /* half a character at the end */
    expect_ids(t, "a\0b", 3, false, false, "260 3 261");
    expect_ids(t, "a", 1, true, false, "1 260");
    expect_ids(t, "", 0, true, false, "1");
    tokenizer_close(t);

    t = open_small(&spaced);
    assert_true(tokenizer_adds_space(t));
    IDS(t, "a", "270");
    IDS(t, " a", "259 270");
    IDS(t, "", "");
    tokenizer_close(t);
}

/* Gemma 4: the order of merges decides and not scores, by which bb would be first; no
 * blank goes in front of a text. */
static void joins_by_merges(void **state)
{
    static const char *const merges[] = {"b a", "a b", "ab a", "\xe2\x96\x81 a", NULL};
    const struct options o = {
        .n_scores = -1, .bos = 1, .add_space = -1, .model = "gemma4", .merges = merges};
    struct tokenizer *t = open_small(&o);

    (void)state;
    assert_false(tokenizer_adds_space(t));
    IDS(t, "aba", "260 263");  /* ba comes before ab */
    IDS(t, "abba", "262 263"); /* nothing joins bb */
    IDS(t, "b a", "261 270");
    IDS(t, "\xc3\xa9", "198 172");
    expect_ids(t, "a<x>", 4, true, true, "1 260 266");
    tokenizer_close(t);
}

static void special_tokens(void **state)
{
    struct tokenizer *t = open_small(&plain);

    (void)state;
    IDS(t, "a<x>b", "260 266 261");
    IDS(t, "<x><y>", "267");
    IDS(t, "<x><x", "266 63 123"); /* 3 + '<', 3 + 'x' */
    /* Plain text never becomes a control token, however it is spelt. */
    IDS(t, "<s>", "63 118 65");
    IDS(t, "<0x41>", "63 51 123 55 52 65");
    expect_ids(t, "<s>a<end>", 9, false, true, "1 260 268");
    expect_ids(t, "<unk>", 5, false, true, "0");
    tokenizer_close(t);

    t = open_small(&spaced); /* a blank goes before each stretch of plain text */
    expect_ids(t, "a<end>a", 7, false, true, "270 268 270");
    expect_ids(t, "a<end> a", 8, false, true, "270 268 259 270");
    tokenizer_close(t);

    /* Phi-3's swallow the blanks behind them, but <s> does not. */
    t = open_small(&(struct options){.add_space = -1, .arch = "phi3"});
    expect_ids(t, "a<end> \n\ta<end>  ", 16, false, true, "270 268 270 268");
    expect_ids(t, "<s> a", 5, false, true, "1 259 270");
    tokenizer_close(t);
}

static void pieces_and_ids(void **state)
{
    struct tokenizer *t = open_small(&spaced);
    char buf[16];
    size_t len;

    (void)state;
    assert_int_equal(tokenizer_n_vocab(t), N_SMALL);
    assert_int_equal(tokenizer_bos(t), 1);
    assert_int_equal(tokenizer_eos(t), 2);
    assert_true(tokenizer_adds_bos(t));
    assert_true(tokenizer_is_end(t, 2));
    assert_true(tokenizer_is_end(t, 269));
    assert_false(tokenizer_is_end(t, 268));
    assert_false(tokenizer_is_end(t, -1));

    assert_int_equal(tokenizer_piece(t, 270, buf, sizeof buf), 2);
    assert_memory_equal(buf, " a", 2);
    assert_int_equal(tokenizer_piece(t, 3 + 0xe9, buf, sizeof buf), 1);
    assert_int_equal((unsigned char)buf[0], 0xe9);
    assert_int_equal(tokenizer_piece(t, 266, buf, sizeof buf), 3);
    assert_memory_equal(buf, "<x>", 3);
    assert_int_equal(tokenizer_piece(t, 0, buf, sizeof buf), 0);
    assert_int_equal(tokenizer_piece(t, 1, buf, sizeof buf), 0);

    /* Too small a buffer: the length, and nothing written. */
    buf[0] = '#';
    assert_int_equal(tokenizer_piece(t, 264, buf, 2), 3);
    assert_int_equal(tokenizer_piece(t, 10, buf, 0), 1);
    assert_int_equal(buf[0], '#');
    assert_memory_equal(tokenizer_text(t, 270, &len),
                        "\xe2\x96\x81"
                        "a",
                        4);
    assert_int_equal(len, 4);
    tokenizer_close(t);
}

/* Any bytes come back as they were, behind the blank put in front. */
static void round_trip(void **state)
{
    struct tokenizer *small_t = open_small(&spaced), *stories = open_file(STORIES);
    struct tokenizer *const both[] = {small_t, stories};
    uint64_t seed = 3;

    (void)state;
    for (int round = 0; round < 400; round++) {
        const struct tokenizer *t = both[round % 2];
        char text[96], back[256], piece[64];
        const size_t len = 1 + test_random(&seed) % sizeof text;
        const uint64_t mode = test_random(&seed) % 3;
        struct err err = ERR_INIT;
        int32_t *ids = NULL;
        size_t n = 0, used = 0;

        for (size_t i = 0; i < len; i++) {
            const uint64_t r = test_random(&seed);

            text[i] = mode == 0   ? (char)r
                      : mode == 1 ? "ab <x>\n"[r % 7]
                                  : " the and\xe2\x96\x81"[r % 11];
        }
        /* U+2581 itself is the one character that comes back as a blank. */
        for (size_t i = 0; i + 2 < len; i++) {
            if (!memcmp(text + i, "\xe2\x96\x81", 3))
                text[i] = 'x';
        }
        assert_int_equal(tokenizer_encode(t, text, len, false, false, &ids, &n, &err),
                         ST_OK);
        for (size_t i = 0; i < n; i++) {
            const size_t k = tokenizer_piece(t, ids[i], piece, sizeof piece);

            assert_true(k < sizeof piece && used + k <= sizeof back);
            memcpy(back + used, piece, k);
            used += k;
        }
        free(ids);
        if (t == small_t && memchr(text, '<', len))
            continue; /* blanks stand behind user-defined tokens, too */
        assert_int_equal(used, len + 1);
        assert_int_equal(back[0], ' ');
        assert_memory_equal(back + 1, text, len);
    }
    tokenizer_close(small_t);
    tokenizer_close(stories);
}

static void stories_vectors(void **state)
{
    struct tokenizer *t = open_file(STORIES);

    (void)state;
    IDS(t, "Once upon a time, there was a little girl named Lily.",
        "403 407 261 378 432 383 286 261 376 298 315 421 395 317 426");
    IDS(t, "a\nb\xff", "261 13 430 258");
    expect_ids(t, "<s>Hi</s> you", 13, true, true, "1 320 417 2 410 364");
    tokenizer_close(t);
}

/* A long text takes n log n, not n squared: this would take minutes. */
static void long_text(void **state)
{
    struct tokenizer *t = open_small(&plain);
    const size_t len = 300000;
    char *text = malloc(len);
    struct err err = ERR_INIT;
    int32_t *ids;
    size_t n;

    (void)state;
    assert_non_null(text);
    memset(text, 'b', len);
    assert_int_equal(tokenizer_encode(t, text, len, false, false, &ids, &n, &err),
                     ST_OK);
    assert_int_equal(n, len / 2);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ids[i], 265);
    free(ids);
    free(text);
    tokenizer_close(t);
}

static int n_looks;

static bool stopped_at_last(void)
{
    return n_looks-- <= 0;
}

/* By every algorithm: between two words, wherever it is then. */
static void encoding_can_be_stopped(void **state)
{
    static const char *const models[] = {STORIES,
                                         TEST_DATA "models/zoo/bert-mean.gguf"};
    struct err err = ERR_INIT;
    int32_t *ids = NULL;
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct tokenizer *t = open_file(models[i]);

        tokenizer_stop_when(t, stopped_at_last);
        n_looks = 3;
        assert_int_equal(tokenizer_encode(t, "a b c d e f g h i j k l m n o p", 31,
                                          false, false, &ids, &n, &err),
                         ST_INTERRUPTED);
        assert_string_equal(err.msg, "interrupted");
        assert_null(ids);
        err_clear(&err);
        n_looks = 1000;
        assert_int_equal(tokenizer_encode(t, "a b c d e f g h i j k l m n o p", 31,
                                          false, false, &ids, &n, &err),
                         ST_OK);
        free(ids);
        ids = NULL;
        tokenizer_close(t);
    }
}

/* A way through the text is found whatever its score is. */
static void unigrams_of_any_score(void **state)
{
    static const float scores[] = {-INFINITY, -3e38f, -1, 3e38f, INFINITY};

    (void)state;
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        struct tokenizer *t =
            open_small(&(struct options){.model = "t5", .same_score = scores[i]});

        IDS(t, "aba", scores[i] < 0 ? "264" : "260 261 260");
        IDS(t, "bb", scores[i] < 0 ? "265" : "261 261");
        tokenizer_close(t);
    }
}

static void refuses(struct options o, enum status want, const char *fragment)
{
    struct build b = vocab(&o);

    refuse_image(&b, want, fragment);
}

static void wrong_metadata(void **state)
{
    struct build b = build_new();

    (void)state;
    refuses((struct options){.n_scores = 5}, ST_INPUT, "scores has 5 entries");
    refuses((struct options){.n_scores = -1}, ST_INPUT, "scores is missing");
    refuses((struct options){.n_types = 7}, ST_INPUT, "token_type has 7 entries");
    refuses((struct options){.bos = N_SMALL}, ST_INPUT, "outside the vocabulary");
    refuses((struct options){.bad_score = __builtin_nanf("")}, ST_INPUT,
            "score of token 5");
    refuses((struct options){.byte_text = "<0xG1>"}, ST_INPUT, "typed as a byte");
    refuses((struct options){.add_space = -1, .model = "gemma4"}, ST_INPUT,
            "no tokenizer.ggml.merges");
    refuses((struct options){.model = "rwkv"}, ST_UNSUPPORTED,
            "'rwkv' is not supported (known: llama, gpt2, gemma4, t5, bert)");

    put_header(&b, 3, 0, 0);
    refuse_image(&b, ST_INPUT, "tokenizer.ggml.model");

    /* All bits set means none; without types the byte tokens are known by name. */
    struct tokenizer *none = open_small(&(struct options){.bos = UINT32_MAX});

    assert_int_equal(tokenizer_bos(none), -1);
    expect_ids(none, "a", 1, true, false, "260");
    tokenizer_close(none);
    struct tokenizer *untyped = open_small(&(struct options){.n_types = -1});

    IDS(untyped, "a\n<s>", "260 13 63 118 65");
    tokenizer_close(untyped);
}

/* ---- UTF-8 ----------------------------------------------------------------------- */

static void stream_whole_characters(void **state)
{
    const char text[] =
        "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff\xe2\x28\xc3\xc3\xa9z";
    const size_t len = sizeof text - 1;
    struct utf8_stream s = {0};
    char out[64];
    size_t used = 0;

    (void)state;
    /* Byte by byte, what has come out is always whole characters, and in the end
     * everything, also what is malformed, has come out unchanged. */
    for (size_t i = 0; i < len; i++) {
        used += utf8_stream_push(&s, text + i, 1, out + used);
        assert_true(used + (size_t)s.n_pending == i + 1);
        assert_memory_equal(out, text, used);
    }
    assert_int_equal(used, len);
    assert_int_equal(utf8_stream_flush(&s, out), 0);

    assert_int_equal(utf8_stream_push(&s, "x\xf0\x9f\x98", 4, out), 1);
    assert_int_equal(utf8_stream_push(&s, "\x80y\xe2", 3, out), 5);
    assert_memory_equal(out, "\xf0\x9f\x98\x80y", 5);
    assert_int_equal(utf8_stream_flush(&s, out), 1);
    assert_int_equal(utf8_stream_flush(&s, out), 0);
}

static void printable(void **state)
{
    char buf[64], small_buf[12];

    (void)state;
    assert_string_equal(
        utf8_printable(buf, sizeof buf, "a\x1b[m\n\x7f\xc2\x9b\xff\0\xc3\xa9", 12),
        "a\\x1b[m\\x0a\\x7f\\xc2\\x9b\\xff\\x00\xc3\xa9");
    assert_string_equal(utf8_printable(small_buf, sizeof small_buf, "0123456789a", 11),
                        "0123456789a");
    assert_string_equal(utf8_printable(small_buf, sizeof small_buf, "0123456789ab", 12),
                        "01234567...");
    assert_int_equal(utf8_char_len("\xed\xa0\x80", 3), 0); /* a surrogate */
    assert_int_equal(utf8_char_len("\xc0\x80", 2), 0);     /* overlong */
    assert_int_equal(utf8_char_len("\xf4\x90\x80\x80", 4), 0);
    assert_int_equal(utf8_char_len("\xe2\x82", 2), -1);
}

/* ---- published vectors ----------------------------------------------------------- */

static void vectors_llama_spm(void **state)
{
    (void)state;
    check_vectors("llama-spm");
}

static void vectors_phi_3(void **state)
{
    (void)state;
    check_vectors("phi-3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_by_score),
        cmocka_unit_test(joins_by_merges),
        cmocka_unit_test(special_tokens),
        cmocka_unit_test(pieces_and_ids),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(stories_vectors),
        cmocka_unit_test(long_text),
        cmocka_unit_test(encoding_can_be_stopped),
        cmocka_unit_test(unigrams_of_any_score),
        cmocka_unit_test(wrong_metadata),
        cmocka_unit_test(stream_whole_characters),
        cmocka_unit_test(printable),
        cmocka_unit_test(vectors_llama_spm),
        cmocka_unit_test(vectors_phi_3),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
