/* SPDX-License-Identifier: MIT
 *
 * packed_file.h - a model and the packed file made of it, in a folder of their own, and
 * what the model says
 */
#ifndef SLM_TESTS_PACKED_FILE_H
#define SLM_TESTS_PACKED_FILE_H

#include "tests/support/pack_file.h"
#include "tests/support/synth_file.h"

#include <dirent.h>
#include <fcntl.h>

#include "engine/engine.h"
#include "engine/gguf/gguf_panels.h"

#define N_TOKENS 21

/* ---- files --------------------------------------------------------------------- */

struct files {
    char dir[32], from[64], to[64];
};

static inline void files_make(struct files *f)
{
    snprintf(f->dir, sizeof f->dir, "/tmp/test_pack.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->from, sizeof f->from, "%s/from.gguf", f->dir);
    snprintf(f->to, sizeof f->to, "%s/to.gguf", f->dir);
}

/* The number of files that were left. */
static inline int files_remove(const struct files *f)
{
    DIR *dir = opendir(f->dir);
    int n = 0;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.' && !unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
    rmdir(f->dir);
    return n;
}

/* ---- the same model ------------------------------------------------------------- */

static inline enum status try_open(struct slm **m, const char *path,
                                   enum weights_residency residency, uint32_t isa_mask,
                                   struct err *err)
{
    struct slm_params p = slm_params_default();

    p.path = path;
    p.residency = residency;
    p.n_threads = 2;
    p.n_ctx = N_TOKENS;
    p.isa_mask = isa_mask;
    const enum status st = slm_open(m, &p, err);

    return st ? st
              : weights_preload(slm_weights(*m), slm_thread_pool(*m), NULL, NULL, err);
}

static inline struct slm *open_model(const char *path, enum weights_residency residency,
                                     uint32_t isa_mask)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (try_open(&m, path, residency, isa_mask, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Logits of N_TOKENS tokens: the first ones in one batch, the rest one by one. */
static inline float *logits_of(struct slm *m)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab, first = N_TOKENS - 4;
    float *out = malloc(N_TOKENS * n_vocab * sizeof *out);
    int32_t tokens[N_TOKENS];
    struct err err = ERR_INIT;

    assert_non_null(out);
    for (size_t i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)((1 + 37 * i) % n_vocab);
    for (size_t i = 0; i < N_TOKENS; i += i ? 1 : first) {
        const size_t n = i ? 1 : first;

        if (slm_eval(m, tokens + i, n, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (size_t j = 0; j < n; j++)
            memcpy(out + (i + j) * n_vocab, slm_logits(m, j), n_vocab * sizeof *out);
    }
    return out;
}

#endif
