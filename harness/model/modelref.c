/* SPDX-License-Identifier: MIT
 *
 * modelref.c - FILE, FOLDER, either of them with :QUANT, or SHAPE:QUANT
 */
#include "harness/model/modelref.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/outfile.h"
#include "engine/gguf/gguf_split.h"
#include "engine/hf/hf.h"
#include "engine/modelfile.h"
#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/base/suggest.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/model/model_names.h"

#define MAX_TRIES 3  /* to make a file that others remove */
#define STUCK_S   60 /* without a write, another process no longer makes it */
#define AGAIN_US  100000

/* ---- names ----------------------------------------------------------------------- */

#define MIX_LIST_MAX \
    320 /* of all names; fits an error's message together with a sentence */

static const char *mix_list(char *buf, size_t cap)
{
    buf[0] = '\0';
    for (int i = 0; i < QUANTMIX_N; i++)
        text_append(buf, cap, "%s%s", i ? ", " : "", quantmix_name((enum quantmix)i));
    return buf;
}

enum status mix_parse(enum quantmix *mix, const char *name, struct err *err)
{
    const enum quantmix found = quantmix_by_name(name);
    const char *names[QUANTMIX_N];
    char upper[32], list[MIX_LIST_MAX];

    if (found != QUANTMIX_N) {
        *mix = found;
        return ST_OK;
    }
    for (int i = 0; i < QUANTMIX_N; i++)
        names[i] = quantmix_name((enum quantmix)i);
    snprintf(upper, sizeof upper, "%s", name);
    for (char *p = upper; *p; p++)
        *p = (char)toupper((unsigned char)*p);

    const char *near = NULL;
    for (int i = 0; i < QUANTMIX_N && strlen(upper) > 3; i++) {
        if (!strncmp(names[i], upper, strlen(upper)))
            near = names[i]; /* "Q4_K": the last, Q4_K_M, is the usual one */
    }
    if (!near)
        near = suggest(upper, names, QUANTMIX_N);
    return err_set(err, ST_USAGE,
                   "there is no quantisation '%.40s'%s%s%s; there are: %s", name,
                   near ? " (did you mean " : "", near ? near : "", near ? "?)" : "",
                   mix_list(list, sizeof list));
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), n = strlen(end);

    return len >= n && !strcmp(text + len - n, end);
}

/* "dir/model.gguf" -> "model" */
static void name_of_file(char *out, size_t cap, const char *path)
{
    size_t end = strlen(path);

    while (end > 1 && path[end - 1] == '/')
        end--;
    const char *slash = memrchr(path, '/', end);
    const char *name = slash && end > 1 ? slash + 1 : path;

    if (gguf_split_count(path) > 1)
        end = gguf_split_stem(path);
    snprintf(out, cap, "%.*s", (int)(path + end - name), name);
    if (ends_with(out, ".gguf"))
        out[strlen(out) - 5] = '\0';
}

static void name_of_path(char *out, size_t cap, const char *path)
{
    char own[sizeof((struct modelref *)0)->name];
    size_t len;
    const char *name = hf_folder_name(path, &len);

    if (hf_is_folder(path))
        snprintf(out, cap, "%.*s", (int)len, name);
    else
        name_of_file(out, cap, path);
    text_harmless(own, sizeof own, out);
    snprintf(out, cap, "%s", own);
}

static enum status not_a_model(const char *text, struct err *err)
{
    char **names, near[200], list[MIX_LIST_MAX];
    int n = 0;
    bool is_shape = false;

    if (shape_list(&names, &n, err))
        return ST_NO_MEMORY;
    for (int i = 0; i < n; i++) {
        is_shape |= !strcmp(names[i], text);
        free(names[i]);
    }
    free(names);
    if (is_shape)
        return err_set(err, ST_USAGE,
                       "the shape '%s' needs a quantisation: %s:Q4_K_M, for instance; "
                       "there are: %s",
                       text, text, mix_list(list, sizeof list));
    if (!shape_near(text, near, sizeof near))
        snprintf(near, sizeof near, "yi-1.5-9b");
    return err_set(
        err, ST_USAGE,
        "'%.120s' is neither a GGUF file, a Hugging Face folder nor "
        "SHAPE:QUANT: download the model and give its path, or take a shape "
        "with random weights, like %.*s:Q4_K_M (`bench synth --list` has all)",
        text, (int)strcspn(near, ","), near);
}

/* ---- the cache directory --------------------------------------------------------- */

