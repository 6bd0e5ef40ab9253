/* SPDX-License-Identifier: MIT
 *
 * row_print.c - a row for a person, in digits that its intervals support
 */
#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/rows/row.h"

/* Columns that are as uncertain as another one, relative to their size. */
static const struct {
    const char *column, *like;
} followers[] = {
    {"lat_p50_ms", "tok_per_s"},     {"lat_p95_ms", "tok_per_s"},
    {"lat_p99_ms", "tok_per_s"},     {"gops", "tok_per_s"},
    {"roof_tok_per_s", "roof_gbps"},
};

static const char *like(const char *column)
{
    for (size_t i = 0; i < sizeof followers / sizeof *followers; i++)
        if (!strcmp(followers[i].column, column))
            return followers[i].like;
    return column;
}

/* The number in the column called name and ending; NaN: there is no such column. */
static double number(const struct row *r, const char *name, const char *ending)
{
    const struct field *f;
    char whole[64] = "";

    text_append(whole, sizeof whole, "%s%s", name, ending);
    f = row_field(whole);
    return f && f->kind == FIELD_KIND_NUM
               ? *(const double *)((const char *)r + f->offset)
               : NAN;
}

/* Half of the interval that column f belongs to, in its unit; NaN: it has none. */
static double half_width(const struct row *r, const struct field *f)
{
    const size_t len = strlen(f->name);
    const bool is_end = len > 3 && (!strcmp(f->name + len - 3, "_lo") ||
                                    !strcmp(f->name + len - 3, "_hi"));
    char base[64];
    double half, scale = 1;

    snprintf(base, sizeof base, "%.*s", (int)(is_end ? len - 3 : len), f->name);
    half = (number(r, like(base), "_hi") - number(r, like(base), "_lo")) / 2;
    if (like(base) != base)
        scale = number(r, base, "") / number(r, like(base), "");
    return half * scale;
}

void row_print(FILE *f, const struct row *r)
{
    char buf[ROW_CELL_MAX];

    for (const struct field *field = row_fields(NULL); field->name; field++) {
        row_cell(r, field, buf, sizeof buf);
        if (!buf[0])
            continue;
        if (field->kind == FIELD_KIND_NUM)
            format_measured(buf, sizeof buf, number(r, field->name, ""),
                            half_width(r, field), field->digits);
        fprintf(f, "%-22s  %s%s%s\n", field->name, buf, *field->unit ? " " : "",
                field->unit);
    }
}
