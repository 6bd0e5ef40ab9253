/* SPDX-License-Identifier: MIT
 *
 * reply_form.c - answers and events from the texts of an API
 */
#include "harness/serve/api/reply_form.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/json_read.h"

/* What texts may name. */
struct scene {
    const struct reply_head *head;
    struct reply_blocks *blocks;
    const struct reply_choice *whole; /* of a whole answer, or NULL */
    const char *text;                 /* [len] */
    size_t len;
    const char *status;
    enum reply_reason reason;
    const char *stop; /* or NULL */
    struct reply_usage usage;
    const struct refusal *failure;
};

static void put(struct textbuf *out, const struct scene *s, const char *text, size_t n);

static void put_all(struct textbuf *out, const struct scene *s, const char *text)
{
    put(out, s, text, strlen(text));
}

static const char *status_of(const struct reply_choice *c)
{
    return c->end == COMPLETION_STOP ? "completed" : "incomplete";
}

static struct scene ending(const struct reply_head *head, struct reply_blocks *blocks,
                           const struct reply_choice *c,
                           const struct reply_usage *usage)
{
    return (struct scene){.head = head,
                          .blocks = blocks,
                          .status = status_of(c),
                          .reason = c->end != COMPLETION_STOP ? REPLY_LENGTH
                                    : c->stop                 ? REPLY_STOP
                                    : c->calls.n              ? REPLY_CALLS
                                                              : REPLY_TURN,
                          .stop = c->stop,
                          .usage = *usage};
}

static void show(struct scene *s, const char *text, size_t len, const char *status)
{
    s->text = text ? text : "";
    s->len = len;
    s->status = status;
}

/* ---- a whole answer -------------------------------------------------------------- */

static void put_block(struct textbuf *out, struct scene *s, enum reply_block kind,
                      const char *text, size_t len, const char *status)
{
    show(s, text, len, status);
    textbuf_puts(out, s->blocks->n ? "," : "");
    s->blocks->open = kind;
    put_all(out, s, "$block");
    s->blocks->n++;
}

/* Arguments that were cut are given as far as they came. */
static void put_blocks(struct textbuf *out, const struct scene *of)
{
    const struct reply_choice *c = of->whole;
    struct scene s = *of;
    size_t at = 0;

    if (c->thought.len)
        put_block(out, &s, REPLY_THOUGHT, c->thought.text, c->thought.len, "completed");
    if (c->text.len || (!c->thought.len && !c->calls.list.len))
        put_block(out, &s, REPLY_TEXT, c->text.text, c->text.len, of->status);
    for (int i = 0; reply_calls_read(&c->calls, &at, i, &s.blocks->call); i++)
        put_block(out, &s, REPLY_CALL, s.blocks->call.arguments,
                  s.blocks->call.n_arguments,
                  at < c->calls.list.len ? "completed" : of->status);
}

void reply_form_whole(struct textbuf *out, const struct reply_head *head,
                      const struct reply_choice *choice,
                      const struct reply_usage *usage)
{
    struct reply_blocks blocks = {.n = 0};
    struct scene s = ending(head, &blocks, choice, usage);

    s.whole = choice;
    out->failed |=
        choice->text.failed | choice->thought.failed | choice->calls.list.failed;
    put_all(out, &s, head->form->whole);
}

/* ---- texts ----------------------------------------------------------------------- */

static bool is_object(const char *text, size_t len)
{
    json_t *value =
        json_try(text, len, (struct json_limit){SIZE_MAX, API_MAX_VALUES}, 0);
    const bool is = json_is_object(value);

    json_decref(value);
    return is;
}

static void put_text(struct textbuf *out, const struct scene *s, const char *name)
{
    const struct reply_form *form = s->head->form;
    const struct refusal *f = s->failure;
    enum { PLAIN, JSON, FORM };
    const struct {
        const char *name, *text;
        int is;
    } texts[] = {{"id", s->head->id, PLAIN},
                 {"model", s->head->model, JSON},
                 {"call", s->blocks->call.id, PLAIN},
                 {"name", s->blocks->call.name, JSON},
                 {"status", s->status, PLAIN},
                 {"stop", s->stop ? s->stop : "null", s->stop ? JSON : PLAIN},
                 {"reason", form->reason[s->reason], FORM},
                 {"item", form->block[s->blocks->open].item, FORM},
                 {"part", form->block[s->blocks->open].part, FORM},
                 {"block", form->block[s->blocks->open].whole, FORM},
                 {"code", f && f->code ? f->code : "server_error", PLAIN},
                 {"type", refusal_type(f ? f->http : 0), PLAIN},
                 {"message", f ? f->message : "", JSON}};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(name, texts[i].name) != 0)
            continue;
        if (texts[i].is == FORM)
            put_all(out, s, texts[i].text);
        else if (texts[i].is == JSON)
            textbuf_put_json(out, texts[i].text, strlen(texts[i].text));
        else
            textbuf_puts(out, texts[i].text);
    }
}

static void put_number(struct textbuf *out, const struct scene *s, const char *name)
{
    const struct reply_usage *u = &s->usage;
    const struct {
        const char *name;
        long long v;
    } numbers[] = {
        {"created", s->head->created}, {"n", s->blocks->n},
        {"prompt", u->n_prompt},       {"fresh", u->n_prompt - u->n_cached},
        {"cached", u->n_cached},       {"output", u->n_generated},
        {"thought", u->n_thought},     {"total", u->n_prompt + u->n_generated}};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name))
            textbuf_printf(out, "%lld", numbers[i].v);
}

