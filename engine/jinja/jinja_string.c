/* SPDX-License-Identifier: MIT
 *
 * jinja_string.c - UTF-8 texts that know which of their bytes come from the input
 *
 * Parts of a text are views of it; only what joins or changes texts copies them. Marks
 * are kept for every byte only where a text is mixed.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/jinja/jinja_impl.h"

/* ---- building -------------------------------------------------------------------- */

static void reserve(struct builder *b, size_t more)
{
    char *p;
    uint8_t *mark;

    if (b->n + more <= b->cap)
        return;
    b->cap = 2 * (b->n + more) + 64;
    p = jinja_arena_alloc(&b->r->arena, b->cap);
    mark = jinja_arena_alloc(&b->r->arena, b->cap);
    if (b->n) {
        memcpy(p, b->p, b->n);
        memcpy(mark, b->mark, b->n);
    }
    b->p = p;
    b->mark = mark;
}

void jinja_put_bytes(struct builder *b, const char *p, size_t n, bool input)
{
    if (!n)
        return;
    jinja_run_work(b->r, n / 64);
    reserve(b, n);
    memcpy(b->p + b->n, p, n);
    memset(b->mark + b->n, input, n);
    b->n += n;
}

void jinja_put_cstr(struct builder *b, const char *text, bool input)
{
    jinja_put_bytes(b, text, strlen(text), input);
}

void jinja_put_string(struct builder *b, const struct jv *s)
{
    const size_t at = b->n;

    jinja_put_bytes(b, s->s.p, s->s.n, s->input);
    if (s->s.mark && s->s.n)
        memcpy(b->mark + at, s->s.mark, s->s.n);
}

struct jv jinja_built(const struct builder *b)
{
    return (struct jv){.kind = JV_STRING, .s = {b->n ? b->p : "", b->mark, b->n}};
}

bool jinja_string_mark(const struct jv *s, size_t i)
{
    return s->s.mark ? s->s.mark[i] : s->input;
}

/* ---- as Python prints ------------------------------------------------------------ */

/* The shortest digits that read back as the same number; an exponent below 1e-4 and
 * from 1e16 on. */
void jinja_put_float(struct builder *b, double f, bool input)
{
    char text[40], digits[40];
    int precision = 0, exponent;

    if (!isfinite(f)) {
        jinja_put_cstr(b, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf", input);
        return;
    }
    do
        snprintf(digits, sizeof digits, "%.*e", precision++, f);
    while (strtod(digits, NULL) != f); /* 17 at most */
    exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        /* "1e+16", "1.5e-05": two digits of exponent at least, as %e has them */
        snprintf(text, sizeof text, "%s", digits);
    } else {
        const int places = precision - 1 - exponent;

        snprintf(text, sizeof text, "%.*f", places > 1 ? places : 1, f);
    }
    jinja_put_cstr(b, text, input);
}

static void put_scalar(struct builder *b, const struct jv *v)
{
    char text[32];

    switch (v->kind) {
    case JV_NONE:
        jinja_put_cstr(b, "None", false);
        break;
    case JV_BOOL:
        jinja_put_cstr(b, v->b ? "True" : "False", false);
        break;
    case JV_INT:
        snprintf(text, sizeof text, "%lld", (long long)v->i);
        jinja_put_cstr(b, text, false);
        break;
    case JV_FLOAT:
        jinja_put_float(b, v->f, false);
        break;
    case JV_FUNCTION:
        jinja_put_cstr(b, "<function ", false);
        jinja_put_cstr(b, v->function->name, false);
        jinja_put_cstr(b, ">", false);
        break;
    default:
        break;
    }
}

