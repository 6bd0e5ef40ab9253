/* SPDX-License-Identifier: MIT
 *
 * chart_files.c - the files of a chart, and its templates
 */
#include "harness/base/chart_files.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/program.h"

FILE *chart_file_create(struct chart_file *c, const char *dir, const char *name,
                        const char *ending, struct err *err)
{
    c->dir = dir;
    c->name = name;
    if (snprintf(c->path, sizeof c->path, "%s/%s.%s", dir, name, ending) >=
        (int)sizeof c->path) {
        err_set(err, ST_USAGE, "the path of a chart is too long: %.60s...", dir);
        return NULL;
    }
    return newfile_replace(&c->file, c->path, err) ? NULL : c->file.f;
}

enum status chart_file_finish(struct chart_file *c, struct err *err)
{
    return newfile_commit(&c->file, c->path, err);
}

void chart_file_number(FILE *f, double v)
{
    fputc(',', f);
    if (isfinite(v))
        fprintf(f, "%.6g", v);
    else
        fputs("NaN", f);
}

void chart_file_text(FILE *f, const char *s)
{
    fputc(',', f);
    for (; *s; s++)
        fputc((unsigned char)*s < ' ' ? ' '
              : *s == '"'             ? '\''
              : *s == ','             ? ';'
                                      : *s,
              f);
}

static FILE *open_template(const char *name, struct err *err)
{
    char path[4096], file[80];

    snprintf(file, sizeof file, "%s.gp", name);
    data_file_find(path, sizeof path, "plots", file);
    FILE *f = fopen(path, "re");
    if (!f)
        err_set(err, ST_UNSUPPORTED,
                "there is no chart template %.300s; set SLMBENCH_PLOTS to the plots "
                "directory of slmbench",
                path);
    return f;
}

static enum status add_template(FILE *to, const char *name, struct err *err)
{
    FILE *from = open_template(name, err);
    char buf[4096];
    size_t n;

    if (!from)
        return err->code;
    while ((n = fread(buf, 1, sizeof buf, from)) > 0)
        fwrite(buf, 1, n, to);
    fclose(from);
    return ST_OK;
}

void chart_file_head(FILE *f, const char *name, const char *title, const char *subtitle)
{
    fprintf(f, "# %s.gp - written by bench; draw it again with: gnuplot %s.gp\n", name,
            name);
    fprintf(f, "name = '%s'\ndata = '%s.csv'\ntitle_text = ", name, name);
    gnuplot_quote(f, title);
    fprintf(f, "\nsubtitle_text = ");
    gnuplot_quote(f, subtitle);
    fputc('\n', f);
}

enum status chart_file_draw(struct chart_file *c, const char *again, struct err *err)
{
    enum status st = add_template(c->file.f, "style", err);

    if (st == ST_OK)
        st = add_template(c->file.f, c->name, err);
    if (st) {
        newfile_abort(&c->file);
        return st;
    }
    st = chart_file_finish(c, err);
    return st ? st : gnuplot_draw(c->dir, c->name, again, err);
}

void chart_files_remove(const char *dir, const char *name)
{
    static const char *const endings[] = {"csv", "gp", "svg", "png"};

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s.%s", dir, name, endings[i]);
        unlink(path);
    }
}
