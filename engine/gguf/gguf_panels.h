/* SPDX-License-Identifier: MIT
 *
 * gguf_panels.h - packed files: GGUF files whose matrices are in panels
 *
 * A packed file (`bench pack`, engine/pack/) is a GGUF file of version 3 with
 *   - general.alignment a multiple of 4096, so that every tensor begins on a page, and
 *     tensors one behind another, in the order of their list, with no gap but what
 * fills the last page of each;
 *   - slmbench.layout_version, a u32: GGUF_LAYOUT_VERSION, or the file is refused;
 *   - slmbench.tensor_checksums, an array of u64: for each tensor, in the order of the
 *     list of tensors, XXH3 (64 bits, seed 0) of its bytes in the file;
 *   - slmbench.head_checksum, a u64: XXH3 of all bytes in front of the tensor data,
 *     with the value of this key as 0;
 *   - matrices in panels: tensors of type GGUF_PANEL_TYPE + their ggml type. In each
 *     slice (ne[2] and ne[3] count slices), the leading ne[1] / 16 * 16 rows are in
 *     panels (kernels.h) and the others follow as rows, in as many bytes as in any GGUF
 *     file. No other program has such types, so that it refuses the file;
 *   - as `bench pack` writes it, the tensors of one layer in one stretch, behind those
 *     of no layer, layers in ascending order.
 * In struct gguf_tensor panel_rows says that a tensor is in panels, and ggml_id and fmt
 * are those of its rows; gguf_read_rows() unpacks them.
 *
 * Threading: as gguf.h.
 */
#ifndef SLM_ENGINE_GGUF_GGUF_PANELS_H
#define SLM_ENGINE_GGUF_GGUF_PANELS_H

#include "engine/gguf/gguf.h"

/* Version of the layout of panels in files. A change of what any `pack` kernel writes,
 * or of the rules above, increases it: tests/engine/pack/test_layout.c has the checksum
 * of a panel of every format. */
#define GGUF_LAYOUT_VERSION 1u

#define GGUF_PANEL_TYPE  0x534c0000u /* "SL", above every ggml type */
#define GGUF_PANEL_ALIGN 4096u

#define GGUF_KEY_LAYOUT    "slmbench.layout_version"
#define GGUF_KEY_CHECKSUMS "slmbench.tensor_checksums"
#define GGUF_KEY_HEAD      "slmbench.head_checksum"

/* Whether g is a packed file; false for what is assembled from one. */
bool gguf_is_packed(const struct gguf *g);

/* Rows of each slice of a matrix of this shape that are in panels in a packed file. */
static inline uint64_t gguf_panel_rows(const uint64_t *ne)
{
    return ne[1] / KERN_PANEL_ROWS * KERN_PANEL_ROWS;
}

/* Whether the format has panels at any level of any architecture. */
bool gguf_has_panels(enum kern_format fmt);

/* Whether a key belongs to the layout of the file and not to the model: it is not
 * copied to another file. */
bool gguf_is_layout_key(const struct gguf_kv *kv);

#endif
