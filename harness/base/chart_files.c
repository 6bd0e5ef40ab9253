/* SPDX-License-Identifier: MIT
 *
 * chart_files.c - gnuplot, the files of a chart, and its templates
 */
#include "harness/base/chart_files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/program.h"

/* ---- gnuplot as a child process ----------------------------------------------------
 */

#define NOT_FOUND 127 /* exit code of a child that could not start gnuplot */

static void child(const char *dir, const char *script, int err_fd)
{
    const int null_fd = open("/dev/null", O_RDWR);

    if (null_fd < 0 || chdir(dir) || dup2(null_fd, STDIN_FILENO) < 0 ||
        dup2(null_fd, STDOUT_FILENO) < 0 || dup2(err_fd, STDERR_FILENO) < 0)
        _exit(1);
    unsetenv("GNUTERM");
    execlp("gnuplot", "gnuplot", script, (char *)NULL);
    _exit(NOT_FOUND);
}

/* The child's messages, cut at cap, without blank lines and carets. */
static void read_complaint(int fd, char *buf, size_t cap)
{
    char text[4096];
    size_t used = 0;
    ssize_t n;

    while (used < sizeof text - 1 &&
           ((n = read(fd, text + used, sizeof text - 1 - used)) > 0 ||
            (n < 0 && errno == EINTR)))
        used += n > 0 ? (size_t)n : 0;
    text[used] = '\0';

    char drain[4096];
    while (read(fd, drain, sizeof drain) > 0)
        ;
    snprintf(buf, cap, "no reason given");
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        line += strspn(line, " \t");
        if (strstr(line, "line ") && !strstr(line, "warning"))
            snprintf(buf, cap, "%s", line);
    }
}

enum status gnuplot_run(const char *dir, const char *script, const char *again,
                        struct err *err)
{
    int pipe_fd[2], rc = 0;
    char complaint[300];

    if (pipe2(pipe_fd, O_CLOEXEC))
        return err_set_errno(err, ST_IO, "no pipe to gnuplot");
    const pid_t pid = fork();
    if (pid == 0)
        child(dir, script, pipe_fd[1]);
    close(pipe_fd[1]);
    if (pid < 0) {
        close(pipe_fd[0]);
        return err_set_errno(err, ST_IO, "gnuplot cannot be started");
    }
    read_complaint(pipe_fd[0], complaint, sizeof complaint);
    close(pipe_fd[0]);
    while (waitpid(pid, &rc, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(rc) && WEXITSTATUS(rc) == 0)
        return ST_OK;
    if (WIFEXITED(rc) && WEXITSTATUS(rc) == NOT_FOUND)
        return err_set(err, ST_UNSUPPORTED,
                       "gnuplot is not installed, so no charts were drawn; install it "
                       "(apt-get install gnuplot-nox) and run `%.250s`",
                       again);
    if (WIFSIGNALED(rc))
        return err_set(err, ST_IO, "gnuplot was ended by signal %d drawing %.100s/%s",
                       WTERMSIG(rc), dir, script);
    return err_set(err, ST_IO, "gnuplot could not draw %.100s/%s: %s", dir, script,
                   complaint);
}

void gnuplot_quote(FILE *f, const char *s)
{
    fputc('\'', f);
    for (; *s; s++) {
        if (*s == '\'')
            fputc('\'', f);
        fputc((unsigned char)*s < ' ' || *s == 127 ? ' ' : *s, f);
    }
    fputc('\'', f);
}

/* ---- files and templates -----------------------------------------------------------
 */

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
