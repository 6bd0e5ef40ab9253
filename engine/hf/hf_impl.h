/* SPDX-License-Identifier: MIT
 *
 * hf_impl.h - shared by the files that read model folders; for hf*.c only
 *
 * hf.c            the folder as a whole: from its parts to an assembled gguf
 * hf_config.c     config.json to hyperparameters
 * hf_kinds.c      the members of each kind of model, one function for each, and the
 * hf_families.c   table of kinds
 * hf_gpt.c        those with queries, keys and values in one matrix
 * hf_hybrids.c    those of models with recurrent layers that list them
 * hf_latent.c     those of models with latent attention, and their names of tensors
 * hf_gemma.c      those of Gemma 3n and 4
 * hf_bitnet.c     those of BitNet, its names of tensors, and its ternary matrices
 * hf_encoders.c   those of embedding models, and modules of sentence-transformers
 * hf_rope.c       scaling of positions, and its factors, which are tensors in GGUF
 * hf_links.c      where its links lead
 * hf_names.c      names of tensors
 * hf_match.c      which of them a tensor has
 * hf_nextn.c      layers that predict further tokens: their names, how many there are
 * hf_tensors.c    tensors of the gguf from those of the folder
 * hf_rows.c       their rows
 * hf_layout.c     rows of several matrices in one, and which one is where
 * hf_reorder.c    rows that are columns, or in another format, in the folder
 * hf_tokenizer.c  tokenizer.json to a vocabulary
 * hf_pretok.c     its normalizer and pre_tokenizer
 * hf_own.c        those that no model of GGUF stands for
 * hf_xielu.c      xIELU's numbers from tensors to metadata
 * hf_special.c    its tokens that begin and end a text
 */
#ifndef SLM_ENGINE_HF_HF_IMPL_H
#define SLM_ENGINE_HF_HF_IMPL_H

#include "engine/base/jsonfile.h"
#include "engine/base/strtab.h"
#include "engine/gguf/gguf_put.h"
#include "engine/hf/hf.h"
#include "engine/hf/safetensors.h"
#include "engine/tokenizer/tokenizer_pre.h"

/* ---- names ----------------------------------------------------------------------- */

/* How a tensor is converted. */
enum hf_how {
    HF_AS_IS,
    HF_ROPE_Q, /* rows of each head from halves to neighbouring pairs; n_heads heads */
    HF_ROPE_K, /* the same, n_kv_heads */
    HF_PLUS_1,
    HF_VALUES, /* heads of values reordered: those that share keys from adjacent to
                  n_groups apart; rows before them stay */
    HF_VALUE_COLUMNS, /* the same, of columns */
    HF_DECAY,         /* HF_VALUES, and -e^x */
    HF_LOG_DECAY,     /* -e^x */
    HF_STACK,  /* one of several that become slices of one tensor; vectors become rows
                */
    HF_FLAT,   /* [1][n] to [n] */
    HF_COLUMN, /* [n] to [n][1] */
    HF_COLUMN_DECAY, /* the same, and -e^x */
    HF_CHANNELS,     /* [n][1][taps] to [n][taps] */
    HF_SLICES,       /* slices as they are */
    HF_FIRST_HALF,   /* of the rows of each slice, or of a matrix */
    HF_SECOND_HALF,
    HF_LATENT_KEYS,   /* of each head the rows of keys, transposed: a slice per head */
    HF_LATENT_VALUES, /* of each head the rows of values, behind those of keys */
    HF_EVEN, /* rows 0, 2, ... of each slice, or elements of each row of biases */
    HF_ODD,
    HF_QKV,     /* rows of groups of heads, [queries, key, value] each, to all queries,
                   keys, values */
    HF_GROUP_Q, /* the queries of such groups alone, as HF_ROPE_Q */
    HF_GROUP_K,
    HF_GROUP_V,
    HF_DELTA_QKV, /* rows of groups, [query, key, values, gates] each, to all queries,
                     keys, values */
    HF_DELTA_Z,   /* their gates alone */
    HF_TRANSPOSE, /* rows from columns, of each slice */
    HF_TRANSPOSE_EVEN, /* from columns 0, 2, ... */
    HF_TRANSPOSE_ODD,
    HF_BY_GROUP, /* [n] to [groups of the state][n / groups] */
    HF_MX,       /* MXFP4 from two parts: nibbles, and "..._scales" of blocks */
    HF_MX_EVEN,  /* its rows 0, 2, ... */
    HF_MX_ODD,
    HF_POSITIONS, /* rows from first_position on */
    HF_TERNARY,   /* each element to -s, 0 or s of the matrix, in F32 */
    HF_SKIP,
};

