/* SPDX-License-Identifier: MIT
 *
 * test_plan.c - what a plan concludes from sizes and roofs, and how it says so
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/measure/plan/plan.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

static char work[] = "/tmp/slmbench_test_plan_XXXXXX";

/* 7 GiB of weights; streamed: 2 GiB of it in 16 of 48 layers. */
static struct plan plan_of(enum weights_residency residency, int n_streamed,
                           uint64_t room)
{
    struct plan p;

    memset(&p, 0, sizeof p);
    point_init(&p.point);
    snprintf(p.point.setup.model.text, sizeof p.point.setup.model.text, "big:Q6_K");
    p.point.setup.n_threads = 2;
    p.room = room;
    snprintf(p.room_from, sizeof p.room_from, "--mem");
    p.need = (struct point_need){.weight_bytes = 7 * GIB,
                                 .map_bytes = 7 * GIB,
                                 .kv_bytes = 256 * MIB,
                                 .scratch_bytes = 64 * MIB,
                                 .token_bytes = 7 * GIB,
                                 .residency = (int)residency,
                                 .n_layers = 48,
                                 .n_ctx = 4097,
                                 .model_ctx = 4096};
    if (residency != WEIGHTS_MMAP)
        p.need.weights_memory_bytes = 7 * GIB;
    if (n_streamed) {
        p.need.n_streamed = n_streamed;
        p.need.n_slots = 1;
        p.need.slot_bytes = 256 * MIB;
        p.need.streamed_bytes = 2 * GIB;
        p.need.disk_bytes = 100 * MIB;
        p.need.weights_memory_bytes = 5 * GIB + 256 * MIB;
    }
    p.need.anon_bytes =
        p.need.kv_bytes + p.need.scratch_bytes + p.need.weights_memory_bytes;
    p.verdict = plan_verdict(&p.need, p.room);
    return p;
}

static void verdicts(void **state)
{
    (void)state;
    assert_int_equal(plan_of(WEIGHTS_PACKED, 0, 8 * GIB).verdict, PLAN_FITS);
    assert_int_equal(plan_of(WEIGHTS_PACKED, 0, 7 * GIB).verdict, PLAN_NO_FIT);
    assert_int_equal(plan_of(WEIGHTS_STREAM, 16, 6 * GIB).verdict, PLAN_STREAMS);
    assert_int_equal(plan_of(WEIGHTS_STREAM, 16, 5 * GIB).verdict, PLAN_NO_FIT);
    assert_int_equal(plan_of(WEIGHTS_STREAM, 0, 8 * GIB).verdict, PLAN_FITS);
    assert_int_equal(plan_of(WEIGHTS_MMAP, 0, 8 * GIB).verdict, PLAN_FITS);
    assert_int_equal(plan_of(WEIGHTS_MMAP, 0, 6 * GIB).verdict, PLAN_PAGES);
    assert_int_equal(plan_of(WEIGHTS_MMAP, 0, 300 * MIB).verdict, PLAN_NO_FIT);
}

static void the_sentence_comes_first(void **state)
{
    struct plan p = plan_of(WEIGHTS_STREAM, 16, 6 * GIB);
    char text[1000], *printed = NULL;
    size_t len;

    (void)state;
    p.roofs.gbps = (struct token_roofs){.read_gbps = 40, .disk_gbps = 1};
    p.need.packed_ctx = 0;
    plan_predict(&p);
    assert_float_equal(p.time.token_s,
                       2 * (double)GIB / 1e9 + TOKEN_TIME_NOT_HIDDEN * p.time.compute_s,
                       1e-9);
    assert_string_equal(plan_sentence(&p, text, sizeof text),
                        "big:Q6_K streams 2.00 GiB per token within 6.00 GiB: about "
                        "0.453 tok/s (0.157 to 0.696) at context depth 0; without "
                        "streaming no context fits");
    FILE *f = open_memstream(&printed, &len);
    plan_print(f, &p);
    fclose(f);
    assert_true(strstr(printed, "big:Q6_K streams 2.00 GiB per token") == printed);
    assert_non_null(strstr(printed, "32 of 48 layers"));
    assert_non_null(strstr(printed, "into which 16 layers are streamed"));
    for (const char *at = printed, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        assert_true(end && end - at <= 79);
    }
    free(printed);

    p.need.packed_ctx = 1234;
    assert_non_null(strstr(plan_sentence(&p, text, sizeof text),
                           "; without streaming a context of up to 1234 tokens fits"));

    p = plan_of(WEIGHTS_PACKED, 0, 8 * GIB);
    p.roofs.gbps = (struct token_roofs){.read_gbps = 40};
    plan_predict(&p);
    assert_non_null(strstr(plan_sentence(&p, text, sizeof text),
                           "big:Q6_K fits into 8.00 GiB: about 4.84 tok/s"));

    p = plan_of(WEIGHTS_STREAM, 16, 5 * GIB);
    plan_predict(&p);
    assert_string_equal(
        plan_sentence(&p, text, sizeof text),
        "big:Q6_K does not fit into 5.00 GiB: it needs 5.65 GiB with all "
        "layers streamed at context depth 0");
}

