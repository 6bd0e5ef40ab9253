/* SPDX-License-Identifier: MIT
 *
 * row_check.c - rows held against settings.def, their roofs and each other
 */
#include "harness/rows/result_set_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/order.h"

/* Above its memory roof a result is doubted where it is measured, beyond the scatter of
 * the probe; a model that a cache holds is above it, as the row's detail has it, but
 * not by this much. A row in which a quota stopped the probe has no roof. */
#define MAX_OF_ROOF      20
#define DOUBTED_OF_ROOF  1.25
#define THROTTLED_PCT    2
#define MIN_MEMORY_BYTES ((int64_t)64 << 20) /* of a token: less may be a cache's */

/* tok_per_s, roof_tok_per_s and mbu are three columns of two figures. What is edited
 * may differ; this much is another unit. */
#define MAX_APART 10

/* For tokens and their times, which a quota also sets apart: the usual token
 * is measured between its stops. */
#define MAX_TIME_APART 100

/* An interval's ends have been rounded, and times. */
#define ROUNDING   1e-3
#define ROUNDING_S 1e-3 /* a prompt is in s; a token in ms, so a thousandth of it */

/* A setting's value as settings.def counts it; false: no value, or no range. */
static bool read_value(const struct row *r, const struct field *f, double *v)
{
    const void *cell = (const char *)r + f->offset;
    const enum setting_type type = setting_row(f->setting)->type;

    if (f->kind == FIELD_KIND_INT && type == SETTING_TYPE_COUNT) {
        *v = (double)*(const int64_t *)cell;
        return *(const int64_t *)cell != FIELD_NO_INT;
    }
    if (f->kind != FIELD_KIND_NUM || type != SETTING_TYPE_HUNDREDTHS)
        return false;
    *v = 100 * *(const double *)cell;
    return isfinite(*v);
}

static bool check_settings(const struct row *r, char *why, size_t cap)
{
    for (const struct field *f = row_fields(NULL); f->name; f++) {
        const struct setting *s = f->is_set ? setting_row(f->setting) : NULL;
        const double unit = s && s->type == SETTING_TYPE_HUNDREDTHS ? 100 : 1;
        double v;

        if (!s || !read_value(r, f, &v) || (v >= s->min && v <= s->max) ||
            !(v < s->value || v > s->value))
            continue;
        snprintf(why, cap, "%s is %.10g, which cannot be: it is %.10g to %.10g",
                 f->name, v / unit, s->min / unit, s->max / unit);
        return false;
    }
    return true;
}

static bool check_roof(const struct row *r, char *why, size_t cap)
{
    const double share = r->tok_per_s / r->roof_tok_per_s;

    if (!(r->tok_per_s > 0) || !(r->roof_tok_per_s > 0))
        return true;
    if (share > MAX_OF_ROOF) {
        snprintf(why, cap,
                 "%.4g tok/s cannot be: it is %.3g times its roof of %.4g tok/s",
                 r->tok_per_s, share, r->roof_tok_per_s);
        return false;
    }
    if (!(r->mbu > 0) || (share < MAX_APART * r->mbu && r->mbu < MAX_APART * share))
        return true;
    snprintf(why, cap,
             "%.4g tok/s cannot be: of a roof of %.4g tok/s it is a share of %.3g, and "
             "mbu is %.3g",
             r->tok_per_s, r->roof_tok_per_s, share, r->mbu);
    return false;
}

static bool check_interval(const struct row *r, char *why, size_t cap)
{
    if (!(r->tok_per_s_lo > r->tok_per_s * (1 + ROUNDING)) &&
        !(r->tok_per_s_hi < r->tok_per_s * (1 - ROUNDING)))
        return true;
    snprintf(why, cap, "%.4g tok/s cannot be: their interval is %.4g to %.4g",
             r->tok_per_s, r->tok_per_s_lo, r->tok_per_s_hi);
    return false;
}