/* '#' stands for the layer's number, '@' for the number within a stack. */
struct hf_name {
    const char *hf, *gguf;
    enum hf_how how;
};

/* The name of a tensor without what comes before it where the model is a part of
 * another, in buf[cap] or a part of name. */
const char *hf_plain_name(const char *name, char *buf, size_t cap);

/* The GGUF name of a tensor into out[cap]; *part is the number within a stack. A tensor
 * that becomes several has consecutive table rows: nth is the index, from 0. NULL if no
 * table has it, or nth is too large. Lists end with a NULL name; the first match wins.
 */
const struct hf_name *hf_name_find(const struct hf_name *const *lists, const char *name,
                                   int nth, char *out, size_t cap, unsigned *part);

/* ---- config.json ----------------------------------------------------------------- */

/* Larger numbers are not a model's. */
enum {
    HF_MAX_LAYERS = 4096,
    HF_MAX_WIDTH = 1 << 24,
    HF_MAX_HEADS = 4096,
    HF_MAX_HEAD_DIM = 65536,
    HF_MAX_CONTEXT = 1 << 28,
    HF_MAX_EXPERTS = 1024,
    HF_MAX_NEXTN = 16, /* layers that predict further tokens */
};

/* Factors that config.json holds and GGUF keeps as a tensor. */
struct hf_vector {
    const char *name;
    float *v; /* malloc'ed; NULL: none */
    size_t n;
};
#define HF_MAX_VECTORS 2

/* Factors that a config has and a GGUF file has in its weights: `by` of the rows up to
 * `end`, the last of all rows that remain. */
#define HF_MAX_SCALINGS 10
#define HF_MAX_RANGES   5
struct hf_scaling {
    const char *name; /* of the tensor, after "blk.#."; NULL: none */
    uint64_t end[HF_MAX_RANGES];
    float by[HF_MAX_RANGES];
    int n; /* ranges */
};

struct hf_config {
    struct jsonfile file;
    const json_t *o; /* the object with the text model's members */
    const struct hf_arch *arch;
    struct gguf_kvs *kvs;
    int64_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_rot, n_ctx;
    int64_t n_experts;
    int64_t latent_key, latent_value; /* of latent attention: elements of a head's key
                                         that are not rotated, and of its value */
    int64_t n_more; /* layers behind n_layers that predict further tokens; known after
                       hf_put_layers() */
    int64_t delta_k_heads, delta_v_heads, delta_dim; /* of linear attention; 0: none */
    int64_t first_position;      /* of texts: rows before it are not used */
    int64_t ssm_groups, n_state; /* of Mamba-2 */
    bool lists_kv_heads;         /* the kind puts the heads of keys of each layer */
    struct hf_scaling scalings[HF_MAX_SCALINGS];
    const char *recurrent; /* what layer_types calls layers that do not attend; NULL:
                              all do, or there is another rule */
    double partial;        /* rotated part of a head, default of the kind */
    bool tied;             /* the config says so */
    int n_dense;           /* folders of matrices behind a pooling: 2_Dense, 3_Dense */
    struct hf_vector vectors[HF_MAX_VECTORS];
};

struct hf_arch {
    const char *model_type;         /* in config.json */
    const char *gguf;               /* general.architecture */
    const struct hf_name *names[7]; /* NULL ends them */
    enum status (*config)(struct hf_config *c, struct err *err);
};

/* Read dir/config.json and put its pairs into kvs. Call hf_config_free() in any case.
 */
enum status hf_config_load(struct hf_config *c, const char *dir, struct gguf_kvs *kvs,
                           struct err *err);
void hf_config_free(struct hf_config *c);

/* All known kinds. */
extern const struct hf_arch hf_archs[];
extern const size_t hf_n_archs;

/* The whole number `key`, required unless *out has a default. */
enum status hf_get_number(const struct hf_config *c, const char *key, int64_t min,
                          int64_t max, int64_t *out, struct err *err);

/* The same, put as the pair "<architecture>.<gguf>". */
enum status hf_put_number(struct hf_config *c, const char *key, const char *gguf,
                          int64_t min, int64_t max, int64_t missing, struct err *err);
enum status hf_put_real(struct hf_config *c, const char *key, const char *gguf,
                        double min, double max, double missing, struct err *err);

