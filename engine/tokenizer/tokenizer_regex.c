/* SPDX-License-Identifier: MIT
 *
 * tokenizer_regex.c - patterns compiled by PCRE2, spelled for it, and bounded searches
 */
#include "engine/tokenizer/tokenizer_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/utf8.h"

/* Limits of matching with patterns of a file: far beyond the need of patterns that
 * backtrack over one run of characters at most. The first two are of one match; a text
 * has an allowance of CPU time, looked at after this many matches or parts of one: such
 * a part may go over the whole text, however few of them there are. */
#define LIMIT_UNKNOWN    20000000u
#define HEAP_UNKNOWN_KIB 65536u
#define ALLOWED_NS       1000000000u
#define ALLOWED_BYTE_NS  20000u
#define STEPS_A_LOOK     64u

/* Since 10.40 the name of a script alone is more than its characters. */
#if PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40
#define SCRIPT "sc:"
#else
#define SCRIPT ""
#endif

struct regex {
    pcre2_code *code;
};

/* ---- opening --------------------------------------------------------------------- */

static enum status refused(const char *pattern, size_t at, int why, bool foreign,
                           const char *path, struct err *err)
{
    char text[128];

    pcre2_get_error_message(why, (PCRE2_UCHAR *)text, sizeof text);
    if (foreign)
        return err_set(err, ST_INPUT,
                       "%s: a pattern by which the tokenizer cuts texts is wrong at "
                       "byte %zu (%s)",
                       path, at, text);
    return err_set(err, ST_UNSUPPORTED,
                   "this PCRE2 library refuses a pattern at byte %zu (%s), so it was "
                   "built without Unicode support; install another: %.80s",
                   at, text, pattern + at);
}

/* In a tokenizer.json ^ and $ are the ends of a line. */
enum status regex_open(struct regex **out, const char *pattern, size_t len,
                       bool foreign, const char *path, struct err *err)
{
    const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE;
    const uint32_t of_file =
        PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT | PCRE2_MULTILINE;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    struct regex *r = calloc(1, sizeof *r);
    PCRE2_SIZE at;
    int why;

    if (!r || !context) {
        free(r);
        pcre2_compile_context_free(context);
        return err_set(err, ST_NO_MEMORY, "no memory for a pattern of a tokenizer");
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    r->code = pcre2_compile((PCRE2_SPTR)pattern, len, options | (foreign ? of_file : 0),
                            &why, &at, context);
    pcre2_compile_context_free(context);
    if (!r->code) {
        free(r);
        return refused(pattern, at, why, foreign, path, err);
    }
    /* Where generated code is forbidden, matching is interpreted. */
    pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
    *out = r;
    return ST_OK;
}

void regex_close(struct regex *r)
{
    if (r)
        pcre2_code_free(r->code);
    free(r);
}

/* ---- spelling -------------------------------------------------------------------- */

/* Characters of words, as Oniguruma has them, for use inside of brackets; outside of a
 * set it takes all numbers of Latin-1 for some. */
#define WORD_IN_SET                                        \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}" \
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define WORD        WORD_IN_SET "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define IN(set)     "[" set "]"
#define NOT_IN(set) "[^" set "]"

/* What an escape becomes outside of a set and inside of one; NULL: no equivalent. */
static const struct escape {
    char c;
    const char *outside, *inside;
} escapes[] = {
    {'s', IN(REGEX_WS), REGEX_WS},
    {'S', NOT_IN(REGEX_WS), "\\S"},
    {'w', IN(WORD), WORD_IN_SET},
    {'W', NOT_IN(WORD), NULL},
    {'h', "[0-9A-Fa-f]", "0-9A-Fa-f"},
    {'H', "[^0-9A-Fa-f]", NULL},
    {'b', "(?:(?<=" IN(WORD) ")(?!" IN(WORD) ")|(?<!" IN(WORD) ")(?=" IN(WORD) "))",
     "\\b"},
    {'B', "(?:(?<=" IN(WORD) ")(?=" IN(WORD) ")|(?<!" IN(WORD) ")(?!" IN(WORD) "))",
     NULL},
    {'Z', NULL, NULL},
    {'R', NULL, NULL},
    {'X', NULL, NULL},
};

/* Names of properties that PCRE2 spells otherwise. */
static const struct {
    const char *name, *spelt;
} properties[] = {
    {"Any", "Any"},
    {"Alphabetic", "Alphabetic"},
    {"Alpha", "Alphabetic"},
    {"Lower", "Lowercase"},
    {"Lowercase", "Lowercase"},
    {"Upper", "Uppercase"},
    {"Uppercase", "Uppercase"},
    {"Digit", "Nd"},
    {"Letter", "L"},
    {"Mark", "M"},
    {"Number", "N"},
    {"Punctuation", "P"},
    {"Symbol", "S"},
    {"Separator", "Z"},
    {"Other", "C"},
    {"Emoji", "Emoji"},
};

#define MAX_GROUPS 64
#define MAX_NAME   48

/* A position in a regular expression, and the converted part. */
struct spelling {
    char *out;
    size_t n, cap;
    bool in_class;
    size_t atom; /* where the last character, set or group begins in out */
    size_t groups[MAX_GROUPS]; /* where open groups begin */
    size_t n_groups;
};

static void spell(struct spelling *s, const char *text, size_t len)
{
    if (s->n + len < s->cap)
        memcpy(s->out + s->n, text, len);
    s->n += len;
}

static bool is_hex(const char *at, int n)
{
    return strspn(at, "0123456789ABCDEFabcdef") >= (size_t)n;
}

/* \p{Name} or \P{Name} at `at`; *last becomes its brace. PCRE2 takes the name of a
 * script for more than its characters. */
static bool spell_property(struct spelling *s, const char *at, const char **last)
{
    const char *close = at[2] == '{' ? strchr(at, '}') : NULL;
    const char *name = at + 3 + (at[3] == '^');
    char text[MAX_NAME + 16];

    if (!close || close - name < 1 || close - name > MAX_NAME)
        return false;
    const int n = (int)(close - name);

    snprintf(text, sizeof text, SCRIPT "%.*s", n, name);
    if (n <= 2 || memchr(name, '=', (size_t)n) || memchr(name, ':', (size_t)n))
        snprintf(text, sizeof text, "%.*s", n, name);
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++)
        if (strlen(properties[i].name) == (size_t)n &&
            !memcmp(properties[i].name, name, (size_t)n))
            snprintf(text, sizeof text, "%s", properties[i].spelt);
    spell(s, at, (size_t)(name - at));
    spell(s, text, strlen(text));
    spell(s, "}", 1);
    *last = close;
    return true;
}

