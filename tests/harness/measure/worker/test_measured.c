/* SPDX-License-Identifier: MIT
 *
 * test_measured.c - where samples begin, which tokens they take, what is left behind
 */
#include "tests/support/test.h"

#include <string.h>
#include <time.h>

#include "harness/measure/worker/measured.h"

#define N_CTX 80

static struct measured measured;

static void open_sequences(int n)
{
    struct model_setup setup = {.residency = WEIGHTS_MEMORY, .seed = MODELREF_SEED};
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;

    p.n_ctx = N_CTX;
    p.n_batch = 8;
    p.n_sequences = n;
    measured_init(&measured, 7);
    if (modelref_parse(&setup.model, "nano:Q4_0", NULL, &err) ||
        measured_open(&measured, &setup, &p, &err) ||
        measured_preload(&measured, UINT64_MAX, &err))
        fail_msg("%s", err.msg);
}

static int open_nano(void **state)
{
    (void)state;
    open_sequences(1);
    return 0;
}

/* Two that are decoded, and one that reads a prompt. */
static int open_three(void **state)
{
    (void)state;
    open_sequences(3);
    return 0;
}

static int open_many(void **state)
{
    (void)state;
    open_sequences(40);
    return 0;
}

static int close_nano(void **state)
{
    (void)state;
    measured_close(&measured);
    return 0;
}

struct seen {
    size_t n, most;
    int n_past[N_CTX];
    int32_t token[N_CTX];
};

static bool see(void *arg, uint64_t ns)
{
    struct seen *seen = arg;

    assert_true(ns > 0);
    seen->n_past[seen->n] = slm_n_past(measured.m);
    seen->token[seen->n++] = measured.tokens[0];
    return seen->n < seen->most;
}

static struct seen take(struct measured_step *step, size_t n, size_t most)
{
    struct seen seen = {.most = most};
    struct err err = ERR_INIT;

    if (measured_samples(&measured, step, n, see, &seen, &err))
        fail_msg("%s", err.msg);
    return seen;
}

static void a_sample_is_at_its_depth(void **state)
{
    struct measured_step step = {.kind = MEASURED_DECODE, .depth = 5};
    struct err err = ERR_INIT;
    struct seen seen;

    (void)state;
    assert_int_equal(measured_fill(&measured, 5, 0, true, 1, &err), ST_OK);
    assert_int_equal(slm_n_past(measured.m), 5);
    seen = take(&step, 6, 99);
    assert_int_equal(seen.n, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(seen.n_past[i], 5);
    assert_true(seen.token[0] != seen.token[1] || seen.token[1] != seen.token[2]);
    step.kind = MEASURED_PREFILL;
    step.n_tokens = 20; /* more than a pass */
    assert_int_equal(take(&step, 3, 2).n, 2);
    assert_int_equal(slm_n_past(measured.m), 5);
    assert_int_equal(measured_wake(&measured, NULL, &err), ST_OK);
    assert_int_equal(slm_n_past(measured.m), 5);
}

static void decoding_goes_on_within_its_span(void **state)
{
    struct measured_step step = {
        .kind = MEASURED_DECODE, .depth = 3, .span = 4, .again = true, .wakes = true};
    const struct seen first = take(&step, 9, 99);

    (void)state;
    step.last_ns = 1; /* short, however slow this machine is */
    const struct seen second = take(&step, 9, 99);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(first.n_past[i], 3 + 2 + i % 4);
        assert_int_equal(first.token[i], first.token[i % 4]);
        assert_int_equal(second.n_past[i], first.n_past[i]);
        assert_int_equal(second.token[i], first.token[i]);
    }
    /* Long samples go on, unless another step has been taken in between. */
    step.last_ns = MEASURED_LONG_NS;
    assert_int_equal(take(&step, 1, 99).n_past[0], first.n_past[8] + 1);
    struct measured_step other = {
        .kind = MEASURED_PREFILL, .n_tokens = 12, .again = true, .wakes = true};
    assert_int_equal(take(&other, 1, 99).n_past[0], 12);
    step.last_ns = MEASURED_LONG_NS;
    assert_int_equal(take(&step, 1, 99).n_past[0], 5);
}

static enum status sleep_a_little(void *arg, uint64_t *ns, struct err *err)
{
    const struct timespec ms = {0, 1000000};

    if (arg)
        *ns = *(uint64_t *)arg;
    else
        nanosleep(&ms, NULL);
    return arg && !*ns ? err_set(err, ST_CHECK, "no more") : ST_OK;
}

