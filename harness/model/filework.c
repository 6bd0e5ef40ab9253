/* SPDX-License-Identifier: MIT
 *
 * filework.c - threads and progress of commands that make a file of a model; packing
 */
#include "harness/model/filework.h"

#include <stdio.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/machine/topology.h"
#include "engine/base/clock.h"
#include "engine/pack/pack.h"
#include "harness/machine/fence/fence.h"
#include "harness/model/modelref.h"

enum status filework_pool(struct thread_pool **pool, int n_threads, struct err *err)
{
    struct topology topo;

    if (!n_threads) {
        const enum status st = topology_read(&topo, "", err);

        if (st)
            return st;
        n_threads = topo.threads_default;
    }
    return thread_pool_start(pool, n_threads, NULL, err);
}

bool filework_progress(void *bar, uint64_t done, uint64_t total)
{
    char detail[64];

    snprintf(detail, sizeof detail, "%s of %s", bytes_text(done).text,
             bytes_text(total).text);
    progress_update(bar, (double)done / (double)total, detail);
    return interrupted();
}

/* ---- packing --------------------------------------------------------------------- */

static double seconds_since(uint64_t begin_ns)
{
    return (double)(clock_ns() - begin_ns) * 1e-9;
}

static enum status write_file(const struct packing_job *job, const struct gguf *g,
                              struct err *err)
{
    const uint64_t begin = clock_ns();
    struct thread_pool *pool = NULL;
    struct pack_result r;
    struct progress bar;
    enum status st = filework_pool(&pool, job->n_threads, err);

    if (st)
        return st;
    progress_begin(&bar, "packing");
    st = pack_write(&r, g, job->out, pool, filework_progress, &bar, err);
    progress_end(&bar);
    thread_pool_stop(pool);
    if (!st)
        printf("%s: %s, %zu of %zu tensors in panels (%s), in %.1f s\n",
               format_path(job->out).text, bytes_text(r.bytes).text, r.n_in_panels,
               r.n_tensors, bytes_text(r.panel_bytes).text, seconds_since(begin));
    return st;
}

static enum status verify_file(const char *path, struct err *err)
{
    const uint64_t begin = clock_ns();
    struct pack_result r;
    struct progress bar;
    struct gguf *g;
    enum status st = gguf_open(&g, path, err);

    if (st)
        return st;
    progress_begin(&bar, "verifying");
    st = pack_verify(&r, g, filework_progress, &bar, err);
    progress_end(&bar);
    gguf_close(g);
    if (!st)
        printf("%s: all checksums match, %zu tensors in %s, in %.1f s\n",
               format_path(path).text, r.n_tensors, bytes_text(r.bytes).text,
               seconds_since(begin));
    return st;
}

/* Open the model behind the fence; a synthetic one is made before. */
static enum status open_model(struct gguf **g, const struct packing_job *job,
                              struct err *err)
{
    struct modelref ref;

    if (modelref_parse(&ref, job->model, job->cache_dir, err) ||
        modelref_check_output(&ref, job->out, err) ||
        modelref_make_file(&ref, NULL, err) || fence_enter_calls(-1, err))
        return err->code;
    return modelref_open(&ref, g, err);
}

enum status packing_run(const struct packing_job *job, struct err *err)
{
    struct gguf *g;
    enum status st;

    if (!job->out)
        return fence_enter_calls(-1, err) ? err->code : verify_file(job->model, err);
    if (open_model(&g, job, err))
        return err->code;
    st = write_file(job, g, err);
    gguf_close(g);
    return st || !job->verify ? st : verify_file(job->out, err);
}
