/* SPDX-License-Identifier: MIT
 *
 * choose_error.c - how far a type's weights are from the model's, by group
 *
 * The error is the square error over the squares, both weighed by importances where
 * there are some. A sample of rows is quantised.
 */
#include "harness/decide/choose/choose_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/interrupt.h"
#include "harness/base/progress.h"

#define SAMPLE 65536 /* values of a tensor */

struct sampler {
    struct gguf *made;
    struct requant_measure measures[KERN_N_FMT];
    void *row; /* of the longest */
};

/* Rows evenly spread over the tensor. A tensor that is not changed has no error. */
static enum status sample_tensor(struct sampler *s, const struct gguf_tensor *from,
                                 double *error, struct err *err)
{
    const struct gguf_tensor *t = gguf_tensor_find(s->made, from->name);
    const uint64_t n_rows = t->n_elems / t->ne[0];
    uint64_t n = SAMPLE / t->ne[0] + 1;
    const struct requant_measure *m = &s->measures[t->fmt];
    enum status st = ST_OK;

    memset(s->measures, 0, sizeof s->measures);
    n = n < n_rows ? n : n_rows;
    for (uint64_t i = 0; i < n && !st; i++)
        st = gguf_read_rows(s->made, t, i * n_rows / n, 1, false, s->row, err);
    *error = m->weighed_square2 > 0 ? m->weighed_error2 / m->weighed_square2 : 0;
    return st;
}

/* Mean of a group's tensors, weighed by their sizes. */
static enum status sample_groups(struct choose *c, struct sampler *s, double *error,
                                 struct err *err)
{
    enum status st = ST_OK;

    for (size_t g = 0; g < c->n_groups && !st; g++) {
        const struct choose_group *group = &c->groups[g];

        error[g] = 0;
        for (size_t i = 0; i < group->n && !st; i++) {
            const struct gguf_tensor *t = gguf_tensor_at(c->source, group->tensor[i]);
            double one = 0;

            st = interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted")
                               : sample_tensor(s, t, &one, err);
            error[g] += one * (double)t->n_elems / (double)group->n_elems;
        }
    }
    return st;
}

static enum status sample_type(struct choose *c, size_t k, double *error,
                               struct err *err)
{
    struct sampler *s = calloc(1, sizeof *s);
    struct gguf *source = NULL;
    uint64_t longest = 0;
    enum status st = s ? modelref_open(&c->ref, &source, err)
                       : err_set(err, ST_NO_MEMORY, "no memory for a sample");

    for (size_t i = 0; !st && i < gguf_n_tensors(source); i++)
        if (gguf_tensor_at(source, i)->ne[0] > longest)
            longest = gguf_tensor_at(source, i)->ne[0];
    if (!st && !(s->row = calloc((size_t)longest, sizeof(float))))
        st = err_set(err, ST_NO_MEMORY, "no memory for a row of %llu",
                     (unsigned long long)longest);
    if (!st) {
        const struct requant_params p = {.mix = quantmix_by_base(c->types[k]),
                                         .pure = true,
                                         .requantise = true,
                                         .imatrix = c->imatrix,
                                         .measures = s->measures};

        st = requant_open(&s->made, source, &p, err);
        source = NULL;
    }
    if (!st)
        st = sample_groups(c, s, error, err);
    gguf_close(source);
    if (s) {
        gguf_close(s->made);
        free(s->row);
    }
    free(s);
    return st;
}

/* A finished step has as many numbers as there are groups. */
static bool read_step(const struct choose *c, const char *step, double *error)
{
    const json_t *stored = choose_state_get(&c->state, step);

    if (json_array_size(stored) != c->n_groups)
        return false;
    for (size_t g = 0; g < c->n_groups; g++) {
        error[g] = json_number_value(json_array_get(stored, g));
        if (!(error[g] >= 0))
            return false;
    }
    return true;
}

static enum status write_step(struct choose *c, const char *step, const double *error,
                              struct err *err)
{
    json_t *list = json_array();

    for (size_t g = 0; g < c->n_groups; g++)
        json_array_append_new(list, json_real(error[g]));
    return choose_state_put(&c->state, step, list, err);
}

enum status choose_errors(struct choose *c, struct err *err)
{
    double *error = calloc(c->n_groups, sizeof *error);
    struct progress bar;
    enum status st =
        error ? ST_OK
              : err_set(err, ST_NO_MEMORY, "no memory for %zu groups", c->n_groups);

    progress_begin(&bar, "errors of types");
    for (size_t k = 0; k + 1 < c->n_types && !st; k++) {
        char step[40];

        snprintf(step, sizeof step, "error %s", choose_type_name(c, k));
        progress_update(&bar, (double)k / (double)c->n_types, choose_type_name(c, k));
        if (!read_step(c, step, error)) {
            st = sample_type(c, k, error, err);
            if (!st)
                st = write_step(c, step, error, err);
        }
        for (size_t g = 0; g < c->n_groups; g++)
            c->error[g * c->n_types + k] = error ? error[g] : 0;
    }
    progress_end(&bar);
    free(error);
    return st;
}
