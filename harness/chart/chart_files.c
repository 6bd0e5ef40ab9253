/* SPDX-License-Identifier: MIT
 *
 * chart_files.c - the files of a chart; gnuplot in a folder of its own, or our own SVG
 */
#include "harness/chart/chart_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/invoker.h"
#include "harness/base/format.h"
#include "harness/base/inherited.h"
#include "harness/base/interrupt.h"
#include "harness/base/program.h"
#include "harness/base/progress.h"
#include "harness/base/textfile.h"
#include "harness/chart/svg.h"

#define STYLE_MAX_BYTES ((size_t)1 << 20)
#define NOT_STARTED     127 /* exit code of a child that could not start gnuplot */

/* A file that is being written. */
struct chart_file {
    struct newfile file;
    char path[4096];
};

/* dir/name.ending, which replaces what has that name; NULL with err of
 * newfile_replace(). */
static FILE *chart_file_create(struct chart_file *c, const char *dir, const char *name,
                               const char *ending, struct err *err)
{
    if (snprintf(c->path, sizeof c->path, "%s/%s.%s", dir, name, ending) >=
        (int)sizeof c->path) {
        err_set(err, ST_USAGE, "the path of a chart is too long: %.60s...", dir);
        return NULL;
    }
    return newfile_replace(&c->file, c->path, err) ? NULL : c->file.f;
}

static enum status chart_file_finish(struct chart_file *c, struct err *err)
{
    return newfile_commit(&c->file, c->path, err);
}

/* ---- the folder ------------------------------------------------------------------ */

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

        if (fd < 0 && errno == ENOENT) /* a style that draws one form only */
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

/* ---- the process ----------------------------------------------------------------- */

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
    inherited_pass_on(0);
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

/* ---- without gnuplot ------------------------------------------------------------- */

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

/* dir/<name>.svg by our own writer; a PNG of an earlier run would show other data. */
static enum status draw_alone(const struct plot *p, const char *dir, const char *again,
                              struct err *err)
{
    char png[4096];
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, p->name, "svg", err);

    if (!f)
        return err->code;
    svg_write(f, p, &plot_look_file);
    if (chart_file_finish(&c, err))
        return err->code;
    snprintf(png, sizeof png, "%s/%s.png", dir, p->name);
    unlink(png);
    print_how_to_get_png(dir, p->name, again);
    return ST_OK;
}

/* ---- with gnuplot ---------------------------------------------------------------- */

/* *is_missing is set where it cannot be started. */
static enum status run(const char *program, const struct scratch *s, bool *is_missing,
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
    *is_missing = WIFEXITED(rc) && WEXITSTATUS(rc) == NOT_STARTED;
    if (*is_missing)
        return ST_OK;
    if (WIFSIGNALED(rc))
        return err_set(err, ST_IO, "gnuplot was ended by signal %d drawing %.100s/%s",
                       WTERMSIG(rc), s->dir_path, script);
    return err_set(err, ST_IO, "gnuplot could not draw %.100s/%s: %s", s->dir_path,
                   script, message);
}

/* dir/<name>.svg and .png of <name>.gp and <name>.csv there. */
static enum status draw(const struct plot *p, const char *dir, const char *again,
                        struct err *err)
{
    char program[PATH_MAX];
    bool is_missing = false;
    struct scratch s;
    enum status st = ST_OK;

    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (!program_find(program, sizeof program, "gnuplot"))
        return draw_alone(p, dir, again, err);
    if (scratch_open(&s, dir, p->name, err) || run(program, &s, &is_missing, err) ||
        (!is_missing && take_out(&s, err)))
        st = err->code;
    scratch_close(&s);
    return st == ST_OK && is_missing ? draw_alone(p, dir, again, err) : st;
}

/* ---- files ----------------------------------------------------------------------- */

/* plots/style.gp, as a text that ends in 0; malloc'ed. */
static enum status read_style(char **style, struct err *err)
{
    char path[4096], *text = NULL, *ended;
    size_t len = 0;
    enum status st;

    if (!data_file_find(path, sizeof path, "plots", "style.gp"))
        return err_set(err, ST_UNSUPPORTED,
                       "there is no style.gp of charts in the folder that "
                       "SLMBENCH_PLOTS names; name the plots directory of slmbench, or "
                       "none");
    st = textfile_read(path, STYLE_MAX_BYTES, &text, &len, err);
    ended = st ? NULL : realloc(text, len + 1);
    if (!ended) {
        free(st ? NULL : text);
        return st ? st : err_set(err, ST_NO_MEMORY, "no memory for %s", path);
    }
    ended[len] = '\0';
    *style = ended;
    return ST_OK;
}

static enum status write_table(const struct plot *p, const char *dir, struct err *err)
{
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, p->name, "csv", err);

    if (!f)
        return err->code;
    gnuplot_write_table(f, p);
    return chart_file_finish(&c, err);
}

static enum status write_script(const struct plot *p, const char *dir, struct err *err)
{
    char *style = NULL;
    struct chart_file c;
    enum status st = read_style(&style, err);
    FILE *f = st ? NULL : chart_file_create(&c, dir, p->name, "gp", err);

    if (f && (st = gnuplot_write(f, p, style, err)) != ST_OK)
        newfile_abort(&c.file);
    else
        st = f ? chart_file_finish(&c, err) : err->code;
    free(style);
    return st;
}

enum status chart_files_draw(struct plot *p, const char *dir, const char *again,
                             struct err *err)
{
    char own[300];
    enum status st = p ? ST_OK : ST_NO_MEMORY;

    snprintf(own, sizeof own, "bench plot %.250s", dir);
    if (p)
        plot_lay_out(p, &plot_look_file);
    if (!p || p->is_incomplete)
        st = err_set(err, ST_NO_MEMORY, "no memory for a chart in %.300s", dir);
    if (st == ST_OK)
        st = write_table(p, dir, err);
    if (st == ST_OK)
        st = write_script(p, dir, err);
    if (st == ST_OK)
        st = draw(p, dir, again ? again : own, err);
    plot_free(p);
    return st;
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