/* Compares speeds with the time of a token or prompt. */
static bool check_times(const struct row *r, char *why, size_t cap)
{
    const bool is_prompt = r->kind == POINT_PREFILL && r->n_prompt > 0;
    const double s = is_prompt ? r->ttft_warm_s : r->lat_p50_ms / 1e3;
    const double n = is_prompt ? (double)r->n_prompt : 1;
    const double longest = s + (is_prompt ? ROUNDING_S : ROUNDING_S / 1e3);

    if (!(r->tok_per_s * s / n > MAX_TIME_APART ||
          r->tok_per_s * longest / n < 1.0 / MAX_TIME_APART) ||
        (!is_prompt && (r->kind != POINT_DECODE || !row_is_of_one(r))))
        return true;
    snprintf(why, cap, "%.4g tok/s cannot be: a %s takes %.3g s", r->tok_per_s,
             is_prompt ? "prompt" : "token", s);
    return false;
}

/* A figure above its roof that has no explanation is marked as where it is measured. */
static void doubt_roof(struct row *r)
{
    const double share = r->tok_per_s / r->roof_tok_per_s;

    if (!(share > DOUBTED_OF_ROOF) || r->throttled_pct > THROTTLED_PCT ||
        r->bytes_per_token < MIN_MEMORY_BYTES ||
        strncmp(r->validity, "valid", 5) != 0 ||
        strstr(r->detail, "above the memory roof"))
        return;
    snprintf(r->validity, sizeof r->validity, "disturbed: %.0f %% above its roof",
             100 * (share - 1));
}

static int compare_keys(const struct row *a, const struct row *b)
{
    ORDER_BY(strcmp(a->utc, b->utc));
    ORDER_BY(strcmp(a->point, b->point));
    return order_ints(a->attempt, b->attempt);
}

/* Rows are in one array: the first of a launch comes first. */
static int by_key(const void *x, const void *y)
{
    const struct row *a = *(const struct row *const *)x;
    const struct row *b = *(const struct row *const *)y;

    ORDER_BY(compare_keys(a, b));
    return (a > b) - (a < b);
}

/* A row without a time or a point has no key. */
static bool has_key(const struct row *r)
{
    return *r->utc && *r->point;
}

static enum status drop_copies(struct row_check *c, struct row *rows, size_t *n,
                               struct err *err)
{
    const struct row **sorted = malloc((*n + 1) * sizeof *sorted);
    bool *copy = calloc(*n + 1, sizeof *copy);
    size_t kept = 0;

    if (!sorted || !copy) {
        free(sorted);
        free(copy);
        return err_set(err, ST_NO_MEMORY, "no memory to compare %zu rows", *n);
    }
    for (size_t i = 0; i < *n; i++)
        sorted[i] = &rows[i];
    qsort(sorted, *n, sizeof *sorted, by_key);
    for (size_t i = 1; i < *n; i++)
        copy[sorted[i] - rows] =
            has_key(sorted[i]) && !compare_keys(sorted[i - 1], sorted[i]);
    for (size_t i = 0; i < *n; i++) {
        c->n_copies += copy[i];
        if (!copy[i] && kept++ != i)
            rows[kept - 1] = rows[i];
    }
    *n = kept;
    free(sorted);
    free(copy);
    return ST_OK;
}

enum status row_check_all(struct row_check *c, struct row *rows, size_t *n,
                          struct err *err)
{
    *c = (struct row_check){.n_copies = 0};
    for (size_t i = 0; i < *n; i++) {
        struct row *r = &rows[i];
        char why[160];

        if (check_settings(r, why, sizeof why) && check_roof(r, why, sizeof why) &&
            check_interval(r, why, sizeof why) && check_times(r, why, sizeof why)) {
            doubt_roof(r);
            continue;
        }
        r->status = ROW_STATUS_ERROR;
        r->tok_per_s = NAN;
        snprintf(r->detail, sizeof r->detail, "%s", why);
        if (!c->n_impossible++)
            snprintf(c->first, sizeof c->first, "%s", why);
    }
    return drop_copies(c, rows, n, err);
}
