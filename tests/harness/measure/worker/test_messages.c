/* SPDX-License-Identifier: MIT
 *
 * test_messages.c - what a worker and its parent send each other arrives, and verdicts
 * of a worker are ignored
 */
#include "tests/support/test.h"

#include "harness/measure/worker/messages.h"

static void figures_arrive(void **state)
{
    /* the sizes of the cache and the disk's spread are the parent's own: not sent */
    struct point_facts facts = {1, 2.5, 3, 0.25, 0, 0, 7, 0, 9, 10, 11, 12, 13, 14},
                       facts_back = {0};
    struct noise noise = {.wall_ns = 1, .steal_ns = 2, .n_refaults = 3, .n_cpus = 4};
    struct noise noise_back;
    json_t *object = point_facts_json(&facts);

    (void)state;
    memset(&noise_back, 0, sizeof noise_back);
    point_facts_from_json(&facts_back, object);
    json_decref(object);
    assert_memory_equal(&facts, &facts_back, sizeof facts);
    object = worker_noise_json(&noise);
    worker_noise_from_json(&noise_back, object);
    json_decref(object);
    assert_true(noise_back.wall_ns == 1 && noise_back.steal_ns == 2 &&
                noise_back.n_refaults == 3 && noise_back.n_cpus == 4);
}

static void needs_arrive(void **state)
{
    const struct point_need need = {.quant = "Q4_0",
                                    .n_params = 3,
                                    .identity = UINT64_C(1) << 62,
                                    .residency = WEIGHTS_STREAM,
                                    .n_layers = 5,
                                    .n_prompt = 7,
                                    .disk_bytes = 9};
    struct point_need back = {.quant = ""};
    struct err err = ERR_INIT;
    json_t *values = point_need_json(&need);
    json_t *object = json_pack("{s:O}", "need", values);

    (void)state;
    assert_int_equal(point_need_from_json(&back, object, &err), ST_OK);
    assert_memory_equal(&need, &back, sizeof need);
    json_object_set_new(values, "disk_bytes", json_integer(-1));
    assert_int_equal(point_need_from_json(&back, object, &err), ST_IO);
    assert_non_null(strstr(err.msg, "disk_bytes is no size"));
    err_clear(&err);
    json_object_set_new(values, "disk_bytes", json_integer(1));
    json_object_del(values, "n_layers");
    assert_int_equal(point_need_from_json(&back, object, &err), ST_IO);
    json_decref(values);
    json_decref(object);
}

static void requests_arrive(void **state)
{
    struct point p;
    struct point_request q;
    struct err err = ERR_INIT;
    json_t *roof = json_pack("{s:[f]}", "gbps", 12.5), *request;

    (void)state;
    point_init(&p);
    strcpy(p.setup.model.text, "nano:Q4_K_M");
    strcpy(p.setup.model.path, "/nowhere/nano.gguf");
    p.setup.model.synthetic = true;
    request = message_request("roof", &p, 12345, NULL, roof);
    assert_int_equal(message_read_request(&q, json_object_get(request, "roof"), &err),
                     ST_OK);
    assert_int_equal(q.room, 12345);
    assert_true(q.point.setup.model.synthetic);
    assert_null(q.cache);
    assert_true(json_equal(q.roof, roof));
    json_decref(request);
    json_decref(roof);
    strcpy(p.setup.model.path, "\xff");
    assert_null(message_request("need", &p, 1, NULL, NULL));
}

/* A worker reads models of others, so its parent takes figures from it and no more. */
static void verdicts_are_not_taken(void **state)
{
    struct row sent, row;
    json_t *message;
    size_t n;
    const struct field *f = row_fields(&n);

    (void)state;
    row_init(&row);
    row_init(&sent);
    row.status = ROW_STATUS_ERROR;
    row.limiter = LIMITER_NOISE;
    strcpy(row.validity, "disturbed: steal");
    strcpy(row.detail, "the parent's");
    row.tok_per_s = 1;
    const struct row before = row;

    for (size_t i = 0; i < n; i++)
        if (field_is_text(&f[i]) && f[i].kind == FIELD_KIND_STR)
            row_set_text(&sent, &f[i], "valid");
        else if (f[i].kind == FIELD_KIND_NUM)
            *(double *)((char *)&sent + f[i].offset) = 99;
    sent.status = ROW_STATUS_OK;
    sent.limiter = LIMITER_MEMORY;
    message = row_json(&sent); /* all columns, whatever a worker may send */
    message_take_columns(&row, message);
    json_decref(message);
    assert_int_equal(row.status, before.status);
    assert_int_equal(row.limiter, before.limiter);
    assert_string_equal(row.validity, before.validity);
    assert_string_equal(row.detail, before.detail);
    assert_string_equal(row.point, "");
    assert_string_equal(row.command, "");
    assert_true(row.tok_per_s == 1);
    assert_true(row.roof_gbps == 99);

    message = message_columns(&sent);
    assert_null(json_object_get(json_object_get(message, "row"), "validity"));
    assert_non_null(json_object_get(json_object_get(message, "row"), "roof_gbps"));
    json_decref(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_arrive),
        cmocka_unit_test(needs_arrive),
        cmocka_unit_test(requests_arrive),
        cmocka_unit_test(verdicts_are_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
