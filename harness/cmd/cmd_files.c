/* SPDX-License-Identifier: MIT
 *
 * cmd_files.c - `bench files`: the shapes, configurations, texts and chart templates
 * that come with the program, where they are, and what is in them
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/program.h"
#include "harness/base/textfile.h"

#define MAX_BYTES ((size_t)1 << 20)

static const struct opt_usage usage = {
    .synopsis = "files [KIND/NAME]",
    .about =
        "Lists the files that come with the program and where each is read from: a "
        "file of yours in ~/.config/slmbench/KIND (or $XDG_CONFIG_HOME), then in "
        "slmbench/KIND next to the program, then ../share/slmbench/KIND, then the "
        "one inside the program. With a name, prints that file, so that it can be "
        "changed and put into the first of these folders.",
    .example = "bench files sweeps/default.yaml > mine.yaml",
    .no_kernels = true,
};

static enum status list_kind(const char *kind, struct err *err)
{
    struct path_list names = {0};
    char path[4096];
    enum status st = data_names(&names, kind, "", err);

    for (size_t i = 0; !st && i < names.n; i++) {
        const char *name = names.path[i];

        if (!data_file_find(path, sizeof path, kind, name))
            continue;
        printf("%s/%-*s  %s\n", kind, 32 - (int)strlen(kind), format_path(name).text,
               strncmp(path, DATA_INSIDE, strlen(DATA_INSIDE)) ? format_path(path).text
                                                               : "inside");
    }
    path_list_free(&names);
    return st;
}

static enum status list_all(struct err *err)
{
    for (size_t i = 0; data_kind(i); i++)
        if (list_kind(data_kind(i), err))
            return err->code;
    return ST_OK;
}

/* NULL: there is no such kind, or the name has a folder in it. */
static const char *find(char *buf, size_t cap, const char *what)
{
    const char *slash = strchr(what, '/');

    if (!slash || strchr(slash + 1, '/'))
        return NULL;
    for (size_t i = 0; data_kind(i); i++) {
        const char *kind = data_kind(i);

        if (strlen(kind) == (size_t)(slash - what) &&
            !strncmp(kind, what, (size_t)(slash - what)))
            return data_file_find(buf, cap, kind, slash + 1);
    }
    return NULL;
}

static enum status print_file(const char *what, struct err *err)
{
    char path[4096], *text = NULL;
    size_t len = 0;
    enum status st;

    if (!find(path, sizeof path, what))
        return err_set(err, ST_USAGE,
                       "there is no file '%.80s'; `bench files` lists them all", what);
    st = textfile_read(path, MAX_BYTES, &text, &len, err);
    if (!st)
        fwrite(text, 1, len, stdout);
    free(text);
    return st;
}

int cmd_files(int argc, char **argv)
{
    const struct opt opts[] = {OPT_END};
    struct opt_args args;
    struct err err = ERR_INIT;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (args.n > 1)
        err_set(&err, ST_USAGE, "one file at a time; '%.80s' is another", args.v[1]);
    else if (args.n)
        print_file(args.v[0], &err);
    else
        list_all(&err);
    return cmd_end(&err);
}
