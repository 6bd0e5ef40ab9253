/* SPDX-License-Identifier: MIT
 *
 * modelref_list.c - NAME:Q4_K_M,Q8_0: several models that differ by their quantisation
 */
#include "harness/model/modelref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/parse.h"

const char *modelref_list_of(const char *text)
{
    const char *colon = strrchr(text, ':');
    const size_t len = strlen(text);
    struct stat there;

    if (!colon || !strchr(colon, ',') || !stat(text, &there) ||
        (len > 5 && !strcmp(text + len - 5, ".gguf")))
        return NULL;
    return colon + 1;
}

/* The list's items are quantisations, each once; counts them. */
static enum status check_list(const char *text, const char *list, size_t *n,
                              struct err *err)
{
    bool is_named[QUANTMIX_N] = {false};
    struct parse_list items = {.what = text, .text = list};
    enum status st = ST_OK;

    for (*n = 0; parse_item(&items, &st, err); ++*n) {
        enum quantmix mix;

        if (mix_parse(&mix, items.item, err))
            return ST_USAGE;
        if (is_named[mix])
            return err_set(err, ST_USAGE, "'%.200s' names %s twice", text,
                           quantmix_name(mix));
        is_named[mix] = true;
    }
    return st;
}

enum status modelref_expand(const char *const *texts, size_t n, struct str_list *out,
                            struct err *err)
{
    size_t n_all = 0, n_bytes = 0, at = 0;
    enum status st = ST_OK;

    for (size_t i = 0; i < n; i++) {
        const char *list = modelref_list_of(texts[i]);
        size_t n_models = 1;

        if (list && check_list(texts[i], list, &n_models, err))
            return ST_USAGE;
        n_all += n_models;
        n_bytes += n_models * (strlen(texts[i]) + 1);
    }
    const char **v = malloc(n_all * sizeof *v + n_bytes + 1);

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu models", n_all);
    char *to = (char *)(v + n_all);

    for (size_t i = 0; i < n; i++) {
        const char *list = modelref_list_of(texts[i]);
        const int shared = list ? (int)(list - texts[i]) : (int)strlen(texts[i]);
        struct parse_list items = {.what = texts[i], .text = list};

        parse_item(&items, &st, err);
        do { /* without a list once, as it is */
            v[at++] = to;
            to += sprintf(to, "%.*s%s", shared, texts[i], items.item) + 1;
        } while (parse_item(&items, &st, err));
    }
    *out = (struct str_list){v, n_all};
    return ST_OK;
}

enum status modelref_expand_list(struct str_list *list, struct err *err)
{
    struct str_list all;

    if (modelref_expand(list->v, list->n, &all, err))
        return err->code;
    free(list->v);
    *list = all;
    return ST_OK;
}
