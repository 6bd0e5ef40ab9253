/* SPDX-License-Identifier: MIT
 *
 * engine_info.c - what a model is, and what it needs with given parameters
 */
#include "engine/engine_impl.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/kv/checkpoint.h"
#include "engine/quantize/quantmix.h"

struct slm_params slm_params_default(void)
{
    return (struct slm_params){
        .n_threads = 1,
        .isa_mask = isa_usable(),
        .residency = WEIGHTS_MMAP,
        .n_sinks = SLM_DEFAULT_SINKS,
        .tuning = slm_tuning_default(),
    };
}

int slm_params_threads(const struct slm_params *p)
{
    return p->n_threads > p->n_threads_prefill ? p->n_threads : p->n_threads_prefill;
}

static void copy_str(char *dst, size_t cap, const struct gguf *g, const char *key)
{
    struct gguf_str s = {.data = "", .len = 0};

    gguf_get_str(g, key, &s);
    snprintf(dst, cap, "%.*s", s.len < cap ? (int)s.len : (int)cap, s.data);
}

/* The file's name of its mix, or the type of most of its bytes. */
static void describe_quant(struct slm_info *info, const struct gguf *g)
{
    uint64_t bytes[KERN_N_FMT] = {0}, file_type;
    int most = 0;

    if (gguf_get_u64(g, "general.file_type", &file_type) && file_type < UINT32_MAX) {
        const enum quantmix mix = quantmix_by_file_type((uint32_t)file_type);

        if (mix != QUANTMIX_N) {
            snprintf(info->quant, sizeof info->quant, "%s", quantmix_name(mix));
            return;
        }
    }
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (t->fmt != KERN_N_FMT)
            bytes[t->fmt] += t->bytes;
    }
    for (int fmt = 1; fmt < KERN_N_FMT; fmt++)
        if (bytes[fmt] > bytes[most])
            most = fmt;
    snprintf(info->quant, sizeof info->quant, "%s",
             kern_format_info((enum kern_format)most)->name);
}

struct kvcache_shape info_kv_shape(const struct model *m, const struct slm_params *p,
                                   int n_spare)
{
    struct kvcache_shape shape = {
        .type = p->kv_type,
        .n_layers = m->n_cached,
        .n_kv_heads = m->n_kv_heads,
        .head_dim = m->head_dim,
        .n_latent = m->latent.kv_rank,
        .n_recent = p->kv_window,
        .n_sinks = p->kv_window ? p->n_sinks : 0,
        .n_spare = n_spare,
        .n_sequences = p->n_sequences > 1 ? p->n_sequences : p->paged,
        .n_pool = p->n_pool,
        .n_states = m->n_recurrent,
        .state_floats = m->n_recurrent ? recur_state_floats(&m->recur) : 0,
    };

    for (int i = 0; i < m->n_layers; i++) {
        const struct layer *y = &m->layers[i];

        if (y->window) {
            shape.window = y->window;
            shape.n_window_layers += !y->shares;
            shape.n_window_heads = y->n_kv_heads;
            shape.window_dim = y->head_dim;
        } else if (y->attends) {
            shape.n_kv_heads = y->n_kv_heads;
            shape.head_dim = y->head_dim;
        }
    }
    /* Layers with a longer window of their own are as all others; so are those of an
     * encoder, whose texts are in the cache for one pass. */
    if (m->is_encoder || (shape.n_recent && shape.n_recent < shape.window))
        shape.n_window_layers = shape.window = 0;
    if (!m->is_encoder && !shape.n_recent && (shape.n_window_layers || shape.n_states))
        shape.n_checkpoints = p->n_checkpoints;
    return shape;
}

/* The cache as if each layer that shares keys and values had its own. */
static struct kvcache_shape as_read(const struct model *m, struct kvcache_shape shape)
{
    const bool windows = shape.n_window_layers > 0;

    for (int i = 0; i < m->n_layers; i++)
        if (m->layers[i].shares) {
            shape.n_layers++;
            shape.n_window_layers += windows && m->layers[i].window;
        }
    return shape;
}

