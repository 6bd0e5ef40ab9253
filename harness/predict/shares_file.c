/* SPDX-License-Identifier: MIT
 *
 * shares_file.c - shares as YAML, and back
 */
#include "harness/predict/shares.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/choice.h"
#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/yamlfile.h"

static const char *kind_name(int kind)
{
    static const char *const names[] = {[SHARE_DECODE] = "decode",
                                        [SHARE_PREFILL] = "prefill",
                                        [SHARE_KERNEL] = "kernel"};

    return names[kind];
}

static const struct choices choices_kind = {"kinds of shares are", kind_name,
                                            SHARE_N_KINDS};

/* ---- reading --------------------------------------------------------------------- */

#define TEXT_BYTES 32

struct share_text {
    char machine[SHARES_MACHINE_MAX];
    char kind[TEXT_BYTES], format[TEXT_BYTES], threads[TEXT_BYTES], n[TEXT_BYTES],
        lo[TEXT_BYTES], median[TEXT_BYTES], hi[TEXT_BYTES];
};

struct file_text {
    struct share_text *shares;
    unsigned shares_count;
};

#define TEXT(name) \
    CYAML_FIELD_STRING(#name, CYAML_FLAG_DEFAULT, struct share_text, name, 0)
static const cyaml_schema_field_t share_fields[] = {
    TEXT(machine), TEXT(kind),   TEXT(format), TEXT(threads),  TEXT(n),
    TEXT(lo),      TEXT(median), TEXT(hi),     CYAML_FIELD_END};

static const cyaml_schema_value_t share_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct share_text, share_fields)};

static const cyaml_schema_field_t file_fields[] = {
    CYAML_FIELD_SEQUENCE("shares", CYAML_FLAG_POINTER, struct file_text, shares,
                         &share_schema, 1, SHARES_MAX),
    CYAML_FIELD_END};

static const cyaml_schema_value_t file_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct file_text, file_fields)};

/* A kernel alone may be faster than the whole probe, never far. */
#define MOST_SHARE 4.0

static enum status convert(struct share *s, const struct share_text *text,
                           const char *what, struct err *err)
{
    long long n_threads = 0, n = 0;
    enum status st;

    text_harmless(s->machine, sizeof s->machine, text->machine);
    st = choice_parse(&choices_kind, text->kind, what, &s->kind, err);
    s->format = kern_format_by_name(text->format);
    if (st == ST_OK && s->format == KERN_N_FMT)
        st = err_set(err, ST_USAGE, "%s: '%s' is no weight format", what, text->format);
    if (st == ST_OK)
        st = parse_integer(text->threads, what, 1, 1024, &n_threads, err);
    if (st == ST_OK)
        st = parse_integer(text->n, what, 1, 1 << 20, &n, err);
    if (st == ST_OK)
        st = parse_double(text->lo, what, 1e-6, MOST_SHARE, &s->lo, err);
    if (st == ST_OK)
        st = parse_double(text->median, what, s->lo, MOST_SHARE, &s->median, err);
    if (st == ST_OK)
        st = parse_double(text->hi, what, s->median, MOST_SHARE, &s->hi, err);
    s->n_threads = (int)n_threads;
    s->n = (int)n;
    return st;
}

/* Machines stand together. */
static int by_machine(const void *x, const void *y)
{
    return strcmp(((const struct share *)x)->machine,
                  ((const struct share *)y)->machine);
}

enum status shares_load(struct shares *s, const char *path, struct err *err)
{
    struct file_text *text = NULL;
    struct share *v;
    void *data = NULL;
    struct err why = ERR_INIT;
    enum status st = yaml_load_file(path, &file_schema, &data, err);

    if (st)
        return st;
    text = data;
    v = calloc(text->shares_count + 1, sizeof *v);
    if (!v)
        st = err_set(err, ST_NO_MEMORY, "no memory for %u shares", text->shares_count);
    for (unsigned i = 0; i < text->shares_count && st == ST_OK; i++) {
        char what[4200];

        snprintf(what, sizeof what, "%.4000s: share %u", format_path(path).text, i + 1);
        if (convert(&v[i], &text->shares[i], what, &why))
            st = err_set(err, ST_INPUT, "%s", why.msg);
    }
    if (st == ST_OK) {
        qsort(v, text->shares_count, sizeof *v, by_machine);
        *s = (struct shares){v, text->shares_count};
    } else {
        free(v);
    }
    yaml_free_data(&file_schema, data);
    return st;
}

/* ---- writing --------------------------------------------------------------------- */

/* YAML in single quotes, where nothing but the quote itself is special. */
static void print_quoted(FILE *f, const char *text)
{
    putc('\'', f);
    for (; *text; text++) {
        if (*text == '\'')
            putc('\'', f);
        putc(*text, f);
    }
    putc('\'', f);
}

void shares_print(FILE *f, const struct shares *s)
{
    fprintf(f, "# Shares of the read bandwidth (decode) and of the peak of arithmetic "
               "(prefill)\n# that launches reached, as quantiles 0.05, 0.5 and 0.95; "
               "kernel: a product alone.\n# Made by `bench predict --calibrate`.\n"
               "shares:\n");
    for (size_t i = 0; i < s->n; i++) {
        const struct share *v = &s->v[i];

        fprintf(f, "- {machine: ");
        print_quoted(f, v->machine);
        fprintf(f,
                ", kind: %s, format: %s, threads: %d, n: %d, lo: %.4f, median: "
                "%.4f, hi: %.4f}\n",
                kind_name((int)v->kind), kern_format_info(v->format)->name,
                v->n_threads, v->n, v->lo, v->median, v->hi);
    }
}
