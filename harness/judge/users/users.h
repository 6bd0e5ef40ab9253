/* SPDX-License-Identifier: MIT
 *
 * users.h - rows of bench load for a reader: servers, numbers of users, what they carry
 *
 * Model of the world: rows of one server with the same model, lengths of prompts and
 * answers, and SLO are a series: a line of a chart. A number of users may have been
 * measured several times, in rounds or since the first try was undecided; a level is
 * all of them. Its figures are medians over its rows, the undisturbed ones where there
 * are any, between the lowest and the highest end of their intervals; whether it meets
 * the SLO is judged from all their requests together. A row whose requests all failed
 * has no figures, and misses it. Two servers are compared row by row, as the same round
 * measured both, one right after the other. Open loops have series of their own, whose
 * levels are rates.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_JUDGE_USERS_USERS_H
#define SLM_HARNESS_JUDGE_USERS_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/chart/plot.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/result_set.h"
#include "harness/rows/row.h"
#include "harness/rows/samples.h"
#include "harness/judge/users/slo.h"

#define USERS_MAX_SERIES 16
#define USERS_MAX_LEVELS 64
#define USERS_MAX_ROUNDS 256 /* rows of a level; those after them are left out */

/* A figure with the ends of its interval; NAN: not known. */
struct users_figure {
    double v, lo, hi;
};

/* Further figures of a level, of the columns with these names (users.c). */
enum users_more {
    USERS_VISIBLE_P50, /* visible: as ttft_p90_s below */
    USERS_FIRST_P50,   /* first: also of a thought */
    USERS_FIRST_P90,
    USERS_TURN1_P50,
    USERS_TURN1_P90,
    USERS_LATER_P50,
    USERS_LATER_P90,
    USERS_THOUGHTS,
    USERS_HIT,
    USERS_KNOWN,
    USERS_ACHIEVED,
    USERS_GOODPUT,
    USERS_BACKLOG,
    USERS_MET,
    USERS_N_MORE
};

struct users_level {
    int n_users;           /* 0: an open loop */
    double rate;           /* of an open loop; 0: none */
    const struct row *row; /* the last of the rows that its figures are of */
    size_t n_rows;         /* that these are */
    struct users_figure tok_per_s, ttft_p90_s, tpot_p90_ms;
    struct users_figure more[USERS_N_MORE];
    struct users_figure roof_gbps; /* of memory around it, where that was read */
    size_t n_requests, n_ttft_met, n_tpot_met; /* of all rows */
    enum row_slo_verdict verdict;
    bool is_doubtful;   /* all its rows are disturbed, or of few requests */
    bool doubts_little; /* one of the rows does not keep Little's law */
};

struct users_series {
    char name[REPORT_NAME_MAX]; /* of the server, and what else distinguishes it */
    const struct row *first;    /* one of its rows */
    struct slo slo;             /* ttft_s 0: the row names none that is known */
    struct users_level level[USERS_MAX_LEVELS]; /* [n], by number of users, or rate */
    size_t n;
    int carries;    /* the most users that meet the SLO; 0: not one of those tried */
    int misses;     /* the fewest that miss it; 0: none did */
    bool undecided; /* there are numbers of users between them that were undecided */
};

struct users {
    struct users_series *v; /* [n], by name; malloc'ed */
    size_t n, n_left_out;   /* series beyond USERS_MAX_SERIES */
    const struct row *rows; /* [n_rows], the caller's */
    size_t n_rows;
};

/* The closed loops among rows[n_rows], which must live as long; rows of other kinds are
 * passed over. Error: ST_NO_MEMORY. */
enum status users_find(struct users *u, const struct row *rows, size_t n_rows,
                       struct err *err);
/* The open loops; carries, misses and undecided mean nothing there. */
enum status users_find_open(struct users *u, const struct row *rows, size_t n_rows,
                            struct err *err);
void users_free(struct users *u);

/* The level with n_users, added behind the others if it is new; NULL: there is
 * no room for more. */
struct users_level *users_level_make(struct users_series *s, int n_users);

/* carries, misses and undecided of s from its levels. */
void users_find_ends(struct users_series *s);

/* Renames the row's server to "slm on zen5", so that those of several machines are
 * series of their own. */
void users_name_machine(struct row *row, const char *machine);

/* "yi-1.5-9b · prompts 512, answers 128 tokens", as far as it holds for all; there is
 * one series at least. */
#define USERS_DOT "  \xc2\xb7  " /* between two of them */
void users_describe(const struct users *u, char *buf, size_t cap);

/* Whether the row belongs to the series. */
bool users_is_of(const struct users_series *s, const struct row *row);

/* The 90th percentile of the time to the first visible token; in rows of versions
 * before that was measured, to the first token. */
double users_ttft_p90_s(const struct row *row);

/* Whether both were sent the same kind of requests, and judged by the same limits. */
bool users_same_requests(const struct row *a, const struct row *b);

/* Whether requests a second times their mean time is not the number in flight, beyond
 * what the ends of the window can do. A row with failed requests is not checked. */
bool users_doubts_little(const struct row *row);

