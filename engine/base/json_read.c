/* SPDX-License-Identifier: MIT
 *
 * json_read.c - what jansson refuses is written so that it does not, then it reads
 *
 * One pass over the text counts values and finds what is to be changed. Where that is
 * nothing, which is nearly always, jansson reads the text itself; else a second pass
 * writes a copy.
 */
#include "engine/base/json_read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define BIGGEST  "9223372036854775807"
#define SMALLEST "9223372036854775808"
#define DIGITS   (sizeof BIGGEST - 1) /* fewer always fit */

/* Below, no number is too large for a double, unless its exponent has three digits. */
#define SHORT_NUMBER 200

/* Longer ones are no numbers that anybody means. */
#define LONGEST_NUMBER 1000

/* How a number that is not read begins, as a text. */
#define MARK      "\"\\u0000number:"
#define MARK_READ "\0number:"

static const char replacement[] = "\\ufffd", replacement_utf8[] = "\xef\xbf\xbd";

struct mend {
    const char *text;
    size_t len;
    bool lossy;
    char *out; /* NULL: it is only measured */
    size_t from, n_out, n_changes, n_values;
};

static void put(struct mend *m, const char *bytes, size_t n)
{
    if (m->out)
        memcpy(m->out + m->n_out, bytes, n);
    m->n_out += n;
}

/* text[at, at + n) becomes `by`. */
static void change(struct mend *m, size_t at, size_t n, const char *by)
{
    put(m, m->text + m->from, at - m->from);
    put(m, by, strlen(by));
    m->from = at + n;
    m->n_changes++;
}

/* ---- texts ----------------------------------------------------------------------- */

