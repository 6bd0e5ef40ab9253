/* SPDX-License-Identifier: MIT
 *
 * cmd_topo.c - `bench topo`: the machine as it matters for running a model
 */
#include "harness/cmd/cmd.h"

#include <stdlib.h>

#include "harness/base/dirs.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/machine/cache.h"
#include "harness/machine/cores.h"
#include "harness/machine/measuring.h"
#include "harness/show/report/report.h"

#define MEASURE_BUDGET_S 5

/* map: NULL where nothing was measured. */
static enum status print_json(const struct topology *t, const struct cores_map *map,
                              struct err *err)
{
    json_t *facts = topology_json(t);

    json_object_set_new(facts, "cores_measured", map ? cores_json(map) : json_null());
    return cmd_print_json(facts, 0, err);
}

/* *map is the caller's to free. */
static enum status measure_cores(struct cores_map **map, struct topology *t,
                                 struct err *err)
{
    enum status st;

    *map = calloc(1, sizeof **map);
    if (!*map)
        return err_set(err, ST_NO_MEMORY, "no memory to compare CPUs");
    st = cores_measure(*map, t, MEASURE_BUDGET_S, err);
    if (st == ST_OK)
        cores_apply(*map, t);
    return st;
}

/* The curve of the caches in dir, which is made; "": none. */
static enum status draw_cache(const struct topology *t, const char *dir,
                              struct err *err)
{
    struct cache_curve c;
    struct err why = ERR_INIT;
    enum status st;

    if (!*dir)
        return ST_OK;
    st = dirs_make(dir, err);
    if (st == ST_OK)
        st = cache_curve_measure(&c, t, MEASURE_BUDGET_S, err);
    if (st == ST_OK && cache_curve_chart(&c, t, dir, &why))
        message_print(why.msg);
    return st;
}

struct wanted {
    const char *root, *dir;
    bool measured, json;
};

static enum status measure(struct topology *t, const struct wanted *w,
                           struct cores_map **map, struct err *err)
{
    enum status st = w->measured ? measuring_begin(err) : ST_OK;

    if (st == ST_OK && w->measured && t->n_allowed > 1)
        st = measure_cores(map, t, err);
    /* Without waiting: a description is wanted of a machine that measures, too, and the
     * reported size is in it then. */
    if (st == ST_OK && !*w->root && measuring_try())
        st = cache_find(t, err);
    return st ? st : draw_cache(t, w->dir, err);
}

static enum status show(const struct wanted *w, struct err *err)
{
    struct topology *t = NULL;
    struct cores_map *map = NULL;
    enum status st = topology_open(&t, w->root, err);

    if (st == ST_OK)
        st = measure(t, w, &map, err);
    if (st == ST_OK && w->json)
        st = print_json(t, map, err);
    else if (st == ST_OK)
        report_machine(t, map, w->measured, w->dir);
    free(map);
    free(t);
    return st;
}

int cmd_topo(int argc, char **argv)
{
    struct wanted w = {.root = "", .dir = ""};
    const struct opt opts[] = {
        OPT_FLAG(0, "json", &w.json, "print JSON"),
        OPT_FLAG(0, "measure", &w.measured,
                 "measure which CPUs share a core; takes seconds"),
        OPT_STR('o', "output", &w.dir, "DIR",
                "with --measure: bandwidth by working set as CSV and chart"),
        OPT_STR(0, "root", &w.root, "DIR", "directory with recorded proc/ and sys/"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "topo [--measure [-o DIR]] [--json] [--root DIR]",
        .about =
            "Prints sockets, cores, hyperthreads, caches, usable instruction sets, "
            "memory and limits, and what they mean for running a model. How much of "
            "the last-level cache serves this machine is measured in 0.3 s, unless "
            "another program is measuring.\n\nA virtual machine may present "
            "hyperthreads as cores. --measure runs arithmetic on one CPU, on another "
            "and on both: two cores do twice the work, two hyperthreads of one core "
            "little more than one. With -o it also reads working sets of 1 MiB and "
            "more again and again, and after they were evicted, with one thread and "
            "all: DIR receives the bandwidths and a chart with the reported and the "
            "measured size of the cache (cache.csv, .svg, .png).\n\n--root reads a "
            "copy of another machine's /proc and /sys.",
        .example = "bench topo\nbench topo --measure -o caches\nbench topo --json | jq "
                   ".threads_default",
        .no_arguments = "see `bench topo --help`",
    };
    struct opt_args args;
    struct err err = ERR_INIT;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (*w.dir && !w.measured) {
        err_set(&err, ST_USAGE,
                "-o %s is for what --measure reads; give both, or neither", w.dir);
        return cmd_end(&err);
    }
    if (w.measured && *w.root) {
        err_set(&err, ST_USAGE,
                "--measure runs on this machine, and --root %s is the record of "
                "another; leave one out",
                w.root);
        return cmd_end(&err);
    }
    interrupt_catch();
    return show(&w, &err) ? cmd_end(&err) : 0;
}
