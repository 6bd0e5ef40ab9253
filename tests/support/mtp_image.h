/* SPDX-License-Identifier: MIT
 *
 * mtp_image.h - a model whose layer that predicts further tokens cannot err
 */
#ifndef SLM_TESTS_MTP_IMAGE_H
#define SLM_TESTS_MTP_IMAGE_H

#include "engine/gguf/gguf.h"
#include "tests/support/test.h"

/* Where a tensor of the file is in its image. */
static inline unsigned char *mtp_tensor_in(unsigned char *image, const struct gguf *g,
                                           const char *name, uint64_t *bytes)
{
    const struct gguf_tensor *t = gguf_tensor_find(g, name);

    if (!t)
        return NULL;
    *bytes = t->bytes;
    return image + t->offset;
}

static inline void mtp_zero(unsigned char *image, const struct gguf *g, int layer,
                            const char *name)
{
    char full[64];
    uint64_t bytes = 0;

    snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    unsigned char *at = mtp_tensor_in(image, g, full, &bytes);

    if (at)
        memset(at, 0, bytes);
}

static inline void mtp_set_to_one(unsigned char *image, const struct gguf *g,
                                  const char *name)
{
    const float one = 1.0f;
    uint64_t bytes = 0;
    unsigned char *at = mtp_tensor_in(image, g, name, &bytes);

    assert_non_null(at);
    for (uint64_t i = 0; i < bytes; i += sizeof one)
        memcpy(at + i, &one, sizeof one);
}

/* Rows of Q8_0: ones also where the column is the row, behind `skip` columns. */
static inline void mtp_add_identity(unsigned char *image, const struct gguf *g,
                                    const char *name, size_t skip)
{
    const uint16_t one = 0x3c00; /* 1.0 in F16 */
    uint64_t bytes = 0;
    unsigned char *at = mtp_tensor_in(image, g, name, &bytes);
    const struct gguf_tensor *t = gguf_tensor_find(g, name);
    const size_t row_bytes = (size_t)t->ne[0] / 32 * 34;

    assert_int_equal(t->fmt, KERN_FMT_q8_0);
    for (size_t r = 0; r < t->ne[1]; r++) {
        unsigned char *block = at + r * row_bytes + (r + skip) / 32 * 34;

        memcpy(block, &one, sizeof one);
        block[2 + (r + skip) % 32] = 1;
    }
}

/* qwen35-mtp.gguf with layers that add nothing to what they read, those that predict,
 * too. The caller's to free, and *g to close. */
static inline unsigned char *mtp_plain_layers(const char *path, struct gguf **g,
                                              size_t *bytes)
{
    static const char *const outputs[] = {"attn_output.weight", "ssm_out.weight",
                                          "ffn_down.weight"};
    unsigned char *image = (unsigned char *)test_read_file(path, bytes);
    struct err err = ERR_INIT;

    assert_int_equal(gguf_parse(g, image, *bytes, "changed", &err), ST_OK);
    for (int i = 0; i < 5; i++)
        for (size_t k = 0; k < 3; k++)
            mtp_zero(image, *g, i, outputs[k]);
    mtp_zero(image, *g, 4, "nextn.eh_proj.weight");
    return image;
}

/* The same, where a token's logits are its embedding's alone, and the layer that reads
 * the next token's embedding guesses as the model will. With skip 64 it reads the
 * hidden state, which the model has used, and is one token late. The caller's to free.
 */
static inline unsigned char *mtp_image_make(const char *path, size_t skip,
                                            size_t *bytes)
{
    struct gguf *g;
    unsigned char *image = mtp_plain_layers(path, &g, bytes);

    mtp_set_to_one(image, g, "output_norm.weight");
    mtp_set_to_one(image, g, "blk.4.nextn.enorm.weight");
    mtp_set_to_one(image, g, "blk.4.nextn.hnorm.weight");
    mtp_set_to_one(image, g, "blk.4.nextn.shared_head_norm.weight");
    mtp_add_identity(image, g, "blk.4.nextn.eh_proj.weight", skip);
    gguf_close(g);
    return image;
}

#endif
