/* SPDX-License-Identifier: MIT
 *
 * forward_prefetch.c - measure how this machine reads weights in panels fastest
 *
 * First ways that differ much are compared: the number of interleaved panels, hints, no
 * prefetch. Then the fastest of them and what is near the fastest one: other distances
 * and hints with its panels. At last the fastest of those and the way in force alone,
 * in many rounds.
 *
 * The panels of each weight format are read in the order of a pass, in the chunks that
 * decoding hands out, cyclically: a run of one candidate continues where the previous
 * one ended. Where a cache may still hold what the walk before this one read, it is
 * taken out of every cache first, so that a run reads from memory, as decoding does
 * with a model that no cache holds; a model that a cache holds is not measured.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/forward/forward_impl.h"
#include "engine/forward/prefetch_rule.h"
#include "kernels/probe/evict.h"

#define NOTABLE_SHARE 0.1      /* of the bytes that a token reads */
#define RUN_NS        500000.0 /* a run, about: waking the threads is a small part */
#define FIRST_BYTES   ((uint64_t)4 << 20) /* of the run that measures the speed */
#define WANTED_ROUNDS 12                  /* of a stage */
#define MAX_PASSES    2                   /* over a format's panels, in WANTED_ROUNDS */
#define MAX_PIECES    65536               /* of a format */
#define MAX_PIECE     ((size_t)256)       /* rows */
#define UNKNOWN_CACHE ((uint64_t)32 << 20)
#define FAR_BEYOND    2 /* caches: a walk of as many bytes finds none of its own */

static const struct kern_prefetch far_apart[] = {
    {8192, KERN_PREFETCH_T0, 1},  {8192, KERN_PREFETCH_NTA, 1},
    {8192, KERN_PREFETCH_T1, 1},  {8192, KERN_PREFETCH_2T0, 1},
    {4096, KERN_PREFETCH_T0, 4},  {4096, KERN_PREFETCH_NTA, 4},
    {4096, KERN_PREFETCH_2T0, 4}, {4096, KERN_PREFETCH_T0, 2},
    {0, KERN_PREFETCH_T0, 4},     {0, KERN_PREFETCH_T0, 1},
};

enum { FAR_APART, NEAR_THE_FASTEST, LAST_TWO, N_STAGES };

#define N_TAKEN_ON  3 /* of the ways far apart */
#define N_FAR_APART (sizeof far_apart / sizeof far_apart[0])
_Static_assert(N_FAR_APART < PREFETCH_MAX_CANDIDATES,
               "the rule takes these and the one in force");

/* What decoding hands out at once, or a part of it: a run is short, and must not end
 * with threads that wait for one with a long chunk. */
struct piece {
    const void *panels;
    uint32_t n_panels, k;
};

/* One format's walk. */
struct walk {
    enum kern_format fmt;
    struct piece *pieces;
    size_t n_pieces, at;
    uint64_t bytes, run_bytes;
    bool is_held; /* by a cache, in part, when the walk comes round */
    struct kern_prefetch tried[PREFETCH_MAX_CANDIDATES]; /* [0]: in force */
    int n_tried;
    size_t n_rounds;
    double time[PREFETCH_MAX_ROUNDS][PREFETCH_MAX_CANDIDATES]; /* ns per byte */
};

struct measuring {
    struct forward *f;
    struct walk walks[KERN_N_FMT];
    int n_walks;
    struct mem scratch;
    const void *x; /* a column, long enough in every layout, of zeros */
    float *y;      /* [threads][longest piece] */
    size_t y_stride;
    uint64_t random;

    /* the current run */
    const struct walk *walk;
    struct kern_prefetch prefetch;
    size_t n_run; /* pieces from walk->at on */
};

/* ---- the matrices of a pass ------------------------------------------------------ */

typedef void visit_fn(void *arg, const struct forward *f, const struct matrix *w);

static void visit_matrices(const struct forward *f, visit_fn *visit, void *arg)
{
    for (int i = 0; i < f->m->n_layers; i++) {
        const struct layer *y = &f->m->layers[i];
        const struct matrix *const all[] = {
            &y->wq,       &y->wk,          &y->wv,        &y->rec.in,
            &y->rec.gate, &y->rec.beta,    &y->wo,        &y->rec.alpha,
            &y->rec.out,  &y->router,      &y->gate,      &y->up,
            &y->down,     &y->shared_gate, &y->shared_up, &y->shared_down,
        };

        for (size_t j = 0; j < sizeof all / sizeof all[0]; j++)
            if (all[j]->n_rows)
                visit(arg, f, all[j]);
    }
    if (f->m->output.n_rows)
        visit(arg, f, &f->m->output);
}

