/* SPDX-License-Identifier: MIT
 *
 * measured_samples.c - the loop that times, and the work around a sample
 *
 * A requested slowdown is added after each sample: all threads of the model spin for
 * the time by which that loss of speed lengthens the step's usual sample. If only the
 * first thread did, the others would go to sleep, and waking them would slow down the
 * next sample further.
 */

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/base/thread_pool.h"
#include "harness/stats/stats.h"
#include "harness/measure/worker/measured.h"

/* ---- passes ---------------------------------------------------------------------- */

/* Which token it is does not change the cost, so they are drawn. */
static void draw(struct measured *m, int n)
{
    const uint64_t n_vocab = (uint64_t)slm_info(m->m)->n_vocab;

    for (int i = 0; i < n; i++)
        m->tokens[i] = (int32_t)random_below(&m->random, n_vocab);
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* The tokens of a prompt's first pass. */
static void draw_first(struct measured *m, int n)
{
    struct slm_tuning tuning;

    slm_get_tuning(m->m, &tuning);
    m->batch = tuning.n_batch ? tuning.n_batch : slm_info(m->m)->n_batch;
    draw(m, min(n, m->batch));
}

/* n tokens pass by pass, after draw_first(). */
static enum status eval(struct measured *m, int n, struct err *err)
{
    enum status st = ST_OK;

    for (int i = 0; i < n && st == ST_OK; i += m->batch) {
        const int now = min(n - i, m->batch);
        const bool is_last = i + now == n;

        if (i) {
            if (m->alive)
                m->alive(m->arg);
            draw(m, now);
        }
        st = slm_eval(m->m, m->tokens, (size_t)now,
                      is_last ? SLM_LOGITS_LAST : SLM_LOGITS_NONE, err);
    }
    return st;
}

/* ---- sequences ------------------------------------------------------------------- */

/* That are decoded; with chunks of a prompt another one is the last. */
static int n_sequences(const struct measured *m)
{
    return slm_info(m->m)->n_sequences - (m->n_chunk > 0);
}

static void go_back_to(struct measured *m, int depth)
{
    for (int seq = 0; seq < n_sequences(m); seq++)
        slm_seq_truncate(m->m, seq, depth);
}

/* Tokens of a step. */
static void draw_step(struct measured *m)
{
    draw(m, n_sequences(m) + m->n_chunk);
}

/* The next chunk of the prompt; only the last one has logits. */
static struct slm_part next_chunk(struct measured *m)
{
    const int seq = n_sequences(m);

    if (slm_seq_n_past(m->m, seq) == m->n_chunk_prompt)
        slm_seq_truncate(m->m, seq, 0);
    const bool is_last = slm_seq_n_past(m->m, seq) + m->n_chunk == m->n_chunk_prompt;

    return (struct slm_part){seq, m->tokens + seq, m->n_chunk,
                             is_last ? SLM_LOGITS_LAST : SLM_LOGITS_NONE};
}

/* A token of each sequence, and a chunk unless it is to be plain. */
static enum status decode(struct measured *m, bool plain, struct err *err)
{
    struct slm_part parts[SLM_MAX_SEQUENCES];
    const int n = n_sequences(m), n_parts = n + (!plain && m->n_chunk > 0);

    if (n_parts == 1 && slm_info(m->m)->n_sequences == 1)
        return slm_eval(m->m, m->tokens, 1, SLM_LOGITS_LAST, err);
    for (int seq = 0; seq < n; seq++)
        parts[seq] = (struct slm_part){seq, m->tokens + seq, 1, SLM_LOGITS_LAST};
    if (n_parts > n)
        parts[n] = next_chunk(m);
    return slm_batch(m->m, parts, n_parts, err);
}

/* A step without the chunk, timed. */
static enum status decode_plain(struct measured *m, struct err *err)
{
    const int depth = slm_n_past(m->m);
    const uint64_t begin = clock_ns();
    const enum status st = decode(m, true, err);

    m->plain_ns = clock_ns() - begin;
    go_back_to(m, depth);
    return st;
}

static enum status fill_computed(struct measured *m, int seq, int n, struct err *err)
{
    enum status st = ST_OK;

    for (int i = 0; i < n && st == ST_OK; i += m->batch) {
        struct slm_part part = {.seq = seq, .tokens = m->tokens};

        draw_first(m, n - i);
        part.n = min(n - i, m->batch);
        st = slm_batch(m->m, &part, 1, err);
        if (st == ST_OK && m->progress &&
            m->progress(m->arg, (uint64_t)min(n, i + m->batch), (uint64_t)n))
            st = err_set(err, ST_INTERRUPTED, "interrupted");
    }
    return st;
}

static enum status fill_one(struct measured *m, int seq, int depth, bool computed,
                            uint64_t seed, struct err *err)
{
    const int n = depth - slm_seq_n_past(m->m, seq);

    if (n <= 0)
        return ST_OK;
    return computed ? fill_computed(m, seq, n, err)
                    : slm_seq_fill_synthetic(m->m, seq, depth, seed, err);
}

enum status measured_fill(struct measured *m, int depth, int shared, bool computed,
                          uint64_t seed, struct err *err)
{
    enum status st = ST_OK;

    if (shared > 0)
        st = fill_one(m, 0, min(shared, depth), computed, seed, err);
    for (int seq = 1; shared > 0 && !st && seq < n_sequences(m); seq++)
        if (slm_seq_n_past(m->m, seq) == 0)
            slm_seq_fork(m->m, 0, seq);
    for (int seq = 0; !st && seq < n_sequences(m); seq++)
        st = fill_one(m, seq, depth, computed, seed + (uint64_t)seq, err);
    return st;
}

enum status measured_wake(struct measured *m, uint64_t *ns, struct err *err)
{
    const int depth = slm_n_past(m->m);
    enum status st;
    uint64_t begin;

    draw_step(m);
    begin = clock_ns();
    st = decode(m, false, err);
    go_back_to(m, depth);
    if (ns)
        *ns = clock_ns() - begin;
    return st;
}

/* ---- before a sample ------------------------------------------------------------- */

/* Back at the step's depth. */
static enum status go_back(struct measured *m, const struct measured_step *s,
                           struct err *err)
{
    if (s->again)
        m->random = m->seed;
    if (slm_n_past(m->m) > s->depth)
        go_back_to(m, s->depth);
    return measured_fill(m, s->depth, 0, false, m->seed, err);
}

static enum status start(struct measured *m, const struct measured_step *s,
                         struct err *err)
{
    const enum status st = go_back(m, s, err);

    if (st || !s->wakes)
        return st;
    draw_step(m);
    return decode(m, false, err);
}

/* Long samples of a decode continue where the last ones ended; a prompt always starts
 * again. */
static bool goes_on(const struct measured *m, const struct measured_step *s)
{
    return s->wakes && s->last_ns >= MEASURED_LONG_NS &&
           (s->kind == MEASURED_PREFILL || m->last == s);
}

static enum status prepare(struct measured *m, const struct measured_step *s,
                           struct err *err)
{
    enum status st = ST_OK;

    if (s->kind == MEASURED_PREFILL) {
        st = go_back(m, s, err);
        draw_first(m, s->n_tokens);
    } else if (s->kind == MEASURED_DECODE) {
        if (slm_n_past(m->m) - s->depth > s->span)
            st = start(m, s, err);
        draw_step(m);
        if (st == ST_OK && m->takes_plain)
            st = decode_plain(m, err);
    }
    return st;
}

/* ---- a sample -------------------------------------------------------------------- */

/* The time of a sample without a slowdown: the lower quartile of the last ones, as a
 * gate takes it. */
static double usual_ns(const struct measured_step *s)
{
    const size_t n =
        s->n_usual < MEASURED_REMEMBERED ? s->n_usual : MEASURED_REMEMBERED;
    double sorted[MEASURED_REMEMBERED];

    for (size_t i = 0; i < n; i++) {
        size_t at = i;

        for (; at > 0 && sorted[at - 1] > s->usual[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = s->usual[i];
    }
    return stats_quantile_sorted(sorted, n, 0.25);
}

/* So long the other threads stay awake by themselves, and a run of theirs would cost a
 * notable part of it. */
#define SHORT_NS 20000

static void spin_until(void *arg, int thread, int n_threads)
{
    const uint64_t *end_ns = arg;

    (void)thread;
    (void)n_threads;
    while (clock_ns() < *end_ns)
        ;
}

/* The time of a sample that began at begin, with the slowdown. */
static uint64_t end_sample(const struct measured *m, struct measured_step *s,
                           uint64_t begin)
{
    uint64_t now = clock_ns();

    if (m->slower > 0) {
        uint64_t end;

        s->usual[s->n_usual++ % MEASURED_REMEMBERED] = (double)(now - begin);
        end = now + (uint64_t)(usual_ns(s) * m->slower / (1 - m->slower));
        if (m->m && end - now > SHORT_NS)
            thread_pool_run(slm_thread_pool(m->m), spin_until, &end);
        else
            spin_until(&end, 0, 1);
        now = clock_ns();
    }
    return now > begin ? now - begin : 1;
}

static enum status take(struct measured *m, struct measured_step *s, struct err *err)
{
    uint64_t own_ns = 0;
    const uint64_t begin = clock_ns();
    enum status st;

    switch (s->kind) {
    case MEASURED_DECODE:
        st = decode(m, false, err);
        break;
    case MEASURED_PREFILL:
        st = eval(m, s->n_tokens, err);
        break;
    default:
        st = s->call(s->call_arg, &own_ns, err);
    }
    s->last_ns = end_sample(m, s, begin);
    if (own_ns)
        s->last_ns = own_ns;
    return st;
}

enum status measured_samples(struct measured *m, struct measured_step *s, size_t n,
                             measured_sample_fn *fn, void *arg, struct err *err)
{
    const bool is_model = s->kind != MEASURED_CALL;
    enum status st = ST_OK;
    bool more = true;

    if (is_model && !goes_on(m, s))
        st = start(m, s, err);
    if (is_model)
        m->last = s;
    for (size_t i = 0; i < n && more && st == ST_OK; i++) {
        st = prepare(m, s, err);
        if (st == ST_OK)
            st = take(m, s, err);
        if (is_model && !s->wakes)
            go_back_to(m, s->depth);
        if (st == ST_OK)
            more = fn(arg, s->last_ns);
    }
    return st;
}

static bool keep(void *arg, uint64_t ns)
{
    *(uint64_t *)arg = ns;
    return true;
}

enum status measured_sample(struct measured *m, struct measured_step *s, uint64_t *ns,
                            struct err *err)
{
    return measured_samples(m, s, 1, keep, ns, err);
}
