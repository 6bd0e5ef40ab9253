/* SPDX-License-Identifier: MIT
 *
 * export_llama_bench.c - rows as the JSON Lines of llama.cpp's llama-bench
 *
 * The names, types and meanings are those of `llama-bench -o jsonl`, of 2025: a line is
 * a test, samples_ns are its repetitions, each of n_prompt + n_gen tokens, and avg_ts
 * is the mean of samples_ts (not the median that tok_per_s is). What a CPU run of
 * llama-bench always says is said here, too.
 */
#include "harness/base/array.h"
#include "harness/show/export/export.h"

#include <math.h>
#include <string.h>

#include "harness/base/sysfile.h"
#include "harness/base/textfile.h"
#include "harness/base/order.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/samples.h"

/* Repetitions of one test. */
struct test {
    const struct row *row; /* the first launch */
    int64_t n_tokens;      /* of each repetition */
    double *ns;            /* [n], malloc'ed */
    size_t n, cap;
};

static enum status add_sample(struct test *t, double ms, struct err *err)
{
    double *grown = array_grow(t->ns, t->n, &t->cap, sizeof *grown);

    if (!grown)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu samples", t->n + 1);
    t->ns = grown;
    t->ns[t->n++] = 1e6 * ms;
    return ST_OK;
}

/* A launch as repetitions: each pass over a prompt, all tokens of decoding. Where
 * its samples are not known their median stands for them. */
static enum status add_launch(struct test *t, const struct samples *samples,
                              const struct row *r, struct err *err)
{
    const struct launch_samples *l = samples_of(samples, r);
    const bool known = l && l->n == (size_t)r->n_samples;
    double sum = 0;
    enum status st = ST_OK;

    if (!known)
        return add_sample(t,
                          r->kind == POINT_PREFILL
                              ? r->lat_p50_ms
                              : r->lat_p50_ms * (double)r->n_samples,
                          err);
    for (size_t i = 0; i < l->n && st == ST_OK; i++) {
        sum += l->ms[i];
        if (r->kind == POINT_PREFILL)
            st = add_sample(t, l->ms[i], err);
    }
    return r->kind == POINT_PREFILL || st ? st : add_sample(t, sum, err);
}

/* ---- one line -------------------------------------------------------------------- */

struct moments {
    double mean, deviation; /* of a sample of that size; 0 of one */
};

static struct moments moments_of(const double *v, size_t n)
{
    struct moments m = {0, 0};
    double squares = 0;

    for (size_t i = 0; i < n; i++)
        m.mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - m.mean) * (v[i] - m.mean);
    if (n > 1)
        m.deviation = sqrt(squares / (double)(n - 1));
    return m;
}

/* For this program what "0.1.0 (792f2ee1a2)" has in brackets. For another one its
 * version, "abc1234 (build 7)", or its name where it said none: it tells their lines
 * apart. */
static void commit_of(const struct row *r, char *buf, size_t cap, int *number)
{
    const char *text = *r->engine ? r->engine_version : r->build;
    const char *open = strchr(text, '('), *end = open ? strchr(open, ')') : NULL;

    *number = 0;
    if (!*r->engine) {
        snprintf(buf, cap, "%.*s", end ? (int)(end - open - 1) : 0,
                 open ? open + 1 : "");
        return;
    }
    if (!*text)
        text = r->engine;
    else if (open && sscanf(open, "(build %9d)", number) != 1)
        *number = 0;
    snprintf(buf, cap, "%.*s", (int)strcspn(text, " "), text);
}

static void add_cpu(void *mask, int cpu)
{
    if (cpu < 64)
        *(uint64_t *)mask |= UINT64_C(1) << cpu;
}

/* CPUs as llama-bench's hexadecimal mask; "0x0": none is named. */
static void mask_of(const char *cpus, char *buf, size_t cap)
{
    uint64_t mask = 0;

    text_cpu_list(cpus, add_cpu, &mask);
    snprintf(buf, cap, "0x%llx", (unsigned long long)mask);
}

static json_int_t count(int64_t v)
{
    return v >= 0 ? v : 0;
}

static json_t *numbers(const double *v, size_t n, bool whole)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, whole ? json_integer((json_int_t)(v[i] + 0.5))
                                          : json_real(v[i]));
    return list;
}

/* Which program, machine, model and settings. */
static json_t *test_settings(const struct row *r, const char *cpu)
{
    char commit[64], mask[32], type[sizeof r->model + sizeof r->quant];
    int number;

    commit_of(r, commit, sizeof commit, &number);
    mask_of(r->cpus, mask, sizeof mask);
    snprintf(type, sizeof type, "%s %s", r->model, r->quant);
    return json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:i, "
        "s:s, s:s, s:i, s:s, s:i, s:b, s:b, s:s, s:b, s:b}",
        "build_commit", commit, "build_number", number, "cpu_info", cpu, "gpu_info", "",
        "backends", "CPU", "model_filename", r->model, "model_type", type, "model_size",
        count(r->file_bytes), "model_n_params", count(r->n_params), "n_batch",
        count(r->n_batch), "n_ubatch", count(r->n_batch), "n_threads",
        count(r->n_threads), "cpu_mask", mask, "cpu_strict", r->cpus[0] != '\0', "poll",
        0, "type_k", row_kv_type_text(r), "type_v", row_kv_type_text(r), "n_gpu_layers",
        0, "split_mode", "none", "main_gpu", 0, "no_kv_offload", 0, "flash_attn", 0,
        "tensor_split", "0.00", "use_mmap", r->residency == WEIGHTS_MMAP, "embeddings",
        0);
}

