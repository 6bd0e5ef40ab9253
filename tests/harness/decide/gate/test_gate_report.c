/* SPDX-License-Identifier: MIT
 *
 * test_gate_report.c - the forms of a gate's result, also of one with hostile names
 *
 * What other programs read is read by others: XML by Python's parser, workflow commands
 * by undoing their escapes as GitHub's runner does.
 */
#include "tests/support/gate_fixture.h"

#include "harness/decide/gate/gate_quality.h"
#include "harness/decide/gate/gate_report.h"

static size_t occurrences(const char *text, const char *what)
{
    size_t n = 0;

    while ((text = strstr(text, what))) {
        n++;
        text += strlen(what);
    }
    return n;
}

/* ---- texts ----------------------------------------------------------------------- */

static void words_have_as_many_digits_as_they_need(void **state)
{
    const struct {
        double ratio;
        const char *text;
    } changes[] = {{0.952, "-4.8 %"}, {1.0029, "+0.29 %"},   {1, "0.00 %"},
                   {0.5, "-50.0 %"},  {3.5, "+250 %"},       {0.99996, "0.00 %"},
                   {0.98, "-2.0 %"},  {NAN, "\xe2\x80\x93"}, {0.00001, "-100 %"}};
    struct gate_effect e = {.ratio = 0.95, .lo = 0.941, .hi = NAN};

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        assert_string_equal(gate_change_text(changes[i].ratio).text, changes[i].text);
    assert_string_equal(gate_interval_text(&e).text, "");
    e.hi = 0.9634;
    assert_string_equal(gate_interval_text(&e).text, "-5.9 to -3.7 %");
    assert_string_equal(gate_value_text(12.345, "tok/s").text, "12.35 tok/s");
    assert_string_equal(gate_value_text(0.00012345, "s").text, "0.000123 s");
    assert_string_equal(gate_value_text(123456, "MiB").text, "123456 MiB");
    assert_string_equal(gate_value_text(NAN, "MiB").text, "\xe2\x80\x93");
}

/* Bars of a line that make cells. */
static size_t bars(const char *line)
{
    size_t n = 0;

    for (const char *c = line; *c && *c != '\n'; c++) {
        if (*c == '\\' && c[1])
            c++;
        else
            n += *c == '|';
    }
    return n;
}

static void markdown_begins_with_the_verdict(void **state)
{
    struct gate_result *r = hostile_result();
    const char *text = text_of(gate_markdown_write, r), *line;

    (void)state;
    line = strstr(text, "bench gate: fail");
    assert_true(line && line - text < 20);
    line = strstr(text, "| metric |");
    assert_non_null(line);
    for (int i = 0; i < 6; i++) { /* head, rule, four metrics: seven cells each */
        assert_int_equal(line[0], '|');
        assert_int_equal(bars(line), 8);
        line = strchr(line, '\n') + 1;
    }
    assert_int_equal(*line, '\n');
    assert_int_equal(occurrences(text, "<b>"), 0);
    assert_non_null(strstr(text, "@<!-- -->me"));
    assert_non_null(strstr(text, "3 rounds left out: steal 2, throttling 1"));
    assert_non_null(strstr(text, "slowed by 5 % on purpose"));
    /* The command to repeat it can be pasted whatever the names are. */
    assert_non_null(strstr(text, "--b 'b'\\''; rm -rf $HOME; '\\''' -m "));
    assert_non_null(
        strstr(text, "--prefill 128,512 --ctx 'none; ls' --weights packed"));
    assert_non_null(strstr(text, "--inject-slowdown 5%"));
    fixture_free(r);
}

static void a_pass_has_no_advice(void **state)
{
    struct gate_result *r = fixture_result();
    const char *text;

    (void)state;
    fixture_metric(r, "decode", 1, 0.01, 14);
    text = text_of(gate_markdown_write, r);
    assert_null(strstr(text, "<pre>"));
    text = text_of(gate_page_write, r);
    assert_non_null(strstr(text, "<h1>bench gate: pass</h1>\n<p>No metric regressed"));
    assert_non_null(strstr(text, "@media (prefers-color-scheme: dark)"));
    r->n_metrics = 0;
    r->verdict = GATE_UNCLEAR;
    text = text_of(gate_markdown_write, r);
    assert_non_null(strstr(text, "Nothing was measured."));
    assert_non_null(strstr(text, "--budget 1200s"));
    fixture_free(r);
}

