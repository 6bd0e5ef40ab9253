/* SPDX-License-Identifier: MIT
 *
 * tokenizer_pieces.c - a text cut by one step after another
 *
 * A step gets a piece and hands on what it makes of it, so that few pieces are in
 * memory at once. What is no UTF-8 is a piece of its own.
 */
#include "engine/tokenizer/tokenizer_pieces_impl.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"

struct buffer {
    char *v;
    size_t cap;
};

struct run {
    const struct pieces *p;
    struct regex_search search;
    struct buffer made[PIECES_MAX_STEPS]; /* of steps that change a piece */
    pre_piece_fn *fn;
    void *arg;
    struct err *err;
};

static enum status run(struct run *r, int k, const char *text, size_t len, bool first);

/* ---- GPT-2's characters ---------------------------------------------------------- */

int byte_alphabet_byte(uint32_t c)
{
    if ((c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac) ||
        (c >= 0xae && c <= 0xff))
        return (int)c;
    if (c >= 0x100 && c <= 0x120) /* 33: U+0000 to U+0020 */
        return (int)(c - 0x100);
    if (c >= 0x121 && c <= 0x142) /* 34: U+007F to U+00A0 */
        return (int)(c - 0x121 + 0x7f);
    return c == 0x143 ? 0xad : -1;
}

uint32_t byte_alphabet_char(unsigned char byte)
{
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte >= 0x7f && byte <= 0xa0)
        return 0x121u + byte - 0x7f;
    return byte == 0xad ? 0x143 : byte;
}

/* ---- matches and what lies between them ------------------------------------------ */

/* A piece that is not yet handed on, as its neighbour may join it. */
struct cut {
    struct run *r;
    int k;
    const char *text;
    bool first;
    size_t begin, end;
    bool has, is_match;
};

static enum status hand_on(struct cut *c, size_t begin, size_t end)
{
    return end > begin ? run(c->r, c->k + 1, c->text + begin, end - begin,
                             c->first && begin == 0)
                       : ST_OK;
}

static enum status flush(struct cut *c)
{
    const bool has = c->has;

    c->has = false;
    return has ? hand_on(c, c->begin, c->end) : ST_OK;
}

/* Whether a match, or what lies between two, joins the one before. */
static bool joins(const struct cut *c, enum piece_behavior behavior, bool is_match)
{
    if (!c->has)
        return false;
    switch (behavior) {
    case PIECE_CONTIGUOUS:
        return is_match == c->is_match;
    case PIECE_WITH_PREVIOUS:
        return is_match && !c->is_match;
    case PIECE_WITH_NEXT:
        return !is_match && c->is_match;
    default:
        return false;
    }
}

static enum status part(struct cut *c, size_t begin, size_t end, bool is_match)
{
    const struct piece_step *s = &c->r->p->steps[c->k];
    enum status st = ST_OK;

    is_match ^= s->invert;
    if (s->behavior == PIECE_REMOVED && is_match)
        return ST_OK;
    if (joins(c, s->behavior, is_match)) {
        c->end = end;
        c->is_match = is_match;
        return ST_OK;
    }
    st = flush(c);
    c->begin = begin;
    c->end = end;
    c->has = true;
    c->is_match = is_match;
    return st;
}

/* ---- steps that cut, well-formed text[begin .. end) ------------------------------ */

static enum status by_regex(struct cut *c, size_t begin, size_t end)
{
    const struct piece_step *s = &c->r->p->steps[c->k];
    const size_t len = end - begin;
    struct regex_place place = {0, 0, false};
    char *older = NULL;
    enum status st = unicode_stand_ins(c->text + begin, len, &older, c->r->err);

    for (size_t at = 0; at < len && !st;) {
        size_t from = at, to = len;

        st = regex_next(&c->r->search, s->regex, older ? older : c->text + begin, len,
                        &place, &from, &to);
        if (!st && from > at)
            st = part(c, begin + at, begin + from, false);
        if (!st && (to > from || from < len))
            st = part(c, begin + from, begin + to, true);
        at = to;
    }
    free(older);
    return st;
}

static enum status by_text(struct cut *c, size_t begin, size_t end)
{
    const struct piece_step *s = &c->r->p->steps[c->k];
    enum status st = ST_OK;

    while (begin < end && !st) {
        const char *found = memmem(c->text + begin, end - begin, s->text, s->n);
        const size_t at = found ? (size_t)(found - c->text) : end;

        if (at > begin)
            st = part(c, begin, at, false);
        if (found && !st)
            st = part(c, at, at + s->n, true);
        begin = found ? at + s->n : end;
    }
    return st;
}

static enum status by_class(struct cut *c, size_t begin, size_t end)
{
    const struct piece_step *s = &c->r->p->steps[c->k];
    enum status st = ST_OK;
    size_t n;

    for (size_t at = begin; at < end && !st; at += n) {
        if (!s->class(unicode_at(c->text + at, end - at, &n)))
            continue;
        if (at > begin)
            st = part(c, begin, at, false);
        if (!st)
            st = part(c, at, at + n, true);
        begin = at + n;
    }
    return !st && begin < end ? part(c, begin, end, false) : st;
}

