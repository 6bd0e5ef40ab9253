/* SPDX-License-Identifier: MIT
 *
 * model_rows.c - rows of one model under one label
 */
#include "harness/rows/model_rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/order.h"
#include "harness/rows/report_rows.h"

#define ID_SHOWN 8 /* digits of it behind a label that several models have */

const char *model_id_text(char *buf, size_t cap, uint64_t identity)
{
    buf[0] = '\0';
    if (identity)
        snprintf(buf, cap, "%016llx", (unsigned long long)identity);
    return buf;
}

void row_set_model(struct row *row, uint64_t identity)
{
    model_id_text(row->model_id, sizeof row->model_id, identity);
}

int model_rows_compare(const struct row *a, const struct row *b)
{
    ORDER_BY(report_compare_models(a, b));
    ORDER_BY(strcmp(a->model_id, b->model_id));
    return *a->model_id ? 0 : strcmp(a->model, b->model);
}

/* ---- joining --------------------------------------------------------------------- */

static int by_label(const void *x, const void *y)
{
    const struct row *a = *(struct row *const *)x, *b = *(struct row *const *)y;

    ORDER_BY(report_compare_models(a, b));
    return strcmp(a->model_id, b->model_id);
}

/* The shortest label of each first. */
static int by_id(const void *x, const void *y)
{
    const struct row *a = *(struct row *const *)x, *b = *(struct row *const *)y;

    ORDER_BY(strcmp(a->model_id, b->model_id));
    ORDER_BY(order_ints((int64_t)strlen(report_model_name(a).text),
                        (int64_t)strlen(report_model_name(b).text)));
    return report_compare_models(a, b);
}

static size_t label_end(struct row *const *v, size_t begin, size_t n)
{
    size_t end = begin;

    while (end < n && !report_compare_models(v[end], v[begin]))
        end++;
    return end;
}

static void set_label(struct row *r, const char *label)
{
    snprintf(r->model_label, sizeof r->model_label, "%.*s",
             (int)sizeof r->model_label - 1, label);
}

/* v[n] have one label and are ordered by id: how many have none. */
static size_t n_without_id(struct row *const *v, size_t n)
{
    size_t without = 0;

    while (without < n && !*v[without]->model_id)
        without++;
    return without;
}

/* Whether several models have the label of v[n]. */
static bool is_shared(struct row *const *v, size_t n)
{
    const size_t first = n_without_id(v, n);

    return first < n && strcmp(v[first]->model_id, v[n - 1]->model_id) != 0;
}

/* A row that failed before its file was open has no quantisation, and may be of any
 * file. */
static void adopt(struct row **v, size_t n)
{
    const size_t without = n_without_id(v, n);

    if (without == n || is_shared(v, n))
        return;
    for (size_t i = 0; i < without; i++)
        if (*v[i]->quant)
            memcpy(v[i]->model_id, v[n - 1]->model_id, sizeof v[i]->model_id);
}

static void distinguish(struct row **v, size_t n)
{
    char with_id[REPORT_NAME_MAX + ID_SHOWN + 2];

    for (size_t i = n_without_id(v, n); is_shared(v, n) && i < n; i++) {
        snprintf(with_id, sizeof with_id, "%.200s~%.*s", report_model_name(v[i]).text,
                 ID_SHOWN, v[i]->model_id);
        set_label(v[i], with_id);
    }
}

static void join(struct row **v, size_t n)
{
    struct report_name label;

    qsort(v, n, sizeof *v, by_label);
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = label_end(v, begin, n);
        adopt(v + begin, end - begin);
    }
    qsort(v, n, sizeof *v, by_id);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(v[i]->model_id, v[i - 1]->model_id) != 0)
            label = report_model_name(v[i]);
        if (*v[i]->model_id)
            set_label(v[i], label.text);
    }
    qsort(v, n, sizeof *v, by_label);
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = label_end(v, begin, n);
        distinguish(v + begin, end - begin);
    }
}

enum status model_rows_join(const struct row_span *spans, size_t n, struct err *err)
{
    size_t n_rows = 0, k = 0;
    struct row **v;

    for (size_t i = 0; i < n; i++)
        n_rows += spans[i].n;
    v = malloc((n_rows + 1) * sizeof *v);
    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory to sort %zu rows", n_rows);
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < spans[i].n; r++)
            v[k++] = &spans[i].rows[r];
    join(v, n_rows);
    free(v);
    return ST_OK;
}
