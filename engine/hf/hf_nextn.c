/* SPDX-License-Identifier: MIT
 *
 * hf_nextn.c - layers of a folder that predict further tokens
 *
 * Folders have them behind the model's own layers, by their numbers, or under a prefix
 * of their own ("mtp."), with other names for what joins the layer with the model. How
 * many there are is what tensors there are: configs do not have the count, or still
 * have it where the tensors were left out.
 * Sources: the models' published folders; DeepSeek-AI 2024 (arXiv 2412.19437).
 */
#include "engine/hf/hf_impl.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"

/* Tensors of the first such layer. */
static const char *const joints[][2] = {
    {"fc.weight", "eh_proj.weight"},
    {"pre_fc_norm_embedding.weight", "enorm.weight"},
    {"pre_fc_norm_hidden.weight", "hnorm.weight"},
    {"norm.weight", "shared_head.norm.weight"},
};

bool hf_predicts(const struct hf_arch *a)
{
    for (const struct hf_name *const *list = a->names; *list; list++)
        if (*list == hf_names_nextn || *list == hf_names_nextn_plus_1)
            return true;
    return false;
}

const char *hf_nextn_name(const struct hf_config *c, const char *name, char *buf,
                          size_t cap)
{
    const char *at = hf_plain_name(name, buf, cap);
    int layer, n = 0;

    if (!hf_predicts(c->arch))
        return at;
    if (!strncmp(at, "model.mtp.", 10))
        at += 6;
    if (strncmp(at, "mtp.", 4) != 0)
        return at;
    name = at + 4;
    if (sscanf(name, "layers.%5d.%n", &layer, &n) == 1 && n && layer >= 0) {
        char rest[128];

        snprintf(rest, sizeof rest, "%s", name + n);
        snprintf(buf, cap, "model.layers.%d.%s", (int)c->n_layers + layer, rest);
        return buf;
    }
    for (size_t i = 0; i < sizeof joints / sizeof joints[0]; i++)
        if (!strcmp(name, joints[i][0])) {
            snprintf(buf, cap, "model.layers.%d.%s", (int)c->n_layers, joints[i][1]);
            return buf;
        }
    return at;
}

enum status hf_put_layers(struct hf_config *c, const struct safetensors *s,
                          struct err *err)
{
    char buf[160], shown[80];

    for (size_t i = 0; hf_predicts(c->arch) && i < safetensors_count(s); i++) {
        const char *name = safetensors_at(s, i)->name;
        int layer;

        if (sscanf(hf_nextn_name(c, name, buf, sizeof buf), "model.layers.%9d.",
                   &layer) != 1 ||
            layer < c->n_layers + c->n_more)
            continue;
        c->n_more = layer + 1 - c->n_layers;
        if (c->n_more > HF_MAX_NEXTN)
            return err_set(err, ST_INPUT,
                           "%s has %d layers, behind which at most %d predict further "
                           "tokens; the tensor '%s' is of none of them",
                           c->file.path, (int)c->n_layers, HF_MAX_NEXTN,
                           utf8_printable(shown, sizeof shown, name, strlen(name)));
    }
    hf_put_u32(c, "block_count", c->n_layers + c->n_more);
    if (c->n_more)
        hf_put_u32(c, "nextn_predict_layers", c->n_more);
    return ST_OK;
}
