/* SPDX-License-Identifier: MIT
 *
 * hf.c - assemble a gguf from the parts of a model folder
 */
#include "engine/hf/hf_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool hf_is_folder(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* The last part of the path up to `end`; `end` becomes the end of its parent. */
static const char *last_part(const char *path, size_t *end, size_t *len)
{
    while (*end > 1 && path[*end - 1] == '/')
        --*end;
    size_t begin = *end;

    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    *len = *end - begin;
    *end = begin;
    return path + begin;
}

/* .../models--org--name/snapshots/REVISION */
const char *hf_folder_name(const char *dir, size_t *len)
{
    size_t end = strlen(dir), n;
    const char *name = last_part(dir, &end, len);
    const char *above = last_part(dir, &end, &n);

    if (n != strlen("snapshots") || memcmp(above, "snapshots", n))
        return name;
    const char *repository = last_part(dir, &end, &n);

    if (n <= strlen("models--") || memcmp(repository, "models--", strlen("models--")))
        return name;
    /* ends at that of "models--" */
    for (*len = 0; memcmp(repository + n - *len - 2, "--", 2) != 0;)
        ++*len;
    return repository + n - *len;
}

/* A cache of the Hub keeps each revision in snapshots/ and the current one's name in
 * refs/main. */
static enum status in_hub_cache(const char *dir, struct err *err)
{
    struct err no_ref = ERR_INIT;
    char *ref = NULL;

    if (jsonfile_read_text(&ref, dir, "refs/main", 256, &no_ref))
        return err_set(err, ST_USAGE,
                       "%s is a cache of the Hub; the model's folder is one of those "
                       "in %s/snapshots",
                       dir, dir);
    ref[strspn(ref, "0123456789abcdef")] = '\0';
    err_set(err, ST_USAGE,
            "%s is a cache of the Hub; the model's folder in it is %s/snapshots/%s",
            dir, dir, ref);
    free(ref);
    return ST_USAGE;
}

enum status hf_check_folder(const char *dir, struct err *err)
{
    bool exists;
    const enum status st = jsonfile_find(&exists, dir, "config.json", err);

    if (st || exists)
        return st;
    if (jsonfile_exists(dir, "snapshots"))
        return in_hub_cache(dir, err);
    if (jsonfile_exists(dir, "adapter_config.json"))
        return err_set(err, ST_USAGE,
                       "%s holds an adapter (adapter_config.json), not a model; merge "
                       "it into its base model first",
                       dir);
    return err_set(err, ST_USAGE,
                   "%s is a directory without a config.json; name a GGUF file or a "
                   "Hugging Face folder",
                   dir);
}

static enum status make_head(struct gguf_bytes *head, struct gguf_kvs *kvs,
                             const struct hf_tensors *t, const char *dir,
                             struct err *err)
{
    gguf_kv_u32(kvs, "general.file_type", hf_tensors_file_type(t));
    gguf_kv_u32(kvs, "general.quantization_version", 2);
    gguf_put_head(head, hf_tensors_count(t), kvs);
    hf_tensors_put(t, head);
    gguf_put_padding(head);
    return head->failed
               ? err_set(err, ST_NO_MEMORY, "no memory for the metadata of %s", dir)
               : ST_OK;
}

enum status hf_open(struct gguf **out, const char *dir, struct err *err)
{
    struct gguf_kvs kvs = {.n = 0};
    struct gguf_bytes head = {.n = 0};
    struct hf_config c;
    struct safetensors *s = NULL;
    struct hf_tensors *t = NULL;
    enum status st;

    if ((st = hf_check_folder(dir, err)) || (st = hf_links(dir, NULL, NULL, err)))
        return st;
    st = hf_config_load(&c, dir, &kvs, err);
    if (!st)
        st = hf_put_modules(&c, dir, err);
    if (!st)
        st = safetensors_open(&s, dir, err);
    if (!st &&
        ((st = hf_put_layers(&c, s, err)) || (st = hf_add_modules(&c, s, dir, err)) ||
         (st = hf_put_xielu(&c, s, err))))
        safetensors_close(s);
    if (!st)
        st = hf_tensors_make(&t, &c, s, dir, err);
    if (!st) {
        const int64_t n_vocab = hf_tensors_n_vocab(t);

        if (n_vocab)
            hf_put_u32(&c, "vocab_size", n_vocab);
        st = hf_tokenizer_put(&kvs, dir, n_vocab, err);
    }
    if (!st)
        st = make_head(&head, &kvs, t, dir, err);
    hf_config_free(&c);
    free(kvs.bytes.data);
    if (st) {
        free(head.data);
        hf_tensors_free(t);
        return st;
    }
    return gguf_assemble(out, head.data, head.n, dir,
                         &(struct gguf_source){.read = hf_tensors_read,
                                               .close = hf_tensors_free,
                                               .arg = t},
                         err);
}
