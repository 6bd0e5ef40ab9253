/* SPDX-License-Identifier: MIT
 *
 * gate_count_names.c - what is counted: the kernels that a token of the model is made
 * of, on little data, and a token of a small model of the same quantisation
 */
#include <stdio.h>

#include "engine/engine.h"
#include "harness/decide/gate/gate_count.h"

#define MAX_FORMATS 2
#define SCALAR      (1u << KERN_ISA_scalar)
#define SIZES       "/rows:16/cols:512"

struct choice {
    enum kern_format format[MAX_FORMATS]; /* the one with most bytes first */
    size_t n_formats;
    enum quantmix mix; /* of the small model */
};

static void choose_formats(struct choice *c, const struct gguf *g)
{
    uint64_t bytes[KERN_N_FMT] = {0};

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (t->n_dims == 2 && t->fmt != KERN_N_FMT)
            bytes[t->fmt] += t->bytes;
    }
    c->n_formats = 0;
    while (c->n_formats < MAX_FORMATS) {
        int most = 0;

        for (int f = 1; f < KERN_N_FMT; f++)
            if (bytes[f] > bytes[most])
                most = f;
        if (!bytes[most])
            break;
        c->format[c->n_formats++] = (enum kern_format)most;
        bytes[most] = 0;
    }
}

/* If the model does not name any, the formats of Q4_K_M are used. */
static void choose(struct choice *c, const struct modelref *model)
{
    const struct slm_params params = slm_params_default();
    struct err ignored = ERR_INIT;
    struct slm_info info;
    struct gguf *g;

    *c = (struct choice){{KERN_FMT_q4_K, KERN_FMT_q6_K}, MAX_FORMATS, QUANTMIX_Q4_K_M};
    if (!model)
        return;
    if (model->mix != QUANTMIX_N)
        c->mix = model->mix;
    if (modelref_open(model, &g, &ignored))
        return;
    if (!model->at_load)
        choose_formats(c, g);
    if (model->mix == QUANTMIX_N && slm_plan(&info, g, &params, &ignored) == ST_OK)
        mix_parse(&c->mix, info.quant, &ignored); /* or it stays */
    gguf_close(g);
}

struct names {
    char (*name)[128];
    size_t n;
};

static void add(struct names *to, enum kern_op op, int what, uint32_t isa_mask,
                const char *sizes)
{
    const struct kern_row *row = kern_best(op, what, isa_mask);

    if (row && to->n < GATE_MAX_COUNTS)
        snprintf(to->name[to->n++], sizeof to->name[0], "%s%s", row->name, sizes);
}

size_t gate_count_names(char name[GATE_MAX_COUNTS][128], const struct modelref *model,
                        uint32_t isa_mask)
{
    struct names to = {name, 0};
    struct choice c;

    choose(&c, model);
    for (size_t i = 0; i < c.n_formats; i++) {
        add(&to, KERN_OP_gemv, c.format[i], isa_mask, SIZES);
        add(&to, KERN_OP_gemv_x16, c.format[i], isa_mask, SIZES);
        add(&to, KERN_OP_gemm, c.format[i], isa_mask, SIZES "/n_x:8");
        add(&to, KERN_OP_gemm_x16, c.format[i], isa_mask, SIZES "/n_x:8");
    }
    if (c.n_formats && isa_mask != SCALAR)
        add(&to, KERN_OP_gemv, c.format[0], SCALAR, SIZES);
    add(&to, KERN_OP_attn_dot, KERN_KV_f16, isa_mask, "/n:256");
    add(&to, KERN_OP_attn_mix, KERN_KV_f16, isa_mask, "/n:256");
    if (to.n < GATE_MAX_COUNTS)
        snprintf(name[to.n++], sizeof name[0], "decode/nano:%s", quantmix_name(c.mix));
    return to.n;
}