/* As the runner reads a command: False where there is none. */
static bool read_command(const char *line, char level[16], char title[512],
                         char message[2048])
{
    return sscanf(line, "::%15[a-z] title=%511[^:]::%2047[^\n]", level, title,
                  message) == 3;
}

static void undo_escapes(char *text)
{
    char *to = text;

    for (const char *c = text; *c; c++) {
        unsigned value;

        if (*c == '%' && sscanf(c + 1, "%2X", &value) == 1) {
            *to++ = (char)value;
            c += 2;
        } else {
            *to++ = *c;
        }
    }
    *to = '\0';
}

static void annotations_are_one_command_a_line(void **state)
{
    struct gate_result *r = hostile_result();
    const char *text = text_of(gate_annotations_write, r);
    char level[16], title[512], message[2048];
    const char *const levels[] = {"error", "error", "warning", "warning"};
    size_t n = 0;

    (void)state;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        assert_true(read_command(line, level, title, message));
        undo_escapes(title);
        undo_escapes(message);
        assert_string_equal(level, levels[n]);
        if (n == 0)
            assert_string_equal(title, "bench gate: fail");
        if (n == 1) {
            assert_string_equal(title, "a]]>b::%0A\"<&|`'\\x0a::error::x,y:*_\\x01\\x1b"
                                       "[31m\\xff@me<b>: fail");
            assert_non_null(strstr(message, " %"));
        }
        n++;
    }
    assert_int_equal(n, 4);
    r->verdict = GATE_PASS;
    assert_true(
        read_command(text_of(gate_annotations_write, r), level, title, message));
    assert_string_equal(level, "notice");
    fixture_free(r);
}

/* Python's parser: number of cases, failures and skipped; the first one's name. */
static void check_junit(const struct gate_result *r, const char *expected)
{
    static const char script[] =
        "import sys, xml.etree.ElementTree as e\n"
        "s = e.parse(sys.argv[1]).getroot().find('testsuite')\n"
        "c = s.findall('testcase')\n"
        "assert int(s.get('tests')) == len(c)\n"
        "assert int(s.get('failures')) == len(s.findall('testcase/failure'))\n"
        "assert int(s.get('skipped')) == len(s.findall('testcase/skipped'))\n"
        "assert abs(float(s.get('time')) - sum(float(t.get('time')) for t in c)) < .1\n"
        "assert all(ord(x) >= 32 or x == '\\n' for t in s.iter() for v in "
        "[t.text or '', *t.attrib.values()] for x in v)\n"
        "print(s.get('tests'), s.get('failures'), s.get('skipped'), "
        "c[0].get('name'), sep='|', end='')\n";
    const char *const paths[GATE_N_FORMS] = {[GATE_JUNIT] = "test_gate_report.xml"};
    struct err err = ERR_INIT;
    char said[512] = "";
    FILE *f = fopen("test_gate_report.py", "w");

    assert_non_null(f);
    fputs(script, f);
    fclose(f);
    assert_int_equal(gate_report_write(r, paths, &err), ST_OK);
    f = popen("python3 test_gate_report.py test_gate_report.xml", "r");
    assert_non_null(f);
    const size_t n = fread(said, 1, sizeof said - 1, f);
    said[n] = '\0';
    assert_int_equal(pclose(f), 0);
    assert_string_equal(said, expected);
    unlink("test_gate_report.py");
    unlink("test_gate_report.xml");
}

/* That of a stored gate is text of whoever stored it. */
static void a_unit_is_harmless(void **state)
{
    (void)state;
    assert_string_equal(gate_value_text(2, "tok/s").text, "2.000 tok/s");
    assert_string_equal(gate_value_text(2, "\x1b[2J\n::x").text,
                        "2.000 \\x1b[2J\\x0a::x");
}

