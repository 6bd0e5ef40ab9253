/* SPDX-License-Identifier: MIT
 *
 * hf.c - a model folder from its parts to an assembled gguf
 */
#include "engine/hf_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool hf_is_folder(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
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

    if (!jsonfile_exists(dir, "config.json"))
        return err_set(err, ST_INPUT,
                       "%s is a directory without a config.json; name a GGUF file or a "
                       "Hugging Face folder",
                       dir);
    st = hf_config_load(&c, dir, &kvs, err);
    if (!st)
        st = safetensors_open(&s, dir, err);
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