static enum status put_test(FILE *f, const struct test *t, const char *cpu,
                            struct err *err)
{
    const struct row *r = t->row;
    const bool is_prompt = r->kind == POINT_PREFILL;
    double *ts = malloc((t->n + 1) * sizeof *ts);
    json_t *line = ts ? test_settings(r, cpu) : NULL, *result = NULL;

    for (size_t i = 0; ts && i < t->n; i++)
        ts[i] = 1e9 * (double)t->n_tokens / t->ns[i];
    if (ts) {
        const struct moments ns = moments_of(t->ns, t->n), speed = moments_of(ts, t->n);

        result = json_pack(
            "{s:I, s:I, s:I, s:s, s:I, s:I, s:f, s:f, s:o, s:o}", "n_prompt",
            is_prompt ? (json_int_t)t->n_tokens : 0, "n_gen",
            is_prompt ? 0 : (json_int_t)t->n_tokens, "n_depth", count(r->ctx),
            "test_time", r->utc, "avg_ns", (json_int_t)(ns.mean + 0.5), "stddev_ns",
            (json_int_t)(ns.deviation + 0.5), "avg_ts", speed.mean, "stddev_ts",
            speed.deviation, "samples_ns", numbers(t->ns, t->n, true), "samples_ts",
            numbers(ts, t->n, false));
    }
    const bool failed = !line || !result || json_object_update(line, result);
    if (!failed) {
        textfile_put_json(f, line, JSON_COMPACT | JSON_REAL_PRECISION(9));
        fputc('\n', f);
    }
    json_decref(line);
    json_decref(result);
    free(ts);
    return failed ? err_set(err, ST_NO_MEMORY, "no memory for a test as JSON") : ST_OK;
}

/* ---- rows as tests --------------------------------------------------------------- */

static int64_t tokens_of(const struct row *r)
{
    return r->kind == POINT_PREFILL ? r->n_prompt : r->n_samples;
}

/* Points together, of each the most trusted launches first. */
static int by_test(const void *x, const void *y)
{
    const struct row *a = *(const struct row *const *)x;
    const struct row *b = *(const struct row *const *)y;

    ORDER_BY(row_compare(a, b, FIELD_MODEL));
    ORDER_BY(row_compare(a, b, FIELD_SETTING));
    ORDER_BY(order_ints(row_trust(b), row_trust(a)));
    ORDER_BY(order_ints(tokens_of(a), tokens_of(b)));
    return (a > b) - (a < b);
}

static bool same_point(const struct row *a, const struct row *b)
{
    return !row_compare(a, b, FIELD_MODEL) && !row_compare(a, b, FIELD_SETTING);
}

/* Whether it can be a test, which is of one sequence alone. */
static bool is_test(const struct row *r)
{
    return (r->kind == POINT_DECODE || r->kind == POINT_PREFILL) && row_is_of_one(r) &&
           row_trust(r) != ROW_FAILED && r->lat_p50_ms > 0 && r->n_samples > 0 &&
           tokens_of(r) > 0;
}

/* sorted[n], of which launches that are less trusted than the point's best are left
 * out. */
static enum status put_tests(FILE *f, const char *cpu, const struct samples *samples,
                             const struct row *const *sorted, size_t n,
                             size_t *n_left_out, struct err *err)
{
    const struct row *best = NULL; /* the first launch of the point */
    struct test t = {.row = NULL};
    enum status st = ST_OK;

    for (size_t i = 0; i < n && st == ST_OK; i++) {
        const struct row *r = sorted[i];

        if (!best || !same_point(best, r))
            best = r;
        if (row_trust(r) != row_trust(best)) {
            ++*n_left_out;
            continue;
        }
        if (t.n && (!same_point(t.row, r) || t.n_tokens != tokens_of(r))) {
            st = put_test(f, &t, cpu, err);
            t.n = 0;
        }
        if (t.n == 0)
            t.row = r;
        t.n_tokens = tokens_of(r);
        if (st == ST_OK)
            st = add_launch(&t, samples, r, err);
    }
    if (t.n && st == ST_OK)
        st = put_test(f, &t, cpu, err);
    free(t.ns);
    return st;
}

enum status export_llama_bench(FILE *f, const struct result_part *part,
                               size_t *n_left_out, struct err *err)
{
    const struct row **sorted = malloc((part->n + 1) * sizeof *sorted);
    struct samples samples = {0};
    size_t n = 0;
    enum status st =
        sorted ? samples_read(&samples, part->run->dir, err)
               : err_set(err, ST_NO_MEMORY, "no memory to sort %zu rows", part->n);

    for (size_t i = 0; i < part->n && st == ST_OK; i++)
        if (is_test(&part->rows[i]))
            sorted[n++] = &part->rows[i];
        else
            ++*n_left_out;
    if (st == ST_OK) {
        qsort(sorted, n, sizeof *sorted, by_test);
        st = put_tests(f, part->run->about.cpu_model, &samples, sorted, n, n_left_out,
                       err);
    }
    samples_free(&samples);
    free(sorted);
    return st;
}
