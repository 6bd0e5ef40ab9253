/* SPDX-License-Identifier: MIT
 *
 * quality_rows.c - writing, reading and joining quality.csv
 */
#include "harness/rows/quality_rows.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/infile.h"
#include "harness/base/newfile.h"
#include "harness/base/order.h"

static enum status write_rows(const char *path, const struct row *rows, size_t n,
                              struct err *err)
{
    struct newfile f;

    if (newfile_replace(&f, path, err))
        return err->code;
    row_csv_header(f.f);
    for (size_t i = 0; i < n; i++)
        row_csv_write(f.f, &rows[i]);
    return newfile_commit(&f, path, err);
}

static bool same_measurement(const struct row *a, const struct row *b)
{
    return !row_compare(a, b, FIELD_COMPUTED) && !strcmp(a->text, b->text) &&
           !strcmp(a->reference, b->reference) && a->chunk_tokens == b->chunk_tokens &&
           a->n_scored == b->n_scored;
}

enum status quality_rows_read(const char *dir, struct row **rows, size_t *n,
                              struct err *err)
{
    char path[PATH_MAX];
    bool exists;
    enum status st;

    *rows = NULL;
    *n = 0;
    snprintf(path, sizeof path, "%.4000s/" QUALITY_CSV, dir);
    st = infile_exists(&exists, path, err);
    return st || !exists ? st : row_csv_read(path, rows, n, err);
}

enum status quality_rows_write(const char *dir, const struct row *rows, size_t n,
                               struct err *err)
{
    struct row *all = NULL;
    size_t n_all = 0;
    char path[PATH_MAX];
    enum status st = quality_rows_read(dir, &all, &n_all, err);

    if (st)
        return st;
    struct row *grown = realloc(all, (n_all + n) * sizeof *grown);
    if (!grown) {
        free(all);
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n_all + n);
    }
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;

        while (k < n_all && !same_measurement(&grown[k], &rows[i]))
            k++;
        grown[k] = rows[i];
        n_all += k == n_all;
    }
    snprintf(path, sizeof path, "%.4000s/" QUALITY_CSV, dir);
    st = write_rows(path, grown, n_all, err);
    free(grown);
    return st;
}

/* ---- joining --------------------------------------------------------------------- */

/* Models in some order; the latest measurement of each comes last. */
static int by_model(const struct row *a, const struct row *b)
{
    ORDER_BY(row_compare(a, b, FIELD_COMPUTED));
    return order_ints(a->file_bytes, b->file_bytes);
}

static int by_model_and_time(const void *x, const void *y)
{
    const struct row *a = *(const struct row *const *)x;
    const struct row *b = *(const struct row *const *)y;

    ORDER_BY(by_model(a, b));
    ORDER_BY(strcmp(a->utc, b->utc));
    return order_ints(a - b, 0); /* both are of one table */
}

