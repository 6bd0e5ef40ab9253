/* SPDX-License-Identifier: MIT
 *
 * json_number.h - figures that may be unknown, as JSON
 *
 * Threading: pure function.
 */
#ifndef SLM_HARNESS_BASE_JSON_NUMBER_H
#define SLM_HARNESS_BASE_JSON_NUMBER_H

#include <math.h>
#include <jansson.h>

/* A new JSON number; null where v is NAN or infinite: JSON has no such numbers, and a
 * reader must not take an unknown figure for zero. */
static inline json_t *json_number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

/* A figure and its interval. */
static inline json_t *json_range(double mid, double lo, double hi)
{
    return json_pack("{s:o, s:o, s:o}", "mid", json_number(mid), "lo", json_number(lo),
                     "hi", json_number(hi));
}

/* A new JSON text; null for "" and for what is not UTF-8. */
static inline json_t *json_text_or_null(const char *text)
{
    json_t *s = *text ? json_string(text) : NULL;

    return s ? s : json_null();
}

#endif
