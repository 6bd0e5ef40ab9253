/* SPDX-License-Identifier: MIT
 *
 * gguf_nearest.c - what a file of an unknown architecture has in common with a known
 * one
 */
#include "harness/model/gguf_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/arch/arch_nearest.h"
#include "engine/base/utf8.h"
#include "harness/base/format.h"

#define WIDTH 80

/* 0: the architecture is known, or the file has none. */
static int is_unknown(const struct gguf *g)
{
    struct gguf_str name;

    return gguf_get_str(g, "general.architecture", &name) &&
           !arch_by_name(name.data, name.len);
}

static void print_list(const char *title, const struct name_list *l)
{
    char *text = malloc(l->n * (sizeof l->name[0] + 2) + 1);
    size_t used = 0;

    if (!text || !l->n) {
        free(text);
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        utf8_disarm(l->name[i]);
        used += (size_t)sprintf(text + used, "%s%s", i ? ", " : "", l->name[i]);
    }
    printf("  %s:\n    ", title);
    text_wrap(stdout, text, 4, 4, WIDTH, false);
    free(text);
}

enum status gguf_nearest_text(const struct gguf *g, struct err *err)
{
    struct arch_nearest n;
    char text[400];

    if (!is_unknown(g))
        return ST_OK;

    if (arch_find_nearest(&n, g, err))
        return err->code;
    if (!n.arch) {
        puts("\nThe architecture is unknown here, and no tensor is one of a known "
             "architecture.");
        return ST_OK;
    }
    snprintf(
        text, sizeof text,
        "The architecture is unknown here. Nearest is %s, which has %zu of its %zu "
        "names of tensors.",
        n.arch->name, n.n_shared, n.n_shared + n.unknown.n);
    putchar('\n');
    text_wrap(stdout, text, 0, 0, WIDTH, false);
    print_list("tensors that it does not know", &n.unknown);
    print_list("tensors that it needs and this file lacks", &n.missing);
    print_list("metadata that it does not read", &n.unread);
    if (*n.why_not) {
        snprintf(text, sizeof text, "  its metadata cannot be read as those of %s: %s",
                 n.arch->name, n.why_not);
        text_wrap(stdout, text, 0, 4, WIDTH, false);
    }
    arch_nearest_free(&n);
    return ST_OK;
}

static json_t *json_list(const struct name_list *l)
{
    json_t *all = json_array();

    for (size_t i = 0; all && i < l->n; i++)
        json_array_append_new(all, json_string(l->name[i]));
    return all;
}

enum status gguf_nearest_json(json_t *report, const struct gguf *g, struct err *err)
{
    struct arch_nearest n;

    if (!is_unknown(g))
        return ST_OK;
    const enum status st = arch_find_nearest(&n, g, err);

    if (st || !n.arch)
        return st;
    json_object_set_new(
        report, "nearest",
        json_pack("{s:s, s:I, s:o, s:o, s:o}", "architecture", n.arch->name, "n_shared",
                  (json_int_t)n.n_shared, "unknown", json_list(&n.unknown), "missing",
                  json_list(&n.missing), "unread", json_list(&n.unread)));
    arch_nearest_free(&n);
    return ST_OK;
}
