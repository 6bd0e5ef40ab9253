/* SPDX-License-Identifier: MIT
 *
 * arch.c - the table of architectures, and loading a model by the rules of one
 */
#include "engine/arch/arch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/arch/arch_nearest.h"
#include "engine/arch/loader_impl.h"
#include "engine/base/utf8.h"

extern const struct arch arch_apertus, arch_arcee, arch_bailingmoe2, arch_bert,
    arch_bitnet, arch_chatglm, arch_cohere2, arch_command_r, arch_deepseek2,
    arch_ernie45, arch_ernie45_moe, arch_exaone4, arch_falcon, arch_falcon_h1,
    arch_gemma, arch_gemma2, arch_gemma3, arch_gemma3n, arch_gemma4, arch_gemma_embed,
    arch_glm4, arch_glm4moe, arch_gpt2, arch_gpt_oss, arch_gptneox, arch_granite,
    arch_granitemoe, arch_granitehybrid, arch_hunyuan, arch_internlm2, arch_lfm2,
    arch_lfm2moe, arch_llama, arch_mamba2, arch_minicpm, arch_minicpm3, arch_mistral3,
    arch_nemotron, arch_nemotron_h, arch_nemotron_h_moe, arch_nomic_bert, arch_olmo2,
    arch_olmoe, arch_phi2, arch_phi3, arch_phimoe, arch_qwen2, arch_qwen2moe,
    arch_qwen2vl, arch_qwen3, arch_qwen3moe, arch_qwen3next, arch_qwen3vl, arch_qwen35,
    arch_qwen35moe, arch_seed_oss, arch_smallthinker, arch_smollm3, arch_stablelm,
    arch_starcoder2;

static const struct arch *const ARCHS[] = {
    &arch_apertus,      &arch_arcee,     &arch_bailingmoe2,   &arch_bert,
    &arch_bitnet,       &arch_chatglm,   &arch_cohere2,       &arch_command_r,
    &arch_deepseek2,    &arch_ernie45,   &arch_ernie45_moe,   &arch_exaone4,
    &arch_falcon,       &arch_falcon_h1, &arch_gemma,         &arch_gemma2,
    &arch_gemma3,       &arch_gemma3n,   &arch_gemma4,        &arch_gemma_embed,
    &arch_glm4,         &arch_glm4moe,   &arch_gpt2,          &arch_gpt_oss,
    &arch_gptneox,      &arch_granite,   &arch_granitehybrid, &arch_granitemoe,
    &arch_hunyuan,      &arch_internlm2, &arch_lfm2,          &arch_lfm2moe,
    &arch_llama,        &arch_mamba2,    &arch_minicpm,       &arch_minicpm3,
    &arch_mistral3,     &arch_nemotron,  &arch_nemotron_h,    &arch_nemotron_h_moe,
    &arch_nomic_bert,   &arch_olmo2,     &arch_olmoe,         &arch_phi2,
    &arch_phi3,         &arch_phimoe,    &arch_qwen2,         &arch_qwen2moe,
    &arch_qwen2vl,      &arch_qwen3,     &arch_qwen3moe,      &arch_qwen3next,
    &arch_qwen3vl,      &arch_qwen35,    &arch_qwen35moe,     &arch_seed_oss,
    &arch_smallthinker, &arch_smollm3,   &arch_stablelm,      &arch_starcoder2,
};

#define MAX_NAMED 5 /* tensors in a refusal */
#define N_ARCHS   (sizeof ARCHS / sizeof ARCHS[0])

const struct arch *arch_by_name(const char *name, size_t len)
{
    for (size_t i = 0; i < N_ARCHS; i++)
        if (strlen(ARCHS[i]->name) == len && memcmp(ARCHS[i]->name, name, len) == 0)
            return ARCHS[i];
    return NULL;
}

const struct arch *arch_at(size_t i)
{
    return i < N_ARCHS ? ARCHS[i] : NULL;
}

const char *arch_names(char *buf, size_t cap)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < N_ARCHS && used < cap; i++)
        used += (size_t)snprintf(buf + used, cap - used, "%s%s", i ? ", " : "",
                                 ARCHS[i]->name);
    return buf;
}

