/* SPDX-License-Identifier: MIT
 *
 * users_charts_internal.h - what the charts of users share
 *
 * Threading: as users.h.
 */
#ifndef SLM_HARNESS_JUDGE_USERS_USERS_CHARTS_INTERNAL_H
#define SLM_HARNESS_JUDGE_USERS_USERS_CHARTS_INTERNAL_H

#include "harness/chart/chart_files.h"
#include "harness/judge/users/users.h"

#define USERS_NAME_CHARACTERS 30 /* of a server in a legend */

struct users_range {
    double min, max;
    bool log;
};

void users_range_widen(struct users_range *r, double v);

/* Room around what is drawn; from 0 where that is not far. */
struct users_range users_range_with_room(struct users_range r, bool from_zero);

/* The time to the first token (part 0) or per token, in the unit of its axis; NAN:
 * not known. */
double users_limit_of(const struct slo *slo, int part);

#define USERS_TTFT "users_ttft"

/* The name of a chart's files, without ending. */
const char *users_chart_name(enum users_chart chart);

/* One of levels, and the distribution by the requests of the directory `from` (NULL:
 * none): draw it in to->dir, with its subtitle and command, or remove it where there is
 * nothing to draw; *any is set where one was drawn. Errors: as users_charts(). */
enum status users_draw_levels(const struct users *u, enum users_chart chart,
                              const struct chart_place *to, bool *any, struct err *err);
enum status users_draw_ttft(const struct users *u, const struct chart_place *to,
                            const char *from, bool *any, struct err *err);

/* One chart of to->dir, with the place's origin as a note; *any is set if it was drawn.
 */
enum status users_draw(struct plot *p, const struct chart_place *to, bool *any,
                       struct err *err);

#endif
