/* SPDX-License-Identifier: MIT
 *
 * test_gguf.c - the GGUF reader on good files, on every truncation, on every
 * flipped bit, on chosen lies and on random damage
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "engine/gguf/gguf.h"
#include "tests/support/gguf_build.h"

enum { F32 = 0, Q8_0 = 8, UNKNOWN = 99 };

/* Every kind of metadata value and three tensors, one of an unknown type.
 * header_bytes: what comes before the data. */
static struct build sample(size_t *header_bytes)
{
    struct build b = build_new();

    put_header(&b, 3, 3, 14);
    put_kv_str(&b, "general.architecture", "llama");
    put_kv_u32(&b, "general.alignment", 32);
    put_key(&b, "t.u8", GGUF_U8);
    put_u8(&b, 200);
    put_key(&b, "t.i8", GGUF_I8);
    put_u8(&b, (uint8_t)-5);
    put_key(&b, "t.i16", GGUF_I16);
    put(&b, &(int16_t){-300}, 2);
    put_key(&b, "t.f32", GGUF_F32);
    put_f32(&b, 0.5f);
    put_key(&b, "t.bool", GGUF_BOOL);
    put_u8(&b, 1);
    put_key(&b, "t.u64", GGUF_U64);
    put_u64(&b, UINT64_MAX);
    put_key(&b, "t.i64", GGUF_I64);
    put_u64(&b, (uint64_t)INT64_MIN);
    put_key(&b, "t.f64", GGUF_F64);
    put(&b, &(double){0.1}, 8);
    put_key(&b, "t.strings", GGUF_ARRAY);
    put_u32(&b, GGUF_STRING);
    put_u64(&b, 3);
    put_str(&b, "one");
    put_str(&b, "");
    put_str(&b, "three");
    put_key(&b, "t.ints", GGUF_ARRAY);
    put_u32(&b, GGUF_I32);
    put_u64(&b, 2);
    put_u32(&b, 7);
    put_u32(&b, (uint32_t)-7);
    put_key(&b, "t.bools", GGUF_ARRAY);
    put_u32(&b, GGUF_BOOL);
    put_u64(&b, 2);
    put_u8(&b, 0);
    put_u8(&b, 1);
    put_key(&b, "t.empty", GGUF_ARRAY);
    put_u32(&b, GGUF_STRING);
    put_u64(&b, 0);
    put_tensor(&b, "a.weight", F32, 2, (uint64_t[]){4, 2}, 0);
    put_tensor(&b, "b.weight", Q8_0, 1, (uint64_t[]){64}, 32);
    put_tensor(&b, "c.weight", UNKNOWN, 1, (uint64_t[]){5}, 128);
    put_padding(&b, 32);
    *header_bytes = b.n;
    for (int i = 0; i < 8; i++)
        put_f32(&b, (float)i);
    put_zeros(&b, 68);
    put_padding(&b, 32);
    put_zeros(&b, 20);
    return b;
}

/* Use everything that can be asked of an open file, so that the sanitizers see
 * each access; returns a number so that nothing is optimised away. */
static uint64_t read_all(const struct gguf *g)
{
    uint64_t sum = gguf_version(g) + gguf_alignment(g) + gguf_data_offset(g);

    for (size_t i = 0; i < gguf_n_kvs(g); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);
        char *key = strndup(kv->key.data, kv->key.len);

        assert_ptr_equal(gguf_kv_find(g, key), kv);
        free(key);
        for (uint64_t k = 0; k < kv->n; k++) {
            struct gguf_str s;
            uint64_t u;
            int64_t n;
            double d;

            if (gguf_elem_str(g, kv, k, &s)) {
                for (size_t c = 0; c < s.len; c++)
                    sum += (unsigned char)s.data[c];
            }
            if (gguf_elem_u64(kv, k, &u))
                sum += u;
            if (gguf_elem_i64(kv, k, &n))
                sum += (uint64_t)n;
            if (gguf_elem_f64(kv, k, &d))
                sum += d > 0;
        }
    }
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const unsigned char *data = gguf_tensor_data(g, t);

        assert_ptr_equal(gguf_tensor_find(g, t->name), t);
        for (uint64_t k = 0; k < t->bytes; k++)
            sum += data[k];
    }
    return sum;
}

/* Parse image[n] placed so that reading one byte beyond it faults. */
static enum status parse_guarded(const void *image, size_t n, struct err *err)
{
    unsigned char *p = guard_alloc(n);
    struct gguf *g = NULL;

