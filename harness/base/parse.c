/* SPDX-License-Identifier: MIT
 *
 * parse.c - numbers, sizes, durations, and lists of numbers and words
 */
#include "harness/base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/base/format.h"
#include "harness/base/suggest.h"

enum status parse_count(const char *text, const char *what, const char *unit,
                        long long min, long long max, long long *out, struct err *err)
{
    char *end;

    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (end == text || *end || isspace((unsigned char)text[0]))
        return err_set(err, ST_USAGE, "%s: '%s' is not a whole number", what, text);
    if (errno || v < min || v > max)
        return err_set(err, ST_USAGE, "%s: %s %s%s outside %lld..%lld", what, text,
                       unit, *unit ? " are" : "is", min, max);
    *out = v;
    return ST_OK;
}

enum status parse_u64(const char *text, const char *what, uint64_t *out,
                      struct err *err)
{
    char *end;

    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno)
        return err_set(err, ST_USAGE, "%s: '%s' is not a whole number of 64 bits", what,
                       text);
    *out = v;
    return ST_OK;
}

enum status parse_double(const char *text, const char *what, double min, double max,
                         double *out, struct err *err)
{
    char *end;
    const double v = strtod(text, &end);

    if (end == text || *end || isspace((unsigned char)text[0]) || !isfinite(v))
        return err_set(err, ST_USAGE, "%s: '%s' is not a number", what, text);
    if (v < min || v > max)
        return err_set(err, ST_USAGE, "%s: %s is outside %g..%g", what, text, min, max);
    *out = v;
    return ST_OK;
}

enum status parse_percent(const char *text, const char *what, double min, double max,
                          double *out, struct err *err)
{
    char *end;
    const double v = strtod(text, &end);
    const bool is_number =
        end > text && !isspace((unsigned char)text[0]) && isfinite(v);

    end += strspn(end, " ");
    if (!is_number || (*end && strcmp(end, "%") != 0))
        return err_set(err, ST_USAGE, "%s: '%s' is not a percentage", what, text);
    if (v < 100 * min || v > 100 * max)
        return err_set(err, ST_USAGE, "%s: %s is outside %g %%..%g %%", what, text,
                       100 * min, 100 * max);
    *out = v / 100;
    return ST_OK;
}

enum status parse_duration(const char *text, const char *what, double min_s,
                           double max_s, double *seconds, struct err *err)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char *rest;
    const double v = strtod(text, &rest);
    double unit = 0;

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(rest, units[i].name))
            unit = units[i].seconds;
    if (rest == text || isspace((unsigned char)text[0]) || !isfinite(v) || unit == 0)
        return err_set(err, ST_USAGE, "%s: '%s' is not a time; write 90s, 10m or 1h",
                       what, text);
    if (v * unit < min_s || v * unit > max_s)
        return err_set(err, ST_USAGE, "%s: %s is outside %gs..%gs", what, text, min_s,
                       max_s);
    *seconds = v * unit;
    return ST_OK;
}

/* Multiplier of a size suffix, or 0: K M G T in binary, with or without "iB" or
 * "B", as memory limits are commonly written. */
static double suffix_factor(const char *s)
{
    static const char letters[] = "kmgt";

    if (!*s || !strcasecmp(s, "b"))
        return 1;
    const char *p = strchr(letters, tolower((unsigned char)s[0]));
    if (!p || (s[1] && strcasecmp(s + 1, "b") && strcasecmp(s + 1, "ib")))
        return 0;
    return ldexp(1, 10 * (int)(p - letters + 1));
}

/* A number without a unit is bytes, as programs write them; a small one is what people
 * write for GiB. */
#define MIN_BARE_BYTES (1 << 20)
#define MAX_BARE_GIB   512 /* a larger one is MiB */

enum status parse_bytes(const char *text, const char *what, uint64_t *out,
                        struct err *err)
{
    char *end;

    if (!strcasecmp(text, "none")) {
        *out = 0;
        return ST_OK;
    }
    const double v = strtod(text, &end);
    const double factor = suffix_factor(end);
    const double bytes = v * factor;
    if (end == text || !isdigit((unsigned char)text[0]) || factor == 0 ||
        !(bytes >= 1) || bytes > (double)PARSE_MAX_BYTES)
        return err_set(err, ST_USAGE,
                       "%s: '%s' is not a size; write 512M, 6G, 1.5GiB or none", what,
                       text);
    if (!*end && bytes < MIN_BARE_BYTES)
        return err_set(err, ST_USAGE, "%s: '%s' has no unit; write %s%c for %s %ciB",
                       what, text, text, bytes < MAX_BARE_GIB ? 'G' : 'M', text,
                       bytes < MAX_BARE_GIB ? 'G' : 'M');
    *out = (uint64_t)(bytes + 0.5);
    return ST_OK;
}