/* A member that, if present, must have the value that the architecture computes with.
 */
enum status hf_must_be(const struct hf_config *c, const char *key, const char *want,
                       struct err *err);
enum status hf_must_be_bool(const struct hf_config *c, const char *key, bool want,
                            struct err *err);

/* ---- layers that predict further tokens ------------------------------------------ */

/* Whether folders of a kind may have such layers: it has names for them. */
bool hf_predicts(const struct hf_arch *a);

/* The name of a tensor as if such layers were the model's own behind its last one, in
 * buf[cap] or a part of name; other names as hf_plain_name() has them. */
const char *hf_nextn_name(const struct hf_config *c, const char *name, char *buf,
                          size_t cap);

/* Put how many layers there are, and how many of them predict further tokens. Error:
 * ST_INPUT (more than HF_MAX_NEXTN). */
enum status hf_put_layers(struct hf_config *c, const struct safetensors *s,
                          struct err *err);

/* ---- what kinds read ------------------------------------------------------------- */

/* Sizes of all kinds. Members of *c set before the call are this kind's defaults. */
enum status hf_put_sizes(struct hf_config *c, struct err *err);

/* Its two halves, for kinds whose heads have several lengths: read them; put them, but
 * for the heads of keys. */
enum status hf_get_sizes(struct hf_config *c, struct err *err);
void hf_put_common_sizes(struct hf_config *c);

/* What several kinds have: the width of the feed-forward part; the epsilon of RMS
 * norms; a sliding window of all layers; experts, as many as the member count says, of
 * which a token takes num_experts_per_tok. */
enum status hf_put_ff(struct hf_config *c, int64_t missing, struct err *err);
enum status hf_put_rms_eps(struct hf_config *c, double missing, struct err *err);
enum status hf_put_window(struct hf_config *c, struct err *err);
enum status hf_put_experts(struct hf_config *c, const char *count, struct err *err);

/* Alternating layers: every n-th has full attention, the others are of the type
 * `others`. Any other list is refused. */
enum status hf_check_layers(const struct hf_config *c, int64_t n, const char *others,
                            struct err *err);

/* Pairs of a head that rotate with time, height and width; text rotates all alike, but
 * other readers of GGUF files need the key. */
enum status hf_put_sections(struct hf_config *c, struct err *err);

/* The kinds of hf_families.c, and the one that others begin with. */
typedef enum status hf_kind_fn(struct hf_config *c, struct err *err);
hf_kind_fn hf_llama, hf_smollm3, hf_granite, hf_granitemoe, hf_minicpm, hf_arcee,
    hf_ministral3, hf_ernie, hf_ernie_moe, hf_seed, hf_hunyuan, hf_olmo2, hf_olmo3,
    hf_olmoe, hf_exaone4, hf_gemma, hf_qwen_vl, hf_cohere, hf_cohere2, hf_starcoder2,
    hf_nemotron, hf_phimoe, hf_bailing, hf_smallthinker, hf_gpt_oss, hf_apertus,
    hf_glm4_moe, hf_gpt2, hf_gpt_neox, hf_falcon, hf_internlm2;

/* What kinds with experts have in common: how many, of which a token takes `used`, and
 * their width; the first layer that has them. */
enum status hf_put_routed(struct hf_config *c, const char *count, const char *used,
                          const char *width, int64_t *n_ff, struct err *err);

/* Put how experts are chosen from groups: norm_topk_prob (default true), n_group and
 * topk_group (1), routed_scaling_factor (1). c->n_experts is known. */
enum status hf_put_groups(struct hf_config *c, struct err *err);
enum status hf_put_first(struct hf_config *c, const char *key, struct err *err);

/* Kinds of hf_latent.c. */
enum status hf_deepseek(struct hf_config *c, struct err *err);
enum status hf_minicpm3(struct hf_config *c, struct err *err);

/* The kind of hf_bitnet.c. */
enum status hf_bitnet(struct hf_config *c, struct err *err);
/* Set c->arch to it, whatever model_type says, where the folder's class is its own.
 * Error: ST_UNSUPPORTED (c->arch is bitnet, and the class another). */
enum status hf_bitnet_kind(struct hf_config *c, const struct hf_arch *bitnet,
                           struct err *err);

/* The number of heads of keys of each layer. */
enum status hf_put_kv_heads(struct hf_config *c, struct err *err);