    memcpy(p, image, n);
    const enum status st = gguf_parse(&g, p, n, "sample.gguf", err);

    if (st) {
        assert_null(g);
        assert_int_equal(err->code, st);
        assert_non_null(strstr(err->msg, "sample.gguf"));
        assert_null(strchr(err->msg, '\n'));
        assert_true(strlen(err->msg) < sizeof err->msg - 1);
    } else {
        read_all(g);
        gguf_close(g);
    }
    guard_free(p, n);
    return st;
}

static void good_file(void **state)
{
    size_t header;
    struct build b = sample(&header);
    struct err err = ERR_INIT;
    struct gguf *g;
    struct gguf_str s;
    uint64_t u = 1;
    int64_t n;
    double d;
    bool yes = false;

    (void)state;
    assert_int_equal(gguf_parse(&g, b.data, b.n, "sample", &err), ST_OK);
    assert_int_equal(gguf_version(g), 3);
    assert_int_equal(gguf_alignment(g), 32);
    assert_int_equal(gguf_data_offset(g), header);
    assert_int_equal(gguf_n_kvs(g), 14);
    assert_int_equal(gguf_n_tensors(g), 3);
    assert_string_equal(gguf_path(g), "sample");
    assert_false(gguf_is_mapped(g));

    assert_true(gguf_get_str(g, "general.architecture", &s));
    assert_int_equal(s.len, 5);
    assert_memory_equal(s.data, "llama", 5);
    assert_true(gguf_get_u64(g, "t.u8", &u) && u == 200);
    assert_true(gguf_get_u64(g, "t.u64", &u) && u == UINT64_MAX);
    assert_true(gguf_get_f64(g, "t.f32", &d) && d == 0.5);
    assert_true(gguf_get_f64(g, "t.f64", &d) && d == 0.1);
    assert_true(gguf_get_f64(g, "t.i16", &d) && d == -300.0);
    assert_true(gguf_get_f64(g, "t.i64", &d) && d == -0x1p63);
    assert_true(gguf_get_bool(g, "t.bool", &yes) && yes);
    assert_true(gguf_elem_i64(gguf_kv_find(g, "t.i8"), 0, &n) && n == -5);
    assert_true(gguf_elem_i64(gguf_kv_find(g, "t.i64"), 0, &n) && n == INT64_MIN);
    assert_true(gguf_elem_i64(gguf_kv_find(g, "t.ints"), 1, &n) && n == -7);

    /* Nothing converts with loss, and then *out stays as it was. */
    u = 77;
    assert_false(gguf_get_u64(g, "t.i8", &u));
    assert_false(gguf_get_u64(g, "t.f32", &u));
    assert_false(gguf_get_u64(g, "t.bool", &u));
    assert_false(gguf_get_u64(g, "t.ints", &u));
    assert_false(gguf_get_u64(g, "no such key", &u));
    assert_int_equal(u, 77);
    d = 3;
    assert_false(gguf_get_f64(g, "t.u64", &d)); /* 2^64 - 1 needs 64 bits */
    assert_true(d == 3);
    n = 9;
    assert_false(gguf_elem_i64(gguf_kv_find(g, "t.u64"), 0, &n));
    assert_int_equal(n, 9);
    assert_false(gguf_get_str(g, "t.u8", &s));
    assert_false(gguf_get_bool(g, "t.u8", &yes));

    const struct gguf_kv *strings = gguf_kv_find(g, "t.strings");

    assert_int_equal(strings->n, 3);
    assert_true(gguf_elem_str(g, strings, 1, &s) && s.len == 0);
    assert_true(gguf_elem_str(g, strings, 2, &s) && s.len == 5);
    assert_memory_equal(s.data, "three", 5);
    assert_int_equal(gguf_kv_find(g, "t.empty")->n, 0);

    const struct gguf_tensor *a = gguf_tensor_find(g, "a.weight");
    const float *values = gguf_tensor_data(g, a);

    assert_int_equal(a->n_dims, 2);
    assert_int_equal(a->ne[0], 4);
    assert_int_equal(a->ne[1], 2);
    assert_int_equal(a->ne[2], 1);
    assert_int_equal(a->n_elems, 8);
    assert_int_equal(a->bytes, 32);
    assert_int_equal(a->fmt, KERN_FMT_f32);
    assert_true(values[7] == 7.0f);
    assert_int_equal(gguf_tensor_find(g, "b.weight")->bytes, 68);
    assert_int_equal(gguf_tensor_find(g, "c.weight")->fmt, KERN_N_FMT);
    assert_int_equal(gguf_tensor_find(g, "c.weight")->bytes, 0);
    assert_null(gguf_tensor_find(g, "d.weight"));
    gguf_close(g);
    build_free(&b);
}

