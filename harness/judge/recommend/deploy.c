/* SPDX-License-Identifier: MIT
 *
 * deploy.c - settings to deploy with, from the rows of the program that is deployed
 */
#include "harness/judge/recommend/deploy.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/format.h"
#include "harness/judge/recommend/recommend_choice.h"
#include "harness/rows/point/point_row.h"
#include "harness/rows/report_rows.h"

#define MIB (UINT64_C(1) << 20)

#define USUAL_CTX     4096        /* where only an empty context was measured */
#define SPARE_BYTES   (256 * MIB) /* of a server in addition to what was measured */
#define CARRIED_BYTES (512 * MIB) /* where another program was measured */
#define MAX_CACHE_MIB 8192
#define MAX_BYTES     1e15       /* a table may be anybody's */
#define LIMIT_STEP    (64 * MIB) /* a limit that is proposed is a multiple of it */
#define LIMIT_MORE    1.1        /* and this multiple of what is needed */

static const char *target_name(int target)
{
    static const char *const names[DEPLOY_N] = {"slmbench", "llama.cpp", "ollama",
                                                "docker", "k8s"};

    return names[target];
}

const struct choices choices_deploy = {"targets are", target_name, DEPLOY_N};

/* ---- whose rows ------------------------------------------------------------------ */

static size_t count_of(const struct row *rows, size_t n_rows, const char *engine)
{
    size_t n = 0;

    for (size_t i = 0; i < n_rows; i++)
        n += !strcmp(rows[i].engine, engine);
    return n;
}

/* Containers run llama.cpp, and so does Ollama inside. */
static const char *choose_source(enum deploy_target target, const struct row *rows,
                                 size_t n_rows)
{
    if (target == DEPLOY_OLLAMA && count_of(rows, n_rows, "ollama"))
        return "ollama";
    if (target != DEPLOY_SLMBENCH && count_of(rows, n_rows, "llama.cpp"))
        return "llama.cpp";
    return "";
}

static bool is_carried(enum deploy_target target, const char *source, bool named)
{
    if (target == DEPLOY_SLMBENCH)
        return *source;
    if (target == DEPLOY_OLLAMA)
        return strcmp(source, "ollama") != 0;
    return !*source || (!named && strcmp(source, "llama.cpp") != 0);
}

/* ---- where the model is ---------------------------------------------------------- */

static bool is_gguf(const char *path)
{
    const size_t n = strlen(path);
    struct stat sb;

    return n > 5 && !strcmp(path + n - 5, ".gguf") &&
           (stat(path, &sb) || !S_ISDIR(sb.st_mode));
}

/* The row as it was measured: that of a recommendation has no command where none can be
 * made, as of another program. */
static const struct row *measured_row(const struct row *best, const struct row *rows,
                                      size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++)
        if (!strcmp(rows[i].point, best->point) && rows[i].command[0])
            return &rows[i];
    return best;
}

static const char *last_part(const char *name)
{
    const char *const slash = strrchr(name, '/');

    return slash && slash[1] ? slash + 1 : name;
}

/* Users want trained weights, and a row may be of a shape. Other programs take a file,
 * and it may be of what was quantised while it was loaded. */
static enum status find_model(struct deploy *d, const struct row *rows, size_t n_rows,
                              struct err *err)
{
    const struct row *r = measured_row(&d->rec.best, rows, n_rows);
    char word[sizeof d->model], *path;

    if (!point_row_model(r, word, sizeof word))
        return err_set(err, ST_INPUT,
                       "the row of %.60s does not say where its model is; name its "
                       "file in a sweep with -m",
                       r->model);
    path = realpath(word, NULL);
    if (path && strlen(path) < sizeof word)
        snprintf(word, sizeof word, "%s", path);
    free(path);
    snprintf(d->model, sizeof d->model, "%s", word);
    if (is_gguf(word) || (d->target == DEPLOY_SLMBENCH && !point_row_is_synthetic(r)))
        return ST_OK;
    snprintf(d->model, sizeof d->model, "%s-%s.gguf",
             r->model_label[0] ? last_part(r->model_label) : r->model, r->quant);
    if (point_row_is_synthetic(r))
        snprintf(d->note, sizeof d->note,
                 "measured with random weights of this shape: put the %s file of your "
                 "model in the place of %.140s",
                 r->quant, format_path(d->model).text);
    else
        snprintf(d->note, sizeof d->note,
                 "slmbench quantised it while loading; for the file: bench quantize "
                 "MODEL %.140s %s",
                 format_path(d->model).text, r->quant);
    return ST_OK;
}

