/* SPDX-License-Identifier: MIT
 *
 * test_imatrix.c - importance matrices in memory and in files, sound and damaged
 */
#include "tests/support/test.h"

#include <math.h>

#include "engine/gguf/gguf_put.h"
#include "engine/quantize/imatrix.h"

#define FILE_NAME "/tmp/test_imatrix.XXXXXX"

static void temporary(char *path)
{
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
}

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static struct imatrix *example(void)
{
    struct imatrix *im;
    struct imatrix_entry *e;
    struct err err = ERR_INIT;

    assert_int_equal(imatrix_new(&im, 128, &err), ST_OK);
    assert_int_equal(imatrix_entry(im, &e, "blk.0.attn_q.weight", 6, 1, &err), ST_OK);
    e->counts[0] = 10;
    for (int i = 0; i < 6; i++)
        e->sum2[i] = i;
    assert_int_equal(imatrix_entry(im, &e, "blk.0.ffn_up_exps.weight", 3, 2, &err),
                     ST_OK);
    e->counts[1] = 4;
    for (int i = 0; i < 3; i++)
        e->sum2[3 + i] = 0.5 * (i + 1);
    imatrix_add_chunks(im, 5);
    assert_int_equal(imatrix_add_dataset(im, "a.txt", &err), ST_OK);
    assert_int_equal(imatrix_add_dataset(im, "b.txt", &err), ST_OK);
    assert_int_equal(imatrix_add_dataset(im, "a.txt", &err), ST_OK);
    return im;
}

