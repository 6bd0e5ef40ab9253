/* SPDX-License-Identifier: MIT
 *
 * gnuplot.c - gnuplot as a child process
 */
#include "harness/base/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
