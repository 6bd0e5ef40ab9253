/* SPDX-License-Identifier: MIT
 *
 * model_names.h - which files are the same model, and what several models are called
 *
 * Model of the world: a model is its content: general.name, architecture and shapes of
 * tensors. Files of one model differ in the types of their weights, so they have one
 * label and are compared as its quantisations. A file's name is for a reader, and rows
 * go by it: each of several models has a name of its own.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_MODEL_MODEL_NAMES_H
#define SLM_HARNESS_MODEL_MODEL_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "engine/gguf/gguf.h"
#include "harness/model/modelref.h"

#define MODELREFS_MAX 66 /* models at once, as of a sweep, at most */

/* A number that files of one model share, whatever types their weights have; never 0.
 * general.name counts by its letters and digits, in any case. */
uint64_t model_identity(const struct gguf *g);

/* Identity of a model that is made of a shape: by its name and sizes. No file has it.
 */
uint64_t shape_identity(const struct synth_shape *shape);

/* A name without the quantisation at its end: "m-Q4_K_M" and "m.f16" are "m". Returns
 * out. */
const char *model_label(char *out, size_t cap, const char *name);

/* FILE or FILE:QUANT with the whole path, malloc'ed; NULL: it is no file, or the path
 * is too long. A file that is a link keeps its name: in a cache of the Hub all else is
 * numbers. */
char *model_absolute(const char *text);

/* Names of their own for files that share one: with as many of their folders as
 * distinguish them. A file that is given twice, and a shape, keep theirs. */
void model_names_part(struct modelref *const *refs, size_t n);

/* One label for all of one identity, and different ones for others. Where it is 0, not
 * known, the label stays. Names are parted already. */
void model_labels_choose(struct modelref *const *refs, size_t n);

#endif
