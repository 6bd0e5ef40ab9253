/* SPDX-License-Identifier: MIT
 *
 * svg_tokens.h - pictures of samples, and of shares of the roof
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_PAGE_SVG_TOKENS_H
#define SLM_HARNESS_SHOW_PAGE_SVG_TOKENS_H

#include <stdio.h>

#include "harness/show/report/report_tokens.h"

/* Legend and picture each; nothing is written where there is nothing to draw, which
 * the caller finds out before. */
void svg_token_times(FILE *f, const struct token_series_list *list);
void svg_roof_map(FILE *f, const struct roof_map *map);

/* Token times relative to their point's median over the run; below it the CPU time
 * that others took, and the faults. */
void svg_token_run(FILE *f, const struct token_run *run, const struct report_rows *p);

#endif