/* Han has kana; a blank has no script of its own. */
static int script_of(uint32_t c)
{
    const int script = c == ' ' ? UNICODE_NO_SCRIPT : unicode_script(c);

    return c == 0x30fc || script == UNICODE_HIRAGANA || script == UNICODE_KATAKANA
               ? UNICODE_HAN
               : script;
}

/* Where a script begins; what has none belongs to what is before it, and at the
 * beginning of a piece is left out. */
static enum status by_script(struct cut *c, size_t begin, size_t end)
{
    enum status st = ST_OK;
    size_t from = end, n;
    int last = UNICODE_NO_SCRIPT;

    for (size_t at = begin; at < end && !st; at += n) {
        const int script = script_of(unicode_at(c->text + at, end - at, &n));

        if (script == UNICODE_NO_SCRIPT || script == last)
            continue;
        if (at > from)
            st = part(c, from, at, true);
        from = at;
        last = script;
    }
    return !st && from < end ? part(c, from, end, true) : st;
}

static enum status by_length(struct cut *c, size_t begin, size_t end)
{
    const size_t most = c->r->p->steps[c->k].length;
    size_t from = begin, chars = 0, n;
    enum status st = ST_OK;

    for (size_t at = begin; at < end && !st; at += n) {
        unicode_at(c->text + at, end - at, &n);
        if (chars++ == most) {
            st = part(c, from, at, true);
            from = at;
            chars = 1;
        }
    }
    return st ? st : part(c, from, end, true);
}

static enum status cut(struct run *r, int k, const char *text, size_t len, bool first)
{
    static enum status (*const by[])(struct cut *, size_t, size_t) = {
        [PIECE_CUT_REGEX] = by_regex,   [PIECE_CUT_TEXT] = by_text,
        [PIECE_CUT_CLASS] = by_class,   [PIECE_CUT_SCRIPT] = by_script,
        [PIECE_CUT_LENGTH] = by_length,
    };
    struct cut c = {.r = r, .k = k, .text = text, .first = first};
    enum status st = ST_OK;

    for (size_t at = 0, n; at < len && !st; at += n) {
        bool well_formed;

        n = utf8_stretch(text + at, len - at, &well_formed);
        if (well_formed) {
            st = by[r->p->steps[k].kind](&c, at, at + n);
            continue;
        }
        st = flush(&c);
        if (!st)
            st = hand_on(&c, at, at + n);
    }
    return st ? st : flush(&c);
}

/* ---- steps that change a piece --------------------------------------------------- */

/* Room for n bytes in the buffer of step k. */
static char *room(struct run *r, int k, size_t n)
{
    struct buffer *b = &r->made[k];

    if (n > b->cap) {
        free(b->v);
        b->cap = 2 * n;
        b->v = malloc(b->cap);
        b->cap = b->v ? b->cap : 0;
        if (!b->v)
            err_set(r->err, ST_NO_MEMORY, "no memory for a piece of %zu bytes", n);
    }
    return b->v;
}

static enum status change(struct run *r, int k, const char *text, size_t len,
                          bool first)
{
    const struct piece_step *s = &r->p->steps[k];
    const bool bytes = s->kind == PIECE_BYTES;
    size_t n = 0, blanks = 0;

    for (size_t i = 0; i < len && !bytes; i++)
        blanks += text[i] == ' ';
    char *out = room(r, k, bytes ? 2 * len : len + blanks * s->n);

    if (!out)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < len; i++) {
        if (bytes) {
            n += unicode_put(byte_alphabet_char((unsigned char)text[i]), out + n);
        } else if (text[i] == ' ') {
            memcpy(out + n, s->text, s->n);
            n += s->n;
        } else {
            out[n++] = text[i];
        }
    }
    return run(r, k + 1, out, n, first);
}

static enum status prefix(struct run *r, int k, const char *text, size_t len,
                          bool first)
{
    const struct piece_step *s = &r->p->steps[k];
    char *out;

    if ((s->first_only && !first) || (len >= s->n && !memcmp(text, s->text, s->n)))
        return run(r, k + 1, text, len, first);
    out = room(r, k, s->n + len);
    if (!out)
        return ST_NO_MEMORY;
    memcpy(out, s->text, s->n);
    memcpy(out + s->n, text, len);
    return run(r, k + 1, out, s->n + len, first);
}

/* Steps from k on. */
static enum status run(struct run *r, int k, const char *text, size_t len, bool first)
{
    if (k == r->p->n_steps)
        return r->fn(r->arg, text, len, r->err);
    switch (r->p->steps[k].kind) {
    case PIECE_PREFIX:
        return prefix(r, k, text, len, first);
    case PIECE_REPLACE:
    case PIECE_BYTES:
        return change(r, k, text, len, first);
    default:
        return cut(r, k, text, len, first);
    }
}

enum status pieces_cut(const struct pieces *p, const char *text, size_t len, bool first,
                       uint64_t *allowed_ns, pre_piece_fn *fn, void *arg,
                       struct err *err)
{
    struct run r = {.p = p, .fn = fn, .arg = arg, .err = err};
    enum status st = regex_search_begin(&r.search, p->foreign, *allowed_ns, err);

    if (!st && len)
        st = run(&r, 0, text, len, first);
    *allowed_ns = regex_search_end(&r.search);
    for (int k = 0; k < p->n_steps; k++)
        free(r.made[k].v);
    return st;
}