/* Kinds of hf_gemma.c. */
enum status hf_gemma3n(struct hf_config *c, struct err *err);
enum status hf_gemma4(struct hf_config *c, struct err *err);

/* Kinds of hf_hybrids.c. */
enum status hf_lfm2(struct hf_config *c, struct err *err);
enum status hf_lfm2_moe(struct hf_config *c, struct err *err);
enum status hf_granite_hybrid(struct hf_config *c, struct err *err);
enum status hf_mamba2(struct hf_config *c, struct err *err);
enum status hf_falcon_h1(struct hf_config *c, struct err *err);
enum status hf_nemotron_h(struct hf_config *c, struct err *err);
/* The same kind, or that of a Nemotron-H with experts. */
const struct hf_arch *hf_nemotron_kind(const struct hf_config *c);

/* Pairs that are made of tensors: xIELU's numbers, for models that have it. */
enum status hf_put_xielu(struct hf_config *c, const struct safetensors *s,
                         struct err *err);

/* Kinds of hf_encoders.c, and the one that EmbeddingGemma begins with. */
enum status hf_bert(struct hf_config *c, struct err *err);
enum status hf_roberta(struct hf_config *c, struct err *err);
enum status hf_nomic(struct hf_config *c, struct err *err);
enum status hf_embedding_gemma(struct hf_config *c, struct err *err);
enum status hf_gemma3(struct hf_config *c, struct err *err);
extern const struct hf_arch hf_arch_embedding_gemma;

/* Put what modules.json of sentence-transformers says about pooling and what follows
 * it; nothing without that file. Errors: ST_INPUT, ST_UNSUPPORTED (another module). */
enum status hf_put_modules(struct hf_config *c, const char *dir, struct err *err);

/* Add the tensors of these modules. */
enum status hf_add_modules(const struct hf_config *c, struct safetensors *s,
                           const char *dir, struct err *err);

/* Put "<architecture>.<key>". */
void hf_put_u32(struct hf_config *c, const char *key, int64_t v);
void hf_put_f32(struct hf_config *c, const char *key, double v);
void hf_put_bool(struct hf_config *c, const char *key, bool v);
void hf_put_str(struct hf_config *c, const char *key, const char *v);
void hf_put_i32s(struct hf_config *c, const char *key, const int32_t *v, size_t n);

/* The head of an array; n elements must follow in c->kvs->bytes. */
void hf_put_array(struct hf_config *c, const char *key, enum gguf_type type,
                  uint64_t n);

/* Base and scaling, as pairs and vectors. theta: default of the base. */
enum status hf_rope(struct hf_config *c, double theta, struct err *err);

/* A vector by which only the first `share` of the rotated pairs turn. Error:
 * ST_NO_MEMORY. */
enum status hf_rope_turning(struct hf_config *c, double share, struct err *err);

extern const struct hf_name hf_names_common[], hf_names_llama[], hf_names_gemma[],
    hf_names_mixtral[], hf_names_moe[], hf_names_qwen35[], hf_names_qwen35moe[],
    hf_names_phi2[], hf_names_stablelm[], hf_names_glm4[], hf_names_chatglm[],
    hf_names_fused[], hf_names_granitemoe[], hf_names_ernie[], hf_names_shared[],
    hf_names_seed[], hf_names_hunyuan[], hf_names_post[], hf_names_gemma1[],
    hf_names_vl[], hf_names_starcoder[], hf_names_nemotron[], hf_names_bailing[],
    hf_names_smallthinker[], hf_names_lfm2[], hf_names_mamba[],
    hf_names_granite_dense[], hf_names_latent[], hf_names_deepseek[],
    hf_names_minicpm3[], hf_names_nextn[], hf_names_nextn_plus_1[], hf_names_gpt_oss[],
    hf_names_apertus[], hf_names_glm4_moe[], hf_names_gpt2[], hf_names_gpt_neox[],
    hf_names_falcon[], hf_names_internlm2[], hf_names_mamba2[], hf_names_falcon_h1[],
    hf_names_nemotron_h[], hf_names_qwen3_next[], hf_names_per_layer[], hf_names_bert[],
    hf_names_roberta[], hf_names_nomic[], hf_names_dense[], hf_names_bitnet[];

/* ---- tensors --------------------------------------------------------------------- */

struct hf_tensors;

/* Takes s over, also on failure. */
enum status hf_tensors_make(struct hf_tensors **t, const struct hf_config *c,
                            struct safetensors *s, const char *dir, struct err *err);
