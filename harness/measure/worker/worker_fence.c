/* SPDX-License-Identifier: MIT
 *
 * worker_fence.c - a worker gives up what a model's files could abuse
 */
#include "harness/measure/worker/worker.h"

#include "engine/hf/hf.h"
#include "harness/base/program.h"
#include "harness/model/model_fence.h"

static enum status add_path(void *arg, const char *path, struct err *err)
{
    return path_list_add(arg, path, err);
}

/* A folder is read as one, with what its links lead to. */
static enum status add_model(struct path_list *reads, const struct modelref *model,
                             struct err *err)
{
    if (!hf_is_folder(model->path))
        return modelref_files(model, reads, err);
    if (path_list_add(reads, model->path, err))
        return err->code;
    return hf_links(model->path, add_path, reads, err);
}

/* Shapes of synthetic models, and test prompts. */
static enum status add_data(struct path_list *reads, struct err *err)
{
    static const char *const kinds[] = {"models", "texts"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (data_dirs_add(reads, kinds[i], err))
            return err->code;
    return ST_OK;
}

static enum status enter(const struct modelref *model, const struct modelref *draft,
                         const char *also, int listener, struct err *err)
{
    static bool fenced;
    struct path_list reads = {0};
    struct fence_state state;
    enum status st = ST_OK;

    if (fenced)
        return ST_OK;
    if (add_model(&reads, model, err) || (draft && add_model(&reads, draft, err)) ||
        path_list_add(&reads, also, err) || add_data(&reads, err) ||
        fence_enter(&(struct fence){.reads = (const char *const *)reads.path,
                                    .n_reads = reads.n,
                                    .has_ring = model_ring_fd() >= 0,
                                    .ring = model_ring_fd(),
                                    .serves = listener >= 0,
                                    .listener = listener},
                    &state, err))
        st = err->code;
    path_list_free(&reads);
    fenced = !st;
    return st;
}

enum status worker_fence(const struct modelref *model, const char *text,
                         struct err *err)
{
    return enter(model, NULL, text, -1, err);
}

enum status worker_fence_server(const struct modelref *model,
                                const struct modelref *draft, const char *text,
                                int listener, struct err *err)
{
    return enter(model, draft, text, listener, err);
}