/* Its memory doubles: there is room for a power of two of numbers. */
static enum status ints_append(struct int_list *list, int v, struct err *err)
{
    const bool is_full = !(list->n & (list->n - 1));
    int *more =
        is_full ? realloc(list->v, (list->n ? 2 * list->n : 1) * sizeof v) : list->v;

    if (!more)
        return err_set(err, ST_NO_MEMORY, "out of memory reading a list");
    list->v = more;
    more[list->n++] = v;
    return ST_OK;
}

/* One item of a list: "4" or "1-4". */
static enum status ints_item(const char *item, const char *what, const char *unit,
                             int min, int max, struct int_list *list, struct err *err)
{
    char first[32];
    const char *dash = strchr(item + (item[0] == '-'), '-');
    const size_t len = dash ? (size_t)(dash - item) : strlen(item);
    long long lo, hi;

    if (len >= sizeof first)
        return err_set(err, ST_USAGE, "%s: '%s' is not a whole number", what, item);
    if (dash && !dash[1])
        return err_set(err, ST_USAGE, "%s: the range '%s' has no end; write 1-4", what,
                       item);
    memcpy(first, item, len);
    first[len] = '\0';
    if (parse_count(first, what, unit, min, max, &lo, err))
        return ST_USAGE;
    hi = lo;
    if (dash && parse_count(dash + 1, what, unit, min, max, &hi, err))
        return ST_USAGE;
    if (hi < lo || hi - lo > 4096)
        return err_set(err, ST_USAGE, "%s: %s is not a range upwards", what, item);
    if (list->n + (size_t)(hi - lo) >= PARSE_MAX_INTS)
        return err_set(err, ST_USAGE, "%s: more than %d numbers", what, PARSE_MAX_INTS);
    for (long long v = lo; v <= hi; v++)
        if (ints_append(list, (int)v, err))
            return ST_NO_MEMORY;
    return ST_OK;
}

bool parse_item(struct parse_list *l, enum status *st, struct err *err)
{
    const char *from = l->n ? l->rest : l->text;

    if (*st || !from)
        return false;
    from += strspn(from, " ");
    const size_t all = strcspn(from, ",");
    size_t len = all;

    while (len && from[len - 1] == ' ')
        len--;
    if (!len)
        *st = *l->text ? err_set(err, ST_USAGE, "%s: '%.200s' has an empty item",
                                 l->what, l->text)
                       : err_set(err, ST_USAGE, "%s: an empty list", l->what);
    else if (len >= sizeof l->item)
        *st = err_set(err, ST_USAGE, "%s: '%.40s...' has more than %zu characters",
                      l->what, from, sizeof l->item - 1);
    else
        snprintf(l->item, sizeof l->item, "%.*s", (int)len, from);
    l->rest = from[all] ? from + all + 1 : NULL;
    l->n++;
    return *st == ST_OK;
}

enum status parse_counts(const char *text, const char *what, const char *unit, int min,
                         int max, struct int_list *out, struct err *err)
{
    struct parse_list items = {.what = what, .text = text};
    struct int_list list = {NULL, 0};
    enum status st = ST_OK;

    while (parse_item(&items, &st, err))
        st = ints_item(items.item, what, unit, min, max, &list, err);
    if (st)
        free(list.v);
    else
        *out = list;
    return st;
}

enum status parse_words(const char *text, const char *what, const char *const *names,
                        int n_names, uint64_t *bits, struct err *err)
{
    struct parse_list words = {.what = what, .text = text};
    uint64_t found = 0;
    enum status st = ST_OK;

    while (parse_item(&words, &st, err)) {
        const char *word = words.item;
        char known[800] = "";
        int i;

        for (i = 0; i < n_names && strcasecmp(names[i], word); i++)
            text_append(known, sizeof known, "%s%s", i ? ", " : "", names[i]);
        if (i == n_names) {
            const char *near = suggest(word, names, n_names);

            return err_set(err, ST_USAGE, "%s: there is no '%.60s'; %s%s%s", what, word,
                           near ? "did you mean " : "there are: ", near ? near : known,
                           near ? "?" : "");
        }
        found |= UINT64_C(1) << i;
    }
    if (st)
        return st;
    *bits = text ? found : UINT64_MAX;
    return ST_OK;
}
