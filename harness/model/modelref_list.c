/* SPDX-License-Identifier: MIT
 *
 * modelref_list.c - NAME:Q4_K_M,Q8_0: several models that differ by their quantisation
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/model/modelref.h"

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

/* The list's items are quantisations, each once. */
static enum status check_list(const char *text, const char *list, struct err *err)
{
    bool is_named[QUANTMIX_N] = {false};

    for (const char *item = list;; item++) {
        const int len = (int)strcspn(item, ",");
        char name[40];
        enum quantmix mix;

        if (!len)
            return err_set(err, ST_USAGE,
                           "'%.200s' has an empty item in its list of quantisations; "
                           "write them as in Q4_K_M,Q8_0",
                           text);
        snprintf(name, sizeof name, "%.*s", len, item);
        if (mix_parse(&mix, name, err))
            return ST_USAGE;
        if (is_named[mix])
            return err_set(err, ST_USAGE, "'%.200s' names %s twice", text,
                           quantmix_name(mix));
        is_named[mix] = true;
        item += len;
        if (!*item)
            return ST_OK;
    }
}

/* Models of a text, and the bytes of their texts. */
static size_t count(const char *text, size_t *n_bytes)
{
    const char *list = modelref_list_of(text);
    size_t n = 1;

    for (const char *c = list; c && *c; c++)
        n += *c == ',';
    *n_bytes += n * (strlen(text) + 1);
    return n;
}

enum status modelref_expand(const char *const *texts, size_t n, struct str_list *out,
                            struct err *err)
{
    size_t n_all = 0, n_bytes = 0, at = 0;

    for (size_t i = 0; i < n; i++) {
        const char *list = modelref_list_of(texts[i]);

        if (list && check_list(texts[i], list, err))
            return ST_USAGE;
        n_all += count(texts[i], &n_bytes);
    }
    const char **v = malloc(n_all * sizeof *v + n_bytes + 1);

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu models", n_all);
    char *to = (char *)(v + n_all);

    for (size_t i = 0; i < n; i++) {
        const char *list = modelref_list_of(texts[i]);
        const int shared = list ? (int)(list - texts[i]) : (int)strlen(texts[i]);

        for (const char *item = list ? list : "";; item++) {
            const int len = (int)strcspn(item, ",");

            v[at++] = to;
            to += sprintf(to, "%.*s%.*s", shared, texts[i], len, item) + 1;
            item += len;
            if (!*item)
                break;
        }
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