static void every_truncation(void **state)
{
    size_t header;
    struct build b = sample(&header);

    (void)state;
    for (size_t n = 0; n < b.n; n++) {
        struct err err = ERR_INIT;
        const enum status st = n ? parse_guarded(b.data, n, &err) : ST_INPUT;

        /* The last known tensor ends at 32 + 68 bytes of data; only the unknown
         * one lies behind it, at 128. */
        assert_int_equal(st, n < header + 128 ? ST_INPUT : ST_OK);
    }
    build_free(&b);
}

static void every_flipped_bit(void **state)
{
    size_t header;
    struct build b = sample(&header);
    size_t n_refused = 0;

    (void)state;
    for (size_t i = 0; i < header; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct err err = ERR_INIT;

            b.data[i] ^= (unsigned char)(1u << bit);
            n_refused += parse_guarded(b.data, b.n, &err) != ST_OK;
            b.data[i] ^= (unsigned char)(1u << bit);
        }
    }
    /* Flips inside names and values are no business of the reader; those of
     * counts, lengths and types are the larger part of what remains. */
    assert_true(n_refused > header);
    build_free(&b);
}

static void random_damage(void **state)
{
    size_t header;
    const struct build good = sample(&header);
    struct build b = sample(&header);
    uint64_t seed = 1;

    (void)state;
    for (int round = 0; round < 4000; round++) {
        struct err err = ERR_INIT;
        size_t n = good.n;

        memcpy(b.data, good.data, good.n);
        for (uint64_t k = test_random(&seed) % 6; k > 0; k--) {
            const size_t at = test_random(&seed) % header;
            const uint64_t v = test_random(&seed);

            /* A random byte, a huge number, or a piece from elsewhere. */
            if (v % 3 == 0)
                b.data[at] = (unsigned char)(v >> 8);
            else if (v % 3 == 1)
                memset(b.data + at, 0xff, 1 + (v >> 8) % 8);
            else
                memcpy(b.data + at, good.data + (v >> 8) % header, 1 + (v >> 40) % 16);
        }
        if (test_random(&seed) % 4 == 0)
            n = 1 + test_random(&seed) % n;
        parse_guarded(b.data, n, &err);
    }
    build_free(&b);
    free(good.data);
}

/* ---- one lie at a time ----------------------------------------------------------- */

static void expect(struct build *b, const char *fragment)
{
    struct err err = ERR_INIT;

    assert_int_equal(parse_guarded(b->data, b->n, &err), ST_INPUT);
    if (!strstr(err.msg, fragment))
        fail_msg("'%s' is not in: %s", fragment, err.msg);
    build_free(b);
}

static struct build header(uint32_t version, uint64_t n_tensors, uint64_t n_kvs)
{
    struct build b = build_new();

    put_header(&b, version, n_tensors, n_kvs);
    return b;
}

static struct build raw(const char *text)
{
    struct build b = build_new();

    put(&b, text, strlen(text));
    return b;
}

/* A file of one tensor with 256 bytes of data. */
static struct build one_tensor(const char *name, uint32_t type, uint32_t n_dims,
                               const uint64_t *ne, uint64_t offset)
{
    struct build b = header(3, 1, 0);

    put_tensor(&b, name, type, n_dims, ne, offset);
    put_padding(&b, 32);
    put_zeros(&b, 256);
    return b;
}

static void wrong_headers(void **state)
{
    struct build b;
    struct gguf *g = NULL;

    (void)state;
    b = raw("GG");
    expect(&b, "not a GGUF file");
    b = raw("hello, world");
    expect(&b, "68 65 6c 6c");
    b = raw("tjgg\x03");
    expect(&b, "ggjt");
    b = raw("version https://git-lfs.github.com/spec/v1\n");
    expect(&b, "git lfs pull");
    b = raw("<!DOCTYPE html><html>");
    expect(&b, "web page");
    b = header(0, 0, 0);
    expect(&b, "version 0");
    b = header(1, 0, 0);
    assert_int_equal(gguf_parse(&g, b.data, b.n, "it", NULL), ST_INPUT);
    expect(&b, "version 1");
    b = header(4, 0, 0);
    expect(&b, "version 4");
    b = header(0x03000000, 0, 0);
    expect(&b, "big-endian");
    b = header(3, UINT64_MAX, 0);
    expect(&b, "18446744073709551615 tensors");
    b = header(3, 0, UINT64_MAX / 14);
    expect(&b, "metadata entries");
}

