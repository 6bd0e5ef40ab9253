/* SPDX-License-Identifier: MIT
 *
 * row_read.c - rows from a CSV file, which may be foreign or cut short
 *
 * The file is read whole and cut into cells in place. Cells may be quoted and
 * then hold commas, doubled quotes and line breaks; lines may end with CR LF.
 */
#include "harness/rows/row.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/infile.h"
#include "harness/base/interrupt.h"

#define CSV_MAX_BYTES   (256u << 20) /* far above any sweep; bounds the allocation */
#define CSV_MAX_COLUMNS 1024
#define LINE_MAX_BYTES  (64 << 10) /* far above any row */

/* A row takes some KB in memory, however short its line is: many rows are read only of
 * a file that has bytes for them. Lines of real results have hundreds. */
#define CSV_FREE_ROWS     1000
#define CSV_BYTES_PER_ROW 32

struct csv {
    const char *path;
    char *text; /* zero-terminated */
    size_t len, pos;
    size_t line; /* of the record last read, from 1 */
    size_t next_line;
    size_t max_rows;
    char *cell[CSV_MAX_COLUMNS];
    size_t n_cells;
    bool has_zero; /* a cell of the record, which would end there */
};

/* Cut one cell out at csv->pos. Returns the character that ended it: ',' or
 * '\n', or 0 where the text ended first. */
static char next_cell(struct csv *csv)
{
    char *src = csv->text + csv->pos, *const end = csv->text + csv->len, *dst = src;
    bool quoted = false;
    char ended = 0;

    if (csv->n_cells < CSV_MAX_COLUMNS)
        csv->cell[csv->n_cells] = dst;
    csv->n_cells++;
    for (; src < end; src++) {
        if (*src == '\n')
            csv->next_line++;
        csv->has_zero |= !*src;
        if (*src == '"') {
            if (quoted && src + 1 < end && src[1] == '"')
                *dst++ = *src++;
            else
                quoted = !quoted;
        } else if (!quoted && (*src == ',' || *src == '\n')) {
            ended = *src++;
            break;
        } else {
            *dst++ = *src;
        }
    }
    csv->pos = (size_t)(src - csv->text);
    if (ended == '\n' && dst > csv->cell[0] && dst[-1] == '\r')
        dst--;
    /* dst <= src - 1 where a separator ended the cell; at the end of the text it
     * is at most the terminating zero. */
    *dst = '\0';
    return ended;
}

/* The next whole record into csv->cell; false at the end, also where the last
 * record has no line end. Empty lines are skipped. */
static bool next_record(struct csv *csv)
{
    for (;;) {
        char ended;

        csv->n_cells = 0;
        csv->has_zero = false;
        csv->line = csv->next_line;
        if (csv->pos >= csv->len)
            return false;
        do
            ended = next_cell(csv);
        while (ended == ',');
        if (ended != '\n')
            return false;
        if (csv->n_cells > 1 || *csv->cell[0])
            return true;
    }
}

static enum status parse_cell(const struct csv *csv, struct row *row,
                              const struct field *field, const char *text,
                              struct err *err)
{
    void *cell = (char *)row + field->offset;
    char *end;

    if (!*text)
        return ST_OK;
    if (field_is_text(field)) {
        row_set_text(row, field,
                     *text == '\'' && row_csv_is_formula(text) ? text + 1 : text);
        return ST_OK;
    }
    errno = 0;
    if (field->kind == FIELD_KIND_INT) {
        const long long v = strtoll(text, &end, 10);

        if (*end || errno)
            return err_set(err, ST_INPUT,
                           "%s:%zu: column %s: '%.40s' is not a whole number",
                           csv->path, csv->line, field->name, text);
        *(int64_t *)cell = v;
        return ST_OK;
    }
    const double v = strtod(text, &end);
    if (*end || !isfinite(v))
        return err_set(err, ST_INPUT, "%s:%zu: column %s: '%.40s' is not a number",
                       csv->path, csv->line, field->name, text);
    *(double *)cell = v;
    return ST_OK;
}