struct shares {
    double bytes[KERN_N_FMT]; /* of panels, read for a token */
};

static void add_share(void *arg, const struct forward *f, const struct matrix *w)
{
    struct shares *s = arg;
    const double used = w->n_slices > 1 ? f->m->n_experts_used : 1;

    s->bytes[w->fmt] += used * (double)w->panel_rows * (double)w->row_bytes;
}

static void measure_tiles_of(void *arg, const struct forward *f, const struct matrix *w)
{
    size_t(*from)[KERN_N_FMT] = arg;

    for (int sums = 0; sums <= (int)f->prefill_sums; sums++)
        from[sums][w->fmt] = tile_columns(w->fmt, (enum slm_sums)sums, f->isa_mask);
}

void fwd_measure_tiles(struct forward *f)
{
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        f->tiles_from[SLM_SUMS_EXACT][fmt] = f->tiles_from[SLM_SUMS_INT8][fmt] =
            TILES_NEVER;
    visit_matrices(f, measure_tiles_of, f->tiles_from);
}

bool forward_prefetches(const struct forward *f, enum kern_format fmt)
{
    struct shares s = {{0}};

    visit_matrices(f, add_share, &s);
    return s.bytes[fmt] > 0 &&
           s.bytes[fmt] >= NOTABLE_SHARE * (double)f->m->weight_token_bytes;
}

/* ---- a format's walk ------------------------------------------------------------- */

/* The panels among rows begin..end-1 of slice s. pieces NULL: only count them. */
static void add_piece(struct walk *to, const struct matrix *w, size_t s, size_t begin,
                      size_t end)
{
    if (end > w->panel_rows)
        end = w->panel_rows;
    if (begin >= end || to->n_pieces >= MAX_PIECES)
        return;
    if (to->pieces) {
        to->pieces[to->n_pieces] =
            (struct piece){matrix_row(w, s, begin),
                           (uint32_t)((end - begin) / KERN_PANEL_ROWS), (uint32_t)w->k};
        to->bytes += (end - begin) * w->row_bytes;
    }
    to->n_pieces++;
}

/* The matrix's rows, or those of as many slices as a token uses, are one range. */
static void add_pieces(void *arg, const struct forward *f, const struct matrix *w)
{
    struct walk *to = arg;
    const size_t each = pad_rows(w->n_rows);
    const size_t used = w->n_slices > 1 ? (size_t)f->m->n_experts_used : 1;

    if (w->fmt != to->fmt || !w->panel_rows || w->places)
        return; /* cached experts may not be in memory */
    for (size_t s = 0; s < w->n_slices; s += used) {
        const size_t n = w->n_slices - s < used ? w->n_slices - s : used;
        struct row_chunks chunks =
            row_chunks_of(n * each, thread_pool_size(f->pool), f->tuning.chunks_decode,
                          KERN_PANEL_ROWS);

        for (size_t i = 0, at, end; row_chunks_get(&chunks, i, &at, &end); i++)
            while (at < end) {
                const size_t row = at % each, left = end - at;
                const size_t longest = each - row < MAX_PIECE ? each - row : MAX_PIECE;
                const size_t rows = left < longest ? left : longest;

                add_piece(to, w, s + at / each, row, row + rows);
                at += rows;
            }
    }
}

static bool same(struct kern_prefetch a, struct kern_prefetch b)
{
    return a.distance == b.distance && (a.distance == 0 || a.hint == b.hint) &&
           kern_panels_interleaved(a) == kern_panels_interleaved(b);
}

static void add_candidate(struct walk *w, struct kern_prefetch prefetch)
{
    for (int i = 0; i < w->n_tried; i++)
        if (same(prefetch, w->tried[i]))
            return;
    if (w->n_tried < PREFETCH_MAX_CANDIDATES)
        w->tried[w->n_tried++] = prefetch;
}

static void set_far_apart(struct walk *w, struct kern_prefetch in_force)
{
    w->n_tried = 0;
    w->n_rounds = 0;
    add_candidate(w, in_force);
    for (size_t i = 0; i < N_FAR_APART; i++)
        add_candidate(w, far_apart[i]);
}

static void add_neighbours(struct walk *w, struct kern_prefetch p)
{
    const uint32_t distance = p.distance ? p.distance : 1024;

    for (int hint = 0; hint < KERN_N_PREFETCH; hint++)
        add_candidate(w, (struct kern_prefetch){distance, (enum kern_prefetch_hint)hint,
                                                p.n_panels});
    add_candidate(w, (struct kern_prefetch){2 * distance, p.hint, p.n_panels});
    add_candidate(w, (struct kern_prefetch){distance / 2, p.hint, p.n_panels});
    add_candidate(w, (struct kern_prefetch){p.distance, p.hint, 2});
}

