/* SPDX-License-Identifier: MIT
 *
 * textfile.h - a text from a file, and to a file
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_BASE_TEXTFILE_H
#define SLM_HARNESS_BASE_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <jansson.h>

#include "engine/base/status.h"

#define TEXTFILE_MAX_BYTES ((size_t)1 << 30) /* of a text that a model reads */

/* The whole file, which may be a pipe, standard input for "-", or inside the program
 * (program.h); *text is malloc'ed.
 * Errors: ST_IO, ST_INPUT (more than max bytes), ST_NO_MEMORY. */
enum status textfile_read(const char *path, size_t max, char **text, size_t *len,
                          struct err *err);

/* Appends all of text[len] or nothing: a part that a full disk has accepted is cut off
 * again. synced: it is on disk when this returns. False: errno has why. */
bool textfile_append(int fd, const char *text, size_t len, bool synced);

/* What write() makes of arg to path; "-" is standard output, and the page that GitHub
 * collects from all steps of a job ($GITHUB_STEP_SUMMARY) is appended to, not replaced.
 * Errors: those of newfile_open() and newfile_commit(). */
enum status textfile_write(const char *path, void (*write)(FILE *f, const void *arg),
                           const void *arg, struct err *err);

/* Writes a JSON object, which is released; flags are json_dumpf()'s, NULL: there
 * was no memory to make it. Errors: the same, ST_NO_MEMORY. */
enum status textfile_write_json(const char *path, json_t *object, size_t flags,
                                struct err *err);

/* Writes a JSON text to f, its strings without what controls a terminal or a CI system:
 * \u and its number stands there. Returns -1 on failure. */
int textfile_put_json(FILE *f, const json_t *object, size_t flags);

#endif
