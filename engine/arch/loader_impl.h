/* SPDX-License-Identifier: MIT
 *
 * loader_impl.h - the loader itself, for arch.c and loader*.c only
 */
#ifndef SLM_ENGINE_ARCH_LOADER_IMPL_H
#define SLM_ENGINE_ARCH_LOADER_IMPL_H

#include "engine/arch/loader.h"

struct loader {
    const struct gguf *g;
    struct weights *w; /* NULL: plan */
    struct model *m;
    const struct layer *layer; /* whose tensors are read; NULL: those of the ends */
    struct err *err;
    size_t n_vector_floats; /* used of m->vectors */
    size_t cap_floats;      /* allocated for it */
    size_t n_derived_bytes; /* used of m->derived */
    unsigned char *used;    /* [gguf_n_tensors()] rules that have read it, to 2 */
    bool *in_panels;        /* [gguf_n_tensors()] products read it in panels where its
                               format has them; NULL: not asked */
    const char *prefix;     /* of keys; NULL: the architecture's name */
    unsigned char *asked;   /* [gguf_n_kvs()] keys that were looked up; NULL: nobody
                               wants to know */
};

/* The value of "<prefix>.<key>", or NULL; full[cap] becomes its name. */
const struct gguf_kv *loader_key(const struct loader *l, const char *key, char *full,
                                 size_t cap);

/* m's sizes and ends are read: make it the model of its first layer that predicts
 * further tokens. Errors: as loader_tensors(), ST_UNSUPPORTED (there is none). */
enum status loader_nextn_tensors(struct loader *l, struct model *m);

/* Read hyperparameters as far as that goes, for l->asked. */
void loader_try_keys(struct loader *l, struct model *m);

/* A dimension in a layer of a model whose sizes are known; y NULL: of the ends. */
size_t loader_size_of(const struct model *m, const struct layer *y, enum dim d);
/* The n elements of a tensor as floats, counted as what a token reads. *out is NULL in
 * a model that is only planned. Errors: ST_UNSUPPORTED (its type), those of reading. */
enum status loader_fetch(struct loader *l, const float **out,
                         const struct gguf_tensor *t, size_t n);

/* The tensors of the table of ends; weights are tied where there is no output. */
enum status loader_ends(struct loader *l, struct model *m);

#endif