/* The code unit of \uXXXX at `at`; -1: there is none. */
static int unit_at(const struct mend *m, size_t at)
{
    int unit = 0;

    if (m->len < 6 || at > m->len - 6 || m->text[at] != '\\' || m->text[at + 1] != 'u')
        return -1;
    for (size_t i = at + 2; i < at + 6; i++) {
        const char c = m->text[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;

        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* What follows the backslash at `at`: the index behind it. */
static size_t escape(struct mend *m, size_t at)
{
    const int unit = unit_at(m, at);

    if (unit < 0)
        return at + 2;
    if (unit >> 11 != 0xD800 >> 11)
        return at + 6;
    if (unit < 0xDC00 && unit_at(m, at + 6) >> 10 == 0xDC00 >> 10)
        return at + 12;
    change(m, at, 6, replacement);
    return at + 6;
}

/* The index behind the character at `at`, which is not ASCII. */
static size_t character(struct mend *m, size_t at)
{
    const int n = utf8_char_len(m->text + at, m->len - at);

    if (n > 0)
        return at + (size_t)n;
    change(m, at, 1, replacement_utf8);
    return at + 1;
}

/* The index of the quote that ends the text which begins at `at`. */
static size_t skip_text(struct mend *m, size_t at)
{
    while (at < m->len && m->text[at] != '"') {
        if (m->text[at] == '\\')
            at = escape(m, at);
        else if (m->lossy && m->text[at] & 0x80)
            at = character(m, at);
        else
            at++;
    }
    return at;
}

/* ---- numbers --------------------------------------------------------------------- */

static bool is_of_number(char c)
{
    return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '+' ||
           c == '-';
}

static void mark(struct mend *m, size_t at, size_t n)
{
    change(m, at, 0, MARK);
    change(m, at + n, 0, "\"");
}

static size_t skip_digits(const char *text, size_t n, size_t at)
{
    while (at < n && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* Whether text[n] is a number as JSON has it; others are left to be refused. */
static bool is_number(const char *text, size_t n)
{
    size_t at = *text == '-', begin = at;

    at = skip_digits(text, n, at);
    if (at == begin || (text[begin] == '0' && at > begin + 1))
        return false;
    if (at < n && text[at] == '.') {
        begin = at + 1;
        at = skip_digits(text, n, begin);
        if (at == begin)
            return false;
    }
    if (at < n && (text[at] == 'e' || text[at] == 'E')) {
        begin = at + 1;
        begin += begin < n && (text[begin] == '+' || text[begin] == '-');
        at = skip_digits(text, n, begin);
        if (at == begin)
            return false;
    }
    return at == n;
}

static bool fits_double(const char *text, size_t n)
{
    char copy[LONGEST_NUMBER + 1];

    if (n > LONGEST_NUMBER)
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return isfinite(strtod(copy, NULL));
}

/* A number, or what looks like one: the index behind it. */
static size_t number(struct mend *m, size_t at)
{
    const char *text = m->text + at;
    const bool negative = *text == '-';
    size_t n = 1, n_digits = !negative, exponent = 0;
    bool whole = true;

    for (; at + n < m->len && is_of_number(text[n]); n++) {
        const char c = text[n];

        if (exponent)
            exponent += c >= '0' && c <= '9';
        else if (c == 'e' || c == 'E')
            exponent = 1;
        else
            n_digits++;
        whole &= c >= '0' && c <= '9';
    }
    const bool is_too_large =
        whole ? n_digits > DIGITS ||
                    (n_digits == DIGITS &&
                     memcmp(text + negative, negative ? SMALLEST : BIGGEST, DIGITS) > 0)
              : (n > SHORT_NUMBER || exponent > 3) && !fits_double(text, n);

    if (is_too_large && is_number(text, n))
        mark(m, at, n);
    return at + n;
}

/* What Python writes for numbers that JSON has none of, and others read: bytes of it at
 * `at`; 0: it is something else. */
static size_t word_at(const struct mend *m, size_t at)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity", "-NaN"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);

        if (m->len - at >= n && !memcmp(m->text + at, words[i], n))
            return n;
    }
    return 0;
}

/* ---- the whole ------------------------------------------------------------------- */

/* At most how many values a text has: each begins with a bracket or follows one, a
 * comma or a colon. */
static void mend(struct mend *m)
{
    size_t i = m->from;

    m->n_values = 1;
    while (i < m->len) {
        const char c = m->text[i];
        size_t n;

        if (c == '"') {
            i = skip_text(m, i + 1) + 1;
        } else if ((c == 'N' || c == 'I' || c == '-') && (n = word_at(m, i))) {
            mark(m, i, n);
            i += n;
        } else if ((c >= '0' && c <= '9') || c == '-') {
            i = number(m, i);
        } else {
            m->n_values += c == ',' || c == '[' || c == '{';
            i++;
        }
    }
    if (m->from < m->len)
        put(m, m->text + m->from, m->len - m->from);
}

static enum status parse(json_t **value, const char *name, const char *text, size_t len,
                         unsigned flags, struct err *err)
{
    char shown[JSON_ERROR_TEXT_LENGTH];
    json_error_t why = {.line = 0};
    const size_t unique = flags & JSON_UNIQUE ? JSON_REJECT_DUPLICATES : 0;
    json_t *read = json_loadb(text, len, JSON_ALLOW_NUL | unique, &why);

    if (!read)
        return err_set(err, ST_INPUT,
                       "%s is no JSON this program can read: line %d, column %d: %s",
                       name, why.line, why.column,
                       utf8_printable(shown, sizeof shown, why.text, strlen(why.text)));
    *value = read;
    return ST_OK;
}

enum status json_read(json_t **value, const char *name, const char *text, size_t len,
                      struct json_limit limit, unsigned flags, struct err *err)
{
    static const char bom[] = "\xef\xbb\xbf";
    const size_t begin = len >= 3 && !memcmp(text, bom, 3) ? 3 : 0;
    struct mend m = {
        .text = text, .len = len, .lossy = flags & JSON_LOSSY, .from = begin};
    enum status st;
    char *mended;

    if (len <= limit.bytes)
        mend(&m);
    if (len > limit.bytes || m.n_values > limit.values)
        return err_set(err, ST_INPUT,
                       "%s has %zu values in %zu bytes; at most %zu in %zu are read of "
                       "such a file",
                       name, m.n_values, len, limit.values, limit.bytes);
    if (!m.n_changes)
        return parse(value, name, text + begin, len - begin, flags, err);
    mended = malloc(m.n_out);
    if (!mended)
        return err_set(err, ST_NO_MEMORY, "no memory for the %zu bytes of %s", m.n_out,
                       name);
    m.out = mended;
    m.from = begin;
    m.n_out = 0;
    mend(&m);
    st = parse(value, name, mended, m.n_out, flags, err);
    free(mended);
    return st;
}

json_t *json_try(const char *text, size_t len, struct json_limit limit, unsigned flags)
{
    struct err ignored = ERR_INIT;
    json_t *value = NULL;

    return json_read(&value, "", text, len, limit, flags, &ignored) ? NULL : value;
}

/* ---- values ---------------------------------------------------------------------- */

const char *json_no_number(const json_t *value)
{
    static const size_t n = sizeof MARK_READ - 1;
    const char *text = json_string_value(value);

    return json_string_length(value) > n && !memcmp(text, MARK_READ, n) ? text + n
                                                                        : NULL;
}

/* Bytes of a number, or of a word that stands for one, up to the quote at the end of a
 * text; 0: it is another text. */
static size_t marked_number(const char *text)
{
    const size_t n = strcspn(text, "\"\\");
    const struct mend m = {.text = text, .len = n};

    return n && text[n] == '"' && (is_number(text, n) || word_at(&m, 0) == n) ? n : 0;
}

char *json_write(const json_t *value, size_t flags)
{
    char *text = json_dumps(value, flags), *to, *from;

    from = to = text ? strstr(text, MARK) : NULL;
    while (from && *from) {
        const size_t n =
            strncmp(from, MARK, strlen(MARK)) || (from > text && from[-1] == '\\')
                ? 0
                : marked_number(from + strlen(MARK));

        if (n) {
            memmove(to, from + strlen(MARK), n);
            to += n;
            from += strlen(MARK) + n + 1;
        } else {
            *to++ = *from++;
        }
    }
    if (to)
        *to = '\0';
    return text;
}

bool json_whole(const json_t *value, int64_t *n)
{
    const double v = json_number_value(value);

    if (json_is_integer(value)) {
        *n = json_integer_value(value);
        return true;
    }
    /* Beyond, doubles are not all whole numbers' own. */
    if (!json_is_real(value) || floor(v) != v || !(fabs(v) <= 0x1p53))
        return false;
    *n = (int64_t)v;
    return true;
}

bool json_bits(const json_t *value, uint64_t *bits)
{
    const char *text = json_no_number(value);
    const double v = json_real_value(value);
    uint64_t n = 0;
    int64_t whole;
    char *end;

    if (json_whole(value, &whole)) {
        n = (uint64_t)whole;
    } else if (text && *text >= '0' && *text <= '9') {
        errno = 0;
        n = strtoull(text, &end, 10);
        if (errno || *end)
            return false;
    } else if (v > 0 && v < 0x1p64 && floor(v) == v) {
        n = (uint64_t)v;
    } else {
        return false;
    }
    *bits = n;
    return true;
}

bool json_finite(const json_t *value, double *n)
{
    const char *text = json_no_number(value);
    const double v = text ? strtod(text, NULL) : json_number_value(value);

    if ((!text && !json_is_number(value)) || !isfinite(v))
        return false;
    *n = v;
    return true;
}

const char *json_text(const json_t *value)
{
    const char *text = json_string_value(value);

    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

const char *json_shown(char *buf, size_t cap, const json_t *value)
{
    static const char *const kinds[] = {[JSON_OBJECT] = "an object",
                                        [JSON_ARRAY] = "a list",
                                        [JSON_TRUE] = "true",
                                        [JSON_FALSE] = "false",
                                        [JSON_NULL] = "null"};
    const char *odd = json_no_number(value);
    char text[40];

    if (odd)
        snprintf(buf, cap, "%s", utf8_printable(text, sizeof text, odd, strlen(odd)));
    else if (json_is_integer(value))
        snprintf(buf, cap, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(buf, cap, "%.17g", json_real_value(value));
    else if (json_is_string(value))
        snprintf(buf, cap, "\"%s\"",
                 utf8_printable(text, sizeof text, json_string_value(value),
                                json_string_length(value)));
    else
        snprintf(buf, cap, "%s", value ? kinds[json_typeof(value)] : "missing");
    return buf;
}
