/* SPDX-License-Identifier: MIT
 *
 * call_reader.c - calls of tools, read byte by byte as a model writes them
 *
 * What is read was written under the grammar of its form (calls.c), which decides what
 * may come; here it is only taken apart. So a reader needs no more than a byte at a
 * time, but for what may still become a marker, which is held back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/grammar/call_reader_impl.h"

void call_form_free(struct call_form *f)
{
    free(f->begin);
    free(f->sep);
    free(f->mid);
    free(f->end);
    free(f->open);
    free(f->join);
    free(f->answer);
    free(f->preamble);
    free(f->next);
    for (int i = 0; i < f->n_heads; i++) {
        free(f->heads[i].begin);
        free(f->heads[i].sep);
    }
    for (int i = 0; i < 2; i++) {
        free(f->value[i]);
        free(f->close[i]);
    }
    *f = (struct call_form){.begin = NULL};
}

static bool is_blank(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

static bool is_alnum(char ch)
{
    return (ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') ||
           (ch >= 'a' && ch <= 'z');
}

bool call_is_name(char ch)
{
    return is_alnum(ch) || ch == '_' || ch == '-';
}

/* ---- what is given out ----------------------------------------------------------- */

void reader_put(struct call_reader *r, struct call_bytes *b, const char *s, size_t n)
{
    if (b->n + n > b->cap) {
        const size_t cap = 2 * b->cap + n + 64;
        char *more = realloc(b->s, cap);

        if (!more) {
            r->failed = true;
            return;
        }
        b->s = more;
        b->cap = cap;
    }
    if (n)
        memcpy(b->s + b->n, s, n);
    b->n += n;
}

void reader_put_call(struct call_reader *r, const char *s)
{
    reader_put(r, &r->calls, s, strlen(s));
}

