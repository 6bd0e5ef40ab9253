/* SPDX-License-Identifier: MIT
 *
 * chart_files.c - the files of a chart, and its templates
 */
#include "harness/base/chart_files.h"

#include <math.h>
#include <unistd.h>

#include "harness/base/datafile.h"
#include "harness/base/gnuplot.h"

FILE *chart_file_create(const char *dir, const char *name, const char *ending,
                        struct err *err)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s.%s", dir, name, ending);
    FILE *f = fopen(path, "we");
    if (!f)
        err_set_errno(err, ST_IO, "%s cannot be written", path);
    return f;
}

enum status chart_file_finish(FILE *f, const char *dir, const char *name,
                              struct err *err)
{
    const int failed = ferror(f);

    if (fclose(f) || failed)
        return err_set_errno(err, ST_IO, "the files of %s cannot be written to %s",
                             name, dir);
    return ST_OK;
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

enum status chart_file_template(FILE *to, const char *name, struct err *err)
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

enum status chart_file_draw(FILE *f, const char *dir, const char *name,
                            const char *again, struct err *err)
{
    char script[64];
    enum status st = chart_file_template(f, "style", err);

    if (st == ST_OK)
        st = chart_file_template(f, name, err);
    const enum status closed = chart_file_finish(f, dir, name, err);
    snprintf(script, sizeof script, "%s.gp", name);
    return st ? st : closed ? closed : gnuplot_run(dir, script, again, err);
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