/* The escape at *at, a backslash and another character; *at becomes its last one. */
static bool spell_escape(struct spelling *s, const char **at)
{
    const char c = *++*at;

    if (c == 'p' || c == 'P')
        return spell_property(s, *at - 1, at);
    if (c == 'u' && is_hex(*at + 1, 4)) {
        spell(s, "\\x{", 3);
        spell(s, *at + 1, 4);
        spell(s, "}", 1);
        *at += 4;
        return true;
    }
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++)
        if (escapes[i].c == c) {
            const char *text = s->in_class ? escapes[i].inside : escapes[i].outside;

            if (text)
                spell(s, text, strlen(text));
            return text != NULL;
        }
    spell(s, *at - 1, 2);
    return true;
}

/* Whether "(?" at `at` sets m or s, which mean other things to the two libraries. */
static bool sets_lines(const char *at)
{
    const size_t n = strspn(at + 2, "imsx-");

    return (at[2 + n] == ':' || at[2 + n] == ')') &&
           (memchr(at + 2, 'm', n) || memchr(at + 2, 's', n));
}

/* The interval at `at`; returns its bytes, 0: none. What follows is another repetition:
 * PCRE2 takes "+" for a match that is not gone back into, and "?" for a short one. */
static size_t spell_interval(struct spelling *s, const char *at)
{
    const size_t n = 1 + strspn(at + 1, "0123456789,");
    const bool exact = !memchr(at, ',', n);

    if (n == 1 || at[n] != '}')
        return 0;
    if (at[1] == ',')
        spell(s, "{0", 2);
    spell(s, at + (at[1] == ','), n + 1 - (at[1] == ','));
    if (at[n + 1] != '+' && !(at[n + 1] == '?' && exact))
        return n + 1;
    spell(s, "   )", 4); /* room for "(?:" */
    if (s->n < s->cap) {
        memmove(s->out + s->atom + 3, s->out + s->atom, s->n - 4 - s->atom);
        memcpy(s->out + s->atom, "(?:", 3);
        s->out[s->n - 1] = ')';
    }
    return n + 1;
}

static bool spell_group(struct spelling *s, const char *at)
{
    if (*at == '(') {
        if (s->n_groups == MAX_GROUPS || (at[1] == '?' && sets_lines(at)))
            return false;
        s->groups[s->n_groups++] = s->n;
    } else if (s->n_groups) {
        s->atom = s->groups[--s->n_groups];
    }
    spell(s, at, 1);
    return true;
}

/* The character at *at, or more; *at becomes the last one. */
static bool spell_next(struct spelling *s, const char **at)
{
    const char c = **at;
    size_t n;

    if (s->in_class && (c == '[' || !strncmp(*at, "&&", 2)))
        return false; /* sets of sets, which PCRE2 does not support */
    if (c == '\\' && (*at)[1]) {
        s->atom = s->in_class ? s->atom : s->n;
        return spell_escape(s, at);
    }
    if (!s->in_class && (c == '(' || c == ')'))
        return spell_group(s, *at);
    if (!s->in_class && c == '{' && (n = spell_interval(s, *at))) {
        *at += n - 1;
        return true;
    }
    if (!s->in_class && !strchr("*+?", c) && ((unsigned char)c & 0xc0) != 0x80)
        s->atom = s->n;
    if (c == '[' || c == ']')
        s->in_class = c == '[';
    spell(s, *at, 1);
    return true;
}

