/* SPDX-License-Identifier: MIT
 *
 * requests.c - lines of requests.csv
 */
#include "harness/serve/load/requests.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/textfile.h"

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

static enum status append(int fd, const char *dir, const struct row *row,
                          const double *v, size_t n, struct err *err)
{
    const off_t before = lseek(fd, 0, SEEK_END);
    char last = '\n', *text;
    size_t len = 0;
    enum status st = ST_OK;

    if (before < 0 || (before > 0 && pread(fd, &last, 1, before - 1) != 1))
        return err_set_errno(err, ST_IO, "cannot read %s/" REQUESTS_CSV, dir);
    text = make_text(row, v, n, before, last != '\n', &len);
    if (!text)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu requests", n);
    if (!textfile_append(fd, text, len, true))
        st = err_set_errno(err, ST_IO,
                           "cannot write to %s/" REQUESTS_CSV
                           " (free disk space and continue with --resume)",
                           dir);
    free(text);
    return st;
}

enum status requests_append(const struct sweep_dir *dir, const struct row *row,
                            const double *v, size_t n, struct err *err)
{
    int fd;
    enum status st = sweep_dir_open_file(dir, REQUESTS_CSV, O_RDWR, &fd, err);

    if (st)
        return st;
    st = append(fd, sweep_dir_path(dir), row, v, n, err);
    close(fd);
    return st;
}