/* "nearest is llama (`bench gguf` lists the differences)", or nothing. */
static const char *nearest_text(char *buf, size_t cap, const struct gguf *g)
{
    struct err ignored = ERR_INIT;
    struct arch_nearest near;

    buf[0] = '\0';
    if (arch_find_nearest(&near, g, &ignored))
        return buf;
    if (near.arch)
        snprintf(buf, cap,
                 "; nearest is %s: %zu names of tensors are the same, %zu are unknown "
                 "there, %zu are missing (`bench gguf` lists them)",
                 near.arch->name, near.n_shared, near.unknown.n, near.missing.n);
    arch_nearest_free(&near);
    return buf;
}

static enum status find_arch(struct loader *l, const struct arch **arch)
{
    struct gguf_str name;
    char known[700], shown[64], near[160];

    if (!gguf_get_str(l->g, "general.architecture", &name))
        return loader_fail(l, ST_INPUT, "the metadata lack general.architecture");
    *arch = arch_by_name(name.data, name.len);
    if (*arch)
        return ST_OK;
    return loader_fail(
        l, ST_UNSUPPORTED, "architecture \"%s\" is not supported%s; supported are: %s",
        utf8_printable(shown, sizeof shown, name.data, name.len),
        nearest_text(near, sizeof near, l->g), arch_names(known, sizeof known));
}

/* Refuse tensors that no rule reads: the first few by name. */
static enum status check_all_used(struct loader *l)
{
    char names[400] = "", shown[72];
    size_t n_unused = 0, used = 0;

    for (size_t i = 0, n = gguf_n_tensors(l->g); i < n; i++) {
        const char *name = gguf_tensor_at(l->g, i)->name;

        if (l->used[i])
            continue;
        if (++n_unused <= MAX_NAMED)
            used += (size_t)snprintf(
                names + used, sizeof names - used, "%s%s", n_unused > 1 ? ", " : "",
                utf8_printable(shown, sizeof shown, name, strlen(name)));
    }
    if (!n_unused)
        return ST_OK;
    if (n_unused > MAX_NAMED)
        snprintf(names + used, sizeof names - used, " and %zu others",
                 n_unused - MAX_NAMED);
    if (l->m->pooling == SLM_POOLING_RANK)
        return loader_fail(
            l, ST_UNSUPPORTED,
            "the model scores pairs of texts (a reranker: pooling_type is %d, and "
            "there "
            "%s %s), which is not supported; models that make vectors (bench embed) or "
            "continue texts are",
            SLM_POOLING_RANK, n_unused > 1 ? "are" : "is", names);
    return loader_fail(
        l, ST_UNSUPPORTED,
        "tensor%s %s %s no part of the %s architecture as supported here, and "
        "without %s the model would be another one",
        n_unused > 1 ? "s" : "", names, n_unused > 1 ? "are" : "is", l->m->arch->name,
        n_unused > 1 ? "them" : "it");
}

typedef enum status read_fn(struct loader *l, struct model *m);

/* Allocate all norms and biases as floats, and matrices made from others; a plan has
 * measured their size. */
static enum status make_room(struct loader *l, const struct model *planned)
{
    const size_t n = gguf_n_tensors(l->g);

    l->used = calloc(n + 1, 1);
    if (!l->used)
        return loader_fail(l, ST_NO_MEMORY, "no memory to load %zu tensors", n);
    if (!l->w)
        return ST_OK;
    l->cap_floats = planned->vector_bytes / sizeof(float);
    l->m->vectors = malloc(planned->vector_bytes + sizeof(float));
    if (!l->m->vectors)
        return loader_fail(l, ST_NO_MEMORY, "no memory for %zu norm weights",
                           l->cap_floats);
    return planned->derived_bytes
               ? mem_alloc(&l->m->derived, planned->derived_bytes, MEM_PAGES_2M,
                           "matrices made from others", l->err)
               : ST_OK;
}

static enum status read_ends(struct loader *l, struct model *m)
{
    enum status st = loader_sizes(l, m);

