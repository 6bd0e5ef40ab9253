/* SPDX-License-Identifier: MIT
 *
 * hf_impl.h - what the files that read model folders share; for hf*.c only
 *
 * hf.c            the folder as a whole: from its parts to an assembled gguf
 * hf_config.c     config.json to hyperparameters
 * hf_kinds.c      what each kind of model says there, one function for each
 * hf_rope.c       how positions are scaled, and the factors that are tensors in GGUF
 * hf_names.c      names of tensors
 * hf_tensors.c    tensors of the gguf, which those of the folder make
 * hf_rows.c       their rows
 * hf_tokenizer.c  tokenizer.json to a vocabulary
 * hf_pretok.c     its normalizer and pre_tokenizer
 * hf_special.c    its tokens that begin and end a text
 */
#ifndef SLM_ENGINE_HF_HF_IMPL_H
#define SLM_ENGINE_HF_HF_IMPL_H

#include "engine/base/jsonfile.h"
#include "engine/gguf/gguf_put.h"
#include "engine/hf/hf.h"
#include "engine/hf/safetensors.h"
#include "engine/tokenizer/tokenizer_pre.h"

/* ---- names ----------------------------------------------------------------------- */

/* What happens to a tensor on its way. */
enum hf_how {
    HF_AS_IS,
    HF_ROPE_Q, /* rows of each head from halves to neighbouring pairs; n_heads */
    HF_ROPE_K, /* the same, n_kv_heads */
    HF_PLUS_1,
    HF_VALUES, /* heads of values from next to those that share keys to far apart;
                  rows in front of them stay */
    HF_VALUE_COLUMNS, /* the same, of columns */
    HF_DECAY,         /* HF_VALUES, and -e^x */
    HF_STACK,  /* one of several that are slices of one, or rows where each is a vector
                */
    HF_FLAT,   /* [1][n] to [n] */
    HF_SLICES, /* slices as they are */
    HF_FIRST_HALF, /* of the rows of each slice */
    HF_SECOND_HALF,
    HF_SKIP,
};

/* '#' stands for the layer's number, '@' for that within a stack. */
struct hf_name {
    const char *hf, *gguf;
    enum hf_how how;
};

/* The GGUF name of a tensor into out[cap]; *part is the number within a stack. A tensor
 * that becomes several has rows one behind the other: nth says which, from 0. NULL
 * where no table knows it, or there are no more. Lists end with a NULL name; the first
 * match wins. */
const struct hf_name *hf_name_find(const struct hf_name *const *lists, const char *name,
                                   int nth, char *out, size_t cap, unsigned *part);

/* ---- config.json -------------------------------------------------------------------
 */

/* Beyond these a number is damage, not a model. */
enum {
    HF_MAX_LAYERS = 4096,
    HF_MAX_WIDTH = 1 << 24,
    HF_MAX_HEADS = 4096,
    HF_MAX_HEAD_DIM = 65536,
    HF_MAX_CONTEXT = 1 << 28,
    HF_MAX_EXPERTS = 1024,
};

/* Factors that config.json holds and GGUF keeps as a tensor. */
struct hf_vector {
    const char *name;
    float *v; /* malloc'ed; NULL: none */
    size_t n;
};
#define HF_MAX_VECTORS 2

struct hf_config {
    struct jsonfile file;
    const json_t *o; /* the object with the text model's members */
    const struct hf_arch *arch;
    struct gguf_kvs *kvs;
    int64_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_rot, n_ctx;
    int64_t n_experts;
    int64_t delta_k_heads, delta_v_heads, delta_dim; /* of linear attention; 0: none */
    double partial; /* part of a head that is rotated, where the config does not say */
    bool tied;      /* said to be so */
    struct hf_vector vectors[HF_MAX_VECTORS];
};

struct hf_arch {
    const char *model_type;         /* in config.json */
    const char *gguf;               /* general.architecture */
    const struct hf_name *names[5]; /* NULL ends them */
    enum status (*config)(struct hf_config *c, struct err *err);
};

/* Read dir/config.json; puts its pairs into kvs. hf_config_free() in any case. */
enum status hf_config_load(struct hf_config *c, const char *dir, struct gguf_kvs *kvs,
                           struct err *err);
void hf_config_free(struct hf_config *c);

