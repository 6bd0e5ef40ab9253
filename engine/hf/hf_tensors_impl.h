/* SPDX-License-Identifier: MIT
 *
 * hf_tensors_impl.h - a folder's tensors as those of a GGUF file; for hf_tensors.c,
 * hf_rows.c, hf_layout.c, hf_reorder.c and hf_bitnet.c only
 */
#ifndef SLM_ENGINE_HF_HF_TENSORS_IMPL_H
#define SLM_ENGINE_HF_HF_TENSORS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/strtab.h"
#include "engine/hf/hf_impl.h"

#define HF_NAME_BYTES 72

/* Groups of rows, each of several fields, of which a tensor has some: those of all
 * groups one after another, then the next field's. */
struct hf_fields {
    uint64_t n_groups, stride; /* rows of a group */
    struct {
        uint64_t at, n;
    } field[3];
    int n; /* fields; 0: rows are as they are */
};

struct hf_entry {
    char name[HF_NAME_BYTES];
    enum hf_how how;
    const struct safetensor **parts; /* [n_parts], into hf_tensors.parts */
    size_t n_parts;
    const float *made; /* values from config.json instead of parts */
    int n_dims;
    uint64_t ne[4], part_rows; /* rows of one part */
    uint64_t n_heads;  /* HF_ROPE_*, HF_VALUES...: heads in the rows, or columns */
    uint64_t n_groups; /* HF_VALUES...: heads of keys, each shared by several */
    uint64_t fixed;    /* HF_VALUES: leading rows that stay; HF_LATENT_*: rows of a
                          head's key */
    struct hf_fields fields;
    const struct hf_scaling *scaling; /* NULL: none */
    bool flat; /* floats that are read together: vectors, columns, biases of experts */
    float scale; /* HF_TERNARY: of the matrix; 0: not known yet */
    enum kern_format fmt;
    atomic_uint_least64_t n_read; /* rows, repeated reads included */
};

struct hf_tensors {
    struct safetensors *s;
    const struct safetensor **parts;
    struct hf_entry *entries;
    size_t n;
    struct strtab index;
    float *made[HF_MAX_VECTORS];
    struct hf_scaling scalings[HF_MAX_SCALINGS];
    pthread_mutex_t lock; /* of entries' scale */
    kern_dequantize_fn *to_floats[KERN_N_FMT];
};

/* Set e->fields and the shape that follows from them; nothing where rows are as they
 * are. Errors: ST_INPUT (rows that groups cannot share). */
enum status hf_layout(struct hf_entry *e, const struct hf_config *c, const char *dir,
                      struct err *err);

/* Row r of the fields, in the folder. */
uint64_t hf_field_row(const struct hf_fields *f, uint64_t r);

/* Whether rows are made of columns, or of two tensors in another format. */
bool hf_is_transposed(const struct hf_entry *e);
bool hf_is_mx(const struct hf_entry *e);

/* Shapes of such entries. */
enum status hf_set_transposed(struct hf_entry *e, const char *dir, struct err *err);
enum status hf_set_mx(struct hf_entry *e, const char *dir, struct err *err);

/* Rows of one slice of a transposed matrix, in the folder's type. */
enum status hf_read_transposed(const struct hf_tensors *h, const struct hf_entry *e,
                               uint64_t row, uint64_t n_rows, char *dst,
                               struct err *err);

/* Rows in blocks of MXFP4 as GGUF has them. */
enum status hf_read_mx(const struct hf_tensors *h, const struct hf_entry *e,
                       uint64_t row, uint64_t n_rows, unsigned char *dst,
                       struct err *err);

/* Make n_rows of the entry's floats ternary. The first call reads the whole matrix for
 * its scale. */
enum status hf_round_ternary(struct hf_tensors *h, struct hf_entry *e, uint64_t n_rows,
                             float *v, struct err *err);

#endif
