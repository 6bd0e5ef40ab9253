/* SPDX-License-Identifier: MIT
 *
 * rope.c - rotation speeds from metadata and tensors, and the rotation at a position
 */
#include "engine/arch/rope.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/arch/loader.h"
#include "engine/base/utf8.h"

enum scaling {
    SCALING_NONE,
    SCALING_LINEAR,
    SCALING_YARN,
    SCALING_LONGROPE,
    N_SCALINGS
};

static const char *const scaling_names[N_SCALINGS] = {"none", "linear", "yarn",
                                                      "longrope"};

/* The values of the metadata. */
struct recipe {
    enum scaling scaling;
    double base, factor, attn_factor;
    double ext_factor, beta_fast, beta_slow; /* yarn */
    bool whole_pairs;
};

static const double pi = 3.14159265358979323846;

/* ---- metadata -------------------------------------------------------------------- */

static enum status load_scaling(struct loader *l, enum scaling *scaling)
{
    struct gguf_str type;
    char shown[64];

    *scaling = SCALING_LINEAR;
    if (!loader_str(l, "rope.scaling.type", &type))
        return ST_OK;
    for (int i = 0; i < N_SCALINGS; i++)
        if (type.len == strlen(scaling_names[i]) &&
            memcmp(type.data, scaling_names[i], type.len) == 0) {
            *scaling = (enum scaling)i;
            return ST_OK;
        }
    return loader_fail(l, ST_UNSUPPORTED,
                       "rope.scaling.type \"%s\" is not supported; supported are: "
                       "none, linear, yarn, longrope",
                       utf8_printable(shown, sizeof shown, type.data, type.len));
}

static enum status load_factor(struct loader *l, struct recipe *r)
{
    double older;
    /* Files older than rope.scaling.* have the reciprocal. */
    enum status st = loader_real_or(l, "rope.scale_linear", 0, 1e6, 1.0, &older);

    if (!st)
        st = loader_real_or(l, "rope.scaling.factor", 0, 1e6, older, &r->factor);
    if (st)
        return st;
    if (r->scaling == SCALING_NONE || r->factor == 0) /* 0: not set */
        r->factor = 1;
    if (r->factor < 1e-6)
        return loader_fail(l, ST_INPUT,
                           "rope.scaling.factor is %g, and 1e-6 to 1e6 is possible",
                           r->factor);
    return ST_OK;
}

/* What yarn scales queries and keys by; m: 1 in the paper. */
static double yarn_scale(double factor, double m)
{
    return 1 + 0.1 * m * log(factor);
}

static enum status load_yarn(struct loader *l, struct recipe *r)
{
    double attn_factor = 1, m = 0;
    enum status st = loader_real_or(l, "rope.scaling.yarn_ext_factor", -1e3, 1e3, 1.0,
                                    &r->ext_factor);

    if (!st)
        st = loader_real_or(l, "rope.scaling.yarn_attn_factor", 1e-3, 1e3, 1.0,
                            &attn_factor);
    if (!st)
        st = loader_real_or(l, "rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32.0,
                            &r->beta_fast);
    if (!st)
        st = loader_real_or(l, "rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1.0,
                            &r->beta_slow);
    if (!st)
        st = loader_bool_or(l, "rope.scaling.yarn_truncate", true, &r->whole_pairs);
    if (!st)
        st = loader_real_or(l, "rope.scaling.yarn_log_multiplier", 0, 1e3, 0, &m);
    if (st)
        return st;
    if (!(r->base > 1))
        return loader_fail(l, ST_INPUT,
                           "rope.freq_base is %g, and yarn needs one above 1", r->base);
    if (r->ext_factor < 0) /* not set */
        r->ext_factor = 1;
    /* Converters copy it from config.json, where it is the whole factor. */
    if (fabs(attn_factor - yarn_scale(r->factor, 1)) < 1e-5)
        attn_factor = 1;
    r->attn_factor *= attn_factor / yarn_scale(r->factor, m);
    return ST_OK;
}

static enum status load_recipe(struct loader *l, struct recipe *r)
{
    enum status st = load_scaling(l, &r->scaling);

    if (!st)
        st = loader_real_or(l, "rope.freq_base", 1e-3, 1e15, 10000.0, &r->base);
    if (!st)
        st = load_factor(l, r);
    if (!st)
        st = loader_real_or(l, "rope.scaling.attn_factor", 1e-3, 1e3, 1.0,
                            &r->attn_factor);
    if (!st && r->scaling == SCALING_YARN)
        st = load_yarn(l, r);
    return st;
}

/* ---- steps ----------------------------------------------------------------------- */

static double limit(double x, double min, double max)
{
    return x < min ? min : x > max ? max : x;
}

/* The pair, as a fraction, that makes n_turns turns within the original context. */
static double pair_of_turns(const struct rope *r, double base, double n_turns)
{
    return r->n_rot * log(r->n_ctx_orig / (n_turns * 2 * pi)) / (2 * log(base));
}