/* ---- sizes ----------------------------------------------------------------------- */

/* CPU numbers of a table, which may be anybody's. */
static void take_cpus(struct deploy *d)
{
    const char *cpus = d->rec.best.cpus;

    if (*cpus && !cpus[strspn(cpus, "0123456789,-")])
        snprintf(d->cpus, sizeof d->cpus, "%s", cpus);
}

static int count_from(int64_t n, int64_t otherwise)
{
    return (int)(n > 0 && n <= INT_MAX ? n : otherwise > 0 ? otherwise : 1);
}

static void take_ctx(struct deploy *d, const struct recommend_params *params)
{
    const struct row *r = &d->rec.best;
    const int64_t most = d->rec.memory.max_ctx;
    int64_t ctx = params->ctx > 0 ? params->ctx
                  : r->ctx > 0    ? row_context(r)
                                  : USUAL_CTX;

    if (r->model_ctx > 0 && r->model_ctx < ctx && !(r->kv_window > 0))
        ctx = r->model_ctx;
    if (most > 0 && ctx > most)
        ctx = most;
    d->ctx = count_from(ctx, USUAL_CTX);
}

/* What is needed with that context, of each sequence; 0: not known. */
static uint64_t needed_bytes(const struct deploy *d)
{
    const struct row *r = &d->rec.best;
    const int64_t needed = row_needed_bytes(r);
    const int64_t more = d->ctx - (r->ctx > 0 ? r->ctx : 0);
    const double of_one = r->kv_bytes_per_token > 0 ? (double)r->kv_bytes_per_token : 0;
    const double grown = more > 0 ? of_one * (double)more : 0;
    const double cache =
        r->kv_bytes > 0 ? (double)r->kv_bytes + grown : of_one * d->ctx;
    const double all = (double)needed + grown + cache * (d->n_sequences - 1);

    return needed <= 0 || all > MAX_BYTES ? 0 : (uint64_t)all;
}

static void take_memory(struct deploy *d, const struct recommend_params *params)
{
    const struct row *r = &d->rec.best;
    const uint64_t spare = d->carried ? CARRIED_BYTES : SPARE_BYTES;
    const uint64_t needed = needed_bytes(d);
    uint64_t left, limit;

    d->needed_bytes = needed;

    limit = params->mem_limit        ? params->mem_limit
            : r->mem_limit_bytes > 0 ? (uint64_t)r->mem_limit_bytes
                                     : 0;
    if (!limit && needed)
        limit = ((uint64_t)((double)needed * LIMIT_MORE) + spare + LIMIT_STEP - 1) /
                LIMIT_STEP * LIMIT_STEP;
    d->mem_limit = limit;
    left = needed && limit > needed + spare ? limit - needed - spare : 0;
    d->cache_mib =
        (int)(left / 2 / MIB < MAX_CACHE_MIB ? left / 2 / MIB : MAX_CACHE_MIB);
}

/* A server whose sequences share one KV cache holds up the latest of them where it is
 * full; others need room for all. */
static enum status check_memory(struct deploy *d, struct err *err)
{
    if (d->n_sequences == 1 || !d->needed_bytes || d->needed_bytes <= d->mem_limit)
        return ST_OK;
    if (d->target != DEPLOY_SLMBENCH)
        return err_set(err, ST_CHECK,
                       "%d sequences of %d positions need %s, more than the limit of "
                       "%s; choose fewer --sequences or a smaller --ctx",
                       d->n_sequences, d->ctx, bytes_text(d->needed_bytes).text,
                       bytes_text(d->mem_limit).text);
    d->is_short = true;
    return ST_OK;
}

