/* SPDX-License-Identifier: MIT
 *
 * sweep_print.c - the line of a launch that is done
 */
#include "harness/sweep/sweep.h"

#include <string.h>

#include "harness/base/format.h"
#include "harness/result/report_rows.h"

#define INDENT 4 /* of what does not fit beside a point's name */

/* "24.5 tok/s [23.5, 25.8]", in digits that the interval supports. */
static void append_speed(char *buf, size_t cap, const struct row *row)
{
    const double lo = row->tok_per_s_lo, hi = row->tok_per_s_hi;
    const double half = lo > 0 ? (hi - lo) / 2 : row->tok_per_s / 10;
    char figure[24];

    if (!(row->tok_per_s > 0))
        return;
    text_append(buf, cap, " %s tok/s",
                format_measured(figure, sizeof figure, row->tok_per_s, half, 3));
    if (!(lo > 0))
        return;
    text_append(buf, cap, " [%s, ",
                format_measured(figure, sizeof figure, lo, half, 3));
    text_append(buf, cap, "%s]", format_measured(figure, sizeof figure, hi, half, 3));
}

/* What came out. */
static void append_result(char *buf, size_t cap, const struct row *row)
{
    char size[24];

    text_append(buf, cap, "%s", row_status_text(row));
    append_speed(buf, cap, row);
    if (row->mbu > 0)
        text_append(buf, cap, ", %.0f %% of roof", 100 * row->mbu);
    if (row->limiter != FIELD_NO_ENUM)
        text_append(buf, cap, ", limited by %s", row_limiter_text(row));
    if (row_needed_bytes(row) > 0)
        text_append(buf, cap, ", memory %s",
                    format_bytes(size, sizeof size, (uint64_t)row_needed_bytes(row)));
    if (*row->validity && strncmp(row->validity, "valid", 5))
        text_append(buf, cap, ", %s", row->validity);
    if (*row->detail)
        text_append(buf, cap, "; %s", row->detail);
}

void sweep_print_row(FILE *f, const struct row *row, size_t n_finished, size_t n_due,
                     int columns)
{
    char head[160] = "", result[768] = "";

    text_append(head, sizeof head, "[%zu/%zu] %-52s ", n_finished, n_due, row->point);
    append_result(result, sizeof result, row);
    if (!columns || (int)(strlen(head) + strlen(result)) < columns) {
        fprintf(f, "%s%s\n", head, result);
    } else {
        fprintf(f, "[%zu/%zu] %s\n%*s", n_finished, n_due, row->point, INDENT, "");
        text_wrap(f, result, INDENT, INDENT, columns - 1, false);
    }
    fflush(f);
}
