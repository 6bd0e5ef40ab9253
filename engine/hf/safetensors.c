/* SPDX-License-Identifier: MIT
 *
 * safetensors.c - folders, shards and reads; safetensors_head.c checks headers
 */
#include "engine/hf/safetensors_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/jsonfile.h"
#include "engine/base/fileread.h"
#include "engine/base/utf8.h"

#define MAX_SHARDS 4096

static const char one_file[] = "model.safetensors";
static const char index_file[] = "model.safetensors.index.json";

/* ---- files ----------------------------------------------------------------------- */

/* The header of the file f, from its descriptor. */
static enum status read_head(struct safetensors *s, uint32_t f, struct err *err)
{
    const struct shard *shard = &s->shards[f];
    uint8_t length[8];
    uint64_t n;
    char *head = NULL;
    enum status st;

    if (shard->bytes < 8)
        return safetensors_too_short(shard, err);
    st = readfile_at(shard->fd, shard->path, length, 8, 0, err);
    if (st)
        return st;
    st = safetensors_head_length(&n, shard, length, err);
    if (st)
        return st;
    head = malloc((size_t)n + 1);
    if (!head)
        return err_set(err, ST_NO_MEMORY, "no memory for the header of %s",
                       shard->path);
    st = readfile_at(shard->fd, shard->path, head, (size_t)n, 8, err);
    if (!st)
        st = safetensors_head_parse(s, f, head, (size_t)n, err);
    free(head);
    return st;
}

/* Whether a name is of a file in the folder itself, so that an index cannot reach other
 * files, and printable. */
static bool is_plain_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if (*c < ' ' || *c > '~' || *c == '/')
            return false;
    return *name && *name != '.';
}

static enum status add_shard(struct safetensors *s, const char *dir, const char *name,
                             struct err *err)
{
    struct shard *shards = realloc(s->shards, (s->n_shards + 1) * sizeof *shards);
    struct stat st;

    if (!shards)
        return err_set(err, ST_NO_MEMORY, "no memory for the list of files of %s", dir);
    s->shards = shards;
    struct shard *f = &shards[s->n_shards];

    *f = (struct shard){.fd = -1};
    if (asprintf(&f->path, "%s/%s", dir, name) < 0) {
        f->path = NULL;
        return err_set(err, ST_NO_MEMORY, "no memory for the list of files of %s", dir);
    }
    s->n_shards++;
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0 || fstat(f->fd, &st))
        return err_set_errno(err, ST_IO, "cannot open %s", f->path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ST_INPUT, "%s is not a regular file", f->path);
    f->bytes = (uint64_t)st.st_size;
    (void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return read_head(s, (uint32_t)s->n_shards - 1, err);
}

static const struct json_limit max_index = {(size_t)64 << 20, (size_t)1 << 20};

/* ---- the index ------------------------------------------------------------------- */

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* List the files of the index, sorted, each once. */
static enum status list_shards(const char ***names, size_t *n,
                               const struct jsonfile *index, const json_t *map,
                               struct err *err)
{
    const char *key, **list = malloc((json_object_size(map) + 1) * sizeof *list);
    json_t *value;
    size_t count = 0, kept = 0;
    char shown[80];

    if (!list)
        return err_set(err, ST_NO_MEMORY, "no memory for the list of files of %s",
                       index->path);
    json_object_foreach((json_t *)(uintptr_t)map, key, value)
    {
        const char *file = json_text(value);

        if (!file || !is_plain_name(file)) {
            free(list);
            return err_set(err, ST_INPUT,
                           "%s puts the tensor '%s' into '%s', which is not the name "
                           "of a file in the same folder",
                           index->path,
                           utf8_printable(shown, sizeof shown, key, strlen(key)),
                           file ? "a path" : "no file");
        }
        list[count++] = file;
    }
    qsort(list, count, sizeof *list, compare_text);
    for (size_t i = 0; i < count; i++)
        if (!i || strcmp(list[i], list[i - 1]))
            list[kept++] = list[i];
    if (kept >= 1 && kept <= MAX_SHARDS) {
        *names = list;
        *n = kept;
        return ST_OK;
    }
    free(list);
    return err_set(err, ST_INPUT, "%s names %zu files; 1 to %d are possible",
                   index->path, kept, MAX_SHARDS);
}

