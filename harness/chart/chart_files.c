/* SPDX-License-Identifier: MIT
 *
 * chart_files.c - gnuplot in a folder of its own or our own SVG, the files of a chart,
 * its templates
 */
#include "harness/chart/chart_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/invoker.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/program.h"
#include "harness/base/progress.h"
#include "harness/base/textfile.h"
#include "harness/chart/draw.h"

#define TEMPLATE_MAX_BYTES ((size_t)1 << 20)
#define CHART_MAX_BYTES    ((size_t)1 << 28) /* of a script or its data */

#define NOT_STARTED 127 /* exit code of a child that could not start gnuplot */

void gnuplot_quote(FILE *f, const char *s)
{
    fputc('\'', f);
    for (; *s; s++) {
        if (*s == '\'')
            fputs("\xe2\x80\x99", f);
        else
            fputc((unsigned char)*s < ' ' || *s == 127 ? ' ' : *s, f);
    }
    fputc('\'', f);
}

/* ---- the folder ----------------------------------------------------------------- */

struct scratch {
    int dir, own; /* descriptors: the folder of the results, and the one in it */
    char folder[24];
    const char *dir_path, *name;
};

static const char *const endings[] = {"csv", "gp", "svg", "png"};

#define N_READ 2 /* of endings: what gnuplot reads */
#define N_ALL  4

static const char *file_name(const struct scratch *s, size_t i, char buf[NAME_MAX + 1])
{
    snprintf(buf, NAME_MAX + 1, "%s.%s", s->name, endings[i]);
    return buf;
}

static enum status scratch_failed(const struct scratch *s, const char *file,
                                  struct err *err)
{
    return err_set_errno(err, ST_IO, "%.300s/%s cannot be written", s->dir_path, file);
}

