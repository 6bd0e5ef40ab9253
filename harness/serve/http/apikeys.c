/* SPDX-License-Identifier: MIT
 *
 * apikeys.c - keys, compared in constant time
 */
#include "harness/serve/http/apikeys.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/infile.h"

#define MAX_BYTES (1 << 20)

struct apikeys {
    int n;
    /* Padded with zeros. */
    unsigned char key[APIKEYS_MAX][APIKEYS_MAX_CHAR + 1];
};

static enum status add_line(struct apikeys *k, const char *path, const char *line,
                            size_t len, int number, struct err *err)
{
    if (len && line[len - 1] == '\r')
        len--;
    if (!len || line[0] == '#')
        return ST_OK;
    if (len < APIKEYS_MIN_CHAR || len > APIKEYS_MAX_CHAR)
        return err_set(err, ST_INPUT,
                       "%s: the key in line %d has %zu characters, not %d "
                       "to %d",
                       path, number, len, APIKEYS_MIN_CHAR, APIKEYS_MAX_CHAR);
    for (size_t i = 0; i < len; i++)
        if (line[i] <= ' ' || line[i] > '~')
            return err_set(err, ST_INPUT,
                           "%s: the key in line %d has a blank, or a character that is "
                           "no printable ASCII",
                           path, number);
    if (k->n == APIKEYS_MAX)
        return err_set(err, ST_INPUT, "%s holds more than %d keys", path, APIKEYS_MAX);
    memcpy(k->key[k->n++], line, len);
    return ST_OK;
}

static enum status read_lines(struct apikeys *k, const char *path, const char *text,
                              struct err *err)
{
    enum status st = ST_OK;

    for (int number = 1; !st && *text; number++) {
        const size_t len = strcspn(text, "\n");

        st = add_line(k, path, text, len, number, err);
        text += len + (text[len] == '\n');
    }
    if (!st && !k->n)
        st = err_set(err, ST_INPUT, "%s holds no key: one a line", path);
    return st;
}

enum status apikeys_read(struct apikeys **k, const char *path, struct err *err)
{
    struct apikeys *new = calloc(1, sizeof *new);
    char *text = NULL;
    size_t len = 0;
    enum status st = new ? infile_read(&text, &len, path, MAX_BYTES, err)
                         : err_set(err, ST_NO_MEMORY, "no memory for %s", path);

    if (!st && strlen(text) < len)
        st = err_set(err, ST_INPUT, "%s has a zero byte, and is no text", path);
    if (!st)
        st = read_lines(new, path, text, err);
    if (text)
        explicit_bzero(text, len);
    free(text);
    if (st)
        apikeys_free(new);
    else
        *k = new;
    return st;
}

void apikeys_free(struct apikeys *k)
{
    if (k)
        explicit_bzero(k, sizeof *k);
    free(k);
}

static bool is_equal(const unsigned char *a, const unsigned char *b)
{
    unsigned differ = 0;

    for (size_t i = 0; i <= APIKEYS_MAX_CHAR; i++)
        differ |= (unsigned)(a[i] ^ b[i]);
    return !differ;
}

int apikeys_find_bare(const struct apikeys *k, const char *key)
{
    unsigned char given[APIKEYS_MAX_CHAR + 1] = {0};
    const size_t len = key ? strlen(key) : 0;
    int found = -1;

    if (!len || len > APIKEYS_MAX_CHAR)
        return -1;
    memcpy(given, key, len);
    for (int i = 0; i < k->n; i++)
        if (is_equal(given, k->key[i]))
            found = i;
    return found;
}

int apikeys_find(const struct apikeys *k, const char *header)
{
    static const char scheme[] = "Bearer ";

    if (!header || strncasecmp(header, scheme, strlen(scheme)))
        return -1;
    header += strlen(scheme);
    return apikeys_find_bare(k, header + strspn(header, " "));
}
