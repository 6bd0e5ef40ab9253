/* SPDX-License-Identifier: MIT
 *
 * ggml_types.c - names and block geometry of ggml's tensor types
 *
 * They allow listing and bounds-checking any file, also with formats that have no
 * kernels here. The numbers are facts of the file format; 137
 * to 141 are used by the ik_llama.cpp fork. A format of kernels.def must agree
 * with its row, which a test asserts.
 */
#include "engine/gguf/gguf.h"

struct ggml_type {
    uint32_t id;
    uint32_t elems, bytes; /* per block */
    const char *name;
};

/* clang-format off */
static const struct ggml_type types[] = {
    {0, 1, 4, "f32"},         {1, 1, 2, "f16"},         {2, 32, 18, "q4_0"},
    {3, 32, 20, "q4_1"},      {6, 32, 22, "q5_0"},      {7, 32, 24, "q5_1"},
    {8, 32, 34, "q8_0"},      {9, 32, 36, "q8_1"},      {10, 256, 84, "q2_K"},
    {11, 256, 110, "q3_K"},   {12, 256, 144, "q4_K"},   {13, 256, 176, "q5_K"},
    {14, 256, 210, "q6_K"},   {15, 256, 292, "q8_K"},   {16, 256, 66, "iq2_xxs"},
    {17, 256, 74, "iq2_xs"},  {18, 256, 98, "iq3_xxs"}, {19, 256, 50, "iq1_s"},
    {20, 32, 18, "iq4_nl"},   {21, 256, 110, "iq3_s"},  {22, 256, 82, "iq2_s"},
    {23, 256, 136, "iq4_xs"}, {24, 1, 1, "i8"},         {25, 1, 2, "i16"},
    {26, 1, 4, "i32"},        {27, 1, 8, "i64"},        {28, 1, 8, "f64"},
    {29, 256, 56, "iq1_m"},   {30, 1, 2, "bf16"},       {31, 32, 18, "q4_0_4_4"},
    {32, 32, 18, "q4_0_4_8"}, {33, 32, 18, "q4_0_8_8"}, {34, 256, 54, "tq1_0"},
    {35, 256, 66, "tq2_0"},   {36, 32, 18, "iq4_nl_4_4"}, {37, 32, 18, "iq4_nl_4_8"},
    {38, 32, 18, "iq4_nl_8_8"}, {39, 32, 17, "mxfp4"},  {40, 64, 36, "nvfp4"},
    {41, 128, 18, "q1_0"},    {42, 64, 18, "q2_0"},
    {0x802a, 128, 34, "q2_0_128"}, {137, 256, 76, "iq2_k"},
    {138, 256, 110, "iq3_k"}, {139, 256, 144, "iq4_k"}, {140, 256, 176, "iq5_k"},
    {141, 256, 212, "iq6_k"},
};
/* clang-format on */

static const struct ggml_type *find(uint32_t ggml_id)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].id == ggml_id)
            return &types[i];
    }
    return NULL;
}

const char *gguf_ggml_name(uint32_t ggml_id)
{
    const struct ggml_type *t = find(ggml_id);

    return t ? t->name : NULL;
}

bool gguf_ggml_block(uint32_t ggml_id, uint32_t *elems, uint32_t *bytes)
{
    const struct ggml_type *t = find(ggml_id);

    if (!t)
        return false;
    *elems = t->elems;
    *bytes = t->bytes;
    return true;
}
