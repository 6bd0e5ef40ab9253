/* SPDX-License-Identifier: MIT
 *
 * sysfile.c - small text files of /proc, /sys and cgroups, live or recorded
 */
#include "harness/base/sysfile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Larger than any CPU number; keeps a hostile "0-2147483647" from looping long. */
#define CPU_NUMBER_MAX 65535

bool sysfile_path(char *buf, size_t cap, const char *root, const char *path)
{
    const int n = snprintf(buf, cap, "%s%s", root, path);
    const bool fits = n >= 0 && (size_t)n < cap;

    if (!fits)
        errno = ENAMETOOLONG;
    return fits;
}

static int open_under(const char *root, const char *path)
{
    char full[SYSFILE_PATH_MAX];

    if (!sysfile_path(full, sizeof full, root, path))
        return -1;
    return open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Up to cap bytes, in as many reads as needed; -1 on error. */
static long read_up_to(int fd, char *buf, size_t cap)
{
    size_t have = 0;

    while (have < cap) {
        const ssize_t n = read(fd, buf + have, cap - have);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    return (long)have;
}

/* Zero-terminate and cut trailing white space; returns the new length. */
static long trim(char *buf, long n)
{
    while (n > 0 && isspace((unsigned char)buf[n - 1]))
        n--;
    buf[n] = '\0';
    return n;
}

long sysfile_read(const char *root, const char *path, char *buf, size_t cap)
{
    const int fd = open_under(root, path);

    buf[0] = '\0';
    if (fd < 0)
        return -1;
    const long n = read_up_to(fd, buf, cap - 1);
    const int saved = errno;

    close(fd);
    errno = saved;
    if (n < 0) {
        buf[0] = '\0';
        return -1;
    }
    return trim(buf, n);
}

char *sysfile_read_all(const char *root, const char *path)
{
    const size_t most = (size_t)16 << 20;
    size_t cap = 16384, have = 0;
    const int fd = open_under(root, path);
    char *buf = fd < 0 ? NULL : malloc(cap + 1);

    while (buf) {
        const long n = read_up_to(fd, buf + have, cap - have);

        if (n < 0) {
            free(buf);
            buf = NULL;
            break;
        }
        have += (size_t)n;
        if (have < cap || cap >= most)
            break;
        char *larger = realloc(buf, cap * 2 + 1);
        if (!larger) {
            free(buf);
            buf = NULL;
            break;
        }
        buf = larger;
        cap *= 2;
    }
    if (fd >= 0)
        close(fd);
    if (buf)
        trim(buf, (long)have);
    return buf;
}

const char *sysfile_stat(const char *root, const char *process, char *buf, size_t cap)
{
    const char *name_end = NULL;
    char path[64];

    snprintf(path, sizeof path, "/proc/%s/stat", process);
    if (sysfile_read(root, path, buf, cap) > 0)
        name_end = strrchr(buf, ')');
    return name_end ? name_end + 1 : NULL;
}

/* strtoull() that rejects signs; "max" is the largest number. */
static bool parse_u64(const char *text, uint64_t *value)
{
    while (*text == ' ' || *text == '\t')
        text++;
    if (!strncmp(text, "max", 3)) {
        *value = UINT64_MAX;
        return true;
    }
    if (!isdigit((unsigned char)*text))
        return false;
    *value = strtoull(text, NULL, 10); /* saturates at UINT64_MAX */
    return true;
}

bool sysfile_u64(const char *root, const char *path, uint64_t *value)
{
    char text[64];

    return sysfile_read(root, path, text, sizeof text) > 0 && parse_u64(text, value);
}

bool text_key_u64(const char *text, const char *key, uint64_t *value)
{
    const size_t len = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, len) &&
            (line[len] == ' ' || line[len] == ':' || line[len] == '\t'))
            return parse_u64(line + len + 1, value);
    }
    return false;
}

bool text_has_word(const char *list, const char *word)
{
    const size_t len = strlen(word);

    for (const char *p = list; len && (p = strstr(p, word)); p += len) {
        const bool begins = p == list || strchr(" ,\t\n", p[-1]);

        if (begins && strchr(" ,\t\n", p[len])) /* finds the final zero, too */
            return true;
    }
    return false;
}

/* A CPU number at *text, which is moved behind it; -1: no number. */
static int parse_cpu(const char **text)
{
    long v = 0;

    if (!isdigit((unsigned char)**text))
        return -1;
    for (; isdigit((unsigned char)**text); (*text)++) {
        v = v * 10 + (**text - '0');
        if (v > CPU_NUMBER_MAX)
            return -1;
    }
    return (int)v;
}

bool text_cpu_list(const char *text, void (*add)(void *arg, int cpu), void *arg)
{
    while (isspace((unsigned char)*text))
        text++;
    while (*text && !isspace((unsigned char)*text)) {
        const int first = parse_cpu(&text);
        int last = first;

        if (first >= 0 && *text == '-') {
            text++;
            last = parse_cpu(&text);
        }
        if (first < 0 || last < first)
            return false;
        for (int cpu = first; cpu <= last; cpu++)
            add(arg, cpu);
        if (*text != ',')
            break;
        text++;
    }
    return *text == '\0' || isspace((unsigned char)*text);
}