static void wrong_metadata(void **state)
{
    struct build b;

    (void)state;
    b = header(3, 0, 1);
    put_u64(&b, UINT64_MAX);
    put_zeros(&b, 64);
    expect(&b, "the metadata needs 18446744073709551615 bytes");

    b = header(3, 0, 1);
    put_key(&b, "", GGUF_U8);
    put_zeros(&b, 8);
    expect(&b, "name of 0 bytes");

    b = header(3, 0, 1);
    put_u64(&b, 3);
    put(&b, "a\0b", 3);
    put_zeros(&b, 8);
    expect(&b, "zero byte in its name 'a\\x00b'");

    b = header(3, 0, 1);
    put_key(&b, "bad\x1b[2Jkey", 13);
    put_zeros(&b, 8);
    expect(&b, "'bad\\x1b[2Jkey' has the unknown type 13");

    b = header(3, 0, 2);
    put_kv_u32(&b, "same", 1);
    put_kv_u32(&b, "same", 2);
    expect(&b, "'same' occurs twice");

    b = header(3, 0, 1);
    put_key(&b, "flag", GGUF_BOOL);
    put_u8(&b, 2);
    expect(&b, "boolean value 2");

    b = header(3, 0, 1);
    put_key(&b, "nested", GGUF_ARRAY);
    put_u32(&b, GGUF_ARRAY);
    put_u64(&b, 1);
    put_zeros(&b, 32);
    expect(&b, "array of arrays");

    b = header(3, 0, 1);
    put_key(&b, "odd", GGUF_ARRAY);
    put_u32(&b, 77);
    put_u64(&b, 1);
    expect(&b, "unknown type 77");

    b = header(3, 0, 1);
    put_key(&b, "long", GGUF_ARRAY);
    put_u32(&b, GGUF_U64);
    put_u64(&b, (uint64_t)1 << 61); /* times 8 is 0 in 64 bits */
    put_zeros(&b, 32);
    expect(&b, "promises 2305843009213693952 elements of type u64");

    b = header(3, 0, 1);
    put_key(&b, "words", GGUF_ARRAY);
    put_u32(&b, GGUF_STRING);
    put_u64(&b, 1u << 20);
    put_zeros(&b, 32);
    expect(&b, "elements of type string");

    for (size_t i = 0; i < 4; i++) {
        const uint32_t wrong[] = {0, 4, 48, 1u << 21};

        b = header(3, 0, 1);
        put_kv_u32(&b, "general.alignment", wrong[i]);
        expect(&b, "powers of two");
    }
    b = header(3, 0, 1);
    put_kv_str(&b, "general.alignment", "32");
    expect(&b, "not a whole number");
}

static void wrong_tensors(void **state)
{
    struct build b;

    (void)state;
    b = one_tensor("", F32, 1, (uint64_t[]){8}, 0);
    expect(&b, "name of 0 bytes");
    b = one_tensor("w", F32, 0, NULL, 0);
    expect(&b, "'w' has 0 dimensions");
    b = one_tensor("w", F32, 5, (uint64_t[]){1, 1, 1, 1, 1}, 0);
    expect(&b, "5 dimensions");
    b = one_tensor("w", F32, 2, (uint64_t[]){8, 0}, 0);
    expect(&b, "no elements in dimension 1");
    b = one_tensor("w", F32, 2, (uint64_t[]){(uint64_t)1 << 32, (uint64_t)1 << 32}, 0);
    expect(&b, "more elements");
    b = one_tensor("w", F32, 2, (uint64_t[]){(uint64_t)1 << 32, (uint64_t)1 << 31}, 0);
    expect(&b, "more elements");
    b = one_tensor("w", F32, 2, (uint64_t[]){(uint64_t)1 << 31, (uint64_t)1 << 31}, 0);
    expect(&b, "more bytes");
    b = one_tensor("w", F32, 1, (uint64_t[]){(uint64_t)1 << 61}, 0);
    expect(&b, "beyond the end");
    b = one_tensor("w", Q8_0, 1, (uint64_t[]){48}, 0);
    expect(&b, "not a multiple of the 32 in a block of q8_0");
    b = one_tensor("w", F32, 1, (uint64_t[]){8}, 16);
    expect(&b, "not a multiple of the alignment 32");
    b = one_tensor("w", F32, 1, (uint64_t[]){65}, 0);
    expect(&b, "beyond the end");
    b = one_tensor("w", F32, 1, (uint64_t[]){8}, 256);
    expect(&b, "beyond the end");
    b = one_tensor("w", F32, 1, (uint64_t[]){8}, UINT64_MAX - 31);
    expect(&b, "beyond the end");
    b = one_tensor("w", F32, 1, (uint64_t[]){1024}, UINT64_MAX - 1023);
    expect(&b, "beyond the end");
    b = one_tensor("w", UNKNOWN, 1, (uint64_t[]){8}, 512);
    expect(&b, "beyond the end");

    b = header(3, 2, 0);
    put_tensor(&b, "same", F32, 1, (uint64_t[]){8}, 0);
    put_tensor(&b, "same", F32, 1, (uint64_t[]){8}, 32);
    put_zeros(&b, 256);
    expect(&b, "'same' occurs twice");

    b = header(3, 2, 0);
    put_tensor(&b, "first", F32, 1, (uint64_t[]){8}, 32);
    put_tensor(&b, "second", F32, 1, (uint64_t[]){9}, 0);
    put_zeros(&b, 256);
    expect(&b, "'second' and 'first' overlap");
}

