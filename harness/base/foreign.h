/* SPDX-License-Identifier: MIT
 *
 * foreign.h - texts of others, made harmless where they are read
 *
 * Cells of a CSV file, members of a JSON file and names of files come from anybody and
 * are printed later, in places that do not know where a text came from. So each is
 * changed once, when it becomes a text of this program.
 *
 * Threading: pure functions.
 * Source: GitHub's documentation of workflow commands; the runner trims blanks before
 * "::" and finds "##[" anywhere in a line.
 */
#ifndef SLM_HARNESS_BASE_FOREIGN_H
#define SLM_HARNESS_BASE_FOREIGN_H

#include <stddef.h>

/* text as utf8_printable() makes it, so of one line and cut with "..." where cap (>= 8)
 * is too small; and no part of it that can begin a line is a workflow command: the
 * first character of "::" at the start of a word and of "##[" becomes a full stop.
 * Texts that are harmless already, and fit, stay as they are. text may be NULL: "".
 * Returns buf. */
const char *foreign_text(char *buf, size_t cap, const char *text);

#endif
