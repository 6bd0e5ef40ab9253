/* SPDX-License-Identifier: MIT
 *
 * test_texts.c - files of prompts, as people have them and as nobody should
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "harness/load/texts.h"

static char path[] = "/tmp/slm-texts-XXXXXX";

static int make_file(void **state)
{
    const int fd = mkstemp(path);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static enum status read_texts(struct load_texts **t, const char *text, struct err *err)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    *err = (struct err)ERR_INIT;
    return load_texts_read(t, path, err);
}

static void assert_prompt(const char *file, size_t i, const char *prompt, int n_output)
{
    struct load_texts *t;
    struct err err;
    int n = 7;

    if (read_texts(&t, file, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(load_text_at(t, i, &n), prompt);
    assert_int_equal(n, n_output);
    load_texts_free(t);
}

static void prompts_are_found(void **state)
{
    static const char *const sharegpt =
        "{\"id\":\"a\",\"conversations\":[{\"from\":\"system\",\"value\":\"s\"},"
        "{\"from\":\"human\",\"value\":\"h\\u00e4\"},{\"from\":\"gpt\",\"value\":\"g\"}"
        "]}";
    static const char *const parts =
        "{\"max_tokens\":3,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
        "\"image_url\"},{\"type\":\"text\",\"text\":\"see\"}]},"
        "{\"role\":\"assistant\",\"content\":\"no\"}]}";

    (void)state;
    assert_prompt("{\"prompt\":\"p\",\"max_tokens\":5}", 0, "p", 5);
    assert_prompt("{\"prompt\":\"p\"}\n{\"prompt\":\"q\"}\n", 3, "q", 7);
    assert_prompt(sharegpt, 0, "h\xc3\xa4", 7);
    assert_prompt(parts, 0, "see", 3);
    /* written by an editor of Windows */
    assert_prompt("\xef\xbb\xbf{\"prompt\":\"p\"}\r\n\r\n \t\r\n{\"prompt\":\"q\"}\r\n",
                  1, "q", 7);
}

static void wrong_lines_are_named(void **state)
{
    static const struct {
        const char *file, *says;
    } wrong[] = {
        {"", "has no prompt"},
        {"\n\n", "has no prompt"},
        {"[{\"prompt\":\"an array\"}]", "line 1: no JSON object"},
        {"{\"prompt\":\"p\"}\n{\"prompt\":", "line 2: no JSON object"},
        {"{\"prompt\":\"\xff\"}", "line 1: no JSON object"}, /* no UTF-8 */
        {"{\"prompt\":\"\"}", "line 1: no JSON object"},
        {"{\"prompt\":7}", "line 1: no JSON object"},
        {"{\"conversations\":[{\"from\":\"system\",\"value\":\"s\"}]}", "line 1: no"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[[],7,{\"text\":null}]}]}",
         "line 1"},
        {"{\"prompt\":\"p\",\"max_tokens\":0}", "max_tokens is not 1.."},
        {"{\"prompt\":\"p\",\"max_tokens\":9999999}", "max_tokens is not 1.."},
    };
    struct load_texts *t;
    struct err err;
    char *huge = malloc((2u << 20) + 64), *at = huge;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(read_texts(&t, wrong[i].file, &err), ST_INPUT);
        if (!strstr(err.msg, wrong[i].says))
            fail_msg("'%s' and not '%s'", err.msg, wrong[i].says);
    }
    assert_non_null(huge);
    at += sprintf(at, "{\"prompt\":\"");
    memset(at, 'x', 2u << 20);
    strcpy(at + (2u << 20), "\"}\n");
    assert_int_equal(read_texts(&t, huge, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "line 1: no JSON object of at most 1 MiB"));
    free(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_are_found),
        cmocka_unit_test(wrong_lines_are_named),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
