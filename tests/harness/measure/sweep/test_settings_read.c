/* SPDX-License-Identifier: MIT
 *
 * test_settings_read.c - settings as options of commands, as members of messages, as
 * lists and as names in a sweep's file
 */
#include "tests/support/sweep_fixture.h"

#include <stddef.h>

#include "harness/base/options.h"

static enum status take_yaml(const char *text, struct err *err)
{
    struct sweep_settings s;
    const enum status st = load(&s, text, err);

    sweep_settings_free(&s);
    return st;
}

/* ---- options --------------------------------------------------------------------- */

static const struct setting *row_of_option(const char *name)
{
    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (setting_row(id)->option && !strcmp(setting_row(id)->option, name))
            return setting_row(id);
    fail_msg("no setting has the option --%s", name);
    return NULL;
}

static void options_are_those_of_the_table(void **state)
{
    static const unsigned commands[] = {SETTING_DECODE, SETTING_OPTION_SWEEP};
    static struct setting_request r;
    struct opt opts[SETTING_N + 1];
    int dst;

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        const size_t n = setting_options(opts, &r, commands[c]);
        size_t wanted = 0;

        for (enum setting_id id = 0; id < SETTING_N; id++)
            wanted += setting_row(id)->option && setting_row(id)->in & commands[c];
        assert_int_equal(n, wanted);
        assert_int_equal(opts[n].kind, OPT_KIND_END);
        for (size_t i = 0; i < n; i++) {
            const struct setting *s = row_of_option(opts[i].name);
            const bool is_flag = s->type == SETTING_TYPE_FLAG;

            assert_true(s->in & commands[c]);
            assert_int_equal(opts[i].kind, is_flag ? OPT_KIND_FLAG : OPT_KIND_STR);
            assert_true(strstr(opts[i].help, s->help) == opts[i].help);
            assert_true(is_flag ||
                        !strcmp(opts[i].arg, c && s->swept ? "LIST" : s->arg));
        }
    }
    r.text[SETTING_threads] = "4";
    r.flag[SETTING_mtp] = r.flag[SETTING_force] = true;
    assert_string_equal(setting_given(&r, SETTING_threads), "4");
    assert_null(setting_given(&r, SETTING_ctx));
    assert_string_equal(setting_given(&r, SETTING_mtp), "mtp");
    assert_string_equal(setting_given(&r, SETTING_force), "true");

    struct opt one = setting_option(SETTING_placement, NULL, &dst);
    assert_non_null(strstr(one.help, "smt or none (default: none)"));
    one = setting_option(SETTING_batch, NULL, &dst);
    assert_non_null(strstr(one.help, "in one prefill pass (default 512)"));
    assert_int_equal(one.id, SETTING_batch);
    assert_ptr_equal(one.dst, &dst);
}

/* ---- JSON that is no setting ----------------------------------------------------- */

struct members {
    int n, threads;
    char text[4];
    uint64_t bytes;
    double share;
};

static const struct setting_member members[] = {
    SETTING_WHOLE("n", 1, 9, struct members, n),
    SETTING_FIELD("threads", threads, struct members, threads),
    SETTING_CHARS("text", struct members, text),
    SETTING_BYTES("bytes", struct members, bytes),
    SETTING_NUMBER("share", struct members, share),
};
#define N_MEMBERS (sizeof members / sizeof members[0])

