/* SPDX-License-Identifier: MIT
 *
 * test_pool_plan.c - room for all that sequences may have, or for what memory holds
 */
#include "tests/support/models/kept_shapes.h"
#include "tests/support/synth_file.h"
#include "tests/support/synth_image.h"

#include "harness/serve/http/pool_plan.h"
#include "harness/serve/http/request_memory.h"

static struct pool_plan plan_of(const struct synth_image *x, const struct slm_params *p,
                                uint64_t kv_bytes)
{
    struct err err = ERR_INIT;
    struct pool_plan plan;

    if (pool_plan_make(&plan, x->g, p, kv_bytes, NULL, &err))
        fail_msg("%s", err.msg);
    return plan;
}

/* What requests may take is none of the model's, but for an eighth at most. */
static void room_for_requests(void **state)
{
    (void)state;
    assert_int_equal(pool_plan_memory(UINT64_C(8) << 30, UINT64_C(384) << 20),
                     (UINT64_C(8) << 30) - (UINT64_C(384) << 20));
    assert_int_equal(pool_plan_memory(UINT64_C(1) << 30, UINT64_C(384) << 20),
                     UINT64_C(7) << 27);
    assert_int_equal(pool_plan_memory(0, 1), 0);
}

/* All limits together keep what the plan leaves them, on a machine of any size; none of
 * one request is larger than that of all. */
static void requests_keep_the_plan(void **state)
{
    (void)state;
    for (uint64_t body = 1 << 10; body <= UINT64_C(1) << 55; body *= 8) {
        const struct request_memory all = request_memory_within(body, 0);

        for (uint64_t given = 32 << 20; given <= UINT64_C(1) << 34; given *= 2) {
            const uint64_t rest = pool_plan_memory(given, request_memory_bytes(&all));
            const struct request_memory m = request_memory_within(body, given - rest);

            assert_int_equal(request_memory_bytes(&m), given - rest);
            assert_true(m.body > 0 && m.body <= body && m.body <= m.bodies);
            assert_true(m.answer > 0 && m.answer <= m.answers);
            assert_true(m.stream > 0 && m.stream <= m.streams && m.schemas > 0);
        }
    }
}

/* A context of each in whole pages; with a window of the cache a ring of each, however
 * short the context is, and none is longer. */
static void room_for_all(void **state)
{
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, 5);
    struct slm_params p = synth_image_params(&x, 1, 700, 64);

    (void)state;
    p.paged = true;
    p.memory_bytes = UINT64_C(1) << 30;
    for (int n = 1; n <= 4; n += 3) {
        p.n_sequences = n;
        p.n_ctx = 700;
        p.kv_window = 0;
        assert_int_equal(plan_of(&x, &p, 0).n_pool, n * 3 * SLM_PAGE);
        assert_int_equal(plan_of(&x, &p, 0).n_max, n * 3 * SLM_PAGE);
        p.kv_window = 300; /* 1024 positions to go back by, two panels more */
        for (p.n_ctx = 200; p.n_ctx <= 3000; p.n_ctx *= 10) {
            assert_int_equal(plan_of(&x, &p, 0).n_pool, n * 6 * SLM_PAGE);
            assert_int_equal(plan_of(&x, &p, 0).n_max, n * 6 * SLM_PAGE);
        }
    }
    synth_image_drop(&x);
}

/* Of three layers: at least a sequence of 700 positions, and a page of each other. */
static void room_within_a_limit(void **state)
{
    const uint64_t page = (uint64_t)3 * SMALL_POS_BYTES * SLM_PAGE;
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, 5);
    struct slm_params p = synth_image_params(&x, 1, 700, 64);
    struct err err = ERR_INIT;
    struct pool_plan plan;

    (void)state;
    p.n_sequences = 4;
    p.memory_bytes = UINT64_C(1) << 30;
    for (size_t n = 6; n <= 12; n++) {
        plan = plan_of(&x, &p, n * page + page / 2);
        assert_int_equal(plan.n_pool, n * SLM_PAGE);
        assert_int_equal(plan.kv_bytes, n * page);
        assert_int_equal(plan.max_bytes, 12 * page);
    }
    assert_int_equal(plan_of(&x, &p, 100 * page).n_pool, 12 * SLM_PAGE);
    assert_int_equal(pool_plan_make(&plan, x.g, &p, 6 * page - 1, NULL, &err),
                     ST_NO_MEMORY);
    synth_image_drop(&x);
}

/* Weights that are to be streamed need room for a slot beside any pool: a pool that
 * leaves them less does not fit, which is no reason to refuse a smaller one. */
static void room_beside_streamed_weights(void **state)
{
    struct slm_params p = slm_params_default();
    struct synth_shape shape = tiny;
    char path[] = "/tmp/test_pool_plan.XXXXXX";
    struct gguf *g = NULL;
    struct err err = ERR_INIT;
    struct pool_plan plan;
    struct slm_info info;

    (void)state;
    make_file(path, &shape, QUANTMIX_Q8_0);
    if (gguf_open(&g, path, &err))
        fail_msg("%s", err.msg);
    p.path = path;
    p.n_batch = p.n_logits = 8;
    p.n_ctx = 1024;
    p.n_sequences = 4;
    p.n_pool = 10 * SLM_PAGE;
    assert_int_equal(slm_plan(&info, g, &p, &err), ST_OK);
    p.residency = WEIGHTS_STREAM;
    p.memory_bytes = info.kv_bytes + info.scratch_bytes + info.stream_min_bytes;
    if (pool_plan_make(&plan, g, &p, 0, NULL, &err))
        fail_msg("%s", err.msg);
    assert_true(plan.n_pool >= 7 * SLM_PAGE && plan.n_pool <= 10 * SLM_PAGE);
    assert_int_equal(plan.n_max, 16 * SLM_PAGE);
    assert_int_equal(plan.max_bytes * 10, info.kv_bytes * 16);
    gguf_close(g);
    unlink(path);
}

