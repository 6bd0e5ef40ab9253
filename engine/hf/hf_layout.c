/* SPDX-License-Identifier: MIT
 *
 * hf_layout.c - rows of several matrices in one tensor of a folder
 *
 * Folders of some kinds put what belongs to a group of heads together, or gate and up
 * row by row; GGUF files have each part whole.
 */
#include "engine/hf/hf_tensors_impl.h"

uint64_t hf_field_row(const struct hf_fields *f, uint64_t r)
{
    for (int i = 0; i < f->n; i++) {
        const uint64_t n = f->field[i].n;

        if (r < f->n_groups * n)
            return r / n * f->stride + f->field[i].at + r % n;
        r -= f->n_groups * n;
    }
    return r;
}

static void add_field(struct hf_fields *f, uint64_t at, uint64_t n)
{
    f->field[f->n].at = at;
    f->field[f->n++].n = n;
}

/* Heads of queries that share one of keys and one of values. */
static void qkv_fields(struct hf_entry *e, const struct hf_config *c)
{
    struct hf_fields *f = &e->fields;
    const uint64_t head = (uint64_t)c->head_dim;
    const uint64_t queries = (uint64_t)(c->n_heads / c->n_kv_heads) * head;

    f->n_groups = (uint64_t)c->n_kv_heads;
    f->stride = queries + 2 * head;
    e->n_heads = (uint64_t)(e->how == HF_GROUP_Q ? c->n_heads : c->n_kv_heads);
    if (e->how == HF_QKV || e->how == HF_GROUP_Q)
        add_field(f, 0, queries);
    if (e->how == HF_QKV || e->how == HF_GROUP_K)
        add_field(f, queries, head);
    if (e->how == HF_QKV || e->how == HF_GROUP_V)
        add_field(f, queries + head, head);
}

/* Linear attention: a head of queries and keys, and the heads of values that share it.
 */
static void delta_fields(struct hf_entry *e, const struct hf_config *c)
{
    struct hf_fields *f = &e->fields;
    const uint64_t head = (uint64_t)c->delta_dim;
    const uint64_t values = (uint64_t)(c->delta_v_heads / c->delta_k_heads) * head;

    f->n_groups = (uint64_t)c->delta_k_heads;
    f->stride = 2 * (head + values);
    if (e->how == HF_DELTA_Z) {
        add_field(f, 2 * head + values, values);
        return;
    }
    add_field(f, 0, head);
    add_field(f, head, head);
    add_field(f, 2 * head, values);
}

/* Every other row of all slices, which have an even number of them. */
static void every_other(struct hf_entry *e, uint64_t rows, bool odd)
{
    e->fields.n_groups = rows / 2;
    e->fields.stride = 2;
    add_field(&e->fields, odd, 1);
}

enum status hf_layout(struct hf_entry *e, const struct hf_config *c, const char *dir,
                      struct err *err)
{
    uint64_t *rows =
        e->n_dims == 1 || (e->flat && e->how != HF_BY_GROUP) ? &e->ne[0] : &e->ne[1];
    const uint64_t all = e->flat ? e->ne[0] * e->ne[1] : e->ne[1] * e->ne[2];
    struct hf_fields *f = &e->fields;
    bool shared = true;

    switch (e->how) {
    case HF_QKV:
    case HF_GROUP_Q:
    case HF_GROUP_K:
    case HF_GROUP_V:
        shared = c->n_heads % c->n_kv_heads == 0 && c->head_dim % 2 == 0;
        if (shared)
            qkv_fields(e, c);
        break;
    case HF_POSITIONS:
        shared = all > (uint64_t)c->first_position;
        f->n_groups = 1;
        f->stride = all;
        add_field(f, (uint64_t)c->first_position, all - (uint64_t)c->first_position);
        break;
    case HF_DELTA_QKV:
    case HF_DELTA_Z:
        delta_fields(e, c);
        break;
    case HF_EVEN:
    case HF_ODD:
    case HF_MX_EVEN:
    case HF_MX_ODD:
        shared = *rows % 2 == 0;
        every_other(e, all, e->how == HF_ODD || e->how == HF_MX_ODD);
        break;
    default:
        return ST_OK;
    }
    if (!shared || all != f->n_groups * f->stride)
        return err_set(err, ST_INPUT,
                       "%s: %s is made of %llu rows, which groups of heads or pairs of "
                       "rows cannot share",
                       dir, e->name, (unsigned long long)all);
    uint64_t kept = 0;

    for (int i = 0; i < f->n; i++)
        kept += f->field[i].n;
    *rows = *rows / f->stride * kept;
    e->part_rows = e->ne[1] * e->ne[2];
    return ST_OK;
}
