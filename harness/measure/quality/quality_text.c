/* SPDX-License-Identifier: MIT
 *
 * quality_text.c - facts of a model file; a text into chunks of tokens
 */
#include "harness/measure/quality/quality_text.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "engine/base/utf8.h"
#include "engine/engine.h"
#include "engine/quantize/requant.h"
#include "harness/base/hash.h"
#include "harness/base/interrupt.h"
#include "harness/base/program.h"
#include "harness/base/textfile.h"
#include "harness/model/model_names.h"
#include "kernels/isa.h"

/* ---- models ---------------------------------------------------------------------- */

/* Size and times of change; for a folder, those of its files, in any order. Who copies
 * other weights here may keep the time of their last writing (cp -p, rsync, archives,
 * reproducible images); that of the change here is the kernel's. */
static uint64_t key_of_files(const char *path)
{
    DIR *dir = opendir(path);
    char file[PATH_MAX + 260];
    uint64_t sum = 0;
    struct stat st;

    for (const struct dirent *e = NULL; !dir || (e = readdir(dir));) {
        snprintf(file, sizeof file, "%s%s%.255s", path, dir ? "/" : "",
                 dir ? e->d_name : "");
        if (stat(file, &st) == 0 && S_ISREG(st.st_mode)) {
            const int64_t facts[5] = {st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                                      st.st_ctim.tv_sec, st.st_ctim.tv_nsec,
                                      st.st_size};

            sum += hash_add(HASH_BEGIN, facts, sizeof facts);
        }
        if (!dir)
            break;
    }
    if (dir)
        closedir(dir);
    return sum;
}

/* Header and tables too: weights that were written again are another model, and so is
 * one that another version of this program runs, or other kernels of it. */
static uint64_t key_of(const struct gguf *g, const char *path)
{
    const char *version = build_version();
    const uint64_t facts[2] = {key_of_files(path), isa_usable()};
    const uint64_t h = hash_add(HASH_BEGIN, version, strlen(version));

    return hash_add(hash_add(h, facts, sizeof facts), gguf_image(g),
                    (size_t)gguf_data_offset(g));
}

static void set_name(struct quality_model *m)
{
    snprintf(m->name, sizeof m->name, "%s%s%s", m->ref.name, m->ref.at_load ? ":" : "",
             m->ref.at_load ? modelref_quant(&m->ref) : "");
}

void quality_models_name(struct quality_model *models, size_t n)
{
    struct modelref *refs[MODELREFS_MAX] = {NULL};

    assert(n <= MODELREFS_MAX);
    for (size_t i = 0; i < n; i++)
        refs[i] = &models[i].ref;
    model_names_part(refs, n);
    model_labels_choose(refs, n);
    for (size_t i = 0; i < n; i++)
        set_name(&models[i]);
}

enum status quality_model_read(struct quality_model *m, const char *text,
                               const struct requant_params *requant, struct err *err)
{
    struct slm_params params = slm_params_default();
    struct modelref ref;
    struct slm_info info;
    struct gguf *g = NULL;
    enum status st = modelref_parse(&ref, text, NULL, err);

    if (st)
        return st;
    if (ref.synthetic)
        return err_set(err, ST_USAGE,
                       "%s is synthetic, and random weights have no quality to lose; "
                       "name a GGUF file or a folder",
                       text);
    if (requant) {
        ref.at_load = true;
        ref.mix = requant->mix;
        ref.requant = requant;
    }
    if (modelref_open(&ref, &g, err))
        return err->code;
    params.n_ctx = 1;
    st = slm_plan(&info, g, &params, err);
    if (st == ST_OK)
        st = slm_check_predicts(&info, err);
    if (st == ST_OK) {
        memset(m, 0, sizeof *m);
        m->ref = ref;
        set_name(m);
        snprintf(m->quant, sizeof m->quant, "%s", info.quant);
        m->bytes = gguf_image_bytes(g);
        m->n_params = info.n_params;
        m->n_vocab = info.n_vocab;
        m->n_ctx_train = m->max_chunk = info.n_ctx_train;
        m->key = key_of(g, ref.path);
        m->ref.identity = model_identity(g);
    }
    gguf_close(g);
    return st;
}

bool quality_model_is_float(const struct quality_model *m)
{
    return !strcasecmp(m->quant, "F32") || !strcasecmp(m->quant, "F16") ||
           !strcasecmp(m->quant, "BF16");
}

/* ---- the text -------------------------------------------------------------------- */

/* "dir/book.txt" -> "book" */
static void name_text(struct quality_text *t, const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(t->path, sizeof t->path, "%s", path);
    snprintf(t->name, sizeof t->name, "%s", slash && slash[1] ? slash + 1 : path);
    char *dot = strrchr(t->name, '.');
    if (dot && dot > t->name)
        *dot = '\0';
}

static enum status find_text(struct quality_text *t, const char *path, struct err *err)
{
    char shipped[4096];

