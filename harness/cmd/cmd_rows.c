/* SPDX-License-Identifier: MIT
 *
 * cmd_rows.c - `bench rows`: rows of results for other tools
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/textfile.h"
#include "harness/rows/result_set.h"
#include "harness/show/export/export.h"

static const struct opt_usage usage = {
    .synopsis = "rows PATH... [--format F] [--columns A,B] [--launches] [-o FILE]",
    .about =
        "Prints the rows of directories of `bench sweep`, of a database of `bench "
        "history`, or of a CSV in a format that other tools read:\n"
        "  markdown           a table for a page or an issue (the default)\n"
        "  csv                the columns of sweep.csv\n"
        "  jsonl              a JSON object with these columns per line\n"
        "  llama-bench-jsonl  the columns and meanings of `llama-bench -o jsonl`\n"
        "  openmetrics        gauges for Prometheus and node_exporter\n\n"
        "A row is a point with the combined figures of its launches; with --launches "
        "it is one launch as it was stored. `bench fields` explains the columns.",
    .example = "bench rows results/myhost-20260115T101500Z\n"
               "bench rows results.db --format csv --columns model,quant,tok_per_s",
    .no_kernels = true,
};

struct request {
    struct export_params params;
    struct result_set *sets; /* [n_sets] */
    size_t n_sets;
    size_t n_left_out;
    struct err err;
};

static void write_rows(FILE *f, const void *arg)
{
    struct request *q = (struct request *)(uintptr_t)arg;

    export_write(f, q->sets, q->n_sets, &q->params, &q->n_left_out, &q->err);
}

static enum status run(struct request *q, const struct opt_args *args, const char *out,
                       struct err *err)
{
    const size_t n = result_paths_keep(args->v, (size_t)args->n);
    enum status st = ST_OK;

    q->sets = calloc(n + 1, sizeof *q->sets);
    if (!q->sets)
        st = err_set(err, ST_NO_MEMORY, "no memory for %d sets of rows", args->n);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = result_set_open(&q->sets[q->n_sets++], args->v[i], RESULT_BY_RUN, err);
    for (size_t i = 0; i < q->n_sets && st == ST_OK; i++)
        st = path_list_check_output(&q->sets[i].files, out, err);
    if (st == ST_OK)
        st = textfile_write(out, write_rows, q, err);
    if (st == ST_OK && q->err.code)
        st = err_set(err, q->err.code, "%s", q->err.msg);
    if (st == ST_OK && q->n_left_out)
        fprintf(stderr,
                "bench: %zu row%s left out: they have no figure, are of speculative "
                "decoding, of several sequences or of a prompt next to a sequence, or "
                "are disturbed while another launch was not\n",
                q->n_left_out, q->n_left_out == 1 ? " is" : "s are");
    return st;
}

int cmd_rows(int argc, char **argv)
{
    struct request q = {.params = {.format = EXPORT_MARKDOWN}, .err = ERR_INIT};
    const char *columns = NULL, *out = "-";
    const struct opt opts[] = {
        OPT_CHOICE('f', "format", &q.params.format, "F",
                   "format, see above (default: markdown)", &choices_export),
        OPT_STR(0, "columns", &columns, "A,B", "only these columns of `bench fields`"),
        OPT_FLAG(0, "launches", &q.params.launches, "a row for each launch"),
        OPT_STR('o', "output", &out, "FILE", "output file (default: standard output)"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct opt_args args;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (!args.n)
        err_set(&err, ST_USAGE,
                "rows takes directories with a sweep.csv, or a database of `bench "
                "history`; see `bench rows --help`");
    else if (columns)
        export_columns_parse(&q.params, columns, &err);
    if (!err.code && q.params.format == EXPORT_LLAMA_BENCH_JSONL &&
        (columns || q.params.launches))
        err_set(&err, ST_USAGE,
                "--format llama-bench-jsonl has columns of its own, and launches as "
                "repetitions; leave out --columns and --launches");
    if (!err.code && q.params.format == EXPORT_OPENMETRICS &&
        (columns || q.params.launches))
        err_set(&err, ST_USAGE,
                "--format openmetrics has figures of its own, of points; leave out "
                "--columns and --launches");
    if (!err.code)
        run(&q, &args, out, &err);
    for (size_t i = 0; i < q.n_sets; i++)
        result_set_free(&q.sets[i]);
    free(q.sets);
    return cmd_end(&err);
}
