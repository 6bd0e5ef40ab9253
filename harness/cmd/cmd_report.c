/* SPDX-License-Identifier: MIT
 *
 * cmd_report.c - `bench report`: results as one HTML page
 */
#include "harness/cmd/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/options.h"
#include "harness/page/page.h"
#include "harness/settings/setting.h"

static const struct opt_usage usage = {
    .synopsis = "report DIR... [-o FILE] [--ctx N] [--min-tps X] [--max-ttft S]",
    .about =
        "Writes the sweeps in DIR... as one HTML page: machine and limits, the "
        "recommendation with its reasons, charts, and every row with its doubt and the "
        "command that repeats it; several machines side by side. The page needs no "
        "network and no other file, is light or dark as the reader's system is, and "
        "fits a phone. The recommendation is that of `bench recommend` with the same "
        "options. Times of tokens are drawn where DIR has its samples.csv. Of `bench "
        "load -o DIR` the page says how many users servers carry.",
    .example = "bench report results/myhost-20260115T101500Z -o report.html\n"
               "bench report results/* --min-tps 5",
    .no_kernels = true,
};

int cmd_report(int argc, char **argv)
{
    struct page_params p = {.out = "report.html", .wishes = {.ctx = -1}};
    struct recommend_params *w = &p.wishes;
    const char *mem = NULL;
    const struct opt opts[] = {
        OPT_STR('o', "output", &p.out, "FILE", "the page (default: report.html)"),
        OPT_STR(0, "title", &p.title, "TEXT", "its title"),
        OPT_DOUBLE(0, "min-tps", &w->min_tps, "X", "least tokens per second", 0, 1e9),
        OPT_DOUBLE(0, "max-ttft", &w->max_ttft_s, "S",
                   "most seconds to the first token, the model loaded", 0, 1e9),
        OPT_INT(0, "prompt", &w->n_prompt, "N",
                "length of the prompt (default: the longest measured)", 1, INT_MAX),
        OPT_INT(0, "ctx", &w->ctx, "N", "context depth (default: the deepest measured)",
                0, INT_MAX),
        OPT_STR(0, "mem", &mem, "LIMIT",
                "memory limit, as 6G (default: that of each point)"),
        OPT_INT(0, "max-threads", &w->max_threads, "N",
                "available CPUs (default: as in each machine.json)", 1, INT_MAX),
        OPT_DOUBLE(0, "max-kl", &w->max_kl, "X", "greatest divergence in nats", 1e-9,
                   1e9),
        OPT_STR(0, "model", &w->model, "M", "recommend only this model"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct opt_args args;
    size_t bytes = 0;
    char size[32];

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (!args.n) {
        err_set(&err, ST_USAGE,
                "report takes directories with a sweep.csv; see `bench report --help`");
        return cmd_end(&err);
    }
    if (mem && setting_parse(SETTING_mem, mem, "--mem", &w->mem_limit,
                             sizeof w->mem_limit, &err))
        return cmd_end(&err);
    p.dirs = (const char *const *)args.v;
    p.n = (size_t)args.n;
    if (page_make(&p, &bytes, &err) == ST_OK && strcmp(p.out, "-") != 0)
        printf("%s: %s, %zu machine%s\n", format_path(p.out).text,
               format_bytes(size, sizeof size, bytes), p.n,
               plural((long long)p.n, "s"));
    return cmd_end(&err);
}
