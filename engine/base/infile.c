/* SPDX-License-Identifier: MIT
 *
 * infile.c - small files that nobody has vouched for, read whole
 */
#include "engine/base/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status check(int fd, const char *path, uint64_t max, uint64_t *bytes,
                         struct err *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return err_set_errno(err, ST_IO, "cannot read the size of %s", path);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ST_INPUT, "%s is a folder; name a file in it", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ST_INPUT,
                       "%s is a pipe or a device; copy it to a regular file", path);
    if ((uint64_t)st.st_size > max)
        return err_set(err, ST_INPUT,
                       "%s has %llu bytes; at most %llu are read of such a file", path,
                       (unsigned long long)st.st_size, (unsigned long long)max);
    *bytes = (uint64_t)st.st_size;
    return ST_OK;
}

enum status infile_open(FILE **f, uint64_t *bytes, const char *path, uint64_t max,
                        struct err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum status st;

    if (fd < 0)
        return err_set_errno(err, ST_IO, "cannot open %s", path);
    st = check(fd, path, max, bytes, err);
    if (st == ST_OK && !(*f = fdopen(fd, "r")))
        st = err_set_errno(err, ST_IO, "cannot open %s", path);
    if (st)
        close(fd);
    return st;
}

enum status infile_read(char **text, size_t *len, const char *path, size_t max,
                        struct err *err)
{
    FILE *f;
    uint64_t bytes;
    char *buf;
    enum status st = infile_open(&f, &bytes, path, max, err);

    if (st)
        return st;
    buf = malloc((size_t)bytes + 1);
    if (!buf) {
        st = err_set(err, ST_NO_MEMORY, "no memory for the %llu bytes of %s",
                     (unsigned long long)bytes, path);
    } else if (fread(buf, 1, (size_t)bytes, f) != bytes) {
        st = err_set(err, ST_IO, "%s cannot be read to its end", path);
    } else {
        buf[bytes] = '\0';
        *text = buf;
        *len = (size_t)bytes;
    }
    fclose(f);
    if (st)
        free(buf);
    return st;
}

enum status infile_exists(bool *exists, const char *path, struct err *err)
{
    struct stat st;
    const int error = stat(path, &st) ? errno : 0;

    if (error && error != ENOENT && error != ENOTDIR) {
        errno = error;
        return err_set_errno(err, ST_IO, "cannot find out whether there is %s", path);
    }
    *exists = !error;
    return ST_OK;
}