static void files_come_back_as_they_were(void **state)
{
    struct imatrix *im = example(), *back = NULL;
    const struct imatrix_entry *e;
    struct err err = ERR_INIT;
    char path[] = FILE_NAME;
    struct gguf *file = NULL;
    uint64_t chunk_size;

    (void)state;
    temporary(path);
    if (imatrix_write(im, path, &err) || imatrix_read(&back, path, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(imatrix_n_entries(back), 2);
    assert_int_equal(imatrix_n_chunks(back), 5);
    assert_int_equal(imatrix_n_datasets(back), 2);
    assert_string_equal(imatrix_dataset(back, 1), "b.txt");
    for (size_t i = 0; i < 2; i++) {
        const struct imatrix_entry *want = imatrix_entry_at(im, i);

        e = imatrix_find(back, want->name);
        assert_non_null(e);
        assert_int_equal(e->n_cols, want->n_cols);
        assert_int_equal(e->n_slices, want->n_slices);
        assert_memory_equal(e->counts, want->counts, want->n_slices * sizeof(double));
        assert_memory_equal(e->sum2, want->sum2,
                            want->n_slices * want->n_cols * sizeof(double));
    }
    assert_null(imatrix_find(back, "blk.1.attn_q.weight"));
    if (imatrix_write(back, path, &err) || gguf_open(&file, path, &err))
        fail_msg("%s", err.msg);
    assert_true(gguf_get_u64(file, "imatrix.chunk_size", &chunk_size));
    assert_int_equal(chunk_size, 128);
    gguf_close(file);
    imatrix_free(im);
    imatrix_free(back);
    unlink(path);
}

static void weights_have_a_mean_of_one(void **state)
{
    struct imatrix *im = example();
    const struct imatrix_entry *q = imatrix_find(im, "blk.0.attn_q.weight");
    const struct imatrix_entry *up = imatrix_find(im, "blk.0.ffn_up_exps.weight");
    float w[6];

    (void)state;
    assert_true(imatrix_fits(q, 6, 1));
    assert_false(imatrix_fits(q, 5, 1));
    assert_true(imatrix_fits(q, 3, 2)); /* an older file has no slices */
    assert_true(imatrix_fits(up, 3, 2));
    assert_false(imatrix_fits(up, 6, 1));
    imatrix_weights(q, 6, 0, w);
    assert_float_equal(w[0], 1e-6, 1e-9); /* not nothing */
    assert_float_equal(w[5], 2.0, 1e-6);
    imatrix_weights(up, 3, 1, w);
    assert_float_equal(w[0], 0.5, 1e-6);
    assert_float_equal(w[2], 1.5, 1e-6);
    imatrix_weights(up, 3, 0, w); /* an expert that nobody took */
    assert_float_equal(w[0], 1.0, 1e-6);
    assert_float_equal(w[2], 1.0, 1e-6);
    imatrix_free(im);
}

static void entries_of_another_shape_are_refused(void **state)
{
    struct imatrix *im = example();
    struct imatrix_entry *e;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(imatrix_entry(im, &e, "blk.0.attn_q.weight", 7, 1, &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "another model"));
    err_clear(&err);
    assert_int_equal(imatrix_entry(im, &e, "blk.0.ffn_up_exps.weight", 3, 3, &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "3 columns and 2 slices for "
                                    "blk.0.ffn_up_exps.weight, the model 3 and 3"));
    err_clear(&err);
    assert_int_equal(
        imatrix_entry(im, &e, "large", UINT64_C(1) << 40, UINT64_C(1) << 40, &err),
        ST_NO_MEMORY);
    assert_null(imatrix_find(im, "large"));
    const struct imatrix_entry *two = imatrix_find(im, "blk.0.ffn_up_exps.weight");

    assert_true(imatrix_fits(two, 3, 2));
    assert_false(imatrix_fits(two, 3, 1));
    assert_false(imatrix_fits(two, 6, 2));
    imatrix_free(im);
}

/* One entry "ab" with values 2, 4 of two calls, and a data set's name behind it. */
static size_t old_form(unsigned char *b)
{
    const int32_t one = 1, two = 2, last = 9, len = 3;
    const float values[2] = {2, 4};
    size_t n = 0;

#define PUT(v) (memcpy(b + n, &(v), sizeof(v)), n += sizeof(v))
    PUT(one);
    PUT(two);
    memcpy(b + n, "ab", 2);
    n += 2;
    PUT(two);
    PUT(two);
    PUT(values);
    PUT(last);
    PUT(len);
    memcpy(b + n, "txt", 3);
    return n + 3;
}

static void the_older_form_is_read(void **state)
{
    unsigned char b[128];
    const size_t n = old_form(b), needed = n - 11;
    char path[] = FILE_NAME;

    (void)state;
    temporary(path);
    for (size_t cut = 0; cut <= n; cut++) {
        struct imatrix *im = NULL;
        struct err err = ERR_INIT;

        write_file(path, b, cut);
        if (cut < needed) {
            assert_int_equal(imatrix_read(&im, path, &err), ST_INPUT);
            assert_non_null(strstr(err.msg, path));
            continue;
        }
        if (imatrix_read(&im, path, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(imatrix_n_entries(im), 1);
        assert_int_equal(imatrix_find(im, "ab")->n_cols, 2);
        assert_true(imatrix_find(im, "ab")->sum2[1] == 4);
        assert_true(imatrix_find(im, "ab")->counts[0] == 2);
        imatrix_free(im);
    }
    unlink(path);
}

/* Whatever byte is cut off or changed: an error that names the file, or a sound
 * matrix. */
static void damaged_files_are_refused(void **state)
{
    static unsigned char whole[4096], b[4096];
    struct imatrix *im = example();
    struct err first = ERR_INIT;
    char path[] = FILE_NAME;
    FILE *f;
    size_t n;

    (void)state;
    temporary(path);
    assert_int_equal(imatrix_write(im, path, &first), ST_OK);
    imatrix_free(im);
    f = fopen(path, "rb");
    assert_non_null(f);
    n = fread(whole, 1, sizeof whole, f);
    fclose(f);
    assert_true(n > 200 && n < sizeof whole);
    for (size_t i = 0; i < 2 * n; i++) {
        struct err err = ERR_INIT;

        memcpy(b, whole, n);
        b[i % n] ^= 0x81;
        write_file(path, b, i < n ? n : i - n);
        im = NULL;
        if (imatrix_read(&im, path, &err) == ST_OK)
            imatrix_free(im);
        else
            assert_non_null(strstr(err.msg, path));
    }
    for (size_t v = 0; v < 2; v++) {
        const float bad = v ? NAN : -1.0f;
        struct err err = ERR_INIT;

        memcpy(b, whole, n);
        memcpy(b + n - 4 * 32 + 4, &bad, sizeof bad); /* a value of the first sum */
        write_file(path, b, n);
        assert_int_equal(imatrix_read(&im, path, &err), ST_INPUT);
    }
    unlink(path);
}

static void other_files_are_refused(void **state)
{
    struct imatrix *im;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(imatrix_read(&im, TEST_DATA "models/stories260K-f32.gguf", &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "no importance matrix"));
    err = (struct err)ERR_INIT;
    assert_int_equal(imatrix_read(&im, "/nowhere/at/all", &err), ST_IO);
}

/* ---- lies in either form --------------------------------------------------------- */

/* A sum of n elements in slices, the count of each, and a list called datasets. */
struct lie {
    const char *name, *count_name;
    uint64_t n_cols, n_slices, n_counts;
    uint32_t sum_type, count_type;
    float sum, count;
    const char *message; /* NULL: read */
};

static void write_lie(const char *path, const struct lie *l, const char *dataset)
{
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes b = {.n = 0};
    const uint64_t sums[2] = {l->n_cols, l->n_slices}, counts[2] = {1, l->n_counts};

    gguf_kv_str(&k, "general.type", "imatrix");
    if (dataset) {
        gguf_kv_array(&k, "imatrix.datasets", GGUF_STRING, 1);
        gguf_put_str(&k.bytes, dataset);
    } else {
        gguf_kv_array(&k, "imatrix.datasets", GGUF_U32, 1);
        gguf_put_u32(&k.bytes, 1);
    }
    gguf_put_head(&b, 2, &k);
    gguf_put_tensor(&b, l->name, 2, sums, l->sum_type, 0);
    gguf_put_tensor(&b, l->count_name, 2, counts, l->count_type, 64);
    gguf_put_padding(&b);
    for (int i = 0; i < 16; i++)
        gguf_put_f32(&b, i == 1 ? l->sum : 1);
    for (int i = 0; i < 16; i++)
        gguf_put_f32(&b, i == 1 ? l->count : 1);
    write_file(path, b.data, b.n);
    free(b.data);
    free(k.bytes.data);
}

static void lies_are_refused(void **state)
{
    static char long_name[1100];
    const struct lie lies[] = {
        {"a.in_sum2", "a.counts", 4, 2, 2, 0, 0, 1, 1, NULL},
        {"a.in_sum2", "b.counts", 4, 2, 2, 0, 0, 1, 1, "sums and counts do not match"},
        {"a.in_sum2", "a.counts", 4, 2, 3, 0, 0, 1, 1, "sums and counts do not match"},
        {"a.in_sum2", "a.counts", 4, 2, 2, 1, 0, 1, 1, "sums and counts do not match"},
        {"a.in_sum2", "a.counts", 4, 2, 2, 0, 1, 1, 1, "sums and counts do not match"},
        {"a.in_sum2", "a.counts", 4, 2, 2, 0, 0, 1, -1, "a count is no number"},
        {"a.in_sum2", "a.counts", 4, 2, 2, 0, 0, 1, INFINITY, "a count is no number"},
        {"a.in_sum2", "a.counts", 4, 2, 2, 0, 0, INFINITY, 1, "a sum of squares is"},
        {".in_sum2", "a.counts", 4, 2, 2, 0, 0, 1, 1, "it has no entries"},
        {"a.weight", "a.counts", 4, 2, 2, 0, 0, 1, 1, "it has no entries"},
        {long_name, "a.counts", 4, 2, 2, 0, 0, 1, 1, "a name is too long"},
    };
    char path[] = FILE_NAME;

    (void)state;
    memset(long_name, 'a', 1080);
    strcpy(long_name + 1080, ".in_sum2");
    temporary(path);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct imatrix *im = NULL;
        struct err err = ERR_INIT;

        write_lie(path, &lies[i], "text");
        if (!lies[i].message) {
            assert_int_equal(imatrix_read(&im, path, &err), ST_OK);
            assert_string_equal(imatrix_dataset(im, 0), "text");
            imatrix_free(im);
            continue;
        }
        if (imatrix_read(&im, path, &err) != ST_INPUT ||
            !strstr(err.msg, lies[i].message) || !strstr(err.msg, path))
            fail_msg("'%s', not '%s'", err.msg, lies[i].message);
        assert_null(im);
    }
    /* A list of numbers names no texts, and long names are cut. */
    for (int i = 0; i < 2; i++) {
        struct imatrix *im = NULL;
        struct err err = ERR_INIT;

        write_lie(path, &lies[0], i ? long_name : NULL);
        assert_int_equal(imatrix_read(&im, path, &err), ST_OK);
        assert_int_equal(imatrix_n_datasets(im), i);
        if (i)
            assert_int_equal(strlen(imatrix_dataset(im, 0)), 1000);
        imatrix_free(im);
    }
    unlink(path);
}

static void lies_of_the_older_form_are_refused(void **state)
{
    static const struct {
        int32_t n_entries, len;
        char name;
        int32_t n_calls, n_values;
        float value;
        const char *message;
    } cases[] = {
        {0, 1, 'a', 1, 1, 1, "it is neither GGUF nor the older binary form"},
        {1 << 21, 1, 'a', 1, 1, 1, "it is neither GGUF nor the older binary form"},
        {1, 0, 'a', 1, 1, 1, "an entry is cut short"},
        {1, 1024, 'a', 1, 1, 1, "an entry is cut short"},
        {1, 1, 'a', -1, 1, 1, "an entry is cut short"},
        {1, 1, 'a', 1, 0, 1, "an entry is cut short"},
        {1, 1, 'a', 1, 10000, 1, "an entry is cut short, or larger than the file"},
        {1, 1, 'a', 1, 1, -1, "a value is missing, negative or no number"},
        {1, 1, 'a', 1, 1, INFINITY, "a value is missing, negative or no number"},
        {3, 1, 'a', 1, 1, -1, "a value is missing, negative or no number"},
        {2, 1, 'a', 1, 1, 1, "two entries have one name"},
        {1, 1, 0, 1, 1, 1, "a name has a zero in it"},
    };
    char path[] = FILE_NAME;

    (void)state;
    temporary(path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct imatrix *im = NULL;
        struct err err = ERR_INIT;
        unsigned char b[100];
        size_t n = 0;

        PUT(cases[i].n_entries);
        for (int k = 0; k < 2; k++) {
            PUT(cases[i].len);
            b[n++] = (unsigned char)cases[i].name;
            PUT(cases[i].n_calls);
            PUT(cases[i].n_values);
            PUT(cases[i].value);
        }
        write_file(path, b, n);
        if (imatrix_read(&im, path, &err) != ST_INPUT ||
            !strstr(err.msg, cases[i].message) || !strstr(err.msg, path))
            fail_msg("'%s', not '%s'", err.msg, cases[i].message);
        assert_null(im);
    }
    unlink(path);
}

static void what_cannot_be_written_is_refused(void **state)
{
    struct imatrix *im = example();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(imatrix_write(im, "/nowhere/at/all", &err), ST_IO);
    imatrix_free(im);
}

/* Each name would be compared with all before it: minutes for what is read in a second.
 */
static void many_names_are_read(void **state)
{
    const int32_t n = 200000, one = 1, len = 8;
    const float value = 1;
    char path[] = FILE_NAME, name[16];
    struct imatrix *im = NULL;
    struct err err = ERR_INIT;
    FILE *f;

    (void)state;
    temporary(path);
    f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(&n, sizeof n, 1, f);
    for (int32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%08x", (unsigned)i);
        fwrite(&len, sizeof len, 1, f);
        fwrite(name, 1, 8, f);
        fwrite(&one, sizeof one, 1, f);
        fwrite(&one, sizeof one, 1, f);
        fwrite(&value, sizeof value, 1, f);
    }
    fclose(f);
    if (imatrix_read(&im, path, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(imatrix_n_entries(im), n);
    assert_non_null(imatrix_find(im, "00000000"));
    assert_non_null(imatrix_find(im, "0000ffff"));
    assert_null(imatrix_find(im, "ffffffff"));
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "%08x.txt", (unsigned)i % 50000);
        assert_int_equal(imatrix_add_dataset(im, name, &err), ST_OK);
    }
    imatrix_free(im);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_back_as_they_were),
        cmocka_unit_test(weights_have_a_mean_of_one),
        cmocka_unit_test(entries_of_another_shape_are_refused),
        cmocka_unit_test(the_older_form_is_read),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(lies_of_the_older_form_are_refused),
        cmocka_unit_test(what_cannot_be_written_is_refused),
        cmocka_unit_test(many_names_are_read),
    };

    return cmocka_run_group_tests_name("imatrix", tests, NULL, NULL);
}
