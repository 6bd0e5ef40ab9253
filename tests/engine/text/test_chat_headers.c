/* SPDX-License-Identifier: MIT
 *
 * test_chat_headers.c - templates that mark answers as well as calls: messages with a
 * header (harmony), and markers of their own
 */

#include "tests/engine/text/template_text.h"
#include "tests/support/tokenizer_check.h"

/* ids 0 .. 2 are <unk>, <s>, </s>; 3 .. 258 bytes; then these control tokens. */
static const char *const controls[] = {"<|start|>",   "<|end|>",       "<|message|>",
                                       "<|channel|>", "<|constrain|>", "<|call|>",
                                       "<|return|>"};
enum { N_VOCAB = 259 + sizeof controls / sizeof *controls, END = 260, CALL = 264 };

static struct tokenizer *open_vocab(bool calls)
{
    static const char *const first[] = {"<unk>", "<s>", "</s>"};
    struct build b = build_new();
    struct tokenizer *t;
    char buf[16];

    put_header(&b, 3, 0, 4);
    put_kv_str(&b, "tokenizer.ggml.model", "llama");
    put_key(&b, "tokenizer.ggml.tokens", GGUF_ARRAY);
    put_u32(&b, GGUF_STRING);
    put_u64(&b, N_VOCAB);
    for (int id = 0; id < N_VOCAB; id++) {
        snprintf(buf, sizeof buf, "<0x%02X>", (unsigned)(id - 3) & 0xff);
        put_str(&b, id < 3                 ? first[id]
                    : id < 259             ? buf
                    : id == CALL && !calls ? "<|other|>"
                                           : controls[id - 259]);
    }
    put_key(&b, "tokenizer.ggml.scores", GGUF_ARRAY);
    put_u32(&b, GGUF_F32);
    put_u64(&b, N_VOCAB);
    for (int id = 0; id < N_VOCAB; id++)
        put_f32(&b, 0);
    put_key(&b, "tokenizer.ggml.token_type", GGUF_ARRAY);
    put_u32(&b, GGUF_I32);
    put_u64(&b, N_VOCAB);
    for (int id = 0; id < N_VOCAB; id++)
        put_u32(&b, id == 0 ? 2 : id < 3 || id >= 259 ? 3 : 6);
    t = open_image(&b);
    build_free(&b);
    return t;
}

static struct chat_template *opened(const struct tokenizer *tok, const char *source)
{
    struct chat_template *c = open_template(tok, source);

    assert_non_null(c);
    return c;
}

/* ---- templates ------------------------------------------------------------------- */

#define FIRST                                                                     \
    "{% for t in tools %}{{ t | tojson }}{% endfor %}{% for m in messages %}"     \
    "{% if m.role != 'assistant' %}<|start|>{{ m.role }}<|message|>{{ m.content " \
    "}}<|end|>{% else %}"
#define LAST                                                                           \
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif " \
    "%}"
#define CALLS "{% if m.tool_calls %}{% set f = m.tool_calls[0].function %}"

static const char harmony[] = FIRST
    "{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>"
    "{{ m.thinking }}<|end|>{% endif %}" CALLS
    "<|start|>assistant to=functions.{{ f.name }}<|channel|>commentary json<|message|>"
    "{{ f.arguments | tojson }}<|call|>{% else %}<|start|>assistant<|channel|>final"
    "<|message|>{{ m.content }}<|return|>{% endif %}" LAST;
/* Thoughts are the content next to a call, and an answer may have no channel. */
static const char content[] = FIRST CALLS
    "{% if m.content %}<|start|>assistant<|channel|>analysis<|message|>"
    "{{ m.content }}<|end|>{% endif %}<|start|>assistant to=functions.{{ f.name }}"
    "<|channel|>commentary json<|message|>{{ f.arguments | tojson }}<|call|>"
    "{% elif m.thinking %}<|start|>assistant<|channel|>analysis<|message|>"
    "{{ m.thinking }}<|end|><|start|>assistant<|channel|>final<|message|>"
    "{{ m.content }}<|return|>{% else %}<|start|>assistant<|message|>{{ m.content }}"
    "<|return|>{% endif %}" LAST;
static const char actions[] = FIRST
    "<|start|>assistant{% if m.thinking %}<think>{{ m.thinking }}</think>{% endif %}"
    "{% if m.tool_calls %}<do>[{% for c in m.tool_calls %}{\"id\": \"{{ loop.index0 }}"
    "\", \"name\": \"{{ c.function.name }}\", \"parameters\": "
    "{{ c.function.arguments | tojson }}}{% if not loop.last %}, {% endif %}"
    "{% endfor %}]</do>{% else %}<out>{{ m.content }}</out>{% endif %}<|end|>" LAST;
