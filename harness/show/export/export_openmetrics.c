/* SPDX-License-Identifier: MIT
 *
 * export_openmetrics.c - rows as a file of metrics
 *
 * A family per column of the table below, a sample per point that has the figure. Rows
 * without a figure are in slmbench_row_good alone, which is 0 for them and for partial
 * and disturbed ones.
 */
#include "harness/show/export/export.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "harness/base/openmetrics.h"
#include "harness/rows/report_rows.h"

/* A column as a family: its name, the factor that makes it of the unit in the name. */
static const struct family {
    const char *column, *name;
    double factor;
    const char *help;
} families[] = {
    {"tok_per_s", "tokens_per_second", 1,
     "Median speed, all sequences or users together."},
    {"tok_per_s_lo", "tokens_per_second_low", 1, "Lower end of its 95 % interval."},
    {"tok_per_s_hi", "tokens_per_second_high", 1, "Upper end of its 95 % interval."},
    {"mbu", "roof_ratio", 1, "Share of the machine's limit that the speed reaches."},
    {"lat_p50_ms", "step_p50_seconds", 1e-3,
     "Time of a token, or of a pass over the prompt: median."},
    {"lat_p95_ms", "step_p95_seconds", 1e-3, "The 95th percentile of that time."},
    {"lat_p99_ms", "step_p99_seconds", 1e-3, "The 99th percentile of that time."},
    {"load_s", "load_seconds", 1, "Time to open the model and read it in."},
    {"ttft_warm_s", "prompt_seconds", 1,
     "Time to first token after a prompt, the model loaded."},
    {"joules_per_token", "token_energy_joules", 1, "Energy of all packages per token."},
    {"roof_gbps", "roof_bytes_per_second", 1e9, "Read bandwidth of memory."},
    {"req_per_s", "requests_per_second", 1, "Requests sent to the server."},
    {"n_requests", "requests", 1, "Requests measured, failed ones included."},
    {"n_failed", "requests_failed", 1, "Failed requests among them."},
    {"ttft_p50_s", "ttft_p50_seconds", 1, "Time to first token of requests: median."},
    {"ttft_p90_s", "ttft_p90_seconds", 1, "The 90th percentile of that time."},
    {"ttft_p99_s", "ttft_p99_seconds", 1, "The 99th percentile of that time."},
    {"tpot_p50_ms", "tpot_p50_seconds", 1e-3, "Time per further token: median."},
    {"tpot_p90_ms", "tpot_p90_seconds", 1e-3, "The 90th percentile of that time."},
    {"tpot_p99_ms", "tpot_p99_seconds", 1e-3, "The 99th percentile of that time."},
    {"e2e_p50_s", "request_p50_seconds", 1, "Time of a whole request: median."},
    {"e2e_p90_s", "request_p90_seconds", 1, "The 90th percentile of that time."},
    {"e2e_p99_s", "request_p99_seconds", 1, "The 99th percentile of that time."},
    {"slo_met_pct", "slo_met_ratio", 1e-2, "Share of requests within the limits."},
};

struct source {
    const char *name; /* "": there is only one */
    struct report_rows rows;
};

#define N_LABELS 9

/* Labels that distinguish the points of a file, and those that people group by. */
static void put_sample(FILE *f, const char *name, const struct source *s,
                       const struct row *r, double figure)
{
    static const char *const names[N_LABELS][2] = {
        {"model", "model"},     {"quant", "quant"},       {"kind", "kind"},
        {"engine", "engine"},   {"n_threads", "threads"}, {"ctx", "depth"},
        {"n_prompt", "prompt"}, {"n_users", "users"},     {"point", "point"}};
    char text[N_LABELS][ROW_CELL_MAX];
    struct openmetrics_label labels[N_LABELS + 1] = {{"source", s->name}};

    for (size_t i = 0; i < N_LABELS; i++)
        labels[i + 1] = (struct openmetrics_label){
            names[i][1], row_cell(r, row_field(names[i][0]), text[i], sizeof text[i])};
    openmetrics_sample(f, name, labels, N_LABELS + 1, figure);
}

/* NAN: it is not known. */
static double number(const struct row *r, const char *column)
{
    char text[ROW_CELL_MAX], *end;
    const char *cell = row_cell(r, row_field(column), text, sizeof text);
    const double v = strtod(cell, &end);

    return *cell && !*end ? v : NAN;
}

static double utc_seconds(const struct row *r)
{
    struct tm tm = {0};

    return strptime(r->utc, "%Y-%m-%dT%H:%M:%SZ", &tm) ? (double)timegm(&tm) : NAN;
}

static double is_good(const struct row *r)
{
    return row_trust(r) == ROW_GOOD;
}

static double needed_bytes(const struct row *r)
{
    const int64_t bytes = row_needed_bytes(r);

    return bytes > 0 ? (double)bytes : NAN;
}

/* One family, by a column or by what a function makes of a row. */
static void put_family(FILE *f, const struct source *sources, size_t n,
                       const struct family *family,
                       double (*figure)(const struct row *), bool failed_too)
{
    bool has_head = false;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sources[i].rows.n; k++) {
            const struct row *r = sources[i].rows.v[k];
            double v = NAN;

            if (failed_too || row_trust(r) != ROW_FAILED)
                v = figure ? figure(r) : family->factor * number(r, family->column);
            if (!isfinite(v))
                continue;
            if (!has_head)
                openmetrics_head(f, family->name, family->help);
            has_head = true;
            put_sample(f, family->name, &sources[i], r, v);
        }
}

static void put_all(FILE *f, const struct source *sources, size_t n)
{
    static const struct family memory = {.name = "memory_bytes",
                                         .help = "Memory that stays resident."},
                               good = {.name = "row_good",
                                       .help = "1: complete and undisturbed; 0: "
                                               "disturbed, partial or failed."},
                               when = {.name = "measured_timestamp_seconds",
                                       .help = "When the point began."};

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        put_family(f, sources, n, &families[i], NULL, false);
    put_family(f, sources, n, &memory, needed_bytes, false);
    put_family(f, sources, n, &good, is_good, true);
    put_family(f, sources, n, &when, utc_seconds, true);
    openmetrics_finish(f);
}

enum status export_openmetrics(FILE *f, const struct result_set *sets, size_t n_sets,
                               struct err *err)
{
    size_t n_parts = 0, n = 0;
    enum status st = ST_OK;

    for (size_t i = 0; i < n_sets; i++)
        n_parts += sets[i].n_parts;
    struct source *sources = calloc(n_parts + 1, sizeof *sources);
    if (!sources)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu sources", n_parts);
    for (size_t i = 0; i < n_sets; i++)
        for (size_t k = 0; k < sets[i].n_parts && st == ST_OK; k++) {
            const struct result_part *part = &sets[i].parts[k];

            sources[n].name = n_parts > 1 ? part->name : "";
            st = report_rows_pick(&sources[n].rows, part->rows, part->n, err);
            n += st == ST_OK;
        }
    if (st == ST_OK)
        put_all(f, sources, n);
    for (size_t i = 0; i < n; i++)
        report_rows_free(&sources[i].rows);
    free(sources);
    return st;
}
