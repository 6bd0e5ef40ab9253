/* SPDX-License-Identifier: MIT
 *
 * engine_check.c - a program is found and identified
 */
#include "harness/measure/engines/engine_run.h"

#include <limits.h>
#include <stdint.h>
#include <sys/wait.h>

#include "harness/base/format.h"
#include "harness/measure/engines/engine.h"
#include "harness/measure/engines/engine_child.h"
#include "harness/measure/engines/engine_command.h"

static enum status check_help(const struct engine *e, const struct engine_child *c,
                              struct err *err)
{
    struct engine_serving serving = {.port = 0};
    enum engine_depth depth;
    struct engine copy = *e;

    if (c->end == ENGINE_INTERRUPTED)
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (c->end != ENGINE_ENDED || WIFSIGNALED(c->wstatus) ||
        WEXITSTATUS(c->wstatus) > 1)
        return err_set(err, ST_INPUT, "%s: %s --help %s%s%s", e->name,
                       format_path(engine_word(e, 0)).text,
                       c->end == ENGINE_ENDED ? "fails" : "does not end",
                       *c->last_words ? ": " : "", c->last_words);
    if (engine_read_server_help(&serving, c->output, c->n_output))
        return ST_OK;
    copy.kind = ENGINE_LLAMA_BENCH;
    return engine_read_help(&depth, &copy, c->output, c->n_output, err);
}

enum status engine_check(const char *text, bool start_it, struct err *err)
{
    char path[PATH_MAX], help[] = "--help";
    struct engine_child c = {.limit_s = ENGINE_HELP_S};
    struct engine e;
    enum status st = engine_parse(&e, text, "--engine", err);

    if (st == ST_OK)
        st = engine_find(&e, path, sizeof path, err);
    if (st || e.kind != ENGINE_LLAMA || !start_it)
        return st;
    char *argv[] = {(char *)(uintptr_t)engine_word(&e, 0), help, NULL};

    c.params = (struct child_params){.program = path, .argv = argv, .foreign = true};
    st = engine_child_run(&c, err);
    if (st == ST_OK)
        st = check_help(&e, &c, err);
    engine_child_free(&c);
    return st;
}
