/* SPDX-License-Identifier: MIT
 *
 * row.c - the table of columns, and rows as CSV and JSON
 *
 * Reading CSV is in row_read.c, text for a person in row_print.c.
 */
#include "harness/rows/row.h"

#include <assert.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/program.h"
#include "harness/base/suggest.h"
#include "harness/rows/model_rows.h"
#include "harness/base/order.h"

#define FIELD_HEAD(name_, kind_) \
    .name = #name_, .kind = kind_, .offset = offsetof(struct row, name_)

static const struct field fields[] = {
#define FIELD_GROUP(title) {.group = title},
#define FIELD_STR(name, cap_, ...) \
    {FIELD_HEAD(name, FIELD_KIND_STR), .cap = cap_, .unit = "", .doc = __VA_ARGS__},
#define FIELD_ENUM(name, choices_, ...)                                   \
    {FIELD_HEAD(name, FIELD_KIND_ENUM), .choices = &choices_, .unit = "", \
     .doc = __VA_ARGS__},
#define FIELD_INT(name, unit_, ...) \
    {FIELD_HEAD(name, FIELD_KIND_INT), .unit = unit_, .doc = __VA_ARGS__},
#define FIELD_NUM(name, unit_, digits_, ...)                             \
    {FIELD_HEAD(name, FIELD_KIND_NUM), .unit = unit_, .digits = digits_, \
     .doc = __VA_ARGS__},
#include "harness/rows/fields.def"
};

#define N_ENTRIES (sizeof fields / sizeof fields[0])

/* fields[] holds group headings between the fields; callers see this list, which is
 * shorter by them. */
const struct field *row_fields(size_t *n)
{
    static struct field table[N_ENTRIES];
    static size_t n_table;

    if (!n_table) {
        const char *group = "";

        for (size_t i = 0; i < N_ENTRIES; i++) {
            if (!fields[i].name) {
                group = fields[i].group;
                continue;
            }
            table[n_table] = fields[i];
            table[n_table++].group = group;
        }
    }
    if (n)
        *n = n_table;
    return table;
}

