/* SPDX-License-Identifier: MIT
 *
 * cmd_plot.c - `bench plot`: draw the charts of a sweep again
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/report/report.h"

static const struct opt_usage usage = {
    .synopsis = "plot DIR",
    .about =
        "Draws the charts of a sweep from DIR/sweep.csv: decode speed against "
        "threads, context depth and the number of sequences with its roof, prefill "
        "speed, the "
        "memory needed and charged with its limit, the share of the roof by threads, "
        "token times and their course over the run and, with DIR/quality.csv "
        "(`bench quality -o "
        "DIR`), speed against divergence from the reference. Each chart is an SVG "
        "and a PNG beside its CSV and gnuplot script; `gnuplot decode_context.gp` "
        "in DIR redraws it after an edit. Requires gnuplot.",
    .example = "bench plot results/myhost-20260115T101500Z",
    .no_kernels = true,
};

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
    if (report_charts(args.v[0], &err))
        return cmd_end(&err);
    printf("charts are in %s\n", format_path(args.v[0]).text);
    return 0;
}
