/* SPDX-License-Identifier: MIT
 *
 * row.h - one result row, its CSV and JSON
 *
 * The struct, the CSV header and the JSON keys all come from fields.def.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_ROWS_ROW_H
#define SLM_HARNESS_ROWS_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <jansson.h>
#include <math.h>

#include "engine/base/status.h"
#include "harness/rows/row_enum.h"
#include "harness/rows/settings/setting.h"

#define FIELD_NO_INT INT64_MIN
#define ROW_CELL_MAX 1536 /* no cell is longer: the largest string column is 1400 */

struct row {
#define FIELD_STR(name, cap, ...)          char name[cap];
#define FIELD_ENUM(name, choices, ...)     int name;
#define FIELD_INT(name, unit, ...)         int64_t name;
#define FIELD_NUM(name, unit, digits, ...) double name;
#include "harness/rows/fields.def"
};

/* A figure and the ends of its interval, as offsets in struct row. */
struct row_figure {
    size_t mid, lo, hi;
};
#define ROW_FIGURE(name)                                             \
    {                                                                \
        offsetof(struct row, name), offsetof(struct row, name##_lo), \
            offsetof(struct row, name##_hi)                          \
    }

/* The figure at an offset. */
static inline double row_at(const struct row *r, size_t offset)
{
    return *(const double *)((const char *)r + offset);
}

/* Requests a second of an open loop; 0: a closed one. */
static inline double row_rate(const struct row *r)
{
    return r->rate_asked > 0 ? r->rate_asked : 0;
}

/* row_status_text(r) and so on: the text of a column of a closed set; "": empty. */
#define FIELD_ENUM(name, choices, ...)                               \
    static inline const char *row_##name##_text(const struct row *r) \
    {                                                                \
        return row_enum_text(&choices, r->name);                     \
    }
#include "harness/rows/fields.def"

enum field_kind { FIELD_KIND_STR, FIELD_KIND_ENUM, FIELD_KIND_INT, FIELD_KIND_NUM };

/* Kinds of columns; bits. Rows of one series agree in all of FIELD_MODEL and of
 * FIELD_SETTING. */
enum {
    FIELD_MODEL = 1,    /* which model was measured */
    FIELD_SETTING = 2,  /* how: settings, and what they led to */
    FIELD_COMPUTED = 4, /* what was computed: rows that agree in all of these predict
                           the same */
    FIELD_NAMED = 8,    /* in names, where it is not its setting's default */
    FIELD_WORKER = 16,  /* the process that measures sends it, from point_columns.c */
};

struct field {
    const char *name;
    enum field_kind kind;
    const char *group; /* its heading */
    const char *unit, *doc;
    int digits;
    size_t offset, cap;            /* cap: a STR's */
    const struct choices *choices; /* of an ENUM */

    unsigned is;       /* FIELD_MODEL, ... */
    const char *label; /* before its value where settings are distinguished: "KV";
                          "": the value is enough; NULL: never there */
    const char *empty; /* what is there where the cell is empty; NULL: nothing */
    bool is_set;       /* it is the value of a setting: */
    enum setting_id setting;
};

/* Whether its cells are texts: STR and ENUM. */
bool field_is_text(const struct field *field);

/* All of them in their order, *n (may be NULL) of them; an entry without a name follows
 * the last. */
const struct field *row_fields(size_t *n);

/* The field of that name, or NULL. */
const struct field *row_field(const char *name);

/* The same, for people. Error: ST_USAGE, after `what`, with the nearest name. */
enum status row_field_find(const struct field **f, const char *name, const char *what,
                           struct err *err);

/* The field whose value that setting is, or NULL. */
const struct field *row_field_of(enum setting_id setting);

/* Order of two rows by the columns with all of these bits; 0: equal in all of them.
 * Texts are ordered by the alphabet, those of closed sets too. */
int row_compare(const struct row *a, const struct row *b, unsigned is);

/* Compares one column; the models of both, where it is model_id (model_rows.h). */
int row_compare_cell(const struct row *a, const struct row *b, const struct field *f);

/* Appends ", compact, KV q8_0" to buf: columns with all of these bits that have another
 * value than their setting's default. */
void row_append_unusual(const struct row *r, unsigned is, char *buf, size_t cap);

/* All cells empty. */
void row_init(struct row *r);

/* build and built_by: this program's. */
void row_name_build(struct row *r);

/* CSV as RFC 4180 but for the line ending, which is a newline: comma, quotes
 * doubled. A row is always exactly one line: control characters within a cell
 * become blanks. A text that a spreadsheet would run as a formula (it begins with
 * = + - or @) has an apostrophe before it, which row_csv_read() takes off. */
void row_csv_header(FILE *f);
void row_csv_write(FILE *f, const struct row *r);

/* One such cell: quoted where it has to be, and no formula where it is a text. */
void row_csv_cell(FILE *f, const char *text, bool is_text);

/* Whether a text begins with what a spreadsheet takes for a formula, after any
 * apostrophes: those that are written with one more. */
bool row_csv_is_formula(const char *text);

/* A row in memory is large, however short its line is: the maximum of one file; a small
 * file has a lower one. */
#define ROW_CSV_MAX_ROWS 200000

/* Read a sweep.csv: columns are matched by name, unknown ones skipped, missing
 * ones left empty. A last line cut short (the writer was killed) is dropped.
 * *rows is malloc'ed; texts are made harmless (text_harmless()). Errors: ST_IO,
 * ST_INPUT (file, line and column named; more rows than are read of a file). */
enum status row_csv_read(const char *path, struct row **rows, size_t *n_rows,
                         struct err *err);

/* Columns besides those of fields.def that a table may have, ROW_MAX_EXTRA at most. */
#define ROW_MAX_EXTRA 8
struct row_extra {
    const char *const *names; /* [n], wanted */
    size_t n;
    char **cells; /* out, for row_extra_free(): [n_rows][n]; NULL: not in the table */
};

/* Reads a table of others, and cells of extra columns. Errors: also ST_INTERRUPTED. */
enum status row_csv_read_extra(const char *path, struct row **rows, size_t *n_rows,
                               struct row_extra *extra, struct err *err);
void row_extra_free(struct row_extra *extra, size_t n_rows);

/* Cut a CSV file whose writer was killed, open to be written, back to its last whole
 * line; *dropped (may be NULL) is the number of bytes taken off. Errors: ST_IO,
 * ST_INPUT: more than a row was cut off, or more than a table has; it stays as it is.
 * path: for messages. */
enum status row_csv_repair(int fd, const char *path, uint64_t *dropped,
                           struct err *err);

/* Object with every column; empty cells are null. */
json_t *row_json(const struct row *r);
/* Keys that are missing leave the cell empty; texts are made harmless
 * (text_harmless()). */
void row_from_json(struct row *r, const json_t *object);

/* The cell of a column of texts. row_set_text() takes any text: it makes it harmless
 * (text_harmless()) and cuts what is too long. */
const char *row_text(const struct row *r, const struct field *field);
void row_set_text(struct row *r, const struct field *field, const char *text);

/* Makes every text of the row harmless: a measured row has names of files and
 * texts of a worker. */
void row_disarm(struct row *r);

/* The cell as the CSV has it, unquoted: "" when empty. Returns buf. */
const char *row_cell(const struct row *r, const struct field *field, char *buf,
                     size_t cap);

/* Two columns, for a person: name, value with unit. Empty cells are left out. A figure
 * with an interval has two digits of its uncertainty (format_measured()); CSV and JSON
 * have all. */
void row_print(FILE *f, const struct row *r);

/* Orders pointers to rows by point and attempt: for qsort() and bsearch(). */
int row_by_point(const void *x, const void *y);

/* Keeps the rows whose column of texts has that text, in order; how many. */
size_t rows_keep(struct row *rows, size_t n, const char *column, const char *text);

/* Whether one sequence was alone, as one user's is: several are faster together, each
 * of them is slower, and so is one while a prompt is read. */
static inline bool row_is_of_one(const struct row *r)
{
    return r->n_sequences == FIELD_NO_INT && r->n_chunk == FIELD_NO_INT;
}

/* Whether slmbench itself was measured, with one sequence on whole CPUs: what it does
 * elsewhere is predicted from such rows. */
static inline bool row_is_plain(const struct row *r)
{
    return !*r->engine && !(r->cpus_quota > 0) && row_is_of_one(r);
}

/* The int8 peak of vectors, which shares of the peak are of: tiles, which not every
 * machine has, are many times as fast in registers, and kernels by them are not. */
static inline double row_vectors_gops(const struct row *r)
{
    return r->roof_vectors_gops > 0 ? r->roof_vectors_gops : r->roof_gops;
}

/* The tok_per_s at which arithmetic would be at its probed peak, for steps of several
 * tokens; NaN for others, whose weights are read for one token alone. */
static inline double row_arithmetic_roof(const struct row *r)
{
    return (r->n_sequences > 1 || r->n_chunk > 0) && r->roof_gops > 0 && r->gops > 0
               ? r->tok_per_s * r->roof_gops / r->gops
               : NAN;
}

/* Whether that is the roof: the lower one. Cells have been rounded. */
static inline bool row_arithmetic_is_roof(const struct row *r)
{
    return r->roof_tok_per_s >= row_arithmetic_roof(r) * 0.999;
}

/* ---- a row as a person reads it -------------------------------------------------- */

/* What a figure is worth stands next to it: its interval, its share of the roof, what
 * disturbed it. Figures have the digits that their intervals support, three without an
 * interval; sizes and times have units. A row has more columns than are shown here:
 * row_print() prints all. */

/* "24.5 tok/s (23.5 to 25.8), 56 % of the roof, 717 MiB charged, disturbed: others
 * 55 %", or why there is no figure. Returns buf. */
const char *row_headline(const struct row *r, char *buf, size_t cap);

/* The headline, the row's detail, and groups of lines: setting, speed, roof, memory,
 * disturbances, the command that repeats it. At most 79 columns, but for the command.
 */
void row_print_summary(FILE *f, const struct row *r);

#endif
