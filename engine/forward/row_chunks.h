/* SPDX-License-Identifier: MIT
 *
 * row_chunks.h - the chunks in which threads take a range of rows
 *
 * Chunks come in rounds of one for each thread. All chunks of a round are equally long:
 * one part of n_parts of an even share of the rows that earlier rounds left. So most
 * rows are in long chunks and the last ones are short: threads that go on taking chunks
 * end within one short chunk of each other, though they are not equally fast
 * (factoring: Hummel, Schonberg and Flynn 1992, doi 10.1145/135226.135232). Rounds of
 * chunks longer than a unit are complete, so that threads of the same speed get the
 * same number of rows, but for one unit.
 *
 * A chunk of ROW_CHUNKS_LONG rows or more is a multiple of these, every chunk one of
 * `unit` rows but the one that ends with the range. A single thread waits for nobody:
 * it gets n_parts chunks of the same length.
 *
 * Pure arithmetic; a struct row_chunks belongs to one thread.
 */
#ifndef SLM_ENGINE_FORWARD_ROW_CHUNKS_H
#define SLM_ENGINE_FORWARD_ROW_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"

/* Four panels: what kernels of one column process together. */
#define ROW_CHUNKS_LONG ((size_t)4 * KERN_PANEL_ROWS)

struct row_chunks {
    size_t n_rows, n_threads, n_parts, unit;
    /* the round reached: chunks first .. first + n_threads - 1, of `each` rows, from
     * row `begin` on */
    size_t first, begin, each;
};

/* n_rows rows for n_threads >= 1 threads, n_parts >= 1. unit divides ROW_CHUNKS_LONG.
 */
struct row_chunks row_chunks_of(size_t n_rows, int n_threads, int n_parts, size_t unit);

/* Rows begin .. end-1 of chunk i; false: there are fewer chunks. i must not descend
 * from call to call, but may skip. */
bool row_chunks_get(struct row_chunks *c, size_t i, size_t *begin, size_t *end);

#endif