/* The candidates of a stage, by the times of the one before it; the one in force is
 * always among them. */
static void set_candidates(struct walk *w, int stage)
{
    struct kern_prefetch before[PREFETCH_MAX_CANDIDATES];
    int order[PREFETCH_MAX_CANDIDATES];
    const int n = w->n_tried - 1, taken_on = stage == LAST_TWO ? 1 : N_TAKEN_ON;

    prefetch_rank(w->n_rounds, w->n_tried, w->time, order);
    memcpy(before, w->tried, sizeof before);
    w->n_tried = 1;
    w->n_rounds = 0;
    for (int i = 0; i < n && i < taken_on; i++)
        add_candidate(w, before[order[i]]);
    if (stage == NEAR_THE_FASTEST && n > 0)
        add_neighbours(w, before[order[0]]);
}

static enum status open_walk(struct measuring *g, enum kern_format fmt, struct err *err)
{
    struct walk *w = &g->walks[g->n_walks];

    *w = (struct walk){.fmt = fmt};
    visit_matrices(g->f, add_pieces, w);
    if (!w->n_pieces)
        return ST_OK;
    w->pieces = calloc(w->n_pieces, sizeof *w->pieces);
    if (!w->pieces)
        return err_set(err, ST_NO_MEMORY, "no memory to measure the prefetch");
    g->n_walks++;
    w->n_pieces = 0;
    visit_matrices(g->f, add_pieces, w);
    set_far_apart(w, g->f->tuning.prefetch[fmt]);
    return ST_OK;
}

static void close_walk(struct measuring *g, int i)
{
    free(g->walks[i].pieces);
    memmove(&g->walks[i], &g->walks[i + 1],
            (size_t)(g->n_walks - i - 1) * sizeof g->walks[i]);
    g->n_walks--;
}

/* One column of zeros for all layouts; each thread writes its own results. */
static enum status open_scratch(struct measuring *g, struct err *err)
{
    size_t x_bytes = 0, n_rows = 0;
    enum status st;

    for (int i = 0; i < g->n_walks; i++)
        for (size_t j = 0; j < g->walks[i].n_pieces; j++) {
            const struct piece *p = &g->walks[i].pieces[j];
            const size_t bytes =
                kern_act_bytes(kern_format_info(g->walks[i].fmt)->act, p->k);
            const size_t rows = (size_t)p->n_panels * KERN_PANEL_ROWS;

            x_bytes = bytes > x_bytes ? bytes : x_bytes;
            n_rows = rows > n_rows ? rows : n_rows;
        }
    g->y_stride = n_rows + 32; /* no two threads write to neighbouring lines */
    st = mem_alloc(&g->scratch,
                   x_bytes + (size_t)thread_pool_size(g->f->pool) * g->y_stride *
                                 sizeof(float),
                   MEM_PAGES_4K, "prefetch measurement", err);
    if (st)
        return st;
    memset(g->scratch.base, 0, g->scratch.bytes);
    g->x = g->scratch.base;
    g->y = (float *)(void *)((unsigned char *)g->scratch.base + x_bytes);
    return ST_OK;
}

/* ---- runs ------------------------------------------------------------------------ */

static size_t piece_bytes(const struct walk *w, const struct piece *p)
{
    return KERN_PANEL_ROWS * (size_t)p->n_panels * kern_format_bytes(w->fmt, p->k);
}

static void run_share(void *arg, int thread, int n_threads)
{
    struct measuring *g = arg;
    const struct walk *w = g->walk;
    float *y = g->y + (size_t)thread * g->y_stride;

    (void)n_threads;
    for (size_t i; (i = thread_pool_next(g->f->pool, 1)) < g->n_run;) {
        const struct piece *p = &w->pieces[(w->at + i) % w->n_pieces];

        g->f->kern.gemv_x16[w->fmt](p->n_panels, p->k, p->panels, g->x, y, g->prefetch);
    }
}

static void evict_share(void *arg, int thread, int n_threads)
{
    struct measuring *g = arg;
    const struct walk *w = g->walk;

    (void)thread;
    (void)n_threads;
    for (size_t i; (i = thread_pool_next(g->f->pool, 1)) < g->n_run;) {
        const struct piece *p = &w->pieces[(w->at + i) % w->n_pieces];

        evict_from_caches(p->panels, piece_bytes(w, p));
    }
}

