/* SPDX-License-Identifier: MIT
 *
 * served_drafts.h - a model and a scheduler whose completions draft, for its tests
 */
#ifndef SLM_TESTS_SERVED_DRAFTS_H
#define SLM_TESTS_SERVED_DRAFTS_H

#include "tests/harness/serve/scheduler/served_check.h"

#define MTP_MODEL TEST_DATA "models/zoo/qwen35-mtp.gguf"
#define STORIES   TEST_DATA "models/stories260K-f32.gguf"

enum { N_USERS = 4, N_SEQUENCES = 3, N_CTX = 1000, N_TEXT = 60 };

struct served_setting {
    const char *path;
    const unsigned char *image; /* [image_bytes], instead */
    size_t image_bytes;
    enum session_drafts drafts;
    const char *draft;                /* the file of a draft model, */
    const unsigned char *draft_image; /* or [draft_bytes] */
    size_t draft_bytes;
    int n_pages; /* 0: enough */
    int n_users, n_text;
    bool alike; /* prompts begin alike, and what they begin with is kept */
    bool plain; /* texts are greedy or drawn, without anything else */
    bool skips; /* the draft model reads the end of each text alone */
    struct grammar *grammar;
};

static inline void open_served(struct served *d, const struct served_setting *set)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;

    *d = (struct served){.m = NULL};
    p.path = set->image ? NULL : set->path;
    p.image = set->image;
    p.image_bytes = set->image_bytes;
    p.residency = set->image ? WEIGHTS_MMAP : WEIGHTS_PACKED;
    p.n_threads = 2;
    p.n_ctx = N_CTX;
    p.n_batch = 64;
    p.n_sequences = N_SEQUENCES;
    p.n_logits = N_SEQUENCES + SCHEDULER_MAX_DRAFTED;
    p.n_pool = (size_t)set->n_pages * SLM_PAGE;
    p.n_checkpoints = set->alike ? 4 : 0;
    p.mtp = set->drafts == DRAFTS_MTP;
    if (slm_open(&d->m, &p, &err) ||
        weights_preload(slm_weights(d->m), slm_thread_pool(d->m), NULL, NULL, &err) ||
        tokenizer_open(&d->tok, slm_gguf(d->m), &err))
        fail_msg("%s", err.msg);
    if (set->drafts != DRAFTS_MODEL)
        return;
    p.path = set->draft_image ? NULL : set->draft;
    p.image = set->draft_image;
    p.image_bytes = set->draft_bytes;
    p.residency = WEIGHTS_MMAP;
    p.n_logits = N_SEQUENCES;
    if (slm_open(&d->draft, &p, &err))
        fail_msg("%s", err.msg);
}

static inline struct scheduler *open_scheduler(const struct served *d,
                                               const struct served_setting *set,
                                               bool always_drafts)
{
    const struct scheduler_params p = {.m = d->m,
                                       .tok = d->tok,
                                       .n_queue = N_USERS,
                                       .drafts = set->drafts,
                                       .draft = d->draft,
                                       .draft_tok = d->tok,
                                       .always_drafts = always_drafts,
                                       .keep_prefixes = set->alike};
    struct scheduler *s = NULL;
    struct err err = ERR_INIT;

    if (scheduler_open(&s, &p, &err))
        fail_msg("%s", err.msg);
    return s;
}

/* Prompts that repeat, so that lookup finds something. */
static inline int fill_prompt(int32_t prompt[300], int i,
                              const struct served_setting *set)
{
    const int n = set->n_pages ? 200 + 30 * i : 20 + 25 * i;

    for (int at = 0; at < n; at++)
        prompt[at] = 10 + at % 24 * 11 + (set->alike && at < n - 5 ? 0 : 7 * i) % 40;
    return n;
}

#endif
