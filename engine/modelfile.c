/* SPDX-License-Identifier: MIT
 *
 * modelfile.c - open a model by what its path is: a file, a part of one, a folder
 */
#include "engine/modelfile.h"

#include "engine/gguf/gguf_split.h"
#include "engine/hf/hf.h"
#include "engine/quantize/requant.h"

enum status modelfile_open(struct gguf **g, const char *path, const char *quant,
                           struct err *err)
{
    const enum quantmix mix = quant ? quantmix_by_name(quant) : QUANTMIX_N;
    struct gguf *file = NULL;
    enum status st;

    if (quant && mix == QUANTMIX_N)
        return err_set(err, ST_USAGE, "there is no quantisation '%.40s'; Q4_K_M is one",
                       quant);
    st = hf_is_folder(path) ? hf_open(&file, path, err) : gguf_open(&file, path, err);
    if (!st && gguf_split_is(file))
        st = gguf_split_join(&file, file, err);
    if (!st && quant)
        return requant_open(g, file, &(struct requant_params){.mix = mix}, err);
    if (!st)
        *g = file;
    return st;
}

enum status modelfile_requant(struct gguf **g, const char *path,
                              const struct requant_params *params, struct err *err)
{
    struct gguf *file = NULL;
    const enum status st = modelfile_open(&file, path, NULL, err);

    return st ? st : requant_open(g, file, params, err);
}