/* ---- several sequences ----------------------------------------------------------- */

bool recommend_same_but_sequences(const struct row *a, const struct row *b)
{
    for (const struct field *f = row_fields(NULL); f->name; f++)
        if ((f->is & (FIELD_MODEL | FIELD_SETTING)) &&
            strcmp(f->name, "n_sequences") != 0 && row_compare_cell(a, b, f))
            return false;
    return true;
}

static enum status take_together(struct deploy *d, const struct row *rows,
                                 size_t n_rows, struct err *err)
{
    struct report_rows picked;
    enum status st;

    if (d->n_sequences == 1)
        return ST_OK;
    st = report_rows_pick(&picked, rows, n_rows, err);
    for (size_t i = 0; st == ST_OK && i < picked.n; i++) {
        const struct row *r = picked.v[i];

        if (r->n_sequences != d->n_sequences || row_trust(r) < ROW_DISTURBED ||
            !recommend_same_but_sequences(r, &d->rec.best))
            continue;
        d->together_tok_per_s = r->tok_per_s;
        d->together_is_lower_bound = row_trust(r) == ROW_DISTURBED;
    }
    if (st == ST_OK)
        report_rows_free(&picked);
    return st;
}

static void take_settings(struct deploy *d, const struct recommend_params *params)
{
    const struct row *r = &d->rec.best;

    d->n_threads = count_from(r->n_threads, 1);
    d->n_threads_batch = count_from(d->rec.prompt.n_threads, d->n_threads);
    d->n_batch = count_from(r->n_batch, 512);
    take_cpus(d);
    take_ctx(d, params);
    take_memory(d, params);
}

/* ---- all ------------------------------------------------------------------------- */

static enum status recommend_one(struct deploy *d, const struct row *rows, size_t n,
                                 const struct recommend_params *params, struct err *err)
{
    struct recommend_answers answers = {NULL, 0};
    enum status st = recommend_each(&answers, rows, n, params, err);

    if (st == ST_OK && answers.n > 1)
        st =
            err_set(err, ST_USAGE,
                    "%zu models were measured, %.60s among them; name one with --model",
                    answers.n, answers.v[0].model);
    else if (st == ST_OK && answers.v[0].none.code)
        st = err_set(err, answers.v[0].none.code, "%s", answers.v[0].none.msg);
    if (st == ST_OK)
        d->rec = answers.v[0].rec;
    recommend_answers_free(&answers);
    return st;
}

enum status deploy_make(struct deploy *d, const struct deploy_wish *wish,
                        const struct row *rows, size_t n_rows,
                        const struct recommend_params *params, struct err *err)
{
    const char *engine = wish->engine;
    const char *wanted = engine ? strcmp(engine, "slmbench") ? engine : ""
                                : choose_source(wish->target, rows, n_rows);
    struct row *own = malloc((n_rows + 1) * sizeof *own);
    size_t n = 0;
    enum status st;

    if (!own)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n_rows);
    memset(d, 0, sizeof *d);
    d->target = wish->target;
    d->n_sequences = wish->n_sequences;
    snprintf(d->source, sizeof d->source, "%s", wanted);
    d->carried = is_carried(wish->target, wanted, engine != NULL);
    for (size_t i = 0; i < n_rows; i++)
        if (!strcmp(rows[i].engine, wanted))
            own[n++] = rows[i];
    st = n ? recommend_one(d, own, n, params, err)
           : err_set(err, ST_USAGE,
                     "no row of %.60s is there; --engine names one of "
                     "`bench sweep --engine`, or slmbench",
                     *wanted ? wanted : "slmbench");
    if (st == ST_OK)
        st = find_model(d, own, n, err);
    if (st == ST_OK)
        st = take_together(d, own, n, err);
    free(own);
    if (st != ST_OK)
        return st;
    take_settings(d, params);
    return check_memory(d, err);
}
