/* SPDX-License-Identifier: MIT
 *
 * gate_rounds.c - rounds as lines of a file, and what disturbed them as words
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/invoker.h"
#include "harness/base/textfile.h"
#include "harness/decide/gate/gate_run.h"

static enum status append(int fd, const char *text, size_t len, struct err *err)
{
    return textfile_append(fd, text, len, false)
               ? ST_OK
               : err_set_errno(err, ST_IO, "cannot write " GATE_ROUNDS_NAME);
}

enum status gate_rounds_open(int *fd, const char *dir, struct err *err)
{
    char path[600];

    snprintf(path, sizeof path, "%s/" GATE_ROUNDS_NAME, dir);
    *fd = invoker_open(path, O_WRONLY | O_EXCL);
    if (*fd < 0 && errno == EEXIST)
        return err_set(err, ST_USAGE, "%s holds a gate already; name another directory",
                       dir);
    if (*fd < 0)
        return err_set_errno(err, ST_IO, "cannot make %s", path);
    return append(*fd, GATE_ROUNDS_HEADER, strlen(GATE_ROUNDS_HEADER), err);
}

static void write_line(FILE *f, const struct gate_round_line *line,
                       const struct gate_metric *m, size_t i)
{
    fprintf(f, "%zu,%zu,%.*s,%d,\"%s\",%s", line->launch, line->round, line->n_values,
            line->order, line->counted, m->name, m->unit);
    for (int k = 0; k < 4; k++) {
        if (k < line->n_values)
            fprintf(f, ",%.9g", line->value[i][k]);
        else
            fputc(',', f);
    }
    fprintf(f, ",%.9g,\"%s\"\n", line->log_ratio[i], line->note);
}

enum status gate_rounds_write(int fd, const struct gate_round_line *line,
                              const struct gate_metric *metric, size_t n_metrics,
                              struct err *err)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = fd < 0 ? NULL : open_memstream(&text, &len);
    enum status st = ST_OK;

    if (fd < 0)
        return ST_OK;
    if (!f)
        return err_set(err, ST_NO_MEMORY, "no memory for a round");
    for (size_t i = 0; i < n_metrics; i++)
        if (line->value[i])
            write_line(f, line, &metric[i], i);
    if (fclose(f))
        st = err_set(err, ST_NO_MEMORY, "no memory for a round");
    if (st == ST_OK)
        st = append(fd, text, len, err);
    free(text);
    return st;
}