static void junit_is_well_formed(void **state)
{
    struct gate_result *r = hostile_result();

    (void)state;
    check_junit(r, "4|1|2|a]]>b::%0A\"<&|`'\\x0a::error::x,y:*_\\x01\\x1b[31m\\xff@me<"
                   "b>");
    snprintf(r->metric[0].name, sizeof r->metric[0].name, "\xef\xbf\xbe\xef\xbf\xbf");
    check_junit(r, "4|1|2|\xef\xbf\xbd\xef\xbf\xbd");
    fixture_free(r);
}

/* An interrupted gate whose metrics had all passed is no success. */
static void junit_has_the_verdict_in_any_case(void **state)
{
    struct gate_result *r = fixture_result();

    (void)state;
    fixture_metric(r, "decode", 1, 0.01, 14);
    check_junit(r, "1|0|0|decode");
    r->verdict = GATE_UNCLEAR;
    r->end = GATE_END_INTERRUPTED;
    check_junit(r, "2|0|1|decode");
    r->n_metrics = 0;
    check_junit(r, "1|0|1|the gate as a whole");
    fixture_free(r);
}

/* ---- the sentence ---------------------------------------------------------------- */

static void says(const struct gate_result *r, const char *text)
{
    char sentence[1024];

    if (!strstr(gate_sentence(r, sentence, sizeof sentence), text))
        fail_msg("\"%s\" does not say \"%s\"", sentence, text);
}

static void the_sentence_names_the_worst(void **state)
{
    struct gate_result *r = fixture_result();
    struct gate_metric *m;
    char sentence[1024];

    (void)state;
    r->end = GATE_END_BUDGET;
    r->verdict = GATE_UNCLEAR;
    says(r, "Nothing was measured");
    assert_null(gate_worst(r));
    fixture_metric(r, "first", 1.001, 0.001, 14);
    m = fixture_metric(r, "second", 0.999, 0.02, 14);
    r->verdict = GATE_PASS;
    assert_ptr_equal(gate_worst(r), m);
    says(r, "No metric regressed by more than the margin of 2 %; the closest of 2 "
            "metrics is second, ");
    m = fixture_metric(r, "third", 0.981, 0.02, 14);
    fixture_metric(r, "fourth", 0.981, 0.02, 14)->verdict = GATE_OPEN;
    assert_int_equal(m->verdict, GATE_UNCLEAR);
    r->verdict = GATE_UNCLEAR;
    says(r, "Undecided within 10:00 min; ");
    says(r,
         " (failing / passing), margin 2 %. 1 more metric is undecided, too. Give it "
         "more time");
    r->end = GATE_END_INTERRUPTED;
    says(r, "Interrupted after 28 rounds, so there is no verdict; ");
    r->end = GATE_END_INTERIM;
    says(r, "Undecided after 14 launches; ");
    fixture_metric(r, "fifth", 0.95, 0.01, 14);
    m = fixture_metric(r, "sixth", 0.9, 0.01, 14);
    fixture_metric(r, "seventh", 0.93, 0.01, 14);
    r->verdict = GATE_FAIL;
    assert_ptr_equal(gate_worst(r), m);
    says(r, "B is worse in sixth: -");
    says(r, "beyond the margin of 2 %. 2 more metrics failed, too. Look at the changes "
            "from 0123456 to 89abcde.");
    r->injected = 0.05;
    says(r, "too. B was slowed by 5 % on purpose.");
    assert_int_equal(strlen(gate_sentence(r, sentence, 20)), 19);
    fixture_free(r);
}

/* ---- chart ----------------------------------------------------------------------- */

/* Their verdict is in the sentence, in JUnit's case of the whole gate, and read back.
 */