static void describe_model(struct slm_info *info, const struct gguf *g,
                           const struct model *m, const struct slm_params *p)
{
    const struct kvcache_shape shape = info_kv_shape(m, p, 1);
    const struct kvcache_shape read = as_read(m, shape);

    *info = (struct slm_info){
        .residency = info->residency,
        .n_layers = m->n_layers,
        .n_embd = m->n_embd,
        .n_attends = m->n_attends,
        .n_heads = m->n_attends ? m->n_heads : 0,
        .n_kv_heads = m->n_attends ? m->n_kv_heads : 0,
        .head_dim = m->head_dim,
        .n_ff = m->n_ff,
        .n_vocab = m->n_vocab,
        .n_ctx_train = m->n_ctx_train,
        .is_encoder = m->is_encoder,
        .pooling = m->pooling,
        .has_pooling = m->has_pooling,
        .n_vector = (int)model_vector(m),
        .weight_token_bytes = m->weight_token_bytes,
        .weight_token_macs = m->weight_token_macs,
        .output_bytes = matrix_slice_bytes(&m->output),
        .output_macs = m->output.n_rows * m->output.k,
        .n_experts = m->n_experts,
        .n_experts_used = m->n_experts_used,
        .expert_bytes = m->expert_bytes,
        .kv_type = p->kv_type,
        .kv_window = shape.n_recent,
        .n_sinks = shape.n_sinks,
        .kv_pos_bytes = kvcache_pos_bytes(&shape),
        .kv_read_bytes = kvcache_pos_bytes(&read),
        .kv_window_bytes = kvcache_window_bytes(&read),
        .n_recurrent = m->n_recurrent,
        .state_bytes = kvcache_state_bytes(&shape),
        .n_window = shape.window,
        .n_window_layers = read.n_window_layers,
    };
    info->made_on_load = gguf_is_assembled(g);
    snprintf(info->arch, sizeof info->arch, "%s", m->arch->name);
    copy_str(info->name, sizeof info->name, g, "general.name");
    describe_quant(info, g);
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        info->n_params += t->n_elems;
        info->weight_bytes += t->bytes;
        info->rows_bytes += residency_is_rows(t) ? t->bytes : 0;
    }
}

/* The window of the layers that have one; 0: none does. */
static int own_window(const struct model *m)
{
    for (int i = 0; i < m->n_layers; i++)
        if (m->layers[i].window)
            return m->layers[i].window;
    return 0;
}

/* Whether layers with a window have other heads than those without. */
static bool has_two_kinds(const struct model *m)
{
    for (int i = 1; i < m->n_layers; i++)
        if (m->layers[i].n_kv_heads != m->layers[0].n_kv_heads ||
            m->layers[i].head_dim != m->layers[0].head_dim)
            return true;
    return false;
}

