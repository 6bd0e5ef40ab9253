/* SPDX-License-Identifier: MIT
 *
 * cmd_turn.c - `bench turn`: the process that measures for `bench gate`, see turn.h
 */
#include "harness/cmd/cmd.h"

#include <sys/prctl.h>
#include <unistd.h>

#include "harness/point/turn.h"

int cmd_turn(int argc, char **argv)
{
    struct err err = ERR_INIT;

    (void)argv;
    if (argc != 1 || isatty(STDIN_FILENO)) {
        err_set(&err, ST_USAGE, "`bench turn` is started by `bench gate` only");
        return cmd_fail(&err);
    }
    prctl(PR_SET_NAME, "bench");
    return turn_serve();
}
