/* SPDX-License-Identifier: MIT
 *
 * hf_links.c - where the links of a model folder lead
 *
 * A cache of the Hub has its files once, by their hash:
 *     models--org--name/blobs/HASH
 *     models--org--name/snapshots/REVISION/config.json -> ../../blobs/HASH
 * and older versions of its library left links to blobs/ in folders of the user's. So
 * those are a model's own, wherever the cache is.
 */
#include "engine/hf/hf.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The last part of path[*len]; *len becomes the length of what is before it. */
static const char *cut_last(const char *path, size_t *len, size_t *n)
{
    const size_t end = *len;

    while (*len > 0 && path[*len - 1] != '/')
        --*len;
    *n = end - *len;
    const char *last = path + *len;

    *len -= *len > 0;
    return last;
}

static bool is_named(const char *part, size_t n, const char *name)
{
    return n == strlen(name) && !memcmp(part, name, n);
}

/* Whether path[len] ends with models--.../folder/ANYTHING; *above is then the length of
 * what is before /folder. */
static bool is_in_cache(const char *path, const char *folder, size_t *above)
{
    static const char model[] = "models--";
    size_t len = strlen(path), n;

    cut_last(path, &len, &n);
    const char *part = cut_last(path, &len, &n);

    if (!is_named(part, n, folder))
        return false;
    *above = len;
    part = cut_last(path, &len, &n);
    return n > strlen(model) && !memcmp(part, model, strlen(model));
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), n_end = strlen(end);

    return n > n_end && !strcmp(text + n - n_end, end);
}

/* Names that readers of the folder open. */
static bool is_read(const char *name)
{
    return ends_with(name, ".json") || ends_with(name, ".jinja") ||
           ends_with(name, ".safetensors");
}

/* Whether a file may be read because a link of the folder leads to it. Weights may be
 * on another disk. */
static bool is_model_file(const char *file)
{
    size_t above;

    return ends_with(file, ".safetensors") || is_in_cache(file, "blobs", &above);
}

static bool is_below(const char *path, const char *folder)
{
    const size_t n = strlen(folder);

    return !strncmp(path, folder, n) && path[n] == '/';
}

struct links {
    char folder[PATH_MAX]; /* without links */
    const char *dir;       /* as it was named */
    hf_path_fn *fn;
    void *arg;
};

/* name: the link's in the folder, "config.json" or "1_Pooling/config.json". */
static enum status take_link(const struct links *l, const char *name, struct err *err)
{
    char path[PATH_MAX], file[PATH_MAX];
    struct stat st;

    if (snprintf(path, sizeof path, "%s/%s", l->folder, name) >= (int)sizeof path ||
        !realpath(path, file) || stat(file, &st) || !S_ISREG(st.st_mode) ||
        is_below(file, l->folder))
        return ST_OK; /* its reader reports what is wrong with it */
    if (is_model_file(file))
        return l->fn ? l->fn(l->arg, file, err) : ST_OK;
    if (!is_read(name))
        return ST_OK;
    return err_set(
        err, ST_INPUT,
        "%s/%s is a link to %s, out of the model's folder, where only weights "
        "(*.safetensors) and files of a Hugging Face cache may be; put a copy "
        "of it there",
        l->dir, name, file);
}

/* The type of an entry: DT_LNK, DT_DIR, or another. */
static int type_of(int fd, const struct dirent *e)
{
    struct stat st;

    if (e->d_type != DT_UNKNOWN)
        return e->d_type;
    return fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) ? DT_UNKNOWN
                                                            : IFTODT(st.st_mode);
}

/* The links in the folder ("") or in one that it holds ("1_Pooling/"). */
static enum status take_links(const struct links *l, const char *within,
                              struct err *err)
{
    char path[PATH_MAX];
    DIR *d = snprintf(path, sizeof path, "%s/%s", l->folder, within) < (int)sizeof path
                 ? opendir(path)
                 : NULL;
    enum status st = ST_OK;

    for (const struct dirent *e; d && !st && (e = readdir(d));) {
        const int type = type_of(dirfd(d), e);
        char name[2 * NAME_MAX + 3];

        snprintf(name, sizeof name, "%s%s%s", within, e->d_name,
                 type == DT_DIR ? "/" : "");
        if (type == DT_LNK)
            st = take_link(l, name, err);
        else if (type == DT_DIR && !*within && *e->d_name != '.')
            st = take_links(l, name, err);
    }
    if (d)
        closedir(d);
    return st;
}

/* The files of all revisions of the model. */
static enum status take_blobs(const struct links *l, struct err *err)
{
    char blobs[PATH_MAX + 8];
    struct stat st;
    size_t above;

    if (!is_in_cache(l->folder, "snapshots", &above))
        return ST_OK;
    snprintf(blobs, sizeof blobs, "%.*s/blobs", (int)above, l->folder);
    return !lstat(blobs, &st) && S_ISDIR(st.st_mode) && l->fn
               ? l->fn(l->arg, blobs, err)
               : ST_OK;
}

enum status hf_links(const char *dir, hf_path_fn *fn, void *arg, struct err *err)
{
    struct links l = {.dir = dir, .fn = fn, .arg = arg};
    enum status st;

    if (!realpath(dir, l.folder))
        return ST_OK;
    st = take_blobs(&l, err);
    return st ? st : take_links(&l, "", err);
}
