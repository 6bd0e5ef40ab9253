/* SPDX-License-Identifier: MIT
 *
 * cmd_point.c - `bench point SETTINGS`: the child that measures, see point.h
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <sys/prctl.h>

#include "harness/point/point.h"

int cmd_point(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct point p;
    json_t *settings = argc == 2 ? json_loads(argv[1], 0, NULL) : NULL;
    enum status status;

    if (!settings) {
        err_set(&err, ST_USAGE,
                "`bench point` is started by `bench decode` and `bench sweep` only");
        return cmd_fail(&err);
    }
    status = point_from_json(&p, settings, &err);
    json_decref(settings);
    if (status)
        return cmd_fail(&err);
    prctl(PR_SET_NAME, "bench");
    return point_child_run(&p);
}