/* Thoughts are nowhere next to calls: what ends them is unknown. */
static const char apart[] = FIRST
    "<|start|>assistant{% if m.tool_calls %}<do>{{ m.tool_calls[0].function.name }}:"
    "{{ m.tool_calls[0].function.arguments | tojson }}</do>{% else %}"
    "{% if m.thinking %}<think>{{ m.thinking }}</think>{% endif %}<out>{{ m.content }}"
    "</out>{% endif %}<|end|>" LAST;

#define M(name) "\xff<|" name "|>\xff"

static bool same(const char *what, const char *got, const char *want)
{
    if ((!got && !want) || (got && want && !strcmp(got, want)))
        return true;
    print_error("%s: '%s', not '%s'\n", what, got ? got : "none", want ? want : "none");
    return false;
}

static bool has_harmony(const struct chat_template *c)
{
    const struct chat_calls *calls = chat_template_calls(c);
    const struct call_form *f = &calls->form;
    const struct chat_thinking *t = chat_template_thinking(c);

    if (calls->why) {
        print_error("%s\n", calls->why);
        return false;
    }
    return same("begin", f->begin, M("channel") "commentary to=functions.") &
           same("sep", f->sep, " " M("constrain") "json" M("message")) &
           same("mid", f->mid, NULL) & same("end", f->end, "") &
           same("answer", f->answer, M("channel") "final" M("message")) &
           same("preamble", f->preamble, M("channel") "commentary" M("message")) &
           same("next", f->next, M("end") M("start") "assistant") &
           (f->n_next == strlen(M("end"))) & (f->n_heads == 8) & f->anywhere &
           (f->n_trigger == strlen(f->begin)) &
           same("thoughts", calls->thinking.begin,
                M("channel") "analysis" M("message")) &
           same("their end", calls->thinking.end, M("end") M("start") "assistant") &
           same("closing", calls->thinking.closing, "<|end|><|start|>assistant") &
           same("end", t->end, "<|end|><|start|>assistant") &
           same("marker", t->answer, "<|channel|>final<|message|>");
}

static void messages_have_headers(void **state)
{
    struct tokenizer *tok = open_vocab(true);
    struct chat_template *c = opened(tok, harmony), *other = opened(tok, content);

    (void)state;
    assert_true(has_harmony(c));
    assert_true(has_harmony(other));
    chat_template_close(c);
    chat_template_close(other);
    tokenizer_close(tok);
}

static void answers_have_markers(void **state)
{
    struct tokenizer *tok = open_vocab(false);
    struct chat_template *c = opened(tok, actions), *other = opened(tok, apart);
    const struct call_form *f = &chat_template_calls(c)->form;

    (void)state;
    assert_null(chat_template_calls(c)->why);
    assert_true(same("begin", f->begin, "<do>[{\"id\": \"0\", \"name\": \"") &
                same("mid", f->mid, "}, {\"id\": \"\x02\", \"name\": \"") &
                same("end", f->end, "}]</do>") & same("answer", f->answer, "<out>") &
                same("preamble", f->preamble, NULL) & same("next", f->next, "</out>") &
                same("thoughts", chat_template_calls(c)->thinking.end, "</think>"));
    assert_int_equal(f->n_heads, 0);
    assert_int_equal(f->n_trigger, 4);
    assert_non_null(strstr(chat_template_calls(other)->why, "thoughts"));
    chat_template_close(c);
    chat_template_close(other);
    tokenizer_close(tok);
}

/* <|end|> ends an answer where nothing else ends a call. */
static void ends_of_turns(void **state)
{
    struct tokenizer *with = open_vocab(true), *without = open_vocab(false);

    (void)state;
    assert_true(tokenizer_is_end(with, CALL));
    assert_false(tokenizer_is_end(with, END));
    assert_true(tokenizer_is_end(without, END));
    tokenizer_close(with);
    tokenizer_close(without);
}

/* ---- reading --------------------------------------------------------------------- */

