/* SPDX-License-Identifier: MIT
 *
 * point_end.c - the result of a point, after its worker has ended
 */
#include "harness/measure/point/point_run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "harness/base/format.h"
#include "harness/machine/measuring.h"
#include "harness/machine/memory_reserve.h"

/* Two nodes have half of the weights each, more nodes less. */
#define MANY_ON_ONE_PCT 75

static void judge_killed(struct point_run *r, int signal)
{
    char at[40] = "where the machine has no more";

    if (worker_client_was_oom(&r->worker, &r->usage)) {
        r->row->status = ROW_STATUS_OOM;
        if (r->usage.limit_bytes)
            snprintf(at, sizeof at, "at the limit of %s",
                     bytes_text(r->usage.limit_bytes).text);
        snprintf(r->row->detail, sizeof r->row->detail,
                 "killed for memory in phase '%s', %s; planned were %s that cannot be "
                 "paged out: %s, or take a smaller model",
                 r->phase, at, bytes_text(r->anon_bytes + RESERVE_OWN_BYTES).text,
                 r->settings.setup.mem_limit ? "give more with --mem"
                 : r->usage.limit_bytes      ? "raise that limit"
                                             : "free some");
        return;
    }
    r->row->status = ROW_STATUS_ERROR;
    snprintf(r->row->detail, sizeof r->row->detail,
             "the measuring process died of signal %d (%s) while in phase '%s'", signal,
             strsignal(signal), r->phase);
}

static void judge_completed(struct point_run *r)
{
    static const size_t enough[] = {[POINT_DECODE] = POINT_MIN_DECODE,
                                    [POINT_PREFILL] = POINT_MIN_PREFILL,
                                    [POINT_SPECULATE] = POINT_MIN_SPECULATE};
    const bool cut = r->settings.kind == POINT_SPECULATE &&
                     (double)r->row->spec_tokens < r->facts.tokens_per_sample;

    if (!cut && (r->samples.n >= enough[r->settings.kind] ||
                 r->samples.n >= (size_t)r->settings.n_tokens)) {
        r->row->status = ROW_STATUS_OK;
        return;
    }
    r->row->status = ROW_STATUS_PARTIAL;
    if (!*r->row->detail && cut)
        snprintf(r->row->detail, sizeof r->row->detail,
                 "the budget of %g s ended it after %lld of %.0f tokens of the text",
                 r->settings.budget_s, (long long)r->row->spec_tokens,
                 r->facts.tokens_per_sample);
    if (!*r->row->detail)
        snprintf(r->row->detail, sizeof r->row->detail,
                 "the budget of %g s ended it after %zu sample%s", r->settings.budget_s,
                 r->samples.n, r->samples.n == 1 ? "" : "s");
}

/* A point that runs although it does not fit gets a note. */
static void report_no_fit(struct point_run *r)
{
    snprintf(
        r->row->detail, sizeof r->row->detail,
        "does not fit: %s of weights, KV cache and scratch in %s; %zu sample%s while "
        "paging from disk",
        bytes_text((uint64_t)r->row->mem_planned_bytes + RESERVE_OWN_BYTES).text,
        bytes_text(point_room(r)).text, r->samples.n, plural(r->samples.n, "s"));
}

/* More threads than CPUs are measured as requested, with a note. */
static void doubt_threads(struct point_run *r)
{
    const struct point *p = &r->settings;

    if (!*r->row->detail)
        topology_doubts_threads(r->topo, p->setup.n_threads,
                                p->setup.explicit_cpus ? p->setup.cpus : NULL,
                                r->row->detail, sizeof r->row->detail);
}

/* The NUMA nodes that the point's threads are pinned to. */
static int count_nodes(const struct point_run *r)
{
    const struct model_setup *setup = &r->settings.setup;
    bool seen[TOPO_MAX_CPUS] = {false};
    int n = 0;

    for (int i = 0; setup->explicit_cpus && i < setup->n_threads; i++)
        for (int k = 0; k < r->topo->n_cpus; k++) {
            const struct topo_cpu *c = &r->topo->cpu[k];

            if (c->os_id != setup->cpus[i] || seen[c->node])
                continue;
            seen[c->node] = true;
            n++;
        }
    return n;
}

/* Most of the weights on one node, and threads on several: what one node's memory gives
 * limits all of them. A file that was cached stays where it was read to. */
static void doubt_nodes(struct point_run *r)
{
    const int n_nodes = count_nodes(r);
    struct row *row = r->row;
    int node, share, end;

    if (r->topo->n_nodes < 2)
        row->mem_nodes[0] = '\0';
    if (n_nodes < 2 ||
        (row->status != ROW_STATUS_OK && row->status != ROW_STATUS_PARTIAL))
        return;
    for (const char *at = row->mem_nodes;
         sscanf(at, "%d:%d%n", &node, &share, &end) == 2; at += end)
        if (share >= MANY_ON_ONE_PCT)
            text_append(row->detail, sizeof row->detail,
                        "%s%d %% of the weights lie on NUMA node %d, and the threads "
                        "run on %d nodes%s",
                        *row->detail ? "; " : "", share, node, n_nodes,
                        r->settings.setup.residency == WEIGHTS_MMAP
                            ? ": a file that was cached stays where it is"
                            : "");
}

