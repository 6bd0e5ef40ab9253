/* SPDX-License-Identifier: MIT
 *
 * textfile.c - reading and writing whole files
 */
#include "harness/base/textfile.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/utf8.h"
#include "harness/base/newfile.h"
#include "harness/base/program.h"

bool textfile_append(int fd, const char *text, size_t len, bool synced)
{
    const off_t before = lseek(fd, 0, SEEK_END);
    size_t done = 0;

    if (before < 0)
        return false;
    while (done < len) {
        const ssize_t n = write(fd, text + done, len - done);

        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            break;
    }
    if (done < len || (synced && fsync(fd))) {
        const int why = errno;

        if (!ftruncate(fd, before))
            errno = why;
        return false;
    }
    return true;
}

/* Room for more than cap bytes; max + 1 are enough. */
static enum status grow(char **buf, size_t *cap, size_t max, const char *path,
                        struct err *err)
{
    const size_t want = *cap >= max / 2 ? max + 1 : *cap ? *cap * 2 : 65536;
    char *bigger = realloc(*buf, want);

    if (!bigger)
        return err_set(err, ST_NO_MEMORY, "cannot allocate %zu bytes for %s", want,
                       path);
    *buf = bigger;
    *cap = want;
    return ST_OK;
}

static FILE *open_text(const char *path)
{
    size_t len;
    const char *inside = data_inside_text(path, &len);

    if (!strcmp(path, "-"))
        return stdin;
    return inside ? fmemopen((void *)(uintptr_t)inside, len, "rb") : fopen(path, "rbe");
}

enum status textfile_read(const char *path, size_t max, char **text, size_t *len,
                          struct err *err)
{
    const bool from_stdin = !strcmp(path, "-");
    FILE *f = open_text(path);
    size_t n = 0, cap = 0, got = 1;
    char *buf = NULL;
    enum status st = ST_OK;

    if (!f)
        return err_set_errno(err, ST_IO, "cannot open %s", path);
    while (got && !st) {
        if (n == cap && (st = grow(&buf, &cap, max, path, err)))
            break;
        got = fread(buf + n, 1, cap - n, f);
        n += got;
        if (ferror(f))
            st = err_set_errno(err, ST_IO, "cannot read %s", path);
        else if (n > max)
            st = err_set(
                err, ST_INPUT,
                "%s has more than %zu bytes, the limit for such a text; shorten it",
                from_stdin ? "standard input" : path, max);
    }
    if (!from_stdin)
        fclose(f);
    if (st) {
        free(buf);
        return st;
    }
    *text = buf;
    *len = n;
    return ST_OK;
}

/* The page of a job that all its steps add to. */
static bool is_shared_page(const char *path)
{
    const char *summary = getenv("GITHUB_STEP_SUMMARY");

    return summary && !strcmp(path, summary);
}

static enum status write_shared(FILE *f, const char *path,
                                void (*write)(FILE *f, const void *arg),
                                const void *arg, struct err *err)
{
    if (!f)
        return err_set_errno(err, ST_IO, "%.300s cannot be written", path);
    write(f, arg);
    const int failed = ferror(f) | (f == stdout ? fflush(f) : fclose(f));
    return failed ? err_set_errno(err, ST_IO, "%.300s cannot be written", path) : ST_OK;
}

enum status textfile_write(const char *path, void (*write)(FILE *f, const void *arg),
                           const void *arg, struct err *err)
{
    struct newfile n;

    if (!strcmp(path, "-"))
        return write_shared(stdout, "standard output", write, arg, err);
    if (is_shared_page(path))
        return write_shared(fopen(path, "ae"), path, write, arg, err);
    if (newfile_open(&n, path, err))
        return err->code;
    write(n.f, arg);
    return newfile_commit(&n, path, err);
}

/* What controls a terminal or a CI system can only be in the strings of a JSON text,
 * where its number is the same character. */
static int put_harmless(FILE *f, const char *piece, size_t len)
{
    for (size_t i = 0; i < len;) {
        const int n = utf8_char_len(piece + i, len - i);
        unsigned code = n > 0 && piece[i] != '\n' ? utf8_control(piece + i, n) : 0;

        if (len - i > 2 && !memcmp(piece + i, "##[", 3))
            code = '#';
        if (code)
            fprintf(f, "\\u%04x", code);
        else
            fwrite(piece + i, 1, n > 0 ? (size_t)n : 1, f);
        i += n > 0 ? (size_t)n : 1;
    }
    return ferror(f) ? -1 : 0;
}

int textfile_put_json(FILE *f, const json_t *object, size_t flags)
{
    char *text = json_dumps(object, flags);
    const int failed = text ? put_harmless(f, text, strlen(text)) : -1;

    free(text);
    return failed;
}

struct json_text {
    const json_t *object;
    size_t flags;
};

static void write_json(FILE *f, const void *arg)
{
    const struct json_text *t = arg;

    textfile_put_json(f, t->object, t->flags);
    fputc('\n', f);
}

enum status textfile_write_json(const char *path, json_t *object, size_t flags,
                                struct err *err)
{
    const struct json_text t = {object, flags};
    const enum status st =
        object ? textfile_write(path, write_json, &t, err)
               : err_set(err, ST_NO_MEMORY, "no memory for %.300s", path);

    json_decref(object);
    return st;
}