/* The directory is the returned one and what is below it; NULL: none is known. */
static const char *find_cache(const char *given, const char **below)
{
    const char *own = getenv("SLMBENCH_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");

    *below = "";
    if (given && given[0])
        return given;
    if (own && own[0])
        return own;
    *below = "/slmbench";
    if (xdg && xdg[0] == '/') /* relative ones are to be ignored */
        return xdg;
    *below = "/.cache/slmbench";
    return home && home[0] ? home : NULL;
}

static bool knows_cache(const char *cache_dir)
{
    const char *below;

    return find_cache(cache_dir, &below) != NULL;
}

enum status modelref_cache_path(char *out, size_t cap, const char *cache_dir,
                                const char *file, struct err *err)
{
    const char *below, *dir = find_cache(cache_dir, &below);

    if (!dir)
        return err_set(err, ST_USAGE,
                       "no cache directory is known, as $HOME is not set; give one "
                       "with --cache-dir or $SLMBENCH_CACHE");
    const int len = snprintf(out, cap, "%s%s/%s", dir, below, file);

    if (len >= (int)cap)
        return err_set(err, ST_USAGE,
                       "the cache directory's name is longer than %zu characters; give "
                       "a shorter one with --cache-dir or $SLMBENCH_CACHE",
                       cap - strlen(file) - 2);
    return ST_OK;
}

/* Makes all directories above path. */
static enum status make_parents(const char *path, struct err *err)
{
    const char *const slash = strrchr(path, '/');
    struct err why = ERR_INIT;
    char dir[PATH_MAX];
    enum status st;

    snprintf(dir, sizeof dir, "%.*s", slash > path ? (int)(slash - path) : 1,
             slash ? path : ".");
    st = dirs_make(dir, &why);
    return st ? err_set(err, st,
                        "%s (it is for synthetic models; choose another directory with "
                        "--cache-dir or $SLMBENCH_CACHE)",
                        why.msg)
              : ST_OK;
}

/* ---- the interface --------------------------------------------------------------- */

static enum status parse_synthetic(struct modelref *ref, const char *colon,
                                   const char *cache_dir, struct err *err)
{
    char shape[sizeof ref->text], file[sizeof ref->name + 24];

    snprintf(shape, sizeof shape, "%.*s", (int)(colon - ref->text), ref->text);

    if (shape_load(&ref->shape, shape, err) || mix_parse(&ref->mix, colon + 1, err))
        return err->code;
    ref->synthetic = true;
    snprintf(ref->name, sizeof ref->name, "%s", ref->shape.name);
    snprintf(ref->label, sizeof ref->label, "%s", ref->shape.name);
    ref->identity = shape_identity(&ref->shape);
    /* Most uses need no file: the others call modelref_check_cache(). */
    if (!knows_cache(cache_dir))
        return ST_OK;
    snprintf(file, sizeof file, "%s-%s.gguf", ref->name, quantmix_name(ref->mix));
    return modelref_cache_path(ref->path, sizeof ref->path, cache_dir, file, err);
}

enum status modelref_check_cache(const struct modelref *ref, struct err *err)
{
    char path[PATH_MAX];

    return *ref->path ? ST_OK
                      : modelref_cache_path(path, sizeof path, NULL, ref->name, err);
}

/* The part of PATH:QUANT in front of the colon is a file or a model's folder. */
static bool is_model_path(const char *text, const char *colon)
{
    char path[sizeof((struct modelref *)0)->text + 16];
    struct stat there;
    const int n = (int)(colon - text);

    snprintf(path, sizeof path, "%.*s/config.json", n, text);
    if (!stat(path, &there))
        return true;
    snprintf(path, sizeof path, "%.*s", n, text);
    return !stat(path, &there) && S_ISREG(there.st_mode);
}

/* A file or folder that is there. */
static enum status take_path(struct modelref *r, const char *text, size_t len,
                             struct err *err)
{
    enum status st;

    if (len >= sizeof r->path)
        return err_set(err, ST_USAGE, "a model's path has at most %zu characters",
                       sizeof r->path - 1);
    snprintf(r->path, sizeof r->path, "%.*s", (int)len, text);
    if (hf_is_folder(r->path) && (st = hf_check_folder(r->path, err)))
        return st;
    name_of_path(r->name, sizeof r->name, r->path);
    model_label(r->label, sizeof r->label, r->name);
    return ST_OK;
}