/* In single quotes, unless only the other kind needs no backslash. */
static void put_quoted(struct builder *b, const struct jv *s)
{
    const bool has_single = s->s.n && memchr(s->s.p, '\'', s->s.n);
    const char quote = has_single && !memchr(s->s.p, '"', s->s.n) ? '"' : '\'';

    jinja_put_bytes(b, &quote, 1, false);
    for (size_t i = 0; i < s->s.n; i++) {
        const char c = s->s.p[i];
        const bool mark = jinja_string_mark(s, i);
        char text[8];

        if (c == '\n' || c == '\r' || c == '\t')
            jinja_put_cstr(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", mark);
        else if (c == quote || c == '\\')
            snprintf(text, sizeof text, "\\%c", c), jinja_put_cstr(b, text, mark);
        else if ((unsigned char)c < 0x20 || c == 0x7f)
            snprintf(text, sizeof text, "\\x%02x", c), jinja_put_cstr(b, text, mark);
        else
            jinja_put_bytes(b, &c, 1, mark);
    }
    jinja_put_bytes(b, &quote, 1, false);
}

static void put_elements(struct builder *b, const struct jv *v)
{
    jinja_put_cstr(b, v->is_tuple ? "(" : "[", false);
    for (size_t i = 0; i < v->list->n; i++) {
        if (i)
            jinja_put_cstr(b, ", ", false);
        jinja_put_repr(b, &v->list->v[i]);
    }
    jinja_put_cstr(b, !v->is_tuple ? "]" : v->list->n == 1 ? ",)" : ")", false);
}

static void put_members(struct builder *b, const struct jv_dict *d)
{
    jinja_put_cstr(b, "{", false);
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            jinja_put_cstr(b, ", ", false);
        jinja_put_repr(b, &d->v[i].key);
        jinja_put_cstr(b, ": ", false);
        jinja_put_repr(b, &d->v[i].value);
    }
    jinja_put_cstr(b, "}", false);
}

void jinja_put_repr(struct builder *b, const struct jv *v)
{
    jinja_run_enter(b->r);
    if (v->kind == JV_STRING)
        put_quoted(b, v);
    else if (v->kind == JV_LIST)
        put_elements(b, v);
    else if (v->kind == JV_DICT || v->kind == JV_NAMESPACE)
        put_members(b, v->dict);
    else if (v->kind == JV_UNDEFINED)
        jinja_put_cstr(b, "Undefined", false);
    else
        put_scalar(b, v);
    b->r->depth--;
}

struct jv jv_str(struct run *r, const struct jv *v)
{
    struct builder b = {.r = r};

    if (v->kind == JV_STRING)
        return *v;
    if (v->kind != JV_UNDEFINED)
        jinja_put_repr(&b, v);
    return jinja_built(&b);
}

/* ---- characters ------------------------------------------------------------------ */

