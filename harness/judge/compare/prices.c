/* SPDX-License-Identifier: MIT
 *
 * prices.c - reading and finding prices
 */
#include "harness/judge/compare/prices.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/yamlfile.h"

#define SECONDS_PER_HOUR 3600.0

struct price_text {
    char machine[96], per_hour[32], currency[8], what[128], source[128], date[16];
};

#define TEXT(name) \
    CYAML_FIELD_STRING(#name, CYAML_FLAG_DEFAULT, struct price_text, name, 0)
#define MAYBE(name) \
    CYAML_FIELD_STRING(#name, CYAML_FLAG_OPTIONAL, struct price_text, name, 0)
static const cyaml_schema_field_t price_fields[] = {
    TEXT(machine), TEXT(per_hour), TEXT(currency), MAYBE(what),
    MAYBE(source), MAYBE(date),    CYAML_FIELD_END};

static enum status convert(void *to, const void *from, const char *what,
                           struct err *err)
{
    const struct price_text *text = from;
    struct price *p = to;

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
    static const struct yaml_list list = {.key = "prices",
                                          .entry = "price",
                                          .most = PRICES_MAX,
                                          .fields = price_fields,
                                          .text_bytes = sizeof(struct price_text),
                                          .bytes = sizeof(struct price),
                                          .convert = convert};
    void *v;
    const enum status st = yaml_load_list(&v, &prices->n, path, &list, err);

    if (st == ST_OK)
        prices->v = v;
    return st;
}

/* "0.06", "0.06EUR": the currency is USD where none is named. */
static enum status read_price(struct price *p, const char *text, const char *at,
                              struct err *err)
{
    const size_t digits = strspn(at, "0123456789.");
    char number[32];

    if (digits == 0 || digits >= sizeof number ||
        strlen(at + digits) >= sizeof p->currency)
        return err_set(err, ST_USAGE,
                       "--price: '%.80s' is no NAME=PRICE, as in zen5=0.06 or "
                       "zen5=0.06EUR",
                       text);
    snprintf(number, sizeof number, "%.*s", (int)digits, at);
    text_harmless(p->currency, sizeof p->currency, at[digits] ? at + digits : "USD");
    return parse_double(number, "--price", 1e-9, 1e9, &p->per_hour, err);
}

enum status prices_give(struct prices *prices, const char *const *texts, size_t n,
                        struct err *err)
{
    struct price *v = calloc(prices->n + n + 1, sizeof *v);

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu prices", prices->n + n);
    for (size_t i = 0; i < n; i++) {
        const char *equals = strrchr(texts[i], '=');

        if (read_price(&v[i], texts[i], equals ? equals + 1 : "", err)) {
            free(v);
            return err->code;
        }
        snprintf(v[i].machine, sizeof v[i].machine, "%.*s", (int)(equals - texts[i]),
                 texts[i]);
    }
    if (prices->n)
        memcpy(v + n, prices->v, prices->n * sizeof *v);
    free(prices->v);
    prices->v = v;
    prices->n += n;
    return ST_OK;
}

enum status prices_check_machines(const char *const *texts, size_t n,
                                  const char *const *machines, size_t n_machines,
                                  struct err *err)
{
    char pattern[96], names[400] = "";

    for (size_t k = 0; k < n_machines; k++)
        text_append(names, sizeof names, "%s%s", k ? ", " : "", machines[k]);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;

        snprintf(pattern, sizeof pattern, "%.*s",
                 (int)(strrchr(texts[i], '=') - texts[i]), texts[i]);
        while (k < n_machines && fnmatch(pattern, machines[k], 0))
            k++;
        if (k == n_machines)
            return err_set(err, ST_USAGE,
                           "--price: no machine here is named '%.80s'; there %s: %s",
                           pattern, n_machines == 1 ? "is" : "are", names);
    }
    return ST_OK;
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
