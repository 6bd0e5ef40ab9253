/* SPDX-License-Identifier: MIT
 *
 * recommend_quality.c - what the choice among settings gives for quality
 *
 * Quality is a divergence that was measured, or else the rank of a type, which is an
 * order only. Both are in one order by what a rank guarantees: a type diverges at
 * least as much as those that rank no worse.
 */
#include "harness/judge/recommend/recommend_choice.h"

#include <math.h>
#include <string.h>

#include "harness/base/order.h"

/* Standard errors from a mean to the ends of its 95 % interval. */
#define Z_95 1.96

/* Quantisations of one model; a sweep has some ten. */
#define MAX_GROUPS 64

/* ---- order ----------------------------------------------------------------------- */

bool quality_is_known(const struct chooser *c, const struct row *r)
{
    return isfinite(r->kl_mean) && c->reference && !strcmp(r->reference, c->reference);
}

void quality_learn(struct chooser *c)
{
    double most = 0;

    c->reference = NULL;
    for (int i = 0; i < QUALITY_N_RANKS; i++)
        c->min_kl[i] = 0;
    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];

        if (!is_candidate(c, i) || !isfinite(r->kl_mean))
            continue;
        if (!c->reference)
            c->reference = r->reference;
        if (quality_is_known(c, r)) {
            double *kl = &c->min_kl[quality_rank(r)];

            *kl = fmax(*kl, r->kl_mean);
        }
    }
    for (int i = 0; i < QUALITY_N_RANKS; i++)
        c->min_kl[i] = most = fmax(most, c->min_kl[i]);
}

static double divergence(const struct chooser *c, const struct row *r)
{
    return quality_is_known(c, r) ? r->kl_mean : c->min_kl[quality_rank(r)];
}

int quality_compare(const struct chooser *c, const struct row *a, const struct row *b)
{
    const double x = divergence(c, a), y = divergence(c, b);

    ORDER_BY((x > y) - (x < y));
    ORDER_BY(quality_rank(a) - quality_rank(b));
    return order_ints(b->file_bytes, a->file_bytes);
}

/* ---- candidates ------------------------------------------------------------------ */

void quality_drop_few_bits(struct chooser *c)
{
    bool alternative = false;

    for (size_t i = 0; i < c->rows.n && !alternative; i++)
        alternative = is_candidate(c, i) && !quality_has_few_bits(c->rows.v[i]);
    for (size_t i = 0; i < c->rows.n && alternative; i++) {
        const struct row *r = c->rows.v[i];

        if (!is_candidate(c, i) || isfinite(r->kl_mean) || !quality_has_few_bits(r))
            continue;
        c->n[c->why[i]]--;
        c->why[i] = FEW_BITS;
        c->n[FEW_BITS]++;
        c->speed[i].median = 0;
    }
}

size_t quality_best(const struct chooser *c)
{
    size_t best = NO_ROW;

    for (size_t i = 0; i < c->rows.n; i++)
        if (is_candidate(c, i) &&
            (best == NO_ROW || quality_compare(c, c->rows.v[i], c->rows.v[best]) < 0))
            best = i;
    return best;
}

/* The logarithm: it is finite however large the divergence is. */
static double log_price(const struct chooser *c, double kl)
{
    const double limit = isfinite(c->max_kl) ? c->max_kl : RECOMMEND_MAX_KL;

    return log1p(RECOMMEND_KL_PRICE) * 10 * kl / limit;
}

double quality_price(const struct chooser *c, double kl_more, double kl_less)
{
    return exp(log_price(c, kl_more - kl_less));
}

static size_t best_type_near(const struct chooser *c)
{
    const struct speed *best = &c->speed[c->best];
    size_t found = c->best;

    for (size_t i = 0; i < c->rows.n; i++)
        if (is_candidate(c, i) &&
            c->speed[i].median >= (1 - RECOMMEND_TYPE_SHARE) * best->median &&
            c->speed[i].regret - best->regret <= RECOMMEND_TYPE_SHARE &&
            quality_compare(c, c->rows.v[i], c->rows.v[found]) < 0)
            found = i;
    return found != c->best ? found : NO_ROW;
}

bool quality_is_by_type(const struct chooser *c)
{
    return c->replaced != NO_ROW && !has_floor(c) &&
           !quality_is_known(c, c->rows.v[c->replaced]);
}

size_t quality_worth_more(const struct chooser *c)
{
    const struct row *best = c->rows.v[c->best];
    double most = log(c->speed[c->best].median);
    size_t found = NO_ROW;

    if (!quality_is_known(c, best))
        return best_type_near(c);
    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];

        if (!is_candidate(c, i) || !quality_is_known(c, r) ||
            !(r->kl_mean < best->kl_mean))
            continue;
        const double worth =
            log(speed_lo(&c->speed[i])) + log_price(c, best->kl_mean - r->kl_mean);
        if (worth >= most) {
            most = worth;
            found = i;
        }
    }
    return found;
}

