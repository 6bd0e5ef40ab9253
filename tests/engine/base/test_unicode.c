/* SPDX-License-Identifier: MIT
 *
 * test_unicode.c - normal forms, case, categories and stand-ins
 *
 * Rows of the normal forms are of the kinds that NormalizationTest.txt of Unicode 16
 * has; all its rows held when the tables were written.
 */
#include "tests/support/test.h"

#include "engine/base/unicode.h"

static const struct {
    const char *text, *form[4]; /* NFC, NFD, NFKC, NFKD; NULL: as it is */
} rows[] = {
    {"plain text 123", {NULL, NULL, NULL, NULL}},
    {"caf\u00e9", {NULL, "cafe\u0301", NULL, "cafe\u0301"}},
    {"cafe\u0301!", {"caf\u00e9!", NULL, "caf\u00e9!", NULL}},
    /* marks change places by their classes, within one class they keep them */
    {"a\u0301\u0323",
     {"\u1ea1\u0301", "a\u0323\u0301", "\u1ea1\u0301", "a\u0323\u0301"}},
    {"x\u0301\u0300", {NULL, NULL, NULL, NULL}},
    /* singletons and what is excluded from composition */
    {"\u212b", {"\u00c5", "A\u030a", "\u00c5", "A\u030a"}},
    {"\u0958", {"\u0915\u093c", "\u0915\u093c", "\u0915\u093c", "\u0915\u093c"}},
    /* Hangul, also of three parts that were typed */
    {"\uac01", {NULL, "\u1100\u1161\u11a8", NULL, "\u1100\u1161\u11a8"}},
    {"\u1100\u1161\u11a8", {"\uac01", NULL, "\uac01", NULL}},
    {"\uac00\u11a8", {"\uac01", "\u1100\u1161\u11a8", "\uac01", "\u1100\u1161\u11a8"}},
    /* compatibility */
    {"\ufb01\u00b2\uff21", {NULL, NULL, "fi2A", "fi2A"}},
    {"\uff76\uff9e", {NULL, NULL, "\u30ac", "\u30ab\u3099"}},
    /* of Unicode 16: two vowels of Gurung Khema */
    {"\U0001611e\U0001611e", {"\U00016121", NULL, "\U00016121", NULL}},
    {"a\xff\xcc", {NULL, NULL, NULL, NULL}},
    {"", {NULL, NULL, NULL, NULL}},
};

static void normal_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int form = 0; form < 4; form++) {
            const char *want = rows[i].form[form] ? rows[i].form[form] : rows[i].text;
            struct err err = ERR_INIT;
            char *got = NULL;
            size_t n = 0;

            assert_int_equal(unicode_normalize((enum unicode_form)form, rows[i].text,
                                               strlen(rows[i].text), &got, &n, &err),
                             ST_OK);
            if (n != strlen(want) || memcmp(got, want, n))
                fail_msg("row %zu, form %d: '%.*s'", i, form, (int)n, got);
            free(got);
        }
}

/* As many marks as one likes behind one letter: ordered, in linear time. */
static void many_marks(void **state)
{
    enum { N = 1 << 20 };
    char *text = malloc(2 * N), *got;
    struct err err = ERR_INIT;
    size_t n;

    (void)state;
    assert_non_null(text);
    for (int i = 0; i < N; i++)
        memcpy(text + 2 * i, i % 2 ? "\u0323" : "\u0301", 2);
    assert_int_equal(unicode_normalize(UNICODE_NFD, text, 2 * N, &got, &n, &err),
                     ST_OK);
    assert_int_equal(n, 2 * N);
    assert_memory_equal(got, "\u0323", 2);
    assert_memory_equal(got + N - 2, "\u0323\u0301", 4);
    free(got);
    free(text);
}

static void cases(void **state)
{
    uint32_t to[UNICODE_MAX_CASE];

    (void)state;
    assert_int_equal(unicode_case('a', UNICODE_UPPER, to), 1);
    assert_int_equal(to[0], 'A');
    assert_int_equal(unicode_case(0xdf, UNICODE_UPPER, to), 2);
    assert_int_equal(to[1], 'S');
    assert_int_equal(unicode_case(0x130, UNICODE_LOWER, to), 2);
    assert_int_equal(to[1], 0x307);
    assert_int_equal(unicode_case(0x1c4, UNICODE_TITLE, to), 1);
    assert_int_equal(to[0], 0x1c5);
    assert_int_equal(unicode_case(0x4e00, UNICODE_UPPER, to), 1);
    assert_int_equal(to[0], 0x4e00);
    assert_int_equal(unicode_case(0xa7cb, UNICODE_LOWER, to), 1); /* of Unicode 16 */
    assert_int_equal(to[0], 0x264);
}

static void categories_and_stand_ins(void **state)
{
    (void)state;
    assert_int_equal(unicode_category(0x870), UNICODE_Lo);
    assert_int_equal(unicode_category(0x378), UNICODE_Cn);
    assert_true(unicode_is_blank(0x3000) && !unicode_is_blank(0x180e));
    assert_true(unicode_is_word(0xe9) && !unicode_is_word('-'));
    for (uint32_t c = 0; c < 0x110000; c++) {
        char a[4], b[4];
        const uint32_t other = unicode_stand_in(c);

        if (other == c)
            continue;
        assert_int_equal(unicode_put(c, a), unicode_put(other, b));
        /* No dash or currency symbol of four bytes is old enough. */
        const bool other_kind =
            unicode_category(c) == UNICODE_Pd || unicode_category(c) == UNICODE_Sc;

        if (!other_kind)
            assert_int_equal(unicode_category(c), unicode_category(other));
        else
            assert_true(unicode_category(other) >= UNICODE_Pc &&
                        unicode_category(other) <= UNICODE_So);
        assert_int_equal(unicode_stand_in(other), other);
    }
    assert_true(unicode_stand_in(0x31350) != 0x31350);
    assert_int_equal(unicode_stand_in(0x20000), 0x20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_forms),
        cmocka_unit_test(many_marks),
        cmocka_unit_test(cases),
        cmocka_unit_test(categories_and_stand_ins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
