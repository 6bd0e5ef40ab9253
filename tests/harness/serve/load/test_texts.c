/* SPDX-License-Identifier: MIT
 *
 * test_texts.c - files of prompts, as people have them and as nobody should
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "harness/serve/load/texts.h"

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

static void assert_prompt(const char *file, size_t i, const char *prompt, int n_output,
                          size_t answer_bytes)
{
    struct load_text text;
    struct load_texts *t;
    struct err err;

    if (read_texts(&t, file, &err))
        fail_msg("%s", err.msg);
    text = load_text_at(t, i);
    assert_string_equal(text.prompt, prompt);
    assert_int_equal(text.n_output, n_output);
    assert_int_equal(text.answer_bytes, answer_bytes);
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
    assert_prompt("{\"prompt\":\"p\",\"max_tokens\":5}", 0, "p", 5, 0);
    assert_prompt("{\"prompt\":\"p\"}\n{\"prompt\":\"q\"}\n", 3, "q", 0, 0);
    assert_prompt(sharegpt, 0, "h\xc3\xa4", 0, 1);
    assert_prompt(parts, 0, "see", 3, 2);
    /* written by an editor of Windows */
    assert_prompt("\xef\xbb\xbf{\"prompt\":\"p\"}\r\n\r\n \t\r\n{\"prompt\":\"q\"}\r\n",
                  1, "q", 0, 0);
}

/* Lines of ShareGPT's: an answer without its question comes first, some turns are of
 * neither, the answer to another question is no answer, and some have nothing. */
static void answers_are_found(void **state)
{
    static const struct {
        const char *turns;
        size_t answer_bytes;
    } lines[] = {
        {"{\"from\":\"gpt\",\"value\":\"before\"},{\"from\":\"human\",\"value\":\"h\"},"
         "{\"from\":\"gpt\",\"value\":\"\\u00e4b\"}",
         3},
        {"{\"from\":\"human\",\"value\":\"h\"},{\"from\":\"system\",\"value\":\"s\"},"
         "{\"from\":\"chatgpt\",\"value\":\"four\"},{\"from\":\"gpt\",\"value\":\"n\"}",
         4},
        {"{\"from\":\"human\",\"value\":\"h\"},{\"from\":\"human\",\"value\":\"i\"},"
         "{\"from\":\"gpt\",\"value\":\"to the second\"}",
         0},
        {"{\"value\":\"h\"}", 0},
    };
    char text[500];

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(text, sizeof text,
                 "{\"conversations\":[]}\n{\"conversations\":[%s]}\n"
                 "{\"conversations\":[{\"from\":\"gpt\",\"value\":\"g\"}]}\n",
                 lines[i].turns);
        assert_prompt(text, 0, "h", 0, lines[i].answer_bytes);
        assert_prompt(text, 1, "h", 0, lines[i].answer_bytes); /* there is one alone */
    }
    assert_prompt("{\"prompt\":\"p\",\"max_tokens\":null}", 0, "p", 0, 0);
}

/* Tokens asked for: what the line says, or what its answer takes of this server's
 * tokens, or --output. */
static void answers_become_lengths(void **state)
{
    static const int expected[2][4] = {{5, 100, 30, 1}, {5, 201, 30, 1}};
    struct load_prompts p = {.prompt = {LOAD_FIXED, 100, 100},
                             .output = {LOAD_FIXED, 30, 30},
                             .is_chat = true,
                             .model = "m",
                             .seed = 3};
    struct err err;
    char answer[401], text[2000];

    (void)state;
    memset(answer, 'x', 400);
    answer[400] = '\0';
    snprintf(text, sizeof text,
             "{\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
             "{\"role\":\"assistant\",\"content\":\"%s\"}]}\n"
             "{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},"
             "{\"from\":\"gpt\",\"value\":\"%s\"}]}\n{\"prompt\":\"q\"}\n"
             "{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},"
             "{\"from\":\"gpt\",\"value\":\"y\"}]}\n",
             answer, answer);
    assert_int_equal(read_texts(&p.texts, text, &err), ST_OK);
    assert_int_equal(load_texts_count(p.texts), 4);
    assert_int_equal(load_texts_count_lengths(p.texts), 3);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < 4; i++) {
            char *body;
            int n_requested;

            p.tokens_per_word = k + 1;
            assert_int_equal(load_prompts_body(&p, i, &body, &n_requested, &err),
                             ST_OK);
            assert_int_equal(n_requested, expected[k][i]);
            assert_non_null(strstr(body, " q\""));
            free(body);
        }
    load_texts_free(p.texts);
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
        {"{\"conversations\":[{\"from\":\"system\",\"value\":\"s\"}]}",
         "has no prompt"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[[],7,{\"text\":null}]}]}",
         "has no prompt"},
        {"{\"messages\":{\"role\":\"user\",\"content\":\"c\"}}", "line 1: no"},
        {"{\"prompt\":\"p\",\"max_tokens\":\"5\"}", "max_tokens is not 1.."},
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
        cmocka_unit_test(answers_are_found),
        cmocka_unit_test(answers_become_lengths),
        cmocka_unit_test(wrong_lines_are_named),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