static void nothing_is_predicted_without_a_roof(void **state)
{
    struct plan p = plan_of(WEIGHTS_STREAM, 16, 6 * GIB);
    char text[1000];

    (void)state;
    p.roofs.gbps =
        (struct token_roofs){.read_gbps = 40}; /* the disk could not be probed */
    plan_predict(&p);
    assert_true(isnan(p.time.token_s));
    assert_null(strstr(plan_sentence(&p, text, sizeof text), "tok/s"));
    json_t *object = plan_json(&p);
    assert_non_null(object);
    assert_true(json_is_null(
        json_object_get(json_object_get(object, "prediction"), "tok_per_s")));
    assert_string_equal(json_string_value(json_object_get(object, "verdict")),
                        "streams");
    json_decref(object);

    /* nor of what the cache holds */
    p = plan_of(WEIGHTS_PACKED, 0, 8 * GIB);
    p.roofs.gbps = (struct token_roofs){.read_gbps = 40};
    p.cache = (struct topo_llc){8 * GIB, 8 * GIB, 8 * GIB};
    plan_predict(&p);
    assert_true(isnan(p.time.token_s));

    /* what it holds a part of is predicted by memory */
    p.cache = (struct topo_llc){4 * GIB, 4 * GIB, 5 * GIB};
    assert_int_equal(plan_cached(&p), TOPO_CACHED_PARTLY);
    plan_predict(&p);
    assert_true(p.time.token_s > 0);
}

/* Lines joined, and every gap one blank. */
static void unwrap(char *text)
{
    char *to = text;

    for (const char *at = text; *at; at++)
        if (!strchr(" \n", *at))
            *to++ = *at;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
}

/* What drafts gain, by passes of several tokens: with measured columns, with other
 * experts, and without a predicted speed. */
static void drafts_are_predicted(void **state)
{
    struct plan p = plan_of(WEIGHTS_PACKED, 0, 8 * GIB), d = p;
    struct speculate_costs c;
    char *printed = NULL;
    size_t len;
    FILE *f;

    (void)state;
    assert_false(plan_draft_costs(&p, &c));
    p.roofs.gbps = (struct token_roofs){.read_gbps = 40};
    plan_predict(&p);
    assert_true(plan_draft_costs(&p, &c));
    assert_float_equal(c.pass[2], 1 + SPECULATE_COLUMN, 0.01);
    for (int w = 1; w <= SPECULATE_MAX + 1; w++)
        p.columns[w] = 1 + 0.05 * (w - 1);
    assert_true(plan_draft_costs(&p, &c));
    assert_float_equal(c.pass[8], 1.35, 0.01);
    assert_true(speculate_gain(&c, 0.8) > 2.5 && speculate_gain(&c, 0.01) <= 1);

    d.need.token_bytes /= 20;
    d.need.n_layers /= 4;
    plan_set_draft(&p, &d);
    assert_in_range(1000 * plan_draft_guess(&p), 50, 60);
    p.need.nextn_bytes = p.need.token_bytes / 10;
    f = open_memstream(&printed, &len);
    plan_print(f, &p);
    fclose(f);
    unwrap(printed);
    assert_non_null(
        strstr(printed, " Drafts, where 50, 70 or 80 % of guesses are right"));
    assert_non_null(strstr(printed, "passes of 2, 4 and 8 tokens take 1.05, 1.15"));
    assert_non_null(
        strstr(printed, "by the draft model (--draft), whose tokens take 5 %"));
    assert_non_null(strstr(printed, "by the model's own layer"));
    free(printed);
    json_t *object = plan_json(&p), *drafts = json_object_get(object, "drafts");

    assert_int_equal(json_array_size(json_object_get(drafts, "mtp")), PLAN_N_RATES);
    assert_true(json_real_value(json_array_get(json_object_get(drafts, "lookup"), 2)) >
                json_real_value(json_array_get(json_object_get(drafts, "draft"), 2)));
    json_decref(object);

    /* eight tokens choose 8 (1 - (7/8)^8) of 8 experts instead of one */
    p.need.n_experts = 8;
    p.need.n_experts_used = 1;
    p.need.expert_bytes = p.need.token_bytes;
    assert_true(plan_draft_costs(&p, &c));
    assert_float_equal(c.pass[8], 8 * (1 - pow(7. / 8, 8)), 0.1);
}