/* ns per byte of about `bytes` bytes from the walk's position. */
static double run(struct measuring *g, struct walk *w, struct kern_prefetch prefetch,
                  uint64_t bytes)
{
    uint64_t have = 0, begin;
    double ns;

    g->walk = w;
    g->prefetch = prefetch;
    for (g->n_run = 0; have < bytes && g->n_run < w->n_pieces; g->n_run++)
        have += piece_bytes(w, &w->pieces[(w->at + g->n_run) % w->n_pieces]);
    if (w->is_held)
        thread_pool_run(g->f->pool, evict_share, g);
    begin = clock_ns();
    thread_pool_run(g->f->pool, run_share, g);
    ns = (double)(clock_ns() - begin);
    w->at = (w->at + g->n_run) % w->n_pieces;
    return (ns > 1 ? ns : 1) / (double)have;
}

/* Bytes of a run: about RUN_NS, and few enough for the rounds needed. */
static void size_runs(struct measuring *g, struct walk *w)
{
    const uint64_t most =
        MAX_PASSES * w->bytes / ((uint64_t)WANTED_ROUNDS * (uint64_t)w->n_tried) + 1;
    double bytes;

    run(g, w, w->tried[0], FIRST_BYTES < most ? FIRST_BYTES : most);
    bytes = RUN_NS / run(g, w, w->tried[0], FIRST_BYTES < most ? FIRST_BYTES : most);
    w->run_bytes = bytes < (double)most ? (uint64_t)bytes : most;
}

static uint64_t system_cache_bytes(void)
{
    long bytes = 0;

#ifdef _SC_LEVEL3_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 ? (uint64_t)bytes : UNKNOWN_CACHE;
}

/* Every candidate once, in random order. */
static void run_round(struct measuring *g, struct walk *w)
{
    int order[PREFETCH_MAX_CANDIDATES] = {0};

    for (int i = 0; i < w->n_tried; i++)
        order[i] = i;
    random_shuffle(order, (size_t)w->n_tried, sizeof *order, &g->random);
    for (int i = 0; i < w->n_tried; i++)
        w->time[w->n_rounds][order[i]] = run(g, w, w->tried[order[i]], w->run_bytes);
    w->n_rounds++;
}

static void run_rounds(struct measuring *g, uint64_t end_ns)
{
    uint64_t walked = 0, most = 0;

    for (int i = 0; i < g->n_walks; i++)
        most += MAX_PASSES * g->walks[i].bytes;
    for (size_t n = 0;
         n < PREFETCH_MAX_ROUNDS &&
         (n < PREFETCH_MIN_ROUNDS || (clock_ns() < end_ns && walked < most));
         n++)
        for (int i = 0; i < g->n_walks; i++) {
            struct walk *w = &g->walks[i];

            run_round(g, w);
            walked += w->run_bytes * (uint64_t)w->n_tried;
        }
}

static void run_stages(struct measuring *g, uint64_t budget_ns)
{
    struct slm_tuning tuning = g->f->tuning;

    for (int stage = FAR_APART; stage < N_STAGES; stage++) {
        for (int i = 0; i < g->n_walks && stage > FAR_APART; i++)
            set_candidates(&g->walks[i], stage);
        run_rounds(g, clock_ns() + budget_ns / N_STAGES);
    }
    for (int i = 0; i < g->n_walks; i++) {
        struct walk *w = &g->walks[i];

        tuning.prefetch[w->fmt] =
            w->tried[prefetch_choose(w->n_rounds, w->n_tried, w->time)];
    }
    forward_tune(g->f, &tuning);
}

enum status forward_measure_prefetch(struct forward *f, double budget_s,
                                     uint64_t cache_bytes, struct err *err)
{
    const uint64_t cache = cache_bytes ? cache_bytes : system_cache_bytes();
    const bool is_held = f->m->weight_token_bytes <= cache;
    struct measuring *g = calloc(1, sizeof *g);
    enum status st = ST_OK;

    if (!g)
        return err_set(err, ST_NO_MEMORY, "no memory to measure the prefetch");
    g->f = f;
    g->random = 1;
    for (int fmt = 0; fmt < KERN_N_FMT && !is_held && st == ST_OK; fmt++)
        if (forward_prefetches(f, (enum kern_format)fmt))
            st = open_walk(g, (enum kern_format)fmt, err);
    if (st == ST_OK && g->n_walks)
        st = open_scratch(g, err);
    if (st == ST_OK && g->n_walks) {
        for (int i = 0; i < g->n_walks; i++) {
            g->walks[i].is_held = g->walks[i].bytes <= FAR_BEYOND * cache;
            size_runs(g, &g->walks[i]);
        }
        run_stages(g, (uint64_t)(budget_s * 1e9));
    }
    while (g->n_walks)
        close_walk(g, 0);
    mem_free(&g->scratch);
    free(g);
    return st;
}