/* Only the speed is measured, not whether the model was made for this depth. A remark
 * on that speed stays behind this one. */
static void doubt_depth(struct point_run *r)
{
    struct row *row = r->row;
    const int64_t depth = row->kind == POINT_PREFILL ? row->n_prompt : row->ctx;
    char remark[sizeof row->detail];

    if (row->model_ctx <= 0 || depth <= row->model_ctx ||
        (*row->detail && row->status != ROW_STATUS_OK))
        return;
    snprintf(remark, sizeof remark, "%s", row->detail);
    snprintf(row->detail, sizeof row->detail,
             "%s of %lld is beyond the %lld tokens of context that the model was made "
             "for%s%.100s",
             row->kind == POINT_PREFILL ? "a prompt" : "a depth", (long long)depth,
             (long long)row->model_ctx, *remark ? "; " : "", remark);
}

/* The point's status by the worker's end. */
static void judge_end(struct point_run *r)
{
    const struct worker_client *w = &r->worker;
    struct row *row = r->row;

    if (w->end == WORKER_INTERRUPTED) {
        r->row->status = ROW_STATUS_INTERRUPTED;
    } else if (w->end == WORKER_SILENT) {
        r->row->status = ROW_STATUS_PARTIAL;
        snprintf(row->detail, sizeof row->detail,
                 "ended: no progress for %g s in phase '%s', after %zu sample%s",
                 w->p.timeout_s, r->phase, r->samples.n, plural(r->samples.n, "s"));
    } else if (w->end == WORKER_UNEXPECTED) {
        r->row->status = ROW_STATUS_ERROR;
        snprintf(row->detail, sizeof row->detail,
                 "the measuring process sent something else than an answer in phase "
                 "'%s'",
                 r->phase);
    } else if (WIFSIGNALED(w->wstatus)) {
        judge_killed(r, WTERMSIG(w->wstatus));
    } else if (w->end == WORKER_GAVE_UP) {
        r->row->status =
            w->error_status == ST_NO_MEMORY ? ROW_STATUS_NO_FIT : ROW_STATUS_ERROR;
        snprintf(row->detail, sizeof row->detail, "%.190s", w->error);
    } else if (w->end != WORKER_RUNS || WEXITSTATUS(w->wstatus)) {
        r->row->status = ROW_STATUS_ERROR;
        snprintf(row->detail, sizeof row->detail,
                 "the measuring process ended with exit code %d in phase '%s'",
                 WEXITSTATUS(w->wstatus), r->phase);
    } else {
        judge_completed(r);
    }
}

/* What must stay resident: that of the worker itself, as it has reported, or of its
 * group, where no other process and no buffer but the model's was in that, whichever
 * saw more; and the weights that are mapped, which a token reads again and again. Not
 * known of a point that was not measured. */
static void note_resident(struct point_run *r)
{
    struct row *row = r->row;
    int64_t most = row->mem_resident_bytes;

    row->mem_resident_bytes = FIELD_NO_INT;
    if (row->status != ROW_STATUS_OK && row->status != ROW_STATUS_PARTIAL)
        return;
    if (r->sandbox && !sandbox_is_adopted(r->sandbox) &&
        !(r->facts.stand_in_bytes > 0) && (int64_t)r->resident_bytes > most)
        most = (int64_t)r->resident_bytes;
    if (most <= 0)
        return;
    if (r->settings.setup.residency == WEIGHTS_MMAP)
        most += (int64_t)(r->weight_bytes - r->rows_bytes);
    row->mem_resident_bytes = most;
}

void point_conclude(struct point_run *r)
{
    struct row *row = r->row;

    row->cached_bytes = r->cached_bytes;
    row->roof_disk_gbps = r->roof_disk_gbps;
    if (r->sandbox) {
        row->mem_enforced_bytes = (int64_t)r->usage.limit_bytes;
        row->mem_peak_bytes = (int64_t)r->peak_bytes;
    } else {
        if (r->usage.limit_bytes)
            row->mem_enforced_bytes = (int64_t)r->usage.limit_bytes;
        if (r->worker.usage.ru_maxrss)
            row->mem_peak_bytes = (int64_t)r->worker.usage.ru_maxrss * 1024;
    }
    point_judge(row, &r->samples, &r->facts, r->has_noise ? &r->noise : NULL);
    judge_end(r);
    note_resident(r);
    if (!r->fits && r->settings.setup.residency == WEIGHTS_MMAP &&
        (row->status == ROW_STATUS_OK || row->status == ROW_STATUS_PARTIAL))
        report_no_fit(r);
    doubt_threads(r);
    doubt_nodes(r);
    doubt_depth(r);
    if (row->status == ROW_STATUS_OK || row->status == ROW_STATUS_PARTIAL) {
        if (r->has_noise)
            noise_remark(&r->noise, row->detail, sizeof row->detail);
        measuring_remark(row->detail, sizeof row->detail);
    }
}
