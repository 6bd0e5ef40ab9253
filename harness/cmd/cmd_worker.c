/* SPDX-License-Identifier: MIT
 *
 * cmd_worker.c - `bench worker`: the process that measures, see worker.h
 */
#include "harness/cmd/cmd.h"

#include <sys/prctl.h>
#include <unistd.h>

#include "harness/measure/worker/point/point_worker.h"
#include "harness/measure/worker/worker.h"

static const struct worker_task tasks[] = {
    {"point", point_answer}, {"need", point_need_answer}, {"roof", point_roof_answer}};

int cmd_worker(int argc, char **argv)
{
    struct err err = ERR_INIT;

    (void)argv;
    if (argc != 1 || isatty(STDIN_FILENO)) {
        err_set(&err, ST_USAGE,
                "`bench worker` is started by other commands of bench only");
        return cmd_end(&err);
    }
    prctl(PR_SET_NAME, "bench");
    return worker_serve(tasks, sizeof tasks / sizeof tasks[0]);
}

/* The name by which gates of all versions start it. */
int cmd_turn(int argc, char **argv)
{
    return cmd_worker(argc, argv);
}
