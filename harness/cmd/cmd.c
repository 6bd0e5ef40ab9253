/* SPDX-License-Identifier: MIT
 *
 * cmd.c - messages of all subcommands
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>

enum status cmd_no_argument(const struct opt_args *args, const char *hint,
                            struct err *err)
{
    return args->n ? err_set(err, ST_USAGE, "unexpected argument '%.60s'; %s",
                             args->v[0], hint)
                   : ST_OK;
}

int cmd_fail(const struct err *err)
{
    if (err->code == ST_INTERRUPTED)
        fprintf(stderr, "bench: interrupted\n");
    else
        fprintf(stderr, "bench: %s\n", err->msg);
    return status_exit_code(err->code);
}
