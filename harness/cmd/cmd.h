/* SPDX-License-Identifier: MIT
 *
 * cmd.h - what a subcommand of `bench` is
 *
 * One row in commands.def, one file cmd_<name>.c with
 *     int cmd_<name>(int argc, char **argv);
 * argv[0] is the subcommand's own name. The function parses its options (see
 * options.h, which answers --help), does its work through one call and returns the
 * exit code of the process; cmd_end() prints an err, if there is one, and returns the
 * exit code.
 *
 * Threading: the main thread.
 */
#ifndef SLM_HARNESS_CMD_CMD_H
#define SLM_HARNESS_CMD_CMD_H

#include <jansson.h>
#include <stdbool.h>

#include "engine/base/status.h"
#include "harness/base/options.h"

#define COMMAND(name, help)  int cmd_##name(int argc, char **argv);
#define HIDDEN_COMMAND(name) int cmd_##name(int argc, char **argv);
#include "harness/cmd/commands.def"

/* The subcommands in the order of commands.def; the last has no name. */
struct command {
    const char *name;
    const char *help; /* NULL: hidden */
    int (*run)(int argc, char **argv);
};
extern const struct command commands[];

/* "exit codes: ...", as `bench --help` and bench(1) print it. */
extern const char exit_codes_help[];

/* Calls show with the options and the usage of a subcommand, which does nothing else.
 * verb: its own command, or NULL. False: there is no such command, or no table. */
bool cmd_show(const char *name, const char *verb, opt_show_fn *show, void *arg);

/* Print an object, which is released, on standard output, its numbers with `digits`
 * digits. Errors: ST_IO; ST_NO_MEMORY (object is NULL). */
enum status cmd_print_json(json_t *object, int digits, struct err *err);

/* The exit code for err: 0, or, after "bench: <message>" on stderr, that of its status.
 * For an interruption the message is "interrupted". */
int cmd_end(const struct err *err);

#endif
