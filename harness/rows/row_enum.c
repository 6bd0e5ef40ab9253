/* SPDX-License-Identifier: MIT
 *
 * row_enum.c - names of the values of columns, and texts that have no value
 */
#include "harness/rows/row_enum.h"

#include <pthread.h>
#include <string.h>

#include "harness/base/format.h"

#define LEN(table) ((int)(sizeof(table) / sizeof *(table)))

#define CHOICES(symbol, noun, ...)                             \
    static const char *const symbol##_names[] = {__VA_ARGS__}; \
    static const char *symbol##_name(int value)                \
    {                                                          \
        return symbol##_names[value];                          \
    }                                                          \
    const struct choices choices_##symbol = {noun, symbol##_name, LEN(symbol##_names)};

CHOICES(row_kind,
        "kinds of rows are", [POINT_DECODE] = "decode", [POINT_PREFILL] = "prefill",
        [POINT_SPECULATE] = "speculate", [ROW_QUALITY] = "quality", [ROW_LOAD] = "load")
CHOICES(load_mode,
        "loops are", [LOAD_MODE_CLOSED] = "closed", [LOAD_MODE_OPEN] = "open")
CHOICES(slo_verdict, "verdicts are", [SLO_MISSES] = "misses",
        [SLO_UNDECIDED] = "undecided", [SLO_MEETS] = "meets")
CHOICES(row_status,
        "statuses are", [ROW_STATUS_OK] = "ok", [ROW_STATUS_PARTIAL] = "partial",
        [ROW_STATUS_NO_FIT] = "no_fit", [ROW_STATUS_OOM] = "oom",
        [ROW_STATUS_ERROR] = "error", [ROW_STATUS_INTERRUPTED] = "interrupted")
CHOICES(
    limiter, "limits are", [LIMITER_MEMORY] = "memory", [LIMITER_COMPUTE] = "compute",
    [LIMITER_PAGING] = "paging", [LIMITER_QUOTA] = "quota", [LIMITER_NOISE] = "noise",
    [LIMITER_LATENCY] = "latency", [LIMITER_SYNC] = "synchronisation",
    [LIMITER_DISK] = "disk", [LIMITER_CACHE] = "cache")
CHOICES(spec_mode,
        "sources of drafts are", [SPEC_LOOKUP] = "lookup", [SPEC_MTP] = "mtp")
CHOICES(spec_answer,
        "answers are", [SPEC_ANSWER_GIVEN] = "given", [SPEC_ANSWER_OWN] = "own")

static const char *row_placement_name(int value)
{
    return value == ROW_PLACEMENT_LIST ? "list" : choices_placement.name(value);
}

const struct choices choices_row_placement = {"placements are", row_placement_name,
                                              ROW_PLACEMENT_LIST + 1};

static const char *ctx_fill_name(int value)
{
    return setting_row(SETTING_ctx_fill)->words[value];
}

const struct choices choices_ctx_fill = {"depths are", ctx_fill_name,
                                         CTX_FILL_PREFILL + 1};

/* ---- unknown texts --------------------------------------------------------------- */

#define FIRST_UNKNOWN 1000 /* more than any table has */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char unknown[ROW_ENUM_MAX_UNKNOWN + 1][ROW_ENUM_CAP] = {[ROW_ENUM_MAX_UNKNOWN] =
                                                                   "unknown"};
static int n_unknown;

static int unknown_value(const char *text)
{
    char own[ROW_ENUM_CAP];
    int i = 0;

    text_harmless(own, sizeof own, text);
    pthread_mutex_lock(&lock);
    while (i < n_unknown && strcmp(unknown[i], own) != 0)
        i++;
    if (i == n_unknown && n_unknown < ROW_ENUM_MAX_UNKNOWN)
        memcpy(unknown[n_unknown++], own, sizeof own);
    pthread_mutex_unlock(&lock);
    return FIRST_UNKNOWN + i;
}

int row_enum_value(const struct choices *c, const char *text)
{
    const int known = choice_find(c, text);

    return !*text ? FIELD_NO_ENUM : known >= 0 ? known : unknown_value(text);
}

/* A value past FIRST_UNKNOWN was handed out after its text was written, which never
 * changes again: no lock is needed. */
const char *row_enum_text(const struct choices *c, int value)
{
    if (value >= 0 && value < c->n)
        return c->name(value);
    return value >= FIRST_UNKNOWN && value <= FIRST_UNKNOWN + ROW_ENUM_MAX_UNKNOWN
               ? unknown[value - FIRST_UNKNOWN]
               : "";
}
