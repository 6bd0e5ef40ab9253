/* SPDX-License-Identifier: MIT
 *
 * synth_router.c - routers whose experts are popular as those of trained models are
 *
 * A router of random numbers takes all experts equally often, and other ones for every
 * token. Trained ones have favourites, and take for a token what they took for the last
 * ones: caches of experts live by that. Here both are made of what every architecture
 * has, two blocks of SYNTH_UNIT_ELEMS channels of the residual stream:
 *
 *     bias      the embedding of every token is BIAS there on average, so that a row of
 *               the router adds a constant to the score of its expert
 *     context   embeddings are small there, and attention writes more than elsewhere:
 *               an average over the last tokens, which changes slowly
 *
 * Attention looks back some ten tokens, because queries and keys have a constant part,
 * too, the same in those pairs of elements that rotate by 1/NEAREST to 1/FARTHEST per
 * token: up to there they are still parallel, and farther away in all directions.
 *
 * Popularity: the expert of rank r is taken by a share of c / r^skew of the tokens, at
 * most MAX_TAKEN, where c makes all shares add up to the experts that a token takes.
 * Ranks are drawn again for every layer. With scores of unit variance around its
 * constant an expert is above a common threshold so often if the constant is the normal
 * quantile of its share; that the threshold is not quite common makes the shares of a
 * handful of experts a little more equal than wanted.
 */
#include <math.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/synth/synth_parts.h"

#define MAX_TAKEN 0.95
#define BIAS      1.0  /* mean of the embeddings there; usually they have variance 1 */
#define FAINT     0.05 /* deviation of the embeddings in context channels */
#define CONTEXT   0.7  /* of the variance of scores comes from the context */
#define WRITTEN   6.0  /* times as much as elsewhere does attention write there */
#define NEAREST   8.0  /* tokens */
#define FARTHEST  32.0 /* tokens */
#define PEAK      10.0 /* of near tokens' scores, which else have deviation 1 or so */
#define AVERAGED  0.08 /* variance of values averaged over what a token looks at */

#define BLOCK ((double)SYNTH_UNIT_ELEMS)

bool synth_can_skew(const struct synth_shape *s)
{
    return s->n_experts && !s->kv_rank && s->n_embd % SYNTH_UNIT_ELEMS == 0 &&
           s->n_embd >= 4 * SYNTH_UNIT_ELEMS && !s->tied_output &&
           (uint64_t)s->n_heads * s->head_dim % SYNTH_UNIT_ELEMS == 0;
}

enum synth_layout synth_layout_of(const struct synth_shape *s, const char *name)
{
    static const struct {
        const char *name;
        enum synth_layout layout;
    } known[] = {
        {"token_embd.weight", SYNTH_EMBEDDING}, {"attn_q.weight", SYNTH_LOOK_BACK},
        {"attn_k.weight", SYNTH_LOOK_BACK},     {"attn_v.weight", SYNTH_VALUES},
        {"attn_output.weight", SYNTH_ATTN_OUT}, {"ffn_gate_inp.weight", SYNTH_ROUTER}};

    for (size_t i = 0; s->router_skew > 0 && i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(name, known[i].name))
            return known[i].layout;
    return SYNTH_PLAIN;
}

/* The root mean square of the stream before a layer's experts, and the variance of its
 * usual and its context channels; branches add what synth.c says. */
struct stream {
    double rms, usual, context;
};

static struct stream stream_at(const struct synth_shape *s, int layer)
{
    const double share = BLOCK / s->n_embd, branch = 1 / (2.0 * s->n_layers);
    const double attended = (layer + 1) * branch * AVERAGED, fed = layer * branch;
    struct stream x = {.usual = 1 + attended + fed,
                       .context = FAINT * FAINT + WRITTEN * WRITTEN * attended + fed};

    x.rms = sqrt(x.usual + share * (BIAS * BIAS + x.context - x.usual));
    return x;
}

/* Pairs that rotate by 1/distance per token and more. */
static double pairs_within(const struct synth_shape *s, double distance)
{
    return s->head_dim / 2 * log(distance) / log((double)s->rope_base);
}

void synth_near_pairs(const struct synth_shape *s, uint32_t near[2])
{
    near[0] = (uint32_t)pairs_within(s, NEAREST);
    near[1] = (uint32_t)pairs_within(s, FARTHEST) + 1;
}

/* The constant part of an element of queries and keys in near pairs: a product of two
 * is PEAK then. Where heads are normalised it loses to itself what it adds to their
 * size. */
