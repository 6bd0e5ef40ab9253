/* SPDX-License-Identifier: MIT
 *
 * test_texts.c - files of prompts, as people have them and as nobody should
 */
#include "tests/support/test.h"

#include <math.h>
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
                             .api = LOAD_CHAT,
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
            struct load_record r = {.index = i};

            p.tokens_per_word = k + 1;
            assert_int_equal(load_prompts_body(&p, 0, &r, &body, &err), ST_OK);
            assert_int_equal(r.n_requested, expected[k][i]);
            assert_non_null(strstr(body, " q\""));
            free(body);
        }
    load_texts_free(p.texts);
}

/* Traces in the public forms: when, how long, and what prompts share. */
static void traces_have_times(void **state)
{
    static const char *const files[] = {
        "{\"timestamp\":1000,\"input_length\":600,\"output_length\":5,\"hash_ids\":[1,"
        "2]}\n"
        "{\"timestamp\":3000,\"input_length\":1100,\"output_length\":0,\"hash_ids\":[1,"
        "2,4]}\n"
        "{\"timestamp\":2000,\"input_length\":700,\"output_length\":9,\"hash_ids\":[1,"
        "3]}\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        "2023-11-16 23:59:59.5000000,600,5\r\n2023-11-17 00:00:01.5,1100,0\r\n"
        "2023-11-17 00:00:00.5,700,9\r\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 "
        "00:00:00.009930+00:00,600,5\n"
        "2024-05-10 "
        "00:00:02.009930+00:00,1100,0\n2024-05-10T00:00:01.009930+00:00,700,9",
        "{\"at\":0.5,\"prompt_tokens\":600,\"max_tokens\":5}\n"
        "{\"at\":2.5,\"prompt_tokens\":1100,\"max_tokens\":1}\n"
        "{\"at\":1.5,\"prompt_tokens\":700,\"max_tokens\":9}\n",
    };
    static const int n_prompt[] = {600, 700, 1100}, n_output[] = {5, 9, 1};
    static const size_t n_known[] = {0, 1, 2};

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct load_texts *t;
        struct err err = ERR_INIT;
        double at_s[7];

        if (read_texts(&t, files[i], &err))
            fail_msg("%zu: %s", i, err.msg);
        assert_true(load_texts_count(t) == 3 && load_texts_count_lengths(t) == 3);
        assert_true(fabs(load_texts_rate(t) - 1) < 1e-6);
        for (size_t k = 0; k < 3; k++) {
            const struct load_text text = load_text_at(t, k + 3);

            assert_int_equal(text.n_prompt, n_prompt[k]);
            assert_int_equal(text.n_output, n_output[k]);
            assert_int_equal(text.n_known, i ? 0 : n_known[k]);
        }
        load_texts_times(t, at_s, 7, 2); /* twice as fast, from the beginning again */
        for (size_t k = 0; k < 7; k++)
            assert_true(fabs(at_s[k] - 0.5 * (double)k) < 1e-6);
        load_texts_free(t);
    }
}

/* Equal blocks are equal texts, whose first tokens a cache knows; others differ, and so
 * do those of another run, another level and another lap. */
static void blocks_are_shared(void **state)
{
    static const char file[] = "{\"timestamp\":0,\"input_length\":700,\"output_"
                               "length\":5,\"hash_ids\":[1,2]}\n"
                               "{\"timestamp\":9,\"input_length\":800,\"output_"
                               "length\":5,\"hash_ids\":[1,3]}\n";
    struct load_prompts p = {.prompt = {LOAD_FIXED, 9, 9},
                             .output = {LOAD_FIXED, 9, 9},
                             .seed = 3,
                             .tokens_per_word = 1};
    struct err err = ERR_INIT;
    struct load_record r = {.n_known = -1};
    char *text[5];
    size_t n_words = 0, n = 0;

    (void)state;
    assert_int_equal(read_texts(&p.texts, file, &err), ST_OK);
    for (size_t i = 0; i < 3; i++)
        assert_non_null(text[i] = load_prompts_first(&p, i, &r));
    assert_int_equal(r.n_known, 0); /* of the first line */
    p.salt = 7;
    text[3] = load_prompts_first(&p, 1, &r);
    assert_true(r.n_known == 512 && r.n_requested == 5);
    p.salt = 0;
    p.n_before = p.n_skip = 10;
    text[4] = load_prompts_first(&p, 1, &r);
    for (size_t i = 0; text[1][i]; i++)
        n_words += text[1][i] == ' ';
    assert_int_equal(n_words + 1, 800);
    for (n_words = 0; text[0][n] == text[1][n]; n++)
        n_words += text[0][n] == ' ';
    assert_in_range(n_words, 512, 514);
    for (size_t i = 2; i < 5; i++)
        assert_true(strncmp(text[i], text[1], 40) != 0);
    for (size_t i = 0; i < 5; i++)
        free(text[i]);
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
        {"{\"timestamp\":1,\"input_length\":-1}", "line 1: input_length is not 0"},
        {"{\"input_length\":1,\"hash_ids\":[1.5]}", "line 1: hash_ids"},
        {"{\"at\":1,\"prompt\":\"p\"}\n{\"prompt\":\"p\"}",
         "1 of 2 lines have no time"},
        {"{\"at\":1,\"prompt\":\"p\"}", "the same time"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59,1",
         "line 2: no time"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59,1,2,3",
         "line 2: no"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n-2147483648-1-1 0:0:0,1,2",
         "line 2: no time"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-2147483648-1 0:0:0,1,2",
         "line 2: no time"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-1-1 0:0:1e300,1,2",
         "line 2: no time"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-1-1 24:0:nan,1,2",
         "line 2: no time"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-29 0:0:0,1,2\n2023-02-29 "
         "0:0:0,1,2",
         "line 3: its month has no day 29"},
        {"{\"messages\":[],\"hash_ids\":[1,2,3]}", "has no prompt"},
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
        cmocka_unit_test(traces_have_times),
        cmocka_unit_test(blocks_are_shared),
        cmocka_unit_test(wrong_lines_are_named),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
