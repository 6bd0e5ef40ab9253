/* SPDX-License-Identifier: MIT
 *
 * test_completion_text.c - text and stop strings, however the text is cut into tokens
 */
#include "tests/support/test.h"

#include "engine/base/utf8.h"
#include "harness/serve/scheduler/completion_text.h"

struct example {
    const char *bytes;    /* of all tokens */
    const char *stops[4]; /* NULL: no more */
    const char *text;     /* expected */
    bool stopped;
};

static const struct example examples[] = {
    {"plain", {NULL}, "plain", false},
    {"", {"x"}, "", false},
    {"one two three", {" two"}, "one", true},
    {"one two three", {"four", "hree"}, "one two t", true},
    {"aaaab", {"aab"}, "aa", true}, /* begins inside of a failed beginning */
    {"abababac", {"ababac"}, "ab", true},
    {"xabcy", {"bc", "abc"}, "x", true},  /* complete at once: the longest */
    {"xabcy", {"abcd", "b"}, "xa", true}, /* complete first */
    {"xabcd", {"abcd", "bcd", "cd"}, "x", true},
    {"end", {"endless"}, "end", false}, /* held back, given out at the end */
    {"end", {"end"}, "", true},
    {"\n\nUser:", {"\n\nUser:", "User"}, "\n\n", true},
    {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80.",
     {NULL},
     "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80.",
     false},
    {"a\xe2\x82\xac"
     "b",
     {"\xe2\x82\xac"},
     "a",
     true},
    {"a\xe2\x82\xad"
     "b",
     {"\xe2\x82\xac"},
     "a\xe2\x82\xad"
     "b",
     false},
    /* malformed: alone, a character begun, another begun in it, at the end */
    {"a\xff"
     "b",
     {NULL},
     "a\xef\xbf\xbd"
     "b",
     false},
    {"a\xe2\x82"
     "b",
     {NULL},
     "a\xef\xbf\xbd"
     "b",
     false},
    {"\xf0\x9f\xe2\x82\xac", {NULL}, "\xef\xbf\xbd\xe2\x82\xac", false},
    {"\xe2\xe2\xe2\x82", {NULL}, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", false},
    {"\xed\xa0\x80", {NULL}, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", false},
    {"\xc0\x80\xf5", {NULL}, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", false},
    {"a\xf0\x9f\x98", {NULL}, "a\xef\xbf\xbd", false},
    {"a\xf0\x9f\x98", {"\xef\xbf\xbd"}, "a", true}, /* the end completes one */
    {"ab\xf0\x9f\x98", {"b\xef\xbf\xbd!"}, "ab\xef\xbf\xbd", false},
};

static void open_text(struct completion_text *t, const struct example *e)
{
    struct err err = ERR_INIT;
    int n = 0;

    while (n < 4 && e->stops[n])
        n++;
    assert_int_equal(completion_text_open(t, e->stops, n, &err), ST_OK);
}

static void check_whole(const char *given, size_t n)
{
    for (size_t i = 0; i < n;) {
        const int len = utf8_char_len(given + i, n - i);

        assert_true(len > 0);
        i += (size_t)len;
    }
}

static void add(struct completion_text *t, const struct example *e, size_t begin,
                size_t end, char *given, size_t *n)
{
    struct err err = ERR_INIT;
    char *bytes = guard_alloc(end - begin + 1);

    if (!t->stopped) {
        memcpy(bytes + 1, e->bytes + begin, end - begin);
        assert_int_equal(completion_text_add(t, bytes + 1, end - begin, &err), ST_OK);
        memcpy(given + *n, t->out, t->n_out);
        *n += t->n_out;
        check_whole(given, *n);
    }
    guard_free(bytes, end - begin + 1);
}

static void finish(struct completion_text *t, const struct example *e, char *given,
                   size_t n)
{
    struct err err = ERR_INIT;

    if (!t->stopped) {
        assert_int_equal(completion_text_add(t, "", 0, &err), ST_OK);
        completion_text_end(t);
        memcpy(given + n, t->out, t->n_out);
        n += t->n_out;
    }
    given[n] = '\0';
    assert_string_equal(given, e->text);
    assert_int_equal(t->stopped, e->stopped);
    completion_text_close(t);
}

static void every_cut(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof examples / sizeof *examples; k++) {
        const struct example *e = &examples[k];
        const size_t len = strlen(e->bytes);

        for (size_t i = 0; i <= len; i++)
            for (size_t j = i; j <= len; j++) {
                struct completion_text t;
                char given[64];
                size_t n = 0;

                open_text(&t, e);
                add(&t, e, 0, i, given, &n);
                add(&t, e, i, j, given, &n);
                add(&t, e, j, len, given, &n);
                finish(&t, e, given, n);
            }
    }
}

static void byte_by_byte(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof examples / sizeof *examples; k++) {
        const struct example *e = &examples[k];
        struct completion_text t;
        char given[64];
        size_t n = 0;

        open_text(&t, e);
        for (size_t i = 0; i < strlen(e->bytes); i++)
            add(&t, e, i, i + 1, given, &n);
        finish(&t, e, given, n);
    }
}

/* The end of the text at which a stop string is complete first, by trying all. */
static size_t search(const char *text, size_t len, const char *const *stops,
                     int n_stops, bool *found)
{
    for (size_t end = 1; end <= len; end++) {
        size_t longest = 0;

        for (int i = 0; i < n_stops; i++) {
            const size_t n = strlen(stops[i]);

            if (n <= end && n > longest && !memcmp(text + end - n, stops[i], n))
                longest = n;
        }
        *found = longest > 0;
        if (longest)
            return end - longest;
    }
    return len;
}

/* Bytes at the end of text[len] that a stop string may begin with. */
static size_t may_begin(const char *text, size_t len, const char *const *stops,
                        int n_stops)
{
    for (size_t n = len; n > 0; n--)
        for (int i = 0; i < n_stops; i++)
            if (n < strlen(stops[i]) && !memcmp(text + len - n, stops[i], n))
                return n;
    return 0;
}

/* Texts of two letters have stop strings everywhere. */
static void random_texts(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[25] = "", stops[3][7] = {"", "", ""}, given[32];
        const char *list[3] = {stops[0], stops[1], stops[2]};
        const size_t len = test_random(&random) % 24;
        struct completion_text t;
        struct err err = ERR_INIT;
        size_t n = 0, expected;
        bool found = false;

        for (size_t i = 0; i < len; i++)
            text[i] = "ab"[test_random(&random) % 2];
        for (int i = 0; i < 3; i++)
            for (size_t k = 1 + test_random(&random) % 6; k-- > 0;)
                stops[i][k] = "ab"[test_random(&random) % 2];
        expected = search(text, len, list, 3, &found);
        assert_int_equal(completion_text_open(&t, list, 3, &err), ST_OK);
        for (size_t i = 0, more; i < len && !t.stopped; i += more) {
            more = 1 + test_random(&random) % (len - i);
            assert_int_equal(completion_text_add(&t, text + i, more, &err), ST_OK);
            memcpy(given + n, t.out, t.n_out);
            n += t.n_out;
            if (!t.stopped)
                assert_int_equal(n, i + more - may_begin(text, i + more, list, 3));
        }
        assert_int_equal(t.stopped, found);
        if (!t.stopped) {
            assert_int_equal(completion_text_add(&t, "", 0, &err), ST_OK);
            completion_text_end(&t);
            memcpy(given + n, t.out, t.n_out);
            n += t.n_out;
        }
        assert_int_equal(n, expected);
        assert_memory_equal(given, text, n);
        completion_text_close(&t);
    }
}

static void wrong_stops_are_refused(void **state)
{
    const char *empty[] = {"a", ""}, *broken[] = {"a\xff"};
    struct completion_text t;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(completion_text_open(&t, empty, 2, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "empty"));
    err_clear(&err);
    assert_int_equal(completion_text_open(&t, broken, 1, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "UTF-8"));
}

/* A request may not have U+0000, so an answer has none. */
static void zeros_are_replaced(void **state)
{
    static const struct example e = {"", {NULL}, "", false};
    struct completion_text t;
    struct err err = ERR_INIT;

    (void)state;
    open_text(&t, &e);
    assert_int_equal(completion_text_add(&t, "a\0b", 3, &err), ST_OK);
    assert_int_equal(t.n_out, 5);
    assert_memory_equal(t.out,
                        "a\xef\xbf\xbd"
                        "b",
                        5);
    completion_text_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_are_replaced),
        cmocka_unit_test(every_cut),
        cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(random_texts),
        cmocka_unit_test(wrong_stops_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