/* ---- two servers (users_pairs.c) ------------------------------------------------- */

struct users_pair {
    int n_users;
    size_t n;      /* rounds in which both were measured; two tries are of one */
    double ratio;  /* tok/s of a over that of b: geometric mean over the rounds */
    double lo, hi; /* its 95 % interval, Student's t on the logarithm; NAN for n < 2 */
    bool is_doubtful; /* fewer than two rounds were undisturbed, so all are in */
};

/* With as many users; n is 0 where no round has both. */
void users_compare(struct users_pair *p, const struct users *u,
                   const struct users_series *a, const struct users_series *b,
                   int n_users);

/* The number of users to compare them at: the most that one of the two carries and both
 * were measured with, or else the most that both were; 0: none. */
int users_compare_at(const struct users_series *a, const struct users_series *b);

/* Whether a carries more than b, or as many with more tokens a second. */
bool users_is_better(const struct users_series *a, const struct users_series *b);

/* ---- a number of users (users_choice.c) ------------------------------------------ */

/* Judges the rows of bench load that were measured under other limits by those of slo,
 * from the times of their requests; of *n_rows rows those without such times are left
 * out. Rows of other kinds stay. */
void users_set_slo(struct row *rows, size_t *n_rows, const struct samples *requests,
                   const struct slo *slo);

/* The level with n_users, if it has a throughput, as one at which all requests failed
 * has not; or NULL. */
const struct users_level *users_level_at(const struct users_series *s, int n_users);

/* The level that shows that the server carries n_users: the first with as many or more
 * that meets the SLO, with none below it that misses; NULL: no such level. */
const struct users_level *users_level_for(const struct users_series *s, int n_users);

/* The best of the servers that can serve n_users; NULL: no server can. */
const struct users_series *users_choose(const struct users *u, int n_users);

/* Which that is, and what the others carry; or that none does and what to measure, as
 * the clause of an error. buf: 480 bytes or so; "" where u has no server. */
void users_append_choice(const struct users *u, int n_users, char *buf, size_t cap);

/* ---- in words (users_answer.c) --------------------------------------------------- */

/* "Serves 3 users who read the stream (p90 TTFT 4.1 s, 210 ms a token); the 4th waits."
 * Appended to buf. */
void users_append_capacity(const struct users_series *s, char *buf, size_t cap);

/* "p90 TTFT 4.1 s, 210 ms a token", of which `between` is ", ", appended to buf after
 * `before`; without what is not known: nothing, and false, where that is both. */
bool users_append_times(const struct users_level *level, const char *before,
                        const char *between, char *buf, size_t cap);

/* For several servers: "slm serves 3 users who read the stream, llama 1; at 2 users slm
 * has 1.40 x the tok/s of llama [1.31, 1.49], 3 rounds." For one: what it carries. ""
 * of none. */
void users_answer(const struct users *u, char *buf, size_t cap);

/* A line for each number of users that two of the servers were measured with. */
void users_print_pairs(FILE *f, const struct users *u);

struct users_wish {
    int n_users;       /* 0: what each server carries */
    const char *slo;   /* limits that the rows are judged by again; NULL: their own */
    const char *model; /* NULL: all */
};

/* The server to take, or what each carries: printed, or into *json where json is not
 * NULL. dir has the times of requests; rows are changed. Errors: ST_CHECK (no server
 * was measured, or none qualifies), those of slo_parse() and requests_read(). */
enum status users_recommend(FILE *f, json_t **json, const struct users_wish *wish,
                            const char *dir, struct row *rows, size_t n_rows,
                            struct err *err);

/* ---- charts (users_charts.c) ----------------------------------------------------- */

enum users_chart {
    USERS_LATENCY, /* tok/s against p90 TTFT and TPOT, with the SLO */
    USERS_LADDER,  /* users against tok/s of all and of each */
    USERS_TURNS,   /* users against the median TTFT of first turns, of later ones */
    USERS_OPEN,    /* the rate of open loops against p90 TTFT and goodput */
    USERS_N_CHARTS
};

/* Draws these, as users_latency and so on, and, where its directory has the times of
 * requests, users_ttft (their distribution), each as .csv, .gp, .svg and .png in dir,
 * and removes those without a figure. again: the command that redraws them; NULL:
 * `bench plot DIR`. *any is set where one was drawn. Errors: those of requests_read()
 * and chart_files_draw(); ST_NO_MEMORY. */
enum status users_charts(const char *dir, const char *again,
                         const struct result_part *part, bool *any, struct err *err);

/* One of them as a plot, of open loops for USERS_OPEN, else of closed ones: both parts,
 * one above the other, or (part 0 or 1) one of them. NULL: no memory. */
struct plot *users_plot(const struct users *u, enum users_chart chart, int part,
                        const char *subtitle);
/* Whether it has a figure. */
bool users_has_plot(const struct users *u, enum users_chart chart);

/* Whether none of the files of these charts in dir is one of the inputs. Errors:
 * chart_files_check()'s. */
enum status users_charts_check(const struct path_list *inputs, const char *dir,
                               struct err *err);

#endif
