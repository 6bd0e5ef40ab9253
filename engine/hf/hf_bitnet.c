/* SPDX-License-Identifier: MIT
 *
 * hf_bitnet.c - folders of BitNet b1.58 of 2024 (BitnetForCausalLM)
 *
 * Seven matrices of each layer are floats in the folder that the model uses as ternary:
 *
 *     s  = max(mean(|w|), 1e-5), over the whole matrix
 *     w' = s * clamp(round(w / s), -1, 1)
 *
 * GGUF files hold w'. A matrix that is ternary already is rounded like any other, as
 * the model does: where it has zeros, s is less than the magnitude of the others.
 *
 * Sources: Ma et al. 2024 (arXiv 2402.17764), section 2; the models' published code.
 */
#include "engine/hf/hf_tensors_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define L "model.layers.#."
#define B "blk.#."

const struct hf_name hf_names_bitnet[] = {
    {L "self_attn.q_proj.weight", B "attn_q.weight", HF_TERNARY},
    {L "self_attn.k_proj.weight", B "attn_k.weight", HF_TERNARY},
    {L "self_attn.v_proj.weight", B "attn_v.weight", HF_TERNARY},
    {L "self_attn.o_proj.weight", B "attn_output.weight", HF_TERNARY},
    {L "self_attn.inner_attn_ln.weight", B "attn_sub_norm.weight", HF_AS_IS},
    {L "mlp.gate_proj.weight", B "ffn_gate.weight", HF_TERNARY},
    {L "mlp.up_proj.weight", B "ffn_up.weight", HF_TERNARY},
    {L "mlp.down_proj.weight", B "ffn_down.weight", HF_TERNARY},
    {L "mlp.ffn_layernorm.weight", B "ffn_sub_norm.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* ---- config.json ----------------------------------------------------------------- */

enum status hf_bitnet_kind(struct hf_config *c, const struct hf_arch *bitnet,
                           struct err *err)
{
    const char *class =
        json_text(json_array_get(json_member(c->file.root, "architectures"), 0));
    char shown[48];

    if (class && !strcmp(class, "BitnetForCausalLM"))
        c->arch = bitnet;
    else if (class && c->arch == bitnet)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: architectures names %s; of bitnet models only "
                       "BitnetForCausalLM (2024, SiLU) is supported, not those of 2025 "
                       "(packed ternary weights, a squared ReLU)",
                       c->file.path,
                       utf8_printable(shown, sizeof shown, class, strlen(class)));
    return ST_OK;
}

enum status hf_bitnet(struct hf_config *c, struct err *err)
{
    const enum status st = hf_must_be_bool(c, "attention_bias", false, err);

    return st ? st : hf_llama(c, err);
}

/* ---- ternary matrices ------------------------------------------------------------ */

#define MIN_SCALE   1e-5
#define READ_FLOATS ((uint64_t)1 << 18)

/* Sum of the magnitudes of n rows from row on; raw and v hold them. */
static enum status add_rows(const struct hf_tensors *h, const struct hf_entry *e,
                            uint64_t row, uint64_t n, void *raw, float *v, double *sum,
                            struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const size_t row_bytes = kern_format_bytes(t->fmt, (size_t)e->ne[0]);
    const enum status st =
        safetensors_read(h->s, t, row * row_bytes, (size_t)n * row_bytes, raw, err);

    if (st)
        return st;
    h->to_floats[t->fmt](raw, v, (size_t)(n * e->ne[0]));
    for (uint64_t i = 0; i < n * e->ne[0]; i++)
        *sum += fabs((double)v[i]);
    return ST_OK;
}

/* The scale of the whole matrix, which is read for it. */
static enum status find_scale(const struct hf_tensors *h, struct hf_entry *e,
                              struct err *err)
{
    const uint64_t rows = e->ne[1], most = READ_FLOATS / e->ne[0] + 1;
    const size_t n_read = (size_t)((most < rows ? most : rows) * e->ne[0]);
    void *raw = malloc(kern_format_bytes(e->parts[0]->fmt, n_read));
    float *v = malloc(n_read * sizeof *v);
    double sum = 0.0;
    enum status st =
        raw && v ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for %s", e->name);

    for (uint64_t row = 0; row < rows && !st; row += most)
        st = add_rows(h, e, row, most < rows - row ? most : rows - row, raw, v, &sum,
                      err);
    if (!st)
        e->scale = (float)fmax(sum / (double)(rows * e->ne[0]), MIN_SCALE);
    free(v);
    free(raw);
    return st;
}

enum status hf_round_ternary(struct hf_tensors *h, struct hf_entry *e, uint64_t n_rows,
                             float *v, struct err *err)
{
    enum status st = ST_OK;

    pthread_mutex_lock(&h->lock);
    if (e->scale == 0.0F)
        st = find_scale(h, e, err);
    const float s = e->scale;

    pthread_mutex_unlock(&h->lock);
    for (uint64_t i = 0; i < n_rows * e->ne[0] && !st; i++) {
        const float q = rintf(v[i] / s);

        v[i] = s * (q > 1.0F ? 1.0F : q < -1.0F ? -1.0F : q);
    }
    return st;
}