/* Columns of the file to fields: column[i] is NULL where the name is unknown. */
static enum status match_header(struct csv *csv, const struct field **column,
                                size_t *n_columns, struct err *err)
{
    size_t n_known = 0;

    if (!next_record(csv))
        return err_set(err, ST_INPUT, "%s has no header line", csv->path);
    if (csv->n_cells > CSV_MAX_COLUMNS)
        return err_set(err, ST_INPUT, "%s has %zu columns; at most %d are possible",
                       csv->path, csv->n_cells, CSV_MAX_COLUMNS);
    for (size_t i = 0; i < csv->n_cells; i++) {
        column[i] = row_field(csv->cell[i]);
        n_known += column[i] != NULL;
    }
    if (!n_known)
        return err_set(err, ST_INPUT,
                       "%s is no table of results: its header has none of the columns "
                       "that `bench fields` lists",
                       csv->path);
    *n_columns = csv->n_cells;
    return ST_OK;
}

/* Where the extra columns are: at[i] is past the last column for one that is not. */
static void match_extra(const struct csv *csv, const struct row_extra *extra,
                        size_t at[ROW_MAX_EXTRA])
{
    for (size_t i = 0; i < extra->n; i++) {
        at[i] = 0;
        while (at[i] < csv->n_cells && strcmp(csv->cell[at[i]], extra->names[i]) != 0)
            at[i]++;
    }
}

static enum status copy_extra(const struct csv *csv, struct row_extra *extra,
                              const size_t at[ROW_MAX_EXTRA], size_t row,
                              struct err *err)
{
    for (size_t i = 0; i < extra->n; i++) {
        char **cell = &extra->cells[row * extra->n + i];

        *cell = at[i] < csv->n_cells ? strdup(csv->cell[at[i]]) : NULL;
        if (at[i] < csv->n_cells && !*cell)
            return err_set(err, ST_NO_MEMORY, "no memory for the rows of %s",
                           csv->path);
    }
    return ST_OK;
}

/* Grows the arrays, which have cap elements, for one more row. */
static enum status grow(const struct csv *csv, struct row **rows, size_t *cap,
                        struct row_extra *extra, struct err *err)
{
    const size_t want = !*cap                      ? 64
                        : *cap < csv->max_rows / 2 ? *cap * 2
                                                   : csv->max_rows;
    struct row *grown;
    char **cells = NULL;

    if (*cap == csv->max_rows)
        return err_set(err, ST_INPUT,
                       "%s:%zu: more than %zu rows are not read of one file%s",
                       csv->path, csv->line, csv->max_rows,
                       csv->max_rows < ROW_CSV_MAX_ROWS ? " of its size" : "");
    grown = realloc(*rows, want * sizeof **rows);
    if (grown)
        *rows = grown;
    if (grown && extra) {
        cells = realloc(extra->cells, want * extra->n * sizeof *cells);
        if (cells) {
            extra->cells = cells;
            memset(cells + *cap * extra->n, 0,
                   (want - *cap) * extra->n * sizeof *cells);
        }
    }
    if (!grown || (extra && !cells))
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows of %s", want,
                       csv->path);
    *cap = want;
    return ST_OK;
}

static enum status read_rows(struct csv *csv, struct row **rows, size_t *n_rows,
                             struct row_extra *extra, struct err *err)
{
    const struct field *column[CSV_MAX_COLUMNS];
    size_t n_columns = 0, cap = 0, extra_at[ROW_MAX_EXTRA];
    enum status status = match_header(csv, column, &n_columns, err);