/* Every tensor of the index must be in the file it names. */
static enum status check_index(const struct safetensors *s,
                               const struct jsonfile *index, const json_t *map,
                               struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)map, key, value)
    {
        const uint32_t i = strtab_find(&s->index, key, strlen(key));
        const char *file = json_text(value);
        char shown[80];

        utf8_printable(shown, sizeof shown, key, strlen(key));
        if (i == STRTAB_NONE)
            return err_set(err, ST_INPUT,
                           "%s promises the tensor '%s', and none of the files has it",
                           index->path, shown);
        const char *path = s->shards[s->tensors[i].file].path;

        if (strcmp(strrchr(path, '/') + 1, file))
            return err_set(err, ST_INPUT,
                           "%s puts the tensor '%s' into %.80s, but it is in %s",
                           index->path, shown, file, path);
    }
    return ST_OK;
}

static enum status open_sharded(struct safetensors *s, const char *dir, struct err *err)
{
    struct jsonfile index = {.root = NULL};
    const char **names = NULL;
    size_t n = 0;
    enum status st = jsonfile_load(&index, dir, index_file, max_index, err);

    if (st)
        return st;
    const json_t *map = json_member(index.root, "weight_map");

    if (!json_is_object(map))
        st = err_set(err, ST_INPUT, "%s has no weight_map, the list of its tensors",
                     index.path);
    if (!st)
        st = list_shards(&names, &n, &index, map, err);
    for (size_t i = 0; i < n && !st; i++)
        st = add_shard(s, dir, names[i], err);
    if (!st)
        st = safetensors_index(s, err);
    if (!st)
        st = check_index(s, &index, map, err);
    free(names);
    jsonfile_free(&index);
    return st;
}

static enum status nothing_there(const char *dir, struct err *err)
{
    if (jsonfile_exists(dir, "pytorch_model.bin") ||
        jsonfile_exists(dir, "pytorch_model.bin.index.json"))
        return err_set(err, ST_INPUT,
                       "%s has weights in pytorch_model.bin, a format that runs code "
                       "when it is read; get or make its model.safetensors",
                       dir);
    return err_set(err, ST_INPUT, "%s has neither %s nor %s, so there are no weights",
                   dir, one_file, index_file);
}

/* ---- the interface --------------------------------------------------------------- */

enum status safetensors_open(struct safetensors **out, const char *dir, struct err *err)
{
    struct safetensors *s = calloc(1, sizeof *s);
    bool has_index = false, has_one = false;
    enum status st;

    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory for the tensors of %s", dir);
    st = jsonfile_find(&has_index, dir, index_file, err);
    if (!st)
        st = jsonfile_find(&has_one, dir, one_file, err);
    if (!st && has_index)
        st = open_sharded(s, dir, err);
    else if (!st && !has_one)
        st = nothing_there(dir, err);
    else if (!st && !(st = add_shard(s, dir, one_file, err)))
        st = safetensors_index(s, err);
    if (st)
        safetensors_close(s);
    else
        *out = s;
    return st;
}

enum status safetensors_add(struct safetensors *s, const char *dir, const char *folder,
                            struct err *err)
{
    const size_t before = s->n_tensors;
    char *path = NULL;
    enum status st = ST_OK;

    if (asprintf(&path, "%s/%s", dir, folder) < 0)
        return err_set(err, ST_NO_MEMORY, "no memory for the tensors of %s", dir);
    st = add_shard(s, path, one_file, err);
    free(path);
    for (size_t i = before; !st && i < s->n_tensors; i++) {
        char *name = NULL;

        if (asprintf(&name, "%s/%s", folder, s->tensors[i].name) < 0)
            return err_set(err, ST_NO_MEMORY, "no memory for the tensors of %s", dir);
        free(s->tensors[i].name);
        s->tensors[i].name = name;
    }
    if (st)
        return st;
    strtab_free(&s->index);
    return safetensors_index(s, err);
}

void safetensors_close(struct safetensors *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_shards; i++) {
        if (s->shards[i].fd >= 0)
            close(s->shards[i].fd);
        free(s->shards[i].path);
    }
    for (size_t i = 0; i < s->n_tensors; i++)
        free(s->tensors[i].name);
    strtab_free(&s->index);
    free(s->shards);
    free(s->tensors);
    free(s);
}

size_t safetensors_count(const struct safetensors *s)
{
    return s->n_tensors;
}

const struct safetensor *safetensors_at(const struct safetensors *s, size_t i)
{
    return &s->tensors[i];
}

enum status safetensors_read(const struct safetensors *s, const struct safetensor *t,
                             uint64_t at, size_t n, void *dst, struct err *err)
{
    const struct shard *f = &s->shards[t->file];

    return readfile_at(f->fd, f->path, dst, n, t->offset + at, err);
}

void safetensors_drop(const struct safetensors *s, const struct safetensor *t,
                      uint64_t at, uint64_t n)
{
    pagecache_drop(s->shards[t->file].fd, t->offset + at, t->offset + at + n);
}
