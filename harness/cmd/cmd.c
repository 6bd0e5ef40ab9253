/* SPDX-License-Identifier: MIT
 *
 * cmd.c - what all subcommands share
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>

int cmd_fail(const struct err *err)
{
    if (err->code == ST_INTERRUPTED)
        fprintf(stderr, "bench: interrupted\n");
    else
        fprintf(stderr, "bench: %s\n", err->msg);
    return status_exit_code(err->code);
}
