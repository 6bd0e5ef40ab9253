/* SPDX-License-Identifier: MIT
 *
 * sweep_texts.c - the texts of a sweep's speculate points
 */
#include "harness/measure/sweep/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A built-in text keeps its name; a file is named absolutely, so that --resume works
 * from anywhere. */
enum status sweep_add_text(struct sweep_settings *s, const char *word, const char *what,
                           struct err *err)
{
    const bool is_file = strchr(word, '/') || strchr(word, '.');
    struct err why = ERR_INIT;
    struct point p;
    char *path;

    if (s->n_texts == SWEEP_MAX_TEXTS)
        return err_set(err, ST_USAGE, "%s: at most %d texts are possible", what,
                       SWEEP_MAX_TEXTS);
    path = is_file ? realpath(word, NULL) : NULL;
    point_init(&p);
    if (point_set_text(&p, path ? path : word, &why)) {
        free(path);
        return err_set(err, ST_USAGE, "%s: %s", what, why.msg);
    }
    free(path);
    snprintf(s->texts[s->n_texts++], sizeof s->texts[0], "%s", p.text);
    return ST_OK;
}

enum status sweep_set_texts(struct sweep_settings *s, const char *text,
                            const char *what, struct err *err)
{
    char *copy = strdup(text), *save = NULL;
    enum status status = copy ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory");

    s->n_texts = 0;
    for (char *word = copy ? strtok_r(copy, ",", &save) : NULL;
         word && status == ST_OK && strcmp(text, "none");
         word = strtok_r(NULL, ",", &save))
        status = sweep_add_text(s, word + strspn(word, " "), what, err);
    free(copy);
    return status;
}