static bool equal_quality(const struct chooser *c, const struct row *a,
                          const struct row *b)
{
    const double se =
        hypot(isfinite(a->kl_se) ? a->kl_se : 0, isfinite(b->kl_se) ? b->kl_se : 0);

    if (quality_is_known(c, a) && quality_is_known(c, b))
        return fabs(a->kl_mean - b->kl_mean) <= Z_95 * se;
    return !row_compare(a, b, FIELD_COMPUTED);
}

void quality_restrict(struct chooser *c, size_t i)
{
    for (size_t k = 0; k < c->rows.n; k++)
        c->speed[k].out =
            is_candidate(c, k) && !equal_quality(c, c->rows.v[i], c->rows.v[k]);
}

/* ---- the Pareto frontier --------------------------------------------------------- */

struct groups {
    size_t v[MAX_GROUPS]; /* the fastest row of each quantisation, the fastest first */
    int n;
};

/* The group of a row; g->n: none yet. Rows of one quantisation mostly follow each
 * other, so the last group is tried first. */
static int group_of(const struct groups *g, const struct chooser *c,
                    const struct row *r, int last)
{
    int k = 0;

    if (last < g->n && !row_compare(c->rows.v[g->v[last]], r, FIELD_COMPUTED))
        return last;
    while (k < g->n && row_compare(c->rows.v[g->v[k]], r, FIELD_COMPUTED))
        k++;
    return k;
}

static void order_groups(struct groups *g, const struct chooser *c)
{
    for (int i = 1; i < g->n; i++)
        for (int k = i; k > 0; k--) {
            const size_t v = g->v[k];

            if (c->speed[g->v[k - 1]].median >= c->speed[v].median)
                break;
            g->v[k] = g->v[k - 1];
            g->v[k - 1] = v;
        }
}

static void find_groups(struct groups *g, const struct chooser *c)
{
    int k = 0;

    g->n = 0;
    for (size_t i = 0; i < c->rows.n; i++) {
        if (!is_candidate(c, i) ||
            !row_compare(c->rows.v[i], c->rows.v[c->best], FIELD_COMPUTED) ||
            (quality_is_by_type(c) && /* the headline has it */
             !row_compare(c->rows.v[i], c->rows.v[c->replaced], FIELD_COMPUTED)))
            continue;
        k = group_of(g, c, c->rows.v[i], k);
        if (k == MAX_GROUPS)
            continue;
        if (k == g->n || c->speed[i].median > c->speed[g->v[k]].median)
            g->v[k] = i;
        g->n += k == g->n;
    }
    order_groups(g, c);
}

/* Whether row o is as fast and as good as row i, and better in one of both. */
static bool beats(const struct chooser *c, size_t o, size_t i)
{
    const int order = quality_compare(c, c->rows.v[o], c->rows.v[i]);
    const double a = c->speed[o].median, b = c->speed[i].median;

    return order <= 0 && a >= b && (order < 0 || a > b);
}

static bool on_frontier(const struct groups *g, const struct chooser *c, size_t i)
{
    for (int k = 0; k < g->n; k++)
        if (beats(c, g->v[k], i))
            return false;
    return !beats(c, c->best, i);
}

/* Up to RECOMMEND_MAX_STEPS of the frontier, the better ones first, each kind from the
 * choice outwards. */
static void pick_steps(bool *picked, const struct groups *g, const struct chooser *c)
{
    const struct row *best = c->rows.v[c->best];
    int n = 0;

    for (int k = 0; k < g->n && n < RECOMMEND_MAX_STEPS; k++) {
        picked[k] = quality_compare(c, c->rows.v[g->v[k]], best) < 0 &&
                    on_frontier(g, c, g->v[k]);
        n += picked[k];
    }
    for (int k = g->n; k-- > 0 && n < RECOMMEND_MAX_STEPS;)
        if (!picked[k] && quality_compare(c, c->rows.v[g->v[k]], best) >= 0 &&
            on_frontier(g, c, g->v[k])) {
            picked[k] = true;
            n++;
        }
}

void quality_steps(struct recommendation *rec, const struct chooser *c)
{
    bool picked[MAX_GROUPS] = {false};
    struct groups g;

    find_groups(&g, c);
    pick_steps(picked, &g, c);
    rec->n_steps = 0;
    for (int k = 0; k < g.n; k++) {
        struct recommend_step *s = &rec->steps[rec->n_steps];

        if (!picked[k])
            continue;
        s->row = *c->rows.v[g.v[k]];
        s->row.command[0] = '\0';
        s->tok_per_s = c->speed[g.v[k]].median;
        s->from_ctx = c->speed[g.v[k]].from_ctx;
        rec->n_steps++;
    }
}
