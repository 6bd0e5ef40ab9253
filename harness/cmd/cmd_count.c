/* SPDX-License-Identifier: MIT
 *
 * cmd_count.c - `bench count`: work whose instructions `bench gate --counts` counts
 */
#include "harness/cmd/cmd.h"

#include <inttypes.h>
#include <stdio.h>

#include "harness/base/options.h"
#include "harness/base/parse.h"
#include "harness/measure/worker/count_work.h"

static const struct opt_usage usage = {
    .synopsis = "count NAME CALLS",
    .about = "Calls a kernel, or decodes tokens of a small model, CALLS times and "
             "prints nothing, so that a counter outside can count the instructions of "
             "the function " COUNT_WORK_FUNCTION ". One uncounted call comes first.",
    .example = "valgrind --tool=callgrind --toggle-collect=" COUNT_WORK_FUNCTION " \\\n"
               "bench count gemv/q4_K/avx2/rows:16/cols:512 100\n"
               "bench count --pmu decode/nano:Q4_K_M 10",
};

static enum status run(const char *name, size_t calls, bool pmu, struct err *err)
{
    struct count_work *w;
    uint64_t instructions;
    enum status st = count_work_open(&w, name, err);

    if (st)
        return st;
    if (pmu) {
        st = count_work_pmu(w, calls, &instructions, err);
        if (st == ST_OK)
            printf("%" PRIu64 "\n", instructions);
    } else {
        st = count_work_run(w, calls, err);
    }
    count_work_close(w);
    return st;
}

int cmd_count(int argc, char **argv)
{
    bool pmu = false;
    const struct opt opts[] = {
        OPT_FLAG(0, "pmu", &pmu, "print the CPU's own instruction count"), OPT_END};
    struct opt_args args;
    struct err err = ERR_INIT;
    long long calls;
    enum status st = opt_parse(&args, argc, argv, opts, &usage, &err);

    if (st == ST_OK && args.help)
        return 0;
    if (st == ST_OK && args.n != 2)
        st = err_set(
            &err, ST_USAGE,
            "count takes a name and a number of calls; see `bench count --help`");
    if (st == ST_OK)
        st = parse_integer(args.v[1], "the number of calls", 0, COUNT_MAX_CALLS, &calls,
                           &err);
    if (st == ST_OK)
        st = run(args.v[0], (size_t)calls, pmu, &err);
    return st ? cmd_end(&err) : 0;
}
