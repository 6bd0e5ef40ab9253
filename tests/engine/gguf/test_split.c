/* SPDX-License-Identifier: MIT
 *
 * test_split.c - a model in several GGUF files: names, parts that lie, rows from the
 * file that has them; and assembled files in general
 */
#include "tests/support/tree.h"

#include "engine/gguf/gguf_panels.h"
#include "engine/gguf/gguf_put.h"
#include "engine/gguf/gguf_split.h"

static void names_of_parts(void **state)
{
    static const struct {
        const char *path;
        int count;
        const char *stem;
    } cases[] = {
        {"m-00001-of-00003.gguf", 3, "m"},
        {"dir/m-00003-of-00003.gguf", 3, "dir/m"},
        {"m-00001-of-00001.gguf", 1, "m"},
        {"-00001-of-00003.gguf", 1, NULL}, /* no name */
        {"m.gguf", 1, NULL},
        {"", 1, NULL},
        {"model_00001-of-00003.gguf", 1, NULL},
        {"model-0000a-of-00003.gguf", 1, NULL},
        {"model-00001-if-00003.gguf", 1, NULL},
        {"model-00001-of-0000b.gguf", 1, NULL},
        {"model-00001-of-00003.gguff", 1, NULL},
        {"model-00001-of-00003.GGUF", 1, NULL},
        {"model-00000-of-00003.gguf", 1, NULL},
        {"model-00004-of-00003.gguf", 1, NULL},
    };
    char part[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = cases[i].path;
        const char *stem = cases[i].stem ? cases[i].stem : path;

        if (gguf_split_count(path) != cases[i].count ||
            gguf_split_stem(path) != strlen(stem))
            fail_msg("%s: %d parts, stem of %zu bytes", path, gguf_split_count(path),
                     gguf_split_stem(path));
    }
    assert_true(gguf_split_path(part, sizeof part, "d/m-00001-of-00012.gguf", 10));
    assert_string_equal(part, "d/m-00011-of-00012.gguf");
    assert_true(gguf_split_path(part, sizeof part, "m.gguf", 10));
    assert_string_equal(part, "m.gguf");
    assert_false(gguf_split_path(part, 7, "m.gguf.x", 0));
    assert_false(gguf_split_path(part, 21, "m-00001-of-00012.gguf", 0));
}

/* ---- parts ----------------------------------------------------------------------- */

/* A part as its header describes it; -1: no such pair. */
struct part {
    int no, count, n_promised;
    const char
        *tensors[3]; /* of two rows of 8 numbers, from 100 times their letter on */
};

static void write_part(const char *path, const struct part *p)
{
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes b = {.n = 0};
    uint64_t n = 0;

    gguf_kv_str(&k, "general.architecture", "llama");
    gguf_kv_u32(&k, "split", 7); /* is kept: shorter than split.* */
    gguf_kv_array(&k, GGUF_KEY_CHECKSUMS, GGUF_U64, 0);
    gguf_kv_u32(&k, "general.alignment", 64);
    if (p->no >= 0)
        gguf_kv_u32(&k, "split.no", (uint32_t)p->no);
    if (p->count >= 0)
        gguf_kv_u32(&k, "split.count", (uint32_t)p->count);
    if (p->n_promised >= 0)
        gguf_kv_u64(&k, "split.tensors.count", (uint64_t)p->n_promised);
    while (n < 3 && p->tensors[n])
        n++;
    gguf_put_head(&b, n, &k);
    for (uint64_t i = 0; i < n; i++)
        gguf_put_tensor(&b, p->tensors[i], 2, (uint64_t[]){8, 2}, 0, 64 * i);
    while (b.n % 64)
        gguf_put(&b, "", 1);
    for (uint64_t i = 0; i < n; i++)
        for (int v = 0; v < 16; v++)
            gguf_put_f32(&b, (float)(100 * p->tensors[i][0] + v));
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(b.data, 1, b.n, f), b.n);
    fclose(f);
    free(b.data);
    free(k.bytes.data);
}

/* Writes the parts and joins them from the one called `name`. */
static enum status join(struct gguf **whole, const char *root, const char *const *names,
                        const struct part *parts, int n, int from, struct err *err)
{
    char path[160];
    struct gguf *g;

    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        write_part(path, &parts[i]);
    }
    snprintf(path, sizeof path, "%s/%s", root, names[from]);
    assert_int_equal(gguf_open(&g, path, err), ST_OK);
    assert_true(gguf_split_is(g));
    return gguf_split_join(whole, g, err);
}