static int make_folder(struct scratch *s)
{
    for (int i = 0; i < 8; i++) {
        unsigned long long number = 0;

        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -1;
        snprintf(s->folder, sizeof s->folder, ".%llx", number);
        if (!mkdirat(s->dir, s->folder, 0700))
            return openat(s->dir, s->folder,
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (errno != EEXIST)
            break;
    }
    *s->folder = '\0';
    return -1;
}

static bool copy(int from, int to)
{
    char buf[16384];
    ssize_t n;

    while ((n = read(from, buf, sizeof buf)) > 0)
        if (write(to, buf, (size_t)n) != n)
            return false;
    return n == 0;
}

/* A copy of a file that this program has just written. */
static bool copy_in(const struct scratch *s, const char *name)
{
    const int from =
        openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int to = openat(s->own, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat st;
    bool ok = from >= 0 && to >= 0 && !fstat(from, &st) && S_ISREG(st.st_mode) &&
              copy(from, to);

    if (from >= 0)
        close(from);
    if (to >= 0)
        ok = !close(to) && ok;
    return ok;
}

static enum status scratch_open(struct scratch *s, const char *dir, const char *name,
                                struct err *err)
{
    char file[NAME_MAX + 1];

    *s = (struct scratch){.own = -1, .dir_path = dir, .name = name};
    s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir >= 0)
        s->own = make_folder(s);
    if (s->own < 0)
        return err_set_errno(err, ST_IO, "no folder to draw in can be made in %.300s",
                             dir);
    for (size_t i = 0; i < N_READ; i++)
        if (!copy_in(s, file_name(s, i, file)))
            return err_set_errno(err, ST_IO, "%.300s/%s cannot be copied for gnuplot",
                                 dir, file);
    return ST_OK;
}

static enum status take_out(const struct scratch *s, struct err *err)
{
    char file[NAME_MAX + 1];

    for (size_t i = N_READ; i < N_ALL; i++) {
        const int fd =
            openat(s->own, file_name(s, i, file), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        bool ok;

        if (fd < 0 && errno == ENOENT) /* a template that draws another form only */
            continue;
        if (fd >= 0)
            invoker_own(fd);
        ok = fd >= 0 && !fsync(fd) && !renameat(s->own, file, s->dir, file);
        if (!ok)
            scratch_failed(s, file, err);
        if (fd >= 0)
            close(fd);
        if (!ok)
            return ST_IO;
    }
    return ST_OK;
}

static void scratch_close(struct scratch *s)
{
    char file[NAME_MAX + 1];

    for (size_t i = 0; s->own >= 0 && i < N_ALL; i++)
        unlinkat(s->own, file_name(s, i, file), 0);
    if (s->own >= 0)
        close(s->own);
    if (*s->folder)
        unlinkat(s->dir, s->folder, AT_REMOVEDIR);
    if (s->dir >= 0)
        close(s->dir);
}

/* ---- the process ---------------------------------------------------------------- */

/* Labels are UTF-8 and numbers have points, whatever the user's locale: containers,
 * cron and ssh often have none. Where the system has neither locale, gnuplot keeps the
 * user's. */
static void use_utf8_locale(void)
{
    static const char *const names[] = {"C.UTF-8", "en_US.UTF-8"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const locale_t there = newlocale(LC_ALL_MASK, names[i], (locale_t)0);

        if (there != (locale_t)0) {
            freelocale(there);
            setenv("LC_ALL", names[i], 1);
            return;
        }
    }
}

/* -d: without the user's own settings (~/.gnuplot), which would change the charts. */
static void child(const char *program, const char *script, int dir_fd, int err_fd)
{
    const int null_fd = open("/dev/null", O_RDWR);

    if (null_fd < 0 || fchdir(dir_fd) || dup2(null_fd, STDIN_FILENO) < 0 ||
        dup2(null_fd, STDOUT_FILENO) < 0 || dup2(err_fd, STDERR_FILENO) < 0)
        _exit(1);
    unsetenv("GNUTERM");
    use_utf8_locale();
    execl(program, "gnuplot", script, "-d", (char *)NULL);
    _exit(NOT_STARTED);
}

/* The child's messages, cut at cap, without blank lines and carets. */
static void read_message(int fd, char *buf, size_t cap)
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

/* ---- without gnuplot ---------------------------------------------------------------
 */

/* Once for all charts of a process: where apt is gnuplot can be had, elsewhere (an
 * image, a root of the static program alone) the folder goes to where it is. */
static void print_how_to_get_png(const char *dir, const char *name, const char *again)
{
    static bool has_printed;
    char program[PATH_MAX], text[PATH_MAX + 300];

    if (has_printed)
        return;
    has_printed = true;
    snprintf(text, sizeof text,
             "gnuplot is not installed, so charts are SVG only; for PNG ");
    if (program_find(program, sizeof program, "apt-get"))
        text_append(text, sizeof text,
                    "install it (apt-get install gnuplot-nox) and run `%s`", again);
    else
        text_append(text, sizeof text,
                    "copy %s to a machine with gnuplot and run `gnuplot %s.gp` there, "
                    "the same for each chart",
                    format_path(dir).text, name);
    message_print(text);
}

/* A chart's file as a text that ends in 0. */
static enum status read_beside(const char *dir, const char *name, const char *ending,
                               char **text, struct err *err)
{
    char path[4096], *read = NULL;
    size_t len = 0;

    snprintf(path, sizeof path, "%s/%s.%s", dir, name, ending);
    const enum status st = textfile_read(path, CHART_MAX_BYTES, &read, &len, err);
    char *ended = st ? NULL : realloc(read, len + 1);

    if (!ended) {
        free(st ? NULL : read);
        return err_set(err, st ? st : ST_NO_MEMORY, "no memory for %s", path);
    }
    ended[len] = '\0';
    *text = ended;
    return ST_OK;
}

/* dir/<name>.svg by our own writer; a PNG of an earlier run would show other data. */
static enum status draw_alone(const char *dir, const char *name, const char *again,
                              struct err *err)
{
    char *script = NULL, *data = NULL, png[4096];
    struct err why = ERR_INIT;
    struct chart_file c;
    FILE *f = NULL;
    enum status st = read_beside(dir, name, "gp", &script, err);

    if (st == ST_OK)
        st = read_beside(dir, name, "csv", &data, err);
    if (st == ST_OK && !(f = chart_file_create(&c, dir, name, "svg", err)))
        st = err->code;
    if (f && draw_svg(script, data, f, &why)) {
        newfile_abort(&c.file);
        st = err_set(err, why.code == ST_INPUT ? ST_UNSUPPORTED : why.code,
                     "gnuplot is not installed, and without it %.200s/%.100s.gp: %s",
                     dir, name, why.msg);
    } else if (f) {
        st = chart_file_finish(&c, err);
    }
    free(script);
    free(data);
    if (st)
        return st;
    snprintf(png, sizeof png, "%s/%s.png", dir, name);
    unlink(png);
    print_how_to_get_png(dir, name, again);
    return ST_OK;
}

/* ---- with gnuplot ------------------------------------------------------------------
 */

static enum status run(const char *program, const struct scratch *s, const char *again,
                       struct err *err)
{
    char message[300], script[NAME_MAX + 1];
    int pipe_fd[2], rc = 0;

    file_name(s, 1, script);
    if (pipe2(pipe_fd, O_CLOEXEC))
        return err_set_errno(err, ST_IO, "no pipe to gnuplot");
    const pid_t pid = fork();
    if (pid == 0)
        child(program, script, s->own, pipe_fd[1]);
    close(pipe_fd[1]);
    if (pid < 0) {
        close(pipe_fd[0]);
        return err_set_errno(err, ST_IO, "gnuplot cannot be started");
    }
    read_message(pipe_fd[0], message, sizeof message);
    close(pipe_fd[0]);
    while (waitpid(pid, &rc, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(rc) && WEXITSTATUS(rc) == 0)
        return ST_OK;
    if (interrupted()) /* the signal reached gnuplot, too */
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (WIFEXITED(rc) && WEXITSTATUS(rc) == NOT_STARTED)
        return draw_alone(s->dir_path, s->name, again, err);
    if (WIFSIGNALED(rc))
        return err_set(err, ST_IO, "gnuplot was ended by signal %d drawing %.100s/%s",
                       WTERMSIG(rc), s->dir_path, script);
    return err_set(err, ST_IO, "gnuplot could not draw %.100s/%s: %s", s->dir_path,
                   script, message);
}

enum status gnuplot_draw(const char *dir, const char *name, const char *again,
                         struct err *err)
{
    char program[PATH_MAX];
    struct scratch s;
    enum status st;

    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (!program_find(program, sizeof program, "gnuplot"))
        return draw_alone(dir, name, again, err);
    st = scratch_open(&s, dir, name, err);
    if (st == ST_OK)
        st = run(program, &s, again, err);
    if (st == ST_OK)
        st = take_out(&s, err);
    scratch_close(&s);
    return st;
}

/* ---- files and templates -------------------------------------------------------- */

FILE *chart_file_create(struct chart_file *c, const char *dir, const char *name,
                        const char *ending, struct err *err)
{
    c->dir = dir;
    c->name = name;
    c->form = name;
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

static enum status add_template(FILE *to, const char *name, struct err *err)
{
    char path[4096], file[80], *text;
    size_t len;

    snprintf(file, sizeof file, "%s.gp", name);
    if (!data_file_find(path, sizeof path, "plots", file))
        return err_set(
            err, ST_UNSUPPORTED,
            "there is no chart template %s in the folder that SLMBENCH_PLOTS "
            "names; name the plots directory of slmbench, or none",
            file);
    enum status st = textfile_read(path, TEMPLATE_MAX_BYTES, &text, &len, err);
    if (st)
        return st;
    fwrite(text, 1, len, to);
    free(text);
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
        st = add_template(c->file.f, c->form, err);
    if (st) {
        newfile_abort(&c->file);
        return st;
    }
    st = chart_file_finish(c, err);
    return st ? st : gnuplot_draw(c->dir, c->name, again, err);
}

enum status chart_files_make(const struct chart_text *t, chart_put_fn *put_data,
                             chart_put_fn *put_settings, const void *what,
                             struct err *err)
{
    struct chart_file c;
    char again[256];
    FILE *f = chart_file_create(&c, t->dir, t->name, "csv", err);

    if (!f)
        return err->code;
    put_data(f, what);
    if (chart_file_finish(&c, err))
        return err->code;
    f = chart_file_create(&c, t->dir, t->name, "gp", err);
    if (!f)
        return err->code;
    c.form = t->form;
    chart_file_head(f, t->name, t->title, t->subtitle);
    put_settings(f, what);
    snprintf(again, sizeof again, "bench plot %.200s", t->dir);
    return chart_file_draw(&c, t->again ? t->again : again, err);
}

void chart_file_texts(FILE *f, const char *name, const char *const *v, int n,
                      size_t most)
{
    char text[512];

    fprintf(f, "n_%s = %d\narray %s[%d]\n", name, n, name, n);
    for (int i = 0; i < n; i++) {
        fprintf(f, "%s[%d] = ", name, i + 1);
        gnuplot_quote(f, text_shorten(text, sizeof text, v[i], most));
        fputc('\n', f);
    }
}

void chart_file_ranges(FILE *f, double x_min, double x_max, double y_min, double y_max)
{
    fprintf(f,
            "x_min = %.6g\nx_max = %.6g\ny_min = %.6g\ny_max = %.6g\nlog_y = 0\n"
            "y_ticks = ''\n",
            x_min, x_max, y_min, y_max);
}

enum status chart_files_check(const struct path_list *inputs, const char *dir,
                              const char *const *names, struct err *err)
{
    enum status st = ST_OK;

    for (; *names && st == ST_OK; names++)
        for (size_t i = 0; i < N_ALL && st == ST_OK; i++) {
            char file[128];
            const char *const one[] = {file, NULL};

            snprintf(file, sizeof file, "%.100s.%s", *names, endings[i]);
            st = path_list_check_folder(inputs, dir, one, err);
        }
    return st;
}

void chart_files_remove(const char *dir, const char *name)
{
    for (size_t i = 0; i < N_ALL; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s.%s", dir, name, endings[i]);
        unlink(path);
    }
}