/* What is read of a text, in pieces of every length. */
static void reads(const struct call_form *form, const char *text, const char *want_text,
                  const char *want_calls)
{
    const size_t n = strlen(text);

    for (size_t step = 1; step <= n; step++) {
        char got_text[200] = "", got_calls[200] = "";
        struct call_reader r;
        struct err err = ERR_INIT;

        call_reader_open(&r, form, NULL, NULL);
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
            call_reader_is_whole(&r) != (*want_calls != '\0'))
            fail_msg("%s by %zu: '%s' '%s' %d", text, step, got_text, got_calls,
                     r.state);
        call_reader_close(&r);
    }
}

static void every_head_is_read(void **state)
{
    static const char *const begins[] = {"to=functions.", " to=functions.",
                                         M("channel") "commentary to=functions.",
                                         M("channel") "analysis to=functions."};
    static const char *const types[] = {"", " json", " " M("constrain") "json"};
    struct tokenizer *tok = open_vocab(true);
    struct chat_template *c = opened(tok, harmony);
    const struct call_form *f = &chat_template_calls(c)->form;
    char text[200];

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            snprintf(text, sizeof text, "%sname%s%s" M("message") "{\"a\": 1}",
                     begins[i], i < 2 ? M("channel") "commentary" : "", types[k]);
            reads(f, text, "",
                  "\x01"
                  "name\x02{\"a\": 1}");
        }
    reads(f, M("channel") "final" M("message") "to=functions.x", "to=functions.x", "");
    reads(f,
          M("channel") "final" M("message") "a " M(
              "channel") "commentary to=functions.f" M("message") "{}",
          "a",
          "\x01"
          "f\x02{}");
    chat_template_close(c);
    tokenizer_close(tok);
}

/* A text behind which the answer begins again: what announces a call, or an answer. */
static void texts_before_calls_are_read(void **state)
{
    static const char announced[] = M("channel") "commentary" M("message") "I look.\n";
    static const char next[] = M("end") M("start") "assistant";
    struct tokenizer *tok = open_vocab(true), *plain = open_vocab(false);
    struct chat_template *c = opened(tok, harmony), *other = opened(plain, actions);
    const struct call_form *f = &chat_template_calls(c)->form;
    char text[200];

    (void)state;
    snprintf(text, sizeof text,
             "%s%s to=functions.f" M("channel") "commentary json" M("message") "{}",
             announced, next);
    reads(f, text, "I look.",
          "\x01"
          "f\x02{}");
    snprintf(text, sizeof text, "%s%s" M("channel") "commentary to=functions.f",
             announced, next);
    reads(f, text, "I look.", "");
    snprintf(text, sizeof text, "%s%s" M("channel") "final" M("message") "Well.",
             announced, next);
    reads(f, text, "I look.\n\nWell.", "");
    snprintf(text, sizeof text, "%s" M("end") M("start") "assist", announced);
    reads(f, text, "I look.", "");
    reads(
        &chat_template_calls(other)->form,
        "<out>So</out> <do>[{\"id\": \"0\", \"name\": \"f\", \"parameters\": {}}]</do>",
        "So",
        "\x01"
        "f\x02{}");
    chat_template_close(c);
    chat_template_close(other);
    tokenizer_close(tok);
    tokenizer_close(plain);
}

/* ---- thoughts of earlier answers ------------------------------------------------- */

static void thoughts_are_prepared(void **state)
{
    struct tokenizer *tok = open_vocab(true);
    struct chat_template *c = opened(tok, harmony);
    json_t *conversation =
        json_pack("{s:[{s:s, s:s, s:[{s:s, s:{s:s, s:s}}]}]}", "messages", "role",
                  "assistant", "reasoning_content", "why", "tool_calls", "id", "x",
                  "function", "name", "f", "arguments", "{\"a\": 1}");
    struct err err = ERR_INIT;
    struct jinja_text t;

    (void)state;
    chat_prepare_calls(c, conversation);
    assert_int_equal(chat_render(c, conversation, &t, &err), ST_OK);
    assert_string_equal(t.text,
                        "<|start|>assistant<|channel|>analysis<|message|>why<|end|>"
                        "<|start|>assistant to=functions.f<|channel|>commentary json"
                        "<|message|>{\"a\": 1}<|call|>");
    jinja_text_free(&t);
    json_decref(conversation);
    chat_template_close(c);
    tokenizer_close(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_have_headers),
        cmocka_unit_test(answers_have_markers),
        cmocka_unit_test(ends_of_turns),
        cmocka_unit_test(every_head_is_read),
        cmocka_unit_test(texts_before_calls_are_read),
        cmocka_unit_test(thoughts_are_prepared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