static void members_are_read_as_they_are_written(void **state)
{
    static const struct {
        const char *key, *value, *words;
    } bad[] = {
        {"n", "0", "n: 0 is outside 1..9"},
        {"n", "1.5", "n is a whole number, not a fraction"},
        {"threads", "0", "threads: 0 threads are outside 1..1024"},
        {"threads", "null", "threads is a whole number, not null"},
        {"text", "\"abcd\"", "text: a text of 4 characters; at most 3"},
        {"text", "\"a\\u0000\"", "text: a text with a zero byte"},
        {"text", "7", "text is a text, not a whole number"},
        {"bytes", "-1", "bytes is no size"},
        {"bytes", "1.0", "bytes is no size"},
        {"bytes", "[]", "bytes is no size"},
        {"share", "\"1\"", "share is no number"},
        {"share", "{}", "share is no number"},
    };
    const struct members m = {3, 2, "abc", UINT64_C(1) << 62, 0.5};
    struct members back;
    struct err err = ERR_INIT;
    json_t *object = setting_members_json(&m, members, N_MEMBERS);

    (void)state;
    memset(&back, 0, sizeof back);
    assert_int_equal(setting_read_members(&back, members, N_MEMBERS, object, &err),
                     ST_OK);
    assert_true(back.n == 3 && back.threads == 2 && back.bytes == m.bytes &&
                back.share == 0.5);
    assert_string_equal(back.text, "abc");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *o = json_deep_copy(object);

        err_clear(&err);
        json_object_set_new(
            o, bad[i].key,
            json_loads(bad[i].value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
        assert_int_equal(setting_read_members(&back, members, N_MEMBERS, o, &err),
                         ST_USAGE);
        if (!strstr(err.msg, bad[i].words))
            fail_msg("'%s' lacks '%s'", err.msg, bad[i].words);
        /* where members may be missing, it is the others that are taken */
        struct members taken = {.n = 7, .threads = 7, .bytes = 7, .share = 7};

        setting_take_members(&taken, members, N_MEMBERS, o);
        assert_int_equal(taken.n, strcmp(bad[i].key, "n") ? 3 : 7);
        assert_int_equal(taken.bytes, strcmp(bad[i].key, "bytes") ? m.bytes : 7);
        assert_true(strcmp(bad[i].key, "share") ? taken.share == 0.5
                                                : taken.share == 7);
        json_decref(o);
    }
    json_decref(object);
}

/* What a list may hold is less than what an option may name. */
static void lists_have_their_own_choices(void **state)
{
    json_t *list = json_pack("[s]", "memory");
    struct int_list weights = {NULL, 0};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(
        setting_list_from_json(SETTING_weights, list, "weights", &weights, &err),
        ST_USAGE);
    assert_non_null(strstr(err.msg, "weights: 'memory' is not one of"));
    err_clear(&err);
    json_array_set_new(list, 0, json_string("mmap"));
    assert_int_equal(
        setting_list_from_json(SETTING_weights, list, "weights", &weights, &err),
        ST_OK);
    assert_true(weights.n == 1 && weights.v[0] == WEIGHTS_MMAP);
    free(weights.v);
    json_decref(list);
}

/* ---- names in a sweep's file ----------------------------------------------------- */

static void names_in_files_are_checked(void **state)
{
    static const struct {
        const char *text, *words; /* "": it is taken */
    } cases[] = {
        {"quality: none\n", ""},
        {"quality: ''\n", ""},
        {"quality: /no/such/place\n", "c.yaml: quality: "},
        {"models: ['nano:Q4_0,Q9_9']\n", "Q9_9"},
    };
    static char text[8192];
    struct err err = ERR_INIT;
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        err_clear(&err);
        const enum status st = take_yaml(cases[i].text, &err);

        if (!*cases[i].words != (st == ST_OK) || !strstr(err.msg, cases[i].words))
            fail_msg("%s: %s", cases[i].text, st ? err.msg : "taken");
    }
    /* as many models as a list has items, and one more than a sweep may have */
    n = (size_t)snprintf(text, sizeof text, "models: [nano:Q4_0");
    for (int i = 0; i < SWEEP_MAX_MODELS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",nano:Q4_0");
    snprintf(text + n, sizeof text - n, "]\n");
    err_clear(&err);
    assert_int_equal(status_exit_code(take_yaml(text, &err)), 2);
    assert_non_null(strstr(err.msg, "models"));
    n = (size_t)snprintf(text, sizeof text, "quality: ");
    memset(text + n, 'q', 4000);
    strcpy(text + n + 4000, "\n");
    err_clear(&err);
    assert_int_equal(status_exit_code(take_yaml(text, &err)), 2);
    assert_non_null(strstr(err.msg, "is too long a name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_those_of_the_table),
        cmocka_unit_test(members_are_read_as_they_are_written),
        cmocka_unit_test(lists_have_their_own_choices),
        cmocka_unit_test(names_in_files_are_checked),
    };

    return cmocka_run_group_tests(tests, sweep_begin, sweep_end);
}