/* The latest measurement of the row's model, or NULL. */
static const struct row *latest_of(const struct row *row, const struct row **sorted,
                                   size_t n)
{
    size_t low = 0, high = n; /* those before low are not after row's model */

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (by_model(sorted[mid], row) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low && !by_model(sorted[low - 1], row) ? sorted[low - 1] : NULL;
}

/* All columns of the group. */
static void copy_group(struct row *to, const struct row *from)
{
    for (const struct field *f = row_fields(NULL); f->name; f++) {
        const size_t bytes = f->kind == FIELD_KIND_STR    ? f->cap
                             : f->kind == FIELD_KIND_ENUM ? sizeof(int)
                             : f->kind == FIELD_KIND_INT  ? sizeof(int64_t)
                                                          : sizeof(double);

        if (!strcmp(f->group, "quality"))
            memcpy((char *)to + f->offset, (const char *)from + f->offset, bytes);
    }
}

/* Fill the columns of group "quality" of each row that has a match; others keep
 * theirs. */
static enum status quality_rows_join(struct row *rows, size_t n_rows,
                                     const struct row *quality, size_t n,
                                     struct err *err)
{
    const struct row **sorted = malloc((n + 1) * sizeof *sorted);
    size_t n_sorted = 0;

    if (!sorted)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows of quality", n);
    for (size_t k = 0; k < n; k++)
        if (isfinite(quality[k].perplexity))
            sorted[n_sorted++] = &quality[k];
    qsort(sorted, n_sorted, sizeof *sorted, by_model_and_time);
    for (size_t i = 0; i < n_rows; i++) {
        const struct row *latest = latest_of(&rows[i], sorted, n_sorted);

        if (latest)
            copy_group(&rows[i], latest);
    }
    free(sorted);
    return ST_OK;
}

enum status quality_rows_join_dir(struct row *rows, size_t n_rows, const char *dir,
                                  struct err *err)
{
    struct row *quality = NULL;
    size_t n = 0;
    enum status st = quality_rows_read(dir, &quality, &n, err);

    if (st == ST_OK)
        st = quality_rows_join(rows, n_rows, quality, n, err);
    free(quality);
    return st;
}

enum status quality_rows_copy(const char *from, const char *dir, struct err *err)
{
    char path[PATH_MAX];
    struct row *rows = NULL;
    size_t n = 0, n_good = 0;
    struct stat there;
    enum status st;

    if (stat(from, &there))
        return err_set_errno(err, ST_USAGE, "cannot open %.300s", from);
    snprintf(path, sizeof path, "%.4000s%s", from,
             S_ISDIR(there.st_mode) ? "/" QUALITY_CSV : "");
    st = row_csv_read(path, &rows, &n, err);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        n_good += isfinite(rows[i].perplexity) != 0;
    if (st == ST_OK && !n_good)
        st = err_set(err, ST_INPUT,
                     "%.300s holds no perplexity; `bench quality` writes such tables",
                     path);
    if (st == ST_OK && dir)
        st = quality_rows_write(dir, rows, n, err);
    free(rows);
    return st;
}

/* ---- for a person ---------------------------------------------------------------- */

/* Two digits of the error, but at least three decimals; tiny ones as powers of ten. */
static void with_error(char *buf, size_t cap, double v, double se)
{
    const int digits = se > 0 ? 1 - (int)floor(log10(se)) : 3;
    const int decimals = digits < 3 ? 3 : digits;

    if (!isfinite(v))
        snprintf(buf, cap, "-");
    else if (!(se > 0))
        snprintf(buf, cap, "%.4g", v);
    else if (digits > 6)
        snprintf(buf, cap, "%.3g +- %.1g", v, se);
    else
        snprintf(buf, cap, "%.*f +- %.*f", decimals, v, decimals, se);
}

static void small(char *buf, size_t cap, double v)
{
    if (isfinite(v))
        snprintf(buf, cap, v > 0 && v < 1e-4 ? "%.1e" : "%.5f", v);
    else
        snprintf(buf, cap, "-");
}

/* The columns that decide what was computed come first, then figures. */
enum { MAX_CELLS = 16, CELL_MAX = 104 };
static const char *const figures[] = {"bytes",  "perplexity", "ratio",     "mean KL",
                                      "median", "99th pc.",   "same top %"};
#define N_FIGURES (int)(sizeof figures / sizeof figures[0])

typedef char quality_cells[MAX_CELLS][CELL_MAX];

/* Headings for r NULL. Returns how many cells come before the figures. */
static int fill(quality_cells c, const struct row *r)
{
    const struct field *f = row_fields(NULL);
    int k = 0;

    for (; f->name && k < MAX_CELLS - N_FIGURES; f++)
        if (f->is & FIELD_COMPUTED) {
            if (r)
                row_cell(r, f, c[k], CELL_MAX);
            else
                snprintf(c[k], CELL_MAX, "%s", f->label ? f->label : f->name);
            if (!*c[k])
                snprintf(c[k], CELL_MAX, "-");
            k++;
        }
    for (int i = 0; i < N_FIGURES && !r; i++)
        snprintf(c[k + i], CELL_MAX, "%s", figures[i]);
    if (!r)
        return k;
    snprintf(c[k], CELL_MAX, "%lld", (long long)r->file_bytes);
    with_error(c[k + 1], CELL_MAX, r->perplexity, r->perplexity_se);
    with_error(c[k + 2], CELL_MAX, r->ppl_ratio, r->ppl_ratio_se);
    with_error(c[k + 3], CELL_MAX, r->kl_mean, r->kl_se);
    small(c[k + 4], CELL_MAX, r->kl_median);
    small(c[k + 5], CELL_MAX, r->kl_p99);
    with_error(c[k + 6], CELL_MAX, r->top1_pct, r->top1_se_pct);
    return k;
}

void quality_rows_print(FILE *f, const struct row *rows, size_t n)
{
    int width[MAX_CELLS] = {0}, n_texts = 0;
    quality_cells c;

    for (size_t i = 0; i <= n; i++) {
        n_texts = fill(c, i ? &rows[i - 1] : NULL);
        for (int k = 0; k < n_texts + N_FIGURES; k++)
            if ((int)strlen(c[k]) > width[k])
                width[k] = (int)strlen(c[k]);
    }
    for (size_t i = 0; i <= n; i++) {
        fill(c, i ? &rows[i - 1] : NULL);
        for (int k = 0; k < n_texts + N_FIGURES; k++)
            fprintf(f, "%s%*s", k ? "  " : "", k < n_texts ? -width[k] : width[k],
                    c[k]);
        fputc('\n', f);
    }
}
