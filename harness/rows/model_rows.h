/* SPDX-License-Identifier: MIT
 *
 * model_rows.h - which rows are of one model
 *
 * Model of the world: a model is its content, and the column model_id is a hash of that
 * (harness/model/model_names.h): files of one model have one, whatever their names, on
 * whatever machine. Rows of versions before the column have none; their model is that
 * of the rows with their label, if those are of one model alone, or else their name.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_MODEL_ROWS_H
#define SLM_HARNESS_ROWS_MODEL_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/rows/row.h"

/* An identity as the column model_id has it; 0, not known: "". Returns buf. */
const char *model_id_text(char *buf, size_t cap, uint64_t identity);
void row_set_model(struct row *row, uint64_t identity);

/* Rows that stand together somewhere. */
struct row_span {
    struct row *rows;
    size_t n;
};

/* Makes rows of one model comparable: rows without model_id get that of the others with
 * their label if there is one alone; rows of one model get one label, the shortest; a
 * label that several models have gets a part of the id behind it, as "model~1f2e3d4c".
 * Error: ST_NO_MEMORY. */
enum status model_rows_join(const struct row_span *spans, size_t n, struct err *err);

/* Order of rows by model, label first; 0: rows of one model. For rows that were
 * joined. */
int model_rows_compare(const struct row *a, const struct row *b);

#endif