const struct field *row_field(const char *name)
{
    for (const struct field *f = row_fields(NULL); f->name; f++)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

enum status row_field_find(const struct field **f, const char *name, const char *what,
                           struct err *err)
{
    size_t n;
    const struct field *all = row_fields(&n);
    const char *names[512];

    *f = row_field(name);
    if (*f)
        return ST_OK;
    n = n < sizeof names / sizeof *names ? n : sizeof names / sizeof *names;
    for (size_t i = 0; i < n; i++)
        names[i] = all[i].name;
    const char *near = suggest(name, names, (int)n);
    return err_set(err, ST_USAGE, "%sthere is no column '%.60s'%s%s%s", what, name,
                   near ? "; did you mean " : "; `bench fields` lists them",
                   near ? near : "", near ? "?" : "");
}

const struct field *row_field_of(enum setting_id setting)
{
    for (const struct field *f = row_fields(NULL); f->name; f++)
        if (f->is_set && f->setting == setting)
            return f;
    return NULL;
}

bool field_is_text(const struct field *field)
{
    return field->kind == FIELD_KIND_STR || field->kind == FIELD_KIND_ENUM;
}

/* Whether two rows are of one model is not in this cell alone. */
static bool is_identity(const struct field *f)
{
    return f->offset == offsetof(struct row, model_id);
}

/* Empty cells, NaN, come first. */
static int compare_numbers(double x, double y)
{
    if (isnan(x) || isnan(y))
        return !!isnan(y) - !!isnan(x);
    return (x > y) - (x < y);
}

int row_compare_cell(const struct row *a, const struct row *b, const struct field *f)
{
    const void *x = (const char *)a + f->offset, *y = (const char *)b + f->offset;

    if (is_identity(f))
        return model_rows_compare(a, b);
    if (f->kind == FIELD_KIND_INT)
        return (*(const int64_t *)x > *(const int64_t *)y) -
               (*(const int64_t *)x < *(const int64_t *)y);
    if (f->kind == FIELD_KIND_NUM)
        return compare_numbers(*(const double *)x, *(const double *)y);
    return strcmp(row_text(a, f), row_text(b, f));
}

int row_compare(const struct row *a, const struct row *b, unsigned is)
{
    int order = 0;

    for (const struct field *f = row_fields(NULL); f->name && !order; f++)
        if ((f->is & is) == is)
            order = row_compare_cell(a, b, f);
    return order;
}

void row_append_unusual(const struct row *r, unsigned is, char *buf, size_t cap)
{
    for (const struct field *f = row_fields(NULL); f->name; f++) {
        char text[ROW_CELL_MAX], usual[ROW_CELL_MAX];
        double value = 0; /* as large as any */

        if ((f->is & is) != is || !f->is_set)
            continue;
        row_cell(r, f, text, sizeof text);
        setting_default(f->setting, &value, sizeof value);
        setting_text(f->setting, &value, usual, sizeof usual);
        if (*text && strcmp(text, usual) != 0)
            text_append(buf, cap, ", %s%s%s", f->label, *f->label ? " " : "", text);
    }
}

void row_init(struct row *r)
{

    memset(r, 0, sizeof *r);
    for (const struct field *f = row_fields(NULL); f->name; f++) {
        void *cell = (char *)r + f->offset;

        if (f->kind == FIELD_KIND_ENUM)
            *(int *)cell = FIELD_NO_ENUM;
        else if (f->kind == FIELD_KIND_INT)
            *(int64_t *)cell = FIELD_NO_INT;
        else if (f->kind == FIELD_KIND_NUM)
            *(double *)cell = NAN;
    }
}

void row_name_build(struct row *r)
{
    snprintf(r->build, sizeof r->build, "%.39s", build_version());
    snprintf(r->built_by, sizeof r->built_by, "%.63s", build_compiler());
}

const char *row_text(const struct row *r, const struct field *field)
{
    const char *cell = (const char *)r + field->offset;

    return field->kind == FIELD_KIND_ENUM
               ? row_enum_text(field->choices, *(const int *)(const void *)cell)
               : cell;
}

void row_set_text(struct row *r, const struct field *field, const char *text)
{
    char *cell = (char *)r + field->offset;

    /* a column's usual value has one form, however a table has it */
    if (field->kind == FIELD_KIND_ENUM)
        *(int *)(void *)cell = row_enum_value(
            field->choices, field->empty && !strcmp(text, field->empty) ? "" : text);
    else
        text_harmless(cell, field->cap, text);
}

void row_disarm(struct row *r)
{
    for (const struct field *field = row_fields(NULL); field->name; field++)
        if (field->kind == FIELD_KIND_STR) {
            char own[ROW_CELL_MAX];

            assert(field->cap <= sizeof own);
            memcpy(own, (char *)r + field->offset, field->cap);
            row_set_text(r, field, own);
        }
}

const char *row_cell(const struct row *r, const struct field *field, char *buf,
                     size_t cap)
{
    const void *cell = (const char *)r + field->offset;

    buf[0] = '\0';
    switch (field->kind) {
    case FIELD_KIND_STR:
    case FIELD_KIND_ENUM:
        snprintf(buf, cap, "%s", row_text(r, field));
        break;
    case FIELD_KIND_INT:
        if (*(const int64_t *)cell != FIELD_NO_INT)
            snprintf(buf, cap, "%lld", (long long)*(const int64_t *)cell);
        break;
    case FIELD_KIND_NUM:
        if (isfinite(*(const double *)cell))
            snprintf(buf, cap, "%.*f", field->digits, *(const double *)cell);
        break;
    }
    return buf;
}

bool row_csv_is_formula(const char *text)
{
    text += strspn(text, "'");
    return *text && strchr("=+-@\t\r", *text);
}

void row_csv_cell(FILE *f, const char *text, bool is_text)
{
    const int quote = strpbrk(text, ",\"") != NULL;

    if (quote)
        putc('"', f);
    if (is_text && row_csv_is_formula(text))
        putc('\'', f);
    for (const char *c = text; *c; c++) {
        if (*c == '"')
            putc('"', f);
        putc((unsigned char)*c < ' ' ? ' ' : *c, f);
    }
    if (quote)
        putc('"', f);
}

void row_csv_header(FILE *f)
{
    const struct field *const first = row_fields(NULL);

    for (const struct field *field = first; field->name; field++)
        fprintf(f, "%s%s", field == first ? "" : ",", field->name);
    putc('\n', f);
}

void row_csv_write(FILE *f, const struct row *r)
{
    const struct field *const first = row_fields(NULL);
    char buf[ROW_CELL_MAX];

    for (const struct field *field = first; field->name; field++) {
        if (field != first)
            putc(',', f);
        row_csv_cell(f, row_cell(r, field, buf, sizeof buf), field_is_text(field));
    }
    putc('\n', f);
}

/* A file name need not be UTF-8, JSON must be: then what is not ASCII becomes
 * question marks. */
static json_t *json_text(const char *text)
{
    json_t *value = json_string(text);

    if (!value) {
        char ascii[ROW_CELL_MAX];
        size_t n = 0;

        for (; text[n] && n < sizeof ascii - 1; n++)
            ascii[n] = (unsigned char)text[n] < 0x80 ? text[n] : '?';
        ascii[n] = '\0';
        value = json_string(ascii);
    }
    return value;
}

json_t *row_json(const struct row *r)
{
    json_t *object = json_object();

    for (const struct field *f = row_fields(NULL); f->name; f++) {
        const void *cell = (const char *)r + f->offset;
        json_t *value = NULL;

        if (field_is_text(f) && *row_text(r, f))
            value = json_text(row_text(r, f));
        else if (f->kind == FIELD_KIND_INT && *(const int64_t *)cell != FIELD_NO_INT)
            value = json_integer(*(const int64_t *)cell);
        else if (f->kind == FIELD_KIND_NUM && isfinite(*(const double *)cell))
            value = json_real(*(const double *)cell);
        json_object_set_new(object, f->name, value ? value : json_null());
    }
    return object;
}

void row_from_json(struct row *r, const json_t *object)
{
    for (const struct field *f = row_fields(NULL); f->name; f++) {
        const json_t *value = json_object_get(object, f->name);
        void *cell = (char *)r + f->offset;

        if (field_is_text(f) && json_is_string(value))
            row_set_text(r, f, json_string_value(value));
        else if (f->kind == FIELD_KIND_INT && json_is_integer(value))
            *(int64_t *)cell = json_integer_value(value);
        else if (f->kind == FIELD_KIND_NUM && json_is_number(value))
            *(double *)cell = json_number_value(value);
    }
}

size_t rows_keep(struct row *rows, size_t n, const char *column, const char *text)
{
    const struct field *f = row_field(column);
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!strcmp(row_text(&rows[i], f), text))
            rows[kept++] = rows[i];
    return kept;
}

int row_by_point(const void *x, const void *y)
{
    const struct row *a = *(const struct row *const *)x;
    const struct row *b = *(const struct row *const *)y;

    ORDER_BY(strcmp(a->point, b->point));
    return order_ints(a->attempt, b->attempt);
}
