/* SPDX-License-Identifier: MIT
 *
 * encode_texts.c - ids of many texts by the tokenizer.json of a folder, for ci/real
 *
 *     encode_texts FOLDER TEXTS.json [ROUNDS]
 *
 * TEXTS.json is a list of strings; the ids are a list of lists. With ROUNDS the texts
 * are encoded that often, and standard error has the speed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/gguf/gguf_put.h"
#include "engine/hf/hf_impl.h"
#include "engine/tokenizer/tokenizer.h"

static struct tokenizer *open_folder(const char *dir, struct err *err)
{
    struct gguf_kvs k = {.n = 0};
    struct gguf_bytes head = {.n = 0};
    struct tokenizer *t = NULL;
    struct gguf *g = NULL;
    void *image;

    gguf_kv_str(&k, "general.architecture", "llama");
    if (hf_tokenizer_put(&k, dir, 0, err))
        return NULL;
    gguf_put_head(&head, 0, &k);
    gguf_put_padding(&head);
    image = aligned_alloc(64, (head.n + 63) / 64 * 64);
    if (image)
        memcpy(image, head.data, head.n);
    if (image && !gguf_parse(&g, image, head.n, dir, err))
        tokenizer_open(&t, g, err);
    gguf_close(g);
    free(image);
    free(head.data);
    free(k.bytes.data);
    return t;
}

/* All texts once; prints the ids to f unless it is NULL. Returns their number. */
static size_t encode(const struct tokenizer *t, const json_t *texts, FILE *f,
                     struct err *err)
{
    size_t n_all = 0, i;
    json_t *one;

    json_array_foreach(texts, i, one)
    {
        int32_t *ids = NULL;
        size_t n = 0;

        if (f)
            fputs(i ? ",\n[" : "[", f);
        if (tokenizer_encode(t, json_string_value(one), json_string_length(one), false,
                             true, &ids, &n, err)) {
            fprintf(stderr, "encode_texts: text %zu: %s\n", i, err->msg);
            err_clear(err);
        }
        for (size_t k = 0; f && k < n; k++)
            fprintf(f, "%s%d", k ? "," : "", (int)ids[k]);
        if (f)
            fputc(']', f);
        free(ids);
        n_all += n;
    }
    return n_all;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    json_error_t why;
    const int rounds = argc > 3 ? atoi(argv[3]) : 0;
    json_t *texts = argc > 2 ? json_load_file(argv[2], JSON_ALLOW_NUL, &why) : NULL;
    struct tokenizer *t = texts ? open_folder(argv[1], &err) : NULL;

    if (!t) {
        fprintf(stderr, "encode_texts: %s\n",
                err.code ? err.msg : "FOLDER TEXTS.json [ROUNDS]");
        return 2;
    }
    if (!rounds) {
        fputc('[', stdout);
        encode(t, texts, stdout, &err);
        fputs("]\n", stdout);
    } else {
        const clock_t begin = clock();
        size_t n = 0;

        for (int i = 0; i < rounds; i++)
            n += encode(t, texts, NULL, &err);
        fprintf(stderr, "%.0f tokens/s\n",
                (double)n * CLOCKS_PER_SEC / (double)(clock() - begin));
    }
    tokenizer_close(t);
    json_decref(texts);
    return 0;
}