static void put_value(struct textbuf *out, const struct scene *s, const char *name)
{
    if (!strcmp(name, "text")) {
        textbuf_put_json(out, s->text, s->len);
    } else if (!strcmp(name, "object")) {
        const bool is = is_object(s->text, s->len);

        textbuf_put(out, is ? s->text : "{}", is ? s->len : 2);
    } else if (!strcmp(name, "blocks") && s->whole) {
        put_blocks(out, s);
    } else if (!strcmp(name, "blocks")) {
        textbuf_add(out, &s->blocks->done);
    } else if (!strcmp(name, "event")) {
        textbuf_printf(out, "%d", s->blocks->n_events++);
    } else if (!strcmp(name, "echo") && s->head->echo && *s->head->echo) {
        textbuf_puts(out, ",");
        textbuf_puts(out, s->head->echo);
    } else if (!strcmp(name, "timings")) {
        reply_timings(out, &s->usage);
    } else {
        put_text(out, s, name);
        put_number(out, s, name);
    }
}

static void put(struct textbuf *out, const struct scene *s, const char *text, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    const char *end = text + n;

    for (; text < end; text += n) {
        char name[16];

        if (*text == '\'') {
            textbuf_puts(out, "\"");
            n = 1;
        } else if (*text == '$') {
            n = strspn(++text, letters);
            snprintf(name, sizeof name, "%.*s", (int)n, text);
            put_value(out, s, name);
        } else {
            n = strcspn(text, "'$");
            n = n < (size_t)(end - text) ? n : (size_t)(end - text);
            textbuf_put(out, text, n);
        }
    }
}

/* ---- a stream -------------------------------------------------------------------- */

static void put_events(struct textbuf *out, const struct scene *s, const char *events)
{
    for (size_t n; *events; events += n + (events[n] == '\n')) {
        const size_t n_name = strcspn(events, " \n");

        n = strcspn(events, "\n");
        textbuf_puts(out, "event: ");
        put(out, s, events, n_name);
        textbuf_puts(out, "\ndata: {\"type\":\"");
        put(out, s, events, n_name);
        textbuf_puts(out, "\"");
        put_all(out, s, s->head->form->members);
        if (n > n_name) {
            textbuf_puts(out, ",");
            put(out, s, events + n_name + 1, n - n_name - 1);
        }
        textbuf_puts(out, "}\n\n");
    }
}

static void begin(struct textbuf *out, const struct scene *s)
{
    struct scene begun = *s;

    begun.status = "in_progress";
    if (!s->blocks->has_begun)
        put_events(out, &begun, s->head->form->begin);
    s->blocks->has_begun = true;
}

static void close_block(struct textbuf *out, struct scene *s, const char *status)
{
    const struct reply_form *form = s->head->form;
    struct reply_blocks *b = s->blocks;

    if (!b->open)
        return;
    show(s, b->text.text, b->text.len, status);
    put_events(out, s, form->block[b->open].close);
    if (form->repeats) {
        textbuf_puts(&b->done, b->n ? "," : "");
        put_all(&b->done, s, "$block");
        out->failed |= b->text.failed | b->done.failed;
        textbuf_clear(&b->text);
    }
    b->open = REPLY_NONE;
    b->n++;
}

static void open_block(struct textbuf *out, struct scene *s, enum reply_block kind)
{
    if (s->blocks->open == kind)
        return;
    close_block(out, s, "completed");
    s->blocks->open = kind;
    show(s, NULL, 0, "in_progress");
    put_events(out, s, s->head->form->block[kind].open);
}

static void put_delta(struct textbuf *out, struct scene *s, enum reply_block kind,
                      const char *text, size_t len)
{
    if (!len)
        return;
    open_block(out, s, kind);
    if (s->head->form->repeats)
        textbuf_put(&s->blocks->text, text, len);
    show(s, text, len, "in_progress");
    put_events(out, s, s->head->form->block[kind].delta);
}

void reply_form_piece(struct textbuf *out, struct reply_head *head,
                      struct reply_choice *choice, const struct completion_piece *piece)
{
    struct scene s = {.head = head, .blocks = &head->blocks};
    const char *bytes = piece->call;
    size_t left = piece->n_call;
    struct reply_call_part call;

    s.usage.n_prompt = head->n_prompt;
    begin(out, &s);
    put_delta(out, &s, REPLY_THOUGHT, piece->thought, piece->n_thought);
    put_delta(out, &s, REPLY_TEXT, piece->text, piece->len);
    while (reply_calls_next(&bytes, &left, &call)) {
        if (call.begins) {
            close_block(out, &s, "completed");
            reply_calls_begin(&choice->calls, &head->blocks.call, &call);
            open_block(out, &s, REPLY_CALL);
        } else {
            put_delta(out, &s, REPLY_CALL, call.text, call.len);
        }
    }
}

void reply_form_end(struct textbuf *out, struct reply_head *head,
                    const struct reply_choice *choice, const struct reply_usage *usage)
{
    struct scene s = ending(head, &head->blocks, choice, usage);
    const char *status = s.status;

    begin(out, &s);
    if (!head->blocks.n && !head->blocks.open)
        open_block(out, &s, REPLY_TEXT);
    close_block(out, &s, status);
    s.status = status;
    put_events(out, &s, head->form->end);
}

void reply_form_fail(struct textbuf *out, struct reply_head *head,
                     const struct refusal *failure)
{
    struct scene s = {.head = head, .blocks = &head->blocks, .failure = failure};

    if (head->form->fails_begun)
        begin(out, &s);
    put_events(out, &s, head->form->fail);
}
