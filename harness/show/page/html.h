/* SPDX-License-Identifier: MIT
 *
 * html.h - texts of others in a page: as HTML, in attributes, in data for a script
 *
 * Names of models, machines and files come from anybody. Whatever is written into a
 * page that is not a literal of this program goes through these functions: none of it
 * can end the element, the attribute or the string that it stands in.
 *
 * Threading: pure functions, but for html_put_plot().
 */
#ifndef SLM_HARNESS_SHOW_PAGE_HTML_H
#define SLM_HARNESS_SHOW_PAGE_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/chart/plot.h"
/* As text, and as an attribute's value within double quotes, of HTML and of XML.
 * Malformed UTF-8, U+FFFE and U+FFFF become U+FFFD, control characters blanks. */
void html_put(FILE *f, const char *text);
/* The same between two texts that are HTML. */
void html_put_in(FILE *f, const char *before, const char *text, const char *after);

/* html_put() of what printf() makes of it, cut after 4000 bytes. */
void html_printf(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* html_put() of text with several lines, which stay. */
void html_put_lines(FILE *f, const char *text);

/* A page of its own with a style of its own, without a script, that may request
 * nothing; html_end() names the command that wrote it. */
void html_begin(FILE *f, const char *title);
void html_end(FILE *f, const char *command);

/* A plot with the colours of a file (svg.h), which is freed; NULL: a plot without
 * memory. */
void html_put_plot(FILE *f, struct plot *p);

/* As a JSON string with its quotes, in a <script> whose type is application/json: what
 * could end the element or begin a comment in it is \u and its number. */
void html_put_json(FILE *f, const char *text);

/* Base64 of bytes[n]. */
void html_put_base64(FILE *f, const uint8_t *bytes, size_t n);

#endif