/* Check the parameters and compute the memory they take. */
static enum status describe_use(struct slm_info *info, const struct model *m,
                                const struct slm_params *p, struct err *err)
{
    const int n_ctx = p->n_ctx, n_batch = p->n_batch, n_logits = p->n_logits;
    const int n_threads = slm_params_threads(p);
    int most_of_one; /* tokens of a sequence in a pass */

    if (n_threads < 1 || n_threads > THREAD_POOL_MAX)
        return err_set(err, ST_USAGE, "%d threads: between 1 and %d are possible",
                       n_threads, THREAD_POOL_MAX);
    if (n_ctx < 0)
        return err_set(err, ST_USAGE, "a context of %d positions is not possible",
                       n_ctx);
    if (n_batch < 0 || n_batch > FORWARD_MAX_BATCH)
        return err_set(err, ST_USAGE,
                       "batches of %d tokens: between 1 and %d are possible", n_batch,
                       FORWARD_MAX_BATCH);
    if (n_logits < 0)
        return err_set(err, ST_USAGE, "logits of %d tokens are not possible", n_logits);
    if (p->n_back < 0)
        return err_set(err, ST_USAGE, "going back by %d positions is not possible",
                       p->n_back);
    if (p->kv_window < 0 || p->kv_window > SLM_MAX_WINDOW || p->n_sinks < 0 ||
        p->n_sinks > SLM_MAX_WINDOW)
        return err_set(err, ST_USAGE,
                       "a KV cache of the first %d and the last %d positions: 0 to %d "
                       "are possible",
                       p->n_sinks, p->kv_window, SLM_MAX_WINDOW);
    if (p->n_checkpoints < 0)
        return err_set(err, ST_USAGE, "%d checkpoints are not possible",
                       p->n_checkpoints);
    if (p->prefill_sums == SLM_SUMS_INT8 &&
        !kern_best(KERN_OP_gemm_x16_int8, KERN_FMT_q8_0, p->isa_mask))
        return err_set(err, ST_UNSUPPORTED,
                       "int8 sums in prefill need AVX-VNNI or AVX512-VNNI, which this "
                       "machine lacks, or which are switched off");
    if (p->n_sequences < 0 || p->n_sequences > SLM_MAX_SEQUENCES)
        return err_set(err, ST_USAGE, "%d sequences: between 1 and %d are possible",
                       p->n_sequences, SLM_MAX_SEQUENCES);
    info->n_sequences = p->n_sequences > 1 ? p->n_sequences : 1;
    info->n_ctx = n_ctx ? n_ctx : m->n_ctx_train;
    info->n_batch = n_batch ? n_batch : SLM_DEFAULT_BATCH;
    /* the positions of all sequences */
    if (info->n_batch > (int64_t)info->n_ctx * info->n_sequences)
        info->n_batch = info->n_ctx * info->n_sequences;
    info->n_logits = n_logits && n_logits < info->n_batch ? n_logits : info->n_batch;
    info->n_back = p->n_back ? p->n_back : SLM_DEFAULT_BACK;
    /* a sequence without end may have a whole pass, also one longer than n_ctx */
    most_of_one =
        p->kv_window || info->n_batch < info->n_ctx ? info->n_batch : info->n_ctx;
    if (info->n_back < most_of_one)
        info->n_back = most_of_one;
    if (m->is_encoder && p->kv_window)
        return err_set(err, ST_USAGE,
                       "the model is an encoder, which sees a text as a whole: no KV "
                       "window is possible");
    if (m->pos_embd.n_rows && (p->kv_window || info->n_ctx > m->n_ctx_train))
        return err_set(err, ST_USAGE,
                       "the model has learned its %d positions, and there are no more: "
                       "choose a context of %d at most, and no KV window",
                       m->n_ctx_train, m->n_ctx_train);
    const struct kvcache_shape shape = info_kv_shape(m, p, info->n_back);

    if (p->kv_window && p->kv_window < own_window(m) && has_two_kinds(m))
        return err_set(
            err, ST_USAGE,
            "a KV window of %d positions is shorter than that of the model's "
            "own layers, whose heads are not those of its other layers: "
            "choose at least %d",
            p->kv_window, own_window(m));
    if (!kvcache_bytes(&info->kv_bytes, &shape, info->n_ctx))
        return err_set(err, ST_NO_MEMORY,
                       "a KV cache of %d positions is larger than an address space; "
                       "choose a smaller context",
                       info->n_ctx);
    info->kv_more_bytes = kvcache_more_bytes(&shape, info->n_ctx);
    info->n_seq_pages = (int)kvcache_sequence_pages(&shape, info->n_ctx);
    info->n_checkpoints = shape.n_checkpoints;
    info->checkpoint_bytes =
        shape.n_checkpoints ? checkpoint_bytes(&shape, info->n_ctx) : 0;
    info->scratch_bytes =
        m->vector_bytes + m->derived_bytes +
        forward_bytes(m, p->prefill_sums, info->kv_type, info->n_batch, info->n_logits,
                      info->n_sequences, n_threads);
    return ST_OK;
}

/* The layer that predicts the token after the next; one that is not as known here
 * counts only where it is to be opened. */
static enum status describe_nextn(struct slm_info *info, const struct gguf *g,
                                  const struct slm_params *p, struct err *err)
{
    struct err why = ERR_INIT;
    struct model *m;
    const enum status st = model_load_nextn(&m, g, NULL, p->mtp ? err : &why);

    if (st)
        return p->mtp ? st : ST_OK;
    info->n_nextn = m->n_nextn;
    info->nextn_bytes = m->weight_token_bytes;
    info->nextn_macs = m->weight_token_macs;
    if (p->mtp)
        info->scratch_bytes += mtp_bytes(m, p, info);
    model_free(m);
    return ST_OK;
}

