/* SPDX-License-Identifier: MIT
 *
 * kernel_result.c - reading google-benchmark's JSON
 */
#include "harness/measure/kernels/kernel_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/jsonfile.h"
#include "harness/base/array.h"
#include "harness/base/format.h"

#define MAX_RESULTS 500000

static void copy_text(char *to, size_t cap, const json_t *object, const char *key)
{
    text_harmless(to, cap, json_string_value(json_object_get(object, key)));
}

static double number(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

static void read_context(struct kernel_results *r, const json_t *context)
{
    const double n_cpus = number(context, "num_cpus");

    copy_text(r->cpu_model, sizeof r->cpu_model, context, "cpu_model");
    text_squeeze(r->cpu_model);
    copy_text(r->host, sizeof r->host, context, "host_name");
    copy_text(r->date, sizeof r->date, context, "date");
    copy_text(r->version, sizeof r->version, context, "slmbench_version");
    copy_text(r->compiler, sizeof r->compiler, context, "slmbench_compiler");
    copy_text(r->kernel, sizeof r->kernel, context, "kernel");
    r->n_cpus = n_cpus > 0 && n_cpus < 1e6 ? (int)n_cpus : 0;
}

static struct kernel_result *find(const struct kernel_results *r, const char *name)
{
    const uint32_t i = strtab_find(&r->index, name, strlen(name));

    return i == STRTAB_NONE ? NULL : &r->v[i];
}

const struct kernel_result *kernel_results_find(const struct kernel_results *r,
                                                const char *name)
{
    return find(r, name);
}

static struct kernel_result *add_row(struct kernel_results *r, const char *name)
{
    struct kernel_result *v = array_grow(r->v, r->n, &r->cap, sizeof *v);

    if (!v)
        return NULL;
    r->v = v;
    v[r->n] = (struct kernel_result){.name = strdup(name), .huge_share = NAN};
    if (!v[r->n].name)
        return NULL;
    strtab_put(&r->index, v[r->n].name, (uint32_t)strlen(name), (uint32_t)r->n);
    return &v[r->n++];
}

/* Append to list[n], which has room for the next power of two. */
static bool push(double **list, size_t n, double value)
{
    double *longer = *list;

    if (!(n & (n - 1)))
        longer = realloc(longer, (n ? 2 * n : 1) * sizeof *longer);
    if (!longer)
        return false;
    longer[n] = value;
    *list = longer;
    return true;
}

/* 0 for a unit that google-benchmark does not have. */
static double unit_ns(const json_t *entry)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const char *unit = json_string_value(json_object_get(entry, "time_unit"));

    for (size_t i = 0; unit && i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(unit, units[i].name))
            return units[i].ns;
    return 0;
}

/* False: no memory. */
static bool add_failure(struct kernel_result *row, const char *why)
{
    if (!row->error[0])
        text_harmless(row->error, sizeof row->error, why ? why : "failed");
    return true;
}

static bool add_repetition(struct kernel_result *row, const json_t *entry)
{
    const double time = number(entry, "real_time") * unit_ns(entry);

    if (json_is_true(json_object_get(entry, "error_occurred")))
        return add_failure(row,
                           json_string_value(json_object_get(entry, "error_message")));
    if (number(entry, "interrupted") > 0) {
        row->interrupted = true;
        return true;
    }
    if (!(time > 0) || !isfinite(time))
        return add_failure(row, "no time in the file");
    if (!push(&row->ns, row->n, time) ||
        !push(&row->gbps, row->n, number(entry, "GB/s")) ||
        !push(&row->gops, row->n, number(entry, "GOPS")) ||
        !push(&row->wps, row->n, number(entry, "weights/s")))
        return false;
    row->huge_share = number(entry, "huge_pages");
    row->n++;
    return true;
}

static enum status read_entries(struct kernel_results *r, const json_t *entries,
                                struct err *err)
{
    size_t i, n_aggregates = 0;
    char own[256];
    json_t *entry;

    if (strtab_init(&r->index, json_array_size(entries), err))
        return ST_NO_MEMORY;
    json_array_foreach(entries, i, entry)
    {
        const char *type = json_string_value(json_object_get(entry, "run_type"));
        const char *name = json_string_value(json_object_get(entry, "run_name"));

        if (!name)
            name = json_string_value(json_object_get(entry, "name"));
        if (!name)
            return err_set(err, ST_INPUT, "%.300s: benchmark %zu has no name", r->path,
                           i + 1);
        if (type && strcmp(type, "iteration") != 0) {
            n_aggregates++;
            continue;
        }
        text_harmless(own, sizeof own, name);
        struct kernel_result *row = find(r, own);
        if (!row && r->n == MAX_RESULTS)
            return err_set(err, ST_INPUT, "%.300s holds more than %d benchmarks",
                           r->path, MAX_RESULTS);
        if (!row)
            row = add_row(r, own);
        if (!row || !add_repetition(row, entry))
            return err_set(err, ST_NO_MEMORY, "no memory for the rows of %.300s",
                           r->path);
    }
    if (r->n == 0 && n_aggregates)
        return err_set(
            err, ST_INPUT,
            "%.200s holds means and medians only, and a comparison needs the "
            "repetitions: run without --benchmark_report_aggregates_only",
            r->path);
    if (r->n == 0)
        return err_set(err, ST_INPUT, "%.300s holds no benchmark", r->path);
    return ST_OK;
}

/* Every kernel at every level with nine repetitions is 15 MB and 700000 values. */
static const struct json_limit max_file = {128u << 20, 4u << 20};

enum status kernel_results_read(struct kernel_results *r, const char *path,
                                struct err *err)
{
    struct kernel_results new = {.n = 0};
    struct jsonfile f;
    enum status st = jsonfile_read(&f, path, max_file, err);

    if (st)
        return st;
    snprintf(new.path, sizeof new.path, "%s", path);
    const json_t *entries = json_object_get(f.root, "benchmarks");
    if (json_is_array(entries)) {
        read_context(&new, json_object_get(f.root, "context"));
        st = read_entries(&new, entries, err);
    } else {
        st = err_set(
            err, ST_INPUT,
            "%.300s is no result of google-benchmark: it has no list \"benchmarks\"",
            path);
    }
    jsonfile_free(&f);
    if (st)
        kernel_results_free(&new);
    else
        *r = new;
    return st;
}

void kernel_results_free(struct kernel_results *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].name);
        free(r->v[i].ns);
        free(r->v[i].gbps);
        free(r->v[i].gops);
        free(r->v[i].wps);
    }
    free(r->v);
    strtab_free(&r->index);
    *r = (struct kernel_results){.n = 0};
}
