/* SPDX-License-Identifier: MIT
 *
 * arch.h - a model as the forward pass sees it, and how architectures fill it in
 *
 * An architecture is one file, arch_<name>.c, with one function that reads the
 * hyperparameters and fetches every tensor by name, type and shape; one row in
 * the table of arch.c makes it known. What architectures have in common (a
 * residual stream, attention with grouped heads, a gated or routed feed-forward
 * part) is computed by forward.c from the fields below; a new architecture adds
 * the fields that set it apart (a bias pointer, another activation, a second
 * norm), which the others leave NULL or 0.
 *
 * Nothing a file says is trusted: hyperparameters are checked against a range
 * when read, tensors against the hyperparameters, so what passes model_load()
 * is consistent. A tensor that the architecture did not ask for is refused,
 * because a model computed without it would be another model.
 *
 * Threading: a struct model is immutable after loading.
 */
#ifndef SLM_ENGINE_ARCH_H
#define SLM_ENGINE_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/gguf.h"
#include "engine/rope.h"
#include "engine/status.h"
#include "engine/weights.h"
#include "kernels/kernels.h"

/* n_slices matrices of n_rows rows of k weights, one after another; 1 slice but
 * for experts. */
struct matrix {
    const char *name;          /* of its tensor, the gguf's own */
    const unsigned char *data; /* NULL in a model that is only planned */
    enum kern_format fmt;
    enum kern_act act; /* layout of the activations it multiplies */
    size_t n_rows, k, n_slices;
    size_t row_bytes;
    size_t panel_rows; /* leading rows of each slice that are in panels; 0: none */
};

struct layer {
    int window;             /* positions that a token sees, itself one; 0: all */
    int rope;               /* the model's rotation that queries and keys take */
    const float *attn_norm; /* [n_embd] */
    struct matrix wq;       /* [n_heads * head_dim][n_embd] */
    struct matrix wk, wv;   /* [n_kv_heads * head_dim][n_embd] */
    struct matrix wo;       /* [n_embd][n_heads * head_dim] */
    const float *ffn_norm;  /* [n_embd] */
    struct matrix router;   /* [n_experts][n_embd], only with experts */
    struct matrix gate, up; /* [n_ff][n_embd], a slice per expert */
    struct matrix down;     /* [n_embd][n_ff], a slice per expert */
};

/* Layers of a model may rotate in different ways. */
#define MODEL_MAX_ROPES 2

struct arch;

struct model {
    const struct arch *arch;
    int n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab;
    int n_ctx_train;
    int n_rot;   /* leading elements of a head that are rotated */
    int n_ropes; /* 1 to MODEL_MAX_ROPES */
    struct rope ropes[MODEL_MAX_ROPES];
    int n_experts, n_experts_used; /* 0, 0: one dense feed-forward part */
    float norm_eps;
    struct matrix embd, output; /* [n_vocab][n_embd]; equal where weights are tied */
    const float *output_norm;   /* [n_embd] */
    struct layer *layers;       /* [n_layers] */

    uint64_t weight_token_bytes; /* see slm_info */
    size_t vector_bytes;         /* of all one-dimensional tensors, kept as floats */
    float *vectors;              /* NULL if planned */
};

/* Read everything from g. With w, tensors are looked up there; w NULL only checks
 * and measures, and leaves all data pointers NULL. Errors: ST_INPUT,
 * ST_UNSUPPORTED (architecture, tensor type; the known ones are listed),
 * ST_NO_MEMORY. */
enum status model_load(struct model **m, const struct gguf *g, struct weights *w,
                       struct err *err);
void model_free(struct model *m);

/* ---- for arch_<name>.c ----------------------------------------------------- */

struct loader;

struct arch {
    const char *name; /* as general.architecture has it */
    enum status (*load)(struct loader *l, struct model *m);
};

extern const struct arch arch_llama;

const struct gguf *loader_gguf(const struct loader *l);

/* Set the loader's error; the message is preceded by the file's name. */
enum status loader_fail(struct loader *l, enum status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The whole number "<arch>.<key>", min..max. An array counts as its value when
 * all elements are equal. */
enum status loader_int(struct loader *l, const char *key, int min, int max, int *out);

/* The same, with a value for when the key is missing. */
enum status loader_int_or(struct loader *l, const char *key, int min, int max,
                          int missing, int *out);

/* The number "<arch>.<key>", min..max, or missing. */
enum status loader_real_or(struct loader *l, const char *key, double min, double max,
                           double missing, double *out);

/* The string "<arch>.<key>"; false, *out untouched, where there is none. */
bool loader_str(const struct loader *l, const char *key, struct gguf_str *out);

/* Tensor name, preceded by "blk.<layer>." for layer >= 0: is it there? */
bool loader_has(const struct loader *l, int layer, const char *name);

/* Fetch a matrix of n_rows rows of k weights, n_slices times. */
enum status loader_matrix(struct loader *l, struct matrix *out, int layer,
                          const char *name, size_t k, size_t n_rows, size_t n_slices);

/* The same for one whose rows are looked up one by one: never in panels. */
enum status loader_table(struct loader *l, struct matrix *out, int layer,
                         const char *name, size_t k, size_t n_rows);

/* Fetch n values as floats. *out is NULL in a model that is only planned. */
enum status loader_vector(struct loader *l, const float **out, int layer,
                          const char *name, size_t n);

/* Count bytes towards what is read for each decoded token. */
void loader_count_token_bytes(struct loader *l, uint64_t bytes);

/* What one slice of a matrix takes. */
static inline uint64_t matrix_slice_bytes(const struct matrix *w)
{
    return (uint64_t)w->n_rows * w->row_bytes;
}

/* Row r of slice s; of those in panels every 16th can be asked for, which is where
 * its panel starts. */
static inline const void *matrix_row(const struct matrix *w, size_t s, size_t r)
{
    return w->data + (s * w->n_rows + r) * w->row_bytes;
}

#endif
