/* SPDX-License-Identifier: MIT
 *
 * jinja_lex.c - text and tags, with trim_blocks and lstrip_blocks
 *
 *   {% %}, {# #}   blanks before one that begins its line are dropped, and the newline
 *                  behind it; {%+ and +%} keep them
 *   {{ }}          keeps both
 *   {%-, -%} ...   drop all white space on that side, newlines included
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/jinja/jinja_impl.h"

static bool starts(const struct lexer *l, const char *p, const char *with)
{
    const size_t n = strlen(with);

    return (size_t)(l->end - p) >= n && !memcmp(p, with, n);
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Go on to p, counting lines. */
static void advance(struct lexer *l, const char *p)
{
    if (p > l->p)
        l->line_starting = p[-1] == '\n';
    for (; l->p < p; l->p++)
        l->line += *l->p == '\n';
    l->arena->line = l->line;
}

static void skip_blanks(struct lexer *l)
{
    const char *p = l->p;

    while (p < l->end && is_blank(*p))
        p++;
    advance(l, p);
}

/* Newlines become \n, and the last one goes. */
void jinja_lex_open(struct lexer *l, struct arena *a, const char *text, size_t len)
{
    char *copy = jinja_arena_alloc(a, len + 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\r' && i + 1 < len && text[i + 1] == '\n')
            continue;
        copy[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (n && copy[n - 1] == '\n')
        n--;
    *l = (struct lexer){
        .arena = a, .p = copy, .end = copy + n, .line = 1, .line_starting = true};
    a->line = 1;
    jinja_lex_next(l);
}

/* The beginning of the next tag; l->end: none. */
static const char *find_tag(const struct lexer *l)
{
    const char *p = l->p;

    while ((p = memchr(p, '{', (size_t)(l->end - p))) && p + 1 < l->end) {
        if (strchr("{%#", p[1]) && p[1])
            return p;
        p++;
    }
    return l->end;
}

/* The end of the text before a tag, without the blanks that the tag drops. */
static const char *text_end(const struct lexer *l, const char *tag)
{
    const char sign = tag + 2 < l->end ? tag[2] : 0;
    const char *p = tag;

    if (sign == '-') {
        while (p > l->p && is_blank(p[-1]))
            p--;
        return p;
    }
    if (tag[1] == '{' || sign == '+')
        return tag;
    while (p > l->p && is_blank(p[-1]) && p[-1] != '\n')
        p--;
    return (p == l->p && l->line_starting) || (p > l->p && p[-1] == '\n') ? p : tag;
}

/* Behind the end of a tag: white space, or one newline. */
static void after_tag(struct lexer *l, char sign, bool trims)
{
    if (sign == '-')
        skip_blanks(l);
    else if (trims && sign != '+' && l->p < l->end && *l->p == '\n')
        advance(l, l->p + 1);
}

static void skip_comment(struct lexer *l)
{
    const char *p = l->p + 2;

    while (p < l->end && !starts(l, p, "#}"))
        p++;
    if (p == l->end)
        jinja_arena_fail(l->arena, ST_INPUT, "a comment has no end '#}'");
    const char sign = p > l->p + 2 ? p[-1] : 0;
    advance(l, p + 2);
    after_tag(l, sign, true);
}

/* {%- raw -%}: *body is what follows. NULL: another tag. */
static const char *raw_tag(const struct lexer *l, const char *tag, const char *word,
                           char *sign)
{
    const char *p = tag + 2;

    if (!starts(l, tag, "{%"))
        return NULL;
    p += p < l->end && (*p == '-' || *p == '+');
    while (p < l->end && is_blank(*p))
        p++;
    if (!starts(l, p, word))
        return NULL;
    for (p += strlen(word); p < l->end && is_blank(*p);)
        p++;
    *sign = p < l->end && (*p == '-' || *p == '+') ? *p++ : 0;
    return starts(l, p, "%}") ? p + 2 : NULL;
}

static void set_text(struct lexer *l, const char *p, const char *end)
{
    l->token =
        (struct token){TOKEN_TEXT, .line = l->line, .p = p, .n = (size_t)(end - p)};
}

/* At a raw tag whose content begins at body. */
static void lex_raw(struct lexer *l, const char *body, char sign)
{
    const char *p, *next = NULL, *begin;
    char end_sign = 0;

    advance(l, body);
    after_tag(l, sign, false);
    begin = l->p;
    for (p = begin; p < l->end && !(next = raw_tag(l, p, "endraw", &end_sign)); p++)
        ;
    if (p == l->end)
        jinja_arena_fail(l->arena, ST_INPUT, "{%% raw %%} has no {%% endraw %%}");
    set_text(l, begin, text_end(l, p));
    advance(l, next);
    after_tag(l, end_sign, true);
}

static void lex_data(struct lexer *l)
{
    while (l->p < l->end) {
        const char *tag = find_tag(l), *body, *end;
        char sign;

        if (tag == l->end) {
            set_text(l, l->p, l->end);
            advance(l, l->end);
            return;
        }
        end = text_end(l, tag);
        if (end > l->p) {
            set_text(l, l->p, end);
            advance(l, tag);
            return;
        }
        advance(l, tag);
        if (tag[1] == '#') {
            skip_comment(l);
            continue;
        }
        if ((body = raw_tag(l, tag, "raw", &sign))) {
            lex_raw(l, body, sign);
            if (!l->token.n)
                continue;
            return;
        }
        l->token = (struct token){tag[1] == '{' ? TOKEN_VARIABLE : TOKEN_BLOCK,
                                  .line = l->line};
        l->state = tag[1] == '{' ? LEX_VARIABLE : LEX_BLOCK;
        sign = tag + 2 < l->end ? tag[2] : 0;
        advance(l, tag + 2 + (sign == '-' || (sign == '+' && tag[1] == '%')));
        return;
    }
    l->token = (struct token){TOKEN_END, .line = l->line};
}

static bool lex_tag_end(struct lexer *l)
{
    const bool is_block = l->state == LEX_BLOCK;
    const char *closing = is_block ? "%}" : "}}";
    const char sign = *l->p == '-' || (*l->p == '+' && is_block) ? *l->p : 0;

    if (l->n_open || !starts(l, l->p + (sign != 0), closing))
        return false;
    l->token = (struct token){is_block ? TOKEN_BLOCK_END : TOKEN_VARIABLE_END,
                              .line = l->line};
    advance(l, l->p + (sign != 0) + 2);
    after_tag(l, sign, is_block);
    l->state = LEX_DATA;
    return true;
}

/* ---- inside a tag ---------------------------------------------------------------- */

static char *put_code(char *out, unsigned c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* \xNN, \uNNNN, \UNNNNNNNN, as Python reads them: the text behind the letter. */
static const char *unescape_code(struct lexer *l, const char *p, int n_digits,
                                 char **out)
{
    unsigned code = 0;

    for (int i = 0; i < n_digits; i++, p++) {
        if (p >= l->end || !isxdigit((unsigned char)*p))
            jinja_arena_fail(l->arena, ST_INPUT,
                             "an escape in a string needs %d hex digits", n_digits);
        code = code << 4 |
               (unsigned)(isdigit((unsigned char)*p) ? *p - '0' : (*p | 32) - 'a' + 10);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        jinja_arena_fail(l->arena, ST_INPUT, "\\u%04x is no character", code);
    *out = put_code(*out, code);
    return p;
}

static const char *unescape(struct lexer *l, const char *p, char **out)
{
    static const char from[] = "ntrbfav0\\'\"", to[] = "\n\t\r\b\f\a\v\0\\'\"";
    const char *at = *p ? strchr(from, *p) : NULL;

    if (*p == 'x' || *p == 'u' || *p == 'U')
        return unescape_code(l, p + 1, *p == 'x' ? 2 : *p == 'u' ? 4 : 8, out);
    if (*p == '\n')
        return p + 1;
    if (!at)
        *(*out)++ = '\\';
    *(*out)++ = at ? to[at - from] : *p;
    return p + 1;
}

static void lex_string(struct lexer *l)
{
    const char quote = *l->p;
    const char *p = l->p + 1;
    char *text, *out;

    while (p < l->end && *p != quote)
        p += *p == '\\' && p + 1 < l->end ? 2 : 1;
    if (p >= l->end)
        jinja_arena_fail(l->arena, ST_INPUT, "a string has no closing %c", quote);
    out = text = jinja_arena_alloc(l->arena, (size_t)(p - l->p));
    for (const char *at = l->p + 1; at < p;) {
        if (*at == '\\')
            at = unescape(l, at + 1, &out);
        else
            *out++ = *at++;
    }
    l->token = (struct token){TOKEN_STRING, .line = l->line, .p = text,
                              .n = (size_t)(out - text)};
    advance(l, p + 1);
}

/* A number's text, without its underscores. */
struct digits {
    char text[64];
    size_t n;
};

static void put_char(struct lexer *l, struct digits *d, char c)
{
    if (d->n == sizeof d->text - 1)
        jinja_arena_fail(l->arena, ST_INPUT, "the number %.40s... is too long",
                         d->text);
    d->text[d->n++] = c;
}

static bool is_digit_at(const struct lexer *l, const char *p)
{
    return p < l->end && isdigit((unsigned char)*p);
}

/* Digits, with an underscore between two of them; behind them. */
static const char *put_digits(struct lexer *l, struct digits *d, const char *p)
{
    for (; is_digit_at(l, p); p++) {
        put_char(l, d, *p);
        p += p + 1 < l->end && p[1] == '_' && is_digit_at(l, p + 2);
    }
    return p;
}

static void lex_number(struct lexer *l)
{
    /* in x.0.1 they are two indexes */
    const bool is_index = l->token.kind == TOKEN_OPERATOR && *l->token.p == '.';
    struct digits d = {.text = "", .n = 0};
    const char *p = put_digits(l, &d, l->p);
    bool is_float = false;
    char *stop;

    if (!is_index && p < l->end && *p == '.' && is_digit_at(l, p + 1)) {
        is_float = true;
        put_char(l, &d, '.');
        p = put_digits(l, &d, p + 1);
    }
    if (p < l->end && (*p | 32) == 'e') {
        const bool sign = p + 1 < l->end && (p[1] == '+' || p[1] == '-');

        if (is_digit_at(l, p + 1 + sign)) {
            is_float = true;
            put_char(l, &d, 'e');
            if (sign)
                put_char(l, &d, p[1]);
            p = put_digits(l, &d, p + 1 + sign);
        }
    }
    l->token = (struct token){is_float ? TOKEN_FLOAT : TOKEN_INT, .line = l->line};
    errno = 0;
    if (is_float)
        l->token.f = strtod(d.text, &stop);
    else
        l->token.i = strtoll(d.text, &stop, 10);
    if (errno && !is_float)
        jinja_arena_fail(l->arena, ST_INPUT, "the number %.40s is too large", d.text);
    advance(l, p);
}

static void lex_operator(struct lexer *l)
{
    static const char *const two[] = {"==", "!=", "<=", ">=", "//", "**"};
    size_t n = 1;

    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
        if (starts(l, l->p, two[i]))
            n = 2;
    if (n == 1 && (!*l->p || !strchr("+-*/%~<>=()[]{},.:|", *l->p)))
        jinja_arena_fail(l->arena, ST_INPUT, "'%c' has no meaning in a tag",
                         isprint((unsigned char)*l->p) ? *l->p : '?');
    if (strchr("([{", *l->p))
        l->n_open++;
    if (strchr(")]}", *l->p) && l->n_open-- == 0)
        jinja_arena_fail(l->arena, ST_INPUT, "'%c' closes nothing", *l->p);
    l->token = (struct token){TOKEN_OPERATOR, .line = l->line, .p = l->p, .n = n};
    advance(l, l->p + n);
}

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static void lex_inside(struct lexer *l)
{
    const char *p;

    skip_blanks(l);
    if (l->p >= l->end)
        jinja_arena_fail(l->arena, ST_INPUT, "the template ends inside a tag");
    if (lex_tag_end(l))
        return;
    if (*l->p == '"' || *l->p == '\'') {
        lex_string(l);
    } else if (isdigit((unsigned char)*l->p)) {
        lex_number(l);
    } else if (begins_name(*l->p)) {
        for (p = l->p; p < l->end && (begins_name(*p) || isdigit((unsigned char)*p));)
            p++;
        l->token = (struct token){TOKEN_NAME, .line = l->line, .p = l->p,
                                  .n = (size_t)(p - l->p)};
        advance(l, p);
    } else {
        lex_operator(l);
    }
}

void jinja_lex_next(struct lexer *l)
{
    if (l->state == LEX_DATA)
        lex_data(l);
    else
        lex_inside(l);
}
