/* SPDX-License-Identifier: MIT
 *
 * parse.h - numbers as people write them, checked to the last character
 *
 * what names the option or key in the message. Errors: ST_USAGE; *out is
 * untouched then.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_BASE_PARSE_H
#define SLM_HARNESS_BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/base/options.h"

/* Limit of parse_bytes(). */
#define PARSE_MAX_BYTES (UINT64_C(1) << 60)

/* Limit of a list of numbers: a range names thousands in a few bytes. */
#define PARSE_MAX_INTS (1 << 20)

/* unit: a plural for messages, "5000 threads are outside 1..1024"; "": none. */
enum status parse_count(const char *text, const char *what, const char *unit,
                        long long min, long long max, long long *out, struct err *err);
/* "1,2,4" and "1-4". */
enum status parse_counts(const char *text, const char *what, const char *unit, int min,
                         int max, struct int_list *out, struct err *err);
enum status parse_u64(const char *text, const char *what, uint64_t *out,
                      struct err *err);
enum status parse_double(const char *text, const char *what, double min, double max,
                         double *out, struct err *err);

/* "2", "2%" or "2.5 %" as 0.02, 0.02 and 0.025; min and max are shares, too. */
enum status parse_percent(const char *text, const char *what, double min, double max,
                          double *out, struct err *err);

/* A list with commas, from its first two members; text NULL: without items. */
struct parse_list {
    const char *what, *text;
    const char *rest; /* after the item's comma; NULL: there is no further one */
    int n;            /* items so far */
    char item[4096];
};

/* The next item, without the blanks around it. False after the last one, and as soon as
 * *st, which the caller may set as well, is an error: that of an empty or too long item
 * is ST_USAGE. */
bool parse_item(struct parse_list *l, enum status *st, struct err *err);

/* "q4_K,q8_0" as bits, one for each of the names (at most 64, any case); text NULL: all
 * of them. The message has the nearest name, or all. */
enum status parse_words(const char *text, const char *what, const char *const *names,
                        int n_names, uint64_t *bits, struct err *err);

/* "90s", "10m", "1.5h", or a number of seconds. */
enum status parse_duration(const char *text, const char *what, double min_s,
                           double max_s, double *seconds, struct err *err);

#endif