/* ---- stored roofs ---------------------------------------------------------------- */

static enum status read_text(struct plan *p, const char *text, struct err *err)
{
    char path[80];

    snprintf(path, sizeof path, "%s/m.json", work);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    err_clear(err);
    return plan_read_roofs(p, path, err);
}

#define ROW(n, pages, gbps)                                                           \
    "{\"n_threads\": " #n ", \"pages\": \"" pages "\", \"gbps\": {\"median\": " #gbps \
    "}}"

static void stored_roofs_are_those_of_the_plan(void **state)
{
    static const char probe[] =
        "{\"read\": [" ROW(1, "4k", 9) "," ROW(1, "2m", 10) "," ROW(
            2, "4k", 18) "," ROW(2, "2m",
                                 20) "," ROW(4, "2m",
                                             40) "], \"disk\": {\"path\": \".\", "
                                                 "\"gbps\": {\"median\": 1.5}}}";
    struct plan p = plan_of(WEIGHTS_STREAM, 16, 6 * GIB);
    struct err err = ERR_INIT;
    char machine[1000];

    (void)state;
    assert_int_equal(read_text(&p, probe, &err), ST_OK);
    assert_float_equal(p.roofs.gbps.read_gbps, 20, 0);
    assert_float_equal(p.roofs.gbps.disk_gbps, 1.5, 0);
    assert_int_equal(p.roofs.n_threads, 2);
    p.point.setup.n_threads = 3; /* the next fewer */
    snprintf(machine, sizeof machine, "{\"utc\": \"x\", \"probe\": %s}", probe);
    assert_int_equal(read_text(&p, machine, &err), ST_OK);
    assert_float_equal(p.roofs.gbps.read_gbps, 20, 0);
    p = plan_of(WEIGHTS_MMAP, 0, 8 * GIB);
    assert_int_equal(read_text(&p, probe, &err), ST_OK);
    assert_float_equal(p.roofs.gbps.read_gbps, 18, 0);
    assert_float_equal(p.roofs.gbps.disk_gbps, 0, 0); /* is not needed */
}

static void foreign_files_are_refused(void **state)
{
    static const char *const bad[] = {
        "[]",
        "{}",
        "{\"probe\": null}",
        "{\"read\": 3}",
        "{\"read\": []}",
        "{\"read\": [" ROW(0, "2m", 10) "], \"disk\": {\"gbps\": {\"median\": 1}}}",
        "{\"read\": [" ROW(4, "2m", 10) "], \"disk\": {\"gbps\": {\"median\": 1}}}",
        "{\"read\": [" ROW(2, "2m", -1) "], \"disk\": {\"gbps\": {\"median\": 1}}}",
        "{\"read\": [" ROW(2, "2m", 0) "], \"disk\": {\"gbps\": {\"median\": 1}}}",
        "{\"read\": [" ROW(2, "2m", "x") "], \"disk\": {\"gbps\": {\"median\": 1}}}",
        "{\"read\": [" ROW(2, "2m", 10) "], \"disk\": {\"gbps\": {}}}",
        "{\"read\": [" ROW(2, "2m", 10) "], \"disk\": {\"gbps\": 3}}",
        "{\"read\": [" ROW(2, "2m", 10) "], \"disk\": {\"why_not\": \"tmpfs\"}}",
        "{\"read\": [" ROW(2, "2m", 10) "]}",
        "{\"read\": [7], \"disk\": {}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct plan p = plan_of(WEIGHTS_STREAM, 16, 6 * GIB);
        struct err err = ERR_INIT;

        if (read_text(&p, bad[i], &err) != ST_INPUT || !strstr(err.msg, "m.json"))
            fail_msg("%s: %s", bad[i], err.code ? err.msg : "was taken");
    }
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(work) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", work);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(the_sentence_comes_first),
        cmocka_unit_test(drafts_are_predicted),
        cmocka_unit_test(nothing_is_predicted_without_a_roof),
        cmocka_unit_test(stored_roofs_are_those_of_the_plan),
        cmocka_unit_test(foreign_files_are_refused),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