    if (!path) {
        path = data_file_find(shipped, sizeof shipped, "texts", QUALITY_DEFAULT_TEXT);
        if (!path)
            return err_set(err, ST_IO,
                           "the text %s that comes with the program is not where it "
                           "should be (%.200s); name one with --text",
                           QUALITY_DEFAULT_TEXT, shipped);
    }
    if (!strcmp(path, "-"))
        return err_set(err, ST_USAGE,
                       "the text is read once for every model, so it "
                       "must be a file and not standard input");
    if (strlen(path) >= sizeof t->path)
        return err_set(err, ST_USAGE, "the name of the text is too long");
    name_text(t, path);
    return ST_OK;
}

static enum status check_utf8(const char *path, const char *text, size_t len,
                              struct err *err)
{
    for (size_t at = 0; at < len;) {
        const int n = utf8_char_len(text + at, len - at);

        if (n <= 0)
            return err_set(err, ST_INPUT,
                           "%s is no UTF-8 text: byte %zu does not belong there", path,
                           at);
        at += (size_t)n;
    }
    return ST_OK;
}

/* The text's tokens in m's vocabulary; *bos: the first token of chunks, -1: none. */
static enum status encode(const struct quality_text *t, const struct quality_model *m,
                          int32_t **ids, size_t *n, int32_t *bos, struct err *err)
{
    struct tokenizer *tok = NULL;
    struct gguf *g = NULL;
    char *text = NULL;
    size_t len = 0;
    enum status st = ST_OK;

    if (textfile_read(t->path, TEXTFILE_MAX_BYTES, &text, &len, err) ||
        check_utf8(t->path, text, len, err) || modelref_open(&m->ref, &g, err) ||
        tokenizer_open(&tok, g, err))
        st = err->code;
    if (st == ST_OK && tokenizer_n_vocab(tok) > m->n_vocab)
        st = err_set(err, ST_INPUT,
                     "%s: the tokenizer has %d tokens, and the model knows %d of them",
                     m->ref.text, (int)tokenizer_n_vocab(tok), m->n_vocab);
    if (st == ST_OK) {
        tokenizer_stop_when(tok, interrupted);
        st = tokenizer_encode(tok, text, len, tokenizer_adds_bos(tok), false, ids, n,
                              err);
    }
    if (st == ST_OK)
        *bos = tokenizer_adds_bos(tok) ? tokenizer_bos(tok) : -1;
    tokenizer_close(tok);
    gguf_close(g);
    free(text);
    return st;
}

static uint64_t key_of_ids(const int32_t *ids, size_t n, int32_t bos, int ctx)
{
    const int32_t shape[2] = {bos, ctx};

    return hash_add(hash_add(HASH_BEGIN, shape, sizeof shape), ids, n * sizeof *ids);
}

enum status quality_text_read(struct quality_text *out, const struct quality_model *m,
                              const char *path, int ctx, int n_chunks, struct err *err)
{
    struct quality_text t = {.ctx = ctx};
    size_t n = 0;
    int32_t bos = -1;

    if (ctx < QUALITY_MIN_CTX || ctx > m->max_chunk)
        return err_set(err, ST_USAGE,
                       "--ctx %d: chunks of %s may have %d to %d tokens, the context "
                       "that the model was made for",
                       ctx, m->name, QUALITY_MIN_CTX, m->n_ctx_train);
    if (find_text(&t, path, err) || encode(&t, m, &t.ids, &n, &bos, err))
        return err->code;
    t.n_chunks = n / (size_t)ctx;
    if (n_chunks > 0 && t.n_chunks > (size_t)n_chunks)
        t.n_chunks = (size_t)n_chunks;
    if (!t.n_chunks) {
        free(t.ids);
        return err_set(err, ST_USAGE,
                       "%s has %zu tokens, and one chunk needs %d; give a longer text, "
                       "or shorter chunks with --ctx",
                       t.path, n, ctx);
    }
    t.key = key_of_ids(t.ids, n, bos, ctx);
    for (size_t i = 0; i < t.n_chunks && bos >= 0; i++)
        t.ids[i * (size_t)ctx] = bos;
    *out = t;
    return ST_OK;
}

void quality_text_free(struct quality_text *t)
{
    free(t->ids);
    t->ids = NULL;
}

enum status quality_text_check(const struct quality_text *t,
                               const struct quality_model *like,
                               const struct quality_model *m, struct err *err)
{
    int32_t *ids = NULL, bos = -1;
    size_t n = 0;
    enum status st = ST_OK;

    if (t->ctx > m->max_chunk)
        return err_set(err, ST_USAGE,
                       "--ctx %d is more than the %d tokens that %s was made for",
                       t->ctx, m->n_ctx_train, m->name);
    if (m->n_vocab != like->n_vocab)
        st = err_set(
            err, ST_USAGE,
            "%s has a vocabulary of %d tokens and %s one of %d, so their "
            "predictions cannot be compared; measure each with its own --reference",
            m->name, m->n_vocab, like->name, like->n_vocab);
    else
        st = encode(t, m, &ids, &n, &bos, err);
    if (st == ST_OK && key_of_ids(ids, n, bos, t->ctx) != t->key)
        st = err_set(
            err, ST_USAGE,
            "%s cuts the text into other tokens than %s does, so their "
            "predictions cannot be compared; measure each with its own --reference",
            m->name, like->name);
    free(ids);
    return st;
}