enum status modelref_parse(struct modelref *ref, const char *text,
                           const char *cache_dir, struct err *err)
{
    struct modelref r = {.mix = QUANTMIX_N};
    const size_t len = strlen(text);
    struct stat there;

    if (len >= sizeof r.text)
        return err_set(err, ST_USAGE, "a model's name has at most %zu characters",
                       sizeof r.text - 1);
    memcpy(r.text, text, len + 1);

    const char *colon = strrchr(r.text, ':');
    if (!stat(text, &there)) {
        if (take_path(&r, text, len, err))
            return err->code;
    } else if (modelref_list_of(text)) {
        return err_set(err, ST_USAGE,
                       "'%.120s' is several models, and one is taken here; name one of "
                       "its quantisations, as in %.*s",
                       text, (int)strcspn(text, ","), text);
    } else if (colon && is_model_path(r.text, colon)) {
        r.at_load = true;
        if (take_path(&r, r.text, (size_t)(colon - r.text), err) ||
            mix_parse(&r.mix, colon + 1, err))
            return err->code;
    } else if (ends_with(text, ".gguf")) {
        return err_set_errno(err, ST_USAGE, "cannot open %s", text);
    } else if (!colon) {
        return not_a_model(text, err);
    } else {
        if (parse_synthetic(&r, colon, cache_dir, err))
            return err->code;
    }
    *ref = r;
    return ST_OK;
}

enum status modelref_set_quant(struct modelref *ref, const char *quant, struct err *err)
{
    const size_t n = strlen(ref->text);
    enum quantmix mix = QUANTMIX_N;

    if (!quant)
        return ST_OK;
    if (ref->synthetic || ref->at_load)
        return err_set(err, ST_USAGE,
                       "--quant %.40s: %s names its quantisation already", quant,
                       ref->text);
    if (mix_parse(&mix, quant, err))
        return ST_USAGE;
    if (n + 1 + strlen(quantmix_name(mix)) >= sizeof ref->text)
        return err_set(
            err, ST_USAGE,
            "a model's name with its quantisation has at most %zu characters",
            sizeof ref->text - 1);
    snprintf(ref->text + n, sizeof ref->text - n, ":%s", quantmix_name(mix));
    ref->mix = mix;
    ref->at_load = true;
    return ST_OK;
}

enum status modelref_read_shape(struct modelref *ref, bool in_memory, struct err *err)
{
    struct modelref named;

    ref->synthetic = ref->synthetic && (in_memory || access(ref->path, F_OK));
    if (!ref->synthetic)
        return ST_OK;
    if (modelref_parse(&named, ref->text, NULL, err))
        return err->code;
    ref->shape = named.shape;
    ref->identity = named.identity;
    ref->mix = named.mix;
    return ST_OK;
}

const char *modelref_quant(const struct modelref *ref)
{
    return ref->at_load ? quantmix_name(ref->mix) : NULL;
}

enum status modelref_open(const struct modelref *ref, struct gguf **g, struct err *err)
{
    return ref->requant ? modelfile_requant(g, ref->path, ref->requant, err)
                        : modelfile_open(g, ref->path, modelref_quant(ref), err);
}

/* The file, or all parts of it. */
static enum status add_parts(const struct modelref *ref, struct path_list *files,
                             struct err *err)
{
    for (int i = 0; i < gguf_split_count(ref->path); i++) {
        char path[PATH_MAX];
        const enum status st =
            gguf_split_path(path, sizeof path, ref->path, i)
                ? path_list_add(files, path, err)
                : err_set(err, ST_USAGE, "the path of a model's part is too long");

        if (st)
            return st;
    }
    return ST_OK;
}

enum status modelref_files(const struct modelref *ref, struct path_list *files,
                           struct err *err)
{
    enum status st = ST_OK;
    DIR *dir;

    if (!hf_is_folder(ref->path))
        return add_parts(ref, files, err);
    dir = opendir(ref->path);
    if (!dir)
        return err_set_errno(err, ST_IO, "cannot list %s", ref->path);
    while (!st) {
        const struct dirent *e;
        char path[PATH_MAX];

        errno = 0;
        e = readdir(dir);
        if (!e) {
            if (errno)
                st = err_set_errno(err, ST_IO, "cannot list %s", ref->path);
            break;
        }
        if (snprintf(path, sizeof path, "%s/%s", ref->path, e->d_name) >=
            (int)sizeof path)
            st = err_set(err, ST_USAGE, "the path of a model's file is too long");
        else if (!hf_is_folder(path))
            st = path_list_add(files, path, err);
    }
    closedir(dir);
    return st;
}

enum status modelref_check_output(const struct modelref *ref, const char *out,
                                  struct err *err)
{
    struct path_list files = {0};
    enum status st = modelref_files(ref, &files, err);

