/* SPDX-License-Identifier: MIT
 *
 * cmd_plot.c - `bench plot`: draw the charts of a sweep again
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/report/report.h"
#include "harness/users/users.h"

static const struct opt_usage usage = {
    .synopsis = "plot DIR",
    .about =
        "Draws the charts of a sweep from DIR/sweep.csv: decode speed against "
        "threads, context depth and the number of sequences with its roof, prefill "
        "speed, the "
        "memory needed and charged with its limit, the share of the roof by threads, "
        "token times and their course over the run and, with DIR/quality.csv "
        "(`bench quality -o "
        "DIR`), speed against divergence from the reference. From results of `bench "
        "load -o DIR`: throughput against latency, throughput by number of users, and "
        "times to the "
        "first token. Each chart is an SVG "
        "and a PNG next to its CSV and gnuplot script; `gnuplot decode_context.gp` "
        "in DIR redraws it after an edit. Without gnuplot the same charts are drawn "
        "as SVG only.",
    .example = "bench plot results/myhost-20260115T101500Z",
    .no_kernels = true,
};

/* Charts of measured speeds and those of servers: nothing to draw of both is an error.
 */
static enum status draw_all(const char *dir, struct err *err)
{
    struct row *rows = NULL;
    size_t n_rows = 0;
    bool any = false;
    enum status st = report_rows_read(dir, &rows, &n_rows, err);

    if (st == ST_OK)
        st = users_charts(dir, rows, n_rows, &any, err);
    free(rows);
    if (st == ST_OK)
        st = report_charts(dir, err);
    if (st == ST_CHECK && any) {
        *err = (struct err)ERR_INIT;
        return ST_OK;
    }
    return st;
}

int cmd_plot(int argc, char **argv)
{
    const struct opt opts[] = {OPT_END};
    struct err err = ERR_INIT;
    struct opt_args args;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (args.n != 1) {
        err_set(&err, ST_USAGE,
                "plot takes one directory with a sweep.csv, but %d arguments were "
                "given; see `bench plot --help`",
                args.n);
        return cmd_end(&err);
    }
    interrupt_catch(); /* what is half drawn is removed */
    if (draw_all(args.v[0], &err))
        return cmd_end(&err);
    printf("charts are in %s\n", format_path(args.v[0]).text);
    return 0;
}
