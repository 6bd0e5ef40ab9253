/* SPDX-License-Identifier: MIT
 *
 * cmd_doctor.c - `bench doctor`: what works here, what does not, and what mends it
 */
#include "harness/cmd/cmd.h"

#include <stdlib.h>

#include "harness/base/interrupt.h"
#include "harness/decide/doctor/doctor.h"

/* *code: 4 where something does not work. */
static enum status examine(const char *root, const char *dir, bool json, int *code,
                           struct err *err)
{
    struct topology *t = NULL;
    struct doctor d;

    if (topology_open(&t, root, err))
        return err->code;
    doctor_examine(&d, t, root, dir);
    free(t);
    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    *code = doctor_n_partly(&d) ? 4 : 0;
    if (json)
        return cmd_print_json(doctor_json(&d), 0, err);
    doctor_print(&d);
    return ST_OK;
}

int cmd_doctor(int argc, char **argv)
{
    const char *root = "", *dir = ".";
    bool json = false;
    int code = 0;
    const struct opt opts[] = {
        OPT_STR(0, "disk", &dir, "DIR",
                "where models and results will be (default: .)"),
        OPT_FLAG(0, "json", &json, "print JSON"),
        OPT_STR(0, "root", &root, "DIR", "directory with recorded proc/ and sys/"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "doctor [--disk DIR] [--json] [--root DIR]",
        .about =
            "Checks in a few seconds what works on this machine: CPUs, instruction "
            "sets, huge pages, memory limits and CPU quotas, the fence around "
            "processes that read models, disk, gnuplot, libcurl, and whether something "
            "disturbs measurements now. For each check it prints what was found and "
            "the command that mends it.\n\n"
            "fine: works. note: worth knowing. partly: a command does not work, or "
            "measurements are slower or less certain. Exit code 0, or 4 where a check "
            "is partly.\n\n"
            "--root checks a copy of another machine's /proc and /sys.",
        .example = "bench doctor\nbench doctor --json | jq -r '.checks[].mend'",
        .no_arguments = "see `bench doctor --help`",
    };
    struct opt_args args;
    struct err err = ERR_INIT;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    interrupt_catch();
    return examine(root, dir, json, &code, &err) ? cmd_end(&err) : code;
}