static void a_call_is_timed_or_times_itself(void **state)
{
    struct measured_step step = {.kind = MEASURED_CALL, .call = sleep_a_little};
    struct err err = ERR_INIT;
    uint64_t own = 1234, ns;

    (void)state;
    assert_int_equal(measured_sample(&measured, &step, &ns, &err), ST_OK);
    assert_true(ns >= 1000000);
    measured.slower = 0.5;
    assert_int_equal(measured_sample(&measured, &step, &ns, &err), ST_OK);
    assert_true(ns >= 2000000);
    measured.slower = 0;
    step.call_arg = &own;
    assert_int_equal(measured_sample(&measured, &step, &ns, &err), ST_OK);
    assert_int_equal(ns, 1234);
    own = 0;
    assert_int_equal(measured_sample(&measured, &step, &ns, &err), ST_CHECK);
}

static bool see_positions(void *arg, uint64_t ns)
{
    struct seen *seen = arg;

    assert_true(ns > 0 && measured.plain_ns > 0);
    assert_int_equal(slm_seq_n_past(measured.m, 0), 5);
    assert_int_equal(slm_seq_n_past(measured.m, 1), 5);
    seen->n_past[seen->n++] = slm_seq_n_past(measured.m, 2);
    return true;
}

static bool ends(void *arg, uint64_t ns)
{
    (void)arg;
    return ns == 0;
}

/* Of several sequences the last reads prompts of three chunks, one after another, and
 * is not filled; a step without a chunk leaves it alone. */
static void chunks_go_round(void **state)
{
    struct measured_step step = {.kind = MEASURED_DECODE, .depth = 5};
    struct seen seen = {.n = 0};
    struct err err = ERR_INIT;

    (void)state;
    measured.n_chunk = 4;
    measured.n_chunk_prompt = 12;
    measured.takes_plain = true;
    assert_int_equal(measured_fill(&measured, 5, 0, false, 1, &err), ST_OK);
    assert_int_equal(slm_seq_n_past(measured.m, 2), 0);
    if (measured_samples(&measured, &step, 7, see_positions, &seen, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(seen.n, 7);
    for (int i = 0; i < 7; i++)
        assert_int_equal(seen.n_past[i], i % 3 * 4 + 4);
    measured.takes_plain = false;
    measured.plain_ns = 0;
    assert_int_equal(measured_samples(&measured, &step, 1, ends, NULL, &err), ST_OK);
    assert_int_equal(measured.plain_ns, 0);
}

/* A step has no room for a token of each: it is refused, whatever was drawn for it. */
static void more_sequences_than_a_pass(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_true(slm_info(measured.m)->n_sequences > slm_info(measured.m)->n_batch);
    assert_int_equal(measured_wake(&measured, NULL, &err), ST_USAGE);
}

static void a_borrowed_model_stays_open(void **state)
{
    struct measured other;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(measured_borrow(&other, measured.m, 3, &err), ST_OK);
    assert_int_equal(measured_wake(&other, NULL, &err), ST_OK);
    measured_close(&other);
    assert_int_equal(measured_wake(&measured, NULL, &err), ST_OK);
    assert_true(measured_fits(&measured, UINT64_C(1) << 30));
    assert_false(measured_fits(&measured, 1 << 20));
}

/* With all levels of x86: tiles are named only where they multiply weights. */
static void the_level_is_that_of_products(void **state)
{
    const uint32_t tiles = 1u << KERN_ISA_amx_int8 | 1u << KERN_ISA_amx_bf16;
    const uint32_t vectors = (1u << KERN_ISA_amx_int8) - 1;

    (void)state;
    assert_string_equal(measured_isa(vectors | tiles, true), "amx_int8");
    assert_string_equal(measured_isa(vectors | tiles, false), "avx512vbmi");
    assert_string_equal(measured_isa(vectors | 1u << KERN_ISA_amx_bf16, false),
                        "avx512vbmi");
    assert_string_equal(measured_isa(vectors, false), "avx512vbmi");
    assert_string_equal(measured_isa(1u << KERN_ISA_scalar, false), "scalar");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_level_is_that_of_products),
        cmocka_unit_test_setup_teardown(a_sample_is_at_its_depth, open_nano,
                                        close_nano),
        cmocka_unit_test_setup_teardown(decoding_goes_on_within_its_span, open_nano,
                                        close_nano),
        cmocka_unit_test_setup_teardown(a_call_is_timed_or_times_itself, open_nano,
                                        close_nano),
        cmocka_unit_test_setup_teardown(chunks_go_round, open_three, close_nano),
        cmocka_unit_test_setup_teardown(more_sequences_than_a_pass, open_many,
                                        close_nano),
        cmocka_unit_test_setup_teardown(a_borrowed_model_stays_open, open_nano,
                                        close_nano),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