/* A byte of a string, as JSON has it. */
void reader_put_escaped(struct call_reader *r, char ch)
{
    static const char named[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\";
    const char *at = ch ? strchr(named, ch) : NULL;
    char hex[8];

    if (at)
        reader_put(r, &r->calls, (const char[]){'\\', names[at - named]}, 2);
    else if ((unsigned char)ch >= 0x20)
        reader_put(r, &r->calls, &ch, 1);
    else
        reader_put(r, &r->calls, hex, (size_t)snprintf(hex, sizeof hex, "\\u%04x", ch));
}

/* ---- texts with holes ------------------------------------------------------------ */

struct call_match call_match_of(const char *text)
{
    return (struct call_match){.text = text, .alive = text != NULL};
}

static bool fits_hole(char hole, char ch)
{
    return hole == CALL_HOLE_ID ? is_alnum(ch) : ch >= '0' && ch <= '9';
}

/* Takes a byte; true: the text is whole now. */
bool call_match_byte(struct call_match *m, char ch)
{
    char want;

    if (!m->alive)
        return false;
    want = m->text[m->at];
    if (want == CALL_HOLE_ID || want == CALL_HOLE_NUMBER) {
        if (fits_hole(want, ch)) {
            m->n_hole++;
            return false;
        }
        m->alive = m->n_hole > 0;
        m->n_hole = 0;
        want = m->text[++m->at];
    }
    m->alive = m->alive && want && want == ch;
    m->at += m->alive;
    return m->alive && !m->text[m->at];
}

/* ---- states ---------------------------------------------------------------------- */

static void begin_name(struct call_reader *r)
{
    r->state = CALL_NAMES;
    r->n_name = 0;
}

/* What may follow a value, or the name of a call without parameters. */
void reader_begin_next(struct call_reader *r)
{
    const struct call_form *f = r->form;

    r->state = CALL_NEXT;
    r->next[0] = call_match_of(!f->parameters                ? NULL
                               : r->n_parameters && *f->join ? f->join
                                                             : f->open);
    r->next[1] = call_match_of(f->mid);
    r->next[2] = call_match_of(f->end);
    if (!*f->end)
        r->next[2].alive = false;
}

static void close_arguments(struct call_reader *r)
{
    if (r->opened)
        reader_put_call(r, "}");
    r->opened = false;
}

static void begin_key(struct call_reader *r)
{
    r->state = CALL_KEY;
    r->n_key = 0;
}

static void begin_arguments(struct call_reader *r)
{
    r->n_parameters = 0;
    r->opened = r->form->parameters;
    r->depth = 0;
    r->in_string = r->escaped = r->in_word = false;
    if (r->form->parameters) {
        reader_put_call(r, "{");
        reader_begin_next(r);
    } else {
        r->state = CALL_OBJECT;
    }
}

/* The separator of a head with the call's beginning that agrees with the first n bytes
 * of `like`, and has ch there; NULL: none. */
static const char *other_separator(const struct call_reader *r, const char *like,
                                   size_t n, char ch)
{
    const struct call_form *f = r->form;

    for (int i = 0; i < f->n_heads; i++)
        if (!strcmp(f->heads[i].begin, r->begin) &&
            !strncmp(f->heads[i].sep, like, n) && f->heads[i].sep[n] == ch)
            return f->heads[i].sep;
    return NULL;
}

static void end_name(struct call_reader *r)
{
    r->name[r->n_name] = '\0';
    r->n_calls++;
    reader_put(r, &r->calls, (const char[]){CALL_NAME}, 1);
    reader_put(r, &r->calls, r->name, r->n_name);
    reader_put(r, &r->calls, (const char[]){CALL_ARGUMENTS}, 1);
    reader_begin_literal(r, CALL_SEPARATES, r->form->sep);
}

static void end_literal(struct call_reader *r)
{
    switch (r->state) {
    case CALL_PASSES:
        r->state = CALL_TEXT;
        r->spoke = false;
        break;
    case CALL_BEGINS:
        begin_name(r);
        break;
    case CALL_SEPARATES:
        begin_arguments(r);
        break;
    default: /* CALL_CLOSES */
        r->n_parameters++;
        reader_begin_next(r);
        break;
    }
}

void reader_begin_literal(struct call_reader *r, enum call_state state,
                          const char *text)
{
    r->state = state;
    r->literal = call_match_of(text);
    if (!*text)
        end_literal(r);
}

static void literal_byte(struct call_reader *r, char ch)
{
    struct call_match *m = &r->literal;
    const char hole = m->text[m->at];
    const char *other = r->state == CALL_SEPARATES && hole != ch
                            ? other_separator(r, m->text, m->at, ch)
                            : NULL;

    /* A hole at the end takes all that fits. */
    if ((hole == CALL_HOLE_ID || hole == CALL_HOLE_NUMBER) && !m->text[m->at + 1] &&
        m->n_hole && !fits_hole(hole, ch)) {
        end_literal(r);
        reader_add_byte(r, ch);
        return;
    }
    m->text = other ? other : m->text;
    if (call_match_byte(m, ch))
        end_literal(r);
    else if (!m->alive)
        r->state = CALL_BROKEN;
}

/* ---- text ------------------------------------------------------------------------ */

static void give_text(struct call_reader *r, char ch)
{
    if (ch == CALL_CONTROL) {
        r->in_control = !r->in_control;
        return;
    }
    if (r->in_control)
        return;
    r->spoke = r->spoke || !is_blank(ch);
    r->has_text = true;
    reader_put(r, &r->text, &ch, 1);
}

static void give_held(struct call_reader *r)
{
    const bool before = r->in_control;

    give_text(r, r->held[0]);
    r->spoke = r->spoke || before || r->in_control;
    r->n_held--;
    memmove(r->held, r->held + 1, r->n_held);
}

/* A call begins, n bytes of its beginning have come. */
static void begin_call(struct call_reader *r, const char *begin, size_t n)
{
    r->n_held = 0;
    r->begin = begin;
    reader_begin_literal(r, CALL_BEGINS, begin + n);
}

/* Whether s[n] is all of the marker, or begins it: then *part. */
static bool is_marker(const char *s, size_t n, const char *marker, size_t len,
                      bool *part)
{
    const bool begins = n <= len && !memcmp(s, marker, n);

    *part |= begins && n < len;
    return begins && n == len;
}

/* Where an answer begins: other heads, and markers of texts. True: one is whole. */
static bool first_byte(struct call_reader *r, const char *s, size_t n, bool *part)
{
    const struct call_form *f = r->form;
    const char *const texts[] = {f->answer, f->preamble};

    for (int i = 0; i < f->n_heads; i++) {
        const char *begin = f->heads[i].begin;

        if (is_marker(s, n, begin, strlen(begin), part)) {
            begin_call(r, begin, n);
            return true;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (!texts[i] || !is_marker(s, n, texts[i], strlen(texts[i]), part))
            continue;
        if (r->has_text)
            reader_put(r, &r->text, "\n\n", 2);
        r->n_held = 0;
        r->spoke = true;
        return true;
    }
    return false;
}

/* Blanks and a part of a marker are held. */
static void text_byte(struct call_reader *r, char ch)
{
    const struct call_form *f = r->form;

    r->held[r->n_held++] = ch;
    while (r->n_held) {
        size_t i = 0;
        bool part = false;

        while (i < r->n_held && is_blank(r->held[i]))
            i++;
        const char *s = r->held + i;
        const size_t n = r->n_held - i;

        if (((f->anywhere && !r->first) || !r->spoke) &&
            is_marker(s, n, f->begin, f->n_trigger, &part)) {
            begin_call(r, f->begin, n);
            return;
        }
        if (r->spoke && f->next && !r->first &&
            is_marker(s, n, f->next, f->n_next, &part)) {
            r->n_held = 0;
            reader_begin_literal(r, CALL_PASSES, f->next + n);
            return;
        }
        if ((!r->spoke && first_byte(r, s, n, &part)) ||
            (part && r->n_held < sizeof r->held))
            return;
        give_held(r);
    }
}

/* ---- what follows ---------------------------------------------------------------- */

static void next_byte(struct call_reader *r, char ch)
{
    const struct call_form *f = r->form;
    const bool parameter = call_match_byte(&r->next[0], ch);
    const bool call = call_match_byte(&r->next[1], ch);
    const bool ends = call_match_byte(&r->next[2], ch);

    if (parameter && r->next[0].text == f->join && *f->open) {
        r->next[0] = call_match_of(f->open);
    } else if (parameter) {
        begin_key(r);
    } else if (call) {
        close_arguments(r);
        begin_name(r);
    } else if (ends) {
        close_arguments(r);
        r->state = CALL_OVER;
        r->next[2].alive = false;
    } else if (!r->next[0].alive && !r->next[1].alive && !r->next[2].alive) {
        /* A key that begins at once, as in {key: ...} */
        if (f->parameters && !*f->open && !r->n_parameters) {
            begin_key(r);
            reader_key_byte(r, ch);
        } else {
            r->state = CALL_BROKEN;
        }
    }
}

/* Behind the end another call may begin; blanks are nothing. */
static void over_byte(struct call_reader *r, char ch)
{
    if (call_match_byte(&r->next[1], ch))
        begin_name(r);
    else if (!r->next[1].alive && !is_blank(ch))
        r->state = CALL_BROKEN;
}

static void name_byte(struct call_reader *r, char ch)
{
    /* What precedes another name may be what the end begins with. */
    if (!r->n_name && r->next[2].alive) {
        const bool ends = call_match_byte(&r->next[2], ch);

        if (r->next[2].alive) {
            r->state = ends ? CALL_OVER : CALL_NEXT;
            r->next[0].alive = r->next[1].alive = false;
            r->next[2].alive = !ends;
            return;
        }
    }
    if (call_is_name(ch) && r->n_name < CALL_MAX_NAME) {
        r->name[r->n_name++] = ch;
        return;
    }
    if (!r->n_name || call_is_name(ch)) {
        r->state = CALL_BROKEN;
        return;
    }
    end_name(r);
    reader_add_byte(r, ch);
}

static void object_byte(struct call_reader *r, char ch)
{
    if (reader_json_byte(r, ch))
        reader_begin_next(r);
}

void reader_add_byte(struct call_reader *r, char ch)
{
    switch (r->state) {
    case CALL_TEXT:
        text_byte(r, ch);
        break;
    case CALL_PASSES:
    case CALL_BEGINS:
    case CALL_SEPARATES:
    case CALL_CLOSES:
        literal_byte(r, ch);
        break;
    case CALL_NAMES:
        name_byte(r, ch);
        break;
    case CALL_OBJECT:
        object_byte(r, ch);
        break;
    case CALL_NEXT:
        next_byte(r, ch);
        break;
    case CALL_KEY:
        reader_key_byte(r, ch);
        break;
    case CALL_QUOTE:
        reader_quote_byte(r, ch);
        break;
    case CALL_RAW:
        reader_raw_byte(r, ch);
        break;
    case CALL_VALUE:
        reader_value_byte(r, ch);
        break;
    case CALL_OVER:
        over_byte(r, ch);
        break;
    case CALL_BROKEN:
        break;
    }
}

/* ---- the whole ------------------------------------------------------------------- */

void call_reader_open(struct call_reader *r, const struct call_form *form,
                      call_types_fn *types, const void *arg)
{
    *r = (struct call_reader){.form = form, .types = types, .arg = arg};
}

void call_reader_close(struct call_reader *r)
{
    free(r->text.s);
    free(r->calls.s);
    r->text = r->calls = (struct call_bytes){NULL, 0, 0};
}

/* A character that calls end with is held until it is whole; what is malformed is not.
 */
static void hold_partial(struct call_reader *r)
{
    size_t n = 1;

    while (n < 4 && n < r->calls.n && (r->calls.s[r->calls.n - n] & 0xc0) == 0x80)
        n++;
    r->n_partial = 0;
    if (n > r->calls.n || utf8_char_len(r->calls.s + r->calls.n - n, n) >= 0)
        return;
    r->n_partial = n;
    r->calls.n -= n;
    memcpy(r->partial, r->calls.s + r->calls.n, n);
}

static enum status result(const struct call_reader *r, struct err *err)
{
    return r->failed ? err_set(err, ST_NO_MEMORY, "no memory for a call of a tool")
                     : ST_OK;
}

enum status call_reader_add(struct call_reader *r, const char *bytes, size_t n,
                            struct err *err)
{
    r->text.n = r->calls.n = 0;
    reader_put(r, &r->calls, r->partial, r->n_partial);
    for (size_t i = 0; i < n; i++)
        reader_add_byte(r, bytes[i]);
    hold_partial(r);
    return result(r, err);
}

enum status call_reader_end(struct call_reader *r, struct err *err)
{
    while (r->state == CALL_TEXT && r->n_held)
        give_held(r);
    /* A string that was cut off has what was written of it. */
    if (r->state == CALL_RAW && r->n_held) {
        if (!r->begun)
            reader_put_call(r, "\"");
        for (size_t i = 0; i < r->n_held; i++)
            reader_put_escaped(r, r->held[i]);
        r->n_held = 0;
    }
    return result(r, err);
}

bool call_reader_is_whole(const struct call_reader *r)
{
    return r->state == CALL_OVER ||
           (r->state == CALL_NEXT && !*r->form->end && r->form->sep);
}
