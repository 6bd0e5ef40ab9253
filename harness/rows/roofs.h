/* SPDX-License-Identifier: MIT
 *
 * roofs.h - roofs of one sweep compared with each other
 *
 * Every decode row has the read bandwidth probed while it was measured, every prefill
 * row the peak of arithmetic, every row of `bench load` the bandwidth before and after
 * it, if its server is on this machine. Rows with the same threads on the same CPUs
 * should have the same; where one got clearly less than most others, another process
 * was using the memory or the execution units (another virtual machine, for example: no
 * counter of this one shows it). Such a row still shows how close to its roof a setting
 * came, but not which setting is faster. The bandwidth of a smaller model does not
 * apply to a larger one: its weights may fit a cache.
 *
 * The reference is the upper quartile of the comparable roofs (the roof of that rank),
 * but of three and more never the highest. So one row that had the machine for itself
 * marks no other, and up to three quarters of the rows may be disturbed and are found.
 * With two the higher is the reference: measuring the lower one again shows which was
 * unusual.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_ROOFS_H
#define SLM_HARNESS_ROWS_ROOFS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/rows/row.h"

/* A roof below this share of the reference is low. Undisturbed machines stay within a
 * few per cent. */
#define ROOF_LOW_SHARE 0.85

/* The most of the weights that was read for a roof when it was not taken out of the
 * caches before: a small model's roof could be the cache's. */
#define ROOF_MAX_BYTES ((int64_t)1 << 30)

/* Whether r, a decode row that fits its limit, a prefill row or one of load, has a low
 * roof among rows[n_rows] (r may be one of them; its roof counts once). *reference
 * (may be NULL) is in GB/s or GOPS. */
bool roof_is_low(const struct row *r, const struct row *rows, size_t n_rows,
                 double *reference);

/* The roof that r would have had on an undisturbed machine, in GB/s or GOPS: the
 * highest one of rows[n] that holds for it (read in the same way, of no fewer bytes)
 * and compared with which the reference is not low, among undisturbed rows if possible.
 * *doubtful: no row was undisturbed. NAN: no roof holds, as where r pages, or no
 * memory. */
double roof_best(const struct row *r, const struct row *const *rows, size_t n,
                 bool *doubtful);

/* Mark r as disturbed, and by what, if it is valid and its roof is low. */
void roof_mark(struct row *r, const struct row *rows, size_t n_rows);

/* Marks low roofs of all rows of a table, in n log n. Error: ST_NO_MEMORY. */
enum status roof_mark_all(struct row *rows, size_t n_rows, struct err *err);

#endif
