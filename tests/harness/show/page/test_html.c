/* SPDX-License-Identifier: MIT
 *
 * Texts of others in a page: every byte as text, attribute and data of a script.
 */
#include "harness/show/page/html.h"

#include <jansson.h>

#include "engine/base/random.h"
#include "tests/support/test.h"

static char *written(void (*put)(FILE *f, const char *text), const char *text)
{
    char *page = NULL;
    size_t len;
    FILE *f = open_memstream(&page, &len);

    assert_non_null(f);
    put(f, text);
    fclose(f);
    return page;
}

static void text_cannot_end_anything(void **state)
{
    char *page =
        written(html_put, "</td><img src=x onerror='alert(1)'>\" &amp; \xc3\xa9");

    (void)state;
    assert_string_equal(page, "&lt;/td&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;"
                              "&quot; &amp;amp; \xc3\xa9");
    free(page);
    page = written(html_put, "a\x1b[2Jb\nc\x80\xe2\x80\xae");
    assert_string_equal(page, "a [2Jb c\xef\xbf\xbd ");
    free(page);
}

/* Whatever a text is, none of the characters that mean something in HTML is left. */
static void random_text(void **state)
{
    uint64_t state_bits = 7;
    char text[64];

    (void)state;
    for (int round = 0; round < 2000; round++) {
        const size_t n = random_bits(&state_bits) % (sizeof text - 1);

        for (size_t i = 0; i < n; i++)
            text[i] = (char)(1 + random_bits(&state_bits) % 255);
        text[n] = '\0';
        char *page = written(html_put, text);
        assert_null(strpbrk(page, "<>\"'"));
        for (const char *at = page; (at = strchr(at, '&')); at++)
            assert_true(!strncmp(at, "&amp;", 5) || !strncmp(at, "&lt;", 4) ||
                        !strncmp(at, "&gt;", 4) || !strncmp(at, "&quot;", 6) ||
                        !strncmp(at, "&#39;", 5));
        free(page);
    }
}

/* Data of a script is the text again when it is read, and cannot end the script. */
static void data_is_read_back(void **state)
{
    static const char *const texts[] = {"",
                                        "plain",
                                        "</script><script>alert(1)</script>",
                                        "<!-- <script>",
                                        "\"quotes\" and \\ and 'these'",
                                        "\xe2\x80\xa8 line separators \xe2\x80\xa9",
                                        "tab\tline\nend",
                                        "\xf0\x9f\x98\x80 \xc3\xa9"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *page = written(html_put_json, texts[i]);
        json_t *value = json_loads(page, JSON_DECODE_ANY, NULL);

        assert_null(strpbrk(page, "<>&'"));
        assert_string_equal(json_string_value(value), texts[i]);
        json_decref(value);
        free(page);
    }
    char *page = written(html_put_json, "cut \xe2\x82");
    assert_string_equal(page, "\"cut \\ufffd\\ufffd\"");
    free(page);
}

/* RFC 4648, section 10. */
static void base64(void **state)
{
    static const char *const expected[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                           "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};

    (void)state;
    for (size_t n = 0; n < sizeof expected / sizeof *expected; n++) {
        char *page = NULL;
        size_t len;
        FILE *f = open_memstream(&page, &len);

        assert_non_null(f);
        html_put_base64(f, (const uint8_t *)"foobar", n);
        fclose(f);
        assert_string_equal(page, expected[n]);
        free(page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_cannot_end_anything),
        cmocka_unit_test(random_text),
        cmocka_unit_test(data_is_read_back),
        cmocka_unit_test(base64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
