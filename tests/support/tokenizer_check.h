/* SPDX-License-Identifier: MIT
 *
 * tokenizer_check.h - open a vocabulary from an image or a file, compare ids, and the
 * published vectors, which stay where they are
 */
#ifndef SLM_TESTS_TOKENIZER_CHECK_H
#define SLM_TESTS_TOKENIZER_CHECK_H

#include "tests/support/test.h"

#include <unistd.h>

#include "engine/tokenizer/tokenizer.h"
#include "tests/support/gguf_build.h"

static inline struct tokenizer *open_image(const struct build *b)
{
    struct err err = ERR_INIT;
    struct tokenizer *t = NULL;
    struct gguf *g;

    assert_int_equal(gguf_parse(&g, b->data, b->n, "vocab", &err), ST_OK);
    if (tokenizer_open(&t, g, &err))
        fail_msg("%s", err.msg);
    gguf_close(g);
    return t;
}

/* The image is a model file whose vocabulary is refused, with fragment in the
 * message; it is freed. */
static inline void refuse_image(struct build *b, enum status want, const char *fragment)
{
    struct err err = ERR_INIT;
    struct tokenizer *t = NULL;
    struct gguf *g;

    assert_int_equal(gguf_parse(&g, b->data, b->n, "vocab", &err), ST_OK);
    assert_int_equal(tokenizer_open(&t, g, &err), want);
    assert_null(t);
    if (!strstr(err.msg, fragment))
        fail_msg("'%s' is not in: %s", fragment, err.msg);
    gguf_close(g);
    build_free(b);
}

static inline struct tokenizer *open_file(const char *path)
{
    struct err err = ERR_INIT;
    struct tokenizer *t = NULL;
    struct gguf *g;

    if (gguf_open(&g, path, &err) || tokenizer_open(&t, g, &err))
        fail_msg("%s", err.msg);
    gguf_close(g);
    return t;
}

/* Ids of text, written as "1 2 3". */
static inline void expect_ids(const struct tokenizer *t, const char *text, size_t len,
                              bool bos, bool special, const char *want)
{
    struct err err = ERR_INIT;
    int32_t *ids = NULL;
    size_t n = 0, used = 0;
    char *got = calloc(1, len * 12 + 64);

    assert_non_null(got);
    assert_int_equal(tokenizer_encode(t, text, len, bos, special, &ids, &n, &err),
                     ST_OK);
    assert_non_null(ids);
    for (size_t i = 0; i < n; i++)
        used += (size_t)sprintf(got + used, "%s%d", i ? " " : "", ids[i]);
    assert_string_equal(got, want);
    free(got);
    free(ids);
}

/* Encoding with a limit gives the same ids where they are not too many; where they are,
 * it ends at most n_soon of them behind the limit. */
static inline void check_limit(const struct tokenizer *t, const char *text, size_t len,
                               bool special, size_t max_ids, size_t n_soon)
{
    struct err err = ERR_INIT;
    int32_t *ids = NULL, *all = NULL;
    size_t n = 0, n_all = 0;

    assert_int_equal(tokenizer_encode(t, text, len, true, special, &all, &n_all, &err),
                     ST_OK);
    assert_int_equal(
        tokenizer_encode_up_to(t, text, len, true, special, max_ids, &ids, &n, &err),
        ST_OK);
    if (n_all <= max_ids) {
        assert_int_equal(n, n_all);
        assert_memory_equal(ids, all, n * sizeof *ids);
    } else {
        assert_null(ids);
        assert_in_range(n, max_ids + 1,
                        max_ids + n_soon < n_all ? max_ids + n_soon : n_all);
    }
    free(all);
    free(ids);
}

#define IDS(t, text, want) expect_ids(t, text, sizeof(text) - 1, false, false, want)

static inline char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text;
    long n;

    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    n = ftell(f);
    rewind(f);
    text = calloc(1, (size_t)n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    fclose(f);
    return text;
}

/* The published vocabulary of that name, or skip the test. */
static inline void published_path(char *path, size_t cap, const char *name)
{
    const char *root = getenv("SLM_SHARED");

    snprintf(path, cap, "%s/golden/tokenizers/ggml-vocab-%s.gguf",
             root ? root : SLM_SOURCE_DIR "/../shared", name);
    if (access(path, R_OK)) {
        print_message("no %s: set SLM_SHARED to where golden/tokenizers lies\n", path);
        skip();
    }
}

static inline void check_vectors(const char *name)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    char path[512], file[600];

    published_path(path, sizeof path, name);
    snprintf(file, sizeof file, "%s.inp", path);
    char *texts = slurp(file);

    assert_non_null(texts);
    snprintf(file, sizeof file, "%s.out", path);
    char *wants = slurp(file);
    struct tokenizer *t = open_file(path);
    int n = 0;

    assert_non_null(wants);
    for (char *text = texts, *want = wants; text && *want; n++) {
        char *end = strstr(text, separator), *line = strchr(want, '\n');

        if (end)
            *end = '\0';
        if (line)
            *line = '\0';
        expect_ids(t, text, strlen(text), false, false, want + (*want == ' '));
        text = end ? end + sizeof separator - 1 : NULL;
        want = line ? line + 1 : want + strlen(want);
    }
    assert_true(n > 40);
    tokenizer_close(t);
    free(texts);
    free(wants);
}

#endif
