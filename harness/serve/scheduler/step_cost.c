/* SPDX-License-Identifier: MIT
 *
 * step_cost.c - medians of classes, what lies between them, and how far off they are
 */
#include "harness/serve/scheduler/step_cost.h"

#include <math.h>
#include <string.h>

#include "harness/stats/stats.h"

/* The ratio that 19 of 20 steps under a limit do not exceed, and what counts until
 * there are some. */
#define MARGIN_SHARE   0.95
#define MIN_RATIOS     16
#define UNKNOWN_MARGIN (1 / 0.9)
/* Prompts continue, at half of the speed that the limit allows, however disturbed the
 * machine is. */
#define MAX_MARGIN 2.0

/* Weight of the newest step in the usual time, and the multiple of the median as which
 * one that took longer counts. */
#define NEWEST  0.02
#define OUTLIER 1.5

double step_cost_work(double depth_cost, int n, int depth)
{
    return n * (1 + depth_cost * (depth + n / 2.0));
}

int step_cost_tokens(double depth_cost, double work, int depth)
{
    const double one = 1 + depth_cost * depth, k = depth_cost;

    if (work <= 0)
        return 0;
    return (int)(k > 0 ? (sqrt(one * one + 2 * k * work) - one) / k : work / one);
}

static size_t class_of(double work)
{
    const double last = STEP_COST_CLASSES - 1;
    const double at = work < 1 ? 0
                      : work < STEP_COST_SINGLE
                          ? work - 1
                          : STEP_COST_SINGLE - 1 + 2 * log2(work / STEP_COST_SINGLE);

    return (size_t)(at < last ? at : last);
}

static bool is_known(const struct step_cost *c, const struct step_class *class)
{
    return class->n && (class->lasts || c->n_steps - class->when < STEP_COST_EXPIRES);
}

static void add_usual(struct step_class *class, double work, double s)
{
    const bool first = class->n_usual == 0;
    const double before = first ? s : class->usual_s;
    const double most = OUTLIER * fmin(class->median_s, before);
    const double weight = 1 / (double)++class->n_usual;
    const double newest = weight > NEWEST ? weight : NEWEST;

    class->usual_work += newest * (work - class->usual_work);
    class->usual_s += newest * ((s < most ? s : most) - class->usual_s);
}

void step_cost_add(struct step_cost *c, double work, double s)
{
    struct step_class *class = &c->classes[class_of(work)];
    double scratch[STEP_COST_LAST];
    size_t n;

    if (!is_known(c, class))
        class->n_usual = 0;
    class->work[class->n % STEP_COST_LAST] = work;
    class->s[class->n % STEP_COST_LAST] = s;
    class->n++;
    class->when = ++c->n_steps;
    n = class->n < STEP_COST_LAST ? (size_t) class->n : STEP_COST_LAST;
    /* of two the shorter: one that was delayed would keep others from being tried */
    class->median_s =
        n == 2 ? fmin(class->s[0], class->s[1]) : stats_median(class->s, n, scratch);
    class->mean_work = 0;
    for (size_t i = 0; i < n; i++)
        class->mean_work += class->work[i] / (double)n;
    add_usual(class, work, s);
}

void step_cost_add_timed(struct step_cost *c, double work, double s)
{
    c->classes[class_of(work)].lasts = true;
    step_cost_add(c, work, s);
}

void step_cost_add_limited(struct step_cost *c, double work, double s)
{
    const double predicted_s = step_cost_s(c, work);

    if (predicted_s > 0)
        c->ratios[c->n_ratios++ % STEP_COST_RATIOS] = s / predicted_s;
    step_cost_add(c, work, s);
}

double step_cost_aim_s(const struct step_cost *c, double limit_s)
{
    const size_t n =
        c->n_ratios < STEP_COST_RATIOS ? (size_t)c->n_ratios : STEP_COST_RATIOS;
    double sorted[STEP_COST_RATIOS], margin;

    if (n < MIN_RATIOS)
        return limit_s / UNKNOWN_MARGIN;
    memcpy(sorted, c->ratios, n * sizeof *sorted);
    stats_sort(sorted, n);
    margin = sorted[(size_t)(MARGIN_SHARE * (double)n)];
    margin = margin < MAX_MARGIN ? margin : MAX_MARGIN;
    return margin > 1 ? limit_s / margin : limit_s;
}

static double predict(const struct step_cost *c, double work, bool usual)
{
    double work_below = 0, s_below = 0; /* the nearest class below; 0: none */

    for (size_t k = 0; k < STEP_COST_CLASSES; k++) {
        const struct step_class *class = &c->classes[k];
        const double at = usual ? class->usual_work : class->mean_work;
        double s = usual ? class->usual_s : class->median_s;

        if (!is_known(c, class))
            continue;
        s = s > s_below ? s : s_below; /* more work never takes less */
        if (at >= work)
            return s_below > 0 ? s_below + (s - s_below) * (work - work_below) /
                                               (at - work_below)
                               : s;
        work_below = at;
        s_below = s;
    }
    return work_below > 0 ? s_below * work / work_below : 0;
}

double step_cost_s(const struct step_cost *c, double work)
{
    return predict(c, work, false);
}

double step_cost_usual_s(const struct step_cost *c, double work)
{
    return predict(c, work, true);
}

bool step_cost_is_fresh(const struct step_cost *c, double work)
{
    const struct step_class *class = &c->classes[class_of(work)];

    return class->n_usual >= STEP_COST_ENOUGH &&
           c->n_steps - class->when < STEP_COST_FRESH;
}

double step_cost_within(const struct step_cost *c, double limit_s, double most)
{
    double enough = 0, more = most;

    if (step_cost_s(c, most) <= limit_s)
        return most;
    for (int i = 0; i < 40 && more - enough > 0.5; i++) {
        const double middle = enough + (more - enough) / 2;

        if (step_cost_s(c, middle) <= limit_s)
            enough = middle;
        else
            more = middle;
    }
    return enough;
}
