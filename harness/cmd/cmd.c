/* SPDX-License-Identifier: MIT
 *
 * cmd.c - what all subcommands print
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>

#include "harness/base/progress.h"
#include "harness/base/textfile.h"

enum status cmd_print_json(json_t *object, int digits, struct err *err)
{
    return textfile_write_json(
        "-", object, JSON_INDENT(2) | JSON_REAL_PRECISION((size_t)digits), err);
}

int cmd_end(const struct err *err)
{
    if (err->code == ST_OK)
        return 0;
    if (err->code == ST_INTERRUPTED)
        fprintf(stderr, "bench: interrupted\n");
    else
        message_print(err->msg);
    return status_exit_code(err->code);
}
