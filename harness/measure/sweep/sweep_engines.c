/* SPDX-License-Identifier: MIT
 *
 * sweep_engines.c - other programs that a sweep measures
 */
#include "harness/measure/sweep/sweep.h"

#include <string.h>

#include "harness/base/format.h"
#include "harness/measure/engines/engine.h"

/* Points and rows name a program by its name. */
static enum status check_name(const struct sweep_settings *s, const struct engine *e,
                              const char *what, struct err *err)
{
    const size_t n = strlen(e->name);

    for (int i = 0; i < s->n_engines; i++)
        if (!strncmp(s->engines[i], e->name, n) && s->engines[i][n] == '=')
            return err_set(err, ST_USAGE, "%s: two programs are called %s", what,
                           e->name);
    return ST_OK;
}

static enum status add(struct sweep_settings *s, const char *text, const char *what,
                       struct err *err)
{
    char *to = s->engines[s->n_engines];
    struct engine e;
    enum status st = engine_parse(&e, text, what, err);

    if (st == ST_OK)
        st = check_name(s, &e, what, err);
    if (st == ST_OK)
        st = engine_absolute(text, to, sizeof s->engines[0], what, err);
    s->n_engines += st == ST_OK;
    return st;
}

enum status sweep_set_engines(struct sweep_settings *s, const char *const *texts,
                              size_t n, const char *what, struct err *err)
{
    s->n_engines = 0;
    if (n == 1 && !strcmp(texts[0], "none"))
        return ST_OK;
    if (n > SWEEP_MAX_ENGINES)
        return err_set(err, ST_USAGE, "%s: %zu programs; at most %d are possible", what,
                       n, SWEEP_MAX_ENGINES);
    for (size_t i = 0; i < n; i++)
        if (add(s, texts[i], what, err))
            return err->code;
    return ST_OK;
}

enum status sweep_check_engines(const struct sweep_settings *stored,
                                const char *const *given, size_t n_given,
                                const char *dir, struct err *err)
{
    struct sweep_settings given_settings = {.n_models = 0};
    char options[900] = "";
    bool same;

    if (sweep_set_engines(&given_settings, given, n_given, "--engine", err))
        return ST_USAGE;
    same = given_settings.n_engines == stored->n_engines;
    for (int i = 0; i < stored->n_engines; i++) {
        same = same && !strcmp(given_settings.engines[i], stored->engines[i]);
        text_append(options, sizeof options, " --engine");
        shell_word_append(options, sizeof options, stored->engines[i]);
    }
    if (same)
        return ST_OK;
    if (!stored->n_engines)
        return err_set(err, ST_USAGE,
                       "the sweep in %.160s measures no other program: begin a new "
                       "one for --engine",
                       dir);
    return err_set(err, ST_USAGE,
                   "the sweep in %.160s measures programs that its machine.json names; "
                   "they are started where the command names them, too: add%s",
                   dir, options);
}
