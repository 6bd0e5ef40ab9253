/* SPDX-License-Identifier: MIT
 *
 * shares_file.c - reads shares from YAML
 */
#include "harness/decide/predict/shares.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/choice.h"
#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/yamlfile.h"

const char *share_kind_name(enum share_kind kind)
{
    static const char *const names[] = {[SHARE_DECODE] = "decode",
                                        [SHARE_PREFILL] = "prefill",
                                        [SHARE_KERNEL] = "kernel",
                                        [SHARE_PRODUCT] = "product"};

    return names[kind];
}

static const char *kind_name(int kind)
{
    return share_kind_name((enum share_kind)kind);
}

static const struct choices choices_kind = {"kinds of shares are", kind_name,
                                            SHARE_N_KINDS};

#define TEXT_BYTES 32

struct share_text {
    char machine[SHARES_MACHINE_MAX];
    char kind[TEXT_BYTES], format[TEXT_BYTES], threads[TEXT_BYTES], n[TEXT_BYTES],
        lo[TEXT_BYTES], median[TEXT_BYTES], hi[TEXT_BYTES];
};

#define TEXT(name) \
    CYAML_FIELD_STRING(#name, CYAML_FLAG_DEFAULT, struct share_text, name, 0)
static const cyaml_schema_field_t share_fields[] = {
    TEXT(machine), TEXT(kind),   TEXT(format), TEXT(threads),  TEXT(n),
    TEXT(lo),      TEXT(median), TEXT(hi),     CYAML_FIELD_END};

/* A kernel alone may be faster than the whole probe, never far. */
#define MAX_SHARE 4.0

static enum status convert(void *to, const void *from, const char *what,
                           struct err *err)
{
    const struct share_text *text = from;
    struct share *s = to;
    long long n_threads = 0, n = 0;

    text_harmless(s->machine, sizeof s->machine, text->machine);
    if (choice_parse(&choices_kind, text->kind, what, &s->kind, err))
        return err->code;
    s->format = kern_format_by_name(text->format);
    if (s->format == KERN_N_FMT)
        return err_set(err, ST_USAGE, "%s: '%s' is no weight format", what,
                       text->format);
    if (parse_count(text->threads, what, "", 1, 1024, &n_threads, err) ||
        parse_count(text->n, what, "", 1, 1 << 20, &n, err) ||
        parse_double(text->lo, what, 1e-6, MAX_SHARE, &s->lo, err) ||
        parse_double(text->median, what, s->lo, MAX_SHARE, &s->median, err) ||
        parse_double(text->hi, what, s->median, MAX_SHARE, &s->hi, err))
        return err->code;
    s->n_threads = (int)n_threads;
    s->n = (int)n;
    return ST_OK;
}

/* Machines stand together. */
static int by_machine(const void *x, const void *y)
{
    return strcmp(((const struct share *)x)->machine,
                  ((const struct share *)y)->machine);
}

enum status shares_load(struct shares *s, const char *path, struct err *err)
{
    static const struct yaml_list list = {.key = "shares",
                                          .entry = "share",
                                          .most = SHARES_MAX,
                                          .fields = share_fields,
                                          .text_bytes = sizeof(struct share_text),
                                          .bytes = sizeof(struct share),
                                          .convert = convert};
    void *v;

    if (yaml_load_list(&v, &s->n, path, &list, err))
        return err->code;
    s->v = v;
    qsort(s->v, s->n, sizeof *s->v, by_machine);
    return ST_OK;
}
