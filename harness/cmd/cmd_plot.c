/* SPDX-License-Identifier: MIT
 *
 * cmd_plot.c - `bench plot`: draw the charts of a sweep again
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/show/report/report.h"
#include "harness/judge/users/users.h"

static const struct opt_usage usage = {
    .synopsis = "plot PATH [-o DIR]",
    .about =
        "Draws the charts of the rows at PATH. PATH is a directory of `bench sweep`, "
        "which receives them, or a folder of such directories, a database of `bench "
        "history` or a CSV, with -o DIR.\n\n"
        "A sweep has charts of decode speed against threads, context depth, number of "
        "sequences and memory limit with its roof, of prefill speed, and of the memory "
        "needed and charged. With a samples.csv there are token times and their course "
        "over the run; with a quality.csv (`bench quality -o DIR`), speed against "
        "divergence from the reference. Results of `bench load -o DIR` have throughput "
        "against latency, throughput by number of users, and times to the first "
        "token.\n\n"
        "Each chart is an SVG and a PNG next to its CSV and gnuplot script; `gnuplot "
        "decode_context.gp` in DIR redraws it after an edit. Without gnuplot the same "
        "charts are drawn as SVG only.",
    .example = "bench plot results/myhost-20260115T101500Z\n"
               "bench plot results.db -o charts",
    .no_kernels = true,
};

/* Charts of measured speeds and those of servers: nothing to draw of both is an error.
 */
static enum status draw_all(const struct result_part *part, const char *dir,
                            const char *again, struct err *err)
{
    bool any = false;
    enum status st = users_charts(dir, again, part, &any, err);

    if (st == ST_OK)
        st = report_charts(dir, again, part, err);
    if (st == ST_CHECK && any) {
        *err = (struct err)ERR_INIT;
        return ST_OK;
    }
    return st;
}

/* Into out, or where that is NULL into the sweep's directory that path is; which it is
 * into *dir. */
static enum status plot(const struct result_set *set, const char *path, const char *out,
                        const char **dir, struct err *err)
{
    const struct result_part *part = &set->parts[0];
    char again[4096] = "bench plot";

    *dir = out ? out : path;
    if (!out && (!part->run->dir || strcmp(part->run->dir, path) != 0))
        return err_set(err, ST_USAGE,
                       "%s is no directory of a sweep, so there is no place for its "
                       "charts; name a folder with -o DIR",
                       path);
    if (out && (report_charts_check(&set->files, out, err) ||
                users_charts_check(&set->files, out, err) || dirs_make(out, err)))
        return err->code;
    shell_word_append(again, sizeof again, path);
    text_append(again, sizeof again, " -o");
    shell_word_append(again, sizeof again, *dir);
    return draw_all(part, *dir, out ? again : NULL, err);
}

int cmd_plot(int argc, char **argv)
{
    const char *out = NULL, *dir = NULL;
    const struct opt opts[] = {
        OPT_STR('o', "output", &out, "DIR",
                "folder for the charts (default: PATH, if it is a sweep's directory)"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct result_set set;
    struct opt_args args;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (args.n != 1) {
        err_set(&err, ST_USAGE,
                "plot takes one directory, database or CSV with rows, but %d arguments "
                "were given; see `bench plot --help`",
                args.n);
        return cmd_end(&err);
    }
    interrupt_catch(); /* what is half drawn is removed */
    if (result_set_open(&set, args.v[0], RESULT_LAST, &err) == ST_OK &&
        plot(&set, args.v[0], out, &dir, &err) == ST_OK)
        printf("charts are in %s\n", format_path(dir).text);
    result_set_free(&set);
    return cmd_end(&err);
}