static void answers_decide_as_well(void **state)
{
    static const struct {
        double kl, se;
        enum gate_verdict verdict;
        const char *text, *junit;
    } cases[] = {
        {0.05, 0.003, GATE_FAIL, "diverge too far from A's: KL 0.05", "2|1|0|"},
        {0.005, 0.001, GATE_PASS, "are within the bound", "2|0|0|"},
        {0.011, 0.001, GATE_UNCLEAR, "is undecided", "2|0|1|"}};
    struct gate_result *r = fixture_result(), *again = fixture_result();
    struct err err = ERR_INIT;
    char expected[64], sentence[1024];

    (void)state;
    fixture_metric(r, "decode", 1, 0.01, 14);
    gate_quality_judge(r);
    assert_int_equal(r->verdict, GATE_PASS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        r->verdict = GATE_PASS;
        r->divergence = (struct gate_divergence){
            .max = 0.01, .kl = cases[i].kl, .se = cases[i].se, .n_tokens = 1016};
        gate_quality_judge(r);
        assert_int_equal(r->verdict, cases[i].verdict);
        gate_sentence(r, sentence, sizeof sentence);
        assert_non_null(strstr(sentence, cases[i].text));
        assert_non_null(strstr(
            sentence, cases[i].verdict == GATE_FAIL ? "No metric failed." : "decode"));
        snprintf(expected, sizeof expected, "%sdecode", cases[i].junit);
        check_junit(r, expected);

        json_t *o = gate_json(r);
        assert_int_equal(gate_json_parse(again, o, "memory", &err), ST_OK);
        assert_memory_equal(&again->divergence, &r->divergence, sizeof r->divergence);
        json_object_set_new(json_object_get(o, "divergence"), "kl", json_string("x"));
        fixture_refused(o, "\"kl\" is not a number");
        json_decref(o);
    }
    r->verdict = GATE_FAIL;
    r->divergence.kl = 0;
    gate_quality_judge(r);
    assert_int_equal(r->verdict, GATE_FAIL);
    fixture_free(r);
    fixture_free(again);
}

static void draw(struct gate_result *r, bool is_drawn)
{
    struct err err = ERR_INIT;
    size_t bytes;

    if (gate_forest_draw(r, ".", &err)) {
        if (err.code != ST_UNSUPPORTED)
            fail_msg("%s", err.msg);
        print_message("no chart: %s\n", err.msg);
    } else if (is_drawn) {
        uint8_t *png = test_read_file("gate_forest.png", &bytes);

        assert_true(bytes > 8000);
        assert_memory_equal(png + 1, "PNG", 3);
        free(png);
    }
    assert_int_equal(access("gate_forest.csv", R_OK) == 0, is_drawn);
    fixture_free(r);
}

static void a_forest_is_drawn_of_anything(void **state)
{
    struct gate_result *r;

    (void)state;
    draw(hostile_result(), true);
    r = fixture_result();
    fixture_metric(r, "decode", 1, 0.01, 14);
    draw(r, true);
    r = fixture_result();
    for (int i = 0; i < GATE_MAX_METRICS; i++) /* all the same, to the last bit */
        fixture_metric(r, "memory", 1, 0, 10);
    draw(r, true);
    r = fixture_result();
    r->rule.margin = 0; /* of the metric, too */
    fixture_metric(r, "memory", 1, 0, 10);
    draw(r, true);
    r = fixture_result(); /* margins of their own, one beyond the chart's edge */
    fixture_metric(r, "decode", 1, 0.01, 14);
    fixture_metric(r, "memory", 1, 0.01, 14)->margin = 0.03;
    fixture_metric(r, "load", 1, 0.01, 14)->margin = 0.5;
    draw(r, true);
    r = fixture_result();
    fixture_metric(r, "decode", 1, 0.01, 14)->effect.ratio = NAN;
    draw(r, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_have_as_many_digits_as_they_need),
        cmocka_unit_test(markdown_begins_with_the_verdict),
        cmocka_unit_test(a_pass_has_no_advice),
        cmocka_unit_test(annotations_are_one_command_a_line),
        cmocka_unit_test(a_unit_is_harmless),
        cmocka_unit_test(junit_is_well_formed),
        cmocka_unit_test(junit_has_the_verdict_in_any_case),
        cmocka_unit_test(the_sentence_names_the_worst),
        cmocka_unit_test(answers_decide_as_well),
        cmocka_unit_test(a_forest_is_drawn_of_anything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
