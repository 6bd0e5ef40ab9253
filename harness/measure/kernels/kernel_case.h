/* SPDX-License-Identifier: MIT
 *
 * kernel_case.h - the cases of a kernel that can be timed, and their names
 *
 * Model of the world: a *case* is a row of kernels.def with the sizes it is timed
 * on, or a roof: a loop that only reads, or only multiplies. Its name is the row's
 * name followed by the sizes, and is all that ties a case, its google-benchmark and
 * a line of results together:
 *
 *   gemv/q4_K/avx512vnni/rows:4096/cols:4096/cold[/threads:2]
 *   gemm/q4_K/avx512vnni/rows:4096/cols:4096/n_x:4/cold
 *   dequantize/q4_K/scalar/n:4096      rmsnorm/avx2/n:4096
 *   roof/read/avx512[/threads:2]       roof/int8/avx512vnni     roof/f32/avx512
 *   gemv_x16/q4_K/avx512/rows:4096/cols:4096/cold/prefetch:T0-4096/panels:2
 *
 * prefetch and panels: how weights in panels are read (struct kern_prefetch), "off" or
 * a hint and a distance in bytes, and how many panels are interleaved; without them
 * as slm_tuning_default() has it.
 *
 * cold: every call takes the next matrix of a buffer, which was taken out of every
 * cache before. hot: one matrix of at most 256 KiB, which stays in the second level.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_CASE_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_CASE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "kernels/kernels.h"

#define KERNEL_NAME_MAX 128
#define KERNEL_COLS     4096 /* of every matrix */

/* From this many columns on a product is bound by arithmetic, not by memory. */
#define KERNEL_MANY_COLUMNS 64

enum kernel_cache { KERNEL_ANY_CACHE, KERNEL_HOT, KERNEL_COLD };

/* Words as in the name: a file of results may come from a build that has other
 * formats and levels. */
struct kernel_case {
    char op[24];   /* "gemv", "rmsnorm", "roof" */
    char what[24]; /* format or activation layout; for a roof "read", "int8", "f32";
                      "": neither */
    char isa[16];
    int rows, cols; /* of a matrix; 0: not a product */
    int n_x;        /* columns of activations; default 1 */
    int n;          /* elements of a vector; 0: not one */
    enum kernel_cache cache;
    int n_threads;                 /* default 1 */
    struct kern_prefetch prefetch; /* n_panels 0: default */
};

/* How an operation is a product of a weight matrix and activations. */
struct kernel_product {
    enum kern_op op;
    bool has_columns; /* takes n_cols */
    bool packed;      /* weights are panels of KERN_PANEL_ROWS rows */
    bool requantises; /* weights become bytes first (kern_gemm_int8_fn) */
};

/* NULL when op is none. */
const struct kernel_product *kernel_product(enum kern_op op);

/* The layout that such a product of a format takes its columns in. */
enum kern_act kernel_product_act(const struct kernel_product *p,
                                 enum kern_format format);

/* The numbers of columns that products with columns are timed with, ascending. */
const int *kernel_columns(size_t *n);

/* The ways of reading that cold products of one column are timed with, where they are
 * requested: no prefetch and every hint at every distance, with every number of
 * panels. */
const struct kern_prefetch *kernel_prefetches(size_t *n);

struct kernel_name {
    char text[KERNEL_NAME_MAX];
};

/* "T0-4096" or "off", without the panels. */
struct kernel_name kernel_prefetch_name(struct kern_prefetch prefetch);

struct kernel_name kernel_case_name(const struct kernel_case *c);

/* False, with *c untouched, when name is not built as above. */
bool kernel_case_parse(struct kernel_case *c, const char *name);

/* Rows of KERNEL_COLS columns of a matrix that is timed hot. */
int kernel_hot_rows(enum kern_format format);

bool kernel_case_is_roof(const struct kernel_case *c);

/* The entry of kernels.def; NULL for a roof and for rows that this build lacks. */
const struct kern_entry *kernel_case_entry(const struct kernel_case *c);

/* The roof that bounds the case, as a case: read bandwidth for cold cases with
 * few columns, arithmetic at its own level for hot cases or many columns. False where
 * none applies. */
bool kernel_case_roof(struct kernel_case *roof, const struct kernel_case *c);

/* The arithmetic and the reading roof of a product, whichever bounds it. */
bool kernel_case_peak(struct kernel_case *roof, const struct kernel_case *c);
bool kernel_case_read_roof(struct kernel_case *roof, const struct kernel_case *c);

/* All cases of all rows of kernels.def, also of those that this machine cannot run,
 * with the given thread counts for cold cases; then the roofs this build has.
 * *cases is malloc'ed. Errors: ST_NO_MEMORY. */
enum status kernel_cases_all(struct kernel_case **cases, size_t *n_cases,
                             const int *threads, size_t n_threads, struct err *err);

#endif