static void version_2_and_empty_lists(void **state)
{
    struct build b = header(2, 0, 0);
    struct err err = ERR_INIT;
    struct gguf *g;
    double real;

    (void)state;
    assert_int_equal(gguf_parse(&g, b.data, b.n, "empty", &err), ST_OK);
    assert_int_equal(gguf_version(g), 2);
    assert_int_equal(gguf_n_kvs(g), 0);
    assert_int_equal(gguf_n_tensors(g), 0);
    assert_null(gguf_kv_find(g, "x"));
    assert_false(gguf_get_f64(g, "x", &real));
    assert_null(gguf_tensor_find(g, "x"));
    assert_true(gguf_data_offset(g) <= b.n);
    gguf_close(g);
    build_free(&b);
}

/* ---- files ----------------------------------------------------------------------- */

static void open_refuses(const char *path, const char *fragment)
{
    struct err err = ERR_INIT;
    struct gguf *g = NULL;

    assert_int_not_equal(gguf_open(&g, path, &err), ST_OK);
    assert_null(g);
    if (!strstr(err.msg, fragment))
        fail_msg("'%s' is not in: %s", fragment, err.msg);
}

static void files(void **state)
{
    char dir[] = "/tmp/test_gguf.XXXXXX";
    char path[64];
    size_t header_bytes;
    struct build b = sample(&header_bytes);
    struct err err = ERR_INIT;
    struct gguf *g;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/model.gguf", dir);
    open_refuses(path, "No such file");
    open_refuses(dir, "is a directory");
    open_refuses("/dev/null", "not a regular file");

    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fclose(f);
    open_refuses(path, "is empty");
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(b.data, 1, b.n, f), b.n);
    fclose(f);
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_true(gguf_is_mapped(g));
    assert_int_equal(gguf_image_bytes(g), b.n);
    read_all(g);
    gguf_close(g);
    unlink(path);

    assert_int_equal(mkfifo(path, 0600), 0);
    open_refuses(path, "not a regular file");
    unlink(path);
    rmdir(dir);
    build_free(&b);
}

static void type_table(void **state)
{
    uint32_t elems, bytes;

    (void)state;
    for (int f = 0; f < KERN_N_FMT; f++) {
        const struct kern_format_info *info = kern_format_info((enum kern_format)f);

        assert_true(gguf_ggml_block(info->ggml_id, &elems, &bytes));
        assert_int_equal(elems, info->block_elems);
        assert_int_equal(bytes, info->block_bytes);
        assert_string_equal(gguf_ggml_name(info->ggml_id), info->name);
    }
    assert_string_equal(gguf_ggml_name(16), "iq2_xxs");
    assert_null(gguf_ggml_name(4));
    assert_false(gguf_ggml_block(4, &elems, &bytes));
    assert_string_equal(gguf_type_name(GGUF_STRING), "string");
    assert_string_equal(gguf_type_name((enum gguf_type)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_file),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(every_flipped_bit),
        cmocka_unit_test(random_damage),
        cmocka_unit_test(wrong_headers),
        cmocka_unit_test(wrong_metadata),
        cmocka_unit_test(wrong_tensors),
        cmocka_unit_test(version_2_and_empty_lists),
        cmocka_unit_test(files),
        cmocka_unit_test(type_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