    if (!st)
        st = path_list_check_output(&files, out, err);
    path_list_free(&files);
    return st;
}

enum status modelref_evict(const struct modelref *ref, uint64_t *stayed_bytes,
                           struct err *err)
{
    const bool folder = hf_is_folder(ref->path);
    struct path_list files = {0};
    uint64_t sum = 0;
    enum status st = modelref_files(ref, &files, err);

    for (size_t i = 0; !st && i < files.n; i++) {
        uint64_t stayed = 0;

        if (folder && !ends_with(files.path[i], ".safetensors"))
            continue;
        st = file_evict(files.path[i], &stayed, err);
        sum += stayed;
    }
    path_list_free(&files);
    if (!st)
        *stayed_bytes = sum;
    return st;
}

static int show_progress(void *arg, uint64_t done, uint64_t total)
{
    struct progress *bar = arg;
    char detail[64];

    snprintf(detail, sizeof detail, "%.2f of %.2f GB", (double)done * 1e-9,
             (double)total * 1e-9);
    progress_update(bar, (double)done / (double)total, detail);
    return interrupted();
}

enum status modelref_write_plan(const struct synth_plan *plan, const char *path,
                                struct err *err)
{
    struct progress bar;

    progress_begin(&bar, "making the model");
    const enum status st = synth_write_file(plan, path, show_progress, &bar, err);
    progress_end(&bar);
    return st;
}

/* After a failure: what another process makes is waited for; then it is there, or can
 * be made. */
static enum status wait_for_maker(const char *path, struct err *err)
{
    char text[PATH_MAX + 80];

    if (!outfile_is_being_made(path, STUCK_S))
        return err->code;
    err_clear(err);
    snprintf(text, sizeof text, "waiting for another process, which makes %s",
             format_path(path).text);
    message_print(text);
    while (outfile_is_being_made(path, STUCK_S)) {
        if (interrupted())
            return err_set(err, ST_INTERRUPTED, "interrupted");
        usleep(AGAIN_US);
    }
    return ST_OK;
}

enum status modelref_make_file(const struct modelref *ref, bool *made, struct err *err)
{
    struct synth_plan *plan;
    bool write = false;
    enum status st = modelref_check_cache(ref, err);

    if (!st && ref->synthetic) {
        st = synth_plan_make(&plan, &ref->shape, ref->mix, MODELREF_SEED, err);
        if (st)
            return st;
        /* Again, where another process has removed it in between. */
        for (int i = 0; !st && i < MAX_TRIES; i++) {
            if (model_use(ref->path) && synth_file_is(plan, ref->path))
                break;
            st = make_parents(ref->path, err);
            if (!st)
                st = modelref_write_plan(plan, ref->path, err);
            write |= !st;
            if (st == ST_IO)
                st = wait_for_maker(ref->path, err);
        }
        synth_plan_free(plan);
    }
    if (!st && made)
        *made = write;
    return st;
}

bool modelref_remove(const struct modelref *ref)
{
    return modelref_is_made(ref) && model_remove_unused(ref->path);
}

bool modelref_is_made(const struct modelref *ref)
{
    struct err ignored = ERR_INIT;
    struct synth_plan *plan;
    bool is_made;

    if (!ref->synthetic ||
        synth_plan_make(&plan, &ref->shape, ref->mix, MODELREF_SEED, &ignored))
        return false;
    is_made = synth_file_is(plan, ref->path);
    synth_plan_free(plan);
    return is_made;
}

enum status modelref_bytes(const struct modelref *ref, uint64_t *bytes, struct err *err)
{
    struct synth_plan *plan;
    struct stat there;

    if (ref->at_load || (!ref->synthetic && (hf_is_folder(ref->path) ||
                                             gguf_split_count(ref->path) > 1))) {
        struct gguf *g = NULL;
        const enum status opened = modelref_open(ref, &g, err);

        if (opened)
            return opened;
        *bytes = gguf_image_bytes(g);
        gguf_close(g);
        return ST_OK;
    }
    if (!ref->synthetic) {
        if (stat(ref->path, &there))
            return err_set_errno(err, ST_IO, "cannot open %s", ref->path);
        *bytes = (uint64_t)there.st_size;
        return ST_OK;
    }
    if (synth_plan_make(&plan, &ref->shape, ref->mix, MODELREF_SEED, err))
        return err->code;
    *bytes = synth_plan_bytes(plan);
    synth_plan_free(plan);
    return ST_OK;
}