bool regex_spell(const char *regex, char *out, size_t cap)
{
    struct spelling s = {.out = out, .cap = cap};

    for (const char *at = regex; *at; at++)
        if (!spell_next(&s, &at))
            return false;
    if (s.n >= cap)
        return false;
    out[s.n] = '\0';
    return true;
}

/* ---- searching ------------------------------------------------------------------- */

uint64_t regex_allowance(size_t len)
{
    return ALLOWED_NS + len * (uint64_t)ALLOWED_BYTE_NS;
}

/* Steps that are each within their limits can take hours together. */
bool regex_takes_too_long(struct regex_search *s)
{
    return s->n_steps++ % STEPS_A_LOOK == 0 &&
           clock_thread_ns() - s->begin_ns > s->allowed_ns;
}

enum status regex_too_long(const struct regex_search *s)
{
    return err_set(s->err, ST_INPUT,
                   "cutting a text by the patterns of the model's tokenizer takes too "
                   "long; the model is broken or hostile");
}

/* PCRE2 calls it before each part of a pattern. */
static int on_part(pcre2_callout_block *block, void *arg)
{
    (void)block;
    return regex_takes_too_long(arg) ? PCRE2_ERROR_CALLOUT : 0;
}

enum status regex_search_begin(struct regex_search *s, bool foreign,
                               uint64_t allowed_ns, struct err *err)
{
    *s = (struct regex_search){.match = pcre2_match_data_create(1, NULL),
                               .context = pcre2_match_context_create(NULL),
                               .foreign = foreign,
                               .begin_ns = foreign ? clock_thread_ns() : 0,
                               .allowed_ns = allowed_ns,
                               .err = err};
    if (!s->match || !s->context)
        return err_set(err, ST_NO_MEMORY, "cannot allocate memory to cut a text");
    /* Known patterns backtrack over one run of characters at most, so the text bounds
     * their steps and no other limit is needed. */
    pcre2_set_match_limit(s->context, foreign ? LIMIT_UNKNOWN : UINT32_MAX);
    if (foreign) {
        pcre2_set_heap_limit(s->context, HEAP_UNKNOWN_KIB);
        pcre2_set_callout(s->context, on_part, s);
    }
    return ST_OK;
}

uint64_t regex_search_end(struct regex_search *s)
{
    const uint64_t took = s->foreign ? clock_thread_ns() - s->begin_ns : 0;

    pcre2_match_data_free(s->match);
    pcre2_match_context_free(s->context);
    return s->allowed_ns - (took < s->allowed_ns ? took : s->allowed_ns);
}

static enum status failed(const struct regex_search *s, int why, size_t len)
{
    if (why == PCRE2_ERROR_CALLOUT)
        return regex_too_long(s);
    if (s->foreign && why != PCRE2_ERROR_NOMEMORY)
        return err_set(s->err, ST_INPUT,
                       "a pattern by which the model's tokenizer cuts texts exceeds "
                       "the limits of a match (PCRE2 error %d); the model is broken "
                       "or hostile",
                       why);
    return err_set(s->err, ST_NO_MEMORY,
                   "cutting a text of %zu bytes into words failed (PCRE2 error %d); "
                   "tokenise it in smaller parts",
                   len, why);
}

enum status regex_next(struct regex_search *s, const struct regex *r, const char *text,
                       size_t len, struct regex_place *place, size_t *begin,
                       size_t *end)
{
    while (place->at < len) {
        int n = pcre2_match(r->code, (PCRE2_SPTR)text, len, place->at,
                            PCRE2_NO_UTF_CHECK, s->match, s->context);

        /* Compiled code has a small stack; the interpreter uses the heap. */
        if (n == PCRE2_ERROR_JIT_STACKLIMIT)
            n = pcre2_match(r->code, (PCRE2_SPTR)text, len, place->at,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s->match, s->context);
        if (n == PCRE2_ERROR_NOMATCH)
            break;
        if (n < 0)
            return failed(s, n, len);
        const size_t from = pcre2_get_ovector_pointer(s->match)[0];
        const size_t to = pcre2_get_ovector_pointer(s->match)[1];

        /* \K may move the beginning behind the end. */
        if (from < place->at || to < from)
            return err_set(
                s->err, ST_INPUT,
                "a pattern by which the model's tokenizer cuts texts finds a match "
                "that begins behind its end; the model is broken or hostile");
        if (s->foreign && regex_takes_too_long(s))
            return regex_too_long(s);
        if (from == to && place->has_last && to == place->last) {
            place->at = to + (size_t)utf8_char_len(text + to, len - to);
            continue;
        }
        place->at = place->last = to;
        place->has_last = true;
        *begin = from;
        *end = to;
        return ST_OK;
    }
    *begin = *end = place->at = len;
    return ST_OK;
}
