/* SPDX-License-Identifier: MIT
 *
 * test_point_chunk.c - steps of several sequences, and of a prompt beside them: their
 * room, what they read and compute, and whether plain steps are between them
 */
#include "tests/support/stream_model.h"

#include "harness/measure/worker/point/point_worker.h"

static struct point point_of(int ctx, int n_sequences, int n_chunk)
{
    struct point p;

    point_init(&p);
    p.ctx = ctx;
    p.n_sequences = n_sequences;
    p.n_chunk = n_chunk;
    return p;
}

static void prompts_are_whole_chunks(void **state)
{
    static const int cases[][2] = {{0, 0},     {1, 512},   {3, 513},
                                   {200, 600}, {512, 512}, {700, 700}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct point p = point_of(0, 1, cases[i][0]);

        assert_int_equal(point_chunk_prompt(&p), cases[i][1]);
        assert_int_equal(point_params(&p, 0).n_ctx, cases[i][1] ? cases[i][1] : 1);
    }
    const struct point deep = point_of(600, 1, 200);
    assert_int_equal(point_params(&deep, 0).n_ctx, 601);
}

static void threads_of_a_chunk_are_those_of_prefill(void **state)
{
    struct point p = point_of(0, 2, 0);

    (void)state;
    p.setup.n_threads = 1;
    assert_int_equal(point_step_threads(&p), 1);
    p.setup.n_threads_prefill = 3;
    assert_int_equal(point_step_threads(&p), 1);
    p.n_chunk = 8;
    assert_int_equal(point_step_threads(&p), 3);
    p.setup.n_threads_prefill = 0;
    assert_int_equal(point_step_threads(&p), 1);
}

/* Pages: those in common once; a ring's also where it begins, and goes on. */
static void room_of_sequences(void **state)
{
    struct slm_params params = slm_params_default();
    struct point p = point_of(1024, 4, 0);

    (void)state;
    params.n_batch = 8;
    params.n_logits = 1;
    p.n_shared = 700;
    point_set_sequences(&p, &params);
    assert_int_equal(params.n_sequences, 4);
    assert_int_equal(params.n_pool, (2 + 4 * 3) * SLM_PAGE);
    assert_int_equal(params.n_logits, 4);
    assert_int_equal(params.n_batch, 8);
    p.n_chunk = 200;
    point_set_sequences(&p, &params);
    assert_int_equal(params.n_sequences, 5);
    assert_int_equal(params.n_pool, (2 + 4 * 3 + 3) * SLM_PAGE);
    assert_int_equal(params.n_logits, 5);
    assert_int_equal(params.n_batch, 204);
    p.setup.kv_window = 16;
    point_set_sequences(&p, &params);
    assert_int_equal(params.n_pool, (2 + 4 * 5 + 3) * SLM_PAGE);
    params.n_batch = 0; /* as many as usual */
    point_set_sequences(&p, &params);
    assert_int_equal(params.n_batch, 0);
}

/* Weights once, keys and values of each sequence, and those that a chunk has read on
 * the mean of a prompt; logits of each sequence, and of the last chunk of a prompt. */
static void what_a_step_reads_and_computes(void **state)
{
    struct slm_info info = {.n_layers = 1,
                            .n_attends = 1,
                            .weight_token_bytes = 1000,
                            .kv_read_bytes = 10,
                            .weight_token_macs = 100,
                            .output_macs = 30};
    const struct point one = point_of(50, 1, 0), four = point_of(50, 4, 0);
    const struct point chunk = point_of(50, 4, 128);

    (void)state;
    assert_float_equal(point_step_bytes(&one, &info), 1500, 1e-9);
    assert_float_equal(point_step_bytes(&four, &info), 1000 + 4 * 500, 1e-9);
    assert_float_equal(point_step_bytes(&chunk, &info), 3000 + 320 * 10, 1e-9);
    assert_float_equal(point_step_ops(&one, &info), 200, 1e-9);
    assert_float_equal(point_step_ops(&four, &info), 800, 1e-9);
    assert_float_equal(point_step_ops(&chunk, &info), 2 * (70 * 132 + 30 * 4.25), 1e-9);
    /* of four experts each token takes two */
    info.n_experts = 4;
    info.n_experts_used = 2;
    info.expert_bytes = 100;
    assert_float_equal(point_step_bytes(&one, &info), 1500, 1e-9);
    assert_float_equal(point_step_bytes(&four, &info), 3000 + 175, 1e-9);
    assert_float_equal(point_step_bytes(&chunk, &info), 3000 + 200 + 320 * 10, 1e-6);
}

static bool takes_plain(const struct point *p, struct slm *m)
{
    struct point_worker *c = calloc(1, sizeof *c);
    struct err err = ERR_INIT;
    bool takes;

    assert_non_null(c);
    c->p = p;
    c->model = m;
    assert_int_equal(point_chunk_begin(c, &err), ST_OK);
    takes = c->measured.takes_plain;
    assert_int_equal(c->plain_ms != NULL, takes);
    point_chunk_end(c);
    assert_false(c->measured.takes_plain || c->plain_ms);
    free(c);
    return takes;
}

/* Not where what they read from disk, or compute, would be taken for the samples'. */
static void plain_steps_are_taken_in_memory(void **state)
{
    struct point chunk = point_of(0, 2, 4), plain = point_of(0, 2, 0);

    (void)state;
    for (int experts = 0; experts < 2; experts++) {
        char path[] = "/tmp/test_point_chunk.XXXXXX";
        struct synth_shape shape = deep_shape_of(experts);
        struct slm_params p = params_of(path, WEIGHTS_PACKED, isa_usable());
        struct slm *m;

        make_file(path, &shape, QUANTMIX_Q8_0);
        m = open_model(&p);
        assert_true(takes_plain(&chunk, m));
        assert_false(takes_plain(&plain, m));
        chunk.profile = true;
        assert_false(takes_plain(&chunk, m));
        chunk.profile = false;
        slm_close(m);
        m = open_streamed(p, experts);
        assert_false(takes_plain(&chunk, m));
        slm_close(m);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_are_whole_chunks),
        cmocka_unit_test(threads_of_a_chunk_are_those_of_prefill),
        cmocka_unit_test(room_of_sequences),
        cmocka_unit_test(what_a_step_reads_and_computes),
        cmocka_unit_test(plain_steps_are_taken_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