enum status info_fill(struct slm_info *info, const struct gguf *g,
                      const struct model *m, const struct slm_params *params,
                      struct err *err)
{
    enum status st;

    describe_model(info, g, m, params);
    st = describe_use(info, m, params, err);
    if (!st && (m->n_nextn || params->mtp))
        st = describe_nextn(info, g, params, err);
    return st;
}

uint64_t info_machine_bytes(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t info_memory_bytes(const struct slm_params *params)
{
    return params->memory_bytes ? params->memory_bytes : info_machine_bytes();
}

/* Bytes of the experts that a token uses and misses, if all are equally popular. */
static uint64_t missed_bytes(const struct slm_info *info,
                             const struct residency_plan *plan)
{
    const double all = (double)plan->cached_bytes;
    const double in_memory = fmin((double)plan->cache_bytes, all);

    return (uint64_t)((all - in_memory) * info->n_experts_used / info->n_experts);
}

void info_stream(struct slm_info *info, const struct residency_plan *plan)
{
    info->n_streamed = plan->n_streamed;
    info->streamed_bytes = plan->streamed_bytes;
    info->cache_bytes = plan->cache_bytes;
    if (plan->n_experts)
        info->streamed_bytes = missed_bytes(info, plan);
    info->weights_memory_bytes = plan->memory_bytes;
}

static enum status describe_stream(struct slm_info *info, struct residency_plan *plan,
                                   const struct gguf *g, uint64_t memory_bytes,
                                   struct err *err)
{
    const uint64_t rest = info->kv_bytes + info->scratch_bytes;
    const enum status st = residency_plan_make(
        plan, g, info->n_layers, memory_bytes > rest ? memory_bytes - rest : 0, err);

    if (st)
        return st;
    info_stream(info, plan);
    return ST_OK;
}

/* Entries of page tables are of 8 bytes. */
#define PAGES_PER_TABLE 512

enum status slm_plan_as_file(struct slm_info *info, const struct gguf *g,
                             struct err *err)
{
    struct residency_bounds bounds;
    const enum status st = residency_bounds_find(&bounds, g, info->n_layers, err);

    if (st)
        return st;
    info->stream_min_bytes = bounds.min_bytes;
    info->stream_kept_bytes = bounds.kept_bytes;
    info->map_bytes = info->weight_bytes - bounds.disk_bytes;
    info->map_bytes += info->map_bytes / PAGES_PER_TABLE;
    return ST_OK;
}

enum status info_weights(struct slm_info *info, struct residency_plan *plan,
                         const struct gguf *g, const struct slm_params *params,
                         struct err *err)
{
    const uint64_t memory_bytes = info_memory_bytes(params);

    if (gguf_is_mapped(g)) {
        const enum status st = slm_plan_as_file(info, g, err);

        if (st)
            return st;
    }
    if (info->residency == WEIGHTS_AUTO)
        info->residency = slm_choose_residency(info, memory_bytes, params->spare_bytes);
    if (info->residency == WEIGHTS_STREAM)
        return describe_stream(info, plan, g, memory_bytes, err);
    for (size_t i = 0; info->residency == WEIGHTS_PACKED && i < gguf_n_tensors(g); i++)
        info->weights_memory_bytes += residency_kept_bytes(g, gguf_tensor_at(g, i));
    return ST_OK;
}

enum status info_plan(struct slm_info *info, struct residency_plan *plan,
                      const struct gguf *g, const struct slm_params *params,
                      struct err *err)
{
    struct slm_info planned = {.residency = params->residency};
    struct model *m;
    enum status st = model_load(&m, g, NULL, err);

    if (st)
        return st;
    st = info_fill(&planned, g, m, params, err);
    model_free(m);
    if (!st)
        st = info_weights(&planned, plan, g, params, err);
    if (!st)
        *info = planned;
    return st;
}

enum status slm_plan(struct slm_info *info, const struct gguf *g,
                     const struct slm_params *params, struct err *err)
{
    struct residency_plan plan;

    return info_plan(info, &plan, g, params, err);
}

enum status slm_check_predicts(const struct slm_info *info, struct err *err)
{
    if (!info->is_encoder)
        return ST_OK;
    return err_set(err, ST_UNSUPPORTED,
                   "the model is an encoder (%s): it makes vectors of texts (`bench "
                   "embed`) and predicts no tokens",
                   info->arch);
}

/* Memory for the weights; 0: not even for the rest. */
static uint64_t weights_room(const struct slm_info *info, uint64_t memory_bytes)
{
    const uint64_t rest = info->kv_bytes + info->scratch_bytes;

    return memory_bytes > rest ? memory_bytes - rest : 0;
}

static bool fits_packed(const struct slm_info *info, uint64_t room)
{
    return room && info->weight_bytes <= room;
}

static bool fits_but_embeddings(const struct slm_info *info, uint64_t room)
{
    return info->stream_min_bytes && info->stream_kept_bytes <= room;
}

/* A pass reads the weights from first to last, and the page that it needs next is the
 * one that was longest not used: if a few do not fit, all are read from disk again. */
static bool fits_mapped(const struct slm_info *info, uint64_t room, uint64_t spare)
{
    return info->map_bytes && room && info->map_bytes <= room + spare;
}

enum weights_residency slm_choose_residency(const struct slm_info *info,
                                            uint64_t memory_bytes, uint64_t spare_bytes)
{
    const uint64_t room = weights_room(info, memory_bytes);

    if (info->made_on_load || fits_packed(info, room))
        return WEIGHTS_PACKED;
    if (fits_but_embeddings(info, room))
        return WEIGHTS_STREAM;
    if (fits_mapped(info, room, spare_bytes))
        return WEIGHTS_MMAP;
    return info->stream_min_bytes && info->stream_min_bytes <= room ? WEIGHTS_STREAM
                                                                    : WEIGHTS_MMAP;
}

bool slm_fits_memory(const struct slm_info *info, uint64_t memory_bytes,
                     uint64_t spare_bytes)
{
    const uint64_t room = weights_room(info, memory_bytes);

    return fits_packed(info, room) || fits_but_embeddings(info, room) ||
           fits_mapped(info, room, spare_bytes);
}

uint64_t slm_bytes_per_token(const struct slm_info *info, int n_past)
{
    const uint64_t all = (uint64_t)n_past * info->kv_read_bytes;
    const int n_seen = info->n_sinks + info->kv_window;
    uint64_t hidden = 0;

    if (info->n_window && n_past > info->n_window)
        hidden = (uint64_t)(n_past - info->n_window) * info->kv_window_bytes;
    if (info->kv_window && n_past > n_seen)
        hidden +=
            (uint64_t)(n_past - n_seen) * (info->kv_read_bytes - info->kv_window_bytes);
    return info->weight_token_bytes + info->state_bytes + all - hidden;
}

double slm_bytes_per_step(const struct slm_info *info, int n_past, int n_sequences)
{
    const double of_sequence =
        (double)slm_bytes_per_token(info, n_past) - (double)info->weight_token_bytes;

    return slm_bytes_per_pass(info, n_sequences) + n_sequences * of_sequence;
}

double slm_bytes_per_pass(const struct slm_info *info, double n_tokens)
{
    const double n = info->n_experts, used = info->n_experts_used;
    double more = 0; /* experts than one token takes */

    if (info->n_experts)
        more = n * (1 - pow(1 - used / n, n_tokens)) - used;
    return (double)info->weight_token_bytes + more * (double)info->expert_bytes;
}

double slm_bytes_per_prompt(const struct slm_info *info, int n, int n_batch)
{
    const int n_full = n / n_batch, rest = n % n_batch;
    const int n_passes = n_full + (rest > 0);
    double bytes = n_full * slm_bytes_per_pass(info, n_batch);

    if (rest)
        bytes += slm_bytes_per_pass(info, rest);
    return bytes - (n_passes - 1) * (double)info->output_bytes;
}
