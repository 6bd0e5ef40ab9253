/* SPDX-License-Identifier: MIT
 *
 * cmd_report.c - `bench report`: results as one HTML page
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/rows/result_set.h"
#include "harness/show/page/page.h"

static const struct opt_usage usage = {
    .synopsis = "report PATH... [-o FILE] [--ctx N] [--min-tps X] [--max-ttft S]",
    .about =
        "Writes the rows at PATH... as one HTML page: machine and limits, the "
        "recommendation with its reasons, charts, and every row with its validity "
        "and the command that repeats it; several machines side by side. A PATH is a "
        "directory of `bench sweep`, a folder of such directories, a database of "
        "`bench history` or a CSV; for each machine its latest rows count. The page "
        "needs no network and no other file, follows the reader's light or dark "
        "setting, and fits a phone. The recommendation is that of `bench "
        "recommend` with the same options. Token times are drawn if a directory has a "
        "samples.csv. From results of `bench load -o DIR` the page shows how many "
        "users each server can serve.",
    .example = "bench report results/myhost-20260115T101500Z -o report.html\n"
               "bench report results/* --min-tps 5",
    .no_kernels = true,
};

int cmd_report(int argc, char **argv)
{
    struct page_params p = {.out = "report.html", .wishes = {.ctx = -1}};
    struct recommend_params *w = &p.wishes;
    const struct opt opts[] = {
        OPT_STR('o', "output", &p.out, "FILE", "the page (default: report.html)"),
        OPT_STR(0, "title", &p.title, "TEXT", "title of the page"),
        RECOMMEND_OPTS(*w),
        OPT_STR(0, "model", &w->model, "M", "recommend only this model"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct opt_args args;
    size_t bytes = 0, n_machines = 0;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (!args.n) {
        err_set(
            &err, ST_USAGE,
            "report takes directories with a sweep.csv, databases or CSVs; see `bench "
            "report --help`");
        return cmd_end(&err);
    }
    p.paths = (const char *const *)args.v;
    p.n = result_paths_keep(args.v, (size_t)args.n);
    if (page_make(&p, &bytes, &n_machines, &err) == ST_OK && strcmp(p.out, "-") != 0)
        printf("%s: %s, %zu machine%s\n", format_path(p.out).text,
               bytes_text(bytes).text, n_machines, plural((long long)n_machines, "s"));
    return cmd_end(&err);
}
