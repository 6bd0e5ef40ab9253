/* SPDX-License-Identifier: MIT
 *
 * test_fence_tiles.c - a prompt by tiles (AMX-INT8) behind the fence, while signals
 * arrive
 *
 * A child puts up the fence, opens a model and evaluates a prompt by vectors and by
 * tiles. Where the CPU has AVX-512 VBMI and no tiles, amx_trap.h stands in for them:
 * the engine's own objects run, and what the fence must let through is a signal for
 * each instruction.
 */
#include "tests/support/nmse.h"
#include "tests/support/test.h"

#include <sys/time.h>
#include <sys/wait.h>

#include "engine/engine_impl.h"
#include "engine/forward/forward_impl.h"
#include "engine/forward/tile_rule.h"
#include "harness/machine/fence/fence.h"
#if defined(__x86_64__)
#include "tests/support/traps/amx_trap.h"
#endif

enum { MAX_VOCAB = 1024, TILES = 1u << KERN_ISA_amx_int8 };

struct prompt {
    const char *model; /* of tests/data/models */
    enum slm_sums sums;
    size_t n; /* tokens: a tile of 16 columns and a part of one, or as int8 sums need */
    bool same; /* the logits, bit for bit; else a sum's order may differ */
};

/* What the child found, in memory that it shares. */
struct found {
    struct fence_state fence;
    bool takes_tiles[2], leaves_tiles;
    size_t n_vocab;
    float vectors[MAX_VOCAB], tiles[MAX_VOCAB];
    int n_signals, n_in_use;
    struct err err;
};

static struct found *found;

static bool in_use(void)
{
#if defined(__x86_64__)
    return amx_state.is_configured;
#else
    return false;
#endif
}

static void on_alarm(int signum)
{
    (void)signum;
    found->n_signals++;
    found->n_in_use += in_use();
}

/* From two columns on, or never, whatever is faster here. */
static void take_tiles(struct slm *m, bool takes)
{
    struct forward *f = m->forward;
    struct slm_tuning tuning;

    f->isa_mask |= TILES;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        const bool has = kern_best(KERN_OP_gemm, fmt, TILES) != NULL;

        for (int sums = 0; sums <= (int)f->prefill_sums; sums++)
            f->tiles_from[sums][fmt] = takes && has ? 2 : TILES_NEVER;
    }
    forward_get_tuning(f, &tuning);
    forward_tune(f, &tuning);
}

static enum status evaluate(struct slm *m, size_t n, float *logits, struct err *err)
{
    int32_t tokens[SUMS_INT8_COLUMNS];
    enum status st;

    for (size_t i = 0; i < n; i++)
        tokens[i] = (int32_t)(i * 37 % found->n_vocab);
    slm_truncate(m, 0);
    st = slm_eval(m, tokens, n, SLM_LOGITS_LAST, err);
    if (!st)
        memcpy(logits, slm_logits(m, 0), found->n_vocab * sizeof *logits);
    return st;
}

static enum status run_behind_fence(const struct slm_params *p, size_t n,
                                    struct err *err)
{
    const struct fence fence = {.reads = &p->path, .n_reads = 1, .keeps_user = true};
    const struct itimerval often = {{0, 200}, {0, 200}};
    struct slm *m;

    if (fence_enter(&fence, &found->fence, err) || slm_open(&m, p, err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, err))
        return err->code;
    found->n_vocab = (size_t)slm_info(m)->n_vocab;
    if (found->n_vocab > MAX_VOCAB)
        return err_set(err, ST_INPUT, "too many tokens");
    take_tiles(m, false);
    found->takes_tiles[0] = slm_takes_tiles(m, n);
    if (evaluate(m, n, found->vectors, err))
        return err->code;
    take_tiles(m, true);
    found->takes_tiles[1] = slm_takes_tiles(m, n);
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    do
        if (evaluate(m, n, found->tiles, err))
            return err->code;
    while (found->n_signals == 0);
    found->leaves_tiles = in_use();
    slm_close(m);
    return ST_OK;
}

static void check(const struct prompt *prompt)
{
    char path[512];
    struct slm_params p = slm_params_default();
    const bool emulated = (p.isa_mask & TILES) == 0;
    int status;
    pid_t child;

    if (kern_best(KERN_OP_gemm_x16_int8, KERN_FMT_q4_0, TILES) == NULL ||
        (emulated && (p.isa_mask >> KERN_ISA_avx512vbmi & 1) == 0))
        skip();
    snprintf(path, sizeof path, TEST_DATA "models/%s.gguf", prompt->model);
    p.path = path;
    p.residency = WEIGHTS_PACKED;
    p.n_ctx = SUMS_INT8_COLUMNS;
    p.prefill_sums = prompt->sums;
    found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(found != MAP_FAILED);
    found->err = (struct err)ERR_INIT;
    child = test_fork();
    if (child == 0) {
#if defined(__x86_64__)
        if (emulated)
            amx_trap();
#endif
        _exit(run_behind_fence(&p, prompt->n, &found->err) != ST_OK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("%s: status %d: %s", prompt->model, status, found->err.msg);
    assert_false(found->takes_tiles[0]);
    assert_true(found->takes_tiles[1]);
    assert_true(!emulated || found->n_in_use > 0);
    assert_false(found->leaves_tiles);
    const size_t bytes = found->n_vocab * sizeof(float);
    const double e = nmse(found->tiles, found->vectors, found->n_vocab);
    if (prompt->same ? memcmp(found->tiles, found->vectors, bytes) != 0 : !(e < 1e-6))
        fail_msg("%s: the logits differ by %g", prompt->model, e);
    munmap(found, sizeof *found);
}

static void prompts_by_tiles_and_by_vectors_agree(void **state)
{
    static const struct prompt prompts[] = {
        {"llama", SLM_SUMS_EXACT, 21, true}, /* blocks of 32 */
        {"Q4_K_M", SLM_SUMS_EXACT, 21, false},
        {"Q4_K_M", SLM_SUMS_INT8, SUMS_INT8_COLUMNS, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof prompts / sizeof prompts[0]; i++)
        check(&prompts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_by_tiles_and_by_vectors_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
