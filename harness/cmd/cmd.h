/* SPDX-License-Identifier: MIT
 *
 * cmd.h - what a subcommand of `bench` is
 *
 * One row in commands.def, one file cmd_<name>.c with
 *     int cmd_<name>(int argc, char **argv);
 * argv[0] is the subcommand's own name. The function parses its options (see
 * options.h, which answers --help), does its work through one call, and returns
 * the process's exit code; cmd_fail() turns an err into both.
 */
#ifndef SLM_HARNESS_CMD_CMD_H
#define SLM_HARNESS_CMD_CMD_H

#include "engine/base/status.h"

#define COMMAND(name, help)  int cmd_##name(int argc, char **argv);
#define HIDDEN_COMMAND(name) int cmd_##name(int argc, char **argv);
#include "harness/cmd/commands.def"

/* Print "bench: <message>" on stderr and return the exit code for it. An
 * interrupted run prints nothing more than that it was interrupted. */
int cmd_fail(const struct err *err);

#endif
