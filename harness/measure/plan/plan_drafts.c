/* SPDX-License-Identifier: MIT
 *
 * plan_drafts.c - what drafts would cost and gain: the time of passes of several tokens
 */
#include "harness/measure/plan/plan.h"

#include <math.h>

#include "engine/quantize/quantmix.h"
#include "harness/measure/kernels/kernel_work.h"

const double plan_rates[PLAN_N_RATES] = {0.5, 0.7, 0.8};

/* Between these widths costs are interpolated. */
static const int widths[] = {2, 4, 8};
enum { N_WIDTHS = 3 };

enum status plan_measure_columns(struct plan *plan, const struct topology *topo,
                                 struct err *err)
{
    const struct model_setup *s = &plan->point.setup;
    const enum kern_format format = quantmix_base_named(plan->need.quant);
    const bool packed = plan->need.residency != WEIGHTS_MMAP;
    double cost[N_WIDTHS], below = 1;
    int width = 1;
    enum status st;

    if (format == KERN_N_FMT)
        return ST_OK;
    st = kernel_column_costs(cost, widths, N_WIDTHS, format, packed, s->n_threads,
                             s->placement, topo, err);
    if (st || !(cost[0] > 0 && cost[1] > 0 && cost[2] > 0))
        return st;
    plan->columns[1] = 1;
    for (int i = 0; i < N_WIDTHS; i++) {
        const double at = cost[i] > below ? cost[i] : below; /* more never takes less */
        const int from = width;

        while (width < widths[i]) {
            width++;
            plan->columns[width] =
                below + (at - below) * (width - from) / (widths[i] - from);
        }
        below = at;
    }
    return ST_OK;
}

void plan_set_draft(struct plan *plan, struct plan *draft)
{
    draft->roofs = plan->roofs;
    plan_predict(draft);
    plan->has_draft = true;
    plan->draft = draft->need;
    plan->draft_s = fmax(draft->time.compute_s, draft->time.disk_s);
}

/* Bytes that a pass of several tokens reads more than one of one: other experts. */
static double more_bytes(const struct point_need *need, int width)
{
    const struct slm_info info = {.n_experts = need->n_experts,
                                  .n_experts_used = need->n_experts_used,
                                  .expert_bytes = need->expert_bytes};

    return slm_bytes_per_pass(&info, width);
}

bool plan_draft_costs(const struct plan *plan, struct speculate_costs *costs)
{
    const double token_s = plan->time.token_s;

    *costs = (struct speculate_costs){.pass = {0, 1}};
    for (int w = 2; token_s > 0 && w <= SPECULATE_MAX + 1; w++) {
        const double columns =
            plan->columns[1] > 0 ? plan->columns[w] : 1 + SPECULATE_COLUMN * (w - 1);
        struct token_work work = plan_work(plan);
        struct token_roofs roofs = plan->roofs.gbps;

        work.layer_s = token_time_layer_s(plan->point.setup.n_threads);
        work.memory_bytes += more_bytes(&plan->need, w);
        /* an expert multiplies for hardly more than one of the tokens */
        roofs.read_gbps /= plan->need.n_experts ? 1 : columns;
        costs->pass[w] = token_time_predict(&work, &roofs).token_s / token_s;
    }
    /* Where states cannot be taken back, a wrong guess adds two tokens to the next
     * pass: the one before it runs again, and its states are copied. */
    costs->wrong = plan->need.n_recurrent ? 2 * (costs->pass[2] - 1) : 0;
    return token_s > 0;
}

double plan_own_guess(const struct plan *plan)
{
    return plan->need.token_bytes
               ? (double)plan->need.nextn_bytes / (double)plan->need.token_bytes
               : 0;
}

double plan_draft_guess(const struct plan *plan)
{
    return plan->has_draft ? plan->draft_s / plan->time.token_s : SPECULATE_DRAFT_SHARE;
}
