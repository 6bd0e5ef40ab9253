/* SPDX-License-Identifier: MIT
 *
 * test_gate_json.c - gate.json, written and read back, and other JSON
 */
#include "tests/support/gate_fixture.h"

#include <sys/stat.h>

#include "harness/decide/gate/gate_report.h"

static void same_number(double a, double b)
{
    assert_true(isnan(a) ? isnan(b) : !memcmp(&a, &b, sizeof a));
}

static void same_metric(const struct gate_metric *a, const struct gate_metric *b)
{
    assert_string_equal(a->unit, b->unit);
    assert_int_equal(a->less_is_better, b->less_is_better);
    assert_int_equal(a->verdict, b->verdict);
    assert_int_equal(a->n_launches, b->n_launches);
    assert_int_equal(a->n_rounds, b->n_rounds);
    same_number(a->a, b->a);
    same_number(a->b, b->b);
    same_number(a->effect.ratio, b->effect.ratio);
    same_number(a->effect.lo, b->effect.lo);
    same_number(a->effect.hi, b->effect.hi);
    same_number(a->effect.p_fail, b->effect.p_fail);
    same_number(a->effect.p_pass, b->effect.p_pass);
    assert_int_equal(a->series.n_launches, b->series.n_launches);
    for (size_t l = 0; l < a->series.n_launches; l++) {
        assert_int_equal(a->series.n_rounds[l], b->series.n_rounds[l]);
        for (size_t k = 0; k < a->series.n_rounds[l]; k++)
            same_number(a->series.v[l][k], b->series.v[l][k]);
    }
}

static void json_is_read_back_to_the_last_bit(void **state)
{
    struct gate_result *r = hostile_result(), *back = calloc(1, sizeof *back);
    struct err err = ERR_INIT;
    const char path[] = "test_gate_report.json";
    const char *const paths[GATE_N_FORMS] = {[GATE_JSON] = path};

    (void)state;
    assert_non_null(back);
    assert_int_equal(gate_report_write(r, paths, &err), ST_OK);
    assert_int_equal(gate_json_read(back, path, &err), ST_OK);
    unlink(path);
    assert_int_equal(back->verdict, r->verdict);
    assert_int_equal(back->end, r->end);
    assert_int_equal(back->mode, r->mode);
    assert_string_equal(back->when, r->when);
    assert_string_equal(back->cpu, r->cpu);
    assert_string_equal(back->model, "m|o<d>el\\xff\\x0a"); /* no text that JSON has */
    assert_string_equal(back->settings, r->settings);
    assert_string_equal(back->disturbed, r->disturbed);
    assert_string_equal(back->side[0].commit, r->side[0].commit);
    assert_string_equal(back->side[0].compiler, r->side[0].compiler);
    assert_string_equal(back->side[1].name, r->side[1].name);
    same_number(back->rule.alpha_pass, r->rule.alpha_pass);
    same_number(back->seconds, r->seconds);
    same_number(back->injected, r->injected);
    assert_memory_equal(&back->given, &r->given, sizeof back->given);
    assert_int_equal(back->n_disturbed, 3);
    assert_int_equal(back->n_again, 7);
    assert_int_equal(back->n_metrics, r->n_metrics);
    for (size_t i = 0; i < r->n_metrics; i++)
        same_metric(&r->metric[i], &back->metric[i]);
    /* Once more: what was read writes the same. */
    json_t *first = gate_json(back), *second;
    struct gate_result *again = calloc(1, sizeof *again);
    assert_int_equal(gate_json_parse(again, first, "memory", &err), ST_OK);
    second = gate_json(again);
    assert_true(json_equal(first, second));
    json_decref(first);
    json_decref(second);
    fixture_free(again);
    fixture_free(back);
    fixture_free(r);
}

static json_t *first_metric(json_t *object)
{
    return json_array_get(json_object_get(object, "metrics"), 0);
}

static void json_of_another_kind_is_refused(void **state)
{
    struct gate_result *r = hostile_result();
    json_t *whole = gate_json(r), *o, *many = json_array();
    const char *key;
    json_t *value;

    (void)state;
    fixture_refused(many, "not the result of a gate");
    json_object_foreach(whole, key, value)
    { /* every member is needed but those that older files do not have */
        if (!strcmp(key, "sentence"))
            continue;
        o = json_deep_copy(whole);
        json_object_del(o, key);
        if (strcmp(key, "options") != 0 && strcmp(key, "n_again") != 0)
            fixture_refused(o, strcmp(key, "version") ? key : "version 1");
        json_object_set_new(o, key, json_pack("[[[[]]]]"));
        fixture_refused(o, "that.json");
        json_decref(o);
    }
    o = json_deep_copy(whole);
    json_object_set_new(o, "version", json_integer(2));
    fixture_refused(o, "is of version 2");
    json_object_set_new(o, "version", json_integer(1));
    json_object_set_new(o, "verdict", json_string("perhaps"));
    fixture_refused(o, "\"verdict\"");
    json_object_set_new(o, "verdict", json_string("pass"));
    json_object_set_new(o, "n_rounds", json_integer(-1));
    fixture_refused(o, "\"n_rounds\"");
    json_object_set_new(o, "n_rounds", json_integer(1));
    for (size_t i = 0; i <= GATE_MAX_LAUNCHES; i++)
        json_array_append_new(many, json_array());
    json_object_set(first_metric(o), "log_ratios", many);
    fixture_refused(o, "81 elements, more than the 80");
    json_object_set_new(first_metric(o), "log_ratios",
                        json_pack("[[i,i,i,i,i,i,i,i,i]]", 1, 2, 3, 4, 5, 6, 7, 8, 9));
    fixture_refused(o, "9 elements, more than the 8");
    json_object_set_new(first_metric(o), "log_ratios", json_pack("[[s]]", "1"));
    fixture_refused(o, "not a number");
    json_decref(o);
    json_decref(many);
    json_decref(whole);
    fixture_free(r);
}

