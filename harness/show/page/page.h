/* SPDX-License-Identifier: MIT
 *
 * page.h - the results of one or several machines as one HTML page
 *
 * Model of the world: the page is a single file that needs nothing else: no network, no
 * program. Style and script are page.css and page.js, inside the program
 * (page_files.h), and the page's policy allows these two by their hash and nothing
 * else: no request, no other script. Without a script everything but the columns of a
 * row is there. Pictures are SVG whose colours the style sheet chooses, for light and
 * dark.
 *
 * Everything in it is from what is at the paths: the same rows give the same page. A
 * path may hold several machines (result_set.h).
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SHOW_PAGE_PAGE_H
#define SLM_HARNESS_SHOW_PAGE_PAGE_H

#include <stddef.h>

#include "engine/base/status.h"
#include "harness/judge/recommend/recommend.h"

/* More machines are not shown side by side. */
#define PAGE_MAX_MACHINES 32

struct page_params {
    const char *const *paths; /* [n], of rows (result_set.h) */
    size_t n;
    const char *out;                /* file; "-": standard output */
    const char *title;              /* NULL: made of the machines' names */
    struct recommend_params wishes; /* max_threads 0: each machine's own */
};

/* Read them and write the page; *bytes is its size, *n_machines how many are on it.
 * Errors: those of result_set_open() and textfile_write(), ST_USAGE (out is one of the
 * files that are read; too many machines), ST_NO_MEMORY. */
enum status page_make(const struct page_params *p, size_t *bytes, size_t *n_machines,
                      struct err *err);

#endif
