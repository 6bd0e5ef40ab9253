/* SPDX-License-Identifier: MIT
 *
 * test_safetensors.c - headers and indexes, right and wrong in every way
 */
#include "tests/support/test.h"

#include <sys/stat.h>

#include "engine/hf/safetensors.h"

/* A file in memory: the header, then n_data bytes 0, 1, 2, ... */
struct file {
    unsigned char *bytes;
    size_t n;
};

static struct file make(const char *head, size_t n_data)
{
    const size_t len = strlen(head);
    struct file f = {.n = 8 + len + n_data};

    f.bytes = malloc(f.n);
    assert_non_null(f.bytes);
    for (int i = 0; i < 8; i++)
        f.bytes[i] = (unsigned char)((uint64_t)len >> 8 * i);
    memcpy(f.bytes + 8, head, len);
    for (size_t i = 0; i < n_data; i++)
        f.bytes[8 + len + i] = (unsigned char)i;
    return f;
}

static enum status parse(const char *head, size_t n_data, struct safetensors **s,
                         struct err *err)
{
    struct file f = make(head, n_data);
    const enum status st = safetensors_parse(s, f.bytes, f.n, "test.safetensors", err);

    free(f.bytes);
    return st;
}

static void tensors_are_as_described(void **state)
{
    struct err err = ERR_INIT;
    struct safetensors *s;

    (void)state;
    if (parse("{\"__metadata__\":{\"format\":\"pt\"},"
              "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
              "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
              "\"c\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[16,16]}}   ",
              16, &s, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(safetensors_count(s), 3);
    const struct safetensor *a = safetensors_at(s, 0), *b = safetensors_at(s, 1);

    assert_string_equal(a->name, "a");
    assert_int_equal(a->fmt, KERN_FMT_f32);
    assert_int_equal(a->n_dims, 0);
    assert_int_equal(a->n_elems, 1);
    assert_string_equal(b->name, "b");
    assert_int_equal(b->fmt, KERN_FMT_bf16);
    assert_int_equal(b->shape[0], 2);
    assert_int_equal(b->shape[1], 3);
    assert_int_equal(b->bytes, 12);
    assert_int_equal(b->offset - a->offset, 4);
    assert_int_equal(safetensors_at(s, 2)->fmt, KERN_N_FMT);
    safetensors_close(s);
}

#define T(dtype, shape, at) \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" at "}"

static void wrong_headers_get_a_sentence(void **state)
{
    static const struct {
        const char *head, *says;
    } cases[] = {
        {"[]", "no JSON object"},
        {"{ ", "no JSON this program can read"},
        {"{\"a\":1}", "is no object"},
        {"{\"a\":{}}", "unknown type '(none)'"},
        {"{\"a\":" T("F33", "[1]", "[0,4]") "}", "unknown type 'F33'"},
        {"{\"a\":" T("F32", "{}", "[0,4]") "}", "no shape"},
        {"{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", "no shape"},
        {"{\"a\":" T("F32", "[-1]", "[0,4]") "}", "is not a count"},
        {"{\"a\":" T("F32", "[1.0]", "[0,4]") "}", "is not a count"},
        {"{\"a\":" T("F32", "[4294967296,4294967296]", "[0,4]") "}", "63 bits"},
        {"{\"a\":" T("F32", "[4611686018427387904]", "[0,4]") "}",
         "bytes, and its shape"},
        {"{\"a\":" T("F32", "[4611686018427387904,3]", "[0,4]") "}", "63 bits"},
        {"{\"a\":" T("F32", "[1]", "[0]") "}", "no data_offsets"},
        {"{\"a\":" T("F32", "[1]", "[0,\"4\"]") "}", "no data_offsets"},
        {"{\"a\":" T("F32", "[1]", "[4,0]") "}", "no data_offsets"},
        {"{\"a\":" T("F32", "[1]", "[-4,0]") "}", "no data_offsets"},
        {"{\"a\":" T("F32", "[5]", "[0,20]") "}",
         "which has 16; the file is not whole"},
        {"{\"a\":" T("F32", "[2]", "[0,4]") "}", "has 4 bytes, and its shape"},
        {"{\"a\":" T("F16", "[4]", "[0,8]") ",\"b\":" T("F16", "[4]", "[6,14]") "}",
         "'a' and 'b' overlap"},
        {"{\"a\":" T("F16", "[4]", "[0,8]") ",\"a\":" T("F16", "[4]", "[8,16]") "}",
         "duplicate"},
        {"{\"a\\u0000b\":" T("F16", "[4]", "[0,8]") "}",
         "no JSON this program can read"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct safetensors *s = NULL;
        struct err err = ERR_INIT;

        assert_int_equal(parse(cases[i].head, 16, &s, &err), ST_INPUT);
        assert_null(s);
        if (!strstr(err.msg, cases[i].says) || !strstr(err.msg, "test.safetensors"))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
}

/* Deep nesting must end in a sentence and not in the stack. */
static void depth_is_limited(void **state)
{
    const size_t n = 200000;
    char *head = malloc(n + 8);
    struct safetensors *s;
    struct err err = ERR_INIT;

    (void)state;
    assert_non_null(head);
    memcpy(head, "{\"a\":", 5);
    memset(head + 5, '[', n);
    head[n + 5] = '\0';
    assert_int_equal(parse(head, 0, &s, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "depth"));
    free(head);
}

static void lengths_are_checked(void **state)
{
    static const unsigned char lies[][8] = {
        {0},
        {1},
        {3}, /* one more than there is */
        {0, 0, 0, 0, 0, 0, 0, 0x80},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
        {'v', 'e', 'r', 's', 'i', 'o', 'n', ' '},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        unsigned char bytes[10];
        struct safetensors *s;
        struct err err = ERR_INIT;

        memcpy(bytes, lies[i], 8);
        memcpy(bytes + 8, "{}", 2);
        assert_int_equal(safetensors_parse(&s, bytes, 10, "test.safetensors", &err),
                         ST_INPUT);
    }
}

/* {"0": value, "1": value, ...} behind `before`, to be freed. */
static char *many(const char *before, unsigned n, const char *value)
{
    char *text = malloc(strlen(before) + n * (strlen(value) + 16) + 8);
    size_t used = (size_t)sprintf(text, "%s{", before);

    for (unsigned i = 0; i < n; i++) {
        used += (size_t)sprintf(text + used, "%s\"%u\":", i ? "," : "", i);
        used += (size_t)sprintf(text + used, value, i);
    }
    strcpy(text + used, "}");
    return text;
}

/* Tensors without elements may begin where others do, in any order. */
static void many_tensors_are_read_and_too_many_refused(void **state)
{
    char *some = many("", 300, T("F32", "[0]", "[0,0]"));
    char *too_many = many("", 100001, "1");
    char *whole = malloc(strlen(some) + 200);
    struct safetensors *s = NULL;
    struct err err = ERR_INIT;

    (void)state;
    some[strlen(some) - 1] = '\0';
    sprintf(whole, "%s,%s,%s}", some, "\"a\":" T("F32", "[1]", "[0,4]"),
            "\"0a\":" T("F32", "[0]", "[0,0]"));
    assert_int_equal(parse(whole, 4, &s, &err), ST_OK);
    assert_int_equal(safetensors_count(s), 302);
    assert_string_equal(safetensors_at(s, 301)->name, "a");
    safetensors_close(s);
    s = NULL;
    assert_int_equal(parse(too_many, 0, &s, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "lists more than 100000 tensors"));
    assert_null(s);
    free(some);
    free(too_many);
    free(whole);
}

/* Cut anywhere, and with any byte of the header turned, it is read or refused. */
static void damage_is_survived(void **state)
{
    static const char head[] =
        "{\"ab\":" T("F16", "[2,2]", "[0,8]") ",\"c\":" T("F32", "[2]", "[8,16]") "}";
    struct file f = make(head, 16);

    (void)state;
    for (size_t n = 0; n < f.n; n++) {
        unsigned char *cut = guard_alloc(n ? n : 1);
        struct safetensors *s = NULL;
        struct err err = ERR_INIT;

        memcpy(cut, f.bytes, n);
        assert_int_equal(safetensors_parse(&s, cut, n, "test.safetensors", &err),
                         ST_INPUT);
        guard_free(cut, n ? n : 1);
    }
    for (size_t i = 0; i < 8 + strlen(head); i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct safetensors *s = NULL;
            struct err err = ERR_INIT;

            f.bytes[i] ^= (unsigned char)(1 << bit);
            if (safetensors_parse(&s, f.bytes, f.n, "test.safetensors", &err) == ST_OK)
                safetensors_close(s);
            else
                assert_int_equal(err.code, ST_INPUT);
            f.bytes[i] ^= (unsigned char)(1 << bit);
        }
    }
    free(f.bytes);
}

/* ---- folders --------------------------------------------------------------------- */

static void write_text(const char *dir, const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void write_shard(const char *dir, const char *name, const char *head)
{
    struct file f = make(head, 16);
    char path[128];
    FILE *out;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(f.bytes, 1, f.n, out), f.n);
    assert_int_equal(fclose(out), 0);
    free(f.bytes);
}

#define INDEX(a, b) "{\"weight_map\":{\"a\":" a ",\"b\":" b "}}"

static void indexes_cannot_lie_or_escape(void **state)
{
    static const struct {
        const char *index, *says;
    } cases[] = {
        {"{}", "no weight_map"},
        {"{\"weight_map\":{}}", "names 0 files"},
        {INDEX("\"1.st\"", "\"../2.st\""), "not the name of a file in the same folder"},
        {INDEX("\"/etc/passwd\"", "\"2.st\""), "not the name of a file"},
        {INDEX("\"..\"", "\"2.st\""), "not the name of a file"},
        {INDEX("\"x/1.st\"", "\"2.st\""), "not the name of a file"},
        {INDEX("7", "\"2.st\""), "not the name of a file"},
        {INDEX("\"\"", "\"2.st\""), "not the name of a file"},
        {INDEX("\"a\\u001f\"", "\"2.st\""), "not the name of a file"},
        {INDEX("\"a\\u007f\"", "\"2.st\""), "not the name of a file"},
        {INDEX("\"1.st\"", "\"short.st\""), "short.st has "},
        {INDEX("\"1.st\"", "\"lie.st\""), "promises a header of "},
        {INDEX("\"1.st\"", "\"1.st\""), "none of the files has it"},
        {INDEX("\"2.st\"", "\"1.st\""), "but it is in"},
        {INDEX("\"1.st\"", "\"3.st\""), "cannot open"},
        {INDEX("\"1.st\"", "\"4.st\""), "and again in"},
        {INDEX("\"1.st\"", "\"dir\""), "not a regular file"},
    };
    char dir[] = "/tmp/test_safetensors.XXXXXX", path[128];
    struct safetensors *s = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(safetensors_open(&s, dir, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "no weights"));
    write_shard(dir, "1.st", "{\"a\":" T("F32", "[2]", "[4,12]") "}");
    write_shard(dir, "2.st", "{\"b\":" T("F16", "[8]", "[0,16]") "}");
    write_text(dir, "short.st", "{}");
    write_text(dir, "lie.st", "12345678{}");
    write_shard(dir, "4.st", "{\"a\":" T("F16", "[8]", "[0,16]") "}");
    snprintf(path, sizeof path, "%s/dir", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text(dir, "model.safetensors.index.json", cases[i].index);
        err_clear(&err);
        assert_int_not_equal(safetensors_open(&s, dir, &err), ST_OK);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
    char *index = many("{\"weight_map\":", 4097, "\"%u.st\"");

    strcat(index, "}");
    write_text(dir, "model.safetensors.index.json", index);
    free(index);
    err_clear(&err);
    assert_int_equal(safetensors_open(&s, dir, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "names 4097 files; 1 to 4096 are possible"));
    write_text(dir, "model.safetensors.index.json", INDEX("\"1.st\"", "\"2.st\""));
    err_clear(&err);
    if (safetensors_open(&s, dir, &err))
        fail_msg("%s", err.msg);
    unsigned char got[4];

    assert_int_equal(safetensors_count(s), 2);
    assert_int_equal(safetensors_read(s, safetensors_at(s, 0), 2, 4, got, &err), ST_OK);
    assert_memory_equal(got, "\x06\x07\x08\x09", 4);
    safetensors_close(s);

    static const char *const files[] = {
        "1.st", "2.st", "4.st", "short.st", "lie.st", "model.safetensors.index.json"};

    rmdir(path);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

/* What cannot be looked up is not absent: other weights would be read. */
static void files_that_cannot_be_looked_up(void **state)
{
    static const char *const names[] = {"model.safetensors.index.json",
                                        "model.safetensors"};
    char dir[] = "/tmp/test_safetensors.XXXXXX", path[128];

    (void)state;
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 2; i++) {
        struct safetensors *s = NULL;
        struct err err = ERR_INIT;

        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(symlink(names[i], path), 0);
        assert_int_equal(safetensors_open(&s, dir, &err), ST_IO);
        assert_non_null(strstr(err.msg, names[i]));
        assert_null(s);
        unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_as_described),
        cmocka_unit_test(wrong_headers_get_a_sentence),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(lengths_are_checked),
        cmocka_unit_test(many_tensors_are_read_and_too_many_refused),
        cmocka_unit_test(damage_is_survived),
        cmocka_unit_test(indexes_cannot_lie_or_escape),
        cmocka_unit_test(files_that_cannot_be_looked_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