/* A result with what older files do not have, some of it otherwise. */
static void newer_members_are_checked(void **state)
{
    static const char *const keys[] = {"CPU",        "hypervisor", "ISA levels",
                                       "CPU layout", "caches",     "CPU quota",
                                       "memory",     "huge pages"};
    static const struct {
        const char *in, *key, *value; /* in: "" is the result, "metric" its first */
        const char *words;
    } cases[] = {
        {"", "format", "\"another gate\"", "is not the result of a gate"},
        {"", "format", "7", "is not the result of a gate"},
        {"", "host", "7", "\"machine\" is no profile with the name of a host"},
        {"machine", "caches", "[]", "\"machine\" is no profile"},
        {"", "sides", "[]", "\"sides\" is not a text"},
        {"", "sides", "\"a\\u0000b\"", "\"sides\" is not a text"},
        {"", "divergence", "1", "\"divergence\" is not there, or not an object"},
        {"divergence", "n_tokens", "1.5", "\"n_tokens\" is not a count"},
        {"divergence", "verdict", "\"Pass\"", "\"verdict\" is none of its possible"},
        {"divergence", "kl", "true", "\"kl\" is not a number"},
        {"options", "mem", "null", "\"mem\" is not a text"},
        {"rule", "margin", "\"2 %\"", "\"margin\" is not a number"},
        {"a", "commit", "{}", "\"commit\" is not a text"},
        {"b", "compiler", "0", "\"compiler\" is not a text"},
        {"metric", "name", "[]", "\"name\" is not a text"},
        {"metric", "less_is_better", "0", "is neither true nor false"},
        {"metric", "effect", "[]", "\"effect\" is not there, or not an object"},
        {"metric", "effect", "{\"ratio\": 1}", "\"effect\" lacks \"lo\""},
        {"metric", "log_ratios", "{}", "\"log_ratios\" is not there, or not a list"},
        {"metric", "log_ratios", "[1]", "\"log_ratios\" is not there, or not a list"},
    };
    struct gate_result *r = hostile_result(), *back = calloc(1, sizeof *back);
    struct err err = ERR_INIT;

    (void)state;
    assert_non_null(back);
    r->has_machine = true;
    strcpy(r->host, "host-1");
    for (int i = 0; i < MACHINE_N_FIELDS; i++)
        strcpy(r->machine.text[i], keys[i]);
    strcpy(r->sides, "a: -t 2");
    r->divergence = (struct gate_divergence){.max = 0.1, .kl = 0.01, .n_tokens = 40};
    json_t *whole = gate_json(r);

    assert_int_equal(gate_json_parse(back, whole, "it", &err), ST_OK);
    assert_true(back->has_machine);
    assert_string_equal(back->host, "host-1");
    assert_string_equal(back->machine.text[MACHINE_PAGES], "huge pages");
    assert_string_equal(back->sides, "a: -t 2");
    same_number(back->divergence.max, 0.1);
    same_number(back->divergence.kl, 0.01);
    assert_int_equal(back->divergence.n_tokens, 40);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *o = json_deep_copy(whole), *in = json_object_get(o, cases[i].in);

        in = !*cases[i].in ? o : !strcmp(cases[i].in, "metric") ? first_metric(o) : in;
        assert_int_equal(
            json_object_set_new(
                in, cases[i].key,
                json_loads(cases[i].value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)),
            0);
        fixture_refused(o, cases[i].words);
        json_decref(o);
    }
    json_decref(whole);
    fixture_free(back);
    fixture_free(r);
}

/* A pipe that never speaks and a device without end are refused at once. */
static void json_is_a_regular_file(void **state)
{
    struct gate_result r = {.n_metrics = 0};
    struct err err = ERR_INIT;
    const char path[] = "test_gate_json.pipe";

    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(gate_json_read(&r, path, &err), ST_INPUT);
    unlink(path);
    err_clear(&err);
    assert_int_equal(gate_json_read(&r, "/dev/zero", &err), ST_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_read_back_to_the_last_bit),
        cmocka_unit_test(json_of_another_kind_is_refused),
        cmocka_unit_test(newer_members_are_checked),
        cmocka_unit_test(json_is_a_regular_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
