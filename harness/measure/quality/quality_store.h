/* SPDX-License-Identifier: MIT
 *
 * quality_store.h - a file of equal records that survives the end of its writer
 *
 * Model of the world: a header that identifies the records (a key and their
 * size), then records, each followed by a checksum. A record is there when all of it
 * is: opening the file cuts off the incomplete record of a killed writer. A
 * file with another key or size belongs to other data and is replaced.
 *
 * Threading: one thread per store; one process per file, by flock.
 */
#ifndef SLM_HARNESS_MEASURE_QUALITY_QUALITY_STORE_H
#define SLM_HARNESS_MEASURE_QUALITY_QUALITY_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct quality_store;

/* Open or make the file at path; its directory must exist. Errors: ST_USAGE (another
 * run has it open), ST_IO, ST_NO_MEMORY. */
enum status quality_store_open(struct quality_store **s, const char *path, uint64_t key,
                               size_t record_bytes, struct err *err);
void quality_store_close(struct quality_store *s);

const char *quality_store_path(const struct quality_store *s);

/* Whole records there are. */
size_t quality_store_n(const struct quality_store *s);

/* Bytes of a file of n records. */
uint64_t quality_store_bytes(size_t record_bytes, size_t n);

/* One more record [record_bytes]. Error: ST_IO (a full disk, for example); the file
 * then ends with the record before. */
enum status quality_store_append(struct quality_store *s, const void *record,
                                 struct err *err);

/* Record i < quality_store_n(). Errors: ST_IO, ST_INPUT (its checksum is wrong). */
enum status quality_store_read(struct quality_store *s, size_t i, void *record,
                               struct err *err);

/* Keep the first n. Error: ST_IO. */
enum status quality_store_cut(struct quality_store *s, size_t n, struct err *err);

#endif
