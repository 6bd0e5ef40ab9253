/* SPDX-License-Identifier: MIT
 *
 * cmd.c - the table of subcommands, and what all of them print
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/progress.h"
#include "harness/base/textfile.h"

const struct command commands[] = {
#define COMMAND(name, help)  {#name, help, cmd_##name},
#define HIDDEN_COMMAND(name) {#name, NULL, cmd_##name},
#include "harness/cmd/commands.def"
    {NULL, NULL, NULL},
};

const char exit_codes_help[] =
    "exit codes: 0 ok, 1 the check failed, 2 bad usage or input, 3 not possible on\n"
    "this machine, 4 inconclusive or done in part, 130 interrupted\n";

struct shown {
    opt_show_fn *show;
    void *arg;
    bool is_shown;
};

static void show_once(void *arg, const struct opt *opts, const struct opt_usage *usage)
{
    struct shown *s = arg;

    if (!s->is_shown)
        s->show(s->arg, opts, usage);
    s->is_shown = true;
}

bool cmd_show(const char *name, const char *verb, opt_show_fn *show, void *arg)
{
    static char help[] = "--help";
    char first[64], second[64], *words[] = {first, help, NULL, NULL};
    struct shown s = {.show = show, .arg = arg};
    const struct command *c = commands;

    while (c->name && (!c->help || strcmp(c->name, name) != 0))
        c++;
    if (!c->name)
        return false;
    snprintf(first, sizeof first, "%s", name);
    if (verb) {
        snprintf(second, sizeof second, "%s", verb);
        words[1] = second;
        words[2] = help;
    }
    opt_show_tables(show_once, &s);
    c->run(verb ? 3 : 2, words);
    opt_show_tables(NULL, NULL);
    return s.is_shown;
}

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
