/* SPDX-License-Identifier: MIT
 *
 * row.c - the table of columns, and rows as CSV, JSON and text
 *
 * Reading CSV is in row_read.c.
 */
#include "harness/result/row.h"

#include <math.h>
#include <string.h>

#define ROW_CELL_MAX 512 /* no cell is longer: the largest string column is 400 */

static const struct field fields[] = {
#define FIELD_GROUP(title) {.group = title},
#define FIELD_STR(name, cap, doc) \
    {#name, FIELD_KIND_STR, NULL, "", doc, 0, offsetof(struct row, name), cap},
#define FIELD_INT(name, unit, doc) \
    {#name, FIELD_KIND_INT, NULL, unit, doc, 0, offsetof(struct row, name), 0},
#define FIELD_NUM(name, unit, digits, doc) \
    {#name, FIELD_KIND_NUM, NULL, unit, doc, digits, offsetof(struct row, name), 0},
#include "harness/result/fields.def"
};

#define N_ENTRIES (sizeof fields / sizeof fields[0])

/* fields[] holds group headings between the fields; callers see this list. */
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
    *n = n_table;
    return table;
}

const struct field *row_field(const char *name)
{
    size_t n;
    const struct field *f = row_fields(&n);

    for (size_t i = 0; i < n; i++) {
        if (!strcmp(f[i].name, name))
            return &f[i];
    }
    return NULL;
}

bool row_same_weights(const struct row *a, const struct row *b)
{
    return !strcmp(a->model, b->model) && !strcmp(a->quant, b->quant) &&
           !strcmp(a->kv_type, b->kv_type);
}

void row_init(struct row *r)
{
    size_t n;
    const struct field *f = row_fields(&n);

    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < n; i++) {
        void *cell = (char *)r + f[i].offset;

        if (f[i].kind == FIELD_KIND_INT)
            *(int64_t *)cell = FIELD_NO_INT;
        else if (f[i].kind == FIELD_KIND_NUM)
            *(double *)cell = NAN;
    }
}

const char *row_cell(const struct row *r, const struct field *field, char *buf,
                     size_t cap)
{
    const void *cell = (const char *)r + field->offset;

    buf[0] = '\0';
    switch (field->kind) {
    case FIELD_KIND_STR:
        snprintf(buf, cap, "%s", (const char *)cell);
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

static void write_cell(FILE *f, const char *text)
{
    const int quote = strpbrk(text, ",\"") != NULL;

    if (quote)
        putc('"', f);
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
    size_t n;
    const struct field *field = row_fields(&n);

    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s%s", i ? "," : "", field[i].name);
    putc('\n', f);
}

void row_csv_write(FILE *f, const struct row *r)
{
    size_t n;
    const struct field *field = row_fields(&n);
    char buf[ROW_CELL_MAX];

    for (size_t i = 0; i < n; i++) {
        if (i)
            putc(',', f);
        write_cell(f, row_cell(r, &field[i], buf, sizeof buf));
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
    size_t n;
    const struct field *f = row_fields(&n);
    json_t *object = json_object();

    for (size_t i = 0; i < n; i++) {
        const void *cell = (const char *)r + f[i].offset;
        json_t *value = NULL;

        if (f[i].kind == FIELD_KIND_STR && *(const char *)cell)
            value = json_text(cell);
        else if (f[i].kind == FIELD_KIND_INT && *(const int64_t *)cell != FIELD_NO_INT)
            value = json_integer(*(const int64_t *)cell);
        else if (f[i].kind == FIELD_KIND_NUM && isfinite(*(const double *)cell))
            value = json_real(*(const double *)cell);
        json_object_set_new(object, f[i].name, value ? value : json_null());
    }
    return object;
}

void row_from_json(struct row *r, const json_t *object)
{
    size_t n;
    const struct field *f = row_fields(&n);

    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_object_get(object, f[i].name);
        void *cell = (char *)r + f[i].offset;

        if (f[i].kind == FIELD_KIND_STR && json_is_string(value))
            snprintf(cell, f[i].cap, "%s", json_string_value(value));
        else if (f[i].kind == FIELD_KIND_INT && json_is_integer(value))
            *(int64_t *)cell = json_integer_value(value);
        else if (f[i].kind == FIELD_KIND_NUM && json_is_number(value))
            *(double *)cell = json_number_value(value);
    }
}

void row_print(FILE *f, const struct row *r)
{
    size_t n;
    const struct field *field = row_fields(&n);
    char buf[ROW_CELL_MAX];

    for (size_t i = 0; i < n; i++) {
        row_cell(r, &field[i], buf, sizeof buf);
        if (buf[0])
            fprintf(f, "%-22s  %s%s%s\n", field[i].name, buf, *field[i].unit ? " " : "",
                    field[i].unit);
    }
}