void hf_tensors_free(void *t);
size_t hf_tensors_count(const struct hf_tensors *t);

/* Rows of the embedding; 0: no embedding. */
int64_t hf_tensors_n_vocab(const struct hf_tensors *t);

/* The type of most weights, as a general.file_type. */
uint32_t hf_tensors_file_type(const struct hf_tensors *t);

/* Write their descriptions after the pairs of a head. */
void hf_tensors_put(const struct hf_tensors *t, struct gguf_bytes *head);

/* struct gguf_source's read(). */
enum status hf_tensors_read(void *t, const struct gguf_tensor *what, uint64_t row,
                            uint64_t n_rows, bool drop, void *dst, struct err *err);

/* ---- pre-tokenizer --------------------------------------------------------------- */

struct hf_pretok {
    bool byte_level;                         /* the byte alphabet of GPT-2 */
    bool puts_blanks;                        /* U+2581 for blanks */
    bool add_space, space_first, space_once; /* see tokenizer_impl.h */
    bool cuts_at_blanks; /* no token has a blank after its first character */
    char *patterns[PRE_MAX_PATTERNS]; /* malloc'ed, spelled by regex_spell() */
    size_t n_patterns;
    json_t *steps; /* of the normaliser that is run; NULL: none */
};

/* Read the members normalizer, pre_tokenizer and decoder. Call hf_pretok_free() in any
 * case. Error: ST_UNSUPPORTED (an unknown step). */
enum status hf_pretok_read(struct hf_pretok *p, const struct jsonfile *f,
                           struct err *err);
void hf_pretok_free(struct hf_pretok *p);

/* ---- tokenizer ------------------------------------------------------------------- */

/* The tokenizer.* pairs of a folder; none without a tokenizer.json. n_vocab: rows of
 * the embedding, which may be more than the tokens. */
enum status hf_tokenizer_put(struct gguf_kvs *k, const char *dir, int64_t n_vocab,
                             struct err *err);

/* The same from a tokenizer.json in memory, without the other files. For tests and
 * fuzzing. */
enum status hf_tokenizer_parse(struct gguf_kvs *k, const char *text, size_t len,
                               struct err *err);

/* ---- inside of the tokenizer: hf_tokenizer.c, hf_special.c ----------------------- */

struct hf_token {
    const char *text; /* in the JSON; NULL: an id without a token */
    uint32_t type;    /* enum token_type */
    uint8_t flags;    /* enum token_flag */
    double score;     /* of unigram models */
};

enum hf_model { HF_BPE, HF_UNIGRAM, HF_WORD_PIECE, HF_WORD_LEVEL };

struct hf_vocab {
    struct jsonfile file;
    const json_t *model;
    struct hf_pretok pre;
    bool own; /* no model of GGUF stands for it; else it is BPE or Unigram */
    enum hf_model kind;
    struct hf_token *tokens; /* [n] */
    size_t n, cap, n_flagged;
    int64_t max_tokens; /* what the size of the file allows */
    int64_t unknown;    /* -1: none */
};

/* Set v->own and v->kind. Error: ST_UNSUPPORTED (another model). */
enum status hf_own_kind(struct hf_vocab *v, struct err *err);
/* Whether it is that of BERT, uncased, for which GGUF has the model "bert". */
bool hf_own_is_bert(const struct hf_vocab *v);
/* The pairs of its settings, and its merges; ids: texts of tokens -> ids. */
enum status hf_own_put_kind(struct gguf_kvs *k, const struct hf_vocab *v,
                            struct err *err);
enum status hf_own_put_merges(struct gguf_kvs *k, const struct hf_vocab *v,
                              const struct strtab *ids, struct err *err);

/* The first line of a list of merges that was a file. */
bool hf_is_version(const json_t *merge);

/* Put the chat templates of tokenizer_config.json, of chat_template.json and of files
 * in dir (NULL: none); *any: whether there are some. Errors: ST_INPUT (a file that is
 * no text or too large, too many names), ST_IO, ST_NO_MEMORY. */
enum status hf_templates_put(struct gguf_kvs *k, const struct jsonfile *tokenizer,
                             const struct jsonfile *processor, const char *dir,
                             bool *any, struct err *err);

/* Put the tokens that begin and end a text, and the chat templates, from tokenizer.json
 * and the JSON files beside it in dir (NULL: none). */
enum status hf_special_put(struct gguf_kvs *k, const struct hf_vocab *v,
                           const char *dir, struct err *err);

#endif
