/* SPDX-License-Identifier: MIT
 *
 * cmd_compare.c - `bench compare`: which of several machines to take
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/choice.h"
#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/parse.h"
#include "harness/judge/compare/compare.h"
#include "harness/machine/topology.h"
#include "harness/rows/result_set.h"

static const struct opt_usage usage = {
    .synopsis = "compare PATH... [--price NAME=X] [--min-tps X] [--ctx N] [--model M]",
    .about =
        "Compares machines by a sweep of each (directories, or the latest rows of each "
        "machine in a database of `bench history`): the setting that `bench recommend` "
        "chooses for the same limits, its speed with its 95 % interval, the time to "
        "the first token, the price of a million tokens read and written, a ranking "
        "with the probability of being first, and what would change it. Prices per "
        "hour come from --price, or from --prices in the format of "
        "configs/prices.yaml; without them machines are ranked by speed. A PATH "
        "without rows of results is skipped. A machine is assumed to write one "
        "sequence, during --utilisation of the time. Differences in builds and "
        "settings are named. Rows of `bench load` are compared by what each server "
        "carries, and its tok/s at the most users that all were measured with. With -o "
        "cost is drawn against speed.\n"
        "\n"
        "Exit code 1: no machine has a setting that qualifies.",
    .example = "bench compare results/a results/b --price a=0.06 --price b=0.08\n"
               "bench compare results/* --utilisation 25% -o charts",
    .no_kernels = true,
};

struct settings {
    struct compare_params p;
    struct str_list price;
    int by; /* enum compare_by; negative: not given */
    const char *prices, *utilisation, *out;
    bool json, markdown;
};

static enum status parse(struct settings *s, int argc, char **argv,
                         struct opt_args *args, struct err *err)
{
    struct recommend_params *w = &s->p.wishes;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STRS(0, "price", &s->price, "NAME=X", "price per hour, as zen5=0.06 or zen*=0.06EUR; may be repeated"),
        OPT_STR(0, "prices", &s->prices, "FILE", "a file of prices per hour"),
        OPT_STR(0, "utilisation", &s->utilisation, "P", "share of the time in which the machine works (default 100%)"),
        OPT_CHOICE(0, "by", &s->by, "WHAT", "cost, speed or ttft (default: cost, if all have prices)", &choices_compare_by),
        RECOMMEND_OPTS(*w),
        OPT_DOUBLE(0, "cpus-quota", &w->quota_cpus, "CPUS", "rows with this CPU quota (default: without one)", 0.01, TOPO_MAX_CPUS),
        OPT_STR(0, "engine", &s->p.engine, "NAME", "only rows of this program (slmbench: ours)"),
        OPT_STR(0, "model", &w->model, "M", "the model to compare by"),
        OPT_STR('o', "output", &s->out, "DIR", "write the chart there"),
        OPT_FLAG(0, "markdown", &s->markdown, "print Markdown"),
        OPT_FLAG(0, "json", &s->json, "print JSON"),
        OPT_END,
    };
    /* clang-format on */
    enum status st = opt_parse(args, argc, argv, opts, &usage, err);

    if (st || args->help)
        return st;
    if (!args->n)
        return err_set(
            err, ST_USAGE,
            "name the directories of sweeps, one for each machine, or a database; see "
            "`bench compare --help`");
    s->p.by_given = s->by >= 0;
    if (s->p.by_given)
        s->p.by = (enum compare_by)s->by;
    if (s->utilisation)
        parse_percent(s->utilisation, "--utilisation", 1e-6, 1, &s->p.utilisation, err);
    return err->code;
}

static enum status draw(const struct comparison *c, const struct settings *s,
                        struct err *err)
{
    bool drawn = false;
    enum status st = dirs_make(s->out, err);

    if (st == ST_OK)
        st = compare_chart(c, s->out, "bench compare with -o", &drawn, err);
    if (st == ST_OK)
        fprintf(stderr,
                drawn ? "the chart is %s/" COMPARE_CHART ".svg\n"
                      : "there is no chart in %s: no machine has a price\n",
                format_path(s->out).text);
    return st;
}

/* A price with a mistyped name would be left out of the ranking unnoticed. */
static enum status check_prices(const struct comparison *c, const struct settings *s,
                                struct err *err)
{
    const char *names[COMPARE_MAX_MACHINES];

    for (size_t i = 0; i < c->n; i++)
        names[i] = c->v[i].name;
    return prices_check_machines((const char *const *)s->price.v, s->price.n, names,
                                 c->n, err);
}

static enum status run(struct settings *s, const struct opt_args *args, struct err *err)
{
    const bool given = s->price.n || s->prices;
    char from[256];
    struct prices prices = {NULL, 0};
    struct comparison *c = calloc(1, sizeof *c);
    const size_t n = result_paths_keep(args->v, (size_t)args->n);
    enum status st = c ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory to compare");

    snprintf(from, sizeof from, "%.200s",
             s->prices ? format_path(s->prices).text
             : given   ? "--price"
                       : "");
    if (st == ST_OK && s->prices)
        st = prices_load(&prices, s->prices, err);
    if (st == ST_OK && s->price.n)
        st = prices_give(&prices, (const char *const *)s->price.v, s->price.n, err);
    s->p.prices = &prices;
    s->p.prices_from = from;
    if (st == ST_OK)
        st = compare_make(c, (const char *const *)args->v, n, &s->p, err);
    if (st == ST_OK && !c->n && given)
        st = err_set(err, ST_USAGE,
                     "these are rows of `bench load` alone: prices are for machines "
                     "with a sweep");
    if (st == ST_OK && c->n)
        st = check_prices(c, s, err);
    if (st == ST_OK && s->json)
        st = cmd_print_json(compare_json(c), 6, err);
    else if (st == ST_OK && s->markdown)
        compare_print_markdown(stdout, c);
    else if (st == ST_OK)
        compare_print(stdout, c);
    if (st == ST_OK && s->out)
        st = draw(c, s, err);
    if (c)
        compare_free(c);
    free(c);
    prices_free(&prices);
    return st;
}

int cmd_compare(int argc, char **argv)
{
    struct settings s = {.p = {.wishes = {.ctx = -1}, .utilisation = 1}, .by = -1};
    struct err err = ERR_INIT;
    struct opt_args args = {.help = false};

    interrupt_catch();
    if (parse(&s, argc, argv, &args, &err) == ST_OK && !args.help)
        run(&s, &args, &err);
    free(s.price.v);
    return cmd_end(&err);
}
