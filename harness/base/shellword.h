/* SPDX-License-Identifier: MIT
 *
 * shellword.h - words of a command line that can be pasted into a shell
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_BASE_SHELLWORD_H
#define SLM_HARNESS_BASE_SHELLWORD_H

#include <stddef.h>

/* Append a blank and one word to the text in buf[cap]: quoted unless every
 * character is harmless; cut where buf is full. */
void shell_word_append(char *buf, size_t cap, const char *word);

#endif
