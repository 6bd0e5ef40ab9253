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
#ifndef SLM_HARNESS_CMD_H
#define SLM_HARNESS_CMD_H

#include "engine/status.h"

#define COMMAND(name, help)  int cmd_##name(int argc, char **argv);
#define HIDDEN_COMMAND(name) int cmd_##name(int argc, char **argv);
#include "harness/commands.def"

/* Print "bench: <message>" on stderr and return the exit code for it. An
 * interrupted run prints nothing more than that it was interrupted. */
int cmd_fail(const struct err *err);

/* Version and commit of this build, "0.1.0 (abc1234)". */
const char *build_version(void);
const char *build_commit(void);
const char *build_compiler(void);

/* Path of this executable, for running itself as a child. */
const char *self_path(void);

#endif
