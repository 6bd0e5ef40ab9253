/* SPDX-License-Identifier: MIT
 *
 * requests.c - lines of requests.csv
 */
#include "harness/serve/load/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/invoker.h"

/* before: size of the file, which begins with a header. A killed program may have left
 * its last line torn: a line end completes it. */
static char *make_text(const struct row *row, const double *v, size_t n, off_t before,
                       bool is_torn, size_t *len)
{
    static const int decimals[REQUEST_CELLS] = {6, 4, 6, 0, 6, 0};
    char *text = NULL;
    FILE *f = open_memstream(&text, len);

    if (!f)
        return NULL;
    if (!before)
        fputs(REQUESTS_HEADER, f);
    if (is_torn)
        fputc('\n', f);
    for (size_t i = 0; i < n; i++) {
        fprintf(f, strpbrk(row->point, ",\"") ? "\"%s\"" : "%s", row->point);
        fprintf(f, ",%lld,%zu", (long long)row->attempt, i);
        for (int k = 0; k < REQUEST_CELLS; k++) {
            const double cell = v[i * REQUEST_CELLS + (size_t)k];

            fputc(',', f);
            if (!isnan(cell))
                fprintf(f, "%.*f", decimals[k], cell);
        }
        fputc('\n', f);
    }
    return fclose(f) ? (free(text), NULL) : text;
}

static enum status append(int fd, const char *path, const struct row *row,
                          const double *v, size_t n, struct err *err)
{
    const off_t before = lseek(fd, 0, SEEK_END);
    char last = '\n', *text;
    size_t len = 0;
    ssize_t done = 0;

    if (before < 0 || (before > 0 && pread(fd, &last, 1, before - 1) != 1))
        return err_set_errno(err, ST_IO, "cannot read %s", path);
    text = make_text(row, v, n, before, last != '\n', &len);
    if (!text)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu requests", n);
    for (size_t at = 0; at < len && done >= 0; at += (size_t)done) {
        done = write(fd, text + at, len - at);
        if (done < 0 && errno == EINTR)
            done = 0;
    }
    free(text);
    if (done >= 0 && !fsync(fd))
        return ST_OK;
    err_set_errno(err, ST_IO,
                  "cannot write to %s (free disk space and continue with --resume)",
                  path);
    if (ftruncate(fd, before))
        err_set_errno(err, ST_IO, "cannot cut %s back", path);
    return ST_IO;
}

enum status requests_append(const char *dir, const struct row *row, const double *v,
                            size_t n, struct err *err)
{
    const char *advice;
    char path[4200];
    enum status st;
    int fd;

    snprintf(path, sizeof path, "%.4000s/" REQUESTS_CSV, dir);
    fd = invoker_open(path, O_RDWR);
    if (fd < 0) {
        advice = invoker_open_advice(errno);
        return advice ? err_set(err, ST_USAGE, "%s %s", path, advice)
                      : err_set_errno(err, ST_IO, "cannot open %s", path);
    }
    st = append(fd, path, row, v, n, err);
    close(fd);
    return st;
}