    if (!st && m->arch->setup)
        st = m->arch->setup(l, m);
    if (!st && m->is_encoder && m->n_recurrent)
        st = loader_fail(l, ST_UNSUPPORTED,
                         "%s.attention.causal is false, and %d layers are recurrent: "
                         "these cannot see what follows",
                         m->arch->name, m->n_recurrent);
    if (!st)
        st = loader_ends(l, m);
    if (!st && m->n_ropes)
        st = rope_load(l, &m->ropes[0], m->n_rot, m->n_ctx_train);
    if (!st && m->arch->plain_turns)
        m->ropes[0].scale = 1.0f;
    for (int i = 1; i < m->n_ropes; i++)
        if (m->ropes[i].n_rot > m->n_rot)
            m->n_rot = m->ropes[i].n_rot;
    if (!st && m->ropes[0].n_ctx > m->n_ctx_train)
        m->n_ctx_train = m->ropes[0].n_ctx;
    return st;
}

static enum status read_model(struct loader *l, struct model *m)
{
    enum status st = read_ends(l, m);

    for (int i = 0; !st && i < m->n_layers; i++)
        if (!(st = loader_tensors(l, m->arch->layer, i, &m->layers[i])))
            st = loader_split_kv_b(l, &m->layers[i]);
    return st ? st : check_all_used(l);
}

void loader_try_keys(struct loader *l, struct model *m)
{
    enum status st = loader_sizes(l, m);

    if (!st && m->arch->setup)
        st = m->arch->setup(l, m);
    if (!st && m->n_ropes)
        rope_load(l, &m->ropes[0], m->n_rot, m->n_ctx_train);
}

static enum status read_nextn(struct loader *l, struct model *m)
{
    const enum status st = read_ends(l, m);

    return st ? st : loader_nextn_tensors(l, m);
}

static enum status load(struct model **m, const struct gguf *g, struct weights *w,
                        const struct model *planned, bool *in_panels, read_fn *read,
                        struct err *err)
{
    struct model *new = calloc(1, sizeof *new);
    struct loader l = {.g = g, .w = w, .m = new, .in_panels = in_panels, .err = err};
    enum status st;

    if (!new)
        return err_set(err, ST_NO_MEMORY, "no memory for a model's description");
    st = find_arch(&l, &new->arch);
    if (!st)
        st = make_room(&l, planned);
    if (!st)
        st = read(&l, new);
    free(l.used);
    if (st)
        model_free(new);
    else
        *m = new;
    return st;
}

/* Twice: planned, which measures, then with the weights. */
static enum status load_by(read_fn *read, struct model **m, const struct gguf *g,
                           struct weights *w, struct err *err)
{
    struct model *planned;
    enum status st = load(&planned, g, NULL, NULL, NULL, read, err);

    if (st)
        return st;
    if (!w) {
        *m = planned;
        return ST_OK;
    }
    st = load(m, g, w, planned, NULL, read, err);
    model_free(planned);
    return st;
}

enum status model_load(struct model **m, const struct gguf *g, struct weights *w,
                       struct err *err)
{
    return load_by(read_model, m, g, w, err);
}

enum status model_load_nextn(struct model **m, const struct gguf *g, struct weights *w,
                             struct err *err)
{
    return load_by(read_nextn, m, g, w, err);
}

enum status model_rebind(struct model *m, const struct gguf *g, struct weights *w,
                         struct err *err)
{
    struct model *anew, old = *m;
    const enum status st = model_load(&anew, g, w, err);

    if (st)
        return st;
    *m = *anew;
    *anew = old;
    model_free(anew);
    return ST_OK;
}

enum status model_panels(bool *in_panels, const struct gguf *g, struct err *err)
{
    struct model *planned;

    for (size_t i = 0; i < gguf_n_tensors(g); i++)
        in_panels[i] = false;
    const enum status st = load(&planned, g, NULL, NULL, in_panels, read_model, err);

    if (!st)
        model_free(planned);
    return st;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    free(m->vectors);
    mem_free(&m->derived);
    for (int i = 0; i < MODEL_MAX_ROPES; i++)
        rope_free(&m->ropes[i]);
    for (int i = 0; m->layers && i < m->n_layers; i++) {
        free((void *)m->layers[i].gate.slices);
        free((void *)m->layers[i].up.slices);
        free((void *)m->layers[i].down.slices);
        free((void *)m->layers[i].lat.v_b.slices);
    }
    free(m->layers);
    free(m);
}
