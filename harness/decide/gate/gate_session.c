/* SPDX-License-Identifier: MIT
 *
 * gate_session.c - settings, programs and machine of a gate
 */
#include "harness/decide/gate/gate_session.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/dirs.h"
#include "harness/base/program.h"
#include "harness/machine/measuring.h"
#include "harness/measure/engines/engine.h"

enum status gate_session_open(struct gate_session **out, const struct gate_options *o,
                              struct err *err)
{
    struct gate_session *x = *out = calloc(1, sizeof *x);
    enum status st = x ? topology_open(&x->topo, "", err)
                       : err_set(err, ST_NO_MEMORY, "no memory for a gate");

    if (x) {
        x->o = o;
        x->run.csv = -1;
    }
    if (st == ST_OK)
        st = gate_settings_make(&x->s, o, x->topo, err);
    if (st == ST_OK)
        st = gate_options_check_outputs(o, &x->s.setup.model, err);
    if (st == ST_OK && x->s.has_b_model)
        st = gate_options_check_outputs(o, &x->s.b_model, err);
    return st;
}

enum status gate_session_dir(char dir[512], const struct gate_options *o,
                             const char *prefix, struct err *err)
{
    char rounds[600], above[512], *at = above;

    if (o->out && (!*o->out || strlen(o->out) >= 512))
        return err_set(err, ST_USAGE,
                       "--output: '%.60s' cannot be the name of a directory", o->out);
    if (o->out)
        snprintf(dir, 512, "%s", o->out);
    else
        dirs_results(dir, 512, prefix);
    snprintf(rounds, sizeof rounds, "%s/" GATE_ROUNDS_NAME, dir);
    if (!access(rounds, F_OK))
        return err_set(err, ST_USAGE, "%s holds a gate already; name another directory",
                       dir);
    snprintf(above, sizeof above, "%s", dir);
    while (access(at, F_OK) && strcmp(at, ".") != 0 && strcmp(at, "/") != 0)
        at = dirname(at);
    return access(at, W_OK | X_OK)
               ? err_set_errno(err, ST_IO, "%.300s cannot be written into", at)
               : ST_OK;
}

/* A side that is one word is a file, or else a program of $PATH. */
static enum status find(struct gate_session *x, int side, struct err *err)
{
    const char *name = x->program[side];
    char text[ENGINE_MAX_TEXT + 1];
    struct err none = ERR_INIT;
    struct engine e;

    if (strpbrk(name, " ={") || strstr(name, "://") || !access(name, F_OK))
        return ST_OK;
    snprintf(text, sizeof text, "A=%s", name);
    if (strchr(name, '/') || engine_parse(&e, text, "", &none) ||
        engine_find(&e, x->found[side], PATH_MAX, &none)) {
        errno = ENOENT;
        return err_set_errno(err, ST_USAGE, "%c: cannot find the program %.300s",
                             'A' + side, name);
    }
    x->program[side] = x->found[side];
    return ST_OK;
}

enum status gate_session_begin(struct gate_session *x, struct err *err)
{
    const struct gate_options *o = x->o;
    enum status st = ST_OK;

    x->program[0] = o->a ? o->a : self_path();
    x->program[1] = o->calibrate ? x->program[0] : o->b ? o->b : self_path();
    if (gate_options_have_commits(o)) {
        st = gate_commits_find(&x->commits, o, err);
        if (st == ST_OK)
            st = gate_commits_build(&x->commits, o, err);
        x->program[0] = x->commits.side[0].program;
        x->program[1] = x->commits.side[1].program;
    }
    for (int side = 0; side < 2 && st == ST_OK; side++)
        st = find(x, side, err);
    return st ? st : measuring_begin(err);
}

void gate_session_close(struct gate_session *x)
{
    if (!x)
        return;
    gate_run_close(&x->run);
    gate_commits_close(&x->commits);
    gate_settings_free(&x->s);
    free(x->topo);
    free(x);
}