/* All kinds there are. */
extern const struct hf_arch hf_archs[];
extern const size_t hf_n_archs;

/* The whole number `key`, which must be there unless *out is one already. */
enum status hf_get_number(const struct hf_config *c, const char *key, int64_t min,
                          int64_t max, int64_t *out, struct err *err);

/* The same, put as the pair "<architecture>.<gguf>". */
enum status hf_put_number(struct hf_config *c, const char *key, const char *gguf,
                          int64_t min, int64_t max, int64_t missing, struct err *err);
enum status hf_put_real(struct hf_config *c, const char *key, const char *gguf,
                        double min, double max, double missing, struct err *err);

/* A member that must be what the architecture computes with, if it is there. */
enum status hf_must_be(const struct hf_config *c, const char *key, const char *want,
                       struct err *err);
enum status hf_must_be_bool(const struct hf_config *c, const char *key, bool want,
                            struct err *err);

/* Sizes that all kinds have. Members of *c that are set before are this kind's
 * defaults. */
enum status hf_put_sizes(struct hf_config *c, struct err *err);

/* Put "<architecture>.<key>". */
void hf_put_u32(struct hf_config *c, const char *key, int64_t v);
void hf_put_f32(struct hf_config *c, const char *key, double v);
void hf_put_bool(struct hf_config *c, const char *key, bool v);
void hf_put_str(struct hf_config *c, const char *key, const char *v);
void hf_put_i32s(struct hf_config *c, const char *key, const int32_t *v, size_t n);

/* Base and scaling, pairs and vectors. theta: where the config says nothing. */
enum status hf_rope(struct hf_config *c, double theta, struct err *err);

extern const struct hf_name hf_names_common[], hf_names_llama[], hf_names_gemma[],
    hf_names_mixtral[], hf_names_moe[], hf_names_qwen35[], hf_names_qwen35moe[],
    hf_names_phi2[], hf_names_stablelm[], hf_names_glm4[], hf_names_chatglm[],
    hf_names_fused[];

/* ---- tensors -----------------------------------------------------------------------
 */

struct hf_tensors;

/* Takes s over, also on failure. */
enum status hf_tensors_make(struct hf_tensors **t, const struct hf_config *c,
                            struct safetensors *s, const char *dir, struct err *err);
void hf_tensors_free(void *t);
size_t hf_tensors_count(const struct hf_tensors *t);

/* Rows of the embedding; 0: there is none. */
int64_t hf_tensors_n_vocab(const struct hf_tensors *t);

/* The type that most weights have, as general.file_type has it. */
uint32_t hf_tensors_file_type(const struct hf_tensors *t);

/* Their descriptions behind the pairs of a head. */
void hf_tensors_put(const struct hf_tensors *t, struct gguf_bytes *head);

/* struct gguf_source's read(). */
enum status hf_tensors_read(void *t, const struct gguf_tensor *what, uint64_t row,
                            uint64_t n_rows, bool drop, void *dst, struct err *err);

/* ---- how a tokenizer cuts
 * ------------------------------------------------------------ */

struct hf_pretok {
    bool byte_level; /* the byte alphabet of GPT-2; else blanks are U+2581 */
    bool add_space, space_first, space_once; /* see tokenizer_impl.h */
    bool cuts_at_blanks; /* no token has a blank behind its first character */
    char *patterns[PRE_MAX_PATTERNS]; /* malloc'ed, as pre_tokenizer_spell() has them */
    size_t n_patterns;
};

/* From the members normalizer, pre_tokenizer and decoder. hf_pretok_free() in any
 * case. Errors: ST_UNSUPPORTED (the step that is not known). */
enum status hf_pretok_read(struct hf_pretok *p, const struct jsonfile *f,
                           struct err *err);
void hf_pretok_free(struct hf_pretok *p);

/* ---- tokenizer ---------------------------------------------------------------------
 */

/* The tokenizer.* pairs of a folder; none where there is no tokenizer.json. n_vocab:
 * rows of the embedding, which may be more than there are tokens. */
enum status hf_tokenizer_put(struct gguf_kvs *k, const char *dir, int64_t n_vocab,
                             struct err *err);

/* The same from a tokenizer.json in memory, alone. For tests and fuzzing. */
enum status hf_tokenizer_parse(struct gguf_kvs *k, const char *text, size_t len,
                               struct err *err);

#endif
