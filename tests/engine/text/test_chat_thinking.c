/* SPDX-License-Identifier: MIT
 *
 * test_chat_thinking.c - markers of thoughts, found by what templates render
 */

#include "tests/engine/text/template_text.h"

#define MODEL     SLM_SOURCE_DIR "/tests/data/models/stories260K-f32.gguf"
#define PUBLISHED SLM_SOURCE_DIR "/../shared/golden/chat/templates.json"

static struct tokenizer *tok;

/* The template's markers; "" for a template without thoughts. */
static bool has_markers(const struct chat_template *c, const char *begin,
                        const char *end, const char *answer)
{
    const struct chat_thinking *t = chat_template_thinking(c);

    if (!t)
        return !*begin;
    if (!strcmp(t->begin, begin) && !strcmp(t->end, end) &&
        !strcmp(t->answer ? t->answer : "", answer) && strstr(t->closing, end))
        return true;
    print_error("'%s' '%s' '%s' '%s'\n", t->begin, t->end, t->answer ? t->answer : "",
                t->closing);
    return false;
}

static bool thinks(const struct chat_template *c, const char *question, bool enabled)
{
    json_t *conversation =
        json_pack("{s:[{s:s, s:s}], s:b, s:b}", "messages", "role", "user", "content",
                  question, "add_generation_prompt", 1, "enable_thinking", enabled);
    struct jinja_text t;
    struct err err = ERR_INIT;
    bool result;

    assert_int_equal(chat_render(c, conversation, &t, &err), ST_OK);
    result = chat_prompt_thinks(c, &t);
    jinja_text_free(&t);
    json_decref(conversation);
    return result;
}

#define TURN "<|{{ m.role }}|>\n"
#define LOOP "{% for m in messages %}"
#define NEXT "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n"

/* The model opens the block; the prompt does, unless thinking is switched off; channels
 * of their own; a template that shows no thoughts, and one that knows none. */
static const struct family {
    const char *source, *begin, *end, *answer;
    bool thinks, thinks_off;
} families[] = {
    {LOOP TURN "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n"
               "</think>\n\n{% endif %}{{ m.content }}<|end|>\n" NEXT "{% endif %}",
     "<think>", "</think>", "", false, false},
    {LOOP TURN "{% if m.role == 'assistant' %}<think>\n{{ m.reasoning_content }}\n"
               "</think>\n\n{% endif %}{{ m.content }}<|end|>\n" NEXT
               "<think>\n{% if enable_thinking is false %}\n</think>\n\n{% endif %}"
               "{% endif %}",
     "<think>", "</think>", "", true, false},
    {LOOP "<|start|>{{ m.role }}{% if m.role == 'assistant' %}{% if m.thinking %}"
          "<|channel|>analysis<|message|>{{ m.thinking }}<|end|><|start|>assistant"
          "{% endif %}<|channel|>final{% endif %}<|message|>{{ m.content }}<|end|>"
          "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}",
     "<|channel|>analysis<|message|>",
     "<|end|><|start|>assistant<|channel|>final<|message|>",
     "<|channel|>final<|message|>", false, false},
    {LOOP TURN "{{ m.content.split('</think>')[-1] }}" NEXT "<think>\n{% endif %}",
     "<think>", "</think>", "", true, true},
    {LOOP TURN "{{ m.content }}" NEXT "{% endif %}", "", "", "", false, false},
};

static void markers_of_families(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const struct family *f = &families[i];
        struct chat_template *c = open_template(tok, f->source);

        assert_non_null(c);
        assert_true(has_markers(c, f->begin, f->end, f->answer));
        assert_int_equal(thinks(c, "1", true), f->thinks);
        assert_int_equal(thinks(c, "1", false), f->thinks_off);
        chat_template_close(c);
    }
}

/* A message that ends with the marker opens nothing, though nothing stands behind it.
 */
static void messages_open_nothing(void **state)
{
    struct chat_template *c = open_template(
        tok, "{{ messages[0].content }}{% if false %}</think>{% endif %}");

    (void)state;
    assert_true(has_markers(c, "<think>", "</think>", ""));
    assert_false(thinks(c, "a <think>", true));
    chat_template_close(c);
}

static void names_of_variables(void **state)
{
    struct chat_template *c =
        open_template(tok, "{{ enable_thinking }}{{ my_effort }}");
    json_t *conversation = json_object();

    (void)state;
    assert_true(chat_template_uses(c, conversation, "enable_thinking"));
    assert_false(chat_template_uses(c, conversation, "thinking"));
    assert_false(chat_template_uses(c, conversation, "effort"));
    assert_false(chat_template_uses(c, conversation, ""));
    json_decref(conversation);
    chat_template_close(c);
}

static const char *const published[][4] = {
    {"e2e:Qwen/Qwen3-0.6B", "<think>", "</think>", ""},
    {"e2e:Qwen/Qwen3.5-4B", "<think>", "</think>", ""},
    {"e2e:deepseek-ai/DeepSeek-R1", "<think>", "</think>", ""},
    {"e2e:Qwen/Qwen2.5-7B-Instruct", "", "", ""},
    {"e2e:CohereLabs/command-a-reasoning-08-2025", "<|START_THINKING|>",
     "<|END_THINKING|>", "<|START_RESPONSE|>"},
    {"e2e:openbmb/MiniCPM3-4B", "<|thought_start|>", "<|thought_end|>", ""},
    {"more:nlc_gemma4JinjaTemplate1", "<|channel>thought", "<channel|>", ""},
    {"gguf:library/exaone-deep:32b", "<thought>", "</thought>", ""},
    {"gguf:library/llama3.2:3b", "", "", ""},
    {"more:ik_GLM-4.6", "<think>", "</think>", ""},
    {"more:ik_openai-gpt-oss-120b", "<|channel|>analysis<|message|>",
     "<|end|><|start|>assistant", "<|channel|>final<|message|>"},
};

static void markers_of_published_templates(void **state)
{
    json_t *d = json_load_file(PUBLISHED, 0, NULL), *t;
    size_t i;
    int n_wrong = 0;

    (void)state;
    if (!d) {
        print_message("skipped: %s is not there\n", PUBLISHED);
        skip();
    }
    json_array_foreach(json_object_get(d, "templates"), i, t)
    {
        const char *name = json_string_value(json_object_get(t, "name"));

        for (size_t k = 0; k < sizeof published / sizeof *published; k++) {
            struct chat_template *c;

            if (strcmp(name, published[k][0]) != 0)
                continue;
            c = open_template(tok,
                              json_string_value(json_object_get(t, "chat_template")));
            if (!c ||
                !has_markers(c, published[k][1], published[k][2], published[k][3])) {
                print_error("%s\n", name);
                n_wrong++;
            }
            chat_template_close(c);
        }
    }
    json_decref(d);
    assert_int_equal(n_wrong, 0);
}

static int setup(void **state)
{
    struct gguf *g;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(gguf_open(&g, MODEL, &err), ST_OK);
    assert_int_equal(tokenizer_open(&tok, g, &err), ST_OK);
    gguf_close(g);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tokenizer_close(tok);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markers_of_families),
        cmocka_unit_test(messages_open_nothing),
        cmocka_unit_test(names_of_variables),
        cmocka_unit_test(markers_of_published_templates),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
