/* SPDX-License-Identifier: MIT
 *
 * test_chat_tools.c - how templates call tools, found by what they render
 */

#include "tests/engine/text/template_text.h"

#define MODEL     SLM_SOURCE_DIR "/tests/data/models/stories260K-f32.gguf"
#define PUBLISHED SLM_SOURCE_DIR "/../shared/golden/chat/templates.json"

static struct tokenizer *tok;

/* ---- templates of our own -------------------------------------------------------- */

#define LIST "{% for t in tools %}{{ t | tojson }}{% endfor %}"
#define EACH "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
#define DONE "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
#define CALLS(call) \
    LIST EACH "{% for c in m.tool_calls or [] %}" call "{% endfor %}" DONE
/* A call of a list, whose elements are separated. */
#define LISTED(before, call, between, behind)                                   \
    LIST EACH "{% if m.tool_calls %}" before "{% for c in m.tool_calls %}" call \
              "{% if not loop.last %}" between "{% endif %}{% endfor %}" behind \
              "{% endif %}" DONE
#define PARAMETERS(between)                                  \
    "{% for k, v in c.function.arguments | items %}" between \
    "{% if not loop.last %}, {% endif %}{% endfor %}"

static const struct family {
    const char *source;
    const char *begin, *sep, *mid, *end; /* NULL begin: there is no form */
    size_t n_trigger;
    const char *open, *join, *value[2], *close[2]; /* of parameters */
    bool quotes, python;
} families[] = {
    /* JSON between tags */
    {CALLS(
         "{{ '\n' }}<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
         "{{ c.function.arguments | tojson }}}\n</tool_call>"),
     "<tool_call>\n{\"name\": \"",
     "\", \"arguments\": ",
     "}\n</tool_call>\n<tool_call>\n{\"name\": \"",
     "}\n</tool_call>",
     11,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
    /* a list with ids */
    {LISTED("[TOOL_CALLS] [",
            "{\"name\": \"{{ c.function.name }}\", \"arguments\": "
            "{{ c.function.arguments | tojson }}, \"id\": \"{{ c.id }}\"}",
            ", ", "]"),
     "[TOOL_CALLS] [{\"name\": \"",
     "\", \"arguments\": ",
     ", \"id\": \"\x01\"}, {\"name\": \"",
     ", \"id\": \"\x01\"}]",
     12,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
    /* calls that are counted */
    {CALLS("<call {{ loop.index0 }}>{{ c.function.name }}:{{ loop.index0 }}"
           "{{ c.function.arguments | tojson }}</call>"),
     "<call 0>",
     ":\x02",
     "</call><call \x02>",
     "</call>",
     8,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
    /* no marker, and one call */
    {LIST EACH "{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}"
               "{{ raise_exception('one') }}{% endif %}{% set c = m.tool_calls[0] %}"
               "{\"name\": \"{{ c.function.name }}\", \"parameters\": "
               "{{ c.function.arguments | tojson }}}{% endif %}" DONE,
     "{\"name\": \"",
     "\", \"parameters\": ",
     NULL,
     "}",
     1,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
    /* XML, whose strings are written as they are */
    {CALLS("<tool_call>\n<function={{ c.function.name }}>\n"
           "{% for k, v in c.function.arguments | items %}<parameter={{ k }}>\n"
           "{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}"
           "</function>\n</tool_call>"),
     "<tool_call>\n<function=",
     "",
     ">\n</function>\n</tool_call><tool_call>\n<function=",
     ">\n</function>\n</tool_call>",
     11,
     ">\n<parameter=",
     "",
     {">\n", ">\n"},
     {"\n</parameter", "\n</parameter"},
     false,
     false},
    /* XML that marks strings */
    {CALLS("<call {{ c.function.name }}>{% for k, v in c.function.arguments | items %}"
           "<arg {{ k }} {% if v is string %}string>{{ v }}{% else %}json>"
           "{{ v | tojson }}{% endif %}</arg>{% endfor %}</call>"),
     "<call ",
     "",
     "></call><call ",
     "></call>",
     6,
     "><arg ",
     "",
     {" string>", " json>"},
     {"</arg", "</arg"},
     false,
     false},
    {CALLS("<call><name>{{ c.function.name }}</name>"
           "{% for k, v in c.function.arguments | items %}"
           "<arg key={{ k }} {% if v is string %}string>{{ v }}{% else %}json>"
           "{{ v | tojson }}{% endif %}</arg>{% endfor %}</call>"),
     "<call><name>",
     "</name",
     "></call><call><name>",
     "></call>",
     6,
     "><arg key=",
     "",
     {" string>", " json>"},
     {"</arg", "</arg"},
     false,
     false},
    /* a call of Python's */
    {LISTED("<|calls|>[",
            "{{ c.function.name }}(" PARAMETERS(
                "{{ k }}={% if v is string %}'{{ v }}'{% else %}{{ v }}"
                "{% endif %}") ")",
            ", ", "]<|/calls|>"),
     "<|calls|>[",
     "(",
     "), ",
     ")]<|/calls|>",
     9,
     "",
     ", ",
     {"='", "="},
     {"'", ""},
     false,
     true},
    {CALLS(
         "<py>{{ c.function.name }}(" PARAMETERS("{{ k }}={{ v | tojson }}") ")</py>"),
     "<py>",
     "(",
     ")</py><py>",
     ")</py>",
     4,
     "",
     ", ",
     {"=\"", "="},
     {"\"", ""},
     true,
     false},
    /* a call a line: what is between calls begins their end */
    {LIST EACH "{% if m.tool_calls %}<py>{% for c in m.tool_calls %}"
               "{{ c.function.name }}(" PARAMETERS(
                   "{{ k }}={{ v | tojson }}") "){{ '\n' }}"
                                               "{% endfor %}!</py>{% endif %}" DONE,
     "<py>",
     "(",
     ")\n",
     ")\n!</py>",
     4,
     "",
     ", ",
     {"=\"", "="},
     {"\"", ""},
     true,
     false},
    /* keys without quotes, strings with their own */
    {CALLS("<|call>call:{{ c.function.name ~ '{' }}" PARAMETERS(
         "{{ k }}:{% if v is string %}<|\"|>{{ v }}<|\"|>{% else %}{{ v | tojson }}"
         "{% endif %}") "}<call|>"),
     "<|call>call:",
     "{",
     "}<call|><|call>call:",
     "}<call|>",
     7,
     "",
     ", ",
     {":<|\"|>", ":"},
     {"<|\"|>", ""},
     false,
     false},
    /* a control token of the vocabulary, and its end where an answer's is */
    {CALLS("<s>{{ c.function.name }}:{{ c.function.arguments | tojson }}"),
     "\xff<s>\xff",
     ":",
     "\xff<s>\xff",
     "",
     5,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
    {LISTED("<c>", "{{ c.function.name }}:{{ c.function.arguments | tojson }}", "|",
            "</s>"),
     "<c>",
     ":",
     "|",
     "",
     3,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
    /* none: tools are not listed; calls not written; no arguments; no marker */
    {EACH "{% for c in m.tool_calls or [] %}<c>{{ c.function.name }} "
          "{{ c.function.arguments | tojson }}</c>{% endfor %}" DONE,
     NULL,
     "",
     NULL,
     "",
     0,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
    {LIST EACH DONE,
     NULL,
     "",
     NULL,
     "",
     0,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
    {CALLS("<c>{{ c.function.name }}</c>"),
     NULL,
     "",
     NULL,
     "",
     0,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
    {CALLS("call {{ c.function.name }} {{ c.function.arguments | tojson }}"),
     NULL,
     "",
     NULL,
     "",
     0,
     NULL,
     NULL,
     {NULL, NULL},
     {NULL, NULL},
     false,
     false},
};

static bool same(const char *what, const char *got, const char *want)
{
    if ((!got && !want) || (got && want && !strcmp(got, want)))
        return true;
    print_error("%s: '%s', not '%s'\n", what, got ? got : "none", want ? want : "none");
    return false;
}

static void forms_of_families(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const struct family *f = &families[i];
        struct chat_template *c = open_template(tok, f->source);
        const struct chat_calls *calls = chat_template_calls(c);
        const struct call_form *form = &calls->form;
        bool ok = (calls->why != NULL) == (f->begin == NULL);

        if (!ok)
            print_error("%s\n", calls->why ? calls->why : "a form");
        if (ok && f->begin) {
            ok = same("begin", form->begin, f->begin) & same("sep", form->sep, f->sep) &
                 same("mid", form->mid, f->mid) & same("end", form->end, f->end) &
                 (form->n_trigger == f->n_trigger) &
                 (form->anywhere == (f->n_trigger > 1)) &
                 (form->parameters == (f->open != NULL));
            if (f->open)
                ok = ok & same("open", form->open, f->open) &
                     same("join", form->join, f->join) &
                     same("value of a string", form->value[0], f->value[0]) &
                     same("value", form->value[1], f->value[1]) &
                     same("close of a string", form->close[0], f->close[0]) &
                     same("close", form->close[1], f->close[1]) &
                     (form->quotes == f->quotes) & (form->python == f->python);
        }
        chat_template_close(c);
        if (!ok)
            fail_msg("family %zu: %s", i, f->source);
    }
}

/* ---- reading --------------------------------------------------------------------- */

static unsigned may_be_null(const void *arg, const char *name, const char *key)
{
    (void)arg;
    (void)name;
    return *key == 'n' ? 0
                       : CALL_MAY_STRING | (*key == 'o' ? (unsigned)CALL_MAY_NULL : 0);
}

/* text by the form of family i: what is read, in pieces of every length. */
static void reads(size_t i, const char *text, const char *want_text,
                  const char *want_calls, bool whole)
{
    struct chat_template *c = open_template(tok, families[i].source);
    const size_t n = strlen(text);

    for (size_t step = 1; step <= n; step++) {
        char got_text[512] = "", got_calls[512] = "";
        struct call_reader r;
        struct err err = ERR_INIT;

        call_reader_open(&r, &chat_template_calls(c)->form, may_be_null, NULL);
        for (size_t at = 0; at < n; at += step) {
            assert_int_equal(
                call_reader_add(&r, text + at, n - at < step ? n - at : step, &err),
                ST_OK);
            if (at + step >= n)
                assert_int_equal(call_reader_end(&r, &err), ST_OK);
            strncat(got_text, r.text.s ? r.text.s : "", r.text.n);
            strncat(got_calls, r.calls.s ? r.calls.s : "", r.calls.n);
        }
        if (strcmp(got_text, want_text) || strcmp(got_calls, want_calls) ||
            call_reader_is_whole(&r) != whole)
            fail_msg("%s by %zu: '%s' '%s' %d", text, step, got_text, got_calls,
                     call_reader_is_whole(&r));
        call_reader_close(&r);
    }
    chat_template_close(c);
}

#define TAG "<tool_call>\n{\"name\": \"f\", \"arguments\": "
#define CALL(arguments) \
    "\x01"              \
    "f\x02" arguments

static void calls_are_read(void **state)
{
    (void)state;
    reads(0, "No <tool_ call, <tool", "No <tool_ call, <tool", "", false);
    reads(0, "So: \n " TAG "{\"a\": \"}\\\"\"}}\n</tool_call>",
          "So:", CALL("{\"a\": \"}\\\"\"}"), true);
    reads(0, TAG "{}}\n</tool_call>\n" TAG "{\"a\": {}}}\n</tool_call>", "",
          CALL("{}") CALL("{\"a\": {}}"), true);
    /* cut off: what was written of it */
    reads(0, TAG "{\"a\": \"b", "", CALL("{\"a\": \"b"), false);
    reads(1,
          "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}, \"id\": \"abcdefgh1\"}]",
          "", CALL("{}"), true);
    /* where a text has begun, no call of a form without a marker begins */
    reads(3, "a {\"name\": \"f\"", "a {\"name\": \"f\"", "", false);
    reads(3, " {\"name\": \"f\", \"parameters\": {\"a\": 1}}", "", CALL("{\"a\": 1}"),
          true);
    reads(4,
          "<tool_call>\n<function=f>\n<parameter=s>\na\"\n</par\n</parameter>\n"
          "<parameter=n>\n[1, \"x\"]\n</parameter>\n<parameter=o>\nnull\n</parameter>"
          "\n<parameter=o>\nnullify\n</parameter>\n</function>\n</tool_call>",
          "",
          CALL("{\"s\": \"a\\\"\\n</par\", \"n\": [1, \"x\"], \"o\": null, \"o\": "
               "\"nullify\"}"),
          true);
    reads(6,
          "<call><name>f</name><arg key=a string>null</arg><arg key=b json>null</arg>"
          "</call>",
          "", CALL("{\"a\": \"null\", \"b\": null}"), true);
    reads(7, "<|calls|>[f(a='True', n=True, o=None, n=-1.5e3), f()]<|/calls|>", "",
          CALL("{\"a\": \"True\", \"n\": true, \"o\": null, \"n\": -1.5e3}") CALL("{}"),
          true);
    reads(8, "<py>f(a=\"x, b\\\")\", b=[\"(\"])</py>", "",
          CALL("{\"a\": \"x, b\\\")\", \"b\": [\"(\"]}"), true);
    reads(9, "<py>f(a=1)\ng()\n!</py>", "",
          CALL("{\"a\": 1}") "\x01"
                             "g\x02{}",
          true);
    reads(10, "<|call>call:f{a:<|\"|>x}<|\"|>, b:1}<call|>", "",
          CALL("{\"a\": \"x}\", \"b\": 1}"), true);
}

/* ---- calls of earlier answers ---------------------------------------------------- */

static void calls_are_prepared(void **state)
{
    struct chat_template *objects = open_template(tok, families[0].source);
    struct chat_template *texts =
        open_template(tok, CALLS("<c>{\"n\": \"{{ c.function.name }}\", \"a\": "
                                 "{{ '' + c.function.arguments }}}</c>"));
    json_t *conversation = json_pack(
        "{s:[{s:s, s:[{s:s, s:{s:s, s:s}}]}]}", "messages", "role", "assistant",
        "tool_calls", "id", "x", "function", "name", "f", "arguments", "{\"a\": 1}");
    json_t *message = json_array_get(json_object_get(conversation, "messages"), 0);
    json_t *function = json_object_get(
        json_array_get(json_object_get(message, "tool_calls"), 0), "function");

    (void)state;
    assert_null(chat_template_calls(texts)->why);
    chat_prepare_calls(objects, conversation);
    assert_true(json_is_object(json_object_get(function, "arguments")));
    assert_string_equal(json_string_value(json_object_get(message, "content")), "");
    chat_prepare_calls(texts, conversation);
    assert_string_equal(json_string_value(json_object_get(function, "arguments")),
                        "{\"a\": 1}");
    json_decref(conversation);
    chat_template_close(objects);
    chat_template_close(texts);
}

/* ---- published templates --------------------------------------------------------- */

/* Forms of 132 templates; some of them. */
enum { N_FORMS = 40 };
static const struct {
    const char *name, *begin;
    bool parameters;
} published[] = {
    {"e2e:Qwen/Qwen3-0.6B", "<tool_call>\n{\"name\": \"", false},
    {"e2e:Qwen/Qwen3.5-4B", "<tool_call>\n<function=", true},
    {"more:ik_GLM-4.6", "<tool_call>", true},
    {"gguf:library/llama3.2:3b", "{\"name\": \"", false},
    {"e2e:mistralai/Mistral-7B-Instruct-v0.3 (JSON Schema)",
     "[TOOL_CALLS] [{\"name\": \"", false},
    {"more:nlc_lfm2_5JinjaTemplate", "<|tool_call_start|>[", true},
    {"more:ik_openai-gpt-oss-120b", "<|channel|>commentary to=functions.", false},
    {"more:nlc_harmonyJinjaTemplate3", "<|channel|>commentary to=functions.", false},
    {"e2e:CohereLabs/command-a-reasoning-08-2025",
     "<|START_ACTION|>[    {\"tool_call_id\": \"0\", \"tool_name\": \"", false},
};

#define NOT_WRITTEN "it does not write calls of tools"
/* Templates that list tools and have no form, and what is written in place of an
 * earlier answer's calls. */
static const struct {
    const char *name, *why;
} without_form[] = {
    {"e2e:MadeAgents/Hammer2.1", NOT_WRITTEN}, /* the content alone */
    {"gguf:library/nemotron-mini:4b", NOT_WRITTEN},
    {"more:ik_LFM2-8B-A1B", NOT_WRITTEN},
    {"more:ik_LFM2.5-Instruct", NOT_WRITTEN},
    {"gguf:library/granite3.1-moe:1b", NOT_WRITTEN},
    {"gguf:library/granite3.2:8b", NOT_WRITTEN},
    {"gguf:library/granite3.3:2b", NOT_WRITTEN},
    {"more:ik_ibm-granite-granite-3.3-2B-Instruct", NOT_WRITTEN},
    /* the content of a message of the role assistant_tool_call */
    {"gguf:library/granite3-dense:2b", NOT_WRITTEN},
    {"gguf:library/granite3.2-vision:2b", NOT_WRITTEN},
    /* the id in place of the name */
    {"e2e:moonshotai/Kimi-K2-Thinking", NOT_WRITTEN},
    /* one function_call, and nothing of an answer that is last */
    {"more:tct_yandex_YandexGPT-5-Lite-8B-instruct", "it does not render an answer"},
};
enum { N_WITHOUT = sizeof without_form / sizeof *without_form };

/* Whether the template has no form, lists tools and is known for that reason. */
static bool has_no_form(const char *name, const struct chat_template *c)
{
    const struct chat_calls *calls = c ? chat_template_calls(c) : NULL;

    if (!calls || !calls->why || !chat_template_abilities(c).tools)
        return false;
    for (size_t k = 0; k < N_WITHOUT; k++)
        if (!strcmp(name, without_form[k].name) &&
            !strcmp(calls->why, without_form[k].why))
            return true;
    fail_msg("%s lists tools and has no form: %s", name, calls->why);
    return false;
}

static void forms_of_published_templates(void **state)
{
    json_t *d = json_load_file(PUBLISHED, 0, NULL), *t;
    int n_forms = 0, n_found = 0, n_without = 0;
    size_t i;

    (void)state;
    if (!d) {
        print_message("skipped: %s is not there\n", PUBLISHED);
        skip();
    }
    json_array_foreach(json_object_get(d, "templates"), i, t)
    {
        const char *name = json_string_value(json_object_get(t, "name"));
        const char *source = json_string_value(json_object_get(t, "chat_template"));
        struct chat_template *c =
            strstr(source, "tool") ? open_template(tok, source) : NULL;
        const struct chat_calls *calls = c ? chat_template_calls(c) : NULL;

        n_forms += calls && !calls->why;
        n_without += has_no_form(name, c);
        for (size_t k = 0; k < sizeof published / sizeof *published; k++)
            if (!strcmp(name, published[k].name)) {
                n_found++;
                if (!calls || calls->why ||
                    strcmp(calls->form.begin, published[k].begin) != 0 ||
                    calls->form.parameters != published[k].parameters)
                    fail_msg("%s: %s", name, calls ? calls->why : "does not open");
            }
        chat_template_close(c);
    }
    json_decref(d);
    assert_int_equal(n_found, sizeof published / sizeof *published);
    assert_int_equal(n_forms, N_FORMS);
    assert_int_equal(n_without, N_WITHOUT);
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
        cmocka_unit_test(forms_of_families),
        cmocka_unit_test(calls_are_read),
        cmocka_unit_test(calls_are_prepared),
        cmocka_unit_test(forms_of_published_templates),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