/* Checkpoints take as much memory as the sequences, or less where there is less; for
 * the first of them the pool gives some of its pages. Models that need none get none.
 */
static void room_for_checkpoints(void **state)
{
    (void)state;
    for (int kind = -1; kind < N_KEPT_SHAPES; kind++) {
        const struct synth_shape shape =
            kind < 0 ? small_plain : kept_shape((enum kept_shape)kind);
        struct synth_image x = synth_image_make(&shape, QUANTMIX_F32, 5);
        struct slm_params p = synth_image_params(&x, 1, 700, 64);
        struct pool_plan none, all;
        struct slm_info info;
        struct err err = ERR_INIT;

        p.n_sequences = 4;
        p.paged = true;
        p.memory_bytes = UINT64_C(1) << 30;
        none = plan_of(&x, &p, 0);
        assert_int_equal(none.n_checkpoints, 0);
        p.n_checkpoints = 1;
        all = plan_of(&x, &p, 0);
        assert_int_equal(slm_plan(&info, x.g, &p, &err), ST_OK);
        assert_int_equal(all.n_pool, none.n_pool);
        assert_int_equal(all.max_bytes, none.max_bytes);
        assert_int_equal(all.kv_bytes - none.kv_bytes,
                         (uint64_t)all.n_checkpoints * info.checkpoint_bytes);
        if (kind < 0)
            assert_int_equal(all.n_checkpoints, 0);
        else if (all.n_checkpoints > POOL_MIN_CHECKPOINTS)
            assert_true(all.kv_bytes <= 2 * none.kv_bytes);
        else
            assert_int_equal(all.n_checkpoints, POOL_MIN_CHECKPOINTS);
        for (uint64_t limit = all.kv_bytes; kind >= 0; limit -= limit / 7) {
            struct pool_plan some;

            if (pool_plan_make(&some, x.g, &p, limit, NULL, &err))
                break;
            assert_true(some.kv_bytes <= limit);
            assert_true(some.n_checkpoints <= all.n_checkpoints);
            p.n_checkpoints = 0;
            none = plan_of(&x, &p, limit);
            p.n_checkpoints = 1;
            assert_true(some.n_pool <= none.n_pool &&
                        (some.n_pool == none.n_pool ||
                         some.n_checkpoints <= POOL_MIN_CHECKPOINTS));
            assert_true(some.n_pool >= 6 * SLM_PAGE ||
                        !kept_has_pages((enum kept_shape)kind));
            assert_true(4 * some.n_pool >= 3 * none.n_pool);
        }
        synth_image_drop(&x);
    }
}

/* A draft model has as many positions, in the same memory and under the same limit. */
static void room_next_to_a_draft_model(void **state)
{
    const uint64_t page = (uint64_t)3 * SMALL_POS_BYTES * SLM_PAGE;
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, 5);
    struct slm_params p = synth_image_params(&x, 1, 700, 64);
    struct pool_draft draft = {.g = x.g};
    struct err err = ERR_INIT;
    struct pool_plan alone, plan;

    (void)state;
    p.n_sequences = 4;
    p.memory_bytes = UINT64_C(1) << 30;
    draft.params = p;
    alone = plan_of(&x, &p, 8 * page);
    assert_int_equal(pool_plan_make(&plan, x.g, &p, 16 * page, &draft, &err), ST_OK);
    assert_int_equal(plan.n_pool, 8 * SLM_PAGE);
    assert_int_equal(plan.kv_bytes, 8 * page);
    assert_int_equal(draft.weights_bytes, alone.weights_bytes);
    assert_int_equal(draft.other_bytes, alone.kv_bytes + alone.scratch_bytes);
    assert_int_equal(pool_plan_make(&plan, x.g, &p, 12 * page - 1, &draft, &err),
                     ST_NO_MEMORY);
    p.memory_bytes =
        2 * (alone.weights_bytes + alone.kv_bytes + alone.scratch_bytes) + page;
    assert_int_equal(pool_plan_make(&plan, x.g, &p, 0, &draft, &err), ST_OK);
    assert_int_equal(plan.n_pool, 8 * SLM_PAGE);
    p.memory_bytes /= 2;
    assert_int_equal(plan_of(&x, &p, 0).n_pool, 8 * SLM_PAGE);
    synth_image_drop(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_for_requests),
        cmocka_unit_test(requests_keep_the_plan),
        cmocka_unit_test(room_for_all),
        cmocka_unit_test(room_within_a_limit),
        cmocka_unit_test(room_beside_streamed_weights),
        cmocka_unit_test(room_for_checkpoints),
        cmocka_unit_test(room_next_to_a_draft_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
