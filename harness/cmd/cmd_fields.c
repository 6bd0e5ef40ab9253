/* SPDX-License-Identifier: MIT
 *
 * cmd_fields.c - `bench fields`: what the columns of a result mean
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/progress.h"
#include "harness/rows/row.h"

static const struct opt_usage usage = {
    .synopsis = "fields [NAME...] [--json | --markdown]",
    .about = "Lists the columns of sweep.csv, which are also the keys of a row in "
             "JSON: name, unit and meaning; with NAMEs only these.",
    .example = "bench fields mbu limiter\n"
               "bench fields | grep roof",
    .no_kernels = true,
};

static const char *kind_name(enum field_kind kind)
{
    static const char *const names[] = {[FIELD_KIND_STR] = "text",
                                        [FIELD_KIND_ENUM] = "text",
                                        [FIELD_KIND_INT] = "integer",
                                        [FIELD_KIND_NUM] = "number"};

    return names[kind];
}

enum { NAME_WIDTH = 22, UNIT_WIDTH = 6, LINE_WIDTH = 79 };

/* The columns that are printed. */
struct chosen {
    const struct field *all;
    size_t n;
    char *const *names; /* [n_names]; none: all columns */
    int n_names;
};

static bool is_chosen(const struct chosen *c, const struct field *f)
{
    for (int i = 0; i < c->n_names; i++)
        if (!strcmp(c->names[i], f->name))
            return true;
    return !c->n_names;
}

/* Wrapped on a terminal, and where columns were named. */
static void print_text(const struct chosen *c)
{
    const int left = NAME_WIDTH + UNIT_WIDTH + 6, columns = terminal_columns(stdout);
    const int width = columns > left + 20 ? columns - 1 : LINE_WIDTH;
    const char *group = "";

    for (size_t i = 0; i < c->n; i++) {
        const struct field *f = &c->all[i];

        if (!is_chosen(c, f))
            continue;
        if (!c->n_names && strcmp(f->group, group))
            printf("%s%s\n", i ? "\n" : "", f->group);
        group = f->group;
        printf("  %-*s  %-*s  ", NAME_WIDTH, f->name, UNIT_WIDTH, f->unit);
        if (columns || c->n_names)
            text_wrap(stdout, f->doc, left, left, width, false);
        else
            printf("%s\n", f->doc);
    }
}

static void print_markdown(const struct chosen *c)
{
    const char *group = "";

    for (size_t i = 0; i < c->n; i++) {
        const struct field *f = &c->all[i];

        if (!is_chosen(c, f))
            continue;
        if (strcmp(f->group, group))
            printf("%s### %s\n\n| column | unit | meaning |\n|---|---|---|\n",
                   *group ? "\n" : "", f->group);
        group = f->group;
        printf("| `%s` | %s | %s |\n", f->name, f->unit, f->doc);
    }
}

/* The texts of a closed set; NULL: the column is none. */
static json_t *values_of(const struct field *f)
{
    json_t *list = f->kind == FIELD_KIND_ENUM ? json_array() : NULL;

    for (int i = 0; list && i < f->choices->n; i++)
        json_array_append_new(list, json_string(f->choices->name(i)));
    return list;
}

static enum status print_json(const struct chosen *c, struct err *err)
{
    const struct field *f = c->all;
    json_t *list = json_array();

    for (size_t i = 0; i < c->n; i++)
        if (is_chosen(c, &f[i]))
            json_array_append_new(
                list,
                json_pack("{s:s, s:s, s:s, s:s, s:s, s:o*}", "name", f[i].name, "group",
                          f[i].group, "type", kind_name(f[i].kind), "unit", f[i].unit,
                          "doc", f[i].doc, "values", values_of(&f[i])));
    return cmd_print_json(list, 0, err);
}

int cmd_fields(int argc, char **argv)
{
    bool json = false, markdown = false;
    const struct opt opts[] = {
        OPT_FLAG(0, "json", &json, "print JSON"),
        OPT_FLAG(0, "markdown", &markdown, "print the tables of results/README.md"),
        OPT_END};
    struct opt_args args;
    struct err err = ERR_INIT;
    struct chosen c = {.n = 0};
    const struct field *f;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    c.all = row_fields(&c.n);
    c.names = args.v;
    c.n_names = args.n;
    for (int i = 0; i < args.n; i++)
        if (row_field_find(&f, args.v[i], "", &err))
            return cmd_end(&err);
    if (json)
        return print_json(&c, &err) ? cmd_end(&err) : 0;
    if (markdown)
        print_markdown(&c);
    else
        print_text(&c);
    return 0;
}