    if (status == ST_OK && extra)
        match_extra(csv, extra, extra_at);
    while (status == ST_OK && next_record(csv)) {
        if (extra && interrupted()) /* a program's own is read after that, too */
            return err_set(err, ST_INTERRUPTED, "interrupted");
        if (csv->has_zero)
            return err_set(err, ST_INPUT, "%s:%zu: a cell has a zero byte", csv->path,
                           csv->line);
        if (csv->n_cells != n_columns)
            return err_set(err, ST_INPUT, "%s:%zu: %zu cells, the header has %zu",
                           csv->path, csv->line, csv->n_cells, n_columns);
        if (*n_rows == cap && grow(csv, rows, &cap, extra, err))
            return err->code;
        row_init(&(*rows)[*n_rows]);
        for (size_t i = 0; i < n_columns && status == ST_OK; i++)
            if (column[i])
                status =
                    parse_cell(csv, &(*rows)[*n_rows], column[i], csv->cell[i], err);
        if (status == ST_OK && extra)
            status = copy_extra(csv, extra, extra_at, *n_rows, err);
        ++*n_rows;
    }
    return status;
}

void row_extra_free(struct row_extra *extra, size_t n_rows)
{
    for (size_t i = 0; extra->cells && i < n_rows * extra->n; i++)
        free(extra->cells[i]);
    free(extra->cells);
    extra->cells = NULL;
}

enum status row_csv_read_extra(const char *path, struct row **rows, size_t *n_rows,
                               struct row_extra *extra, struct err *err)
{
    struct csv *csv = calloc(1, sizeof *csv);
    struct row *found = NULL;
    size_t n_found = 0;
    enum status status;

    assert(!extra || (extra->n <= ROW_MAX_EXTRA && !extra->cells));
    if (!csv)
        return err_set(err, ST_NO_MEMORY, "no memory to read %s", path);
    csv->path = path;
    csv->next_line = 1;
    status = infile_read(&csv->text, &csv->len, path, CSV_MAX_BYTES, err);
    csv->max_rows = CSV_FREE_ROWS + csv->len / CSV_BYTES_PER_ROW;
    if (csv->max_rows > ROW_CSV_MAX_ROWS)
        csv->max_rows = ROW_CSV_MAX_ROWS;
    if (status == ST_OK)
        status = read_rows(csv, &found, &n_found, extra, err);
    if (status == ST_OK) {
        *rows = found;
        *n_rows = n_found;
    } else {
        if (extra)
            row_extra_free(extra, n_found);
        free(found);
    }
    free(csv->text);
    free(csv);
    return status;
}

enum status row_csv_read(const char *path, struct row **rows, size_t *n_rows,
                         struct err *err)
{
    return row_csv_read_extra(path, rows, n_rows, NULL, err);
}

enum status row_csv_repair(int fd, const char *path, uint64_t *dropped, struct err *err)
{
    char buf[4096];
    const off_t end = lseek(fd, 0, SEEK_END);
    off_t keep = end;

    if (end > (off_t)CSV_MAX_BYTES)
        return err_set(err, ST_INPUT,
                       "%s has %lld bytes; at most %u are read of a table", path,
                       (long long)end, CSV_MAX_BYTES);
    while (keep > 0) {
        const size_t n = keep < (off_t)sizeof buf ? (size_t)keep : sizeof buf;
        const ssize_t got = pread(fd, buf, n, keep - (off_t)n);

        if (got != (ssize_t)n)
            return err_set_errno(err, ST_IO, "cannot read %s", path);
        const char *newline = memrchr(buf, '\n', n);
        if (newline) {
            keep -= (off_t)n - (newline - buf) - 1;
            break;
        }
        keep -= (off_t)n;
        if (end - keep > LINE_MAX_BYTES)
            return err_set(err, ST_INPUT,
                           "the last line of %s has more than %d bytes, so no row was "
                           "cut short there; it is no table of a sweep",
                           path, LINE_MAX_BYTES);
    }
    if (keep < end && (ftruncate(fd, keep) || fsync(fd)))
        return err_set_errno(err, ST_IO, "cannot cut %s back to its last whole line",
                             path);
    if (dropped)
        *dropped = (uint64_t)(end - keep);
    return ST_OK;
}
