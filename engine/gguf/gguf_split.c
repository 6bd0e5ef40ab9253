/* SPDX-License-Identifier: MIT
 *
 * gguf_split.c - one head for several files, and rows from the file that holds them
 */
#include "engine/gguf/gguf_split.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/gguf/gguf_panels.h"
#include "engine/gguf/gguf_put.h"

#define ENDING_BYTES 20 /* "-00001-of-00003.gguf" */
#define MAX_PARTS    1000

struct split {
    struct gguf **parts; /* [n]; the first has the metadata */
    int n;
};

/* ---- names ----------------------------------------------------------------------- */

static bool five_digits(const char *s, int *out)
{
    *out = 0;
    for (int i = 0; i < 5; i++) {
        if (!isdigit((unsigned char)s[i]))
            return false;
        *out = *out * 10 + (s[i] - '0');
    }
    return true;
}

/* The ending of a part's path; NULL for any other path. */
static const char *ending(const char *path, int *no, int *count)
{
    const size_t len = strlen(path);
    const char *at = path + (len > ENDING_BYTES ? len - ENDING_BYTES : 0);

    return len > ENDING_BYTES && at[0] == '-' && five_digits(at + 1, no) &&
                   !strncmp(at + 6, "-of-", 4) && five_digits(at + 10, count) &&
                   !strcmp(at + 15, ".gguf") && *no >= 1 && *no <= *count
               ? at
               : NULL;
}

int gguf_split_count(const char *path)
{
    int no, count;

    return ending(path, &no, &count) ? count : 1;
}

size_t gguf_split_stem(const char *path)
{
    int no, count;
    const char *at = ending(path, &no, &count);

    return at ? (size_t)(at - path) : strlen(path);
}

bool gguf_split_path(char *out, size_t cap, const char *path, int i)
{
    int no, count;
    const char *at = ending(path, &no, &count);

    if (!at)
        return snprintf(out, cap, "%s", path) < (int)cap;
    return snprintf(out, cap, "%.*s-%05d-of-%05d.gguf", (int)(at - path), path, i + 1,
                    count) < (int)cap;
}

/* ---- parts ----------------------------------------------------------------------- */

static uint64_t number_of(const struct gguf *g, const char *key)
{
    uint64_t v = 0;

    gguf_get_u64(g, key, &v);
    return v;
}

bool gguf_split_is(const struct gguf *g)
{
    return number_of(g, "split.count") > 1;
}

static void split_close(void *arg)
{
    struct split *s = arg;

    for (int i = 0; s->parts && i < s->n; i++)
        gguf_close(s->parts[i]);
    free(s->parts);
    free(s);
}

static enum status split_read(void *arg, const struct gguf_tensor *t, uint64_t row,
                              uint64_t n_rows, bool drop, void *dst, struct err *err)
{
    const struct split *s = arg;
    const struct gguf_tensor *there = NULL;
    int i = 0;

    while (!(there = gguf_tensor_find(s->parts[i], t->name)))
        i++; /* every tensor of the head is in a part */
    return gguf_read_rows(s->parts[i], there, row, n_rows, drop, dst, err);
}

static enum status check_part(const struct split *s, int i, struct err *err)
{
    const struct gguf *g = s->parts[i];
    char name[160];

    if (number_of(g, "split.no") == (uint64_t)i &&
        number_of(g, "split.count") == (uint64_t)s->n)
        return ST_OK;
    utf8_printable(name, sizeof name, gguf_path(g), strlen(gguf_path(g)));
    return err_set(err, ST_INPUT,
                   "%s has the header of part %llu of %llu of a model, but its name is "
                   "that of part %d of %d",
                   name, (unsigned long long)number_of(g, "split.no") + 1,
                   (unsigned long long)number_of(g, "split.count"), i + 1, s->n);
}

static enum status open_parts(struct split *s, const char *path, struct err *err)
{
    enum status st = ST_OK;

    s->n = gguf_split_count(path);
    if (s->n < 2 || s->n > MAX_PARTS) {
        char name[160];

        utf8_printable(name, sizeof name, path, strlen(path));
        return err_set(
            err, ST_INPUT,
            "%s is a part of a model, but its name is not that of a part; the parts "
            "are called NAME-00001-of-00002.gguf and so on, at most %d",
            name, MAX_PARTS);
    }
    s->parts = calloc((size_t)s->n, sizeof(struct gguf *));
    if (!s->parts)
        return err_set(err, ST_NO_MEMORY, "no memory for the parts of a model");
    for (int i = 0; i < s->n && !st; i++) {
        char part[4096];

        if (!gguf_split_path(part, sizeof part, path, i))
            return err_set(err, ST_USAGE, "the path of a model's part is too long");
        st = gguf_open(&s->parts[i], part, err);
        if (!st)
            st = check_part(s, i, err);
    }
    return st;
}

/* ---- the assembled gguf ---------------------------------------------------------- */

static void put_metadata(struct gguf_kvs *kvs, const struct gguf *g)
{
    for (size_t i = 0; i < gguf_n_kvs(g); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);

        if ((kv->key.len < 6 || memcmp(kv->key.data, "split.", 6) != 0) &&
            !gguf_is_layout_key(kv))
            gguf_kv_copy(kvs, g, kv);
    }
}

static void put_tensors(struct gguf_bytes *head, const struct split *s,
                        uint64_t alignment)
{
    uint64_t offset = 0;

    for (int i = 0; i < s->n; i++)
        for (size_t k = 0; k < gguf_n_tensors(s->parts[i]); k++) {
            const struct gguf_tensor *t = gguf_tensor_at(s->parts[i], k);

            gguf_put_tensor(head, t->name, t->n_dims, t->ne, t->ggml_id, offset);
            offset = (offset + t->bytes + alignment - 1) / alignment * alignment;
        }
}

static enum status make_head(struct gguf_bytes *head, const struct split *s,
                             struct err *err)
{
    const struct gguf *first = s->parts[0];
    const uint64_t alignment = gguf_alignment(first);
    const uint64_t promised = number_of(first, "split.tensors.count");
    struct gguf_kvs kvs = {.n = 0};
    uint64_t n = 0;

    for (int i = 0; i < s->n; i++)
        n += gguf_n_tensors(s->parts[i]);
    if (promised && promised != n)
        return err_set(err, ST_INPUT,
                       "%s promises %llu tensors in %d files, and they have %llu",
                       gguf_path(first), (unsigned long long)promised, s->n,
                       (unsigned long long)n);
    put_metadata(&kvs, first);
    gguf_put_head(head, n, &kvs);
    put_tensors(head, s, alignment);
    while (!head->failed && !kvs.bytes.failed && head->n % alignment)
        gguf_put(head, "", 1);
    free(kvs.bytes.data);
    return head->failed || kvs.bytes.failed
               ? err_set(err, ST_NO_MEMORY, "no memory for the metadata of %s",
                         gguf_path(first))
               : ST_OK;
}

enum status gguf_split_join(struct gguf **out, struct gguf *part, struct err *err)
{
    struct split *s = calloc(1, sizeof *s);
    struct gguf_bytes head = {.n = 0};
    enum status st = s ? open_parts(s, gguf_path(part), err)
                       : err_set(err, ST_NO_MEMORY, "no memory for a model's parts");

    if (!st)
        st = make_head(&head, s, err);
    if (!st)
        st = gguf_assemble(
            out, head.data, head.n, gguf_path(part),
            &(struct gguf_source){.read = split_read, .close = split_close, .arg = s},
            err);
    else {
        free(head.data);
        if (s)
            split_close(s);
    }
    gguf_close(part);
    return st;
}