static const char *const two[] = {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"};

static void parts_are_one_model(void **state)
{
    static const struct part parts[] = {{0, 2, 3, {"a", "b"}}, {1, 2, -1, {"c"}}};
    char root[64];
    uint64_t v;

    (void)state;
    for (int from = 0; from < 2; from++) {
        struct err err = ERR_INIT;
        struct gguf *g;
        float row[8];

        tree_new(root);
        if (join(&g, root, two, parts, 2, from, &err))
            fail_msg("%s", err.msg);
        assert_true(gguf_is_assembled(g));
        assert_false(gguf_is_folder(g));
        assert_false(gguf_split_is(g));
        assert_int_equal(gguf_n_tensors(g), 3);
        assert_int_equal(gguf_alignment(g), 64);
        assert_true(gguf_get_u64(g, "split", &v));
        assert_null(gguf_kv_find(g, GGUF_KEY_CHECKSUMS));
        assert_null(gguf_kv_find(g, "split.no"));
        assert_null(gguf_kv_find(g, "split.tensors.count"));
        for (int i = 0; i < 3; i++) {
            const struct gguf_tensor *t = gguf_tensor_at(g, (size_t)i);

            assert_int_equal(gguf_read_rows(g, t, 1, 1, i == 1, row, &err), ST_OK);
            assert_float_equal(row[0], 100.0 * ('a' + i) + 8, 0.0);
        }
        /* a part that has become shorter */
        char path[160];

        snprintf(path, sizeof path, "%s/%s", root, two[1]);
        assert_int_equal(truncate(path, 64), 0);
        assert_int_equal(gguf_read_rows(g, gguf_tensor_at(g, 2), 0, 2, true, row, &err),
                         ST_IO);
        gguf_close(g);
        tree_remove(root);
    }
}

static void parts_that_lie_are_refused(void **state)
{
    static const struct {
        struct part parts[2];
        const char *names[2];
        enum status st;
        const char *message;
    } cases[] = {
        {{{0, 2, 4, {"a"}}, {1, 2, -1, {"c"}}},
         {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
         ST_INPUT,
         "promises 4 tensors in 2 files, and they have 2"},
        {{{1, 2, -1, {"a"}}, {1, 2, -1, {"c"}}},
         {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
         ST_INPUT,
         "has the header of part 2 of 2 of a model, but its name is that of part 1 of "
         "2"},
        {{{0, 2, -1, {"a"}}, {1, 3, -1, {"c"}}},
         {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
         ST_INPUT,
         "has the header of part 2 of 3"},
        {{{0, 2, -1, {"a"}}, {1, -1, -1, {"c"}}},
         {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
         ST_INPUT,
         "has the header of part 2 of 0"},
        {{{0, 2, -1, {"a"}}, {1, 2, -1, {"a"}}},
         {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
         ST_INPUT,
         "'a' occurs twice"},
        {{{0, 2, -1, {"a"}}, {1, 2, -1, {"c"}}},
         {"m-00001-of-00002.gguf", "n-00002-of-00002.gguf"},
         ST_IO,
         "cannot open "},
        {{{0, 2, -1, {"a"}}, {1, 2, -1, {"c"}}},
         {"m.gguf", "n.gguf"},
         ST_INPUT,
         "is a part of a model, but its name is not that of a part"},
        {{{0, 1001, -1, {"a"}}, {1, 2, -1, {"c"}}},
         {"m-00001-of-01001.gguf", "n.gguf"},
         ST_INPUT,
         "and so on, at most 1000"},
    };
    char root[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct gguf *g = NULL;

        tree_new(root);
        if (join(&g, root, cases[i].names, cases[i].parts, 2, 0, &err) != cases[i].st ||
            !strstr(err.msg, cases[i].message))
            fail_msg("%d '%s', not '%s'", (int)err.code, err.msg, cases[i].message);
        assert_null(g);
        tree_remove(root);
    }
}

/* The name of an image in memory may be of any length. */
static void long_paths_are_refused(void **state)
{
    char name[5000];
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes b = {.n = 0};
    struct err err = ERR_INIT;
    struct gguf *g, *whole = NULL;
    void *image = aligned_alloc(64, 128);

    (void)state;
    memset(name, 'n', sizeof name);
    strcpy(name + sizeof name - 30, two[0]);
    gguf_kv_u32(&k, "split.count", 2);
    gguf_put_head(&b, 0, &k);
    gguf_put_padding(&b);
    memcpy(image, b.data, b.n);
    assert_int_equal(gguf_parse(&g, image, b.n, name, &err), ST_OK);
    assert_int_equal(gguf_split_join(&whole, g, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "the path of a model's part is too long"));
    assert_null(whole);
    free(image);
    free(b.data);
    free(k.bytes.data);
}

/* ---- assembled files ------------------------------------------------------------- */

static enum status no_rows(void *arg, const struct gguf_tensor *t, uint64_t row,
                           uint64_t n_rows, bool drop, void *dst, struct err *err)
{
    (void)arg, (void)t, (void)row, (void)n_rows, (void)drop, (void)dst;
    return err_set(err, ST_IO, "no rows");
}

static void count_close(void *arg)
{
    ++*(int *)arg;
}

/* Its bytes are those up to the end of the last tensor, wherever that is described. */
static void files_are_assembled(void **state)
{
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes b = {.n = 0};
    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    int n_closed = 0;
    const struct gguf_source source = {no_rows, count_close, &n_closed};
    char root[64];

    (void)state;
    tree_new(root);
    gguf_put_head(&b, 2, &k);
    gguf_put_tensor(&b, "b", 1, (uint64_t[]){8}, 0, 32);
    gguf_put_tensor(&b, "a", 1, (uint64_t[]){8}, 0, 0);
    gguf_put_padding(&b);
    const size_t head = b.n;

    assert_int_equal(gguf_assemble(&g, b.data, b.n, root, &source, &err), ST_OK);
    assert_int_equal(gguf_image_bytes(g), head + 64);
    assert_true(gguf_is_folder(g));
    assert_int_equal(gguf_read_rows(g, gguf_tensor_at(g, 0), 0, 1, false, NULL, &err),
                     ST_IO);
    gguf_close(g);
    assert_int_equal(n_closed, 1);
    tree_remove(root);

    err_clear(&err);
    assert_int_equal(gguf_assemble(&g,
                                   memcpy(malloc(24), "no GGUF file, 24 bytes..", 24),
                                   24, "it", &source, &err),
                     ST_INPUT);
    assert_int_equal(n_closed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_parts),
        cmocka_unit_test(parts_are_one_model),
        cmocka_unit_test(parts_that_lie_are_refused),
        cmocka_unit_test(long_paths_are_refused),
        cmocka_unit_test(files_are_assembled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
