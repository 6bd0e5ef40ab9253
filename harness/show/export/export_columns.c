/* SPDX-License-Identifier: MIT
 *
 * export_columns.c - which columns are printed
 */
#include <string.h>

#include "harness/base/suggest.h"
#include "harness/show/export/export.h"

static enum status unknown_column(const char *name, struct err *err)
{
    const char *names[EXPORT_MAX_COLUMNS];
    size_t n;
    const struct field *f = row_fields(&n);

    for (size_t i = 0; i < n && i < EXPORT_MAX_COLUMNS; i++)
        names[i] = f[i].name;
    const char *near =
        suggest(name, names, (int)(n < EXPORT_MAX_COLUMNS ? n : EXPORT_MAX_COLUMNS));
    return err_set(err, ST_USAGE, "--columns: there is no column '%.60s'%s%s%s", name,
                   near ? "; did you mean " : "; `bench fields` lists them",
                   near ? near : "", near ? "?" : "");
}

enum status export_columns_parse(struct export_params *p, const char *text,
                                 struct err *err)
{
    p->n_columns = 0;
    for (;;) {
        const size_t len = strcspn(text, ",");
        char name[64];

        snprintf(name, sizeof name, "%.*s", len < sizeof name ? (int)len : 63, text);
        const struct field *f = row_field(name);
        if (!f)
            return unknown_column(name, err);
        if (p->n_columns == EXPORT_MAX_COLUMNS)
            return err_set(err, ST_USAGE, "--columns: more than %d are too many",
                           EXPORT_MAX_COLUMNS);
        p->column[p->n_columns++] = f;
        if (!text[len])
            return ST_OK;
        text += len + 1;
    }
}
