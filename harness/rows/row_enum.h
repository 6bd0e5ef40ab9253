/* SPDX-License-Identifier: MIT
 *
 * row_enum.h - columns whose cells are one of a closed set of texts
 *
 * Model of the world: such a column is an int within the program: a value of the
 * column's struct choices, or FIELD_NO_ENUM for an empty cell. It is a text only in
 * CSV, JSON and databases. A text that this program does not know, written by a newer
 * version or by another program, becomes a value past those of every table: it equals
 * the same text only, no named value, and is written as it was read, but for what would
 * control a terminal. A reader never refuses it.
 *
 * Threading: all functions may be called from any thread.
 */
#ifndef SLM_HARNESS_ROWS_ROW_ENUM_H
#define SLM_HARNESS_ROWS_ROW_ENUM_H

#include "harness/base/choice.h"
#include "harness/rows/settings/setting.h"

#define FIELD_NO_ENUM (-1)

/* Longest text of a cell, the terminating zero included; unknown texts are made
 * harmless (text_harmless()) and cut there. */
#define ROW_ENUM_CAP 16

/* Different unknown texts that are kept; all further ones become "unknown". */
#define ROW_ENUM_MAX_UNKNOWN 64

/* Kinds of rows: enum point_kind, those of quality.csv, and those of bench load. */
enum { ROW_QUALITY = POINT_SPECULATE + 1, ROW_LOAD };

/* Placements of rows: enum placement, and CPUs that the user listed. */
enum { ROW_PLACEMENT_LIST = PLACEMENT_NONE + 1 };

/* How a point's depth was reached: values of the setting ctx_fill. */
enum row_ctx_fill { CTX_FILL_SYNTHETIC, CTX_FILL_PREFILL };

/* How a point ended. */
enum row_status {
    ROW_STATUS_OK,
    ROW_STATUS_PARTIAL, /* time ended it after too few samples */
    ROW_STATUS_NO_FIT,
    ROW_STATUS_OOM,
    ROW_STATUS_ERROR,
    ROW_STATUS_INTERRUPTED,
};

/* What limited its speed. */
enum row_limiter {
    LIMITER_MEMORY,
    LIMITER_COMPUTE,
    LIMITER_PAGING,
    LIMITER_QUOTA,
    LIMITER_NOISE,
    LIMITER_LATENCY,
    LIMITER_SYNC,
    LIMITER_DISK,  /* weights are streamed from it */
    LIMITER_CACHE, /* bandwidth of the last-level cache, which holds the weights */
};

/* Source of drafts, and of the answer that a speculate point decodes. */
enum row_spec_mode { SPEC_LOOKUP, SPEC_MTP };
enum row_spec_answer { SPEC_ANSWER_GIVEN, SPEC_ANSWER_OWN };

/* How requests came to a server, and whether their times met the limits. */
enum row_load_mode { LOAD_MODE_CLOSED, LOAD_MODE_OPEN };
enum row_slo_verdict { SLO_MISSES, SLO_UNDECIDED, SLO_MEETS };

extern const struct choices choices_load_mode, choices_slo_verdict;
extern const struct choices choices_row_kind, choices_row_placement, choices_ctx_fill,
    choices_row_status, choices_limiter, choices_spec_mode, choices_spec_answer;

/* The value of a cell's text; FIELD_NO_ENUM for "". */
int row_enum_value(const struct choices *c, const char *text);

/* The text of a value; "" for FIELD_NO_ENUM. */
const char *row_enum_text(const struct choices *c, int value);

#endif
