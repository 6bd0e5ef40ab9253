/* SPDX-License-Identifier: MIT
 *
 * gguf_cursor.h - reading untrusted bytes with bounds, for gguf_*.c only
 *
 * A cursor moves through the image of one file. Every function that reads fails at the
 * end of the image, with the error set.
 */
#ifndef SLM_ENGINE_GGUF_GGUF_CURSOR_H
#define SLM_ENGINE_GGUF_GGUF_CURSOR_H

#include "engine/gguf/gguf_impl.h"

#define GGUF_MAX_NAME 65535 /* for a key, by the specification; for a tensor too */

struct gguf_cursor {
    struct gguf *g;
    size_t at;         /* offset of the next byte */
    const char *where; /* what is being read, for messages */
    struct err *err;
};

/* Set ST_INPUT; the file's name precedes the message. */
enum status gguf_fail(struct gguf_cursor *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A name as messages show it. */
struct gguf_shown {
    char text[72];
};
struct gguf_shown gguf_show(struct gguf_str s);

/* The next n bytes, or NULL. */
const void *cursor_take(struct gguf_cursor *c, uint64_t n);
bool cursor_u32(struct gguf_cursor *c, uint32_t *out);
bool cursor_u64(struct gguf_cursor *c, uint64_t *out);
bool cursor_str(struct gguf_cursor *c, struct gguf_str *out);

/* The name of a key or tensor, entry i of its list: 1 to GGUF_MAX_NAME bytes,
 * none of them zero. */
bool cursor_name(struct gguf_cursor *c, const char *what, size_t i,
                 struct gguf_str *out);

/* Grow a list by doubling for one more element; *cap is updated. NULL with the error
 * set if memory runs out; the list is then unchanged. */
void *cursor_grow(struct gguf_cursor *c, void *list, size_t n, size_t *cap,
                  size_t elem_bytes);

/* gguf_panels.c: check the keys of a packed file, if it is one. */
enum status gguf_read_layout(struct gguf_cursor *c, uint64_t n_tensors);

/* gguf_panels.c: after the shape has been read, the type of the rows of a tensor that
 * is in panels, and how many are; other types are left as they are. */
enum status gguf_read_panel_type(struct gguf_cursor *c, struct gguf_tensor *t,
                                 struct gguf_str name);

/* gguf_q2_0.c: after the descriptions and data_offset, before tensors have their
 * places: which of its two layouts each tensor of type 42 has. Error: ST_NO_MEMORY. */
enum status gguf_settle_q2_0(struct gguf_cursor *c);

/* gguf_panels.c: after the tensors have their places, whether those are the pages where
 * a packed file has them, one tensor behind another, and the last page is whole. */
enum status gguf_check_layout(struct gguf_cursor *c);

/* gguf_tensors.c: read n descriptions at the cursor, then place and check them
 * against the data that begins after them. */
enum status gguf_read_tensors(struct gguf_cursor *c, size_t n_tensors);

#endif