static double look_back(const struct synth_shape *s)
{
    const double root = sqrt((double)s->head_dim);
    const double peak = PEAK < 0.8 * root ? PEAK : 0.8 * root;
    const bool normalised = !strcmp(s->arch, "qwen3moe");
    uint32_t near[2];

    synth_near_pairs(s, near);
    return sqrt(peak * root / (2.0 * (near[1] - near[0])) /
                (normalised ? 1 - peak / root : 1));
}

void synth_layout_pools(const struct synth_shape *s, enum synth_layout layout,
                        struct synth_pool_spec pool[SYNTH_N_PARTS])
{
    struct synth_pool_spec *bias = &pool[SYNTH_PART_BIAS];
    struct synth_pool_spec *context = &pool[SYNTH_PART_CONTEXT];

    switch (layout) {
    case SYNTH_EMBEDDING:
        bias->mean = (float)BIAS;
        context->sigma *= (float)FAINT;
        break;
    case SYNTH_LOOK_BACK:
        bias->mean = (float)(look_back(s) * stream_at(s, 0).rms / (BLOCK * BIAS));
        break;
    case SYNTH_VALUES: /* a constant there would be one more bias */
        bias->sigma *= (float)FAINT;
        break;
    case SYNTH_ATTN_OUT:
        context->sigma *= (float)WRITTEN;
        break;
    default:
        break;
    }
}

/* Whether element i of a head is in one of the near pairs. */
static bool is_near(const struct synth_tensor *t, uint64_t i)
{
    const uint64_t pair = t->halves ? i % (t->head_dim / 2) : i / 2;

    return pair >= t->near[0] && pair < t->near[1];
}

enum synth_part synth_part_of(const struct synth_tensor *t, uint64_t unit)
{
    uint64_t row, column;

    if (t->layout == SYNTH_PLAIN)
        return SYNTH_PART_REST;
    row = unit / (t->ne[0] / SYNTH_UNIT_ELEMS);
    column = unit % (t->ne[0] / SYNTH_UNIT_ELEMS);
    if (t->layout == SYNTH_ATTN_OUT)
        return row / SYNTH_UNIT_ELEMS == 1 ? SYNTH_PART_CONTEXT : SYNTH_PART_REST;
    if (t->layout == SYNTH_LOOK_BACK && !is_near(t, row % t->head_dim))
        return SYNTH_PART_REST;
    return column == 0   ? SYNTH_PART_BIAS
           : column == 1 ? SYNTH_PART_CONTEXT
                         : SYNTH_PART_REST;
}

/* ---- a router -------------------------------------------------------------------- */

static double share_of(double c, int rank, double skew)
{
    const double share = c * pow(rank, -skew);

    return share < MAX_TAKEN ? share : MAX_TAKEN;
}

/* c, by which all shares add up. */
static double scale_of(const struct synth_shape *s)
{
    const int n = (int)s->n_experts;
    double low = 0,
           high = pow(n, (double)s->router_skew); /* all as often as they may */

    for (int i = 0; i < 100; i++) {
        const double c = (low + high) / 2;
        double sum = 0;

        for (int r = 1; r <= n; r++)
            sum += share_of(c, r, (double)s->router_skew);
        if (sum < (double)s->n_experts_used)
            low = c;
        else
            high = c;
    }
    return low;
}

double synth_router_share(const struct synth_shape *s, int rank)
{
    return share_of(scale_of(s), rank, (double)s->router_skew);
}

/* What is normally distributed with variance 1 is below it with probability p; rounded,
 * so that it does not depend on the last bit of the C library's functions. */
static double quantile(double p)
{
    double low = -8, high = 8;

    for (int i = 0; i < 40; i++) {
        const double x = (low + high) / 2;

        if (erfc(-x / sqrt(2)) / 2 < p)
            low = x;
        else
            high = x;
    }
    return floor(low * 1024 + 0.5) / 1024;
}

void synth_router_open(struct synth_router *r, const struct synth_shape *s, int layer,
                       uint64_t random)
{
    const struct stream x = stream_at(s, layer);
    const int n = (int)s->n_experts;
    const double c = scale_of(s);
    int at[SYNTH_MAX_EXPERTS];

    for (int i = 0; i < n; i++)
        at[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)(random_bits(&random) % (uint64_t)(i + 1)), k = at[i];

        at[i] = at[j];
        at[j] = k;
    }
    for (int i = 0; i < n; i++)
        r->bias[at[i]] = (float)(quantile(share_of(c, i + 1, (double)s->router_skew)) *
                                 x.rms / (BLOCK * BIAS));
    r->rest =
        (float)(x.rms * sqrt((1 - CONTEXT) / (x.usual * (s->n_embd - 2 * BLOCK))));
    r->context = (float)(x.rms * sqrt(CONTEXT / (x.context * BLOCK)));
}