/* Pairs up to `fast` keep their speed, those from `slow` on are interpolated. */
static void bend(struct rope *r, const struct recipe *how, double *step)
{
    double fast = pair_of_turns(r, how->base, how->beta_fast);
    double slow = pair_of_turns(r, how->base, how->beta_slow);

    if (how->whole_pairs) {
        fast = floor(fast);
        slow = ceil(slow);
    }
    fast = fmax(0, fast);
    slow = fmin(r->n_rot - 1, slow);
    /* If both are equal, a step avoids a division by zero. */
    const double width = slow > fast ? slow - fast : 0.001;

    for (int i = 0; i < r->n_rot / 2; i++) {
        const double kept = how->ext_factor * (1 - limit((i - fast) / width, 0, 1));

        step[i] *= (1 - kept) / how->factor + kept;
    }
}

/* factors: [n_rot / 2] or NULL, from the tensor called name. */
static enum status make_steps(struct loader *l, struct rope *r, double **step,
                              const struct recipe *how, const float *factors,
                              const char *name)
{
    const int n_pairs = r->n_rot / 2;

    *step = malloc((size_t)n_pairs * sizeof **step);
    if (!*step)
        return loader_fail(l, ST_NO_MEMORY, "no memory for %d rotations", n_pairs);
    for (int i = 0; i < n_pairs; i++) {
        const double factor = factors ? (double)factors[i] : 1.0;

        /* Gemma 4 has 1e30 for pairs that do not turn. */
        if (!(fabs(factor) >= 1e-6 && fabs(factor) <= 1e30 * (1 + 1e-6)))
            return loader_fail(l, ST_INPUT, "%s has a factor of %g", name, factor);
        (*step)[i] = pow(how->base, -2.0 * i / r->n_rot) / factor;
        if (how->scaling != SCALING_YARN)
            (*step)[i] /= how->factor;
    }
    if (how->scaling == SCALING_YARN)
        bend(r, how, *step);
    return ST_OK;
}

enum status rope_plain(struct loader *l, struct rope *r, int n_rot, double base,
                       double factor)
{
    const struct recipe how = {.base = base, .factor = factor};

    *r = (struct rope){.n_rot = n_rot, .n_ctx_orig = MAX_CONTEXT, .scale = 1};
    return make_steps(l, r, &r->step, &how, NULL, "");
}

static enum status load_steps(struct loader *l, struct rope *r,
                              const struct recipe *how)
{
    static const char every[] = "rope_freqs.weight";
    static const char few[] = "rope_factors_short.weight";
    static const char many[] = "rope_factors_long.weight";
    const size_t n = (size_t)r->n_rot / 2;
    const bool both = loader_has(l, -1, few) || loader_has(l, -1, many);
    const float *factors = NULL, *factors_long = NULL;
    enum status st = ST_OK;

    if (both && loader_has(l, -1, every))
        return loader_fail(l, ST_INPUT, "tensors %s and %s exclude each other", every,
                           loader_has(l, -1, few) ? few : many);
    /* The tensors identify longrope: its converter writes no type. */
    if (both || how->scaling == SCALING_LONGROPE) {
        st = loader_vector(l, &factors, -1, few, n);
        if (!st)
            st = loader_vector(l, &factors_long, -1, many, n);
        if (!st)
            st = make_steps(l, r, &r->step_long, how, factors_long, many);
    } else if (loader_has(l, -1, every)) {
        st = loader_vector(l, &factors, -1, every, n);
    }
    return st ? st : make_steps(l, r, &r->step, how, factors, both ? few : every);
}

enum status rope_load(struct loader *l, struct rope *r, int n_rot, int n_ctx_train)
{
    struct recipe how = {.base = 1};
    enum status st = load_recipe(l, &how);
    int original = 0;

    *r = (struct rope){.n_rot = n_rot};
    if (!st)
        st = loader_int_or(l, "rope.scaling.original_context_length", 1, MAX_CONTEXT, 0,
                           &original);
    if (st)
        return st;
    r->n_ctx_orig = original ? original : n_ctx_train;
    if (how.scaling == SCALING_YARN)
        r->n_ctx = (int)fmin(how.factor * original, MAX_CONTEXT);
    r->scale = (float)how.attn_factor;
    if (how.scaling == SCALING_YARN && how.ext_factor != 0)
        r->scale = (float)(how.attn_factor * yarn_scale(how.factor, 1));
    return load_steps(l, r, &how);
}

void rope_free(struct rope *r)
{
    free(r->step);
    free(r->step_long);
    r->step = r->step_long = NULL;
}

void rope_turns(const struct rope *r, enum rope_pairs pairs, int n_ctx, int pos,
                float *turn)
{
    const bool beyond = r->step_long && n_ctx > r->n_ctx_orig;
    const double *step = beyond ? r->step_long : r->step;
    const int n_pairs = r->n_rot / 2;

    for (int i = 0; i < n_pairs; i++) {
        const double angle = (double)pos * step[i];
        const int at = pairs == PAIRS_HALVES ? i : 2 * i;
        const int to_sine = pairs == PAIRS_HALVES ? n_pairs : 1;

        turn[at] = (float)(cos(angle) * (double)r->scale);
        turn[at + to_sine] = (float)(sin(angle) * (double)r->scale);
    }
}
