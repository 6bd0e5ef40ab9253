/* SPDX-License-Identifier: MIT
 *
 * readfile.h - bytes at an offset of a file, all of them or an error
 *
 * Threading: any thread.
 */
#ifndef SLM_ENGINE_BASE_READFILE_H
#define SLM_ENGINE_BASE_READFILE_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* n bytes of fd from offset on to dst; path is for messages. Error: ST_IO (also where
 * the file ends before). */
enum status readfile_at(int fd, const char *path, void *dst, size_t n, uint64_t offset,
                        struct err *err);

#endif
