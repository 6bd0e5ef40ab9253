/* SPDX-License-Identifier: MIT
 *
 * cmd_fields.c - `bench fields`: what the columns of a result mean
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/options.h"
#include "harness/rows/row.h"

static const struct opt_usage usage = {
    .synopsis = "fields [--json | --markdown]",
    .about = "Lists the columns of sweep.csv, which are also the keys of a row in "
             "JSON: name, unit and meaning.",
    .example = "bench fields | grep roof",
    .no_kernels = true,
    .no_arguments = "see `bench fields --help`",
};

static const char *kind_name(enum field_kind kind)
{
    static const char *const names[] = {[FIELD_KIND_STR] = "text",
                                        [FIELD_KIND_ENUM] = "text",
                                        [FIELD_KIND_INT] = "integer",
                                        [FIELD_KIND_NUM] = "number"};

    return names[kind];
}

static void print_text(const struct field *f, size_t n)
{
    const char *group = "";

    for (size_t i = 0; i < n; i++) {
        if (strcmp(f[i].group, group))
            printf("%s%s\n", i ? "\n" : "", f[i].group);
        group = f[i].group;
        printf("  %-22s  %-6s  %s\n", f[i].name, f[i].unit, f[i].doc);
    }
}

static void print_markdown(const struct field *f, size_t n)
{
    const char *group = "";

    for (size_t i = 0; i < n; i++) {
        if (strcmp(f[i].group, group))
            printf("%s### %s\n\n| column | unit | meaning |\n|---|---|---|\n",
                   i ? "\n" : "", f[i].group);
        group = f[i].group;
        printf("| `%s` | %s | %s |\n", f[i].name, f[i].unit, f[i].doc);
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

static enum status print_json(const struct field *f, size_t n, struct err *err)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:o*}", "name", f[i].name,
                            "group", f[i].group, "type", kind_name(f[i].kind), "unit",
                            f[i].unit, "doc", f[i].doc, "values", values_of(&f[i])));
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
    size_t n;
    const struct field *f = row_fields(&n);

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (json)
        return print_json(f, n, &err) ? cmd_end(&err) : 0;
    if (markdown)
        print_markdown(f, n);
    else
        print_text(f, n);
    return 0;
}
