/* SPDX-License-Identifier: MIT
 *
 * pathlist.h - the files that a command reads, and that none of them is what it writes
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_BASE_PATHLIST_H
#define SLM_HARNESS_BASE_PATHLIST_H

#include <stddef.h>

#include "engine/base/status.h"

struct path_list {
    char **path; /* [n], malloc'ed */
    size_t n, cap;
};

/* A copy of path, which may be NULL: then nothing. Error: ST_NO_MEMORY. */
enum status path_list_add(struct path_list *list, const char *path, struct err *err);
void path_list_free(struct path_list *list);

/* Whether `out`, or the name that it has until it is complete (<out>.part), is one of
 * the files: by device and inode, whatever the names are; and whether a file can be
 * made there, which nobody wants to learn after minutes of measuring. "-" and NULL are
 * none. Errors: ST_USAGE (naming both; it is a folder), ST_IO and ST_PERMISSION (its
 * folder is not there, or cannot be written into). */
enum status path_list_check_output(const struct path_list *inputs, const char *out,
                                   struct err *err);

/* Whether no dir/name is one of the files; dir NULL or "": none. The list of names ends
 * with NULL.
 */
enum status path_list_check_folder(const struct path_list *inputs, const char *dir,
                                   const char *const *names, struct err *err);

#endif
