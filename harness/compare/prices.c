/* SPDX-License-Identifier: MIT
 *
 * prices.c - reading and finding prices
 */
#include "harness/compare/prices.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/yamlfile.h"

#define SECONDS_PER_HOUR 3600.0

struct price_text {
    char machine[96], per_hour[32], currency[8], what[128], source[128], date[16];
};

struct file_text {
    struct price_text *prices;
    unsigned prices_count;
};

#define TEXT(name) \
    CYAML_FIELD_STRING(#name, CYAML_FLAG_DEFAULT, struct price_text, name, 0)
#define MAYBE(name) \
    CYAML_FIELD_STRING(#name, CYAML_FLAG_OPTIONAL, struct price_text, name, 0)
static const cyaml_schema_field_t price_fields[] = {
    TEXT(machine), TEXT(per_hour), TEXT(currency), MAYBE(what),
    MAYBE(source), MAYBE(date),    CYAML_FIELD_END};

static const cyaml_schema_value_t price_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct price_text, price_fields)};

static const cyaml_schema_field_t file_fields[] = {
    CYAML_FIELD_SEQUENCE("prices", CYAML_FLAG_POINTER, struct file_text, prices,
                         &price_schema, 1, PRICES_MAX),
    CYAML_FIELD_END};

static const cyaml_schema_value_t file_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct file_text, file_fields)};

static enum status convert(struct price *p, const struct price_text *text,
                           const char *what, struct err *err)
{
    text_harmless(p->machine, sizeof p->machine, text->machine);
    text_harmless(p->currency, sizeof p->currency, text->currency);
    text_harmless(p->what, sizeof p->what, text->what);
    text_harmless(p->source, sizeof p->source, text->source);
    text_harmless(p->date, sizeof p->date, text->date);
    if (!p->machine[0] || !p->currency[0])
        return err_set(err, ST_USAGE, "%s: machine and currency must not be empty",
                       what);
    return parse_double(text->per_hour, what, 1e-9, 1e9, &p->per_hour, err);
}

enum status prices_load(struct prices *prices, const char *path, struct err *err)
{
    struct file_text *text;
    struct price *v;
    void *data = NULL;
    struct err why = ERR_INIT;
    enum status st = yaml_load_file(path, &file_schema, &data, err);

    if (st)
        return st;
    text = data;
    v = calloc(text->prices_count + 1, sizeof *v);
    if (!v)
        st = err_set(err, ST_NO_MEMORY, "no memory for %u prices", text->prices_count);
    for (unsigned i = 0; i < text->prices_count && st == ST_OK; i++) {
        char what[4300];

        snprintf(what, sizeof what, "%.4000s: price %u", format_path(path).text, i + 1);
        if (convert(&v[i], &text->prices[i], what, &why))
            st = err_set(err, ST_INPUT, "%s", why.msg);
    }
    if (st == ST_OK)
        *prices = (struct prices){v, text->prices_count};
    else
        free(v);
    yaml_free_data(&file_schema, data);
    return st;
}

void prices_free(struct prices *prices)
{
    free(prices->v);
    *prices = (struct prices){NULL, 0};
}

const struct price *prices_find(const struct prices *prices, const char *name)
{
    for (size_t i = 0; i < prices->n; i++)
        if (!fnmatch(prices->v[i].machine, name, 0))
            return &prices->v[i];
    return NULL;
}

double price_of_million(double per_hour, double tok_per_s, double utilisation)
{
    return per_hour * 1e6 / (SECONDS_PER_HOUR * tok_per_s * utilisation);
}