/* The code of the character at p, n >= 1; a byte that begins none is one of its own. */
unsigned jinja_char_code(const char *p, size_t n, int *len)
{
    const unsigned char *s = (const unsigned char *)p;
    const int l = utf8_char_len(p, n);

    *len = l > 0 ? l : 1;
    switch (l) {
    case 2:
        return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    case 3:
        return (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    case 4:
        return (s[0] & 7u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 |
               (s[3] & 0x3fu);
    default:
        return s[0];
    }
}

/* What str.isspace() and str.strip() take for white space. */
bool jinja_code_is_space(unsigned c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

size_t jinja_string_length(const struct jv *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->s.n; i++)
        n += ((unsigned char)s->s.p[i] & 0xc0) != 0x80;
    return n;
}

size_t jinja_string_offset(const struct jv *s, size_t at)
{
    size_t i = 0;

    for (; at && i < s->s.n; at--)
        for (i++; i < s->s.n && ((unsigned char)s->s.p[i] & 0xc0) == 0x80;)
            i++;
    return i;
}

struct jv jinja_string_slice(const struct jv *s, size_t begin, size_t end)
{
    struct jv part = *s;

    part.s.p += begin;
    part.s.n = end - begin;
    if (part.s.mark)
        part.s.mark += begin;
    return part;
}

size_t jinja_string_find(const struct jv *s, size_t from, const struct jv *what)
{
    const char *at;

    if (from > s->s.n || what->s.n > s->s.n - from)
        return SIZE_MAX;
    if (!what->s.n)
        return from;
    at = memmem(s->s.p + from, s->s.n - from, what->s.p, what->s.n);
    return at ? (size_t)(at - s->s.p) : SIZE_MAX;
}

bool jinja_string_is(const struct jv *s, const char *text)
{
    return s->s.n == strlen(text) && !memcmp(s->s.p, text, s->s.n);
}

static bool strips(const char *p, int len, unsigned code, const struct jv *chars)
{
    const struct jv one = jv_text(p, (size_t)len, false);

    return chars ? jinja_string_find(chars, 0, &one) != SIZE_MAX
                 : jinja_code_is_space(code);
}

struct jv jinja_string_strip(struct run *r, const struct jv *s, const struct jv *chars,
                             bool left, bool right)
{
    size_t begin = 0, end = s->s.n;

    jinja_run_work(r, s->s.n / 64);
    while (left && begin < end) {
        int len;
        const unsigned code = jinja_char_code(s->s.p + begin, end - begin, &len);

        if (!strips(s->s.p + begin, len, code, chars))
            break;
        begin += (size_t)len;
    }
    while (right && begin < end) {
        size_t at = end - 1;
        int len;

        while (at > begin && ((unsigned char)s->s.p[at] & 0xc0) == 0x80)
            at--;
        const unsigned code = jinja_char_code(s->s.p + at, end - at, &len);
        if (!strips(s->s.p + at, len, code, chars))
            break;
        end = at;
    }
    return jinja_string_slice(s, begin, end);
}

/* most < 0: all. An empty text is found before every character, and at the end. */
struct jv jinja_string_replace(struct run *r, const struct jv *s, const struct jv *from,
                               const struct jv *to, int64_t most)
{
    struct builder b = {.r = r};
    size_t at = 0, found;
    struct jv part;

    for (; most && (found = jinja_string_find(s, at, from)) != SIZE_MAX; most--) {
        jinja_run_work(r, 1 + (found - at) / 64);
        part = jinja_string_slice(s, at, found);
        jinja_put_string(&b, &part);
        jinja_put_string(&b, to);
        at = found + from->s.n;
        if (!from->s.n) {
            int len;

            if (at == s->s.n)
                return jinja_built(&b);
            jinja_char_code(s->s.p + at, s->s.n - at, &len);
            part = jinja_string_slice(s, at, at + (size_t)len);
            jinja_put_string(&b, &part);
            at += (size_t)len;
        }
    }
    if (!at) /* nothing is replaced */
        return *s;
    part = jinja_string_slice(s, at, s->s.n);
    jinja_put_string(&b, &part);
    return jinja_built(&b);
}

struct jv jinja_string_repeat(struct run *r, const struct jv *s, int64_t n)
{
    struct builder b = {.r = r};

    for (; n > 0 && s->s.n; n--) {
        jinja_run_work(r, 1);
        jinja_put_string(&b, s);
    }
    return jinja_built(&b);
}

/* ---- letters --------------------------------------------------------------------- */

static bool is_cased(uint32_t c)
{
    const enum unicode_category is = unicode_category(c);

    return is == UNICODE_Ll || is == UNICODE_Lu || is == UNICODE_Lt;
}

/* A sigma that ends a word: behind a letter, and none behind it. */
static bool is_final_sigma(const struct jv *s, size_t at, bool inside)
{
    size_t n;

    at += 2;
    return inside &&
           (at >= s->s.n || !is_cased(unicode_at(s->s.p + at, s->s.n - at, &n)));
}

static size_t convert(const struct jv *s, size_t at, uint32_t c, enum letter_case how,
                      bool inside, uint32_t to[UNICODE_MAX_CASE])
{
    const bool titles =
        (how == CASE_TITLE && !inside) || (how == CASE_CAPITALIZE && at == 0);

    if (how == CASE_UPPER || (how == CASE_WORDS && !inside) ||
        (how == CASE_SWAP && unicode_category(c) == UNICODE_Ll))
        return unicode_case(c, UNICODE_UPPER, to);
    if (titles)
        return unicode_case(c, UNICODE_TITLE, to);
    if (c == 0x3a3 && is_final_sigma(s, at, inside)) {
        to[0] = 0x3c2;
        return 1;
    }
    return unicode_case(c, UNICODE_LOWER, to);
}

/* As Python's methods; what a character becomes is marked as it was. */
struct jv jinja_string_case(struct run *r, const struct jv *s, enum letter_case c)
{
    struct builder b = {.r = r};
    bool inside = false;

    jinja_run_work(r, s->s.n / 8);
    for (size_t at = 0, n; at < s->s.n; at += n) {
        const bool input = jinja_string_mark(s, at);
        const uint32_t code = unicode_at(s->s.p + at, s->s.n - at, &n);
        uint32_t to[UNICODE_MAX_CASE];
        char bytes[4];

        if (!n) {
            jinja_put_bytes(&b, s->s.p + at, n = 1, input);
            inside = false;
            continue;
        }
        const size_t n_to = convert(s, at, code, c, inside, to);

        for (size_t i = 0; i < n_to; i++)
            jinja_put_bytes(&b, bytes, unicode_put(to[i], bytes), input);
        inside = c == CASE_WORDS
                     ? !code || code >= 0x80 || !strchr("- \t\n\v\f\r({[<", (int)code)
                     : is_cased(code);
    }
    return jinja_built(&b);
}
